//! Kernels that hang, abort or print affect only their own row.

use std::time::Duration;

use runner_types::{Event, Note, Outcome, Unchecked, Verdict};

use super::bench::{bench, fixture};
use super::left::Left;

/// Time allowed in addition to the hanging kernels: for starting, compiling, and a new worker after each fault.
const SLACK: Duration = Duration::from_secs(75);

/// Driver messages of a variant's rows that ended in a launch error.
#[track_caller]
fn launch_errors(left: &Left, variant: &str) -> Vec<String> {
    let message = |outcome| match outcome {
        Outcome::LaunchError { message } => message,
        other => panic!("`{variant}` is {other:?}\n{}", left.story()),
    };
    left.find_all(variant).into_iter().map(|record| message(record.outcome)).collect()
}

#[test]
#[ignore = "needs a GPU"]
fn a_null_pointer_and_an_endless_loop_cost_no_row_but_their_own() {
    let bench = bench();
    let left = bench.run(&fixture("survive.toml"), "out", &[]);
    left.expect_code(1);
    left.expect_whole(6, 3);
    left.expect_sound(&["sound", "grid_stride", "backwards", "memcpy"]);
    for message in launch_errors(&left, "null_write") {
        assert!(message.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{message}\n{}", left.story());
        assert!(message.contains("an illegal memory access was encountered"), "{message}\n{}", left.story());
    }
    for record in left.find_all("never_ends") {
        assert_eq!(record.outcome, Outcome::TimedOut { limit_seconds: 2.0, message: None }, "{}", left.story());
    }
    assert!(left.took < 3 * Duration::from_secs(2) + SLACK, "{:?}\n{}", left.took, left.story());
    // Speedups come from interleaved samples, taken after the faults.
    for record in ["grid_stride", "backwards", "memcpy"].iter().flat_map(|variant| left.find_all(variant)) {
        assert!(record.result.unwrap().against_baseline.is_some(), "{}\n{}", record.case.key, left.story());
    }
    assert!(left.stderr.contains("no answer within 2 s"), "{}", left.story());
}

/// Variants whose only launch is aborted, and the driver errors that this may cause, depending on how far the hardware
/// gets.
const ABORTED: [(&str, &[&str]); 7] = [
    ("device_assert", &["CUDA_ERROR_ASSERT"]),
    ("trap", &["CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION"]),
    (
        "wild_jump",
        &[
            "CUDA_ERROR_INVALID_PC",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "CUDA_ERROR_LAUNCH_FAILED",
        ],
    ),
    ("misaligned", &["CUDA_ERROR_MISALIGNED_ADDRESS"]),
    (
        "shared_out_of_range",
        &[
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "CUDA_ERROR_LAUNCH_FAILED",
            "CUDA_ERROR_INVALID_ADDRESS_SPACE",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        ],
    ),
    ("stack_overflow", &["CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_HARDWARE_STACK_ERROR"]),
    ("aborts_when_timed", &["CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION"]),
];

#[test]
#[ignore = "needs a GPU"]
fn every_kind_of_abort_is_told_in_the_drivers_words_and_survived() {
    let bench = bench();
    let left = bench.run(&fixture("aborts.toml"), "out", &[]);
    left.expect_code(1);
    left.expect_whole(11, 1);
    left.expect_sound(&["sound", "sound_between", "sound_at_the_end"]);
    let mut surprises = Vec::new();
    for (variant, names) in ABORTED {
        for message in launch_errors(&left, variant) {
            if !names.iter().any(|name| message.starts_with(name)) {
                surprises.push(format!("{variant}: {message}, expected one of {names:?}"));
            }
        }
    }
    assert!(surprises.is_empty(), "{surprises:#?}\n{}", left.story());
    let hung = &left.find_all("hangs_when_timed")[0];
    assert_eq!(hung.outcome, Outcome::TimedOut { limit_seconds: 2.0, message: None }, "{}", left.story());
    // Both fail in their second launch, so they never count as right.
    for variant in ["aborts_when_timed", "hangs_when_timed"] {
        assert_eq!(
            left.find_all(variant)[0].verdict,
            Verdict::Unchecked(Unchecked::NotRun),
            "{variant}\n{}",
            left.story()
        );
    }
    assert!(left.took < Duration::from_secs(2) + SLACK, "{:?}\n{}", left.took, left.story());
}

/// Maximum number of bytes kept of what a case prints.
const KEPT: usize = 64 << 10;

#[test]
#[ignore = "needs a GPU"]
fn what_kernels_print_is_kept_as_theirs_and_harms_nothing() {
    let bench = bench();
    let left = bench.run(&fixture("prints.toml"), "out", &[]);
    left.expect_code(1);
    left.expect_whole(5, 1);
    left.expect_sound(&["silent", "greets", "forges", "floods"]);
    assert_eq!(left.mismatch("prints_and_is_wrong", "4099").index, 1);

    let events = left.events();
    let printed: Vec<(&str, &str)> = events
        .iter()
        .filter_map(|event| match event {
            Event::CasePrinted { case, text } => Some((case.key.variant.as_str(), text.as_str())),
            _ => None,
        })
        .collect();
    let printed_by = |variant: &str| {
        let mut texts = printed.iter().filter(|(name, _)| *name == variant);
        let (_, text) = texts.next().unwrap_or_else(|| panic!("`{variant}` printed nothing\n{}", left.story()));
        assert!(texts.next().is_none(), "`{variant}` printed twice: {printed:?}");
        *text
    };
    assert_eq!(printed.len(), 4, "{printed:?}");
    assert_eq!(printed_by("greets"), "hello from 4099 elements\nand good bye");
    assert_eq!(printed_by("forges"), "{\"reply\":\"group_done\",\"ordinal\":0}\n{\"reply\":\"stopped\"}");
    assert_eq!(printed_by("prints_and_is_wrong"), "wrong on purpose");
    // Threads may print in any order, so only the number and the form of the lines are known.
    let whole: usize = (0..4099).map(|i| format!("element {i} is {} and says so at length\n", i + 1).len()).sum();
    let (kept, cut) = printed_by("floods").rsplit_once('\n').unwrap();
    assert_eq!(cut, format!("… ({} more bytes were printed)", whole - KEPT));
    assert!(kept.starts_with("element ") && kept.len() <= KEPT, "{} bytes: {:.200}", kept.len(), kept);

    let note = &left.find_all("greets")[0].notes;
    assert!(note.contains(&Note::Printed { lines: 2 }), "{note:?}\n{}", left.story());
    assert!(!left.stdout.contains("good bye") && !left.stderr.contains("good bye"), "{}", left.story());
}
