//! Reads every key of the manifest, and checks the defaults.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test panics to fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use runner_experiment::{
    ArgSpec, Axis, BlockSpec, BodySpec, BufferSpec, BuiltinSpec, Expectation, Expression, FileSpec, FillSpec, GridSpec,
    LaunchSpec, LetBinding, Located, Manifest, PackageSpec, PrintedSpec, Registry, SearchSpec, Template, VariantSpec,
};
use runner_lang::Parsed;
use runner_types::{
    Acceptance, Access, Allocation, BackendKind, ComparisonRules, ElementType, Failure, KernelCompiler, Regime,
    SanitizerClass, TextureAddress, TextureKind, TextureSampler, Value, Vary,
};

const EVERY_KEY: &str = include_str!("tests/every_key.toml");

/// Every key of `[packages]`. Kept separate, because a manifest whose packages are not in the cache does not load.
const PACKAGES: &str = "[packages.mine]\ncrate = \"my-kernels\"\nversion = \"0.9.1\"\nlicense = \"MIT\"\nbytes = 4096\n\
                        sha256 = \"00000000000000000000000000000000000000000000000000000000000000ff\"\n\
                        [packages.yours]\nwheel = \"your_kernels\"\nversion = \"1.0+cu130\"\n\
                        sha256 = \"ff00000000000000000000000000000000000000000000000000000000000000\"\n";

const SMALLEST: &str = "[experiment]\nname = \"x\"\n[[variant]]\nname = \"a\"\nsource = \"k.cu\"\n\
                        kernel = \"second\"\ngrid = [1]\nblock = [32]\n";

const SOURCE: &str = "#include \"parts.cuh\"\n__device__ unsigned int ticket;\n\
                      template <typename T, int U> __global__ void first(T*) {}\n\
                      extern \"C\" __global__ void second(float*) {}\n";

/// A user's project: `experiments/`, `kernels/`, a data file and headers.
fn folder(manifest: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    write("experiments/x.toml", manifest.as_bytes());
    write("kernels/k.cu", SOURCE.as_bytes());
    write("kernels/parts/parts.cuh", b"// nothing");
    write("kernels/plugin.cu", b"extern \"C\" { int sum_i32(int); int sum_f32(int); }");
    write("experiments/local.cu", b"__global__ void local_kernel() {}");
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1024,), }".to_vec();
    npy.resize(127, b' ');
    npy.push(b'\n');
    npy.resize(128 + 4 * 1024, 0);
    write("experiments/golden.npy", &npy);
    write(
        "experiments/golden.cpp",
        b"#include <vector>\nstd::vector<float> reference(const float *input, int n) { return {}; }\n",
    );
    write("experiments/golden.py", b"def reference(input, n, scale=2.0):\n    return input * scale\n");
    for element in ["i32", "f32", "f16"] {
        write(&format!("experiments/lines_{element}.txt"), b"a\nb\n");
    }
    folder
}

fn load(folder: &TempDir) -> Manifest {
    super::load(&folder.path().join("experiments/x.toml")).unwrap_or_else(|faults| panic!("{faults}"))
}

fn faults(manifest: &str) -> String {
    let folder = folder(manifest);
    super::load(&folder.path().join("experiments/x.toml")).unwrap_err().render(false)
}

fn text<T: Parsed>(parsed: &Located<T>) -> &str {
    parsed.text()
}

fn written(template: &Template) -> &str {
    template.text()
}

fn texts(expressions: &[Expression]) -> Vec<&str> {
    expressions.iter().map(text).collect()
}

fn ints(values: &[i64]) -> Vec<Value> {
    values.iter().copied().map(Value::Int).collect()
}

fn axis<'a>(axes: &'a [Axis], name: &str) -> &'a [Value] {
    &axes.iter().find(|axis| axis.name == name).unwrap().values
}

fn lets(bindings: &[LetBinding]) -> Vec<(&str, &str)> {
    bindings.iter().map(|binding| (&*binding.name, text(&binding.value))).collect()
}

