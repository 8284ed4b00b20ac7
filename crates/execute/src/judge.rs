//! Judges what the last launch of a case left in its buffers and guard zones.

use super::accuracy::Errors;
use super::bench::Bench;
use super::cases::{Body, ReadyCase};
use super::compared_elements::{Sides, read_sides};
use super::illegal_writes::find_trespass;
use super::kernels::check::surely_passes;
use super::leeway::find_mismatch;
use super::operand::{Lanes, PIECE, show, whole};
use super::parallel;
use super::stop::Stop;
use super::unwritten::find_unwritten;
use super::values::read_actual;
use runner_types::{
    BodyPlan, CaseJob, CheckPlan, ExpectPlan, Mismatch, Note, RefExpr, RefFunction, ResultError, Unchecked, Verdict,
};

/// A verdict, and how much of a partial output it covers.
pub struct Judgement {
    pub verdict: Verdict,
    pub notes: Vec<Note>,
}

impl Judgement {
    pub fn mismatch(self) -> Option<Mismatch> {
        if let Verdict::Mismatch(mismatch) = self.verdict { Some(mismatch) } else { None }
    }
}

pub fn judge(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<Judgement, Stop> {
    match find_trespass(bench, case)? {
        Some(mismatch) => Ok(Judgement { verdict: Verdict::Mismatch(mismatch), notes: Vec::new() }),
        None => judge_results(bench, case),
    }
}

pub fn judge_results(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<Judgement, Stop> {
    let (mut compared, mut notes) = (0, Vec::new());
    for check in own_checks(case) {
        if surely_passes(bench, case, check)? {
            compared += 1;
            continue;
        }
        let Some(sides) = read_sides(bench, case, check)? else { continue };
        compared += 1;
        notes.extend(sides.note(check));
        let unwritten = if case.is_partial { None } else { find_unwritten(bench, case, check)? };
        let mut mismatch = find_mismatch(bench, case, (check, &sides), unwritten.as_ref())?;
        if mismatch.is_none() {
            mismatch = find_outside_of_bins(bench, case, check)?;
        }
        if let Some(mismatch) = mismatch {
            return Ok(Judgement { verdict: Verdict::Mismatch(mismatch), notes });
        }
    }
    let verdict = match compared {
        0 if bench.checks_against(case.job).is_empty() => Verdict::Unchecked(Unchecked::NoCheck),
        0 => Verdict::Unchecked(Unchecked::IsReference),
        _ => Verdict::Pass,
    };
    Ok(Judgement { verdict, notes })
}

/// Error over the checks that request it; `None` if none does, or if all compare integers.
pub fn result_error(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<Option<ResultError>, Stop> {
    let mut errors: Option<Errors> = None;
    for check in own_checks(case).into_iter().filter(|check| check.error) {
        let Some(Sides { actual, expected, .. }) = read_sides(bench, case, check)? else { continue };
        if let Some(found) = Errors::measure(&actual, &expected) {
            errors = Some(errors.map_or(found, |known| known.join(found)));
        }
    }
    Ok(errors.map(Errors::result))
}

/// Checks of a case. A host function has one result: it is judged by the check that expects the same expression, or
/// else by the first check.
fn own_checks<'a>(case: &ReadyCase<'a>) -> Vec<&'a CheckPlan> {
    let job = case.job;
    if !matches!(case.body, Body::Host(_)) {
        return job.checks.iter().collect();
    }
    let same = |check: &&CheckPlan| matches!(&check.expect, ExpectPlan::Reference(e) if is_reference(job, e));
    job.checks.iter().find(same).or(job.checks.first()).into_iter().collect()
}

/// Whether a case's body is this reference expression.
fn is_reference(job: &CaseJob, expression: &RefExpr) -> bool {
    matches!(&job.body, BodyPlan::Cpu(own) if own == expression)
}

/// Mismatch of a check whose result has elements outside the bins it counts. They are wrong, but no count would show
/// it.
fn find_outside_of_bins(
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
