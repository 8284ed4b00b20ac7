//! Finds the kernels and `__device__` variables that a CUDA C++ source defines, by scanning its tokens.
//!
//! Validation needs these names before any compiler runs. The scan skips comments and strings and follows includes, but
//! does not expand macros. If a macro may define kernels, or an included file is missing, the list is marked incomplete
//! and no name is reported as undefined.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::includes::{Scanner, SearchPath, joined_lines, literal_length, without_comments};
use crate::ptx;
use runner_files::regular;
use runner_types::SourceForm;

const MOST_FILES: usize = 256;

/// Maximum number of kernel, variable and function declarations to read per file.
pub const MOST_DECLARATIONS: usize = 1 << 13;

/// Maximum number of tokens before a declaration's body. Longer ones are cut off.
pub const LONGEST_HEAD: usize = 1 << 12;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CudaSource {
    /// Names of `__global__` functions, without namespaces and template arguments.
    pub kernels: BTreeSet<String>,
    pub variables: BTreeSet<String>,
    /// Names of functions declared `extern "C"`, individually or in a block.
    pub host_functions: BTreeSet<String>,
    /// Whether the source may define more than the scan found.
    pub incomplete: bool,
    /// Files that the scan read: the source and what it includes.
    pub files: Vec<PathBuf>,
    /// Included files outside the project, which were not read.
    pub outside: Vec<PathBuf>,
}

