//! The journals of shards and retries, merged, give the records of one run.

use std::collections::BTreeMap;

use runner::analyse;
use runner::journal::{self, MergeError, Merged, Part};
use runner::model::{Case, Event, GroupKey, Outcome, Records, Shard};

use super::fixture;

/// One run of the whole plan.
fn whole() -> Vec<Event> {
    let mut events = fixture::reduce().events;
    let cases: Vec<Case> = events.iter().filter_map(settled).cloned().collect();
    let planned = cases.len() as u64;
    if let Event::RunStarted { cases, .. } = &mut events[0] {
        *cases = planned;
    }
    events.insert(1, Event::CasesPlanned { todo: cases, held: Vec::new() });
    events
}

fn settled(event: &Event) -> Option<&Case> {
    if let Event::CaseSettled { case, .. } = event { Some(case) } else { None }
}

fn key(event: &Event) -> Option<&GroupKey> {
    match event {
        Event::GroupStarted { key, .. } | Event::GroupFinished { key, .. } => Some(key),
        other => other.case().map(|case| &case.group),
    }
}

/// The part of a run that a shard would have written: groups by their position modulo the number of shards.
fn shard(events: &[Event], shard: Shard, started: &str) -> Part {
    let mut order: Vec<GroupKey> = Vec::new();
    for group in events.iter().filter_map(key) {
        if !order.contains(group) {
            order.push(group.clone());
        }
    }
    let place = |group: &GroupKey| order.iter().position(|known| known == group).unwrap() as u32;
    let is_own = |group: &GroupKey| place(group) % shard.of == shard.index - 1;
    let own = events.iter().filter(|event| key(event).is_none_or(is_own)).cloned().map(|event| match event {
        Event::CasesPlanned { todo, held } => {
            Event::CasesPlanned { todo: todo.into_iter().filter(|case| is_own(&case.group)).collect(), held }
        }
        other => other,
    });
    let mut events: Vec<Event> = own.collect();
    if let Event::RunStarted { context, .. } = &mut events[0] {
        context.shard = Some(shard);
        started.clone_into(&mut context.started);
    }
    Part { place: format!("shard {shard} of {started}"), events }
}

fn shards(of: u32) -> Vec<Part> {
    let events = whole();
    (1..=of).map(|index| shard(&events, Shard { index, of }, &format!("2026-01-02T03:04:{index:02}Z"))).collect()
}

#[track_caller]
fn one(parts: Vec<Part>) -> Merged {
    let mut merged = journal::merge(parts).unwrap();
    assert_eq!(merged.len(), 1);
    merged.remove(0)
}

fn records(merged: &Merged) -> Records {
    analyse::records(&merged.events).unwrap()
}

/// The time of a case, by which attempts are told apart.
fn times(records: &Records) -> BTreeMap<u64, f64> {
    let time = |record: &runner::model::CaseRecord| Some((record.case.ordinal, record.result.as_ref()?.time.point));
    records.cases.iter().filter_map(time).collect()
}

/// The part with every time doubled.
fn slower(mut part: Part) -> Part {
    for event in &mut part.events {
        if let Event::CaseMeasured { measurement, .. } = event {
            measurement.rounds.iter_mut().for_each(|round| round.whole *= 2.0);
        }
    }
    part
}

#[test]
fn shards_in_any_order_give_the_records_of_one_run() {
    let expected = analyse::records(&whole()).unwrap();
    // Ten groups: of thirteen shards three are empty.
    for (of, first) in [(3, 1), (13, 7)] {
        let mut parts = shards(of);
        parts.rotate_left(first);
        let merged = one(parts);
        assert!(merged.missing.is_empty(), "{:?}", merged.missing);
        assert!(records(&merged) == expected, "{of} shards");
    }
}

#[test]
fn a_merged_journal_can_be_merged_again() {
    let merged = one(shards(3));
    let again = one(vec![Part { place: "merged".to_owned(), events: merged.events.clone() }]);
    assert!(again.events == merged.events);
}

