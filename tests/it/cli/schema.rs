//! `runner schema`: the committed schema is the one that this version prints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_committed_schema_is_current() {
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).arg("schema").output().unwrap();
    assert!(output.status.success());
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/experiment.schema.json");
    let committed = fs::read(committed).unwrap();
    let current = output.stdout == committed;
    assert!(current, "write it anew: runner schema --out schema/experiment.schema.json");
}

#[test]
fn the_schema_goes_to_a_file_where_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schema.json");
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).args(["schema", "--out"]).arg(&file).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    let schema: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(schema["required"], serde_json::json!(["experiment", "variant"]));
}

#[test]
fn a_place_that_takes_no_file_is_named_with_its_option() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let refused = |place: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let output = command.current_dir(folder.path()).args(["schema", "--out", place]).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    };
    let way_out = "name a writable file\n";
    let below_a_file = "--out file/x: cannot create the folder file: file is a file";
    assert_eq!(refused("file/x"), format!("error: {below_a_file}; {way_out}"));
    assert_eq!(refused("."), format!("error: --out .: cannot write .: it is a folder; {way_out}"));
}

/// Manifests with faults that a schema cannot express, and what it would have to know.
const BEYOND_A_SCHEMA: &[(&str, &str)] = &[
    ("argument_order", "the parameters of kernels"),
    ("arguments", "the names and types of buffers"),
    ("baseline", "the names of variants and values of axes"),
    ("baseline_of_compared_axes", "the names of axes"),
    ("compiled_sources", "what a file is by its name"),
    ("cycle_in_let", "which binding uses which"),
    ("cycle_through_a_variant", "which binding uses which"),
    ("fills_that_do_not_fit", "the ranges of types"),
    ("linked", "what files are"),
    ("names_of_some_variants_only", "which variant has which names"),
    ("npy_files_that_do_not_fit", "the content of files"),
    ("power_written_as_a_caret", "the language of expressions"),
    ("rules_of_some_variants", "which variant has which names"),
    ("sources_and_kernels", "the content of files"),
    ("steps", "what other keys mean"),
    ("steps_of_compared_axes", "what other keys mean"),
    ("symbols", "the content of files"),
    ("undefined_names", "the names in expressions"),
    ("variant_names", "the names of axes"),
    ("zip_on_another_backend", "the lengths of other axes"),
];

fn validator() -> jsonschema::Validator {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/experiment.schema.json");
    jsonschema::validator_for(&serde_json::from_slice(&fs::read(schema).unwrap()).unwrap()).unwrap()
}

