//! `runner tune`: searches the compared axes of a manifest for the best configuration.

mod simulate;

use std::path::{Path, PathBuf};

use crate::cli::TuneArgs;
use crate::cli::options::{RunOptions, network};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use crate::session::{Devices, ManifestRun, interrupt, prepare_search, run_finalists};
use runner_experiment::SearchSpec;
use runner_tune::{Finalists, Resume, Settings, Sizes, TuneError, read_late, read_prior, strategy_of, write_table};
use runner_types::Shard;
use runner_workers::{Interrupt, Pool, Urgency};

pub fn run(args: &TuneArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.quiet = args.display.quiet;
    match (&args.simulate, &args.manifest) {
        (Some(file), _) => simulate::run(args, file, console),
        (None, Some(manifest)) => {
            let resume = if args.resume { Resume::Yes } else { Resume::No };
            search((args, manifest), resume, &interrupt()?, console).map(|searched| searched.exit)
        }
        (None, None) => Err(Failure::usage("name a manifest, or a measured space with --simulate")),
    }
}

/// A search that has ended.
#[derive(Debug)]
pub struct Searched {
    pub exit: Exit,
    /// Folder of the report on the finalists, if they were measured.
    pub report: Option<PathBuf>,
}

impl Searched {
    const fn unreported(exit: Exit) -> Self {
        Self { exit, report: None }
    }
}

/// Runs the search as a task of a job. Continues an interrupted search unless its inputs were edited.
pub fn run_task(args: &TuneArgs, interrupt: &Interrupt, console: &mut Console) -> Result<Searched, Failure> {
    console.quiet = args.display.quiet;
    let manifest = args.manifest.as_ref().ok_or_else(|| Failure::usage("a search task names no manifest"))?;
    search((args, manifest), Resume::UnlessChanged, interrupt, console)
}

/// Evaluates the configurations that the strategy proposes, then measures the best ones together with the baseline.
fn search(
    (args, path): (&TuneArgs, &Path),
    resume: Resume,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Searched, Failure> {
    let mut options = RunOptions::of_tune(args, path)?;
    let manifest = load_manifest(path, &args.trust.reach, network(args.offline), console)?.with_searched_axes();
    let asked = asked(args, &manifest.search)?;
    let mut devices = Devices::start(&mut options, args, interrupt, console)?;
    let settings = Settings::resolve(&asked, devices.first.backend())?;
    let settings = Settings { budget: args.budget.unwrap_or(settings.budget), ..settings };
    let run = ManifestRun { manifest: &manifest, options: &options };
    let ready = prepare_search(run, &mut devices, interrupt, console)?;
    let plan = &ready.planned.plan;
    let late = args.prune.iter().map(|named| read_late(named)).collect::<Result<Vec<_>, _>>()?.concat();
    let sizes = Sizes {
        manifest: &manifest,
        plan,
        groups: &ready.groups,
        settings: &settings,
        late: &late,
        compiler: &ready.planned,
        environment: &ready.environment,
        identity: &ready.identity,
        narrowed: args.narrowing.describe(),
        folder: &ready.destination.dir,
        resume,
        shard: args.shard,
        interrupt,
    };
    let objective = &settings.objectives[0];
    let prior = args.prior.as_ref().map(|path| read_prior(path, objective)).transpose()?;
    let mut pools: Vec<&mut Pool> = devices.pools().collect();
    let found = sizes.search(prior.unwrap_or_default(), &mut pools, &mut |line| console.say(line))?;
    if let Some(shard) = args.shard {
        return Ok(Searched::unreported(end_of_shard(shard, found.interrupted, console)));
    }
    if found.interrupted {
        interrupt.acknowledge();
        console.say("interrupted: continue with --resume");
        if found.best.is_empty() || interrupt.urgency() > Urgency::None {
            return Ok(Searched::unreported(Exit::Interrupted));
        }
        console.say("measuring the best known configurations; press Ctrl-C to stop that, too");
    }
    if found.best.is_empty() {
        console.say("no configuration produces correct results; search.md has the reasons");
        return Ok(Searched::unreported(Exit::CaseFailed));
    }
    let finalists = Finalists::choose(plan, &ready.groups[..found.sizes], &found.best, &settings.objectives);
    let ended = run_finalists(run, &mut devices.first, &finalists, interrupt, console)?;
    if found.sizes > 1 {
        write_table(&ready.destination.dir, &manifest, objective, &mut |line| console.say(line))?;
    }
    let exit = if found.interrupted { Exit::Interrupted } else { ended.exit };
    Ok(Searched { exit, report: Some(ready.destination.dir) })
}

/// Merges the search options of the command line with the manifest's.
fn asked(args: &TuneArgs, manifest: &SearchSpec) -> Result<SearchSpec, Failure> {
    if args.strategy.len() > 1 {
        return Err(Failure::usage("only --simulate compares several strategies; name one"));
    }
    let spec = manifest.clone();
    let asked = SearchSpec {
        strategy: args.strategy.first().cloned().or(spec.strategy),
        seed: args.seed.or(spec.seed),
        objectives: if args.objective.is_empty() { spec.objectives } else { args.objective.clone() },
        finalists: args.finalists.or(spec.finalists),
        ..spec
    };
    // Checked before a device is started.
    strategy_of(&asked)?;
    Ok(asked)
}

/// Says what remains to be done after a shard.
fn end_of_shard(shard: Shard, interrupted: bool, console: &mut Console) -> Exit {
    let rest = "when all shards have ended, --resume without --shard reports them and measures the finalists";
    console.say(&format!("shard {shard} has {}: {rest}", if interrupted { "been interrupted" } else { "ended" }));
    if interrupted { Exit::Interrupted } else { Exit::Success }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        match error {
            TuneError::Usage(why) => Self::usage(why),
            TuneError::Environment(why) => Self::environment(why),
            TuneError::Held(why) => Self { is_held: true, ..Self::environment(why) },
        }
    }
}
