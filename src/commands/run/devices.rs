//! `runner run --devices`: spreads the groups of all manifests over several GPUs of this machine.
//!
//! Code is compiled first, while all GPUs open. The groups of all manifests are in one queue, longest first; groups
//! that must run alone come last. Each GPU has one worker, which takes one group after another, and one journal per
//! manifest. If a GPU is lost, its current group moves to another one. The journals of a manifest are merged into its
//! report.

mod experiment;
mod session;
mod shared;

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::several::{Line, finish, load_all};
use crate::cli::RunArgs;
use crate::cli::options::network;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::session::gpus::{self, Gpu};
use crate::session::interrupt;
use crate::session::machine::{self, Site};
use crate::session::worker::{self, Worker};
use experiment::{Experiment, WorkItem};
use runner_lang::format::{plural, seconds};
use runner_workers::queue::Queue;
use runner_workers::shared::Shared;
use runner_workers::{Interrupt, RunEnd, Urgency};
use session::GpuJournals;
use shared::Run;

pub fn run(args: &RunArgs, named: &str, console: &mut Console) -> Result<Exit, Failure> {
    let started = Instant::now();
    let gpus = gpus::select(&args.target, named)?;
    let manifests = load_all(&args.manifests, &args.trust.reach, network(args.offline), console)?;
    let interrupt = interrupt()?;
    // All workers open their devices concurrently, while planning and compiling go on.
    let sanitize = !args.no_sanitize;
    let starts: Vec<Start> = gpus[1..].iter().map(|gpu| begin_start(gpu, sanitize, &interrupt)).collect();
    let first = worker::start_on(&gpus[0].target, sanitize, &gpus[0].cores, &interrupt)?;
    let experiments = manifests
        .into_iter()
        .map(|(path, manifest)| Experiment::prepare(args, (path, manifest), (gpus[0].number, &first), console))
        .collect::<Result<Vec<_>, _>>()?;
    let units = experiment::in_order(&experiments, gpus.iter().all(|gpu| !gpu.cores.is_empty()));
    console.say(&format!("{} on {}", plural(units.len() as u64, "group"), plural(gpus.len() as u64, "GPU")));
    let run = Run {
        planned: units.clone(),
        queue: Queue::new(units),
        experiments: &experiments,
        interrupt: &interrupt,
        groups: RwLock::new(()),
        lost: AtomicUsize::new(0),
        console: Mutex::new(console),
        times: Mutex::default(),
    };
    thread::scope(|scope| {
        let run = &run;
        for (gpu, start) in gpus[1..].iter().zip(starts) {
            scope.spawn(move || match finish_start(start) {
                Ok(worker) => serve(run, gpu, worker, false),
                Err(failure) => run.lose(gpu, &failure),
            });
        }
        serve(run, &gpus[0], first, true);
    });
    let (lost, times) = (run.lost.into_inner(), run.times.into_inner().unwrap_or_else(PoisonError::into_inner));
    let lines: Vec<Line> = experiments
        .iter()
        .map(|experiment| experiment.conclude(&gpus[0].info, &interrupt, console))
        .collect::<Result<_, _>>()?;
    let exit = finish(&lines, args.display.quiet, console)?;
    let count = plural(gpus.len() as u64, "GPU");
    if let Some(words) = times.describe() {
        console.say(&format!("groups on {count}: {words}"));
    }
    let (wall, lost) = (seconds(started.elapsed().as_secs_f64()), plural(lost as u64, "GPU"));
    console.say(&format!("wall time {wall} on {count}; {lost} lost"));
    Ok(exit)
}

/// A thread in which a worker opens its device.
type Start = JoinHandle<Result<Worker, Failure>>;

fn begin_start(gpu: &Gpu, sanitize: bool, interrupt: &Interrupt) -> Start {
    let (gpu, interrupt) = (gpu.clone(), interrupt.clone());
    thread::spawn(move || worker::start_on(&gpu.target, sanitize, &gpu.cores, &interrupt))
}

fn finish_start(start: Start) -> Result<Worker, Failure> {
    let panicked = |_| Err(Failure::environment("the thread that starts a worker panicked"));
    start.join().unwrap_or_else(panicked)
}

/// Runs groups on one GPU until none is left or the GPU is lost.
fn serve(run: &Run<'_>, gpu: &Gpu, Worker { mut pool, ready }: Worker, is_first: bool) {
    let mut quiet = run.with_console(|console| Console { quiet: true, ..*console });
    let machine = run.experiments.first().map(|experiment| {
        let toolkit = experiment.planned.toolkit();
        let site = Site { ready: &ready, ordinal: gpu.target.ordinal(), toolkit, interrupt: run.interrupt };
        machine::known(&mut pool, site, &mut quiet)
    });
    let machine = machine.unwrap_or_default();
    pool.spread_samples(machine.spread);
    pool.start_early(run.planned.iter().map(|item| item.job(run.experiments)), run.interrupt);
    let sessions = GpuJournals::new(run, gpu, &ready, machine);
    if is_first && run.experiments.iter().any(|experiment| experiment.options.resume) {
        sessions.open_all();
    }
    let mut groups = Shared::new(&run.queue, &run.groups, |unit: &WorkItem| Some((sessions.begin(unit)?, unit.alone)));
    let end = pool.run_supplied(&mut groups, &mut |event| sessions.emit(&event), run.interrupt);
    if run.interrupt.urgency() > Urgency::None {
        run.queue.close();
    } else if let RunEnd::Environment(why) = &end {
        run.lose(gpu, &Failure::environment(why));
    }
    groups.give_back();
    sessions.close(&end);
}
