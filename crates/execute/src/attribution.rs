//! Finds out which of several interleaved cases changed an input or wrote outside its buffers.
//!
//! The cases share memory, so the damage does not show which of them caused it. Each runs once more, alone, on restored
//! memory; a case that causes damage again is wrong. If none does, all of them fail, since passing any would be a
//! guess.

use super::bench::Bench;
use super::cases::{Cases, ReadyCase};
use super::illegal_writes::{find_changed_input, find_trespass, restore_inputs};
use super::series::timed_run;
use super::stop::{Lost, Stop};
use runner_types::{Activity, Mismatch, Outcome};

/// Why measurement rounds stop.
pub enum Halt {
    /// A case corrupted shared data and is settled; the measurements are void.
    Spoiled,
    Lost(Lost),
}

impl From<Lost> for Halt {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

/// Checks the shared inputs, and settles a case that changed one.
pub fn look_at_inputs(cases: &mut Cases<'_, '_>) -> Result<(), Halt> {
    let Some(first) = cases.on_device().first().copied() else { return Ok(()) };
    match cases.step(first, |bench, _| find_changed_input(bench))?.flatten() {
        Some(found) => Err(attribute(cases, &found, None)),
        None => Ok(()),
    }
}

/// Settles the cases that caused `found` (at least one). `last` is the case launched directly before the check that
/// found it.
pub fn attribute(cases: &mut Cases<'_, '_>, found: &Mismatch, last: Option<usize>) -> Halt {
    let suspects = cases.on_device();
    let mut at_fault = Vec::new();
    for place in &suspects {
        match repeat_alone(cases, *place) {
            Ok(mismatch) => at_fault.extend(mismatch.map(|mismatch| (*place, mismatch))),
            Err(lost) => return Halt::Lost(lost),
        }
    }
    if at_fault.is_empty() {
        at_fault = match last {
            Some(place) => vec![(place, found.clone())],
            None => suspects.iter().map(|place| (*place, shared(found))).collect(),
        };
    }
    for (place, mismatch) in at_fault {
        if cases.get(place).is_some() {
            cases.settle(place, Outcome::Wrong { mismatch });
        }
    }
    Halt::Spoiled
}

/// Runs a case once more on restored inputs; returns its illegal write, if any.
fn repeat_alone(cases: &mut Cases<'_, '_>, place: usize) -> Result<Option<Mismatch>, Lost> {
    let found = cases.step(place, run_alone)?.flatten();
    if found.is_some() {
        cases.step(place, |bench, _| restore_inputs(bench))?;
    }
    Ok(found)
}

fn run_alone<'a>(bench: &mut Bench<'a>, case: &mut ReadyCase<'a>) -> Result<Option<Mismatch>, Stop> {
    bench.announce(case.job, Activity::Rechecking, case.job.measure.timeout);
    restore_inputs(bench)?;
    let batch = timed_run(bench, case, 1);
    bench.device.run(&batch)?;
    match find_trespass(bench, case)? {
        Some(mismatch) => Ok(Some(mismatch)),
        None => find_changed_input(bench),
    }
}

fn shared(found: &Mismatch) -> Mismatch {
    let what = format!("{} during the timed launches, by this variant or by one interleaved with it", found.what);
    Mismatch { what, ..found.clone() }
}
