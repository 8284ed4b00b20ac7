//! `runner run --json`: every line is an event of docs/reference/events.md, and standard output contains nothing else.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::against::{LOADS_TWICE, MANIFEST, Repository};
use fixture::snapshot::assert_is;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn a_run_is_a_stream_of_documented_events() {
    let repository = Repository::new();
    let ran = repository.run(&["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/events");
    assert_is(&ran.said, &folder.join("scale.jsonl"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/events.md");
    let page = fs::read_to_string(page).unwrap();
    for line in lines(&ran.said) {
        for key in line.as_object().unwrap().keys().chain([&line["event"].as_str().unwrap().to_owned()]) {
            assert!(page.contains(&format!("`{key}`")), "`{key}` is not documented");
        }
    }
}

#[test]
fn no_line_has_a_character_that_a_terminal_obeys_and_a_reader_gets_what_was_printed() {
    let printed = "\u{9b}31m \u{202e}gnp.exe";
    let repository = Repository::with(&MANIFEST.replace("Twice the input", printed));
    let ran = repository.run(&["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    assert!(ran.said.chars().all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}')), "{}", ran.said);
    assert!(ran.said.contains("\\u202egnp.exe"), "{}", ran.said);
    assert!(lines(&ran.said).iter().any(|line| line["title"] == printed), "{}", ran.said);
}

#[test]
fn the_stream_ends_with_the_verdict_of_a_comparison_and_the_exit_code() {
    let repository = Repository::new();
    repository.write("kernels/load.cuh", LOADS_TWICE);
    let ran = repository.run(&["--json", "--against", "HEAD", "--markdown", "page.md"]);
    assert_eq!(ran.code, Some(4), "{}", ran.error);
    let [.., compared, finished] = &lines(&ran.said)[..] else { panic!("{}", ran.said) };
    assert_eq!((&compared["event"], &compared["comparison"]["verdict"]), (&json!("compared"), &json!("regression")));
    assert_eq!((&finished["event"], &finished["exit_code"]), (&json!("run_finished"), &json!(4)));
    assert!(repository.path("page.md").is_file());
}

#[test]
fn a_case_that_fails_has_its_reason_and_a_command_line_that_is_wrong_has_no_event() {
    let repository = Repository::new();
    repository.write("kernels/load.cuh", "__device__ float load(const float* at) { return *at + 1; }\n");
    let ran = repository.run(&["--json", "--variant", "plain"]);
    assert_eq!(ran.code, Some(1), "{}", ran.error);
    let lines = lines(&ran.said);
    let case = lines.iter().find(|line| line["event"] == "case_finished").unwrap();
    assert_eq!((&case["outcome"], &case["verdict"]), (&json!("wrong"), &json!("mismatch")));
    assert!(case["reason"].as_str().unwrap().contains("element 0"), "{case}");
    let ran = repository.run(&["--json", "--variant", "none"]);
    assert_eq!((ran.code, ran.said.as_str()), (Some(2), ""), "{}", ran.error);
}

#[test]
fn claims_are_judged_in_the_stream_and_each_manifest_has_its_own_lines() {
    let claims = "\n[[claim]]\nthat = 'counter(\"gld_requests\", \"plain\") == 32'\nwhere = \"n > 1\"\n\n[[claim]]\nthat = \
                  'counter(\"gld_requests\", \"plain\") == 31'\n";
    let repository = Repository::with(&format!("{MANIFEST}{claims}"));
    repository.write("experiments/other.toml", &MANIFEST.replace("\"scale\"", "\"other\""));
    let ran = repository.run(&["experiments/other.toml", "--json", "--gate"]);
    assert_eq!(ran.code, Some(5), "{}", ran.error);
    let lines = lines(&ran.said);
    let select = |event: &str| lines.iter().filter(|line| line["event"] == event).cloned().collect::<Vec<Value>>();
    let experiments: Vec<Value> = select("run_started").iter().map(|line| line["experiment"].clone()).collect();
    assert_eq!(experiments, ["scale", "other"]);
    let codes: Vec<Value> = select("run_finished").iter().map(|line| line["exit_code"].clone()).collect();
    assert_eq!(codes, [json!(5), json!(0)]);
    let [held, broken] = &select("claim")[..] else { panic!("{}", ran.said) };
    assert_eq!((&held["state"], &held["where"]), (&json!("held"), &json!("n > 1")));
    assert_eq!((&broken["state"], &broken["detail"]), (&json!("broken"), &json!("32")));
    // Even a quiet run names the claim behind its exit code.
    let quiet = repository.run(&["--gate", "--quiet"]);
    assert_eq!((quiet.code, quiet.said.as_str()), (Some(5), ""));
    let claim = "✗ claim broken: counter(\"gld_requests\", \"plain\") == 31: 32\n";
    assert_eq!(quiet.error, claim);
    let silent = repository.run(&["--quiet"]);
    assert_eq!((silent.code, silent.said.as_str(), silent.error.as_str()), (Some(0), "", ""));
}
