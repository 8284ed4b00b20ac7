//! `runner task`: runs one task of a job array. Each of its shards continues the last attempt.
//!
//! The scheduler warns with SIGUSR1 before the time limit and kills with SIGTERM. Both end the current launch, and the
//! journal has everything measured so far. After a warning the task asks to be restarted, a limited number of times.
//! After SIGTERM it does not: the scheduler has already decided.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::tune::{self, Searched};
use crate::cli::options::{Kind, Portion, RunOptions};
use crate::cli::{Cli, Command, ReachArgs, TaskArgs, TrustArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use crate::session::{ManifestRun, interrupt, run_one};
use runner_backend::cuda;
use runner_cluster::scheduler::{Placement, Queue};
use runner_cluster::{
    Job, JobError, MemoryKills, OUT_OF_MEMORY, Snapshot, SnapshotError, Submission, TIME_WAS_NEAR, TaskEvent, TaskLog,
    Work, check_program, is_done, next_attempt, preflight, read_groups,
};
use runner_compile::Network;
use runner_lang::format::plural_of;
use runner_results::journal::JOURNAL_FILE;
use runner_workers::{Interrupt, KILLED, Urgency};

/// How long a task waits for files that its node does not see yet: shared file systems show them with a delay.
const PATIENCE: Duration = Duration::from_mins(1);

/// Interval for checking for such files.
const PAUSE: Duration = Duration::from_millis(500);

/// Name of a journal that is set aside because cases failed for lack of memory.
const WITHOUT_MEMORY: &str = "journal-without-memory.jsonl";

/// Maximum delay between a worker and this process receiving the same signal.
const SIGNAL_DELAY: Duration = Duration::from_secs(1);

/// Data for testing whether a disk is full, larger than the blocks that file systems reserve for small files.
static PROBE: [u8; 64 << 10] = [0; 64 << 10];

pub fn run(args: &TaskArgs, console: &mut Console) -> Result<Exit, Failure> {
    // The working directory will change.
    let dir = std::path::absolute(&args.job).unwrap_or_else(|_| args.job.clone());
    let job = when_visible(|| Job::read(&dir), JobError::is_absent).map_err(Failure::environment)?;
    let read = || Submission::read(&dir, &job, args.submission);
    let submission = when_visible(read, JobError::is_absent).map_err(Failure::environment)?;
    let shards = (submission.tasks.get(args.task))
        .ok_or_else(|| Failure::usage(format!("submission {} has no task {}", args.submission, args.task)))?;
    let task = Task {
        dir: &dir,
        job: &job,
        log: TaskLog::new(&dir, args.submission, args.task),
        place: job.settings.scheduler.queue().map_or_else(Placement::of_host, Queue::place),
    };
    for work in shards {
        job.refuse_links(&dir, *work).map_err(Failure::usage)?;
    }
    let interrupt = interrupt()?;
    interrupt.on_warning().map_err(|e| Failure::environment(format!("cannot listen for signals: {e}")))?;
    task.write(TaskEvent::Started {
        id: task.place.id.clone(),
        node: task.place.node.clone(),
        restart: task.place.restart,
    })?;
    if !args.search.is_empty() {
        return task.search(args, shards, &interrupt, console);
    }
    // The script names the files that its own user submitted; those in the folder may be someone else's.
    let files = args.snapshot.as_ref().unwrap_or(&submission.snapshot);
    let files = match task.enter(files, &args.trust) {
        Ok(files) => files,
        Err(failure) => return task.fail(failure, &interrupt, console),
    };
    if let Err(failure) = task.refuse_older_version(&files).and_then(|()| task.preflight()) {
        return task.fail(failure, &interrupt, console);
    }
    let mut failed = None;
    for work in shards {
        let ended = task.run_shard(*work, &files, &interrupt, console);
        if let Err(failure) = ended {
            if is_signalled(&failure, &interrupt, console) {
                return task.stop(console);
            }
            // The other shards, which may be of other experiments, still run.
            let (ends, failure) = task.give_back(Some(*work), failure)?;
            if ends {
                return Err(failure);
            }
            console.fail(&failure);
            failed = Some(failure.exit);
        }
        if interrupt.urgency() > Urgency::None {
            return task.stop(console);
        }
    }
    match failed {
        Some(exit) => Ok(exit),
        None => task.write(TaskEvent::Finished).map(|()| Exit::Success),
    }
}

/// Retries a read while the file is absent, up to a limit.
fn when_visible<T, E>(read: impl Fn() -> Result<T, E>, is_absent: impl Fn(&E) -> bool) -> Result<T, E> {
    let until = Instant::now() + PATIENCE;
    loop {
        match read() {
            Err(error) if is_absent(&error) && Instant::now() < until => thread::sleep(PAUSE),
            other => return other,
        }
    }
}

struct Task<'a> {
    dir: &'a Path,
    job: &'a Job,
    log: TaskLog,
    place: Placement,
}

