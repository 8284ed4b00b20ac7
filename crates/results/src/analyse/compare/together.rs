//! Compares base and new measured in the same rounds of one run.

use std::collections::{HashMap, HashSet};

use super::evidence::Evidence;
use super::time::{self, TimeChange};
use super::{CauseKind, Change, Comparison, DifferenceKind, Differs, Fact, Kind, Options, Pair, Row, decide, rows};
use crate::analyse::{AnalyseError, PairedRatio, paired_ratios};
use crate::journal::History;
use runner_types::{Case, CaseKey, CaseRecord, Claim, ComparisonRules, Records, Regime};

/// A run, split into base and new.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    base: Records,
    new: Records,
    ratios: HashMap<(CaseKey, Regime), PairedRatio>,
    /// Cases whose base was not run because the two are incomparable, with the differences.
    pub refused: HashMap<CaseKey, Vec<Differs<DifferenceKind>>>,
    /// Cases whose base ran on inputs that differ from its own.
    pub on_new_inputs: HashSet<CaseKey>,
    /// Cases of the base that are not in the run.
    pub gone: Vec<Case>,
    /// Name in the base of each renamed variant.
    pub renamed: HashMap<String, String>,
}

impl Together {
    /// Splits a run whose base variants end in `suffix`. Fails if the history contains no run.
    pub fn split(history: History, records: &Records, suffix: &str) -> Result<Self, AnalyseError> {
        let base_of = |key: &CaseKey| CaseKey { variant: format!("{}{suffix}", key.variant), ..key.clone() };
        let ratios = paired_ratios(history, base_of)?;
        let (base, new) = records.cases.iter().cloned().partition(|record| record.case.key.variant.ends_with(suffix));
        let with_cases = |cases: Vec<CaseRecord>| Records { cases, ..records.clone() };
        let (mut base, new) = (with_cases(base), with_cases(new));
        for record in &mut base.cases {
            let variant = &mut record.case.key.variant;
            variant.truncate(variant.len() - suffix.len());
            // These ratios refer to cases of the new side.
            if let Some(result) = &mut record.result {
                (result.against_baseline, result.against_previous) = (None, None);
            }
        }
        let (refused, on_new_inputs) = (HashMap::new(), HashSet::new());
        Ok(Self { base, new, ratios, refused, on_new_inputs, gone: Vec::new(), renamed: HashMap::new() })
    }

    /// Sets the claims and acceptances of the base's manifest. The records have those of the manifest that was run.
    pub fn set_base_rules(&mut self, claims: Vec<Claim>, comparison: ComparisonRules) {
        self.base.header.claims = claims;
        self.base.header.comparison = comparison;
    }

    fn rows(&self, pair: Pair<'_>, options: &Options) -> Vec<Row> {
        let mut all = rows(pair, Some(self), options);
        for Row { change, .. } in &mut all {
            let variant = &change.case.key.variant;
            if let Some(before) = self.renamed.get(variant) {
                let [base, new] = [before, variant].map(|name| Fact::Text(name.clone()));
                change.causes.insert(0, Differs { what: CauseKind::Variant, base, new });
            }
        }
        // A base that fails on new inputs need not have failed on its own.
        for Row { change, .. } in all.iter_mut().filter(|row| self.on_new_inputs.contains(&row.change.case.key)) {
            change.is_base_unknown = matches!(change.kind, Kind::StillWrong | Kind::Fixed);
            change.kind = match change.kind {
                Kind::StillWrong => Kind::NewlyWrong,
                Kind::Fixed => Kind::OtherValues,
                other => other,
            };
        }
        for Row { change, .. } in all.iter_mut().filter(|row| row.change.kind == Kind::New) {
            if let Some(differences) = self.refused.get(&change.case.key) {
                change.kind = Kind::Incomparable;
                change.differences.clone_from(differences);
            }
        }
        all
    }

    pub(super) fn time(&self, sides: [&CaseRecord; 2], options: &Options) -> Option<(TimeChange, Option<Evidence>)> {
        let new = sides[1];
        let ratio = self.ratios.get(&(new.case.key.clone(), new.result.as_ref()?.regime))?;
        time::paired(sides, ratio, options)
    }
}

/// Compares base and new of each run. The times of all runs are judged together, as in [`compare`](super::compare).
pub fn compare_together(runs: &[Together], options: &Options) -> Comparison {
    let pairs: Vec<Pair<'_>> = runs.iter().map(|together| Pair { base: &together.base, new: &together.new }).collect();
    let all = pairs.iter().zip(runs).map(|(pair, together)| together.rows(*pair, options)).collect();
    let mut comparison = decide(&pairs, all, options);
    for (report, together) in comparison.reports.iter_mut().zip(runs) {
        report.is_paired = true;
        report.may_be_two_gpus = false;
        report.limits.iter_mut().for_each(|limits| limits.lacks_spread = false);
        report.changes.extend(together.gone.iter().map(|case| Change::new(case.clone(), Kind::Gone)));
    }
    comparison
}

/// Ignores differing arguments. Both sides had the same buffers and checks in the run, so if the hashes of their inputs
/// differ, only the launches' arguments do.
pub(super) fn allow_arguments(change: &mut Change) {
    let shared = |what| matches!(what, DifferenceKind::Inputs | DifferenceKind::Check);
    if change.differences.iter().any(|difference| difference.what == DifferenceKind::Inputs) {
        change.causes.push(Differs { what: CauseKind::Arguments, base: Fact::Absent, new: Fact::Absent });
    }
    change.differences.retain(|difference| !shared(difference.what));
}
