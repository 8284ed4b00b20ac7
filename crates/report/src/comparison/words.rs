//! Verdicts, changes and causes in words.
//!
//! All outputs for people use these, so that terminal, Markdown and HTML agree.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::notation::{INSTRUCTIONS, code, counter_name, number_of, significant};
use super::{lines, machine_code, sources};
use crate::number::{self, grouped};
use crate::wording;
use runner_lang::format::{at_place, count, magnitude, plural, rough};
use runner_results::analyse::compare::{
    CauseKind, Change, ClaimKind, Code, Comparison, CountedBy, CounterChange, DifferenceKind, Differs, Excess, Fact,
    Geomean, Interval, Kind, Newcomer, ReportComparison, TimeChange, Undecided,
};
use runner_types::{Acceptance, Allowed, CaseKey, CounterInfo, CounterTheme, CounterUnit, Mismatch, Outcome};

/// Maximum number of changed counters to list per theme; further ones are only counted.
const MOST_OF_THEME: usize = 3;

/// Maximum length, in bytes, of a value shown in full. Of longer ones only the differing words are shown.
const LONGEST_FACT: usize = 60;

pub const GATING: [Kind; 4] = [Kind::NewlyWrong, Kind::Slower, Kind::MoreWork, Kind::Incomparable];

pub const fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::NewlyWrong => "Newly wrong",
        Kind::Slower => "Slower",
        Kind::MoreWork => "More work",
        Kind::Incomparable => "Not comparable",
        Kind::NewlyUnstable => "Newly unstable",
        Kind::Faster => "Faster",
        Kind::LessWork => "Less work",
        Kind::Fixed => "Fixed",
        Kind::Gone => "Gone",
        Kind::New => "New",
        Kind::OtherValues => "Expect other values now",
        Kind::Mixed => "Mixed",
        Kind::Undecided => "Undecided",
        Kind::Ambiguous => "Ambiguous",
        Kind::StillWrong => "Still wrong",
        Kind::Same => "Same",
    }
}

/// Meaning of a kind, for readers of its table.
pub const fn explanation(kind: Kind) -> &'static str {
    match kind {
        Kind::NewlyWrong => "These cases fail, and did not before.",
        Kind::Slower => "Slower by more than the threshold.",
        Kind::MoreWork => {
            "More instructions, sectors, bank conflicts, atomics or barriers by more than the threshold, and less of none \
             of these."
        }
        Kind::Incomparable => {
            "What was measured differs, or a record has no valid interval. With --allow, cases that differ are \
             compared anyway, but never a GPU with the simulator."
        }
        Kind::NewlyUnstable => "These cases no longer reach the requested precision.",
        Kind::Faster => "Faster by more than the threshold.",
        Kind::LessWork => {
            "Fewer instructions, sectors, bank conflicts, atomics or barriers by more than the threshold, and more of none \
             of these."
        }
        Kind::Fixed => "These cases failed before.",
        Kind::Gone => "These cases were measured before, and no longer are.",
        Kind::New => "These cases were not measured before.",
        Kind::OtherValues => {
            "The base is wrong on the new inputs. It did not run on its own, so nothing shows whether it was right on them."
        }
        Kind::Mixed => {
            "Of instructions, sectors, bank conflicts, atomics and barriers, some rose by more than the threshold and \
             others fell."
        }
        Kind::Undecided => "Machine-code counts decide, and some are unknown on one side. PTX counts are not used.",
        Kind::Ambiguous => "Too noisy to tell whether the change exceeds the threshold.",
        Kind::StillWrong => "These cases fail as before.",
        Kind::Same => "No change that exceeds the threshold.",
    }
}

/// Why cases of one run cannot be compared.
pub const REFUSED: &str = "The kernels before and after cannot run on the same memory with the same check, so only the new ones ran. The job fails \
     because nothing shows what the change costs. Once it is merged, comparisons start from the new ones.";

/// Mark whose shape differs by kind, for readers who cannot distinguish colours.
pub const fn mark(kind: Kind) -> &'static str {
    match kind {
        Kind::NewlyWrong | Kind::StillWrong => "✗",
        Kind::Slower | Kind::MoreWork => "▲",
        Kind::Faster | Kind::LessWork => "▼",
        Kind::Fixed => "✓",
        Kind::Incomparable => "≠",
        Kind::Mixed => "↕",
        Kind::NewlyUnstable | Kind::OtherValues | Kind::Undecided | Kind::Ambiguous => "?",
        Kind::Gone => "−",
        Kind::New => "+",
        Kind::Same => "=",
    }
}

