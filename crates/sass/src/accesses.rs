//! Finds what became of a PTX line's memory accesses in the machine code.
//!
//! Most accesses are kept, so what was counted for the line also holds for the machine code. The compiler merges
//! accesses to neighbouring words into a wider one, and omits loads whose value it already has. It also copies
//! accesses, or merges those of several lines; nothing is known about these.

use std::collections::{BTreeMap, BTreeSet};

use crate::simulated::count_instructions;
use crate::{Executed, Instruction};

/// A kind of memory access that has its own counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Loads from global memory.
    GlobalLoad,
    /// Stores to global memory.
    GlobalStore,
    /// Atomics on global memory.
    GlobalAtomic,
    /// Loads from shared memory.
    SharedLoad,
    /// Stores to shared memory.
    SharedStore,
    /// Atomics on shared memory.
    SharedAtomic,
}

/// What the machine code does for a line's accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The same accesses.
    Kept,
    /// Accesses to this many bytes, which include accesses of other lines.
    Widened(u64),
    /// Nothing: the accesses are part of another line's widened ones.
    Merged,
    /// Nothing: the compiler already has the value.
    LeftOut,
    /// Not known.
    Unknown,
}

/// What became of a unit's accesses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fates {
    /// Fate of each line's accesses, by PTX line and kind.
    pub lines: BTreeMap<(u32, Access), Fate>,
    /// Kinds of access that the machine code performs without a corresponding line of the PTX.
    pub unknown: BTreeSet<Access>,
}

use Access::{GlobalAtomic, GlobalLoad, GlobalStore, SharedAtomic, SharedLoad, SharedStore};

/// Machine operations that access memory, with the kinds of access. If there are several, the operation performs each,
/// or the address determines which.
const OPERATIONS: [(&str, &[Access]); 15] = [
    ("LDG", &[GlobalLoad]),
    ("STG", &[GlobalStore]),
    ("ATOMG", &[GlobalAtomic]),
    ("RED", &[GlobalAtomic]),
    ("REDG", &[GlobalAtomic]),
    ("LDS", &[SharedLoad]),
    ("LDSM", &[SharedLoad]),
    ("STS", &[SharedStore]),
    ("STSM", &[SharedStore]),
    ("ATOMS", &[SharedAtomic]),
    ("LDGSTS", &[GlobalLoad, SharedStore]),
    ("LD", &[GlobalLoad, SharedLoad]),
    ("ST", &[GlobalStore, SharedStore]),
    ("ATOM", &[GlobalAtomic, SharedAtomic]),
    ("UBLKCP", &[GlobalLoad, GlobalStore, SharedLoad, SharedStore]),
];

/// Machine instructions for one kind of access at one line.
#[derive(Debug, Default)]
struct Machine {
    /// Number of warps that executed the instructions; `None` if it is unknown for one of them.
    executed: Option<u64>,
    widths: BTreeSet<u64>,
    is_predicated: bool,
}

/// A PTX access: operation, base of the address, offset, and number of bytes per lane.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Operand<'p> {
    operation: &'p str,
    base: &'p str,
    offset: i64,
    bytes: u64,
}

