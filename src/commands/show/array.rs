//! Elements of an `.npy` file, as text and as numbers.

use std::path::Path;

use half::{bf16, f16};

use runner_files::npy;
use runner_types::ElementType;

/// An array read back from a file, with its shape.
pub struct Array {
    element: ElementType,
    bytes: Vec<u8>,
}

impl Array {
    pub fn read(path: &Path) -> Option<Self> {
        let header = npy::Header::read(path).ok()?;
        let element = ElementType::ALL.iter().copied().find(|element| header.holds(*element))?;
        Some(Self { element, bytes: npy::read(path, element, None).ok()? })
    }

    pub const fn element(&self) -> ElementType {
        self.element
    }

    pub fn len(&self) -> usize {
        self.bytes.len() / self.element.size()
    }

    /// Formats an element according to its type.
    pub fn text(&self, index: usize) -> String {
        let bits = self.bits(index);
        match self.element {
            ElementType::F32 => format!("{:?}", f32::from_bits(bits as u32)),
            ElementType::F64 => format!("{:?}", f64::from_bits(bits)),
            ElementType::F16 => format!("{:?}", f16::from_bits(bits as u16).to_f32()),
            ElementType::Bf16 => format!("{:?}", bf16::from_bits(bits as u16).to_f32()),
            element if element.is_signed_integer() => self.signed(bits).to_string(),
            _ => bits.to_string(),
        }
    }

    /// An element as a number. 64-bit integers are rounded.
    pub fn number(&self, index: usize) -> f64 {
        let bits = self.bits(index);
        match self.element {
            ElementType::F32 => f64::from(f32::from_bits(bits as u32)),
            ElementType::F64 => f64::from_bits(bits),
            ElementType::F16 => f16::from_bits(bits as u16).to_f64(),
            ElementType::Bf16 => bf16::from_bits(bits as u16).to_f64(),
            element if element.is_signed_integer() => self.signed(bits) as f64,
            _ => bits as f64,
        }
    }

    fn bits(&self, index: usize) -> u64 {
        let size = self.element.size();
        let bytes = &self.bytes[index * size..(index + 1) * size];
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    const fn signed(&self, bits: u64) -> i64 {
        let unused = 64 - 8 * self.element.size() as u32;
        ((bits << unused) as i64) >> unused
    }
}
