//! What real-world kernels do that a simulator easily gets wrong, from the manifest to the records.

use std::path::Path;
use std::process::Command;

use runner_results::journal;
use runner_types::{CaseRecord, Outcome, Verdict};

#[test]
fn every_kernel_is_as_right_on_the_simulator_as_on_a_gpu() {
    let out = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/defects"))
        .args(["run", "experiments/defects.toml", "--backend", "sim", "--progress", "lines", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{said}");
    let records = journal::read_records(&out.path().join("records.jsonl")).unwrap();
    let find = |variant: &str| -> &CaseRecord {
        records.cases.iter().find(|case| case.case.key.variant == variant).unwrap_or_else(|| panic!("{variant}"))
    };
    for variant in ["wrap", "early20", "early40", "same_byte", "same_byte_in_block", "same_int"] {
        let case = find(variant);
        assert_eq!((&case.outcome, &case.verdict), (&Outcome::Measured, &Verdict::Pass), "{variant}");
        assert!(case.notes.is_empty(), "{variant}: {:?}", case.notes);
    }
    let subnormal = find("subnormal");
    assert_eq!((&subnormal.outcome, &subnormal.verdict), (&Outcome::Measured, &Verdict::Pass));
    let error = subnormal.error.unwrap();
    assert_eq!(error.abs.to_bits(), 1e-3_f64.to_bits());
    assert!(error.rel.is_infinite() && error.ulp.is_infinite(), "{error:?}");
    assert_eq!(find("lanes").outcome, Outcome::Measured);
    // Ignores Markdown escapes.
    let report = std::fs::read_to_string(out.path().join("report.md")).unwrap().replace('\\', "");
    for says in [
        "lanes of a warp store different values to 0x7",
        "(buffer `o` + 0) in one instruction at defects.cu:",
        "out-of-bounds 4-byte read of global memory at 0x7",
        ", 16 bytes before buffer `second` (128 bytes) in kernel `before` at defects.cu:",
        "launch 2 of 2: `trap` in kernel `prints` at defects.cu:",
        "the kernel printed 2 lines (kept in the journal)",
    ] {
        assert!(report.contains(says), "`{says}` is not in:\n{report}");
    }
    for variant in ["before", "sequence"] {
        let outcome = &find(variant).outcome;
        let trapped = matches!(outcome, Outcome::FailedAsExpected { end } if matches!(**end, Outcome::Trap { .. }));
        assert!(trapped, "{variant}: {outcome:?}");
    }
}
