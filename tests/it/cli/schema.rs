//! `runner schema`: the committed schema is the one that this version prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_committed_schema_is_current() {
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).arg("schema").output().unwrap();
    assert!(output.status.success());
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/experiment.schema.json");
    let committed = std::fs::read(committed).unwrap();
    let current = output.stdout == committed;
    assert!(current, "write it anew: runner schema --out schema/experiment.schema.json");
}

#[test]
fn the_schema_goes_to_a_file_where_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schema.json");
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).args(["schema", "--out"]).arg(&file).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    let schema: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(schema["required"], serde_json::json!(["experiment", "variant"]));
}

#[test]
fn a_place_that_takes_no_file_is_named_with_its_option() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let refused = |place: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let output = command.current_dir(folder.path()).args(["schema", "--out", place]).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    };
    let way_out = "name a file that can be written\n";
    let below_a_file = "--out file/x: cannot create the folder file: file is a file";
    assert_eq!(refused("file/x"), format!("error: {below_a_file}; {way_out}"));
    assert_eq!(refused("."), format!("error: --out .: cannot write .: it is a folder; {way_out}"));
}
