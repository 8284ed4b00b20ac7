//! Both sides of a check: the case's result, and its expected value.

use super::bench::Bench;
use super::cases::{Body, ReadyCase};
use super::expected::Expected;
use super::function::called;
use super::operand::Operand;
use super::reference;
use super::stop::Stop;
use super::unwritten::part_of;
use runner_types::{Access, CheckPlan, ElementType, ExpectPlan, Phase};

pub fn read_actual(bench: &mut Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<Operand, Stop> {
    match &case.body {
        Body::Host(body) => return Ok(body.result()),
        Body::Timed => return Err(Stop::unresolved("the function of the case is being timed")),
        Body::Device(_) => {}
    }
    let phase = bench.spend(Phase::Transfer);
    let value = reference::evaluate(&check.actual, &mut |name| read_buffer(bench, case, name));
    bench.spend(phase);
    value
}

/// Current content of a buffer. For an input this is its initial content, since a case that changes it fails anyway.
pub fn read_buffer(bench: &mut Bench<'_>, case: &ReadyCase<'_>, name: &str) -> Result<Operand, Stop> {
    let slot = case.slot_after(bench, name);
    let Some((slot, plan)) = slot.and_then(|slot| Some((slot, bench.store.get(slot)?.plan.clone()))) else {
        return Err(Stop::unresolved(format!("the check uses a buffer `{name}` that the case does not have")));
    };
    if plan.access == Access::In {
        return Ok(Operand::Bytes { element: plan.element, bytes: bench.store.input(&plan)? });
    }
    bench.expected.output(bench.device, &bench.store, slot)
}

/// Expected value of a check; `None` if that is the case itself.
pub fn expectation(bench: &mut Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<Option<Operand>, Stop> {
    let job = case.job;
    if let ExpectPlan::Reference(expression) = &check.expect {
        return bench.expected.reference(&mut bench.store, job, expression).map(Some);
    }
    if let ExpectPlan::Variant(name) = &check.expect {
        let other = bench.find_variant(job, name).filter(|other| *other != case.place);
        return Ok(other.and_then(|other| bench.expected.kept(other, bench.store.sets.current, &check.actual)));
    }
    let element = match called(&check.expect).and(element_of(case, check)) {
        Some(element) => element,
        None => read_actual(bench, case, check)?.element().unwrap_or(ElementType::F64),
    };
    match &check.expect {
        ExpectPlan::Reference(_) | ExpectPlan::Variant(_) => Ok(None),
        ExpectPlan::Npy(path) => bench.expected.golden(path, element, false).map(Some),
        ExpectPlan::Raw(path) => bench.expected.golden(path, element, true).map(Some),
        ExpectPlan::Part(part) => bench.expected.part(part, element).map(Some),
        ExpectPlan::List(values) => Expected::list(values, element).map(Some),
        ExpectPlan::Python(_) | ExpectPlan::Cpp(_) => {
            let Some(function) = called(&check.expect) else { return Ok(None) };
            bench.expected.function(&mut bench.store, job, function, element).map(Some)
        }
    }
}

/// Starts computing the function values that a case's checks expect for the current set of inputs.
pub fn begin_functions(bench: &mut Bench<'_>, case: &ReadyCase<'_>) {
    for check in &case.job.checks {
        if let (Some(function), Some(element)) = (called(&check.expect), element_of(case, check)) {
            // The check itself reports an error.
            let _ = bench.expected.begin_function(&mut bench.store, case.job, function, element);
        }
    }
}

/// Element type that a check compares, if that is a buffer or a part of one.
fn element_of(case: &ReadyCase<'_>, check: &CheckPlan) -> Option<ElementType> {
    let (name, _) = part_of(&check.actual)?;
    case.job.buffers.iter().find(|buffer| buffer.name == name).map(|buffer| buffer.element)
}

/// Keeps the results that other cases are compared with, while the outputs exist.
pub fn keep_for_others(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<(), Stop> {
    let set = bench.store.sets.current;
    bench.expected.forget(case.place, set);
    for check in bench.checks_against(case.job) {
        if bench.expected.kept(case.place, set, &check.actual).is_none() {
            let value = read_actual(bench, case, check)?;
            bench.expected.keep(case.place, set, check.actual.clone(), value);
        }
    }
    Ok(())
}
