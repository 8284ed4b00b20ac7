//! Input of a search: a plan whose cases are resolved on demand.

use std::collections::BTreeSet;

use super::Destination;
use super::prepare::{ManifestRun, Planned};
use super::recorder::not_of_another;
use super::search_devices::Devices;
use crate::console::Console;
use crate::failure::Failure;
use runner_tune::{Candidates, Identity};
use runner_types::Environment;
use runner_workers::Interrupt;

/// A plan from which a search selects cases. A million resolved cases would take gigabytes, so a case is resolved and
/// compiled only when selected.
#[derive(Debug)]
pub struct Searchable {
    pub planned: Planned,
    /// Search spaces, one per group.
    pub groups: Vec<Candidates>,
    pub environment: Environment,
    /// Everything besides the device that evaluations depend on.
    pub identity: Identity,
    pub destination: Destination,
}

/// Maximum number of groups to search. With more, `compare` probably lacks axes: a search is not meant for so many
/// sizes.
const MOST_GROUPS: usize = 64;

/// Plans and calibrates the devices for a search.
pub fn prepare_search(
    run: ManifestRun<'_>,
    devices: &mut Devices,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Searchable, Failure> {
    let ManifestRun { options, manifest } = run;
    let (planned, _) = Planned::unresolved(run, None, &devices.first, console)?;
    let plan = &planned.plan;
    if plan.group_count() > MOST_GROUPS {
        return Err(Failure::usage(format!(
            "the manifest has {} groups, each searched separately, but at most {MOST_GROUPS} are allowed: name the \
             axes of the space in `compare`, and choose values of the other axes with --set",
            plan.group_count()
        )));
    }
    let mut groups: Vec<Candidates> = (0..plan.group_count()).map(Candidates::new).collect();
    let mut files = BTreeSet::new();
    let cells = (0..plan.group_count()).flat_map(|group| plan.group(group).iter().map(move |&cell| (group, cell)));
    let cases = cells.filter_map(|(group, cell)| match runner_plan::resolve_case(manifest, plan, cell) {
        Ok(case) => {
            groups[group].cells.push(cell);
            runner_tune::files_of(&case, &mut files);
            Some(case)
        }
        Err(outcome) => {
            groups[group].exclude(&outcome);
            None
        }
    });
    planned.compiler.ask_consent(options, cases, console)?;
    let destination = Destination::choose(options, manifest, &devices.first.ready.device);
    destination.may_be_written(options)?;
    not_of_another(&destination.dir, &manifest.name)?;
    let machine = devices.known(options, planned.toolkit(), interrupt, console);
    let environment = planned.environment(&devices.first.ready, None, machine);
    let identity = runner_tune::identify(manifest, &files);
    Ok(Searchable { planned, groups, environment, identity, destination })
}
