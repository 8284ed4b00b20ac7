//! Judges arrays as a whole, for checks that tolerate some wrong elements or bound the error in a norm.

use super::compare::Difference;
use super::operand::{Operand, PIECE};
use super::parallel;
use super::typed::{Float, by_type};
use runner_types::{ElementType, WholeTolerance};

/// Elements per task.
const BLOCK: usize = 1 << 16;

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Sums of squared errors and of squared expected values.
    squares: (f64, f64),
    /// Largest absolute error and largest absolute expected value.
    greatest: (f64, f64),
}

/// Message that says why a result with wrong elements fails as a whole; `None` if the tolerance allows them.
/// `unwritten` elements were never written, so no norm can judge their error.
pub fn refusal(
    actual: &Operand,
    expected: &Operand,
    (difference, unwritten): (&Difference, u64),
    tolerance: &WholeTolerance,
) -> Option<String> {
    let WholeTolerance { fraction, norm, max_norm } = *tolerance;
    let wrong = difference.wrong as f64 / (difference.of as f64).max(1.0);
    let mut why = Vec::new();
    let lost = if wrong <= fraction { not_finite(actual, expected, difference.of as usize) } else { 0 };
    if wrong <= fraction && lost == 0 {
        return None;
    }
    if lost > 0 {
        why.push(format!("NaN or infinity in {lost} of the elements, which `fraction` does not allow"));
    } else if fraction > 0.0 {
        why.push(format!("{wrong:.4} of the elements are wrong, but only {fraction} may be"));
    }
    let has_norm = norm > 0.0 || max_norm > 0.0;
    if has_norm && unwritten > 0 {
        let were = if unwritten == 1 { "was" } else { "were" };
        why.push(format!("{unwritten} {were} never written"));
    } else if has_norm {
        let Sums { squares, greatest } = sums(actual, expected, difference.of as usize);
        let (frobenius, max) = (relative(squares.0.sqrt(), squares.1.sqrt()), relative(greatest.0, greatest.1));
        for (bound, error, name) in [(norm, frobenius, "Frobenius"), (max_norm, max, "maximum")] {
            if bound > 0.0 && error <= bound {
                return None;
            }
            if bound > 0.0 {
                why.push(format!(
                    "the relative error in the {name} norm is {error:.2e}, but only {bound:e} is allowed"
                ));
            }
        }
    }
    Some(why.join("; "))
}

/// Number of elements that are NaN or infinite where the expected value is finite.
fn not_finite(actual: &Operand, expected: &Operand, len: usize) -> u64 {
    if !actual.is_float() {
        return 0;
    }
    let element = actual.element().unwrap_or(ElementType::F64);
    let parts = parallel::blocks(len, PIECE, &|block| {
        let (mut got, mut wanted) = ([0.0; PIECE], [0.0; PIECE]);
        let (got, wanted) = (&mut got[..block.len()], &mut wanted[..block.len()]);
        actual.read_floats(block.start, got);
        expected.read_floats(block.start, wanted);
        let lost = |(got, wanted): &(&f64, &f64)| !got.is_finite() && error(**got, **wanted, element) > 0.0;
        got.iter().zip(&*wanted).filter(lost).count() as u64
    });
    parts.into_iter().sum()
}

/// Error divided by the expected value; NaN becomes infinite.
fn relative(error: f64, expected: f64) -> f64 {
    if error == 0.0 {
        return 0.0;
    }
    let relative = error / expected;
    if relative.is_nan() { f64::INFINITY } else { relative }
}

fn sums(actual: &Operand, expected: &Operand, len: usize) -> Sums {
    let element = actual.element().unwrap_or(ElementType::F64);
    let parts = parallel::blocks(len, BLOCK, &|block| {
        let (mut got, mut wanted) = ([0.0; PIECE], [0.0; PIECE]);
        let mut sums = Sums::default();
        for start in block.clone().step_by(PIECE) {
            let count = PIECE.min(block.end - start);
            actual.read_floats(start, &mut got[..count]);
            expected.read_floats(start, &mut wanted[..count]);
            for (got, wanted) in got[..count].iter().zip(&wanted[..count]) {
                sums.add(error(*got, *wanted, element), *wanted);
            }
        }
        sums
    });
    parts.into_iter().fold(Sums::default(), Sums::join)
}

/// Absolute error of an element. A non-finite one must equal the expected value in the element's type.
fn error(got: f64, wanted: f64, element: ElementType) -> f64 {
    let rounded = by_type!(element, integer _T => wanted, float T => T::nearest(wanted).wide());
    let overflows = got.is_infinite() && rounded.is_infinite();
    let same = (got.is_nan() && wanted.is_nan()) || (overflows && got.is_sign_positive() == rounded.is_sign_positive());
    let error = (got - wanted).abs();
    if same {
        0.0
    } else if error.is_finite() {
        error
    } else {
        f64::INFINITY
    }
}

