//! Values that a check compares: arrays and numbers, read in small pieces as 64-bit lanes.
//!
//! An array keeps its format in memory; element-wise reference functions are evaluated piece by piece when needed. So
//! comparing a gigabyte does not take a second gigabyte, and every core works within its cache.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::parallel;
use super::typed::{Float, Integer, Typed, by_type};
use runner_types::{ElementType, Elementwise, Value, nearest_bf16, nearest_f16};

/// Elements per piece: 8 KiB of lanes, so that a few pieces stay in the L1 cache.
pub const PIECE: usize = 1024;

/// A range of elements, widened: integers to 64 bits (u64 as its bits), floats to f64.
#[derive(Debug, Clone, PartialEq)]
pub enum Lanes {
    Int(Vec<i64>),
    Float(Vec<f64>),
}

impl Lanes {
    fn len(&self) -> usize {
        match self {
            Self::Int(lanes) => lanes.len(),
            Self::Float(lanes) => lanes.len(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Converts a constant of the manifest; `None` if it is not a number.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Int(value) => Some(Self::Int(i128::from(*value))),
            Value::Float(value) => Some(Self::Float(*value)),
            _ => None,
        }
    }
}

impl fmt::Display for Number {
    /// Writes the shortest text that parses back to the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// Formats a number as a reader of its type expects: the f32 nearest to one tenth is `0.1`.
pub fn show(number: Number, element: Option<ElementType>) -> String {
    match (number, element) {
        (Number::Float(value), Some(ElementType::F32)) => format!("{:?}", value as f32),
        (Number::Float(value), Some(ElementType::F16)) => format!("{:?}", nearest_f16(value).to_f32()),
        (Number::Float(value), Some(ElementType::Bf16)) => format!("{:?}", nearest_bf16(value).to_f32()),
        _ => number.to_string(),
    }
}

/// An array or a number, possibly not computed yet.
#[derive(Debug, Clone)]
pub enum Operand {
    /// Elements in their memory format.
    Bytes { element: ElementType, bytes: Arc<Vec<u8>> },
    /// Results kept wider than their type: float references are not rounded.
    Wide { element: ElementType, lanes: Arc<Lanes> },
    /// Element-wise arithmetic. Both sides are numbers, or arrays of the same length and type. A unary operation
    /// ignores the right side.
    Elementwise { element: ElementType, operation: Elementwise, left: Box<Self>, right: Box<Self> },
    /// One number; a constant of the manifest has no element type.
    Scalar { element: Option<ElementType>, value: Number },
}

impl Operand {
    pub fn element(&self) -> Option<ElementType> {
        match self {
            Self::Bytes { element, .. } | Self::Wide { element, .. } | Self::Elementwise { element, .. } => {
                Some(*element)
            }
            Self::Scalar { element, .. } => *element,
        }
    }