/// Names and texts of the manifests in a folder of the repository.
fn manifests(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn the_schema_accepts_every_manifest_that_check_accepts() {
    let validator = validator();
    let folders = ["experiments", "tests/it/cli/check/sound", "crates/manifest/src/tests"];
    for (name, text) in folders.iter().flat_map(|folder| manifests(folder)) {
        let value: serde_json::Value = toml::from_str(&text).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&value).map(|error| format!("{name}: {} {error}", error.instance_path())).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

#[test]
fn the_schema_refuses_the_manifests_that_check_refuses_where_a_schema_can_tell() {
    let validator = validator();
    let accepted: Vec<String> = manifests("tests/it/cli/check/experiments")
        .into_iter()
        .filter(|(_, text)| toml::from_str(text).is_ok_and(|value: serde_json::Value| validator.is_valid(&value)))
        .map(|(name, _)| name)
        .collect();
    let known: Vec<&str> = BEYOND_A_SCHEMA.iter().map(|(name, _)| *name).collect();
    assert_eq!(accepted, known);
}

#[test]
fn one_fault_at_a_time_is_refused_by_check_and_by_the_schema() {
    const KERNEL: &str = "source = \"k.cu\"\nkernel = \"add\"\ngrid = [1]\nblock = [1]\n";
    let variant = |lines: &str| format!("[experiment]\nname = \"x\"\n[[variant]]\nname = \"a\"\n{lines}");
    let with_lines_before =
        |lines: &str| format!("[experiment]\nname = \"x\"\n{lines}\n[[variant]]\nname = \"a\"\n{KERNEL}");
    let with_lines = |lines: &str| variant(&format!("{KERNEL}{lines}"));
    let faults = [
        with_lines("repeat = 5000"),
        with_lines("repeat = 0"),
        with_lines("stream = 200"),
        with_lines("stream = -1"),
        with_lines("max_registers = 300"),
        with_lines("relocatable = true\npending_launches = 0"),
        with_lines("shared = -4"),
        with_lines("cpu = \"sum(a)\""),
        with_lines("host = \"f\""),
        with_lines("builtin = { memcpy = [] }"),
        with_lines("options = [\"use_fast_math\"]"),
        with_lines("defines = { \"N(x)\" = 1 }"),
        with_lines("fails = \"sometimes\""),
        variant(""),
        variant("source = \"k.cu\"\nkernel = \"add\"\nblock = [1]"),
        variant("source = \"k.cu\"\nkernel = \"add\"\ngrid = []\nblock = [1]"),
        variant("source = \"k.cu\"\nkernel = \"add\"\ngrid = [1, 1, 1, 1]\nblock = [1]"),
        variant("source = \"k.cu\"\nkernel = \"add\"\ngrid = [0]\nblock = [1]"),
        variant("source = \"k.cu\"\nkernel = \"add\"\ngrid = \"all\"\nblock = [1]"),
        variant("launch = []"),
        with_lines_before("[axes]\nn = []"),
        with_lines_before("[axes]\nn = [1, 1]"),
        with_lines_before("[axes]\n\"2d\" = [1]"),
        with_lines_before("[axes]\nn = { pow2 = [1, 70] }"),
        with_lines_before("[axes]\nn = { range = [1] }"),
        with_lines_before("[axes]\nn = { range = [1, 2], pow2 = [1, 2] }"),
        with_lines_before("[matrix]\nzip = [[\"n\"]]"),
        with_lines_before("[on.gpu]\naxes = {}"),
        with_lines_before("[measure]\nregimes = [\"hot\"]"),
        with_lines_before("[measure]\nregimes = []"),
        with_lines_before("[measure]\nregimes = [\"cold\", \"cold\"]"),
        with_lines_before("[measure]\ntimeout = \"soon\""),
        with_lines_before("[measure]\ntimeout = \"0s\""),
        with_lines_before("[measure]\nbudget = \"1\""),
        with_lines_before("[measure]\nprecision = 2.0"),
        with_lines_before("[measure]\nprecision = \"much\""),
        with_lines_before("[measure]\nmin_samples = 0"),
        with_lines_before("[measure]\ngraph = true"),
        with_lines_before("[buffers.b]\ntype = \"int\"\nlen = 1"),
        with_lines_before("[buffers.b]\ntype = \"f32\"\nlen = 0"),
        with_lines_before("[buffers.b]\ntype = \"f32\"\nlen = 1\naccess = \"in\""),
        with_lines_before("[buffers.b]\ntype = \"f32\"\nlen = 1\naccess = \"out\"\nfill = 1"),
        with_lines_before("[buffers.b]\ntype = \"f32\"\nlen = 1\nfill = { uniform = [0, 1], iota = [0, 1] }"),
        with_lines_before("[buffers.b]\ntype = \"f32\"\nlen = 1\n[check]\nactual = \"b\""),
        with_lines_before(
            "[buffers.b]\ntype = \"f32\"\nlen = 1\n[check]\nactual = \"b\"\nexpect = 1\ntolerance = { abs = -1.0 }",
        ),
    ];
    let (validator, folder) = (validator(), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/check/sound"));
    let parse = |text: &str| {
        let source = runner_types::SourceText { path: folder.join("x.toml"), text: text.to_owned() };
        runner_manifest::parse(&source.into())
    };
    let is_valid = |text: &str| validator.is_valid(&toml::from_str::<serde_json::Value>(text).unwrap());
    assert!(parse(&with_lines("")).is_ok() && is_valid(&with_lines("")), "the manifest around the faults is sound");
    let told: Vec<&String> = faults.iter().filter(|text| parse(text).is_ok() || is_valid(text)).collect();
    assert!(told.is_empty(), "{told:#?}");
}
