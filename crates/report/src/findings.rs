//! Sentences at the top of a report: what is best, by how much, how certain that is, and whether the results are
//! correct.
//!
//! The terminal shows the same sentences. They are built from parts, since each output escapes names differently.

use super::bound::{group_text, is_arithmetic};
use super::counters::Multiple;
use super::ladder::{Step, ladder};
use super::quantities::{achievement, peak_percent, percent_of_ceiling, rate, ratio};
use super::table::Cell;
use super::{counters, number, overview, units, wording};
use runner_lang::format::{part_of, plural, plural_of, rough};
use runner_results::analyse::{
    self, Basis, Best, CONFIDENCE, ExpectedFailures, GroupSummary, Standing, Summary, is_noise,
};
use runner_types::{CaseRecord, Outcome, Records, Regime, Unchecked, Value, Verdict};

/// One sentence, in parts.
pub type Finding = Vec<Cell>;

/// Maximum number of names to list; further ones are only counted.
const MOST_NAMES: usize = 5;

/// Sentences of the summary. `constant` has the axes with only one value.
pub fn findings(records: &Records, summary: &Summary, constant: &[(String, Value)]) -> Vec<Finding> {
    let mut findings = results(records, summary, constant);
    // An instruction count is not an answer by itself.
    let lone = if is_lone_count(records, &findings) { findings.pop() } else { None };
    let is_answer = findings.is_empty();
    findings.push(vec![
        Cell::plain(counts(records, summary)).strong_if(is_answer),
        Cell::plain(format!(" Device: {}.", records.environment.device.name)),
    ]);
    findings.extend(lone.map(|lone| lone.into_iter().map(|cell| cell.strong_if(false)).collect()));
    if !summary.is_ranked && summary.expected_failures.is_none() && records.cases.iter().any(|r| r.result.is_some()) {
        findings.push(vec![
            Cell::plain("The times are not ranked: with neither a baseline nor "),
            Cell::code("[work]"),
            Cell::plain(", nothing says that the cases do the same job."),
        ]);
    }
    findings.extend(unstable(records));
    findings
}

/// The main result in one sentence, for a list of reports. If no result is decided, it is the count that differs most.
pub fn main_finding(records: &Records) -> Finding {
    let summary = analyse::summary(records);
    let constant = overview::constant_axes(records, &summary);
    let mut results = results(records, &summary, &constant);
    if !results.is_empty() && !is_lone_count(records, &results) {
        return results.swap_remove(0);
    }
    if let Some(difference) = counters::greatest_difference(records, &summary) {
        return multiple(difference, summary.groups.len() > 1);
    }
    let mut counted = vec![Cell::plain(counts(records, &summary))];
    if counters::has_counters(records) && summary.cases > 1 {
        counted.push(Cell::plain(" No deciding counter differs."));
    }
    counted
}

/// `` `stride32` loads 8.00× the sectors of `offset0` (geomean). ``
fn multiple(Multiple { counter, contender, ratio, of }: Multiple, is_mean: bool) -> Finding {
    let (does, what) = match counter {
        "inst_executed" => ("executes", "warp instructions"),
        "gld_sectors" => ("loads", "sectors"),
        "gst_sectors" => ("stores", "sectors"),
        other => ("counts", other),
    };
    vec![
        Cell::code(contender).strong_if(true),
        Cell::plain(format!(" {does} {}× the {what} of ", rough(ratio))),
        Cell::code(of),
        Cell::plain(if is_mean { " (geomean)." } else { "." }),
    ]
}

fn results(records: &Records, summary: &Summary, constant: &[(String, Value)]) -> Vec<Finding> {
    if let Some(expected_failures) = &summary.expected_failures {
        return vec![as_expected(expected_failures)];
    }
    if let Some(errors) = &summary.exactness {
        return exactness(errors, constant);
    }
    let mut findings = Vec::new();
    for &regime in Regime::ALL {
        let several_regimes = summary.standings.iter().any(|s| s.regime != regime);
        let prefix = if several_regimes { format!("{regime}: ") } else { String::new() };
        let decided: Vec<(&GroupSummary, &Best)> =
            summary.groups.iter().filter_map(|g| Some((g, g.best.iter().find(|b| b.regime == regime)?))).collect();
        match decided.as_slice() {
            [] => continue,
            [(group, best)] => findings.push(single(records, group, best, &prefix)),
            several => findings.extend(leader(records, summary, several, regime, &prefix)),
        }
        findings.extend(worst(records, &decided, constant));
        findings.extend(steps(summary, regime));
    }
    if findings.is_empty() {
        findings.extend(FEWEST.iter().filter_map(|counted| fewest(records, summary, *counted)));
    }
    findings
}