fn buffer<'a>(buffers: &'a [BufferSpec], name: &str) -> &'a BufferSpec {
    buffers.iter().find(|buffer| buffer.name == name).unwrap()
}

fn variant<'a>(manifest: &'a Manifest, name: &str) -> &'a VariantSpec {
    manifest.variants.iter().find(|variant| written(&variant.name) == name).unwrap()
}

fn launches<'a>(manifest: &'a Manifest, name: &str) -> &'a [LaunchSpec] {
    match &variant(manifest, name).body {
        BodySpec::Launches { launches, .. } => launches,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn the_test_manifest_uses_every_key_of_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(&super::schema()).unwrap();
    for key in keys(&schema) {
        let mut words = [EVERY_KEY, PACKAGES]
            .into_iter()
            .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        assert!(words.any(|word| word == key), "`{key}` is not in tests/every_key.toml");
    }
}

#[test]
fn every_key_of_a_package_is_read_and_one_that_is_not_in_the_cache_is_a_fault_at_its_name() {
    let folder = folder(&format!("{PACKAGES}{SMALLEST}"));
    let path = folder.path().join("experiments/x.toml");
    let package = |name: &str, registry, published: &str, version: &str, sha256: String| PackageSpec {
        name: name.to_owned(),
        registry,
        published: published.to_owned(),
        version: version.to_owned(),
        sha256,
        license: None,
        bytes: None,
    };
    let mine = package("mine", Registry::Crate, "my-kernels", "0.9.1", format!("{}ff", "0".repeat(62)));
    let mine = PackageSpec { license: Some("MIT".to_owned()), bytes: Some(4096), ..mine };
    let yours = package("yours", Registry::Wheel, "your_kernels", "1.0+cu130", format!("ff{}", "0".repeat(62)));
    assert_eq!(super::packages(&path), [mine, yours]);
    let faults = super::load(&path).unwrap_err().to_string();
    assert!(
        faults.contains("x.toml:1:11") && faults.contains("crate my-kernels 0.9.1 is not in the cache"),
        "{faults}"
    );
    assert!(faults.contains("x.toml:7:11") && faults.contains("wheel your_kernels 1.0+cu130"), "{faults}");
}

#[test]
fn the_manual_describes_every_key_of_the_schema() {
    let manual = include_str!("../../../docs/reference/keys.md");
    let schema: serde_json::Value = serde_json::from_str(&super::schema()).unwrap();
    for key in keys(&schema) {
        assert!(manual.contains(&format!("`{key}`")), "docs/reference/keys.md says nothing of `{key}`");
    }
}

/// All keys of all tables in the schema.
fn keys(schema: &serde_json::Value) -> BTreeSet<String> {
    let tables = schema["definitions"].as_object().unwrap().values().chain([schema]);
    tables.filter_map(|table| table["properties"].as_object()).flat_map(|keys| keys.keys().cloned()).collect()
}

#[test]
fn the_example_of_the_manual_is_sound() {
    let manual = include_str!("../../../docs/reference/manifest.md");
    let example = manual.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = folder(example);
    let source = "template <typename T> __global__ void reduce_interleaved(T*, T*, unsigned) {}\n\
                  template <typename T, int U> __global__ void reduce_unrolled(T*, T*, unsigned) {}\n";
    std::fs::write(folder.path().join("kernels/reduce.cu"), source).unwrap();
    assert_eq!(load(&folder).variants.len(), 3);
}

