//! The answer of a run in one sentence: which variants are correct, how much less work or time they take, and why.

use super::why;
use runner_lang::format::{rough, thousands};
use runner_results::analyse::{self, Cost, Difference, is_baseline};
use runner_types::{CaseRecord, DeviceInfo, Outcome, Records, Verdict};

/// Counters to compare if nothing is timed: machine instructions, or PTX instructions if there is no machine code.
const WORK: [(&str, &str); 2] = [("inst_executed", "machine instructions"), ("ptx_inst_executed", "PTX instructions")];

/// A variant paired with the one that it is compared with, over all groups.
struct Contender<'a> {
    name: String,
    pairs: Vec<(&'a CaseRecord, &'a CaseRecord)>,
    failed: Vec<&'a CaseRecord>,
    device: &'a DeviceInfo,
}

/// How a run, or a comparison of two variants, ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What differs between the variants that the sentence is about, most important first, one per line.
    pub reasons: Vec<String>,
    pub sentence: String,
}

impl Answer {
    fn without_reasons(sentence: String) -> Self {
        Self { reasons: Vec::new(), sentence }
    }
}

/// The answer of a run that compares variants with a baseline.
pub fn verdict(records: &Records) -> Option<Answer> {
    let (baseline, _) = records.header.baseline.as_ref()?;
    let name = |record: &CaseRecord| Some(analyse::contender(&records.header, &record.case));
    answer(records, baseline, &|record| is_baseline(&records.header, &record.case), &name)
}

/// The answer for two variants of a report, each named with or without its values of compared axes; `None` if no group
/// has both.
pub fn between(records: &Records, [old, new]: [&str; 2]) -> Option<Answer> {
    let is_named = |record: &CaseRecord, name: &str| {
        record.case.key.variant == name || analyse::contender(&records.header, &record.case) == name
    };
    let name = |record: &CaseRecord| is_named(record, new).then(|| new.to_owned());
    answer(records, old, &|record| is_named(record, old), &name)
}

/// Compares the records that have a `name` with those that `is_base`, within each group and regime.
fn answer(
    records: &Records,
    baseline: &str,
    is_base: &dyn Fn(&CaseRecord) -> bool,
    name: &dyn Fn(&CaseRecord) -> Option<String>,
) -> Option<Answer> {
    let summary = analyse::summary(records);
    let is_measured = |record: &CaseRecord| matches!(record.outcome, Outcome::Measured | Outcome::Unstable { .. });
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    for group in &summary.groups {
        let members: Vec<&CaseRecord> = group.members.iter().map(|place| &records.cases[*place]).collect();
        let bases: Vec<&CaseRecord> = members.iter().copied().filter(|record| is_base(record)).collect();
        if let Some(failed) = bases.iter().find(|base| base.outcome.is_failure()) {
            let is_alone = records.cases.iter().all(is_base);
            let what = fault(failed);
            return Some(Answer::without_reasons(if is_alone {
                format!("`{baseline}` {what}.")
            } else {
                format!("`{baseline}`, the baseline, {what}, so nothing is compared with it.")
            }));
        }
        for record in members.into_iter().filter(|record| !is_base(record)) {
            let Some(name) = name(record) else { continue };
            let Some(base) = base_of(record, &bases) else { continue };
            let place = contenders.iter().position(|one| one.name == name).unwrap_or_else(|| {
                let device = &records.environment.device;
                contenders.push(Contender { name, pairs: Vec::new(), failed: Vec::new(), device });
                contenders.len() - 1
            });
            if record.outcome.is_failure() {
                contenders[place].failed.push(record);
            } else if is_measured(record) && is_measured(base) {
                contenders[place].pairs.push((base, record));
            }
        }
    }
    let (failed, right): (Vec<&Contender<'_>>, Vec<&Contender<'_>>) = contenders
        .iter()
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
    let reasons = least.map(|least| least.reasons(baseline)).unwrap_or_default();
    (!parts.is_empty()).then(|| Answer { reasons, sentence: format!("{}.", parts.join("; ")) })
}

/// The base of a record, of the same regime and preferably with the same axis values.
fn base_of<'a>(record: &CaseRecord, bases: &[&'a CaseRecord]) -> Option<&'a CaseRecord> {
    let regime = |record: &CaseRecord| record.result.as_ref().map(|result| result.regime);
    let of_regime = || bases.iter().copied().filter(|base| regime(base) == regime(record));
    let is_at = |base: &&CaseRecord| base.case.key.axes == record.case.key.axes;
    of_regime().find(is_at).or_else(|| of_regime().next()).or_else(|| bases.first().copied())
}

/// How a case fails: `is wrong in 65,521 of 65,521 elements`.
fn fault(record: &CaseRecord) -> String {
    match &record.outcome {
        Outcome::Wrong { mismatch } if mismatch.of > 1 => {
            format!("is wrong in {} of {} elements", thousands(mismatch.wrong), thousands(mismatch.of))
        }
        Outcome::Wrong { .. } => "is wrong".to_owned(),
        Outcome::CompileError { .. } => "does not compile".to_owned(),
        Outcome::TimedOut { .. } => "does not end in time".to_owned(),
        outcome => format!("fails ({})", outcome.name().replace('_', " ")),
    }
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

    /// Cost relative to the baseline, in words: time, or else instructions.
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
        let Some((_, words)) = self.work() else { return String::new() };
        let and = if and.is_empty() { String::new() } else { format!(" {and}") };
        let why = self.first_reason().map(|reason| format!(", {reason}")).unwrap_or_default();
        format!("{and} {words} `{baseline}`{why}")
    }

    fn differences(&self) -> Vec<Difference> {
        analyse::differences(&self.pairs, self.device)
    }

    /// What explains the result best, besides the work that the sentence states already.
    fn first_reason(&self) -> Option<String> {
        let explains = |difference: &Difference| difference.explains && difference.cost != Cost::Instructions;
        self.differences().iter().find(|difference| explains(difference)).map(why::clause)
    }

    /// A title and the ranked differences from the base; empty if nothing differs.
    fn reasons(&self, baseline: &str) -> Vec<String> {
        let lines = why::lines(&self.differences());
        let title = format!("What differs most from `{baseline}` to `{}`:", self.name);
        let title = Some(title).filter(|_| !lines.is_empty());
        title.into_iter().chain(lines).collect()
    }
}
