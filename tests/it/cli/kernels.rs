//! `runner try`, `init` and `list`, as a user types them, on the simulator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use fixture::snapshot::assert_is;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/kernels").join(name)
}

/// A folder with `scale.cu`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(fixture("scale.cu"), folder.path().join("scale.cu")).unwrap();
    folder
}

/// Exit code, standard output and standard error.
fn run(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder.path())
        .args(["--color", "never"])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn expect(folder: &TempDir, arguments: &[&str], code: i32, words: &[&str]) {
    let (ended, out, error) = run(folder, arguments);
    let all = out + &error;
    assert_eq!(ended, Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "`{word}` is not in:\n{all}");
    }
}

fn files(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

const TRY: [&str; 5] = ["try", "--backend", "sim", "--n", "2**10"];

#[test]
fn two_kernels_are_compared_without_a_manifest_and_nothing_is_left_behind() {
    let folder = folder();
    let (code, out, error) = run(&folder, &[&TRY[..], &["scale.cu", "-k", "old", "-k", "strided"]].concat());
    assert_eq!(code, Some(0), "{out}{error}");
    // 1024 elements are 32 warps. A warp loads either 128 contiguous bytes, which are 4 sectors, or 32 words that are
    // 132 bytes apart, which are 32 sectors.
    for cells in [&["old", "128"][..], &["strided", "1024", "(8.00×)"]] {
        let has_row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(cells)
        };
        assert!(out.lines().any(has_row), "{cells:?} is not in:\n{out}");
    }
    assert!(out.contains("2 of 2 cases ran; `strided` matches `old`"), "{out}");
    assert!(
        error.contains("input = f32[n], input, uniform from -1 to 2\nout = f32[n], output\nn = u32(n)\n"),
        "{error}"
    );
    assert_eq!(files(&folder), ["scale.cu"]);
}

#[test]
fn kernels_that_write_nothing_do_not_match_and_the_message_says_how_to_choose_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = |name: &str, more: &str| {
        format!(
            "__global__ void {name}(float *sums, const float *in, int B, int T, int C)\n\
             {{ int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             if (i < B * T * C) atomicAdd(&sums[i % C], in[i]{more}); }}\n"
        )
    };
    fs::write(folder.path().join("cube.cu"), kernel("planes", "") + &kernel("planes_wrong", " + 1")).unwrap();
    // The product of the three sizes overflows to 0, so no thread does anything.
    let sizes = ["try", "cube.cu", "--backend", "sim", "--arg", "B=65536", "--arg", "T=65536", "--arg", "C=65536"];
    let nothing = ["no launch wrote to an output (`sums`): choose sizes", "--arg NAME=4", "0 of 2 cases passed"];
    expect(&folder, &[&sizes[..], &["--grid", "4"]].concat(), 1, &nothing);
    // The default sizes are small enough for the product. With the sizes below, 4 * 8 threads add 1 to each of 16 sums.
    expect(&folder, &["try", "cube.cu", "--backend", "sim"], 1, &["`planes_wrong` is wrong in"]);
    let sizes = ["try", "cube.cu", "--backend", "sim", "--arg", "B=4", "--arg", "T=8", "--arg", "C=16"];
    expect(&folder, &sizes, 1, &["planes_wrong", "off by 31.99999", "16 of 16 elements are wrong"]);
}

#[test]
fn a_kernel_with_another_result_fails() {
    let arguments = [&TRY[..], &["scale.cu:old", "scale.cu:wrong", "--out", "kept"]].concat();
    let folder = folder();
    expect(&folder, &arguments, 1, &["wrong", "element 1023", "never written", "report: kept/report.md"]);
    let report = fs::read_to_string(folder.path().join("kept/report.md")).unwrap();
    assert!(report.contains("try --backend sim"), "the report says how to make it again: {report}");
}

