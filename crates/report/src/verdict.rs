//! The answer of a run in one sentence: which variants are correct, how much less work or time they take, and why.

use std::collections::BTreeMap;

use runner_lang::format::rough;
use runner_results::analyse::{self, is_baseline};
use runner_types::{CaseRecord, Outcome, Records, Verdict};

/// Counters that explain a difference, with their names in words. The first one is the work itself.
const REASONS: [(&str, &str); 8] = [
    ("gld_sectors", "global load sectors"),
    ("gst_sectors", "global store sectors"),
    ("global_atomics", "global atomics"),
    ("shared_ld_bank_conflicts", "bank conflicts of shared loads"),
    ("shared_st_bank_conflicts", "bank conflicts of shared stores"),
    ("local_ld_requests", "loads of local memory"),
    ("divergent_branch", "divergent branches"),
    ("barriers", "barriers"),
];

/// What decides if nothing is timed: machine instructions, or PTX instructions if there is no machine code.
const WORK: [(&str, &str); 2] = [("inst_executed", "machine instructions"), ("ptx_inst_executed", "PTX instructions")];

/// Factors closer to 1 than this are not worth mentioning.
const NOTABLE: f64 = 1.02;

/// A variant paired with the baseline, over all groups.
struct Contender<'a> {
    name: String,
    pairs: Vec<(&'a CaseRecord, &'a CaseRecord)>,
    failed: Vec<&'a CaseRecord>,
}

