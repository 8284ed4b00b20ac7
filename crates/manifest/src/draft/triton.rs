//! Drafts a manifest for a kernel compiled by Triton, from an entry of Triton's cache.
//!
//! The entry contains metadata, PTX and intermediate code (`.ttir`). Only the intermediate code contains the pointee
//! types.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::super::validate::may_name_buffer;
use super::parameter::Role;
use runner_cuda_source::ptx::{self, Entry};
use runner_cuda_source::source::is_name;

/// Warp size of every GPU for which Triton generates PTX.
const WARP: u64 = 32;

/// An entry of Triton's cache.
#[derive(Debug, Clone, Copy)]
pub struct TritonKernel<'a> {
    /// Content of `NAME.json`.
    pub metadata: &'a str,
    /// Content of `NAME.ptx`.
    pub ptx: &'a str,
    /// Content of `NAME.ttir`, if the file exists.
    pub ttir: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    name: String,
    /// Element type as written in the manifest.
    element: String,
    /// Role of the buffer; `None` for a number.
    role: Option<Role>,
}

impl TritonKernel<'_> {
    /// A manifest whose variant runs this kernel from `source`. The error says what is missing.
    pub fn manifest(&self, experiment: &str, source: &str) -> Result<String, String> {
        let metadata: Value =
            serde_json::from_str(self.metadata).map_err(|e| format!("the metadata is not JSON: {e}"))?;
        let number = |key: &str| metadata.get(key).and_then(Value::as_u64);
        let entries = ptx::entries(self.ptx);
        let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
        let entry = entries.iter().find(|entry| entry.name == name).or(entries.first());
        let entry = entry.ok_or("the PTX has no kernel")?;
        let warps = number("num_warps").ok_or("the metadata has no `num_warps`")?;
        if number("num_ctas").unwrap_or(1) > 1 {
            return Err(
                "the kernel runs in clusters whose size is given at launch; write the manifest by hand".to_owned()
            );
        }
        let parameters = self.ttir.map_or_else(|| of_entry(entry), parameters);
        let tile = self.ttir.map_or(WARP * warps, tile);
        let mut text = String::new();
        let version = metadata.get("triton_version").and_then(Value::as_str).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "# A kernel compiled by Triton. Edit the sizes, the contents of the buffers, the grid, and the expected \
             results.\n\
             [experiment]\nname  = \"{experiment}\"\ntitle = \"{}, compiled by Triton {version}\"\n\n\
             [axes]\nn = {{ int = [\"2**16\"] }}\n",
            entry.name,
        );
        for Parameter { name, element, role } in &parameters {
            let Some(role) = role else { continue };
            let fill = if !role.is_filled() {
                ""
            } else if element.contains('f') {
                "fill   = { uniform = [0.0, 1.0] }\n"
            } else {
                "fill   = { uniform = [0, 100] }\n"
            };
            let _ = write!(
                text,
                "\n[buffers.{name}]\ntype   = \"{element}\"\nlen    = \"n\"\n{fill}access = \"{}\"\n",
                role.name()
            );
        }
        if let Some(output) = parameters.iter().find(|parameter| parameter.role.is_some_and(Role::is_output)) {
            let _ = write!(
                text,
                "\n# Without a check, results are unchecked. `expect` takes a reference, another variant or a file:\n\
                 # [check]\n# actual = \"{0}\"\n# expect = {{ npy = \"{0}.npy\" }}\n",
                output.name
            );
        }
        let mut arguments: Vec<String> = parameters.iter().map(argument).collect();
        // Triton appends pointers to its own scratch memory, which this kernel does not use.
        arguments.resize(entry.parameters.len().max(arguments.len()), "\"null\"".to_owned());
        let shared = number("shared").unwrap_or(0);
        let _ = write!(
            text,
            "\n[[variant]]\nname   = \"triton\"\nsource = \"{source}\"\nkernel = \"{}\"\n\
             grid   = [\"ceil_div(n, {tile})\"]\nblock  = [{}]\nshared = {shared}\nargs   = [{}]\n",
            entry.name,
            warps * WARP,
            arguments.join(", ")
        );
        let scratch = ["global_scratch_size", "profile_scratch_size"].into_iter().filter_map(number).max();
        if let Some(bytes) = scratch.filter(|bytes| *bytes > 0) {
            return Err(format!("the kernel needs {bytes} bytes of scratch memory; write the manifest by hand"));
        }
        Ok(text)
    }
}

