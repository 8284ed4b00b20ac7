//! Turns a manifest into ordered work.
//!
//! [`expand`] builds the matrix: every point of the axes for every variant, narrowed by the command line and divided
//! into groups that are compared. Each cell has a planned outcome: kept, excluded by a rule, or excluded by a
//! `requires`. [`resolve`] makes one group ready to run: it evaluates every expression, checks every launch against the
//! device's limits, and assigns an outcome to every case that cannot run.
//!
//! The matrix stores indices, eight bytes per cell, so that a million cells stay cheap. This crate opens no device,
//! compiles nothing, and reads only the headers of `.npy` files. Anything that depends on an unknown device is reported
//! as undecided.

use std::collections::{BTreeMap, HashSet};

use runner_experiment::{Axis, BodySpec, Manifest};
use runner_lang::Scope;
use runner_lang::diagnostics::{Diagnostic, Diagnostics};
use runner_types::{AxisColumn, BackendKind, Case, CaseKey, DeviceInfo, GroupKey, GroupPlace, KernelCompiler, Value};

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
pub use renamed::find_renamed;
pub use resolve::{ResolvedGroup, Undecided, bare_group, resolve, resolve_case};
pub use shard::{Division, Shards};
pub use summary::{Reason, Summary, summarise};
pub use variants::PlannedVariant;

use groups::Groups;
use points::{Chosen, Points};
use recipe::{Recipe, Rule};

/// Maximum number of cells of a matrix. A larger one is probably caused by a typo in an axis and would need much
/// memory.
pub const MAX_CELLS: u64 = 1_000_000;

/// The machine to plan for, and the options that narrow the matrix.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    pub backend: BackendKind,
    /// Backend whose axes and bindings override the manifest's. Differs from `backend` if results are to be compared
    /// with another backend's.
    pub sizes: BackendKind,
    /// Device, if known: its attributes, limits and memory size.
    pub device: Option<DeviceInfo>,
    /// `axis=values` overrides of axes.
    pub set: Vec<String>,
    /// Condition that selects the cells to keep.
    pub filter: Option<String>,
    /// Variants to keep; empty for all.
    pub variants: Vec<String>,
}

impl PlanOptions {
    /// Options for the whole matrix on a backend, without a known device.
    pub fn for_backend(backend: BackendKind) -> Self {
        Self { backend, sizes: backend, device: None, set: Vec::new(), filter: None, variants: Vec::new() }
    }
}

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
    /// Why host functions do not run; `None` if they do.
    without_host: Option<String>,
}

const NO_HOST_ON_SIMULATOR: &str = "a host function needs a GPU, and this is the simulator";

/// Builds the matrix. The error contains all errors of the manifest on this backend and of the narrowing options.
pub fn expand(manifest: &Manifest, options: &PlanOptions) -> Result<Plan, Diagnostics> {
    expand_part(manifest, options, None)
}

/// Builds only the part of the matrix with these groups; the cost is proportional to their cells.
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
        (Some(filter), true) => Diagnostic::whole(format!("no case matches --filter '{filter}'")),
        (Some(filter), false) => Diagnostic::whole(format!("no case matches --filter '{filter}' and --variant")),
        _ => Diagnostic::whole("the matrix is empty"),
    }
}

impl Plan {
    pub const fn backend(&self) -> BackendKind {
        self.backend
    }

    pub fn device(&self) -> Option<&DeviceInfo> {
        self.device.as_ref()
    }

    /// Shared axes, including values added by included points after the manifest's values.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Shared axes as report columns.
    pub fn axis_columns(&self) -> Vec<AxisColumn> {
        let column = |(axis, &compared): (&Axis, &bool)| AxisColumn { name: axis.name.clone(), compared };
        self.axes.iter().zip(&self.compared).map(column).collect()
    }

    /// Variants after expanding their own axes, including those not selected by `--variant`.
    pub fn variants(&self) -> &[PlannedVariant] {
        &self.variants
    }

