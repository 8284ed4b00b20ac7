//! `runner tune`, through the real binary.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

fn command(folder: &Path, options: &[&str]) -> Command {
    // If a script runs the tests in the background, they have inherited an ignored SIGINT.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_runner")]);
    command.current_dir(folder).arg("tune").args(options).env("CUDA_VISIBLE_DEVICES", "");
    command
}

/// Runs `runner tune` in a folder. Returns its standard output, or its standard error if `code` is not 0.
fn tune(folder: &Path, options: &[&str], code: i32) -> String {
    let output = command(folder, options).output().unwrap();
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
    // The sorted times are 1, 1.1, 1.2, 1.3, then 2 to 2.3, each twice, and so on; the 17th of 32 is 4.
    assert_eq!(lines[0], "40 configurations, 8 of them failed; best 1, median 4; 1 within 1 % of the best.");
    // The cutoff is 1.15. Counted from the worst, it is at place 31 of 32, which takes 31 / 2 evaluations on average.
    assert_eq!(
        lines[1],
        "3 searches of 40 evaluations, 8 at once. Random search needs 16 evaluations to come near (score)."
    );
    // x is the first parameter, so (6, 0) is the 31st in order.
    assert!(lines[5].starts_with("| exhaustive | 3 of 3 | 31 | 1.000 × | "), "{table}");
    assert!(lines[6].starts_with("| random | 3 of 3 | "), "{table}");
    let said = tune(folder.path(), &["--simulate", "space.csv", "--strategy", "guess"], 2);
    assert!(said.contains("--strategy guess: use one of portfolio, gaussian, "), "{said}");
    let said = tune(folder.path(), &["--simulate", "none.csv"], 2);
    assert!(said.contains("--simulate none.csv: cannot read none.csv: "), "{said}");
}

#[test]
fn a_million_evaluations_need_less_than_a_gibibyte() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "a,b,c,gpu_ms\n".to_owned();
    for (a, b, c) in (0..1_000_000_i32).map(|n| (n / 10_000, n / 100 % 100, n % 100)) {
        writeln!(text, "{a},{b},{c},{}", 1 + (a - 60).abs() * 10_000 + (b - 7).abs() * 100 + c).unwrap();
    }
    fs::write(folder.path().join("space.csv"), text).unwrap();
    let options = "tune --simulate space.csv --strategy exhaustive --budget 100% --searches 1";
    let script = format!("ulimit -v 1048576 && exec {} {options}", env!("CARGO_BIN_EXE_runner"));
    let output = Command::new("sh").arg("-c").arg(script).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("1 searches of 1000000 evaluations") && table.contains("| exhaustive | 1 of 1 | "),
        "{table}"
    );
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

/// More rounds need more instructions. One round yields a wrong result, and 1001 to 1003 fail in other ways.
const KERNEL: &str = r"
template <int ROUNDS> __global__ void copy(int* y, const int* x)
{
    static_assert(ROUNDS != 1001);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int value = x[i];
    if (ROUNDS == 1002) {
        y[i + 100000] = value;
    }
    for (volatile int round = 1003; round == ROUNDS;) {
    }
#pragma unroll 1
    for (int round = 1; round < ROUNDS; round++) {
        ((volatile int*)y)[i] = round;
    }
    y[i] = ROUNDS == 1 ? value + 1 : value;
}
";

