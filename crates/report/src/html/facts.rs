//! Facts about each case besides its numbers: compiled code, hashes, counters, samples, source.
//!
//! The page shows them below an open row. Cases refer to shared tables, since most of their facts are equal.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::changes::samples_of;
use super::pool::Pool;
use super::table::six_digits;
use super::{Companions, SourceFile};
use crate::{lines, number, units, wording};
use runner_lang::format;
use runner_types::{CaseRecord, LaunchRecord, Records, RegimeResult, Round};

pub(super) const LAUNCH_TITLES: [&str; 10] = [
    "launch",
    "grid",
    "block",
    "shared (B)",
    "registers",
    "local (B)",
    "spilled (B)",
    "occupancy",
    "blocks per SM",
    "limited by",
];

/// Maximum number of source-line rows on a page. `lines.csv` has all of them.
const MOST_LINE_ROWS: usize = 1500;

/// Facts of one case, as indices into the shared tables.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// Indices of the facts, alternately a name and its text.
    pairs: Vec<usize>,
    launches: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<Option<String>>>,
    /// Table of the source lines with the largest counts: titles and rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<(Vec<&'static str>, Vec<Vec<String>>)>,
    /// Nanoseconds, in the order of rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<Vec<u32>>,
    /// Median and both ends of its interval, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<usize>,
    /// Path of the case's source page.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
}

/// Tables that all cases share.
#[derive(Debug)]
pub(super) struct Tables<'a> {
    records: &'a Records,
    beside: &'a Companions,
    pub names: Pool<String>,
    pub strings: Pool<String>,
    pub launches: Pool<Vec<Vec<String>>>,
    pub counters: Vec<String>,
    pub sources: Vec<Vec<SourceFile>>,
    source_places: HashMap<&'a str, usize>,
    line_rows_left: usize,
}

impl<'a> Tables<'a> {
    pub fn new(records: &'a Records, beside: &'a Companions) -> Self {
        let counted = records.cases.iter().filter_map(|record| record.counters.as_ref());
        let counters: BTreeSet<&str> = counted.flat_map(|c| c.0.keys()).map(AsRef::as_ref).collect();
        Self {
            records,
            beside,
            names: Pool::new(),
            strings: Pool::new(),
            launches: Pool::new(),
            counters: counters.into_iter().map(str::to_owned).collect(),
            sources: beside.sources.values().cloned().collect(),
            source_places: beside.sources.keys().enumerate().map(|(i, hash)| (hash.as_str(), i)).collect(),
            line_rows_left: MOST_LINE_ROWS,
        }
    }

    pub fn facts(&mut self, record: &CaseRecord) -> Facts {
        let named = self.pairs(record).into_iter();
        let pairs =
            named.flat_map(|(name, text)| [self.names.place(name.to_owned()), self.strings.place(text)]).collect();
        let launches = self.launches.place(launches(record));
        let count = |name: &String| record.counters.as_ref().and_then(|c| c.get(name)).map(format::count);
        let result = record.result.as_ref();
        let beside: &'a Companions = self.beside;
        let rounds =
            result.and_then(|result| samples_of(&beside.samples, &record.case.key, result.regime, &result.time));
        let times = |rounds: &[Round]| rounds.iter().map(|round| six_digits(round.whole)).collect();
        let hash = record.hashes.as_ref().map(|hashes| hashes.source.as_str());
        Facts {
            pairs,
            launches,
            counters: record.counters.is_some().then(|| self.counters.iter().map(count).collect()),
            lines: self.lines(record),
            samples: rounds.map(times),
            rounds: rounds.map(|rounds| rounds.iter().map(|round| round.round).collect()),
            interval: rounds.and(result).map(|r| [r.time.point, r.time.low, r.time.high].map(six_digits)),
            source: hash.and_then(|hash| self.source_places.get(hash).copied()),
            page: beside.pages.get(&record.case.ordinal).cloned(),
        }
    }

    /// Source lines of a case, unless the page has reached its limit of rows.
    fn lines(&mut self, record: &CaseRecord) -> Option<(Vec<&'static str>, Vec<Vec<String>>)> {
        let found = lines::details(record).filter(|(_, rows)| rows.len() <= self.line_rows_left)?;
        self.line_rows_left -= found.1.len();
        Some(found)
    }