impl Executed<'_> {
    /// Finds what became of the PTX's accesses. `counted` has the lines whose accesses were executed; `warps` returns
    /// how many times warps executed a line.
    pub fn find_accesses(&self, counted: &BTreeSet<(u32, Access)>, warps: impl Fn(u32) -> u64) -> Fates {
        let text: Vec<&str> = self.unit.ptx().lines().collect();
        let line_of =
            |line: u32| (line as usize).checked_sub(1).and_then(|at| text.get(at)).copied().unwrap_or_default();
        let mut machine: BTreeMap<(u32, Access), Machine> = BTreeMap::new();
        let mut fates = Fates::default();
        for (listing, each) in &self.functions {
            for (instruction, executed) in listing.instructions.iter().zip(each) {
                let Some((_, kinds)) = OPERATIONS.iter().find(|(name, _)| *name == instruction.operation()) else {
                    continue;
                };
                if *executed == Some(0) {
                    continue;
                }
                let line = instruction.ptx_line.and_then(|line| self.unit.lines.get(&line)).copied();
                let is_counted = |kind: &&Access| line.is_some_and(|line| counted.contains(&(line, **kind)));
                let is_predicated = !instruction.predicate.is_empty();
                // An instruction whose predicate is always false accesses nothing.
                if !is_predicated && !kinds.iter().any(|kind| is_counted(&kind)) {
                    fates.unknown.extend(*kinds);
                }
                for kind in kinds.iter().filter(is_counted) {
                    let all = machine
                        .entry((line.unwrap_or(0), *kind))
                        .or_insert_with(|| Machine { executed: Some(0), ..Machine::default() });
                    all.executed = all.executed.zip(*executed).map(|(before, more)| before + more);
                    all.widths.insert(instruction.access_bytes());
                    all.is_predicated |= is_predicated;
                }
            }
        }
        let mut gone: Vec<(u32, Access)> = Vec::new();
        let mut widened: Vec<(u32, Access, u64)> = Vec::new();
        for &(line, kind) in counted {
            let Some(found) = machine.get(&(line, kind)) else {
                gone.push((line, kind));
                continue;
            };
            let text = line_of(line);
            let warps = warps(line) / count_instructions(text).max(1);
            let own = Operand::parse(text).map(|operand| operand.bytes);
            let is_as_often = found
                .executed
                .is_some_and(|executed| if found.is_predicated { executed >= warps } else { executed == warps });
            let width = found.widths.first().copied().filter(|_| found.widths.len() == 1);
            let fate = match (is_as_often, width, own) {
                (true, Some(width), Some(own)) if width > own => {
                    widened.push((line, kind, width));
                    Fate::Widened(width)
                }
                (true, Some(width), own) if own.is_none_or(|own| width == own) => Fate::Kept,
                _ => Fate::Unknown,
            };
            fates.lines.insert((line, kind), fate);
        }
        let mut merged: BTreeSet<(u32, Access)> = BTreeSet::new();
        for (line, kind, width) in widened {
            let is_free = |other: u32| {
                gone.contains(&(other, kind)) && !merged.contains(&(other, kind)) && warps(other) == warps(line)
            };
            match find_window(&text, line, width, &is_free) {
                Some(others) => merged.extend(others.into_iter().map(|other| (other, kind))),
                None => {
                    fates.lines.insert((line, kind), Fate::Unknown);
                }
            }
        }
        for place in gone {
            let is_load = matches!(place.1, GlobalLoad | SharedLoad);
            let fate = match merged.contains(&place) {
                true => Fate::Merged,
                false if is_load && !fates.unknown.contains(&place.1) => Fate::LeftOut,
                false => Fate::Unknown,
            };
            fates.lines.insert(place, fate);
        }
        fates
    }
}

/// Returns the other lines whose accesses are part of a wider access at this line; `None` if that is ambiguous.
fn find_window(text: &[&str], line: u32, width: u64, is_free: &dyn Fn(u32) -> bool) -> Option<Vec<u32>> {
    let at = (line as usize).checked_sub(1)?;
    let own = Operand::parse(text.get(at)?)?;
    let is_inside = |text: &&str| {
        let text = text.trim();
        !text.ends_with(':')
            && !text.starts_with('}')
            && !text.contains("bra")
            && !text.starts_with("bar.")
            && !text.contains("barrier.")
    };
    let before = text[..at].iter().rev().take_while(|text| is_inside(text)).count();
    let after = text[at..].iter().take_while(|text| is_inside(text)).count();
    let mut neighbours: BTreeMap<i64, u32> = BTreeMap::new();
    for (number, other) in
        text.iter().enumerate().take(at + after).skip(at - before).filter(|(number, _)| *number != at)
    {
        let number = u32::try_from(number + 1).ok()?;
        let Some(other) = Operand::parse(other) else { continue };
        let is_alike = (other.operation, other.base, other.bytes) == (own.operation, own.base, own.bytes);
        if is_alike && is_free(number) {
            neighbours.entry(other.offset).or_insert(number);
        }
    }
    let (step, count) = (i64::try_from(own.bytes).ok()?, i64::try_from(width / own.bytes).ok()?);
    let window = |first: i64| -> Option<Vec<u32>> {
        let offsets = (0..count).map(|place| first + place * step).filter(|offset| *offset != own.offset);
        offsets.map(|offset| neighbours.get(&offset).copied()).collect()
    };
    let found: Vec<(i64, Vec<u32>)> = (0..count)
        .filter_map(|place| {
            let first = own.offset - place * step;
            Some((first, window(first)?))
        })
        .collect();
    let aligned = found.iter().find(|(first, _)| first.rem_euclid(i64::try_from(width).unwrap_or(1)) == 0);
    aligned.or(found.first().filter(|_| found.len() == 1)).map(|(_, others)| others.clone())
}

