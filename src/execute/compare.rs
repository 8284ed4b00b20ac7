//! Compares what a case made with what it should have made, over all cores.
//!
//! Integers are exact. A float passes when the absolute, the relative or the last-place bound allows it; NaN passes
//! for an expected NaN alone, and an infinity for one of the same sign alone, where "expected" means the reference as
//! the element type holds it: a sum past the largest f16 is infinite. Refuses to compare arrays of different lengths.

use std::ops::Range;

use rayon::prelude::*;

use super::operand::{Lanes, Number, Operand, PIECE, show, whole};
use super::typed::{Float, by_type};
use crate::model::{ElementType, Mismatch, Tolerance};

/// Elements that one task compares.
const BLOCK: usize = 1 << 16;

/// The first element that is wrong, and how many are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    pub index: u64,
    pub expected: Number,
    pub got: Number,
    pub wrong: u64,
    pub of: u64,
}

impl Difference {
    /// In words. `element` is the type of what was compared.
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
        }
    }
}

/// Compares; `None` where everything is right. A number on the expected side stands for every element.
///
/// Errors say which lengths do not meet, or that nothing is there to compare.
pub fn compare(actual: &Operand, expected: &Operand, tolerance: &Tolerance) -> Result<Option<Difference>, String> {
    let len = match (actual.len(), expected.len()) {
        (Some(0), None) => return Err("the check compares no elements with a number".to_owned()),
        (Some(len), None) => len,
        (None, None | Some(1)) => 1,
        (Some(len), Some(other)) if len == other => len,
        (actual, Some(expected)) => {
            let actual = actual.map_or_else(|| "one number".to_owned(), |len| format!("{len} elements"));
            return Err(format!("the check compares {actual} with {expected} elements"));
        }
    };
    let judge = Judge::new(actual, expected, tolerance);
    let blocks = (0..len.div_ceil(BLOCK)).into_par_iter().map(|i| i * BLOCK..len.min((i + 1) * BLOCK));
    let (first, wrong) = blocks.map(|block| judge.block(block)).reduce(|| (None, 0), earlier);
    Ok(first.map(|index| Difference {
        index: index as u64,
        expected: expected.number(index),
        got: actual.number(index),
        wrong,
        of: len as u64,
    }))
}

/// Compares bytes with what they were; `None` where all are the same. Numbers are told apart by their bits.
pub fn bitwise(now: &[u8], before: &[u8], element: ElementType) -> Option<Difference> {
    let size = element.size();
    let parts = now.par_chunks(BLOCK * size).zip(before.par_chunks(BLOCK * size)).enumerate();
    let (first, wrong) = parts
        .map(|(block, (now, before))| {
            if now == before {
                return (None, 0);
            }
            let pairs = now.chunks_exact(size).zip(before.chunks_exact(size)).enumerate();
            let mut differing = pairs.filter(|(_, (now, before))| now != before).map(|(i, _)| block * BLOCK + i);
            let first = differing.next();
            (first, first.map_or(0, |_| 1 + differing.count() as u64))
        })
        .reduce(|| (None, 0), earlier);
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
    })
}

type Found = (Option<usize>, u64);

fn earlier(left: Found, right: Found) -> Found {
    (left.0.into_iter().chain(right.0).min(), left.1 + right.1)
}

/// One comparison, set up.
struct Judge<'a> {
    actual: &'a Operand,
    expected: &'a Operand,
    abs: f64,
    rel: f64,
    ulp: f64,
}

impl<'a> Judge<'a> {
    fn new(actual: &'a Operand, expected: &'a Operand, tolerance: &Tolerance) -> Self {
        Self { actual, expected, abs: tolerance.abs, rel: tolerance.rel, ulp: tolerance.ulp as f64 }
    }

