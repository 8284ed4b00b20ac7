#![expect(clippy::expect_used, reason = "a test panics to fail")]

use std::io::Write;

use search::format::t1::Problem;
use search::format::{read_measured, read_results, t4, table};
use search::history::Outcome;
use search::space::Value;

const T4: &str = r#"{
  "results": [
    {"timestamp": "2024-01-01", "configuration": {"b": 16, "a": "x"}, "times": {"compilation": 1500, "benchmark": 500, "framework": 0, "search_algorithm": 0, "validation": 0, "runtimes": [2.0]},
     "invalidity": "correct", "correctness": 1, "measurements": [{"name": "time", "value": 2.5, "unit": "ms"}], "objectives": ["time"]},
    {"configuration": {"b": 32, "a": "x"}, "times": {"compilation_time": 100}, "invalidity": "compile", "correctness": 1,
     "measurements": [{"name": "time", "value": "CompilationFailedConfig", "unit": "ms"}], "objectives": ["time"]},
    {"configuration": {"b": 32, "a": "y"}, "invalidity": "correct", "correctness": 1,
     "measurements": [{"name": "power", "value": 1, "unit": "W"}, {"name": "time", "value": 1e0, "unit": "ms"}], "objectives": ["time"]}
  ],
  "schema_version": "1.0.0"
}"#;

#[test]
fn results_become_a_measured_space() {
    let results = read_results(T4.as_bytes()).expect("this is T4");
    let measured = results.measured(None).expect("the results agree");
    assert_eq!(measured.space.len(), 3);
    let names: Vec<_> = measured.space.parameters().iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(measured.sorted(), [1.0, 2.5]);
    let failed = measured.space.number(&[1, 0]).expect("a failed point is one of the space");
    assert_eq!(measured.outcome(failed), Outcome::Failed);
    assert_eq!(measured.seconds(failed), Some(0.1));
    let first = measured.space.number(&[0, 0]).expect("the first result");
    assert_eq!(measured.seconds(first), Some(2.0));
    assert_eq!(measured.space.values(first), [Value::Int(16), Value::Text("x".to_owned())]);
}