impl<'p> Operand<'p> {
    /// Parses the access of a line with a single instruction, e.g. `ld.shared.v2.f32 {%f1, %f2}, [%r1+8];`.
    fn parse(line: &'p str) -> Option<Self> {
        if count_instructions(line) != 1 {
            return None;
        }
        let text = line.trim();
        let text = if text.starts_with('@') { text.split_once(char::is_whitespace)?.1.trim() } else { text };
        let operation = text.split_whitespace().next()?;
        let mut parts = operation.split('.');
        if !["ld", "st", "atom", "red"].contains(&parts.next()?) {
            return None;
        }
        let vector = parts.clone().find_map(|part| part.strip_prefix('v')?.parse::<u64>().ok()).unwrap_or(1);
        let last = parts.next_back()?;
        let bits: u64 = last.trim_start_matches(|c: char| c.is_ascii_alphabetic()).split('x').next()?.parse().ok()?;
        let (_, address) = line.split_once('[')?;
        let (address, _) = address.split_once(']')?;
        let (base, offset) = match address.split_once('+') {
            Some((base, offset)) => (base, offset.trim().parse().ok()?),
            None => (address, 0),
        };
        Some(Self { operation, base: base.trim(), offset, bytes: vector * bits / 8 })
    }
}

impl Instruction {
    /// Returns the number of bytes that each lane accesses.
    fn access_bytes(&self) -> u64 {
        let bytes = |part: &str| match part {
            "U8" | "S8" => Some(1),
            "U16" | "S16" => Some(2),
            "64" => Some(8),
            "128" => Some(16),
            _ => None,
        };
        self.opcode.split('.').skip(1).find_map(bytes).unwrap_or(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_of_the_ptx_have_their_address_and_bytes() {
        let parsed = |line| Operand::parse(line).map(|o| (o.base.to_owned(), o.offset, o.bytes));
        let access = |base: &str, offset, bytes| Some((base.to_owned(), offset, bytes));
        assert_eq!(parsed("\tld.shared.f32 \t%f1, [%r1+8];"), access("%r1", 8, 4));
        assert_eq!(parsed("@%p1 ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+-16];"), access("%rd1", -16, 16));
        assert_eq!(parsed("st.global.v2.u64 [%rd1], {%rd2, %rd3};"), access("%rd1", 0, 16));
        assert_eq!(parsed("atom.global.add.u32 %r1, [out+4], 1;"), access("out", 4, 4));
        assert_eq!(parsed("red.global.add.noftz.f16x2 [%rd1], %r1;"), access("%rd1", 0, 2));
        assert_eq!(parsed("add.s32 %r1, %r2, %r3;"), None);
    }

    #[test]
    fn neighbours_of_a_wider_access_are_those_of_its_aligned_window() {
        let text: Vec<String> = (0..8).map(|k| format!("ld.shared.f32 %f{k}, [%r1+{}];", 4 * k)).collect();
        let text: Vec<&str> = text.iter().map(String::as_str).collect();
        assert_eq!(find_window(&text, 6, 16, &|_| true), Some(vec![5, 7, 8]));
        assert_eq!(find_window(&text, 6, 16, &|line| line != 5), None, "line 5 has an access of its own");
        assert_eq!(find_window(&text, 3, 8, &|_| true), Some(vec![4]));
        let other: Vec<&str> = text[..3].iter().copied().chain(["$L_1:", text[3]]).collect();
        assert_eq!(find_window(&other, 1, 16, &|_| true), None, "another block");
    }
}
