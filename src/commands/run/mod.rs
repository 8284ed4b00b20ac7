//! `runner run`: the whole river, from the manifest to the report.

mod counting;
mod destination;
mod feed;
mod prepare;
mod recorder;
mod several;
mod worker;

use std::time::Instant;

use super::cli::{ProfileArgs, RunArgs};
use super::machine::{self, Site};
use super::{Console, Exit, Failure, load_manifest};
use crate::analyse::Spent;
use crate::dispatch::{Interrupt, Pool, RunEnd};
use crate::journal::Held;
use crate::model::{BackendKind, CompileUnit, Environment, Event, Manifest, Phase, Records};
use crate::plan::ResolvedGroup;
use crate::profiler::Tally;
use crate::{analyse, journal, plan, render};

use counting::{Good, Wanted};
use destination::Destination;
use feed::{OnDone, Ran};
use prepare::Compiler;
use recorder::Recorder;
use worker::Worker;

pub use worker::worker;

pub fn run(args: &RunArgs, console: &mut Console) -> Result<Exit, Failure> {
    if !args.more.is_empty() {
        return several::run(args, console);
    }
    let manifest = load_manifest(&args.manifest, console)?;
    run_one(args, &manifest, &interrupt()?, console).map(|ended| ended.exit)
}

/// How an experiment ended.
struct Ended {
    exit: Exit,
    /// `26 of 36 cases measured, every result checked; 10 invalid.`
    counts: String,
}

fn run_one(
    args: &RunArgs,
    manifest: &Manifest,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Ended, Failure> {
    let started = Instant::now();
    // Whoever mistypes an axis where there is no device hears of the axis first.
    let mut worker = worker::start(args, interrupt, console)
        .map_err(|failure| or_narrowing_fault(args, manifest, console, failure))?;
    let wanted = Wanted::of(args, worker.backend(), manifest);
    let task = Task {
        args,
        sizes: worker.backend(),
        is_profile: false,
        command: args.command(worker.backend()),
        counting_method: wanted.method(),
        started,
    };
    let mut ready = get_ready(task, manifest, &mut worker, interrupt, console)?;

    let mut good = Good::default();
    let mut heed = |event: Event| {
        good.observe(&event);
        ready.recorder.emit(&event);
    };
    let Ran { mut end, mut groups, held } = ready.work.run(&mut worker.pool, &mut heed, interrupt);
    if end == RunEnd::Complete {
        good.add_held(&held, &ready.work.held);
        groups.extend(held);
        end = counting::second_pass(wanted, args, groups, &good, &mut ready.recorder, interrupt);
    }
    conclude(args, &end, started, ready.recorder, &ready.destination, console)
}

/// `runner profile`: the same river with a worker inside a profiler, which counts in place of the clock.
pub fn profile(args: &ProfileArgs, console: &mut Console) -> Result<Exit, Failure> {
    let started = Instant::now();
    let run_args = args.as_run();
    let manifest = load_manifest(&args.manifest, console)?;
    let interrupt = interrupt()?;
    let mut session = counting::session(&manifest)
        .map_err(|why| or_narrowing_fault(&run_args, &manifest, console, counting::failure(why)))?;
    let mut worker = worker::start_watched(&run_args, &mut session, &interrupt).map_err(counting::failure)?;
    let task = Task {
        args: &run_args,
        sizes: args.sizes.backend(),
        is_profile: true,
        command: Some(args.command()),
        counting_method: Some(session.method()),
        started,
    };
    let mut ready = get_ready(task, &manifest, &mut worker, &interrupt, console)?;
    let mut tally = Tally::default();
    let heed = &mut |event| tally.observe(event).into_iter().for_each(|event| ready.recorder.emit(&event));
    let end = ready.work.run(&mut worker.pool, heed, &interrupt).end;
    counting::conclude(tally, &session, &mut ready.recorder);
    conclude(&run_args, &end, started, ready.recorder, &ready.destination, console).map(|ended| ended.exit)
}

fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::on_signals(worker::tell_interrupt)
        .map_err(|e| Failure::environment(format!("cannot listen for signals: {e}")))
}

fn or_narrowing_fault(args: &RunArgs, manifest: &Manifest, console: &Console, failure: Failure) -> Failure {
    prepare::narrowing_fault(args, manifest).map_or(failure, |faults| Failure::faults(&faults, console))
}

/// What is asked for.
struct Task<'a> {
    args: &'a RunArgs,
    /// Whose axes stand in for the manifest's.
    sizes: BackendKind,
    is_profile: bool,
    /// The command as the report shows it, where it is no plain run.
    command: Option<String>,
    counting_method: Option<String>,
    started: Instant,
}

/// Everything that is known before the first group runs.
struct Prepared {
    work: Todo,
    recorder: Recorder,
    destination: Destination,
}

/// What is to be compiled and run.
struct Todo {
    groups: Vec<ResolvedGroup>,
    compiler: Compiler,
    environment: Environment,
    held: Held,
}

