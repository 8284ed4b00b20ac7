//! Reads a source with the files that it includes: the kernels' parameters, what they do, and how they are launched.

use std::io;
use std::path::{Path, PathBuf};

use crate::conditionals::{Macros, active};
use crate::expand::Functions;
use crate::host_half::{HostFunction, host_functions};
use crate::includes::{Scanner, SearchPath};
use crate::launches::HostCode;
use crate::signature::{Context, Signature, scan};
use crate::source::{tokens, without_directives};
use crate::types::Types;

#[derive(Debug, Clone, Default)]
pub struct KernelFile {
    /// Kernels of the file and of the files that it includes, in source order.
    pub kernels: Vec<Signature>,
    pub host: HostCode,
    /// Functions of the file itself that return nothing and can run on the host.
    pub functions: Vec<HostFunction>,
    /// Headers that were not found. They may belong to a compiler.
    pub absent: Vec<String>,
}

/// A file's code without directives and comments, and its directives.
struct Text {
    code: String,
    directives: Vec<String>,
    own: bool,
}

impl KernelFile {
    /// Reads a file and everything it includes from its own folder and from `include_paths`. `defines` are macros from
    /// options: `NAME` or `NAME=VALUE`.
    pub fn read(path: &Path, include_paths: &[PathBuf], defines: &[String]) -> io::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let user: Vec<PathBuf> = std::iter::once(folder).chain(include_paths.iter().cloned()).collect();
        let search = SearchPath { user: &user, toolkit: &[] };
        let inputs = Scanner::default().inputs(path, &[], &[], search)?;
        let files: Vec<(bool, &str)> = inputs
            .files
            .iter()
            .enumerate()
            .filter_map(|(place, file)| Some((place == 0, &*file.content.as_ref()?.text)))
            .collect();
        let mut macros = Macros::default();
        let name = |define: &String| define.split('=').next().unwrap_or_default().to_owned();
        macros.given.extend(defines.iter().map(name));
        for (_, text) in &files {
            macros.add(text);
        }
        let texts: Vec<Text> = files
            .iter()
            .map(|(own, text)| {
                let (code, mut directives) = without_directives(&active(text, &macros));
                if *own {
                    let given = |define: &String| format!("define {}", define.replacen('=', " ", 1));
                    directives.splice(0..0, defines.iter().map(given));
                }
                Text { code, directives, own: *own }
            })
            .collect();
        let absent = inputs.files.iter().filter(|file| file.content.is_none()).map(|file| file.name.clone()).collect();
        Ok(Self { absent, ..Self::of_texts(&texts, files.first().map_or("", |(_, text)| text)) })
    }

    fn of_texts(texts: &[Text], main: &str) -> Self {
        let words: Vec<Vec<&str>> = texts.iter().map(|text| tokens(&text.code)).collect();
        let definitions: Vec<(Vec<&str>, bool)> = texts
            .iter()
            .flat_map(|text| &text.directives)
            .filter_map(|directive| {
                let rest = directive.strip_prefix("define")?.trim_start();
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                Some((tokens(rest), rest[end..].starts_with('(')))
            })
            .collect();
        let macros: Vec<Vec<&str>> =
            definitions.iter().filter(|(_, is_call)| !is_call).map(|(words, _)| words.clone()).collect();
        // Definitions in headers come before the file that includes them.
        let order = || words.iter().skip(1).chain(words.first());
        let mut context = Context { types: Types::default(), functions: Functions::default() };
        // Array lengths in structs are constants that any file may define.
        let plain: Vec<&str> = order().flatten().copied().collect();
        let directives: Vec<&str> = texts.iter().rev().flat_map(|text| &text.directives).map(String::as_str).collect();
        let constants = HostCode::read(&plain, &directives, main).constants;
        for words in order() {
            context.types.add(words, &macros, &constants);
            context.functions.add(words);
        }
        for (words, is_call) in &definitions {
            context.functions.add_macro(words, *is_call);
        }
        let named = context.types.replaced(&plain);
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let host = HostCode::read(&named, &directives, main);
        let mut kernels: Vec<Signature> = Vec::new();
        for (text, words) in texts.iter().zip(&words) {
            for signature in scan(words, text.own, &context) {
                // A declaration and its definition are one kernel.
                let is_same = |known: &&mut Signature| known.is_of_same_kernel(&signature);
                match kernels.iter_mut().find(is_same) {
                    Some(known) if known.body.is_none() => *known = Signature { own: known.own, ..signature },
                    Some(_) => {}
                    None => kernels.push(signature),
                }
            }
        }
        let mut functions = host_functions(main);
        for parameter in functions.iter_mut().flat_map(|function| &mut function.parameters) {
            context.types.resolve(parameter, &[]);
        }
        Self { kernels, host, functions, absent: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::*;
    use crate::kernel_body::Access;

    fn read(files: &[(&str, &str)], defines: &[&str]) -> KernelFile {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let defines: Vec<String> = defines.iter().map(|define| (*define).to_owned()).collect();
        KernelFile::read(&dir.path().join("a.cu"), &[], &defines).unwrap()
    }

    #[test]
    fn a_declaration_and_its_definition_are_one_kernel_and_an_include_has_another() {
        let main = "#include \"b.cuh\"\n__global__ void a(int *x);\n__global__ void a(int *x) {}";
        let found = read(&[("a.cu", main), ("b.cuh", "__global__ void b(int *x) {}")], &[]).kernels;
        let found: Vec<(&str, bool)> = found.iter().map(|kernel| (kernel.name.as_str(), kernel.own)).collect();
        assert_eq!(found, [("a", true), ("b", false)]);
    }

    #[test]
    fn types_constants_and_functions_of_headers_count() {
        let header = "#ifdef BIG\n#define N 4096\n#else\n#define N 64\n#endif\n#define DATA_TYPE float\n\
                      struct P { DATA_TYPE w[2 * N]; int n; };\n__device__ void put(float *y, int i) { y[i] = 1; }\n";
        let main = "#include \"b.h\"\n__global__ void k(const DATA_TYPE *x, DATA_TYPE *y, P p) { put(y, x[0]); }\n\
                    int main() { float *d; cudaMalloc(&d, N * sizeof(DATA_TYPE)); k<<<N, 2>>>(d, d, p); }";
        let found = read(&[("a.cu", main), ("b.h", header)], &[]);
        let kernel = &found.kernels[0];
        assert_eq!(kernel.types(), "const float *, float *, P");
        let fields: Vec<_> =
            kernel.parameters[2].fields.iter().map(|field| (field.base.as_str(), field.count)).collect();
        assert_eq!(fields, [("float", Some(128)), ("int", None)]);
        assert_eq!(kernel.body.as_ref().unwrap().access("y"), Access::Written);
        let launch = &found.host.launches[0];
        assert_eq!((launch.integer(&launch.grid[0]), launch.line), (Some(64), 3));
        assert_eq!(launch.integer(launch.arguments[0].bytes.as_ref().unwrap()), Some(256));
        let big = read(&[("a.cu", main), ("b.h", header)], &["BIG", "UNUSED=3"]);
        assert_eq!(big.host.constants.get("UNUSED"), Some(&3));
    }
}
