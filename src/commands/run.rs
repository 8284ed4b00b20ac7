//! `runner run`: from the manifest to the report.

mod against;
mod conclude;
mod destination;
mod devices;
mod passes;
mod prepare;
mod recorder;
mod several;
mod slowest;
mod watch;

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use against::{Base, Both};
use passes::Passes;
use slowest::Slowest;

use super::cli::RunArgs;
use super::options::RunOptions;
use super::{Console, Exit, Failure, load_manifest, worker};
use crate::dispatch::{Interrupt, Urgency};
use crate::experiment::Manifest;
use crate::model::Event;
use crate::profiler::pass;

pub use conclude::{breaks_claims, conclude};
pub use prepare::{Task, get_ready, or_narrowing_fault, outputs_of};
pub use several::load_all;

/// How an experiment ended.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    /// `26 of 36 cases measured, every result checked; 10 invalid.`
    pub counts: String,
    /// Base and new, of a finished run with `--against`.
    pub both: Option<Both>,
}

pub fn run(args: &RunArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.quiet = args.display.quiet;
    if args.gate.strict && !args.gate.gate && args.against.against.is_none() {
        return Err(Failure::usage("--strict judges nothing by itself: add --gate or --against"));
    }
    if args.watch {
        return watch::run(args, console);
    }
    if let Some(named) = &args.devices {
        return devices::run(args, named, console);
    }
    let [manifest] = args.manifests.as_slice() else { return several::run(args, console) };
    let options = RunOptions::of_run(args, manifest)?;
    let manifest = load_manifest(manifest, &args.trust.reach, console)?;
    let ended = run_one(&options, &manifest, &interrupt()?, console)?;
    ended.both.map_or(Ok(ended.exit), |both| against::compare(vec![both], args, console))
}

/// Runs one experiment, or a shard of it.
pub fn run_one(
    options: &RunOptions,
    manifest: &Manifest,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Ended, Failure> {
    let started = Instant::now();
    let base = options
        .against
        .against
        .as_ref()
        .map(|named| Base::find(named, &options.manifest, &options.trust.reach))
        .transpose()?;
    let mut worker = worker::start(options, interrupt, console)
        .map_err(|failure| or_narrowing_fault(options, manifest, console, failure))?;
    let passes = Passes::of(options, manifest, &worker, console)?;
    let task = Task {
        options,
        command: options.command(worker.backend()),
        counting_method: passes.counting_method(),
        base: base.as_ref(),
        started,
    };
    let mut ready = get_ready(task, manifest, &mut worker, interrupt, console)?;

    let mut passed = pass::Passed::default();
    let mut slowest = Slowest::default();
    let mut observe = |event: Event| {
        passed.observe(&event);
        slowest.observe(&event);
        ready.recorder.emit(&event);
    };
    let ran = ready.work.run(&mut worker.pool, &mut observe, interrupt);
    let end = passes.run(ran, passed, (options, interrupt), &mut ready);
    CONCLUDES.store(true, Ordering::Relaxed);
    // The plan takes as much memory as the results.
    drop(ready.work);
    let ended = match &ready.beside {
        Some(beside) => beside.conclude(options, &end, started, ready.recorder, &ready.destination, console),
        None => conclude(options, &end, started, ready.recorder, &ready.destination, console),
    };
    CONCLUDES.store(false, Ordering::Relaxed);
    if let Some(most) = options.slowest {
        console.say(&slowest.table(most));
    }
    ended
}

/// How long a run may take to end by itself after the second Ctrl-C.
const GRACE: Duration = Duration::from_secs(1);

/// Set while the report is written, which the second Ctrl-C does not cut off.
static CONCLUDES: AtomicBool = AtomicBool::new(false);

/// Listens for Ctrl-C and says on standard error what it does. The second ends a phase that does not look for it, such as
/// planning; the third ends the process at once.
pub fn interrupt() -> Result<Interrupt, Failure> {
    let count = AtomicU32::new(0);
    let say = move |urgency| {
        let line = match urgency {
            Urgency::None => return,
            Urgency::Soon => "stopping after the current step; press Ctrl-C again to stop now",
            Urgency::Now => "stopping now",
        };
        let _ = writeln!(std::io::stderr().lock(), "{line}");
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => {}
            1 => drop(thread::spawn(|| {
                thread::sleep(GRACE);
                if !CONCLUDES.load(Ordering::Relaxed) {
                    end_now();
                }
            })),
            _ => end_now(),
        }
    };
    Interrupt::on_signals(say).map_err(|e| Failure::environment(format!("cannot listen for signals: {e}")))
}

/// Ends the process. Its workers end with it, and what was measured is in the journal.
fn end_now() -> ! {
    std::process::exit(Exit::Interrupted as i32)
}
