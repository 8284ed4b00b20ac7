//! Further launches of a case before anything is timed, in the state that the first one left.
//!
//! A kernel may store a constant that is right only for the manifest's inputs, or return early because it finds its
//! result already present: in its outputs, in a variable, in `scratch`. Timing back-to-back launches never reveals
//! that, since all of them have the same result. So the inputs change between the launches, and nothing else is
//! prepared. If no input is random, there are two launches, and outputs are poisoned between them.
//!
//! A device that measures time launches every case again, on each set of inputs. The simulator does so for kernels
//! whose variables may keep state, and for cases in which other inputs cost at most about a second. That cost is
//! computed from counts, not from a clock, so a case is checked in the same way on every machine.

use super::bench::{Bench, host_allowance, multiplications};
use super::buffers::Poison;
use super::cases::ReadyCase;
use super::function::called;
use super::illegal_writes::find_changed_input;
use super::input_sets::{FIRST, MIXED, OTHER};
use super::judge::judge;
use super::mutants::try_results_of_other_inputs;
use super::nan_results::explain_wrong_result;
use super::stop::Stop;
use super::values::keep_for_others;
use super::variables::{look_at_variables, preparation, undeclared_variables};
use runner_backend::{Batch, CountReport, Prepare};
use runner_types::{Activity, BodyPlan, CaseJob, Mismatch, Note, Outcome, Skipped};

/// Maximum cost of the second set of inputs on the simulator, in seconds, unless `--thorough` is given.
const MOST_SECONDS: f64 = 1.0;

/// Warp instructions that the simulator executes per second, on two cores with the sanitizer.
const INSTRUCTIONS_PER_SECOND: f64 = 2e7;

/// Bytes that the host generates, copies and compares per second.
const BYTES_PER_SECOND: f64 = 5e8;

/// Multiplications per second in references.
const MULTIPLICATIONS_PER_SECOND: f64 = 5e8;

/// Suffix of a mismatch, by the launch's set of inputs.
const PLACES: [&str; MIXED + 1] = [", in a second launch", ", on a second set of inputs", ", on a third set of inputs"];

/// Number of warp instructions that a run executed. Counts of a sampled launch are extrapolated to all blocks.
pub fn count_instructions(report: &CountReport) -> Option<f64> {
    let share = report.run.notes.iter().find_map(|note| match note {
        Note::Sampled { ran, of } => Some(*ran as f64 / *of as f64),
        _ => None,
    });
    let counted = report.counters.as_ref()?.whole.get("ptx_inst_executed")?;
    Some(counted * share.unwrap_or(1.0))
}

/// Whether another set of inputs costs the simulator at most [`MOST_SECONDS`], judging by the first set. The cost of a
/// Python or C++ function is unknown, so it counts as too much.
pub fn is_cheap(job: &CaseJob, instructions: f64) -> bool {
    let seconds = instructions / INSTRUCTIONS_PER_SECOND
        + job.buffer_bytes().0 as f64 / BYTES_PER_SECOND
        + multiplications(job) / MULTIPLICATIONS_PER_SECOND;
    seconds <= MOST_SECONDS && job.checks.iter().all(|check| called(&check.expect).is_none())
}

/// Outcome of the further launches of a case.
pub enum Repeated {
    /// Every result was correct, on every set of inputs that the case has.
    Right,
    Wrong(Mismatch),
    /// Every result was correct, but a set of inputs was skipped.
    Skipped(Skipped),
}

/// Why a case is not launched again on a device that measures no time; `None` if it is, because of its variables or for
/// other inputs.
fn skipped(bench: &Bench<'_>, case: &ReadyCase<'_>) -> Option<Skipped> {
    let job = case.job;
    let keeps_variables = !undeclared_variables(bench, case).is_empty();
    let may_vary = job.thorough || case.instructions.is_some_and(|count| is_cheap(job, count));
    match (job.sampled, keeps_variables) {
        (true, true) => Some(Skipped::Sample),
        (false, true) => None,
        (_, false) if may_vary => None,
        (_, false) if job.checks.iter().any(|check| called(&check.expect).is_some()) => Some(Skipped::Function),
        (_, false) => Some(Skipped::Cost),
    }
}

