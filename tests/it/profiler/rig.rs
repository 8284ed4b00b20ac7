//! A fake `ncu`, and a worker with the fake device that runs inside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_backend::{FakeDevice, device_info, idle_group};
use runner_backend::Device;
use runner_process::programs::Programs;
use runner_profile::{Counted, Detail, ProfilerError, ProfilerSession, Tally};
use runner_types::{Activity, Case, CaseJob, Dim3, Event, GroupJob, KernelCode, MarkedLaunch, Mismatch, Outcome};
use runner_workers::{Interrupt, Pool, RunEnd, worker};
use tempfile::TempDir;

use crate::programs::write_program;

/// Environment variable that names the folder of the script. If it is set, the entry point below acts as a worker.
const FOLDER: &str = "RUNNER_TEST_PROFILED";

/// Time limits in seconds: of a step that never ends, and of any other step.
const LIMITS: [f64; 2] = [1.0, 300.0];

/// The fake profiler. It finds the log file and the program among its arguments, and starts the program with its own
/// input and output. Then it writes the table of launches that the worker left, or a report whose pages it prints
/// later.
const NCU: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
  printf 'NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025 NVIDIA Corporation\nVersion 2025.3.1.0 (build 36398880) (public-release)\n'
  exit 0
fi
here=$(dirname "$0")
case " $* " in
  *' --import '*' --page source '*) cat "$here/source"; exit ;;
  *' --import '*' --page raw '*) cat "$here/raw"; exit ;;
esac
printf '%s\n' "$@" > "$here/arguments"
started=$$
while [ $# -gt 0 ]; do
  case "$1" in
    --log-file) log=$2; shift 2 ;;
    --export) export=$2; shift 2 ;;
    /bin/sh) break ;;
    *) shift ;;
  esac
done
log=$(printf '%s' "$log" | sed "s/%p/$started/")
for unknown in $(cat "$here/unknown" 2>/dev/null); do
  if grep -q -e "$unknown" "$here/arguments"; then
    printf '==ERROR== Failed to find metric %s\n' "$unknown" > "$log"
    exit 1
  fi
done
exec 4<&0
"$@" <&4 &
target=$!
exec 4<&-
wait $target
printf '==PROF== Connected to process %s (/usr/bin/runner)\n' "$target" > "$log"
if [ -e "$here/refusal" ]; then cat "$here/refusal" >> "$log"; exit 1; fi
printf '==PROF== Disconnected from process %s\n' "$target" >> "$log"
if [ -n "$export" ]; then
  sed "s/PROCESS/$target/" "$here/table" > "$here/raw"
  : > "$(printf '%s' "$export" | sed "s/%p/$started/").ncu-rep"
else
  sed "s/PROCESS/$target/" "$here/table" >> "$log"
fi
rm -f "$here/table"
"#;

/// Headers and units of the table.
const TABLE: &str = concat!(
    r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","#,
    r#""CC","smsp__inst_executed.sum","smsp__thread_inst_executed.sum","smsp__warps_launched.sum","#,
    r#""gpu__time_duration.sum","dram__bytes_read.sum.per_second","sm__cycles_active.sum","#,
    r#""lts__t_sectors_op_read.sum","lts__t_sectors_op_read.avg""#,
    "\n",
    r#""","","","","","","","","","","","inst","inst","warp","nsecond","byte/second","cycle","sector","sector""#,
    "\n",
);

/// Start of a row, before its numbers.
const ROW: &str = r#""0","PROCESS","runner","127.0.0.1","KERNEL","1","7","(256, 1, 1)","(64, 2, 1)","0","9.0""#;

/// Folder of one test, with the fake profiler and what the worker leaves for it.
pub struct World {
    pub folder: TempDir,
}

/// Result of a pass.
pub struct Pass {
    pub end: RunEnd,
    pub counted: Result<Vec<(Case, Counted)>, ProfilerError>,
    pub events: Vec<Event>,
}

