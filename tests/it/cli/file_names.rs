//! Names of files and folders. Names of devices may differ only in characters that a folder name cannot contain; names
//! of sources may contain any character.

use std::fs;
use std::path::Path;
use std::process::Command;

use runner_results::journal::{self, Journal};
use runner_types::Event;

/// Merges the journal of a device with this name, as a user would.
fn merge(dir: &Path, device: &str) -> String {
    let mut events = fixture::reduce().events;
    if let Event::RunStarted { environment, .. } = &mut events[0] {
        device.clone_into(&mut environment.device.name);
    }
    let folder = dir.join("journals").join(device);
    Journal::create(&folder).unwrap().record_all(&events).unwrap();
    let words = ["--color", "never", "merge"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let output = command.current_dir(dir).args(words).arg(&folder).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn devices_with_almost_the_same_name_have_folders_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let devices = ["GPU A-1", "GPU A 1", "gpu a 1", "中", "国"];
    // The second merge of a device replaces its report.
    for device in devices.iter().chain(&devices) {
        let said = merge(dir.path(), device);
        assert!(said.contains("report: reports/reduce/"), "{said}");
    }
    let folders = fs::read_dir(dir.path().join("reports/reduce")).unwrap();
    let mut found: Vec<String> = folders.map(|folder| journal::device_of(&folder.unwrap().path()).unwrap()).collect();
    found.sort();
    let mut expected = devices.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
    assert!(dir.path().join("reports/reduce/gpu-a-1").is_dir());
}

#[test]
fn a_journal_without_a_report_keeps_its_folder_from_other_devices() {
    let dir = tempfile::tempdir().unwrap();
    merge(dir.path(), "GPU A-1");
    let folder = dir.path().join("reports/reduce/gpu-a-1");
    for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        if !file.ends_with(journal::JOURNAL_FILE) {
            fs::remove_file(file).unwrap();
        }
    }
    merge(dir.path(), "GPU A 1");
    assert_eq!(journal::device_of(&folder).as_deref(), Some("GPU A-1"));
    assert_eq!(fs::read_dir(dir.path().join("reports/reduce")).unwrap().count(), 2);
}

#[test]
fn a_kernel_compiles_whatever_its_path_is_called() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = "[experiment]\nname = \"x\"\n[buffers.out]\ntype = \"i32\"\nlen = 32\n[check]\nactual = \"out\"\nexpect = \
                    \"7\"\n[[variant]]\nname = \"v\"\nsource = \"it's.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [32]\nargs = [\"out\"]\n";
    let source = "#include \"seven.cuh\"\nextern \"C\" __global__ void k(int *o) { o[threadIdx.x] = SEVEN; }\n";
    for name in ["a \"b\"", "back\\slash", "tab\tand\nline", "$(touch x)", "umlaut ä", "a\",0\n.file 9 \"b"] {
        let folder = dir.path().join(name);
        for (file, text) in
            [("experiments/x.toml", manifest), ("kernels/it's.cu", source), ("kernels/seven.cuh", "#define SEVEN 7\n")]
        {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let run = |here: &Path, manifest: &Path| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
            let command = command.current_dir(here).args(["--color", "never", "run"]).arg(manifest);
            let output = command.args(["--backend", "sim", "--out", "out", "--quiet"]).output().unwrap();
            assert!(output.status.success(), "{name:?}: {output:?}");
            fs::read_to_string(here.join("out/results.csv")).unwrap()
        };
        let inside = run(&folder, Path::new("experiments/x.toml"));
        assert!(inside.contains(",pass,"), "{inside}");
        // Given by its absolute path, and by a relative path from the parent folder.
        assert_eq!(run(dir.path(), &folder.join("experiments/x.toml")), inside, "{name:?}");
        assert_eq!(run(dir.path(), &Path::new(name).join("experiments/x.toml")), inside, "{name:?}");
    }
    // An error names the file as the user does.
    let broken = dir.path().join("a \"b\"");
    fs::write(broken.join("kernels/it's.cu"), source.replace("= SEVEN", "= EIGHT")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let words = ["--color", "never", "run", "experiments/x.toml", "--backend", "sim", "--out", "out"];
    let output = command.current_dir(&broken).args(words).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(said.contains("kernels/it's.cu:2: identifier \"EIGHT\" is undefined"), "{said}");
}
