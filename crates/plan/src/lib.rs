//! Turns a manifest into ordered work.
//!
//! [`expand`] makes the matrix: every point of the axes for every variant, with the planned outcome of each cell (kept,
//! excluded by a rule, or by a `requires` that does not hold), narrowed as the command line asks, and put into groups
//! that are compared. [`resolve`] makes one group ready to run: it evaluates every expression, checks every launch
//! against the device's limits and gives every case that cannot run its outcome.
//!
//! The matrix holds indices, eight bytes per cell, so that a million cells stay cheap. Nothing here opens a device,
//! compiles, or reads a file beyond the header of an `.npy` file: what depends on an unknown device stays undecided and
//! is reported as such.

use runner_model::{cpp, diagnostics, experiment, expr, model, npy, project, safetensors};

use std::collections::{BTreeMap, HashSet};

use crate::experiment::{Axis, BodySpec, Manifest};
use crate::expr::Scope;
use crate::model::{
    AxisColumn, BackendKind, Case, CaseKey, DeviceInfo, Diagnostic, Diagnostics, GroupKey, GroupPlace, KernelCompiler,
    Value,
};

pub mod against;
mod axes;
mod estimate;
mod groups;
mod hashes;
pub mod link;
mod planned_outcome;
mod points;
mod recipe;
mod renamed;
mod resolve;
mod shard;
mod summary;
mod variants;

pub use estimate::{GroupCost, memory_needed};
pub use hashes::{hash_code, hash_uncompiled, of_sources as source_hash};
pub use planned_outcome::{Cell, PlannedOutcome};
pub use resolve::{ResolvedGroup, Undecided, bare_group, resolve, resolve_case};
pub use shard::{Division, Shards};
pub use summary::{Reason, Summary, summarise};
pub use variants::PlannedVariant;

use groups::Groups;
use points::{Chosen, Points};
use recipe::{Recipe, Rule};

/// The largest number of cells that a matrix may have. A larger one is more likely a typing error in an axis, and its
/// table would be large.
pub const MAX_CELLS: u64 = 1_000_000;

/// The machine that the matrix is made for, and how the matrix is narrowed.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// What runs the cases.
    pub backend: BackendKind,
    /// The backend whose axes and bindings replace the manifest's: that of the run, unless its results are to be
    /// compared with another's.
    pub sizes: BackendKind,
    /// The device, if it is known. It provides the values of device attributes, the limits and the size of memory.
    pub device: Option<DeviceInfo>,
    /// `axis=values`, each replaces that axis.
    pub set: Vec<String>,
    /// Keeps the cells for which it holds.
    pub filter: Option<String>,
    /// Keeps these variants; all if it is empty.
    pub variants: Vec<String>,
}

impl PlanOptions {
    /// Returns the whole matrix for a backend, with no device known.
    pub fn for_backend(backend: BackendKind) -> Self {
        Self { backend, sizes: backend, device: None, set: Vec::new(), filter: None, variants: Vec::new() }
    }
}

/// What a manifest expands to.
#[derive(Debug)]
pub struct Plan {
    experiment: String,
    backend: BackendKind,
    device: Option<DeviceInfo>,
    axes: Vec<Axis>,
    compared: Vec<bool>,
    variants: Vec<PlannedVariant>,
    baseline: Option<(String, Vec<(String, Value)>)>,
    points: Points,
    groups: Groups,
    rules: Vec<Rule>,
    recipes: Vec<Recipe>,
    /// Why no host function runs; `None` if they do.
    without_host: Option<String>,
}

/// Why the simulator runs no host functions.
const NO_HOST_ON_SIMULATOR: &str = "a host function queues work on a GPU, and the simulator is none";

/// Makes the matrix.
///
/// # Errors
///
/// The error has all errors of the manifest on this backend and of the narrowing options.
pub fn expand(manifest: &Manifest, options: &PlanOptions) -> Result<Plan, Diagnostics> {
    expand_part(manifest, options, None)
}

/// Makes the part of the matrix that has these groups, without the rest of it: the work is that of their cells only.
///
/// # Errors
///
/// The errors are those of [`expand`].
pub fn expand_groups(manifest: &Manifest, options: &PlanOptions, places: &[GroupPlace]) -> Result<Plan, Diagnostics> {
    expand_part(manifest, options, Some(places))
}

