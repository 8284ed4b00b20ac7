//! Checks that drafts are valid manifests.

use std::path::Path;
use std::sync::Arc;

use super::{Draft, Request, Wanted};
use runner_cuda_source::kernel_file::KernelFile;
use runner_types::SourceText;

const SOURCE: &str = "
__global__ void old(const float *in, float *out, unsigned n) {}
__global__ void renamed(float *x, float *y, unsigned count) {}
__global__ void fewer(const float *in, float *out) {}
__global__ void doubles(const double *in, double *out, unsigned n) {}
__global__ void vectors(const float4 *in, float4 *out, unsigned n) {}
__global__ void structs(Config config, Thing *things, float &r, float4 v) {}
template <typename T, int N = 4> __global__ void generic(const T *in, T *out, unsigned n) {}
__global__ void saxpy(int n, float a, float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
__global__ void transpose(const float *in, float *out, int rows, int columns)
{ int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x]; }
__global__ void batched(const float *in, float *out, int n) { out[blockIdx.y * n + threadIdx.x] = in[blockIdx.y]; }
__global__ void volume(const float *in, float *out, int n) { out[threadIdx.z] = in[0]; }
template <int N> __global__ void needs(const float *in, float *out, unsigned n) {}
";

/// Drafts a manifest for these kernels, without and with comments.
fn draft(kernels: &[&str], change: impl FnOnce(&mut Request)) -> Result<[String; 2], Vec<String>> {
    draft_of(SOURCE, kernels, change)
}

fn draft_of(source: &str, kernels: &[&str], change: impl FnOnce(&mut Request)) -> Result<[String; 2], Vec<String>> {
    let dir = tempfile::tempdir().map_err(|error| vec![error.to_string()])?;
    let path = dir.path().join("k.cu");
    std::fs::write(&path, source).map_err(|error| vec![error.to_string()])?;
    let KernelFile { kernels: known, host, .. } =
        KernelFile::read(&path, &[], &[]).map_err(|error| vec![error.to_string()])?;
    let wanted = |kernel: &&str| {
        let name = kernel.split('<').next().unwrap_or_default();
        let signature = known.iter().find(|signature| signature.name == name)?.clone();
        let launch = host.launches.iter().find(|launch| launch.kernel == name).cloned();
        let (source, constants) = (path.display().to_string(), host.constants.clone());
        let (file, kernel) = ("k.cu".into(), (*kernel).into());
        Some(Wanted { source, file, kernel, signature, constants, launch, launched_in: None })
    };
    let mut request =
        Request { name: "k".into(), kernels: kernels.iter().filter_map(wanted).collect(), ..Request::default() };
    change(&mut request);
    let draft = Draft::new(&request)?;
    let texts = [draft.text(), draft.commented()];
    for text in &texts {
        let source = SourceText { path: Path::new("k.toml").to_owned(), text: text.clone() };
        crate::parse_within(&Arc::new(source), runner_files::project::Project::everywhere())
            .map_err(|faults| vec![format!("{}\n{text}", faults.render_within(false, None))])?;
    }
    Ok(texts)
}

#[track_caller]
fn refused(kernels: &[&str], arguments: &[&str], words: &[&str]) {
    let faults = draft(kernels, |request| request.arguments = arguments.iter().map(|a| (*a).to_owned()).collect());
    let faults = faults.err().unwrap_or_default().join("\n");
    for word in words {
        assert!(faults.contains(word), "`{word}` is not in: {faults}");
    }
}

#[test]
fn parameters_become_buffers_and_numbers_and_outputs_are_compared() {
    let texts = draft(&["old", "renamed"], |request| request.n = vec!["2**10".into()]);
    let [text, commented] = texts.unwrap_or_else(|faults| [String::new(), faults.join("\n")]);
    for part in [
        "n = { int = [\"2**10\"] }",
        "[buffers.input]\ntype   = \"f32\"\nlen    = \"n\"\nfill   = { uniform = [-1, 2], seed = 1 }\naccess = \"in\"",
        "[buffers.out]\ntype   = \"f32\"\nlen    = \"n\"\naccess = \"out\"",
        "[[check]]\nactual = \"out\"\nexpect = { variant = \"old\" }",
        "kernel = \"renamed\"\nlet    = { block = \"256\" }\ngrid   = [\"ceil_div(n, block)\"]",
        "args   = [\"input\", \"out\", \"u32(n)\"]",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}{commented}");
    }
    assert!(commented.contains("question =") && commented.contains("# bytes = \"4 * (n) + 4 * (n)\""), "{commented}");
}

