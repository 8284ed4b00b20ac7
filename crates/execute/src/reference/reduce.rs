//! Reductions: arrays to one number, block by block.
//!
//! An array may be in memory, or be generated block by block as needed, so a reduction of gigabytes does not take
//! gigabytes of memory.

use std::borrow::Cow;
use std::ops::Range;

use super::super::operand::{Number, Operand, PIECE, whole, wrapped};
use super::super::parallel;
use runner_types::{ElementType, Reduction};

/// Elements reduced by one task; the results are combined in order.
pub const BLOCK: usize = 1 << 16;

/// Independent chains of additions, which the processor executes in parallel.
const CHAINS: usize = 4;

/// Arguments of a reduction, for one block of their elements.
#[derive(Debug)]
pub struct Block<'a> {
    arguments: Cow<'a, [Operand]>,
    /// Index of the arguments' first element.
    start: usize,
}

impl<'a> Block<'a> {
    /// Arguments that are in memory as a whole.
    pub const fn of_whole(arguments: &'a [Operand]) -> Self {
        Self { arguments: Cow::Borrowed(arguments), start: 0 }
    }

    /// Arguments that hold only the elements of a block, which begins at `start`.
    pub const fn alone(arguments: Vec<Operand>, start: usize) -> Self {
        Self { arguments: Cow::Owned(arguments), start }
    }

    fn read_integers(&self, argument: usize, start: usize, lanes: &mut [i64]) {
        self.arguments[argument].read_integers(start - self.start, lanes);
    }

    fn read_floats(&self, argument: usize, start: usize, lanes: &mut [f64]) {
        self.arguments[argument].read_floats(start - self.start, lanes);
    }

    fn floats(&self, argument: usize, piece: &Range<usize>) -> Vec<f64> {
        let mut lanes = vec![0.0; piece.len()];
        self.read_floats(argument, piece.start, &mut lanes);
        lanes
    }
}

/// Provides the arguments for a block of at most [`BLOCK`] elements, whose bounds are multiples of it or the end. On
/// failure, the error gives the reason.
pub type Blocks<'a> = dyn Fn(Range<usize>) -> Result<Block<'a>, String> + Sync + 'a;

/// Reduces arrays of `len` elements each. The error says what is wrong with them.
pub fn reduce(reduction: Reduction, element: ElementType, len: usize, given: &Blocks<'_>) -> Result<Number, String> {
    if len == 0 && matches!(reduction, Reduction::Min | Reduction::Max) {
        return Err("of an empty array has no value".to_owned());
    }
    if element.is_float() {
        floats(reduction, element, len, given).map(Number::Float)
    } else {
        let lane = integers(reduction, element, len, given)?;
        Ok(Number::Int(whole(Some(element), wrapped(element, lane))))
    }
}

fn pieces(block: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    block.clone().step_by(PIECE).map(move |start| start..block.end.min(start + PIECE))
}

/// Reduces in arithmetic modulo 2^64, whose low bits agree with the type's own arithmetic.
fn integers(reduction: Reduction, element: ElementType, len: usize, given: &Blocks<'_>) -> Result<i64, String> {
    let unsigned = element == ElementType::U64;
    let read = |block: &Block<'_>, start, lanes: &mut [i64]| block.read_integers(0, start, lanes);
    match reduction {
        Reduction::Sum => folded(len, 0, given, read, i64::wrapping_add),
        Reduction::Product => folded(len, 1, given, read, i64::wrapping_mul),
        Reduction::Min if unsigned => folded(len, -1, given, read, |a, b| (a as u64).min(b as u64) as i64),
        Reduction::Max if unsigned => folded(len, 0, given, read, |a, b| (a as u64).max(b as u64) as i64),
        Reduction::Min => folded(len, i64::MAX, given, read, i64::min),
        Reduction::Max => folded(len, i64::MIN, given, read, i64::max),
        Reduction::And => folded(len, -1, given, read, |a, b| a & b),
        Reduction::Or => folded(len, 0, given, read, |a, b| a | b),
        Reduction::SumSquares => integer_products(0, len, given),
        Reduction::Dot => integer_products(1, len, given),
    }
}

/// Sum of the first argument's elements times those of `other`.
fn integer_products(other: usize, len: usize, given: &Blocks<'_>) -> Result<i64, String> {
    let read = |block: &Block<'_>, start, lanes: &mut [i64]| {
        let mut factors = [0; PIECE];
        let factors = &mut factors[..lanes.len()];
        block.read_integers(0, start, lanes);
        block.read_integers(other, start, factors);
        lanes.iter_mut().zip(factors).for_each(|(x, y)| *x = x.wrapping_mul(*y));
    };
    folded(len, 0, given, read, i64::wrapping_add)
}

