//! The space of a search: the cases of one group, each as a point.

use std::collections::{BTreeSet, HashMap, HashSet};

use search::space::{Parameter, Point, Space};

use crate::candidates::Candidates;
use crate::error::TuneError;
use crate::header::Header;
use crate::identity::Identity;
use crate::late::Late;
use crate::objective::{Objective, measure_by};
use crate::settings::Settings;
use crate::values::{Values, configuration, values};
use runner_experiment::Manifest;
use runner_plan::{Cell, Plan, bare_group, resolve_case};
use runner_types::{Case, CaseJob, CaseKey, Environment, GroupJob, Outcome};

/// Maximum device time for sampling a configuration, in seconds.
const BRIEF: f64 = 0.05;
/// Minimum samples per configuration.
const FEWEST: u32 = 3;

/// The cases of a group as a search space.
#[derive(Debug)]
pub struct Problem<'a> {
    pub space: Space,
    pub settings: &'a Settings,
    /// Configurations to evaluate last.
    pub late: Late,
    manifest: &'a Manifest,
    plan: &'a Plan,
    /// The group without its cases.
    group: GroupJob,
    /// Cell of each point, by the index of the point.
    cells: Vec<Cell>,
}

impl<'a> Problem<'a> {
    pub fn new(
        manifest: &'a Manifest,
        plan: &'a Plan,
        candidates: &Candidates,
        (settings, late): (&'a Settings, &[Values]),
    ) -> Result<Self, TuneError> {
        let (space, cells) = space(plan, &candidates.cells)?;
        let group = bare_group(manifest, plan, candidates.group);
        let mut problem = Self { space, settings, late: Late::default(), manifest, plan, group, cells };
        let late: BTreeSet<u64> = late.iter().filter_map(|values| problem.find(values)).collect();
        problem.late = Late::draw(late);
        Ok(problem)
    }

    #[must_use]
    pub fn objectives(&self) -> &'a [Objective] {
        &self.settings.objectives
    }

    pub fn case(&self, point: u64) -> Case {
        self.plan.case(self.cells[point as usize])
    }

    /// Resolves the case of a point. This succeeded before, so it fails only if a file has changed.
    pub fn resolve(&self, point: u64) -> Result<CaseJob, Outcome> {
        resolve_case(self.manifest, self.plan, self.cells[point as usize])
    }

    pub fn point(&self, key: &CaseKey) -> Option<u64> {
        let values = values(key);
        let point: Option<Point> = self
            .space
            .parameters()
            .iter()
            .map(|parameter| {
                let (_, value) = values.iter().find(|(name, _)| *name == parameter.name)?;
                parameter.position(value)
            })
            .collect();
        self.space.number(&point?)
    }

    /// The point with these values. Parameters that are not named must have only one value, since another size has the
    /// same configurations.
    pub fn find(&self, values: &Values) -> Option<u64> {
        let parameters = self.space.parameters().iter();
        let point: Option<Point> = parameters
            .map(|parameter| match values.iter().find(|(name, _)| *name == parameter.name) {
                _ if parameter.values.len() == 1 => Some(0),
                Some((_, value)) => parameter.position(value),
                None => None,
            })
            .collect();
        self.space.number(&point?)
    }

    /// Values of a point, except those that all points of the group share.
    pub fn configuration(&self, point: u64) -> Values {
        configuration(&self.case(point))
    }

    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Formats the axes that all points share.
    pub fn size(&self) -> String {
        self.group.key.to_string()
    }

    /// The baseline, if it is in the space.
    pub fn baseline(&self) -> Option<u64> {
        self.cells.iter().position(|cell| self.plan.is_baseline(cell.ordinal)).map(|point| point as u64)
    }

    /// Prepares a group of linked cases for a brief measurement. `best` is the best objective so far.
    pub fn batch(&self, mut cases: Vec<CaseJob>, best: Option<f64>) -> GroupJob {
        for case in &mut cases {
            let measure = &mut case.measure;
            measure.regimes.truncate(1);
            measure.budget = measure.budget.min(BRIEF);
            measure.max_samples = measure.max_samples.min(self.settings.samples);
            measure.min_samples = measure.min_samples.min(FEWEST).min(measure.max_samples);
            measure.energy = false;
            // With other objectives, a slow configuration may still be the best.
            let drops = self.objectives() == [Objective::Time];
            measure.drop_above = best.filter(|_| drops).map(|best| best * 1e6 * self.settings.drop_above);
            measure_by(self.objectives(), case);
        }
        GroupJob { cases, ..self.group.clone() }
    }

    /// Everything that the evaluations of the search depend on. `narrowed` describes the options that narrow the plan.
    #[must_use]
    pub fn header(&self, environment: &Environment, identity: &Identity, narrowed: Option<String>) -> Header {
        Header {
            experiment: self.manifest.name.clone(),
            manifest: identity.manifest.clone(),
            files: identity.files.clone(),
            device: environment.device.name.clone(),
            narrowed: narrowed.unwrap_or_default(),
            objective: self.settings.objective_names(),
            counts: if self.objectives().iter().any(|objective| objective.of_ptx().is_some()) {
                "the machine code's, or the PTX's of all if one is not derived".to_owned()
            } else {
                String::new()
            },
            size: self.size(),
        }
    }
}

/// Builds the space of the cells, and the cell of each point. Computes values repeatedly, since those of a million
/// cells would fill the memory.
fn space(plan: &Plan, candidates: &[Cell]) -> Result<(Space, Vec<Cell>), TuneError> {
    let values_of = |cell: Cell| values(&plan.case(cell).key);
    let Some(&first) = candidates.first() else {
        return Err(TuneError::Usage("no case of the manifest can run on this device".to_owned()));
    };
    let names: Vec<String> = values_of(first).into_iter().map(|(name, _)| name).collect();
    let mut columns = vec![(Vec::new(), HashSet::new()); names.len()];
    for &cell in candidates {
        for ((column, seen), (_, value)) in columns.iter_mut().zip(values_of(cell)) {
            if !seen.contains(&value) {
                seen.insert(value.clone());
                column.push(value);
            }
        }
    }
    let columns = columns.into_iter().map(|(column, _)| column);
    let parameters: Vec<Parameter> =
        names.into_iter().zip(columns).map(|(name, column)| Parameter::new(name, column)).collect();
    let places: Vec<HashMap<_, u16>> =
        parameters.iter().map(|parameter| parameter.values.iter().cloned().zip(0..).collect()).collect();
    let point_of = |cell: Cell| -> Point {
        values_of(cell).iter().zip(&places).map(|((_, value), places)| places[value]).collect()
    };
    let points = candidates.iter().map(|&cell| point_of(cell)).collect();
    let space = Space::from_points(parameters, points).map_err(|error| TuneError::Usage(error.to_string()))?;
    let mut cells = vec![first; space.len() as usize];
    for &cell in candidates {
        if let Some(number) = space.number(&point_of(cell)) {
            cells[number as usize] = cell;
        }
    }
    Ok((space, cells))
}