fn expand_part(manifest: &Manifest, options: &PlanOptions, places: Option<&[GroupPlace]>) -> Result<Plan, Diagnostics> {
    let _span = tracing::info_span!("plan", experiment = manifest.name).entered();
    let diagnostics = |items| Diagnostics::new(manifest.source.clone(), items);
    let axes = axes::effective(manifest, options).map_err(diagnostics)?;
    let variants = variants::expand(&axes, options).map_err(diagnostics)?;
    let recipes = recipe::of_variants(manifest, options).map_err(diagnostics)?;
    let compared: Vec<bool> = axes.shared.iter().map(|axis| manifest.compare.contains(&axis.name)).collect();
    let chosen: Option<Vec<u32>> = places.map(|places| places.iter().map(|place| place.point).collect());
    let chosen = chosen.as_ref().map(|points| Chosen { points, compared: &compared });
    let points = points::lay_out(manifest, &axes, variants.len(), chosen).map_err(|fault| diagnostics(vec![fault]))?;
    let rules = recipe::rules(manifest, &recipes, &axes, options).map_err(diagnostics)?;
    let mut plan = Plan {
        experiment: manifest.name.clone(),
        backend: options.backend,
        device: options.device.clone(),
        baseline: baseline(manifest),
        axes: points.tables(&axes.shared),
        compared,
        variants,
        points: points.into_points(),
        groups: Groups::default(),
        rules: rules.exclude,
        recipes,
        without_host: (options.backend == BackendKind::Sim).then(|| NO_HOST_ON_SIMULATOR.to_owned()),
    };
    let cells = planned_outcome::decide(&plan, manifest, rules.filter.as_ref(), options).map_err(diagnostics)?;
    if cells.is_empty() {
        return Err(diagnostics(vec![nothing_left(options)]));
    }
    plan.groups = groups::form(&plan.points, &plan.compared, plan.variants.len(), cells, places);
    Ok(plan)
}

fn baseline(manifest: &Manifest) -> Option<(String, Vec<(String, Value)>)> {
    let baseline = manifest.baseline.as_ref()?;
    let at = manifest.compare.iter().filter_map(|name| Some((name.clone(), baseline.at.get(name)?.clone()))).collect();
    Some((baseline.variant.clone(), at))
}

fn nothing_left(options: &PlanOptions) -> Diagnostic {
    match (&options.filter, options.variants.is_empty()) {
        (Some(filter), true) => Diagnostic::whole(format!("--filter '{filter}' leaves no case")),
        (Some(filter), false) => Diagnostic::whole(format!("--filter '{filter}' and --variant leave no case")),
        _ => Diagnostic::whole("the matrix is empty"),
    }
}

impl Plan {
    /// Returns what runs the cases.
    pub const fn backend(&self) -> BackendKind {
        self.backend
    }

    /// Returns the device that the plan was made for, if it is known.
    pub fn device(&self) -> Option<&DeviceInfo> {
        self.device.as_ref()
    }

    /// Returns the shared axes, with values of included points after those of the manifest.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the shared axes as the report's columns.
    pub fn axis_columns(&self) -> Vec<AxisColumn> {
        let column = |(axis, &compared): (&Axis, &bool)| AxisColumn { name: axis.name.clone(), compared };
        self.axes.iter().zip(&self.compared).map(column).collect()
    }

    /// Returns the variants after expansion of their own axes, including those that `--variant` leaves out.
    pub fn variants(&self) -> &[PlannedVariant] {
        &self.variants
    }

    /// Returns the baseline's variant and its values of the compared axes.
    pub fn baseline(&self) -> Option<&(String, Vec<(String, Value)>)> {
        self.baseline.as_ref()
    }

    /// Whether the plan runs host functions.
    pub fn calls_host(&self) -> bool {
        let is_host = |variant: &PlannedVariant| matches!(self.recipes[variant.spec].body, BodySpec::Host(_));
        self.without_host.is_none() && self.variants.iter().any(|variant| variant.selected && is_host(variant))
    }