#[test]
fn a_kernel_of_half_as_many_threads_has_a_grid_of_its_own() {
    let words =
        ["scale.cu", "-k", "old", "-k", "wide<2>", "--grid", "ceil_div(n, block)", "--grid", "ceil_div(n, 2 * block)"];
    let (code, out, error) = run(&folder(), &[&TRY[..], &words].concat());
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(out.contains("2 of 2 cases ran; `wide<2>` matches `old`"), "{out}");
}

#[test]
fn all_mistakes_are_named_at_once_with_what_to_do() {
    let folder = folder();
    let words =
        ["scale.cu", "-k", "old<4>", "-k", "strided", "--arg", "m=1", "--grid", "1", "--grid", "2", "--grid", "3"];
    expect(
        &folder,
        &[&TRY[..], &words].concat(),
        2,
        &["error: scale.cu: `old` is not a template: remove <…>", "error: --arg m=1: no kernel has a parameter `m`"],
    );
    expect(&folder, &["try", "scale.cu", "-k", "ol"], 2, &["scale.cu has no kernel `ol`; did you mean `old`?"]);
    expect(&folder, &["try", "missing.cu"], 2, &["cannot read missing.cu"]);
    expect(&folder, &["try", "scale.cu", "-k", "old", "--grid", "ceil(n)"], 2, &["there is no function `ceil`"]);
    expect(&folder, &["try", "scale.cu", "--tolerance=-1"], 2, &["--tolerance", "1e-4"]);
}

#[test]
fn init_writes_a_manifest_that_runs_and_replaces_none() {
    let folder = folder();
    let words = ["init", "scale.cu", "-k", "old", "-k", "strided", "-k", "wrong"];
    expect(&folder, &words, 0, &["wrote experiments/scale.toml", "runner check experiments/scale.toml"]);
    let written = fs::read_to_string(folder.path().join("experiments/scale.toml")).unwrap();
    assert_is(&written, &fixture("scale.toml"));
    let ignored = folder.path().join(".gitignore");
    assert!(fs::read_to_string(&ignored).unwrap().lines().any(|line| line == "journal.jsonl"));
    fs::write(&ignored, "own\n").unwrap();
    expect(&folder, &["check", "experiments/scale.toml"], 0, &["ok: 3 variants, 1 axis"]);
    expect(&folder, &words, 2, &["experiments/scale.toml exists; name another file with --out"]);
    expect(&folder, &[&words[..], &["--force", "--n", "2**12"]].concat(), 0, &[]);
    assert_eq!(fs::read_to_string(&ignored).unwrap(), "own\n");
    let run = ["run", "experiments/scale.toml", "--backend", "sim", "--variant", "old", "--variant", "strided"];
    expect(&folder, &run, 0, &["2 of 2 cases ran; `strided` matches `old`"]);
}

#[test]
fn a_trial_can_be_saved_and_goes_on_as_a_manifest() {
    let folder = folder();
    let words = ["scale.cu:old", "scale.cu:strided", "--save", "saved.toml", "--tolerance", "1e-3"];
    expect(&folder, &[&TRY[..], &words].concat(), 0, &["wrote saved.toml"]);
    let saved = fs::read_to_string(folder.path().join("saved.toml")).unwrap();
    assert!(saved.contains("source = \"scale.cu\"") && saved.contains("tolerance = { rel = 0.001 }"), "{saved}");
    expect(&folder, &[&TRY[..], &words].concat(), 2, &["saved.toml exists; name another file with --save"]);
}