/// Counts the claims of each kind, worst first: `1 newly broken, 3 held`.
pub fn claim_counts(kinds: impl Iterator<Item = ClaimKind>) -> String {
    let tallies = claim_tallies(kinds).into_iter().map(|(count, state)| format!("{count} {state}"));
    tallies.collect::<Vec<_>>().join(", ")
}

pub fn claim_tallies(kinds: impl Iterator<Item = ClaimKind>) -> Vec<(usize, &'static str)> {
    let kinds: Vec<ClaimKind> = kinds.collect();
    let count = |kind: ClaimKind| kinds.iter().filter(|other| **other == kind).count();
    ClaimKind::ALL
        .iter()
        .copied()
        .map(|kind| (count(kind), claim_state(kind)))
        .filter(|(count, _)| *count > 0)
        .collect()
}

pub const fn claim_state(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::NewlyBroken => "newly broken",
        ClaimKind::StillBroken => "still broken",
        ClaimKind::Removed => "removed",
        ClaimKind::NewlyUndecided => "newly undecided",
        ClaimKind::Undecided => "undecided",
        ClaimKind::NotApplicable => "not judged",
        ClaimKind::Repaired => "no longer broken",
        ClaimKind::Held => "held",
    }
}

/// Mark whose shape differs by state, for readers who cannot distinguish colours.
pub const fn claim_mark(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::NewlyBroken | ClaimKind::StillBroken => "✗",
        ClaimKind::NewlyUndecided | ClaimKind::Undecided => "?",
        ClaimKind::Removed => "−",
        ClaimKind::NotApplicable => "–",
        ClaimKind::Repaired | ClaimKind::Held => "✓",
    }
}

/// What cases of a kind are or do, after their number: `newly wrong`, `do more work`.
pub fn state(kind: Kind, count: usize) -> String {
    let does = if count == 1 { "does" } else { "do" };
    match kind {
        Kind::MoreWork => format!("{does} more work"),
        Kind::LessWork => format!("{does} less work"),
        Kind::OtherValues => format!("{} other values now", if count == 1 { "expects" } else { "expect" }),
        Kind::Mixed => format!("{does} more of some work and less of other work"),
        other => heading(other).to_lowercase(),
    }
}

/// Counts the cases of a kind in words, such as `12 slower`; `None` if there are none.
pub fn tally(kind: Kind, count: usize) -> Option<String> {
    (count > 0).then(|| format!("{count} {}", state(kind, count)))
}

/// Counts the cases of a kind, with their noun: `12 cases slower`.
pub fn cases(kind: Kind, count: usize) -> Option<String> {
    (count > 0).then(|| format!("{} {}", plural(count as u64, "case"), state(kind, count)))
}

/// Kind of each case: its most important one, if it was measured in several regimes.
pub fn kinds_of_cases<'a>(changes: impl Iterator<Item = (&'a ReportComparison, &'a Change)>) -> BTreeMap<Kind, usize> {
    let mut kinds: HashMap<(*const ReportComparison, &CaseKey), Kind> = HashMap::new();
    for (report, change) in changes {
        let kind = kinds.entry((std::ptr::from_ref(report), &change.case.key)).or_insert(change.kind);
        *kind = (*kind).min(change.kind);
    }
    let mut counts = BTreeMap::new();
    for kind in kinds.into_values() {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// All changes with their reports.
pub fn rows(comparison: &Comparison) -> impl Iterator<Item = (&ReportComparison, &Change)> {
    comparison.reports.iter().flat_map(|report| report.changes.iter().map(move |change| (report, change)))
}

/// Counts the cases in words: `420 cases: 3 slower, 400 same, 17 ambiguous`.
pub fn counts(comparison: &Comparison) -> String {
    let counts = kinds_of_cases(rows(comparison));
    let (total, measurements) = (counts.values().sum::<usize>(), comparison.changes().count());
    let named: Vec<String> = counts.iter().filter_map(|(kind, count)| tally(*kind, *count)).collect();
    if named.is_empty() {
        return "No case was measured on both sides".to_owned();
    }
    let regimes: BTreeSet<&str> = comparison.changes().filter_map(|change| Some(change.regime?.name())).collect();
    let measured = if measurements > total {
        let regimes: Vec<&str> = regimes.into_iter().collect();
        format!(" ({measurements} measurements: {})", regimes.join(", "))
    } else {
        String::new()
    };
    format!("{}{measured}: {}", plural(total as u64, "case"), named.join(", "))
}

/// Formats a time ratio with its interval, such as `+3.1 % ± 0.4`.
pub fn time_change(time: &TimeChange) -> String {
    change(time.ratio, time.interval)
}

/// Formats a ratio as a change in percent, with its interval if there is one.
pub fn change(ratio: f64, interval: Option<Interval>) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let Some(interval) = interval else { return signed(&rough(percent.abs()), percent) };
    let shown = number::percent_with_half(percent.abs(), 100.0 * half_width(ratio, interval));
    signed(&shown, percent)
}

