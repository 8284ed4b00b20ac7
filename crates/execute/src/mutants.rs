//! Wrong results that a check should reject, derived from a correct result and judged by the check itself.
//!
//! If a tolerance exceeds the expected values, or the values are nearly alike, a kernel that computes nothing passes.
//! So before anything is timed, each check judges some mutants: zeros, a constant, an input, results for other inputs,
//! and the result itself with elements changed, swapped or shifted. A mutant that equals the expected result in the
//! output's type is not wrong. Nor is one that the check deliberately accepts: another order under a `sort`, changes
//! outside its `where`, as few wrong elements as its `fraction` allows.
//!
//! For a long array, three ranges are judged first, which takes well below a millisecond. A mutant that survives is
//! then judged as a whole, so that the reported verdict is the check's own.

use std::ops::Range;
use std::sync::Arc;

use super::bench::Bench;
use super::cases::ReadyCase;
use super::compared_elements::{Sides, read_sides};
use super::input_sets::FIRST;
use super::kernels::check::{Wanted, find_wanted};
use super::leeway::find_mismatch;
use super::mask::selected;
use super::operand::{Operand, PIECE};
use super::parallel;
use super::reference;
use super::stop::Stop;
use super::typed::{Float, Integer, Typed, by_type};
use super::unwritten::part_of;
use super::values::{expectation, read_buffer};
use super::weak::{Found, Tried};
use runner_backend::BufferId;
use runner_types::{Access, BufferPlan, CheckPlan, ElementType, Elementwise, ExpectPlan, Mutant, RefExpr};

/// Length of each of the three ranges of a long array that are judged first.
const STRETCH: usize = 1 << 12;

/// Elements per task.
const BLOCK: usize = 1 << 14;

/// Smallest array for which results for other inputs serve as a mutant. Their seeds are secret, so a few numbers may by
/// chance be close to those of the first inputs in one run and not in the next.
const LEAST_OF_OTHERS: u64 = 16;