    pub fn baseline(&self) -> Option<&(String, Vec<(String, Value)>)> {
        self.baseline.as_ref()
    }

    pub fn calls_host(&self) -> bool {
        let is_host = |variant: &PlannedVariant| matches!(self.recipes[variant.spec].body, BodySpec::Host(_));
        self.without_host.is_none() && self.variants.iter().any(|variant| variant.selected && is_host(variant))
    }

    /// Kernel compilers that the plan needs, each with an example of a variant that needs it.
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

    /// Excludes every host function, giving this reason.
    pub fn exclude_host(&mut self, why: impl Into<String>) {
        self.without_host = Some(why.into());
    }

    pub fn keep(&mut self, only: &HashSet<CaseKey>) {
        let mut groups = std::mem::take(&mut self.groups);
        groups.retain(|cell| only.contains(&self.case(cell).key));
        self.groups = groups;
    }

    /// Cells of the plan, including excluded ones.
    pub fn cells(&self) -> &[Cell] {
        self.groups.cells()
    }

    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub fn group(&self, index: usize) -> &[Cell] {
        self.groups.get(index)
    }

    /// Place of a group, for [`expand_groups`].
    pub fn place(&self, index: usize) -> GroupPlace {
        let point = self.group(index).first().map_or(0, |cell| self.point_of(cell.ordinal));
        GroupPlace { ordinal: self.groups.ordinal(index), point: point as u32 }
    }

    /// Values that the cells of a group share: those of the axes that are not compared.
    pub fn group_key(&self, index: usize) -> GroupKey {
        GroupKey(self.group(index).first().map(|cell| self.key_at(cell.ordinal)).unwrap_or_default())
    }

    /// The case of a cell, with names and values.
    pub fn case(&self, cell: Cell) -> Case {
        let variant = self.variant_of(cell.ordinal);
        let axes = self.values_at(cell.ordinal).map(|(axis, value)| (axis.name.clone(), value.clone())).collect();
        let key = CaseKey { experiment: self.experiment.clone(), variant: variant.name.clone(), axes };
        Case { ordinal: u64::from(cell.ordinal), key, group: GroupKey(self.key_at(cell.ordinal)) }
    }

    pub fn variant_of(&self, ordinal: u32) -> &PlannedVariant {
        &self.variants[ordinal as usize % self.variants.len()]
    }

    fn point_of(&self, ordinal: u32) -> usize {
        ordinal as usize / self.variants.len()
    }

    fn recipe_of(&self, ordinal: u32) -> &Recipe {
        &self.recipes[self.variant_of(ordinal).spec]
    }

    /// Shared axes with their values at a cell.
    fn values_at(&self, ordinal: u32) -> impl Iterator<Item = (&Axis, &Value)> {
        let row = self.points.row(self.point_of(ordinal));
        self.axes.iter().zip(row).map(|(axis, &index)| (axis, &axis.values[index as usize]))
    }

    fn key_at(&self, ordinal: u32) -> Vec<(String, Value)> {
        let shared = self.values_at(ordinal).zip(&self.compared).filter(|(_, compared)| !**compared);
        shared.map(|((axis, value), _)| (axis.name.clone(), value.clone())).collect()
    }

    /// Whether this cell is the baseline of its group.
    pub fn is_baseline(&self, ordinal: u32) -> bool {
        self.baseline.as_ref().is_some_and(|(variant, at)| {
            let there = |(name, wanted): &(String, Value)| {
                self.values_at(ordinal).any(|(axis, value)| axis.name == *name && value == wanted)
            };
            self.variant_of(ordinal).name == *variant && at.iter().all(there)
        })
    }

    fn device_scope(&self) -> Scope {
        let attributes = self.device.iter().flat_map(DeviceInfo::attributes);
        attributes.map(|(name, value)| (name, Value::Int(value))).collect()
    }
}
