//! A measurement in a line of the records.

use serde::{Deserialize, Serialize};

use super::columns::{Columns, Listed, Numbers};
use super::number::{Interval, Number};
use runner_types::{Estimate, Ratio, Regime, RegimeResult};

/// Regime, time, samples, runs per sample, buffer sets, working set, SM clock, discarded samples.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResultLine(
    pub Regime,
    pub Interval,
    pub u32,
    pub u32,
    pub u32,
    pub Option<u64>,
    pub Option<(u32, u32)>,
    pub u32,
);

/// The other case, the speedup, the ends of the wider interval around the same point estimate, and the noise. In
/// `against_previous`, the noise is present only if it differs from the noise of `against_baseline`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RatioLine(Listed, Interval, Option<[Number; 2]>, Option<Number>);

impl ResultLine {
    pub fn new(result: &RegimeResult) -> Self {
        let clock = result.sm_clock.map(|clock| (clock.median, clock.least));
        let RegimeResult { regime, samples, launches, sets, working_set, discarded, .. } = *result;
        Self(regime, Interval(result.time), samples, launches, sets, working_set, clock, discarded)
    }
}

impl RatioLine {
    /// Omits the noise if it equals `stated`, which is stored elsewhere.
    pub fn new(ratio: &Ratio, stated: Option<f64>, numbers: &Numbers<'_>) -> Self {
        Self(
            numbers.number_basis(&ratio.against),
            Interval(ratio.speedup),
            ratio.reproducible.map(|wider| [wider.low, wider.high].map(Number)),
            ratio.noise.filter(|own| Some(*own) != stated).map(Number),
        )
    }

    /// Converts to a ratio; `noise` applies if the line states none. Fails if the header lacks the other case.
    pub fn ratio(self, noise: Option<f64>, columns: &Columns) -> Result<Ratio, String> {
        let Self(against, Interval(speedup), reproducible, own) = self;
        let wider = |[low, high]: [Number; 2]| Estimate { low: low.0, high: high.0, ..speedup };
        Ok(Ratio {
            against: against.text(&columns.against, "cases that ratios are against")?,
            speedup,
            reproducible: reproducible.map(wider),
            noise: own.map(|noise| noise.0).or(noise),
        })
    }
}
