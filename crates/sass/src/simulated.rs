//! Joins machine code with a simulator's counts for the PTX that it was compiled from.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{LineCount, Listing, begins_function};

/// Counts for one line of the simulated PTX.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PtxCount {
    /// Number of instructions that warps executed.
    pub instructions: u64,
    /// Number of branches at which lanes diverged.
    pub diverged: u64,
    /// For the back edge of a loop: numbers of iterations, each with the number of warps that left the loop after that
    /// many.
    pub rounds: Vec<(u64, u64)>,
}

/// The functions of a unit, joined with the PTX that a simulator executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    listings: Vec<Listing>,
    ptx: String,
    /// For each line of the listings' PTX, the line of the simulated PTX.
    pub lines: BTreeMap<u32, u32>,
}

impl Simulated {
    /// Matches the lines of the listings' PTX with the lines of `ptx`.
    pub fn new(listings: Vec<Listing>, ptx: String) -> Self {
        let of_ptx: Vec<&str> = ptx.lines().collect();
        let lines = listings.first().map_or_else(BTreeMap::new, |listing| match_lines(&listing.ptx, &of_ptx));
        Self { listings, ptx, lines }
    }

    /// Machine code of the functions.
    pub fn listings(&self) -> &[Listing] {
        &self.listings
    }

    /// The simulated PTX.
    pub fn ptx(&self) -> &str {
        &self.ptx
    }
}

/// How many times warps executed the instructions of a unit's functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed<'l> {
    /// Each function with the count of each instruction; `None` where it could not be derived.
    pub functions: Vec<(&'l Listing, Vec<Option<u64>>)>,
    pub(crate) unit: &'l Simulated,
}

impl<'l> Executed<'l> {
    /// Derives the counts of machine instructions from the counts of the simulated PTX's lines.
    pub fn derive(unit: &'l Simulated, counts: &BTreeMap<u32, PtxCount>) -> Self {
        let lines: Vec<&str> = unit.ptx.lines().collect();
        let none = PtxCount::default();
        let count = |line: u32| {
            let line = *unit.lines.get(&line)?;
            let text = lines.get((line as usize).checked_sub(1)?)?;
            let counted = counts.get(&line).unwrap_or(&none);
            let diverged = is_branch(text).then_some(counted.diverged);
            let warps = counted.instructions / count_instructions(text).max(1);
            is_instruction(text).then_some(LineCount { warps, diverged, rounds: &counted.rounds })
        };
        let mut calls: BTreeMap<String, Option<u64>> = BTreeMap::new();
        let (added, own): (Vec<&Listing>, Vec<&Listing>) = unit.listings.iter().partition(|listing| listing.is_added());
        let mut functions = Vec::new();
        for listing in own.into_iter().chain(added) {
            let each = if listing.is_added() {
                // A function that nothing calls is never executed.
                let called = calls.get(&*listing.name).copied().unwrap_or(Some(0));
                called
                    .map_or_else(|| vec![None; listing.instructions.len()], |calls| listing.executed_when_called(calls))
            } else {
                listing.executed(count)
            };
            for (function, executed) in listing.calls_of_added(&each) {
                let before = calls.entry(function.to_owned()).or_insert(Some(0));
                *before = before.zip(executed).map(|(before, executed)| before + executed);
            }
            functions.push((listing, each));
        }
        Self { functions, unit }
    }
}

/// Maps lines of the PTX that a cubin was compiled from to the same lines of the simulated PTX. Only lines within each
/// function correspond, because a kernel may have been compiled alone for one and with its whole file for the other.
fn match_lines(of_cubin: &str, simulated: &[&str]) -> BTreeMap<u32, u32> {
    let simulated: Vec<Cow<'_, str>> = simulated.iter().map(|line| comparable(line)).collect();
    let functions: BTreeMap<&str, u32> =
        (0..).zip(&simulated).filter(|(_, line)| begins_function(line)).map(|(at, line)| (&**line, at)).collect();
    let mut same = BTreeMap::new();
    let (mut first, mut there) = (0, Some(0));
    for (at, line) in (0_u32..).zip(of_cubin.lines().map(comparable)) {
        if begins_function(&line) {
            (first, there) = (at, functions.get(&*line).copied());
        }
        let other = there.map(|there| there + at - first);
        if let Some(other) = other.filter(|other| simulated.get(*other as usize).is_some_and(|o| *o == line)) {
            same.insert(at + 1, other + 1);
        }
    }
    same
}

/// Removes the parts of a PTX line that differ between two compilations of the same source. Labels and the local-memory
/// depot contain the number of their function in the file. The name of an anonymous namespace contains a hash of the
/// source's location, or the ID of the compiler's process, and is preceded by its length.
fn comparable(line: &str) -> Cow<'_, str> {
    const ANONYMOUS: &str = "_GLOBAL__N__";
    const NUMBERED: [&str; 2] = ["$L__BB", "__local_depot"];
    let is_digit = |c: char| c.is_ascii_digit();
    let mut rest = line.trim();
    let mut text = Cow::Borrowed("");
    let markers = || NUMBERED.into_iter().chain([ANONYMOUS]);
    while let Some((at, marker)) = markers().filter_map(|marker| Some((rest.find(marker)?, marker))).min() {
        let (before, after) = (&rest[..at], &rest[at + marker.len()..]);
        let digits = &before[before.trim_end_matches(is_digit).len()..];
        let named = (marker == ANONYMOUS).then(|| at.checked_add(digits.parse().ok()?)).flatten();
        let named = named.filter(|end| *end >= at + marker.len() && rest.is_char_boundary(*end));
        text.to_mut().push_str(if named.is_some() { before.trim_end_matches(is_digit) } else { before });
        text.to_mut().push_str(marker);
        rest = match named {
            Some(end) => &rest[end..],
            None if marker == ANONYMOUS => after,
            None => after.trim_start_matches(is_digit),
        };
    }
    if text.is_empty() { Cow::Borrowed(rest) } else { text + rest }
}