fn argument(parameter: &Parameter) -> String {
    match (parameter.role, parameter.element.contains('f')) {
        (Some(_), _) => format!("\"{}\"", parameter.name),
        (None, true) => format!("\"{}(1.0)\"", parameter.element),
        (None, false) => format!("\"{}(n)\"", parameter.element),
    }
}

/// Parameters according to the PTX, which has no pointee types.
fn of_entry(entry: &Entry) -> Vec<Parameter> {
    let parameter = |(at, parameter): (usize, &ptx::Parameter)| Parameter {
        name: format!("arg{at}"),
        element: if parameter.is_pointer {
            "f32".to_owned()
        } else {
            parameter.kind.replace('b', "u").replace('s', "i")
        },
        role: parameter.is_pointer.then_some(Role::InOut),
    };
    entry.parameters.iter().enumerate().map(parameter).collect()
}

fn parameters(ttir: &str) -> Vec<Parameter> {
    let Some((_, rest)) = ttir.split_once("tt.func public @") else { return Vec::new() };
    let Some((_, list)) = rest.split_once('(') else { return Vec::new() };
    let uses = Uses::scan(ttir);
    let mut found: Vec<Parameter> = Vec::new();
    for part in parts(list) {
        let Some((name, kind)) = part.trim().trim_start_matches('%').split_once(':') else { continue };
        let kind = kind.trim();
        let pointee = kind.strip_prefix("!tt.ptr<");
        let word = pointee.unwrap_or(kind);
        let word = &word[..word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len())];
        let usable = is_name(name) && may_name_buffer(name) && !found.iter().any(|other| other.name == name);
        found.push(Parameter {
            name: if usable { name.to_owned() } else { format!("arg{}", found.len()) },
            element: element(word).to_owned(),
            role: pointee.map(|_| uses.role(name)),
        });
    }
    found
}

/// Items of a list up to its closing parenthesis, split at commas outside brackets.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '(' | '<' | '{' | '[' => depth += 1,
            ')' if depth == 0 => {
                found.push(&list[from..at]);
                return found;
            }
            ')' | '>' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Manifest name for an MLIR type.
fn element(kind: &str) -> &str {
    match kind {
        "f16" | "bf16" | "f32" | "f64" | "i8" | "i16" | "i32" | "i64" => kind,
        _ => "u8",
    }
}

/// Widest index range in the code: the number of elements per program.
fn tile(ttir: &str) -> u64 {
    let ends = ttir.split("tt.make_range {end = ").skip(1);
    ends.filter_map(|rest| rest.split(' ').next()?.parse().ok()).max().unwrap_or(1)
}

/// Pointers that the code loads from and stores to.
#[derive(Debug, Default)]
struct Uses {
    loaded: Vec<String>,
    stored: Vec<String>,
}

impl Uses {
    fn scan(ttir: &str) -> Self {
        let mut uses = Self::default();
        // Maps each value to the parameter that it points into.
        let mut roots: BTreeMap<String, String> = BTreeMap::new();
        for line in ttir.lines() {
            for pair in line.split_once("iter_args(").map_or("", |(_, rest)| rest).split(", ") {
                if let Some((inner, outer)) = pair.split_once(" = ") {
                    let outer = root(&roots, value(outer));
                    roots.insert(value(inner).to_owned(), outer);
                }
            }
            let (result, operation) = line.trim().split_once(" = ").unwrap_or(("", line.trim()));
            let Some(first) = operation.split_once('%').map(|(_, rest)| root(&roots, value(rest))) else { continue };
            if operation.starts_with("tt.load") {
                uses.loaded.push(first);
            } else if operation.starts_with("tt.store") {
                uses.stored.push(first);
            } else if operation.starts_with("tt.atomic") {
                uses.loaded.push(first.clone());
                uses.stored.push(first);
            } else if operation.starts_with("tt.") && !result.is_empty() {
                roots.insert(value(result).to_owned(), first);
            }
        }
        uses
    }

