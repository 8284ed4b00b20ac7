//! Why one variant costs more than another, in words: the differences of their counts, most important first.

use super::sarif::{AVOID_CONFLICTS, COALESCE, KEEP_IN_REGISTERS};
use runner_lang::format::{rough, thousands};
use runner_results::analyse::{Cost, Difference};

/// Maximum number of reasons to list.
pub const MOST_REASONS: usize = 3;

/// Percentage of used bytes below which accesses are not coalesced.
const COALESCED: f64 = 50.0;

const fn words(cost: Cost) -> &'static str {
    match cost {
        Cost::Launches => "kernel launches",
        Cost::SharedConflicts => "bank conflicts",
        Cost::SharedRequests => "shared memory requests",
        Cost::SharedAtomics => "shared memory atomics",
        Cost::LocalRequests => "local memory requests",
        Cost::GlobalLoadSectors => "global load sectors",
        Cost::GlobalLoadRequests => "global load requests",
        Cost::GlobalStoreSectors => "global store sectors",
        Cost::GlobalStoreRequests => "global store requests",
        Cost::GlobalAtomics => "global atomics",
        Cost::DeviceMemory => "bytes of device memory",
        Cost::Fp64 => "f64 instructions",
        Cost::Xu => "conversions and special functions",
        Cost::Tensor => "tensor instructions",
        Cost::Alu => "integer and logic instructions",
        Cost::Fma => "multiply-add instructions",
        Cost::Branches => "branch instructions",
        Cost::Barriers => "barriers",
        Cost::Instructions => "machine instructions",
        Cost::Occupancy => "occupancy",
    }
}

/// A difference as a part of a sentence: `0.26× the global load sectors (k.cu:31)`.
pub fn clause(difference: &Difference) -> String {
    let Difference { cost, base, new, places: [of_base, of_new], .. } = difference;
    let name = words(*cost);
    let text = match (*base, *new) {
        _ if *cost == Cost::Occupancy => format!("{} {name}", amount(*cost, *new)),
        (_, 0.0) => format!("no {name}"),
        (0.0, new) => format!("{} {name}", amount(*cost, new)),
        (base, new) => format!("{}× the {name}", rough(new / base)),
    };
    let place = of_new.as_ref().or(of_base.as_ref());
    place.map_or_else(|| text.clone(), |(file, line)| format!("{text} ({file}:{line})"))
}

fn amount(cost: Cost, value: f64) -> String {
    if cost == Cost::Occupancy { format!("{} %", rough(100.0 * value)) } else { thousands(value.round() as u64) }
}

/// Ranked reasons, one per line: `1. global load sectors (gld_sectors): 261,632 → 68,096 (0.26×), at k.cu:12 → k.cu:31`.
pub fn lines(differences: &[Difference]) -> Vec<String> {
    differences.iter().take(MOST_REASONS).zip(1..).map(|(difference, rank)| line(difference, rank)).collect()
}

fn line(difference: &Difference, rank: usize) -> String {
    let Difference { cost, base, new, explains, places, .. } = difference;
    let but = if *explains { "" } else { "in return, " };
    let counters = cost.counters().join(" + ");
    let counters = if counters.is_empty() { String::new() } else { format!(" ({counters})") };
    let ratio = if *base > 0.0 && *new > 0.0 { format!(" ({}×)", rough(new / base)) } else { String::new() };
    let place = |place: &Option<(String, u32)>| place.as_ref().map(|(file, line)| format!("{file}:{line}"));
    let places = match places.each_ref().map(place) {
        [Some(base), Some(new)] if base != new => format!(", at {base} → {new}"),
        [Some(base), None] => format!(", was at {base}"),
        [_, Some(new)] => format!(", at {new}"),
        [None, None] => String::new(),
    };
    let fix = fix(difference).map(|fix| format!(". {fix}")).unwrap_or_default();
    format!(
        "{rank}. {but}{}{counters}: {} → {}{ratio}{places}{fix}",
        words(*cost),
        amount(*cost, *base),
        amount(*cost, *new)
    )
}

/// What to do about something that the new variant does more of.
fn fix(difference: &Difference) -> Option<&'static str> {
    let is_scattered = difference.efficiency.is_some_and(|percent| percent < COALESCED);
    let fix = match difference.cost {
        Cost::SharedConflicts => AVOID_CONFLICTS,
        Cost::LocalRequests => KEEP_IN_REGISTERS,
        Cost::GlobalLoadSectors | Cost::GlobalStoreSectors if is_scattered => COALESCE,
        _ => return None,
    };
    (difference.new > difference.base).then_some(fix)
}
