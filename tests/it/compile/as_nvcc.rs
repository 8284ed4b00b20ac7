//! Sources written for nvcc, compiled by NVRTC: headers of the host, functions of the host, macros of <math.h>.

use std::fs;

use runner::compile::{Target, compile_all};

use super::{Bench, H100, toolkit};

/// What a published `.cu` file looks like.
const PUBLISHED: &str = r#"
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <iostream>
#include <limits>
#include <type_traits>
#include <vector>
#include "common.h"
using namespace std;

#define CHECK(call) { const cudaError_t error = call; if (error != cudaSuccess) { exit(1); } }

static int failures = 0;
constexpr int halved(int n) { return n / 2; }
__host__ __device__ inline int64_t twice(int64_t x) { return x * 2; }

struct Timer {
    cudaEvent_t start;
    Timer() { cudaEventCreate(&start); }
    float stop() const { return 0.0f; }
};

template <typename T> __global__ void k(T *p, uint32_t n) {
    assert(n < UINT_MAX);
    static_assert(std::is_same<T, float>::value, "");
    p[0] = M_PI;
    p[1] = std::numeric_limits<T>::max() == FLT_MAX ? INFINITY : NAN;
    p[2] = std::sqrt(p[2]) + std::max(1, halved(6)) + twice(offset());
    printf("%u\n", n);
}

template <typename T> void run(const vector<T> &input) { k<<<1, 1>>>((T *)nullptr, 1); }

int main(int argc, char **argv) {
    vector<float> input(3);
    run(input);
    CHECK(cudaDeviceSynchronize());
    std::cout << "done } " << failures << std::endl;
    return EXIT_SUCCESS;
}
"#;

const COMMON: &str = "
#include <strings.h>
#include <sys/time.h>
inline double seconds() { struct timeval t; gettimeofday(&t, 0); return t.tv_sec; }
__device__ inline int offset() { return 4; }
";

#[test]
fn a_file_with_a_main_and_headers_of_the_host_compiles_for_both_backends() {
    let bench = Bench::new(&[("k.cu", PUBLISHED), ("common.h", COMMON)]);
    let unit = bench.unit("k.cu", &["k<float>"]);
    for target in [H100, Target::Ptx((9, 0))] {
        let compiled = bench.compile_for(&unit, target).unwrap();
        assert_eq!(compiled.kernels["k<float>"], "_Z1kIfEvPT_j");
        let note = "left out, as code of the host: failures, Timer, stop, run, main, seconds";
        assert_eq!(compiled.log.lines().next(), Some(note), "{}", compiled.log);
    }
    let ptx = bench.compile_for(&unit, Target::Ptx((9, 0))).unwrap();
    // Lines keep their numbers: the kernel begins at the same line as in the file.
    let line = 1 + PUBLISHED.lines().position(|line| line.contains("void k(")).unwrap();
    let text = fs::read_to_string(&ptx.code).unwrap();
    assert!(text.contains(&format!(".loc\t1 {line} ")) || text.contains(&format!(".loc\t1 {} ", line + 1)), "{text}");
}

#[test]
fn macros_that_nvcc_defines_without_an_include_are_there() {
    let bench = Bench::new(&[("k.cu", "__global__ void k(double *p) { p[0] = M_PI; p[1] = INFINITY; }\n")]);
    let compiled = bench.compile_for(&bench.unit("k.cu", &["k"]), Target::Ptx((9, 0))).unwrap();
    // 0x400921FB54442D18 is the double nearest to pi, 0x7FF0000000000000 infinity.
    let text = fs::read_to_string(&compiled.code).unwrap().to_uppercase();
    assert!(text.contains("400921FB54442D18") || text.contains("4614256656552045848"), "{text}");
    assert!(text.contains("7FF0000000000000") || text.contains("9218868437227405312"), "{text}");
}

/// A whole toolkit has cuBLAS's header, with functions of the host that NVRTC refuses.
#[test]
fn the_header_of_a_library_of_the_host_is_replaced_where_the_toolkit_has_it() {
    let whole = tempfile::tempdir().unwrap();
    fs::write(whole.path().join("cublas_v2.h"), "inline int migrate(int type) { return type + 1; }\n").unwrap();
    let mut toolkit = toolkit().clone();
    toolkit.include_dirs.insert(0, whole.path().to_owned());
    let bench = Bench::new(&[("k.cu", "#include <cublas_v2.h>\n__global__ void k(__half *p) { p[0] = p[1]; }\n")]);
    let unit = bench.unit("k.cu", &["k"]);
    let results = compile_all(std::slice::from_ref(&unit), H100, &toolkit, &bench.options(), &mut |_, _, _| {});
    assert!(results[&unit].is_ok(), "{:?}", results[&unit]);
}

#[test]
fn a_header_of_ones_own_comes_before_a_provided_one_of_its_name() {
    let own = "__device__ inline int seven() { return 7; }\n";
    let source = "#include \"cublas_v2.h\"\n__global__ void k(int *p) { p[0] = seven(); }\n";
    let bench = Bench::new(&[("k.cu", source), ("cublas_v2.h", own)]);
    bench.compile(&bench.unit("k.cu", &["k"])).unwrap();
}

#[test]
fn an_error_in_device_code_is_reported_at_its_line_in_spite_of_host_code() {
    let bench =
        Bench::new(&[("k.cu", "int main() {\n  puts(\"x\");\n}\n__global__ void k(int *p) {\n  p[0] = missing;\n}\n")]);
    let failure = bench.compile(&bench.unit("k.cu", &["k"])).unwrap_err();
    let place = format!("{}:5: identifier \"missing\" is undefined", bench.path("k.cu").display());
    assert_eq!(failure.summary, place);
}

#[test]
fn a_kernel_that_uses_what_was_left_out_is_refused_with_its_name() {
    let bench =
        Bench::new(&[("k.cu", "int next(int x) { return x + 1; }\n__global__ void k(int *p) { p[0] = next(1); }\n")]);
    let failure = bench.compile(&bench.unit("k.cu", &["k"])).unwrap_err();
    let end = "k.cu:2: identifier \"next\" is undefined; `next` is a function of the host: give it `__device__`";
    assert!(failure.summary.ends_with(end), "{}", failure.summary);
}

#[test]
fn a_file_of_ones_own_comes_before_a_header_that_is_provided() {
    let bench = Bench::new(&[
        ("k.cu", "#include <vector>\n#include <cmath>\n__global__ void k(double *p) { p[0] = M_PI + OWN; }\n"),
        ("vector", "#define OWN 3\n"),
    ]);
    bench.compile(&bench.unit("k.cu", &["k"])).unwrap();
}

#[test]
fn a_source_with_20000_namespaces_in_each_other_costs_only_its_own_unit() {
    let text = |levels: usize| {
        let (open, close) = ("namespace a{\n".repeat(levels), "}".repeat(levels));
        format!("{open}{close}\n__global__ void k(int *p) {{ *p = 1; }}\nint main() {{ return 0; }}\n")
    };
    let bench = Bench::new(&[("deep.cu", text(20_000).as_str()), ("flat.cu", text(3).as_str())]);
    let [deep, flat] = ["deep.cu", "flat.cu"].map(|name| bench.unit(name, &["k"]));
    let units = [deep.clone(), flat.clone()];
    let results = compile_all(&units, H100, toolkit(), &bench.options(), &mut |_, _, _| {});
    let summary = &results[&deep].as_ref().unwrap_err().summary;
    assert!(summary.contains("deep.cu:257:12: namespaces and classes are nested deeper than 256 levels"), "{summary}");
    assert!(results[&flat].is_ok(), "{:?}", results[&flat]);
}