#[test]
fn a_space_is_searched_on_the_simulator_and_its_finalists_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    // The strategy on the command line overrides the manifest's.
    let search = "[search]\nstrategy = \"exhaustive\"\nbudget = \"100%\"\nfinalists = 2\nseed = 5\n";
    fs::write(folder.path().join("rounds.toml"), format!("{MANIFEST}\n{search}")).unwrap();
    fs::write(folder.path().join("copy.cu"), KERNEL).unwrap();
    let options = ["rounds.toml", "--backend", "sim", "--out", "out", "--strategy", "random"];
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
        page.contains("7 of 7 configurations were evaluated by inst_executed (strategy random, seed 5); 2 failed."),
        "{page}"
    );
    assert!(page.contains("| excluded: not today | 1 |  |"), "{page}");
    assert!(read("search.html").contains("<svg ") && !read("search.html").contains("copy<1>"));
    // Five passing configurations, and four lines of the legend.
    assert_eq!(read("search.svg").matches("<polyline").count(), 5 + 4);
    // The finalists are the two passing configurations with the fewest rounds; the baseline is reported too.
    let results = read("results.csv");
    assert_eq!(results.lines().count(), 4, "{results}");
    let records = runner_results::journal::read_records(&out.join("records.jsonl")).unwrap();
    let right = records.cases.iter().filter(|case| case.verdict == runner_types::Verdict::Pass);
    assert_eq!(right.count(), 3);
    let measured = search::format::read_measured(&out.join("search.json"), None).unwrap();
    assert_eq!((measured.space.len(), measured.sorted().len()), (7, 5));
    // A resumed search has nothing left to evaluate.
    let before = read("search.jsonl");
    tune(folder.path(), &[&options[..], &["--resume"]].concat(), 0);
    assert_eq!(read("search.jsonl"), before);
    // A new search keeps the evaluations of the previous one until the next search.
    assert!(!out.join("search.previous.jsonl").exists());
    tune(folder.path(), &options, 0);
    assert_eq!(read("search.previous.jsonl"), before);
    let mut check = Command::new(env!("CARGO_BIN_EXE_runner"));
    let checked = check.args(["report", "--check"]).arg(&out).current_dir(folder.path()).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// A variant linked from two sources, for which no machine code counts are derived.
const LINKED: &str = r#"
[[variant]]
name   = "linked"
source = ["copy.cu", "more.cu"]
kernel = "copy<{rounds}>"
grid   = ["n / width"]
block  = ["width"]
args   = ["y", "x"]
"#;

#[test]
fn a_space_with_a_count_that_cannot_be_derived_is_ranked_by_counts_of_the_ptx_and_the_page_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let manifest =
        MANIFEST.replace("rounds = [1, 2, 4, 8]", "rounds = [4, 8]").replace("width = [32, 64]", "width = [32]");
    fs::write(folder.path().join("rounds.toml"), manifest + LINKED).unwrap();
    fs::write(folder.path().join("copy.cu"), KERNEL).unwrap();
    fs::write(folder.path().join("more.cu"), "__device__ int more(int x)\n{\n    return x;\n}\n").unwrap();
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    let run = |out: &str, more: &[&str]| {
        let options = ["rounds.toml", "--backend", "sim", "--strategy", "exhaustive", "--budget", "100%", "--out", out];
        tune(folder.path(), &[&options[..], more].concat(), 0);
        let table = read(&format!("{out}/search.csv"));
        let rows: Vec<Vec<String>> = table.lines().map(|row| row.split(',').map(str::to_owned).collect()).collect();
        (rows, read(&format!("{out}/search.md")))
    };
    let (rows, page) = run("all", &[]);
    assert_eq!(rows[0], ["n", "rounds", "width", "variant", "ptx_inst_executed", "reason"]);
    assert!(rows.len() == 5 && rows[1..].iter().all(|row| row[4].parse::<u32>().unwrap() > 0), "{rows:?}");
    assert!(page.contains("4 of 4 configurations were evaluated by ptx_inst_executed (strategy"), "{page}");
    let why = "For 2 of them, inst_executed could not be derived from the machine code, so all are ranked by PTX \
               counts (ptx_inst_executed).";
    assert!(page.contains(why), "{page}");
    // Each of the 8 warps runs four more rounds of four instructions: a store, an addition, a comparison and a branch.
    for variant in ["copy", "linked"] {
        let count = |rounds: &str| -> u32 {
            rows.iter().find(|row| row[1] == rounds && row[3] == variant).unwrap()[4].parse().unwrap()
        };
        assert_eq!(count("8") - count("4"), 8 * 4 * 4, "{rows:?}");
    }
    // A resumed search takes the counter from the stored evaluations.
    assert_eq!(run("all", &["--resume"]).0, rows);
    let (rows, page) = run("one", &["--variant", "copy"]);
    assert_eq!(rows[0][4], "inst_executed");
    assert!(page.contains("evaluated by inst_executed (strategy") && !page.contains("PTX"), "{page}");
}