/// Whether the only result is an instruction count, which does not tell what is fast.
fn is_lone_count(records: &Records, findings: &[Finding]) -> bool {
    let has_results = records.cases.iter().any(|record| record.result.is_some());
    !has_results && matches!(findings, [only] if only.iter().any(|cell| cell.text.contains(FEWEST[0].2)))
}

/// Finding for an experiment whose cases were expected to fail, and did.
fn as_expected(expected_failures: &ExpectedFailures) -> Finding {
    let (ended, of) = (expected_failures.as_expected(), expected_failures.of);
    let lead = match of {
        1 if ended == 1 => "The only case ended".to_owned(),
        _ if ended == of => format!("All {of} cases ended"),
        _ => format!("{ended} of {} ended", plural(of as u64, "case")),
    };
    let ways: Vec<String> = expected_failures.failed.iter().map(|(way, count)| wording::tally(way, *count)).collect();
    let failed: usize = expected_failures.failed.values().sum();
    let mut parts = Vec::new();
    if failed > 0 {
        let failed = plural_of(failed as u64, "fails", "fail");
        parts.push(format!("{failed} as the manifest states ({})", ways.join(", ")));
    }
    if expected_failures.right > 0 {
        parts.push(plural_of(expected_failures.right as u64, "is right", "are right"));
    }
    let rest = if parts.is_empty() { ".".to_owned() } else { format!(": {}.", parts.join(", ")) };
    vec![Cell::plain(format!("{lead} as expected")).strong_if(true), Cell::plain(rest)]
}

/// Findings about the most and the least accurate results.
fn exactness(errors: &[analyse::Exactness], constant: &[(String, Value)]) -> Vec<Finding> {
    let (Some(first), Some(last)) = (errors.first(), errors.last()) else { return Vec::new() };
    let as_good: Vec<&str> = errors.iter().take_while(|e| e.ulp <= first.ulp).map(|e| e.contender.as_str()).collect();
    let verb = if as_good.len() > 1 { "are the most accurate" } else { "is the most accurate" };
    let mut best = listed(&as_good);
    best.push(Cell::plain(format!(" {verb}: at most {} ulp from the reference.", rough(first.ulp))));
    if last.ulp <= first.ulp {
        return vec![best];
    }
    let place = group_text(&last.group, constant);
    let place = if place.is_empty() { place } else { format!(" at {place}") };
    let worst = vec![
        Cell::plain("The least accurate is "),
        Cell::code(last.contender.clone()),
        Cell::plain(format!(": {} ulp{place}.", rough(last.ulp))),
    ];
    vec![best, worst]
}

/// Lists names as `` `a`, `b` and 3 more ``, the first in bold.
fn listed(names: &[&str]) -> Finding {
    let mut parts = Vec::new();
    for (i, name) in names.iter().take(MOST_NAMES).enumerate() {
        if i > 0 {
            parts.push(Cell::plain(", "));
        }
        parts.push(Cell::code(*name).strong_if(i == 0));
    }
    if names.len() > MOST_NAMES {
        parts.push(Cell::plain(format!(" and {} more", names.len() - MOST_NAMES)));
    }
    parts
}

/// The most informative counters without times, each with a phrase about the variant that has the smallest count.
const FEWEST: [(&str, &str, &str); 2] =
    [("inst_executed", "executes", "warp instructions"), ("gld_sectors", "loads", "sectors")];

/// Finding about the variant with the smallest count, relative to the baseline.
fn fewest(records: &Records, summary: &Summary, (name, does, what): (&str, &str, &str)) -> Option<Finding> {
    let (variant, mean) = counters::fewest(records, summary, name)?;
    let (baseline, _) = records.header.baseline.as_ref()?;
    if variant == baseline || rough(mean) == rough(1.0) {
        return None;
    }
    let mean_of = if summary.groups.len() > 1 { " (geomean)" } else { "" };
    Some(vec![
        Cell::code(variant).strong_if(true),
        Cell::plain(format!(" {does} {}× the {what} of ", rough(mean))),
        Cell::code(baseline.clone()),
        Cell::plain(format!("{mean_of}.")),
    ])
}

