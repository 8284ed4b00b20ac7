//! The table of all cases, column by column, for the script of the page.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::facts::{Facts, Tables};
use super::{Beside, SourceFile};
use crate::analyse;
use crate::format;
use crate::model::{CaseRecord, Ratio, Records, Value};
use crate::render::rows::{self, bandwidth, gflops, percent_of_ceiling, percent_of_peak};
use crate::render::units::{self, TimeUnit, per_second};
use crate::render::{number, wording};

/// Most columns of counters: the others are among the facts of a case.
const MOST_COUNTERS: usize = 8;

/// The same where times have columns.
const MOST_BESIDE_TIMES: usize = 3;

/// The counters that explain most differences.
const TELLING: [&str; 8] = [
    "inst_executed",
    "gld_sectors",
    "gst_sectors",
    "shared_ld_bank_conflicts",
    "shared_st_bank_conflicts",
    "divergent_branch",
    "warp_execution_efficiency",
    "barriers",
];

/// The data of one report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data {
    rows: usize,
    columns: Vec<Column>,
    /// Rows that are the fastest of their group.
    best: Vec<usize>,
    unit: Unit,
    facts: Vec<Facts>,
    /// Names of facts.
    names: Vec<String>,
    /// Texts of facts.
    strings: Vec<String>,
    launch_titles: Vec<&'static str>,
    /// Launches as tables, each of which several cases can share.
    launches: Vec<Vec<Vec<String>>>,
    /// Names of counters, in the order of a case's counts.
    counters: Vec<String>,
    sources: Vec<Vec<SourceFile>>,
    no_samples: &'static str,
    no_source: &'static str,
}

/// The unit of times, which are in nanoseconds.
#[derive(Debug, Serialize)]
struct Unit {
    name: &'static str,
    scale: f64,
}

/// One column. Cells are texts, or places in `texts` if that is given; `values` are for sorting.
#[derive(Debug, Serialize)]
struct Column {
    key: String,
    title: String,
    cells: Cells,
    #[serde(skip_serializing_if = "Option::is_none")]
    texts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Option<f64>>>,
    /// Of the values, in which comparisons of a filter are.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Cells {
    Texts(Vec<String>),
    Places(Vec<usize>),
}

/// A value for sorting and its text; neither where there is none.
type Number = Option<(f64, String)>;

pub(super) fn data(records: &Records, beside: &Beside) -> Data {
    let summary = analyse::summary(records);
    let mut best: Vec<usize> = summary.groups.iter().flat_map(|group| &group.best).map(|best| best.index).collect();
    best.sort_unstable();
    let unit = TimeUnit::of(records.cases.iter().filter_map(|record| record.result.as_ref()).map(|r| r.time.point));
    let mut tables = Tables::new(records, beside);
    let facts = records.cases.iter().map(|record| tables.facts(record)).collect();
    let Tables { names, strings, launches, counters, sources, .. } = tables;
    Data {
        rows: records.cases.len(),
        columns: columns(records, unit),
        best,
        unit: Unit { name: unit.symbol(), scale: unit.nanoseconds() },
        facts,
        names: names.list,
        strings: strings.list,
        launch_titles: super::facts::LAUNCH_TITLES.to_vec(),
        launches: launches.list,
        counters,
        sources,
        no_samples: "No samples: the journal of this run is not beside the records.",
        no_source: "No source: none was found with the hash in the records.",
    }
}

fn columns(records: &Records, unit: TimeUnit) -> Vec<Column> {
    let mut columns = vec![texts("variant", records, |record| record.case.key.variant.clone())];
    for axis in &records.header.axes {
        let value = |record: &CaseRecord| units::axis(&record.case, &axis.name).cloned();
        let mut column = texts(&axis.name, records, |r| value(r).map(|v| units::axis_value(&v)).unwrap_or_default());
        let numbers: Vec<Option<f64>> = records.cases.iter().map(|r| value(r).as_ref().and_then(number_of)).collect();
        column.values = numbers.iter().any(Option::is_some).then_some(numbers);
        columns.push(column);
    }
    columns.push(texts("regime", records, |record| {
        record.result.as_ref().map(|result| result.regime.to_string()).unwrap_or_default()
    }));
    columns.push(texts("check", records, wording::check));
    // What does not differ is among the facts of every case.
    columns.retain(|column| column.key == "variant" || column.key == "check" || differs(column));
    columns.extend(measured(records, unit));
    columns.extend(launched(records));
    columns.extend(counted(records));
    columns
}

fn differs(column: &Column) -> bool {
    column.texts.as_ref().is_some_and(|texts| texts.len() > 1)
}