#[test]
fn experiments_are_listed_with_their_variants_and_axes() {
    let folder = folder();
    expect(&folder, &["list"], 2, &["there is no folder experiments"]);
    expect(&folder, &["init", "scale.cu", "-k", "old", "-k", "strided"], 0, &[]);
    let (code, out, _) = run(&folder, &["list"]);
    let expected = "experiment  cases  variants and axes\nscale           2  old (baseline), strided\n                   n = \
                    16777213\n                   on the simulator 2 cases: n = 65521\n";
    assert_eq!((code, out.as_str()), (Some(0), expected));
    let (_, out, _) = run(&folder, &["list", "experiments/scale.toml", "--json"]);
    let entry: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(entry["variants"], serde_json::json!(["old", "strided"]));
    assert_eq!(entry["axes"], serde_json::json!([{ "name": "n", "values": [16_777_213] }]));
    assert_eq!((&entry["version"], &entry["cases"], &entry["simulator"]["cases"]), (&1.into(), &2.into(), &2.into()));
    // An invalid manifest does not hide the others.
    fs::write(folder.path().join("experiments/broken.toml"), "[experiment]\n").unwrap();
    expect(&folder, &["list"], 2, &["broken.toml", "scale           2"]);
}

/// The committed reports have 420 cases of the H100 and 228 of the simulator, which has sizes of its own.
#[test]
fn a_list_counts_the_cases_of_a_run_on_a_gpu_and_on_the_simulator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = |options: &[&str]| {
        let words = ["list", "experiments/reduce.toml", "experiments/warp_primitives.toml"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let output = command.current_dir(root).args(words).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let reported = |device: &str| {
        let records = root.join("reports/reduce").join(device).join("records.jsonl");
        runner_results::journal::read_records(&records).unwrap().cases.len()
    };
    let [gpu, simulator] = ["nvidia-h100-80gb-hbm3", "simulated-h100"].map(reported);
    let lines: Vec<Value> = list(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["cases"], &lines[0]["simulator"]["cases"]), (&gpu.into(), &simulator.into()));
    assert_eq!(lines[0]["simulator"]["axes"][0]["values"], serde_json::json!([16_384, 65_536, 262_144]));
    let text = list(&[]);
    assert!(text.contains(&format!("on the simulator {simulator} cases: n = 16384, 2^16, 2^18\n")), "{text}");
    // The experiments that are the same on both have no such line.
    assert_eq!(text.matches("on the simulator").count(), 1, "{text}");
}

const UPDATES: &str = "\
__global__ void plain(int n, float a, float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
__global__ void twice(int n, float a, float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * a * x[i] + y[i]; }
__global__ void adds(int n, float a, float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(&y[i], a * x[i]); }
__device__ void add(float *y, float x) { atomicAdd(y, x); }
__global__ void passes_on(int n, float a, float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) add(y + i, a * x[i]); }
__global__ void transpose(const float *in, float *out, int rows, int columns)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}
";

/// Arguments of `runner try` for kernels of `k.cu`.
fn attempt<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&TRY[..], &["k.cu"], arguments].concat()
}

#[test]
fn a_kernel_that_updates_a_buffer_is_compared_with_what_the_buffer_held() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.cu"), UPDATES).unwrap();
    let right = ["x = f32[n], input, uniform", "y = f32[n], input and output, uniform", "2 of 2 cases"];
    expect(&folder, &attempt(&["-k", "plain", "-k", "adds"]), 0, &right);
    expect(&folder, &attempt(&["-k", "plain", "-k", "twice"]), 1, &["1024 of 1024 elements are wrong"]);
    // The pointer is passed on to a function of the file.
    expect(
        &folder,
        &attempt(&["-k", "plain", "-k", "passes_on"]),
        0,
        &["y = f32[n], input and output", "2 of 2 cases"],
    );
    let square = ["out = f32[n * columns], output", "1 of 1 case ran", "name a second kernel"];
    expect(&folder, &["try", "--backend", "sim", "--n", "50", "k.cu", "-k", "transpose"], 0, &square);
}