#[test]
fn the_experiment_its_axes_and_its_matrix_are_read() {
    let folder = folder(EVERY_KEY);
    let manifest = load(&folder);
    assert_eq!((manifest.name.as_str(), manifest.title.as_str()), ("every_key", "Every key"));
    assert_eq!(manifest.question.as_deref(), Some("Is every key read?"));
    assert_eq!(manifest.compare, ["bx"]);
    assert!(!manifest.steps);
    let acceptance = Acceptance {
        variant: Some("memcpy".to_owned()),
        condition: Some("n > 1024".to_owned()),
        reason: "it checks its bounds".to_owned(),
        commit: "1a2b3c4d".to_owned(),
        by: 1.5,
    };
    assert_eq!(manifest.comparison, ComparisonRules { threshold: Some(0.02), accept: vec![acceptance] });
    let baseline = manifest.baseline.as_ref().unwrap();
    assert_eq!(baseline.variant, "unroll2");
    assert_eq!(baseline.at, BTreeMap::from([("bx".to_owned(), Value::Int(32))]));

    let order: Vec<&str> = manifest.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(order, ["n", "bx", "m", "big", "type", "scale", "mode", "fast"]);
    assert_eq!(axis(&manifest.axes, "n"), ints(&[1024, 4096, 16384]));
    assert_eq!(axis(&manifest.axes, "bx"), ints(&[32, 64]));
    assert_eq!(axis(&manifest.axes, "m"), ints(&[1, 4, 7]));
    assert_eq!(axis(&manifest.axes, "big"), ints(&[16_777_216, 3_145_728, 5]));
    assert_eq!(axis(&manifest.axes, "type"), [Value::Type(ElementType::I32), Value::Type(ElementType::F32)]);
    assert_eq!(axis(&manifest.axes, "scale"), [Value::Float(0.5), Value::Float(2.0)]);
    assert_eq!(axis(&manifest.axes, "mode"), [Value::Str("row".into()), Value::Str("column".into())]);
    assert_eq!(axis(&manifest.axes, "fast"), [Value::Bool(true), Value::Bool(false)]);

    assert_eq!(manifest.zip, [["n", "m", "big"]]);
    assert_eq!(text(&manifest.exclude[0].when), "mode == \"row\" && bx > 32");
    assert_eq!(manifest.exclude[0].why, "rows are narrow");
    assert_eq!(manifest.include[0].len(), 8);
    assert_eq!(manifest.include[0]["n"], Value::Int(1_000_003));
    assert_eq!(manifest.include[0]["type"], Value::Type(ElementType::F32));
    let sim = &manifest.on[&BackendKind::Sim];
    assert_eq!(axis(&sim.axes, "n"), ints(&[16, 32, 64]));
    assert_eq!(lets(&sim.lets), [("tile", "8")]);
    assert_eq!(axis(&manifest.axes_on(BackendKind::Sim), "n"), ints(&[16, 32, 64]));
    assert_eq!(lets(&manifest.lets), [("blocks", "ceil_div(n, tile)"), ("tile", "256")]);
}