/// Writes the manifest with these rounds, and its kernel. The time limit is ample even for a slow machine.
fn write_space(folder: &Path, rounds: &str) {
    write_space_with_limit(folder, rounds, "10min");
}

fn write_space_with_limit(folder: &Path, rounds: &str, limit: &str) {
    let manifest = MANIFEST.replace("rounds = [1, 2, 4, 8]", &format!("rounds = [{rounds}]"));
    fs::write(folder.join("rounds.toml"), format!("{manifest}\n[measure]\ntimeout = \"{limit}\"\n")).unwrap();
    fs::write(folder.join("copy.cu"), KERNEL).unwrap();
}

#[test]
fn a_configuration_that_fails_in_any_way_costs_itself_alone() {
    let folder = tempfile::tempdir().unwrap();
    write_space_with_limit(folder.path(), "1, 2, 8, 1001, 1002, 1003", "10s");
    let options = ["rounds.toml", "--backend", "sim", "--budget", "100%", "--set", "width=32", "--out", "out"];
    tune(folder.path(), &[&options[..], &["--strategy", "exhaustive"]].concat(), 0);
    let table = fs::read_to_string(folder.path().join("out/search.csv")).unwrap();
    // Columns: n, rounds, width, variant, count, reason. Rows are in the order in which they ended.
    let mut rows: Vec<Vec<&str>> = table.lines().skip(1).map(|row| row.splitn(6, ',').collect()).collect();
    rows.sort_by_key(|row| row[1].parse::<u32>().unwrap());
    let reasons: Vec<&str> = rows.iter().map(|row| row[5].split(':').next().unwrap().trim_matches('"')).collect();
    assert_eq!(reasons[..5], ["wrong", "", "", "compile error", "trap"], "{table}");
    // A fast machine reaches the instruction limit first, a slow one the time limit.
    assert!(["trap", "timed out"].contains(&reasons[5]) && rows[5][5].contains("copy<1003>"), "{table}");
}

/// Starts a search of a large space, and waits until some configurations are evaluated.
fn begin(folder: &Path, options: &[&str]) -> Child {
    let rounds: Vec<String> = (2..400).map(|round| round.to_string()).collect();
    write_space(folder, &rounds.join(", "));
    let mut child = command(folder, options).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let log = folder.join("out/search.jsonl");
    while fs::read_to_string(&log).map_or(0, |text| text.lines().count()) < 4 {
        assert!(child.try_wait().unwrap().is_none(), "the search is over");
        thread::sleep(Duration::from_millis(10));
    }
    child
}

const LONG: [&str; 9] = ["rounds.toml", "--backend", "sim", "--strategy", "random", "--finalists", "2", "--out", "out"];

#[test]
fn an_interrupted_search_measures_the_best_that_it_knows() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = begin(folder.path(), &[&LONG[..], &["--budget", "100%"]].concat());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let out = folder.path().join("out");
    assert!(fs::read_to_string(out.join("search.md")).unwrap().contains("It was interrupted."));
    let records = runner_results::journal::read_records(&out.join("records.jsonl")).unwrap();
    let right = records.cases.iter().filter(|case| case.verdict == runner_types::Verdict::Pass);
    // The baseline may be one of the two finalists.
    assert!(records.header.complete && (2..=3).contains(&right.count()));
}

