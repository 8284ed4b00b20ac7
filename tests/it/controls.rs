//! Ways to cheat an evaluator, from `tests/controls`. Each must be caught by the means that the manual names.
//!
//! These tests run on the simulator and, if there is one, on a GPU. `RUNNER_CONTROLS` overrides the folder of the
//! manifests, by default the package's `tests/controls`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use runner_process::programs::Programs;
use runner_results::journal;
use runner_types::{CaseRecord, Outcome, Records, Verdict};

use crate::faults::bench::bench;
use Caught::{Fault, Right, Wrong};

/// How a control must end.
#[derive(Debug, Clone, Copy)]
enum Caught {
    /// Wrong, for a reason that begins with this text.
    Wrong(&'static str),
    /// Device fault, with this text.
    Fault(&'static str),
    /// Measured or counted, legitimately; says why.
    Right(&'static str),
}

struct Control {
    exploit: &'static str,
    cuda: Caught,
    sim: Caught,
}

const CHECK: &str = "output against copy(input)";
const SECOND_SET: Caught = Wrong("output against copy(input), on a second set of inputs");
const THIRD_SET: Caught = Wrong("output against copy(input), on a third set of inputs");
const CARRIED: Caught = Wrong(
    "output against copy(input), in a launch that finds outputs, variables and scratch as an earlier launch left",
);
const CHANGED: Caught = Wrong("input `input` was changed");
const FIRST: Caught = Wrong(CHECK);
const TIMED: Caught = Wrong("output against copy(input), in timed ");
/// Which launch is named depends on how many launches preceded it since scratch was poisoned.
const LATER: Caught = Wrong("output against copy(input), ");
const UNWRITTEN: Caught = Fault("which was never written");

const fn control(exploit: &'static str, cuda: Caught, sim: Caught) -> Control {
    Control { exploit, cuda, sim }
}

const CONTROLS: [Control; 19] = [
    control("honest", Right("right"), Right("right")),
    control("remembers_in_a_variable", CARRIED, SECOND_SET),
    control("remembers_in_scratch", SECOND_SET, UNWRITTEN),
    control("remembers_two_results_by_an_element", THIRD_SET, UNWRITTEN),
    control("remembers_two_results_once_it_is_timed", TIMED, UNWRITTEN),
    control("wrong_in_every_eighth_launch", TIMED, UNWRITTEN),
    control("lazy_after_four_launches", LATER, UNWRITTEN),
    control("right_only_at_the_end_of_a_span", FIRST, UNWRITTEN),
    control("returns_early_if_its_output_exists", CARRIED, UNWRITTEN),
    control("returns_early_if_a_part_of_its_output_is_right", CARRIED, UNWRITTEN),
    control("returns_early_by_a_flag", FIRST, UNWRITTEN),
    control("writes_nan", FIRST, FIRST),
    control("writes_nothing", FIRST, FIRST),
    control("leaves_the_tail", FIRST, FIRST),
    control("changes_its_input", CHANGED, CHANGED),
    control("writes_just_behind_its_output", Wrong("guard zone after `output`"), Fault("out-of-bounds 4-byte ")),
    control(
        "reads_just_behind_its_input",
        Right("it reads the guard zone, which `run --memcheck` finds"),
        Fault("out-of-bounds 4-byte "),
    ),
    control(
        "writes_280_kb_behind_its_output",
        Fault("CUDA_ERROR_ILLEGAL_ADDRESS"),
        Right("it hits a variable of the module"),
    ),
    control("searches_memory_behind_its_output", Fault("CUDA_ERROR_ILLEGAL_ADDRESS"), Fault("out-of-bounds 4-byte ")),
];

fn folder() -> PathBuf {
    let package = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controls");
    std::env::var_os("RUNNER_CONTROLS").map_or_else(package, PathBuf::from)
}

impl Caught {
    fn is(self, record: &CaseRecord) -> bool {
        match (self, &record.outcome) {
            (Wrong(text), Outcome::Wrong { mismatch }) => mismatch.what.starts_with(text),
            (Fault(text), Outcome::Trap { message } | Outcome::LaunchError { message }) => message.contains(text),
            (Right(_), Outcome::Measured | Outcome::Unstable { .. }) => record.verdict == Verdict::Pass,
            _ => false,
        }
    }

    /// Cell in the manual's table.
    fn cell(self) -> String {
        match self {
            Wrong(text) => format!("wrong: {}", text.trim_end().trim_end_matches(',')),
            Fault(text) => format!("fault: {}", text.trim_end()),
            Right(why) => format!("not wrong: {why}"),
        }
    }
}

#[track_caller]
fn assert_caught(records: &Records, expected: impl Fn(&Control) -> Caught) {
    let mut missed = String::new();
    for control in &CONTROLS {
        let of: Vec<&CaseRecord> =
            records.cases.iter().filter(|record| record.case.key.variant == control.exploit).collect();
        assert!(!of.is_empty(), "{} has no row", control.exploit);
        for record in of.into_iter().filter(|record| !expected(control).is(record)) {
            let _ = writeln!(missed, "{}: {:?}, {:?}", control.exploit, record.outcome, record.verdict);
        }
    }
    assert!(missed.is_empty(), "{missed}");
    let variants: BTreeSet<&str> = records.cases.iter().map(|record| record.case.key.variant.as_str()).collect();
    assert_eq!(variants.len(), CONTROLS.len());
}

#[test]
fn the_simulator_catches_what_shows_in_one_launch() {
    let out = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["run", "--backend", "sim", "--progress", "lines", "--out"])
        .arg(out.path())
        .arg(folder().join("exploits.toml"))
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", String::from_utf8_lossy(&run.stderr));
    let records = journal::read_records(&out.path().join(journal::RECORDS_FILE)).unwrap();
    assert_caught(&records, |control| control.sim);
}

#[test]
#[ignore = "needs a GPU"]
fn a_gpu_catches_every_way_to_cheat() {
    let bench = bench();
    let left = bench.run(&folder().join("exploits.toml"), "out", &[]);
    left.expect_code(1);
    assert_caught(&left.records(), |control| control.cuda);
}

#[test]
#[ignore = "needs a GPU"]
fn compute_sanitizer_finds_a_read_that_no_check_can_see() {
    let bench = bench();
    let narrowed = ["--memcheck", "--variant", "honest", "--variant", "reads_just_behind_its_input"];
    let left = bench.run(&folder().join("exploits.toml"), "out", &narrowed);
    left.expect_code(1);
    left.expect_sound(&["honest"]);
    let outcome = left.find_all("reads_just_behind_its_input").remove(0).outcome;
    let Outcome::Trap { message } = &outcome else { panic!("{outcome:?}") };
    let words = ["compute-sanitizer: Invalid __global__ read of size 4 bytes", "thread (0,0,0) in block (256,0,0)"];
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_host_function_that_works_elsewhere_or_changes_the_context_is_caught() {
    let bench = bench();
    if Programs::of_this_machine().find("nvcc").is_none() {
        println!("skipped: no nvcc");
        return;
    }
    let left = bench.run(&folder().join("host_exploits.toml"), "out", &["--allow-host-code"]);
    left.expect_code(1);
    left.expect_sound(&["honest_call", "sets_l2_aside", "finds_l2_as_it_was"]);
    left.expect_sound(&["changes_the_context", "finds_the_context_as_it_was"]);
    let found = |outcome: &Outcome| {
        let text = "leaves work in a stream other than the one it was given";
        matches!(outcome, Outcome::LaunchError { message } if message.contains(text))
    };
    let waits = left.find_all("works_in_another_stream_and_waits").remove(0).outcome;
    assert!(found(&waits), "{waits:?}");
    let leaves = left.find_all("works_in_another_stream").remove(0).outcome;
    // Either its output is incomplete when it is compared, or its unfinished work is detected.
    assert!(found(&leaves) || matches!(leaves, Outcome::Wrong { .. }), "{leaves:?}");
}

#[test]
fn the_manual_says_what_catches_each() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/controls.md")).unwrap();
    for Control { exploit, cuda, sim } in &CONTROLS {
        let row = format!("| `{exploit}` | {} | {} |", cuda.cell(), sim.cell());
        assert!(page.contains(&row), "docs/reference/controls.md lacks the row\n{row}");
    }
}

/// Check, index of the first unwritten element, and number of unwritten elements.
#[test]
fn the_simulator_knows_which_elements_were_never_written() {
    let out = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["run", "--backend", "sim", "--progress", "lines", "--out"])
        .arg(out.path())
        .arg(folder().join("unwritten.toml"))
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", String::from_utf8_lossy(&run.stderr));
    let records = journal::read_records(&out.path().join(journal::RECORDS_FILE)).unwrap();
    let check = "out against copy(wanted)";
    for (variant, found) in [
        ("nothing", Some((check, 0, 32))),
        ("nothing_in_bytes", Some((check, 0, 32))),
        ("all_but_one", Some((check, 7, 1))),
        ("all_but_one_summed", Some(("sum(out) against sum(wanted): elements of `out`", 7, 1))),
        ("a_tenth_may_be_wrong", None),
        ("half_of_it", Some((check, 16, 16))),
        ("half_of_it_checked", None),
        ("a_byte_of_each", Some((check, 0, 31))),
        ("copied", Some((check, 0, 32))),
    ] {
        let record = records.cases.iter().find(|record| record.case.key.variant == variant).unwrap();
        match (&record.outcome, found) {
            (Outcome::Wrong { mismatch }, Some((what, index, wrong))) => {
                assert_eq!((mismatch.what.as_str(), mismatch.index, mismatch.wrong), (what, index, wrong), "{variant}");
                assert!(mismatch.got.ends_with("(never written)") && mismatch.of == 32, "{variant}: {mismatch:?}");
            }
            (Outcome::Measured, None) => assert_eq!(record.verdict, Verdict::Pass, "{variant}"),
            (outcome, _) => panic!("{variant}: {outcome:?}"),
        }
    }
}

/// Runs `constants.toml` on the simulator. Asserts that the variants `right` pass, and that each variant in `caught`
/// fails with a message that contains the given text.
#[track_caller]
fn assert_constants(options: &[&str], right: &[&str], caught: &[(&str, &str)]) {
    let out = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["run", "--backend", "sim", "--progress", "lines", "--out"])
        .args([out.path(), &folder().join("constants.toml")])
        .args(options)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", String::from_utf8_lossy(&run.stderr));
    let records = journal::read_records(&out.path().join(journal::RECORDS_FILE)).unwrap();
    assert_eq!(records.cases.len(), right.len() + caught.len());
    let outcome = |variant: &str| -> &Outcome {
        &records.cases.iter().find(|record| record.case.key.variant == variant).unwrap().outcome
    };
    for variant in right {
        assert_eq!(*outcome(variant), Outcome::Measured, "{variant}");
    }
    for (variant, text) in caught {
        let outcome = outcome(variant);
        let found = match outcome {
            Outcome::Wrong { mismatch } => mismatch.what == *text,
            Outcome::Trap { message } => message.starts_with(text),
            _ => false,
        };
        assert!(found, "{variant}: {outcome:?}");
    }
}

#[test]
fn the_simulator_catches_what_is_right_for_the_inputs_of_the_manifest_alone() {
    let right = ["sums", "copies", "copies_in_a_sample"];
    let caught = [
        ("stores", "sum against sum(numbers), on a second set of inputs"),
        ("counts", "copy against copy(order), on a second set of inputs"),
        ("counts_in_a_sample", "copy against copy(order), on a second set of inputs"),
        ("trusts_its_sum", "on a second set of inputs: out-of-bounds 4-byte read "),
    ];
    // Checks that would take the simulator more than a second need `--thorough`.
    assert_constants(&[], &[&right[..], &["spins_and_stores"]].concat(), &caught);
    let late = [("spins_and_stores", "sum against sum(numbers), on a second set of inputs")];
    assert_constants(&["--thorough"], &right, &[&caught[..], &late].concat());
}
