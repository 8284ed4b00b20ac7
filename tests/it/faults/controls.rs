//! Wrong kernels are caught, named and not timed; so are cases that cannot run at all.

use runner_types::{Outcome, Verdict};

use super::bench::{bench, fixture};
use super::left::{Left, files};

const TYPES: [&str; 2] = ["i32", "f32"];
const CHECK: &str = "output against copy(input)";

/// Expected report of a wrong element.
struct Wrong {
    variant: &'static str,
    what: &'static str,
    index: u64,
    /// One per type, in the order of [`TYPES`].
    expected: [&'static str; 2],
    got: [&'static str; 2],
    error: [Option<f64>; 2],
    /// Number of wrong elements, or of wrong bytes in a guard zone.
    count: u64,
}

/// Compares every field of a mismatch with what the kernel's source does.
#[track_caller]
fn expect_wrong(left: &Left, rows: &[Wrong], types: &[&str]) {
    for row in rows {
        for element in types {
            let at = TYPES.iter().position(|known| known == element).unwrap();
            let found = left.mismatch(row.variant, element);
            let said = (&*found.what, found.index, &*found.expected, &*found.got, found.error, found.wrong);
            let meant = (row.what, row.index, row.expected[at], row.got[at], row.error[at], row.count);
            assert_eq!(said, meant, "`{}` at {element}\n{}", row.variant, left.story());
        }
    }
}

const N: u64 = 100_003;

/// In memory, 7 is 07 00 00 00 as an integer and 00 00 e0 40 as a float.
const PAST_THE_END: Wrong = Wrong {
    variant: "one_past_the_end",
    what: "guard zone after `output`, indexed by distance in bytes",
    index: 0,
    expected: ["0xa5"; 2],
    got: ["0x07", "0x00"],
    error: [None; 2],
    count: 4,
};

const CHANGED_INPUT: Wrong = Wrong {
    variant: "changes_its_input",
    what: "input `input` was changed",
    index: 5,
    expected: ["6", "6.0"],
    got: ["7000", "7000.0"],
    error: [Some(6994.0); 2],
    count: 1,
};

/// The input is 1, 2, 3, …, so element i should be i + 1. Memory that was never written reads as NaN for floats and as
/// the poison value, four bytes of 0xCB, for integers.
const OF_BOTH_TYPES: [Wrong; 7] = [
    Wrong {
        variant: "leaves_zeros",
        what: CHECK,
        index: 0,
        expected: ["1", "1.0"],
        got: ["0", "0.0"],
        error: [Some(1.0); 2],
        count: N,
    },
    Wrong {
        variant: "writes_nothing",
        what: CHECK,
        index: 0,
        expected: ["1", "1.0"],
        got: ["-875836469 (never written)", "NaN (never written)"],
        error: [Some(875_836_470.0), None],
        count: N,
    },
    Wrong {
        variant: "skips_the_last",
        what: CHECK,
        index: N - 1,
        expected: ["100003", "100003.0"],
        got: ["-875836469 (never written)", "NaN (never written)"],
        error: [Some(875_936_472.0), None],
        count: 1,
    },
    PAST_THE_END,
    Wrong {
        variant: "before_the_start",
        what: "guard zone before `output`, indexed by distance in bytes",
        index: 0,
        expected: ["0xa5"; 2],
        got: ["0x00", "0x40"],
        error: [None; 2],
        count: 4,
    },
    CHANGED_INPUT,
    // Between 2^15 and 2^16, floats are 2^-8 apart; ten such steps are 0.0390625.
    Wrong {
        variant: "off_in_the_middle",
        what: CHECK,
        index: N / 2,
        expected: ["50002", "50002.0"],
        got: ["50003", "50002.04"],
        error: [Some(1.0), Some(0.039_062_5)],
        count: 1,
    },
];

const OF_FLOATS: [Wrong; 2] = [
    Wrong {
        variant: "writes_nan",
        what: CHECK,
        index: N / 3,
        expected: ["", "33335.0"],
        got: ["", "NaN"],
        error: [None; 2],
        count: 1,
    },
    Wrong {
        variant: "writes_infinity",
        what: CHECK,
        index: N / 3,
        expected: ["", "33335.0"],
        got: ["", "inf"],
        error: [None; 2],
        count: 1,
    },
];

#[test]
#[ignore = "needs a GPU"]
fn every_wrong_kernel_is_caught_and_named() {
    let bench = bench();
    let left = bench.run(&fixture("controls.toml"), "out", &[]);
    left.expect_code(1);
    left.expect_whole(20, 2);
    left.expect_sound(&["sound", "sound_at_the_end"]);
    expect_wrong(&left, &OF_BOTH_TYPES, &TYPES);
    expect_wrong(&left, &OF_FLOATS, &["f32"]);
    expect_refused(&left);

    // An error of 3 ulp is within the tolerance of 4 ulp, so the check is not merely bitwise.
    let near = left.at("near_in_the_middle", "f32");
    assert!(near.result.is_some() && near.verdict == Verdict::Pass, "{near:?}\n{}", left.story());
    for variant in ["writes_nan", "writes_infinity", "near_in_the_middle"] {
        let why = "requires type == \"f32\"".to_owned();
        assert_eq!(left.at(variant, "i32").outcome, Outcome::Excluded { why }, "{}", left.story());
    }
    let report = left.report();
    for text in
        ["2048 threads per block, the device allows 1024", "changes_its_input", "was changed", "does_not_compile"]
    {
        assert!(report.contains(text), "the report does not say `{text}`:\n{report}");
    }
    expect_rebuilt(&bench, &left);
}

/// Cases that never ran say why, in every group.
fn expect_refused(left: &Left) {
    let expect = |variant: &str, is_right: &dyn Fn(&Outcome) -> bool| {
        for record in left.find_all(variant) {
            assert!(is_right(&record.outcome), "`{variant}` is {:?}\n{}", record.outcome, left.story());
        }
    };
    let invalid = |variant: &str, text: &str| {
        expect(variant, &|outcome| matches!(outcome, Outcome::Invalid { limit } if limit.contains(text)));
    };
    invalid("block_too_large", "2048 threads per block, the device allows 1024");
    invalid("empty_grid", "0");
    invalid("shared_too_large", "1048576 bytes of shared memory per block, the device allows ");
    invalid("static_and_dynamic_shared_too_large", " dynamic), the device allows ");
    expect("does_not_compile", &|outcome| {
        let text = "this kernel is here to be refused";
        matches!(outcome, Outcome::CompileError { log, .. } if log.contains(text) && log.contains("controls.cu"))
    });
    expect("argument_too_wide", &|outcome| {
        let text = "takes 4 bytes as argument 3, but the launch passes 8";
        matches!(outcome, Outcome::LaunchError { message } if message.contains(text))
    });
    expect(
        "divides_by_zero",
        &|outcome| matches!(outcome, Outcome::Unresolved { message } if message.contains("zero")),
    );
    expect(
        "larger_than_memory",
        &|outcome| matches!(outcome, Outcome::OutOfMemory { needed, available } if needed > available && *available > 0),
    );
}

/// The records alone reproduce the report in another folder.
fn expect_rebuilt(bench: &super::bench::Bench, left: &Left) {
    let mut first = files(&left.dir);
    first.retain(|path, _| !path.to_string_lossy().starts_with("journal"));
    assert!(first.len() >= 4, "{:?}", first.keys());
    let copy = bench.path("rebuilt");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(left.dir.join("records.jsonl"), copy.join("records.jsonl")).unwrap();
    let args = ["report".to_owned(), super::bench::text(&copy)];
    bench.start(&args, copy.clone()).end().expect_code(0);
    let mut second = files(&copy);
    // Making a report leaves a lock in its folder.
    second.retain(|path, _| !path.to_string_lossy().starts_with("journal"));
    assert_eq!(second.keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>());
    for (path, bytes) in &first {
        assert!(second[path] == *bytes, "{} differs from what the run wrote", path.display());
    }
}

const LATER: &str = "output against copy(input), in a launch that finds outputs, variables and scratch as an earlier launch \
                     left them";
const LATER_GUARD: &str = "guard zone after `output`, indexed by distance in bytes, in a launch that finds outputs, \
                           variables and scratch as an earlier launch left them";

/// Memory that the second launch did not write contains bytes of 0xCB for floats and of 0xB4 for integers.
const LATE: [Wrong; 4] = [
    Wrong {
        variant: "right_once",
        what: LATER,
        index: 5003,
        expected: ["5004", "5004.0"],
        got: ["5005", "5005.0"],
        error: [Some(1.0); 2],
        count: 1,
    },
    Wrong {
        variant: "writes_once",
        what: LATER,
        index: 0,
        expected: ["1", "1.0"],
        got: ["-1263225676 (never written)", "-26711958.0 (never written)"],
        error: [Some(1_263_225_677.0), Some(26_711_959.0)],
        count: 10_007,
    },
    Wrong { variant: "stays_inside_once", what: LATER_GUARD, ..PAST_THE_END },
    Wrong { variant: "leaves_its_input_alone_once", ..CHANGED_INPUT },
];

#[test]
#[ignore = "needs a GPU"]
fn what_goes_wrong_only_in_a_later_launch_is_caught_in_the_second() {
    let bench = bench();
    let left = bench.run(&fixture("late.toml"), "out", &[]);
    left.expect_code(1);
    left.expect_whole(6, 2);
    left.expect_sound(&["sound", "sound_at_the_end"]);
    expect_wrong(&left, &LATE, &TYPES);
}
