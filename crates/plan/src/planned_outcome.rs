//! Planned outcome of each cell, before anything runs: kept, excluded by a rule or by a `requires`, or undecided.
//!
//! Only conditions are evaluated here, in parallel over the points. Resolving a cell may still change its outcome.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use runner_experiment::Manifest;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::{ExprError, Scope};
use runner_types::Value;

use super::recipe::{self, Needs, Recipe, Rule};
use super::{Plan, PlanOptions, PlannedVariant};

/// A cell of the matrix, which may become a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Index in the expansion. Filters do not change it, so a cell has the same ordinal in a narrowed plan.
    pub ordinal: u32,
    pub outcome: PlannedOutcome,
}

/// Whether a cell runs and, if not, which condition of the manifest prevents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedOutcome {
    /// Runs, unless resolving it fails.
    Kept,
    /// Excluded by the `[[exclude]]` rule with this index.
    Excluded(u16),
    /// The variant's `requires` with this index is false.
    Unmet(u16),
    /// A `requires` cannot be evaluated. Resolving the cell produces the error.
    Unresolved,
    /// A rule or `requires` uses device attributes, and the device is unknown.
    NeedsDevice,
}

/// Points per parallel task.
const CHUNK: usize = 2048;

/// Maximum number of distinct errors reported per condition.
const SHOWN: usize = 4;

/// Decides the outcome of every cell, and drops cells that the filter excludes. Fails if a rule or a filter does not
/// evaluate to a Boolean for some cell.
pub fn decide(
    plan: &Plan,
    manifest: &Manifest,
    filter: Option<&Rule>,
    options: &PlanOptions,
) -> Result<Vec<Cell>, Vec<Diagnostic>> {
    let matrix = Matrix::new(plan, filter);
    let chunks: Vec<Range<usize>> =
        (0..plan.points.len()).step_by(CHUNK).map(|at| at..(at + CHUNK).min(plan.points.len())).collect();
    let decided: Vec<(Vec<Cell>, Faults)> = chunks.into_par_iter().map(|points| matrix.chunk(points)).collect();
    let mut faults = Faults::default();
    let mut cells = Vec::with_capacity(decided.iter().map(|(cells, _)| cells.len()).sum());
    for (chunk, more) in decided {
        cells.extend(chunk);
        faults.merge(more);
    }
    let items = faults.into_diagnostics(plan, manifest, options);
    if items.is_empty() { Ok(cells) } else { Err(items) }
}

struct Matrix<'a> {
    plan: &'a Plan,
    filter: Option<&'a Rule>,
    base: Scope,
    axes: Vec<Arc<str>>,
    device_known: bool,
}

/// A condition could not be evaluated, so the cell has no outcome.
struct Failed;

impl<'a> Matrix<'a> {
    fn new(plan: &'a Plan, filter: Option<&'a Rule>) -> Self {
        let axes = plan.axes.iter().map(|axis| axis.name.as_str().into()).collect();
        Self { plan, filter, base: plan.device_scope(), axes, device_known: plan.device.is_some() }
    }

    fn chunk(&self, rows: Range<usize>) -> (Vec<Cell>, Faults) {
        let variants = &self.plan.variants;
        let (mut cells, mut faults) = (Vec::with_capacity(rows.len() * variants.len()), Faults::default());
        let mut scope = self.base.clone();
        for point in rows.map(|row| self.plan.points.number(row)) {
            scope.truncate(self.base.len());
            self.place(point, &mut scope);
            let shared = scope.len();
            for (index, variant) in variants.iter().enumerate().filter(|(_, variant)| variant.selected) {
                let ordinal = (point * variants.len() + index) as u32;
                scope.truncate(shared);
                let cell = CellView { matrix: self, ordinal, point, variant };
                if let Ok(Some(outcome)) = cell.outcome(&mut scope, &mut faults) {
                    cells.push(Cell { ordinal, outcome });
                }
            }
        }
        (cells, faults)
    }

    /// Sets the shared axes to the values at a point.
    fn place(&self, point: usize, scope: &mut Scope) {
        let row = self.plan.points.row(point);
        for ((name, axis), &index) in self.axes.iter().zip(&self.plan.axes).zip(row) {
            scope.set(name.clone(), axis.values[index as usize].clone());
        }
    }
}

struct CellView<'a> {
    matrix: &'a Matrix<'a>,
    ordinal: u32,
    point: usize,
    variant: &'a PlannedVariant,
}

