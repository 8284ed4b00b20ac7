//! What a device's memory and arithmetic allow, and where a case stands below it.
//!
//! The roofline is drawn from measured ceilings: the higher of reading and copying, and f32 multiply-adds. A time is
//! called impossible by a looser and harder bound, so that no honest row is: whatever is higher of the data sheet and
//! the ceilings, with everything that a cache can hold taken as free.

use crate::model::{Ceilings, Clock, Environment, Estimate, Outcome, Regime, Roof, Unit, WorkAmount};

/// How much faster than the highest ceiling a time must be before it is impossible: the ceilings are measured too.
const MARGIN: f64 = 1.03;

/// Reads and writes cross the device at once: together they may be twice as fast as reads alone.
const BOTH_WAYS: f64 = 2.0;

/// What bounds a case on the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Memory,
    Arithmetic,
}

/// Operations a byte, by the least work of the job; `None` where the manifest does not state both.
pub fn intensity(work: &WorkAmount) -> Option<f64> {
    let bytes = work.bytes.filter(|bytes| *bytes > 0)? as f64;
    work.flops.filter(|flops| *flops > 0.0).map(|flops| flops / bytes)
}

/// Which side of the ridge the job lies on.
pub fn bound(work: &WorkAmount, ceilings: &Ceilings) -> Option<Bound> {
    let ridge = ceilings.fma_f32 / bandwidth(ceilings);
    Some(if intensity(work)? < ridge { Bound::Memory } else { Bound::Arithmetic })
}

/// The part of the roof that a time reaches: the least time that the ceilings allow over this one.
///
/// `None` where the work is not stated, and on the host's clock.
pub fn share_of_roof(work: &WorkAmount, time: &Estimate, unit: Unit, ceilings: &Ceilings) -> Option<f64> {
    let by_memory = work.bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64 / bandwidth(ceilings));
    let by_arithmetic = work.flops.filter(|flops| *flops > 0.0).map(|flops| flops / ceilings.fma_f32);
    let least = by_memory.into_iter().chain(by_arithmetic).reduce(f64::max)?;
    (unit == Unit::DeviceNanoseconds && time.point > 0.0).then(|| least / (time.point * 1e-9))
}

/// The highest rate at which device memory was seen to work, bytes a second.
fn bandwidth(ceilings: &Ceilings) -> f64 {
    ceilings.read.max(ceilings.copy)
}

/// The outcome of a case whose time no honest run of the job can have; `None` for every other.
///
/// Arithmetic is not judged: matrix units are faster than any multiply-add, and there are algorithms with fewer
/// operations than the manifest states.
pub(super) fn suspect(
    regime: Regime,
    unit: Unit,
    time: &Estimate,
    work: &WorkAmount,
    environment: &Environment,
) -> Option<Outcome> {
    if unit != Unit::DeviceNanoseconds {
        return None;
    }
    let bytes = work.bytes? as f64;
    let device = &environment.device;
    let ceilings = environment.machine.ceilings;
    // What a launch writes may stay in L2; what a launch before it left there need not be read again.
    let kept = if regime == Regime::Cold { 1.0 } else { 2.0 } * device.l2_bytes as f64;
    let memory = device.peak_bandwidth().into_iter().chain(ceilings.as_ref().map(bandwidth)).reduce(f64::max);
    let by_memory = memory.map(|rate| ((bytes - kept).max(0.0) / rate, Roof::Memory));
    let by_cache = ceilings.map(|c| (bytes / (BOTH_WAYS * c.l2_read), Roof::L2));
    let (seconds, roof) = by_memory.into_iter().chain(by_cache).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let least = seconds * 1e9;
    let accuracy = match &environment.machine.clock {
        Some(Clock::Calibrated(calibration)) => calibration.uncertainty,
        _ => 0.0,
    };
    // The slow end of the interval: neither chance nor the clock condemns a row.
    ((time.high + accuracy) * MARGIN < least).then_some(Outcome::Suspect { nanoseconds: time.point, least, roof })
}
