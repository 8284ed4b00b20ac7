//! Finds renamed variants of the base, i.e. those that have a different name in the manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::ResolvedGroup;
use super::hashes::content;
use runner_types::{BodyPlan, CaseJob, CompileUnit, LaunchPlan, Value};

/// Launches of each case of a variant, by the values of its axes.
type Points = BTreeMap<Vec<(String, String)>, Vec<(LaunchPlan, String)>>;

/// Maps each renamed variant of the base to its name in the manifest.
///
/// A variant found only in the base matches one found only in the manifest if their launches are equal in every case
/// that both have. A match must be unique on both sides.
pub fn find_renamed(base: &[ResolvedGroup], new: &[ResolvedGroup]) -> BTreeMap<String, String> {
    let (of_base, of_new) = (names(base), names(new));
    let (gone, added) = (points(base, &of_new), points(new, &of_base));
    let alike = |(old, before): (&String, &Points)| -> Vec<(String, String)> {
        let same = added.iter().filter(|(_, after)| runs_the_same(before, after));
        same.map(|(new, _)| (old.clone(), new.clone())).collect()
    };
    let found: Vec<(String, String)> = gone.iter().flat_map(alike).collect();
    let is_alone = |(old, new): &&(String, String)| found.iter().filter(|(o, n)| o == old || n == new).count() == 1;
    found.iter().filter(is_alone).cloned().collect()
}

fn names(groups: &[ResolvedGroup]) -> BTreeSet<String> {
    let settled = groups.iter().flat_map(|group| group.settled.iter().map(|(case, _)| &case.key.variant));
    let running = groups.iter().flat_map(|group| group.job.cases.iter().map(|case| &case.case.key.variant));
    settled.chain(running).cloned().collect()
}

/// Cases of the variants whose names are not in `others`.
fn points(groups: &[ResolvedGroup], others: &BTreeSet<String>) -> BTreeMap<String, Points> {
    let mut found: BTreeMap<String, Points> = BTreeMap::new();
    for case in groups.iter().flat_map(|group| &group.job.cases) {
        let key = &case.case.key;
        if let Some(code) = code(case).filter(|_| !others.contains(&key.variant)) {
            let text = |(name, value): &(String, Value)| (name.clone(), format!("{value:?}"));
            let mut axes: Vec<(String, String)> = key.axes.iter().map(text).collect();
            axes.sort();
            found.entry(key.variant.clone()).or_default().insert(axes, code);
        }
    }
    found
}

/// Launches of a case, with the content of each source instead of its path. Ignores headers, since a renamed variant
/// may use changed ones.
fn code(case: &CaseJob) -> Option<Vec<(LaunchPlan, String)>> {
    let BodyPlan::Launches(launches) = &case.body else { return None };
    let without_paths = |launch: &LaunchPlan| {
        let paths = CompileUnit {
            source: PathBuf::new(),
            include_paths: Vec::new(),
            linked: Vec::new(),
            ..launch.unit.clone()
        };
        (LaunchPlan { unit: paths, compiled: None, ..launch.clone() }, content(&launch.unit.source))
    };
    Some(launches.iter().map(without_paths).collect())
}

fn runs_the_same(before: &Points, after: &Points) -> bool {
    let mut common = after.iter().filter_map(|(axes, code)| Some(before.get(axes)? == code)).peekable();
    common.peek().is_some() && common.all(|same| same)
}
