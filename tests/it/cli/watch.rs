//! `runner run --watch`: reruns when a kernel changes, and ends on Ctrl-C.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const MANIFEST: &str = r#"
[experiment]
name = "constant"

[buffers.out]
type = "i32"
len  = 32

[check]
actual = "out"
expect = 7

[[variant]]
name   = "write"
source = "constant.cu"
kernel = "write"
grid   = [1]
block  = [32]
args   = ["out"]
"#;

/// Far more than a run takes, even while other tests use all cores.
const LIMIT: Duration = Duration::from_mins(10);

/// The line that ends a round.
const WAITS: &str = "waiting for changes; press Ctrl-C to stop";

const RIGHT: &str = "1 of 1 case passed";

/// A run that watches a project, without a terminal. Dropping this kills the run.
struct Watched {
    folder: TempDir,
    child: Child,
}

impl Watched {
    fn start(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for sub in ["experiments", "kernels"] {
            fs::create_dir(folder.path().join(sub)).unwrap();
        }
        for name in names {
            let manifest = MANIFEST.replace("constant", name);
            fs::write(folder.path().join(format!("experiments/{name}.toml")), manifest).unwrap();
            write_kernel(&folder, name, 7);
        }
        let said = fs::File::create(folder.path().join("said")).unwrap();
        // If a script runs the tests in the background, they have inherited an ignored SIGINT.
        let child = Command::new("env")
            .arg("--default-signal=INT")
            .arg(env!("CARGO_BIN_EXE_runner"))
            .args(["--color", "never", "run", "--backend", "sim", "--watch"])
            .args(names.iter().map(|name| format!("experiments/{name}.toml")))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .process_group(0)
            .spawn()
            .unwrap();
        Self { folder, child }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }

    /// Waits until the output satisfies `expected`.
    #[track_caller]
    fn until(&mut self, expected: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let said = self.said();
            if expected(&said) {
                return said;
            }
            assert!(began.elapsed() < LIMIT, "it did not go on:\n{said}");
            assert_eq!(self.child.try_wait().unwrap(), None, "it ended:\n{said}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Output of round `count` (1-based), once it has ended.
    #[track_caller]
    fn round(&mut self, count: usize) -> String {
        let said = self.until(|said| said.matches(WAITS).count() >= count);
        said.split(WAITS).nth(count - 1).unwrap().to_owned()
    }

    /// Sends Ctrl-C and returns the exit code.
    #[track_caller]
    fn interrupted(&mut self) -> Option<i32> {
        let interrupt = format!("kill -INT {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < LIMIT, "it did not end:\n{}", self.said());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Fails if the process has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn write_kernel(folder: &TempDir, name: &str, value: i32) {
    let text = format!("extern \"C\" __global__ void write(int* out) {{ out[threadIdx.x] = {value}; }}\n");
    fs::write(folder.path().join(format!("kernels/{name}.cu")), text).unwrap();
}

#[test]
fn a_change_of_a_kernel_is_run_and_ctrl_c_ends() {
    let mut watched = Watched::start(&["constant"]);
    let said = watched.round(1);
    assert!(said.contains(RIGHT), "{said}");
    write_kernel(&watched.folder, "constant", 8);
    let said = watched.round(2);
    assert!(said.contains("element 0 is 8, expected 7"), "{said}");
    write_kernel(&watched.folder, "constant", 7);
    let said = watched.round(3);
    assert!(said.contains(RIGHT), "{said}");
    assert_eq!(watched.interrupted(), Some(130), "{}", watched.said());
}

#[test]
fn a_change_during_a_run_is_run_after_it() {
    let mut watched = Watched::start(&["constant", "later"]);
    watched.until(|said| said.contains("report: reports/constant/"));
    write_kernel(&watched.folder, "constant", 8);
    let said = watched.round(2);
    assert!(said.contains("element 0 is 8, expected 7"), "{said}");
}