#[test]
fn a_missing_shard_is_named_and_its_cases_are_counted() {
    let mut parts = shards(4);
    let gone = parts.remove(2);
    let cases = gone.events.iter().filter_map(settled).count() as u64;
    let merged = one(parts);
    assert_eq!(merged.missing.shards, [Shard { index: 3, of: 4 }]);
    assert_eq!(merged.missing.cases, cases);
    assert!(!records(&merged).header.complete);
}

#[test]
fn a_complete_run_of_a_group_counts_whenever_it_was_made() {
    let expected = analyse::records(&whole()).unwrap();
    let events = whole();
    for late in ["2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z"] {
        // Of a retry that was cut off in its first group.
        let mut cut = slower(shard(&events, Shard { index: 1, of: 3 }, late));
        let end = cut.events.iter().position(|event| settled(event).is_some()).unwrap();
        cut.events.truncate(end);
        let mut parts = shards(3);
        parts.push(cut);
        let merged = one(parts);
        assert!(merged.missing.is_empty(), "{:?}", merged.missing);
        assert_eq!(times(&records(&merged)), times(&expected));
    }
}

#[test]
fn of_two_complete_runs_of_a_group_the_later_one_counts() {
    let events = whole();
    let doubled = |started| slower(shard(&events, Shard { index: 2, of: 3 }, started));
    let expected = times(&analyse::records(&events).unwrap());
    let own: Vec<u64> = doubled("").events.iter().filter_map(settled).map(|case| case.ordinal).collect();
    for (started, factor) in [("2026-01-01T00:00:00Z", 1.0), ("2026-01-09T00:00:00Z", 2.0)] {
        let mut parts = shards(3);
        parts.insert(0, doubled(started));
        for (ordinal, time) in times(&records(&one(parts))) {
            let factor = if own.contains(&ordinal) { factor } else { 1.0 };
            assert!((time / expected[&ordinal] - factor).abs() < 1e-9, "case {ordinal} of {started}: {time}");
        }
    }
}

#[test]
fn a_group_that_was_not_run_is_missing() {
    let mut parts = shards(2);
    let stopped = parts[0].events.iter_mut().rev().find(|event| settled(event).is_some()).unwrap();
    if let Event::CaseSettled { outcome, .. } = stopped {
        *outcome = Outcome::NotRun { why: "interrupted".to_owned() };
    }
    let group = settled(stopped).unwrap().group.clone();
    let merged = one(parts);
    assert_eq!(merged.missing.groups, [group]);
    assert!(merged.missing.shards.is_empty());
    assert!(!records(&merged).header.complete);
}

#[test]
fn times_of_different_drivers_and_clocks_stay_apart() {
    let mut parts = shards(2);
    if let Event::RunStarted { environment, .. } = &mut parts[1].events[0] {
        environment.driver = Some("999.0".to_owned());
    }
    assert_eq!(journal::merge(parts).unwrap().len(), 2);
    let mut parts = shards(2);
    if let Event::RunStarted { environment, .. } = &mut parts[1].events[0] {
        environment.device.name = "NVIDIA A100".to_owned();
    }
    assert_eq!(journal::merge(parts).unwrap().len(), 2);
}

#[test]
fn journals_of_different_manifests_are_refused() {
    let mut parts = shards(2);
    if let Event::RunStarted { header, .. } = &mut parts[1].events[0] {
        header.manifest_hash = "other".to_owned();
    }
    let error = journal::merge(parts).unwrap_err();
    assert!(matches!(&error, MergeError::Differ { what: "the manifest", .. }), "{error}");
    let empty = Part { place: "empty".to_owned(), events: Vec::new() };
    assert_eq!(journal::merge(vec![empty]), Err(MergeError::NoRun { place: "empty".to_owned() }));
}
