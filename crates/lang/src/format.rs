//! Formats numbers, sizes, durations and counts. The only place that chooses digits, units and plurals.
//!
//! The module `number` of `runner-report` formats estimates with an interval and builds on these functions.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Ratios of counts that are closer to 1 than this are shown with four decimals.
const CLOSE_RATIO: f64 = 0.02;

/// Formats a count with a noun whose plural ends in -s: `1 line`, `2 lines`.
pub fn plural(count: impl Into<u64>, noun: &str) -> String {
    plural_of(count, noun, &format!("{noun}s"))
}

/// Formats a count with the singular or plural of a noun: `1 process`, `2 processes`.
pub fn plural_of(count: impl Into<u64>, one: &str, many: &str) -> String {
    match count.into() {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// Formats a part of a total, with the verb in the number of the part: `1 of 15 cases was`, `2 of 15 cases were`.
pub fn part_of(part: impl Into<u64>, total: impl Into<u64>, noun: &str, [one, many]: [&str; 2]) -> String {
    let part = part.into();
    format!("{part} of {} {}", plural(total, noun), if part == 1 { one } else { many })
}

/// Formats a number of bytes with three digits and a binary prefix: `79.6 GiB`, `512 B`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let is_whole = value.fract() == 0.0 || value >= 100.0;
    let number = if is_whole { format!("{value:.0}") } else { format!("{value:.1}") };
    format!("{number} {}", UNITS[unit])
}

/// Formats a measured duration: `12.3 s`.
pub fn seconds(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

/// Formats an estimated duration with few digits: `0.7 s`, `40 s`, `12 min`, `3 h 20 min`.
pub fn about(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round();
    match seconds {
        s if s < 9.95 && s.fract() != 0.0 => self::seconds(s),
        s if s < 90.0 => format!("{s:.0} s"),
        _ if minutes <= 90.0 => format!("{minutes:.0} min"),
        _ => format!("{:.0} h {:.0} min", (minutes / 60.0).floor(), minutes % 60.0),
    }
}

/// Replaces characters that control a terminal, end a line or change the text direction with symbols such as `␛`.
/// Allocates only if there are any.
pub fn visible(text: &str) -> Cow<'_, str> {
    visible_except(text, &[])
}

/// Like [`visible`], but keeps line ends and tabs.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    visible_except(text, &['\n', '\t'])
}

/// Like [`visible_lines`], but also keeps colors and other text attributes (`ESC [ numbers m`).
pub fn visible_styled(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "\u{1b}[";
    let mut parts = text.split(BEGIN);
    let mut shown = visible_lines(parts.next().unwrap_or_default());
    for part in parts {
        let numbers = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').len();
        let is_style = part[numbers..].starts_with('m');
        let shown = shown.to_mut();
        shown.push_str(if is_style { BEGIN } else { "\u{241b}[" });
        shown.push_str(&visible_lines(part));
    }
    shown
}

/// JSON text with the characters that [`visible`] replaces written as escapes such as `\\u202e`, so that a JSON parser
/// still returns the original characters.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // Line ends and tabs are between values; within strings, JSON already escapes them.
    let is_hidden = |c: char| symbol(c).is_some() && !matches!(c, '\n' | '\t' | '\r');
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) {
            // Each of these characters is a single UTF-16 unit.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

fn visible_except<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let is_hidden = |c: char| symbol(c).is_some() && !kept.contains(&c);
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if kept.contains(&c) { c } else { symbol(c).unwrap_or(c) }).collect())
}

/// Replacement for a character that must not be output; `None` for all others.
fn symbol(c: char) -> Option<char> {
    match c {
        '\n' | '\r' | '\t' => Some(' '),
        // Unicode control pictures.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        // C1 control characters, line separators, bidirectional marks, and characters that XML forbids.
        '\u{80}'..='\u{9f}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fffe}'
        | '\u{ffff}' => Some(char::REPLACEMENT_CHARACTER),
        _ => None,
    }
}

/// Formats a number without an interval with three significant digits: `0.893`, `3.64e-8`.
pub fn rough(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        return format!("{value:.2e}");
    }
    at_place(value, magnitude(value) - 2)
}

/// Formats a ratio of counts with enough digits to tell nearly equal from equal.
pub fn ratio_of_counts(value: f64) -> String {
    at_place(value, if (value - 1.0).abs() < CLOSE_RATIO { -4 } else { magnitude(value) - 2 })
}