/// Kernels, and copies of them that differ in one place.
const PAIRS: &str = "\
__global__ void axpby(int n, float a, float b, const float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + b * y[i]; }
__global__ void axpby_swapped(int n, float a, float b, const float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = b * x[i] + a * y[i]; }
__global__ void axpby_short(int n, float a, float b, const float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n - 1) y[i] = a * x[i] + b * y[i]; }
__global__ void axpby_fma(int n, float a, float b, const float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = fmaf(a, x[i], b * y[i]); }
__global__ void relu(const float *x, float *y, bool leaky, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] > 0 ? x[i] : (leaky ? 0.01f * x[i] : 0.f); }
__global__ void relu_not(const float *x, float *y, bool leaky, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] > 0 || leaky ? x[i] : 0; }
__global__ void add_row(const float *in, const float *bias, float *out, int rows, int cols)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < cols && y < rows) out[y * cols + x] = in[y * cols + x] + bias[x];
}
__global__ void add_row_mixed_up(const float *in, const float *bias, float *out, int rows, int cols)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < rows && y < cols) out[y * rows + x] = in[y * rows + x] + bias[x];
}
__global__ void sum_rows(const float *x, float *sums, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = 0; i < columns; i++) sum += x[row * columns + i];
    sums[row] = sum;
}
__global__ void sum_rows_back(const float *x, float *sums, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = columns - 1; i >= 0; i--) sum += x[row * columns + i];
    sums[row] = sum;
}
";

#[test]
fn inputs_by_default_tell_wrong_kernels_from_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.cu"), PAIRS).unwrap();
    let compare = |old: &str, new: &str, code: i32, answer: &str| {
        let arguments = ["try", "--backend", "sim", "k.cu", "-k", old, "-k", new];
        let (ended, out, error) = run(&folder, &arguments);
        assert_eq!(ended, Some(code), "{old} {new}: {out}{error}");
        assert!(out.lines().last().is_some_and(|last| last.starts_with(answer)), "{old} {new}: {out}{error}");
    };
    compare("axpby", "axpby_swapped", 1, "`axpby_swapped` is wrong in 65,5");
    compare("axpby", "axpby_short", 1, "`axpby_short` is wrong in 1 of 65,521 elements.");
    compare("axpby", "axpby_fma", 0, "`axpby_fma` is right and does ");
    compare("relu", "relu_not", 1, "`relu_not` is wrong in ");
    compare("add_row", "add_row_mixed_up", 1, "`add_row_mixed_up` is wrong in ");
    compare("sum_rows", "sum_rows_back", 0, "`sum_rows_back` is right and does ");
}

#[test]
fn the_file_itself_says_how_its_kernels_are_launched_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let reverse = |name: &str, shared: &str| {
        format!(
            "__global__ void {name}(int *d, int n)\n{{ {shared}\nint t = threadIdx.x; s[t] = d[t]; __syncthreads(); \
             d[t] = s[n - t - 1]; }}\n"
        )
    };
    let file = format!(
        "namespace mine {{ namespace {{\n{}{}}} }}\n__global__ void other(float *x) {{ *x = 1; }}\n\
         int main() {{ const int n = 96; int *d; cudaMalloc(&d, n * sizeof(int));\n\
         mine::fixed<<<1, n>>>(d, n);\nmine::dynamic<<<1, n, n * sizeof(int)>>>(d, n); }}\n",
        reverse("fixed", "__shared__ int s[96];"),
        reverse("dynamic", "extern __shared__ int s[];")
    );
    fs::write(folder.path().join("k.cu"), file).unwrap();
    let said = [
        "d = i32[n], input and output",
        "mine::fixed: block, grid from the launch at k.cu:11",
        "mine::dynamic: block, grid, shared memory from the launch at k.cu:12",
        "left out because of their parameters or names: other; name kernels of k.cu with -k",
        "`mine::dynamic` is right and does ",
    ];
    expect(&folder, &["try", "--backend", "sim", "k.cu"], 0, &said);
    let overloads = "__global__ void add(const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i] + 1; }\n\
                     __global__ void add(const double *x, double *y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i] + 2; }\n\
                     __global__ void elsewhere(float *x);\n";
    fs::write(folder.path().join("o.cu"), overloads).unwrap();
    fs::write(folder.path().join("p.cu"), "__global__ void elsewhere(float *x) { *x = 1; }").unwrap();
    let several = ["o.cu has several kernels `add`", "-k 'add(const double *, double *, int)'"];
    expect(&folder, &["try", "--backend", "sim", "o.cu", "-k", "add"], 2, &several);
    let double = ["y = f64[256], output", "1 of 1 case ran"];
    expect(&folder, &["try", "--backend", "sim", "o.cu", "-k", "add(const double*, double*, int)"], 0, &double);
    let declared = ["o.cu only declares `elsewhere`; p.cu defines it: `runner try p.cu`"];
    expect(&folder, &["try", "--backend", "sim", "o.cu", "-k", "elsewhere"], 2, &declared);
}

