//! `runner tune`, through the real binary.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs `runner` in a folder; returns its standard output.
fn tune(folder: &Path, options: &[&str], code: i32) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder)
        .arg("tune")
        .args(options)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
    if code == 0 { String::from_utf8(output.stdout).unwrap() } else { said }
}

#[test]
fn strategies_are_compared_on_a_measured_space() {
    let folder = tempfile::tempdir().unwrap();
    // 40 configurations: the time is 1 + |x - 6| + y / 10, and those with y = 4 failed.
    let mut text = "x,y,gpu_ms\n".to_owned();
    for (x, y) in (0..8_i32).flat_map(|x| (0..5).map(move |y| (x, y))) {
        let time = f64::from(1 + (x - 6).abs()) + f64::from(y) / 10.0;
        let time = if y == 4 { String::new() } else { time.to_string() };
        writeln!(text, "{x},{y},{time}").unwrap();
    }
    fs::write(folder.path().join("space.csv"), text).unwrap();
    let options = ["--simulate", "space.csv", "--strategy", "exhaustive,random", "--budget", "100%", "--searches", "3"];
    let table = tune(folder.path(), &options, 0);
    let lines: Vec<&str> = table.lines().collect();
    // Sorted, the times are 1, 1.1, 1.2, 1.3, then twice 2 to 2.3, and so on; the 17th of 32 is 4.
    assert_eq!(lines[0], "40 configurations, 8 of them failed; best 1, median 4; 1 within 1 % of the best.");
    // The cutoff is 1.15: place 31 of 32, worst first, is expected after 31 / 2 evaluations.
    assert_eq!(
        lines[1],
        "3 searches of 40 evaluations, 8 at once. Random search needs 16 evaluations to come near (score)."
    );
    // x is the first parameter: (6, 0) is at place 31 of the order.
    assert!(lines[5].starts_with("| exhaustive | 3 of 3 | 31 | 1.000 × | "), "{table}");
    assert!(lines[6].starts_with("| random | 3 of 3 | "), "{table}");
    let said = tune(folder.path(), &["--simulate", "space.csv", "--strategy", "guess"], 2);
    assert!(said.contains("--strategy guess: use one of portfolio, gaussian, "), "{said}");
    let said = tune(folder.path(), &["--simulate", "none.csv"], 2);
    assert!(said.contains("--simulate none.csv: cannot read none.csv: "), "{said}");
}

const MANIFEST: &str = r#"
[experiment]
name = "rounds"
compare = ["rounds", "width"]
baseline = { variant = "copy", rounds = 8, width = 32 }

[axes]
n = [256]
rounds = [1, 2, 4, 8]
width = [32, 64]

[matrix]
exclude = [{ when = "rounds == 4 && width == 64", why = "not today" }]

[buffers]
x = { type = "i32", len = "n", fill = "iota" }
y = { type = "i32", len = "n" }

[check]
actual = "y"
expect = "x"

[[variant]]
name   = "copy"
source = "copy.cu"
kernel = "copy<{rounds}>"
grid   = ["n / width"]
block  = ["width"]
args   = ["y", "x"]
"#;

/// Needs more instructions the more rounds there are, and is wrong with one round.
const KERNEL: &str = r"
template <int ROUNDS> __global__ void copy(int* y, const int* x)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = x[i];
    for (volatile int round = 1; round < ROUNDS; round++) {
        value ^= round;
        value ^= round;
    }
    y[i] = ROUNDS == 1 ? value + 1 : value;
}
";

#[test]
fn a_space_is_searched_on_the_simulator_and_its_finalists_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rounds.toml"), MANIFEST).unwrap();
    fs::write(folder.path().join("copy.cu"), KERNEL).unwrap();
    let options = [
        "rounds.toml",
        "--backend",
        "sim",
        "--budget",
        "100%",
        "--finalists",
        "2",
        "--out",
        "out",
        "--strategy",
        "random",
    ];
    tune(folder.path(), &options, 0);
    let out = folder.path().join("out");
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    // Two of the seven are wrong; the others are measured.
    let table = read("search.csv");
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len(), 7, "{table}");
    assert_eq!(rows.iter().filter(|row| row.contains("wrong")).count(), 2, "{table}");
    let page = read("search.md");
    assert!(
        page.contains(
            "7 of 7 configurations were evaluated by inst_executed (strategy random, seed 1), 2 of them failed."
        ),
        "{page}"
    );
    assert!(page.contains("| excluded: not today | 1 |"), "{page}");
    // The two right ones with the fewest rounds are the finalists, beside the baseline.
    let results = read("results.csv");
    assert_eq!(results.lines().count(), 4, "{results}");
    let records = runner::journal::read_records(&out.join("records.jsonl")).unwrap();
    let right = records.cases.iter().filter(|case| case.verdict == runner::model::Verdict::Pass);
    assert_eq!(right.count(), 3);
    let measured = search::format::read_measured(&out.join("search.json"), None).unwrap();
    assert_eq!((measured.space.len(), measured.sorted().len()), (7, 5));
    // A search that goes on has nothing left to evaluate.
    let before = read("search.jsonl");
    tune(folder.path(), &[&options[..], &["--resume"]].concat(), 0);
    assert_eq!(read("search.jsonl"), before);
}
