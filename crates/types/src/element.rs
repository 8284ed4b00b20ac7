//! Element types of buffers and scalars.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray, VariantNames};

/// Type of a buffer's elements or of a scalar argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(Display, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum ElementType {
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE 754 binary16: `__half`.
    F16,
    /// 16-bit float with the exponent of binary32: `__nv_bfloat16`.
    Bf16,
    /// IEEE 754 binary32: `float`.
    F32,
    /// IEEE 754 binary64: `double`.
    F64,
}

impl ElementType {
    /// Every element type, in the order of the manual.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names in the order of [`Self::ALL`].
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Name in manifests and reports, e.g. `i32`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Name in CUDA C++, e.g. `int`: the value of `{type}` in `kernel` and `defines`.
    pub const fn cpp_name(self) -> &'static str {
        match self {
            Self::I8 => "signed char",
            Self::I16 => "short",
            Self::I32 => "int",
            Self::I64 => "long long",
            Self::U8 => "unsigned char",
            Self::U16 => "unsigned short",
            Self::U32 => "unsigned int",
            Self::U64 => "unsigned long long",
            Self::F16 => "__half",
            Self::Bf16 => "__nv_bfloat16",
            Self::F32 => "float",
            Self::F64 => "double",
        }
    }

    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }
}

/// CUDA's names for the scalar types that vectors consist of.
const COMPONENTS: [(&str, ElementType); 10] = [
    ("char", ElementType::I8),
    ("uchar", ElementType::U8),
    ("short", ElementType::I16),
    ("ushort", ElementType::U16),
    ("int", ElementType::I32),
    ("uint", ElementType::U32),
    ("longlong", ElementType::I64),
    ("ulonglong", ElementType::U64),
    ("float", ElementType::F32),
    ("double", ElementType::F64),
];

impl ElementType {
    /// Regular expression for the names of vector types: `float4`, `half2`.
    pub const VECTORS: &str = "(u?(char|short|int|longlong)|float|double)[234]|half2|bfloat162";

    /// Component type and component count of a vector type: f32 and 4 for `float4`.
    pub fn of_vector(text: &str) -> Option<(Self, u64)> {
        match text {
            "half2" => return Some((Self::F16, 2)),
            "bfloat162" => return Some((Self::Bf16, 2)),
            _ => {}
        }
        let (name, count) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let count = count.parse().ok().filter(|count| (2..=4).contains(count))?;
        COMPONENTS.into_iter().find(|(known, _)| *known == name).map(|(_, element)| (element, count))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown element type `{0}`: use one of i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64")]
pub struct UnknownElementType(pub String);

impl FromStr for ElementType {
    type Err = UnknownElementType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|t| t.name() == text).ok_or_else(|| UnknownElementType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_its_component_several_times() {
        assert_eq!(ElementType::of_vector("float4"), Some((ElementType::F32, 4)));
        assert_eq!(ElementType::of_vector("ulonglong2"), Some((ElementType::U64, 2)));
        assert_eq!(ElementType::of_vector("half2"), Some((ElementType::F16, 2)));
        for none in ["float", "float5", "float1", "4", "", "real2", "\u{e9}"] {
            assert_eq!(ElementType::of_vector(none), None, "{none}");
        }
    }
}
