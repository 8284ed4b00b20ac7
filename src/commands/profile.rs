//! `runner profile`: a run whose worker is inside the profiler, which counts instead of timing.

use std::time::Instant;

use crate::cli::ProfileArgs;
use crate::cli::options::{RunOptions, network};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use crate::session::{ManifestRun, Task, Unwritten, conclude, explain_empty_selection, get_ready, interrupt, worker};
use runner_process::programs::Programs;
use runner_profile::{Detail, ProfilerSession, Tally, pass};

pub fn run(args: &ProfileArgs, console: &mut Console) -> Result<Exit, Failure> {
    let started = Instant::now();
    console.quiet = args.display.quiet;
    let options = RunOptions::of_profile(args);
    let manifest = load_manifest(&args.manifest, &args.trust.reach, network(args.offline), console)?;
    let (run, interrupt) = (ManifestRun { manifest: &manifest, options: &options }, interrupt()?);
    let detail = Detail::for_lines(args.source);
    let mut session = ProfilerSession::start(&Programs::of_this_machine(), &manifest.measure.metrics, detail)
        .map_err(|why| explain_empty_selection(run, console, Failure::environment(why)))?;
    let mut worker = worker::start_profiled(args.device, &mut session, &interrupt).map_err(Failure::environment)?;
    let task = Task {
        run,
        command: Some(args.command()),
        counting_method: Some(session.method()),
        base: None,
        only: None,
        started,
    };
    let mut ready = get_ready(task, &mut worker, &interrupt, console)?;
    let mut tally = Tally::default();
    let observe = &mut |event| tally.observe(event).into_iter().for_each(|event| ready.recorder.emit(&event));
    let end = ready.work.run(&mut worker.pool, observe, &interrupt).end;
    pass::conclude(tally, &session, &mut |event| ready.recorder.emit(&event));
    let unwritten = Unwritten { end: &end, started, recorder: ready.recorder, destination: &ready.destination };
    conclude(unwritten, &options, console).map(|ended| ended.exit)
}
