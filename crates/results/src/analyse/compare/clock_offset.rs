//! Corrects for a constant offset between the clocks of two runs.
//!
//! The interval between two events is longer than the kernel's time. Each process measures this excess when it starts,
//! but it changes within minutes. So all short kernels of one run can appear up to 0.2 µs slower than those of another,
//! and those of one group up to 0.1 µs slower than those of other groups. Rows of unchanged code reveal this offset,
//! since nothing else shifts all of them alike.

use std::collections::HashMap;

use super::Row;
use super::evidence::Evidence;
use runner_types::GroupKey;

/// Minimum rows of unchanged code for estimating the offset of a run.
const LEAST_ROWS: usize = 10;
/// Minimum rows of unchanged code for estimating the offset of a group, whose rows share their rounds.
const LEAST_ROWS_OF_GROUP: usize = 5;

/// Maximum time used, in nanoseconds. For longer times, the offset is smaller than other differences between runs.
const LONGEST: f64 = 25_000.0;

/// Maximum plausible offset, in nanoseconds. A larger one has a cause other than the clock.
const LARGEST: f64 = 500.0;

/// An offset is corrected only if it exceeds this many standard errors.
const LEAST_ERRORS: f64 = 3.0;
/// An offset is corrected only if at least this fraction of the rows differs in its direction. Otherwise it does not
/// affect all rows.
const LEAST_SHARE: f64 = 0.9;

/// Maximum residual of an offset, relative to the residual of a common factor. If all rows take about the same time,
/// the two cannot be distinguished, and a slower device must not be mistaken for an offset.
const LARGEST_REST: f64 = 0.8;

/// Standard error of the median for normally distributed values, per median absolute deviation and per 1/√n.
const ERROR_OF_MEDIAN: f64 = 1.2533 * 1.4826;

/// Clock offset, new run minus base.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockOffset {
    /// Group that it applies to, in addition to the run's offset; `None` for the run's offset.
    pub group: Option<GroupKey>,
    /// Nanoseconds per interval; negative if the new run measures less.
    pub nanoseconds: f64,
    /// Standard error of the offset, in nanoseconds.
    pub error: f64,
    /// Number of rows of unchanged code that show it.
    pub rows: usize,
}

/// A row of unchanged code, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Control {
    /// Time in the new run minus time in the base.
    difference: f64,
    time: f64,
}

/// Corrects the ratios of a pair of runs: first for the offset of all rows, then for offsets of single groups.
pub(super) fn correct(rows: &mut [Row]) -> Vec<ClockOffset> {
    let mut offsets = Vec::new();
    let all: Vec<Control> = rows.iter().filter_map(control).collect();
    if let Some(offset) = find(&all, LEAST_ROWS).filter(|offset| is_no_factor(&all, offset.nanoseconds)) {
        for row in rows.iter_mut() {
            take_out(row, &offset);
        }
        offsets.push(offset);
    }
    for rows in by_group(rows) {
        let controls: Vec<Control> = rows.iter().filter_map(|row| control(row)).collect();
        if let Some(offset) = find(&controls, LEAST_ROWS_OF_GROUP) {
            let offset = ClockOffset { group: rows.first().map(|row| row.change.case.group.clone()), ..offset };
            for row in rows {
                take_out(row, &offset);
            }
            offsets.push(offset);
        }
    }
    offsets
}

