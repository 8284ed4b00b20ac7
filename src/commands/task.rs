//! Implements `runner task`, which runs one element of a job array. Runs the shards of a task, each continuing its last
//! attempt.
//!
//! The scheduler warns with SIGUSR1 before the time limit and ends with SIGTERM: both end the current launch, and what
//! was measured is in the journal. After a warning the task asks to be started again, a bounded number of times; after
//! SIGTERM the scheduler has decided already.

use std::path::Path;

use super::cli::{Cli, Command, TaskArgs, TrustArgs};
use super::options::{Kind, RunOptions};
use super::session::{interrupt, run_one};
use super::{Console, Exit, Failure, load_manifest};
use crate::backend::cuda;
use crate::cluster::scheduler::{Placement, Queue};
use crate::cluster::{Job, JobError, Submission, TaskEvent, TaskLog, Work, is_done, next_attempt, preflight};
use crate::compile::Network;
use crate::dispatch::{Interrupt, Urgency};

pub fn run(args: &TaskArgs, console: &mut Console) -> Result<Exit, Failure> {
    let environment = |error: JobError| Failure::environment(error.to_string());
    let job = Job::read(&args.job).map_err(environment)?;
    let submission = Submission::read(&args.job, &job, args.submission).map_err(environment)?;
    let shards = submission
        .tasks
        .get(args.task)
        .ok_or_else(|| Failure::usage(format!("submission {} has no task {}", args.submission, args.task)))?;
    let task = Task {
        dir: &args.job,
        job: &job,
        trust: &args.trust,
        log: TaskLog::new(&args.job, args.submission, args.task),
        place: job.settings.scheduler.queue().map_or_else(Placement::of_host, Queue::place),
    };
    for work in shards {
        job.refuse_links(&args.job, *work).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let interrupt = interrupt()?;
    interrupt.on_warning().map_err(|e| Failure::environment(format!("cannot listen for signals: {e}")))?;
    task.write(TaskEvent::Started {
        id: task.place.id.clone(),
        node: task.place.node.clone(),
        restart: task.place.restart,
    })?;
    if let Err(failure) = task.preflight() {
        return task.give_back(failure);
    }
    for work in shards {
        if let Err(failure) = task.run_shard(*work, &interrupt, console) {
            return task.give_back(failure);
        }
        if interrupt.urgency() > Urgency::None {
            return task.stop(console);
        }
    }
    task.write(TaskEvent::Finished)?;
    Ok(Exit::Success)
}

struct Task<'a> {
    dir: &'a Path,
    job: &'a Job,
    /// What the command line allows: a job, which others may have written, allows nothing.
    trust: &'a TrustArgs,
    log: TaskLog,
    place: Placement,
}

impl Task<'_> {
    fn write(&self, event: TaskEvent) -> Result<(), Failure> {
        self.log
            .write(event)
            .map_err(|error| Failure::environment(format!("cannot write the log of the task: {error}")))
    }

    /// Fails if the node's GPU is not the expected one, or not fit to measure on.
    fn preflight(&self) -> Result<(), Failure> {
        let Some(name) = &self.job.device else { return Ok(()) };
        let health = cuda::health(0).map_err(|error| Failure::environment(error.to_string()))?;
        let faults = preflight::faults(&health, name, self.job.settings.driver.as_deref());
        if faults.is_empty() { Ok(()) } else { Err(Failure::environment(faults.join("; "))) }
    }

    /// Runs what the last attempt at the shard lacks.
    fn run_shard(&self, work: Work, interrupt: &Interrupt, console: &mut Console) -> Result<(), Failure> {
        let folder = self.job.folder(self.dir, work);
        if is_done(&folder) {
            return Ok(());
        }
        let experiment = &self.job.experiments[work.experiment];
        let options = self.options(work, &experiment.manifest)?;
        let manifest = load_manifest(&experiment.manifest, &options.trust.reach, options.network, console)?;
        if manifest.hash != experiment.hash {
            let path = experiment.manifest.display();
            return Err(Failure::usage(format!("{path} has changed since the job was submitted: submit it again")));
        }
        let attempt = next_attempt(&folder).map_err(|error| {
            Failure::environment(format!("cannot begin an attempt in {}: {error}", folder.display()))
        })?;
        let options = RunOptions { out: Some(attempt), shard: Some(work.shard), ..options };
        console.say(&format!("{}:", self.job.label(work)));
        run_one(&options, &manifest, interrupt, console).map(|_| ())
    }

    fn options(&self, work: Work, manifest: &Path) -> Result<RunOptions, Failure> {
        let words = ["runner", "run"].into_iter().chain(self.job.options.iter().map(String::as_str)).map(Into::into);
        let words = words.chain(["--".into(), manifest.as_os_str().to_owned()]);
        let parsed = Cli::read(words).map_err(|error| Failure::usage(error.to_string()))?;
        let Command::Run(args) = parsed.command else {
            return Err(Failure::usage(format!("the options of {} are not those of a run", self.job.label(work))));
        };
        let options = RunOptions::of_run(&args, manifest)?;
        Ok(RunOptions {
            trust: self.trust.clone(),
            resume: true,
            network: Network::Forbidden,
            kind: Kind::OneOfSeveral,
            ..options
        })
    }

    /// Ends the task after a signal.
    fn stop(&self, console: &mut Console) -> Result<Exit, Failure> {
        if !Interrupt::was_warned() {
            self.write(TaskEvent::Stopped { why: "ended by the scheduler (SIGTERM)".to_owned() })?;
            return Ok(Exit::Interrupted);
        }
        self.write(TaskEvent::Stopped { why: "its time limit was near".to_owned() })?;
        if self.requeue(None)? {
            console.say("asked the scheduler to start this task again");
        }
        Ok(Exit::Interrupted)
    }

    /// Ends after the machine has failed, and asks to run on another node.
    fn give_back(&self, failure: Failure) -> Result<Exit, Failure> {
        self.write(TaskEvent::Refused { node: self.place.node.clone(), why: failure.message.clone() })?;
        if failure.exit == Exit::Environment {
            self.requeue(Some(&self.place.node))?;
        }
        Err(failure)
    }

    /// Asks the scheduler to start this task again. False if it was asked often enough.
    fn requeue(&self, excluded: Option<&str>) -> Result<bool, Failure> {
        let asked = self.log.read().iter().filter(|line| matches!(line.event, TaskEvent::Requeued { .. })).count();
        let queue = self.job.settings.scheduler.queue().filter(|_| !self.place.id.is_empty());
        let Some(queue) = queue.filter(|_| asked < self.job.settings.requeues as usize) else { return Ok(false) };
        self.write(TaskEvent::Requeued { excluded: excluded.map(str::to_owned) })?;
        queue.requeue(&self.place.id, excluded).map_err(|error| Failure::environment(error.to_string()))?;
        Ok(true)
    }
}