/// Words for the best variant of a group.
#[derive(Debug, Clone, Copy)]
struct Superlative {
    basis: Basis,
    /// Whether an unchecked variant was faster in some group. The best is then only the best of the checked ones.
    is_outrun: bool,
}

impl Superlative {
    fn new(records: &Records, decided: &[(&GroupSummary, &Best)]) -> Self {
        let all_by_time = decided.iter().all(|(group, _)| group.basis == Basis::Time);
        let basis = if all_by_time { Basis::Time } else { Basis::Bandwidth };
        Self { basis, is_outrun: decided.iter().any(|(group, best)| is_outrun(records, group, best)) }
    }

    const fn words(self, is_tied: bool) -> &'static str {
        match (self.basis, is_tied, self.is_outrun) {
            (Basis::Time, false, false) => "is the fastest",
            (Basis::Time, true, false) => "is tied for the fastest",
            (Basis::Time, false, true) => "is the fastest of the checked variants",
            (Basis::Time, true, true) => "is tied for the fastest of the checked variants",
            (_, false, false) => "has the highest rate",
            (_, true, false) => "is tied for the highest rate",
            (_, false, true) => "has the highest rate of the checked variants",
            (_, true, true) => "is tied for the highest rate of the checked variants",
        }
    }
}

/// Whether an unchecked variant needs less time for its work than the best of the group.
fn is_outrun(records: &Records, group: &GroupSummary, best: &Best) -> bool {
    let cost = |record: &CaseRecord| {
        let result = record.result.as_ref().filter(|r| r.regime == best.regime && r.unit == r.regime.unit())?;
        Some(result.time.high / group.basis.work(record)?)
    };
    let is_unchecked =
        |record: &CaseRecord| matches!(&record.verdict, Verdict::Unchecked(why) if *why != Unchecked::IsReference);
    let unchecked = group.members.iter().map(|i| &records.cases[*i]).filter(|record| is_unchecked(record));
    let least = unchecked.filter_map(cost).reduce(f64::min);
    least.zip(cost(&records.cases[best.index])).is_some_and(|(least, best)| least < best)
}

/// Finding for a single group: its best cell with all its numbers.
fn single(records: &Records, group: &GroupSummary, best: &Best, prefix: &str) -> Finding {
    let record = &records.cases[best.index];
    let mut finding = vec![
        Cell::plain(prefix),
        Cell::code(analyse::contender(&records.header, &record.case)).strong_if(true),
        Cell::plain(format!(" {}: ", Superlative::new(records, &[(group, best)]).words(!best.tied.is_empty()))),
    ];
    finding.push(Cell::plain(achievement(records, group, record)));
    finding.extend(compare_with_baseline(records, group, record));
    finding.extend(tied(records, best));
    finding
}

/// Improvement over the baseline.
fn compare_with_baseline(records: &Records, group: &GroupSummary, record: &CaseRecord) -> Finding {
    let end = || vec![Cell::plain(".")];
    let Some(result) = &record.result else { return end() };
    let gained = result.against_baseline.as_ref().and_then(|ratio| analyse::gain(records, group, record, ratio));
    let Some(gained) = gained else { return end() };
    if group.basis == Basis::Time && is_noise(records, result, &gained) {
        return vec![
            Cell::plain(", not measurably faster than "),
            Cell::code(gained.against.clone()),
            Cell::plain(format!(" ({}).", ratio(&gained))),
        ];
    }
    let than = if group.basis == Basis::Time { "times as fast as" } else { "times the rate of" };
    vec![Cell::plain(format!(", {} {than} ", ratio(&gained))), Cell::code(gained.against.clone()), Cell::plain(".")]
}

