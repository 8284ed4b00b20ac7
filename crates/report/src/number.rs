//! Formats estimates with as many digits as their interval justifies.
//!
//! The half-width of the interval is shown with two digits if the first is a 1 or a 2, and with one digit otherwise.
//! The point estimate ends at the same decimal place. Further digits would be noise, and would inflate the diff of a
//! rerun.

use runner_lang::format::{at_place, magnitude, thousands};
use runner_types::Estimate;

/// Maximum number of digits of a time, even if its interval is narrower.
const MOST_DIGITS: i32 = 5;

/// Maximum number of digits of a ratio, a rate, or a point estimate without its interval. No decision needs more than a
/// tenth of a percent.
const FEWER_DIGITS: i32 = 4;

/// Digits of a point estimate whose interval has zero width because the clock's resolution is coarser than the spread.
const DIGITS_OF_STEP: i32 = 4;

/// Power of ten of a percentage's last digit: hundredths.
const FINEST_PERCENT: i32 = -2;

/// Larger half-width of an interval, which need not be symmetric.
pub fn half_width(estimate: &Estimate) -> f64 {
    (estimate.high - estimate.point).max(estimate.point - estimate.low)
}

/// Formats an estimate in units of `unit`, such as `214.31 ± 0.12`.
pub fn plus_minus(estimate: &Estimate, unit: f64) -> String {
    with_half(estimate.point / unit, half_width(estimate) / unit, MOST_DIGITS)
}

/// Formats an estimate without a unit, such as `2.150 ± 0.003`.
pub fn ratio(estimate: &Estimate) -> String {
    with_half(estimate.point, half_width(estimate), FEWER_DIGITS)
}

/// Formats a percentage that may be near zero, such as `3.1 ± 0.4`. Only the half-width determines the number of
/// digits.
pub fn percent_with_half(point: f64, half: f64) -> String {
    let magnitude = magnitude(half);
    let place = if half > 0.0 && half / 10_f64.powi(magnitude) < 2.95 { magnitude - 1 } else { magnitude };
    let place = place.max(FINEST_PERCENT);
    let shown = half.max(10_f64.powi(place));
    format!("{} ± {}", at_place(point, place), at_place(if half > 0.0 { shown } else { 0.0 }, place))
}

/// Formats a number with its half-width. A half-width below one unit of the last digit is raised to that unit, so that
/// the shown interval is never narrower than the real one.
fn with_half(point: f64, half: f64, most: i32) -> String {
    let place = last_place(point, half, most);
    let shown = if half < 10_f64.powi(place) && half > 0.0 { 10_f64.powi(place) } else { half };
    format!("{} ± {}", at_place(point, place), at_place(shown, place))
}

/// Formats only the point estimate, with the digits that its interval justifies: `214.3`.
pub fn point(estimate: &Estimate, unit: f64) -> String {
    let (point, half) = (estimate.point / unit, half_width(estimate) / unit);
    at_place(point, last_place(point, half, FEWER_DIGITS))
}

/// Formats a value derived from an estimate, such as a rate, with the estimate's relative precision and at most
/// `decimals`.
pub fn derived(value: f64, from: &Estimate, decimals: i32) -> String {
    let place = last_place(value, value * half_width(from) / from.point, FEWER_DIGITS);
    at_place(value, place.max(-decimals))
}

/// Power of ten of the last digit to show.
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

/// Groups the digits before the decimal point: `13,184`.
pub fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("−", digits));
    let (whole, rest) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    format!("{sign}{whole}{rest}")
}

#[cfg(test)]
mod tests {
    use super::{derived, percent_with_half, plus_minus, point, ratio};
    use runner_types::Estimate;

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
        // 67.1 MB in 214.31 ± 0.12 µs is 313.15 ± 0.18 GB/s.
        assert_eq!(derived(313.147, &estimate(214.31, 214.19, 214.43), 1), "313.1");
        assert_eq!(derived(313.147, &estimate(214.0, 204.0, 224.0), 1), "313");
        assert_eq!(derived(3131.47, &estimate(100.0, 95.0, 105.0), 1), "3130");
    }

    #[test]
    fn a_percentage_ends_where_its_half_width_does() {
        assert_eq!(percent_with_half(3.1234, 0.42), "3.1 ± 0.4");
        assert_eq!(percent_with_half(0.0004, 0.123), "0.00 ± 0.12");
        assert_eq!(percent_with_half(231.0, 14.2), "231 ± 14");
        assert_eq!(percent_with_half(3.0, 0.0001), "3.00 ± 0.01");
        assert_eq!(percent_with_half(3.0, 0.0), "3 ± 0");
    }
}
