//! Implements `runner tune`: searches the compared axes of a manifest for the best configuration.

mod log;
mod problem;
mod report;
mod search;
mod settings;
mod simulate;
mod units;

use std::path::Path;

use super::cli::TuneArgs;
use super::options::{RunOptions, network};
use super::session::{interrupt, prepare_search, run_finalists, worker};
use super::{Console, Exit, Failure, load_manifest};
use crate::dispatch::Urgency;

use log::Log;
use problem::Problem;
use settings::Settings;

pub fn run(args: &TuneArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.quiet = args.display.quiet;
    match (&args.simulate, &args.manifest) {
        (Some(file), _) => simulate::run(args, file, console),
        (None, Some(manifest)) => tune(args, manifest, console),
        (None, None) => Err(Failure::usage("name a manifest, or a measured space with --simulate")),
    }
}

/// Evaluates what the strategy proposes, and then measures the best configurations beside the baseline.
fn tune(args: &TuneArgs, path: &Path, console: &mut Console) -> Result<Exit, Failure> {
    let options = RunOptions::of_tune(args, path)?;
    let manifest = load_manifest(path, &args.trust.reach, network(args.offline), console)?;
    let settings = Settings::resolve(args, &manifest.search)?;
    let strategy = strategy(&settings)?;
    let interrupt = interrupt()?;
    let mut worker = worker::start(&options, &interrupt, console)?;
    let ready = prepare_search(&options, &manifest, &mut worker, &interrupt, console)?;
    let problem = Problem::new(&manifest, &ready, worker.backend(), &settings)?;
    let log = Log::open(&ready.destination.dir, &problem.header(&ready.environment, args), args.resume)?;
    let budget = settings.budget.resolve(problem.space.len());
    console.say(&format!(
        "{} configurations, of which {budget} are evaluated by {}, strategy {}",
        problem.space.len(),
        problem.objective,
        settings.strategies.join(",")
    ));
    let learns = !settings.strategies.iter().any(|name| ::search::strategy::is_blind(name));
    let seat = search::Seat { problem: &problem, ready: &ready, interrupt: &interrupt, budget, learns };
    let searched = search::run(seat, strategy, settings.seed, log, &mut worker.pool, console)?;
    report::write(&ready, &problem, &searched, &settings, console)?;
    let best = searched.best(settings.finalists);
    let search::Searched { interrupted, log, .. } = searched;
    // The finalists are reported in the same folder.
    drop(log);
    if interrupted {
        interrupt.acknowledge();
        console.say("interrupted: --resume goes on");
        if best.is_empty() || interrupt.urgency() > Urgency::None {
            return Ok(Exit::Interrupted);
        }
        console.say("measuring the best that are known; Ctrl-C ends that, too");
    }
    if best.is_empty() {
        console.say("no configuration is right; the reasons are in search.md");
        return Ok(Exit::CaseFailed);
    }
    let keys = problem.finalists(&best);
    let ended = run_finalists(&options, &manifest, &mut worker, &keys, &interrupt, console)?;
    Ok(if interrupted { Exit::Interrupted } else { ended.exit })
}

fn strategy(settings: &Settings) -> Result<Box<dyn ::search::strategy::Strategy>, Failure> {
    match settings.strategies.as_slice() {
        [name] => ::search::strategy::named(name).ok_or_else(|| unknown(name)),
        _ => Err(Failure::usage("several strategies can be compared with --simulate; a search has one")),
    }
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = ::search::strategy::NAMES.iter().map(|(name, _)| *name).collect();
    Failure::usage(format!("--strategy {name}: use one of {}", names.join(", ")))
}
