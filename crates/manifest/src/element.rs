//! Maps C++ type names to element types.

use runner_types::ElementType;

/// Namespaces that may precede a fixed-width type.
const NAMESPACES: [&str; 2] = ["cuda::std::", "std::"];

/// Element type of a number, or of the components of a vector such as `float4`; `None` for any other type.
pub fn element(base: &str) -> Option<ElementType> {
    let name = NAMESPACES.iter().find_map(|namespace| base.strip_prefix(namespace)).unwrap_or(base);
    named(name).or_else(|| integer(name)).or_else(|| component(name))
}

/// Whether the type is a vector rather than a number.
pub fn is_vector(base: &str) -> bool {
    named(base).or_else(|| integer(base)).is_none() && component(base).is_some()
}

/// Number of components: 4 for `float4`, 1 for a type that is not a vector.
pub fn components(base: &str) -> i128 {
    let last = base.chars().next_back().and_then(|c| c.to_digit(10));
    last.filter(|_| is_vector(base)).map_or(1, i128::from)
}

fn named(name: &str) -> Option<ElementType> {
    Some(match name {
        "float" => ElementType::F32,
        "double" => ElementType::F64,
        "half" | "__half" => ElementType::F16,
        "__nv_bfloat16" | "nv_bfloat16" => ElementType::Bf16,
        "bool" | "uint8_t" | "uchar" => ElementType::U8,
        "int8_t" => ElementType::I8,
        "int16_t" => ElementType::I16,
        "uint16_t" | "ushort" => ElementType::U16,
        "int32_t" => ElementType::I32,
        "uint32_t" | "uint" => ElementType::U32,
        "int64_t" | "ptrdiff_t" | "ssize_t" => ElementType::I64,
        "uint64_t" | "size_t" | "ulong" => ElementType::U64,
        _ => return None,
    })
}

/// Parses integer types such as `unsigned long long`, whose words may be in any order. `long` has 64 bits, as on Linux.
fn integer(name: &str) -> Option<ElementType> {
    let words: Vec<&str> = name.split(' ').collect();
    if !words.iter().all(|word| matches!(*word, "signed" | "unsigned" | "char" | "short" | "int" | "long")) {
        return None;
    }
    let unsigned = words.contains(&"unsigned");
    let pick = |signed, other| if unsigned { other } else { signed };
    Some(if words.contains(&"char") {
        pick(ElementType::I8, ElementType::U8)
    } else if words.contains(&"short") {
        pick(ElementType::I16, ElementType::U16)
    } else if words.contains(&"long") {
        pick(ElementType::I64, ElementType::U64)
    } else {
        pick(ElementType::I32, ElementType::U32)
    })
}

/// Component type of a CUDA vector type: u32 for `uint4`.
fn component(name: &str) -> Option<ElementType> {
    match name {
        "half2" | "__half2" => return Some(ElementType::F16),
        "__nv_bfloat162" | "nv_bfloat162" => return Some(ElementType::Bf16),
        _ => {}
    }
    let scalar = name.strip_suffix(['1', '2', '3', '4'])?;
    match scalar {
        "char" | "uchar" | "short" | "ushort" | "int" | "uint" | "float" | "double" => {
            named(scalar).or_else(|| integer(scalar))
        }
        "long" | "longlong" => Some(ElementType::I64),
        "ulong" | "ulonglong" => Some(ElementType::U64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_cpp_are_element_types() {
        for (name, expected) in [
            ("float", "f32"),
            ("unsigned", "u32"),
            ("long unsigned int", "u64"),
            ("unsigned char", "u8"),
            ("std::size_t", "u64"),
            ("cuda::std::int16_t", "i16"),
            ("uint4", "u32"),
            ("longlong2", "i64"),
            ("__half2", "f16"),
        ] {
            assert_eq!(element(name).map(ElementType::name), Some(expected), "{name}");
        }
        assert_eq!([element("Config"), element("float5"), element("T")], [None; 3]);
        assert_eq!(["float4", "__half2", "int32_t", "float"].map(components), [4, 2, 1, 1]);
        assert!(is_vector("float4") && !is_vector("float") && !is_vector("Config"));
    }
}
