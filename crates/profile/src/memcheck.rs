//! The memory check: after timing, every case that passed runs once more under compute-sanitizer.
//!
//! A worker process runs inside compute-sanitizer, which ends the context of a launch that accesses memory out of
//! bounds. This worker's buffers have no guard zones, so that the sanitizer knows their bounds. Each case runs as a
//! separate group without checks, so anything found between its start and its end belongs to it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::findings;
use super::pass::{Emit, Passed};
use runner_types::{BodyPlan, CaseJob, Event, GroupJob, Note, Outcome, Sharing};
use runner_workers::{Interrupt, Limits, Pool, RunEnd, StartError, WorkerSpec};

/// Memory checks of one run: the compute-sanitizer program and its output folder.
#[derive(Debug)]
pub struct Memcheck {
    program: PathBuf,
    /// Folder to which each worker's sanitizer writes its own file.
    folder: TempDir,
    /// Number of findings per file that are already assigned to a case.
    seen: BTreeMap<PathBuf, usize>,
}

impl Memcheck {
    pub fn new(program: PathBuf) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("runner-memcheck-").tempdir()?;
        Ok(Self { program, folder, seen: BTreeMap::new() })
    }

    /// Specification of a worker inside compute-sanitizer that runs `program` with `args`.
    pub fn worker(&self, program: &Path, args: impl IntoIterator<Item = OsString>) -> WorkerSpec {
        let mut words: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
        words.extend(["--log-file".into(), self.folder.path().join("%p.txt").into(), program.into()]);
        words.extend(args);
        let mut spec = WorkerSpec::new(&self.program, words);
        spec.limits = Limits {
            start: Duration::from_mins(3),
            // Checked kernels are slower by one to two orders of magnitude.
            grace: Duration::from_mins(5),
            silence: Duration::from_mins(5),
            exit: Duration::from_secs(30),
            ..spec.limits
        };
        spec
    }

    /// New findings of all workers' sanitizers since the last call.
    fn news(&mut self) -> std::io::Result<Vec<String>> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(self.folder.path())? {
            paths.push(entry?.path());
        }
        paths.sort();
        let mut news = Vec::new();
        for path in paths {
            let found = findings::read(&String::from_utf8_lossy(&fs::read(&path)?));
            let seen = self.seen.insert(path, found.len()).unwrap_or(0);
            news.extend(found.into_iter().skip(seen));
        }
        Ok(news)
    }
}

/// Checks bounds and alignment. Driver API errors are not reported: the worker handles them itself.
const OPTIONS: [&str; 6] = ["--tool", "memcheck", "--report-api-errors", "no", "--show-backtrace", "no"];

/// Checks the cases of `groups` that passed, with a worker that `open` starts inside compute-sanitizer. A finding
/// changes the case's outcome. If the sanitizer fails, the run ends, since otherwise cases without findings would look
/// checked.
pub fn check(
    mut memcheck: Memcheck,
    open: impl FnOnce(&Memcheck) -> Result<Pool, StartError>,
    groups: Vec<GroupJob>,
    passed: &Passed,
    emit: Emit<'_>,
    interrupt: &Interrupt,
) -> RunEnd {
    let broken = |why: &dyn std::fmt::Display| RunEnd::Environment(format!("--memcheck: {why}"));
    let singles: Vec<GroupJob> = passed.among(groups).into_iter().flat_map(one_by_one).collect();
    if singles.is_empty() {
        return RunEnd::Complete;
    }
    let mut pool = match open(&memcheck) {
        Ok(pool) => pool,
        Err(StartError::Interrupted) => return RunEnd::Interrupted,
        Err(why) => return broken(&why),
    };
    let (mut settled, mut unreadable) = (None, None);
    let mut observe = |event: Event| match event {
        event @ Event::CaseActive { .. } => emit(event),
        event @ Event::CaseSettled { .. } => settled = Some(event),
        // A worker that lost its device has exited, so its sanitizer's output is complete.
        Event::GroupFinished { .. } => match (settled.take(), memcheck.news()) {
            (Some(ended), Ok(found)) => emit_finding(ended, &found, emit),
            (_, Err(why)) => unreadable = Some(why),
            (None, Ok(_)) => {}
        },
        _ => {}
    };
    let end = pool.run(singles, &mut observe, interrupt);
    match (end, unreadable, memcheck.news()) {
        (RunEnd::Environment(why), ..) => broken(&why),
        (_, Some(why), _) | (_, _, Err(why)) => broken(&format!("cannot read its output: {why}")),
        (_, _, Ok(late)) if !late.is_empty() => broken(&format!("found when its process ended: {}", late.join("; "))),
        (end, ..) => end,
    }
}