/// Judges mutants with the checks of a case that has just passed them on the first set of inputs.
pub fn try_mutants(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<(), Stop> {
    if case.is_partial || case.device_body().is_none() || bench.is_profiled() {
        return Ok(());
    }
    let _span = tracing::debug_span!("judge wrong results", case = %case.job.case.key).entered();
    for check in &case.job.checks {
        if bench.weak.place(case.job, check).is_some() {
            continue;
        }
        let found = match output_of(bench, case, check) {
            Some(output) => find_in_place(bench, case, check, &output)?,
            None => find_computed(bench, case, check)?,
        };
        let mut tried = Tried::new(case.job, check);
        tried.note(found);
        bench.weak.tried.push(tried);
    }
    Ok(())
}

/// Judges the results of a launch on another set of inputs against the expectation for the first set.
pub fn try_results_of_other_inputs(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<(), Stop> {
    for check in &case.job.checks {
        let place = bench.weak.place(case.job, check);
        let Some(tried) = place.and_then(|place| bench.weak.tried.get_mut(place)) else { continue };
        if std::mem::replace(&mut tried.with_others, true) {
            continue;
        }
        let current = std::mem::replace(&mut bench.store.sets.current, FIRST);
        let found = find_others(bench, case, check);
        bench.store.sets.current = current;
        if let (found, Some(tried)) = (found?, place.and_then(|place| bench.weak.tried.get_mut(place))) {
            tried.note(found);
        }
    }
    Ok(())
}

fn find_others(bench: &mut Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<Found, Stop> {
    let output = output_of(bench, case, check);
    if let Some(sides) = output.map(|output| first_look(bench, case, check, &output)).transpose()?.flatten()
        && !accepts(bench, case, (check, &sides), &sides.actual)?
    {
        return Ok(Found::default());
    }
    match read_sides(bench, case, check)? {
        Some(sides) if compared(&sides) >= LEAST_OF_OTHERS && accepts(bench, case, (check, &sides), &sides.actual)? => {
            Ok(Found { accepts: vec![Mutant::OtherInputs], greatest: greatest(&sides) })
        }
        _ => Ok(Found::default()),
    }
}

/// A buffer whose elements a check compares unmodified.
#[derive(Debug)]
struct Output {
    id: BufferId,
    plan: BufferPlan,
    /// Elements that the check reads.
    range: Range<usize>,
}

fn output_of(bench: &Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Option<Output> {
    let (name, range) = part_of(&check.actual)?;
    let slot = case.slot_after(bench, name)?;
    let buffer = bench.store.get(slot).filter(|buffer| buffer.plan.access != Access::In)?;
    let len = buffer.plan.len as usize;
    let range = range.start.min(len)..range.end.min(len);
    Some(Output { id: buffer.id, plan: buffer.plan.clone(), range })
}

/// Judges all mutants of an output that is compared unmodified.
fn find_in_place(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    check: &CheckPlan,
    output: &Output,
) -> Result<Found, Stop> {
    let inputs = inputs_like(bench, case, &output.plan);
    let mut mutants = vec![
        Mutant::Zeros,
        Mutant::SmallerHalfZero,
        Mutant::Constant,
        Mutant::Changed,
        Mutant::Swapped,
        Mutant::Shifted,
    ];
    mutants.extend(inputs.iter().map(|(name, _)| Mutant::Input(name.clone())));
    if let Some(sides) = first_look(bench, case, check, output)? {
        mutants = judge_all(bench, case, (check, &sides), output, &inputs, &mutants)?;
    }
    if mutants.is_empty() {
        return Ok(Found::default());
    }
    let Some(sides) = read_sides(bench, case, check)? else { return Ok(Found::default()) };
    let accepts = judge_all(bench, case, (check, &sides), output, &inputs, &mutants)?;
    let greatest = if accepts.is_empty() { 0.0 } else { greatest(&sides) };
    Ok(Found { accepts, greatest })
}

/// Selects the `mutants` that a check accepts.
fn judge_all(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    (check, sides): (&CheckPlan, &Sides),
    output: &Output,
    inputs: &[(String, BufferId)],
    mutants: &[Mutant],
) -> Result<Vec<Mutant>, Stop> {
    let Operand::Bytes { element, bytes: own } = &sides.actual else { return Ok(Vec::new()) };
    let scale = Scale::of(&sides.actual);
    let mut accepted: Vec<(Mutant, Arc<Vec<u8>>)> = Vec::new();
    for mutant in mutants {
        let made = match mutant {
            Mutant::Input(name) => match inputs.iter().find(|(known, _)| known == name) {
                Some((_, id)) => Some(read_elements(bench, *id, (*element, &output.range), sides.elements.as_deref())?),
                None => None,
            },
            _ => scale.as_ref().and_then(|scale| scale.make(mutant, own, *element)),
        };
        let Some(made) = made.filter(|made| !mutant.changes_result() || made != &**own) else { continue };
        let wrong = Operand::Bytes { element: *element, bytes: Arc::new(made) };
        let Operand::Bytes { bytes, .. } = &wrong else { continue };
        let is_new = accepted.iter().all(|(_, known)| known != bytes);
        if is_new && !is_meant(check, mutant, sides) && accepts(bench, case, (check, sides), &wrong)? {
            accepted.push((mutant.clone(), Arc::clone(bytes)));
        }
    }
    Ok(accepted.into_iter().map(|(mutant, _)| mutant).collect())
}

/// Whether a check deliberately accepts a mutant of one or two elements: it allows a fraction of wrong elements, or an
/// error in a norm, to which a few elements contribute little.
fn is_meant(check: &CheckPlan, mutant: &Mutant, sides: &Sides) -> bool {
    let changed = match mutant {
        Mutant::Changed => 1.0,
        Mutant::Swapped => 2.0,
        _ => return false,
    };
    check.whole.norm > 0.0 || changed / (sides.of as f64) <= check.whole.fraction
}

/// Whether a check accepts a result that differs from its expectation.
fn accepts(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    (check, sides): (&CheckPlan, &Sides),
    actual: &Operand,
) -> Result<bool, Stop> {
    let Sides { expected, elements, of, .. } = sides;
    let judged = Sides { actual: actual.clone(), expected: expected.clone(), elements: elements.clone(), of: *of };
    let found = find_mismatch(bench, case, (check, &judged), None)?;
    Ok(found.is_none() && !is_expected(actual, &sides.expected))
}

/// Whether every element equals the expectation in the result's type.
fn is_expected(actual: &Operand, expected: &Operand) -> bool {
    let len = actual.len().or(expected.len()).unwrap_or(1);
    let element = actual.element().unwrap_or(ElementType::F64);
    let in_integers = !actual.is_float() && !expected.is_float();
    let is_same = |block: Range<usize>| {
        block.clone().step_by(PIECE).all(|start| {
            let count = PIECE.min(block.end - start);
            if in_integers {
                return (start..start + count).all(|index| actual.number(index) == expected.number(index));
            }
            let (mut got, mut wanted) = ([0.0; PIECE], [0.0; PIECE]);
            actual.read_floats(start, &mut got[..count]);
            expected.read_floats(start, &mut wanted[..count]);
            let mut pairs = got[..count].iter().zip(&wanted[..count]);
            pairs.all(|(got, wanted)| is_same_number(rounded(*got, element), rounded(*wanted, element)))
        })
    };
    parallel::blocks(len, BLOCK, &is_same).into_iter().all(|same| same)
}

fn rounded(value: f64, element: ElementType) -> f64 {
    by_type!(element, integer _T => value, float T => T::nearest(value).wide())
}

#[expect(clippy::float_cmp, reason = "numbers that were rounded to one type are equal or not")]
fn is_same_number(left: f64, right: f64) -> bool {
    left == right || (left.is_nan() && right.is_nan())
}

fn compared(sides: &Sides) -> u64 {
    sides.elements.as_ref().map_or(sides.of, |elements| elements.len() as u64)
}

fn greatest(sides: &Sides) -> f64 {
    let len = sides.expected.len().unwrap_or(1);
    let blocks = parallel::blocks(len, PIECE, &|block| {
        let mut wanted = vec![0.0; block.len()];
        sides.expected.read_floats(block.start, &mut wanted);
        wanted.into_iter().map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max)
    });
    blocks.into_iter().fold(0.0, f64::max)
}

/// Values from which mutants of an array are built.
#[derive(Debug)]
struct Scale {
    /// Smallest and largest finite element, each with its index.
    least: (f64, usize),
    greatest: (f64, usize),
    /// Median magnitude of the nonzero elements; 0 if there are none.
    half: f64,
}

impl Scale {
    fn of(array: &Operand) -> Option<Self> {
        let len = array.len().unwrap_or(1);
        let extremes = parallel::blocks(len, PIECE, &|block| {
            let mut values = vec![0.0; block.len()];
            array.read_floats(block.start, &mut values);
            let finite = || block.clone().zip(&values).filter(|(_, value)| value.is_finite()).map(|(i, v)| (*v, i));
            Some((finite().min_by(|a, b| a.0.total_cmp(&b.0))?, finite().max_by(|a, b| a.0.total_cmp(&b.0))?))
        });
        let (least, greatest) = extremes.into_iter().flatten().reduce(|one, other| {
            (if other.0.0 < one.0.0 { other.0 } else { one.0 }, if other.1.0 > one.1.0 { other.1 } else { one.1 })
        })?;
        let part = match stretches(len) {
            Some(ranges) => &array.select(&ranges.into_iter().flatten().collect::<Vec<_>>()).ok()?,
            None => array,
        };
        let mut sizes = vec![0.0; part.len().unwrap_or(1)];
        part.read_floats(0, &mut sizes);
        sizes.retain(|size| *size != 0.0 && size.is_finite());
        for size in &mut sizes {
            *size = size.abs();
        }
        let middle = sizes.len().saturating_sub(1) / 2;
        let half = if sizes.is_empty() { 0.0 } else { *sizes.select_nth_unstable_by(middle, f64::total_cmp).1 };
        Some(Self { least, greatest, half })
    }

    /// Builds a mutant of an array; `None` if it needs more than the array.
    fn make(&self, mutant: &Mutant, own: &Arc<Vec<u8>>, element: ElementType) -> Option<Vec<u8>> {
        let size = element.size();
        let (least, greatest) = (self.least.1 * size, self.greatest.1 * size);
        let is_flat = self.least.0 >= self.greatest.0;
        let mut made = Vec::clone(own);
        match mutant {
            Mutant::Zeros => made.fill(0),
            Mutant::SmallerHalfZero => {
                let array = Operand::Bytes { element, bytes: Arc::clone(own) };
                parallel::chunks(&mut made, PIECE * size, &|number, chunk| {
                    let mut values = [0.0; PIECE];
                    let values = &mut values[..chunk.len() / size];
                    array.read_floats(number * PIECE, values);
                    let small = chunk.chunks_exact_mut(size).zip(values).filter(|(_, value)| value.abs() <= self.half);
                    small.for_each(|(bytes, _)| bytes.fill(0));
                });
            }
            Mutant::Constant => {
                let one = bytes_of(self.least.0.midpoint(self.greatest.0), element);
                made.chunks_exact_mut(size).for_each(|place| place.copy_from_slice(&one));
            }
            Mutant::Changed if is_flat => {
                // If all elements are equal, change one: zero to one, anything else to zero.
                let one = bytes_of(if self.least.0 == 0.0 { 1.0 } else { 0.0 }, element);
                made[least..least + size].copy_from_slice(&one);
            }
            Mutant::Changed => made[least..least + size].copy_from_slice(&own[greatest..greatest + size]),
            Mutant::Swapped => {
                made[least..least + size].copy_from_slice(&own[greatest..greatest + size]);
                made[greatest..greatest + size].copy_from_slice(&own[least..least + size]);
            }
            Mutant::Shifted => made.rotate_left(size),
            Mutant::Input(_) | Mutant::OtherInputs => return None,
        }
        Some(made)
    }
}

/// Bytes of the element nearest to `value`.
fn bytes_of(value: f64, element: ElementType) -> Vec<u8> {
    let mut bytes = vec![0; element.size()];
    by_type!(
        element,
        integer T => <T as Integer>::nearest(value).store(&mut bytes),
        float T => <T as Float>::nearest(value).store(&mut bytes),
    );
    bytes
}

/// Ranges of a long array to judge first; `None` for a short one.
fn stretches(len: usize) -> Option<Vec<Range<usize>>> {
    let begins = [0, len / 2 - STRETCH.min(len) / 2, len.saturating_sub(STRETCH)];
    (len > 3 * STRETCH).then(|| begins.into_iter().map(|begin| begin..begin + STRETCH).collect())
}

/// Both sides of a check in those ranges; `None` if it compares few elements.
fn first_look(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    check: &CheckPlan,
    output: &Output,
) -> Result<Option<Sides>, Stop> {
    let len = output.range.len();
    let chosen = selected(bench, case, check, len)?;
    let Some(places) = stretches(chosen.as_ref().map_or(len, Vec::len)) else { return Ok(None) };
    let places = places.into_iter().flatten();
    let elements: Vec<usize> = match chosen {
        Some(chosen) => places.map(|place| chosen[place]).collect(),
        None => places.collect(),
    };
    let Some(expected) = expected_at(bench, case, check, output, &elements)? else { return Ok(None) };
    let element = output.plan.element;
    let bytes = Arc::new(read_elements(bench, output.id, (element, &output.range), Some(&elements))?);
    let actual = Operand::Bytes { element, bytes };
    Ok(Some(Sides { actual, expected, elements: Some(elements), of: len as u64 }))
}

/// Some of the expected elements, read from the device if it holds them.
fn expected_at(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    check: &CheckPlan,
    output: &Output,
    elements: &[usize],
) -> Result<Option<Operand>, Stop> {
    if let ExpectPlan::Reference(expression) = &check.expect
        && let Some(wanted) = on_device(bench, case, expression, output)
    {
        let range = &output.range;
        let read = |bench: &mut Bench<'_>, element, id| {
            let bytes = Arc::new(read_elements(bench, id, (element, range), Some(elements))?);
            Ok::<_, Stop>(Operand::Bytes { element, bytes })
        };
        return match wanted {
            Wanted::Number { .. } => Ok(None),
            Wanted::Array(element, id) => read(bench, element, id).map(Some),
            Wanted::Sum(element, left, right) => {
                let (left, right) = (Box::new(read(bench, element, left)?), Box::new(read(bench, element, right)?));
                Ok(Some(Operand::Elementwise { element, operation: Elementwise::Add, left, right }))
            }
        };
    }
    Ok(expectation(bench, case, check)?.map(|expected| expected.select(elements)).transpose()?)
}

/// Expected values that are arrays on the device, so that the host need not compute them.
fn on_device(bench: &Bench<'_>, case: &ReadyCase<'_>, expression: &RefExpr, output: &Output) -> Option<Wanted> {
    let is_all = output.range == (0..output.plan.len as usize);
    find_wanted(bench, case, expression, output.plan.len).filter(|_| is_all)
}

/// Downloads some elements of a range of a buffer, indexed from the range's start, or all of them.
fn read_elements(
    bench: &mut Bench<'_>,
    id: BufferId,
    (element, range): (ElementType, &Range<usize>),
    elements: Option<&[usize]>,
) -> Result<Vec<u8>, Stop> {
    let size = element.size();
    let Some(elements) = elements else {
        let mut bytes = vec![0; range.len() * size];
        bench.device.download(id, range.start * size, &mut bytes)?;
        return Ok(bytes);
    };
    let mut found = Vec::with_capacity(elements.len() * size);
    // Elements selected by a mask are close together, so a whole range is read at once.
    for part in elements.chunks(STRETCH) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let mut bytes = vec![0; (last + 1 - first) * size];
        bench.device.download(id, (range.start + first) * size, &mut bytes)?;
        for element in part {
            found.extend_from_slice(&bytes[(element - first) * size..][..size]);
        }
    }
    Ok(found)
}

/// Inputs with an output's type and length, as they are before the launch.
fn inputs_like(bench: &Bench<'_>, case: &ReadyCase<'_>, output: &BufferPlan) -> Vec<(String, BufferId)> {
    let slots = case.device_body().map(|body| body.slots.as_slice()).unwrap_or_default();
    let alike = slots.iter().filter_map(|(name, slot)| {
        let buffer = bench.store.get(*slot)?;
        let is_alike = (buffer.plan.element, buffer.plan.len) == (output.element, output.len);
        Some((name.clone(), bench.store.first_content(*slot).filter(|_| is_alike && buffer.has_content())?))
    });
    alike.collect()
}

/// Judges mutants with a check that computes something from the outputs. Functions such as `sum` do not depend on the
/// elements' positions, so outputs are only replaced as a whole.
fn find_computed(bench: &mut Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<Found, Stop> {
    let names = reference::names(&check.actual);
    let is_output = |plan: &&BufferPlan| names.contains(&plan.name.as_str()) && plan.access != Access::In;
    let outputs: Vec<&BufferPlan> = case.job.buffers.iter().filter(is_output).collect();
    let alike = |input: &&BufferPlan| {
        let is_alike = |output: &&BufferPlan| (output.element, output.len) == (input.element, input.len);
        matches!(input.access, Access::In | Access::InOut) && outputs.iter().any(is_alike)
    };
    let inputs: Vec<&BufferPlan> = case.job.buffers.iter().filter(alike).collect();
    let Some(mut sides) = read_sides(bench, case, check)? else { return Ok(Found::default()) };
    let mut found = Found::default();
    for input in std::iter::once(None).chain(inputs.into_iter().map(Some)) {
        let actual = reference::evaluate(&check.actual, &mut |name| {
            let replaced = outputs.iter().find(|output| output.name == name);
            let bytes = match (replaced, input) {
                (Some(output), None) => Arc::new(vec![0; output.bytes().0 as usize]),
                (Some(output), Some(input)) if (output.element, output.len) == (input.element, input.len) => {
                    bench.store.input(input)?
                }
                _ => return read_buffer(bench, case, name),
            };
            let element = replaced.map_or(ElementType::U8, |output| output.element);
            Ok::<_, Stop>(Operand::Bytes { element, bytes })
        })?;
        sides.actual = match &sides.elements {
            Some(elements) => actual.select(elements)?,
            None => actual,
        };
        if accepts(bench, case, (check, &sides), &sides.actual)? {
            found.accepts.push(input.map_or(Mutant::Zeros, |input| Mutant::Input(input.name.clone())));
        }
    }
    if !found.accepts.is_empty() {
        found.greatest = greatest(&sides);
    }
    Ok(found)
}
