//! What a search has before it evaluates anything: a plan whose cases are resolved one by one.

use super::Destination;
use super::machine::{self, Site};
use super::prepare::Planned;
use super::worker::Worker;
use crate::commands::options::RunOptions;
use crate::commands::{Console, Failure};
use crate::dispatch::Interrupt;
use crate::experiment::Manifest;
use crate::model::{Environment, Outcome};
use crate::plan::{self, Cell};

/// A plan whose cases a search may choose, before any of them is compiled. A million resolved cases would take gigabytes,
/// so a case is resolved when the search has chosen it.
#[derive(Debug)]
pub struct Searchable {
    pub planned: Planned,
    /// The spaces, one for each group.
    pub groups: Vec<Candidates>,
    pub environment: Environment,
    pub destination: Destination,
}

/// The cells of one group.
#[derive(Debug)]
pub struct Candidates {
    /// The place of the group in the plan.
    pub group: usize,
    /// The cells that can run.
    pub cells: Vec<Cell>,
    /// Why the others cannot, with how many there are.
    pub excluded: Vec<(String, usize)>,
}

/// A manifest with more groups than this is one whose `compare` lacks axes, and not one that is to be tuned for so many
/// sizes.
const MOST_GROUPS: usize = 64;

/// Plans and calibrates the device for a search.
pub fn prepare_search(
    options: &RunOptions,
    manifest: &Manifest,
    worker: &mut Worker,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Searchable, Failure> {
    let (planned, _) = Planned::unresolved(options, manifest, None, worker, console)?;
    let plan = &planned.plan;
    if plan.group_count() > MOST_GROUPS {
        return Err(Failure::usage(format!(
            "the manifest has {} groups, and each is searched by itself, at most {MOST_GROUPS} of them: name the axes of the \
             space in `compare`, and choose values of the other axes with --set",
            plan.group_count()
        )));
    }
    let empty = |group| Candidates { group, cells: Vec::new(), excluded: Vec::new() };
    let mut groups: Vec<Candidates> = (0..plan.group_count()).map(empty).collect();
    let cells = (0..plan.group_count()).flat_map(|group| plan.group(group).iter().map(move |&cell| (group, cell)));
    let cases = cells.filter_map(|(group, cell)| match plan::resolve_case(manifest, plan, cell) {
        Ok(case) => {
            groups[group].cells.push(cell);
            Some(case)
        }
        Err(outcome) => {
            count(&mut groups[group].excluded, reason(&outcome));
            None
        }
    });
    planned.compiler.ask_consent(options, cases, console)?;
    let destination = Destination::choose(options, manifest, &worker.ready.device);
    destination.may_be_written(options)?;
    let (ordinal, toolkit) = (options.target.ordinal(), planned.toolkit());
    let machine = machine::known(&mut worker.pool, Site { ready: &worker.ready, ordinal, toolkit, interrupt }, console);
    let environment = planned.environment(&worker.ready, None, machine);
    Ok(Searchable { planned, groups, environment, destination })
}

fn count(excluded: &mut Vec<(String, usize)>, reason: String) {
    match excluded.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, count)) => *count += 1,
        None => excluded.push((reason, 1)),
    }
}

/// Returns why a case has no objective.
pub fn reason(outcome: &Outcome) -> String {
    let name = outcome.name().replace('_', " ");
    outcome.words().map_or(name.clone(), |words| format!("{name}: {}", words.lines().next().unwrap_or_default()))
}
