//! Records of every version that was ever committed can be read.

use std::path::{Path, PathBuf};

use runner_results::journal::{header_of, parse_records, read_records};
use runner_types::{CaseRecord, Dim3, Note, Outcome, Records, Regime};

fn fixture(name: &str, version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/versions").join(format!("{name}.{version}.jsonl"))
}

fn read(name: &str, version: &str) -> Records {
    read_records(&fixture(name, version)).unwrap_or_else(|error| panic!("{error}"))
}

const REPORTS: [&str; 4] = ["textbook_errors", "nested_hello", "launch_limits", "cooperative_groups"];

/// Committed reports of an H100, as measured, and as the program of that time converted them to the next version.
#[test]
fn every_version_is_read_as_the_next_one_that_was_made_of_it() {
    for name in REPORTS {
        for (old, new) in [("2", "2-as-3"), ("3", "3-as-4")] {
            let (old, new) = (read(name, old), read(name, new));
            assert_eq!(old, new, "{name}");
        }
        // Notes of version 1 are sentences; the conversion recognised some of them.
        let [old, new] = [read(name, "1"), read(name, "1-as-2")];
        let sentences = |record: &CaseRecord| record.notes.iter().all(|note| matches!(note, Note::Text(_)));
        assert!(old.cases.iter().all(sentences), "{name}");
        let notes = |records: &Records| records.cases.iter().map(|record| record.notes.len()).sum::<usize>();
        assert_eq!(notes(&old), notes(&new), "{name}");
        // The conversion also reworded limits, so outcomes are not compared.
        for (old, new) in old.cases.iter().zip(&new.cases) {
            assert_eq!(old.case, new.case);
            assert_eq!(old.result, new.result);
            assert_eq!(old.launches, new.launches);
            assert_eq!(old.counters, new.counters);
        }
    }
}

/// Expected values are copied from the text of the files.
#[test]
fn values_of_version_1_are_where_they_belong() {
    let records = read("launch_limits", "1");
    let flood = &records.cases[0];
    assert_eq!(flood.case.key.to_string(), "flood[pending=2048, asked=24]");
    let result = flood.result.as_ref().unwrap();
    let time = (result.time.low, result.time.point, result.time.high, result.time.confidence);
    assert_eq!(time, (283_644.887_193_661_9, 285_175.081_098_713_1, 287_227.318_067_499_96, 0.95));
    assert_eq!((result.regime, result.samples, result.launches, result.sets), (Regime::Cold, 15, 1, 1));
    assert_eq!((result.working_set, result.sm_clock.unwrap().median), (Some(8), 1980));
    let launch = &flood.launches[0];
    assert_eq!(
        (launch.grid, launch.resources.registers, launch.resources.local),
        (Dim3::new(1, 1, 1), Some(24), Some(16))
    );
    assert_eq!(launch.occupancy.as_ref().unwrap().blocks_per_sm, 32);

    let records = read("textbook_errors", "1");
    let wrong = &records.cases[1];
    let Outcome::FailedAsExpected { end } = &wrong.outcome else { panic!("{:?}", wrong.outcome) };
    assert!(
        matches!(&**end, Outcome::Wrong { mismatch } if mismatch.expected == "1272667" && mismatch.got == "1290544")
    );
    assert_eq!(wrong.launches[0].resources.shared_static, Some(1025));

    let counted = read("cooperative_groups", "1");
    assert_eq!(counted.cases[0].counters.as_ref().unwrap().get("branch"), Some(724.0));
}

#[test]
fn the_header_of_an_older_file_is_read_alone() {
    for version in ["1", "2", "3"] {
        assert_eq!(header_of(&fixture("nested_hello", version)).unwrap().experiment, "nested_hello");
    }
}

#[test]
fn lines_of_older_files_that_are_no_objects_are_errors() {
    let header = "{\"v\":1,\"columns\":7}\n";
    for text in ["[1]\n", "7\n", "[]\n{}\n", header] {
        assert!(parse_records(text, Path::new("records.jsonl")).is_err(), "{text}");
    }
}