#[test]
fn headers_macros_and_shared_memory_are_options() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inc")).unwrap();
    fs::write(folder.path().join("inc/half.h"), "#define HALF 0.5f\n").unwrap();
    let file = "#include \"half.h\"\n__global__ void k(const float *x, float *y, int n)\n\
                { extern __shared__ float s[]; int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                s[threadIdx.x * STEP] = 0; if (i < n) y[i] = HALF * x[i] + s[threadIdx.x * STEP]; }\n";
    fs::write(folder.path().join("k.cu"), file).unwrap();
    let attempt = |options: &[&'static str]| [&TRY[..], &["k.cu"], options].concat();
    expect(&folder, &attempt(&["-D", "STEP=2"]), 1, &["half.h", "`runner try`: -I DIR", "`k` does not compile."]);
    let defined = ["-I", "inc", "-D", "STEP=2", "--shared", "8 * block"];
    expect(&folder, &attempt(&defined), 0, &["1 of 1 case ran"]);
    let small = ["it has 4 bytes", "`runner try`: --shared BYTES"];
    expect(&folder, &attempt(&["-I", "inc", "-D", "STEP=2", "--shared", "4"]), 1, &small);
    expect(&folder, &attempt(&["-I", "nowhere", "-D", "STEP=2"]), 2, &["--include-path nowhere", "name a folder"]);
}

#[test]
fn the_kernels_of_a_file_run_though_its_host_half_does_not_compile() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("src")).unwrap();
    let file = "#include <framework/tensor.h>\n#include \"types.h\"\n\
                static Tensor<float> cache;\n__device__ void scale(real *to, const real *from, int i) { to[i] = FACTOR * from[i]; }\n\
                __global__ void k(const real *x, real *y, Range range) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                if (i < range.count) scale(y + range.begin, x, i); }\n\
                Tensor<float> run(const Tensor<float> &x) { CHECK(x); k<<<1, 64>>>(x.data(), cache.data(), {}); return cache; }\n";
    fs::write(folder.path().join("src/k.cu"), file).unwrap();
    let attempt = ["try", "--backend", "sim", "src/k.cu", "--arg", "y=n"];
    // Without the header of its checkout, a type has no definition.
    let undefined = ["parameter `const real *x` of k has a type that no file here defines", "-D real=float"];
    expect(&folder, &attempt, 2, &undefined);
    fs::create_dir_all(folder.path().join(".git")).unwrap();
    fs::create_dir_all(folder.path().join("lib/include")).unwrap();
    let header = "typedef float real;\n#define FACTOR 2\nstruct Range { int begin, count; };\n";
    fs::write(folder.path().join("lib/include/types.h"), header).unwrap();
    let found = [
        "types.h is found in ",
        "range = { begin = 3, count = 53 }",
        "x = f32[53], input",
        "y = f32[n], output",
        "k: block from the launch at src/k.cu:7",
        "1 of 1 case ran",
    ];
    expect(&folder, &attempt, 0, &found);
}

