//! Death of the dispatcher, and Ctrl-C in its terminal. The dispatcher is a separate process here.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use runner_types::Event;
use runner_workers::{Interrupt, Pool};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use super::scripted::{group, spec};

/// Environment variable that names the folder of a dispatcher. If it is set, the entry point below acts as one.
const FOLDER: &str = "RUNNER_TEST_DISPATCHER";

/// Not a test on its own: the dispatcher's main function, if the environment asks for it.
#[test]
fn dispatcher_entry() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let told = folder.join("told");
    let interrupt = Interrupt::on_signals(move |urgency| fs::write(&told, format!("{urgency:?}")).unwrap()).unwrap();
    let (mut pool, _) = Pool::start(spec(&folder), &interrupt).unwrap();
    let variant = fs::read_to_string(folder.join("variant")).unwrap();
    let mut outcomes = Vec::new();
    let emit = &mut |event| {
        if let Event::CaseSettled { outcome, .. } = event {
            outcomes.push(outcome.name());
        }
    };
    let end = pool.run([group(0, &[variant.as_str(), "a"])], emit, &interrupt);
    fs::write(folder.join("end"), format!("{end:?} {}", outcomes.join(" "))).unwrap();
}

/// Starts a dispatcher in its own process group, as a shell does, and waits until its worker runs the variant.
fn dispatcher(folder: &Path, variant: &str) -> Child {
    // If a script runs the tests in the background, they have inherited an ignored SIGINT.
    dispatcher_by("exec env --default-signal=INT,HUP,TERM", folder, variant)
}

/// Starts a dispatcher like [`dispatcher`], after a line of shell code.
fn dispatcher_after(line: &str, folder: &Path, variant: &str) -> Child {
    dispatcher_by(&format!("{line}\nexec"), folder, variant)
}

fn dispatcher_by(how: &str, folder: &Path, variant: &str) -> Child {
    fs::write(folder.join("variant"), variant).unwrap();
    let script = format!("{how} \"$0\" death::dispatcher_entry --exact");
    let child = Command::new("/bin/sh")
        .args(["-c", &script, std::env::current_exe().unwrap().to_str().unwrap()])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    assert!(holds_soon(|| folder.join("attempts").exists()), "the worker did not start");
    child
}

/// Waits for a condition; the time limit is ample on any machine.
fn holds_soon(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > Duration::from_mins(2) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Whether a process is running; a zombie is not.
fn runs(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}

#[test]
fn a_worker_in_a_hung_kernel_ends_with_its_dispatcher() {
    let folder = TempDir::new().unwrap();
    let mut dispatcher = dispatcher(folder.path(), "hangs");
    let worker = fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(runs(&worker));
    dispatcher.kill().unwrap();
    dispatcher.wait().unwrap();
    assert!(holds_soon(|| !runs(&worker)), "the worker {worker} lives on");
}

#[test]
fn ctrl_c_in_the_terminal_lets_the_launch_under_way_end() {
    let folder = TempDir::new().unwrap();
    let mut dispatcher = dispatcher(folder.path(), "dawdles");
    // The terminal signals the whole foreground group; the worker must not be in it.
    rustix::process::kill_process_group(Pid::from_child(&dispatcher), Signal::INT).unwrap();
    assert!(dispatcher.wait().unwrap().success());
    assert_eq!(fs::read_to_string(folder.path().join("end")).unwrap(), "Interrupted not_run not_run");
    assert_eq!(fs::read_to_string(folder.path().join("told")).unwrap(), "Soon");
}

#[test]
fn a_signal_that_is_to_be_ignored_ends_nothing() {
    let folder = TempDir::new().unwrap();
    let mut dispatcher = dispatcher_after("trap '' INT HUP", folder.path(), "waits");
    for signal in [Signal::INT, Signal::HUP] {
        rustix::process::kill_process_group(Pid::from_child(&dispatcher), signal).unwrap();
    }
    fs::write(folder.path().join("go"), "").unwrap();
    assert!(dispatcher.wait().unwrap().success());
    assert_eq!(fs::read_to_string(folder.path().join("end")).unwrap(), "Complete measured measured");
}