/// Launches a case again after it has passed its check, and finds what is wrong with the result. Leaves the first set
/// of inputs chosen. A profiler measures only one launch.
pub fn repeat<'a>(bench: &mut Bench<'a>, case: &ReadyCase<'a>) -> Result<Repeated, Stop> {
    let is_launched = matches!(case.job.body, BodyPlan::Launches(_) | BodyPlan::Host(_));
    if !is_launched || bench.is_profiled() {
        return Ok(Repeated::Right);
    }
    let can_vary = bench.store.can_vary(&case.slots());
    if bench.device.clock().is_none()
        && let Some(why) = skipped(bench, case)
    {
        return Ok(if can_vary { Repeated::Skipped(why) } else { Repeated::Right });
    }
    match repeat_on_each_set(bench, case)? {
        (Some(mismatch), _) => Ok(Repeated::Wrong(mismatch)),
        // On a device that measures time, a note says why inputs do not change.
        (None, false) if can_vary && bench.device.clock().is_none() => Ok(Repeated::Skipped(Skipped::Memory)),
        (None, _) => Ok(Repeated::Right),
    }
}

/// Mismatch of a result, if any, and whether the inputs varied.
fn repeat_on_each_set<'a>(bench: &mut Bench<'a>, case: &ReadyCase<'a>) -> Result<(Option<Mismatch>, bool), Stop> {
    let is_timed = bench.device.clock().is_some();
    if !is_timed {
        bench.store.vary(bench.device, OTHER + 1)?;
    }
    let varies = case.slots().into_iter().any(|slot| bench.store.varies(slot));
    let is_due = is_timed || varies || !undeclared_variables(bench, case).is_empty();
    let sets = if varies { OTHER..bench.store.sets.count } else { FIRST..usize::from(is_due) };
    let mut found = Ok(None);
    for set in sets {
        found = launch_again(bench, case, set);
        if !matches!(found, Ok(None)) {
            break;
        }
    }
    bench.store.choose(bench.device, FIRST)?;
    if !is_timed {
        bench.store.unvary(bench.device);
    }
    Ok((found?, varies))
}

fn launch_again<'a>(bench: &mut Bench<'a>, case: &ReadyCase<'a>, set: usize) -> Result<Option<Mismatch>, Stop> {
    let varies = set != FIRST;
    if varies {
        // Another set would hide a change of this one.
        let changed = find_changed_input(bench)?;
        if changed.is_some() {
            return Ok(changed);
        }
        bench.store.choose(bench.device, set)?;
    }
    let (job, slots) = (case.job, case.slots());
    let prepare: Vec<Prepare> = if job.sampled {
        // The elements that its blocks write must be distinguishable from the others, as after the first launch.
        bench.store.prepare(&slots, Poison::Checked)
    } else if varies {
        slots.iter().filter_map(|slot| bench.store.restoration(*slot)).collect()
    } else {
        bench.store.prepare(&slots, Poison::Timed)
    };
    // Not part of the first check: its output was reported before, and it gets the time limit of a launch.
    bench.announce(job, Activity::Rechecking, job.measure.timeout);
    let done = bench.device.run(&Batch::once(prepare, case.steps().to_vec())).map_err(Stop::from);
    done.map_err(|stop| on_set(set, stop))?;
    bench.announce(job, Activity::Rechecking, host_allowance(job));
    look_at_variables(bench, case)?;
    if let Some(mut mismatch) = judge(bench, case)?.mismatch() {
        let poison = if job.sampled { Poison::Checked } else { Poison::Timed };
        let prepare = preparation(bench, case, poison);
        bench.device.run(&Batch::once(prepare, case.steps().to_vec()))?;
        if judge(bench, case)?.mismatch().is_none() {
            let carried = ", in a launch that finds outputs, variables and scratch as an earlier launch left them";
            mismatch.what.push_str(carried);
            return Ok(Some(mismatch));
        }
        mismatch.what.push_str(PLACES[set]);
        if bench.device.clock().is_some() {
            mismatch.what.push_str(explain_wrong_result(bench, case)?);
        }
        return Ok(Some(mismatch));
    }
    if varies {
        keep_for_others(bench, case)?;
        try_results_of_other_inputs(bench, case)?;
        return find_changed_input(bench);
    }
    Ok(None)
}

/// Names the set of inputs that triggers a kernel's fault, unless it is the manifest's.
fn on_set(set: usize, stop: Stop) -> Stop {
    match stop {
        Stop::Case(Outcome::Trap { message }) if set != FIRST => {
            let place = PLACES[set].trim_start_matches(", ");
            Stop::Case(Outcome::Trap { message: format!("{place}: {message}") })
        }
        other => other,
    }
}
