//! Simulated and hardware counts side by side: equal, close, different, explained.

use std::process::Command;

use runner_results::analyse::{self, Agreement, Cause, Fidelity};
use runner_types::{BackendKind, Counters, Dim3, Event, Outcome, Records, Value};

use fixture::{Experiment, Run, h100, launch};

/// Counters of a variant at a size on one side: names and values.
type Counts<'a> = &'a dyn Fn(&str, i64) -> Vec<(&'static str, f64)>;

/// Records of the variants `first` and `second` at these sizes, with these counters.
fn records(backend: BackendKind, sizes: &[i64], counts: Counts<'_>) -> Records {
    let experiment = Experiment {
        name: "reduce",
        title: "Reduction, counted",
        question: "Does the simulator count what the hardware counts?",
        axes: &[("n", false)],
        variants: &["first", "second"],
        baseline: None,
        manifest: "",
    };
    let mut device = h100();
    device.backend = backend;
    let mut run = Run::new(&experiment, device);
    for n in sizes {
        for variant in experiment.variants {
            let case = run.case(variant, &[("n", Value::Int(*n))]);
            run.checked(&case, vec![launch(variant, Dim3::new(4, 1, 1), Dim3::new(256, 1, 1), 16)]);
            let counters =
                Counters(counts(variant, *n).into_iter().map(|(name, c)| (name.to_owned().into(), c)).collect());
            run.events.push(Event::CaseCounted { case: case.clone(), counters, each: Vec::new(), lines: Vec::new() });
            run.settled(&case, Outcome::Measured, None);
        }
    }
    run.finish(true);
    analyse::records(&run.events).unwrap()
}

fn simulated(_: &str, n: i64) -> Vec<(&'static str, f64)> {
    vec![("gld_requests", n as f64), ("inst_executed", 1000.0), ("ptx_inst_executed", 1200.0), ("barriers", 4.0)]
}

/// Requests are equal. At 2048, `first` has 1005 instructions instead of 1000, and `second` half as many.
fn counted(variant: &str, n: i64) -> Vec<(&'static str, f64)> {
    let instructions = match (variant, n) {
        ("first", 2048) => 1005.0,
        ("second", 2048) => 500.0,
        _ => 1000.0,
    };
    vec![("gld_requests", n as f64), ("inst_executed", instructions), ("gpu_time", 5120.0)]
}

fn compare(causes: &[Cause]) -> Fidelity {
    let sim = records(BackendKind::Sim, &[1024, 2048], &simulated);
    let gpu = records(BackendKind::Cuda, &[1024, 2048, 4096], &counted);
    analyse::fidelity(&sim, &gpu, causes)
}

fn cause(variant: &str, counter: &str, because: &str) -> Cause {
    Cause {
        variants: vec![variant.to_owned()],
        counters: vec![counter.to_owned()],
        because: because.to_owned(),
        ..Cause::default()
    }
}

#[test]
fn a_counter_is_as_far_off_as_in_its_worst_case() {
    let found = compare(&[]);
    let seen: Vec<(&str, &str, Agreement, usize)> =
        found.compared.iter().map(|c| (c.variant.as_str(), c.counter, c.agreement, c.cases)).collect();
    assert_eq!(
        seen,
        [
            ("first", "inst_executed", Agreement::Close, 2),
            ("first", "gld_requests", Agreement::Equal, 2),
            ("second", "inst_executed", Agreement::Different, 2),
            ("second", "gld_requests", Agreement::Equal, 2),
        ],
        "counters that one side alone has are not compared"
    );
    let worst = &found.compared[2].worst;
    assert_eq!((worst.simulated, worst.hardware, &worst.case.key.axes[0].1), (1000.0, 500.0, &Value::Int(2048)));
    assert_eq!((found.cases, found.alone), (4, (0, 2)));
}

#[test]
fn a_cause_explains_what_it_names_and_nothing_else() {
    let known = cause("second", "inst_executed", "ptxas merges loads");
    let found = compare(&[cause("first", "gld_requests", "never needed"), known.clone()]);
    let unexplained: Vec<usize> = found.compared.iter().map(|c| c.unexplained).collect();
    assert_eq!(unexplained, [1, 0, 0, 0]);
    assert_eq!(found.compared[2].causes, [1]);
    let elsewhere = Cause { experiment: Some("another".to_owned()), ..known.clone() };
    let other_size = Cause { at: [("n".to_owned(), Value::Int(1024))].into(), ..known };
    let found = compare(&[elsewhere, other_size]);
    assert_eq!(found.compared[2].unexplained, 1);
}

#[test]
fn a_cause_that_explains_nothing_is_reported() {
    let causes = [cause("first", "gld_requests", "never needed"), cause("second", "inst_executed", "merged")];
    let idle = analyse::idle_causes(&[compare(&causes)], &causes);
    assert_eq!(idle.iter().map(|cause| cause.because.as_str()).collect::<Vec<_>>(), ["never needed"]);
}

#[test]
fn the_page_names_causes_and_what_has_none() {
    let causes = [cause("second", "inst_executed", "ptxas merges | loads")];
    let page = runner_report::fidelity(&[compare(&causes)], &causes).unwrap().replace('\u{a0}', " ");
    let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{page}"));
    assert_eq!(line("| `reduce` |"), "| `reduce` | 2 | 4 | 4 | 2 | 1 | 1 | 1 | 2 of 2 equal |");
    assert_eq!(line("| `first` |"), "| `first` | ≈ 1.0050× |");
    assert_eq!(line("| `second` |"), "| `second` | ≠ 0.500× |");
    assert!(page.contains("ptxas merges \\| loads"), "{page}");
    assert!(page.contains("**unexplained**"), "{page}");
    assert!(page.contains("2 cases are only counted by hardware"), "{page}");
}

/// Text of a file of the report.
fn file(records: &Records, name: &str) -> String {
    let files = runner_report::files(records).unwrap();
    files.into_iter().find(|(path, _)| path.ends_with(name)).unwrap().1
}

#[test]
fn counters_of_hardware_are_labelled_so_and_stand_beside_times_that_they_have_no_part_in() {
    let mut counted = records(BackendKind::Cuda, &[1024], &counted);
    counted.environment.counting_method = Some("Nsight Compute 2025.3.1".to_owned());
    let page = file(&counted, "report.md").replace('\u{a0}', " ");
    assert!(!page.contains("Simulated"), "{page}");
    for words in ["**Instructions (hardware counters)**", "Hardware counters are from Nsight Compute 2025.3.1"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.contains("gpu_time 5.12 µs"), "{page}");
    let simulated = file(&records(BackendKind::Sim, &[1024], &simulated), "report.md");
    assert!(simulated.contains("Simulated") && !simulated.contains("by the hardware"), "{simulated}");
}

#[test]
fn a_sequence_has_the_counters_of_each_launch_on_its_rows() {
    let mut counted = records(BackendKind::Cuda, &[1024], &counted);
    let case = &mut counted.cases[0];
    let second = case.launches[0].clone();
    case.launches.push(second);
    let each = |count: f64| Counters([("inst_executed".into(), count)].into());
    case.each_counters = vec![each(600.0), each(400.0)];
    let text = file(&counted, "results.csv");
    let mut lines = text.lines();
    let place = lines.next().unwrap().split(',').position(|name| name == "counter.inst_executed").unwrap();
    let cells: Vec<&str> = lines.take(3).map(|line| line.split(',').nth(place).unwrap()).collect();
    assert_eq!(cells, ["1000", "600", "400"]);
}

#[test]
fn a_report_says_at_its_top_why_counters_are_missing() {
    let mut counted = records(BackendKind::Cuda, &[1024], &|_, _| Vec::new());
    counted.header.counters_missing = Some("`ncu` was not found".to_owned());
    let page = file(&counted, "report.md");
    let (before, _) = page.split_once("Does the simulator").unwrap();
    assert!(
        before.contains("[!WARNING]") && before.contains("Hardware counters are missing: \\`ncu\\` was not found."),
        "{before}"
    );
}

#[test]
fn a_file_of_causes_that_was_asked_for_and_is_not_there_is_a_fault_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder.path())
        .args(["fidelity", "records.jsonl", "--causes", "nowhere.toml"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: --causes nowhere.toml: ") && said.contains("leave the option out"), "{said}");
}