/// The rows of each group, in group order.
fn by_group(rows: &mut [Row]) -> Vec<Vec<&mut Row>> {
    let mut places: HashMap<GroupKey, usize> = HashMap::new();
    let mut groups: Vec<Vec<&mut Row>> = Vec::new();
    for row in rows {
        let place = *places.entry(row.change.case.group.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(row);
    }
    groups
}

fn control(row: &Row) -> Option<Control> {
    let is_control = |row: &&Evidence| row.is_control && row.per_nanosecond > 0.0;
    let row = row.evidence.as_ref().filter(is_control)?;
    Some(Control { difference: row.point / row.per_nanosecond, time: 1.0 / row.per_nanosecond })
}

fn take_out(row: &mut Row, offset: &ClockOffset) {
    if let (Some(evidence), Some(time)) = (&mut row.evidence, &mut row.change.time) {
        evidence.take_out(offset.nanoseconds, offset.error);
        time.ratio *= (-offset.nanoseconds * evidence.per_nanosecond).exp();
    }
}

/// The offset shown by short rows; `None` if there are too few, or if it does not affect all of them.
fn find(rows: &[Control], least_rows: usize) -> Option<ClockOffset> {
    let short = rows.iter().filter(|row| row.time <= LONGEST);
    let differences: Vec<f64> = short.map(|row| row.difference).collect();
    let (nanoseconds, error) = common_shift(&differences, least_rows)?;
    (nanoseconds.abs() <= LARGEST).then_some(ClockOffset { group: None, nanoseconds, error, rows: differences.len() })
}

/// Median of the differences with its standard error; `None` if there are too few, or if the shift does not affect all
/// of them.
pub(super) fn common_shift(differences: &[f64], least_rows: usize) -> Option<(f64, f64)> {
    let shift = runner_stats::median(differences)?;
    let deviations: Vec<f64> = differences.iter().map(|difference| (difference - shift).abs()).collect();
    let count = differences.len() as f64;
    let error = ERROR_OF_MEDIAN * runner_stats::median(&deviations)? / count.sqrt();
    let alike = differences.iter().filter(|difference| **difference * shift > 0.0).count();
    let is_of_all = shift.abs() > LEAST_ERRORS * error && alike as f64 >= LEAST_SHARE * count;
    (differences.len() >= least_rows && is_of_all).then_some((shift, error))
}

/// Whether an offset fits rows of any length better than the common factor suggested by the short ones.
fn is_no_factor(rows: &[Control], offset: f64) -> bool {
    let short = rows.iter().filter(|row| row.time <= LONGEST);
    let fractions: Vec<f64> = short.map(|row| row.difference / row.time).collect();
    let factor = runner_stats::median(&fractions).unwrap_or_default();
    let rest_of_offset: f64 = rows.iter().map(|row| (row.difference - offset).abs()).sum();
    let rest_of_factor: f64 = rows.iter().map(|row| (row.difference - factor * row.time).abs()).sum();
    rest_of_offset < LARGEST_REST * rest_of_factor
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::{Control, LEAST_ROWS, find, is_no_factor};

    /// Creates rows from 2 µs to 20 µs with these differences.
    fn rows(differences: impl IntoIterator<Item = f64>) -> Vec<Control> {
        (0..)
            .zip(differences)
            .map(|(i, difference)| Control { difference, time: 2e3 * f64::from(i % 10 + 1) })
            .collect()
    }

    #[test]
    fn an_offset_is_the_median_with_the_error_of_a_median() {
        let offset = find(&rows((0..101).map(|i| -200.0 + f64::from(i - 50))), LEAST_ROWS).unwrap();
        // The deviations are 0, 1, 1, …, 50, 50, whose median is 25.
        assert_eq!((offset.nanoseconds, offset.rows), (-200.0, 101));
        assert!((offset.error - 1.2533 * 1.4826 * 25.0 / 101_f64.sqrt()).abs() < 1e-9, "{offset:?}");
    }

    #[test]
    fn few_rows_scattered_ones_and_large_offsets_show_none() {
        let is_found = |differences: &[f64]| find(&rows(differences.iter().copied()), LEAST_ROWS).is_some();
        assert!(is_found(&[100.0; 10]) && !is_found(&[100.0; 9]));
        assert!(is_found(&[500.0; 10]) && !is_found(&[501.0; 10]));
        // The median is 100 ns, with a standard error of 37 ns.
        let scattered: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 10.0 } else { 190.0 }).collect();
        assert!(!is_found(&scattered));
        let some_less = |less: usize| [vec![-100.0; less], vec![100.0; 20 - less]].concat();
        assert!(is_found(&some_less(2)) && !is_found(&some_less(3)));
        assert!(!is_found(&[]) && !is_found(&[f64::NAN; 10]));
    }

    /// A device that is 1 % slower has no offset. If all rows take 5 µs, the slowdown could be one.
    #[test]
    fn a_common_factor_is_no_offset() {
        let times = (1..=20).map(|i| 1e3 * f64::from(i));
        let slower: Vec<Control> = times.map(|time| Control { difference: 0.01 * time, time }).collect();
        assert!(!is_no_factor(&slower, 105.0));
        assert!(!is_no_factor(&[Control { difference: 50.0, time: 5e3 }; 50], 50.0));
        assert!(is_no_factor(&rows([-200.0; 50]), -200.0));
    }
}