/// Times, ratios and rates; those that no case has are left out.
fn measured(records: &Records, unit: TimeUnit) -> Vec<Column> {
    let ns = unit.nanoseconds();
    let time = |record: &CaseRecord| {
        let result = record.result.as_ref()?;
        let host = if result.unit == result.regime.unit() { "" } else { " (host)" };
        Some((result.time.point, number::plus_minus(&result.time, ns) + host))
    };
    let against = |record: &CaseRecord, pick: fn(&crate::model::RegimeResult) -> Option<&Ratio>| {
        let result = record.result.as_ref()?;
        let ratio = pick(result)?;
        let mark = match () {
            () if analyse::is_noise(records, result, ratio) => " ≈",
            () if analyse::is_local(ratio) => " †",
            () => "",
        };
        Some((ratio.speedup.point, rows::ratio(ratio) + mark))
    };
    let baseline = |record: &CaseRecord| {
        let is_baseline = record.result.is_some() && analyse::is_baseline(&records.header, &record.case);
        is_baseline.then(|| (1.0, "baseline".to_owned()))
    };
    let rate = |record: &CaseRecord, work: Option<f64>, shown: Option<String>| {
        Some((per_second(work?, &record.result.as_ref()?.time), shown?))
    };
    let peak = records.environment.device.peak_bandwidth();
    let share = |text: Option<String>| text.and_then(|text| Some((text.parse().ok()?, text)));
    let mut columns = vec![
        Column { scale: Some(ns), ..numbers("time", format!("time ({})", unit.symbol()), records, time) },
        numbers("speedup", "× baseline", records, |r| {
            against(r, |result| result.against_baseline.as_ref()).or_else(|| baseline(r))
        }),
        numbers("step", "× step before", records, |r| against(r, |result| result.against_previous.as_ref())),
        Column {
            scale: Some(1e9),
            ..numbers("bandwidth", "GB/s", records, |r| {
                rate(r, r.work.bytes.map(|bytes| bytes as f64), bandwidth(r, r.result.as_ref()))
            })
        },
        numbers("peak", "% of peak", records, |r| share(percent_of_peak(r, r.result.as_ref()?, peak?))),
        numbers("ceiling", "% of ceiling", records, |r| share(percent_of_ceiling(records, r, r.result.as_ref()))),
        Column {
            scale: Some(1e9),
            ..numbers("arithmetic", "GFLOP/s", records, |r| rate(r, r.work.flops, gflops(r, r.result.as_ref())))
        },
    ];
    // As in report.md: bytes say more of a job that memory bounds.
    let ceilings = records.environment.machine.ceilings.as_ref();
    let is_arithmetic = |record: &CaseRecord| {
        let bound = ceilings.and_then(|ceilings| analyse::bound(&record.work, ceilings));
        record.work.bytes.is_none() || bound == Some(analyse::Bound::Arithmetic)
    };
    let has_operations = records.cases.iter().any(is_arithmetic);
    columns.retain(|column| has_values(column) && (column.key != "arithmetic" || has_operations));
    columns
}

fn launched(records: &Records) -> Vec<Column> {
    let registers = |record: &CaseRecord| {
        let most = record.launches.iter().filter_map(|launch| launch.resources.registers).max()?;
        Some((f64::from(most), most.to_string()))
    };
    let occupancy = |record: &CaseRecord| {
        let each = record.launches.iter().filter_map(|launch| launch.occupancy).map(|occupancy| occupancy.fraction);
        let least = each.reduce(f64::min)? * 100.0;
        Some((least, format!("{least:.0} %")))
    };
    let mut columns = vec![
        numbers("registers", "registers", records, registers),
        numbers("occupancy", "occupancy", records, occupancy),
    ];
    columns.retain(has_values);
    columns
}

/// Counters that differ between cases, those that explain most first.
fn counted(records: &Records) -> Vec<Column> {
    let counters = || records.cases.iter().filter_map(|record| record.counters.as_ref()).flat_map(|c| c.0.keys());
    let mut names: Vec<&str> = counters().map(AsRef::as_ref).collect::<BTreeSet<&str>>().into_iter().collect();
    names.sort_by_key(|name| TELLING.iter().position(|telling| telling == name).unwrap_or(TELLING.len()));
    let column = |name: &str| {
        let count =
            |record: &CaseRecord| record.counters.as_ref()?.get(name).map(|value| (value, format::count(value)));
        numbers(name, name, records, count)
    };
    let distinct = |column: &Column| match &column.cells {
        Cells::Texts(texts) => texts.windows(2).any(|pair| pair[0] != pair[1]),
        Cells::Places(_) => false,
    };
    let is_timed = records.cases.iter().any(|record| record.result.is_some());
    let most = if is_timed { MOST_BESIDE_TIMES } else { MOST_COUNTERS };
    names.into_iter().map(column).filter(distinct).take(most).collect()
}

fn has_values(column: &Column) -> bool {
    column.values.as_ref().is_some_and(|values| values.iter().any(Option::is_some))
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(x) if x.is_finite() => Some(*x),
        _ => None,
    }
}

/// A column of few different texts.
fn texts(name: &str, records: &Records, text: impl Fn(&CaseRecord) -> String) -> Column {
    let mut texts: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let place = |record: &CaseRecord| {
        let text = text(record);
        *places.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            texts.len() - 1
        })
    };
    let cells = Cells::Places(records.cases.iter().map(place).collect());
    Column { key: name.to_owned(), title: name.to_owned(), cells, texts: Some(texts), values: None, scale: None }
}

fn numbers(key: &str, title: impl Into<String>, records: &Records, number: impl Fn(&CaseRecord) -> Number) -> Column {
    let each = records.cases.iter().map(|record| match number(record) {
        Some((value, text)) => (text, Some(six_digits(value))),
        None => (String::new(), None),
    });
    let (texts, values): (Vec<String>, Vec<Option<f64>>) = each.unzip();
    let cells = Cells::Texts(texts);
    Column { key: key.to_owned(), title: title.into(), cells, texts: None, values: Some(values), scale: None }
}

/// Enough to sort by; the full precision is in `results.csv`.
pub(super) fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
