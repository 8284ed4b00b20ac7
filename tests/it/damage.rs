//! Flips one bit in every file that a run or a search leaves. Every command that reads the file back must report the
//! damage, recreate the file, or reach the same result. The files are found by listing the folders, so that none is
//! missed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runner_compile::{Cache, Network, Requirement, Toolkit};

/// Uses a C++ reference, so that the cache contains a compiled reference and its result.
const MANIFEST: &str = r#"
[experiment]
name = "damage"
baseline = "plain"

[axes]
n = [256, 512]

[buffers.x]
type = "i32"
len  = "n"
fill = "iota"

[buffers.y]
type = "i32"
len  = "n"

[check]
actual = "y"
expect = { cpp = "twice.cpp:twice" }

[[variant]]
name   = "plain"
source = "twice.cu"
kernel = "twice"
grid   = ["n / 128"]
block  = [128]
args   = ["y", "x"]

[[variant]]
name   = "wrong"
source = "twice.cu"
kernel = "thrice"
grid   = ["n / 128"]
block  = [128]
args   = ["y", "x"]
fails  = "wrong"
"#;

const KERNEL: &str = r#"
extern "C" __global__ void twice(int *y, const int *x) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 2 * x[i]; }
extern "C" __global__ void thrice(int *y, const int *x) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 3 * x[i]; }
"#;

const REFERENCE: &str = r"
#include <vector>
std::vector<long> twice(const std::vector<int> &x)
{
    std::vector<long> y;
    for (int value : x) y.push_back(2L * value);
    return y;
}
";

struct Home {
    dir: tempfile::TempDir,
}

struct Said {
    code: Option<i32>,
    text: String,
}

impl Home {
    /// A project with its own cache, which holds only the toolkit.
    fn new(files: &[(&str, &str)]) -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        let cache = Cache::locate().unwrap();
        Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
        fs::create_dir(home.path("cache")).unwrap();
        std::os::unix::fs::symlink(cache.root().join("toolkit"), home.path("cache/toolkit")).unwrap();
        for (name, text) in files {
            fs::write(home.path(name), text).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn runner(&self, words: &[&str]) -> Said {
        self.in_shell(":", words)
    }

    /// Runs the program in a shell, after a command.
    fn in_shell(&self, before: &str, words: &[&str]) -> Said {
        let output = Command::new("sh")
            .args(["-c", &format!("{before} && exec \"$@\""), "sh", env!("CARGO_BIN_EXE_runner")])
            .current_dir(self.dir.path())
            .env("RUNNER_CACHE", self.path("cache"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("CUDA_VISIBLE_DEVICES", "")
            .args(["--color", "never"])
            .args(words)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Said { code: output.status.code(), text }
    }

    #[track_caller]
    fn succeed(&self, words: &[&str]) -> String {
        let said = self.runner(words);
        assert_eq!(said.code, Some(0), "{words:?}: {}", said.text);
        said.text
    }
}

/// Every non-empty file below a folder, without following links.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() && entry.metadata().unwrap().len() > 0 {
            // A lock file only names the process that holds it; no result depends on it.
            if entry.path().extension().is_none_or(|extension| extension != "lock") {
                found.insert(entry.path());
            }
        }
    }
    found
}

/// Calls `check` with one bit of each file flipped: near its start, in its middle and near its end. Restores the folder
/// after each call.
fn with_each_flipped(folder: &Path, check: &mut dyn FnMut(&Path)) {
    let copy = tempfile::tempdir().unwrap();
    let mirror = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    let (saved, flipped) = (copy.path().join("saved"), copy.path().join("flipped"));
    mirror(folder, &saved);
    let all = files(folder);
    assert!(!all.is_empty(), "{} has no files", folder.display());
    for path in all {
        let length = fs::metadata(&path).unwrap().len() as usize;
        for place in BTreeSet::from([0, length / 2, length.saturating_sub(3)]) {
            let mut bytes = fs::read(&path).unwrap();
            bytes[place] ^= 4;
            // Another process writes the file, because some of these files are programs.
            fs::write(&flipped, bytes).unwrap();
            assert!(Command::new("install").args(["-m", "700"]).args([&flipped, &path]).status().unwrap().success());
            check(&path);
            mirror(&saved, folder);
        }
    }
}

