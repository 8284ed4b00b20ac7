//! The single pipeline of a run: prepare, run, conclude.
//!
//! Every command that runs something uses it and differs only in its options, so there is one way to check and to
//! measure.

mod against;
mod conclude;
mod consent;
mod destination;
mod ended;
pub mod gpus;
mod interrupt;
pub mod machine;
mod outputs;
mod passes;
mod prepare;
mod recorder;
mod search_devices;
mod searchable;
mod slowest;
pub mod worker;

use std::time::Instant;

use against::Base;
use interrupt::while_concluding;
use passes::Passes;
use slowest::Slowest;

use crate::console::Console;
use crate::failure::Failure;
use runner_profile::pass;
use runner_tune::Finalists;
use runner_types::Event;
use runner_workers::Interrupt;

pub use against::compare;
pub use conclude::{Unwritten, breaks_claims, close, conclude, judge};
pub use consent::HostCode;
pub use destination::Destination;
pub use ended::{BaseAndNew, Ended};
pub use interrupt::interrupt;
pub use outputs::{outputs_of, source_page_of};
pub use prepare::{
    ManifestRun, Planned, Task, compile_ahead, compile_case, explain_empty_selection, get_ready, plan_options,
};
pub use recorder::Recorder;
pub use search_devices::Devices;
pub use searchable::prepare_search;

/// Runs one experiment, or a shard of it.
pub fn run_one(run: ManifestRun<'_>, interrupt: &Interrupt, console: &mut Console) -> Result<Ended, Failure> {
    let options = run.options;
    let started = Instant::now();
    let base = options
        .against
        .against
        .as_ref()
        .map(|named| Base::find(named, &options.manifest, &options.trust.reach))
        .transpose()?;
    let mut worker =
        worker::start(options, interrupt, console).map_err(|failure| explain_empty_selection(run, console, failure))?;
    if options.portion.is_some() {
        // A cluster task can be submitted again with more memory.
        worker.pool.end_when_killed();
    }
    let passes = Passes::prepare(run, &worker, console)?;
    let task = Task {
        run,
        command: options.command(worker.backend()),
        counting_method: passes.counting_method(),
        base: base.as_ref(),
        only: None,
        started,
    };
    let mut ready = get_ready(task, &mut worker, interrupt, console)?;

    let mut passed = pass::Passed::default();
    let mut slowest = Slowest::default();
    let mut observe = |event: Event| {
        passed.observe(&event);
        slowest.observe(&event);
        ready.recorder.emit(&event);
    };
    let ran = ready.work.run(&mut worker.pool, &mut observe, interrupt);
    let end = passes.run(ran, passed, (options, interrupt), &mut ready);
    // Drop the plan before reading the results: each takes about as much memory.
    drop(ready.work);
    let unwritten = Unwritten { end: &end, started, recorder: ready.recorder, destination: &ready.destination };
    let ended = while_concluding(|| match &ready.beside {
        Some(beside) => beside.conclude(unwritten, options, console),
        None => conclude(unwritten, options, console),
    });
    if let Some(most) = options.slowest {
        console.say(&slowest.table(most));
    }
    ended
}

/// Runs and reports the cases that a search has selected.
pub fn run_finalists(
    run: ManifestRun<'_>,
    worker: &mut worker::Worker,
    chosen: &Finalists<'_>,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Ended, Failure> {
    let started = Instant::now();
    let command = run.options.command(worker.backend());
    let task = Task { run, command, counting_method: None, base: None, only: Some(chosen), started };
    let mut ready = get_ready(task, worker, interrupt, console)?;
    let ran = ready.work.run(&mut worker.pool, &mut |event| ready.recorder.emit(&event), interrupt);
    drop(ready.work);
    let unwritten = Unwritten { end: &ran.end, started, recorder: ready.recorder, destination: &ready.destination };
    while_concluding(|| conclude(unwritten, run.options, console))
}