/// The larger half-width of a ratio's interval.
pub fn half_width(ratio: f64, Interval { low, high, .. }: Interval) -> f64 {
    (high - ratio).max(ratio - low)
}

/// Formats a ratio with the digits that a half-width justifies, such as `+8 %`.
pub fn rounded_change(ratio: f64, half: Option<f64>) -> String {
    let Some(half) = half else { return plain_change(ratio) };
    let percent = (ratio - 1.0) * 100.0;
    let shown = number::percent_with_half(percent.abs(), 100.0 * half);
    signed(shown.split(" ± ").next().unwrap_or_default(), percent)
}

/// Adds the sign to a percentage. Zero has none.
fn signed(percent: &str, value: f64) -> String {
    let (point, half) = percent.split_once(" ± ").map_or((percent, None), |(point, half)| (point, Some(half)));
    let is_zero = !point.contains(|c: char| ('1'..='9').contains(&c));
    let sign = match value {
        _ if is_zero => "",
        value if value < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{point} %{}", half.map(|half| format!(" ± {half}")).unwrap_or_default())
}

/// Formats a ratio without an interval, such as `+0.28 %`. Further decimals would be noise.
pub fn plain_change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    signed(&grouped(&at_place(percent.abs(), (magnitude(percent.abs()) - 2).max(-2))), percent)
}

/// Formats a mean ratio, such as `+1.3 % (geometric mean of 420 measurements)`.
pub fn geomean(Geomean { ratio, rows }: Geomean) -> String {
    let percent = (ratio - 1.0) * 100.0;
    // Further decimals would be noise.
    let change = signed(&grouped(&at_place(percent.abs(), -1)), percent);
    format!("{change} (geometric mean of {})", plural(rows as u64, "measurement"))
}

/// Known reasons why a case changed: differences and causes, joined by `; `.
pub fn why(change: &Change, report: &ReportComparison) -> String {
    reasons(change, report).join("; ")
}

/// The parts of [`why`].
pub fn reasons(change: &Change, report: &ReportComparison) -> Vec<String> {
    let is_wrong = fails(change.kind);
    let mut parts: Vec<String> =
        change.outcomes[1].as_ref().and_then(|outcome| failure(change.kind, outcome)).into_iter().collect();
    parts.extend(change.differences.iter().map(difference));
    // Resources of a kernel do not make a result wrong.
    let causes = change.causes.iter().filter(|cause| !is_wrong || !is_of_resources(cause.what));
    parts.extend(causes.map(|cause| cause_in(cause, change, report)));
    parts.extend(change.undecided.iter().map(undecided));
    if !change.counters.is_empty() {
        parts.push(counters(change));
    }
    if report.sources.is_none() {
        parts.extend(lines::texts(change));
    }
    if !is_wrong {
        parts.extend(machine_code::text(change));
    }
    let is_of_machine = |cause: &Differs<CauseKind>| matches!(cause.what, CauseKind::Variant | CauseKind::SmClock);
    let is_same_code = matches!(change.code, Some(Code::Same | Code::SameDespite { .. }));
    if has_changed(change.kind) && is_same_code && change.causes.iter().all(is_of_machine) {
        parts.push("compiled code identical: look at the machine".to_owned());
    } else if has_changed(change.kind) && is_of_same_source(change, report) {
        let is_unexplained = parts.is_empty() && report.causes.is_empty() && report.differences.is_empty();
        let lead = if is_unexplained { "no cause found: " } else { "" };
        parts.push(format!("{lead}source and options are the same in both reports"));
    }
    parts.extend(change.accepted.as_ref().map(accepted));
    parts.extend(change.exceeds.as_ref().map(exceeds));
    let new = change.newcomer.as_ref().filter(|_| change.kind == Kind::New);
    parts.extend(new.and_then(|new| newcomer(new, &change.case.key.variant, report)));
    parts
}