/// Sets aside the results of an attempt in which cases failed because the system killed a process, such as a reference
/// or a compiler.
fn set_aside(attempt: &Path, kills: u64) -> Failure {
    let journal = attempt.join(JOURNAL_FILE);
    match fs::rename(&journal, attempt.join(WITHOUT_MEMORY)) {
        Ok(()) => {
            Failure::environment(format!("{} of the task ended by {KILLED}", plural_of(kills, "process", "processes")))
        }
        Err(error) => Failure::environment(format!("cannot rename {}: {error}", journal.display())),
    }
}

/// Whether a signal caused a failure: the scheduler signals all processes of a task, one after another.
fn is_signalled(failure: &Failure, interrupt: &Interrupt, console: &mut Console) -> bool {
    interrupt.sleep(SIGNAL_DELAY);
    let is_signalled = interrupt.urgency() > Urgency::None;
    if is_signalled {
        console.say(&format!("warning: {}", failure.message));
    }
    is_signalled
}

struct Files {
    /// Hash of the copies.
    hash: String,
    /// Commit of the submitted checkout.
    revision: Option<String>,
    /// Permissions from the command line for these files. The job itself grants none, since someone else may have
    /// written it.
    trust: TrustArgs,
}

impl Task<'_> {
    /// Checks the submission's files and changes to their folder, so that relative paths resolve there.
    fn enter(&self, files: &str, trust: &TrustArgs) -> Result<Files, Failure> {
        let snapshot = when_visible(|| Snapshot::checked(self.dir, files), SnapshotError::is_absent);
        let refused = |error: SnapshotError| Failure::usage(error);
        let snapshot = snapshot.map_err(|error| {
            // The file may be visible on another node.
            if error.is_absent() { Failure::environment(error) } else { refused(error) }
        })?;
        check_program(&snapshot.program).map_err(refused)?;
        let directory = Snapshot::directory(self.dir, files, &self.job.directory);
        let directory = directory.map_err(Failure::environment)?;
        std::env::set_current_dir(&directory)
            .map_err(|error| Failure::environment(format!("cannot enter {}: {error}", directory.display())))?;
        let allow_outside = trust.reach.allow_outside;
        let project: Option<PathBuf> = (!allow_outside).then(|| Snapshot::root(self.dir, files));
        let trust = TrustArgs { reach: ReachArgs { project, allow_outside }, ..trust.clone() };
        Ok(Files { hash: snapshot.of_files(), revision: snapshot.revision, trust })
    }

    fn write(&self, event: TaskEvent) -> Result<(), Failure> {
        self.write_of(None, event)
    }

    /// Logs an event of one shard, or of the whole task.
    fn write_of(&self, work: Option<Work>, event: TaskEvent) -> Result<(), Failure> {
        self.log
            .write(work, event)
            .map_err(|error| Failure::environment(format!("cannot write the log of the task: {error}")))
    }

    /// Fails if the job was submitted again with other files: the results would not count.
    fn refuse_older_version(&self, files: &Files) -> Result<(), Failure> {
        let submissions = Submission::all(self.dir, self.job).map_err(Failure::environment)?;
        match submissions.last() {
            Some(Submission { number, files: Some(newer), .. }) if *newer != files.hash => {
                Err(Failure::usage(format!(
                    "{} was submitted again after an edit: run the scripts of submission {number}",
                    self.dir.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Fails if the node's GPU is not the expected one, or is unfit for measuring.
    fn preflight(&self) -> Result<(), Failure> {
        let Some(name) = &self.job.device else { return Ok(()) };
        let health = cuda::health(0).map_err(Failure::environment)?;
        let faults = preflight::faults(&health, name, self.job.settings.driver.as_deref());
        if faults.is_empty() { Ok(()) } else { Err(Failure::environment(faults.join("; "))) }
    }

    /// Runs the part of the shard that the last attempt did not finish.
    fn run_shard(
        &self,
        work: Work,
        files: &Files,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let folder = self.job.folder(self.dir, work);
        if is_done(&folder, Some(&files.hash)) {
            return Ok(());
        }
        console.say(&format!("{}:", self.job.label(work)));
        let experiment = &self.job.experiments[work.experiment];
        let options = self.options(work, &experiment.manifest, &files.trust)?;
        let groups = when_visible(|| read_groups(self.dir, experiment, work.shard), JobError::is_absent);
        let portion = Portion {
            groups: groups.map_err(Failure::environment)?,
            cases: experiment.cases.iter().sum(),
            group_count: experiment.groups,
            revision: files.revision.clone(),
            files: files.hash.clone(),
        };
        let manifest = load_manifest(&experiment.manifest, &options.trust.reach, options.network, console)?;
        if manifest.hash != experiment.hash {
            let path = experiment.manifest.display();
            return Err(Failure::usage(format!("{path} has changed since the job was submitted: submit it again")));
        }
        let attempt = next_attempt(&folder).map_err(|error| {
            Failure::environment(format!("cannot begin an attempt in {}: {error}", folder.display()))
        })?;
        let out = Some(attempt.clone());
        let options = RunOptions { out, shard: Some(work.shard), portion: Some(portion), ..options };
        let memory_kills = MemoryKills::since_now();
        let ended = run_one(ManifestRun { manifest: &manifest, options: &options }, interrupt, console)?;
        match memory_kills.count() {
            kills if kills > 0 && ended.exit == Exit::CaseFailed => Err(set_aside(&attempt, kills)),
            _ => Ok(()),
        }
    }

    fn search(
        &self,
        args: &TaskArgs,
        shards: &[Work],
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<Exit, Failure> {
        let words = ["runner", "tune"].map(Into::into).into_iter().chain(args.search.iter().cloned());
        let shard = shards.first().and_then(|work| self.job.search_shard(work.shard.index));
        let shard = shard.map(|shard| format!("--shard={shard}").into());
        let parsed = Cli::read(words.chain(shard)).map_err(Failure::usage)?;
        let Command::Tune(tuned) = parsed.command else {
            return Err(Failure::usage("the words after `--` are not options of `runner tune`"));
        };
        let searched = tune::run_task(&tuned, interrupt, console);
        if let Ok(Searched { report: Some(folder), .. }) = &searched {
            self.write(TaskEvent::Reported { folder: folder.clone() })?;
        }
        match searched.map(|searched| searched.exit) {
            Ok(Exit::Interrupted) => self.stop(console),
            Ok(Exit::Success) => self.write(TaskEvent::Finished).map(|()| Exit::Success),
            Ok(exit) => {
                let why = format!("the search ended with exit code {}", exit as i32);
                self.write(TaskEvent::Stopped { why }).map(|()| exit)
            }
            Err(failure) => self.fail(failure, interrupt, console),
        }
    }

    fn options(&self, work: Work, manifest: &Path, trust: &TrustArgs) -> Result<RunOptions, Failure> {
        let words = ["runner", "run"].into_iter().chain(self.job.options.iter().map(String::as_str)).map(Into::into);
        let words = words.chain(["--".into(), manifest.as_os_str().to_owned()]);
        let parsed = Cli::read(words).map_err(Failure::usage)?;
        let Command::Run(args) = parsed.command else {
            return Err(Failure::usage(format!(
                "the options of {} are not options of `runner run`",
                self.job.label(work)
            )));
        };
        let options = RunOptions::of_run(&args, manifest)?;
        Ok(RunOptions {
            trust: trust.clone(),
            resume: true,
            network: Network::Forbidden,
            kind: Kind::OneOfSeveral,
            ..options
        })
    }

    fn stop(&self, console: &mut Console) -> Result<Exit, Failure> {
        if !Interrupt::was_warned() {
            self.write(TaskEvent::Stopped { why: "ended by the scheduler (SIGTERM)".to_owned() })?;
            return Ok(Exit::Interrupted);
        }
        self.write(TaskEvent::Stopped { why: TIME_WAS_NEAR.to_owned() })?;
        if self.requeue(None)? {
            console.say("asked the scheduler to start this task again");
        }
        Ok(Exit::Interrupted)
    }

    /// Exits after a failure of the whole task.
    fn fail(&self, failure: Failure, interrupt: &Interrupt, console: &mut Console) -> Result<Exit, Failure> {
        if is_signalled(&failure, interrupt, console) {
            return self.stop(console);
        }
        Err(self.give_back(None, failure)?.1)
    }

    /// Logs a failure of a shard, or of the whole task. After a failure of the machine, asks to run on another node,
    /// unless it would fail there too. Returns the failure, and whether the other shards would fail too.
    fn give_back(&self, work: Option<Work>, failure: Failure) -> Result<(bool, Failure), Failure> {
        if failure.is_held {
            // Another process uses the folder and does the work; it would block this shard on any node.
            self.write_of(work, TaskEvent::Stopped { why: failure.message.clone() })?;
            return Ok((false, failure));
        }
        if failure.message.contains(KILLED) {
            self.write_of(work, TaskEvent::Stopped { why: OUT_OF_MEMORY.to_owned() })?;
            return Ok((false, failure));
        }
        if failure.exit == Exit::Environment && self.is_disk_full(&failure) {
            let why = "the disk of the job is full: free some space, then submit again";
            // The disk may be too full even for this.
            let _ = self.log.write(work, TaskEvent::Stopped { why: why.to_owned() });
            return Err(Failure::environment(format!("{why} ({})", failure.message)));
        }
        self.write_of(work, TaskEvent::Refused { node: self.place.node.clone(), why: failure.message.clone() })?;
        let moves = failure.exit == Exit::Environment && self.requeue(Some(&self.place.node))?;
        Ok((moves, failure))
    }

    /// Whether the disk of the job's folder is full, judged by the failure or by a test write.
    fn is_disk_full(&self, failure: &Failure) -> bool {
        let is_full =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let codes = [Errno::NOSPC, Errno::DQUOT].map(|code| format!("(os error {})", code.raw_os_error()));
        let is_of_job = failure.message.contains(&*self.dir.to_string_lossy());
        if is_of_job && codes.iter().any(|code| failure.message.contains(code)) {
            return true;
        }
        let probe = tempfile::tempfile_in(self.dir).and_then(|mut file| {
            file.write_all(&PROBE)?;
            file.sync_all()
        });
        probe.is_err_and(|error| is_full(&error))
    }

    /// Asks the scheduler to restart this task. Returns false if the limit of restarts is reached.
    fn requeue(&self, excluded: Option<&str>) -> Result<bool, Failure> {
        let asked = self.log.read().iter().filter(|line| matches!(line.event, TaskEvent::Requeued { .. })).count();
        let queue = self.job.settings.scheduler.queue().filter(|_| !self.place.id.is_empty());
        let Some(queue) = queue.filter(|_| asked < self.job.settings.requeues as usize) else { return Ok(false) };
        self.write(TaskEvent::Requeued { excluded: excluded.map(str::to_owned) })?;
        queue.requeue(&self.place.id, excluded).map_err(Failure::environment)?;
        Ok(true)
    }
}