#[test]
fn the_kernels_run_though_a_class_of_the_host_and_a_header_in_a_header_do_not_compile() {
    let folder = tempfile::tempdir().unwrap();
    let file = "#include \"loss.h\"\nusing namespace framework;\n\
                class Operator { StopWatch *timer; Operator() { cudaStreamCreate(nullptr); start(&timer); } };\n\
                static float half_of(float);\n__device__ float twice(float x) { return 2 * x; }\n\
                __global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                if (i < n) y[i] = twice(x[i]); }\n\
                void Loss::run(Tensor x) { k<<<1, 64>>>(x.data(), x.data(), 64); }\n";
    for (name, text) in [
        ("k.cu", file),
        ("loss.h", "#include \"blob.h\"\nnamespace framework { struct Loss { void run(Tensor x); }; }\n"),
        ("blob.h", "#include <absent_framework.h>\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    expect(&folder, &[&TRY[..], &["k.cu"]].concat(), 0, &["`k` ran without a fault"]);
    // Code that a kernel uses is not left out.
    fs::write(folder.path().join("k.cu"), file.replace("twice(x[i])", "twice(x[i]) + Blob::size")).unwrap();
    expect(&folder, &[&TRY[..], &["k.cu"]].concat(), 1, &["absent_framework.h: No such file or directory"]);
}

#[test]
fn a_launch_of_more_threads_than_can_be_simulated_is_as_large_as_the_first_size() {
    let folder = tempfile::tempdir().unwrap();
    let file = "__global__ void k(float *c, const float *a) { int i = blockIdx.x * blockDim.x + threadIdx.x; c[i] = 2 * a[i]; }\n\
                int main() { int size = 1 << 24; float *d; cudaMalloc(&d, size * sizeof(float)); k<<<size / 256, 256>>>(d, d); }\n";
    fs::write(folder.path().join("k.cu"), file).unwrap();
    let (code, out, error) = run(&folder, &["try", "--backend", "sim", "k.cu"]);
    assert_eq!(code, Some(0), "{out}{error}");
    // 240 blocks of 256 threads are the simulator's 61,440 elements.
    assert!(out.lines().any(|line| line.split_whitespace().take(4).eq(["k", "unchecked", "240", "256"])), "{out}");
}

#[test]
fn a_first_kernel_that_reads_too_far_is_shown_with_options_by_which_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    // The text shows neither whether `other` is read nor how far `x` is read.
    let file = "__global__ void k(const float *x, float *other, float *y, int n)\n\
                { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                if (i < n) { size_t a = (size_t)other; float *p = (float *)a; int j = i;\n\
                for (int k = 0; k < 3; k++) j += (k == 1) * (n / 2); y[i] = x[j] + p[i]; } }\n";
    fs::write(folder.path().join("k.cu"), file).unwrap();
    let said = ["`k` fails (trap).", "With --arg other=in --arg 'x=2*n' it runs without a fault."];
    expect(&folder, &["try", "--backend", "sim", "k.cu", "--arg", "x=n"], 1, &["`k` fails (trap)."]);
    expect(&folder, &["try", "--backend", "sim", "k.cu"], 1, &said);
    let options = ["try", "--backend", "sim", "k.cu", "--arg", "other=in", "--arg", "x=2*n"];
    expect(&folder, &options, 0, &["1 of 1 case ran"]);
    // The text does not show how many threads may use the array.
    let file = "__global__ void k(const float *x, float *y, int n) { __shared__ float s[64]; float *p = s;\n\
                int i = blockIdx.x * blockDim.x + threadIdx.x; p += threadIdx.x; *p = i < n ? x[i] : 0; if (i < n) y[i] = *p; }\n";
    fs::write(folder.path().join("k.cu"), file).unwrap();
    expect(&folder, &[&TRY[..], &["k.cu"]].concat(), 1, &["With --block 64 it runs without a fault."]);
    expect(&folder, &[&TRY[..], &["k.cu", "--block", "64"]].concat(), 0, &["1 of 1 case ran"]);
}

#[test]
fn a_launch_that_the_device_does_not_allow_fails_the_trial_and_is_its_last_line() {
    let folder = folder();
    let (code, out, error) = run(&folder, &[&TRY[..], &["scale.cu", "-k", "old", "--block", "2048"]].concat());
    assert_eq!(code, Some(1), "{out}{error}");
    let last = out.lines().last().unwrap_or_default();
    assert!(last.starts_with("`old` did not run: ") && last.ends_with("--block, --grid or --n."), "{out}");
    // One refused launch of two is enough.
    let blocks = ["-k", "old", "-k", "strided", "--block", "256", "--block", "2048"];
    let (code, out, error) = run(&folder, &[&TRY[..], &["scale.cu"], &blocks].concat());
    assert_eq!(code, Some(1), "{out}{error}");
    assert!(out.lines().last().unwrap_or_default().starts_with("`strided` did not run: "), "{out}");
}

const SUM: &str = r"#include <stdio.h>
#define SCALE 3
static float scaled(float x) { return SCALE * x; }
void sum_cpu(const float *a, const float *b, float *c, int n)
{
    for (int i = 0; i < n; i++) c[i] = scaled(a[i]) + b[i];
}
__global__ void sum(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = SCALE * a[i] + b[i];
}
int main() { float *a; cudaMalloc(&a, 4); sum<<<1, 1>>>(a, a, a, 1); sum_cpu(a, a, a, 1); }
";

#[test]
fn a_host_function_with_the_same_parameters_is_the_reference_if_host_code_is_allowed() {
    let folder = folder();
    fs::write(folder.path().join("sum.cu"), SUM).unwrap();
    fs::write(folder.path().join("wrong.cu"), SUM.replace("SCALE * a[i] + b[i]", "SCALE * a[i] - b[i]")).unwrap();
    let attempt = |file: &str, code: i32, words: &[&str]| {
        let allow: &[&str] = if words[0].contains("--allow") { &[] } else { &["--allow-host-code"] };
        expect(&folder, &[&TRY[..], &[file], allow].concat(), code, words);
    };
    attempt("sum.cu", 0, &["sum_cpu, sum.cu:4, takes the same parameters: --allow-host-code uses it as the reference"]);
    attempt("sum.cu", 0, &["checked against sum_cpu, sum.cu:4", "`sum` is right: it matches the reference."]);
    attempt("wrong.cu", 1, &["checked against sum_cpu, wrong.cu:4", "`sum` is wrong in 1,0"]);
    // A saved manifest has its reference next to it.
    expect(&folder, &["init", "sum.cu", "--out", "s.toml"], 0, &["wrote s_reference.cpp", "wrote s.toml"]);
    expect(&folder, &["run", "s.toml", "--backend", "sim", "--allow-host-code"], 0, &["1 of 1 case passed"]);
}

#[test]
fn kernels_of_several_files_are_compared_without_naming_them() {
    let folder = folder();
    fs::write(folder.path().join("sum.cu"), SUM).unwrap();
    fs::write(folder.path().join("other.cu"), SUM.replace("SCALE * a[i] + b[i]", "b[i] + SCALE * a[i]")).unwrap();
    fs::write(folder.path().join("wrong.cu"), SUM.replace("SCALE * a[i] + b[i]", "a[i] + b[i]")).unwrap();
    expect(&folder, &[&TRY[..], &["sum.cu", "other.cu"]].concat(), 0, &["`other:sum` is right and does 1.00×"]);
    let (code, out, error) = run(&folder, &[&TRY[..], &["sum.cu", "wrong.cu"]].concat());
    assert_eq!(code, Some(1), "{out}{error}");
    assert!(out.lines().last().unwrap_or_default().starts_with("`wrong:sum` is wrong in "), "{out}");
}