/// A cause of a case; names the changed lines if the sources are known.
pub fn cause_in(found: &Differs<CauseKind>, change: &Change, report: &ReportComparison) -> String {
    let place = || sources::place(report, &change.case.key.variant);
    match found.what {
        CauseKind::Source => place().map_or_else(|| cause(found), |place| format!("source changed: {place}")),
        CauseKind::Fingerprint if report.sources.is_some() => {
            place().map_or_else(|| "options or launch changed".to_owned(), |place| format!("source changed: {place}"))
        }
        _ => cause(found),
    }
}

const fn is_of_resources(what: CauseKind) -> bool {
    matches!(
        what,
        CauseKind::SharedStatic
            | CauseKind::Registers
            | CauseKind::Local
            | CauseKind::SpillStores
            | CauseKind::SpillLoads
            | CauseKind::Occupancy
            | CauseKind::SmClock
    )
}

/// `undecided: machine code of "k" not fully attributed (3 instructions of 90)`.
pub fn undecided(why: &Undecided) -> String {
    match why {
        Undecided::Older => "undecided: one side has only PTX counts, from an older version; run it again".to_owned(),
        Undecided::NoMachineCode { why } => format!("undecided: no machine code: {why}"),
        Undecided::Instructions { kernel, unknown, of } => format!(
            "undecided: machine code of `{kernel}` not fully attributed ({} of {})",
            plural(*unknown, "instruction"),
            count(*of as f64)
        ),
        Undecided::Accesses { kernel, counters } => {
            format!("undecided: {} of the machine code of `{kernel}` not known", counters.join(", "))
        }
    }
}

/// `accepted up to +10 % (1a2b3c4: bounds are checked)`.
fn accepted(Acceptance { reason, commit, by, .. }: &Acceptance) -> String {
    format!("accepted up to {} ({commit}: {reason})", signed(&rough(100.0 * by), *by))
}

/// `not accepted: barriers +12 % exceeds the accepted +10 %`.
fn exceeds(Excess { by, growth, counter }: &Excess) -> String {
    let what = counter.as_deref().map_or("time", counter_name);
    let accepted = signed(&rough(100.0 * by), *by);
    if growth.is_finite() {
        format!("not accepted: {what} {} exceeds the accepted {accepted}", plain_change(*growth))
    } else {
        format!("not accepted: {what} rose from 0, which is more than the accepted {accepted}")
    }
}

