//! A worker whose cases do what the name of their variant says, through the real worker loop and a real process.

use std::fmt;
use std::fs;
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fake_backend::{FakeDevice, device_info, idle_group};
use runner_backend::{Device, DeviceError};
use runner_types::{
    Activity, Bytes, CaseJob, Event, GroupJob, Measurement, Mismatch, Outcome, Regime, Round, Unit, Verdict,
};
use runner_workers::{Limits, WorkerSpec, worker};

use rustix::process::Pid;

use super::survey;

/// Environment variable that names the folder in which a scripted worker records what it did. If it is set, the entry
/// point below acts as a worker.
const FOLDER: &str = "RUNNER_TEST_WORKER";

/// Time limit in seconds for steps that never end.
pub const LIMIT: f64 = 1.5;

/// Time limit in seconds for steps that end, ample even on a busy machine.
pub const LONG: f64 = 300.0;

/// Duration of a step that never ends.
pub const NEVER: Duration = Duration::from_mins(10);

/// A worker whose cases are scripted.
pub fn spec(folder: &Path) -> WorkerSpec {
    spec_of("scripted::worker_entry", folder)
}

/// A worker whose cases are scripted, on a device with this much memory.
pub fn spec_with_memory(folder: &Path, bytes: u64) -> WorkerSpec {
    fs::write(folder.join("memory"), bytes.to_string()).unwrap();
    spec(folder)
}

/// Runs this test binary at `entry` as a worker. The worker's standard output goes to descriptor 3, separate from the
/// output of the test harness.
pub fn spec_of(entry: &str, folder: &Path) -> WorkerSpec {
    let this = std::env::current_exe().unwrap();
    let script = "exec \"$0\" \"$1\" --exact --nocapture 3>&1 1>/dev/null";
    let mut spec = WorkerSpec::new("/bin/sh", ["-c", script, this.to_str().unwrap(), entry]);
    spec.env.push((FOLDER.into(), folder.into()));
    // Resolving the symbols of a backtrace takes longer than a case may.
    spec.env.push(("RUST_BACKTRACE".into(), "0".into()));
    spec.limits = Limits { start: Duration::from_mins(2), grace: Duration::from_millis(500), ..Limits::default() };
    spec
}

/// A group with one case per variant; the first is the baseline.
pub fn group(ordinal: u32, variants: &[&str]) -> GroupJob {
    let mut group = idle_group("faults", ordinal, variants, LONG);
    for case in &mut group.cases {
        case.work.bytes = Some(8);
        if ["hangs", "never_ends"].iter().any(|never| case.case.key.variant.starts_with(never)) {
            case.measure.timeout = LIMIT;
        }
    }
    group
}

/// If this process is a worker, returns its folder and redirects standard output to the dispatcher; `None` in a test.
pub fn as_worker() -> Option<PathBuf> {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from)?;
    // SAFETY: `spec_of` opens descriptor 3 in the shell, and nothing else here uses it.
    rustix::stdio::dup2_stdout(unsafe { OwnedFd::from_raw_fd(3) }).unwrap();
    fs::write(folder.join("pid"), std::process::id().to_string()).unwrap();
    Some(folder)
}

/// Not a test on its own: the worker's main function, if the environment asks for it.
#[test]
fn worker_entry() {
    let Some(folder) = as_worker() else { return };
    worker::serve(|| open(&folder), |_, job, emit| run_group(&folder, job, emit), |_, _| survey::act(&folder)).unwrap();
}

/// Refuses to open while the number in the file `broken` is above zero, and decrements it.
fn open(folder: &Path) -> Result<Box<dyn Device>, DeviceError> {
    let broken = folder.join("broken");
    let left: u32 = fs::read_to_string(&broken).map_or(0, |text| text.trim().parse().unwrap());
    if left > 0 {
        fs::write(&broken, (left - 1).to_string()).unwrap();
        return Err(DeviceError::Unavailable("the device is resting".into()));
    }
    append(folder, "opened", std::process::id());
    let mut info = device_info();
    if let Ok(bytes) = fs::read_to_string(folder.join("memory")) {
        info.memory_bytes = Bytes(bytes.parse().unwrap());
    }
    Ok(Box::new(FakeDevice::new(info)))
}

fn append(folder: &Path, name: &str, line: impl fmt::Display) {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(folder.join(name)).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[derive(Debug)]
struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an illegal memory access was encountered")
    }
}

