//! Verdicts, changes and causes in words.
//!
//! All outputs for people use these, so that terminal, Markdown and HTML agree.

use super::{lines, machine_code};
use crate::number;
use crate::wording;
use runner_lang::format::{at_place, count, magnitude, plural, rough};
use runner_results::analyse::compare::{
    CauseKind, Change, ClaimKind, Code, Comparison, CountedBy, CounterChange, DifferenceKind, Differs, Fact, Geomean,
    Interval, Kind, Newcomer, ReportComparison, TimeChange, Undecided,
};
use runner_types::{Acceptance, CounterInfo, CounterTheme, CounterUnit, Outcome};

/// Maximum number of changed counters to list per theme; further ones are counted.
const MOST_OF_THEME: usize = 3;

/// Maximum length, in bytes, of a value shown in full. Of longer ones only the differing words are shown.
const LONGEST_FACT: usize = 60;

pub const GATING: [Kind; 4] = [Kind::NewlyWrong, Kind::Slower, Kind::MoreWork, Kind::Incomparable];

pub const fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::NewlyWrong => "Newly wrong",
        Kind::Slower => "Slower",
        Kind::MoreWork => "More work",
        Kind::Incomparable => "Incomparable",
        Kind::NewlyUnstable => "Newly unstable",
        Kind::Faster => "Faster",
        Kind::LessWork => "Less work",
        Kind::Fixed => "Fixed",
        Kind::Gone => "Gone",
        Kind::New => "New",
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
            "A deciding counter rose by more than the threshold, and none fell. Deciding counters: machine \
             instructions, sectors, bank conflicts, atomics and barriers."
        }
        Kind::Incomparable => {
            "What was measured differs, or a record has no valid interval. With --allow, cases that differ are \
             compared anyway, but never a GPU with the simulator."
        }
        Kind::NewlyUnstable => "These cases no longer reach the requested precision.",
        Kind::Faster => "Faster by more than the threshold.",
        Kind::LessWork => {
            "A deciding counter fell by more than the threshold, and none rose. Deciding counters: machine \
             instructions, sectors, bank conflicts, atomics and barriers."
        }
        Kind::Fixed => "These cases failed before.",
        Kind::Gone => "These cases are not in the new report, or were not measured there.",
        Kind::New => "These cases are not in the base, or were not measured there.",
        Kind::Mixed => {
            "A deciding counter rose by more than the threshold, and another fell. Deciding counters: machine \
             instructions, sectors, bank conflicts, atomics and barriers."
        }
        Kind::Undecided => "Machine-code counts decide, and some are unknown on one side. PTX counts are not used.",
        Kind::Ambiguous => "Too noisy to tell whether the change exceeds the threshold.",
        Kind::StillWrong => "These cases fail as before.",
        Kind::Same => "No change that exceeds the threshold.",
    }
}

/// Why cases of one run cannot be compared.
pub const REFUSED: &str =
    "Buffers or checks differ from the base. Only cases with the same buffers and checks can run side by side.";

/// Mark whose shape differs by kind, for readers who cannot distinguish colours.
pub const fn mark(kind: Kind) -> &'static str {
    match kind {
        Kind::NewlyWrong | Kind::StillWrong => "✗",
        Kind::Slower | Kind::MoreWork => "▲",
        Kind::Faster | Kind::LessWork => "▼",
        Kind::Fixed => "✓",
        Kind::Incomparable => "≠",
        Kind::Mixed => "↕",
        Kind::NewlyUnstable | Kind::Undecided | Kind::Ambiguous => "?",
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

/// Counts the cases of a kind in words, such as `12 slower`; `None` if there are none.
pub fn tally(kind: Kind, count: usize) -> Option<String> {
    let with = if matches!(kind, Kind::MoreWork | Kind::LessWork) { "with " } else { "" };
    (count > 0).then(|| format!("{count} {with}{}", heading(kind).to_lowercase()))
}

/// Counts the cases in words: `420 cases compared: 3 slower, 400 same, 17 ambiguous.`
pub fn counts(comparison: &Comparison) -> String {
    let counts = comparison.counts();
    let total: usize = counts.values().sum();
    let named: Vec<String> = Kind::ALL.iter().filter_map(|kind| tally(*kind, *counts.get(kind)?)).collect();
    if named.is_empty() {
        return "No case was measured in both.".to_owned();
    }
    format!("{}: {}.", plural(total as u64, "case"), named.join(", "))
}

/// Formats a time ratio with its interval, such as `+3.1 % ± 0.4`.
pub fn time_change(time: &TimeChange) -> String {
    change(time.ratio, time.interval)
}

/// Formats a ratio as a change in percent, with its interval if there is one.
pub fn change(ratio: f64, interval: Option<Interval>) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let Some(Interval { low, high, .. }) = interval else { return signed(&rough(percent.abs()), percent) };
    let half = (high - ratio).max(ratio - low) * 100.0;
    let shown = number::percent_with_half(percent.abs(), half);
    signed(&shown, percent)
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
    signed(&at_place(percent.abs(), (magnitude(percent.abs()) - 2).max(-2)), percent)
}

