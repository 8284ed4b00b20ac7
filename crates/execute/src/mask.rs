//! The elements that a check's `where` selects for comparison.

use std::ops::Range;
use std::sync::Arc;

use super::bench::Bench;
use super::cases::ReadyCase;
use super::operand::{Lanes, Operand, PIECE};
use super::parallel;
use super::reference;
use super::stop::Stop;
use runner_backend::host_memory;
use runner_types::{CheckPlan, ElementType, INDEX};

/// Compared elements, out of a check's `len`, in ascending order; `None` if it has no `where`. A mask that selects
/// nothing is an error, since any result would pass.
pub fn selected(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    check: &CheckPlan,
    len: usize,
) -> Result<Option<Vec<usize>>, Stop> {
    let Some(mask) = &check.mask else { return Ok(None) };
    let problem = |problem: String| Stop::unresolved(format!("check `{}`: {problem}", check.text));
    // Space for an index and a number per element.
    host_memory::check(16 * len as u64).map_err(|why| problem(format!("`where` needs {why}")))?;
    let value = reference::evaluate(mask, &mut |name| match case.job.buffers.iter().find(|plan| plan.name == name) {
        Some(plan) => Ok(Operand::Bytes { element: plan.element, bytes: bench.store.input(plan)? }),
        None if name == INDEX => {
            let lanes = Arc::new(Lanes::Int((0..len as i64).collect()));
            Ok(Operand::Wide { element: ElementType::I64, lanes })
        }
        None => Err(problem(format!("there is no buffer `{name}`"))),
    })?;
    if value.len() != Some(len) {
        let given = value.len().map_or_else(|| "one number".to_owned(), |given| format!("{given} elements"));
        return Err(problem(format!("`where` yields {given}, but {len} are compared")));
    }
    let blocks = parallel::blocks(len, PIECE, &|block| match value.lanes(block.clone()) {
        Lanes::Int(lanes) => chosen(block, &lanes, |lane| *lane != 0),
        Lanes::Float(lanes) => chosen(block, &lanes, |lane| *lane != 0.0),
    });
    let elements = blocks.concat();
    if elements.is_empty() {
        return Err(problem(format!("`where` selects none of the {len} elements")));
    }
    Ok(Some(elements))
}

fn chosen<L>(block: Range<usize>, lanes: &[L], is_chosen: impl Fn(&L) -> bool) -> Vec<usize> {
    block.zip(lanes).filter(|(_, lane)| is_chosen(lane)).map(|(index, _)| index).collect()
}