    /// Whether both are the same array in the same memory.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes { bytes, element: e }, Self::Bytes { bytes: other, element }) => {
                e == element && Arc::ptr_eq(bytes, other)
            }
            (Self::Wide { lanes, .. }, Self::Wide { lanes: other, .. }) => Arc::ptr_eq(lanes, other),
            _ => false,
        }
    }

    /// Number of elements; `None` for a single number.
    pub fn len(&self) -> Option<usize> {
        match self {
            Self::Bytes { element, bytes } => Some(bytes.len() / element.size()),
            Self::Wide { lanes, .. } => Some(lanes.len()),
            Self::Elementwise { left, right, .. } => left.len().or_else(|| right.len()),
            Self::Scalar { .. } => None,
        }
    }

    pub fn is_float(&self) -> bool {
        match self {
            Self::Bytes { element, .. } | Self::Elementwise { element, .. } => element.is_float(),
            Self::Wide { lanes, .. } => matches!(**lanes, Lanes::Float(_)),
            Self::Scalar { value, .. } => matches!(value, Number::Float(_)),
        }
    }

    /// Elements of `range`, which must be inside the array and should not exceed a [`PIECE`]; a number is repeated.
    pub fn lanes(&self, range: Range<usize>) -> Lanes {
        if self.is_float() {
            let mut lanes = vec![0.0; range.len()];
            self.read_floats(range.start, &mut lanes);
            Lanes::Float(lanes)
        } else {
            let mut lanes = vec![0; range.len()];
            self.read_integers(range.start, &mut lanes);
            Lanes::Int(lanes)
        }
    }

    /// Fills `out` with the elements from `start` on. Floats have no integer lanes, so `out` is left unchanged.
    pub fn read_integers(&self, start: usize, out: &mut [i64]) {
        match self {
            Self::Bytes { element, bytes } => by_type!(
                *element,
                integer T => each(bytes, start, out, |lane, value: T| *lane = value.lane()),
                float _T => (),
            ),
            Self::Wide { lanes, .. } => {
                if let Lanes::Int(lanes) = &**lanes {
                    out.copy_from_slice(&lanes[start..start + out.len()]);
                }
            }
            Self::Elementwise { operation, left, right, .. } if operation.gives_truth() => {
                read_truth(*operation, [left, right], start, out);
            }
            Self::Elementwise { element, operation, left, right } => {
                left.read_integers(start, out);
                let mut other = [0; PIECE];
                for (place, out) in out.chunks_mut(PIECE).enumerate() {
                    let other = &mut other[..out.len()];
                    right.read_integers(start + place * PIECE, other);
                    combine_integers(*element, *operation, out, other);
                }
            }
            Self::Scalar { value: Number::Int(value), .. } => out.fill(*value as i64),
            Self::Scalar { value: Number::Float(_), .. } => {}
        }
    }

    /// Fills `out` with the elements from `start` on; integers are rounded to f64.
    pub fn read_floats(&self, start: usize, out: &mut [f64]) {
        if !self.is_float() {
            return self.round_integers(start, out);
        }
        match self {
            Self::Bytes { element, bytes } => by_type!(
                *element,
                integer _T => (),
                float T => each(bytes, start, out, |lane, value: T| *lane = value.wide()),
            ),
            Self::Wide { lanes, .. } => {
                if let Lanes::Float(lanes) = &**lanes {
                    out.copy_from_slice(&lanes[start..start + out.len()]);
                }
            }
            Self::Elementwise { operation, left, right, .. } => {
                left.read_floats(start, out);
                let mut other = [0.0; PIECE];
                for (place, out) in out.chunks_mut(PIECE).enumerate() {
                    let other = &mut other[..out.len()];
                    right.read_floats(start + place * PIECE, other);
                    combine_floats(*operation, out, other);
                }
            }
            Self::Scalar { value, .. } => out.fill(value.as_f64()),
        }
    }

    /// Whether the number, or any element of an array of integers, is zero.
    pub fn has_zero(&self) -> bool {
        let Some(len) = self.len() else { return self.number(0) == Number::Int(0) };
        let is_zero = |block| matches!(self.lanes(block), Lanes::Int(lanes) if lanes.contains(&0));
        parallel::blocks(len, PIECE, &is_zero).contains(&true)
    }

    fn round_integers(&self, start: usize, out: &mut [f64]) {
        let mut own = [0; PIECE];
        for (place, out) in out.chunks_mut(PIECE).enumerate() {
            let own = &mut own[..out.len()];
            self.read_integers(start + place * PIECE, own);
            out.iter_mut().zip(own).for_each(|(lane, value)| *lane = whole(self.element(), *value) as f64);
        }
    }

    /// Selected elements as an array; a number stays the same. An index past the end is an error.
    pub fn select(&self, elements: &[usize]) -> Result<Self, String> {
        if let (Some(len), Some(last)) = (self.len(), elements.iter().max())
            && *last >= len
        {
            return Err(format!("the check compares element {last}, but there are only {len} elements"));
        }
        Ok(match self {
            Self::Bytes { element, bytes } => {
                let size = element.size();
                let mut chosen = Vec::with_capacity(elements.len() * size);
                for index in elements {
                    chosen.extend_from_slice(&bytes[index * size..][..size]);
                }
                Self::Bytes { element: *element, bytes: Arc::new(chosen) }
            }
            Self::Wide { element, lanes } => {
                let chosen = match &**lanes {
                    Lanes::Int(lanes) => Lanes::Int(elements.iter().map(|index| lanes[*index]).collect()),
                    Lanes::Float(lanes) => Lanes::Float(elements.iter().map(|index| lanes[*index]).collect()),
                };
                Self::Wide { element: *element, lanes: Arc::new(chosen) }
            }
            Self::Elementwise { element, operation, left, right } => {
                let (left, right) = (Box::new(left.select(elements)?), Box::new(right.select(elements)?));
                Self::Elementwise { element: *element, operation: *operation, left, right }
            }
            Self::Scalar { .. } => self.clone(),
        })
    }

    /// Element at `index`, or the number itself.
    pub fn number(&self, index: usize) -> Number {
        if let Self::Scalar { value, .. } = self {
            return *value;
        }
        match self.lanes(index..index + 1) {
            Lanes::Int(lanes) => Number::Int(whole(self.element(), lanes[0])),
            Lanes::Float(lanes) => Number::Float(lanes[0]),
        }
    }
}

