//! `runner run`: the whole river, from the manifest to the report.

mod destination;
mod prepare;
mod recorder;
mod worker;

use std::time::Instant;

use super::cli::RunArgs;
use super::{Console, Exit, Failure, load_manifest};
use crate::dispatch::{Interrupt, RunEnd};
use crate::model::{Case, Diagnostics, Event, Outcome, Phase, Records, WorkAmount};
use crate::{analyse, journal, plan, render};

use destination::Destination;
use prepare::Work;
use recorder::Recorder;

pub use worker::worker;

pub fn run(args: &RunArgs, console: &mut Console) -> Result<Exit, Failure> {
    let started = Instant::now();
    let manifest = load_manifest(&args.manifest, console)?;
    let interrupt = Interrupt::on_signals(worker::tell_interrupt)
        .map_err(|e| Failure::environment(format!("cannot listen for signals: {e}")))?;
    let color = console.error_color;
    let usage = |faults: Diagnostics| Failure::usage(faults.render(color));
    // Whoever mistypes an axis where there is no device hears of the axis first.
    let mut worker = worker::start(args, &interrupt, console)
        .map_err(|failure| prepare::narrowing_fault(args, &manifest).map_or(failure, usage))?;
    let plan = plan::expand(&manifest, &prepare::options(args, &worker.ready.device)).map_err(usage)?;
    let toolkit = prepare::toolkit(args, &worker, console)?;
    let environment = prepare::environment(&worker.ready, toolkit.info.clone());
    let destination = Destination::of(args, &manifest, &environment.device);

    let mut recorder = Recorder::open(args, &destination, console)?;
    recorder.emit(&prepare::run_started(args, &manifest, &plan, &environment));
    recorder.emit(&Event::PhaseSpent { phase: Phase::Plan, seconds: started.elapsed().as_secs_f64() });
    let groups = prepare::resolve(&manifest, &plan);
    let compiled = prepare::compile(&groups, &worker, &toolkit, &interrupt, &mut |event| recorder.emit(&event))?;
    let work = Work::link(groups, &compiled, &environment, recorder.held());
    recorder.emit(&work.planned());
    for (case, outcome, amount) in work.settled {
        recorder.emit(&settled(case, outcome, amount));
    }
    let end = worker.pool.run(work.jobs, &mut |event| recorder.emit(&event), &interrupt);
    let complete = end == RunEnd::Complete;
    recorder.emit(&Event::RunFinished { complete, wall_seconds: started.elapsed().as_secs_f64() });
    recorder.close()?;

    let records = report(&destination)?;
    say_results(args, &records, &destination, console)?;
    exit(&end, &records)
}

fn settled(case: Case, outcome: Outcome, work: WorkAmount) -> Event {
    Event::CaseSettled { case, fingerprint: None, outcome, work }
}

/// Reads the journal back and writes everything that is made of it.
fn report(destination: &Destination) -> Result<Records, Failure> {
    let contents =
        journal::read(&destination.dir.join(journal::JOURNAL_FILE)).map_err(|e| Failure::environment(e.to_string()))?;
    let records = analyse::records(&contents.events).map_err(|e| Failure::environment(e.to_string()))?;
    render::write_all(&destination.dir, &records).map_err(|e| Failure::environment(e.to_string()))?;
    Ok(records)
}

fn say_results(
    args: &RunArgs,
    records: &Records,
    destination: &Destination,
    console: &mut Console,
) -> Result<(), Failure> {
    if !args.quiet {
        let color = console.color;
        console.print(&render::terminal(records, color))?;
    }
    console.print(&format!("report: {}\n", destination.dir.join("report.md").display()))
}

/// How the run ended, as a code: the environment's failure before the user's wish before the cases'.
fn exit(end: &RunEnd, records: &Records) -> Result<Exit, Failure> {
    match end {
        RunEnd::Environment(why) => Err(Failure::environment(why.clone())),
        RunEnd::Interrupted => Ok(Exit::Interrupted),
        RunEnd::Complete if records.cases.iter().any(|case| case.outcome.is_failure()) => Ok(Exit::CaseFailed),
        RunEnd::Complete => Ok(Exit::Success),
    }
}