#[test]
fn buffers_checks_work_and_measurement_are_read() {
    let folder = folder(EVERY_KEY);
    let manifest = load(&folder);
    let golden = folder.path().join("experiments/golden.npy");
    let get = |name| buffer(&manifest.buffers, name);
    assert_eq!((written(&get("input").element), text(&get("input").len)), ("{type}", "n"));
    assert_eq!(get("input").access, Access::InOut);
    match get("input").fill.as_ref().unwrap() {
        FillSpec::Uniform { low, high, seed: 7 } => assert_eq!((text(low), text(high)), ("0", "bx - 1")),
        other => panic!("{other:?}"),
    }
    match get("weights").fill.as_ref().unwrap() {
        FillSpec::Normal { mean, deviation, seed: 1 } => assert_eq!((text(mean), text(deviation)), ("0.0", "1.5")),
        other => panic!("{other:?}"),
    }
    assert_eq!(get("weights").access, Access::In, "what is filled is read");
    match get("index").fill.as_ref().unwrap() {
        FillSpec::Iota { start, step } => assert_eq!((text(start), text(step)), ("5", "-1")),
        other => panic!("{other:?}"),
    }
    match get("order").fill.as_ref().unwrap() {
        FillSpec::Iota { start, step } => assert_eq!((text(start), text(step)), ("0", "1")),
        other => panic!("{other:?}"),
    }
    assert_eq!((get("order").vary, get("index").vary), (Some(Vary::Permute), None));
    let path = |file: &FileSpec| file.folder.join(written(&file.name));
    assert!(matches!(&get("table").fill, Some(FillSpec::Npy(file)) if path(file) == golden));
    assert_eq!((get("output").access, get("output").fill.as_ref()), (Access::Out, None), "what is not is written");
    let ticket = buffer(&variant(&manifest, "unroll{u}").buffers, "ticket");
    assert_eq!(ticket.symbol.as_ref().map(written), Some("ticket"));
    assert!(matches!(&ticket.fill, Some(FillSpec::Constant(zero)) if text(zero) == "0"));

    assert_eq!(text(&manifest.checks[0].actual), "sum(output)");
    assert!(matches!(&manifest.checks[0].expect, Expectation::Reference(sum) if text(sum) == "sum(input)"));
    let tolerance = manifest.checks[0].tolerance;
    assert!(manifest.checks[0].error && !manifest.checks[1].error);
    assert_eq!((tolerance.abs, tolerance.rel, tolerance.ulp), (Some(0.0), Some(1e-5), Some(4)));
    assert!(matches!(&manifest.checks[1].expect, Expectation::Variant { name, .. } if name == "unroll2"));
    assert!(matches!(&manifest.checks[2].expect, Expectation::Npy(file) if path(file) == golden));
    assert!(matches!(&manifest.checks[3].expect, Expectation::Python(python) if python.function == "reference"));
    assert!(matches!(&manifest.checks[4].expect, Expectation::Cpp(cpp) if cpp.function == "reference"));
    assert_eq!(manifest.checks.len(), 5, "a check of lines is none of values");
    let Some(PrintedSpec::Lines(lines)) = &manifest.printed else { panic!("{:?}", manifest.printed) };
    assert_eq!(lines.iter().map(written).collect::<Vec<_>>(), ["{n} elements", "done"]);
    let local = variant(&manifest, "local");
    assert!(matches!(&local.printed, Some(PrintedSpec::File(_, name)) if written(name) == "lines_{type}.txt"));
    assert_eq!((local.checks.as_deref(), &variant(&manifest, "sequence").printed), (Some(&[][..]), &None));
    assert_eq!(manifest.work.bytes.as_ref().map(text), Some("n * sizeof(type)"));
    assert_eq!(manifest.work.flops.as_ref().map(text), Some("n - 1"));

    let measure = &manifest.measure;
    assert_eq!(measure.regimes, [Regime::Cold, Regime::Host]);
    assert!((measure.precision - 0.01).abs() < 1e-15 && (measure.timeout - 120.0).abs() < 1e-9);
    assert!((measure.budget - 0.25).abs() < 1e-12);
    assert_eq!(measure.metrics, ["lts__t_sectors_op_read.sum"]);
    assert!(measure.energy);
    assert_eq!(measure.processes, Some(3));
    assert_eq!((measure.warmup, measure.min_samples, measure.max_samples), (3, 20, 400));
}

