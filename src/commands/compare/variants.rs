//! Compares two variants of one report: what differs most between them, and where.

use super::read;
use crate::console::Console;
use crate::failure::{Exit, Failure};
use runner_lang::diagnostics::nearest;
use runner_results::analyse;
use runner_types::{CaseRecord, Records};

pub fn compare(report: &str, [old, new]: [&str; 2], console: &mut Console) -> Result<Exit, Failure> {
    let found = read(report, console)?;
    let [stored] = &found[..] else {
        let places: Vec<&str> = found.iter().map(|stored| stored.place.as_str()).collect();
        return Err(Failure::usage(format!(
            "{report} has {} reports: to compare two variants, name one of {}",
            found.len(),
            places.join(", ")
        )));
    };
    let records = &stored.records;
    for name in [old, new] {
        is_known(records, name, report)?;
    }
    let Some(answer) = runner_report::between(records, [old, new]) else {
        return Err(Failure::usage(format!(
            "no group of {report} has both `{old}` and `{new}`: name variants that are compared with each other"
        )));
    };
    let is_named = |record: &&CaseRecord| [old, new].iter().any(|name| is_of(records, record, name));
    let cases = || records.cases.iter().filter(is_named);
    if cases().all(|record| record.counters.is_none()) {
        let counts = "count with `runner profile`, `runner run --counters`, or on the simulator (--backend sim)";
        console.say(&format!("nothing was counted, so no reasons are known: {counts}"));
    } else if cases().all(|record| record.lines.is_empty()) {
        console.say("the lines were not counted: `runner run --lines` counts them, too");
    }
    for line in answer.reasons.iter().chain([&answer.sentence]) {
        console.print(&format!("{line}\n"))?;
    }
    Ok(if cases().any(|record| record.outcome.is_failure()) { Exit::CaseFailed } else { Exit::Success })
}

/// Whether a record belongs to this variant, named with or without its values of compared axes.
fn is_of(records: &Records, record: &CaseRecord, name: &str) -> bool {
    record.case.key.variant == name || analyse::contender(&records.header, &record.case) == name
}

/// Fails unless the report has this variant.
fn is_known(records: &Records, name: &str, report: &str) -> Result<(), Failure> {
    if records.cases.iter().any(|record| is_of(records, record, name)) {
        return Ok(());
    }
    let names = &records.header.variants;
    let hint = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", names.join(", ")),
    };
    Err(Failure::usage(format!("{report} has no variant `{name}`; {hint}")))
}
