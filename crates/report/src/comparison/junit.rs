//! The comparison as `JUnit` XML, which CI services show as tests: one suite per report, one test per case.

use serde::Serialize;

use super::{Compared, words};
use crate::claims::detail;
use crate::{RenderError, Templates, wording};
use runner_results::analyse::ClaimState;
use runner_results::analyse::compare::{Change, ClaimChange, Kind, ReportComparison};

#[derive(Debug, Serialize)]
pub struct Suites {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    reports: Vec<Suite>,
}

#[derive(Debug, Serialize)]
struct Suite {
    name: String,
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    cases: Vec<Test>,
}

#[derive(Debug, Serialize)]
struct Test {
    name: String,
    class: String,
    /// Result element: `failure`, `error` or `skipped`; empty for a test that passes.
    result: &'static str,
    kind: &'static str,
    message: String,
}

/// The comparison as `JUnit` XML: one suite per report, one test per case and regime.
pub fn junit(compared: Compared<'_>) -> Result<String, RenderError> {
    let suites: Vec<Suite> = compared.comparison.reports.iter().map(suite).collect();
    let sum = |count: fn(&Suite) -> usize| suites.iter().map(count).sum();
    let page = Suites {
        tests: sum(|suite| suite.tests),
        failures: sum(|suite| suite.failures),
        errors: sum(|suite| suite.errors),
        skipped: sum(|suite| suite.skipped),
        reports: suites,
    };
    Templates::new()?.junit(&page)
}

fn suite(report: &ReportComparison) -> Suite {
    let claims = report.claims.iter().map(|claim| of_claim(report, claim));
    let cases: Vec<Test> = claims.chain(report.changes.iter().map(|change| test(report, change))).collect();
    let count = |result: &str| cases.iter().filter(|test| test.result == result).count();
    Suite {
        name: format!("{}, {}", report.experiment, report.device),
        tests: cases.len(),
        failures: count("failure"),
        errors: count("error"),
        skipped: count("skipped"),
        cases,
    }
}

/// A claim as a test, which fails if the claim fails a gate. An undecided claim that does not fail is skipped.
fn of_claim(report: &ReportComparison, change: &ClaimChange) -> Test {
    let ClaimChange { kind, base, new, .. } = change;
    let condition = new.claim.condition.as_ref().map(|condition| format!(" where {condition}")).unwrap_or_default();
    let result = match new.state {
        _ if change.fails() => "failure",
        ClaimState::Undecided | ClaimState::NotApplicable => "skipped",
        ClaimState::Broken | ClaimState::Held => "",
    };
    Test {
        name: format!("claim {}{condition}", new.claim.text),
        class: report.experiment.clone(),
        result,
        kind: kind.name(),
        message: format!("{}: {}; before: {}", words::claim_state(*kind), detail(new), detail(base)),
    }
}

fn test(report: &ReportComparison, change: &Change) -> Test {
    let regime = change.regime.map(|regime| format!(" {regime}")).unwrap_or_default();
    let result = match change.kind {
        Kind::Slower | Kind::MoreWork if change.is_excused() => "skipped",
        Kind::NewlyWrong | Kind::Slower | Kind::MoreWork => "failure",
        Kind::Incomparable => "error",
        Kind::Gone | Kind::StillWrong => "skipped",
        _ => "",
    };
    let size = change.time.as_ref().map(words::time_change).or_else(|| words::count_change(change));
    let differences = report.differences.iter().filter(|_| change.kind == Kind::Incomparable).map(words::difference);
    let why = Some(words::why(change, report)).filter(|why| !why.is_empty());
    let parts: Vec<String> = size.into_iter().chain(differences).chain(why).collect();
    Test {
        name: format!("{}{regime}", wording::case_name(&change.case)),
        class: report.experiment.clone(),
        result,
        kind: change.kind.name(),
        message: format!("{}: {}", words::heading(change.kind), parts.join("; ")).trim_end_matches(": ").to_owned(),
    }
}
