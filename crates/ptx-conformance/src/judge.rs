//! Compares the results of two devices, either bit for bit or within the error that the PTX ISA documents for an
//! approximation.

use half::{bf16, f16};

use super::Form;
use super::inputs::Class;

/// Allowed difference between two results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The bits must be the same.
    Exact,
    /// Units in the last place.
    Ulp(f64),
    /// A fraction of the result.
    Relative(f64),
    /// Magnitude of the difference.
    Absolute(f64),
    /// `lg2`: 2⁻²², as an absolute error for arguments between 0.5 and 2, and as a relative error elsewhere.
    Logarithm,
}

impl Bound {
    /// Parses a bound from `forms.txt`, e.g. `ulp 2` or `rel 2^-22`.
    pub fn parse(text: &str) -> Self {
        let number = |text: &str| match text.strip_prefix("2^") {
            Some(power) => power.parse::<f64>().unwrap().exp2(),
            None => text.parse().unwrap(),
        };
        match text.split_once(' ') {
            Some(("ulp", n)) => Self::Ulp(number(n)),
            Some(("rel", n)) => Self::Relative(number(n)),
            Some(("abs", n)) => Self::Absolute(number(n)),
            _ if text == "lg2" => Self::Logarithm,
            _ => panic!("a bound `{text}`"),
        }
    }
}

/// Returns the parts of a result as doubles, each with its unit in the last place.
fn parts(class: Class, bits: u64) -> Vec<(f64, f64)> {
    let half = |bits: u64| {
        let x = f16::from_bits(bits as u16).to_f64();
        (x, (x.abs().max(2.0_f64.powi(-14)).log2().floor() - 10.0).exp2())
    };
    let bfloat = |bits: u64| {
        let x = bf16::from_bits(bits as u16).to_f64();
        (x, (x.abs().max(2.0_f64.powi(-126)).log2().floor() - 7.0).exp2())
    };
    match class {
        Class::F16 => vec![half(bits)],
        Class::Bf16 => vec![bfloat(bits)],
        Class::F16x2 => vec![half(bits), half(bits >> 16)],
        Class::Bf16x2 => vec![bfloat(bits), bfloat(bits >> 16)],
        Class::F64 => {
            let x = f64::from_bits(bits);
            vec![(x, x.abs() * 2.0_f64.powi(-52))]
        }
        _ => {
            let x = f64::from(f32::from_bits(bits as u32));
            vec![(x, (x.abs().max(2.0_f64.powi(-126)).log2().floor() - 23.0).exp2())]
        }
    }
}

/// Whether `ours` agrees with `theirs` for a case with these inputs.
pub fn agree(form: &Form, inputs: &[u64], ours: u64, theirs: u64) -> bool {
    if ours == theirs {
        return true;
    }
    if form.bound == Bound::Exact {
        return false;
    }
    let least = match form.result {
        Class::F16 | Class::F16x2 => 2.0_f64.powi(-14),
        Class::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    parts(form.result, ours).into_iter().zip(parts(form.result, theirs)).all(|((x, ulp), (y, _))| {
        if !x.is_finite() || !y.is_finite() {
            return x.is_nan() && y.is_nan() || x.to_bits() == y.to_bits();
        }
        // Our result is rounded once, which may add half a unit to the documented error of the other device. Subnormals
        // have no relative error bound, so there the other device's rounding adds the same amount.
        let allowed = match form.bound {
            Bound::Exact => 0.0,
            Bound::Ulp(n) => n * ulp,
            Bound::Relative(r) => r * x.abs(),
            Bound::Absolute(a) => a,
            Bound::Logarithm => {
                let argument = f32::from_bits(inputs[0] as u32);
                let tiny = 2.0_f64.powi(-22);
                if argument > 0.5 && argument < 2.0 { tiny } else { tiny * x.abs() }
            }
        };
        (x - y).abs() <= allowed + if x.abs() < least { ulp } else { 0.5 * ulp }
    })
}