#[test]
fn variants_launches_and_how_they_are_compiled_are_read() {
    let folder = folder(EVERY_KEY);
    let manifest = load(&folder);
    let kernels = folder.path().join("kernels");
    let unroll = variant(&manifest, "unroll{u}");
    assert_eq!(axis(&unroll.axes, "u"), ints(&[2, 4]));
    assert_eq!(texts(&unroll.requires), ["n % u == 0", "bx <= max_threads_per_block"]);
    assert_eq!(lets(&unroll.lets), [("blocks", "ceil_div(n, u * tile)")]);
    assert_eq!(unroll.work.as_ref().unwrap().bytes.as_ref().map(text), Some("2 * n"));
    assert_eq!(unroll.checks.iter().flatten().map(|check| text(&check.actual)).collect::<Vec<_>>(), ["min(output)"]);
    assert_eq!(variant(&manifest, "sequence").checks, None);
    let extra = buffer(&unroll.buffers, "extra");
    assert!(buffer(&unroll.buffers, "kept").poison && !extra.poison);
    assert_eq!((extra.access, extra.allocate), (Access::Scratch, Allocation::EachRun));
    let failures = |variant: &VariantSpec| variant.fails.iter().map(|fails| fails.failure).collect::<Vec<_>>();
    let failing = variant(&manifest, "failing");
    assert_eq!(failures(failing), [Failure::Trap, Failure::Wrong]);
    let of_cuda = failing.fails_on(BackendKind::Cuda);
    let conditions: Vec<_> = of_cuda.iter().filter_map(|fails| fails.condition.as_ref().map(text)).collect();
    assert_eq!(conditions, ["n > 1", "n > 2", "n > 3", "n > 4", "n > 5", "n > 6", "n > 7"]);
    let unsanitized = failing.unsanitized.as_ref().unwrap();
    assert_eq!(unsanitized.classes, [SanitizerClass::Race, SanitizerClass::Uninitialised]);
    assert_eq!(unsanitized.reason, "its values do not matter");
    let compilers =
        |name: &str| launches(&manifest, name).iter().map(|launch| launch.compile.compiler).collect::<Vec<_>>();
    assert_eq!(compilers("failing"), [KernelCompiler::Clang]);
    assert_eq!(compilers("local"), [KernelCompiler::Nvrtc]);
    assert_eq!((unroll.fails.as_slice(), buffer(&unroll.buffers, "ticket").allocate), (&[][..], Allocation::Once));
    let [launch] = launches(&manifest, "unroll{u}") else { panic!("one launch") };
    assert_eq!((launch.source.clone(), written(&launch.kernel)), (kernels.join("k.cu"), "first<{type}, {u}>"));
    assert!(matches!(&launch.grid, GridSpec::Dims(dims) if texts(dims) == ["blocks", "2", "1"]));
    assert!(matches!(&launch.block, BlockSpec::Dims(dims) if texts(dims) == ["bx"]));
    assert_eq!(launch.settings.shared.as_ref().map(text), Some("bx * sizeof(type)"));
    assert!(launch.settings.cooperative && launch.compile.settings.debug);
    match launch.args.as_slice() {
        [
            ArgSpec::Buffer(input),
            ArgSpec::Buffer(extra),
            ArgSpec::Scalar { element, value },
            ArgSpec::Scalar { element: typed, .. },
        ] => {
            assert_eq!((input.as_str(), extra.as_str()), ("input", "extra"));
            assert_eq!((written(element), text(value), written(typed)), ("u32", "n / 2", "{type}"));
        }
        other => panic!("{other:?}"),
    }
    let compile = &launch.compile;
    let defines: Vec<(&str, &str)> = compile.defines.iter().map(|(n, value)| (n.as_str(), written(value))).collect();
    assert_eq!(defines, [("TILE", "{tile}"), ("LEVEL", "3"), ("CHECKED", "true")]);
    assert_eq!(compile.options.iter().map(written).collect::<Vec<_>>(), ["--use_fast_math"]);
    assert_eq!(compile.include_paths, [kernels.join("parts")]);
    assert_eq!(compile.settings.max_registers.as_ref().map(text), Some("64"));
    assert_eq!(launch.settings.pending_launches.as_ref().map(text), Some("64 * u"));
    assert!(compile.settings.relocatable && !launches(&manifest, "sequence")[0].compile.settings.relocatable);

    let [by_size, second] = launches(&manifest, "sequence") else { panic!("two launches") };
    assert_eq!((by_size.label.as_deref(), second.label.as_deref()), (Some("pass one"), None));
    assert_eq!((by_size.grid.clone(), by_size.block.clone()), (GridSpec::Occupancy, BlockSpec::Occupancy));
    assert_eq!((written(&second.kernel), second.source.clone()), ("second", by_size.source.clone()));
    assert!(matches!(&second.grid, GridSpec::Dims(dims) if texts(dims) == ["ceil_div(n, occupancy_block)"]));
    assert_eq!(second.block, BlockSpec::Occupancy, "taken from the variant");
    assert_eq!(
        (by_size.repeat.as_ref().map(text), by_size.settings.stream.as_ref().map(text)),
        (Some("4"), Some("nth % 2"))
    );
    assert_eq!((&second.repeat, &second.settings.stream), (&None, &None));
    assert_eq!((by_size.args.len(), second.args.len()), (1, 2), "an entry's own arguments replace the variant's");

    let copies = BuiltinSpec::Memcpy(vec![("input".into(), "output".into())]);
    assert_eq!(variant(&manifest, "memcpy").body, BodySpec::Builtin(copies));
    assert!(matches!(&variant(&manifest, "host").body, BodySpec::Cpu(sum) if text(sum) == "sum(input)"));
    let BodySpec::Host(host) = &variant(&manifest, "library").body else { panic!("a host function") };
    assert_eq!((host.source.clone(), written(&host.function)), (kernels.join("plugin.cu"), "sum_{type}"));
    assert_eq!((host.args.len(), host.libraries.iter().map(written).collect::<Vec<_>>()), (3, vec!["cublas"]));
    let local = &launches(&manifest, "local")[0];
    assert_eq!(local.source, folder.path().join("experiments/local.cu"), "found beside the manifest");
}