    /// Role of a pointer; `inout` if unknown.
    fn role(&self, name: &str) -> Role {
        let has = |list: &[String]| list.iter().any(|known| known == name);
        match (has(&self.loaded), has(&self.stored)) {
            (true, false) => Role::In,
            (false, true) => Role::Out,
            _ => Role::InOut,
        }
    }
}

/// The parameter that a value points into, or the value itself if unknown.
fn root(roots: &BTreeMap<String, String>, value: &str) -> String {
    roots.get(value).map_or(value, String::as_str).to_owned()
}

/// Name of the value at the start of the text: `in_ptr` in `%in_ptr, %x : …`.
fn value(text: &str) -> &str {
    let text = text.trim_start().trim_start_matches('%');
    &text[..text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTIR: &str = "module {\n  tt.func public @softmax(%out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} \
        loc(\"o\"(#loc)), %in: !tt.ptr<bf16> loc(#loc), %n: i32 loc(#loc), %eps: f32) attributes {noinline = false} {\n\
        %offs = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32> loc(#loc24)\n\
        %x_3 = tt.splat %in : !tt.ptr<bf16> -> tensor<1024x!tt.ptr<bf16>>\n\
        %x_4 = tt.addptr %x_3, %offs : tensor<1024x!tt.ptr<bf16>>, tensor<1024xi32>\n\
        %x_5 = tt.load %x_4, %mask, %x : tensor<1024x!tt.ptr<bf16>>\n\
        %o = tt.splat %out_ptr : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>\n    tt.store %o, %x_5, %mask\n  }\n}\n";
    const PTX: &str = ".visible .entry softmax(\n.param .u64 .ptr .global .align 1 a,\n\
                       .param .u64 .ptr .global .align 1 b,\n\
        .param .u32 c,\n.param .f32 d,\n.param .u64 .ptr .global .align 1 e,\n.param .u64 .ptr .global .align 1 f\n)\n\
        {}\n";

    #[test]
    fn a_manifest_has_the_types_roles_and_launch_of_the_cached_kernel() {
        let metadata = r#"{"name": "softmax", "num_warps": 4, "num_ctas": 1, "shared": 16, "triton_version": "3.9.0"}"#;
        let kernel = TritonKernel { metadata, ptx: PTX, ttir: Some(TTIR) };
        let text = kernel.manifest("softmax", "softmax.ptx").unwrap_or_else(|why| why);
        assert!(text.contains("[buffers.out_ptr]\ntype   = \"f32\"\nlen    = \"n\"\naccess = \"out\"\n"), "{text}");
        assert!(text.contains("[buffers.arg1]\ntype   = \"bf16\"") || text.contains("[buffers.in]\ntype   = \"bf16\""));
        let launch = "grid   = [\"ceil_div(n, 1024)\"]\nblock  = [128]\nshared = 16\n";
        assert!(text.contains(launch), "{text}");
        assert!(text.contains("\"i32(n)\", \"f32(1.0)\", \"null\", \"null\"]"), "{text}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let kernel = |metadata, ptx| TritonKernel { metadata, ptx, ttir: None }.manifest("x", "x.ptx").err();
        assert_eq!(kernel("{}", "").as_deref(), Some("the PTX has no kernel"));
        assert_eq!(kernel("{}", PTX).as_deref(), Some("the metadata has no `num_warps`"));
    }
}
