//! `runner try` on files as they are published: with host code, headers and launches of their own.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Tries a file on the simulator: exit code, standard output, and both streams.
fn attempt(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder.path())
        .args(["--color", "never", "try", "--backend", "sim"])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, error) = (text(output.stdout), text(output.stderr));
    (output.status.code(), out.clone(), out + &error)
}

#[track_caller]
fn expect(folder: &TempDir, arguments: &[&str], code: i32, words: &[&str]) {
    let (ended, _, all) = attempt(folder, arguments);
    assert_eq!(ended, Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "`{word}` is not in:\n{all}");
    }
}

#[test]
fn kernels_of_a_program_that_compute_different_things_are_not_called_wrong() {
    let program = "__global__ void setRow(int *out) { out[threadIdx.y * 8 + threadIdx.x] = threadIdx.y * 8 + threadIdx.x; }\n\
                   __global__ void setRowAgain(int *out) { int i = threadIdx.y * 8 + threadIdx.x; out[i] = i; }\n\
                   __global__ void setRowTurned(int *out) { out[threadIdx.x * 8 + threadIdx.y] = threadIdx.y * 8 + threadIdx.x; }\n\
                   int main() { int *d; cudaMalloc(&d, 64 * sizeof(int)); dim3 block(8, 8);\n\
                   setRow<<<1, block>>>(d); setRowAgain<<<1, block>>>(d); setRowTurned<<<1, block>>>(d); }\n";
    let folder = folder(&[("k.cu", program)]);
    let (code, out, all) = attempt(&folder, &["k.cu"]);
    assert_eq!(code, Some(0), "{all}");
    assert!(!all.contains("wrong"), "{all}");
    assert!(out.contains("`setRowAgain` is right"), "{out}");
    let last = "`setRowTurned` gives other results than `setRow`, or fails with its arguments: if it does the same, \
                compare with -k setRow -k setRowTurned.\n";
    assert!(out.ends_with(last), "{out}");
    // Named kernels are meant to agree. All elements but the eight of the diagonal differ.
    let named = ["k.cu", "-k", "setRow", "-k", "setRowTurned"];
    expect(&folder, &named, 1, &["`setRowTurned` is wrong in 56 of 64 elements"]);
}

#[test]
fn kernels_without_launches_are_compared_if_their_names_say_so() {
    let kernel = |name: &str, value: &str| {
        format!(
            "__global__ void {name}(const float *x, float *y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = {value}; }}\n"
        )
    };
    let text = kernel("scale", "2 * x[i]") + &kernel("scale_fast", "3 * x[i]");
    expect(&folder(&[("k.cu", &text)]), &["k.cu"], 1, &["`scale_fast` is wrong in"]);
    let text = kernel("scale", "2 * x[i]") + &kernel("scale_shift", "x[i] + 1");
    expect(&folder(&[("k.cu", &text)]), &["k.cu"], 0, &["`scale_shift` gives other results than `scale`"]);
}

#[test]
fn a_kernel_that_is_written_for_its_launch_runs_with_the_sizes_of_that() {
    // Every thread reads its right neighbour in the block, so `n` must be a multiple of 128.
    let program = "__global__ void k(const int *x, int *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                   int j = blockIdx.x * blockDim.x + (threadIdx.x + 1) % blockDim.x; if (i < n) y[i] = x[j]; }\n\
                   int main() { int n = 4096; int *x, *y; cudaMalloc(&x, n * sizeof(int)); cudaMalloc(&y, n * sizeof(int));\n\
                   k<<<(n + 127) / 128, 128>>>(x, y, n); }\n";
    let words = ["`k` ran without a fault", "With sizes other than the launch's, it fails: out-of-bounds"];
    expect(&folder(&[("k.cu", program)]), &["k.cu"], 0, &words);
}

#[test]
fn a_kernel_of_one_thread_is_launched_with_one() {
    let program = "__global__ void update(float *scale, int *count, float factor, int interval) {\n\
                   if (*count + 1 == interval) { *scale = *scale * factor; *count = 0; } else *count += 1; }\n";
    expect(&folder(&[("k.cu", program)]), &["k.cu"], 0, &["`update` ran without a fault"]);
}

#[test]
fn a_file_that_another_includes_is_compiled_with_it() {
    let kernel = "__global__ void k(const Point *p, float *y, int n)\n\
                  { int i = blockIdx.x * TILE + threadIdx.x; if (i < n) y[i] = p[i].a + p[i].b; }\n";
    let main = "#define TILE 64\nstruct Point { float a, b; };\n#include \"k.cu\"\n#include <vector>\n\
                int main() { std::vector<int> v; int n = v.size(); Point *p; float *y; k<<<(n + TILE - 1) / TILE, TILE>>>(p, y, n); }\n";
    let words = [
        "k.cu is compiled as part of main.cu, which includes and launches it",
        "launch at main.cu:5",
        "`k` ran without a fault",
    ];
    expect(&folder(&[("k.cu", kernel), ("main.cu", main)]), &["k.cu"], 0, &words);
}

#[test]
fn an_extension_of_pytorch_runs_without_its_headers() {
    let header = "#pragma once\n#include <torch/extension.h>\n#define WIDTH 4\n\
                  inline void check(at::Tensor x) { TORCH_CHECK(x.is_cuda()); }\n\
                  __device__ inline float twice(float x) { return 2 * x; }\n";
    let source = "#include <torch/types.h>\n#include \"util/common.h\"\n#define FLOAT4(x) (reinterpret_cast<float4 *>(&(x))[0])\n\
                  #define BIND(name) \\\n  void name(torch::Tensor x) { check(x); }\n\
                  template <typename T, int THREADS, int PER> __global__ void k(T *x, T *y, int n) {\n\
                  static_assert(PER == 4 && THREADS == 64); int i = (blockIdx.x * THREADS + threadIdx.x) * PER;\n\
                  if (i < n) { float4 v = FLOAT4(x[i]); v.x = twice(v.x); FLOAT4(y[i]) = v; } }\n\
                  template <typename T, int SIZE> void run(at::Tensor x) { constexpr int PER = (SIZE > 32) ? WIDTH : 1;\n\
                  k<T, SIZE, PER><<<x.numel() / (SIZE * PER), SIZE>>>(x.data_ptr<T>(), x.data_ptr<T>(), x.numel()); }\n\
                  BIND(k_f32)\nvoid all(at::Tensor x) { run<float, 64>(x); }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"k\", &k_f32); }\n";
    let words = ["x = f32[n], input,", "y = f32[n], output", "`k<float, 64, 4>` ran without a fault"];
    expect(&folder(&[("k.cu", source), ("util/common.h", header)]), &["k.cu"], 0, &words);
}
