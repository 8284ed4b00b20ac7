//! Which kernels and `__device__` variables a CUDA C++ source defines, by a scan of its tokens.
//!
//! Comments and strings are passed over, and `#include "…"` is followed. It is no compiler: where a macro makes
//! kernels, or an included file is not found, the list is not complete, and the scan says so rather than accuse.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Most files that one source is followed into.
const MOST_FILES: usize = 256;

/// What a source defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CudaSource {
    /// Names of `__global__` functions, without namespace and template arguments.
    pub kernels: BTreeSet<String>,
    /// Names of `__device__` and `__constant__` variables.
    pub variables: BTreeSet<String>,
    /// Names of functions that are declared `extern "C"` one by one or in a block.
    pub host_functions: BTreeSet<String>,
    /// Whether there may be more than the scan sees.
    pub incomplete: bool,
}

impl CudaSource {
    /// Scans a file and all that it includes by quotes.
    pub fn read(path: &Path, include_paths: &[PathBuf]) -> Self {
        let mut source = Self::default();
        let mut seen = BTreeSet::new();
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let text = std::fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let (Ok(text), true) = (text, seen.len() <= MOST_FILES) else {
                source.incomplete = true;
                continue;
            };
            for include in source.scan(&text) {
                let folder = path.parent().unwrap_or(Path::new(""));
                let folders = std::iter::once(folder).chain(include_paths.iter().map(PathBuf::as_path));
                match folders.map(|folder| folder.join(&include)).find(|candidate| candidate.is_file()) {
                    Some(found) => waiting.push(found),
                    None => source.incomplete = true,
                }
            }
        }
        source
    }

    /// Adds what a text defines; returns the files that it includes by quotes.
    fn scan(&mut self, text: &str) -> Vec<String> {
        let code = without_comments(text);
        let (mut includes, mut rest) = (Vec::new(), String::new());
        for line in code.lines() {
            match line.trim_start().strip_prefix('#').map(str::trim_start) {
                Some(directive) if directive.starts_with("include") => {
                    let mut quoted = directive.split('"').skip(1);
                    includes.extend(quoted.next().map(str::to_owned));
                }
                Some(directive) => {
                    let makes = ["__global__", "__device__", "__constant__", "extern"];
                    self.incomplete |= directive.starts_with("define") && makes.iter().any(|m| directive.contains(m));
                }
                None => {
                    rest.push_str(line);
                    rest.push('\n');
                }
            }
        }
        let tokens = tokens(&rest);
        for (at, token) in tokens.iter().enumerate() {
            match *token {
                "__global__" => self.kernels.extend(function_name(&tokens[at + 1..])),
                "__device__" | "__constant__" => self.variables.extend(variable_name(&tokens[at + 1..])),
                "extern" => self.host_functions.extend(c_functions(&tokens[at + 1..])),
                _ => {}
            }
        }
        includes
    }
}

/// The functions of a linkage specification, whose language the tokens show as an empty string.
fn c_functions(tokens: &[&str]) -> Vec<String> {
    let Some(rest) = tokens.strip_prefix(&["\"", "\""]) else { return Vec::new() };
    if rest.first() != Some(&"{") {
        return function_name(rest).into_iter().collect();
    }
    let (mut names, mut depth, mut at) = (Vec::new(), 1, 1);
    let mut begins = true;
    while at < rest.len() && depth > 0 {
        if depth == 1 && begins {
            names.extend(function_name(&rest[at..]));
        }
        match rest[at] {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        begins = matches!(rest[at], ";" | "}");
        at += 1;
    }
    names
}

/// The text with comments as blanks, strings emptied (but for those of directives) and continued lines joined.
fn without_comments(text: &str) -> String {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut out = String::with_capacity(joined.len());
    let mut rest = joined.as_str();
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inside) = rest.strip_prefix("/*") {
            out.push(' ');
            inside.find("*/").map_or(rest.len(), |end| end + 4)
        } else if c == '"' {
            let length = string_length(rest);
            let line = out.rsplit('\n').next().unwrap_or_default().trim_start();
            out.push_str(if line.starts_with('#') { &rest[..length] } else { "\"\"" });
            length
        } else {
            out.push(c);
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    out
}

/// Bytes of the string literal that the text begins with; a string ends with its line at the latest.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// Identifiers and single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let length = if part(c) { rest.find(|c| !part(c)).unwrap_or(rest.len()) } else { c.len_utf8() };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
}

