//! A row of a report's tables: a case in one regime, or one launch of its sequence.
//!
//! Columns compute their cells from a row and its context, and do not know which table they are in.

use super::quantities::time_unit;
use super::units::{EnergyUnit, TimeUnit};
use runner_results::analyse::{self, GroupSummary};
use runner_types::{CaseRecord, Estimate, LaunchRecord, Ratio, Records, RegimeResult};

/// What cells depend on besides their row.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub records: &'a Records,
    /// Group in a table of `report.md`; `None` for a table of all cases.
    pub group: Option<&'a GroupSummary>,
    pub time: TimeUnit,
    pub energy: EnergyUnit,
}

impl<'a> Context<'a> {
    pub fn of_all(records: &'a Records) -> Self {
        let times = records.cases.iter().filter_map(|record| record.result.as_ref()).map(|result| result.time.point);
        let energies = records.cases.iter().filter_map(|record| record.energy).map(|energy| energy.per_run);
        Self { records, group: None, time: TimeUnit::choose(times), energy: EnergyUnit::choose(energies) }
    }

    pub fn of_group(records: &'a Records, group: &'a GroupSummary) -> Self {
        let energies = group.members.iter().filter_map(|i| records.cases[*i].energy).map(|energy| energy.per_run);
        let time = time_unit(records, &group.members);
        Self { records, group: Some(group), time, energy: EnergyUnit::choose(energies) }
    }
}

/// The case or launch that a row shows.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub record: &'a CaseRecord,
    /// Index of the launch in a sequence; `None` for the case itself.
    pub part: Option<usize>,
    /// Whether the case is the fastest of its group.
    pub is_best: bool,
    pub is_baseline: bool,
}

impl<'a> Row<'a> {
    pub fn from_case(records: &Records, record: &'a CaseRecord) -> Self {
        let is_baseline = analyse::is_baseline(&records.header, &record.case);
        Self { record, part: None, is_best: false, is_baseline }
    }

    pub fn launches(self) -> impl Iterator<Item = Self> {
        (0..self.record.launches.len()).map(move |part| Self { part: Some(part), is_best: false, ..self })
    }

    /// The record, if this is the case's own row.
    pub fn case(&self) -> Option<&'a CaseRecord> {
        self.part.is_none().then_some(self.record)
    }

    /// The result, if this is the case's own row.
    pub fn result(&self) -> Option<&'a RegimeResult> {
        self.case()?.result.as_ref()
    }

    pub fn time(&self) -> Option<&'a Estimate> {
        let result = self.record.result.as_ref()?;
        match self.part {
            None => Some(&result.time),
            Some(part) => result.each.get(part),
        }
    }

    /// The row's launch; `None` for a sequence.
    pub fn launch(&self) -> Option<&'a LaunchRecord> {
        match (self.part, self.record.launches.as_slice()) {
            (Some(part), launches) => launches.get(part),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }

    /// The row's launch; for a sequence of equal launches, the first.
    pub fn common_launch(&self) -> Option<&'a LaunchRecord> {
        self.launch().or_else(|| self.case()?.repeated().map(|(launch, _)| launch))
    }

    pub fn against_baseline(&self) -> Option<&'a Ratio> {
        self.result()?.against_baseline.as_ref()
    }

    /// Ratio to the previous step, in an experiment with steps.
    pub fn against_previous(&self, context: &Context<'_>) -> Option<&'a Ratio> {
        self.result()?.against_previous.as_ref().filter(|_| context.records.header.has_steps())
    }
}
