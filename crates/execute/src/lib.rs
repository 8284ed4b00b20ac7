//! Runs one group: prepares inputs, checks each case in two launches, and measures in rounds with checks of timed
//! launches.
//!
//! Drives a device through its traits and reports events. It asks a device what it can do, never which one it is. It
//! knows nothing about journals, progress displays or processes: the caller kills a kernel that hangs, and the event
//! before each step states how long the step may take. Every case gets exactly one outcome, and a case whose result is
//! wrong has no measurement.

mod accuracy;
mod array_tolerance;
mod attribution;
mod audit;
mod bench;
mod buffers;
mod call;
mod case_samples;
mod cases;
mod check;
mod compare;
mod compared_elements;
mod cpp;
mod energy;
mod expected;
mod fill;
mod function;
mod group_cache;
mod host;
mod host_timing;
mod idle;
mod illegal_writes;
mod input_sets;
mod inputs;
mod judge;
mod kernels;
mod launch;
mod leeway;
mod machine_code;
mod mask;
mod measure;
mod mutants;
mod nan_results;
mod operand;
mod outputs;
mod parallel;
mod prepare;
mod printed;
mod processes;
mod python;
mod recheck;
mod reference;
mod repeat;
mod rounds;
mod series;
mod source;
mod stop;
mod structured;
mod typed;
mod unwritten;
mod values;
mod variables;
mod watch;
mod weak;

pub use group_cache::GroupCache;
pub use machine_code::{count_ptx, read_listings};
pub use parallel::leave_a_core;
pub use processes::{MOST_UNASKED, is_likely_spread, share, wanted_processes};
pub use stop::Lost;

use bench::Bench;
use check::Checked;
use measure::Measured;
use prepare::Prepared;
use runner_backend::Device;
use runner_types::{Event, GroupJob, Phase};

/// Runs the cases of a group, interleaved. `cache` passes what each group leaves to the next one of the process.
///
/// Emits `GroupStarted`; for every case `CaseActive` before each step that could hang, the findings, and `CaseSettled`;
/// and at the end `PhaseSpent` and `GroupFinished`.
///
/// # Errors
///
/// [`Lost`] if a kernel destroyed the device's context. Its case is settled as a launch error. Other cases may have no
/// outcome, and have to run again as a group in another process.
pub fn run_group(
    device: &mut dyn Device,
    job: &GroupJob,
    cache: &mut GroupCache,
    emit: &mut dyn FnMut(Event),
) -> Result<(), Lost> {
    emit(Event::GroupStarted { ordinal: job.ordinal, key: job.key.clone(), cases: job.cases.len() as u32 });
    let mut bench = Bench::new(device, job, std::mem::take(cache), emit);
    let done = run_all(&mut bench);
    *cache = bench.close(done.is_err());
    done?;
    emit(Event::GroupFinished { ordinal: job.ordinal, key: job.key.clone() });
    Ok(())
}

/// Runs the cases together, then the deferred ones one by one, starting with those that others are compared with.
fn run_all(bench: &mut Bench<'_>) -> Result<(), Lost> {
    let together: Vec<usize> = (0..bench.job.cases.len()).collect();
    run_cases(bench, &together)?;
    bench.is_alone = true;
    let mut deferred = std::mem::take(&mut bench.deferred);
    deferred.sort_by_key(|place| (bench.checks_against(&bench.job.cases[*place]).is_empty(), *place));
    for place in deferred {
        bench.clear();
        bench.passed.retain(|passed| *passed != place);
        bench.spend(Phase::Transfer);
        run_cases(bench, &[place])?;
    }
    Ok(())
}

/// Runs the cases with these indices in the group, from preparation to outcomes.
fn run_cases(bench: &mut Bench<'_>, places: &[usize]) -> Result<(), Lost> {
    let prepared = tracing::debug_span!("prepare").in_scope(|| Prepared::prepare(bench, places))?;
    let checked = tracing::debug_span!("check").in_scope(|| Checked::check(prepared))?;
    Measured::measure(checked)?.report();
    Ok(())
}

#[cfg(test)]
mod tests;