/// Emits the findings of a case, or why it was not checked.
fn emit_finding(ended: Event, found: &[String], emit: Emit<'_>) {
    let Event::CaseSettled { case, fingerprint, outcome, work } = ended else { return };
    if let [first, more @ ..] = found {
        let more = if more.is_empty() { String::new() } else { format!(" (and {} more)", more.len()) };
        let outcome = Outcome::Trap { message: format!("compute-sanitizer: {first}{more}") };
        emit(Event::CaseSettled { case, fingerprint, outcome, work });
    } else if !matches!(outcome, Outcome::Measured | Outcome::NotRun { .. }) {
        emit(Event::CaseNote { case, note: Note::NotMemchecked { outcome: outcome.name().to_owned() } });
    }
}

/// Splits a group into one group without checks per case that launches something.
fn one_by_one(group: GroupJob) -> impl Iterator<Item = GroupJob> {
    let GroupJob { ordinal, key, cases, seed, .. } = group;
    let launches = |case: &CaseJob| matches!(case.body, BodyPlan::Launches(_) | BodyPlan::Host(_));
    cases.into_iter().filter(launches).map(move |case| {
        let case = CaseJob { checks: Vec::new(), printed: None, ..case };
        GroupJob { ordinal, key: key.clone(), cases: vec![case], baseline: None, seed, sharing: Sharing::Alone }
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use runner_types::{Case, CaseKey, GroupKey, WorkAmount};

    fn ended(outcome: Outcome) -> Event {
        let key = CaseKey { experiment: "x".to_owned(), variant: "a".to_owned(), axes: Vec::new() };
        let case = Case { ordinal: 3, key, group: GroupKey(Vec::new()) };
        Event::CaseSettled { case, fingerprint: None, outcome, work: WorkAmount::default() }
    }

    fn emitted(outcome: Outcome, found: &[&str]) -> Vec<Event> {
        let mut events = Vec::new();
        let found: Vec<String> = found.iter().map(|&text| text.to_owned()).collect();
        emit_finding(ended(outcome), &found, &mut |event| events.push(event));
        events
    }

    #[test]
    fn a_finding_is_the_outcome_of_its_case() {
        let lost = || Outcome::LaunchError { message: "CUDA_ERROR_LAUNCH_FAILED".to_owned() };
        let trap = |message: &str| vec![ended(Outcome::Trap { message: message.to_owned() })];
        assert_eq!(emitted(lost(), &["Invalid write at k"]), trap("compute-sanitizer: Invalid write at k"));
        assert_eq!(emitted(Outcome::Measured, &["a", "b"]), trap("compute-sanitizer: a (and 1 more)"));
        assert_eq!(emitted(Outcome::Measured, &[]), []);
        let notes = emitted(lost(), &[]);
        let [Event::CaseNote { note: Note::NotMemchecked { outcome }, .. }] = notes.as_slice() else {
            panic!("{notes:?}")
        };
        assert_eq!(outcome, "launch_error");
    }

    #[test]
    fn findings_belong_to_the_case_that_ran_when_they_were_written() {
        let mut memcheck = Memcheck::new("compute-sanitizer".into()).unwrap();
        let write = |name: &str, count: usize| {
            let finding = "========= Invalid read\n=========     by thread (0,0,0)\n";
            let path = memcheck.folder.path().join(name);
            fs::write(path, format!("========= COMPUTE-SANITIZER\n{}", finding.repeat(count))).unwrap();
        };
        write("7.txt", 1);
        let (first, path) = (memcheck.news().unwrap(), memcheck.folder.path().to_owned());
        assert_eq!((first.len(), memcheck.news().unwrap().len()), (1, 0));
        let finding = "========= Invalid read\n=========     by thread (0,0,0)\n";
        fs::write(path.join("7.txt"), finding.repeat(2)).unwrap();
        fs::write(path.join("8.txt"), finding).unwrap();
        assert_eq!(memcheck.news().unwrap(), ["Invalid read by thread (0,0,0)"; 2]);
    }
}
