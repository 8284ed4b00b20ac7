//! Ratios between a case and its base, measured in the same rounds of one run.

use std::collections::HashMap;

use super::{AnalyseError, CONFIDENCE, Known, Row, by_group, comparison_noise, noise, rows_of, suspect};
use crate::analyse::attempts::{self, Folded};
use crate::analyse::bootstraps::Bootstraps;
use crate::analyse::ratios::speedup;
use crate::journal::History;
use runner_types::{CaseKey, Estimate, Regime};

/// Ratio of a case to its base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedRatio {
    /// Time of the base divided by the case's, formed within shared rounds.
    pub speedup: Estimate,
    /// Noise of the A/A control, as a fraction; `None` without a control.
    pub noise: Option<f64>,
}

/// Ratio of every case, in each regime, to the case that `base_of` names. Fails if no run ever started.
pub fn paired_ratios(
    history: History,
    base_of: impl Fn(&CaseKey) -> CaseKey,
) -> Result<HashMap<(CaseKey, Regime), PairedRatio>, AnalyseError> {
    let Folded { mut header, environment, mut cases, ratios, .. } =
        attempts::fold(history).ok_or(AnalyseError::NoRun)?;
    for case in &mut cases {
        suspect(case, &environment);
    }
    let by_case: Vec<Vec<Row<'_>>> = cases.iter().map(rows_of).collect();
    (header.noise, _) = noise(&by_case, &ratios);
    let bootstraps = Bootstraps::new(&ratios);
    let known = Known { header: &header, spread: None, bootstraps: &bootstraps };
    let groups = by_group(&by_case);
    let ratio = |row: &Row<'_>| {
        let (key, side) = (&row.settled.case.key, row.side?);
        let (regime, group) = (side.measurement.regime, groups.get(&row.settled.case.group)?);
        let named = base_of(key);
        let mut of_base = group.iter().filter(|other| other.settled.case.key == named).filter_map(|other| other.side);
        let base = of_base.find(|base| base.measurement.regime == regime)?;
        let noises = [side, base].map(|side| comparison_noise(known, side, group));
        let noise = noises.into_iter().flatten().reduce(f64::max);
        Some(((key.clone(), regime), PairedRatio { speedup: speedup(&bootstraps, base, side, CONFIDENCE)?, noise }))
    };
    Ok(by_case.iter().flatten().filter_map(ratio).collect())
}
