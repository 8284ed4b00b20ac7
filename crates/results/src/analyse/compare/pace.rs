//! Takes out by how much the device ran slower during one run than during the other.
//!
//! The clock of the SMs moves in steps of 15 MHz, 0.76 % of 1,980, and NVML reports the one that is asked for. Of 1,628
//! times of unchanged code in two runs on one H100, ten minutes apart and both at a reported 1,980 MHz, all 42 of
//! `arithmetic` were 0.6 to 1.1 % slower, and so were 21 others that the SMs bound. A calibration, over in seconds, found
//! 0.04 %. Long times of unchanged code show this, since nothing else shifts all of them alike. In other reports only some
//! rows may follow the clock, so no change that it explains is called there.

use super::Row;
use super::clock_offset::common_shift;
use super::evidence::Evidence;

/// Fewer rows of unchanged code say too little of the pace of a run.
const LEAST_ROWS: usize = 10;

/// In shorter times, in nanoseconds, the offset of the clock that takes them is more.
const SHORTEST: f64 = 25_000.0;

/// Two steps of the clock: beyond it something else differs, and must be seen.
const LARGEST: f64 = 0.016;

/// The device ran at another pace during the new run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// The fraction by which unchanged code took longer; negative where it took less.
    pub slower: f64,
    /// The rows of unchanged code that show it.
    pub rows: usize,
}

/// Takes the pace of each report out of its ratios. What it was in one is explained in all.
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
