//! A host function of the source that computes what its kernels compute, as the reference of a drafted manifest.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::parameter::{DraftParameter, What};
use crate::element::element;
use runner_cuda_source::host_half::HostFunction;
use runner_cuda_source::parameter::Parameter;
use runner_cuda_source::signature::Signature;
use runner_cuda_source::source::{is_name, tokens};
use runner_types::ElementType;

/// Parts of the names of functions that compute a result on the host.
const WORDS: [&str; 8] = ["cpu", "reference", "host", "gold", "serial", "sequential", "naive_c", "_ref"];

/// A host function that may serve as the reference.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Path of the C++ source in the manifest; the source is to be written to this file.
    pub path: String,
    /// The function and everything that it needs, as C++.
    pub half: String,
    pub function: HostFunction,
    /// Place for messages: `sum_cpu, k.cu:12`.
    pub place: String,
}

/// Whether a host function is named as a reference and takes the kernel's parameters: the same types in the same order.
pub fn fits(function: &HostFunction, kernel: &Signature) -> bool {
    let name = function.name.to_lowercase();
    let is_same = |(host, device): (&Parameter, &Parameter)| {
        let is_type =
            host.base == device.base || element(&host.base).is_some_and(|of| element(&device.base) == Some(of));
        is_type && host.pointers == device.pointers && !host.is_reference
    };
    WORDS.iter().any(|word| name.contains(word))
        && kernel.template.is_empty()
        && function.parameters.len() == kernel.parameters.len()
        && function.parameters.iter().zip(&kernel.parameters).all(is_same)
}

/// Name of the C++ function that returns an output of the reference.
pub fn function_of(output: &str) -> String {
    format!("runner_{output}")
}

/// The C++ source: the function, and for each output a function that calls it. `None` if an argument cannot be passed.
pub fn source(reference: &Reference, places: &[DraftParameter]) -> Option<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let (mut parameters, mut locals, mut arguments) = (Vec::new(), String::new(), Vec::new());
    for (DraftParameter { name, element, what }, of_host) in places.iter().zip(&reference.function.parameters) {
        match what {
            What::Buffer { role, len, .. } => {
                let cpp = vector_type(*element)?;
                let content = if role.is_filled() {
                    parameters.push(format!("const std::vector<{cpp}> &{name}"));
                    format!("{name}.begin(), {name}.end()")
                } else {
                    integer(len, &mut names)?
                };
                // Writing to a string cannot fail.
                let _ = writeln!(locals, "    std::vector<{}> own_{name}({content});", of_host.base);
                arguments.push(format!("own_{name}.data()"));
            }
            What::Number { value } if value.parse::<f64>().is_ok() => arguments.push(value.clone()),
            What::Number { value } => arguments.push(integer(value, &mut names)?),
            What::Switch => {
                names.insert(name.clone());
                arguments.push(format!("{name} != 0"));
            }
            What::Vector { .. } | What::Texture { .. } | What::Record { .. } => return None,
        }
    }
    parameters.extend(names.iter().map(|name| format!("long long {name}")));
    let mut text = reference.half.clone();
    text.push_str("\nstatic long long ceil_div(long long a, long long b) { return (a + b - 1) / b; }\n");
    for DraftParameter { name, element, .. } in places.iter().filter(|place| place.is_output()) {
        let cpp = vector_type(*element)?;
        let _ = write!(
            text,
            "std::vector<{cpp}> {}({})\n{{\n{locals}    {}({});\n    return {{own_{name}.begin(), own_{name}.end()}};\n}}\n",
            function_of(name),
            parameters.join(", "),
            reference.function.name,
            arguments.join(", ")
        );
    }
    Some(text)
}

/// A manifest's integer expression as C++; adds its names to `names`. `None` for operators that C++ lacks.
fn integer(text: &str, names: &mut BTreeSet<String>) -> Option<String> {
    let words = tokens(text);
    let is_known = |word: &&str| {
        is_name(word) || word.parse::<i64>().is_ok() || matches!(*word, "+" | "-" | "*" | "/" | "%" | "(" | ")" | ",")
    };
    let has_power = words.windows(2).any(|pair| pair == ["*", "*"]);
    if has_power || !words.iter().all(is_known) {
        return None;
    }
    for (place, word) in words.iter().enumerate().filter(|(_, word)| is_name(word)) {
        match (*word, words.get(place + 1)) {
            ("ceil_div", Some(&"(")) => {}
            (_, Some(&"(")) => return None,
            (name, _) => drop(names.insert(name.to_owned())),
        }
    }
    Some(text.to_owned())
}

const fn vector_type(element: ElementType) -> Option<&'static str> {
    Some(match element {
        ElementType::F32 => "float",
        ElementType::F64 => "double",
        ElementType::I8 => "std::int8_t",
        ElementType::I16 => "std::int16_t",
        ElementType::I32 => "std::int32_t",
        ElementType::I64 => "std::int64_t",
        ElementType::U8 => "std::uint8_t",
        ElementType::U16 => "std::uint16_t",
        ElementType::U32 => "std::uint32_t",
        ElementType::U64 => "std::uint64_t",
        _ => return None,
    })
}
