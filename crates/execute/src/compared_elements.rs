//! Elements to compare when only a sample of a case's blocks ran: those that its launch changed.
//!
//! The device knows which elements of an output were written. An `inout` buffer holds its initial content before the
//! launch: an unchanged element was either not written or rewritten with the same value, so it is not compared.
//! Expected values are computed only for the other elements.

use std::ops::Range;

use super::array_tolerance;
use super::bench::Bench;
use super::buffers::Poison;
use super::cases::ReadyCase;
use super::compare::{Difference, Leeway, compare};
use super::expected::Expected;
use super::mask::selected;
use super::operand::Operand;
use super::parallel;
use super::stop::Stop;
use super::unwritten::{Unwritten, find_unwritten_among, part_of};
use super::values::{expectation, read_actual};
use runner_types::{Access, CheckPlan, ElementType, ExpectPlan, Mismatch, Note};

/// Elements per task.
const BLOCK: usize = 1 << 12;

/// Both sides of a check.
pub struct Sides {
    pub actual: Operand,
    pub expected: Operand,
    /// Indices of the compared elements in the checked array; `None` if all are compared.
    pub elements: Option<Vec<usize>>,
    /// Length of the checked array.
    pub of: u64,
}

impl Sides {
    /// Note on how much is compared; `None` if everything is.
    pub fn note(&self, check: &CheckPlan) -> Option<Note> {
        let elements = self.elements.as_ref()?.len() as u64;
        Some(Note::Judged { check: check.text.clone(), elements, of: self.of })
    }

    /// Mismatch, if any. Elements known to be unwritten are wrong.
    pub fn mismatch(
        &self,
        check: &CheckPlan,
        unwritten: Option<&Unwritten>,
        leeway: &Leeway<'_>,
    ) -> Result<Option<Mismatch>, Stop> {
        let Self { actual, expected, elements, .. } = self;
        let missing = match unwritten.map(|found| (found, found.compared())) {
            Some((found, None)) => return Ok(Some(found.mismatch(check))),
            Some((_, Some(missing))) => match elements {
                Some(elements) => among(&missing, elements),
                None => missing,
            },
            None => Vec::new(),
        };
        let text = |problem: String| format!("check `{}`: {problem}", check.text);
        let Some(difference) = compare(actual, expected, &check.tolerance, &missing, leeway).map_err(text)? else {
            return Ok(None);
        };
        let count = missing.iter().map(|range| range.len() as u64).sum();
        let Some(why) = array_tolerance::refusal(actual, expected, (&difference, count), &check.whole) else {
            return Ok(None);
        };
        let what = if why.is_empty() { check.text.clone() } else { format!("{}: {why}", check.text) };
        let mut mismatch = difference.mismatch(what, actual.element());
        let is_missing = |_| missing.iter().any(|range| range.contains(&(difference.index as usize)));
        if unwritten.map_or_else(|| is_poison(actual, &difference), is_missing) {
            mismatch.got.push_str(" (never written)");
        }
        if let Some(elements) = elements {
            mismatch.index = elements[difference.index as usize] as u64;
        }
        Ok(Some(mismatch))
    }
}

/// Positions, in an ascending list of elements, of those within the ranges.
fn among(ranges: &[Range<usize>], elements: &[usize]) -> Vec<Range<usize>> {
    let place = |element: usize| elements.partition_point(|other| *other < element);
    ranges.iter().map(|range| place(range.start)..place(range.end)).filter(|places| !places.is_empty()).collect()
}

/// Whether a wrong element still holds its poison.
fn is_poison(actual: &Operand, difference: &Difference) -> bool {
    let Operand::Bytes { element, bytes } = actual else { return false };
    let start = difference.index as usize * element.size();
    let has = |poison: Poison| bytes[start..start + element.size()].iter().all(|b| *b == poison.byte(*element));
    has(Poison::Checked) || has(Poison::Timed)
}

