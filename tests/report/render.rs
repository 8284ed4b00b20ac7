//! What the files of a report say.

use std::path::{Path, PathBuf};

use runner::model::Records;
use runner::{analyse, render};

use crate::fixture::{self, Run};

fn records(run: &Run) -> Records {
    analyse::records(&run.events).unwrap()
}

fn file(records: &Records, name: &str) -> String {
    let files = render::files(records).unwrap();
    files.into_iter().find(|(path, _)| path == Path::new(name)).unwrap().1
}

/// Compares with the file kept; `RUNNER_BLESS=1` writes it anew, for a person to read the difference.
fn assert_golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/report/golden").join(name);
    if std::env::var_os("RUNNER_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, kept, "{name} is not as kept; run with RUNNER_BLESS=1 and read the difference");
}

#[test]
fn reports_are_as_kept() {
    for (name, run) in [
        ("reduce", fixture::reduce()),
        ("sum_matrix", fixture::sum_matrix()),
        ("faults", fixture::faults()),
        ("simulated", fixture::simulated()),
    ] {
        for (path, text) in render::files(&records(&run)).unwrap() {
            if path.extension().is_none_or(|e| e != "jsonl") {
                assert_golden(&format!("{name}/{}", path.display()), &text);
            }
        }
    }
}
