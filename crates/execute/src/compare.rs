//! Compares results with expected values, on all cores.
//!
//! Integers must match exactly. A float passes if it equals the reference rounded to its type: a sum beyond the largest
//! f16 is infinite, a square below the smallest f32 is 0. It also passes if it is within the absolute, relative or ULP
//! bound. NaN passes only for an expected NaN, and an infinity only for one of the same sign. Arrays of different
//! lengths are rejected.

use std::ops::Range;

use super::operand::{Number, Operand, PIECE, show};
use super::parallel;
use super::typed::{Float, by_type};
use runner_types::{Allowed, ElementType, Mismatch, Tolerance};

/// Elements per task.
const BLOCK: usize = 1 << 16;

/// Number of elements whose allowed errors are requested together.
const ASKED: usize = 1 << 20;

/// Absolute errors allowed at the given element indices, which are in ascending order.
pub type Errors<'a> = dyn Fn(&[usize]) -> Vec<f64> + 'a;

/// What a check allows beyond its tolerance.
#[derive(Clone, Copy, Default)]
pub struct Leeway<'a> {
    /// Whether the code may flush subnormal f32 results to zero.
    pub flushes: bool,
    pub errors: Option<&'a Errors<'a>>,
}

/// First wrong element, and number of wrong ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    pub index: u64,
    pub expected: Number,
    pub got: Number,
    pub wrong: u64,
    pub of: u64,
    /// Error allowed at the first wrong element; `None` for integers.
    pub allowed: Option<Allowed>,
}

impl Difference {
    /// The difference as it is reported in an outcome. `element` is the type of the compared array.
    pub fn mismatch(&self, what: String, element: Option<ElementType>) -> Mismatch {
        let error = (self.got.as_f64() - self.expected.as_f64()).abs();
        let exact = match (self.got, self.expected) {
            (Number::Int(got), Number::Int(expected)) => got.abs_diff(expected) as f64,
            _ => error,
        };
        Mismatch {
            what,
            index: self.index,
            expected: show(self.expected, None),
            got: show(self.got, element),
            error: exact.is_finite().then_some(exact),
            wrong: self.wrong,
            of: self.of,
            allowed: self.allowed.map(Box::new),
        }
    }
}

/// Compares all elements; `None` if all are correct. A single expected number applies to every element. The `unwritten`
/// elements, in ascending order, are wrong whatever they hold.
///
/// Fails if the lengths differ or if there is nothing to compare.
pub fn compare(
    actual: &Operand,
    expected: &Operand,
    tolerance: &Tolerance,
    unwritten: &[Range<usize>],
    leeway: &Leeway<'_>,
) -> Result<Option<Difference>, String> {
    let len = match (actual.len(), expected.len()) {
        (Some(0), None) => return Err("the check compares an empty array with a number".to_owned()),
        (Some(len), None) => len,
        (None, None | Some(1)) => 1,
        (Some(len), Some(other)) if len == other => len,
        (actual, Some(expected)) => {
            let actual = actual.map_or_else(|| "one number".to_owned(), |len| format!("{len} elements"));
            return Err(format!("the check compares {actual} with {expected} elements"));
        }
    };
    let judge = Judge::new(actual, expected, tolerance, leeway.flushes);
    let mut found = parallel::blocks(len, BLOCK, &|block| judge.block(block));
    let errors = leeway.errors.filter(|_| judge.is_of_floats() && found.iter().any(|(_, wrong)| *wrong > 0));
    if let Some(errors) = errors {
        found = judge.beyond(len, unwritten, errors);
    }
    // An unwritten element that happens to hold the expected value is not among those found.
    let unseen = unwritten.iter().map(|range| (Some(range.start), range.len() as u64 - judge.block(range.clone()).1));
    let (first, wrong) = found.into_iter().chain(unseen).fold((None, 0), earlier);
    Ok(first.map(|index| Difference {
        index: index as u64,
        expected: expected.number(index),
        got: actual.number(index),
        wrong,
        of: len as u64,
        allowed: actual.is_float().then(|| {
            let error = errors.and_then(|errors| errors(&[index]).first().copied()).unwrap_or(0.0);
            Allowed { rel: tolerance.rel, abs: tolerance.abs.max(error), ulp: tolerance.ulp }
        }),
    }))
}

