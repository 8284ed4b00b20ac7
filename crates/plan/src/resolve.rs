//! Makes one group ready to run.
//!
//! Evaluates all expressions of its cases. If an expression has no value, the device does not allow a launch, or the
//! case does not fit in memory, the case gets its outcome here. The other cases continue without it.

use std::collections::BTreeSet;
use std::path::Path;

use sha2::{Digest, Sha256};

use runner_experiment::{BodySpec, BufferSpec, FillSpec, Manifest, MeasureSpec};
use runner_files::npy;
use runner_files::project::Project;
use runner_lang::{ExprError, Scope};
use runner_types::{
    BodyPlan, Case, CaseJob, DeviceInfo, ExpectPlan, GroupJob, MeasurePlan, Outcome, Sharing, Value, WorkAmount,
};

use super::Plan;
use super::estimate::memory_needed;
use super::planned_outcome::{Cell, PlannedOutcome, unmet};
use super::recipe::{OCCUPANCY_BLOCK, Recipe};

mod body;
mod buffers;
mod checks;
mod limits;
mod steps;

/// A group with its cases sorted by what happens to them next.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedGroup {
    /// Cases that run. If there are none, no worker receives the group.
    pub job: GroupJob,
    /// Cases that already have an outcome.
    pub settled: Vec<(Case, Outcome)>,
    /// Cases that depend on an unknown device.
    pub undecided: Vec<Undecided>,
}

/// A case that cannot be resolved without a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Undecided {
    pub case: Case,
    /// Device attributes that it uses.
    pub names: Vec<String>,
}

pub fn resolve(manifest: &Manifest, plan: &Plan, index: usize) -> ResolvedGroup {
    let mut group =
        ResolvedGroup { job: bare_group(manifest, plan, index), settled: Vec::new(), undecided: Vec::new() };
    let mut ready: Vec<(u32, CaseJob)> = Vec::new();
    for &cell in plan.group(index) {
        let case = plan.case(cell);
        match (CaseWork { manifest, plan, cell }).job(&case) {
            Ok(job) => ready.push((cell.ordinal, job)),
            Err(NoJob::Settled(outcome)) => group.settled.push((case, outcome)),
            Err(NoJob::Undecided(names)) => group.undecided.push(Undecided { case, names }),
        }
    }
    let ready = without_orphans(plan, ready, &mut group.settled);
    group.job.baseline = ready.iter().position(|(ordinal, _)| plan.is_baseline(*ordinal));
    group.job.cases = ready.into_iter().map(|(_, job)| job).collect();
    group
}

/// A group of the plan without its cases.
pub fn bare_group(manifest: &Manifest, plan: &Plan, index: usize) -> GroupJob {
    let key = plan.group_key(index);
    let seed = seed(manifest, &key.to_string());
    GroupJob {
        ordinal: plan.place(index).ordinal,
        seed,
        key,
        cases: Vec::new(),
        baseline: None,
        sharing: Sharing::Alone,
    }
}

/// Resolves one case of a plan for a known device. The error is the outcome of a case that cannot run. If a check
/// expects another variant's result, the caller must ensure that this variant runs, since the caller forms the group.
pub fn resolve_case(manifest: &Manifest, plan: &Plan, cell: Cell) -> Result<CaseJob, Outcome> {
    (CaseWork { manifest, plan, cell }).job(&plan.case(cell)).map_err(|stop| match stop {
        NoJob::Settled(outcome) => outcome,
        NoJob::Undecided(names) => {
            Outcome::Unresolved { message: format!("it depends on the device: it uses {}", names.join(", ")) }
        }
    })
}

