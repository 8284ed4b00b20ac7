//! What device code needs of host headers that are not there.
//!
//! PyTorch's headers include those of C++ and define markers and number types that kernels use next to CUDA's own.

use std::fmt::Write as _;

/// Standard headers that most host headers include.
const STANDARD: [&str; 10] =
    ["algorithm", "cfloat", "climits", "cmath", "cstdint", "cstdio", "limits", "tuple", "type_traits", "utility"];

/// Folders of PyTorch's headers.
const OF_TORCH: [&str; 3] = ["torch/", "ATen/", "c10/"];

/// Definitions that take the place of PyTorch's.
const TORCH: &str = include_str!("host_headers/torch.cuh");

/// Lines before a source at `path` in place of its `absent` headers.
pub(super) fn instead(absent: &[String], path: &str) -> String {
    let mut text = String::new();
    for header in STANDARD {
        // Writing to a string does not fail.
        let _ = writeln!(text, "#include <{header}>");
    }
    if absent.iter().any(|header| OF_TORCH.iter().any(|folder| header.starts_with(folder))) {
        text.push_str(TORCH);
    }
    let _ = writeln!(text, "#line 1 \"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""));
    text
}