/// Whether a PTX line contains an instruction.
pub fn is_instruction(line: &str) -> bool {
    let text = line.trim_start();
    text.contains(';') && text.starts_with(|first: char| first.is_ascii_lowercase() || first == '@' || first == '{')
}

/// Returns the number of instructions in a PTX line. Inline assembly stays on one line, so there may be several.
pub fn count_instructions(line: &str) -> u64 {
    let statements =
        line.split("//").next().unwrap_or_default().split(';').map(|part| part.trim_matches(['{', '}', ' ', '\t']));
    statements.filter(|part| !part.is_empty() && !part.starts_with('.')).count() as u64
}

/// Whether a PTX instruction is a branch.
fn is_branch(line: &str) -> bool {
    let text = line.trim_start();
    let text =
        if text.starts_with('@') { text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest) } else { text };
    ["bra", "brx"].contains(&text.trim_start().split(['.', ' ', '\t']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_kernel_match_those_of_the_same_kernel_in_its_whole_file() {
        let whole =
            ["", ".visible .entry a(", ")", "{", "ret;", "}", ".visible .entry b(", ")", "{", "add;", "ret;", "}"];
        let alone = ".version 9.0\n.visible .entry b(\n)\n{\nadd;\nret;\n}\n.visible .entry c(\n)\n{\nret;\n}";
        let same = match_lines(alone, &whole);
        assert_eq!(same.into_iter().collect::<Vec<_>>(), [(2, 7), (3, 8), (4, 9), (5, 10), (6, 11), (7, 12)]);
    }

    #[test]
    fn labels_match_that_have_another_number_of_their_function() {
        let (whole, alone) = ("\t@%p15 bra \t$L__BB5_12;", "\t@%p15 bra \t$L__BB0_12;");
        assert_eq!(comparable(whole), comparable(alone));
        assert_ne!(comparable(whole), comparable("@%p15 bra \t$L__BB5_13;"));
        assert_eq!(comparable("mov.u64 %SPL, __local_depot12;"), comparable("mov.u64 %SPL, __local_depot0;"));
    }

    #[test]
    fn lines_match_where_names_of_an_anonymous_namespace_have_another_hash_or_length() {
        let kernel = |name: &str| format!(".entry _ZN{}{name}1kEv(", name.len());
        let load = |name: &str| format!("ld.param.u64 %rd1, [_ZN{}{name}1kEv_param_0];", name.len());
        let pairs = [
            ["_GLOBAL__N__f1121b59_8_names_cu_ff4b9f7f", "_GLOBAL__N__1fa45f6a_8_names_cu_ff4b9f7f"],
            ["_GLOBAL__N__00000000_4_k_cu_d52f3acb_268676", "_GLOBAL__N__00000000_4_k_cu_d52f3acb_1"],
        ];
        for [one, other] in pairs {
            let (begin, line) = (kernel(one), load(one));
            let same = match_lines(&format!("{}\n{}\nret;", kernel(other), load(other)), &["", &begin, &line, "ret;"]);
            assert_eq!(same.into_iter().collect::<Vec<_>>(), [(1, 2), (2, 3), (3, 4)], "{one}");
        }
        assert_ne!(comparable("_ZN12_GLOBAL__N__1kEv"), comparable("_ZN12_GLOBAL__N__1jEv"));
        // Digits that are not the length of the name remain.
        let odd = ["_GLOBAL__N__x", "3_GLOBAL__N__x", "99_GLOBAL__N__x", "13_GLOBAL__N__é"];
        for odd in odd.into_iter().chain(["99999999999999999999_GLOBAL__N__"]) {
            assert_eq!(comparable(odd), odd);
        }
    }

    #[test]
    fn instructions_of_a_line_of_ptx_are_counted_without_declarations() {
        for (line, count) in [
            ("\tadd.u32 %r1, %r1, {1};", 1),
            (
                "{ .reg .f32 r0;  .reg .pred p;  shfl.sync.down.b32 r0|p, %f1, 1, 31, -1;  @p add.f32 r0, r0, %f1;  mov.f32 %f2, r0;}",
                3,
            ),
            ("{ mov.b32 {low, high}, %r1; }", 1),
            ("mov.u32 %r1, 0; // ;", 1),
            ("{", 0),
        ] {
            assert_eq!(count_instructions(line), count, "{line}");
        }
    }

    #[test]
    fn branches_of_ptx_are_told_from_other_instructions() {
        for line in ["\tbra.uni \t$L_1;", "@%p1 bra $L_1;", "@!%p12 bra.uni \t$L;", "\tbrx.idx %r1, $L_t;"] {
            assert!(is_branch(line), "{line}");
        }
        for line in ["\tbrev.b32 %r1, %r2;", "@%p1 ret;", "\tst.global.u32 [bra], %r1;", ""] {
            assert!(!is_branch(line), "{line}");
        }
    }

    #[test]
    fn instructions_of_ptx_are_told_from_directives_and_labels() {
        for line in ["\tld.param.u64 %rd1, [x];", "@%p1 bra $L_1;", "\tret;", "\t{ mov.b32 %r1, 0; }"] {
            assert!(is_instruction(line), "{line}");
        }
        for line in [".reg .b32 %r<3>;", "$L_1:", "// ld;", "", "{", ".loc 1 2 3"] {
            assert!(!is_instruction(line), "{line}");
        }
    }
}
