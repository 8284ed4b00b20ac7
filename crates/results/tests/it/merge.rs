//! The journals of shards and retries, merged, yield the records of one run.

use std::collections::BTreeMap;
use std::path::Path;

use runner_results::analyse;
use runner_results::journal::{self, History, JOURNAL_FILE, Journal, MergeError, Merged, Missing, Scan};
use runner_types::{Case, CaseHashes, Event, GroupKey, Outcome, Records, Shard};

/// Events of one journal.
#[derive(Clone)]
struct Part {
    /// Name of the journal's folder.
    place: String,
    events: Vec<Event>,
}

/// Writes each journal to a folder in `dir`, and merges them.
fn merge_in(dir: &Path, parts: &[Part]) -> Result<Vec<Merged>, MergeError> {
    let scan = |part: &Part| -> Scan {
        let folder = dir.join(&part.place);
        Journal::create(&folder).unwrap().record_all(&part.events).unwrap();
        journal::scan(&folder.join(JOURNAL_FILE)).unwrap()
    };
    journal::merge(parts.iter().map(scan).collect())
}

/// Number of merged runs.
fn merge(parts: &[Part]) -> Result<usize, MergeError> {
    merge_in(tempfile::tempdir().unwrap().path(), parts).map(|merged| merged.len())
}

/// Events of merged journals, and what is missing.
#[derive(Debug)]
struct Joined {
    events: Vec<Event>,
    /// Events that belong to no group.
    run: Vec<Event>,
    groups: Vec<Vec<Event>>,
    missing: Missing,
}

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

/// The part of a run that a shard would have written: every `of`-th group, starting at the shard's index.
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
    Part { place: format!("shard {} of {started}", shard.folder()), events }
}

fn shards(of: u32) -> Vec<Part> {
    let events = whole();
    (1..=of).map(|index| shard(&events, Shard { index, of }, &format!("2026-01-02T03:04:{index:02}Z"))).collect()
}

/// Events of the journal in a folder.
fn events_in(dir: &Path) -> Vec<Event> {
    journal::read(&dir.join(JOURNAL_FILE)).unwrap().events().cloned().collect()
}

#[track_caller]
fn one(parts: &[Part]) -> Joined {
    let dir = tempfile::tempdir().unwrap();
    let mut merged = merge_in(dir.path(), parts).unwrap();
    assert_eq!(merged.len(), 1);
    let mut merged = merged.remove(0);
    let missing = merged.missing.clone();
    let out = dir.path().join("out");
    let (_, groups) = merged.write(&out, |events| events).unwrap();
    assert!(merged.of_groups(|events| events).unwrap() == groups, "groups differ if nothing is written");
    let events = events_in(&out);
    let run: Vec<Event> = merged.into_run_events().collect();
    // The groups come after the start and the plan.
    let mut all = run.clone();
    all.splice(2..2, groups.iter().flatten().cloned());
    assert!(events == all, "the journal has other events");
    Joined { events, run, groups, missing }
}

fn records(merged: &Joined) -> Records {
    let groups = merged.groups.iter().cloned().map(History::fold).collect();
    analyse::records_of_groups(merged.run.clone(), groups).unwrap()
}

/// Case times by ordinal; they differ between attempts.
fn times(records: &Records) -> BTreeMap<u64, f64> {
    let time = |record: &runner_types::CaseRecord| Some((record.case.ordinal, record.result.as_ref()?.time.point));
    records.cases.iter().filter_map(time).collect()
}

/// Doubles every time.
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
    // There are ten groups, so of thirteen shards three are empty.
    for (of, first) in [(3, 1), (13, 7)] {
        let mut parts = shards(of);
        parts.rotate_left(first);
        let merged = one(&parts);
        assert!(merged.missing.is_empty(), "{:?}", merged.missing);
        assert!(records(&merged) == expected, "{of} shards");
    }
}

#[test]
fn a_merged_journal_can_be_merged_again() {
    let merged = one(&shards(3));
    let again = one(&[Part { place: "merged".to_owned(), events: merged.events.clone() }]);
    assert!(again.events == merged.events);
}

#[test]
fn a_missing_shard_is_named_and_its_cases_are_counted() {
    let mut parts = shards(4);
    let gone = parts.remove(2);
    let cases = gone.events.iter().filter_map(settled).count() as u64;
    let merged = one(&parts);
    assert_eq!(merged.missing.shards, [Shard { index: 3, of: 4 }]);
    assert_eq!(merged.missing.cases, cases);
    assert!(!records(&merged).header.complete);
}