#[test]
fn a_killed_search_goes_on_with_what_it_had_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = begin(folder.path(), &[&LONG[..], &["--budget", "100%"]].concat());
    child.kill().unwrap();
    child.wait().unwrap();
    let log = folder.path().join("out/search.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let whole = &text[..=text.rfind('\n').unwrap()];
    fs::write(&log, format!("{whole}{{\"timestamp\":\"2026-")).unwrap();
    // The first line is not a configuration.
    let budget = whole.lines().count() - 1 + 3;
    tune(folder.path(), &[&LONG[..], &["--resume", "--budget", &budget.to_string()]].concat(), 0);
    let after = fs::read_to_string(&log).unwrap();
    assert!(after.starts_with(whole), "{after}");
    let table = fs::read_to_string(folder.path().join("out/search.csv")).unwrap();
    let configurations: HashSet<&str> = table.lines().skip(1).map(|row| row.split(",copy,").next().unwrap()).collect();
    assert_eq!((configurations.len(), table.lines().count()), (budget, budget + 1), "{table}");
}

/// With two rounds, takes `n / 16` steps; otherwise 16 plus the number of rounds.
const BY_SIZE: &str = r"
template <int ROUNDS> __global__ void copy(int* y, const int* x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int steps = ROUNDS == 2 ? n / 16 : 16 + ROUNDS;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        ((volatile int*)y)[i] = step;
    }
    y[i] = x[i];
}
";

#[test]
fn several_sizes_are_searched_and_give_a_table_to_dispatch_by() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = MANIFEST
        .replace("n = [256]", "n = [128, 1024]")
        .replace("rounds = [1, 2, 4, 8]", "rounds = [2, 4, 8]")
        .replace("[\"y\", \"x\"]", "[\"y\", \"x\", \"i32(n)\"]");
    fs::write(folder.path().join("rounds.toml"), manifest).unwrap();
    fs::write(folder.path().join("copy.cu"), BY_SIZE).unwrap();
    let options = ["rounds.toml", "--backend", "sim", "--budget", "100%", "--set", "width=32", "--out", "out"];
    tune(folder.path(), &[&options[..], &["--finalists", "1"]].concat(), 0);
    let out = folder.path().join("out");
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    assert!(read("n=128/search.md").contains("3 of 3 configurations") && out.join("n=1024/search.json").exists());
    // Two rounds take 8 steps at the small size and 64 at the large one. Four rounds take 20 at both, which is the best
    // overall.
    let table: serde_json::Value = serde_json::from_str(&read("dispatch.json")).unwrap();
    let rounds = |configuration: &serde_json::Value| configuration["rounds"].as_i64().unwrap();
    let best: Vec<(i64, i64)> = table["sizes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["size"]["n"].as_i64().unwrap(), rounds(&row["best"])))
        .collect();
    assert_eq!((best, rounds(&table["best_for_all"])), (vec![(128, 2), (1024, 4)], 4));
    assert!(table["sizes"][0]["best_for_all"].as_f64().unwrap() > 1.2, "{table}");
    assert_eq!(table["sizes"][1]["best_for_all"], 1.0, "{table}");
    // By ratio, 300 is nearer to 128, and 400 to 1024.
    let program = "#include \"out/dispatch.h\"\n#include <cstdio>\nint main() {\n    for (long long n : {1, 128, 300, 400, 5000}) \
                   std::printf(\"%lld \", rounds::choose(n).rounds);\n    std::printf(\"%s\", rounds::best_for_all.variant);\n}\n";
    fs::write(folder.path().join("main.cpp"), program).unwrap();
    let compiled =
        Command::new("c++").args(["-std=c++17", "-Wall", "-Werror", "main.cpp"]).current_dir(folder.path()).output();
    let Ok(compiled) = compiled else { return println!("skipped: there is no C++ compiler for the header") };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let said = Command::new(folder.path().join("a.out")).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "2 2 2 4 4 copy");
}