fn tied(records: &Records, best: &Best) -> Finding {
    if best.tied.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> =
        best.tied.iter().map(|i| analyse::contender(&records.header, &records.cases[*i].case)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut said = vec![Cell::plain(" Tied with it: ")];
    said.extend(listed(&names).into_iter().map(|cell| cell.strong_if(false)));
    said.push(Cell::plain("."));
    said
}

/// Finding for several groups: the contender that is best in most of them, its mean speedup, and the highest rate.
fn leader(
    records: &Records,
    summary: &Summary,
    decided: &[(&GroupSummary, &Best)],
    regime: Regime,
    prefix: &str,
) -> Vec<Finding> {
    let ranked = summary.standings.iter().filter(|s| s.regime == regime && !s.on_host);
    let mean = |s: &Standing| s.speedup.map_or(0.0, |range| range.geomean.point);
    let order = |s: &Standing| (s.alone + s.tied, s.alone);
    // Reversed, since `max_by` returns the last of several maxima.
    let most = ranked.rev().max_by(|a, b| order(a).cmp(&order(b)).then(mean(a).total_cmp(&mean(b))));
    let Some(leader) = most else { return Vec::new() };
    let as_good = summary.standings.iter().filter(|s| s.regime == regime && !s.on_host && order(s) == order(leader));
    let others: Vec<&str> = as_good.map(|s| s.contender.as_str()).filter(|name| *name != leader.contender).collect();
    let mut first = vec![
        Cell::plain(prefix),
        Cell::code(leader.contender.clone()).strong_if(true),
        Cell::plain(format!(" {}", won(leader, decided.len(), Superlative::new(records, decided)))),
    ];
    if !others.is_empty() {
        first.push(Cell::plain(if leader.alone == 0 { ", tied with " } else { ", as often as " }));
        first.extend(listed(&others).into_iter().map(|cell| cell.strong_if(false)));
    }
    first.extend(mean_gain(records, leader, decided));
    first.push(Cell::plain("."));
    let mut findings = vec![first];
    findings.extend(highest_rate(records, decided));
    findings
}

/// Describes the mean gain: `: 6.70 ± 0.11 times as fast as `x` (geomean), from 1.98 to 10.2`. Empty for
/// the baseline.
fn mean_gain(records: &Records, leader: &Standing, decided: &[(&GroupSummary, &Best)]) -> Finding {
    let Some((range, (variant, at))) = leader.speedup.as_ref().zip(records.header.baseline.as_ref()) else {
        return Vec::new();
    };
    if leader.is_baseline {
        return Vec::new();
    }
    let baseline = if at.is_empty() { variant.clone() } else { format!("{variant}[{}]", units::axes_list(at)) };
    let over = if range.groups == decided.len() {
        ":".to_owned()
    } else {
        format!("; over the {} that can be compared, it is", plural(range.groups as u64, "group"))
    };
    let geomean = number::ratio(&range.geomean);
    let (least, greatest) = (rough(range.least), rough(range.greatest));
    if range.geomean.low <= 1.0 && range.geomean.high >= 1.0 {
        return vec![
            Cell::plain(format!("{over} as fast as ")),
            Cell::code(baseline),
            Cell::plain(format!(" (geomean {geomean}), from {least} to {greatest}")),
        ];
    }
    let by_time = decided.iter().all(|(group, _)| group.basis == Basis::Time);
    let than = if by_time { "times as fast as" } else { "times the rate of" };
    vec![
        Cell::plain(format!("{over} {geomean} {than} ")),
        Cell::code(baseline),
        Cell::plain(format!(" (geomean), from {least} to {greatest}")),
    ]
}

/// Number of groups that the leader won: `is the fastest in 30 of 35 groups, tied in the other 5`.
fn won(leader: &Standing, of: usize, superlative: Superlative) -> String {
    let best = superlative.words(false);
    match (leader.alone, leader.tied) {
        (alone, 0) if alone == of => format!("{best} in all {of} groups"),
        (alone, 0) => format!("{best} in {alone} of {of} groups"),
        (0, tied) if tied == of => format!("{} in all {of} groups", superlative.words(true)),
        (0, tied) => format!("{} in {tied} of {of} groups", superlative.words(true)),
        (alone, tied) if alone + tied == of => format!("{best} in {alone} of {of} groups, tied in the other {tied}"),
        (alone, tied) => format!("{best} in {alone} of {of} groups, tied in {tied} more"),
    }
}

fn highest_rate(records: &Records, decided: &[(&GroupSummary, &Best)]) -> Option<Finding> {
    let arithmetic = decided.iter().all(|(_, best)| is_arithmetic(records, &records.cases[best.index]));
    let work = |record: &CaseRecord| if arithmetic { record.work.flops } else { record.work.bytes.map(|b| b as f64) };
    let candidates = decided.iter().filter_map(|(group, best)| {
        let record = &records.cases[best.index];
        let time = &record.result.as_ref()?.time;
        Some((*group, record, units::per_second(work(record)?, time)))
    });
    let (group, record, _) = candidates.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let result = record.result.as_ref()?;
    let mut finding =
        vec![Cell::plain("The highest rate is "), Cell::plain(rate(records, record, result)?).strong_if(true)];
    if let Some(percent) = peak_percent(records, record, result) {
        finding.push(Cell::plain(format!(", {percent} % of the data-sheet peak")));
    } else if let Some(percent) = percent_of_ceiling(records, record, Some(result)) {
        finding.push(Cell::plain(format!(", {percent} % of the measured ceiling")));
    }
    finding.push(Cell::plain(", by "));
    finding.push(Cell::code(analyse::contender(&records.header, &record.case)));
    if !group.key.0.is_empty() {
        finding.push(Cell::plain(format!(" at {}", units::axes_text(&group.key.0))));
    }
    finding.push(Cell::plain("."));
    Some(finding)
}

/// How far behind the worst contender is, over all groups; `None` if that is the baseline, which the best was already
/// compared with.
fn worst(records: &Records, decided: &[(&GroupSummary, &Best)], constant: &[(String, Value)]) -> Option<Finding> {
    let furthest = decided.iter().filter_map(|(group, best)| {
        let cost = |i: usize| {
            let record = &records.cases[i];
            let result = record.result.as_ref().filter(|r| r.regime == best.regime && r.unit == r.regime.unit())?;
            Some(result.time.point / group.basis.work(record)?)
        };
        let costs = group.members.iter().filter_map(|i| Some((*i, cost(*i)? / cost(best.index)?)));
        costs.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, factor)| (*group, *best, index, factor))
    });
    let (group, best, index, factor) = furthest.max_by(|a, b| a.3.total_cmp(&b.3))?;
    let record = &records.cases[index];
    if index == best.index || best.tied.contains(&index) || analyse::is_baseline(&records.header, &record.case) {
        return None;
    }
    let place = group_text(&group.key, constant);
    let place = if place.is_empty() { place } else { format!(" at {place}") };
    let name = |i: usize| Cell::code(analyse::contender(&records.header, &records.cases[i].case));
    let by_rate = group.basis != Basis::Time;
    let lead = if by_rate { "The lowest rate has " } else { "The slowest is " };
    Some(vec![
        Cell::plain(lead),
        name(index).strong_if(true),
        Cell::plain(format!("{place}, which takes {} times as long as ", rough(factor))),
        name(best.index),
        Cell::plain(if by_rate { " for the same work." } else { "." }),
    ])
}

