//! Names and parameters of the kernels in a PTX module, without their instructions.
//!
//! Separate from `ptx-parser`, which parses whole modules: drafts, checks and the compile stage need only the kernels'
//! headers.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name by which the kernel is launched.
    pub name: String,
    pub parameters: Vec<Parameter>,
    /// Required block size (`.reqntid`) along x, y and z.
    pub threads: Option<[u32; 3]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// Type, e.g. `u32`, `f64` or `b8`.
    pub kind: String,
    /// Whether the module declares the parameter as a pointer (`.ptr`).
    pub is_pointer: bool,
    /// Array length; 1 for a scalar. Structs are passed as byte arrays.
    pub count: u64,
}

/// Kernels of a module, in source order.
pub fn entries(text: &str) -> Vec<Entry> {
    let text = crate::includes::without_comments(text);
    let after = text.split(".entry").skip(1);
    after.filter_map(|after| entry(&after[..after.find(['{', ';']).unwrap_or(after.len())])).collect()
}

/// Parses a kernel's name, parameters and directives.
fn entry(head: &str) -> Option<Entry> {
    let (name, rest) = match head.split_once('(') {
        Some((name, rest)) => (name, rest.split_once(')')?),
        None => (head.split('.').next().unwrap_or(head), ("", head)),
    };
    let (list, directives) = rest;
    let name = name.trim();
    let threads = directives.split_once(".reqntid").map(|(_, numbers)| {
        let numbers = numbers.split('.').next().unwrap_or_default();
        let mut counts = numbers.split(',').map(|number| number.trim().parse().unwrap_or(1));
        [(); 3].map(|()| counts.next().unwrap_or(1))
    });
    let parameters = list.split(',').filter_map(parameter).collect();
    (!name.is_empty()).then(|| Entry { name: name.to_owned(), parameters, threads })
}

/// Parses `.param .u64 .ptr .global .align 1 name` or `.param .align 8 .b8 name[16]`.
fn parameter(text: &str) -> Option<Parameter> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, count) = match words.last()?.split_once('[') {
        Some((name, count)) => (name, count.trim_end_matches(']').parse().ok()?),
        None => (*words.last()?, 1),
    };
    let is_kind = |word: &&&str| {
        let digits = word.strip_prefix('.').and_then(|word| word.strip_prefix(['b', 'u', 's', 'f']));
        digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
    };
    let kind = words.iter().find(is_kind)?.trim_start_matches('.').to_owned();
    Some(Parameter { name: name.to_owned(), kind, is_pointer: words.contains(&".ptr"), count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parameters_and_required_threads_are_read() {
        let text = "// .entry no()\n.version 8.4\n.target sm_90a\n.visible .entry softmax(\n\
                    \t.param .u64 .ptr .global .align 1 softmax_param_0, // the output\n\t.param .u32 \
                    softmax_param_1,\n\
                    \t.param .align 8 .b8 softmax_param_2[16]\n)\n.reqntid 128, 2\n.minnctapersm 1\n{\n ret;\n}\n\
                    .entry plain { ret; }\n";
        let found = entries(text);
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["softmax", "plain"]);
        let parameters: Vec<_> =
            found[0].parameters.iter().map(|p| (p.name.as_str(), p.kind.as_str(), p.is_pointer, p.count)).collect();
        let expected = [
            ("softmax_param_0", "u64", true, 1),
            ("softmax_param_1", "u32", false, 1),
            ("softmax_param_2", "b8", false, 16),
        ];
        assert_eq!(parameters, expected);
        assert_eq!((found[0].threads, found[1].threads), (Some([128, 2, 1]), None));
    }
}
