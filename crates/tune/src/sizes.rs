//! The searches of a manifest: one per size, in order. Each size has its own best configuration.

use std::collections::HashSet;
use std::path::Path;

use search::strategy::{is_blind, named};

use crate::candidates::Candidates;
use crate::error::TuneError;
use crate::evaluations::Say;
use crate::header::Resume;
use crate::identity::Identity;
use crate::log::Log;
use crate::page::write;
use crate::problem::Problem;
use crate::search::run;
use crate::search_context::{Compiler, SearchContext};
use crate::settings::{Settings, unknown_strategy};
use crate::shards::share_of;
use crate::values::Values;
use runner_experiment::Manifest;
use runner_files::file_names::escaped;
use runner_plan::Plan;
use runner_types::{Environment, Shard};
use runner_workers::{Interrupt, Pool};

/// What all searches of a manifest have in common.
#[derive(Debug, Clone)]
pub struct Sizes<'a> {
    pub manifest: &'a Manifest,
    pub plan: &'a Plan,
    /// Search space of each size.
    pub groups: &'a [Candidates],
    pub settings: &'a Settings,
    /// Configurations to evaluate last.
    pub late: &'a [Values],
    pub compiler: &'a dyn Compiler,
    /// Device and software that results depend on.
    pub environment: &'a Environment,
    /// Hashes of the manifest and of the files read by cases, from which a resumed search detects changes.
    pub identity: &'a Identity,
    /// Command line options that narrow the plan, if any.
    pub narrowed: Option<String>,
    /// Folder of the report, with a subfolder per size if there are several.
    pub folder: &'a Path,
    pub resume: Resume,
    /// Part of each space that this process evaluates; `None` for the whole space.
    pub shard: Option<Shard>,
    pub interrupt: &'a Interrupt,
}

/// Results of all searches of a manifest.
#[derive(Debug, Default)]
pub struct Found {
    /// Best configurations of all sizes.
    pub best: HashSet<Values>,
    /// Number of sizes searched.
    pub sizes: usize,
    /// Whether the user interrupted the last search.
    pub interrupted: bool,
}

impl Sizes<'_> {
    /// Searches the sizes in order and, unless this is a shard, writes the page of each. The next size starts with the
    /// configurations in `known`, followed by the best of the previous sizes.
    pub fn search(&self, mut known: Vec<Values>, pools: &mut [&mut Pool], say: Say<'_>) -> Result<Found, TuneError> {
        let mut found = Found::default();
        for candidates in self.groups {
            let problem = Problem::new(self.manifest, self.plan, candidates, (self.settings, self.late))?;
            let is_one = self.groups.len() == 1;
            let folder = self.folder.join(if is_one { String::new() } else { escaped(&problem.size(), "=") });
            let header = problem.header(self.environment, self.identity, self.narrowed.clone());
            let log = Log::open(&folder, &header, self.resume, self.shard)?;
            let (points, whole) = (problem.space.len(), self.settings.budget.resolve(problem.space.len()));
            let budget = self.shard.map_or(whole, |shard| share_of(shard, whole, points));
            let name = &self.settings.strategy;
            say(&format!(
                "{}evaluating {budget} of {points} configurations{} by {}, strategy {name}",
                if is_one { String::new() } else { format!("{}: ", problem.size()) },
                self.shard.map(|shard| format!(" in shard {shard}")).unwrap_or_default(),
                self.settings.objective_names(),
            ));
            let first: Vec<u64> = known.iter().filter_map(|values| problem.find(values)).collect();
            let context = SearchContext {
                problem: &problem,
                compiler: self.compiler,
                environment: self.environment,
                interrupt: self.interrupt,
                budget,
                learns: !is_blind(name),
                first: &first,
                devices: pools.len(),
                shard: self.shard,
            };
            let strategy = named(name).ok_or_else(|| unknown_strategy(name))?;
            let searched = run(context, strategy, log, pools, say)?;
            if self.shard.is_none() {
                write(&folder, candidates, &problem, &searched, say)?;
            }
            let values = searched.best(self.settings.finalists).into_iter().map(|point| problem.configuration(point));
            known.extend(values.filter(|values| found.best.insert(values.clone())));
            found.sizes += 1;
            found.interrupted = searched.interrupted;
            if found.interrupted {
                break;
            }
        }
        Ok(found)
    }
}
