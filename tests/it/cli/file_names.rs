//! Files and folders that are named after devices, whose names may differ only in signs that folders do not have.

use std::fs;
use std::path::Path;
use std::process::Command;

use runner_results::journal::{self, Journal};
use runner_types::Event;

/// Merges the journal of a device with this name, as a user does.
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
    // A second merge replaces the report of the same device.
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