/// Compares bytes with earlier ones, numbers by their bits; `None` if all are equal.
pub fn bitwise(now: &[u8], before: &[u8], element: ElementType) -> Option<Difference> {
    let size = element.size();
    let found = parallel::blocks(now.len().min(before.len()) / size, BLOCK, &|block| {
        let bytes = block.start * size..block.end * size;
        let (now, before) = (&now[bytes.clone()], &before[bytes]);
        if now == before {
            return (None, 0);
        }
        let pairs = now.chunks_exact(size).zip(before.chunks_exact(size)).enumerate();
        let mut differing = pairs.filter(|(_, (now, before))| now != before).map(|(i, _)| block.start + i);
        let first = differing.next();
        (first, first.map_or(0, |_| 1 + differing.count() as u64))
    });
    let (first, wrong) = found.into_iter().fold((None, 0), earlier);
    let number = |bytes: &[u8], index: usize| {
        let bytes = bytes[index * size..(index + 1) * size].to_vec();
        Operand::Bytes { element, bytes: bytes.into() }.number(0)
    };
    first.map(|index| Difference {
        index: index as u64,
        expected: number(before, index),
        got: number(now, index),
        wrong,
        of: (before.len() / size) as u64,
        allowed: None,
    })
}

type Found = (Option<usize>, u64);

fn earlier(left: Found, right: Found) -> Found {
    (left.0.into_iter().chain(right.0).min(), left.1 + right.1)
}

struct Judge<'a> {
    actual: &'a Operand,
    expected: &'a Operand,
    abs: f64,
    rel: f64,
    ulp: f64,
    flushes: bool,
}

impl<'a> Judge<'a> {
    fn new(actual: &'a Operand, expected: &'a Operand, tolerance: &Tolerance, flushes: bool) -> Self {
        Self { actual, expected, abs: tolerance.abs, rel: tolerance.rel, ulp: tolerance.ulp as f64, flushes }
    }

    fn is_of_floats(&self) -> bool {
        self.actual.is_float()
    }

    /// Judges the remaining wrong elements by their allowed errors; unwritten ones stay wrong.
    fn beyond(&self, len: usize, unwritten: &[Range<usize>], errors: &Errors<'_>) -> Vec<Found> {
        let is_unwritten = |index: &usize| {
            let next = unwritten.partition_point(|range| range.end <= *index);
            unwritten.get(next).is_some_and(|range| range.contains(index))
        };
        let judged = |start: usize| {
            let end = len.min(start + ASKED);
            let doubtful = parallel::blocks(end - start, PIECE, &|block: Range<usize>| {
                let (mut got, mut wanted) = ([0.0; PIECE], [0.0; PIECE]);
                let (got, wanted) = (&mut got[..block.len()], &mut wanted[..block.len()]);
                self.actual.read_floats(start + block.start, got);
                self.expected.read_floats(start + block.start, wanted);
                let pairs = got.iter().zip(&*wanted).enumerate();
                let wrong = pairs.filter(|(_, (got, wanted))| !self.passes(**got, **wanted));
                wrong.map(|(at, (got, wanted))| (start + block.start + at, (got - wanted).abs())).collect::<Vec<_>>()
            })
            .concat();
            let indices: Vec<usize> = doubtful.iter().map(|(index, _)| *index).collect();
            let allowed = if indices.is_empty() { Vec::new() } else { errors(&indices) };
            let wrong = doubtful.iter().zip(allowed).filter(|((index, error), allowed)| {
                let is_near = *error <= *allowed && error.is_finite();
                !is_near || is_unwritten(index)
            });
            wrong.fold((None, 0), |found, ((index, _), _)| earlier(found, (Some(*index), 1)))
        };
        (0..len).step_by(ASKED).map(judged).collect()
    }

    fn block(&self, block: Range<usize>) -> Found {
        if self.same_bytes(&block) {
            return (None, 0);
        }
        match (self.actual.is_float(), self.expected.is_float()) {
            (false, false) => self.integers(block),
            (true, _) => self.floats(block),
            (false, true) => self.integers_with_floats(block),
        }
    }

    /// Handles the common case of a copy at memory speed: equal bits are equal values, including NaN.
    fn same_bytes(&self, block: &Range<usize>) -> bool {
        match (self.actual, self.expected) {
            (Operand::Bytes { element: a, bytes: x }, Operand::Bytes { element: b, bytes: y }) if a == b => {
                let range = block.start * a.size()..block.end * a.size();
                x[range.clone()] == y[range]
            }
            _ => false,
        }
    }

    fn integers(&self, block: Range<usize>) -> Found {
        let is_u64 = |operand: &Operand| operand.element() == Some(ElementType::U64);
        // A u64 lane and a signed lane may have the same bits but different values.
        let mixed = is_u64(self.actual) != is_u64(self.expected);
        by_piece(block, 0, |start, got, wanted| {
            self.actual.read_integers(start, got);
            self.expected.read_integers(start, wanted);
            if got == wanted && !mixed {
                return (None, 0);
            }
            count(got, wanted, |got, wanted| got == wanted && (!mixed || got >= 0))
        })
    }

