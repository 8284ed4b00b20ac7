//! Judges the new manifest's claims on both sides.

use serde::Serialize;
use strum::VariantArray;

use super::{Options, Pair};
use crate::analyse::claims::{ClaimState, JudgedClaim, judge_all};
use runner_types::Claim;

/// How a claim changed, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// Broken by the new results, but not by the base's.
    NewlyBroken,
    /// Broken by both.
    StillBroken,
    /// No longer in the new manifest.
    Removed,
    /// Undecided by the new results, held by the base's.
    NewlyUndecided,
    /// Undecided by both.
    Undecided,
    /// The new results cannot judge it.
    NotApplicable,
    /// Held by the new results, broken by the base's.
    Repaired,
    /// Held by the new results.
    Held,
}

impl ClaimKind {
    /// Every kind, in the order of reports.
    pub const ALL: &[Self] = Self::VARIANTS;

    const fn classify(base: ClaimState, new: ClaimState) -> Self {
        match (base, new) {
            (ClaimState::Broken, ClaimState::Broken) => Self::StillBroken,
            (_, ClaimState::Broken) => Self::NewlyBroken,
            (ClaimState::Held, ClaimState::Undecided) => Self::NewlyUndecided,
            (_, ClaimState::Undecided) => Self::Undecided,
            (_, ClaimState::NotApplicable) => Self::NotApplicable,
            (ClaimState::Broken, ClaimState::Held) => Self::Repaired,
            (_, ClaimState::Held) => Self::Held,
        }
    }

    /// Returns the name that programs read.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A claim of the new manifest, or one that only the base's has. Both sides are judged by the same text.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimChange {
    pub kind: ClaimKind,
    /// Judgement of the base's results.
    pub base: JudgedClaim,
    /// Judgement of the new results.
    pub new: JudgedClaim,
    /// Whether it fails a gate.
    pub fails: bool,
}

/// Returns the claims of a pair in the new manifest's order, followed by removed ones.
pub(super) fn compare_claims(pair: Pair<'_>, options: &Options) -> Vec<ClaimChange> {
    let claims = &pair.new.header.claims;
    let change = |(base, new): (JudgedClaim, JudgedClaim)| ClaimChange {
        kind: ClaimKind::classify(base.state, new.state),
        fails: match new.state {
            ClaimState::Broken => true,
            ClaimState::Undecided | ClaimState::NotApplicable => options.strict,
            ClaimState::Held => false,
        },
        base,
        new,
    };
    let removed: Vec<Claim> = pair.base.header.claims.iter().filter(|claim| !claims.contains(claim)).cloned().collect();
    let judged = |claims: &[Claim]| judge_all(pair.base, claims).into_iter().zip(judge_all(pair.new, claims));
    let removed =
        judged(&removed).map(|(base, new)| ClaimChange { kind: ClaimKind::Removed, fails: options.strict, base, new });
    judged(claims).map(change).chain(removed).collect()
}