#[test]
fn templates_vectors_and_options_are_understood() {
    let drafted =
        |kernels: &[&str], change: fn(&mut Request)| draft(kernels, change).map_or_else(|f| f.join("\n"), |[t, _]| t);
    let text = drafted(&["generic<double>", "doubles"], |_| {});
    assert!(text.contains("type   = \"f64\"") && text.contains("kernel = \"generic<double>\""), "{text}");
    let text = drafted(&["old", "vectors"], |request| {
        request.grid = vec!["ceil_div(n, block)".into(), "ceil_div(n, 4 * block)".into()];
    });
    assert!(text.contains("grid   = [\"ceil_div(n, 4 * block)\"]"), "{text}");
    let text = drafted(&["old", "old"], |request| {
        request.block = vec!["128".into(), "32,8".into()];
        request.grid = vec!["n / 128".into(), "1, ceil_div(n, 256)".into()];
        request.arguments = vec!["in=i32:iota:2*n".into(), "n=n - 1".into()];
        request.tolerance = Some(1e-3);
    });
    for part in [
        "name   = \"old-2\"",
        "block  = [\"32\", \"8\"]",
        "type   = \"i32\"\nlen    = \"2*n\"\nfill   = \"iota\"",
        "u32(n - 1)",
        "rel = 0.001",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}");
    }
    let alone = drafted(&["fewer"], |_| {});
    assert!(!alone.contains("check") && alone.contains("[on.sim.axes]\nn = { int = [\"2**16 - 2**12\"] }"), "{alone}");
}

#[test]
fn what_a_kernel_reads_first_has_a_content_and_what_it_only_reads_is_no_output() {
    let [text, _] = draft(&["saxpy", "saxpy"], |_| {}).unwrap_or_default();
    for part in [
        "[buffers.x]\ntype   = \"f32\"\nlen    = \"n\"\nfill   = { uniform = [-1, 2], seed = 3 }\naccess = \"in\"",
        "[buffers.y]\ntype   = \"f32\"\nlen    = \"n\"\nfill   = { uniform = [-1, 2], seed = 4 }\naccess = \"inout\"",
        "[[check]]\nactual = \"y\"",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}");
    }
    // An explicit request takes precedence.
    let [text, _] = draft(&["saxpy"], |request| request.arguments = vec!["y=out".into()]).unwrap_or_default();
    assert!(text.contains("access = \"out\"") && !text.contains("inout"), "{text}");
}

#[test]
fn sizes_differ_and_buffers_are_as_long_as_the_kernels_reach() {
    let [text, _] = draft(&["transpose"], |_| {}).unwrap_or_default();
    for part in [
        "[axes]\nn = { int = [\"2**12 - 3\"] }\n\n[on.sim.axes]\nn = { int = [\"2**8 - 5\"] }\n\n[let]\ncolumns = \"n + n / 8 + 1\"",
        "[buffers.input]\ntype   = \"f32\"\nlen    = \"n * columns\"",
        "[buffers.out]\ntype   = \"f32\"\nlen    = \"n * columns\"",
        "grid   = [\"ceil_div(columns, 16)\", \"ceil_div(n, 16)\"]\nblock  = [\"16\", \"16\"]",
        "args   = [\"input\", \"out\", \"i32(n)\", \"i32(columns)\"]",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}");
    }
    let [text, _] = draft(&["transpose"], |request| request.block = vec!["32,8".into()]).unwrap_or_default();
    assert!(text.contains("grid   = [\"ceil_div(columns, 32)\", \"ceil_div(n, 8)\"]"), "{text}");
    // If the user sets one size, the other sizes and the lengths follow.
    let [text, _] =
        draft(&["transpose"], |request| request.arguments = vec!["columns=3 * n".into()]).unwrap_or_default();
    assert!(text.contains("len    = \"n * (3 * n)\"") && text.contains("ceil_div((3 * n), 16)"), "{text}");
    let given = draft(&["volume"], |request| {
        (request.block, request.grid) = (vec!["8,8,4".into()], vec!["1,1,1".into()]);
    });
    assert!(given.is_ok_and(|[text, _]| text.contains("block  = [\"8\", \"8\", \"4\"]")));
}

