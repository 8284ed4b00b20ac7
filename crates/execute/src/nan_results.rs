//! Results that are NaN although no input is: the kernel reads an output before it writes it, or never writes it.
//!
//! Outputs are poisoned with NaN, so two kernels that read their outputs agree in NaN, whatever else they compute. A
//! device that tracks writes stops such a kernel with a fault; on others, this module finds it.

use super::bench::Bench;
use super::buffers::Poison;
use super::cases::ReadyCase;
use super::judge::judge_results;
use super::mask::selected;
use super::operand::{Operand, PIECE};
use super::parallel;
use super::stop::Stop;
use super::values::expectation;
use super::variables::preparation;
use runner_backend::Batch;
use runner_types::{Access, CheckPlan, ElementType, ExpectPlan, Mismatch, RefExpr, Unchecked, Verdict};

/// Advice at the end of the message.
const REMEDY: &str = "an output that a kernel reads before it writes it needs `access = \"inout\"` and a `fill` \
                      (`runner try`: --arg NAME=inout); one that it writes only in part needs a shorter `len` (`runner \
                      try`: --arg NAME=LENGTH)";

/// Explains why the verdict depends on the outputs' content before the launch.
const UNWRITTEN_READ: &str = ", but right if outputs hold other values before the launch: one is read before it is \
                              written, so it needs `access = \"inout\"` with a `fill`";

/// Explanation of a wrong result on the current inputs; empty if there is none.
pub fn explain_wrong_result(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<&'static str, Stop> {
    let mut are_right = [false; 2];
    for (is_right, poison) in are_right.iter_mut().zip([Poison::Checked, Poison::Timed]) {
        let prepare = preparation(bench, case, poison);
        bench.device.run(&Batch::once(prepare, case.steps().to_vec()))?;
        *is_right = judge_results(bench, case)?.mismatch().is_none();
    }
    Ok(if are_right == [true, false] { UNWRITTEN_READ } else { "" })
}

/// Finds NaN in the values on which a passed verdict is based, for a case or for one that it is compared with. `None`
/// if there is none, or if an input is NaN or infinite.
pub fn find_unfounded(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    verdict: &Verdict,
) -> Result<Option<Mismatch>, Stop> {
    if case.is_partial {
        return Ok(None);
    }
    for (what, value) in grounds(bench, case, verdict)? {
        if let Some((index, wrong)) = find(&value, f64::is_nan)
            && !has_special_input(bench, case)?
        {
            return Ok(Some(Mismatch {
                what: format!("{what}: NaN, although no input is NaN or infinite; {REMEDY}"),
                index,
                expected: "a number".to_owned(),
                got: "NaN".to_owned(),
                error: None,
                wrong,
                of: value.len().unwrap_or(1) as u64,
                allowed: None,
            }));
        }
    }
    Ok(None)
}

/// Values in which NaN may show: results that other cases are compared with, function results in this case's checks,
/// and its outputs if neither contains them.
fn grounds(bench: &mut Bench<'_>, case: &ReadyCase<'_>, verdict: &Verdict) -> Result<Vec<(String, Operand)>, Stop> {
    let set = bench.store.sets.current;
    let mut grounds = Vec::new();
    for check in bench.checks_against(case.job) {
        let what = check.text.split(" against ").next().unwrap_or_default();
        grounds.extend(bench.expected.kept(case.place, set, &check.actual).map(|value| (what.to_owned(), value)));
    }
    for check in case.job.checks.iter().filter(|check| is_computed(check)) {
        if let Some(mut value) = expectation(bench, case, check)? {
            if let Some(elements) = selected(bench, case, check, value.len().unwrap_or(1))? {
                value = value.select(&elements)?;
            }
            grounds.push((format!("the reference of {}", check.text), value));
        }
    }
    if *verdict == Verdict::Unchecked(Unchecked::NoCheck)
        && let Some(body) = case.device_body()
    {
        for (name, slot) in &body.slots {
            let Some(buffer) = bench.store.get(*slot).filter(|buffer| buffer.plan.access == Access::Out) else {
                continue;
            };
            if buffer.plan.element.is_float() && bench.device.unwritten(buffer.id)?.is_none() {
                grounds.push((name.clone(), bench.expected.output(bench.device, &bench.store, *slot)?));
            }
        }
    }
    Ok(grounds)
}

/// Whether an element of an input is NaN or infinite, from which a correct kernel may produce NaN.
fn has_special_input(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<bool, Stop> {
    let is_input = |access: Access| matches!(access, Access::In | Access::InOut);
    for plan in case.job.buffers.iter().filter(|plan| is_input(plan.access) && plan.element.is_float()) {
        let bytes = bench.store.input(plan)?;
        if find(&Operand::Bytes { element: plan.element, bytes }, |value| !value.is_finite()).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the expected value comes from a function or from a manifest expression, which may divide by zero.
fn is_computed(check: &CheckPlan) -> bool {
    matches!(
        check.expect,
        ExpectPlan::Python(_) | ExpectPlan::Cpp(_) | ExpectPlan::Reference(RefExpr::Elementwise { .. })
    )
}

/// Index and value of the first element of a float array for which `is_one` holds.
fn find(value: &Operand, is_one: fn(f64) -> bool) -> Option<(u64, u64)> {
    if !value.element().is_some_and(ElementType::is_float) {
        return None;
    }
    let blocks = parallel::blocks(value.len().unwrap_or(1), PIECE, &|block| {
        let mut lanes = [0.0; PIECE];
        let lanes = &mut lanes[..block.len()];
        value.read_floats(block.start, lanes);
        let first = lanes.iter().position(|lane| is_one(*lane)).map(|place| block.start + place);
        (first, lanes.iter().filter(|lane| is_one(**lane)).count() as u64)
    });
    let first = blocks.iter().find_map(|(first, _)| *first)?;
    Some((first as u64, blocks.iter().map(|(_, count)| count).sum()))
}