/// How many steps of a ladder are gains, which is the largest, and which are losses. The chart of gains has all steps.
fn steps(summary: &Summary, regime: Regime) -> Option<Finding> {
    let steps = ladder(summary, regime)?;
    let gains = steps.iter().filter(|step| step.gain.low > 1.0).count();
    let name = |step: &Step<'_>| [Cell::code(step.to), Cell::plain(format!(" {}×", number::point(&step.gain, 1.0)))];
    let faster = part_of(gains as u64, steps.len() as u64, "step", ["is", "are"]);
    let mut finding = vec![Cell::plain(format!("{faster} faster than the previous one"))];
    if let Some(most) = steps.iter().max_by(|a, b| a.gain.point.total_cmp(&b.gain.point)) {
        finding.push(Cell::plain(", most of all "));
        finding.extend(name(most));
    }
    let losses: Vec<&Step<'_>> = steps.iter().filter(|step| step.gain.high < 1.0).collect();
    for (i, step) in losses.iter().enumerate() {
        finding.push(Cell::plain(if i == 0 { "; slower than the previous one: " } else { ", " }));
        finding.extend(name(step));
    }
    finding.push(Cell::plain("."));
    Some(finding)
}

/// Case counts of a run, computed only from its records.
pub fn counts_of(records: &Records) -> String {
    counts(records, &analyse::summary(records))
}