#[test]
fn a_flipped_bit_in_any_file_of_the_cache_changes_no_result() {
    let home = Home::new(&[("m.toml", MANIFEST), ("twice.cu", KERNEL), ("twice.cpp", REFERENCE)]);
    let words = |out| ["run", "m.toml", "--backend", "sim", "--offline", "--quiet", "--allow-host-code", "--out", out];
    home.succeed(&words("first"));
    let records = |out: &str| fs::read_to_string(home.path(out).join("records.jsonl")).unwrap();
    // Nothing is recreated if nothing is damaged.
    let said = home.succeed(&words("second"));
    assert!(!said.contains("regenerating it"), "{said}");
    let expected = records("second");
    let cache = home.path("cache");
    let mut kinds = BTreeSet::new();
    let mut silent = BTreeSet::new();
    with_each_flipped(&cache, &mut |file| {
        let said = home.succeed(&words("out"));
        assert_eq!(records("out"), expected, "{}: {said}", file.display());
        let name = file.strip_prefix(&cache).unwrap();
        kinds.insert(name.components().next().unwrap().as_os_str().to_str().unwrap().to_owned());
        if !said.contains("is damaged; regenerating it") {
            silent.insert(name.display().to_string());
        }
    });
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["code", "listings", "references"]);
    println!("damage without a line, in files that were not read or at their first byte: {silent:#?}");
}

#[test]
fn a_file_of_the_cache_in_the_place_of_another_changes_no_result() {
    let home = Home::new(&[("m.toml", MANIFEST), ("twice.cu", KERNEL), ("twice.cpp", REFERENCE)]);
    let words = |out| ["run", "m.toml", "--backend", "sim", "--offline", "--quiet", "--allow-host-code", "--out", out];
    let records = |out: &str| fs::read_to_string(home.path(out).join("records.jsonl")).unwrap();
    home.succeed(&words("first"));
    home.succeed(&words("second"));
    let expected = records("second");
    // Another version, whose files have the same form.
    for (name, text) in [("twice.cu", KERNEL), ("twice.cpp", REFERENCE)] {
        fs::write(home.path(name), text.replace("2 * x", "5 * x").replace("2L", "5L")).unwrap();
    }
    home.succeed(&words("other"));
    home.succeed(&words("other"));
    for (name, text) in [("twice.cu", KERNEL), ("twice.cpp", REFERENCE)] {
        fs::write(home.path(name), text).unwrap();
    }
    let all = files(&home.path("cache"));
    let kind = |path: &Path| (path.parent().map(Path::to_owned), path.extension().map(ToOwned::to_owned));
    let pairs = all.iter().flat_map(|one| all.iter().map(move |other| (one, other)));
    let mut swapped = 0;
    for (one, other) in pairs.filter(|(one, other)| one != other && kind(one) == kind(other)) {
        let kept = home.path("kept");
        fs::rename(one, &kept).unwrap();
        assert!(Command::new("cp").arg("-a").args([other, one]).status().unwrap().success());
        let said = home.succeed(&words("out"));
        assert_eq!(records("out"), expected, "{} as {}: {said}", other.display(), one.display());
        fs::rename(&kept, one).unwrap();
        swapped += 1;
    }
    assert!(swapped >= 8, "{swapped} pairs of {all:?}");
}

#[test]
fn a_reference_that_this_machine_cannot_run_now_is_no_result_and_the_report_stays() {
    let home = Home::new(&[("m.toml", MANIFEST), ("twice.cu", KERNEL), ("twice.cpp", REFERENCE)]);
    let words = ["run", "m.toml", "--backend", "sim", "--offline", "--quiet", "--allow-host-code", "--out", "out"];
    home.succeed(&words);
    let records = || fs::read_to_string(home.path("out/records.jsonl")).unwrap();
    let expected = records();
    fs::remove_dir_all(home.path("cache/references")).unwrap();
    let said = home.in_shell("export TMPDIR=/missing", &words);
    assert_eq!(said.code, Some(3), "{}", said.text);
    assert!(said.text.contains("twice.cpp:twice: no folder for its inputs"), "{}", said.text);
    assert_eq!(records(), expected);
    home.succeed(&words);
    assert_eq!(records(), expected);
}

