//! Breaks, changes and series in words.

use crate::comparison::words;
use runner_results::analyse::history::{Break, Change, Series};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Separates segments that cannot be compared.
const BREAK: char = '┊';

/// Minimum relative range that a sparkline spans, so that noise looks flat.
const LEAST_SPAN: f64 = 0.05;

/// Maximum number of points in a sparkline; the oldest are omitted.
const MOST_POINTS: usize = 40;

/// Formats a change, such as `+3.1 % ± 0.4`.
pub fn change(change: &Change) -> String {
    words::change(change.ratio, Some(change.interval))
}

/// Lists the causes of a change, such as `source changed; registers 16 → 40`.
pub fn causes(change: &Change) -> String {
    change.causes.iter().map(words::cause).collect::<Vec<_>>().join("; ")
}

/// Lists the reasons for a break, such as `driver 580.159.04 → 580.200.01; toolkit 13.0 → 13.1`.
pub fn reasons(at: &Break) -> String {
    let differences = at.differences.iter().map(words::difference);
    differences.chain(at.toolkit.iter().map(words::cause)).collect::<Vec<_>>().join("; ")
}

/// Names of what differs, such as `driver` and `toolkit`.
pub fn names(at: &Break) -> Vec<&'static str> {
    let differences = at.differences.iter().map(|difference| difference.what.name());
    differences.chain(at.toolkit.iter().map(|cause| words::cause_name(cause.what))).collect()
}

/// Draws the times as block characters: `▁▁▂┊▇█`.
pub fn sparkline(series: &Series<'_>) -> String {
    let times = || series.points.iter().map(|point| point.time.point);
    let (low, high) = times().fold((f64::INFINITY, 0.0_f64), |(low, high), time| (low.min(time), high.max(time)));
    let middle = f64::midpoint(low, high);
    let half = ((high - low) / 2.0).max(middle * LEAST_SPAN / 2.0);
    let most = (LEVELS.len() - 1) as f64;
    let level = |time: f64| LEVELS[((time - middle + half) / (2.0 * half) * most).round().clamp(0.0, most) as usize];
    let skipped = series.points.len().saturating_sub(MOST_POINTS);
    let mut line = String::new();
    for (i, time) in times().enumerate().skip(skipped) {
        if i > skipped && series.breaks.iter().any(|at| at.point == i) {
            line.push(BREAK);
        }
        line.push(level(time));
    }
    line
}
