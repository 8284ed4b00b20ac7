//! Reductions: arrays to one number.

use std::ops::Range;

use super::super::operand::{Number, Operand, PIECE, whole, wrapped};
use super::super::parallel;
use crate::model::{ElementType, Reduction};

/// Elements that one task reduces; the tasks' results are combined in order.
const BLOCK: usize = 1 << 16;

/// Independent chains of additions, which the processor executes in parallel.
const CHAINS: usize = 4;

/// Reduces the arrays, which have one length. The error says what is wrong with them.
pub fn reduce(reduction: Reduction, element: ElementType, arguments: &[Operand]) -> Result<Number, String> {
    let len = arguments.first().and_then(Operand::len).unwrap_or(0);
    if len == 0 && matches!(reduction, Reduction::Min | Reduction::Max) {
        return Err("of no elements has no value".to_owned());
    }
    if element.is_float() {
        floats(reduction, element, arguments, len).map(Number::Float)
    } else {
        let lane = integers(reduction, element, arguments, len);
        Ok(Number::Int(whole(Some(element), wrapped(element, lane))))
    }
}

fn pieces(block: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    block.clone().step_by(PIECE).map(move |start| start..block.end.min(start + PIECE))
}

/// Arithmetic modulo 2^64, of which the type's own is the low bits.
fn integers(reduction: Reduction, element: ElementType, arguments: &[Operand], len: usize) -> i64 {
    let unsigned = element == ElementType::U64;
    let x = &arguments[0];
    let read = |start, lanes: &mut [i64]| x.read_integers(start, lanes);
    match reduction {
        Reduction::Sum => folded(len, 0, read, i64::wrapping_add),
        Reduction::Product => folded(len, 1, read, i64::wrapping_mul),
        Reduction::Min if unsigned => folded(len, -1, read, |a, b| (a as u64).min(b as u64) as i64),
        Reduction::Max if unsigned => folded(len, 0, read, |a, b| (a as u64).max(b as u64) as i64),
        Reduction::Min => folded(len, i64::MAX, read, i64::min),
        Reduction::Max => folded(len, i64::MIN, read, i64::max),
        Reduction::And => folded(len, -1, read, |a, b| a & b),
        Reduction::Or => folded(len, 0, read, |a, b| a | b),
        Reduction::SumSquares => integer_products(x, x, len),
        Reduction::Dot => integer_products(x, &arguments[1], len),
    }
}

fn integer_products(x: &Operand, y: &Operand, len: usize) -> i64 {
    let read = |start, lanes: &mut [i64]| {
        let mut other = [0; PIECE];
        let other = &mut other[..lanes.len()];
        x.read_integers(start, lanes);
        y.read_integers(start, other);
        lanes.iter_mut().zip(other).for_each(|(x, y)| *x = x.wrapping_mul(*y));
    };
    folded(len, 0, read, i64::wrapping_add)
}

fn floats(reduction: Reduction, element: ElementType, arguments: &[Operand], len: usize) -> Result<f64, String> {
    let x = &arguments[0];
    let read = |start, lanes: &mut [f64]| x.read_floats(start, lanes);
    Ok(match reduction {
        Reduction::Sum => compensated(len, |chains, piece| add_all(chains, &floats_of(x, piece))),
        Reduction::SumSquares => float_products(element, x, x, len),
        Reduction::Dot => float_products(element, x, &arguments[1], len),
        Reduction::Product => folded(len, 1.0, read, |a, b| a * b),
        Reduction::Min => folded(len, f64::INFINITY, read, f64::minimum_or_nan),
        Reduction::Max => folded(len, f64::NEG_INFINITY, read, f64::maximum_or_nan),
        Reduction::And | Reduction::Or => return Err(format!("works on integers, and the array is {element}")),
    })
}

/// Combines all elements, block after block. `read` gives the elements from a place on.
fn folded<T: Copy + Send + Sync>(
    len: usize,
    identity: T,
    read: impl Fn(usize, &mut [T]) + Sync,
    combine: impl Fn(T, T) -> T + Sync,
) -> T {
    let of_block = |block: Range<usize>| {
        let mut lanes = vec![identity; PIECE.min(block.len())];
        pieces(block).fold(identity, |total, piece| {
            let lanes = &mut lanes[..piece.len()];
            read(piece.start, lanes);
            lanes.iter().fold(total, |total, lane| combine(total, *lane))
        })
    };
    parallel::blocks(len, BLOCK, &of_block).into_iter().fold(identity, combine)
}

fn floats_of(operand: &Operand, piece: Range<usize>) -> Vec<f64> {
    let mut lanes = vec![0.0; piece.len()];
    operand.read_floats(piece.start, &mut lanes);
    lanes
}

/// Least and greatest that keep NaN: a part of the output that was never written must not vanish in a `max`.
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

/// A sum and what its roundings lost (Neumaier 1974).
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let total = self.sum + value;
        let (large, small) = if self.sum.abs() >= value.abs() { (self.sum, value) } else { (value, self.sum) };
        self.lost += (large - total) + small;
        self.sum = total;
    }

    fn join(mut self, other: Self) -> Self {
        self.add(other.sum);
        self.lost += other.lost;
        self
    }

    /// An infinite or NaN sum has no meaningful correction.
    fn value(self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

fn compensated(len: usize, add: impl Fn(&mut [Sum; CHAINS], Range<usize>) + Sync) -> f64 {
    let of_block = |block: Range<usize>| {
        let mut chains = [Sum::default(); CHAINS];
        pieces(block).for_each(|piece| add(&mut chains, piece));
        chains.into_iter().fold(Sum::default(), Sum::join)
    };
    parallel::blocks(len, BLOCK, &of_block).into_iter().fold(Sum::default(), Sum::join).value()
}

fn float_products(element: ElementType, x: &Operand, y: &Operand, len: usize) -> f64 {
    // The product of two narrower floats is exact in f64; that of two f64 leaves a remainder, which is added too.
    let exact = element != ElementType::F64;
    compensated(len, |chains, piece| {
        add_products(chains, &floats_of(x, piece.clone()), &floats_of(y, piece), exact);
    })
}

fn add_all(chains: &mut [Sum; CHAINS], values: &[f64]) {
    for row in values.chunks(CHAINS) {
        chains.iter_mut().zip(row).for_each(|(chain, value)| chain.add(*value));
    }
}

fn add_products(chains: &mut [Sum; CHAINS], x: &[f64], y: &[f64], exact: bool) {
    for (x, y) in x.chunks(CHAINS).zip(y.chunks(CHAINS)) {
        for (chain, (x, y)) in chains.iter_mut().zip(x.iter().zip(y)) {
            let product = x * y;
            chain.add(product);
            if !exact {
                chain.lost += x.mul_add(*y, -product);
            }
        }
    }
}