#[test]
fn the_cache_is_for_this_user_alone_whatever_the_umask() {
    let home = Home::new(&[("m.toml", MANIFEST), ("twice.cu", KERNEL), ("twice.cpp", REFERENCE)]);
    let words = ["run", "m.toml", "--backend", "sim", "--offline", "--quiet", "--allow-host-code", "--out", "out"];
    for time in ["first", "second"] {
        let said = home.in_shell("umask 002", &words);
        assert_eq!(said.code, Some(0), "{time}: {}", said.text);
    }
}

#[test]
fn a_pipe_in_place_of_any_file_of_the_cache_is_not_opened_for_reading() {
    let home = Home::new(&[("m.toml", MANIFEST), ("twice.cu", KERNEL), ("twice.cpp", REFERENCE)]);
    let words = |out| ["run", "m.toml", "--backend", "sim", "--offline", "--quiet", "--allow-host-code", "--out", out];
    home.succeed(&words("first"));
    home.succeed(&words("second"));
    let records = |out: &str| fs::read_to_string(home.path(out).join("records.jsonl")).unwrap();
    let expected = records("second");
    for file in files(&home.path("cache")) {
        let kept = home.path("kept");
        fs::rename(&file, &kept).unwrap();
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        // A process that waits for the other end of the pipe would never end.
        let mut run = Command::new("timeout");
        run.args(["300", env!("CARGO_BIN_EXE_runner")]).args(words("out")).current_dir(home.dir.path());
        run.env("RUNNER_CACHE", home.path("cache")).env("XDG_STATE_HOME", home.path("state"));
        let output = run.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{}: {said}", file.display());
        assert_eq!(records("out"), expected, "{}: {said}", file.display());
        fs::rename(&kept, &file).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_any_file_of_a_report_is_noticed() {
    let home = Home::new(&[("m.toml", MANIFEST), ("twice.cu", KERNEL), ("twice.cpp", REFERENCE)]);
    let run = ["run", "m.toml", "--backend", "sim", "--offline", "--quiet", "--allow-host-code", "--out", "report"];
    home.succeed(&run);
    let report = home.path("report");
    let records = || fs::read(report.join("records.jsonl")).unwrap();
    let expected = records();
    with_each_flipped(&report, &mut |file| {
        let name = file.strip_prefix(&report).unwrap().display().to_string();
        if name != "journal.jsonl" {
            let said = home.runner(&["report", "--check", "report"]);
            assert_ne!(said.code, Some(0), "{name}: {}", said.text);
            return;
        }
        let commands: [&[&str]; 3] =
            [&["report", "report", "--from-journal"], &["merge", "report/journal.jsonl", "--out", "merged"], &run];
        for command in commands {
            let said = home.runner(&if command == run { [&run[..], &["--resume"]].concat() } else { command.to_vec() });
            let is_noticed = said.code != Some(0) || said.text.contains("warning: ");
            assert!(is_noticed || records() == expected, "{command:?}: {}", said.text);
        }
    });
    // The only file that `compare` and `report` read here is `records.jsonl`.
    with_each_flipped(&report, &mut |file| {
        if file.ends_with("records.jsonl") {
            for command in [&["compare", "report", "report"][..], &["report", "report"]] {
                let said = home.runner(command);
                assert_eq!(said.code, Some(3), "{command:?}: {}", said.text);
            }
        }
    });
}

/// Two sizes with twelve configurations each.
const SPACE: &str = r#"
[experiment]
name = "space"
compare = ["rounds", "width"]
baseline = { variant = "copy", rounds = 8, width = 32 }

[axes]
n = [256, 512]
rounds = [2, 4, 8]
width = [32, 64]

[search]
strategy = "exhaustive"
budget = "100%"
finalists = 2

[buffers.x]
type = "i32"
len = "n"
fill = "iota"

[buffers.y]
type = "i32"
len = "n"

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

const COPY: &str = r"
template <int ROUNDS> __global__ void copy(int* y, const int* x)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = x[i];
    for (volatile int round = 1; round < ROUNDS; round++) {
        value ^= round;
        value ^= round;
    }
    y[i] = value;
}
";

/// Configuration and values of every evaluation, without timestamps.
fn evaluations(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap();
    let entry = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        format!("{} {} {}", entry["configuration"], entry["invalidity"], entry["measurements"])
    };
    text.lines().skip(1).map(entry).collect()
}

