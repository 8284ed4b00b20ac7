//! The hang report: where the warps are in a block that does not end.

use crate::exec::warp::{Split, SplitState, Warp};
use crate::program::{Kernel, Position};

/// Maximum number of groups of warps that a report names, besides the running ones.
const MOST: usize = 4;

/// Returns the path of a warp that a report shows: the first that can run, or else the first.
pub fn shown(warp: &Warp) -> Option<&Split> {
    warp.splits.iter().find(|split| split.state == SplitState::Ready).or(warp.splits.first())
}

/// Returns the instruction that a path executes next or at which it has stopped. Without a path, this is the kernel's
/// first instruction.
pub fn position(kernel: &Kernel, split: Option<&Split>) -> Position {
    let function = split.map_or(0, |split| split.function);
    let code = &kernel.functions[function].ins;
    let at = split.map_or(0, |split| {
        // A path that waits at a barrier continues after it.
        let bytes = (split.pc as usize).saturating_sub(code.as_ptr() as usize);
        let waits = matches!(split.state, SplitState::Barrier { .. });
        (bytes / size_of_val(&code[0])).saturating_sub(usize::from(waits))
    });
    Position { function, line: code.get(at).map_or(0, |i| i.line) }
}

/// Describes what every warp that has not ended is doing. Warps that do the same as warp `at` come last and without
/// their position, which the trap names.
pub fn describe(kernel: &Kernel, warps: &[Box<Warp>], at: usize) -> String {
    let mut groups: Vec<(Doing, Vec<usize>)> = Vec::new();
    for (number, warp) in warps.iter().enumerate() {
        let Some(split) = shown(warp) else { continue };
        let doing = Doing { state: split.state, place: kernel.place(position(kernel, Some(split))) };
        match groups.iter_mut().find(|(known, _)| *known == doing) {
            Some((_, members)) => members.push(number),
            None => groups.push((doing, vec![number])),
        }
    }
    let own = groups.iter().position(|(_, members)| members.contains(&at));
    let own = own.map_or_else(|| vec![at], |own| groups.remove(own).1);
    let left_out: usize = groups.iter().skip(MOST).map(|(_, members)| members.len()).sum();
    let mut parts: Vec<String> = groups.iter().take(MOST).map(|(doing, members)| doing.describe(members)).collect();
    if left_out > 0 {
        parts.push(format!("{left_out} more elsewhere"));
    }
    parts.push(format!("{} {}", named(&own), if own.len() == 1 { "runs" } else { "run" }));
    parts.join(", ")
}

#[derive(Debug, PartialEq)]
struct Doing {
    state: SplitState,
    place: String,
}

impl Doing {
    fn describe(&self, warps: &[usize]) -> String {
        let one = warps.len() == 1;
        let verb = match (self.state, one) {
            (SplitState::Ready, true) => "runs",
            (SplitState::Ready, false) => "run",
            (SplitState::Barrier { .. }, true) => "waits at a barrier",
            (SplitState::Barrier { .. }, false) => "wait at a barrier",
            (SplitState::Lanes { .. }, true) => "waits for other lanes",
            (SplitState::Lanes { .. }, false) => "wait for other lanes",
        };
        format!("{} {verb} at {}", named(warps), self.place)
    }
}

/// Names warps in ascending order, e.g. `warp 3` or `warps 0 to 2 and 5`.
fn named(warps: &[usize]) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &warp in warps {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == warp => *last = warp,
            _ => spans.push((warp, warp)),
        }
    }
    let mut texts: Vec<String> = Vec::new();
    for (first, last) in spans {
        match last - first {
            0 | 1 => texts.extend((first..=last).map(|warp| warp.to_string())),
            _ => texts.push(format!("{first} to {last}")),
        }
    }
    let end = texts.pop().unwrap_or_default();
    let text = if texts.is_empty() { end } else { format!("{} and {end}", texts.join(", ")) };
    format!("warp{} {text}", if warps.len() == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use crate::schedule::hang_report::named;

    #[test]
    fn consecutive_numbers_are_written_as_a_range() {
        assert_eq!(named(&[3]), "warp 3");
        assert_eq!(named(&[0, 1]), "warps 0 and 1");
        assert_eq!(named(&[0, 1, 2, 5, 7, 8]), "warps 0 to 2, 5, 7 and 8");
        assert_eq!(named(&[0, 2, 3, 4]), "warps 0 and 2 to 4");
    }
}
