//! `tests/injection/kills.py`: runs, shards, searches and jobs that are killed at random moments end in the report of an
//! undisturbed run. `RUNNER_KILLS` is the number of kills of each; half as many signals follow.

use std::path::Path;
use std::process::Command;

#[test]
fn what_was_killed_goes_on_and_ends_in_the_same_report() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no Python");
        return;
    }
    let kills: u32 = std::env::var("RUNNER_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(2);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/injection/kills.py");
    let counts = [kills, kills.div_ceil(2)].map(|count| count.to_string());
    let output = Command::new("python3").arg(script).arg(env!("CARGO_BIN_EXE_runner")).args(counts).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{said}");
    for scenario in ["run", "shards", "tune", "submit"] {
        for what in ["kill", "signal"] {
            let is_its =
                |line: &str| line.starts_with(&format!("{scenario}: ")) && line.contains(&format!(" a {what} "));
            assert!(said.lines().any(is_its), "{scenario} without a {what}: {said}");
        }
    }
    println!("{said}");
}
