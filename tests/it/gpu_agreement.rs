//! Whether two runs of one manifest on two machines of the same kind agree, measured by the fraction of rows whose
//! speedup intervals overlap. Times of the host's clock are skipped, because hosts differ and this test is about GPUs.
//!
//! `RUNNER_AGREEMENT` names one or more pairs of `records.jsonl`, as `A1:B1:A2:B2`. Prints a table for each pair, with
//! the clocks' constants and, for every row that disagrees, both times and both SM clocks.

use std::path::Path;

use runner_results::journal::read_records;
use runner_types::{CaseRecord, Clock, Estimate, Records, RegimeResult, Unit};

const PAIRS: &str = "RUNNER_AGREEMENT";

/// Fraction of rows that must agree.
const WANTED: f64 = 0.95;

/// A row with a speedup in both runs.
struct Row<'a> {
    name: String,
    results: [&'a RegimeResult; 2],
    speedups: [Estimate; 2],
}

impl Row<'_> {
    fn agrees(&self) -> bool {
        let [a, b] = self.speedups;
        a.low <= b.high && b.low <= a.high
    }
}

fn speedup(record: &CaseRecord) -> Option<(&RegimeResult, Estimate)> {
    let result = record.result.as_ref()?;
    let against = result.against_baseline.as_ref()?;
    Some((result, against.reproducible.unwrap_or(against.speedup)))
}

/// Rows that both runs have, in the order of the first.
fn rows<'a>(first: &'a Records, second: &'a Records) -> Vec<Row<'a>> {
    let disagreement = |record: &'a CaseRecord| {
        let (result, own) = speedup(record).filter(|(result, _)| result.unit == Unit::DeviceNanoseconds)?;
        let same = |other: &&CaseRecord| {
            let regime = other.result.as_ref().map(|result| result.regime);
            other.case.key == record.case.key && regime == Some(result.regime)
        };
        let (other, others) = speedup(second.cases.iter().find(same)?)?;
        let axes: Vec<String> = record.case.key.axes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let name = format!("{}[{}] {}", record.case.key.variant, axes.join(", "), result.regime);
        Some(Row { name, results: [result, other], speedups: [own, others] })
    };
    first.cases.iter().filter_map(disagreement).collect()
}

fn constant(records: &Records) -> String {
    match &records.environment.machine.clock {
        Some(Clock::Calibrated(calibration)) => format!("{:.0} ns", calibration.constant),
        _ => "none".to_owned(),
    }
}

/// Prints a pair. Returns the number of rows that agree, and the number of rows.
fn compare(first: &Path, second: &Path) -> (usize, usize) {
    let records = [first, second].map(|path| read_records(path).unwrap());
    let rows = rows(&records[0], &records[1]);
    let agreeing = rows.iter().filter(|row| row.agrees()).count();
    let constants = records.each_ref().map(constant);
    println!(
        "\n{}: {agreeing} of {} speedups agree; taken off each interval: {} and {}",
        records[0].header.experiment,
        rows.len(),
        constants[0],
        constants[1]
    );
    let apart: Vec<&Row<'_>> = rows.iter().filter(|row| !row.agrees()).collect();
    if !apart.is_empty() {
        println!("\n| row | speedup | speedup | time (ns) | time (ns) | SM clock | SM clock |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    }
    for Row { name, results, speedups } in apart {
        let ranges = speedups.map(|s| format!("{:.4} to {:.4}", s.low, s.high)).join(" | ");
        let times = results.map(|r| format!("{:.0}", r.time.point)).join(" | ");
        let clocks = results.map(|r| r.sm_clock.map_or_else(String::new, |clock| clock.median.to_string())).join(" | ");
        println!("| {name} | {ranges} | {times} | {clocks} |");
    }
    (agreeing, rows.len())
}

#[test]
#[ignore = "needs records of two machines"]
fn two_runs_on_two_machines_agree_about_speedups() {
    let pairs = std::env::var_os(PAIRS).expect(PAIRS);
    let paths: Vec<_> = std::env::split_paths(&pairs).collect();
    assert!(paths.len().is_multiple_of(2), "{PAIRS} names {} files, which make no pairs", paths.len());
    let found = paths.chunks_exact(2).map(|pair| compare(&pair[0], &pair[1]));
    let (agreeing, all) = found.fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    println!("\n{agreeing} of {all} speedups agree.");
    assert!(all > 0, "the records have no speedups in common");
    assert!(agreeing as f64 >= WANTED * all as f64, "{agreeing} of {all} speedups agree");
}

#[test]
fn a_run_agrees_with_itself_in_every_row() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/copy");
    let folders = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path().join("records.jsonl"));
    let timed =
        |file: &std::path::PathBuf| read_records(file).unwrap().cases.iter().any(|case| speedup(case).is_some());
    let file = folders.filter(|file| file.exists()).find(timed).unwrap();
    let (agreeing, all) = compare(&file, &file);
    assert!(all > 0 && agreeing == all, "{agreeing} of {all}");
}
