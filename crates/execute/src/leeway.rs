//! What a check allows beyond its tolerance: subnormal results that the code flushes to zero and, if the manifest
//! states no tolerance, an absolute error derived from the data.
//!
//! A reference expression has terms, whose sizes bound the error of its sum. A kernel, file or function has none, so
//! the relative tolerance is also applied to the median of the expected magnitudes. Both are computed only if an
//! element would otherwise be wrong.

use std::cell::{OnceCell, RefCell};

use super::bench::Bench;
use super::cases::ReadyCase;
use super::compare::{Errors, Leeway};
use super::compared_elements::Sides;
use super::operand::{Lanes, Operand};
use super::reference;
use super::stop::Stop;
use super::unwritten::Unwritten;
use runner_types::{BodyPlan, CheckPlan, ElementType, ExpectPlan, Mismatch};

/// Mismatch of a result, given its check's tolerance and the other allowances.
pub fn find_mismatch(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    (check, sides): (&CheckPlan, &Sides),
    unwritten: Option<&Unwritten>,
) -> Result<Option<Mismatch>, Stop> {
    let flushes = match &case.job.body {
        BodyPlan::Launches(launches) => launches.iter().any(|launch| launch.unit.flushes_subnormals()),
        BodyPlan::Host(_) | BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) => false,
    };
    if !check.tolerance.derived {
        return sides.mismatch(check, unwritten, &Leeway { flushes, errors: None });
    }
    let store = RefCell::new(&mut bench.store);
    let unit = unit_roundoff(sides.actual.element());
    let of_terms = |elements: &[usize]| -> Vec<f64> {
        let ExpectPlan::Reference(expression) = &check.expect else { return Vec::new() };
        let elements: Vec<usize> = match &sides.elements {
            Some(known) => elements.iter().map(|element| known[*element]).collect(),
            None => elements.to_vec(),
        };
        let bounds = reference::bounds(expression, &elements, &mut |name| {
            let plan = case.job.buffers.iter().find(|plan| plan.name == name);
            let plan = plan.ok_or_else(|| Stop::unresolved(format!("there is no buffer `{name}`")))?;
            Ok::<_, Stop>(Operand::Bytes { element: plan.element, bytes: store.borrow_mut().input(plan)? })
        });
        // Without a bound, only the tolerance applies.
        bounds.map_or_else(|_| vec![0.0; elements.len()], |bounds| bounds.into_iter().map(|b| b * unit).collect())
    };
    let typical = OnceCell::new();
    let of_median = |elements: &[usize]| {
        vec![check.tolerance.rel * typical.get_or_init(|| median(&sides.expected)); elements.len()]
    };
    let has_terms = matches!(check.expect, ExpectPlan::Reference(_));
    let errors: &Errors<'_> = if has_terms { &of_terms } else { &of_median };
    sides.mismatch(check, unwritten, &Leeway { flushes, errors: Some(errors) })
}

/// Maximum relative error of one rounding to nearest.
fn unit_roundoff(element: Option<ElementType>) -> f64 {
    match element {
        Some(ElementType::F16) => 2f64.powi(-11),
        Some(ElementType::Bf16) => 2f64.powi(-8),
        Some(ElementType::F32) => 2f64.powi(-24),
        _ => 2f64.powi(-53),
    }
}

/// Median magnitude of an array, ignoring zeros, NaN and infinities; 0 if nothing remains.
fn median(values: &Operand) -> f64 {
    let mut sizes = match reference::all_lanes(values) {
        Lanes::Float(lanes) => lanes,
        Lanes::Int(_) => Vec::new(),
    };
    for size in &mut sizes {
        *size = size.abs();
    }
    sizes.retain(|size| size.is_finite() && *size > 0.0);
    let middle = sizes.len() / 2;
    if sizes.is_empty() { 0.0 } else { *sizes.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests;