impl CudaSource {
    /// Scans a file and everything it includes from its own folder or from `include_paths`.
    pub fn read(path: &Path, include_paths: &[PathBuf], scanner: &Scanner) -> Self {
        let mut source = Self { files: vec![path.to_owned()], ..Self::default() };
        match SourceForm::from_path(path) {
            SourceForm::Cuda => {}
            SourceForm::Ptx => {
                let text = regular::read(path).unwrap_or_default();
                let entries = ptx::entries(&String::from_utf8_lossy(&text));
                source.kernels = entries.into_iter().map(|entry| entry.name).collect();
                // Variables of a PTX module are not read.
                source.incomplete = source.kernels.is_empty();
                return source;
            }
            SourceForm::MachineCode => {
                source.incomplete = true;
                return source;
            }
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let user: Vec<PathBuf> = std::iter::once(folder.to_owned()).chain(include_paths.iter().cloned()).collect();
        // The toolkit is not known yet, so a missing `<name>` may be one of its headers.
        let Ok(inputs) = scanner.inputs(path, &[], &[], SearchPath { user: &user, toolkit: &[] }) else {
            source.incomplete = true;
            return source;
        };
        let missing = inputs.files.iter().any(|file| file.content.is_none() && !file.angled);
        source.files = inputs.paths().map(PathBuf::from).collect();
        source.outside.clone_from(&inputs.outside);
        source.incomplete = !inputs.whole || missing || !inputs.outside.is_empty() || inputs.files.len() > MOST_FILES;
        for content in inputs.files.iter().take(MOST_FILES).filter_map(|file| file.content.as_ref()) {
            source.scan(&content.text);
        }
        source
    }

    /// Adds the definitions in `text`.
    fn scan(&mut self, text: &str) {
        let (code, directives) = without_directives(text);
        let makes = ["__global__", "__device__", "__constant__", "extern"];
        let makes_some =
            |directive: &String| directive.starts_with("define") && makes.iter().any(|m| directive.contains(m));
        self.incomplete |= directives.iter().any(makes_some);
        let tokens = tokens(&code);
        // Nesting depths of open `extern "C" {` blocks.
        let mut blocks = Vec::new();
        let (mut depth, mut begins, mut left) = (0_usize, false, MOST_DECLARATIONS);
        for (at, token) in tokens.iter().enumerate() {
            let is_in_block = begins && blocks.last() == Some(&depth);
            begins = matches!(*token, ";" | "}");
            if is_in_block {
                self.host_functions.extend(function_name(&tokens[at..]));
            }
            match *token {
                "__global__" => self.kernels.extend(function_name(&tokens[at + 1..])),
                "__device__" | "__constant__" => self.variables.extend(variable_name(&tokens[at + 1..])),
                "extern" if tokens.get(at + 1) == Some(&"\"C\"") && tokens.get(at + 2) != Some(&"{") => {
                    self.host_functions.extend(function_name(&tokens[at + 2..]));
                }
                "{" => {
                    depth += 1;
                    begins = tokens[..at].ends_with(&["extern", "\"C\""]);
                    blocks.extend(begins.then_some(depth));
                    continue;
                }
                "}" => {
                    blocks.pop_if(|block| *block == depth);
                    depth = depth.saturating_sub(1);
                    continue;
                }
                _ if !is_in_block => continue,
                _ => {}
            }
            left -= 1;
            if left == 0 {
                self.incomplete = true;
                return;
            }
        }
    }
}

/// The code without comments and preprocessor directives, and the directives without `#`.
pub fn without_directives(text: &str) -> (String, Vec<String>) {
    let (mut code, mut directives) = (String::new(), Vec::new());
    for line in without_comments(&joined_lines(text)).lines() {
        match line.trim_start().strip_prefix('#') {
            Some(directive) => directives.push(directive.trim_start().to_owned()),
            None => code.extend([line, "\n"]),
        }
    }
    (code, directives)
}

/// Splits source text into identifiers, numbers, literals, and single characters.
pub fn tokens(text: &str) -> Vec<&str> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let length = match c {
            // Digits may be separated by `'`.
            c if c.is_ascii_digit() => rest.find(|c| !part(c) && c != '\'').unwrap_or(rest.len()),
            c if part(c) => rest.find(|c| !part(c)).unwrap_or(rest.len()),
            '"' | '\'' => literal_length(rest),
            c => c.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

pub fn is_name(token: &str) -> bool {
    token.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
}

/// Name of the function declared here.
fn function_name(tokens: &[&str]) -> Option<String> {
    function_at(tokens).map(|at| tokens[at].to_owned())
}

/// Index of the name of the function declared here. Skips attributes with arguments.
pub fn function_at(tokens: &[&str]) -> Option<usize> {
    let tokens = head(tokens);
    let mut at = 0;
    while at + 1 < tokens.len() {
        let (token, next) = (tokens[at], tokens[at + 1]);
        if matches!(token, ";" | "{" | "}") {
            return None;
        }
        if next == "(" && is_name(token) {
            if !(token.starts_with("__") && token.ends_with("__")) {
                return Some(at);
            }
            at = closing(tokens, at + 1)?;
        }
        at += 1;
    }
    None
}

/// Name of the variable declared here, which precedes `[`, `=`, `;` or `{`; `None` for a function.
fn variable_name(tokens: &[&str]) -> Option<String> {
    let tokens = head(tokens);
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

/// The first [`LONGEST_HEAD`] tokens, the limit for one declaration.
pub fn head<'a, 'b>(tokens: &'a [&'b str]) -> &'a [&'b str] {
    &tokens[..tokens.len().min(LONGEST_HEAD)]
}

/// Index of the bracket that closes the one at `open`.
pub fn closing(tokens: &[&str], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth <= 1 => return Some(at),
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether this is a vector type with several components, e.g. `float4`.
pub fn is_vector_name(token: &str) -> bool {
    let scalar = token.strip_suffix(['2', '3', '4']).unwrap_or("");
    matches!(
        scalar.trim_start_matches("__"),
        "char"
            | "uchar"
            | "short"
            | "ushort"
            | "int"
            | "uint"
            | "float"
            | "double"
            | "half"
            | "nv_bfloat16"
            | "long"
            | "ulong"
            | "longlong"
            | "ulonglong"
    ) || matches!(token, "__nv_bfloat162" | "nv_bfloat162")
}

/// Counts open brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Brackets {
    pub round: i32,
    pub angle: i32,
}

impl Brackets {
    pub fn pass(&mut self, token: &str) {
        match token {
            "(" | "[" | "{" => self.round += 1,
            ")" | "]" | "}" => self.round -= 1,
            // Inside other brackets, `<` may be a comparison.
            "<" if self.round == 0 => self.angle += 1,
            ">" if self.round == 0 => self.angle -= 1,
            _ => {}
        }
    }
}

/// Splits at commas outside brackets; empty for no tokens.
pub fn split<'t, 'a>(tokens: &'t [&'a str]) -> Vec<&'t [&'a str]> {
    let mut brackets = Brackets::default();
    let is_comma = |token: &&str| {
        brackets.pass(token);
        *token == "," && brackets == Brackets::default()
    };
    if tokens.is_empty() { Vec::new() } else { tokens.split(is_comma).collect() }
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
             extern \"C\" const char *text(int code);\nextern \"C\" {\n\
             int three(int a, int b) { if (a) { b(); } return 0; }\n\
             void four(void *);\n}\nint five(int);",
        );
        assert_eq!(names(&source.host_functions), ["four", "one", "text", "three"]);
        assert!(scan("#define MAKE(name) extern \"C\" int name(int);\nMAKE(a)").incomplete);
    }

    #[test]
    fn blocks_with_c_linkage_may_be_in_each_other() {
        let source = scan(
            "extern \"C\" { int one(); extern \"C\" { int two(); } struct S { int no(); }; int three(); } int no();",
        );
        assert_eq!(names(&source.host_functions), ["one", "three", "two"]);
    }

    #[test]
    fn a_file_with_too_many_declarations_is_read_in_part() {
        for part in ["__global__ ", "__device__ ", "extern \"C\" ", "extern \"C\" {", "__global__ __launch_bounds__("] {
            let source = scan(&format!("__global__ void k() {{}}\n{}", part.repeat(MOST_DECLARATIONS + 1)));
            assert!(source.incomplete && source.kernels.contains("k"), "{part}");
        }
        assert!(!scan(&format!("__global__ void k({}) {{}}", "(int),".repeat(LONGEST_HEAD / 4 + 1))).incomplete);
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
    fn device_variables_are_distinguished_from_device_functions() {
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
        let read = |name: &str| CudaSource::read(&dir.path().join(name), &[], &Scanner::default());
        let source = read("a.cu");
        assert_eq!((names(&source.kernels), source.incomplete), (vec!["a", "b"], false));
        assert!(read("c.cu").incomplete);
    }
    #[test]
    fn an_angled_include_is_followed_where_an_include_path_has_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("inc")).unwrap();
        std::fs::write(dir.path().join("inc/mine.cuh"), "__global__ void mine() {}").unwrap();
        std::fs::write(dir.path().join("a.cu"), "#include <mine.cuh>\n#include <cuda_fp16.h>\n").unwrap();
        let read = |paths: &[PathBuf]| CudaSource::read(&dir.path().join("a.cu"), paths, &Scanner::default());
        let found = read(&[dir.path().join("inc")]);
        assert_eq!((names(&found.kernels), found.incomplete), (vec!["mine"], false));
        assert!(read(&[]).kernels.is_empty());
    }

    #[test]
    fn an_include_that_a_macro_names_leaves_the_list_incomplete() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(dir.path().join("a.cu"), text).unwrap();
            CudaSource::read(&dir.path().join("a.cu"), &[], &Scanner::default())
        };
        assert!(read("#include HEADER\n").incomplete);
        assert!(!read("#define HEADER \"a.cu\"\n#include HEADER\n").incomplete);
    }

    #[test]
    fn characters_and_digit_separators_hide_no_kernel() {
        let source = scan("int n = 1'000; __global__ void a() {} char q = '\"'; __global__ void b() {}");
        assert_eq!(names(&source.kernels), ["a", "b"]);
    }
}