/// Seed for the random order of variants; always the same for a group of an experiment.
fn seed(manifest: &Manifest, key: &str) -> u64 {
    let digest = Sha256::new().chain_update(&manifest.name).chain_update([0]).chain_update(key).finalize();
    digest.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// Removes the cases whose check expects the result of a variant that does not run, and settles them as not run.
fn without_orphans(plan: &Plan, ready: Vec<(u32, CaseJob)>, settled: &mut Vec<(Case, Outcome)>) -> Vec<(u32, CaseJob)> {
    let running: BTreeSet<&str> = ready.iter().map(|(ordinal, _)| plan.variant_of(*ordinal).name.as_str()).collect();
    let lacks = |job: &CaseJob| {
        job.checks.iter().find_map(|check| match &check.expect {
            ExpectPlan::Variant(name) if !running.contains(name.as_str()) => Some(name.clone()),
            _ => None,
        })
    };
    let lacking: Vec<Option<String>> = ready.iter().map(|(_, job)| lacks(job)).collect();
    let mut kept = Vec::new();
    for ((ordinal, job), lacking) in ready.into_iter().zip(lacking) {
        match lacking {
            None => kept.push((ordinal, job)),
            Some(name) => {
                let why = format!("its check compares with variant `{name}`, which does not run in this group");
                settled.push((job.case, Outcome::not_run(why)));
            }
        }
    }
    kept
}

/// Why a case does not become a job.
#[derive(Debug)]
enum NoJob {
    Settled(Outcome),
    Undecided(Vec<String>),
}

type Worked<T> = Result<T, NoJob>;

/// Adds the location in the manifest to an evaluation error.
trait AtPlace<T> {
    fn place(self, place: &str) -> Worked<T>;
}

impl<T> AtPlace<T> for Result<T, ExprError> {
    fn place(self, place: &str) -> Worked<T> {
        self.map_err(|error| unresolved(place, &error.message))
    }
}

fn unresolved(place: &str, message: &str) -> NoJob {
    let message = if place.is_empty() { message.to_owned() } else { format!("{place}: {message}") };
    NoJob::Settled(Outcome::Unresolved { message })
}

fn unreadable(place: &str, path: &Path, error: &std::io::Error) -> NoJob {
    unresolved(place, &format!("{} cannot be read: {error}", path.display()))
}

fn excluded(why: impl Into<String>) -> NoJob {
    NoJob::Settled(Outcome::Excluded { why: why.into() })
}

struct CaseWork<'a> {
    manifest: &'a Manifest,
    plan: &'a Plan,
    cell: Cell,
}

impl CaseWork<'_> {
    fn job(&self, case: &Case) -> Worked<CaseJob> {
        let (plan, recipe) = (self.plan, self.plan.recipe_of(self.cell.ordinal));
        if let PlannedOutcome::Excluded(rule) = self.cell.outcome {
            return Err(excluded(plan.rules[rule as usize].why.clone()));
        }
        if let (BodySpec::Host(_), Some(why)) = (&recipe.body, &plan.without_host) {
            return Err(excluded(why.clone()));
        }
        if plan.device.is_none() {
            self.decide(recipe)?;
        }
        let mut scope = self.scope();
        self.lengths_of_files(recipe, &mut scope)?;
        self.required(recipe, &mut scope)?;
        self.plan.variant_of(self.cell.ordinal).place_name(&recipe.needs, &mut scope);
        recipe.bind(&recipe.needs, &mut scope).map_err(|error| bindings(recipe, &error))?;
        let worker = CaseEvaluator { recipe, project: &self.manifest.project, scope: &scope };
        let buffers = worker.buffers()?;
        let (body, steps) = worker.body(&buffers)?;
        let checks = worker.checks(&plan.variant_of(self.cell.ordinal).name, &buffers)?;
        let printed = worker.printed()?;
        let work = worker.work()?;
        let measure = measure(&self.manifest.measure);
        let job = CaseJob {
            case: case.clone(),
            fingerprint: None,
            hashes: None,
            buffers,
            body,
            steps,
            outputs: None,
            line_counts: None,
            unsanitized: recipe.unsanitized.clone(),
            sampled: recipe.sampled,
            lines: false,
            thorough: false,
            checks,
            printed,
            work,
            measure,
        };
        match plan.device() {
            Some(device) => find_exceeded_limit(device, &job).map_or(Ok(job), |outcome| Err(NoJob::Settled(outcome))),
            None => Ok(job),
        }
    }

    /// Rejects a case whose expressions use attributes of an unknown device.
    fn decide(&self, recipe: &Recipe) -> Worked<()> {
        let rules =
            self.plan.rules.iter().filter_map(|rule| rule.needs[self.plan.variant_of(self.cell.ordinal).spec].as_ref());
        let open = self.cell.outcome == PlannedOutcome::NeedsDevice;
        let rules = rules.filter(|_| open).flat_map(|needs| &needs.device);
        let mut names: Vec<String> = rules.chain(&recipe.guard.device).chain(&recipe.needs.device).cloned().collect();
        names.sort();
        names.dedup();
        // A case that already has an outcome without a device keeps it.
        let settled = matches!(self.cell.outcome, PlannedOutcome::Unmet(_) | PlannedOutcome::Unresolved);
        if names.is_empty() || settled { Ok(()) } else { Err(NoJob::Undecided(names)) }
    }

    /// Device attributes, shared axes and the variant's own axes.
    fn scope(&self) -> Scope {
        let mut scope = self.plan.device_scope();
        for (axis, value) in self.plan.values_at(self.cell.ordinal) {
            scope.set(axis.name.as_str(), value.clone());
        }
        self.plan.variant_of(self.cell.ordinal).place(&mut scope);
        scope
    }

    /// Sets the lengths of buffers that take them from their files, and the extents of arrays in files. The names of
    /// these files may use only axes.
    fn lengths_of_files(&self, recipe: &Recipe, scope: &mut Scope) -> Worked<()> {
        for buffer in recipe.buffers.iter().filter(|buffer| buffer.is_as_long_as_its_file() || buffer.has_extents()) {
            let place = format!("buffers.{}.fill", buffer.name);
            let worker = CaseEvaluator { recipe, project: &self.manifest.project, scope };
            let shape = match &buffer.fill {
                Some(FillSpec::Npy(file)) => match worker.file(file, &place) {
                    Ok(path) => {
                        let header = npy::Header::read(&path).map_err(|error| unreadable(&place, &path, &error))?;
                        header.shape().to_vec()
                    }
                    // If the buffer states its length, the name may use bindings too.
                    Err(stop) if buffer.is_as_long_as_its_file() => return Err(stop),
                    Err(_) => continue,
                },
                Some(FillSpec::Tensor(tensor)) => match worker.find_tensor(tensor, &place) {
                    Ok((_, tensor)) => tensor.shape,
                    Err(stop) if buffer.is_as_long_as_its_file() => return Err(stop),
                    Err(_) => continue,
                },
                Some(FillSpec::Raw(file)) => {
                    let path = worker.file(file, &place)?;
                    let bytes = std::fs::metadata(&path).map_err(|error| unreadable(&place, &path, &error))?.len();
                    vec![bytes / worker.element(&buffer.element, &place)?.size() as u64]
                }
                _ => continue,
            };
            let len = shape.iter().copied().fold(1, u64::saturating_mul);
            let number = |value: u64| Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
            if buffer.is_as_long_as_its_file() {
                scope.set(BufferSpec::length_name(&buffer.name), number(len));
            }
            if buffer.has_extents() {
                for (name, extent) in BufferSpec::extent_names(&buffer.name).into_iter().zip(shape) {
                    scope.set(name, number(extent));
                }
            }
        }
        Ok(())
    }

    fn required(&self, recipe: &Recipe, scope: &mut Scope) -> Worked<()> {
        let variant = self.plan.variant_of(self.cell.ordinal);
        let failing = match self.cell.outcome {
            PlannedOutcome::Unmet(index) => Some(index as usize),
            PlannedOutcome::Kept => None,
            _ => unmet(recipe, variant, scope).place("requires")?,
        };
        match failing {
            Some(index) => Err(excluded(format!("requires {}", recipe.requires[index].text()))),
            None => Ok(()),
        }
    }
}