/// How many cases were measured and correct: `26 of 36 cases measured, every result right before and after the timing;
/// 10 invalid.`
pub fn counts(records: &Records, summary: &Summary) -> String {
    let count = |name: &str| summary.outcomes.get(name).copied().unwrap_or(0);
    let done = count("measured") + count("unstable");
    let is_timed = records.cases.iter().any(|r| r.result.is_some());
    let sound = || records.cases.iter().filter(|r| matches!(r.outcome.name(), "measured" | "unstable"));
    let unchecked = sound().filter(|r| r.verdict != Verdict::Pass).count();
    let matching = sound().count() - unchecked;
    // With wrong results, "every result" would be false.
    let failed = summary.failures.iter().any(|i| !matches!(records.cases[*i].outcome, Outcome::NotRun { .. }));
    let verb = match (is_timed, unchecked) {
        (_, 1..) if let Some(reference) = only_reference(records).filter(|_| matching > 0) => {
            let (verb, when) = if is_timed { ("measured", ", before and after the timing") } else { ("ran", "") };
            format!("{verb}; {} `{reference}`{when}", matching_names(records, matching))
        }
        (false, 0) => "passed".to_owned(),
        (false, _) => format!("ran, {unchecked} unchecked"),
        (true, 0) if done == 0 => "measured".to_owned(),
        (true, 0) if failed => "measured and right before and after the timing".to_owned(),
        (true, 0) => "measured, every result right before and after the timing".to_owned(),
        (true, _) => format!("measured, {unchecked} unchecked"),
    };
    let others: Vec<String> = summary
        .outcomes
        .iter()
        .filter(|(name, _)| **name != "measured")
        .map(|(name, count)| wording::tally(name, *count))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    let planned = records.header.planned.map(|planned| plural(planned, "planned case"));
    let of = planned.unwrap_or_else(|| plural(summary.cases as u64, "case"));
    format!("{done} of {of} {verb}{others}.")
}

/// Names the matching variant, or counts the matches: `` `saxpy_vec` matches `` or `3 match`.
fn matching_names(records: &Records, matching: usize) -> String {
    let passed = |r: &&CaseRecord| {
        r.verdict == Verdict::Pass && matches!(r.outcome, Outcome::Measured | Outcome::Unstable { .. })
    };
    match records.cases.iter().find(passed) {
        Some(record) if matching == 1 => format!("`{}` matches", record.case.key.variant),
        _ => format!("{matching} match"),
    }
}

fn only_reference(records: &Records) -> Option<&str> {
    let unchecked = records.cases.iter().filter(|record| matches!(record.verdict, Verdict::Unchecked(_)));
    let mut references = unchecked.map(|r| {
        matches!(r.verdict, Verdict::Unchecked(Unchecked::IsReference)).then_some(r.case.key.variant.as_str())
    });
    let first = references.next()??;
    references.all(|other| other == Some(first)).then_some(first)
}

/// Unstable cases: the number per variant, most frequent first, and how imprecise they are.
fn unstable(records: &Records) -> Option<Finding> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    let (mut most, mut few) = (None::<f64>, false);
    for record in &records.cases {
        let Outcome::Unstable { reached } = record.outcome else { continue };
        // With too few samples, the interval has less confidence, however narrow it is.
        if record.result.as_ref().is_some_and(|result| result.time.confidence < CONFIDENCE) {
            few = true;
        } else {
            most = Some(most.map_or(reached, |most| most.max(reached)));
        }
        let name = &record.case.key.variant;
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name.clone(), 1)),
        }
    }
    if counts.is_empty() {
        return None;
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut finding = vec![Cell::plain("Unstable: ")];
    for (i, (name, count)) in counts.iter().take(MOST_NAMES).enumerate() {
        finding.push(Cell::plain(if i > 0 { ", " } else { "" }));
        finding.push(Cell::code(name.clone()));
        finding.push(Cell::plain(if *count > 1 { format!(" ({count} rows)") } else { String::new() }));
    }
    let rest: usize = counts.iter().skip(MOST_NAMES).map(|(_, count)| count).sum();
    let more = if rest > 0 { format!(" and {}", plural(rest as u64, "more row")) } else { String::new() };
    let wide = most.map(|most| format!("intervals of up to ± {} % of the median", rough(most * 100.0)));
    let few = few.then(|| "too few samples within the time limit".to_owned());
    let why: Vec<String> = wide.into_iter().chain(few).collect();
    finding.push(Cell::plain(format!("{more}; {}.", why.join(", "))));
    Some(finding)
}
