//! How one group runs: inputs, a check of each case, rounds of measurement, a check of the last timed launch.
//!
//! Drives a device through its trait and says aloud what happens; asks a device what it can, never which it is. Knows
//! neither journal nor progress display nor processes: a kernel that hangs is its caller's to end, and the event
//! before each step says how long the step may take. Every case that comes in leaves with exactly one outcome, and a
//! case whose result is wrong leaves without a measurement.

mod accuracy;
mod alone;
mod blame;
mod buffers;
mod check;
mod compare;
mod energy;
mod expected;
mod fill;
mod group;
mod host;
mod kernels;
mod launch;
mod measure;
mod operand;
mod prepare;
mod printed;
mod reference;
mod series;
mod stop;
mod track;
mod typed;
mod watch;

pub use stop::Lost;

use crate::backend::Device;
use crate::model::{Event, GroupJob};
use group::Group;

/// Runs the cases of a group that are left to run, in turns.
///
/// Emits `GroupStarted`, then for every case `CaseActive` before each step that could hang, what was found, and
/// `CaseSettled`; `PhaseSpent` and `GroupFinished` at the end.
///
/// # Errors
///
/// [`Lost`] where a kernel took the device's context along. Its case is settled as a launch error, other cases may be
/// without an outcome: run them as a group again, in a process of its own.
pub fn run_group(device: &mut dyn Device, job: &GroupJob, emit: &mut dyn FnMut(Event)) -> Result<(), Lost> {
    emit(Event::GroupStarted { ordinal: job.ordinal, key: job.key.clone(), cases: job.cases.len() as u32 });
    let mut group = Group::new(device, job, emit);
    let done = group.run();
    group.close(done.is_err());
    done?;
    emit(Event::GroupFinished { ordinal: job.ordinal, key: job.key.clone() });
    Ok(())
}

#[cfg(test)]
mod tests;