#[test]
fn a_flipped_bit_in_any_file_of_a_search_is_noticed_and_what_it_cost_is_evaluated_again() {
    let home = Home::new(&[("s.toml", SPACE), ("copy.cu", COPY)]);
    let tune = |out| ["tune", "s.toml", "--backend", "sim", "--offline", "--out", out];
    for (sizes, out) in [(&["--set", "n=256"][..], "one"), (&[], "two")] {
        home.succeed(&[&tune(out)[..], sizes].concat());
        // An undamaged report of `tune` passes.
        home.succeed(&["report", "--check", out]);
        let folder = home.path(out);
        with_each_flipped(&folder, &mut |file| {
            let name = file.strip_prefix(&folder).unwrap().display().to_string();
            if name == "journal.jsonl" {
                return; // As for a run.
            }
            let said = home.runner(&["report", "--check", out]);
            assert_ne!(said.code, Some(0), "{out}/{name}: {}", said.text);
        });
        // A deleted file is reported, unless it is a local one.
        for file in files(&folder) {
            let name = file.strip_prefix(&folder).unwrap().display().to_string();
            let (away, is_local) = (home.path("away"), name.contains("search.jsonl") || name.contains("journal"));
            fs::rename(&file, &away).unwrap();
            let said = home.runner(&["report", "--check", out]);
            assert_eq!(said.code == Some(0), is_local, "{out}/{name}: {}", said.text);
            fs::rename(&away, &file).unwrap();
        }
    }
    let journal = home.path("one/search.jsonl");
    let expected = evaluations(&journal);
    assert_eq!(expected.len(), 6);
    let text = fs::read(&journal).unwrap();
    let resume = [&tune("one")[..], &["--set", "n=256", "--resume"]].concat();
    // Damages the first line, a byte in the middle of each other line, and the end of one line.
    let ends: Vec<usize> = (0..text.len()).filter(|place| text[*place] == b'\n').collect();
    let places = ends.windows(2).map(|pair| usize::midpoint(pair[0], pair[1])).chain([10, ends[2]]);
    for place in places {
        let mut bytes = text.clone();
        bytes[place] ^= 1;
        fs::write(&journal, bytes).unwrap();
        let said = home.runner(&resume);
        if place == 10 {
            assert_eq!(said.code, Some(2), "{}", said.text);
            continue;
        }
        assert_eq!(said.code, Some(0), "{}", said.text);
        assert!(said.text.contains("its configuration is evaluated again"), "{}", said.text);
        assert_eq!(evaluations(&journal), expected, "byte {place}");
        home.succeed(&["report", "--check", "one"]);
    }
    // The order of the lines, which differs after a kill, does not decide which of equal configurations are finalists.
    let few = [&resume[..], &["--finalists", "2"]].concat();
    let finalists = || {
        home.succeed(&few);
        let rows = fs::read_to_string(home.path("one/results.csv")).unwrap();
        (rows, fs::read_to_string(home.path("one/search.md")).unwrap())
    };
    let before = finalists();
    let lines: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
    let reversed: Vec<&str> = [lines[0]].into_iter().chain(lines[1..].iter().rev().copied()).collect();
    fs::write(&journal, reversed.join("\n") + "\n").unwrap();
    let after = finalists();
    assert_eq!(before.0, after.0);
    // A duplicated line is removed.
    let line = String::from_utf8(text.clone()).unwrap().lines().nth(2).unwrap().to_owned() + "\n";
    fs::write(&journal, [&text[..], line.as_bytes()].concat()).unwrap();
    assert_ne!(home.runner(&["report", "--check", "one"]).code, Some(0));
    let said = home.runner(&resume);
    assert!(said.text.contains("search.jsonl:8 is a duplicate of an earlier line"), "{}", said.text);
    assert!(fs::read(&journal).unwrap() == text);
}