/// Replaces the left operands with the results of an operation. One loop per operation, so that the compiler vectorises
/// it.
fn combine_floats(operation: Elementwise, left: &mut [f64], right: &[f64]) {
    let pairs = left.iter_mut().zip(right);
    match operation {
        Elementwise::Add => pairs.for_each(|(x, y)| *x += y),
        Elementwise::Subtract => pairs.for_each(|(x, y)| *x -= y),
        Elementwise::Multiply => pairs.for_each(|(x, y)| *x *= y),
        Elementwise::Divide => pairs.for_each(|(x, y)| *x /= y),
        Elementwise::Negate => pairs.for_each(|(x, _)| *x = -*x),
        // NaN is ignored, as in CUDA's `fmin` and `fmax`.
        Elementwise::Min => pairs.for_each(|(x, y)| *x = x.min(*y)),
        Elementwise::Max => pairs.for_each(|(x, y)| *x = x.max(*y)),
        Elementwise::Abs => pairs.for_each(|(x, _)| *x = x.abs()),
        Elementwise::Sqrt => pairs.for_each(|(x, _)| *x = x.sqrt()),
        Elementwise::Remainder => pairs.for_each(|(x, y)| *x %= y),
        // Truth values are integers and computed elsewhere.
        operation => debug_assert!(operation.gives_truth()),
    }
}

/// Fills `out` with 1 where a logical operation or comparison holds, and with 0 elsewhere.
fn read_truth(operation: Elementwise, [left, right]: [&Operand; 2], start: usize, out: &mut [i64]) {
    let in_floats = left.is_float() || right.is_float();
    for (place, out) in out.chunks_mut(PIECE).enumerate() {
        let start = start + place * PIECE;
        if in_floats {
            let (mut one, mut other) = ([0.0; PIECE], [0.0; PIECE]);
            let (one, other) = (&mut one[..out.len()], &mut other[..out.len()]);
            left.read_floats(start, one);
            right.read_floats(start, other);
            out.iter_mut().zip(one.iter().zip(&*other)).for_each(|(out, (x, y))| {
                *out = i64::from(holds(operation, x.partial_cmp(y), [*x != 0.0, *y != 0.0]));
            });
        } else {
            let (mut one, mut other) = ([0; PIECE], [0; PIECE]);
            let (one, other) = (&mut one[..out.len()], &mut other[..out.len()]);
            left.read_integers(start, one);
            right.read_integers(start, other);
            let (of_left, of_right) = (left.element(), right.element());
            out.iter_mut().zip(one.iter().zip(&*other)).for_each(|(out, (x, y))| {
                let order = whole(of_left, *x).cmp(&whole(of_right, *y));
                *out = i64::from(holds(operation, Some(order), [*x != 0, *y != 0]));
            });
        }
    }
}

/// Whether an operation holds for operands with this order (`None` if one is NaN) and these truth values.
fn holds(operation: Elementwise, order: Option<Ordering>, [left, right]: [bool; 2]) -> bool {
    match operation {
        Elementwise::Less => order == Some(Ordering::Less),
        Elementwise::LessOrEqual => order.is_some_and(Ordering::is_le),
        Elementwise::Greater => order == Some(Ordering::Greater),
        Elementwise::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        Elementwise::Equal => order == Some(Ordering::Equal),
        Elementwise::NotEqual => order != Some(Ordering::Equal),
        Elementwise::And => left && right,
        Elementwise::Or => left || right,
        Elementwise::Not => !left,
        _ => false,
    }
}

