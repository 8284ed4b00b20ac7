//! Corrects for a slower or faster SM clock during one of the runs.
//!
//! The SM clock moves in steps of 15 MHz, 0.76 % of 1,980, and NVML reports the requested one. In two runs on one H100,
//! ten minutes apart and both at a reported 1,980 MHz, 1,628 times of unchanged code were compared. All 42 rows of
//! `arithmetic` were 0.6 to 1.1 % slower, as were 21 other rows that are bound by the SMs. A calibration, which takes
//! only seconds, found 0.04 %. Long times of unchanged code reveal the pace, since nothing else shifts all of them
//! alike. In other reports only some rows may depend on the clock, so changes that it explains are not reported there.

use super::Row;
use super::clock_offset::common_shift;
use super::evidence::Evidence;

/// Minimum rows of unchanged code for estimating the pace of a run.
const LEAST_ROWS: usize = 10;

/// Minimum time used, in nanoseconds. For shorter times, the clock offset is larger than the pace.
const SHORTEST: f64 = 25_000.0;

/// Maximum pace: two steps of the clock. A larger difference has another cause and must stay visible.
const LARGEST: f64 = 0.016;

/// Pace of the device during the new run, relative to the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Fraction by which unchanged code took longer; negative if it was faster.
    pub slower: f64,
    /// Number of rows of unchanged code that show it.
    pub rows: usize,
}

/// Removes the pace of each report from its ratios. A change up to the largest pace found counts as explained in all
/// reports.
pub(super) fn correct(reports: &mut [Vec<Row>]) -> Vec<Option<Pace>> {
    let paces: Vec<Option<Pace>> = reports.iter_mut().map(|rows| take_out(rows)).collect();
    let explained = paces.iter().flatten().map(|pace| pace.slower.abs()).fold(0.0, f64::max);
    for evidence in reports.iter_mut().flatten().filter_map(|row| row.evidence.as_mut()) {
        if evidence.is_between_runs() {
            evidence.explained = evidence.explained.max(explained);
        }
    }
    paces
}

fn take_out(rows: &mut [Row]) -> Option<Pace> {
    let is_long = |row: &&Evidence| row.is_control && row.is_between_runs() && row.per_nanosecond * SHORTEST < 1.0;
    let controls = rows.iter().filter_map(|row| row.evidence.as_ref()).filter(is_long);
    let points: Vec<f64> = controls.map(|row| row.point).collect();
    let (shift, error) = common_shift(&points, LEAST_ROWS).filter(|(shift, _)| shift.abs() <= LARGEST)?;
    for row in rows.iter_mut() {
        if let (Some(evidence), Some(time)) = (&mut row.evidence, &mut row.change.time)
            && evidence.is_between_runs()
        {
            evidence.take_out_pace(shift, error);
            time.ratio *= (-shift).exp();
        }
    }
    Some(Pace { slower: shift.exp_m1(), rows: points.len() })
}