impl CellView<'_> {
    /// Outcome of the cell; `None` if the filter drops it.
    fn outcome(&self, scope: &mut Scope, faults: &mut Faults) -> Result<Option<PlannedOutcome>, Failed> {
        let recipe = &self.matrix.plan.recipes[self.variant.spec];
        self.variant.place(scope);
        if let Some(filter) = self.matrix.filter {
            let Some(needs) = &filter.needs[self.variant.spec] else { return Ok(None) };
            if !self.holds(Condition::Filter, filter, needs, scope, faults)? {
                return Ok(None);
            }
        }
        let mut open = false;
        let rules: &[Rule] =
            if self.matrix.plan.points.is_included(self.point) { &[] } else { &self.matrix.plan.rules };
        for (index, rule) in rules.iter().enumerate() {
            let Some(needs) = &rule.needs[self.variant.spec] else { continue };
            if self.is_open(needs) {
                open = true;
            } else if self.holds(Condition::Exclude(index as u16), rule, needs, scope, faults)? {
                return Ok(Some(PlannedOutcome::Excluded(index as u16)));
            }
        }
        if open || (!recipe.requires.is_empty() && self.is_open(&recipe.guard)) {
            return Ok(Some(PlannedOutcome::NeedsDevice));
        }
        Ok(Some(self.required(recipe, scope)))
    }

    /// Whether a condition needs a device and none is known.
    fn is_open(&self, needs: &Needs) -> bool {
        !self.matrix.device_known && !needs.device.is_empty()
    }

    fn required(&self, recipe: &Recipe, scope: &mut Scope) -> PlannedOutcome {
        if recipe.requires.is_empty() {
            return PlannedOutcome::Kept;
        }
        match unmet(recipe, self.variant, scope) {
            Ok(None) => PlannedOutcome::Kept,
            Ok(Some(index)) => PlannedOutcome::Unmet(index as u16),
            Err(_) => PlannedOutcome::Unresolved,
        }
    }

    fn holds(
        &self,
        condition: Condition,
        rule: &Rule,
        needs: &Needs,
        scope: &mut Scope,
        faults: &mut Faults,
    ) -> Result<bool, Failed> {
        let recipe = &self.matrix.plan.recipes[self.variant.spec];
        rule.holds(recipe, self.variant, needs, scope).map_err(|error| {
            faults.add(condition, self.ordinal, error);
            Failed
        })
    }
}

impl PlannedVariant {
    /// Sets the axes that only this variant has.
    pub fn place(&self, scope: &mut Scope) {
        for (name, value) in &self.own {
            scope.set(name.clone(), value.clone());
        }
    }

    /// Sets the variant's name, if needed.
    pub fn place_name(&self, needs: &Needs, scope: &mut Scope) {
        if needs.variant {
            scope.set(recipe::VARIANT, Value::Str(self.name.clone()));
        }
    }
}

impl Rule {
    /// Whether the condition is true for a cell whose axes are set in the scope.
    pub(super) fn holds(
        &self,
        recipe: &Recipe,
        variant: &PlannedVariant,
        needs: &Needs,
        scope: &mut Scope,
    ) -> Result<bool, ExprError> {
        variant.place_name(needs, scope);
        recipe.bind(needs, scope)?;
        self.program.evaluate_bool(scope)
    }
}

/// The first `requires` of a variant that is false for a cell whose axes are set in the scope.
pub fn unmet(recipe: &Recipe, variant: &PlannedVariant, scope: &mut Scope) -> Result<Option<usize>, ExprError> {
    variant.place_name(&recipe.guard, scope);
    recipe.bind(&recipe.guard, scope)?;
    for (index, condition) in recipe.requires.iter().enumerate() {
        if !condition.evaluate_bool(scope)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Condition {
    Filter,
    Exclude(u16),
}

/// Conditions that could not be evaluated. For each condition and its failing part: the first cell and the number of
/// cells.
#[derive(Default)]
struct Faults(BTreeMap<(Condition, Option<(usize, usize)>), Instance>);

struct Instance {
    first: u32,
    error: ExprError,
    cells: u64,
}

impl Faults {
    fn add(&mut self, condition: Condition, first: u32, error: ExprError) {
        let part = error.at.as_ref().map(|at| (at.start, at.end));
        self.insert((condition, part), Instance { first, error, cells: 1 });
    }

    fn insert(&mut self, key: (Condition, Option<(usize, usize)>), instance: Instance) {
        match self.0.get_mut(&key) {
            // Chunks are merged in order, so the existing entry has the earlier cell.
            Some(known) => known.cells += instance.cells,
            None => {
                self.0.insert(key, instance);
            }
        }
    }

    fn merge(&mut self, later: Self) {
        for (key, instance) in later.0 {
            self.insert(key, instance);
        }
    }

    fn into_diagnostics(self, plan: &Plan, manifest: &Manifest, options: &PlanOptions) -> Vec<Diagnostic> {
        let mut shown: BTreeMap<Condition, usize> = BTreeMap::new();
        let mut items = Vec::new();
        for ((condition, _), instance) in self.0 {
            let count = shown.entry(condition).or_default();
            *count += 1;
            if *count > SHOWN {
                continue;
            }
            let fault = match condition {
                Condition::Filter => {
                    recipe::option_fault(options.filter.as_deref().unwrap_or_default(), instance.error)
                }
                Condition::Exclude(index) => manifest.exclude[index as usize].when.fault(instance.error),
            };
            let key = plan.case(Cell { ordinal: instance.first, outcome: PlannedOutcome::Kept }).key;
            let others = match instance.cells - 1 {
                0 => String::new(),
                1 => " and at another cell".to_owned(),
                more => format!(" and at {more} more cells"),
            };
            items.push(match fault.span {
                Some(_) => fault.label(format!("at {key}{others}")),
                None => Diagnostic { message: format!("{} at {key}{others}", fault.message), ..fault },
            });
        }
        items
    }
}
