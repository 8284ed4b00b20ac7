//! `runner run --devices`: the groups of all manifests over several GPUs of this machine.
//!
//! Code is compiled first. The groups of all manifests are in one queue, the longest first; those that the host's speed
//! affects come last, because they run alone. Each GPU has one worker, which takes one group after the other, and a
//! journal for each manifest. If a GPU is lost, the group that was running goes to another one. The journals of a
//! manifest are merged into its report.

mod experiment;
mod gpu;
mod session;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use super::interrupt;
use super::several::{Line, finish, load_all};
use crate::commands::cli::RunArgs;
use crate::commands::machine::{self, Site};
use crate::commands::worker::{self, Worker};
use crate::commands::{Console, Exit, Failure};
use crate::dispatch::queue::Queue;
use crate::dispatch::shared::Shared;
use crate::dispatch::{Interrupt, RunEnd, Urgency};
use crate::format::{plural, seconds};
use crate::host_lock::HostLock;
use experiment::{Experiment, Unit};
use gpu::Gpu;
use session::Sessions;

pub fn run(args: &RunArgs, named: &str, console: &mut Console) -> Result<Exit, Failure> {
    let started = Instant::now();
    let gpus = gpu::select(args, named)?;
    let manifests = load_all(&args.manifests, &args.trust.reach, console)?;
    let interrupt = interrupt()?;
    let (host, _host_file) =
        HostLock::create().map_err(|e| Failure::environment(format!("no lock of the host: {e}")))?;
    let first = worker::start_on(&gpus[0].target, !args.no_sanitize, (&gpus[0].cores, &host), &interrupt)?;
    let experiments = manifests
        .into_iter()
        .map(|(path, manifest)| Experiment::prepare(args, (path, manifest), (gpus[0].number, &first), console))
        .collect::<Result<Vec<_>, _>>()?;
    let units = experiment::in_order(&experiments);
    console.say(&format!("{} on {}", plural(units.len() as u64, "group"), plural(gpus.len() as u64, "GPU")));
    let run = Run {
        queue: Queue::new(units),
        experiments: &experiments,
        sanitize: !args.no_sanitize,
        interrupt: &interrupt,
        groups: RwLock::new(()),
        host,
        lost: AtomicUsize::new(0),
        console: Mutex::new(console),
        times: Mutex::default(),
    };
    let mut first = Some(first);
    thread::scope(|scope| {
        for gpu in &gpus {
            let (worker, run) = (first.take(), &run);
            scope.spawn(move || run.serve(gpu, worker));
        }
    });
    let (lost, times) = (run.lost.into_inner(), run.times.into_inner().unwrap_or_else(PoisonError::into_inner));
    let lines: Vec<Line> = experiments
        .iter()
        .map(|experiment| experiment.conclude(&gpus[0].info, &interrupt, console))
        .collect::<Result<_, _>>()?;
    let exit = finish(&lines, args.display.quiet, console)?;
    let count = plural(gpus.len() as u64, "GPU");
    if let Some(words) = times.describe() {
        console.say(&format!("groups: {words} on {count}"));
    }
    let (wall, lost) = (seconds(started.elapsed().as_secs_f64()), plural(lost as u64, "GPU"));
    console.say(&format!("wall time {wall} on {count}; {lost} lost"));
    Ok(exit)
}

/// What the threads share.
struct Run<'a> {
    queue: Queue<Unit>,
    experiments: &'a [Experiment],
    sanitize: bool,
    interrupt: &'a Interrupt,
    /// Locked by groups whose times depend on the host.
    groups: RwLock<()>,
    /// Locked by workers while they time the host.
    host: HostLock,
    /// How many GPUs were lost.
    lost: AtomicUsize,
    console: Mutex<&'a mut Console>,
    times: Mutex<Times>,
}

impl Run<'_> {
    /// Runs groups on one GPU until none is left or the GPU is lost.
    fn serve(&self, gpu: &Gpu, worker: Option<Worker>) {
        let is_first = worker.is_some();
        let started = worker
            .map_or_else(|| worker::start_on(&gpu.target, self.sanitize, (&gpu.cores, &self.host), self.interrupt), Ok);
        let Worker { mut pool, ready } = match started {
            Ok(worker) => worker,
            Err(failure) => return self.lose(gpu, &failure),
        };
        let mut quiet = self.with_console(|console| Console { quiet: true, ..*console });
        let machine = self.experiments.first().map(|experiment| {
            let toolkit = experiment.toolkit();
            let site = Site { ready: &ready, ordinal: gpu.target.ordinal(), toolkit, interrupt: self.interrupt };
            machine::known(&mut pool, site, &mut quiet)
        });
        let sessions = Sessions::new(self, gpu, &ready, machine.unwrap_or_default());
        if is_first && self.experiments.iter().any(|experiment| experiment.options.resume) {
            sessions.open_all();
        }
        let mut groups = Shared::new(&self.queue, &self.groups, |unit: &Unit| sessions.begin(unit));
        let end = pool.run_supplied(&mut groups, &mut |event| sessions.emit(&event), self.interrupt);
        if self.interrupt.urgency() > Urgency::None {
            self.queue.close();
        } else if let RunEnd::Environment(why) = &end {
            self.lose(gpu, &Failure::environment(why.clone()));
        }
        groups.give_back();
        sessions.close(&end);
    }

    fn lose(&self, gpu: &Gpu, failure: &Failure) {
        if failure.exit == Exit::Interrupted {
            return self.queue.close();
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        self.with_console(|console| {
            console.fail(failure);
            console.say(&format!("GPU {} takes no more groups", gpu.number));
        });
    }

    fn with_console<T>(&self, act: impl FnOnce(&mut Console) -> T) -> T {
        act(&mut self.console.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn took(&self, begun: Instant) -> Duration {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).add(begun, Instant::now())
    }
}

/// How long groups took.
#[derive(Debug, Default)]
struct Times {
    /// Of all groups, one after the other.
    sum: Duration,
    /// From the beginning of the first to the end of the last.
    span: Option<(Instant, Instant)>,
}

impl Times {
    /// Adds a group, and returns its time.
    fn add(&mut self, begun: Instant, ended: Instant) -> Duration {
        let took = ended.duration_since(begun);
        self.sum += took;
        let (first, last) = self.span.unwrap_or((begun, ended));
        self.span = Some((first.min(begun), last.max(ended)));
        took
    }

    /// `40.0 s of work in 21.0 s, 1.90 at a time`; `None` without groups.
    fn describe(&self) -> Option<String> {
        let (first, last) = self.span?;
        let (sum, span) = (self.sum.as_secs_f64(), last.duration_since(first).as_secs_f64());
        let ratio = sum / span.max(f64::MIN_POSITIVE);
        Some(format!("{} of work in {}, {ratio:.2} at a time", seconds(sum), seconds(span)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_groups_is_compared_with_the_time_that_it_took() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut times = Times::default();
        assert_eq!(times.describe(), None);
        for (begun, ended) in [(0, 10), (0, 12), (12, 20), (10, 18)] {
            times.add(at(begun), at(ended));
        }
        assert_eq!(times.describe().as_deref(), Some("38.0 s of work in 20.0 s, 1.90 at a time"));
    }
}
