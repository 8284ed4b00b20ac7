//! Numbers with no more digits than they deserve.
//!
//! A half-width decides: it keeps two digits where the first is a 1 or a 2 and one otherwise, and its point ends at the
//! same place. What follows the interval is noise, and noise makes a rerun's diff long.

use crate::model::Estimate;

/// The most digits that a time shows, however narrow its interval.
const MOST_DIGITS: i32 = 5;

/// The most digits of a ratio, a rate and a point that stands without its interval: a tenth of a percent is as fine as
/// anyone decides by.
const FEWER_DIGITS: i32 = 4;

/// The digits of a point whose interval has no width: the clock's step is coarser than the spread.
const DIGITS_OF_STEP: i32 = 4;

/// Ratios nearer to one than this show where they part from it.
const CLOSE_RATIO: f64 = 0.02;

/// The wider half of an interval, which need not be symmetric.
pub fn half_width(estimate: &Estimate) -> f64 {
    (estimate.high - estimate.point).max(estimate.point - estimate.low)
}

/// `214.31 ± 0.12`, of an estimate in units of `unit`.
pub fn plus_minus(estimate: &Estimate, unit: f64) -> String {
    with_half(estimate.point / unit, half_width(estimate) / unit, MOST_DIGITS)
}

/// `2.150 ± 0.003`, of an estimate that has no unit.
pub fn ratio(estimate: &Estimate) -> String {
    with_half(estimate.point, half_width(estimate), FEWER_DIGITS)
}

/// A half-width cut short is rounded up, so that the interval shown is no narrower than the one found.
fn with_half(point: f64, half: f64, most: i32) -> String {
    let place = last_place(point, half, most);
    let shown = if half < 10_f64.powi(place) && half > 0.0 { 10_f64.powi(place) } else { half };
    format!("{} ± {}", at_place(point, place), at_place(shown, place))
}

/// The point alone, with the digits that its interval allows: `214.3`.
pub fn point(estimate: &Estimate, unit: f64) -> String {
    let (point, half) = (estimate.point / unit, half_width(estimate) / unit);
    at_place(point, last_place(point, half, FEWER_DIGITS))
}

/// A value derived from an estimate (a rate), that has the estimate's relative precision, and at most `decimals`.
pub fn derived(value: f64, from: &Estimate, decimals: i32) -> String {
    let place = last_place(value, value * half_width(from) / from.point, FEWER_DIGITS);
    at_place(value, place.max(-decimals))
}

/// Three significant digits, for a number without an interval.
pub fn rough(value: f64) -> String {
    at_place(value, magnitude(value) - 2)
}

/// A ratio of counts: digits enough to tell near from equal.
pub fn ratio_of_counts(value: f64) -> String {
    at_place(value, if (value - 1.0).abs() < CLOSE_RATIO { -4 } else { magnitude(value) - 2 })
}

/// A count in full; two decimals of a ratio of counts.
pub fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// The power of ten of the last digit to show.
fn last_place(point: f64, half: f64, most: i32) -> i32 {
    let finest = magnitude(point) - (most - 1);
    if half <= 0.0 || !half.is_finite() {
        return magnitude(point) - (DIGITS_OF_STEP - 1);
    }
    let magnitude = magnitude(half);
    let leading = half / 10_f64.powi(magnitude);
    let place = if leading < 2.95 { magnitude - 1 } else { magnitude };
    place.max(finest)
}

/// The power of ten of the first digit; 0 for zero.
fn magnitude(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() { 0 } else { value.abs().log10().floor() as i32 }
}

/// Rounded to a multiple of `10^place`.
fn at_place(value: f64, place: i32) -> String {
    if place <= 0 {
        return format!("{value:.*}", place.unsigned_abs() as usize);
    }
    let step = 10_f64.powi(place);
    format!("{:.0}", (value / step).round() * step)
}

/// `1 line`, `2 lines`: a count with its noun, whose plural takes an s.
pub fn plural(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::{count, derived, plus_minus, point, ratio, rough};
    use crate::model::Estimate;

    fn estimate(point: f64, low: f64, high: f64) -> Estimate {
        Estimate { point, low, high, confidence: 0.95 }
    }

    #[test]
    fn the_half_width_keeps_two_digits_only_where_it_begins_with_one_or_two() {
        assert_eq!(plus_minus(&estimate(214_312.7, 214_190.0, 214_400.0), 1e3), "214.31 ± 0.12");
        assert_eq!(plus_minus(&estimate(99_731.0, 99_400.0, 100_000.0), 1e3), "99.7 ± 0.3");
    }

    #[test]
    fn the_wider_half_of_a_skewed_interval_is_shown() {
        assert_eq!(plus_minus(&estimate(100.0, 99.0, 105.0), 1.0), "100 ± 5");
    }

    #[test]
    fn an_interval_wider_than_one_rounds_the_point_too() {
        assert_eq!(plus_minus(&estimate(12_345.0, 11_105.0, 13_500.0), 1.0), "12300 ± 1200");
    }

    #[test]
    fn an_interval_without_width_does_not_promise_digits() {
        assert_eq!(plus_minus(&estimate(5792.0, 5792.0, 5792.0), 1e3), "5.792 ± 0.000");
        assert_eq!(plus_minus(&estimate(0.0, 0.0, 0.0), 1e3), "0.000 ± 0.000");
    }

    #[test]
    fn a_minute_interval_shows_five_digits_and_no_more() {
        let minute = estimate(1.234_567_891, 1.234_567_890, 1.234_567_892);
        assert_eq!(point(&minute, 1.0), "1.235");
        assert_eq!(plus_minus(&minute, 1.0), "1.2346 ± 0.0001");
    }

    #[test]
    fn a_ratio_shows_four_digits_and_never_less_width_than_it_has() {
        assert_eq!(ratio(&estimate(2.149_61, 2.146_5, 2.152_7)), "2.150 ± 0.003");
        assert_eq!(ratio(&estimate(1.408_2, 1.407_8, 1.408_6)), "1.408 ± 0.001");
        assert_eq!(ratio(&estimate(0.040_604, 0.040_43, 0.040_78)), "0.04060 ± 0.00018");
        assert_eq!(point(&estimate(8.949_2, 8.943, 8.955), 1.0), "8.949");
    }

    #[test]
    fn a_half_width_that_rounds_up_to_ten_loses_a_digit() {
        assert_eq!(plus_minus(&estimate(50.0, 49.02, 50.98), 1.0), "50.0 ± 1.0");
        assert_eq!(plus_minus(&estimate(50.0, 49.704, 50.296), 1.0), "50.0 ± 0.3");
    }

    #[test]
    fn a_rate_has_the_relative_precision_of_its_time() {
        // 67.1 MB in 214.3 ± 0.12 µs is 313.15 ± 0.18 GB/s.
        assert_eq!(derived(313.147, &estimate(214.31, 214.19, 214.43), 1), "313.1");
        assert_eq!(derived(313.147, &estimate(214.0, 204.0, 224.0), 1), "313");
        assert_eq!(derived(3131.47, &estimate(100.0, 95.0, 105.0), 1), "3130");
    }

    #[test]
    fn counts_are_whole_and_their_ratios_are_not() {
        assert_eq!([count(6_258_688.0), count(68.75), count(25.018)], ["6258688", "68.75", "25.02"]);
    }

    #[test]
    fn a_number_without_an_interval_shows_three_digits() {
        assert_eq!([rough(8.4219), rough(0.021_54), rough(123.9), rough(2034.0)], ["8.42", "0.0215", "124", "2030"]);
    }
}
