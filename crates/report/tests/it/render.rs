//! Content of a report's files.

use std::path::Path;

use runner_results::analyse;
use runner_types::{
    Ceilings, Dim3, Energy, Estimate, Joules, LaunchRecord, Note, Ratio, Records, Spread, Value, Watts, WorkAmount,
};

use fixture::Run;
use fixture::snapshot;

fn records(run: &Run) -> Records {
    analyse::records(&run.events).unwrap()
}

fn file(records: &Records, name: &str) -> String {
    let files = runner_report::files(records).unwrap();
    files.into_iter().find(|(path, _)| path == Path::new(name)).unwrap().1
}

#[test]
fn reports_are_as_kept() {
    for (name, run) in [
        ("reduce", fixture::reduce()),
        ("regimes", fixture::regimes()),
        ("sum_matrix", fixture::sum_matrix()),
        ("faults", fixture::faults()),
        ("simulated", fixture::simulated()),
    ] {
        for (path, text) in runner_report::files(&records(&run)).unwrap() {
            if path.extension().is_none_or(|e| e != "jsonl") {
                let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
                snapshot::assert_is(&text, &golden.join(name).join(path));
            }
        }
    }
}

#[test]
fn a_fresh_clone_makes_the_same_bytes_from_the_records_alone() {
    let dir = tempfile::tempdir().unwrap();
    for run in [fixture::reduce(), fixture::sum_matrix(), fixture::faults(), fixture::simulated()] {
        let made = runner_report::files(&records(&run)).unwrap();
        fixture::write(dir.path(), &records(&run));
        let read = runner_results::journal::read_records(&dir.path().join("records.jsonl")).unwrap();
        assert!(runner_report::files(&read).unwrap() == made);
        for (path, text) in &made {
            assert!(std::fs::read_to_string(dir.path().join(path)).unwrap() == *text, "{}", path.display());
        }
    }
}

#[test]
fn charts_that_a_report_no_longer_has_are_removed_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &records(&fixture::reduce()));
    std::fs::write(dir.path().join("plots/notes.txt"), "mine").unwrap();
    fixture::write(dir.path(), &records(&fixture::sum_matrix()));
    let mut left: Vec<String> = std::fs::read_dir(dir.path().join("plots"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["notes.txt", "time-sum-n-16384-cold.svg"]);
}

#[test]
fn nothing_that_changes_from_run_to_run_is_in_a_file_for_git() {
    for (path, text) in runner_report::files(&records(&fixture::reduce())).unwrap() {
        for word in ["gpu-node-7", "0123abcd", "2026-01-02", "memory_free"] {
            assert!(!text.contains(word), "{} contains {word}", path.display());
        }
    }
}

#[test]
fn every_table_of_a_report_has_as_many_cells_in_each_row_as_columns() {
    for run in [fixture::reduce(), fixture::sum_matrix(), fixture::faults(), fixture::simulated()] {
        let report = file(&records(&run), "report.md");
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut expected = None;
        for line in report.lines() {
            if line.starts_with('|') {
                assert_eq!(cells(line), *expected.get_or_insert(cells(line)), "{line}");
            } else {
                expected = None;
            }
        }
    }
}

#[test]
fn energy_stands_in_its_columns_where_it_was_taken_and_nowhere_else() {
    let mut records = records(&fixture::sum_matrix());
    let plain = (file(&records, "report.md"), file(&records, "results.csv"));
    assert!(!plain.0.contains("energy (") && !plain.1.contains("energy_joules"));
    let record = records.cases.iter_mut().find(|record| record.result.is_some()).unwrap();
    record.work.bytes = Some(1 << 30);
    record.energy =
        Some(Energy { per_run: Joules(0.2147), power: Watts(412.345), uncertainty: 0.08, runs: 2300, seconds: 1.21 });
    let report = file(&records, "report.md");
    let shown = report.lines().find(|line| line.starts_with('|') && line.contains("215\u{a0}±\u{a0}17")).unwrap();
    // 0.2147 J over 2^30 bytes.
    assert!(shown.contains("| 200 |") && shown.contains("| 412 |"), "{shown}");
    for word in ["energy (mJ)", "pJ/B", "power (W)", "idle power included"] {
        assert!(report.contains(word), "{word}");
    }
    let csv = file(&records, "results.csv");
    assert!(csv.lines().next().unwrap().contains("energy_joules,energy_uncertainty,power_watts,energy_runs"));
    assert_eq!(csv.lines().filter(|line| line.contains("0.2147,0.08,412.345,2300")).count(), 1);
}

