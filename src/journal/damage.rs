//! The effect of damaged lines: the groups that were running when they were written are left out.

use std::collections::{HashMap, HashSet};

use super::Damaged;
use crate::model::{Event, GroupKey};

type Entry = Result<Event, Damaged>;

/// The events without those of affected groups up to the damage, and the damaged lines. An error if the plan of a run
/// may be affected.
pub(super) fn leave_out(entries: Vec<Entry>) -> Result<(Vec<Event>, Vec<Damaged>), Damaged> {
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
    let (mut events, mut damaged) = (Vec::with_capacity(entries.len()), Vec::new());
    for (place, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(event) => {
                let group = event.case().map(|case| &case.group);
                if group.and_then(|group| void.get(group)).is_none_or(|until| place >= *until) {
                    events.push(event);
                }
            }
            Err(line) => damaged.push(line),
        }
    }
    Ok((events, damaged))
}

/// Whether the line may have been the start of a run or its plan.
fn affects_plan(entries: &[Entry], place: usize) -> bool {
    let intact = |entry: &&Entry| entry.is_ok();
    let began = entries[..place].iter().rev().flatten().find_map(|event| match event {
        Event::GroupStarted { .. } | Event::GroupFinished { .. } => Some(true),
        Event::RunStarted { .. } => Some(false),
        _ => None,
    });
    let next = entries[place..].iter().find(intact).and_then(|entry| entry.as_ref().ok());
    began != Some(true) || matches!(next, Some(Event::CasesPlanned { .. }))
}

/// The groups that were running, and the next one that continues without a line for its start.
fn affected(entries: &[Entry], place: usize) -> HashSet<GroupKey> {
    let mut running: HashSet<GroupKey> = HashSet::new();
    for event in entries[..place].iter().flatten() {
        match event {
            Event::RunStarted { .. } => running.clear(),
            Event::GroupStarted { key, .. } => {
                running.insert(key.clone());
            }
            Event::GroupFinished { key, .. } => {
                running.remove(key);
            }
            _ => {}
        }
    }
    let mut started: HashSet<&GroupKey> = HashSet::new();
    for event in entries[place..].iter().flatten() {
        match event {
            Event::RunStarted { .. } => break,
            Event::GroupStarted { key, .. } => {
                started.insert(key);
            }
            Event::CaseChecked { case, .. } | Event::CaseMeasured { case, .. } if !started.contains(&case.group) => {
                running.insert(case.group.clone());
            }
            Event::GroupFinished { key, .. } if !started.contains(key) => {
                running.insert(key.clone());
            }
            _ => {}
        }
    }
    running
}

/// Where the group starts again after the damage; the end if it does not.
fn next_start(entries: &[Entry], place: usize, group: &GroupKey) -> usize {
    let starts = |entry: &Entry| matches!(entry, Ok(Event::GroupStarted { key, .. }) if key == group);
    entries[place..].iter().position(starts).map_or(entries.len(), |after| place + after)
}