/// Both sides of a check; `None` if it expects what the case itself computes.
pub fn read_sides(bench: &mut Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<Option<Sides>, Stop> {
    if !case.is_partial {
        let Some(expected) = expectation(bench, case, check)? else { return Ok(None) };
        let actual = read_actual(bench, case, check)?;
        let of = actual.len().unwrap_or(1) as u64;
        let Some(elements) = selected(bench, case, check, of as usize)? else {
            return Ok(Some(Sides { actual, expected, elements: None, of }));
        };
        let (actual, expected) = (actual.select(&elements)?, expected.select(&elements)?);
        return Ok(Some(Sides { actual, expected, elements: Some(elements), of }));
    }
    let (actual, mut elements) = read_changed(bench, case, check)?;
    if let Some(selected) = selected(bench, case, check, actual.len().unwrap_or(1))? {
        elements.retain(|element| selected.binary_search(element).is_ok());
    }
    if elements.is_empty() {
        let message = format!("check `{}`: the sampled blocks changed none of its elements", check.text);
        return Err(Stop::launch_error(message));
    }
    let expected = match &check.expect {
        ExpectPlan::Reference(expression) => Expected::reference_at(&mut bench.store, case.job, expression, &elements)?,
        _ => match expectation(bench, case, check)? {
            Some(whole) => whole.select(&elements)?,
            None => return Ok(None),
        },
    };
    let of = actual.len().unwrap_or(1) as u64;
    Ok(Some(Sides { actual: actual.select(&elements)?, expected, elements: Some(elements), of }))
}

/// The checked array, and the elements that changed during the launch.
fn read_changed(bench: &mut Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<(Operand, Vec<usize>), Stop> {
    let cannot =
        || Stop::unresolved(format!("check `{}`: it cannot be evaluated for a sample of the blocks", check.text));
    let (name, from) = part_of(&check.actual).ok_or_else(cannot)?;
    let slot = case.device_body().and_then(|body| body.slot(name)).ok_or_else(cannot)?;
    let plan = bench.store.get(slot).map(|buffer| buffer.plan.clone()).ok_or_else(cannot)?;
    let actual = read_actual(bench, case, check)?;
    let Operand::Bytes { element, bytes: now } = &actual else { return Err(cannot()) };
    let read = from.start..from.start + now.len() / element.size();
    let elements = match find_unwritten_among(bench, case, name, read)? {
        _ if plan.access != Access::Out => {
            let first = bench.store.input(&plan)?;
            let first = first.get(from.start * element.size()..).unwrap_or_default();
            differing(now, first, *element)
        }
        Some(unwritten) => written(&unwritten.elements, &unwritten.read),
        // Without the sanitizer, only the poison shows what was written.
        None => differing(now, &vec![Poison::Checked.byte(*element); now.len()], *element),
    };
    Ok((actual, elements))
}

/// Elements of `range`, as offsets from its start, that are in none of the `unwritten` ranges.
fn written(unwritten: &[Range<usize>], range: &Range<usize>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut next = range.start;
    for missing in unwritten.iter().chain([&(range.end..range.end)]) {
        found.extend((next..missing.start).map(|element| element - range.start));
        next = missing.end;
    }
    found
}

fn differing(now: &[u8], before: &[u8], element: ElementType) -> Vec<usize> {
    let size = element.size();
    let len = now.len().min(before.len()) / size;
    let found = parallel::blocks(len, BLOCK, &|block| {
        let bytes = block.start * size..block.end * size;
        let (now, before) = (&now[bytes.clone()], &before[bytes]);
        if now == before {
            return Vec::new();
        }
        let pairs = now.chunks_exact(size).zip(before.chunks_exact(size));
        block.zip(pairs).filter(|(_, (now, before))| now != before).map(|(index, _)| index).collect()
    });
    found.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_with_another_byte_are_found_across_tasks() {
        let before = vec![0xff; 4 * (BLOCK + 10)];
        let mut now = before.clone();
        for index in [0, BLOCK - 1, BLOCK, BLOCK + 9] {
            now[4 * index + 3] = 0;
        }
        assert_eq!(differing(&now, &before, ElementType::F32), [0, BLOCK - 1, BLOCK, BLOCK + 9]);
    }

    #[test]
    fn elements_between_those_that_were_not_written_were_written() {
        assert_eq!(written(&[], &(5..8)), [0, 1, 2]);
        assert_eq!(written(&[5..6, 7..8], &(5..10)), [1, 3, 4]);
        assert_eq!(written(&[5..9, 9..10], &(5..10)), [0_usize; 0]);
    }
}