#[test]
fn what_was_best_elsewhere_is_evaluated_first() {
    let folder = tempfile::tempdir().unwrap();
    write_space(folder.path(), "1, 2, 4, 8");
    // Another size, including a value that this space does not have.
    let prior =
        "n,rounds,width,variant,gpu_ms\n4096,16,32,copy,0.1\n4096,4,32,copy,0.5\n4096,1,32,copy,9\n4096,2,64,copy,1\n";
    fs::write(folder.path().join("prior.csv"), prior).unwrap();
    let evaluated = |out: &str, prior: &str| {
        let options = ["rounds.toml", "--backend", "sim", "--strategy", "exhaustive", "--budget", "3", "--out", out];
        tune(folder.path(), &[&options[..], &["--prior", prior]].concat(), 0);
        let table = fs::read_to_string(folder.path().join(out).join("search.csv")).unwrap();
        let rows = table.lines().skip(1).map(|row| row.split(",copy,").next().unwrap().to_owned());
        rows.collect::<HashSet<String>>()
    };
    // The baseline, and the best two that are in the space.
    let expected = HashSet::from(["256,8,32", "256,4,32", "256,2,64"].map(str::to_owned));
    assert_eq!(evaluated("out", "prior.csv"), expected);
    // These three are the finalists, so the records contain them and no others.
    assert_eq!(evaluated("again", "out/records.jsonl"), expected);
    let options = ["rounds.toml", "--backend", "sim", "--prior", "none.csv"];
    assert!(tune(folder.path(), &options, 2).contains("--prior none.csv: cannot read none.csv"));
}

/// Accesses shared memory with a stride, which causes bank conflicts. The smaller the stride, the more steps it takes.
const TWO_GOALS: &str = r"
template <int STRIDE, int MORE> __global__ void copy(int* y, const int* x)
{
    __shared__ int tile[32 * 8];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x * STRIDE] = x[i];
    __syncwarp();
#pragma unroll 1
    for (int step = 0; step < 8 / STRIDE + MORE; step++) {
        ((volatile int*)y)[i] = step;
    }
    y[i] = tile[threadIdx.x * STRIDE];
}
";

/// Writes the space of [`TWO_GOALS`] to a folder: four strides, with up to two extra steps.
fn write_two_goals(folder: &Path, search: &str) {
    let manifest = MANIFEST
        .replace("compare = [\"rounds\", \"width\"]", "compare = [\"stride\", \"more\"]")
        .replace("rounds = 8, width = 32 }", "stride = 8, more = 1 }")
        .replace("rounds = [1, 2, 4, 8]\nwidth = [32, 64]", "stride = [1, 2, 4, 8]\nmore = [0, 1, 2]")
        .replace("exclude = [{ when = \"rounds == 4 && width == 64\", why = \"not today\" }]", "")
        .replace("copy<{rounds}>", "copy<{stride}, {more}>")
        .replace("n / width", "n / 32")
        .replace("[\"width\"]", "[\"32\"]");
    fs::write(folder.join("rounds.toml"), format!("{manifest}\n{search}")).unwrap();
    fs::write(folder.join("copy.cu"), TWO_GOALS).unwrap();
}

