//! Conditions on device memory that end a loop. The host evaluates them after every iteration; in a graph, the device
//! does.

use super::{BufferId, DeviceError};
use half::{bf16, f16};
use runner_lang::{Program, Scope};
use runner_types::{ElementType, Value};

/// A condition on the first elements of buffers.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub program: Program,
    /// Values of the names that are not buffers.
    pub scope: Scope,
    /// Names that are buffers.
    pub reads: Vec<Read>,
}

/// First element of a buffer, under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Name in the condition.
    pub name: String,
    pub buffer: BufferId,
    pub element: ElementType,
}

impl Condition {
    /// Whether the condition holds for the first elements, given as little-endian bits. Fails if the expression has no
    /// value, because of a non-finite float or a division by zero.
    pub fn holds(&self, values: &[u64]) -> Result<bool, DeviceError> {
        let mut scope = self.scope.clone();
        for (read, bits) in self.reads.iter().zip(values) {
            scope.set(read.name.as_str(), value(read.element, *bits));
        }
        self.program.evaluate_bool(&scope).map_err(|error| DeviceError::Driver {
            call: "loop",
            message: format!("`until` cannot be evaluated: {}", error.message),
        })
    }

    /// Error for a loop that used up its iterations. `values` are the first elements after the last one.
    pub fn never_held(&self, at_most: u32, values: &[u64]) -> DeviceError {
        let shown = |(read, bits): (&Read, &u64)| format!("`{}` is {}", read.name, value(read.element, *bits));
        let shown: Vec<String> = self.reads.iter().zip(values).map(shown).collect();
        let (text, shown) = (self.program.text(), shown.join(", "));
        let message = format!("`{text}` does not hold after {at_most} iterations (`at_most`): {shown}");
        DeviceError::Driver { call: "loop", message }
    }
}

/// Decodes an element.
fn value(element: ElementType, bits: u64) -> Value {
    let signed = |width: u32| ((bits << (64 - width)) as i64) >> (64 - width);
    match element {
        ElementType::I8 => Value::Int(signed(8)),
        ElementType::I16 => Value::Int(signed(16)),
        ElementType::I32 => Value::Int(signed(32)),
        ElementType::I64 => Value::Int(bits as i64),
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
            Value::Int(i64::try_from(bits).unwrap_or(i64::MAX))
        }
        ElementType::F16 => Value::Float(f16::from_bits(bits as u16).to_f64()),
        ElementType::Bf16 => Value::Float(bf16::from_bits(bits as u16).to_f64()),
        ElementType::F32 => Value::Float(f64::from(f32::from_bits(bits as u32))),
        ElementType::F64 => Value::Float(f64::from_bits(bits)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn condition(text: &str, element: ElementType) -> Condition {
        let read = Read { name: "flag".to_owned(), buffer: BufferId(1), element };
        let scope: Scope = [("n", Value::Int(8))].into_iter().collect();
        Condition { program: Program::parse(text).unwrap(), scope, reads: vec![read] }
    }

    #[test]
    fn a_condition_reads_an_element_in_its_type() {
        assert!(condition("flag == 0", ElementType::U32).holds(&[0]).unwrap());
        assert!(!condition("flag == 0", ElementType::U32).holds(&[7]).unwrap());
        assert!(condition("flag == -2", ElementType::I16).holds(&[0xfffe]).unwrap());
        assert!(condition("flag < 1e-3 && n == 8", ElementType::F32).holds(&[u64::from(5e-4_f32.to_bits())]).unwrap());
        assert!(condition("flag == 1.5", ElementType::F16).holds(&[0x3e00]).unwrap());
        let nan = u64::from(f32::NAN.to_bits());
        let error = condition("flag < 1e-3", ElementType::F32).holds(&[nan]).unwrap_err().to_string();
        assert!(error.starts_with("loop: `until` cannot be evaluated"), "{error}");
    }

    #[test]
    fn a_loop_that_does_not_end_says_what_its_condition_reads() {
        assert_eq!(
            condition("flag == 0", ElementType::I32).never_held(9, &[3]).to_string(),
            "loop: `flag == 0` does not hold after 9 iterations (`at_most`): `flag` is 3"
        );
    }
}
