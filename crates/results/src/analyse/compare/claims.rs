//! Judges on both sides what the manifest of the new report claims.

use serde::Serialize;
use strum::VariantArray;

use super::{Options, Pair};
use crate::analyse::claims::{ClaimState, JudgedClaim, judge_all};
use runner_types::Claim;

/// What became of a claim, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// The new results are false to it; those of the base were not.
    NewlyBroken,
    /// The results of both are false to it.
    StillBroken,
    /// The manifest of the new report no longer makes it.
    Removed,
    /// The new results do not decide it; those of the base bore it out.
    NewlyUndecided,
    /// The new results do not decide it, as those of the base.
    Undecided,
    /// The new results cannot judge it.
    NotApplicable,
    /// The new results bear it out; those of the base were false to it.
    Repaired,
    /// The new results bear it out.
    Held,
}

impl ClaimKind {
    /// Every kind, in the order in which reports show them.
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

/// A claim of the new report's manifest, or one that only the base's makes. Both sides are judged by the same text.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimChange {
    /// What became of it.
    pub kind: ClaimKind,
    /// What the base's results say of it.
    pub base: JudgedClaim,
    /// What the new results say of it.
    pub new: JudgedClaim,
    /// Whether it fails a gate.
    pub fails: bool,
}

/// Returns the claims of a pair, in the new manifest's order, those that it no longer makes at the end.
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
