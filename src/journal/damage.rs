//! The effect of damaged lines: the groups that were running when they were written are left out.

use std::collections::{HashMap, HashSet};

use super::Damaged;
use crate::model::{Event, GroupKey};

/// What a line is, as far as the groups that run depend on it.
pub(super) enum Role<'a> {
    RunStarted,
    Planned,
    GroupStarted(&'a GroupKey),
    GroupFinished(&'a GroupKey),
    /// The result of a case that was run.
    Result(&'a GroupKey),
    /// Another line of a case.
    OfCase(&'a GroupKey),
    Other,
}

/// What a line holds.
pub(super) trait Step {
    fn role(&self) -> Role<'_>;
}

impl Step for Event {
    fn role(&self) -> Role<'_> {
        match self {
            Self::RunStarted { .. } => Role::RunStarted,
            Self::CasesPlanned { .. } => Role::Planned,
            Self::GroupStarted { key, .. } => Role::GroupStarted(key),
            Self::GroupFinished { key, .. } => Role::GroupFinished(key),
            Self::CaseChecked { case, .. } | Self::CaseMeasured { case, .. } => Role::Result(&case.group),
            other => other.case().map_or(Role::Other, |case| Role::OfCase(&case.group)),
        }
    }
}

type Entry<T> = Result<T, Damaged>;

/// What is left without the affected groups up to the damage, and the damaged lines. An error if the plan of a run may
/// be affected.
pub(super) fn leave_out<T: Step>(entries: Vec<Entry<T>>) -> Result<(Vec<T>, Vec<Damaged>), Damaged> {
    if entries.iter().all(Result::is_ok) {
        // In the memory of the entries.
        return Ok((entries.into_iter().filter_map(Result::ok).collect(), Vec::new()));
    }
    let mut void: HashMap<GroupKey, usize> = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let Err(damaged) = entry else { continue };
        if affects_plan(&entries, place) {
            return Err(damaged.clone());
        }
        for group in affected(&entries, place) {
            let end = next_start(&entries, place, &group);
            let until = void.entry(group).or_default();
            *until = end.max(*until);
        }
    }
    let (mut sound, mut damaged) = (Vec::with_capacity(entries.len()), Vec::new());
    for (place, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(step) => {
                let group = match step.role() {
                    Role::Result(group) | Role::OfCase(group) => Some(group),
                    _ => None,
                };
                if group.and_then(|group| void.get(group)).is_none_or(|until| place >= *until) {
                    sound.push(step);
                }
            }
            Err(line) => damaged.push(line),
        }
    }
    Ok((sound, damaged))
}

/// Whether the line may have been the start of a run or its plan.
fn affects_plan<T: Step>(entries: &[Entry<T>], place: usize) -> bool {
    let began = entries[..place].iter().rev().flatten().find_map(|step| match step.role() {
        Role::GroupStarted(_) | Role::GroupFinished(_) => Some(true),
        Role::RunStarted => Some(false),
        _ => None,
    });
    let next = entries[place..].iter().flatten().next();
    began != Some(true) || next.is_some_and(|step| matches!(step.role(), Role::Planned))
}

/// The groups that were running, and the next one that continues without a line for its start.
fn affected<T: Step>(entries: &[Entry<T>], place: usize) -> HashSet<GroupKey> {
    let mut running: HashSet<GroupKey> = HashSet::new();
    for step in entries[..place].iter().flatten() {
        match step.role() {
            Role::RunStarted => running.clear(),
            Role::GroupStarted(key) => {
                running.insert(key.clone());
            }
            Role::GroupFinished(key) => {
                running.remove(key);
            }
            _ => {}
        }
    }
    let mut started: HashSet<&GroupKey> = HashSet::new();
    for step in entries[place..].iter().flatten() {
        match step.role() {
            Role::RunStarted => break,
            Role::GroupStarted(key) => {
                started.insert(key);
            }
            Role::Result(key) | Role::GroupFinished(key) if !started.contains(key) => {
                running.insert(key.clone());
            }
            _ => {}
        }
    }
    running
}

/// Where the group starts again after the damage; the end if it does not.
fn next_start<T: Step>(entries: &[Entry<T>], place: usize, group: &GroupKey) -> usize {
    let starts = |entry: &Entry<T>| {
        entry.as_ref().is_ok_and(|step| matches!(step.role(), Role::GroupStarted(key) if key == group))
    };
    entries[place..].iter().position(starts).map_or(entries.len(), |after| place + after)
}