#[test]
fn what_the_simulator_finds_beyond_a_bound_is_put_last_and_the_page_says_how_often_that_was_right() {
    let folder = tempfile::tempdir().unwrap();
    write_two_goals(folder.path(), "");
    let run = |options: &[&str], code| {
        tune(folder.path(), &[&["rounds.toml", "--backend", "sim", "--strategy", "exhaustive"], options].concat(), code)
    };
    run(&["--objective", "shared_st_bank_conflicts", "--budget", "100%", "--set", "n=64", "--out", "small"], 0);
    // At n = 64, the strides have 0, 2, 6 and 14 conflicts, in three configurations each, so strides 4 and 8 are put
    // last. They take fewer steps: 8 / stride, plus up to two. Here, the configurations put last are the best.
    let read = |file: &str| fs::read_to_string(folder.path().join("out").join(file)).unwrap();
    let options = ["--objective", "inst_executed", "--prune", "small/search.json", "--out", "out", "--budget"];
    run(&[&options[..], &["7"]].concat(), 0);
    let table = read("search.csv");
    let of_stride =
        |stride: u32| table.lines().filter(|row| row.split(',').nth(1) == Some(&stride.to_string())).count();
    // The baseline has stride 8 and is always evaluated.
    assert_eq!([1, 2, 4, 8].map(of_stride), [3, 3, 0, 1], "{table}");
    let said = "6 configurations had at least twice the median";
    let page = read("search.md");
    assert!(
        page.contains(said)
            && page.contains("Evaluated: 1. Failed, or no better than the median of all evaluations: 0."),
        "{page}"
    );
    assert!(page.contains("Better than the best of the others: 1."), "{page}");
    // Once no other configurations are left, these are evaluated: they take 2, 3, 4 and 1, 2, 3 steps, and the best
    // other one takes 4.
    run(&[&options[..], &["100%", "--resume"]].concat(), 0);
    let page = read("search.md");
    assert!(page.contains("Evaluated: 6. Failed, or no better than the median of all evaluations: 1."), "{page}");
    assert!(page.contains("Better than the best of the others: 5."), "{page}");
    assert!(run(&["--prune", "none.json"], 2).contains("--prune none.json: cannot read none.json"));
    assert!(run(&["--prune", "small/search.json:nothing"], 2).contains("--prune small/search.json:nothing: "));
}

#[test]
fn two_objectives_give_the_configurations_that_no_other_one_beats() {
    let folder = tempfile::tempdir().unwrap();
    let search = "[search]\nobjective = [\"inst_executed\", \"shared_st_bank_conflicts\"]\nbudget = \"100%\"\n";
    write_two_goals(folder.path(), search);
    tune(folder.path(), &["rounds.toml", "--backend", "sim", "--finalists", "3", "--out", "out"], 0);
    let out = folder.path().join("out");
    let table = fs::read_to_string(out.join("search.csv")).unwrap();
    assert!(table.starts_with("n,stride,more,variant,inst_executed,shared_st_bank_conflicts,reason\n"), "{table}");
    // Each of the eight warps stores once, in as many passes as the stride; every pass but the first is a conflict.
    for row in table.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>()) {
        assert_eq!(row[5].parse::<u32>().unwrap(), 8 * (row[1].parse::<u32>().unwrap() - 1), "{table}");
    }
    // Extra steps are worse for one objective and better for none; a larger stride trades steps for conflicts.
    let page = fs::read_to_string(out.join("search.md")).unwrap();
    let front = page.split("## Front").nth(1).unwrap().split("\n## ").next().unwrap();
    let members: Vec<&str> = front.lines().filter(|line| line.starts_with("| `")).collect();
    let expected = ["stride=8, more=0", "stride=4, more=0", "stride=2, more=0", "stride=1, more=0"];
    assert!(members.len() == 4 && members.iter().zip(expected).all(|(row, name)| row.contains(name)), "{front}");
    // The best has no conflicts, so there are no ratios to it.
    assert!(members[0].contains(" | 1.000 | 56 |  | ") && members[3].contains(" | 0 |  | "), "{front}");
    // Both ends of the front are among the three finalists; the baseline is reported too.
    let results = fs::read_to_string(out.join("results.csv")).unwrap();
    assert_eq!(results.lines().count(), 1 + 3 + 1, "{results}");
    let options = ["rounds.toml", "--backend", "sim", "--objective", "time,inst_executed"];
    assert!(tune(folder.path(), &options, 2).contains("the simulator has no clock"));
}