/// Formats a mean ratio, such as `+1.3 % (geometric mean, 420 rows)`.
pub fn geomean(Geomean { ratio, rows }: Geomean) -> String {
    let percent = (ratio - 1.0) * 100.0;
    // Further decimals would be noise.
    let percent = (percent * 100.0).round() / 100.0;
    let change = signed(&rough(percent.abs()), percent);
    format!("{change} (geometric mean, {})", plural(rows as u64, "row"))
}

/// Known reasons why a case changed: differences and causes, joined by `; `.
pub fn why(change: &Change, report: &ReportComparison) -> String {
    reasons(change, report).join("; ")
}

/// The parts of [`why`].
pub fn reasons(change: &Change, report: &ReportComparison) -> Vec<String> {
    let mut parts: Vec<String> =
        change.outcomes[1].as_ref().and_then(|outcome| failure(change.kind, outcome)).into_iter().collect();
    parts.extend(change.differences.iter().map(difference));
    parts.extend(change.causes.iter().map(cause));
    parts.extend(change.undecided.iter().map(undecided));
    if !change.counters.is_empty() {
        parts.push(counters(change));
    }
    parts.extend(lines::texts(change));
    parts.extend(machine_code::texts(change));
    let is_of_machine = |cause: &Differs<CauseKind>| matches!(cause.what, CauseKind::Variant | CauseKind::SmClock);
    let is_same_code = matches!(change.code, Some(Code::Same | Code::SameOfOtherSource));
    if has_changed(change.kind) && is_same_code && change.causes.iter().all(is_of_machine) {
        parts.push("compiled code identical: look at the machine".to_owned());
    } else if parts.is_empty() && is_unexplained(change, report) {
        parts.push("no cause found: same source and options".to_owned());
    }
    parts.extend(change.accepted.as_ref().map(accepted));
    parts.extend(change.newcomer.as_ref().filter(|_| change.kind == Kind::New).and_then(newcomer));
    parts
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

/// Place and speedup, such as `2nd of 12, 1.31 times as fast as the baseline`, or its counts next to the baseline's.
fn newcomer(new: &Newcomer) -> Option<String> {
    let mut parts: Vec<String> = new.place.map(place).into_iter().collect();
    parts.extend(new.speedup.map(|speedup| format!("{} times as fast as the baseline", rough(speedup))));
    if new.time.is_none() {
        parts.extend(new.counts.iter().take(MOST_OF_THEME).map(|(name, value, ratio)| {
            let beside = ratio.map(|ratio| format!(" ({} times the baseline's)", rough(ratio)));
            format!("{name} {}{}", count(*value), beside.unwrap_or_default())
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

/// Whether a change needs an explanation although the recorded code is the same.
fn is_unexplained(change: &Change, report: &ReportComparison) -> bool {
    has_changed(change.kind)
        && report.limits.iter().all(|limits| limits.without_hashes == 0)
        && report.causes.is_empty()
        && report.differences.is_empty()
}

/// Differences between the reports as a whole.
pub fn of_all_rows(report: &ReportComparison) -> Vec<String> {
    report.differences.iter().map(difference).chain(report.causes.iter().map(cause)).collect()
}

fn failure(kind: Kind, outcome: &Outcome) -> Option<String> {
    let is_told = matches!(kind, Kind::NewlyWrong | Kind::StillWrong | Kind::Gone);
    let reason = wording::reason(outcome).map(|reason| format!(": {reason}")).unwrap_or_default();
    is_told.then(|| format!("{}{reason}", wording::name(outcome)))
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

/// The leading counter's change, e.g. `gld_sectors +3.1 %`. In a mixed case, the largest fall and the largest rise.
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
    let leading = leading_count(change)?;
    Some(relative(leading).map_or_else(|| counter_change(leading), |percent| format!("{} {percent}", leading.name)))
}

/// A change by a large factor, e.g. `gst_sectors ÷ 8`; otherwise a percentage or what [`counter_change`] says.
fn factor(counter: &CounterChange) -> String {
    let ratio = counter.new / counter.base;
    match ratio {
        _ if !(counter.base > 0.0 && counter.new > 0.0) => counter_change(counter),
        ratio if ratio >= 2.0 => format!("{} × {}", counter.name, rough(ratio)),
        ratio if ratio <= 0.5 => format!("{} ÷ {}", counter.name, rough(1.0 / ratio)),
        _ => relative(counter).map_or_else(|| counter_change(counter), |percent| format!("{} {percent}", counter.name)),
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

/// Changed counters, such as `gld_sectors 1024 → 1056, branch 5 → 6 and 3 more`. Memory comes first. Within a theme,
/// deciding counters precede those that changed most. Counters that contradict the verdict come last. PTX counts are
/// omitted if machine-code counts decide.
fn counters(change: &Change) -> String {
    let theme = |counter: &CounterChange| CounterInfo::named(&counter.name).map(|info| info.theme);
    let themes = [Some(CounterTheme::Global), Some(CounterTheme::SharedAndLocal), Some(CounterTheme::Instructions)];
    let is_decided = matches!(change.kind, Kind::MoreWork | Kind::LessWork | Kind::Mixed);
    let told = change.counters.iter().filter(|counter| !is_decided || theme(counter) != Some(CounterTheme::Ptx));
    let (against, agreeing): (Vec<&CounterChange>, Vec<&CounterChange>) =
        told.partition(|counter| disagrees(change.kind, counter));
    let mut shown: Vec<&CounterChange> = Vec::new();
    for wanted in themes {
        let of_theme = agreeing.iter().copied().filter(|counter| counter.is_cost && theme(counter) == wanted);
        let mut of_theme: Vec<&CounterChange> = of_theme.collect();
        of_theme.sort_by(|a, b| b.decides.cmp(&a.decides).then(size(b).total_cmp(&size(a))));
        shown.extend(of_theme.into_iter().take(MOST_OF_THEME));
    }
    if shown.is_empty() {
        shown.extend(agreeing.iter().take(MOST_OF_THEME));
    }
    let placed = |counter: &&CounterChange| {
        let place = lines::place(change, counter).map(|place| format!(" ({place})"));
        counter_change(counter) + &place.unwrap_or_default()
    };
    let named: Vec<String> = shown.iter().map(placed).collect();
    let more = agreeing.len() - shown.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
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
        Some(CounterUnit::Percent) => format!("{} %", count(value)),
        Some(CounterUnit::BytesPerSecond) => format!("{} GB/s", rough(value / 1e9)),
        _ => count(value),
    };
    format!("{name} {} → {}", shown(*base), shown(*new))
}

/// Formats the relative change of a counter, such as `+3.1 %`; `None` if it was zero.
fn relative(CounterChange { base, new, .. }: &CounterChange) -> Option<String> {
    let percent = (new / base - 1.0) * 100.0;
    (*base > 0.0 && percent.is_finite()).then(|| signed(&rough(percent.abs()), percent))
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
        Fact::Number(number) => count(*number),
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
        assert_eq!(shown("dram_read_throughput", 2.5e12, 1.25e12), "dram_read_throughput 2500 GB/s → 1250 GB/s");
        assert_eq!(shown("gld_efficiency", 50.0, 25.0), "gld_efficiency 50 % → 25 %");
        assert_eq!(shown("gld_sectors", 512.0, 513.0), "gld_sectors 512 → 513");
    }

    #[test]
    fn a_change_without_an_interval_has_no_more_digits_than_hundredths() {
        let shown = [0.999_947, 1.000_9, 1.003_26, 1.0152, 35.7, 1.0].map(plain_change);
        assert_eq!(shown, ["−0.01 %", "+0.09 %", "+0.33 %", "+1.52 %", "+3470 %", "0.00 %"]);
    }
}
