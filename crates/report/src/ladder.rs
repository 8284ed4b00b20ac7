//! A ladder: variants that each build on the previous one, if most steps gain and few lose.

use runner_results::analyse::Summary;
use runner_types::{Estimate, Regime};

/// A variant with its gain over the previous one.
pub struct Step<'s> {
    pub to: &'s str,
    pub from: &'s str,
    /// Geometric mean of the speedups over all groups.
    pub gain: Estimate,
}

/// Steps in the manifest's order; `None` if the variants are not a ladder.
pub fn ladder(summary: &Summary, regime: Regime) -> Option<Vec<Step<'_>>> {
    let of_regime = summary.standings.iter().filter(|s| s.regime == regime && !s.on_host);
    let steps: Vec<Step<'_>> = of_regime
        .filter_map(|s| Some(Step { to: &s.contender, from: s.previous.as_ref()?, gain: s.step?.geomean }))
        .collect();
    let gains = steps.iter().filter(|step| step.gain.low > 1.0).count();
    let losses = steps.iter().filter(|step| step.gain.high < 1.0).count();
    let is_ladder = steps.len() >= 2 && 2 * gains > steps.len() && 4 * losses < steps.len();
    is_ladder.then_some(steps)
}