/// Formats a count with all digits; a mean of counts gets two decimals.
pub fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Formats a count with grouped digits: `33,984`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let first = (digits.len() + 2) % 3 + 1;
    let groups = (first..digits.len()).step_by(3).map(|start| &digits[start..start + 3]);
    std::iter::once(&digits[..first]).chain(groups).collect::<Vec<_>>().join(",")
}

/// Formats `value` rounded to a multiple of `10^place`.
pub fn at_place(value: f64, place: i32) -> String {
    if place <= 0 {
        return format!("{value:.*}", place.unsigned_abs() as usize);
    }
    let step = 10_f64.powi(place);
    format!("{:.0}", (value / step).round() * step)
}

/// Decimal exponent of the first digit; 0 for zero.
pub fn magnitude(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() { 0 } else { value.abs().log10().floor() as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_kept_and_no_other_escape_sequence_is() {
        let hostile = "\u{1b}[1;31mred\u{1b}[0m\t\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[\u{1b}[3\u{202e}\u{9b}2J\n";
        assert_eq!(visible_styled(hostile), "\u{1b}[1;31mred\u{1b}[0m\t␛]0;title␇␛[2J␛[␛[3��2J\n");
        assert_eq!(visible_lines("\u{1b}[31mred"), "␛[31mred");
        assert_eq!(visible_styled("plain\n"), "plain\n");
    }

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0_u64, 1, 2].map(|n| plural(n, "line")), ["0 lines", "1 line", "2 lines"]);
        assert_eq!([1_u64, 3].map(|n| plural_of(n, "process", "processes")), ["1 process", "3 processes"]);
    }

    #[test]
    fn a_verb_agrees_with_the_part() {
        let shown = [(0_u64, 1_u64), (1, 15), (15, 15)].map(|(part, of)| part_of(part, of, "case", ["was", "were"]));
        assert_eq!(shown, ["0 of 1 case were", "1 of 15 cases was", "15 of 15 cases were"]);
    }

    #[test]
    fn sizes_have_three_digits() {
        assert_eq!([0, 512, 1023, 1024, 1536].map(bytes), ["0 B", "512 B", "1023 B", "1 KiB", "1.5 KiB"]);
        assert_eq!([50 << 20, 85_520_809_984, u64::MAX].map(bytes), ["50 MiB", "79.6 GiB", "16384 PiB"]);
    }

    #[test]
    fn an_estimated_duration_is_rounded() {
        let shown = [0.74, 8.0, 9.97, 40.0, 89.0, 91.0, 719.0, 5400.0, 12_000.0].map(about);
        assert_eq!(shown, ["0.7 s", "8 s", "10 s", "40 s", "89 s", "2 min", "12 min", "90 min", "3 h 20 min"]);
    }

    #[test]
    fn thousands_are_grouped() {
        let shown = [0, 7, 999, 1000, 33_984, 131_072, 1_048_576].map(thousands);
        assert_eq!(shown, ["0", "7", "999", "1,000", "33,984", "131,072", "1,048,576"]);
    }

    #[test]
    fn counts_are_whole_and_their_means_are_not() {
        assert_eq!([count(6_258_688.0), count(68.75), count(25.018)], ["6258688", "68.75", "25.02"]);
    }

    #[test]
    fn a_number_without_an_interval_shows_three_digits() {
        assert_eq!([rough(8.4219), rough(0.021_54), rough(123.9), rough(2034.0)], ["8.42", "0.0215", "124", "2030"]);
        assert_eq!([rough(0.000_123_4), rough(-3.641e-8), rough(0.0)], ["0.000123", "-3.64e-8", "0.00"]);
    }

    #[test]
    fn what_controls_a_terminal_is_shown_as_a_symbol() {
        assert_eq!(visible("\u{1b}[2Jgone\u{7}\u{7f}"), "␛[2Jgone␇␡");
        assert_eq!(visible("a\r\nb\tc"), "a  b c");
        assert_eq!(visible("\u{9b}31m \u{202e}gnp.exe"), "\u{fffd}31m \u{fffd}gnp.exe");
        assert_eq!(visible_lines("a\tb\nc\u{1b}"), "a\tb\nc␛");
        assert!(matches!(visible("µs, 中, 🚀"), Cow::Borrowed("µs, 中, 🚀")));
        let json = "{\n\t\"a\": \"\u{9b}31m \u{202e}gnp.exe\u{7f} µs\"\n}";
        assert_eq!(visible_json(json), "{\n\t\"a\": \"\\u009b31m \\u202egnp.exe\\u007f µs\"\n}");
    }
}
