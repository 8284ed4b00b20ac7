//! Numbers that JSON lacks, in every field of events and records: none is lost on the way to the disk and back.

use std::fmt::Debug;

use runner_results::analyse;
use runner_results::journal::parse_records;
use runner_results::journal::{self, JOURNAL_FILE, Journal};
use runner_types::{Estimate, Event, Ratio, ResultError, sha256_hex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::journal::sealed;

/// Replaces the floats of a value with infinity, minus infinity and NaN in turn. Also returns how many were replaced.
fn infinite<T: Serialize + DeserializeOwned>(value: &T) -> (T, usize) {
    let mut json = serde_json::to_value(value).unwrap();
    let mut replaced = 0;
    replace(&mut json, &mut replaced);
    let text = json.to_string();
    (serde_json::from_value(json).unwrap_or_else(|e| panic!("{e}: {text}")), replaced)
}

fn replace(json: &mut Json, replaced: &mut usize) {
    match json {
        Json::Number(number) if number.is_f64() => {
            *json = Json::from(["inf", "-inf", "nan"][*replaced % 3]);
            *replaced += 1;
        }
        Json::Array(values) => values.iter_mut().for_each(|value| replace(value, replaced)),
        Json::Object(fields) => fields.values_mut().for_each(|value| replace(value, replaced)),
        _ => {}
    }
}

/// Compares texts, because NaN is not equal to itself.
#[track_caller]
fn assert_same<T: Debug>(found: &T, expected: &T) {
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

#[test]
fn every_number_of_every_event_may_be_infinite_or_no_number_in_the_journal() {
    for run in [fixture::reduce(), fixture::faults(), fixture::simulated()] {
        let mut events: Vec<Event> = run.events;
        let case = events.iter().find_map(Event::case).unwrap().clone();
        let error = ResultError { abs: 0.5, rel: 0.5, mean_rel: 0.5, ulp: 0.5 };
        events.push(Event::CaseErred { case, error });
        let (events, replaced): (Vec<Event>, Vec<usize>) = events.iter().map(infinite).unzip();
        assert!(replaced.iter().sum::<usize>() > 10, "{replaced:?}");
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path()).unwrap();
        journal.record_all(&events).unwrap();
        drop(journal);
        let read = journal::read(&folder.path().join(JOURNAL_FILE)).unwrap();
        assert!(read.damaged().next().is_none() && read.torn().is_none());
        assert_same(&read.events().collect::<Vec<_>>(), &events.iter().collect());
    }
}

#[test]
fn every_number_of_every_record_may_be_infinite_or_no_number() {
    for run in [fixture::reduce(), fixture::faults(), fixture::simulated()] {
        let mut records = analyse::records(&run.events).unwrap();
        let half = Estimate { point: 0.5, low: 0.5, high: 0.5, confidence: 0.5 };
        let ratio = |noise| Ratio { against: "a".to_owned(), speedup: half, reproducible: None, noise: Some(noise) };
        for case in &mut records.cases {
            case.error = Some(ResultError { abs: 0.5, rel: 0.5, mean_rel: 0.5, ulp: 0.5 });
            case.work.flops = Some(0.5);
            if let Some(result) = &mut case.result {
                // If both ratios had the same noise, it would be written only once.
                (result.against_baseline, result.against_previous) = (Some(ratio(0.5)), Some(ratio(0.25)));
            }
        }
        let text = journal::records_text(&records).unwrap();
        let mut lines: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (end, others) = lines.split_last_mut().unwrap();
        let replaced = others.iter_mut().map(|line| {
            let mut replaced = 0;
            replace(line, &mut replaced);
            replaced
        });
        let replaced: Vec<usize> = replaced.collect();
        assert!(replaced[1..].iter().all(|replaced| *replaced >= 5), "{replaced:?}");
        let text: String = others.iter().flat_map(|line| [sealed(&line.to_string()), "\n".to_owned()]).collect();
        end["sha256"] = sha256_hex(text.as_bytes()).into();
        let text = text + &sealed(&end.to_string()) + "\n";
        let read = parse_records(&text, "records.jsonl".as_ref()).unwrap();
        assert_eq!(journal::records_text(&read).unwrap(), text);
    }
}