/// Place and speedup, such as "2nd of 12, 1.31 times as fast as `tree`", or its counts next to the baseline's.
fn newcomer(new: &Newcomer, variant: &str, report: &ReportComparison) -> Option<String> {
    let is_baseline = report.baseline.as_deref() == Some(variant);
    let baseline = report.baseline.as_deref().map(code).unwrap_or_default();
    let mut parts: Vec<String> = new.place.map(place).into_iter().collect();
    parts.extend(new.speedup.map(|speedup| format!("{} times as fast as {baseline}", rough(speedup))));
    if new.time.is_none() {
        let mut counts: Vec<_> = new.counts.iter().collect();
        counts.sort_by_key(|(name, ..)| name != INSTRUCTIONS);
        parts.extend(counts.into_iter().take(MOST_OF_THEME).map(|(name, value, ratio)| {
            let beside = ratio.map(|ratio| format!(" ({} times {baseline})", rough(ratio)));
            format!(
                "{} {}{}",
                counter_name(name),
                number_of(*value),
                beside.filter(|_| !is_baseline).unwrap_or_default()
            )
        }));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Rank by time in a group, such as `2nd of 12`.
pub fn place((place, of): (usize, usize)) -> String {
    format!("{} of {of}", ordinal(place))
}

/// Ordinal number, such as `2nd`.
pub fn ordinal(place: usize) -> String {
    let ending = match (place % 100, place % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{place}{ending}")
}

pub const fn fails(kind: Kind) -> bool {
    matches!(kind, Kind::NewlyWrong | Kind::StillWrong)
}

/// Whether a time changed and so needs an explanation.
const fn has_changed(kind: Kind) -> bool {
    matches!(kind, Kind::Slower | Kind::Faster | Kind::NewlyUnstable)
}

/// Whether source and options are known to be the same on both sides.
fn is_of_same_source(change: &Change, report: &ReportComparison) -> bool {
    let is_of_source = |cause: &Differs<CauseKind>| {
        matches!(cause.what, CauseKind::Source | CauseKind::Options | CauseKind::Code | CauseKind::Fingerprint)
    };
    report.limits.iter().all(|limits| limits.without_hashes == 0) && !change.causes.iter().any(is_of_source)
}

/// Differences between the reports as a whole.
pub fn of_all_rows(report: &ReportComparison) -> Vec<String> {
    report.differences.iter().map(difference).chain(report.causes.iter().map(cause)).collect()
}

fn failure(kind: Kind, outcome: &Outcome) -> Option<String> {
    let is_told = matches!(kind, Kind::NewlyWrong | Kind::StillWrong | Kind::Gone);
    let reason = match outcome {
        Outcome::Wrong { mismatch } => Some(wrong(mismatch)),
        other => wording::reason(other).map(|reason| trap(&reason)),
    };
    let said = match (outcome, reason) {
        // The heading says that the result is wrong.
        (Outcome::Wrong { .. }, Some(reason)) => reason,
        (Outcome::Trap { .. }, Some(reason)) => format!("the kernel stops: {reason}"),
        (outcome, Some(reason)) => format!("{}: {reason}", wording::name(outcome)),
        (outcome, None) => wording::name(outcome),
    };
    is_told.then_some(said)
}

/// `sum(sums): element 0 is 2,031.8251, expected 2,047.1163, off by 15.3 (0.747 %); 0.001 % is allowed`.
fn wrong(Mismatch { what, index, expected, got, error, wrong, of, allowed }: &Mismatch) -> String {
    let is_real = expected.contains('.') || got.contains('.');
    let magnitude = expected.parse::<f64>().ok().map(f64::abs).filter(|expected| is_real && *expected > 0.0);
    let share = |error: f64| magnitude.map(|expected| format!(" ({} %)", significant(100.0 * error / expected, 3)));
    let off = error.map(|error| {
        format!(", off by {}{}", significant(error, if is_real { 3 } else { 17 }), share(error).unwrap_or_default())
    });
    let allowed = error.and(allowed.as_deref()).and_then(allowed_text).unwrap_or_default();
    let count = if *of > 1 { format!("; {wrong} of {} are wrong", plural(*of, "element")) } else { String::new() };
    let [got, expected] = [got, expected].map(|text| value(text));
    format!("{what}: element {index} is {got}, expected {expected}{}{allowed}{count}", off.unwrap_or_default())
}

fn allowed_text(&Allowed { rel, abs, ulp }: &Allowed) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend((rel > 0.0).then(|| format!("{} %", significant(100.0 * rel, 3))));
    parts.extend((abs > 0.0).then(|| significant(abs, 3)));
    parts.extend((ulp > 0 && parts.is_empty()).then(|| format!("{ulp} ulp")));
    (!parts.is_empty()).then(|| format!("; {} is allowed", parts.join(" or ")))
}

/// A result of a check, with no more digits than are needed to compare it.
fn value(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && text.contains('.') => significant(value, 8),
        Ok(value) if value.is_finite() && !text.contains(['e', 'E']) => grouped(text),
        _ => text.to_owned(),
    }
}

/// Says in sentences what a fault is, where it is and how to fix it, without advice on how to hide it.
fn trap(reason: &str) -> String {
    let reason = reason.split("; to silence it: ").next().unwrap_or(reason);
    let (fault, advice) = reason.split_once("; ").map_or((reason, None), |(fault, advice)| (fault, Some(advice)));
    match fault.rsplit_once(" in kernel `") {
        Some((what, place)) => {
            let advice = advice.map(|advice| format!(". Cure: {advice}")).unwrap_or_default();
            format!("{}. Here: kernel `{place}{advice}", with_unit(what))
        }
        None => reason.to_owned(),
    }
}

/// Adds the unit to an offset in memory: `race on shared memory + 128 bytes: …`.
fn with_unit(what: &str) -> String {
    let Some((site, offset)) = what.split_once(" memory + ") else { return what.to_owned() };
    let digits = offset.find(|c: char| !c.is_ascii_digit()).unwrap_or(offset.len());
    if digits == 0 {
        return what.to_owned();
    }
    format!("{site} memory + {} bytes{}", &offset[..digits], &offset[digits..])
}

/// The deciding counter that changed most in the direction of the verdict.
pub fn leading_count(change: &Change) -> Option<&CounterChange> {
    let decides = |counter: &&CounterChange| counter.decides && !disagrees(change.kind, counter);
    let is_decided = change.counters.iter().any(|counter| decides(&counter));
    let counts = |counter: &&CounterChange| if is_decided { decides(counter) } else { counter.is_cost };
    let costs = || change.counters.iter().filter(counts);
    let most = costs().filter(|counter| relative(counter).is_some()).max_by(|a, b| size(a).total_cmp(&size(b)));
    most.or_else(|| costs().next()).or_else(|| change.counters.first())
}

/// Counters that represent a change: machine instructions, which are the total work, and the counter that changed most.
pub fn leading_counts(change: &Change) -> Vec<&CounterChange> {
    let decides =
        |counter: &&CounterChange| counter.name == INSTRUCTIONS && counter.decides && !disagrees(change.kind, counter);
    let instructions = change.counters.iter().find(decides);
    let most = leading_count(change).filter(|most| most.name != INSTRUCTIONS || instructions.is_none());
    instructions.into_iter().chain(most).collect()
}

/// The leading counters' changes, e.g. `instructions +6.8 %, barriers +87.5 %`. In a mixed case, the largest fall and the
/// largest rise.
pub fn count_change(change: &Change) -> Option<String> {
    if change.kind == Kind::Undecided {
        return None;
    }
    if change.kind == Kind::Mixed {
        let most = |rises: bool| {
            let alike =
                change.counters.iter().filter(|counter| counter.decides && (counter.new > counter.base) == rises);
            alike.max_by(|a, b| size(a).total_cmp(&size(b))).map(factor)
        };
        return Some([most(false), most(true)].into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    let one = |counter: &CounterChange| {
        let percent = relative(counter).map(|percent| format!("{} {percent}", counter_name(&counter.name)));
        percent.unwrap_or_else(|| counter_change(counter))
    };
    let all: Vec<String> = leading_counts(change).into_iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// A change by a large factor, e.g. `gst_sectors ÷ 8`; otherwise a percentage or what [`counter_change`] says.
fn factor(counter: &CounterChange) -> String {
    let ratio = counter.new / counter.base;
    match ratio {
        _ if !(counter.base > 0.0 && counter.new > 0.0) => counter_change(counter),
        ratio if ratio >= 2.0 => format!("{} × {}", counter_name(&counter.name), rough(ratio)),
        ratio if ratio <= 0.5 => format!("{} ÷ {}", counter_name(&counter.name), rough(1.0 / ratio)),
        _ => relative(counter)
            .map_or_else(|| counter_change(counter), |percent| format!("{} {percent}", counter_name(&counter.name))),
    }
}

/// Whether a cost counter changed against the direction of the verdict.
fn disagrees(kind: Kind, counter: &CounterChange) -> bool {
    match kind {
        Kind::MoreWork => counter.is_cost && counter.new < counter.base,
        Kind::LessWork => counter.is_cost && counter.new > counter.base,
        _ => false,
    }
}

/// Changed counters, such as `instructions 640 → 672 (+5.00 %), gld_sectors 1,024 → 1,056 (+3.12 %) and 3 other
/// counters`. If counts decide, only deciding ones are named. Instructions come first, then memory. Counters that
/// contradict the verdict come last. PTX counts are omitted if machine-code counts decide.
fn counters(change: &Change) -> String {
    let theme = |counter: &CounterChange| CounterInfo::named(&counter.name).map(|info| info.theme);
    let themes = [Some(CounterTheme::Global), Some(CounterTheme::SharedAndLocal), Some(CounterTheme::Instructions)];
    let is_decided = matches!(change.kind, Kind::MoreWork | Kind::LessWork | Kind::Mixed);
    let told = change.counters.iter().filter(|counter| !is_decided || theme(counter) != Some(CounterTheme::Ptx));
    let (against, agreeing): (Vec<&CounterChange>, Vec<&CounterChange>) =
        told.partition(|counter| disagrees(change.kind, counter));
    let mut shown: Vec<&CounterChange> = Vec::new();
    for wanted in themes {
        let is_shown = |counter: &&CounterChange| if is_decided { counter.decides } else { counter.is_cost };
        let of_theme = agreeing.iter().copied().filter(|counter| is_shown(counter) && theme(counter) == wanted);
        let mut of_theme: Vec<&CounterChange> = of_theme.collect();
        of_theme.sort_by(|a, b| b.decides.cmp(&a.decides).then(size(b).total_cmp(&size(a))));
        shown.extend(of_theme.into_iter().take(MOST_OF_THEME));
    }
    if shown.is_empty() {
        shown.extend(agreeing.iter().take(MOST_OF_THEME));
    }
    // The total work comes before its parts.
    shown.sort_by_key(|counter| counter.name != INSTRUCTIONS);
    // Of counters that changed alike, such as sectors and requests, only the first is shown with its details.
    let mut alike: Vec<(&CounterChange, Vec<&str>)> = Vec::new();
    for &counter in &shown {
        let is_alike = |first: &CounterChange| {
            theme(first) == theme(counter)
                && relative(first).is_some()
                && relative(first) == relative(counter)
                && lines::place(change, first) == lines::place(change, counter)
        };
        match alike.iter_mut().find(|(first, _)| first.name != INSTRUCTIONS && is_alike(first)) {
            Some((_, others)) => others.push(&counter.name),
            None => alike.push((counter, Vec::new())),
        }
    }
    let placed = |(counter, others): &(&CounterChange, Vec<&str>)| {
        let others = (!others.is_empty()).then(|| format!("also {}", others.join(" and ")));
        let details = relative(counter).into_iter().chain(lines::place(change, counter)).chain(others);
        let details = details.collect::<Vec<_>>().join(", ");
        if details.is_empty() { counter_change(counter) } else { format!("{} ({details})", counter_change(counter)) }
    };
    let named: Vec<String> = alike.iter().map(placed).collect();
    let more = agreeing.len() - shown.len();
    let rest = if more > 0 { format!(" and {}", plural(more as u64, "other counter")) } else { String::new() };
    let by = match change.counted_by {
        Some(CountedBy::Hardware) => "hardware counters: ",
        Some(CountedBy::Sample) => "estimated from the same blocks: ",
        Some(CountedBy::Simulator) | None => "",
    };
    let against: Vec<String> = against.into_iter().map(counter_change).collect();
    let but = if against.is_empty() { String::new() } else { format!("; but {}", against.join(", ")) };
    format!("{by}{}{rest}{but}", named.join(", "))
}

/// Size of a counter's change; infinite if it was zero.
pub fn size(counter: &CounterChange) -> f64 {
    (counter.new / counter.base).ln().abs()
}

fn counter_change(CounterChange { name, base, new, .. }: &CounterChange) -> String {
    let shown = |value: f64| match CounterInfo::named(name).map(|info| info.unit) {
        Some(CounterUnit::Percent) => format!("{} %", number_of(value)),
        Some(CounterUnit::BytesPerSecond) => format!("{} GB/s", grouped(&rough(value / 1e9))),
        _ => number_of(value),
    };
    format!("{} {} → {}", counter_name(name), shown(*base), shown(*new))
}

/// Formats the relative change of a counter, such as `+3.1 %`; `None` if it was zero.
pub fn relative(CounterChange { base, new, .. }: &CounterChange) -> Option<String> {
    let percent = (new / base - 1.0) * 100.0;
    (*base > 0.0 && percent.is_finite()).then(|| signed(&grouped(&rough(percent.abs())), percent))
}

/// Formats a difference, such as `driver 580.159.04 → 580.200.01`.
pub fn difference(Differs { what, base, new }: &Differs<DifferenceKind>) -> String {
    let hashed = matches!((base, new), (Fact::Hash(_), Fact::Hash(_)));
    let name = what.name();
    if hashed {
        return format!("{name} changed");
    }
    let (base, new) = without_common(&fact(base), &fact(new));
    format!("{name} {base} → {new}")
}

/// Shortens long sentences that differ in a few words, with `…` for their common beginning and end.
pub fn without_common(base: &str, new: &str) -> (String, String) {
    let whole = || (base.to_owned(), new.to_owned());
    if base.len().max(new.len()) <= LONGEST_FACT {
        return whole();
    }
    let [b, n] = [base, new].map(|text| text.split(' ').collect::<Vec<_>>());
    let shorter = b.len().min(n.len());
    let before = b.iter().zip(&n).take_while(|(b, n)| b == n).count().min(shorter.saturating_sub(1));
    let after = b.iter().rev().zip(n.iter().rev()).take_while(|(b, n)| b == n).count().min(shorter - before - 1);
    let differing = |words: &[&str]| {
        let (start, end) = (if before > 0 { "… " } else { "" }, if after > 0 { " …" } else { "" });
        format!("{start}{}{end}", words[before..words.len() - after].join(" "))
    };
    (differing(&b), differing(&n))
}

/// Formats a cause, such as `registers 16 → 40` or `source changed`.
pub fn cause(Differs { what, base, new }: &Differs<CauseKind>) -> String {
    let name = match what {
        CauseKind::Variant => return format!("renamed from {}", fact(base)),
        CauseKind::Source => return "source changed".to_owned(),
        CauseKind::Options => return "options changed".to_owned(),
        CauseKind::Code => return "compiled code changed".to_owned(),
        CauseKind::Arguments => return "arguments changed".to_owned(),
        CauseKind::Fingerprint => return "source, options, launch or toolkit changed".to_owned(),
        CauseKind::Occupancy => {
            let percent = |side: &Fact| match side {
                Fact::Number(fraction) => format!("{:.0} %", fraction * 100.0),
                other => fact(other),
            };
            return format!("occupancy {} → {}", percent(base), percent(new));
        }
        CauseKind::SmClock => return format!("SM clock {} → {} MHz", fact(base), fact(new)),
        other => cause_name(*other),
    };
    format!("{name} {} → {}", fact(base), fact(new))
}

pub const fn cause_name(what: CauseKind) -> &'static str {
    match what {
        CauseKind::Variant => "variant",
        CauseKind::Failure => "expected failure",
        CauseKind::Toolkit => "toolkit",
        CauseKind::HostCompiler => "host compiler",
        CauseKind::Runner => "runner",
        CauseKind::Source => "source",
        CauseKind::Options => "options",
        CauseKind::Code => "code",
        CauseKind::Arguments => "arguments",
        CauseKind::Fingerprint => "fingerprint",
        CauseKind::Launches => "launches",
        CauseKind::Grid => "grid",
        CauseKind::Block => "block",
        CauseKind::SharedDynamic => "dynamic shared memory",
        CauseKind::SharedStatic => "static shared memory",
        CauseKind::Registers => "registers",
        CauseKind::Local => "local memory",
        CauseKind::SpillStores => "spill stores",
        CauseKind::SpillLoads => "spill loads",
        CauseKind::Occupancy => "occupancy",
        CauseKind::SmClock => "SM clock",
    }
}

fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Absent => "none".to_owned(),
        Fact::Number(number) => number_of(*number),
        Fact::Text(text) | Fact::Hash(text) => text.clone(),
        Fact::Extent(dim) => dim.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_values_only_what_differs_is_shown() {
        let differs = |base: &str, new: &str| {
            let fact = |text: &str| Fact::Text(text.to_owned());
            difference(&Differs { what: DifferenceKind::Timing, base: fact(base), new: fact(new) })
        };
        let method = "CUDA events around each body, launches queued behind a gate, L2 flushed by reading";
        let (old, new) = (format!("{method} 125 MiB (not calibrated)"), format!("{method} 125 MiB (calibrated)"));
        assert_eq!(differs(&old, &new), "timing … (not calibrated) → … (calibrated)");
        assert_eq!(differs("events", "host clock"), "timing events → host clock");
        let (old, new) = (format!("{method} 125 MiB now"), format!("{method} 250 MiB now"));
        assert_eq!(differs(&old, &new), "timing … 125 … → … 250 …");
        // One is a prefix of the other.
        assert_eq!(differs(method, &format!("{method} twice")), "timing … reading → … reading twice");
    }

    #[test]
    fn rates_and_shares_have_their_units() {
        let shown = |name: &str, base: f64, new: f64| {
            counter_change(&CounterChange { name: name.to_owned(), base, new, is_cost: false, decides: false })
        };
        assert_eq!(shown("dram_read_throughput", 2.5e12, 1.25e12), "dram_read_throughput 2,500 GB/s → 1,250 GB/s");
        assert_eq!(shown("gld_efficiency", 50.0, 25.0), "gld_efficiency 50 % → 25 %");
        assert_eq!(shown("gld_sectors", 512.0, 513.0), "gld_sectors 512 → 513");
    }

    #[test]
    fn a_change_without_an_interval_has_no_more_digits_than_hundredths() {
        let shown = [0.999_947, 1.000_9, 1.003_26, 1.0152, 35.7, 1.0].map(plain_change);
        assert_eq!(shown, ["−0.01 %", "+0.09 %", "+0.33 %", "+1.52 %", "+3,470 %", "0.00 %"]);
    }
}
