//! The lines of `run --json` for runs with times.

use runner_report::events::{EventLines, end};
use runner_results::analyse;
use runner_types::{Event, GroupKey, Records};
use serde_json::{Value, json};

use fixture::Run;

/// Lines of a run whose groups all start at its beginning and finish at its end.
fn lines(run: &Run) -> Vec<Value> {
    let mut keys: Vec<&GroupKey> = run.events.iter().filter_map(|event| Some(&event.case()?.group)).collect();
    keys.sort_by_key(ToString::to_string);
    keys.dedup();
    let started =
        |(at, key): (usize, &&GroupKey)| Event::GroupStarted { ordinal: at as u32, key: (*key).clone(), cases: 1 };
    let finished = |(at, key): (usize, &&GroupKey)| Event::GroupFinished { ordinal: at as u32, key: (*key).clone() };
    let (first, rest) = run.events.split_first().unwrap();
    let mut lines = EventLines::default();
    let mut text = lines.observe(first);
    for event in keys.iter().enumerate().map(started) {
        text += &lines.observe(&event);
    }
    for event in rest {
        text += &lines.observe(event);
    }
    for event in keys.iter().enumerate().map(finished) {
        text += &lines.observe(&event);
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn records(run: &Run) -> Records {
    analyse::records(&run.events).unwrap()
}

#[test]
fn every_case_has_one_line_with_the_times_and_speedups_of_the_records() {
    let run = fixture::regimes();
    let (lines, records) = (lines(&run), records(&run));
    let cases: Vec<&Value> = lines.iter().filter(|line| line["event"] == "case_finished").collect();
    let mut keys: Vec<String> = records.cases.iter().map(|record| record.case.key.to_string()).collect();
    keys.dedup();
    assert_eq!(cases.len(), keys.len());
    let mut speedups = 0;
    for record in records.cases.iter().filter(|record| record.result.is_some()) {
        let (key, result) = (&record.case.key, record.result.as_ref().unwrap());
        let axes: serde_json::Map<String, Value> =
            key.axes.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let is_it = |line: &&&Value| line["variant"] == key.variant.as_str() && line["axes"] == json!(axes);
        let line = cases.iter().find(is_it).unwrap();
        let regime = json!(result.regime);
        let time = line["times"].as_array().unwrap().iter().find(|time| time["regime"] == regime).unwrap();
        assert_eq!(time["median_ns"], json!(result.time.point));
        assert_eq!(time["interval_ns"], json!([result.time.low, result.time.high]));
        let speedup = result.against_baseline.as_ref().map(|ratio| ratio.speedup.point);
        assert_eq!(time["speedup"]["value"].as_f64(), speedup);
        speedups += usize::from(speedup.is_some());
    }
    assert!(speedups > 0, "some case is compared");
}

#[test]
fn a_case_that_never_runs_has_a_line_at_once() {
    let run = fixture::faults();
    let mut lines = EventLines::default();
    let text: String = run.events.iter().map(|event| lines.observe(event)).collect();
    let ends: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<&str> = ends.iter().filter_map(|line| line["outcome"].as_str()).collect();
    for outcome in ["wrong", "excluded", "compile_error", "crashed"] {
        assert!(outcomes.contains(&outcome), "{outcome} is not in {outcomes:?}");
    }
}

#[test]
fn the_last_line_says_how_the_cases_ended_and_where_the_files_are() {
    let records = records(&fixture::faults());
    let text = end(&records, std::path::Path::new("reports/x/y"), true, 1);
    let last: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
    let counts: u64 = last["outcomes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!((last["event"].as_str(), last["exit_code"].as_u64()), (Some("run_finished"), Some(1)));
    assert_eq!(counts, analyse::summary(&records).cases as u64);
    assert_eq!(last["records"], "reports/x/y/records.jsonl");
}