    fn pairs(&self, record: &CaseRecord) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("check", wording::check(record))];
        pairs.extend(wording::reason(&record.outcome).map(|why| ("reason", why)));
        if let Some(result) = &record.result {
            pairs.extend(measured(result));
        }
        let notes = record.notes.iter().map(wording::note);
        pairs.extend(
            notes.chain(wording::cached_traffic(record, &self.records.environment.device)).map(|n| ("note", n)),
        );
        if let Some(error) = record.error {
            pairs.push(("error", format!("{:.1e} relative, {} ulp", error.rel, format::rough(error.ulp))));
        }
        if let Some(energy) = &record.energy {
            let unit = units::EnergyUnit::choose(std::iter::once(energy.per_run));
            let text = number::plus_minus(&energy.estimate(), unit.joules());
            pairs.push(("energy", format!("{text} {}, {} W", unit.symbol(), format::rough(energy.power.0))));
        }
        if let Some(hashes) = &record.hashes {
            let text = |name: &str, hash: &str| format!("{name} {hash}");
            let each = [
                text("source", &hashes.source),
                text("options", &hashes.options),
                text("inputs", &hashes.inputs),
                text("check", &hashes.check),
            ];
            pairs.push(("hashes", each.join(" · ")));
        }
        pairs
    }
}

fn measured(result: &RegimeResult) -> Vec<(&'static str, String)> {
    let unit = units::TimeUnit::choose(std::iter::once(result.time.point));
    let shown =
        |time: &runner_types::Estimate| format!("{} {}", number::plus_minus(time, unit.nanoseconds()), unit.symbol());
    let percent = result.time.confidence * 100.0;
    let mut pairs = vec![
        ("time", format!("median of {} samples, {percent:.1} % interval", result.samples)),
        ("regime", result.regime.to_string()),
    ];
    if !result.each.is_empty() {
        pairs.push(("time of each launch", result.each.iter().map(shown).collect::<Vec<_>>().join(", ")));
    }
    // The ratios in the table cover variation between processes.
    let ratio = |name, ratio: &runner_types::Ratio| {
        (name, format!("{} times as fast as {} in this run", number::ratio(&ratio.speedup), ratio.against))
    };
    pairs.extend(result.against_baseline.as_ref().map(|r| ratio("against the baseline", r)));
    pairs.extend(result.against_previous.as_ref().map(|r| ratio("against the previous step", r)));
    pairs.extend(result.sm_clock.map(|clock| ("SM clock", format!("{} MHz", wording::sm_clock(clock)))));
    pairs.extend(result.working_set.map(|bytes| ("working set", format::bytes(bytes))));
    if result.discarded > 0 {
        pairs.push(("discarded", format!("{} samples, taken while the device was throttled", result.discarded)));
    }
    pairs
}

/// One row per launch; equal launches share a row.
fn launches(record: &CaseRecord) -> Vec<Vec<String>> {
    match record.repeated() {
        Some((launch, streams)) => {
            let mut row = launch_row(launch);
            let streams = if streams > 1 { format!(" in {streams} streams") } else { String::new() };
            row[0] = format!("{} × {}{streams}", record.launches.len(), launch.label);
            vec![row]
        }
        None => record.launches.iter().map(launch_row).collect(),
    }
}

fn launch_row(launch: &LaunchRecord) -> Vec<String> {
    let LaunchRecord { resources, occupancy, .. } = launch;
    let shown = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
    let spilled = resources.spill_stores.zip(resources.spill_loads);
    vec![
        launch.label.clone(),
        launch.grid.to_string(),
        launch.block.to_string(),
        (launch.shared + resources.shared_static.unwrap_or(0)).to_string(),
        shown(resources.registers),
        shown(resources.local),
        spilled.map(|(stored, loaded)| format!("{stored} stored, {loaded} loaded")).unwrap_or_default(),
        occupancy.map(|o| format!("{:.0} %", o.fraction * 100.0)).unwrap_or_default(),
        shown(occupancy.map(|o| o.blocks_per_sm)),
        occupancy.and_then(|o| o.limiter).map(|by| wording::limiter(by).to_owned()).unwrap_or_default(),
    ]
}
