//! What is compared of a case of which a sample of the blocks ran: the elements that its launch has changed.
//!
//! An output has its poison before the launch, and an `inout` buffer its first content. An element that is as before was
//! not written, or written with what it held; it is not compared. Expected values are computed for the others alone.

use super::buffers::Poison;
use super::expected::Expected;
use super::group::Group;
use super::operand::Operand;
use super::parallel;
use super::stop::Stop;
use crate::model::{Access, CheckPlan, ElementType, ExpectPlan, Note, RefExpr, RefFunction};

/// Elements that one task looks at.
const BLOCK: usize = 1 << 12;

/// Both sides of a check.
pub struct Sides {
    pub actual: Operand,
    pub expected: Operand,
    /// Where the compared elements are in the checked array; `None` if it is compared as a whole.
    pub elements: Option<Vec<usize>>,
}

impl Group<'_> {
    /// What a check compares; `None` if it expects what the case itself computes.
    pub fn sides(&mut self, member: usize, check: &CheckPlan) -> Result<Option<Sides>, Stop> {
        if !self.members[member].is_partial {
            let Some(expected) = self.expectation(member, check)? else { return Ok(None) };
            return Ok(Some(Sides { actual: self.actual(member, check)?, expected, elements: None }));
        }
        let (actual, elements) = self.changed_elements(member, check)?;
        if elements.is_empty() {
            let message =
                format!("check `{}`: the blocks that ran, a sample, have changed no element of it", check.text);
            return Err(Stop::launch_error(message));
        }
        let job = self.members[member].job;
        let expected = match &check.expect {
            ExpectPlan::Reference(expression) => Expected::reference_at(&mut self.store, job, expression, &elements)?,
            _ => match self.expectation(member, check)? {
                Some(whole) => whole.select(&elements)?,
                None => return Ok(None),
            },
        };
        let (of, elements_compared) = (actual.len().unwrap_or(1) as u64, elements.len() as u64);
        let note = Note::Judged { check: check.text.clone(), elements: elements_compared, of };
        self.members[member].judged.push(note);
        Ok(Some(Sides { actual: actual.select(&elements)?, expected, elements: Some(elements) }))
    }

    /// The checked array, and its elements that are not as before the launch.
    fn changed_elements(&mut self, member: usize, check: &CheckPlan) -> Result<(Operand, Vec<usize>), Stop> {
        let cannot = || Stop::unresolved(format!("check `{}`: a sample of blocks gives no such value", check.text));
        let (name, from) = part_of(&check.actual).ok_or_else(cannot)?;
        let slot = self.members[member].device_body().and_then(|body| body.slot(name)).ok_or_else(cannot)?;
        let plan = self.store.get(slot).map(|buffer| buffer.plan.clone()).ok_or_else(cannot)?;
        let actual = self.actual(member, check)?;
        let Operand::Bytes { element, bytes: now } = &actual else { return Err(cannot()) };
        let elements = if plan.access == Access::Out {
            let poison = vec![Poison::Checked.byte(*element); now.len()];
            differing(now, &poison, *element)
        } else {
            let first = self.store.input(&plan)?;
            let first = first.get(from * element.size()..).unwrap_or_default();
            differing(now, first, *element)
        };
        Ok((actual, elements))
    }
}

/// The buffer of which a check compares elements, and the first of these.
pub fn part_of(actual: &RefExpr) -> Option<(&str, usize)> {
    match actual {
        RefExpr::Buffer(name) => Some((name, 0)),
        RefExpr::Call { function: RefFunction::Copy, buffers, .. } => part_of(buffers.first()?),
        RefExpr::Call { function: RefFunction::Slice, buffers, integers } => {
            let (name, before) = part_of(buffers.first()?)?;
            Some((name, before + usize::try_from(*integers.first()?).ok()?))
        }
        _ => None,
    }
}

/// The elements whose bytes differ.
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
    fn slices_of_slices_begin_where_the_sum_of_their_offsets_is() {
        let slice = |of: RefExpr, from: i64| RefExpr::Call {
            function: RefFunction::Slice,
            buffers: vec![of],
            integers: vec![from, 100],
        };
        let twice = slice(slice(RefExpr::Buffer("out".to_owned()), 3), 4);
        assert_eq!(part_of(&twice), Some(("out", 7)));
        let sum = RefExpr::Call { function: RefFunction::Sum, buffers: vec![twice], integers: Vec::new() };
        assert_eq!(part_of(&sum), None);
    }
}
