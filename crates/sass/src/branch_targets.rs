//! Targets of PTX branches, which tell the two edges of a machine branch apart.

use crate::begins_function;

/// Where a PTX branch leads. Lines are 1-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchTarget {
    /// Line of the branch.
    pub from: u32,
    /// Line of the target label; `u32::MAX` if lanes exit.
    pub to: u32,
    /// Line of the instruction after the branch, which no other path reaches.
    pub next: u32,
}

impl BranchTarget {
    /// Finds the conditional branch or return at a line. `None` if there is none, or if other paths reach the
    /// instruction after it.
    pub fn find(ptx: &[&str], from: u32) -> Option<Self> {
        let to = find_target(ptx, from)?;
        let at = (from as usize).checked_sub(1)?;
        let is_told = |line: &str| !line.is_empty() && !line.starts_with("//") && !line.starts_with('.');
        let behind = ptx.iter().enumerate().skip(at + 1).find(|(_, line)| is_told(line.trim()));
        let (behind, text) = behind.filter(|(_, line)| !is_label(line) && !line.trim().starts_with('}'))?;
        let next = u32::try_from(behind + 1).ok()?;
        (!begins_function(text)).then_some(Self { from, to, next })
    }

    /// Whether a line is on the path past the branch (true) or on the path of its target (false); `None` if it is on
    /// neither.
    pub const fn is_past(self, line: u32) -> Option<bool> {
        let (between, beyond) = if self.to > self.from {
            (line > self.from && line < self.to, line >= self.to)
        } else {
            (line > self.from, line >= self.to && line <= self.from)
        };
        if between {
            Some(true)
        } else if beyond {
            Some(false)
        } else {
            None
        }
    }
}

/// Returns the line of the label to which the conditional branch at a line leads; `u32::MAX` for a return.
pub fn find_target(ptx: &[&str], from: u32) -> Option<u32> {
    let at = (from as usize).checked_sub(1)?;
    let (guard, instruction) = ptx.get(at)?.trim().split_once(char::is_whitespace)?;
    if !guard.starts_with('@') {
        return None;
    }
    let instruction = instruction.trim().trim_end_matches(';');
    let (opcode, operand) = instruction.split_once(char::is_whitespace).unwrap_or((instruction, ""));
    match opcode.split('.').next() {
        Some("bra") => find_label(ptx, at, operand.trim()),
        Some("ret" | "exit") => Some(u32::MAX),
        _ => None,
    }
}

fn is_label(line: &str) -> bool {
    line.split("//").next().unwrap_or_default().trim_end().ends_with(':')
}

/// Returns the line of a label in the function that contains line index `at`.
fn find_label(ptx: &[&str], at: usize, label: &str) -> Option<u32> {
    let begin = (0..=at).rev().find(|at| begins_function(ptx[*at])).unwrap_or(0);
    let is_wanted =
        |line: &str| line.trim_start().strip_prefix(label).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let body = ptx.iter().enumerate().skip(begin + 1).take_while(|(_, line)| !begins_function(line));
    let found = body.into_iter().find(|(_, line)| is_wanted(line))?;
    u32::try_from(found.0 + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".visible .entry other(\n)\n{\n$L_1:\n}\n.visible .entry k(\n)\n{\n@%p1 bra \t$L_2;\n// %bb.1:\n.loc 1 2 3\n\
                       mov.u32 %r1, 1;\n$L_1:\nadd.u32 %r1, %r1, 1;\n@!%p2 bra $L_1;\n$L_2:\n@%p3 ret;\nret;\n}";

    fn find(from: u32) -> Option<BranchTarget> {
        BranchTarget::find(&PTX.lines().collect::<Vec<_>>(), from)
    }

    #[test]
    fn a_branch_leads_to_a_label_of_its_function_and_what_follows_has_no_other_way() {
        let jump = find(9).unwrap_or_else(|| panic!("no way"));
        assert_eq!(jump, BranchTarget { from: 9, to: 16, next: 12 });
        assert_eq!([8, 12, 15, 16].map(|line| jump.is_past(line)), [None, Some(true), Some(true), Some(false)]);
        assert_eq!(find(15), None, "the loop is left to a label");
        assert_eq!(find(17), Some(BranchTarget { from: 17, to: u32::MAX, next: 18 }));
        let back = BranchTarget { from: 15, to: 13, next: 17 };
        assert_eq!([12, 13, 15, 17].map(|line| back.is_past(line)), [None, Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn what_is_no_conditional_branch_has_no_way() {
        for from in [0, 1, 4, 12, 18, 99] {
            assert_eq!(find(from), None, "line {from}");
        }
    }
}
