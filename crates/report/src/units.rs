//! Units of times and energies, chosen once per column, and axis values.

use runner_types::{Case, Estimate, Joules, Value};
pub use runner_types::{axes_text, axis_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    /// The unit in which the median time (given in nanoseconds) has one to three digits before the decimal point.
    pub fn choose(times: impl Iterator<Item = f64>) -> Self {
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        match times.get(times.len() / 2) {
            Some(ns) if *ns >= 1e9 => Self::Seconds,
            Some(ns) if *ns >= 1e6 => Self::Milliseconds,
            Some(ns) if *ns < 1e3 => Self::Nanoseconds,
            _ => Self::Microseconds,
        }
    }

    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    pub const fn nanoseconds(self) -> f64 {
        match self {
            Self::Nanoseconds => 1.0,
            Self::Microseconds => 1e3,
            Self::Milliseconds => 1e6,
            Self::Seconds => 1e9,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyUnit {
    Nanojoules,
    Microjoules,
    Millijoules,
    Joules,
}

impl EnergyUnit {
    /// The unit in which the median energy has one to three digits before the decimal point.
    pub fn choose(energies: impl Iterator<Item = Joules>) -> Self {
        let mut energies: Vec<f64> = energies.map(|energy| energy.0).collect();
        energies.sort_by(f64::total_cmp);
        match energies.get(energies.len() / 2) {
            Some(joules) if *joules >= 1.0 => Self::Joules,
            Some(joules) if *joules < 1e-6 => Self::Nanojoules,
            Some(joules) if *joules < 1e-3 => Self::Microjoules,
            _ => Self::Millijoules,
        }
    }

    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Nanojoules => "nJ",
            Self::Microjoules => "µJ",
            Self::Millijoules => "mJ",
            Self::Joules => "J",
        }
    }

    pub const fn joules(self) -> f64 {
        match self {
            Self::Nanojoules => 1e-9,
            Self::Microjoules => 1e-6,
            Self::Millijoules => 1e-3,
            Self::Joules => 1.0,
        }
    }
}

/// Rate per second of `amount` in the estimated time.
pub fn per_second(amount: f64, time: &Estimate) -> f64 {
    amount / (time.point * 1e-9)
}

/// The case's value of an axis.
pub fn axis<'a>(case: &'a Case, name: &str) -> Option<&'a Value> {
    case.key.axes.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

/// Lists axes as in a contender's name: `n=16777216, type=i32`.
pub fn axes_list(axes: &[(String, Value)]) -> String {
    axes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{EnergyUnit, TimeUnit, axis_value, per_second};
    use runner_types::{Estimate, Joules, Value};

    #[test]
    fn the_median_row_chooses_the_unit() {
        assert_eq!(TimeUnit::choose([4.0e3, 2.1e5, 9.0e6].into_iter()), TimeUnit::Microseconds);
        assert_eq!(TimeUnit::choose([4.0e6].into_iter()), TimeUnit::Milliseconds);
        assert_eq!(TimeUnit::choose([999.0].into_iter()), TimeUnit::Nanoseconds);
        assert_eq!(TimeUnit::choose([2e9].into_iter()), TimeUnit::Seconds);
        assert_eq!(TimeUnit::choose(std::iter::empty()), TimeUnit::Microseconds);
    }

    #[test]
    fn the_median_energy_chooses_its_unit() {
        let unit_of = |energies: &[f64]| EnergyUnit::choose(energies.iter().map(|joules| Joules(*joules)));
        assert_eq!(unit_of(&[2e-4, 3e-2, 5.0]), EnergyUnit::Millijoules);
        assert_eq!(unit_of(&[0.000_999]), EnergyUnit::Microjoules);
        assert_eq!(unit_of(&[9e-7]), EnergyUnit::Nanojoules);
        assert_eq!(unit_of(&[1.0]), EnergyUnit::Joules);
    }

    #[test]
    fn only_large_whole_powers_of_two_are_written_as_powers() {
        let shown = [512, 65_536, 65_537, 1 << 24, -65_536].map(|n| axis_value(&Value::Int(n)));
        assert_eq!(shown, ["512", "2^16", "65537", "2^24", "-65536"]);
    }

    #[test]
    fn a_rate_is_the_amount_over_the_median() {
        let time = Estimate { point: 214_310.0, low: 214_000.0, high: 215_000.0, confidence: 0.95 };
        assert!((per_second(67_108_864.0, &time) / 1e9 - 313.139).abs() < 1e-3);
    }
}
