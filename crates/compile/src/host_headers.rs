//! What device code needs of host headers that are not there.
//!
//! `PyTorch`'s headers include those of C++ and define markers and number types that kernels use next to CUDA's own.

use std::fmt::Write as _;

/// Standard headers that most host headers include.
const STANDARD: [&str; 10] =
    ["algorithm", "cfloat", "climits", "cmath", "cstdint", "cstdio", "limits", "tuple", "type_traits", "utility"];

/// Folders of `PyTorch`'s headers.
const OF_TORCH: [&str; 3] = ["torch/", "ATen/", "c10/"];

/// Definitions that take the place of `PyTorch`'s.
const TORCH: &str = include_str!("host_headers/torch.cuh");

/// Functions of warps that CUDA has no longer, with as many arguments as they are called with.
const WARP: [(&str, &str); 7] = [
    ("__shfl", "__shfl_sync"),
    ("__shfl_up", "__shfl_up_sync"),
    ("__shfl_down", "__shfl_down_sync"),
    ("__shfl_xor", "__shfl_xor_sync"),
    ("__ballot", "__ballot_sync"),
    ("__any", "__any_sync"),
    ("__all", "__all_sync"),
];

/// Lines before a source at `path` in place of its `absent` headers, and of functions that an error says are undefined.
pub(super) fn instead(absent: &[String], error: &str, path: &str) -> String {
    let mut text = String::new();
    if !absent.is_empty() {
        for header in STANDARD {
            // Writing to a string does not fail.
            let _ = writeln!(text, "#include <{header}>");
        }
    }
    if lacks_warp_function(error) {
        for (old, new) in WARP {
            let _ = writeln!(text, "#define {old}(...) {new}(__activemask(), __VA_ARGS__)");
        }
    }
    if absent.iter().any(|header| OF_TORCH.iter().any(|folder| header.starts_with(folder))) {
        text.push_str(TORCH);
    }
    let _ = writeln!(text, "#line 1 \"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""));
    text
}

/// Whether the error is an undefined function of warps: those for the lanes that happen to be active went with Volta.
pub(super) fn lacks_warp_function(error: &str) -> bool {
    WARP.iter().any(|(old, _)| error.contains(&format!("identifier \"{old}\" is undefined")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_put_before_the_source() {
        let lines = |absent: &[&str], error: &str| {
            let absent: Vec<String> = absent.iter().map(|header| (*header).to_owned()).collect();
            instead(&absent, error, "/k.cu")
        };
        assert_eq!(lines(&[], "expected a \";\""), "#line 1 \"/k.cu\"\n");
        let shuffled = lines(&[], "identifier \"__shfl_xor\" is undefined");
        assert!(shuffled.contains("#define __ballot(...) __ballot_sync(__activemask(), __VA_ARGS__)\n"));
        assert!(lines(&["ATen/ATen.h"], "").contains("C10_HOST_DEVICE") && !lines(&["a.h"], "").contains("C10"));
    }
}