/// Records of a machine with spread between processes, with the first speedup set to 1.25, from 1.24 to 1.26.
fn compared(reproducible: Option<(f64, f64)>) -> Records {
    let mut records = records(&fixture::sum_matrix());
    let estimate = |(low, high)| Estimate { point: 1.25, low, high, confidence: 0.95 };
    let first = records.cases.iter_mut().find_map(|record| record.result.as_mut()?.against_baseline.as_mut()).unwrap();
    let (speedup, reproducible) = (estimate((1.24, 1.26)), reproducible.map(estimate));
    *first = Ratio { speedup, reproducible, noise: Some(0.001), ..first.clone() };
    records
}

#[test]
fn the_interval_that_holds_for_other_processes_is_the_one_shown() {
    let csv = |records: &Records| file(records, "results.csv");
    let alone = compared(None);
    assert!(file(&alone, "report.md").contains("| 1.250\u{a0}±\u{a0}0.010 |"));
    assert!(!csv(&alone).contains("reproducible"));

    let wide = compared(Some((1.1, 1.4)));
    assert!(file(&wide, "report.md").contains("| 1.25\u{a0}±\u{a0}0.15 |"));
    assert!(csv(&wide).contains("speedup_confidence,speedup_reproducible_low,speedup_reproducible_high,"));
    assert!(csv(&wide).contains(",1.25,1.24,1.26,0.95,1.1,1.4,"), "both stand in the file for programs");
}

#[test]
fn a_speedup_of_which_another_process_may_find_the_opposite_is_marked_and_explained() {
    let mut local = compared(Some((0.95, 1.64)));
    local.environment.machine.spread = Some(Spread { nanoseconds: 31.0, relative: 0.0012, processes: 5 });
    let report = file(&local, "report.md");
    assert!(report.contains("| 1.2\u{a0}±\u{a0}0.4\u{a0}† |"));
    for words in ["31 ns and 0.12 %", "5 processes", "A ratio marked †"] {
        assert!(report.contains(words), "{words}");
    }
    assert!(!file(&compared(Some((1.1, 1.4))), "report.md").contains('†'));
}

#[test]
fn a_run_whose_device_counts_no_energy_says_why() {
    let mut records = records(&fixture::simulated());
    records.header.energy_missing = Some("a simulated machine takes no energy".to_owned());
    assert!(file(&records, "report.md").contains("Energy is missing: a simulated machine takes no energy."));
}

#[test]
fn every_case_is_a_row_with_its_outcome_or_one_of_a_reason() {
    let report = file(&records(&fixture::faults()), "report.md");
    for (name, check) in [
        ("`plain`", "✓ pass"),
        ("`pipe\\|name`", "✓ unstable"),
        ("`not_a_number`", "✗ wrong"),
        ("`bad_template`", "✗ compile error"),
        ("`refused`", "✗ launch error"),
        ("`unresolved`", "✗ unresolved"),
        ("`null_pointer`", "✗ crashed"),
        ("`endless`", "✗ timed out"),
        ("`greedy`", "✗ out of memory"),
        ("`trapped`", "✗ trap"),
        ("`lesson`", "✓ wrong, as expected"),
        ("`harmless`", "✗ did not fail"),
    ] {
        let check = check.replace(' ', "\u{a0}");
        let row = report.lines().find(|l| l.starts_with('|') && l.contains(name));
        assert!(row.is_some_and(|row| row.contains(&check)), "{name}: {row:?}");
    }
    for reason in [
        "element 0 is NaN, expected 2139095040; 3 of 1024 elements are wrong",
        "**excluded**, `left_out`: accumulated rounding is studied elsewhere",
        "**invalid**, `too_large`: 2048 threads per block, the device allows 1024",
        "**not run**, `never_run`: ",
        "no answer within 30 s; the worker was killed",
        "needs 128 GiB of device memory, 78.2 GiB available",
        "the baseline is wrong",
        "expected to fail as trap or compile error, but the result is right",
    ] {
        assert!(report.contains(reason), "{reason}");
    }
}

