//! Output elements that no launch has written, on a device that tracks writes: they are wrong, whatever they hold. The
//! poison does not reveal them if it equals the expected value.

use std::ops::Range;

use super::bench::Bench;
use super::cases::ReadyCase;
use super::stop::Stop;
use runner_types::{CheckPlan, ElementType, Mismatch, RefExpr, RefFunction};

/// The part of a buffer that a check reads and no launch has written.
#[derive(Debug, PartialEq)]
pub struct Unwritten {
    /// Name of the buffer that the check reads.
    buffer: String,
    /// Unwritten elements of the buffer, in ascending order.
    pub elements: Vec<Range<usize>>,
    /// Elements of the buffer that the check reads.
    pub read: Range<usize>,
    /// Whether the unwritten elements are compared directly.
    is_compared: bool,
}

impl Unwritten {
    /// Number of unwritten elements.
    pub fn count(&self) -> u64 {
        self.elements.iter().map(|range| range.len() as u64).sum()
    }

    /// Unwritten elements, as indices in the checked array; `None` if the check compares something computed from them.
    pub fn compared(&self) -> Option<Vec<Range<usize>>> {
        let start = self.read.start;
        self.is_compared.then(|| self.elements.iter().map(|range| range.start - start..range.end - start).collect())
    }

    /// Mismatch for a check that compares something computed from unwritten elements.
    pub fn mismatch(&self, check: &CheckPlan) -> Mismatch {
        Mismatch {
            what: format!("{}: elements of `{}`", check.text, self.buffer),
            index: self.elements.first().map_or(0, |range| range.start as u64),
            expected: "a value that the launch writes".to_owned(),
            got: "none (never written)".to_owned(),
            error: None,
            wrong: self.count(),
            of: self.read.len() as u64,
            allowed: None,
        }
    }
}

/// Unwritten part of the first buffer in a case's check that has one; `None` if there is none, or if the device does
/// not track writes.
pub fn find_unwritten(bench: &Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<Option<Unwritten>, Stop> {
    let mut read = Vec::new();
    collect(&check.actual, &mut read);
    let is_compared = part_of(&check.actual).is_some();
    for (name, among) in read {
        let Some(found) = find_unwritten_among(bench, case, name, among)? else { return Ok(None) };
        if !found.elements.is_empty() {
            return Ok(Some(Unwritten { is_compared, ..found }));
        }
    }
    Ok(None)
}

/// Elements in a range of a case's buffer that no launch has written; `None` if the device does not track writes.
pub fn find_unwritten_among(
    bench: &Bench<'_>,
    case: &ReadyCase<'_>,
    name: &str,
    among: Range<usize>,
) -> Result<Option<Unwritten>, Stop> {
    let Some(buffer) = case.slot_after(bench, name).and_then(|slot| bench.store.get(slot)) else { return Ok(None) };
    let len = buffer.plan.len as usize;
    let read = among.start.min(len)..among.end.min(len);
    let known = bench.device.unwritten(buffer.id)?;
    Ok(known.map(|bytes| {
        let elements = elements_of(&bytes, buffer.plan.element, &read);
        Unwritten { buffer: name.to_owned(), elements, read, is_compared: false }
    }))
}

/// Elements of `among` that contain any of these bytes.
fn elements_of(bytes: &[Range<u64>], element: ElementType, among: &Range<usize>) -> Vec<Range<usize>> {
    let size = element.size();
    let mut found: Vec<Range<usize>> = Vec::new();
    for bytes in bytes {
        let start = (bytes.start as usize / size).max(among.start);
        let end = (bytes.end as usize).div_ceil(size).min(among.end);
        // The previous range may end in the same element.
        let start = found.last().map_or(start, |last| start.max(last.end));
        if start >= end {
            continue;
        }
        match found.last_mut().filter(|last| last.end == start) {
            Some(last) => last.end = end,
            None => found.push(start..end),
        }
    }
    found
}

/// The buffer and range that the expression slices.
pub fn part_of(expression: &RefExpr) -> Option<(&str, Range<usize>)> {
    match expression {
        RefExpr::Buffer(name) => Some((name, 0..usize::MAX)),
        RefExpr::Call { function: RefFunction::Copy, buffers, .. } => part_of(buffers.first()?),
        RefExpr::Call { function: RefFunction::Slice, buffers, integers } => {
            let (name, of) = part_of(buffers.first()?)?;
            let [from, to] = integers[..] else { return None };
            let at = |offset: i64| of.start.checked_add(usize::try_from(offset).ok()?);
            Some((name, at(from)?..at(to)?))
        }
        _ => None,
    }
}

/// Collects the ranges of buffers that an expression reads.
fn collect<'e>(expression: &'e RefExpr, found: &mut Vec<(&'e str, Range<usize>)>) {
    match (part_of(expression), expression) {
        (Some(part), _) => found.push(part),
        (None, RefExpr::Call { buffers, .. }) => buffers.iter().for_each(|buffer| collect(buffer, found)),
        (None, RefExpr::Elementwise { operands, .. }) => operands.iter().for_each(|operand| collect(operand, found)),
        (None, RefExpr::Buffer(_) | RefExpr::Constant(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: RefFunction, buffers: Vec<RefExpr>, integers: &[i64]) -> RefExpr {
        RefExpr::Call { function, buffers, integers: integers.to_vec() }
    }

    fn out() -> RefExpr {
        RefExpr::Buffer("out".to_owned())
    }

    #[test]
    fn an_element_is_unwritten_if_one_of_its_bytes_is() {
        let elements = |bytes: &[Range<u64>], among| elements_of(bytes, ElementType::I32, &among);
        assert!(elements(&[], 0..10).is_empty());
        assert_eq!(elements(&[3..5, 17..18], 0..10), [0..2, 4..5]);
        assert_eq!(elements(&[0..1, 2..3, 8..12, 12..13, 20..40], 0..10), [0..1, 2..4, 5..10]);
        assert_eq!(elements(&[0..8, 8..14, 20..40], 3..6), [3..4, 5..6]);
        assert!(elements(&[0..12, 20..40], 3..5).is_empty());
    }

    #[test]
    fn slices_of_slices_begin_where_the_sum_of_their_offsets_is() {
        let slice = |of: RefExpr, from: i64, to: i64| call(RefFunction::Slice, vec![of], &[from, to]);
        let twice = slice(slice(out(), 3, 100), 4, 9);
        assert_eq!(part_of(&twice), Some(("out", 7..12)));
        let sum = call(RefFunction::Sum, vec![twice.clone()], &[]);
        assert_eq!(part_of(&sum), None);
        let both = call(RefFunction::Add, vec![sum, RefExpr::Buffer("other".to_owned())], &[]);
        let mut read = Vec::new();
        collect(&both, &mut read);
        assert_eq!(read, [("out", 7..12), ("other", 0..usize::MAX)]);
    }
}