/// Error for a binding that cannot be evaluated. Only `grid` itself may use `occupancy_block`.
fn bindings(recipe: &Recipe, error: &ExprError) -> NoJob {
    let waits = |index: &usize| recipe.lets[*index].value.names().contains(OCCUPANCY_BLOCK);
    if recipe.needs.lets.iter().any(waits) {
        let message = format!("{}: `{OCCUPANCY_BLOCK}` is known only on the device; use it in `grid`", error.message);
        return unresolved("", &message);
    }
    unresolved("", &error.message)
}

/// The first device limit that a job exceeds, including memory.
fn find_exceeded_limit(device: &DeviceInfo, job: &CaseJob) -> Option<Outcome> {
    if let BodyPlan::Launches(launches) = &job.body {
        if let Some(why) = limits::machine_code(device, launches).or_else(|| limits::foreign(device, launches)) {
            return Some(Outcome::Excluded { why });
        }
        if let Some(limit) = limits::exceeded(device, launches) {
            return Some(Outcome::Invalid { limit });
        }
    }
    let needed = memory_needed(job).0;
    let available = device.memory_free.unwrap_or(device.memory_bytes).0;
    (needed > available).then_some(Outcome::OutOfMemory { needed, available })
}

fn measure(spec: &MeasureSpec) -> MeasurePlan {
    MeasurePlan {
        regimes: spec.regimes.clone(),
        precision: spec.precision,
        timeout: spec.timeout,
        warmup: spec.warmup,
        min_samples: spec.min_samples,
        max_samples: spec.max_samples,
        budget: spec.budget,
        energy: spec.energy,
        processes: spec.processes,
        drop_above: None,
    }
}

/// Evaluates the expressions of one case in its complete scope.
struct CaseEvaluator<'a> {
    recipe: &'a Recipe,
    project: &'a Project,
    scope: &'a Scope,
}

impl CaseEvaluator<'_> {
    fn work(&self) -> Worked<WorkAmount> {
        let bytes = self.recipe.work.bytes.as_ref().map(|e| e.evaluate_u64(self.scope));
        let flops = self.recipe.work.flops.as_ref().map(|e| e.evaluate_f64(self.scope));
        Ok(WorkAmount { bytes: bytes.transpose().place("work.bytes")?, flops: flops.transpose().place("work.flops")? })
    }
}
