//! Limits set by a device's memory and arithmetic, and how close a case comes to them.
//!
//! The roofline uses measured ceilings: the highest of reading, writing and copying, and f32 multiply-adds. A time is
//! impossible only if it exceeds a looser bound, so that no correct row is rejected. That bound uses the higher of the
//! data sheet and the ceilings, and assumes that everything that fits in a cache is free.

use runner_types::{Ceilings, Clock, Environment, Estimate, Outcome, Regime, Roof, Unit, WorkAmount};

/// Factor by which a time must exceed the highest ceiling to be impossible, since ceilings are measured too.
const MARGIN: f64 = 1.03;

/// Factor by which a time may exceed its roof and still count as at the roof. Ceilings are measured, and a kernel may
/// be slightly better than those that measured them.
const AT_ROOF: f64 = 1.1;

/// Reads and writes can use the memory at the same time, so together they may be twice as fast as reads alone.
const BOTH_WAYS: f64 = 2.0;

/// Limiting resource of a case on the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Device memory bandwidth.
    Memory,
    /// Throughput of fused multiply-adds.
    Arithmetic,
}

/// Operations per byte of the minimum work; `None` unless the manifest states both.
pub fn intensity(work: &WorkAmount) -> Option<f64> {
    let bytes = work.bytes.filter(|bytes| *bytes > 0)? as f64;
    work.flops.filter(|flops| *flops > 0.0).map(|flops| flops / bytes)
}

/// Side of the ridge point that the job is on.
pub fn bound(work: &WorkAmount, ceilings: &Ceilings) -> Option<Bound> {
    let ridge = ceilings.fma_f32 / ceilings.memory();
    Some(if intensity(work)? < ridge { Bound::Memory } else { Bound::Arithmetic })
}

/// Fraction of the roof that a time reaches: the minimum time that the ceilings allow divided by this time, capped at
/// 1.
///
/// `None` if the work is not stated, if the host's clock was used, or if the time is so far below the minimum that
/// other units or caches must have done the work.
pub fn share_of_roof(work: &WorkAmount, time: &Estimate, unit: Unit, ceilings: &Ceilings) -> Option<f64> {
    over_roof(work, time, unit, ceilings).filter(|share| *share <= AT_ROOF).map(|share| share.min(1.0))
}

/// Minimum time that the ceilings allow, divided by a time; may exceed 1.
pub fn over_roof(work: &WorkAmount, time: &Estimate, unit: Unit, ceilings: &Ceilings) -> Option<f64> {
    let by_memory = work.bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64 / ceilings.memory());
    let by_arithmetic = work.flops.filter(|flops| *flops > 0.0).map(|flops| flops / ceilings.fma_f32);
    let least = by_memory.into_iter().chain(by_arithmetic).reduce(f64::max)?;
    (unit == Unit::DeviceNanoseconds && time.point > 0.0).then(|| least / (time.point * 1e-9))
}

/// Outcome of a case whose time is impossible for its job; `None` for any other case.
///
/// Arithmetic is not checked: tensor cores are faster than multiply-adds, and some algorithms need fewer operations
/// than the manifest states.
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
    // Writes of a launch may stay in the L2, and data left there by an earlier launch need not be read again.
    let kept = if regime == Regime::Cold { 1.0 } else { 2.0 } * device.l2_bytes as f64;
    let memory = device.peak_bandwidth().into_iter().chain(ceilings.as_ref().map(Ceilings::memory)).reduce(f64::max);
    let by_memory = memory.map(|rate| ((bytes - kept).max(0.0) / rate, Roof::Memory));
    let by_cache = ceilings.map(|c| (bytes / (BOTH_WAYS * c.l2_read), Roof::L2));
    let (seconds, roof) = by_memory.into_iter().chain(by_cache).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let least = seconds * 1e9;
    let accuracy = match &environment.machine.clock {
        Some(Clock::Calibrated(calibration)) => calibration.uncertainty,
        _ => 0.0,
    };
    // Uses the slow end of the interval, so that neither chance nor the clock rejects a row.
    ((time.high + accuracy) * MARGIN < least).then_some(Outcome::Suspect { nanoseconds: time.point, least, roof })
}
