//! Headers of the C and C++ standard libraries that NVRTC lacks, in the form that device code can use.
//!
//! NVRTC declares `printf`, `malloc`, `assert`, `memcpy` and the mathematical functions itself, so most of these only
//! add macros (`M_PI`, `INFINITY`, `FLT_MAX`), types (`uint32_t`) and names in `std`. The headers of containers and
//! streams are empty: only functions of the host can use what they declare.

/// A header that is included before every source, as nvcc does.
pub(super) const PRELUDE: &str = "nvcc_prelude.h";

/// Headers of the toolkit that declare functions of the host, which NVRTC refuses.
pub(super) const REPLACED: [&str; 5] = ["cuda.h", "cublas_v2.h", "cublasLt.h", "cublasXt.h", "cublas_api.h"];

/// Headers with a text of their own.
const TEXTS: [(&str, &str); 23] = [
    (PRELUDE, include_str!("nvcc_prelude.h")),
    ("algorithm", include_str!("algorithm")),
    ("array", include_str!("array")),
    ("cmath", include_str!("cmath")),
    ("complex", include_str!("complex")),
    ("cstddef", include_str!("cstddef")),
    ("cstdint", include_str!("cstdint")),
    ("cstdio", include_str!("cstdio")),
    ("cstdlib", include_str!("cstdlib")),
    ("cstring", include_str!("cstring")),
    ("cublas_v2.h", include_str!("cublas_v2.h")),
    ("cuda.h", include_str!("cuda.h")),
    ("float.h", include_str!("float.h")),
    ("functional", include_str!("functional")),
    ("limits", include_str!("limits")),
    ("limits.h", include_str!("limits.h")),
    ("math.h", include_str!("math.h")),
    ("stddef.h", include_str!("stddef.h")),
    ("stdint.h", include_str!("stdint.h")),
    ("stdlib.h", include_str!("stdlib.h")),
    ("tuple", include_str!("tuple")),
    ("type_traits", include_str!("type_traits")),
    ("utility", include_str!("utility")),
];

/// Headers that are the same as another one.
const SAME: [(&str, &str); 7] = [
    ("cfloat", "float.h"),
    ("climits", "limits.h"),
    ("inttypes.h", "stdint.h"),
    ("cinttypes", "cstdint"),
    ("cublasLt.h", "cublas_v2.h"),
    ("cublasXt.h", "cublas_v2.h"),
    ("cublas_api.h", "cublas_v2.h"),
];

/// Headers that declare nothing that a kernel can use, or nothing that NVRTC does not declare itself.
const EMPTY: [&str; 68] = [
    "assert.h",
    "atomic",
    "bitset",
    "cassert",
    "cctype",
    "cerrno",
    "chrono",
    "condition_variable",
    "cstdarg",
    "ctime",
    "ctype.h",
    "cublas.h",
    "cuda_profiler_api.h",
    "cudnn.h",
    "cufft.h",
    "curand.h",
    "cusolverDn.h",
    "cusparse.h",
    "deque",
    "dirent.h",
    "errno.h",
    "exception",
    "fcntl.h",
    "filesystem",
    "fstream",
    "future",
    "getopt.h",
    "initializer_list",
    "iomanip",
    "ios",
    "iostream",
    "istream",
    "iterator",
    "list",
    "locale",
    "malloc.h",
    "map",
    "memory",
    "mpi.h",
    "mutex",
    "new",
    "numeric",
    "omp.h",
    "ostream",
    "queue",
    "random",
    "set",
    "signal.h",
    "sstream",
    "stack",
    "stdarg.h",
    "stdbool.h",
    "stdexcept",
    "stdio.h",
    "string",
    "string.h",
    "strings.h",
    "sys/stat.h",
    "sys/time.h",
    "sys/types.h",
    "thread",
    "time.h",
    "unistd.h",
    "unordered_map",
    "unordered_set",
    "valarray",
    "variant",
    "vector",
];

/// Whether a class of this name is declared by one of the empty headers: `vector`, `string`.
pub(super) fn is_of_the_host(class: &str) -> bool {
    EMPTY.contains(&class)
}

/// Returns every header by its name.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = |name: &str| TEXTS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
    let empty = EMPTY.into_iter().map(|name| (name, ""));
    TEXTS.into_iter().chain(SAME.into_iter().map(move |(name, same)| (name, text(same)))).chain(empty)
}

/// Returns the text of a header, if it is one of these.
pub(super) fn text_of(name: &str) -> Option<&'static str> {
    all().find(|(known, _)| *known == name).map(|(_, text)| text)
}
