//! The samples of one case in one regime, and when to stop sampling.
//!
//! Sampling ends when the median's interval is as narrow as the manifest requires, and so is the ratio's to the
//! baseline, unless that would take too many more samples. It also ends at the maximum number of samples, at the time
//! budget, or when the samples show that they would not converge within these limits. Independent of any device.

use super::audit::Audit;
use super::input_sets::FIRST;
use runner_backend::{Series, Timing};
use runner_stats::median_interval;
use runner_types::{Look, MeasurePlan, Note, Regime, Round, ThrottleReason, Unit};

/// Confidence level of the interval that ends the sampling.
const CONFIDENCE: f64 = 0.95;

/// Minimum number of samples before a case may be given up.
const JUDGED_FROM: usize = 60;

/// A case is given up if it would need this many times the samples that its limits allow.
const BEYOND_HOPE: f64 = 8.0;

/// Minimum number of samples for reporting two modes.
const MODES_FROM: usize = 20;

/// Largest time that counts as launch-bound, as a multiple of the interval between empty launches. On an H200 that
/// interval is 1.9 µs, and a copy that takes 1.5 µs alone is launched every 2.0 µs.
const LAUNCH_BOUND: f64 = 1.25;

/// Minimum number of samples before a search drops a case.
const DROPPED_FROM: usize = 2;

/// Maximum number of samples for a case's ratio, as a multiple of the number that its own median needed.
const MOST_FOR_RATIO: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Variant,
    /// The baseline measured again as if it were another variant: its ratios to the baseline are noise.
    Control,
}

pub struct CaseSamples {
    /// Index of the case in the group.
    pub place: usize,
    pub role: Role,
    pub regime: Regime,
    pub unit: Unit,
    pub series: Series,
    pub rounds: Vec<Round>,
    /// Input set of the last sample.
    pub set: usize,
    /// Samples discarded because the device was throttled.
    pub discarded: Vec<Round>,
    pub throttling: Throttling,
    pub audit: Audit,
    pub looks: Vec<Look>,
    /// Total time of the samples, or of taking them if that is more, in nanoseconds.
    spent: f64,
    /// Number of samples at which to compute the interval next; each computation costs n² log n.
    look_at: usize,
    /// Most recent half-width of the interval, as a fraction of the median.
    pub half_width: Option<f64>,
    /// Whether the ratio to the baseline was precise enough when last computed.
    ratio_is_narrow: bool,
    /// Number of samples at which the median was precise enough.
    precise_at: Option<usize>,
    pub done: bool,
}

impl CaseSamples {
    pub fn new(place: usize, regime: Regime, unit: Unit, series: Series) -> Self {
        Self {
            place,
            role: Role::Variant,
            regime,
            unit,
            series,
            rounds: Vec::new(),
            set: FIRST,
            discarded: Vec::new(),
            throttling: Throttling::default(),
            audit: Audit::default(),
            looks: Vec::new(),
            spent: 0.0,
            look_at: 0,
            half_width: None,
            ratio_is_narrow: true,
            precise_at: None,
            done: false,
        }
    }

    /// Gives all tracks with several cold runs per sample the same number of runs, so that effects of a sample's first
    /// runs weigh the same in all.
    pub fn take_as_many_runs(tracks: &mut [Self]) {
        let most = tracks.iter().map(|track| track.series.launches).max().unwrap_or(1);
        for track in tracks.iter_mut().filter(|track| track.series.launches > 1) {
            track.series.launches = most;
        }
    }

    pub fn control(&self) -> Self {
        Self { role: Role::Control, ..Self::new(self.place, self.regime, self.unit, self.series.clone()) }
    }

    /// Adds a sample that took `took` seconds to measure.
    pub fn record(&mut self, (round, order): (u32, u32), timing: Timing, took: f64) {
        self.spent += (timing.whole * f64::from(self.series.launches)).max(took * 1e9);
        self.rounds.push(Round { round, place: order, whole: timing.whole, each: timing.each, process: 0 });
    }

    /// Whether no more samples are needed. `base` holds the baseline's samples, if this case is compared with it.
    pub fn is_enough(&mut self, plan: &MeasurePlan, base: Option<&[Round]>) -> bool {
        let n = self.rounds.len();
        if n >= plan.min_samples as usize && n >= self.look_at {
            self.look();
            self.ratio_is_narrow = base.is_none_or(|base| ratio_half_width(base, &self.rounds) <= plan.precision);
        }
        let at_limit = n >= plan.max_samples.max(1) as usize || self.spent >= plan.budget * 1e9;
        let reached = n >= plan.min_samples as usize && self.half_width.is_some_and(|half| half <= plan.precision);
        if reached {
            self.precise_at.get_or_insert(n);
        }
        let is_worthwhile = self.precise_at.is_some_and(|precise_at| n < MOST_FOR_RATIO * precise_at);
        at_limit
            || (reached && (self.ratio_is_narrow || !is_worthwhile))
            || self.is_hopeless(plan)
            || self.is_dropped(plan)
    }

    /// Whether a search can drop this case because every sample is above its limit.
    fn is_dropped(&self, plan: &MeasurePlan) -> bool {
        let is_longer = |limit| self.rounds.iter().all(|round| round.whole > limit);
        self.rounds.len() >= DROPPED_FROM && plan.drop_above.is_some_and(is_longer)
    }