#[test]
fn a_launch_in_the_source_gives_what_the_text_of_the_kernel_does_not() {
    let source = "#define TILE 16
template <int B> __global__ void scale(float *x, const float *y, float a, int n)
{ extern __shared__ float s[]; int i = blockIdx.x * B + threadIdx.x; s[threadIdx.x] = y[i]; if (i < n) x[i] = a * s[threadIdx.x]; }
int main() {
    int count = 1 << 20; size_t bytes = (count + 64) * sizeof(float);
    float *d_x, *d_y; cudaMalloc(&d_x, count * sizeof(float)); cudaMalloc(&d_y, bytes);
    scale<TILE * 8><<<(count + 127) / 128, TILE * 8, 128 * sizeof(float)>>>(d_x, d_y, 0.3f, count);
}";
    let [text, _] =
        draft_of(source, &["scale<128>"], |_| {}).unwrap_or_else(|faults| [String::new(), faults.join("\n")]);
    for part in [
        "let    = { block = \"128\" }\ngrid   = [\"ceil_div(n, 128)\"]",
        "shared = \"512\"",
        "args   = [\"x\", \"y\", \"f32(0.3)\", \"i32(n)\"]",
        "[buffers.y]\ntype   = \"f32\"\nlen    = \"n + 64\"",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}");
    }
}

#[test]
fn numbers_differ_from_each_other_and_bools_have_both_values() {
    let source = "__global__ void mix(float *y, const float *x, float a, float b, bool flip, int seed, int n, float4 c)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = flip ? a * x[i] + seed : b * x[i] + c.x; }";
    let [text, _] = draft_of(source, &["mix"], |_| {}).unwrap_or_default();
    for part in [
        "\nflip = [0, 1]\n",
        "\"f32(0.375)\", \"f32(0.625)\", \"u8(flip)\", \"i32(3)\", \"i32(n)\", [\"f32(0.375)\", \"f32(0.625)\", \"f32(0.75)\", \"f32(0.875)\"]]",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}");
    }
}

#[test]
fn a_size_that_no_guard_limits_is_a_multiple_of_the_block() {
    let of = |body: &str| {
        let source = format!(
            "__global__ void k(float *y, const float *x, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}"
        );
        draft_of(&source, &["k"], |_| {}).unwrap_or_default()[0].clone()
    };
    assert!(of("if (i < n) y[i] = x[i];").contains("\"2**24 - 3\""));
    let one = draft_of(
        "__global__ void k(float *y, const float *x, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i]; }",
        &["k"],
        |_| {},
    );
    assert!(one.is_ok_and(|[text, _]| text.contains("grid   = [\"1\"]") && text.contains("len    = \"256\"")));
    assert!(of("y[i] = x[n - 1 - i];").contains("\"2**24 - 2**12\""));
    assert!(
        of("if (i < n / 4) reinterpret_cast<float4 *>(y)[i] = ((const float4 *)x)[i];").contains("\"2**24 - 2**12\"")
    );
}

#[test]
fn what_is_not_understood_is_named_with_the_option_to_use() {
    refused(&["old", "fewer"], &[], &["different numbers of parameters", "`old` takes 3", "`fewer` takes 2"]);
    refused(
        &["old", "doubles"],
        &[],
        &["parameter 1 has different types: `const float *in` in old, `const double *in` in doubles"],
    );
    refused(&["needs", "old"], &[], &["`needs` is a template <int N>", "-k 'needs<4>'"]);
    refused(&["generic", "old"], &[], &["-k 'generic<float, 4>'"]);
    refused(&["old<3>"], &[], &["`old` is not a template"]);
    let structs = ["-D Config=float", "-D Thing=float", "is a reference"];
    refused(&["structs"], &[], &structs);
    refused(&["old"], &["inn=in"], &["no kernel has a parameter `inn`; did you mean `in`?"]);
    refused(&["old"], &["n"], &["--arg n: expected NAME=VALUE"]);
    refused(&["old"], &["n=out"], &["`unsigned n` is a number"]);
    refused(&["old", "old"], &["out=in"], &["no parameter is an output", "--arg NAME=out"]);
}

const RECORDS: &str = "
struct Box { int left, width; float scale; float3 color; bool on; };
struct Point { float x, y; };
struct View { Point *points; Box box; float weights[4]; };
__global__ void paint(const Point *in, Point *out, Box box, View view, float unused)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < box.width) { out[i].x = box.scale * in[i].x + view.weights[0]; } }
__global__ void look(cudaTextureObject_t image, cudaTextureObject_t volume, float4 *out, int w, int h)
{ int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) out[y * w + x] = tex2D<float4>(image, x, y) + tex3D<float>(volume, x, y, 0); }
template <typename T, int TILE, bool Fast = false> __global__ void guessed(const T *in, T *out, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = in[i]; }
__global__ void bytes(char *data, char value, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) data[i] = value; }
";