    fn block(&self, block: Range<usize>) -> Found {
        if self.same_bytes(&block) {
            return (None, 0);
        }
        let mut found = (None, 0);
        for start in block.clone().step_by(PIECE) {
            let piece = start..block.end.min(start + PIECE);
            let (first, wrong) = self.piece(piece);
            found = earlier(found, (first.map(|i| start + i), wrong));
        }
        found
    }

    /// The common case of a copy, at the speed of memory: equal bits are equal values, NaN among them.
    fn same_bytes(&self, block: &Range<usize>) -> bool {
        match (self.actual, self.expected) {
            (Operand::Bytes { element: a, bytes: x }, Operand::Bytes { element: b, bytes: y }) if a == b => {
                let range = block.start * a.size()..block.end * a.size();
                x[range.clone()] == y[range]
            }
            _ => false,
        }
    }

    fn piece(&self, piece: Range<usize>) -> Found {
        let (actual, expected) = (self.actual.element(), self.expected.element());
        match (self.actual.lanes(piece.clone()), self.expected.lanes(piece)) {
            (Lanes::Int(got), Lanes::Int(wanted)) => {
                let mixed = (actual == Some(ElementType::U64)) != (expected == Some(ElementType::U64));
                // Lanes of u64 and of a signed type may have the same bits for different numbers.
                count(&got, &wanted, |got, wanted| got == wanted && (!mixed || got >= 0))
            }
            (Lanes::Float(got), Lanes::Float(wanted)) => count(&got, &wanted, |got, wanted| self.passes(got, wanted)),
            (Lanes::Float(got), Lanes::Int(wanted)) => {
                count(&got, &wanted, |got, wanted| self.passes(got, whole(expected, wanted) as f64))
            }
            (Lanes::Int(got), Lanes::Float(wanted)) =>
            {
                #[expect(clippy::float_cmp, reason = "integers are exact, whatever they are compared with")]
                count(&got, &wanted, |got, wanted| whole(actual, got) as f64 == wanted)
            }
        }
    }

    fn passes(&self, got: f64, expected: f64) -> bool {
        let difference = (got - expected).abs();
        let near = difference <= self.abs || difference <= self.rel * expected.abs();
        // An infinite expectation would make every difference small.
        (near && difference.is_finite() && expected.is_finite()) || self.passes_closely(got, expected, difference)
    }

    /// What the common case leaves: NaN, infinities and the last places.
    fn passes_closely(&self, got: f64, expected: f64, difference: f64) -> bool {
        if expected.is_nan() {
            return got.is_nan();
        }
        let element = self.actual.element().unwrap_or(ElementType::F64);
        let rounded = by_type!(element, integer _T => expected, float T => T::nearest(expected).wide());
        if rounded.is_infinite() {
            return got.is_infinite() && got.is_sign_positive() == rounded.is_sign_positive();
        }
        // A bound of very many places may itself be infinite.
        difference.is_finite() && difference <= self.ulp * last_place(element, rounded)
    }
}

fn count<A: Copy, B: Copy>(got: &[A], wanted: &[B], passes: impl Fn(A, B) -> bool) -> Found {
    let wrong = got.iter().zip(wanted).filter(|(got, wanted)| !passes(**got, **wanted)).count();
    if wrong == 0 {
        return (None, 0);
    }
    (got.iter().zip(wanted).position(|(got, wanted)| !passes(*got, *wanted)), wrong as u64)
}

/// The distance between neighbours of a float type at a finite `value` of it; 0 for integers.
fn last_place(element: ElementType, value: f64) -> f64 {
    let (digits, least) = match element {
        ElementType::F16 => (11, -14),
        ElementType::Bf16 => (8, -126),
        ElementType::F32 => (24, -126),
        ElementType::F64 => (53, -1022),
        _ => return 0.0,
    };
    // Biased by 1023; below the least normal exponent, subnormals keep its spacing.
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    libm::ldexp(1.0, exponent.max(least) - (digits - 1))
}

#[cfg(test)]
mod tests;