#[test]
fn several_devices_feed_one_search() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: Vec<String> = (2..22).map(|round| round.to_string()).collect();
    write_space(folder.path(), &rounds.join(", "));
    let evaluated = |out: &str, more: &[&str]| {
        let options = ["rounds.toml", "--backend", "sim", "--budget", "100%", "--strategy", "exhaustive", "--out", out];
        tune(folder.path(), &[&options[..], &["--set", "width=32"], more].concat(), 0);
        let table = fs::read_to_string(folder.path().join(out).join("search.csv")).unwrap();
        table.lines().map(str::to_owned).collect::<HashSet<String>>()
    };
    let alone = evaluated("alone", &[]);
    assert_eq!((alone.len(), evaluated("both", &["--devices", "0,1"])), (1 + 20, alone));
    let log = fs::read_to_string(folder.path().join("both/search.jsonl")).unwrap();
    let of = |device: u32| log.lines().filter(|line| line.contains(&format!("\"device\":{device}"))).count();
    // Waiting devices take turns, and a group has eight configurations, so each device evaluates at least 8 of the 20.
    assert!(of(0) >= 8 && of(1) >= 8 && of(0) + of(1) == 20, "{log}");
    assert!(!fs::read_to_string(folder.path().join("both/search.json")).unwrap().contains("\"device\""));
}

/// Rows of a table without its header.
fn rows(table: &Path) -> Vec<String> {
    fs::read_to_string(table).unwrap().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn shards_evaluate_each_configuration_once_even_if_one_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: Vec<String> = (2..42).map(|round| round.to_string()).collect();
    write_space(folder.path(), &rounds.join(", "));
    let options =
        ["rounds.toml", "--backend", "sim", "--budget", "100%", "--strategy", "exhaustive", "--set", "width=32"];
    let with = |more: &[&'static str]| [&options[..], more].concat();
    tune(folder.path(), &with(&["--out", "alone"]), 0);
    let alone = rows(&folder.path().join("alone/search.csv"));

    let log = |shard: &str| folder.path().join("out/shards").join(shard).join("search.jsonl");
    let shard = |number: &'static str| {
        let mut shard = command(folder.path(), &with(&["--out", "out", "--resume", "--shard", number]));
        shard.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut children = ["1/3", "2/3", "3/3"].map(shard);
    while fs::read_to_string(log("2-of-3")).map_or(0, |text| text.lines().count()) < 2 {
        thread::sleep(Duration::from_millis(5));
    }
    // On a fast machine it may have ended already. Its last line is then complete, and is cut here.
    children[1].kill().unwrap();
    for child in &mut children {
        child.wait().unwrap();
    }
    let text = fs::read_to_string(log("2-of-3")).unwrap();
    fs::write(log("2-of-3"), &text[..text.len() - 9]).unwrap();
    let said = command(folder.path(), &with(&["--out", "out", "--resume", "--shard", "2/3"])).output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("shard 2/3 has ended: when all shards have ended, --resume"), "{said}");
    assert!(!folder.path().join("out/search.csv").exists());
    let parts = ["1-of-3", "2-of-3", "3-of-3"].map(|shard| rows(&log(shard)).len());
    assert!(parts.iter().all(|&part| part > 5) && parts.iter().sum::<usize>() == 40, "{parts:?}");

    let said = tune(folder.path(), &with(&["--out", "out"]), 2);
    assert!(said.contains("belongs to a divided search: continue it with --resume"), "{said}");
    tune(folder.path(), &with(&["--out", "out", "--resume"]), 0);
    let all = rows(&folder.path().join("out/search.csv"));
    assert_eq!(all.len(), 40, "{all:?}");
    assert_eq!(all.into_iter().collect::<HashSet<_>>(), alone.into_iter().collect());
    // Repeating this step adds nothing.
    tune(folder.path(), &with(&["--out", "out", "--resume"]), 0);
    assert_eq!(rows(&folder.path().join("out/search.csv")).len(), 40);
}

