//! Prepares a manifest's groups and their code for all GPUs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::super::several::Line;
use crate::cli::RunArgs;
use crate::cli::options::RunOptions;
use crate::commands::merge;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::session::worker::Worker;
use crate::session::{Destination, Ended, ManifestRun, Planned, compile_ahead, judge};
use runner_experiment::Manifest;
use runner_plan::GroupCost;
use runner_plan::link::CompiledUnits;
use runner_results::journal::{self, Held, History, JOURNAL_FILE};
use runner_results::stored;
use runner_types::{DeviceInfo, GroupJob};
use runner_workers::{Interrupt, Urgency};

/// Folder in which the journals of an interrupted run are merged.
const CONTINUED: &str = "continued";

pub struct Experiment {
    pub manifest: Manifest,
    pub options: RunOptions,
    pub planned: Planned,
    pub units: CompiledUnits,
    /// Results of an interrupted run.
    pub held: Held,
    /// Folder with one journal folder per GPU.
    root: PathBuf,
    took: Mutex<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkItem {
    pub experiment: usize,
    pub group: usize,
    /// Whether no other group may run at the same time.
    pub alone: bool,
    cost: GroupCost,
}

impl Experiment {
    /// Plans and compiles; removes the journals of an earlier run unless it is continued.
    pub fn prepare(
        args: &RunArgs,
        (path, manifest): (&Path, Manifest),
        (first, worker): (u32, &Worker),
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let out = match (&args.out, args.manifests.len()) {
            (Some(out), 2..) => Some(out.join(&manifest.name)),
            (out, _) => out.clone(),
        };
        let options = RunOptions { out, ..RunOptions::of_run(args, path)? };
        let (planned, units) = compile_ahead(ManifestRun { manifest: &manifest, options: &options }, worker, console)?;
        let root = Path::new("target/devices").join(&manifest.name);
        let held = if options.resume { continued(&root, first)? } else { Held::default() };
        if !options.resume {
            removed(&root, None)?;
        }
        Ok(Self { manifest, options, planned, units, held, root, took: Mutex::default() })
    }

    pub fn folder(&self, gpu: u32) -> PathBuf {
        self.root.join(gpu.to_string())
    }

    pub fn took(&self, more: Duration) {
        *self.took.lock().unwrap_or_else(PoisonError::into_inner) += more;
    }

    pub fn conclude(&self, device: &DeviceInfo, interrupt: &Interrupt, console: &mut Console) -> Result<Line, Failure> {
        let took = *self.took.lock().unwrap_or_else(PoisonError::into_inner);
        let experiment = self.manifest.name.clone();
        let mut parts = joined(&self.root)?.into_iter();
        let Some(part) = parts.next() else { return Ok(Line { experiment, ended: None, took }) };
        if parts.next().is_some() {
            return Err(Failure::environment(format!(
                "the GPUs differ in clock or power settings, so their results of {experiment} cannot share a report: \
                 `runner merge {}` writes one for each",
                self.root.display()
            )));
        }
        let is_whole = part.missing.is_empty();
        let destination = Destination::choose(&self.options, &self.manifest, device);
        let records = merge::write(part, &destination.dir)?;
        console.say(&format!("report: {}", destination.dir.join(runner_report::REPORT_FILE).display()));
        let exit = if interrupt.urgency() > Urgency::None {
            Exit::Interrupted
        } else if !is_whole {
            Exit::Environment
        } else {
            judge(self.options.gate, &records)
        };
        Ok(Line { experiment, ended: Some(Ended { exit, counts: runner_report::counts(&records), both: None }), took })
    }
}

/// Groups of all experiments in starting order, longest first. Groups that run alone come last, so that the GPUs wait
/// for each other only once. If each worker has its own cores, only groups with host-clock times run alone: they
/// allocate memory in the driver that all GPUs share.
pub fn in_order(experiments: &[Experiment], has_own_cores: bool) -> Vec<WorkItem> {
    let mut units = Vec::new();
    for (experiment, Experiment { planned, .. }) in experiments.iter().enumerate() {
        for (group, resolved) in planned.groups.iter().enumerate() {
            let job = &resolved.job;
            let alone = if has_own_cores { job.is_timed_by_host() } else { job.needs_host() };
            let plan = &planned.plan;
            let cost = GroupCost::estimate(job, plan.backend(), plan.device());
            units.push(WorkItem { experiment, group, alone, cost });
        }
    }
    sort(&mut units);
    units
}

impl WorkItem {
    /// Job of the group, with the estimated nanoseconds of its shortest launch.
    pub fn job<'e>(&self, experiments: &'e [Experiment]) -> (&'e GroupJob, f64) {
        let groups = &experiments[self.experiment].planned.groups;
        (&groups[self.group].job, self.cost.shortest_launch * 1e9)
    }
}

