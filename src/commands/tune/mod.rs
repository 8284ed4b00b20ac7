//! Implements `runner tune`: searches the compared axes of a manifest for the best configuration.

mod dispatch;
mod log;
mod page;
mod prior;
mod problem;
mod report;
mod search;
mod settings;
mod simulate;
mod units;

use std::collections::HashSet;
use std::path::Path;

use super::cli::TuneArgs;
use super::options::{RunOptions, network};
use super::session::{interrupt, prepare_search, run_finalists, worker};
use super::{Console, Exit, Failure, load_manifest};
use crate::dispatch::Urgency;
use crate::file_names::escaped;

use log::Log;
use prior::read_prior;
use problem::{Problem, Values, finalists};
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
    let manifest = load_manifest(path, &args.trust.reach, network(args.offline), console)?.with_searched_axes();
    let settings = Settings::resolve(args, &manifest.search)?;
    strategy(&settings)?;
    let interrupt = interrupt()?;
    let mut worker = worker::start(&options, &interrupt, console)?;
    let ready = prepare_search(&options, &manifest, &mut worker, &interrupt, console)?;
    let mut chosen: Vec<Values> = read_prior(args)?;
    let (mut best, mut searched) = (HashSet::new(), 0);
    let mut interrupted = false;
    for candidates in &ready.groups {
        let problem = Problem::new(&manifest, (&ready, candidates), worker.backend(), &settings)?;
        // Several sizes have a folder each.
        let is_one = ready.groups.len() == 1;
        let folder = ready.destination.dir.join(if is_one { String::new() } else { escaped(&problem.size(), "=") });
        let log = Log::open(&folder, &problem.header(&ready.environment, args), args.resume)?;
        let budget = settings.budget.resolve(problem.space.len());
        console.say(&format!(
            "{}{} configurations, of which {budget} are evaluated by {}, strategy {}",
            if is_one { String::new() } else { format!("{}: ", problem.size()) },
            problem.space.len(),
            problem.objective,
            settings.strategies.join(",")
        ));
        let learns = !settings.strategies.iter().any(|name| ::search::strategy::is_blind(name));
        // What is best elsewhere is tried first.
        let first: Vec<u64> = chosen.iter().filter_map(|values| problem.find(values)).collect();
        let seat =
            search::Seat { problem: &problem, ready: &ready, interrupt: &interrupt, budget, learns, first: &first };
        let found = search::run(seat, strategy(&settings)?, settings.seed, log, &mut worker.pool, console)?;
        report::write(&folder, candidates, &problem, &found, &settings, console)?;
        let values = found.best(settings.finalists).into_iter().map(|point| problem.configuration(point));
        for values in values.filter(|values| best.insert(values.clone())) {
            chosen.push(values);
        }
        searched += 1;
        interrupted = found.interrupted;
        if interrupted {
            break;
        }
    }
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
    let keys = finalists(&ready, &ready.groups[..searched], &best);
    let ended = run_finalists(&options, &manifest, &mut worker, &keys, &interrupt, console)?;
    if searched > 1 {
        dispatch::write(&ready.destination.dir, &manifest, &settings, console)?;
    }
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