#[test]
fn structs_and_textures_have_a_value_for_each_field() {
    let [text, why] = draft_of(RECORDS, &["paint"], |_| {}).unwrap_or_else(|faults| [String::new(), faults.join("\n")]);
    for part in [
        // A point has two floats, and there are as many points as the box is wide.
        "[buffers.input]\ntype   = \"f32\"\nlen    = \"106\"",
        "[buffers.view_points]\ntype   = \"f32\"\nlen    = \"n * 2\"",
        "grid   = [\"ceil_div(53, block)\"]",
        "{ left = \"i32(3)\", width = \"i32(53)\", scale = \"f32(0.75)\", color = { x = \"f32(0.375)\", y = \"f32(0.625)\", \
         z = \"f32(0.75)\" }, on = \"u8(1)\" }",
        "weights = { of = \"f32(0.75)\", count = 4 }",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}{why}");
    }
    let [text, why] = draft_of(RECORDS, &["look"], |_| {}).unwrap_or_else(|faults| [String::new(), faults.join("\n")]);
    for part in [
        "[buffers.image]\ntype   = \"float4\"\nlen    = \"320 * 240\"",
        "{ texture = \"volume\", size = [\"48\", \"40\", \"32\"], kind = \"3d\" }",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}{why}");
    }
    let [text, why] = draft_of(RECORDS, &["bytes"], |_| {}).unwrap_or_else(|faults| [String::new(), faults.join("\n")]);
    assert!(text.contains("\"i8(3)\""), "{text}{why}");
}

#[test]
fn templates_get_arguments_that_their_names_suggest() -> Result<(), Vec<String>> {
    let dir = tempfile::tempdir().map_err(|error| vec![error.to_string()])?;
    let path = dir.path().join("k.cu");
    std::fs::write(&path, RECORDS).map_err(|error| vec![error.to_string()])?;
    let known = KernelFile::read(&path, &[], &[]).map_err(|error| vec![error.to_string()])?.kernels;
    let guessed = known.iter().find(|kernel| kernel.name == "guessed").ok_or_else(Vec::new)?;
    assert_eq!(super::template_guess(guessed, &[]), ["float", "16", "false"]);
    // The `T` of the launching function means nothing here.
    assert_eq!(super::template_guess(guessed, &["T".into(), "8".into(), "true".into()]), ["float", "8", "true"]);
    assert_eq!(super::template_guess(guessed, &["double".into()]), ["double", "16", "false"]);
    Ok(())
}

#[test]
fn a_block_keeps_to_the_bound_of_its_kernel_and_a_small_grid_has_a_block() {
    let source = "#define MOST 128\n\
                  __launch_bounds__(MOST) __global__ void one(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n\
                  __global__ void __launch_bounds__(64) two(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                  int j = blockIdx.y * blockDim.y + threadIdx.y; if (i < n && j < n) x[j * n + i] = 1; }\n\
                  __global__ void few(float *x, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) x[i] = 1; }\n\
                  int main() { int n = 1 << 24; float *d; cudaMalloc(&d, n * 4); few<<<n / 65536, 256>>>(d, n); }\n";
    let text =
        |kernel: &str| draft_of(source, &[kernel], |_| {}).map_or_else(|faults| faults.join("\n"), |[text, _]| text);
    assert!(text("one").contains("let    = { block = \"128\" }"), "{}", text("one"));
    assert!(text("two").contains("block  = [\"8\", \"8\"]"), "{}", text("two"));
    assert!(text("few").contains("grid   = [\"max(1, n / 65536)\"]"), "{}", text("few"));
}

#[test]
fn a_small_size_of_the_file_does_not_divide_by_zero_and_a_huge_length_is_not_taken() -> Result<(), Vec<String>> {
    let source = "__global__ void spread(float *x, int n) { for (int i = 0; i < n; i++) x[blockIdx.x * 79190 + i] = 1; }\n\
                  __global__ void huge(float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 100000000) y[i] = 1; }\n\
                  int main() { float *x; int n = 5; spread<<<4, 64>>>(x, n); cudaMalloc(&x, 100000000 * sizeof(float));\n\
                  huge<<<781250, 128>>>(x); }\n";
    draft_of(source, &["spread"], |_| {})?;
    let [text, _] = draft_of(source, &["huge"], |_| {})?;
    // As long as the grid reaches, which covers a part of the file's elements.
    assert!(text.contains("len    = \"n * n\"") && text.contains("ceil_div(n * n, block)"), "{text}");
    Ok(())
}