impl Todo {
    fn run(&mut self, pool: &mut Pool, heed: &mut (dyn FnMut(Event) + Send), interrupt: &Interrupt) -> Ran {
        let Self { groups, compiler, environment, held } = self;
        let work = feed::Work {
            groups: std::mem::take(groups),
            environment,
            held,
            needs_quiet: compiler.needs_quiet(),
            stop: compiler.stop(),
        };
        let make = |units: &[CompileUnit], on_done: OnDone<'_>| compiler.make(units, on_done);
        feed::run(work, &make, |feed, emit| pool.run_supplied(feed, emit, interrupt), heed, interrupt)
    }
}

/// Plans and starts the journal.
fn get_ready(
    task: Task<'_>,
    manifest: &Manifest,
    worker: &mut Worker,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Prepared, Failure> {
    let args = task.args;
    let device = &worker.ready.device;
    let mut plan = plan::expand(manifest, &prepare::options(args, task.sizes, device))
        .map_err(|faults| Failure::faults(&faults, console))?;
    let toolkit = prepare::toolkit(args, worker, console)?;
    let nvcc = prepare::nvcc(&mut plan, &toolkit);
    let destination = Destination::of(args, task.is_profile, manifest, device);
    let site = Site { ready: &worker.ready, ordinal: args.device, toolkit: &toolkit, interrupt };
    let machine = machine::known(&mut worker.pool, site, console);
    let environment = prepare::environment(&worker.ready, (&toolkit, nvcc.as_ref()), task.counting_method, machine);
    let compiler = Compiler::new(worker, toolkit, nvcc)?;

    // What cannot begin has left nothing behind until here.
    let (mut recorder, held) = Recorder::open(args, &manifest.name, &destination, console)?;
    recorder.expect(manifest, &plan);
    recorder.emit(&prepare::run_started(args, task.command, manifest, &plan, &environment));
    recorder.emit(&Event::PhaseSpent { phase: Phase::Plan, seconds: task.started.elapsed().as_secs_f64() });
    let groups = prepare::resolve(args, manifest, &plan);
    let work = Todo { groups, compiler, environment, held };
    Ok(Prepared { work, recorder, destination })
}

/// Ends the journal, and writes and shows what is made of it.
fn conclude(
    args: &RunArgs,
    end: &RunEnd,
    started: Instant,
    mut recorder: Recorder,
    destination: &Destination,
    console: &mut Console,
) -> Result<Ended, Failure> {
    let complete = *end == RunEnd::Complete;
    recorder.emit(&Event::RunFinished { complete, wall_seconds: started.elapsed().as_secs_f64() });
    recorder.close()?;
    let (records, spent) = report(destination)?;
    say_results(args, &records, destination, console)?;
    say_spent(args, &spent, console);
    Ok(Ended { exit: exit(end, &records)?, counts: render::counts(&records) })
}

/// Reads the journal back and writes everything that is made of it.
fn report(destination: &Destination) -> Result<(Records, Spent), Failure> {
    let contents =
        journal::read(&destination.dir.join(journal::JOURNAL_FILE)).map_err(|e| Failure::environment(e.to_string()))?;
    let records = analyse::records(&contents.events).map_err(|e| Failure::environment(e.to_string()))?;
    render::write_all(&destination.dir, &records).map_err(|error| {
        let dir = destination.dir.display();
        let remedy =
            format!("the journal holds every result: `runner report {dir} --from-journal` writes what is missing");
        Failure::environment(format!("{error}; {remedy}"))
    })?;
    Ok((records, Spent::of(&contents.events)))
}

fn say_results(
    args: &RunArgs,
    records: &Records,
    destination: &Destination,
    console: &mut Console,
) -> Result<(), Failure> {
    // Of several, one table stands at the end.
    if !args.display.quiet && args.more.is_empty() {
        let screen = console.screen();
        console.print(&render::terminal(records, screen))?;
    }
    console.print(&format!("report: {}\n", destination.dir.join("report.md").display()))
}

/// `time: 5.2 s, of it compile 1.1 s, transfer 0.3 s, check 0.6 s, measure 2.9 s, idle 0.3 s; compiling beside it 2.0 s`.
fn say_spent(args: &RunArgs, spent: &Spent, console: &mut Console) {
    let (Some(wall), Some(idle), false) = (spent.wall, spent.idle(), args.display.quiet) else { return };
    let phases = spent.phases.iter().map(|(phase, seconds)| format!("{phase} {seconds:.1} s"));
    let parts: Vec<String> = phases.chain([format!("idle {idle:.1} s")]).collect();
    // Less would be shown as nothing.
    let beside = Some(spent.beside).filter(|beside| *beside >= 0.05);
    let beside = beside.map(|beside| format!("; compiling beside it {beside:.1} s")).unwrap_or_default();
    console.say(&format!("time: {wall:.1} s, of it {}{beside}", parts.join(", ")));
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
