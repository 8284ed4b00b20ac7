//! Judges what the last launch of a case left in its buffers and guard zones.

use super::accuracy::Errors;
use super::bench::Bench;
use super::bins::find_outside_of_bins;
use super::cases::{Body, ReadyCase};
use super::compared_elements::{Sides, read_sides};
use super::illegal_writes::find_trespass;
use super::kernels::check::surely_passes;
use super::leeway::find_mismatch;
use super::stop::Stop;
use super::unwritten::find_unwritten;
use runner_types::{
    BodyPlan, CaseJob, CheckPlan, ExpectPlan, Mismatch, Note, RefExpr, ResultError, Unchecked, Verdict,
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