#[test]
fn an_incomplete_or_narrowed_run_says_so_before_anything_else() {
    let mut narrowed = records(&fixture::reduce());
    narrowed.header.narrowed = Some("--filter 'n < 2**22'".to_owned());
    for (records, word) in [(records(&fixture::faults()), "Incomplete"), (narrowed, "Partial")] {
        let report = file(&records, "report.md");
        let (before, _) = report.split_once(&records.header.question.clone().unwrap()).unwrap();
        assert!(before.contains("[!WARNING]") && before.contains(word), "{before}");
    }
}

#[test]
fn a_simulated_count_has_no_unit_of_time_anywhere() {
    let records = records(&fixture::simulated());
    let report = file(&records, "report.md");
    for word in ["time (", "µs", "GB/s", "speedup", "geomean", "median"] {
        assert!(!report.contains(word), "{word}");
    }
    assert!(report.contains("Simulated"));
    // 1168 of 6128 sectors are 0.191×, 592 of 3072 are 0.193×.
    assert!(report.contains("| `interleaved` | 1168\u{a0}(0.191×) | 592\u{a0}(0.193×) |"), "{report}");
    let rows = rows_of(&file(&records, "results.csv"));
    let loads: Vec<&str> = rows.iter().map(|row| row["counter.global_load_sectors"].as_str()).collect();
    assert_eq!(loads, ["6128", "1168"]);
    assert!(rows.iter().all(|row| row["time_ns"].is_empty() && row["clock"].is_empty()));
}

#[test]
fn a_simulated_report_says_what_counts_least_and_lists_what_was_not_counted() {
    let mut records = records(&fixture::simulated());
    for (record, executed) in records.cases.iter_mut().zip([8000.0, 2000.0]) {
        let counters = record.counters.as_mut().unwrap();
        counters.0.extend([("inst_executed".into(), executed), ("ptx_barriers".into(), 0.0)]);
    }
    let report = file(&records, "report.md");
    // Instruction counts alone do not answer the question, so they come after the answer.
    let finding = "- **2 of 2 cases passed.** Device: H100 (simulated).\n- `interleaved` executes 0.250× the warp \
                   instructions of `neighbored`.\n";
    assert!(report.contains(finding), "{report}");
    assert!(
        report.contains(
            "**PTX: branches and barriers**, in all rows ptx_branch_efficiency 68.75 % · zero: ptx_barriers."
        ),
        "{report}"
    );
}

#[test]
fn right_results_beside_wrong_ones_are_not_called_all() {
    let report = file(&records(&fixture::faults()), "report.md");
    assert!(report.contains("measured and right") && !report.contains("every result right"), "{report}");
    assert!(report.contains("1 compile error,"), "{report}");
}

/// Zipped axes: no two groups differ in only one of them.
#[test]
fn an_axis_with_one_value_in_each_chart_makes_bars_and_no_line_of_one_point() {
    let mut records = records(&fixture::reduce());
    let find = |axes: &[(String, Value)], name: &str| axes.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    records.cases.retain(|record| find(&record.case.group.0, "block") == Some(Value::Int(256)));
    for record in &mut records.cases {
        let n = find(&record.case.group.0, "n").unwrap();
        let axes = record.case.key.axes.iter_mut().chain(&mut record.case.group.0);
        axes.filter(|(name, _)| name == "block").for_each(|(_, value)| *value = n.clone());
    }
    let plots: Vec<String> = runner_report::files(&records)
        .unwrap()
        .into_iter()
        .filter(|(path, _)| path.starts_with("plots"))
        .map(|(path, _)| path.display().to_string())
        .collect();
    let (gains, bars): (Vec<&String>, Vec<&String>) = plots.iter().partition(|path| path.starts_with("plots/gains-"));
    assert_eq!((gains.len(), bars.len()), (1, 5), "{plots:?}");
    assert!(bars.iter().all(|path| path.starts_with("plots/time-n-")), "{plots:?}");
}

#[test]
fn a_job_that_arithmetic_bounds_shows_operations_and_no_share_of_the_bandwidth() {
    let mut records = records(&fixture::reduce());
    let ceiling = 6e13;
    let ceilings = Ceilings {
        read: 3.2e12,
        write: None,
        copy: 3e12,
        l2_read: 6e12,
        fma_f32: ceiling,
        fma_f64: ceiling,
        fma_f16: ceiling,
    };
    records.environment.machine.ceilings = Some(ceilings);
    for record in &mut records.cases {
        // Half of the ceiling, whatever the time.
        record.work.flops = record.result.as_ref().map(|result| result.time.point * 1e-9 * ceiling / 2.0);
        record.work.bytes = Some(1);
    }
    let report = file(&records, "report.md");
    assert!(report.contains("The highest rate is **30000 GFLOP/s**, 50.0 % of the measured ceiling, by "), "{report}");
    assert!(!report.contains("% of the data-sheet peak"), "{report}");
    assert!(report.contains("![Arithmetic, block = 256](plots/arithmetic-block-256-type-i32-cold.svg)"), "{report}");
}

