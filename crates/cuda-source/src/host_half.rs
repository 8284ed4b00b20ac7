//! A host function with everything it needs, for a C++ compiler that does not know CUDA.
//!
//! A file with a kernel often has a function that computes the same result on the host. Only declarations that this
//! function reaches are kept, so that neither kernels nor runtime calls have to compile.

use crate::device_half::{Declaration, declarations, emptied, is_function, masked, reached};
use crate::flatten::included;
use crate::parameter::{Parameter, parameter};
use crate::source::{closing, function_at, split};

/// Headers that host functions use, and qualifiers that a host compiler does not know.
const PREAMBLE: &str = "#include <algorithm>\n#include <array>\n#include <cassert>\n#include <cfloat>\n#include <climits>\n\
                        #include <cmath>\n#include <cstdint>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n\
                        #include <limits>\n#include <numeric>\n#include <vector>\n#define __host__\n#define __device__\n\
                        #define __forceinline__ inline\n#define __restrict__\n";

/// Declarations with one of these words cannot be compiled for the host.
const OF_DEVICE: [&str; 6] =
    ["__global__", "__constant__", "__shared__", "__managed__", "texture", "cudaTextureObject_t"];

/// A function outside namespaces that returns nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFunction {
    pub name: String,
    pub parameters: Vec<Parameter>,
    /// 1-based.
    pub line: usize,
}

/// Host functions that a source defines.
pub fn host_functions(text: &str) -> Vec<HostFunction> {
    let mask = masked(text);
    let all = declarations(&mask).unwrap_or_default();
    all.iter().filter(|one| one.depth == 0 && is_of_host(one)).filter_map(|one| host_function(text, one)).collect()
}

fn host_function(text: &str, declaration: &Declaration<'_>) -> Option<HostFunction> {
    let words = &declaration.words;
    let body = words.iter().position(|word| *word == "{")?;
    let name = function_at(words).filter(|name| *name < body && is_function(&words[..body]))?;
    let close = closing(words, name + 1)?;
    let is_plain = words[..name].contains(&"void") && !words[..name].contains(&"template") && words[name] != "main";
    is_plain.then(|| HostFunction {
        name: words[name].to_owned(),
        parameters: split(&words[name + 2..close]).into_iter().map(parameter).collect(),
        line: text[..declaration.range.start].matches('\n').count() + 1,
    })
}

/// The function with the declarations and macros that it reaches, as a host source. `None` if the text does not define
/// it, or if brackets do not match.
pub fn host_half(text: &str, function: &str) -> Option<String> {
    let mask = masked(text);
    let all = declarations(&mask)?;
    let kept = reached(text, &all, &[function], &is_of_host);
    let mut half = String::from(PREAMBLE);
    let mut at = 0;
    for (place, Declaration { range, .. }) in all.iter().enumerate() {
        half.push_str(&without_includes(&text[at..range.start]));
        if kept.contains(&place) {
            half.push_str(&text[range.clone()]);
        } else {
            half.push_str(&emptied(&text[range.clone()], &mask[range.clone()]));
        }
        at = range.end;
    }
    half.push_str(&without_includes(&text[at..]));
    (!kept.is_empty()).then_some(half)
}

fn without_includes(text: &str) -> String {
    text.split_inclusive('\n').map(|line| if included(line).is_some() { "\n" } else { line }).collect()
}

/// Whether a host compiler may accept the declaration: it neither launches kernels nor calls the runtime.
fn is_of_host(declaration: &Declaration<'_>) -> bool {
    let words = &declaration.words;
    let head = &words[..words.iter().position(|word| *word == "{").unwrap_or(words.len())];
    let launches = words.windows(3).any(|three| three == ["<", "<", "<"]);
    let calls = words.iter().any(|word| word.starts_with("cuda") || word.starts_with("__shfl") || *word == "threadIdx");
    let of_device = words.iter().any(|word| OF_DEVICE.contains(word))
        || (head.contains(&"__device__") && !head.contains(&"__host__") && is_function(head));
    !launches && !calls && !of_device
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    const SOURCE: &str = "#include <stdio.h>\n#include \"helper_cuda.h\"\n#define N (BASE * 2)\n#define BASE 4\n\
        struct P { float x; };\ntypedef unsigned int u;\nenum Kind { A, B };\nconst int most = N;\n\
        __constant__ float table[4];\nfloat square(float x) { return x * x; }\n\
        static float twice(float x) { return 2 * square(x); }\n\
        __global__ void k(const float *in, float *out, int n) { out[threadIdx.x] = in[0]; }\n\
        void sum_cpu(const float *in, float *out, u n)\n{\n  for (u i = 0; i < n && i < most; i++) out[i] = twice(in[i]);\n}\n\
        void run(float *x) { k<<<1, 1>>>(x, x, 1); }\nint main() { cudaFree(0); return 0; }\n";

    #[test]
    fn functions_of_the_host_are_those_that_neither_launch_nor_call_the_runtime() {
        let found = host_functions(SOURCE);
        let shown: Vec<(&str, usize, usize)> =
            found.iter().map(|one| (one.name.as_str(), one.line, one.parameters.len())).collect();
        assert_eq!(shown, [("sum_cpu", 13, 3)]);
        assert!(host_functions("}\nvoid f(int x) {}").is_empty());
        assert!(host_functions("namespace a { void f(int x) {} }\ntemplate <class T> void g(T x) {}").is_empty());
    }

    #[test]
    fn the_half_has_what_the_function_reaches_and_nothing_else() {
        let half = host_half(SOURCE, "sum_cpu").unwrap();
        for kept in
            ["#define N", "#define BASE", "typedef unsigned int u;", "const int most", "square(", "twice(", "sum_cpu"]
        {
            assert!(half.contains(kept), "{kept}: {half}");
        }
        for gone in ["helper_cuda", "struct P", "enum Kind", "__constant__", "__global__", "<<<", "main"] {
            assert!(!half.contains(gone), "{gone}: {half}");
        }
        assert_eq!(host_half(SOURCE, "absent"), None);
    }
}
