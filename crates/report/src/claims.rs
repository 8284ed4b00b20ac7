//! The manifest's claims and their verdicts.

use serde::Serialize;

use super::number::grouped;
use super::table::Cell;
use super::units;
use runner_lang::format::{plural, rough};
use runner_results::analyse::{self, ClaimGroup, ClaimState, JudgedClaim, Range};
use runner_types::Records;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claims {
    /// Counts in words, such as `1 broken, 2 held`.
    pub counts: String,
    /// One line per judged claim, broken ones first.
    pub lines: Vec<ClaimLine>,
    /// Claims that the run cannot judge, by reason.
    pub unjudged: Vec<Unjudged>,
}

/// Claims that cannot be judged for the same reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unjudged {
    pub why: String,
    pub claims: Vec<String>,
}

/// A claim with its result, such as `✗ **broken**: `…`, in 1 of 26 groups: 4.2 (4.1 to 4.3) at n=1048576`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimLine {
    /// Mark whose shape differs by state, for readers who cannot distinguish colours.
    pub mark: &'static str,
    pub state: &'static str,
    pub is_broken: bool,
    pub claim: String,
    /// The condition, such as ` where n >= 2**24`; empty without one.
    pub condition: String,
    pub detail: Vec<Cell>,
}

/// `None` if the manifest has no claims.
pub fn claims(records: &Records) -> Option<Claims> {
    let mut judged = analyse::claims(records);
    if judged.is_empty() {
        return None;
    }
    judged.sort_by_key(|claim| claim.state);
    let (open, decided): (Vec<&JudgedClaim>, Vec<&JudgedClaim>) =
        judged.iter().partition(|claim| claim.state == ClaimState::NotApplicable);
    Some(Claims { counts: counts(&judged), lines: decided.into_iter().map(line).collect(), unjudged: unjudged(&open) })
}

fn unjudged(claims: &[&JudgedClaim]) -> Vec<Unjudged> {
    let mut reasons: Vec<Unjudged> = Vec::new();
    for claim in claims {
        let (why, text) = (detail(claim), claim.claim.text.clone());
        match reasons.iter_mut().find(|known| known.why == why) {
            Some(known) => known.claims.push(text),
            None => reasons.push(Unjudged { why, claims: vec![text] }),
        }
    }
    reasons
}

/// Counts the claims in each state, worst first: `1 broken, 2 held`.
pub fn counts(judged: &[JudgedClaim]) -> String {
    let states = [ClaimState::Broken, ClaimState::Undecided, ClaimState::Held, ClaimState::NotApplicable];
    let count = |state: ClaimState| judged.iter().filter(|claim| claim.state == state).count();
    let parts = states.into_iter().filter(|state| count(*state) > 0);
    parts.map(|state| format!("{} {}", count(state), name(state))).collect::<Vec<_>>().join(", ")
}

pub const fn name(state: ClaimState) -> &'static str {
    match state {
        ClaimState::Broken => "broken",
        ClaimState::Undecided => "undecided",
        ClaimState::Held => "held",
        ClaimState::NotApplicable => "not judged",
    }
}

const fn mark(state: ClaimState) -> &'static str {
    match state {
        ClaimState::Broken => "✗",
        ClaimState::Undecided => "?",
        ClaimState::Held => "✓",
        ClaimState::NotApplicable => "–",
    }
}

pub fn line(judged: &JudgedClaim) -> ClaimLine {
    let condition = judged.claim.condition.as_ref();
    ClaimLine {
        mark: mark(judged.state),
        state: name(judged.state),
        is_broken: judged.state == ClaimState::Broken,
        claim: judged.claim.text.clone(),
        condition: condition.cloned().unwrap_or_default(),
        detail: vec![Cell::plain(detail(judged))],
    }
}

/// The values that decided the verdict, or why there are none.
pub fn detail(judged: &JudgedClaim) -> String {
    let Some(group) = judged.decisive() else {
        let reasons: Vec<String> = judged.unjudged.iter().map(|(why, _)| why.clone()).collect();
        return reasons.join("; ");
    };
    let (count, of) = (judged.count(), judged.groups.len());
    let worst = match (judged.state, of) {
        (_, 1) => String::new(),
        (ClaimState::Held, _) if count == of => format!("in all {of} groups; closest: "),
        (_, _) if count == 1 => format!("in 1 of {of} groups: "),
        _ => format!("in {count} of {of} groups; worst: "),
    };
    let unjudged: usize = judged.unjudged.iter().map(|(_, groups)| groups).sum();
    let rest = match judged.unjudged.first() {
        Some((why, _)) if unjudged > 0 => format!("; not judged in {}: {why}", plural(unjudged as u64, "group")),
        _ => String::new(),
    };
    format!("{worst}{}{}{rest}", values(judged, group), place(group, of))
}

/// ` at n=1048576, cold`; empty if there is only one group.
fn place(group: &ClaimGroup, of: usize) -> String {
    if of < 2 {
        return String::new();
    }
    let axes = units::axes_text(&group.key.0);
    let regime = group.regime.map(|regime| regime.to_string());
    let parts: Vec<String> = Some(axes).filter(|axes| !axes.is_empty()).into_iter().chain(regime).collect();
    format!(" at {}", parts.join(", "))
}

/// Value of the left side, and of the right side unless the claim already states it as a number.
fn values(judged: &JudgedClaim, group: &ClaimGroup) -> String {
    let left = range(&group.left);
    let is_written = judged.claim.text.ends_with(|c: char| c.is_ascii_digit());
    if is_written && group.right.is_exact() { left } else { format!("{left} against {}", range(&group.right)) }
}

/// Formats a range as `4.21 (4.18 to 4.25)`, and an exact number in full.
fn range(range: &Range) -> String {
    if range.is_exact() {
        return exact(range.point);
    }
    let [point, low, high] = [range.point, range.low, range.high].map(|value| grouped(&rough(value)));
    format!("{point} ({low} to {high})")
}

fn exact(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return grouped(&format!("{value:.0}"));
    }
    // A large count cut to three digits would look rounded.
    if (1e3..1e15).contains(&value.abs()) { grouped(&format!("{value:.1}")) } else { rough(value) }
}