fn sort(units: &mut [WorkItem]) {
    units.sort_by(|a, b| a.alone.cmp(&b.alone).then(b.cost.seconds.total_cmp(&a.cost.seconds)));
}

fn joined(root: &Path) -> Result<Vec<journal::Merged>, Failure> {
    if !root.exists() {
        return Ok(Vec::new());
    }
    match stored::journals(root).and_then(|files| stored::join(&files)) {
        Ok(joined) => Ok(joined.parts),
        Err(stored::ReadError::NoJournal { .. }) => Ok(Vec::new()),
        Err(error) => Err(Failure::environment(error)),
    }
}

/// Merges the journals of an interrupted run into that of the first GPU, whose session continues it.
fn continued(root: &Path, gpu: u32) -> Result<Held, Failure> {
    let mut parts = joined(root)?.into_iter();
    let Some(mut part) = parts.next() else { return Ok(Held::default()) };
    if parts.next().is_some() {
        let root = root.display();
        return Err(Failure::environment(format!(
            "the journals in {root} come from different drivers or settings: run without --resume"
        )));
    }
    let place = root.join(CONTINUED);
    let (journal, groups) = part.write(&place, |events| History::fold(events).held()).map_err(Failure::environment)?;
    drop(journal);
    let own = root.join(gpu.to_string());
    let moved = std::fs::create_dir_all(&own)
        .and_then(|()| std::fs::rename(place.join(JOURNAL_FILE), own.join(JOURNAL_FILE)))
        .and_then(|()| std::fs::remove_dir_all(&place));
    moved.map_err(|error| Failure::environment(format!("cannot write to {}: {error}", root.display())))?;
    removed(root, Some(&own))?;
    Ok(groups.into_iter().collect())
}

/// Removes journals of an earlier run, except `except`; otherwise the GPUs would continue them.
fn removed(root: &Path, except: Option<&Path>) -> Result<(), Failure> {
    match stored::journals(root) {
        Ok(files) => files.iter().filter(|file| file.parent() != except).try_for_each(|file| {
            std::fs::remove_file(file)
                .map_err(|error| Failure::environment(format!("cannot remove {}: {error}", file.display())))
        }),
        // There are no earlier journals.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_group_of_any_manifest_begins_and_those_that_run_alone_come_last() {
        let unit = |experiment, group, alone, seconds| {
            let cost = GroupCost { seconds, ..GroupCost::default() };
            WorkItem { experiment, group, alone, cost }
        };
        let mut units = vec![
            unit(0, 0, false, 2.0),
            unit(0, 1, true, 9.0),
            unit(0, 2, false, 5.0),
            unit(1, 0, false, 3.0),
            unit(1, 1, true, 10.0),
        ];
        sort(&mut units);
        let order: Vec<(usize, usize)> = units.iter().map(|unit| (unit.experiment, unit.group)).collect();
        assert_eq!(order, [(0, 2), (1, 0), (0, 0), (1, 1), (0, 1)]);
    }
}