    /// Returns the compilers of kernels that the plan needs, each with a variant that needs it.
    pub fn compilers(&self) -> BTreeMap<KernelCompiler, &str> {
        let selected = self.variants.iter().filter(|variant| variant.selected);
        let compilers_of = |variant: &'_ PlannedVariant| match &self.recipes[variant.spec].body {
            BodySpec::Launches { launches, .. } => launches.iter().map(|launch| launch.compile.compiler).collect(),
            _ => Vec::new(),
        };
        selected
            .flat_map(|variant| compilers_of(variant).into_iter().map(|compiler| (compiler, variant.name.as_str())))
            .collect()
    }

    /// Excludes every host function, for this reason.
    pub fn exclude_host(&mut self, why: impl Into<String>) {
        self.without_host = Some(why.into());
    }

    /// Keeps these cases alone.
    pub fn keep(&mut self, only: &HashSet<CaseKey>) {
        let mut groups = std::mem::take(&mut self.groups);
        groups.retain(|cell| only.contains(&self.case(cell).key));
        self.groups = groups;
    }

    /// Cells of the plan, including excluded ones.
    pub fn cells(&self) -> &[Cell] {
        self.groups.cells()
    }

    /// Returns how many groups there are.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the cells of one group, in the manifest's order.
    pub fn group(&self, index: usize) -> &[Cell] {
        self.groups.get(index)
    }

    /// Returns where a group is, by which [`expand_groups`] finds it.
    pub fn place(&self, index: usize) -> GroupPlace {
        let point = self.group(index).first().map_or(0, |cell| self.point_of(cell.ordinal));
        GroupPlace { ordinal: self.groups.ordinal(index), point: point as u32 }
    }

    /// Returns the shared values of a group: those of the axes that are not compared.
    pub fn group_key(&self, index: usize) -> GroupKey {
        GroupKey(self.group(index).first().map(|cell| self.key_at(cell.ordinal)).unwrap_or_default())
    }

    /// Returns a cell with its names and values.
    pub fn case(&self, cell: Cell) -> Case {
        let variant = self.variant_of(cell.ordinal);
        let axes = self.values_at(cell.ordinal).map(|(axis, value)| (axis.name.clone(), value.clone())).collect();
        let key = CaseKey { experiment: self.experiment.clone(), variant: variant.name.clone(), axes };
        Case { ordinal: u64::from(cell.ordinal), key, group: GroupKey(self.key_at(cell.ordinal)) }
    }

    /// Returns the variant that a cell belongs to.
    pub fn variant_of(&self, ordinal: u32) -> &PlannedVariant {
        &self.variants[ordinal as usize % self.variants.len()]
    }

    fn point_of(&self, ordinal: u32) -> usize {
        ordinal as usize / self.variants.len()
    }

    fn recipe_of(&self, ordinal: u32) -> &Recipe {
        &self.recipes[self.variant_of(ordinal).spec]
    }

    /// Returns the shared axes with their values at a cell.
    fn values_at(&self, ordinal: u32) -> impl Iterator<Item = (&Axis, &Value)> {
        let row = self.points.row(self.point_of(ordinal));
        self.axes.iter().zip(row).map(|(axis, &index)| (axis, &axis.values[index as usize]))
    }

    fn key_at(&self, ordinal: u32) -> Vec<(String, Value)> {
        let shared = self.values_at(ordinal).zip(&self.compared).filter(|(_, compared)| !**compared);
        shared.map(|((axis, value), _)| (axis.name.clone(), value.clone())).collect()
    }

    /// Says whether a cell is one that the others of its group are compared with.
    pub fn is_baseline(&self, ordinal: u32) -> bool {
        self.baseline.as_ref().is_some_and(|(variant, at)| {
            let there = |(name, wanted): &(String, Value)| {
                self.values_at(ordinal).any(|(axis, value)| axis.name == *name && value == wanted)
            };
            self.variant_of(ordinal).name == *variant && at.iter().all(there)
        })
    }

    /// Returns the device attributes, if a device is known.
    fn device_scope(&self) -> Scope {
        let attributes = self.device.iter().flat_map(DeviceInfo::attributes);
        attributes.map(|(name, value)| (name, Value::Int(value))).collect()
    }
}