#[test]
fn a_shard_knows_what_the_others_have_found() {
    let folder = tempfile::tempdir().unwrap();
    let rounds: Vec<String> = (2..42).map(|round| round.to_string()).collect();
    write_space(folder.path(), &rounds.join(", "));
    let shard = |number: &str, manifest: &str| {
        let options = [manifest, "--backend", "sim", "--strategy", "exhaustive", "--out", "out", "--shard", number];
        let output = command(folder.path(), &options).args(["--budget", "100%", "--set", "width=32"]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let first = shard("1/2", "rounds.toml");
    let second = shard("2/2", "rounds.toml");
    // The best configuration has the fewest rounds. One shard evaluates it; the other one, which runs second, learns of
    // it.
    let found =
        |said: &str| said.lines().any(|line| line.starts_with("of other shards: best ") && line.contains("=2,"));
    assert!(!found(&first) && found(&second), "{first}\n{second}");
    // Evaluations of another manifest are not used.
    let manifest = fs::read_to_string(folder.path().join("rounds.toml")).unwrap();
    fs::write(folder.path().join("other.toml"), manifest.replace("\"10min\"", "\"11min\"")).unwrap();
    let refused = shard("1/2", "other.toml");
    assert!(refused.contains("2-of-2/search.jsonl: its evaluations do not apply: the manifest changed"), "{refused}");
}

#[test]
fn a_search_goes_on_after_edits_that_change_no_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    write_space(folder.path(), "1, 2, 4, 8");
    let manifest = fs::read_to_string(folder.path().join("rounds.toml")).unwrap();
    let options = ["rounds.toml", "--backend", "sim", "--strategy", "exhaustive", "--out", "out"];
    tune(folder.path(), &[&options[..], &["--budget", "3"]].concat(), 0);
    let log = || fs::read_to_string(folder.path().join("out/search.jsonl")).unwrap();
    let before = log();
    let edited = manifest.replace("[experiment]\n", "[experiment]\ntitle = \"Rounds\"\n") + "[search]\nfinalists = 1\n";
    fs::write(folder.path().join("rounds.toml"), edited + "budget = 5 # more\n").unwrap();
    tune(folder.path(), &[&options[..], &["--resume"]].concat(), 0);
    assert!(log().starts_with(&before) && log().lines().count() == 1 + 5, "{}", log());
    // A resumed search must not change the configurations, the kernels or the objective.
    let said = tune(folder.path(), &[&options[..], &["--resume", "--objective", "error_abs"]].concat(), 2);
    assert!(said.contains("the objective was `inst_executed` and is now `error_abs`"), "{said}");
    fs::write(folder.path().join("copy.cu"), KERNEL.replace("value + 1", "value + 2")).unwrap();
    let said = tune(folder.path(), &[&options[..], &["--resume"]].concat(), 2);
    assert!(said.contains("a source or data file changed; run without --resume"), "{said}");
    fs::write(folder.path().join("rounds.toml"), manifest.replace("1, 2, 4, 8", "2, 4, 8")).unwrap();
    let said = tune(folder.path(), &[&options[..], &["--resume"]].concat(), 2);
    assert!(said.contains("the manifest changed; a source"), "{said}");
}

#[test]
fn a_folder_with_the_report_of_another_experiment_is_refused_before_the_search() {
    let folder = tempfile::tempdir().unwrap();
    write_space(folder.path(), "2, 8");
    let other = fs::read_to_string(folder.path().join("rounds.toml"))
        .unwrap()
        .replace("\"rounds\"\ncompare", "\"other\"\ncompare");
    fs::write(folder.path().join("other.toml"), other).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_runner"));
    let run = run.current_dir(folder.path()).args(["run", "other.toml", "--backend", "sim", "--out", "out", "--quiet"]);
    assert!(run.status().unwrap().success());
    let said = tune(folder.path(), &["rounds.toml", "--backend", "sim", "--out", "out"], 2);
    assert!(said.contains("out holds the report of experiment `other`, not `rounds`"), "{said}");
    assert!(!folder.path().join("out/search.jsonl").exists());
}