/// The name before the parameters of the function that begins here; attributes with arguments are passed over.
fn function_name(tokens: &[&str]) -> Option<String> {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let (token, next) = (tokens[at], tokens[at + 1]);
        if matches!(token, ";" | "{" | "}") {
            return None;
        }
        if next == "(" && is_name(token) {
            if !(token.starts_with("__") && token.ends_with("__")) {
                return Some(token.to_owned());
            }
            at = closing(tokens, at + 1)?;
        }
        at += 1;
    }
    None
}

/// The name before `[`, `=`, `;` or `{` of the variable that begins here; `None` for a function.
fn variable_name(tokens: &[&str]) -> Option<String> {
    let mut name = None;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match *token {
            "[" | "=" | ";" | "{" => return name,
            "(" if name.as_deref().is_some_and(|n: &str| n == "__align__" || n == "alignas") => {
                at = closing(tokens, at)?;
            }
            "(" | "}" => return None,
            token if is_name(token) => name = Some(token.to_owned()),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The parenthesis that closes the one at `open`.
fn closing(tokens: &[&str], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" => depth += 1,
            ")" if depth == 1 => return Some(at),
            ")" => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::*;

    fn scan(text: &str) -> CudaSource {
        let mut source = CudaSource::default();
        source.scan(text);
        source
    }

    fn names(names: &BTreeSet<String>) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }

    #[test]
    fn kernels_are_found_behind_templates_attributes_and_extern_c() {
        let source = scan(
            "template <typename T, int B = (1 + 2)>\n__global__ void __launch_bounds__(B * (2), 4)\nfirst(T* x) {}\n\
             extern \"C\" __global__ void second(int) { third(1); }\nnamespace n { __global__ void fourth(); }\n\
             static __global__ __cluster_dims__(2, 1, 1) void fifth() {}",
        );
        assert_eq!(names(&source.kernels), ["fifth", "first", "fourth", "second"]);
        assert!(!source.incomplete);
    }

    #[test]
    fn functions_with_c_linkage_are_found_one_by_one_and_in_blocks() {
        let source = scan(
            "extern int elsewhere(int);\nextern \"C\" int one(void *const *args) { return two(args); }\n\
             extern \"C\" const char *text(int code);\nextern \"C\" {\nint three(int a, int b) { if (a) { b(); } return 0; }\n\
             void four(void *);\n}\nint five(int);",
        );
        assert_eq!(names(&source.host_functions), ["four", "one", "text", "three"]);
        assert!(scan("#define MAKE(name) extern \"C\" int name(int);\nMAKE(a)").incomplete);
    }

    #[test]
    fn comments_and_strings_define_nothing() {
        let source = scan(
            "// __global__ void a();\n/* __global__ void b(); */\nconst char* s = \"__global__ void c(); \\\" // \";\n\
             __global__ /* void d( */ void e();",
        );
        assert_eq!(names(&source.kernels), ["e"]);
    }

    #[test]
    fn device_variables_are_told_from_device_functions() {
        let source = scan(
            "__device__ float f(int x) { return x; }\n__device__ int counter;\n__constant__ float table[4] = {1};\n\
             __device__ __align__(16) unsigned int buffer[1 << 20];\n__device__ int zeroed = 0;",
        );
        assert_eq!(names(&source.variables), ["buffer", "counter", "table", "zeroed"]);
    }

    #[test]
    fn a_macro_that_makes_kernels_leaves_the_list_incomplete() {
        assert!(scan("#define MAKE(name) \\\n  __global__ void name() {}\nMAKE(a)").incomplete);
        assert!(!scan("#define N 4\n__global__ void a() {}").incomplete);
    }

    #[test]
    fn quoted_includes_are_followed_and_a_missing_one_leaves_the_list_incomplete() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("a.cu", "#include <stdio.h>\n#include \"b.cuh\"\n__global__ void a() {}");
        write("b.cuh", "#include \"a.cu\"\n__global__ void b() {}");
        write("c.cu", "#include \"nowhere.h\"\n__global__ void c() {}");
        let source = CudaSource::read(&dir.path().join("a.cu"), &[]);
        assert_eq!((names(&source.kernels), source.incomplete), (vec!["a", "b"], false));
        assert!(CudaSource::read(&dir.path().join("c.cu"), &[]).incomplete);
    }
}
