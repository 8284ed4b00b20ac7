//! The tool's own kernels under compute-sanitizer: those that prepare, watch and compare memory during a run, and those
//! that measure a device.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use runner_compile::Cache;
use runner_process::programs::Programs;

use super::bench::{Bench, bench, binary, fixture, text};

/// Exit code of the sanitizer if it finds something; `runner` never returns this code.
const FOUND: i32 = 86;

/// The sanitizer slows kernels down by one to two orders of magnitude.
const LIMIT: Duration = Duration::from_mins(8);

/// The sanitizer installed on the machine, or else the one in the cache.
fn sanitizer() -> Option<PathBuf> {
    fn below(folder: &Path) -> Option<PathBuf> {
        let mut entries: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        let own = entries.iter().find(|path| path.is_file() && path.file_name() == Some(OsStr::new(PROGRAM)));
        own.cloned().or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| below(path)))
    }
    Programs::of_this_machine().find(PROGRAM).or_else(|| below(Cache::locate().ok()?.root()))
}

const PROGRAM: &str = "compute-sanitizer";

/// Runs the program under a tool of the sanitizer; panics if it finds something in any process.
fn expect_clean(bench: &Bench, sanitizer: &Path, tool: &str, words: &[&str], cache: Option<&Path>) {
    let log = bench.path(&format!("{tool}.%p.log"));
    let mut command = Command::new(sanitizer);
    command.args(["--tool", tool, "--target-processes", "all", "--report-api-errors", "no", "--log-file"]).arg(log);
    command.arg("--error-exitcode").arg(FOUND.to_string()).arg(binary()).args(words).current_dir(bench.path("."));
    if let Some(cache) = cache {
        command.env("RUNNER_CACHE", cache);
    }
    let begun = Instant::now();
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{tool}: {:?}: {said}\n{}", done.status, logs(bench, tool));
    let logs = logs(bench, tool);
    // One summary per process that used the device.
    let summaries: Vec<&str> =
        logs.lines().filter(|line| line.contains("ERROR SUMMARY") || line.contains("SUMMARY:")).collect();
    assert!(!summaries.is_empty(), "{tool} wrote no summary: {logs}\n{said}");
    let clean =
        |line: &&str| line.contains("SUMMARY: 0 ") || line.contains("0 hazards displayed (0 errors, 0 warnings)");
    assert!(summaries.iter().all(clean), "{tool}: {logs}");
    assert!(begun.elapsed() < LIMIT, "{tool} took {:?}", begun.elapsed());
}

fn logs(bench: &Bench, tool: &str) -> String {
    let mut texts = String::new();
    for entry in fs::read_dir(bench.path(".")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{tool}.")) {
            texts += &String::from_utf8_lossy(&fs::read(entry.path()).unwrap());
        }
    }
    texts
}

#[test]
#[ignore = "needs a GPU"]
fn the_kernels_that_prepare_watch_and_compare_memory_are_clean() {
    let bench = bench();
    let sanitizer = sanitizer().expect("compute-sanitizer");
    let manifest = text(&fixture("own.toml"));
    // Measures the device now if that was not done yet: times under the sanitizer must not be stored.
    bench.run(&fixture("own.toml"), "alone", &[]).expect_code(0);
    for tool in ["memcheck", "racecheck", "synccheck"] {
        expect_clean(&bench, &sanitizer, tool, &["run", &manifest, "--out", tool], None);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_kernels_that_measure_a_device_are_clean() {
    let bench = bench();
    let sanitizer = sanitizer().expect("compute-sanitizer");
    // A separate cache with the same compiler, because what is measured here must not be used later.
    let (cache, own) = (Cache::locate().unwrap(), bench.path("cache"));
    Cache::at(&own).prepare().unwrap();
    let copied = Command::new("cp").arg("-a").arg(cache.root().join("toolkit")).arg(&own).status().unwrap();
    assert!(copied.success() || std::env::var_os("RUNNER_TOOLKIT").is_some());
    expect_clean(&bench, &sanitizer, "memcheck", &["doctor", "--calibrate", "--offline"], Some(&own));
}