impl World {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        write_program(&folder.path().join("ncu"), NCU);
        Self { folder }
    }

    /// A session that also counts each machine instruction.
    pub fn session_of_instructions(&self) -> ProfilerSession {
        ProfilerSession::start(&Programs::in_dirs([self.folder.path()]), &[], Detail::Instructions).unwrap()
    }

    /// Sets the source page that the fake profiler prints, and the code of the kernels.
    pub fn has_source_page(&self, page: &str, code: &BTreeMap<String, KernelCode>) {
        fs::write(self.folder.path().join("source"), page).unwrap();
        fs::write(self.folder.path().join("code"), serde_json::to_vec(code).unwrap()).unwrap();
    }

    pub fn session(&self, extra: &[&str]) -> ProfilerSession {
        let extra: Vec<String> = extra.iter().map(|name| (*name).to_owned()).collect();
        ProfilerSession::start(&Programs::in_dirs([self.folder.path()]), &extra, Detail::Launches).unwrap()
    }

    /// Makes the fake profiler write this in place of a table.
    pub fn refuse(&self, words: &str) {
        fs::write(self.folder.path().join("refusal"), words).unwrap();
    }

    /// Makes the fake profiler refuse to start with these metrics.
    pub fn has_no(&self, names: &[&str]) {
        fs::write(self.folder.path().join("unknown"), names.join(" ")).unwrap();
    }

    pub fn arguments(&self) -> Vec<String> {
        fs::read_to_string(self.folder.path().join("arguments")).unwrap().lines().map(str::to_owned).collect()
    }

    /// Starts a worker inside the profiler.
    pub fn open(&self, session: &mut ProfilerSession) -> Result<Pool, ProfilerError> {
        let this = std::env::current_exe().unwrap();
        let script = "exec \"$0\" \"$1\" --exact --nocapture 3>&1 1>/dev/null";
        let words = ["-c".into(), script.into(), this.into_os_string(), OsString::from("profiler::rig::worker_entry")];
        let worker = |session: &ProfilerSession| {
            let mut spec = session.worker(Path::new("/bin/sh"), words.clone());
            spec.env.push((FOLDER.into(), self.folder.path().into()));
            spec.limits.grace = Duration::from_millis(500);
            spec
        };
        session.open(worker, &Interrupt::new()).map(|(pool, _)| pool)
    }

    /// Runs the groups inside the profiler.
    pub fn count(&self, session: &mut ProfilerSession, groups: Vec<GroupJob>) -> Pass {
        let mut pool = self.open(session).unwrap();
        let interrupt = Interrupt::new();
        let mut tally = Tally::default();
        let mut events = Vec::new();
        let end = pool.run(groups, &mut |event| events.extend(tally.observe(event)), &interrupt);
        let counted = session.results().and_then(|results| tally.close(&results));
        Pass { end, counted, events }
    }
}

/// A group with one case per variant. Each letter in a variant's name is a launch; a capital letter's launch is not
/// counted. `!` aborts the worker, `?` is a launch that never ends, and `~` makes the results wrong.
pub fn group(ordinal: u32, variants: &[&str]) -> GroupJob {
    let mut group = idle_group("counts", ordinal, variants, LIMITS[1]);
    for case in group.cases.iter_mut().filter(|case| case.case.key.variant.contains('?')) {
        case.measure.timeout = LIMITS[0];
    }
    group
}

/// A launch of the kernel `name`.
fn launch(name: char) -> MarkedLaunch {
    MarkedLaunch { kernel: format!("_Z1{name}Pi"), grid: Dim3::new(64, 2, 1), block: Dim3::new(256, 1, 1) }
}

/// Not a test on its own: the worker's main function, if the environment asks for it.
#[test]
fn worker_entry() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    // SAFETY: `open` runs a shell command that opens descriptor 3, and nothing else here uses it.
    rustix::stdio::dup2_stdout(unsafe { OwnedFd::from_raw_fd(3) }).unwrap();
    fs::write(folder.join("table"), TABLE).unwrap();
    let open = || Ok(Box::new(FakeDevice::new(device_info())) as Box<dyn Device>);
    let run = |_: &mut dyn Device, job: &GroupJob, emit: &mut dyn FnMut(Event)| -> Result<(), String> {
        run_group(&folder, job, emit);
        Ok(())
    };
    worker::serve(open, run, runner_calibrate::survey).unwrap();
}

fn run_group(folder: &Path, job: &GroupJob, emit: &mut dyn FnMut(Event)) {
    for CaseJob { case, work, measure, .. } in &job.cases {
        let made = || case.key.variant.chars().filter(|name| *name != '~');
        emit(Event::CaseActive { case: case.clone(), activity: Activity::Checking, limit: measure.timeout });
        let launches = made().map(|name| launch(name.to_ascii_lowercase())).collect();
        let process = std::process::id();
        let code = fs::read(folder.join("code")).map(|json| serde_json::from_slice(&json).unwrap()).unwrap_or_default();
        emit(Event::LaunchesMarked { case: case.clone(), process, launches, whole_only: false, code });
        made().for_each(|name| count(folder, name));
        let wrong = case.key.variant.contains('~');
        let outcome = if wrong { Outcome::Wrong { mismatch: mismatch() } } else { Outcome::Measured };
        emit(Event::CaseSettled { case: case.clone(), fingerprint: None, outcome, work: *work });
    }
}

fn mismatch() -> Mismatch {
    let what = "sum(partial)".to_owned();
    let (expected, got) = ("1".to_owned(), "2".to_owned());
    Mismatch { what, index: 0, expected, got, error: Some(1.0), wrong: 1, of: 1, allowed: None }
}

/// Adds the profiler's counts for a launch: those of `a` are 1, 2, 3, …, those of `b` ten times as much, and so on.
fn count(folder: &Path, name: char) {
    match name {
        '!' => std::process::abort(),
        '?' => std::thread::sleep(Duration::from_mins(10)),
        'A'..='Z' => {}
        name => {
            let scale = 10_u32.pow(u32::from(name) - u32::from('a'));
            let mut row = String::from(ROW);
            for value in 1..=8 {
                let _ = write!(row, ",\"{}\"", value * scale);
            }
            let MarkedLaunch { kernel, .. } = launch(name);
            let mut table = fs::OpenOptions::new().append(true).open(folder.join("table")).unwrap();
            writeln!(table, "{}", row.replace("KERNEL", &kernel)).unwrap();
        }
    }
}