#[test]
fn a_complete_run_of_a_group_counts_whenever_it_was_made() {
    let expected = analyse::records(&whole()).unwrap();
    let events = whole();
    for late in ["2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z"] {
        // A retry that was cut off in its first group.
        let mut cut = slower(shard(&events, Shard { index: 1, of: 3 }, late));
        let end = cut.events.iter().position(|event| settled(event).is_some()).unwrap();
        cut.events.truncate(end);
        let mut parts = shards(3);
        parts.push(cut);
        let merged = one(&parts);
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
        for (ordinal, time) in times(&records(&one(&parts))) {
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
        *outcome = Outcome::not_run("interrupted");
    }
    let group = settled(stopped).unwrap().group.clone();
    let merged = one(&parts);
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
    assert_eq!(merge(&parts).unwrap(), 2);
    let mut parts = shards(2);
    if let Event::RunStarted { environment, .. } = &mut parts[1].events[0] {
        environment.device.name = "NVIDIA A100".to_owned();
    }
    assert_eq!(merge(&parts).unwrap(), 2);
}

#[test]
fn shards_of_two_gpus_of_one_model_are_of_no_known_gpu() {
    let gpu = |gpus: [&str; 2]| {
        let mut parts = shards(2);
        for (part, gpu) in parts.iter_mut().zip(gpus) {
            if let Event::RunStarted { environment, .. } = &mut part.events[0] {
                environment.machine.gpu = Some(gpu.to_owned());
            }
        }
        records(&one(&parts)).environment.machine.gpu
    };
    assert_eq!(gpu(["a", "a"]).as_deref(), Some("a"));
    assert_eq!(gpu(["a", "b"]), None);
}

#[test]
fn journals_of_different_manifests_are_refused() {
    let mut parts = shards(2);
    if let Event::RunStarted { header, .. } = &mut parts[1].events[0] {
        header.manifest_hash = "other".to_owned();
    }
    let error = merge(&parts).unwrap_err();
    assert!(matches!(&error, MergeError::Differ { what, .. } if what == "the manifest"), "{error}");
    let empty = Part { place: "empty".to_owned(), events: Vec::new() };
    assert!(matches!(merge(&[empty]), Err(MergeError::NoRun { place }) if place.ends_with("empty/journal.jsonl")));
}

#[test]
fn results_of_two_versions_of_a_variant_are_refused() {
    let edit = |part: &mut Part, change: fn(&mut CaseHashes)| {
        for event in &mut part.events {
            if let Event::CaseChecked { hashes: Some(hashes), .. } = event {
                change(hashes);
            }
        }
    };
    let mut parts = shards(3);
    edit(&mut parts[1], |hashes| hashes.source = "edited".to_owned());
    let error = merge(&parts).unwrap_err();
    assert!(
        matches!(&error, MergeError::Differ { what, .. } if what.starts_with("the source of variant `")),
        "{error}"
    );
    // With different options, a source may include different files.
    edit(&mut parts[1], |hashes| hashes.options = "others".to_owned());
    assert_eq!(merge(&parts), Ok(1));
    // A shard that was rerun with the other shards' code replaces the edited one.
    let mut parts = shards(2);
    edit(&mut parts[0], |hashes| hashes.source = "edited".to_owned());
    let again = shard(&whole(), Shard { index: 1, of: 2 }, "2026-01-02T04:00:00Z");
    parts.push(again);
    assert_eq!(merge(&parts), Ok(1));
}

/// Lines of the journal in a folder.
fn lines(dir: &Path) -> Vec<String> {
    std::fs::read_to_string(dir.join(JOURNAL_FILE)).unwrap().lines().map(str::to_owned).collect()
}

/// The event of a line and what follows it, without the checksum.
fn event_of(line: &str) -> &str {
    let event = &line[line.find(",\"event\":").unwrap()..];
    &event[..event.rfind(",\"sum\":").unwrap()]
}

#[test]
fn lines_of_groups_are_copied_with_their_time_and_a_new_number() {
    let dir = tempfile::tempdir().unwrap();
    let parts = shards(3);
    let mut merged = merge_in(dir.path(), &parts).unwrap().remove(0);
    let sources: Vec<String> = parts.iter().flat_map(|part| lines(&dir.path().join(&part.place))).collect();
    merged.write(&dir.path().join("out"), drop).unwrap();
    let written = lines(&dir.path().join("out"));
    for (number, line) in (1..).zip(&written) {
        let (time, rest) = line.split_once(",\"seq\":").unwrap();
        assert!(rest.starts_with(&format!("{number},")), "{line}");
        if event_of(line).starts_with(",\"event\":\"case_") {
            let original = sources.iter().find(|source| event_of(source) == event_of(line)).unwrap();
            assert_eq!(original.split_once(",\"seq\":").unwrap().0, time);
        }
    }
    assert!(written.iter().filter(|line| event_of(line).starts_with(",\"event\":\"case_")).count() > 10);
}

#[test]
fn a_merge_may_replace_one_of_its_journals() {
    let dir = tempfile::tempdir().unwrap();
    let parts = shards(3);
    let mut merged = merge_in(dir.path(), &parts).unwrap().remove(0);
    let out = dir.path().join(&parts[1].place);
    let (_, groups) = merged.write(&out, History::fold).unwrap();
    let expected = analyse::records(&whole()).unwrap();
    assert!(analyse::records_of_groups(merged.into_run_events(), groups).unwrap() == expected);
    assert!(analyse::records(&events_in(&out)).unwrap() == expected);
}

#[test]
fn a_journal_that_changes_while_it_is_merged_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let parts = shards(2);
    let mut merged = merge_in(dir.path(), &parts).unwrap().remove(0);
    let path = dir.path().join(&parts[1].place).join(JOURNAL_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("case_checked", "case_chucked")).unwrap();
    let errors = [merged.write(&dir.path().join("out"), drop).unwrap_err(), merged.of_groups(drop).unwrap_err()];
    for why in errors.map(|error| error.to_string()) {
        assert!(why.contains(&path.display().to_string()) && why.contains("changed while it was merged"), "{why}");
    }
}