type Row = std::collections::HashMap<String, String>;

fn rows_of(text: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

#[test]
fn the_csv_keeps_full_precision_and_has_a_row_for_each_launch_of_a_sequence() {
    let records = records(&fixture::reduce());
    let text = file(&records, "results.csv");
    assert!(text.lines().count() == text.matches("\r\n").count());
    let rows = rows_of(&text);
    let cases: Vec<&Row> = rows.iter().filter(|row| row["row"] == "case").collect();
    assert_eq!((rows.len(), cases.len()), (100, 80));
    for (row, record) in cases.iter().zip(&records.cases) {
        let Some(result) = &record.result else {
            assert_eq!((row["time_ns"].as_str(), row["outcome"].as_str()), ("", "excluded"));
            continue;
        };
        let kept = ["time_ns", "time_high_ns"].map(|name| row[name].parse::<f64>().unwrap().to_bits());
        assert_eq!(kept, [result.time.point, result.time.high].map(f64::to_bits));
        let rate = row["bytes_per_second"].parse::<f64>().unwrap();
        let bytes = row["work_bytes"].parse::<f64>().unwrap();
        assert!((rate - bytes / (result.time.point * 1e-9)).abs() <= rate * 1e-12);
    }
    let parts: Vec<(&str, &str, &str)> = rows
        .iter()
        .filter(|row| row["row"] == "launch")
        .take(2)
        .map(|row| (row["launch"].as_str(), row["label"].as_str(), row["block_x"].as_str()))
        .collect();
    assert_eq!(parts, [("0", "reduce_blocks", "256"), ("1", "sum_partials", "256")]);
}

#[test]
fn no_cell_of_the_csv_is_nan_and_commas_and_quotes_survive() {
    let mut records = records(&fixture::faults());
    records.cases[0].notes = vec![Note::Text("says \"a, b\"\nand more".to_owned())];
    let text = file(&records, "results.csv");
    let rows = rows_of(&text);
    assert_eq!(rows.len(), 15);
    assert_eq!(rows[0]["notes"], "says \"a, b\"\nand more");
    assert_eq!(rows[0]["axis.layout"], "a|b <c>");
    for row in &rows {
        assert!(row.values().all(|cell| !["nan", "inf", "-inf"].contains(&cell.to_lowercase().as_str())), "{row:?}");
    }
}

#[test]
fn charts_are_well_formed_and_escape_names() {
    for run in [fixture::reduce(), fixture::sum_matrix(), fixture::faults()] {
        for (path, text) in runner_report::files(&records(&run)).unwrap() {
            if path.extension().is_some_and(|e| e == "svg") {
                assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{}", path.display());
                assert!(!text.contains("NaN") && !text.contains("inf"), "{}", path.display());
            }
        }
    }
    let mut hostile = records(&fixture::faults());
    hostile.cases[0].case.key.variant = "<script>&".to_owned();
    assert!(file(&hostile, "plots/time-layout-a-b-c-cold.svg").contains("&lt;script&gt;&amp;"));
}

fn charts(records: &Records) -> Vec<(String, String)> {
    let files = runner_report::files(records).unwrap().into_iter().filter(|(path, _)| path.starts_with("plots"));
    files.map(|(path, text)| (path.display().to_string(), text)).collect()
}

/// Otherwise, each new size would rename all charts in git.
#[test]
fn a_new_size_adds_its_chart_and_renames_no_other() {
    let mut records = records(&fixture::sum_matrix());
    let before = charts(&records);
    let mut larger = records.cases.clone();
    let axes = larger.iter_mut().flat_map(|record| record.case.key.axes.iter_mut().chain(&mut record.case.group.0));
    for (_, value) in axes.filter(|(name, _)| name == "n") {
        *value = Value::Int(1 << 30);
    }
    for record in &mut larger {
        record.work.bytes = record.work.bytes.map(|bytes| 16 * bytes);
    }
    records.cases.extend(larger);
    let after = charts(&records);
    assert_eq!((before.len(), after.len()), (1, 2), "{after:?}");
    assert!(after[0].0.contains("1073741824"), "the largest first: {}", after[0].0);
    assert_eq!(after[1].0, before[0].0);
}

#[test]
fn a_chart_says_in_words_what_it_shows_and_marks_the_baseline() {
    let all = charts(&records(&fixture::reduce()));
    let (_, chart) = &all[0];
    assert!(chart.contains(r#"role="img" aria-labelledby="title desc""#), "{chart}");
    assert!(chart.contains("<title id=\"title\">") && chart.contains("<desc id=\"desc\">"), "{chart}");
    assert!(chart.contains(" Best at n = ") && chart.contains(" Baseline: "), "{chart}");
    assert!(chart.contains(" (baseline)</text>"), "{chart}");
    assert!(chart.contains("n, log scale</text>"), "{chart}");
}

/// Times from 20 to 70 µs, then also one of 70 ms.
#[test]
fn an_axis_over_more_than_a_decade_is_logarithmic_and_says_so() {
    let mut records = records(&fixture::faults());
    let chart = |records: &Records| charts(records).remove(0).1;
    assert!(!chart(&records).contains("log scale"));
    let result = records.cases.iter_mut().find_map(|record| record.result.as_mut()).unwrap();
    let time = &mut result.time;
    *time = Estimate { point: time.point * 1e3, low: time.low * 1e3, high: time.high * 1e3, ..*time };
    assert!(chart(&records).contains("log scale</text>"), "{}", chart(&records));
}

/// Times are not comparable if one cell does half the work of another.
#[test]
fn cells_that_do_not_do_the_same_work_are_charted_by_their_rate() {
    let mut records = records(&fixture::sum_matrix());
    assert!(charts(&records)[0].0.starts_with("plots/time-"));
    for (i, record) in records.cases.iter_mut().enumerate() {
        record.work = WorkAmount { bytes: None, flops: Some(1e9 * (1 + i % 2) as f64) };
    }
    let (file, chart) = charts(&records).remove(0);
    assert!(file.starts_with("plots/arithmetic-"), "{file}");
    assert!(chart.contains("arithmetic (GFLOP/s), by rank</text>"), "{chart}");
}

/// Every case does its additions over the same bytes: a roofline would be one column of points.
#[test]
fn a_roofline_needs_cases_of_different_intensity() {
    let mut records = records(&fixture::reduce());
    records.environment.machine.ceilings = Some(Ceilings {
        read: 3.2e12,
        write: None,
        copy: 3e12,
        l2_read: 6e12,
        fma_f32: 6e13,
        fma_f64: 3e13,
        fma_f16: 1.2e14,
    });
    let mut has_roofline = |of_baseline: f64| {
        for record in &mut records.cases {
            let flops = if record.case.key.variant == "neighbored" { of_baseline } else { 1e6 };
            record.work = WorkAmount { bytes: Some(1 << 20), flops: Some(flops) };
        }
        charts(&records).iter().any(|(file, _)| file.ends_with("roofline.svg"))
    };
    assert_eq!([1e6, 1.5e6, 4e6].map(&mut has_roofline), [false, false, true]);
}

#[test]
fn launches_that_are_alike_are_one_line_which_counts_them_and_their_streams() {
    let mut records = records(&fixture::reduce());
    let dim = |x| Dim3::new(x, 1, 1);
    let alike = |stream| LaunchRecord { stream, ..fixture::launch("busy", dim(7), dim(256), 32) };
    let [first, second, third, ..] = records.cases.as_mut_slice() else { panic!("three cases") };
    first.launches = (0..12).map(|nth| alike(nth % 4)).collect();
    second.launches = vec![alike(0), alike(0)];
    third.launches = vec![alike(0), LaunchRecord { grid: dim(8), ..alike(0) }];
    assert_eq!(first.repeated().map(|(launch, streams)| (launch.grid, streams)), Some((dim(7), 4)));
    assert_eq!(second.repeated().map(|(_, streams)| streams), Some(1));
    assert_eq!(third.repeated().map(|(_, streams)| streams), None);
    // No-break spaces keep a number and its unit together.
    let text = file(&records, "report.md").replace('\u{a0}', " ");
    assert!(text.contains("| 12 in 4 streams |"), "{text}");
    assert!(text.contains("| 2 |"), "{text}");
    // Launches that differ keep a line each.
    assert_eq!(text.matches("↳ busy").count(), 2, "{text}");
}
