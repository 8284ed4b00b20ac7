//! Implements `runner tune`: searches the compared axes of a manifest for the best configuration.

mod settings;
mod simulate;

use std::collections::HashSet;
use std::path::Path;

use super::cli::TuneArgs;
use super::options::{RunOptions, network};
use super::session::{Devices, interrupt, prepare_search, run_finalists};
use super::{Console, Exit, Failure, load_manifest};
use crate::dispatch::{Pool, Urgency};
use crate::file_names::escaped;
use crate::tune::{Finalists, Log, Problem, Seat, TuneError, Values};

pub fn run(args: &TuneArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.quiet = args.display.quiet;
    match (&args.simulate, &args.manifest) {
        (Some(file), _) => simulate::run(args, file, console),
        (None, Some(manifest)) => search(args, manifest, console),
        (None, None) => Err(Failure::usage("name a manifest, or a measured space with --simulate")),
    }
}

/// Evaluates what the strategy proposes, and then measures the best configurations beside the baseline.
fn search(args: &TuneArgs, path: &Path, console: &mut Console) -> Result<Exit, Failure> {
    let mut options = RunOptions::of_tune(args, path)?;
    let manifest = load_manifest(path, &args.trust.reach, network(args.offline), console)?.with_searched_axes();
    settings::strategy(args, &manifest.search)?;
    let interrupt = interrupt()?;
    let mut devices = Devices::start(&mut options, args, &interrupt, console)?;
    let backend = devices.first.backend();
    let settings = settings::resolve(args, &manifest.search, backend)?;
    let ready = prepare_search(&options, &manifest, &mut devices, &interrupt, console)?;
    let plan = &ready.planned.plan;
    let prior = args.prior.as_ref().map(|path| crate::tune::read_prior(path, &settings.objectives[0])).transpose();
    let mut chosen: Vec<Values> = prior?.unwrap_or_default();
    let (mut best, mut searched) = (HashSet::new(), 0);
    let mut interrupted = false;
    for candidates in &ready.groups {
        let problem = Problem::new(&manifest, plan, candidates, &settings)?;
        // Several sizes have a folder each.
        let is_one = ready.groups.len() == 1;
        let folder = ready.destination.dir.join(if is_one { String::new() } else { escaped(&problem.size(), "=") });
        let header = problem.header(&ready.environment, &ready.identity, args.narrowing.describe());
        let log = Log::open(&folder, &header, args.resume, args.shard)?;
        let (points, whole) = (problem.space.len(), settings.budget.resolve(problem.space.len()));
        let budget = args.shard.map_or(whole, |shard| crate::tune::share_of(shard, whole, points));
        console.say(&format!(
            "{}{points} configurations, of which {budget} are evaluated{} by {}, strategy {}",
            if is_one { String::new() } else { format!("{}: ", problem.size()) },
            args.shard.map(|shard| format!(" in shard {shard}")).unwrap_or_default(),
            settings.objective_names(),
            settings.strategy,
        ));
        // What is best elsewhere is tried first.
        let first: Vec<u64> = chosen.iter().filter_map(|values| problem.find(values)).collect();
        let mut pools: Vec<&mut Pool> = devices.pools().collect();
        let seat = Seat {
            problem: &problem,
            compiler: &ready.planned,
            environment: &ready.environment,
            interrupt: &interrupt,
            budget,
            learns: !::search::strategy::is_blind(&settings.strategy),
            first: &first,
            devices: pools.len(),
            shard: args.shard,
        };
        let strategy =
            ::search::strategy::named(&settings.strategy).ok_or_else(|| settings::unknown(&settings.strategy))?;
        let found = crate::tune::run(seat, strategy, log, &mut pools, &mut |line| console.say(line))?;
        if args.shard.is_none() {
            crate::tune::write(&folder, candidates, &problem, &found, &mut |line| console.say(line))?;
        }
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
    if let Some(shard) = args.shard {
        let rest = "when all shards have ended, --resume without --shard reports them and measures the finalists";
        console.say(&format!("shard {shard} has {}: {rest}", if interrupted { "been interrupted" } else { "ended" }));
        return Ok(if interrupted { Exit::Interrupted } else { Exit::Success });
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
    let finalists = Finalists::choose(plan, &ready.groups[..searched], &best, &settings.objectives);
    let ended = run_finalists(&options, &manifest, &mut devices.first, &finalists, &interrupt, console)?;
    if searched > 1 {
        let objective = &settings.objectives[0];
        crate::tune::write_table(&ready.destination.dir, &manifest, objective, &mut |line| console.say(line))?;
    }
    Ok(if interrupted { Exit::Interrupted } else { ended.exit })
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        match error {
            TuneError::Usage(why) => Self::usage(why),
            TuneError::Environment(why) => Self::environment(why),
        }
    }
}
