//! Elements that fall outside all bins that a check counts: they are wrong, but no count would show it.

use super::bench::Bench;
use super::cases::ReadyCase;
use super::operand::{Lanes, PIECE, show, whole};
use super::parallel;
use super::stop::Stop;
use super::values::read_actual;
use runner_types::{CheckPlan, Mismatch, RefExpr, RefFunction};

/// Mismatch of a check whose result has elements outside the bins it counts.
pub fn find_outside_of_bins(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    check: &CheckPlan,
) -> Result<Option<Mismatch>, Stop> {
    let Some((counted, bins)) = counted(&check.actual) else { return Ok(None) };
    let values = read_actual(bench, case, &CheckPlan { actual: counted.clone(), ..check.clone() })?;
    let (element, len) = (values.element(), values.len().unwrap_or(0));
    let blocks = parallel::blocks(len, PIECE, &|block| {
        let Lanes::Int(lanes) = values.lanes(block.clone()) else { return (None, 0) };
        let outside = |lane: &i64| !(0..i128::from(bins)).contains(&whole(element, *lane));
        let first = lanes.iter().position(outside).map(|place| block.start + place);
        (first, lanes.iter().filter(|lane| outside(lane)).count() as u64)
    });
    let wrong = blocks.iter().map(|(_, wrong)| wrong).sum();
    let first = blocks.into_iter().find_map(|(first, _)| first);
    Ok(first.map(|first| Mismatch {
        what: format!("{}: elements that are counted", check.text),
        index: first as u64,
        expected: format!("an integer from 0 to {}", bins - 1),
        got: show(values.number(first), element),
        error: None,
        wrong,
        of: len as u64,
        allowed: None,
    }))
}

/// Expression whose elements are counted in bins, and the number of bins.
fn counted(expression: &RefExpr) -> Option<(&RefExpr, i64)> {
    let (function, buffers, integers) = match expression {
        RefExpr::Call { function, buffers, integers } => (function, buffers, integers),
        RefExpr::Elementwise { operands, .. } => return operands.iter().find_map(counted),
        RefExpr::Buffer(_) | RefExpr::Constant(_) => return None,
    };
    match (function, buffers.as_slice(), integers.as_slice()) {
        (RefFunction::Histogram, [counted], [bins]) => Some((counted, *bins)),
        _ => buffers.iter().find_map(counted),
    }
}
