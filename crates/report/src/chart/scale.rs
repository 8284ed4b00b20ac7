//! Axes of charts: map values to positions on the page, with ticks at round values.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleKind {
    Linear,
    Log2,
    /// For values that span orders of magnitude.
    Log10,
}

/// Values that span more than this factor get a logarithmic axis.
const DECADE: f64 = 10.0;

/// An axis with at most this many decades also has ticks within each decade.
const FEW_DECADES: f64 = 2.6;

/// Maps values to positions on the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    kind: ScaleKind,
    /// Smallest and largest value, or their logarithms on a logarithmic axis.
    domain: (f64, f64),
    /// Positions of the domain's ends, in page units.
    range: (f64, f64),
}

impl Scale {
    /// Builds a scale from `low` to `high`. If they are equal, the value maps to the middle. Logarithmic scales need
    /// positive values.
    pub fn new(kind: ScaleKind, (low, high): (f64, f64), range: (f64, f64)) -> Self {
        let (low, high) = (kind.forward(low), kind.forward(high));
        let domain = if high > low { (low, high) } else { (low - 0.5, high + 0.5) };
        Self { kind, domain, range }
    }

    pub fn place(&self, value: f64) -> f64 {
        let share = (self.kind.forward(value) - self.domain.0) / (self.domain.1 - self.domain.0);
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// Value at a position; the inverse of `place`.
    pub fn value(&self, place: f64) -> f64 {
        let share = (place - self.range.0) / (self.range.1 - self.range.0);
        self.kind.back(self.domain.0 + share * (self.domain.1 - self.domain.0))
    }

    /// Scale with round ends for values from `low` to `high`: linear from zero, or logarithmic if they span more than a
    /// decade.
    pub fn of_values((low, high): (f64, f64), range: (f64, f64)) -> Self {
        if low > 0.0 && high / low > DECADE {
            Self::new(ScaleKind::Log10, (round_down(low), round_step(high)), range)
        } else {
            Self::new(ScaleKind::Linear, (0.0, high * 1.02), range)
        }
    }

    /// Suffix of the axis title; empty for a linear axis.
    pub const fn remark(&self) -> &'static str {
        match self.kind {
            ScaleKind::Linear => "",
            ScaleKind::Log2 | ScaleKind::Log10 => ", log scale",
        }
    }

    pub const fn is_logarithmic(&self) -> bool {
        !matches!(self.kind, ScaleKind::Linear)
    }

    /// Round tick values within the domain, at most about `most`.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let (low, high) = self.domain;
        if self.kind == ScaleKind::Log10 && high - low <= FEW_DECADES {
            return within_decades(low, high);
        }
        let step = match self.kind {
            ScaleKind::Linear => round_step((high - low) / most.max(1) as f64),
            // Ticks are at every whole exponent, or at every second, third … one.
            ScaleKind::Log2 | ScaleKind::Log10 => ((high - low) / most.max(1) as f64).ceil().max(1.0),
        };
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| self.kind.back(i as f64 * step)).collect()
    }
}

impl ScaleKind {
    fn forward(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        }
    }

    fn back(self, place: f64) -> f64 {
        match self {
            Self::Linear => place,
            Self::Log2 => place.exp2(),
            Self::Log10 => 10_f64.powf(place),
        }
    }
}

const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// 1, 2 and 5 times each power of ten between two decimal logarithms.
fn within_decades(low: f64, high: f64) -> Vec<f64> {
    let decades = low.floor() as i32..=high.ceil() as i32;
    let all = decades.flat_map(|decade| ROUND.map(|m| m * 10_f64.powi(decade)));
    all.filter(|tick| (low - 1e-9..=high + 1e-9).contains(&tick.log10())).collect()
}

/// Largest 1, 2 or 5 times a power of ten that is at most `value`.
fn round_down(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    ROUND.into_iter().rev().map(|m| m * power).find(|round| *round <= value * (1.0 + 1e-9)).unwrap_or(power)
}

/// Smallest 1, 2 or 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    ROUND.into_iter().map(|m| m * power).find(|s| *s >= step * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// Moves labels apart so that no two are closer than `gap`, keeping their order and staying within `range`.
///
/// `places` are in page units from top to bottom, in any order. The result has the same order.
pub fn spread_labels(places: &[f64], gap: f64, range: (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut moved = places.to_vec();
    let mut least = range.0;
    for i in &order {
        moved[*i] = moved[*i].max(least);
        least = moved[*i] + gap;
    }
    let mut most = range.1;
    for i in order.iter().rev() {
        moved[*i] = moved[*i].min(most);
        most = moved[*i] - gap;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::{Scale, ScaleKind, spread_labels};

    #[test]
    fn linear_ticks_are_round_and_cover_the_domain() {
        let scale = Scale::new(ScaleKind::Linear, (0.0, 3352.0), (400.0, 0.0));
        assert_eq!(scale.ticks(7), [0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0]);
        assert!((scale.place(1676.0) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn values_over_more_than_a_decade_have_a_logarithmic_axis_which_says_so() {
        let wide = Scale::of_values((31.0, 1900.0), (100.0, 0.0));
        assert_eq!((wide.remark(), wide.is_logarithmic()), (", log scale", true));
        assert_eq!(wide.ticks(7), [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]);
        assert!((wide.place(20.0) - 100.0).abs() < 1e-9 && wide.place(2000.0).abs() < 1e-9);
        let narrow = Scale::of_values((31.0, 300.0), (100.0, 0.0));
        assert_eq!((narrow.remark(), narrow.is_logarithmic()), ("", false));
        assert!((narrow.place(0.0) - 100.0).abs() < 1e-9);
        let decades = Scale::of_values((0.3, 400_000.0), (100.0, 0.0));
        assert_eq!(decades.ticks(7), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
    }

    #[test]
    fn ticks_of_doubling_sizes_are_powers_of_two() {
        let scale = Scale::new(ScaleKind::Log2, (f64::from(1 << 20), f64::from(1 << 28)), (0.0, 800.0));
        assert_eq!(scale.ticks(5), [20, 22, 24, 26, 28].map(|e| f64::from(1 << e)));
        assert!((scale.place(f64::from(1 << 22)) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn a_single_value_lies_in_the_middle() {
        assert!((Scale::new(ScaleKind::Linear, (5.0, 5.0), (0.0, 10.0)).place(5.0) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn labels_move_apart_and_stay_on_the_page() {
        assert_eq!(spread_labels(&[50.0, 51.0, 10.0], 10.0, (0.0, 100.0)), [50.0, 60.0, 10.0]);
        assert_eq!(spread_labels(&[99.0, 98.0], 10.0, (0.0, 100.0)), [100.0, 90.0]);
    }
}
