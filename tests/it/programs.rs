//! Programs that tests write and run.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program: a script that begins with a `#!` line.
///
/// A separate process writes the file. Linux refuses to run a file that any process has open for writing ("text file
/// busy"), and a child that another test starts inherits this process's open files until it calls `exec`.
#[track_caller]
pub fn write_program(path: &Path, script: &str) {
    let mut install = Command::new("install");
    let mut writer = install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "cannot write {}", path.display());
}

/// Eight threads, like concurrent tests: some write while others start programs.
#[test]
fn a_program_that_was_just_written_runs_beside_tests_that_start_others() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                for number in 0..20 {
                    let path = folder.path().join(number.to_string());
                    write_program(&path, &format!("#!/bin/sh\necho {number}\n"));
                    let said = Command::new(&path).output().unwrap().stdout;
                    assert_eq!(String::from_utf8_lossy(&said).trim(), number.to_string());
                }
            });
        }
    });
}