/// Runs cases in the order of a real group: check each case, measure in rounds, settle.
fn run_group(folder: &Path, job: &GroupJob, emit: &mut dyn FnMut(Event)) -> Result<(), Lost> {
    let variants: Vec<&str> = job.cases.iter().map(|c| c.case.key.variant.as_str()).collect();
    append(folder, "attempts", format_args!("{} of baseline {:?}", variants.join(" "), job.baseline));
    append(folder, "processes", std::process::id());
    if variants.contains(&"dies_between") {
        std::process::exit(7);
    }
    if variants.contains(&"hangs_between") {
        thread::sleep(NEVER);
    }
    let mut good = Vec::new();
    for case in &job.cases {
        emit(active(case, Activity::Checking));
        match act(folder, case, Activity::Checking) {
            Act::Good => {
                if case.case.key.variant == "prints_and_is_compared" {
                    emit(active(case, Activity::Checking));
                }
                let of = case.case.clone();
                emit(Event::CaseChecked {
                    case: of,
                    fingerprint: None,
                    hashes: None,
                    verdict: Verdict::Pass,
                    launches: Vec::new(),
                });
                good.push(case);
                // Proceeds in short steps, so that it stops as soon as it is asked to.
                let until = Instant::now() + NEVER;
                while case.case.key.variant == "dawdles" && Instant::now() < until {
                    emit(active(case, Activity::Rechecking));
                    thread::sleep(Duration::from_millis(5));
                }
            }
            Act::Ends(outcome) => emit(settled(case, outcome)),
            Act::Loses => {
                emit(settled(case, Outcome::LaunchError { message: Lost.to_string() }));
                return Err(Lost);
            }
        }
    }
    for case in &good {
        emit(active(case, Activity::Measuring));
        act(folder, case, Activity::Measuring);
        let whole = match case.case.key.variant.as_str() {
            "tells_its_process" => f64::from(std::process::id()),
            _ => job.cases.len() as f64,
        };
        let rounds = vec![Round { whole, ..Round::default() }];
        let measurement = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds);
        emit(Event::CaseMeasured { case: case.case.clone(), measurement });
        emit(settled(case, Outcome::Measured));
    }
    Ok(())
}

fn active(case: &CaseJob, activity: Activity) -> Event {
    Event::CaseActive { case: case.case.clone(), activity, limit: case.measure.timeout }
}

fn settled(case: &CaseJob, outcome: Outcome) -> Event {
    Event::CaseSettled { case: case.case.clone(), fingerprint: None, outcome, work: case.work }
}

/// Result of a scripted kernel that returns.
enum Act {
    Good,
    Ends(Outcome),
    Loses,
}

fn act(folder: &Path, case: &CaseJob, activity: Activity) -> Act {
    match (case.case.key.variant.as_str(), activity) {
        ("hangs", _) | ("hangs_when_measured", Activity::Measuring) => thread::sleep(NEVER),
        ("waits", _) => {
            while !folder.join("go").exists() {
                thread::sleep(Duration::from_millis(5));
            }
        }
        ("aborts", _) | ("aborts_when_measured", Activity::Measuring) => std::process::abort(),
        ("panics", _) => panic!("index out of bounds"),
        // SAFETY: none. Nothing is mapped at this address, and the case is meant to die of it.
        ("segfaults", _) => unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) },
        ("exits", _) => std::process::exit(0),
        ("is_killed", _) => killed(),
        ("is_killed_once" | "is_killed_once_too", _) => {
            let file = folder.join(&case.case.key.variant);
            if !file.exists() {
                fs::write(file, "").unwrap();
                killed();
            }
        }
        ("kills_those_that_rest", Activity::Checking) => {
            let processes = fs::read_to_string(folder.join("processes")).unwrap();
            let own = rustix::process::getpid();
            let others = processes.lines().filter_map(|id| Pid::from_raw(id.parse().unwrap())).filter(|id| *id != own);
            others.for_each(|id| _ = rustix::process::kill_process(id, rustix::process::Signal::KILL));
        }
        ("waits_until_five_workers_have_started", Activity::Checking) => {
            while fs::read_to_string(folder.join("opened")).unwrap().lines().count() < 5 {
                thread::sleep(Duration::from_millis(5));
            }
        }
        ("breaks_the_device", _) => {
            fs::write(folder.join("broken"), "1000").unwrap();
            std::process::abort();
        }
        ("breaks_the_device_afterwards", _) => fs::write(folder.join("broken"), "1000").unwrap(),
        ("breaks_the_device_for_a_moment", _) => {
            fs::write(folder.join("broken"), "1").unwrap();
            std::process::abort();
        }
        ("prints" | "prints_and_is_compared", _) => {
            // As C does it: buffered by the library, on descriptor 1, with text that looks like the protocol.
            // SAFETY: both strings end with a NUL, and the format takes one string.
            unsafe { libc::printf(c"{\"reply\":\"stopped\"}\n%s\n".as_ptr(), c"thread 0 was here".as_ptr()) };
        }
        ("floods", _) => std::io::stdout().write_all(&vec![b'x'; 1 << 20]).unwrap(),
        ("loses_the_device", _) => return Act::Loses,
        ("is_wrong_in_another_process", Activity::Checking) => {
            let file = folder.join(&case.case.key.variant);
            if file.exists() {
                return Act::Ends(Outcome::Wrong { mismatch: mismatch() });
            }
            fs::write(file, "").unwrap();
        }
        ("is_wrong", _) => return Act::Ends(Outcome::Wrong { mismatch: mismatch() }),
        ("is_invalid", _) => {
            return Act::Ends(Outcome::Invalid { limit: "2048 threads per block, the device allows 1024".into() });
        }
        _ => {}
    }
    Act::Good
}

/// Kills this process, as the system does when memory runs out.
fn killed() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
}

fn mismatch() -> Mismatch {
    Mismatch {
        what: "sum(partial)".into(),
        index: 0,
        expected: "3".into(),
        got: "4".into(),
        error: Some(1.0),
        wrong: 1,
        of: 1,
        allowed: None,
    }
}