    /// Whether the required precision takes far more samples than the limits allow, given that the half-width shrinks
    /// with the square root of their number.
    fn is_hopeless(&self, plan: &MeasurePlan) -> bool {
        let n = self.rounds.len();
        if n < JUDGED_FROM.max(4 * plan.min_samples as usize) {
            return false;
        }
        let by_time = n as f64 * plan.budget * 1e9 / self.spent;
        let most = by_time.min(f64::from(plan.max_samples));
        self.half_width.is_some_and(|half| n as f64 * (half / plan.precision).powi(2) > BEYOND_HOPE * most)
    }

    /// Discards the samples of a round and all later ones, and reopens the case if it had ended.
    pub fn discard(&mut self, from: u32, reasons: &[ThrottleReason]) {
        let first = self.rounds.partition_point(|round| round.round < from);
        self.discarded.extend(self.rounds.drain(first..));
        self.throttling.add(reasons);
        (self.look_at, self.half_width, self.precise_at) = (0, None, None);
        self.done = false;
    }

    pub const fn seconds(&self) -> f64 {
        self.spent / 1e9
    }

    /// Ends sampling.
    pub fn close(&mut self) {
        self.look();
        self.done = true;
    }

    fn samples(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| round.whole).collect()
    }

    fn look(&mut self) {
        let samples = self.samples();
        self.look_at = samples.len() + samples.len() / 20 + 1;
        let interval = median_interval(&samples, CONFIDENCE);
        // An interval of too few samples is meaningless, however narrow it is.
        let sound = interval.filter(|interval| interval.coverage >= CONFIDENCE);
        self.half_width = sound.map(|i| if i.high > i.low { i.relative_half_width() } else { 0.0 });
    }

    /// Half-width that was reached. With too few samples, half the relative range; with a single sample, 1.
    pub fn reached(&self) -> f64 {
        let samples = self.samples();
        let range = || median_interval(&samples, CONFIDENCE).filter(|_| samples.len() > 1);
        let whole = || range().map(|interval| interval.relative_half_width());
        self.half_width.or_else(whole).filter(|half| half.is_finite()).unwrap_or(1.0)
    }

    /// Note for a case limited by the rate at which the device starts launches.
    pub fn launch_bound(&self, interval: f64) -> Option<Note> {
        let median = runner_stats::median(&self.samples())?;
        (median < LAUNCH_BOUND * interval).then_some(Note::LaunchBound { regime: self.regime, interval })
    }

    /// Irregularities of the samples that exceed the required precision.
    pub fn oddities(&self, precision: f64, tick: f64) -> Vec<Note> {
        let (samples, regime) = (self.samples(), self.regime);
        let mut found: Vec<Note> = self.throttling.note(regime, self.discarded.len()).into_iter().collect();
        let Some(median) = runner_stats::median(&samples) else { return found };
        let drift =
            runner_stats::trend(&samples).filter(runner_stats::Trend::is_significant).map(|trend| trend.drift / median);
        found.extend(drift.filter(|drift| drift.abs() > precision).map(|drift| Note::Trend { regime, drift }));
        // A time between two clock ticks is read as one or the other, and few samples always fall into two clusters.
        let modes = runner_stats::two_modes(&samples)
            .filter(|m| samples.len() >= MODES_FROM && (m.high - m.low) > 2.0 * (precision * median).max(tick));
        found.extend(modes.map(|m| Note::Bimodal { regime, share: m.share_high, slower: m.high / m.low - 1.0 }));
        let correlated = runner_stats::autocorrelation(&samples).filter(|r| *r > 0.0 && found.is_empty());
        if let (Some(correlation), Some(half)) = (correlated, self.half_width) {
            // Autocorrelated samples carry less information.
            let half_width = half * ((1.0 + correlation) / (1.0 - correlation)).sqrt();
            let noise = runner_stats::AUTOCORRELATION_OF_NOISE / (samples.len() as f64).sqrt();
            if correlation > noise && half_width > precision {
                found.push(Note::Correlated { regime, correlation, half_width });
            }
        }
        found
    }
}

/// Relative half-width of the interval for the ratio of two tracks over their common rounds; infinite if there are too
/// few.
fn ratio_half_width(base: &[Round], this: &[Round]) -> f64 {
    let mut base = base.iter().peekable();
    let mut logs = Vec::with_capacity(this.len());
    for round in this {
        while base.next_if(|earlier| earlier.round < round.round).is_some() {}
        let pair = base.peek().filter(|same| same.round == round.round && same.whole > 0.0 && round.whole > 0.0);
        logs.extend(pair.map(|same| (same.whole / round.whole).ln()));
    }
    runner_stats::trimmed_half_width(&logs).unwrap_or(f64::INFINITY)
}

/// Which samples of a case were taken while the device was throttled, and why.
#[derive(Debug, Default)]
pub struct Throttling {
    /// Number of throttled samples that count nevertheless.
    kept: usize,
    reasons: Vec<ThrottleReason>,
}

impl Throttling {
    /// Records that the samples of a round and all later ones count although the device was throttled.
    pub fn keep(&mut self, from: u32, rounds: &[Round], reasons: &[ThrottleReason]) {
        self.kept += rounds.iter().filter(|round| round.round >= from).count();
        self.add(reasons);
    }

    pub fn add(&mut self, reasons: &[ThrottleReason]) {
        self.reasons.extend_from_slice(reasons);
        self.reasons.sort_unstable();
        self.reasons.dedup();
    }

    /// Note for the case; `None` if the device was not throttled.
    pub fn note(&self, regime: Regime, discarded: usize) -> Option<Note> {
        let (reasons, discarded, kept) = (self.reasons.clone(), discarded as u64, self.kept as u64);
        (!reasons.is_empty()).then_some(Note::Throttled { regime, reasons, discarded, kept })
    }
}