#[test]
fn numbers_of_python_that_json_does_not_have_are_failures() {
    let text = T4.replace("2.5", "NaN").replace("[2.0]", "[Infinity, -Infinity]").replace("\"x\"", r#""a \" NaN""#);
    let measured = read_results(text.as_bytes()).expect("this is T4").measured(None).expect("one result is left");
    assert_eq!(measured.sorted(), [1.0]);
    assert_eq!(measured.space.values(0)[1], Value::Text("a \" NaN".to_owned()));
}

#[test]
fn another_measurement_can_be_the_objective() {
    let results = read_results(T4.as_bytes()).expect("this is T4");
    assert_eq!(results.measured(Some("power")).expect("one result has it").sorted(), [1.0]);
    let error = results.measured(Some("energy")).expect_err("no result has it").to_string();
    assert_eq!(error, "no result has a valid measurement `energy`; the measurements are: power, time");
}

#[test]
fn written_results_are_read_again() {
    let results = read_results(T4.as_bytes()).expect("this is T4");
    let mut written = Vec::new();
    t4::write(&mut written, results.results.into_iter().map(Ok)).expect("memory can be written to");
    let text = String::from_utf8(written).expect("JSON is text");
    assert!(text.ends_with("\n], \"schema_version\": \"1.0.0\"}\n"), "{text}");
    assert!(text.contains(r#""configuration":{"b":16,"a":"x"}"#), "{text}");
    let again = read_results(text.as_bytes()).expect("this is T4");
    assert_eq!(again.measured(None).expect("the results agree").sorted(), [1.0, 2.5]);
}

#[test]
fn a_compressed_file_is_read_by_its_name() {
    let path = std::env::temp_dir().join(format!("search-formats-{}.json.gz", std::process::id()));
    let file = std::fs::File::create(&path).expect("the folder is writable");
    let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    writer.write_all(T4.as_bytes()).expect("the file is writable");
    writer.finish().expect("the file is writable");
    let measured = read_measured(&path, None);
    std::fs::remove_file(&path).expect("the file is there");
    assert_eq!(measured.expect("this is T4").space.len(), 3);
}

#[test]
fn a_table_has_parameters_and_objectives() {
    let text = "x,y,one_ms,two_ms\n1,0,2.5,1\n2,0,,3\n2,1,0.5,2\n";
    let measured = table::read(text.as_bytes(), Some("one_ms")).expect("the table is sound");
    assert_eq!(measured.sorted(), [0.5, 2.5]);
    assert_eq!(measured.space.parameters().len(), 2);
    let error = table::read(text.as_bytes(), None).expect_err("there are two objectives").to_string();
    assert_eq!(error, "the table has several objectives: one_ms, two_ms; name one");
    let error = table::read(text.as_bytes(), Some("three_ms")).expect_err("there is none").to_string();
    assert_eq!(error, "no column `three_ms`; the objectives are: one_ms, two_ms");
}

const T1: &str = r#"{
  "General": {"BenchmarkName": "tiles"},
  "ConfigurationSpace": {
    "TuningParameters": [
      {"Name": "bx", "Type": "int", "Values": "[32, 16, 64]", "Default": 16},
      {"Name": "layout", "Type": "string", "Values": "['row', 'column']"},
      {"Name": "fast", "Type": "bool", "Values": [true, false]}
    ],
    "Conditions": [{"Expression": "layout == 'row' or bx < 64", "Parameters": ["layout", "bx"]}]
  },
  "KernelSpecification": {"KernelName": "f"}
}"#;

#[test]
fn a_problem_becomes_a_space() {
    let problem = Problem::read(T1.as_bytes()).expect("this is T1");
    let space = problem.space().expect("the space is not empty");
    // All 12 combinations except two where `column` is 64.
    assert_eq!(space.len(), 10);
    let written = serde_json::to_string(&problem).expect("a problem is JSON");
    assert_eq!(Problem::read(written.as_bytes()).expect("this is T1").space().expect("not empty").len(), 10);
    let made = Problem::new("tiles", space.parameters(), &["layout == 'row' or bx < 64"]);
    assert_eq!(made.space.conditions[0].parameters, ["bx", "layout"]);
    assert_eq!(made.space().expect("not empty").len(), 10);
}

#[test]
fn a_mistake_in_a_problem_is_named() {
    let broken = T1.replace("bx < 64", "by < 64");
    let error = Problem::read(broken.as_bytes()).expect("this is T1").space().expect_err("there is no `by`");
    assert_eq!(
        error.to_string(),
        "`by` is not a parameter; the parameters are bx, layout, fast at byte 19 of `layout == 'row' or by < 64`"
    );
}

/// Start of a file written by `tune_kernel(…, cache = FILE)` of Kernel Tuner 1.0.
const CACHE: &str = r#"{"device_name": "NVIDIA A100", "tune_params_keys": ["block", "unroll"], "tune_params": {"block": [32, 128], "unroll": ["no"]},
"objective": "time",
"cache": {
"32,no": {"block": 32, "unroll": "no", "time": 2.5, "times": [2.4, 2.6], "energy": 7, "compile_time": 1500.0, "verification_time": 0, "benchmark_time": 500.0, "timestamp": "2023-01-26"},
"128,no": {"block": 128, "unroll": "no", "time": "RuntimeFailedConfig"}"#;

#[test]
fn a_cache_of_kernel_tuner_is_read_also_while_it_is_open() {
    let read = |text: &str| read_results(text.as_bytes());
    for end in ["}}", ",\n", "\n}\n}\n"] {
        let results = read(&format!("{CACHE}{end}")).expect("this is a cache");
        let measured = results.measured(None).expect("the results agree");
        let names: Vec<_> = measured.space.parameters().iter().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, ["block", "unroll"], "{end:?}");
        let [right, failed] = [0, 1].map(|place| measured.space.number(&[place, 0]).expect("both are in the space"));
        assert_eq!([measured.outcome(right), measured.outcome(failed)], [Outcome::Value(2.5), Outcome::Failed]);
        assert_eq!([measured.seconds(right), measured.seconds(failed)], [Some(2.0), Some(0.0)]);
        assert_eq!(results.measured(Some("energy")).expect("one result has it").sorted(), [7.0]);
    }
    let several = CACHE.replace("\"time\",\n", "[\"energy\", \"time\"],\n");
    assert_eq!(read(&format!("{several}}}}}")).expect("a cache").measured(None).expect("energy").sorted(), [7.0]);
    let error = read(&format!("{}}}}}", CACHE.replace("\"unroll\": \"no\", \"time\"", "\"time\"")))
        .expect_err("a parameter lacks");
    assert_eq!(error.to_string(), "the configuration `128,no` has no `unroll`");
    assert!(read(&CACHE[..CACHE.len() - 40]).is_err(), "the last configuration is cut off");
    let other = read(r#"{"Metadata": {}, "Results": []}"#).expect_err("the file of another tuner").to_string();
    assert!(other.starts_with("this is neither T4 nor a cache of Kernel Tuner: missing field `results`"), "{other}");
}
