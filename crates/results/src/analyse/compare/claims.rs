//! Judges the new manifest's claims by the results of both sides.

use serde::Serialize;
use strum::VariantArray;

use super::Pair;
use crate::analyse::claims::{ClaimState, JudgedClaim, judge_all};
use runner_lang::claim::{Revision, revisions};
use runner_types::Claim;

/// How a claim changed, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// Broken by the new results, while the base's results do not break it or the base does not claim it.
    NewlyBroken,
    /// Broken on both sides.
    StillBroken,
    /// No longer in the new manifest.
    Removed,
    /// Undecided by the new results, held by the base's.
    NewlyUndecided,
    /// Undecided on both sides.
    Undecided,
    /// The new results cannot judge it.
    NotApplicable,
    /// Held by the new results, broken by the base's.
    Repaired,
    /// Held by the new results.
    Held,
}

impl ClaimKind {
    /// All kinds, in report order.
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

    /// Machine-readable name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A claim of the new manifest, or one that only the base has. Both sides are judged by the same text.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimChange {
    pub kind: ClaimKind,
    /// Judgement by the base's results.
    pub base: JudgedClaim,
    /// Judgement by the new results.
    pub new: JudgedClaim,
    /// The claim that it replaces in the base's manifest, judged by the new results; `None` unless it was revised.
    pub former: Option<JudgedClaim>,
}

impl ClaimChange {
    /// Whether it fails a gate.
    pub const fn fails(&self) -> bool {
        matches!(self.kind, ClaimKind::NewlyBroken | ClaimKind::StillBroken)
    }
}

/// The claims of a pair in the new manifest's order, followed by removed ones.
pub(super) fn compare_claims(pair: Pair<'_>) -> Vec<ClaimChange> {
    let [of_base, of_new] = [pair.base, pair.new].map(|records| records.header.claims.as_slice());
    let judged = |claims: &[Claim]| judge_all(pair.base, claims).into_iter().zip(judge_all(pair.new, claims));
    let revised = revisions(of_base, of_new);
    let former = |claim: &Claim| {
        let revision = revised.iter().find(|revision| revision.new == Some(claim))?;
        judge_all(pair.new, std::slice::from_ref(revision.base?)).pop()
    };
    let change = |(base, new): (JudgedClaim, JudgedClaim)| {
        // If only the new manifest makes the claim, it cannot be *still* broken.
        let kind = match ClaimKind::classify(base.state, new.state) {
            ClaimKind::StillBroken if !of_base.contains(&new.claim) => ClaimKind::NewlyBroken,
            kind => kind,
        };
        let former = former(&new.claim);
        ClaimChange { kind, base, new, former }
    };
    let removed = |revision: &Revision<'_>| revision.base.filter(|_| revision.new.is_none()).cloned();
    let removed: Vec<Claim> = revised.iter().filter_map(removed).collect();
    let removed = judged(&removed);
    let removed = removed.map(|(base, new)| ClaimChange { kind: ClaimKind::Removed, base, new, former: None });
    judged(of_new).map(change).chain(removed).collect()
}
