//! Finds renamed variants of the base, i.e. those that have a different name in the manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::ResolvedGroup;
use super::hashes::content;
use runner_types::{BodyPlan, CaseJob, CompileUnit, LaunchPlan, Value};

/// Code of each case of a variant, by the values of its axes.
type Points = BTreeMap<Vec<(String, String)>, Vec<Code>>;

/// What identifies a launch.
#[derive(Debug, PartialEq)]
enum Code {
    /// All of it, and the content of its source.
    Whole(Box<LaunchPlan>, String),
    /// All of it, and the name of its source, whose content may have changed.
    Launch(Box<LaunchPlan>, String),
    /// The kernel, and the name of its source.
    Kernel(String, String),
}

/// How much of a launch a renamed variant must have in common with the base's, strictest first.
const LEVELS: [fn(&LaunchPlan) -> Code; 3] = [
    |launch| Code::Whole(Box::new(without_paths(launch)), content(&launch.unit.source)),
    |launch| Code::Launch(Box::new(without_paths(launch)), file_name(launch)),
    |launch| Code::Kernel(launch.kernel.clone(), file_name(launch)),
];

/// Maps each renamed variant of the base to its name in the manifest.
///
/// A variant found only in the base matches one found only in the manifest if their launches are equal in every case
/// that both have. A match must be unique on both sides. Variants without an equal one are then matched although their
/// source changed, and at last by their kernels alone.
pub fn find_renamed(base: &[ResolvedGroup], new: &[ResolvedGroup]) -> BTreeMap<String, String> {
    let (mut of_base, mut of_new) = (names(base), names(new));
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for level in LEVELS {
        let (gone, added) = (points(base, &of_new, level), points(new, &of_base, level));
        let alike = |(old, before): (&String, &Points)| -> Vec<(String, String)> {
            let same = added.iter().filter(|(_, after)| runs_the_same(before, after));
            same.map(|(new, _)| (old.clone(), new.clone())).collect()
        };
        let found: Vec<(String, String)> = gone.iter().flat_map(alike).collect();
        let is_alone = |(old, new): &&(String, String)| found.iter().filter(|(o, n)| o == old || n == new).count() == 1;
        for (old, new) in found.iter().filter(is_alone) {
            // Both are matched, so neither can match another variant.
            of_base.insert(new.clone());
            of_new.insert(old.clone());
            all.insert(old.clone(), new.clone());
        }
    }
    all
}

fn names(groups: &[ResolvedGroup]) -> BTreeSet<String> {
    let settled = groups.iter().flat_map(|group| group.settled.iter().map(|(case, _)| &case.key.variant));
    let running = groups.iter().flat_map(|group| group.job.cases.iter().map(|case| &case.case.key.variant));
    settled.chain(running).cloned().collect()
}

/// Cases of the variants whose names are not in `others`.
fn points(
    groups: &[ResolvedGroup],
    others: &BTreeSet<String>,
    level: fn(&LaunchPlan) -> Code,
) -> BTreeMap<String, Points> {
    let mut found: BTreeMap<String, Points> = BTreeMap::new();
    for case in groups.iter().flat_map(|group| &group.job.cases) {
        let key = &case.case.key;
        if let Some(code) = code(case, level).filter(|_| !others.contains(&key.variant)) {
            let text = |(name, value): &(String, Value)| (name.clone(), format!("{value:?}"));
            let mut axes: Vec<(String, String)> = key.axes.iter().map(text).collect();
            axes.sort();
            found.entry(key.variant.clone()).or_default().insert(axes, code);
        }
    }
    found
}

fn code(case: &CaseJob, level: fn(&LaunchPlan) -> Code) -> Option<Vec<Code>> {
    let BodyPlan::Launches(launches) = &case.body else { return None };
    Some(launches.iter().map(level).collect())
}

/// The launch without the paths of its files. Ignores headers, since a renamed variant may use changed ones.
fn without_paths(launch: &LaunchPlan) -> LaunchPlan {
    let unit =
        CompileUnit { source: PathBuf::new(), include_paths: Vec::new(), linked: Vec::new(), ..launch.unit.clone() };
    LaunchPlan { unit, compiled: None, ..launch.clone() }
}

fn file_name(launch: &LaunchPlan) -> String {
    launch.unit.source.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn runs_the_same(before: &Points, after: &Points) -> bool {
    let mut common = after.iter().filter_map(|(axes, code)| Some(before.get(axes)? == code)).peekable();
    common.peek().is_some() && common.all(|same| same)
}
