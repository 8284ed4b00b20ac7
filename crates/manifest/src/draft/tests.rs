//! Drafts are read back as manifests.

use std::path::Path;
use std::sync::Arc;

use super::{Draft, Request, Wanted};
use runner_cuda_source::signature::signatures;
use runner_types::SourceText;

const SOURCE: &str = "
__global__ void old(const float *in, float *out, unsigned n) {}
__global__ void renamed(float *x, float *y, unsigned count) {}
__global__ void fewer(const float *in, float *out) {}
__global__ void doubles(const double *in, double *out, unsigned n) {}
__global__ void vectors(const float4 *in, float4 *out, unsigned n) {}
__global__ void structs(Config config, Thing *things, float &r, float4 v) {}
template <typename T, int N = 4> __global__ void generic(const T *in, T *out, unsigned n) {}
__global__ void saxpy(int n, float a, float *x, float *y) { int i = threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
__global__ void transpose(const float *in, float *out, int rows, int columns)
{ int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; out[x * rows + y] = in[y]; }
__global__ void batched(const float *in, float *out, int n) { out[blockIdx.y * n + threadIdx.x] = in[blockIdx.y]; }
__global__ void volume(const float *in, float *out, int n) { out[threadIdx.z] = in[0]; }
template <int N> __global__ void needs(const float *in, float *out, unsigned n) {}
";

/// Draft for kernels of the source, as text without and with comments.
fn draft(kernels: &[&str], change: impl FnOnce(&mut Request)) -> Result<[String; 2], Vec<String>> {
    let dir = tempfile::tempdir().map_err(|error| vec![error.to_string()])?;
    let path = dir.path().join("k.cu");
    std::fs::write(&path, SOURCE).map_err(|error| vec![error.to_string()])?;
    let known = signatures(&path).map_err(|error| vec![error.to_string()])?;
    let wanted = |kernel: &&str| {
        let name = kernel.split('<').next().unwrap_or_default();
        let signature = known.iter().find(|signature| signature.name == name)?.clone();
        Some(Wanted { source: path.display().to_string(), file: "k.cu".into(), kernel: (*kernel).into(), signature })
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
        "[buffers.input]\ntype   = \"f32\"\nlen    = \"n\"\nfill   = { uniform = [0, 1] }\naccess = \"in\"",
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
    assert!(!alone.contains("check") && alone.contains("[on.sim.axes]\nn = { int = [\"2**16\"] }"), "{alone}");
}

#[test]
fn what_a_kernel_reads_first_has_a_content_and_what_it_only_reads_is_no_output() {
    let [text, _] = draft(&["saxpy", "saxpy"], |_| {}).unwrap_or_default();
    for part in [
        "[buffers.x]\ntype   = \"f32\"\nlen    = \"n\"\nfill   = { uniform = [0, 1] }\naccess = \"in\"",
        "[buffers.y]\ntype   = \"f32\"\nlen    = \"n\"\nfill   = { uniform = [0, 1] }\naccess = \"inout\"",
        "[[check]]\nactual = \"y\"",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}");
    }
    // An explicit request wins.
    let [text, _] = draft(&["saxpy"], |request| request.arguments = vec!["y=out".into()]).unwrap_or_default();
    assert!(text.contains("access = \"out\"") && !text.contains("inout"), "{text}");
}

#[test]
fn kernels_of_two_dimensions_get_a_square_and_those_of_three_are_refused() {
    let [text, _] = draft(&["transpose"], |_| {}).unwrap_or_default();
    for part in [
        "[axes]\nn = { int = [\"2**12\"] }\n\n[on.sim.axes]\nn = { int = [\"2**8\"] }",
        "[buffers.out]\ntype   = \"f32\"\nlen    = \"n * n\"",
        "grid   = [\"ceil_div(n, 16)\", \"ceil_div(n, 16)\"]\nblock  = [\"16\", \"16\"]",
        "args   = [\"input\", \"out\", \"i32(n)\", \"i32(n)\"]",
    ] {
        assert!(text.contains(part), "{part}\nis not in:\n{text}");
    }
    let [text, _] = draft(&["transpose"], |request| request.block = vec!["32,8".into()]).unwrap_or_default();
    assert!(text.contains("grid   = [\"ceil_div(n, 32)\", \"ceil_div(n, 8)\"]"), "{text}");
    let [text, _] = draft(&["batched"], |_| {}).unwrap_or_default();
    assert!(text.contains("grid   = [\"ceil_div(n, block)\", \"n\"]\nblock  = [\"block\"]"), "{text}");
    refused(&["volume"], &[], &["k.cu: `volume` has a grid of three dimensions", "--block 8,8,4 --grid"]);
    let given = draft(&["volume"], |request| {
        (request.block, request.grid) = (vec!["8,8,4".into()], vec!["1,1,1".into()]);
    });
    assert!(given.is_ok_and(|[text, _]| text.contains("block  = [\"8\", \"8\", \"4\"]")));
}

#[test]
fn what_is_not_understood_is_named_with_the_option_to_use() {
    refused(&["old", "fewer"], &[], &["different numbers of parameters", "`old` takes 3", "`fewer` takes 2"]);
    refused(
        &["old", "doubles"],
        &[],
        &["parameter 1 differs: `const float *in` of old, `const double *in` of doubles"],
    );
    refused(&["needs", "old"], &[], &["`needs` is a template <int N>", "-k 'needs<4>'"]);
    refused(&["generic", "old"], &[], &["-k 'generic<float, 4>'"]);
    refused(&["old<3>"], &[], &["`old` is no template"]);
    let structs = ["--arg config=u32:n", "--arg things=f32", "is a reference", "a vector by value"];
    refused(&["structs"], &[], &structs);
    refused(&["old"], &["inn=in"], &["no kernel has a parameter `inn`; did you mean `in`?"]);
    refused(&["old"], &["n"], &["--arg n: a parameter and its value are expected"]);
    refused(&["old"], &["n=out"], &["`unsigned n` is a number"]);
    refused(&["old", "old"], &["out=in"], &["no parameter is an output", "--arg NAME=out"]);
}