/// Computes an operation on integer lanes, which wrap as their type does. Division by zero yields zero; it was rejected
/// earlier.
fn combine_integers(element: ElementType, operation: Elementwise, left: &mut [i64], right: &[i64]) {
    let of = |lane: i64| whole(Some(element), lane);
    let pairs = left.iter_mut().zip(right);
    match operation {
        Elementwise::Add => pairs.for_each(|(x, y)| *x = x.wrapping_add(*y)),
        Elementwise::Subtract => pairs.for_each(|(x, y)| *x = x.wrapping_sub(*y)),
        Elementwise::Multiply => pairs.for_each(|(x, y)| *x = x.wrapping_mul(*y)),
        Elementwise::Divide => pairs.for_each(|(x, y)| *x = of(*x).checked_div(of(*y)).unwrap_or(0) as i64),
        Elementwise::Negate => pairs.for_each(|(x, _)| *x = x.wrapping_neg()),
        Elementwise::Min => pairs.for_each(|(x, y)| *x = of(*x).min(of(*y)) as i64),
        Elementwise::Max => pairs.for_each(|(x, y)| *x = of(*x).max(of(*y)) as i64),
        Elementwise::Abs => pairs.for_each(|(x, _)| *x = of(*x).wrapping_abs() as i64),
        Elementwise::Remainder => pairs.for_each(|(x, y)| *x = of(*x).checked_rem(of(*y)).unwrap_or(0) as i64),
        // `Sqrt` applies to floats only, and truth values are computed elsewhere.
        _ => debug_assert!(operation == Elementwise::Sqrt || operation.gives_truth()),
    }
    by_type!(
        element,
        integer T => {
            for lane in left {
                *lane = T::from_lane(*lane).lane();
            }
        },
        float _T => (),
    );
}

pub fn whole(element: Option<ElementType>, lane: i64) -> i128 {
    if element == Some(ElementType::U64) { i128::from(lane as u64) } else { i128::from(lane) }
}

/// Wraps a lane to the integer type's range, after arithmetic that may have left it. Floats have no lanes.
pub fn wrapped(element: ElementType, lane: i64) -> i64 {
    by_type!(element, integer T => T::from_lane(lane).lane(), float _T => lane)
}

/// Visits `out.len()` elements, beginning with `start`. One loop per type, so that the compiler vectorises it.
fn each<T: Typed, L>(bytes: &[u8], start: usize, out: &mut [L], put: impl Fn(&mut L, T)) {
    let bytes = &bytes[start * T::SIZE..(start + out.len()) * T::SIZE];
    out.iter_mut().zip(bytes.chunks_exact(T::SIZE)).for_each(|(place, raw)| put(place, T::load(raw)));
}

#[cfg(test)]
mod tests {
    use super::{Arc, ElementType, Elementwise, Lanes, Number, Operand, show, whole};

    fn bytes(element: ElementType, bytes: &[u8]) -> Operand {
        Operand::Bytes { element, bytes: Arc::new(bytes.to_vec()) }
    }

    #[test]
    fn sums_element_by_element_wrap_as_their_type_does() {
        let (left, right) = (bytes(ElementType::U8, &[200, 1]), bytes(ElementType::U8, &[100, 2]));
        let (element, operation) = (ElementType::U8, Elementwise::Add);
        let sum = Operand::Elementwise { element, operation, left: Box::new(left), right: Box::new(right) };
        assert_eq!(sum.lanes(0..2), Lanes::Int(vec![44, 3]));
        assert_eq!(sum.len(), Some(2));
    }

    #[test]
    fn the_largest_u64_is_no_negative_number() {
        let operand = bytes(ElementType::U64, &[0xff; 8]);
        assert_eq!(operand.number(0), Number::Int(i128::from(u64::MAX)));
        assert_eq!(whole(Some(ElementType::I64), -1), -1);
    }

    #[test]
    fn a_number_is_shown_as_its_type_reads_it() {
        assert_eq!(show(Number::Float(f64::from(0.1f32)), Some(ElementType::F32)), "0.1");
        assert_eq!(show(Number::Float(f64::from(0.1f32)), None), "0.10000000149011612");
        assert_eq!(show(Number::Float(f64::NAN), Some(ElementType::F32)), "NaN");
        assert_eq!(show(Number::Int(-7), Some(ElementType::I8)), "-7");
    }
}