#[test]
fn a_host_function_has_no_launch_and_must_be_in_its_source_with_c_linkage() {
    let with =
        |lines: &str| format!("[experiment]\nname = \"x\"\n[[variant]]\nname = \"h\"\nsource = \"plugin.cu\"\n{lines}");
    load(&folder(&with("host = \"sum_i32\"\n")));
    let text = faults(&with("host = \"sum_i64\"\ngrid = [1]\n"));
    assert!(text.contains("`extern \"C\"` function `sum_i64`"), "{text}");
    assert!(text.contains("`grid` has no meaning in a `host` variant"), "{text}");
    let text = faults(&with("kernel = \"k\"\ngrid = [1]\nblock = [1]\nlibraries = [\"cublas\"]\n"));
    assert!(text.contains("`libraries` has no meaning without `host`"), "{text}");
    let text = faults(&with("host = \"sum_i32\"\ncpu = \"sum(a)\"\n"));
    assert!(text.contains("exactly one of `kernel`, `launch`, `builtin`, `host` and `cpu`"), "{text}");
}

#[test]
fn what_a_manifest_leaves_out_has_the_values_of_the_manual() {
    let manifest = load(&folder(SMALLEST));
    assert_eq!((manifest.title.as_str(), &manifest.question, &manifest.baseline), ("x", &None, &None));
    assert!(manifest.axes.is_empty() && manifest.checks.is_empty() && manifest.work.bytes.is_none());
    let measure = &manifest.measure;
    assert_eq!(measure.regimes, [Regime::Cold]);
    assert_eq!(measure.processes, None);
    assert!(!measure.energy, "a pass that is not asked for would make every run slower");
    assert!((measure.precision - 0.005).abs() < 1e-15);
    assert!((measure.timeout - 30.0).abs() < 1e-9 && (measure.budget - 0.5).abs() < 1e-12);
    assert_eq!((measure.warmup, measure.min_samples, measure.max_samples), (2, 15, 2000));
    let [launch] = launches(&manifest, "a") else { panic!("one launch") };
    assert!(
        launch.args.is_empty()
            && launch.settings.shared.is_none()
            && !launch.settings.cooperative
            && !launch.compile.settings.debug
    );
}

#[test]
fn an_expression_knows_its_place_whatever_quotes_it_has() {
    let manifest = "[experiment]\nname = \"x\"\n[let]\na = \"1 + 1\"\nb = '2 + 2'\nc = '''3 + 3'''\nd = \"\"\"\n\
                    4 + 4\"\"\"\n\
                    e = 5\nf = \"\\u0036 + 6\"\n[[variant]]\nname = \"a\"\nsource = \"k.cu\"\nkernel = \"second\"\n\
                    grid = [1]\nblock = [32]\n";
    let folder = folder(manifest);
    let manifest = load(&folder);
    let places: Vec<&str> = manifest.lets.iter().map(|l| &manifest.source.text[l.value.span.clone()]).collect();
    // A string with an escape differs from its source text, so the span covers the whole string.
    assert_eq!(places, ["1 + 1", "2 + 2", "3 + 3", "4 + 4", "5", "\"\\u0036 + 6\""]);
    assert_eq!(text(&manifest.lets[5].value), "6 + 6");
}

