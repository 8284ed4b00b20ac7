//! Which process the kernel kills first when memory runs out.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn memory_that_runs_out_ends_workers_and_compilers_before_the_run() {
    let own = |pid: u32| fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap_or_default().trim().to_owned();
    for words in [&["__worker", "--backend", "sim"][..], &["__compile"]] {
        // Both programs start by waiting for a request.
        let mut child = Command::new(env!("CARGO_BIN_EXE_runner"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while own(child.id()) != "1000" && start.elapsed() < Duration::from_mins(1) {
            thread::sleep(Duration::from_millis(10));
        }
        let found = own(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, "1000", "{words:?}");
    }
    assert_ne!(own(std::process::id()), "1000");
}