    fn floats(&self, block: Range<usize>) -> Found {
        by_piece(block, 0.0, |start, got, wanted| {
            self.actual.read_floats(start, got);
            self.expected.read_floats(start, wanted);
            // A branch-free pass first, so that it vectorises: nearly always all elements are near.
            let far = got.iter().zip(&*wanted).filter(|(got, wanted)| !self.is_near(**got, **wanted)).count();
            if far == 0 {
                return (None, 0);
            }
            count(got, wanted, |got, wanted| self.passes(got, wanted))
        })
    }

    #[expect(clippy::float_cmp, reason = "integers are exact, whatever they are compared with")]
    fn integers_with_floats(&self, block: Range<usize>) -> Found {
        by_piece(block, 0.0, |start, got, wanted| {
            self.actual.read_floats(start, got);
            self.expected.read_floats(start, wanted);
            count(got, wanted, |got, wanted| got == wanted)
        })
    }

    /// Whether a number is within the absolute or the relative bound. Evaluates both, since a branch would cost more.
    #[expect(clippy::needless_bitwise_bool, reason = "loops over it are vectorised")]
    fn is_near(&self, got: f64, expected: f64) -> bool {
        let difference = (got - expected).abs();
        let bounded = (difference <= self.abs) | (difference <= self.rel * expected.abs());
        // An infinite expected value makes the relative bound infinite, so the difference must be finite.
        bounded & (difference < f64::INFINITY)
    }

    fn passes(&self, got: f64, expected: f64) -> bool {
        self.is_near(got, expected) || self.passes_closely(got, expected)
    }

    /// Decides what the fast path leaves open: NaN, infinities, rounding of the reference, and ULP bounds.
    fn passes_closely(&self, got: f64, expected: f64) -> bool {
        if expected.is_nan() {
            return got.is_nan();
        }
        let element = self.actual.element().unwrap_or(ElementType::F64);
        let rounded = nearest(element, expected);
        if rounded.is_infinite() {
            return got.is_infinite() && got.is_sign_positive() == rounded.is_sign_positive();
        }
        let is_subnormal = rounded.abs() < f64::from(f32::MIN_POSITIVE);
        if self.flushes && got == 0.0 && is_subnormal && matches!(element, ElementType::F32 | ElementType::Bf16) {
            return true;
        }
        let difference = (got - rounded).abs();
        // A bound of very many ULPs may itself be infinite.
        difference.is_finite() && difference <= self.ulp * last_place(element, rounded)
    }
}

/// Judges a block piece by piece. `judge` gets the start of a piece and space for both sides of it.
fn by_piece<L: Copy>(block: Range<usize>, zero: L, judge: impl Fn(usize, &mut [L], &mut [L]) -> Found) -> Found {
    let (mut got, mut wanted) = ([zero; PIECE], [zero; PIECE]);
    let mut found = (None, 0);
    for start in block.clone().step_by(PIECE) {
        let len = PIECE.min(block.end - start);
        let (first, wrong) = judge(start, &mut got[..len], &mut wanted[..len]);
        found = earlier(found, (first.map(|i| start + i), wrong));
    }
    found
}

fn count<L: Copy>(got: &[L], wanted: &[L], passes: impl Fn(L, L) -> bool) -> Found {
    let wrong = got.iter().zip(wanted).filter(|(got, wanted)| !passes(**got, **wanted)).count();
    if wrong == 0 {
        return (None, 0);
    }
    (got.iter().zip(wanted).position(|(got, wanted)| !passes(*got, *wanted)), wrong as u64)
}

/// Rounds a number to a float type, to nearest, ties to even.
fn nearest(element: ElementType, value: f64) -> f64 {
    by_type!(element, integer _T => value, float T => T::nearest(value).wide())
}

/// Spacing of a float type at the finite `value`; 0 for integers.
pub fn last_place(element: ElementType, value: f64) -> f64 {
    let (digits, least) = match element {
        ElementType::F16 => (11, -14),
        ElementType::Bf16 => (8, -126),
        ElementType::F32 => (24, -126),
        ElementType::F64 => (53, -1022),
        _ => return 0.0,
    };
    // Biased by 1023. Below the smallest normal exponent, subnormals keep its spacing.
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    libm::ldexp(1.0, exponent.max(least) - (digits - 1))
}

#[cfg(test)]
mod tests;