#[test]
fn the_hash_is_that_of_the_text() {
    let manifest = load(&folder(SMALLEST));
    // Computed by sha256sum.
    assert_eq!(manifest.hash, "a6b6c7b7ef299425d80f2efe6e13dca386da4701278bf7c314bc76f8442d85f8");
}

#[test]
fn a_file_that_cannot_be_read_is_one_fault() {
    let missing = super::load(Path::new("nowhere/x.toml")).unwrap_err().render(false);
    assert!(missing.starts_with("error: cannot read the manifest: no such file"), "{missing}");
    let folder = folder("");
    std::fs::write(folder.path().join("experiments/x.toml"), b"name = \"\xff\"").unwrap();
    let binary = super::load(&folder.path().join("experiments/x.toml")).unwrap_err();
    assert_eq!(binary.items[0].message, "the manifest is not UTF-8: byte 8 is invalid");
    assert_eq!(binary.source.path, folder.path().join("experiments/x.toml"));
}

#[test]
fn every_fault_of_every_table_comes_at_once() {
    let said = faults(
        "[experiment]\nnmae = 1\n[axes]\nn = []\n[let]\na = \"b\"\n[buffers.x]\ntype = \"int\"\nlen = \"n\"\n\
         [check]\nactual = \"y\"\nexpect = 1\n[measure]\ntimeout = \"soon\"\n\
         [[variant]]\nname = \"a\"\nsource = \"local.cu\"\nkernel = \"local_kernl\"\ngrid = [0]\nblock = [32]\n\
         args = [\"z\"]\n",
    );
    let wanted = [
        "missing key `name`",
        "unknown key `nmae`",
        "axis `n` has no values",
        "undefined name `b`",
        "`int` is not an element type",
        "there is no buffer `y`",
        "`measure.timeout` is not a duration",
        "defines no kernel `local_kernl`",
        "a dimension of `grid` must be an integer of at least 1, not 0",
        "there is no buffer `z`",
    ];
    for fault in wanted {
        assert!(said.contains(fault), "{fault} is missing in\n{said}");
    }
    assert_eq!(said.matches("error: ").count(), wanted.len(), "{said}");
}

#[test]
fn textures_and_surfaces_are_arguments_with_faults_at_their_place() {
    let with = |argument: &str| {
        format!("{SMALLEST}args = [{argument}]\n[buffers.x]\ntype = \"f32\"\nlen = \"64\"\nfill = 1\n")
    };
    let manifest = load(&folder(&with(
        "{ texture = \"x\", size = [16, 4], address = \"border\" }, { surface = \"x\", size = [4, 4, 4] }",
    )));
    let [ArgSpec::Texture(texture), ArgSpec::Texture(surface)] = launches(&manifest, "a")[0].args.as_slice() else {
        panic!("{:?}", launches(&manifest, "a")[0].args)
    };
    assert_eq!(
        (texture.buffer.as_str(), texture.kind, texts(&texture.size)),
        ("x", TextureKind::TwoD, vec!["16", "4"])
    );
    let sampler = TextureSampler { address: TextureAddress::Border, ..TextureSampler::default() };
    assert_eq!((texture.sampler, surface.sampler, surface.kind), (Some(sampler), None, TextureKind::ThreeD));
    for (argument, wanted) in [
        ("{ texture = \"y\", size = [4] }", "there is no buffer `y`"),
        ("{ texture = \"x\", size = [4], kind = \"2d\" }", "`size` has 1 extents, but a texture of kind `2d` has 2"),
        ("{ texture = \"x\" }", "missing key `size`"),
        ("{ texture = \"x\", surface = \"x\", size = [4] }", "an argument must be one texture or one surface"),
        ("{ surface = \"x\", size = [4], filter = \"linear\" }", "`filter` has no meaning for a surface"),
        ("{ texture = \"x\", size = [4], adress = \"wrap\" }", "unknown key `adress`"),
        ("{ texture = \"x\", size = [4], address = \"repeat\" }", "\"clamp\", \"border\", \"wrap\" or \"mirror\""),
        ("{ texture = \"x\", size = [0] }", "an extent of a texture must be an integer from 1 to 4294967295, not 0"),
        ("{ texture = \"x\", size = [\"m\"] }", "undefined name `m`"),
        ("[\"x\", { y = \"x\", n = \"i32(4)\", b = [\"f32(1)\"] }]", "write `[\"x\", \"i32(4)\", [\"f32(1)\"]]`"),
        (
            "[\"x\", { rows = \"i32(4)\" }]",
            "a struct in a list must be a list of its fields in the order of their declaration",
        ),
        ("{}", "is a struct without fields"),
        ("{ a = \"x\", \"b.c\" = \"i32(4)\" }", "must be the name of a field in C++"),
        ("{ a = \"x\", points = [{ x = \"f32(1)\" }, 4] }", "a typed number"),
        ("{ a = { b = \"i32(m)\" } }", "undefined name `m`"),
        ("[\"x\", { of = \"f32(1)\", align = 12 }]", "must be a power of two of at most 1024, not 12"),
        ("[\"x\", { texture = \"x\", size = [4] }]", "must be a separate argument, not a struct field"),
    ] {
        let said = faults(&with(argument));
        assert!(said.contains(wanted) && said.matches("error: ").count() == 1, "{wanted} is missing in\n{said}");
        assert!(said.contains("experiments/x.toml:9:"), "{said}");
    }
}