impl Sums {
    fn add(&mut self, error: f64, wanted: f64) {
        let wanted = if wanted.is_finite() { wanted.abs() } else { 0.0 };
        self.squares = (self.squares.0 + error * error, self.squares.1 + wanted * wanted);
        self.greatest = (self.greatest.0.max(error), self.greatest.1.max(wanted));
    }

    fn join(self, other: Self) -> Self {
        Self {
            squares: (self.squares.0 + other.squares.0, self.squares.1 + other.squares.1),
            greatest: (self.greatest.0.max(other.greatest.0), self.greatest.1.max(other.greatest.1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Leeway, compare};
    use super::*;
    use runner_types::Tolerance;

    const EXACT: Tolerance = Tolerance::EXACT;

    fn floats(values: &[f32]) -> Operand {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Operand::Bytes { element: ElementType::F32, bytes: bytes.into() }
    }

    /// Why the values fail; `None` if they pass.
    fn judged(got: &[f32], wanted: &[f32], tolerance: WholeTolerance) -> Option<String> {
        let (got, wanted) = (floats(got), floats(wanted));
        let difference = compare(&got, &wanted, &EXACT, &[], &Leeway::default()).ok().flatten()?;
        refusal(&got, &wanted, (&difference, 0), &tolerance)
    }

    #[test]
    fn a_fraction_of_wrong_elements_passes() {
        let wanted: Vec<f32> = (0..200).map(|i| i as f32).collect();
        let mut got = wanted.clone();
        (got[3], got[77]) = (-1.0, 5.0);
        let fraction = |fraction| WholeTolerance { fraction, ..WholeTolerance::default() };
        assert_eq!(judged(&got, &wanted, fraction(0.01)), None);
        assert_eq!(
            judged(&got, &wanted, fraction(0.009)).as_deref(),
            Some("0.0100 of the elements are wrong, but only 0.009 may be")
        );
    }

    #[test]
    fn nan_and_infinity_are_outside_of_the_fraction_unless_they_are_expected() {
        let wanted: Vec<f32> = (0..100).map(|i| if i == 50 { f32::NAN } else { i as f32 }).collect();
        let half = WholeTolerance { fraction: 0.5, ..WholeTolerance::default() };
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut got = wanted.clone();
            (got[3], got[7]) = (-1.0, wrong);
            let why = judged(&got, &wanted, half).unwrap_or_default();
            assert_eq!(why, "NaN or infinity in 1 of the elements, which `fraction` does not allow", "{wrong}");
        }
        let mut got = wanted.clone();
        got[3] = -1.0;
        assert_eq!(judged(&got, &wanted, half), None, "the expected NaN is no loss");
    }

    #[test]
    fn an_error_is_judged_in_the_norm_of_the_array() {
        // Norms of the error: 5 and 4. Norms of the expected values: 50 and 40.
        let (wanted, got) = ([30.0, 40.0, 0.0], [30.0, 36.0, 3.0]);
        let norm = |norm| WholeTolerance { norm, ..WholeTolerance::default() };
        assert_eq!(judged(&got, &wanted, norm(0.1)), None);
        let why = judged(&got, &wanted, norm(0.099)).unwrap_or_default();
        assert_eq!(why, "the relative error in the Frobenius norm is 1.00e-1, but only 9.9e-2 is allowed");
        let most = |max_norm| WholeTolerance { max_norm, ..WholeTolerance::default() };
        assert_eq!(judged(&got, &wanted, most(0.1)), None);
        assert!(judged(&got, &wanted, most(0.099)).is_some());
    }

    #[test]
    fn what_is_not_finite_must_be_expected() {
        let generous = WholeTolerance { norm: 1e30, max_norm: 1e30, fraction: 0.0 };
        for (got, wanted) in
            [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::INFINITY, 1.0), (f32::INFINITY, f32::NEG_INFINITY)]
        {
            assert!(judged(&[got, 2.0], &[wanted, 1.0], generous).is_some(), "{got} for {wanted}");
        }
        assert_eq!(judged(&[f32::NAN, 2.0], &[f32::NAN, 1.0], generous), None);
        assert_eq!(judged(&[f32::INFINITY, 2.0], &[f32::INFINITY, 1.0], generous), None);
        // For an array of zeros, a relative error is undefined.
        assert!(judged(&[1e-9, 0.0], &[0.0, 0.0], generous).is_some());
    }
}