/// One journal has its groups in reverse order, the other has their lines interleaved.
#[test]
fn lines_of_a_group_are_found_wherever_they_are_in_a_journal() {
    let expected = records(&one(&shards(2)));
    let mut parts = shards(2);
    let groups = |part: &Part| -> Vec<Vec<Event>> {
        let mut groups: Vec<Vec<Event>> = Vec::new();
        for event in part.events.iter().filter(|event| key(event).is_some()) {
            match groups.iter_mut().find(|group| key(&group[0]) == key(event)) {
                Some(group) => group.push(event.clone()),
                None => groups.push(vec![event.clone()]),
            }
        }
        groups
    };
    let insert = |part: &Part, of_groups: Vec<Event>| {
        let mut events = part.events.clone();
        events.retain(|event| key(event).is_none());
        let end = events.len() - 1;
        events.splice(end..end, of_groups);
        events
    };
    let reversed = groups(&parts[0]).into_iter().rev().flatten().collect();
    parts[0].events = insert(&parts[0], reversed);
    let others = groups(&parts[1]);
    let longest = others.iter().map(Vec::len).max().unwrap();
    let in_turns = (0..longest).flat_map(|at| others.iter().filter_map(move |group| group.get(at).cloned())).collect();
    parts[1].events = insert(&parts[1], in_turns);
    assert!(records(&one(&parts)) == expected);
}

#[test]
fn ratios_that_shards_have_formed_are_taken_from_their_journals() {
    let expected = analyse::records(&whole()).unwrap();
    let mut parts = shards(3);
    for part in &mut parts {
        let (_, formed) = analyse::records_and_ratios(History::fold(part.events.clone())).unwrap();
        assert!(!formed.is_empty(), "{} has measured ratios", part.place);
        let end = part.events.len() - 1;
        part.events.splice(end..end, formed);
    }
    let merged = one(&parts);
    let (records, formed) = analyse::records_and_ratios(History::fold(merged.events.clone())).unwrap();
    assert!(records == expected);
    assert_eq!(formed, [], "formed again");

    // A value that no bootstrap returns, to show where a ratio comes from.
    let with_another = merged.events.into_iter().map(|event| match event {
        Event::RatiosFormed { key, ratios } => {
            let ratios = ratios.into_keys().map(|name| (name, [7.0, 6.0, 8.0])).collect();
            Event::RatiosFormed { key, ratios }
        }
        other => other,
    });
    let records = analyse::records_of(History::fold(with_another)).unwrap();
    let ratios = records.cases.iter().filter_map(|case| case.result.as_ref()?.against_baseline.as_ref());
    assert!(ratios.filter(|ratio| (ratio.speedup.point - 7.0).abs() < 1e-9).count() > 5);
}

#[test]
fn ratios_of_other_samples_are_formed() {
    let events = whole();
    let (_, formed) = analyse::records_and_ratios(History::fold(events.clone())).unwrap();
    let part = slower(Part { place: String::new(), events });
    let with_stale = part.events.iter().cloned().chain(formed);
    assert!(analyse::records_of(History::fold(with_stale)).unwrap() == analyse::records(&part.events).unwrap());
}