#[test]
fn a_search_has_settings_with_faults_at_their_place() {
    let every = load(&folder(EVERY_KEY)).search;
    let numbers = |axes: &[Axis], name: &str| axes.iter().find(|axis| axis.name == name).unwrap().values.len();
    let searched = load(&folder(EVERY_KEY)).with_searched_axes();
    assert_eq!([numbers(&searched.axes, "bx"), numbers(&searched.axes, "m")], [4, 3]);
    assert_eq!(numbers(&load(&folder(EVERY_KEY)).axes, "bx"), 2);
    let expected = SearchSpec {
        strategy: Some("genetic".to_owned()),
        budget: Some("2.5%".to_owned()),
        seed: Some(3),
        objectives: vec!["time".to_owned(), "energy".to_owned()],
        finalists: Some(4),
        samples: Some(9),
        drop_above: Some(1.5),
        axes: every.axes.clone(),
    };
    assert_eq!(every, expected);
    assert_eq!(load(&folder(SMALLEST)).search, SearchSpec::default());
    let with = |key: &str| format!("{SMALLEST}[search]\n{key}\n");
    assert_eq!(load(&folder(&with("budget = 400"))).search.budget.as_deref(), Some("400"));
    for (key, wanted) in [
        ("strategy = \"genetics\"", "did you mean `genetic`?"),
        ("budget = 0", "found `0`"),
        ("budget = \"400\"", "write 400, or \"5%\""),
        ("budget = \"101%\"", "found `101%`"),
        ("finalists = 0", "`search.finalists` must be at least 1"),
        ("samples = 0", "`search.samples` must be at least 1"),
        ("drop_above = 0.9", "`search.drop_above` must be at least 1, found 0.9"),
        ("seeds = 1", "did you mean `seed`?"),
        ("axes = { zz = [1] }", "there is no axis `zz`"),
    ] {
        let said = faults(&with(key));
        assert!(said.contains(wanted) && said.matches("error: ").count() == 1, "{wanted} is missing in\n{said}");
        assert!(said.contains("experiments/x.toml:10:"), "{said}");
    }
}

#[test]
fn paths_are_kept_as_the_user_gave_them() {
    let folder = folder(EVERY_KEY);
    let manifest = load(&folder);
    let inside = |path: &PathBuf| path.starts_with(folder.path()) && !path.components().any(|c| c.as_os_str() == "..");
    assert!(manifest.variants.iter().all(|variant| match &variant.body {
        BodySpec::Launches { launches, .. } => launches.iter().all(|launch| inside(&launch.source)),
        _ => true,
    }));
}
