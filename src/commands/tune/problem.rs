//! The space of a search: the cases of one group, each a point.

use std::collections::HashSet;

use search::replay::Row;
use search::space::{Parameter, Point, Space};

use crate::commands::Failure;
use crate::commands::cli::TuneArgs;
use crate::experiment::Manifest;
use crate::model::{BackendKind, CaseJob, CaseKey, Environment, GroupJob, Outcome, Value};
use crate::plan::ResolvedGroup;

use super::log::Header;

/// What the simulator counts where no objective is named.
const COUNTED: &str = "inst_executed";
/// The device time that a sample of a configuration may take, in seconds.
const BRIEF: f64 = 0.05;
/// How many samples a configuration has at most, and at least.
const SAMPLES: [u32; 2] = [7, 3];
/// A configuration has no more samples once all are longer than the best time by this factor: as much as a single sample
/// may be off.
const DROPPED: f64 = 1.25;

/// The cases of a group as a space.
#[derive(Debug)]
pub struct Problem {
    /// The configurations.
    pub space: Space,
    /// What is minimised.
    pub objective: String,
    /// What the cases share.
    group: GroupJob,
    /// The case of each point, by the number of the point.
    cases: Vec<usize>,
    /// Why the other cells of the group are no configurations, with how many there are.
    pub excluded: Vec<(String, usize)>,
}

impl Problem {
    pub fn new(groups: &[ResolvedGroup], backend: BackendKind, args: &TuneArgs) -> Result<Self, Failure> {
        let [group] = groups else {
            return Err(Failure::usage(format!(
                "the manifest has {} groups, and a search has one: name the axes of the space in `compare`, and choose \
                 one value of each other axis with --set",
                groups.len()
            )));
        };
        let objective = match backend {
            BackendKind::Sim => args.objective.clone().unwrap_or_else(|| COUNTED.to_owned()),
            _ if args.objective.is_some() => {
                return Err(Failure::usage(
                    "--objective names a counter of the simulator; on a GPU the time is minimised",
                ));
            }
            _ => "time".to_owned(),
        };
        let mut excluded: Vec<(String, usize)> = Vec::new();
        for (_, outcome) in &group.settled {
            let reason = reason(outcome);
            match excluded.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => excluded.push((reason, 1)),
            }
        }
        let (space, cases) = space(&group.job.cases)?;
        Ok(Self { space, objective, group: group.job.clone(), cases, excluded })
    }

    /// Returns the case of a point.
    pub fn case(&self, point: u64) -> &CaseJob {
        &self.group.cases[self.cases[point as usize]]
    }

    /// Returns the point of a case.
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

    /// Returns the baseline, if it is one of the space.
    pub fn baseline(&self) -> Option<u64> {
        self.group.baseline.and_then(|place| self.point(&self.group.cases[place].case.key))
    }

    /// Makes a group of cases that are linked with their code, to be measured briefly. `best` is the best objective so far.
    pub fn batch(&self, mut cases: Vec<CaseJob>, best: Option<f64>) -> GroupJob {
        for case in &mut cases {
            let measure = &mut case.measure;
            measure.regimes.truncate(1);
            measure.budget = measure.budget.min(BRIEF);
            measure.max_samples = measure.max_samples.min(SAMPLES[0]);
            measure.min_samples = measure.min_samples.min(SAMPLES[1]);
            measure.energy = false;
            measure.drop_above = best.filter(|_| self.objective == "time").map(|best| best * 1e6 * DROPPED);
        }
        GroupJob { cases, baseline: None, ..self.bare() }
    }

    /// Returns the group without its cases.
    fn bare(&self) -> GroupJob {
        let GroupJob { ordinal, key, seed, .. } = &self.group;
        GroupJob { ordinal: *ordinal, key: key.clone(), cases: Vec::new(), baseline: None, seed: *seed }
    }

    /// Returns the cases of the best points, and the baseline.
    pub fn finalists(&self, best: &[u64]) -> HashSet<CaseKey> {
        let points = best.iter().copied().chain(self.baseline());
        points.map(|point| self.case(point).case.key.clone()).collect()
    }

    /// Returns what the evaluations of a search depend on.
    pub fn header(&self, manifest: &Manifest, environment: &Environment, args: &TuneArgs) -> Header {
        Header {
            experiment: manifest.name.clone(),
            manifest: manifest.hash.clone(),
            device: environment.device.name.clone(),
            narrowed: args.narrowing.describe().unwrap_or_default(),
            objective: self.objective.clone(),
        }
    }
}

/// Returns why a case has no objective.
pub fn reason(outcome: &Outcome) -> String {
    let name = outcome.name().replace('_', " ");
    outcome.words().map_or(name.clone(), |words| format!("{name}: {}", words.lines().next().unwrap_or_default()))
}

fn space(cases: &[CaseJob]) -> Result<(Space, Vec<usize>), Failure> {
    let all: Vec<Vec<(String, ::search::space::Value)>> = cases.iter().map(|case| values(&case.case.key)).collect();
    let Some(first) = all.first() else {
        return Err(Failure::usage("no case of the manifest can run on this device"));
    };
    let names: Vec<String> = first.iter().map(|(name, _)| name.clone()).collect();
    let rows: Vec<Row> = all
        .iter()
        .map(|values| Row {
            values: values.iter().map(|(_, value)| value.clone()).collect(),
            outcome: ::search::history::Outcome::Failed,
            seconds: None,
        })
        .collect();
    let column = |place: usize| rows.iter().map(|row| row.values[place].clone()).collect();
    let parameters: Vec<Parameter> =
        names.into_iter().enumerate().map(|(place, name)| Parameter::new(name, column(place))).collect();
    let points: Vec<Point> = rows
        .iter()
        .map(|row| {
            let places = row.values.iter().zip(&parameters);
            places.map(|(value, parameter)| parameter.position(value).unwrap_or_default()).collect()
        })
        .collect();
    let space = Space::from_points(parameters, points.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    let mut of_points = vec![0; space.len() as usize];
    for (place, point) in points.iter().enumerate() {
        if let Some(number) = space.number(point) {
            of_points[number as usize] = place;
        }
    }
    Ok((space, of_points))
}

/// Returns the values that tell a case from others: its axes, and its variant.
pub fn values(key: &CaseKey) -> Vec<(String, ::search::space::Value)> {
    let axes = key.axes.iter().map(|(name, value)| (name.clone(), value_of(value)));
    axes.chain([("variant".to_owned(), ::search::space::Value::Text(key.variant.clone()))]).collect()
}

fn value_of(value: &Value) -> ::search::space::Value {
    match value {
        Value::Int(value) => ::search::space::Value::Int(*value),
        Value::Float(value) => ::search::space::Value::Real(*value),
        Value::Bool(value) => ::search::space::Value::Bool(*value),
        other => ::search::space::Value::Text(other.to_string()),
    }
}
