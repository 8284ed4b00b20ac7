//! Errors of float results that passed their check: a result within its tolerance still has an error.
//!
//! Separate from the check because it judges nothing. The figures do not depend on the number of threads.

use std::ops::Range;

use super::compare::last_place;
use super::operand::{Operand, PIECE};
use super::parallel;
use super::typed::{Float, by_type};
use runner_types::{ElementType, ResultError};

/// Elements per task.
const BLOCK: usize = 1 << 16;

#[derive(Debug, Clone, Copy, Default)]
pub struct Errors {
    abs: f64,
    rel: f64,
    ulp: f64,
    /// Sum of relative errors.
    sum: f64,
    /// Number of elements that have a relative error.
    count: u64,
}

impl Errors {
    /// Errors of a float result; `None` for integers, which are exact. The caller has checked that the lengths agree.
    pub fn measure(actual: &Operand, expected: &Operand) -> Option<Self> {
        if !actual.is_float() {
            return None;
        }
        let element = actual.element().unwrap_or(ElementType::F64);
        let len = actual.len().or(expected.len()).unwrap_or(1);
        let block = |block: Range<usize>| {
            let (mut got, mut wanted) = ([0.0; PIECE], [0.0; PIECE]);
            let mut errors = Self::default();
            for start in block.clone().step_by(PIECE) {
                let len = PIECE.min(block.end - start);
                actual.read_floats(start, &mut got[..len]);
                expected.read_floats(start, &mut wanted[..len]);
                got[..len].iter().zip(&wanted[..len]).for_each(|(got, wanted)| errors.add(element, *got, *wanted));
            }
            errors
        };
        // In order, because a float sum depends on the order of its terms.
        Some(parallel::blocks(len, BLOCK, &block).into_iter().fold(Self::default(), Self::join))
    }

    /// Adds one element. An element has no error if either value is not finite.
    fn add(&mut self, element: ElementType, got: f64, expected: f64) {
        let abs = (got - expected).abs();
        if !abs.is_finite() {
            return;
        }
        self.abs = self.abs.max(abs);
        let rounded = by_type!(element, integer _T => expected, float T => T::nearest(expected).wide());
        if rounded.is_finite() {
            self.ulp = self.ulp.max(abs / last_place(element, rounded));
        }
        if expected != 0.0 {
            let rel = abs / expected.abs();
            (self.rel, self.sum, self.count) = (self.rel.max(rel), self.sum + rel, self.count + 1);
        }
    }

    pub fn join(self, other: Self) -> Self {
        Self {
            abs: self.abs.max(other.abs),
            rel: self.rel.max(other.rel),
            ulp: self.ulp.max(other.ulp),
            sum: self.sum + other.sum,
            count: self.count + other.count,
        }
    }

    pub fn result(self) -> ResultError {
        let Self { abs, rel, ulp, .. } = self;
        ResultError { abs, rel, mean_rel: self.sum / self.count.max(1) as f64, ulp }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "powers of two and their quotients are exact")]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Operand {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Operand::Bytes { element: ElementType::F32, bytes: bytes.into() }
    }

    fn doubles(values: &[f64]) -> Operand {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Operand::Bytes { element: ElementType::F64, bytes: bytes.into() }
    }

    #[test]
    fn the_greatest_and_the_mean_error_are_told_apart() {
        // Neighbouring f32 values differ by 2^-23 between 1 and 2, and by four times that between 4 and 8.
        let place = 2f64.powi(-23);
        let got = floats(&[1.0, 1.0, 4.0]);
        let expected = doubles(&[1.0, 1.0 + 0.5 * place, 4.0 + 6.0 * place]);
        let error = Errors::measure(&got, &expected).map(Errors::result).unwrap_or_default();
        assert_eq!(error.abs, 6.0 * place);
        assert_eq!(error.ulp, 1.5);
        let (small, large) = (0.5 * place / (1.0 + 0.5 * place), 6.0 * place / (4.0 + 6.0 * place));
        assert_eq!(error.rel, large);
        assert!((error.mean_rel - (small + large) / 3.0).abs() < 1e-20, "{}", error.mean_rel);
    }

    #[test]
    fn an_expected_zero_has_an_absolute_error_only_and_a_nan_has_none() {
        let error =
            Errors::measure(&floats(&[0.25, f32::NAN, f32::INFINITY]), &doubles(&[0.0, f64::NAN, f64::INFINITY]));
        let error = error.map(Errors::result).unwrap_or_default();
        assert_eq!((error.abs, error.rel, error.mean_rel), (0.25, 0.0, 0.0));
    }

    #[test]
    fn integers_have_no_error() {
        let one = Operand::Bytes { element: ElementType::I32, bytes: vec![1, 0, 0, 0].into() };
        assert!(Errors::measure(&one, &one).is_none());
    }

    #[test]
    fn many_elements_have_the_same_figures_every_time() {
        let got: Vec<f32> = (0..300_000u32).map(|i| (f64::from(i) / 3.0) as f32).collect();
        let expected: Vec<f64> = (0..300_000u32).map(|i| f64::from(i) / 3.0).collect();
        let once = || Errors::measure(&floats(&got), &doubles(&expected)).map(Errors::result);
        assert_eq!(once(), once());
        assert!(once().is_some_and(|error| error.ulp <= 0.5 && error.mean_rel > 0.0));
    }
}