fn floats(reduction: Reduction, element: ElementType, len: usize, given: &Blocks<'_>) -> Result<f64, String> {
    let read = |block: &Block<'_>, start, lanes: &mut [f64]| block.read_floats(0, start, lanes);
    match reduction {
        Reduction::Sum => compensated(len, given, |block, sums, piece| add_all(sums, &block.floats(0, piece))),
        Reduction::SumSquares => float_products(element, 0, len, given),
        Reduction::Dot => float_products(element, 1, len, given),
        Reduction::Product => folded(len, 1.0, given, read, |a, b| a * b),
        Reduction::Min => folded(len, f64::INFINITY, given, read, f64::minimum_or_nan),
        Reduction::Max => folded(len, f64::NEG_INFINITY, given, read, f64::maximum_or_nan),
        Reduction::And | Reduction::Or => Err(format!("works on integers, but the array is {element}")),
    }
}

/// Combines all elements, block by block. `read` reads elements starting at an index.
fn folded<T: Copy + Send + Sync>(
    len: usize,
    identity: T,
    given: &Blocks<'_>,
    read: impl Fn(&Block<'_>, usize, &mut [T]) + Sync,
    combine: impl Fn(T, T) -> T + Sync,
) -> Result<T, String> {
    let of_block = |range: Range<usize>| {
        let block = given(range.clone())?;
        let mut lanes = vec![identity; PIECE.min(range.len())];
        Ok(pieces(range).fold(identity, |total, piece| {
            let lanes = &mut lanes[..piece.len()];
            read(&block, piece.start, lanes);
            lanes.iter().fold(total, |total, lane| combine(total, *lane))
        }))
    };
    let mut parts = parallel::blocks(len, BLOCK, &of_block).into_iter();
    parts.try_fold(identity, |total, part: Result<T, String>| Ok(combine(total, part?)))
}

/// Minimum and maximum that propagate NaN: an unwritten part of the output must not vanish in a `max`.
trait OrNan {
    fn minimum_or_nan(self, other: Self) -> Self;
    fn maximum_or_nan(self, other: Self) -> Self;
}

impl OrNan for f64 {
    fn minimum_or_nan(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() { Self::NAN } else { self.min(other) }
    }

    fn maximum_or_nan(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() { Self::NAN } else { self.max(other) }
    }
}

/// Sums of independent chains, and their rounding errors.
#[derive(Clone, Copy, Default)]
struct Sums {
    sums: [f64; CHAINS],
    lost: [f64; CHAINS],
}

impl Sums {
    /// Adds a value to a chain. The rounding error is computed without a branch (Knuth, TAOCP 2, 4.2.2), so that the
    /// chains run in parallel.
    fn add(&mut self, chain: usize, value: f64) {
        let sum = self.sums[chain];
        let total = sum + value;
        let rest = total - sum;
        self.lost[chain] += (sum - (total - rest)) + (value - rest);
        self.sums[chain] = total;
    }

    fn total(self) -> Sum {
        let chains = self.sums.into_iter().zip(self.lost);
        chains.fold(Sum::default(), |total, (sum, lost)| total.join(Sum { sum, lost }))
    }
}

/// A sum and its accumulated rounding error (Neumaier 1974).
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn join(self, other: Self) -> Self {
        let total = self.sum + other.sum;
        let (large, small) =
            if self.sum.abs() >= other.sum.abs() { (self.sum, other.sum) } else { (other.sum, self.sum) };
        Self { sum: total, lost: self.lost + ((large - total) + small) + other.lost }
    }

    /// Corrected sum. An infinite or NaN sum has no meaningful correction.
    fn value(self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

fn compensated(
    len: usize,
    given: &Blocks<'_>,
    add: impl Fn(&Block<'_>, &mut Sums, &Range<usize>) + Sync,
) -> Result<f64, String> {
    let of_block = |range: Range<usize>| {
        let block = given(range.clone())?;
        let mut sums = Sums::default();
        pieces(range).for_each(|piece| add(&block, &mut sums, &piece));
        Ok(sums.total())
    };
    let mut parts = parallel::blocks(len, BLOCK, &of_block).into_iter();
    let sum = parts.try_fold(Sum::default(), |sum, part: Result<Sum, String>| Ok::<_, String>(sum.join(part?)))?;
    Ok(sum.value())
}

/// Sum of the first argument's elements times those of `other`.
fn float_products(element: ElementType, other: usize, len: usize, given: &Blocks<'_>) -> Result<f64, String> {
    // The product of two narrower floats is exact in f64; that of two f64 leaves a remainder, which is added too.
    let exact = element != ElementType::F64;
    compensated(len, given, |block, sums, piece| {
        add_products(sums, &block.floats(0, piece), &block.floats(other, piece), exact);
    })
}

fn add_all(sums: &mut Sums, values: &[f64]) {
    for row in values.chunks(CHAINS) {
        row.iter().enumerate().for_each(|(chain, value)| sums.add(chain, *value));
    }
}

fn add_products(sums: &mut Sums, x: &[f64], y: &[f64], exact: bool) {
    for (x, y) in x.chunks(CHAINS).zip(y.chunks(CHAINS)) {
        for (chain, (x, y)) in x.iter().zip(y).enumerate() {
            let product = x * y;
            sums.add(chain, product);
            if !exact {
                sums.lost[chain] += x.mul_add(*y, -product);
            }
        }
    }
}