/// The sentence for a run that compares variants with a baseline.
pub fn verdict(records: &Records) -> Option<String> {
    let summary = analyse::summary(records);
    let (baseline, _) = records.header.baseline.as_ref()?;
    let mut contenders: BTreeMap<String, Contender<'_>> = BTreeMap::new();
    let mut order = Vec::new();
    for group in &summary.groups {
        let members: Vec<&CaseRecord> = group.members.iter().map(|place| &records.cases[*place]).collect();
        let base = members.iter().copied().find(|record| is_baseline(&records.header, &record.case))?;
        if base.outcome.is_failure() {
            let is_alone = records.cases.iter().all(|record| is_baseline(&records.header, &record.case));
            let what = fault(base);
            return Some(if is_alone {
                format!("`{baseline}` {what}.")
            } else {
                format!("`{baseline}`, the baseline, {what}, so nothing is compared with it.")
            });
        }
        for record in members.into_iter().filter(|record| !is_baseline(&records.header, &record.case)) {
            let name = analyse::contender(&records.header, &record.case);
            if !contenders.contains_key(&name) {
                order.push(name.clone());
            }
            let contender = contenders.entry(name.clone()).or_insert_with(|| Contender {
                name,
                pairs: Vec::new(),
                failed: Vec::new(),
            });
            if record.outcome.is_failure() {
                contender.failed.push(record);
            } else if matches!(record.outcome, Outcome::Measured | Outcome::Unstable { .. }) {
                contender.pairs.push((base, record));
            }
        }
    }
    let all: Vec<&Contender<'_>> = order.iter().filter_map(|name| contenders.get(name)).collect();
    let (failed, right): (Vec<&Contender<'_>>, Vec<&Contender<'_>>) = all
        .into_iter()
        .filter(|one| !one.pairs.is_empty() || !one.failed.is_empty())
        .partition(|one| !one.failed.is_empty());
    let least = right.iter().min_by(|a, b| a.cost().total_cmp(&b.cost()));
    let mut parts = Vec::new();
    match (right.len(), least) {
        (1, Some(only)) => parts.push(format!("`{}` {}", only.name, only.described(baseline))),
        (count, Some(least)) => {
            parts.push(format!(
                "{count} variants are {}; of them `{}` {}",
                least.soundness(),
                least.name,
                least.described_as_best(baseline)
            ));
        }
        (_, None) => {}
    }
    match &failed[..] {
        [] => {}
        [only] => parts.push(format!(
            "`{}` {}",
            only.name,
            only.failed.first().map_or_else(String::new, |record| fault(record))
        )),
        [first, rest @ ..] => parts.push(format!(
            "`{}` {}, and {} more {}",
            first.name,
            first.failed.first().map_or_else(String::new, |record| fault(record)),
            rest.len(),
            if rest.len() == 1 { "fails" } else { "fail" }
        )),
    }
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

/// How a case fails: `is wrong in 65,521 of 65,521 elements`.
fn fault(record: &CaseRecord) -> String {
    match &record.outcome {
        Outcome::Wrong { mismatch } if mismatch.of > 1 => {
            format!("is wrong in {} of {} elements", grouped(mismatch.wrong), grouped(mismatch.of))
        }
        Outcome::Wrong { .. } => "is wrong".to_owned(),
        Outcome::CompileError { .. } => "does not compile".to_owned(),
        Outcome::TimedOut { .. } => "does not end in time".to_owned(),
        outcome => format!("fails ({})", outcome.name().replace('_', " ")),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let places = digits.char_indices().map(|(at, digit)| {
        let is_group = at > 0 && (digits.len() - at).is_multiple_of(3);
        if is_group { format!(",{digit}") } else { digit.to_string() }
    });
    places.collect()
}

impl Contender<'_> {
    /// Geometric mean of a value relative to the baseline's; `None` if some case lacks it or has 0.
    fn factor(&self, of: impl Fn(&CaseRecord) -> Option<f64>) -> Option<f64> {
        let logs = self.pairs.iter().map(|(base, record)| {
            let (base, new) = (of(base)?, of(record)?);
            (base > 0.0 && new > 0.0).then(|| (new / base).ln())
        });
        let logs: Vec<f64> = logs.collect::<Option<_>>()?;
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// Its cost relative to the baseline, in words: time, or else instructions.
    fn work(&self) -> Option<(f64, String)> {
        if let Some(factor) = self.factor(|record| record.result.as_ref().map(|result| result.time.point)) {
            return Some((factor, format!("takes {}× the time of", rough(factor))));
        }
        WORK.into_iter().find_map(|(counter, words)| {
            let factor = self.factor(|record| record.counters.as_ref()?.get(counter))?;
            Some((factor, format!("does {}× the {words} of", rough(factor))))
        })
    }

    fn cost(&self) -> f64 {
        self.work().map_or(f64::INFINITY, |(factor, _)| factor)
    }

    fn soundness(&self) -> &'static str {
        let is_right = self.pairs.iter().all(|(_, record)| record.verdict == Verdict::Pass);
        if is_right { "right" } else { "unchecked" }
    }

    fn described(&self, baseline: &str) -> String {
        format!("is {}{}", self.soundness(), self.compared(baseline, "and"))
    }

    fn described_as_best(&self, baseline: &str) -> String {
        self.compared(baseline, "").trim_start().to_owned()
    }

    fn compared(&self, baseline: &str, and: &str) -> String {
        let Some((factor, words)) = self.work() else { return String::new() };
        let and = if and.is_empty() { String::new() } else { format!(" {and}") };
        let reasons = self.reasons(factor);
        let why = if reasons.is_empty() { String::new() } else { format!(", {}", reasons.join(" and ")) };
        format!("{and} {words} `{baseline}`{why}")
    }

    /// The two counters that differ most, preferring those that changed in the same direction as the total.
    fn reasons(&self, whole: f64) -> Vec<String> {
        let factor = |name: &str| self.factor(|record| record.counters.as_ref()?.get(name));
        let mut found: Vec<(f64, &str)> =
            REASONS.into_iter().filter_map(|(name, words)| Some((factor(name)?, words))).collect();
        found.retain(|(factor, _)| factor.max(1.0 / factor) >= NOTABLE);
        let goes_along = |factor: f64| (factor < 1.0) == (whole < 1.0);
        found.sort_by(|(a, _), (b, _)| {
            (goes_along(*b), b.ln().abs())
                .partial_cmp(&(goes_along(*a), a.ln().abs()))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        found.truncate(2);
        found.into_iter().map(|(factor, words)| format!("{}× the {words}", rough(factor))).collect()
    }
}
