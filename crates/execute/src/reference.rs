//! The reference functions: expected values of checks, computed on the host.
//!
//! Integers wrap as their type does. Floats are computed in f64 with compensated sums and not rounded to their type, so
//! that the reference has a smaller error than the results compared with it. All cores share the work, in pieces whose
//! boundaries do not depend on the number of cores, so the result is the same on every host. Mixed element types and
//! the minimum or maximum of nothing are errors; nothing is converted silently.

mod arrays;
mod bound;
mod matrix;
mod reduce;

pub use arrays::{gelu, gelu_tanh, normal_of};
pub use bound::bounds;
pub use matrix::all_lanes;
pub use reduce::BLOCK;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use super::operand::{Number, Operand};
use reduce::{Block, Blocks, reduce};
use runner_backend::host_memory;
use runner_types::{ElementType, Elementwise, Map, Reduction, RefExpr, RefFunction, RefKind};

/// Evaluates a reference expression. `buffer` returns the content of a named buffer.
///
/// Element-wise arithmetic and copies stay unevaluated until they are read. Errors name the function and its arguments'
/// types or sizes.
pub fn evaluate<E: From<String>>(
    expression: &RefExpr,
    buffer: &mut dyn FnMut(&str) -> Result<Operand, E>,
) -> Result<Operand, E> {
    match expression {
        RefExpr::Buffer(name) => buffer(name),
        RefExpr::Constant(value) => Number::from_value(value)
            .map(|value| Operand::Scalar { element: None, value })
            .ok_or_else(|| E::from(format!("the check's {} `{value}` is not a number", value.kind()))),
        RefExpr::Call { function, buffers, integers } => {
            let arguments: Vec<Operand> = buffers.iter().map(|b| evaluate(b, buffer)).collect::<Result<_, _>>()?;
            Ok(call(*function, &arguments, integers, None)?)
        }
        RefExpr::Elementwise { operation, operands } => {
            let operands: Vec<Operand> = operands.iter().map(|o| evaluate(o, buffer)).collect::<Result<_, _>>()?;
            Ok(elementwise(*operation, operands)?)
        }
    }
}

/// Builds element-wise arithmetic on arrays of the same type and length; numbers apply to every element.
fn elementwise(operation: Elementwise, operands: Vec<Operand>) -> Result<Operand, String> {
    let name = "arithmetic";
    let mut types = operands.iter().filter_map(Operand::element);
    let Some(element) = types.next() else { return Err(format!("{name} got no array")) };
    // Integers of all types can be compared with each other. Truth values are nonzero numbers of any type.
    let is_alike = |other: ElementType| match operation {
        Elementwise::And | Elementwise::Or => true,
        operation if operation.compares() => other.is_float() == element.is_float(),
        _ => other == element,
    };
    if let Some(other) = types.find(|other| !is_alike(*other)) {
        return Err(format!("{name} takes arrays of one type, but got {element} and {other}"));
    }
    let arrays: Vec<&Operand> = operands.iter().filter(|operand| operand.len().is_some()).collect();
    arrays.windows(2).try_for_each(|pair| same_len(name, pair[0], pair[1]))?;
    if !element.is_float() {
        let is_fraction = |operand: &&Operand| matches!(operand, Operand::Scalar { value: Number::Float(_), .. });
        if let Some(Operand::Scalar { value, .. }) = operands.iter().find(is_fraction) {
            return Err(format!("{name} on elements of {element} takes integers, but got {value}"));
        }
        if operation == Elementwise::Sqrt {
            return Err(format!("sqrt() works on floats, but got {element}"));
        }
    }
    let [left, right] = match <[Operand; 2]>::try_from(operands) {
        Ok([left, right]) => [left, right],
        Err(mut only) => {
            let Some(operand) = only.pop() else { return Err(format!("{name} got no operand")) };
            // A unary operation ignores the right operand.
            [operand, Operand::Scalar { element: None, value: Number::Int(1) }]
        }
    };
    let divides = matches!(operation, Elementwise::Divide | Elementwise::Remainder);
    if divides && !element.is_float() && right.has_zero() {
        return Err("an integer is divided by zero".to_owned());
    }
    let element = if operation.gives_truth() { ElementType::I64 } else { element };
    Ok(Operand::Elementwise { element, operation, left: Box::new(left), right: Box::new(right) })
}

/// Some elements of a reference expression. Products and convolutions do not compute the others.
pub fn evaluate_at<E: From<String>>(
    expression: &RefExpr,
    elements: &[usize],
    buffer: &mut dyn FnMut(&str) -> Result<Operand, E>,
) -> Result<Operand, E> {
    if let RefExpr::Call { function, buffers, integers } = expression {
        match (function.kind(), buffers.as_slice(), integers.as_slice()) {
            (RefKind::Map(Map::Copy), [of], []) => return evaluate_at(of, elements, buffer),
            (RefKind::Map(Map::Matmul | Map::Convolution), ..) => {
                let arguments: Vec<Operand> = buffers.iter().map(|b| evaluate(b, buffer)).collect::<Result<_, _>>()?;
                return Ok(call(*function, &arguments, integers, Some(elements))?);
            }
            _ => {}
        }
    }
    Ok(evaluate(expression, buffer)?.select(elements)?)
}

/// Buffers that an expression names, each once.
pub fn names(expression: &RefExpr) -> Vec<&str> {
    let mut found = Vec::new();
    collect(expression, &mut found);
    found
}

fn collect<'e>(expression: &'e RefExpr, found: &mut Vec<&'e str>) {
    match expression {
        RefExpr::Buffer(name) if !found.contains(&name.as_str()) => found.push(name),
        RefExpr::Buffer(_) | RefExpr::Constant(_) => {}
        RefExpr::Call { buffers, .. } | RefExpr::Elementwise { operands: buffers, .. } => {
            for buffer in buffers {
                collect(buffer, found);
            }
        }
    }
}

/// Writes a range of one array argument of a reduction, whose array arguments have equal lengths. On failure, the error
/// gives the reason.
pub type Part<'a> = dyn Fn(usize, Range<usize>, &mut Vec<u8>) -> Result<(), String> + Sync + 'a;

thread_local! {
    /// Memory for the ranges, one per array. Each thread keeps its own, since touching fresh pages takes as long as
    /// computing their content.
    static ROOM: Cell<Vec<Arc<Vec<u8>>>> = const { Cell::new(Vec::new()) };
}

/// Buffers that a reduction takes unmodified; `None` for any other expression.
pub fn reduced_buffers(expression: &RefExpr) -> Option<Vec<&str>> {
    let RefExpr::Call { function, buffers, .. } = expression else { return None };
    if !matches!(function.kind(), RefKind::Reduction(_)) || buffers.len() != function.buffers() {
        return None;
    }
    buffers.iter().map(|buffer| if let RefExpr::Buffer(name) = buffer { Some(name.as_str()) } else { None }).collect()
}

/// Evaluates a reduction from [`reduced_buffers`] without holding all elements in memory. The buffers have the same
/// type and length; `part` generates the bytes of a range.
pub fn evaluate_in_parts(
    expression: &RefExpr,
    element: ElementType,
    len: usize,
    part: &Part<'_>,
) -> Result<Option<Operand>, String> {
    let RefExpr::Call { function, buffers, .. } = expression else { return Ok(None) };
    let RefKind::Reduction(reduction) = function.kind() else { return Ok(None) };
    let block = |range: Range<usize>| {
        let mut room = ROOM.take();
        room.resize_with(buffers.len(), Arc::default);
        let filled = room.iter_mut().enumerate().map(|(place, bytes)| {
            part(place, range.clone(), Arc::make_mut(bytes))?;
            Ok(Operand::Bytes { element, bytes: Arc::clone(bytes) })
        });
        let arguments = filled.collect::<Result<_, String>>();
        ROOM.set(room);
        Ok(Block::alone(arguments?, range.start))
    };
    reduced((reduction, function.name()), element, len, &block).map(Some)
}

fn reduced(
    (reduction, name): (Reduction, &str),
    element: ElementType,
    len: usize,
    blocks: &Blocks<'_>,
) -> Result<Operand, String> {
    reduce(reduction, element, len, blocks)
        .map(|value| Operand::Scalar { element: Some(element), value })
        .map_err(|why| format!("{name}() {why}"))
}

/// Calls a function. Products and convolutions compute only the listed `elements`; other functions compute all.
fn call(
    function: RefFunction,
    arguments: &[Operand],
    integers: &[i64],
    elements: Option<&[usize]>,
) -> Result<Operand, String> {
    let name = function.name();
    let element = common_element(name, arguments)?;
    if (arguments.len(), integers.len()) != (function.buffers(), function.integers()) {
        return Err(format!("{name}() got {} buffers and {} integers", arguments.len(), integers.len()));
    }
    match function.kind() {
        RefKind::Reduction(reduction) => {
            arguments.windows(2).try_for_each(|pair| same_len(name, &pair[0], &pair[1]))?;
            let len = arguments[0].len().unwrap_or(0);
            reduced((reduction, name), element, len, &|_| Ok(Block::of_whole(arguments)))
        }
        RefKind::Map(map) => apply(map, (name, element), arguments, integers, elements),
    }
}

/// Applies a function. The numbers of `arguments` and `integers` match its signature.
fn apply(
    map: Map,
    (name, element): (&str, ElementType),
    arguments: &[Operand],
    integers: &[i64],
    elements: Option<&[usize]>,
) -> Result<Operand, String> {
    match map {
        Map::Copy => Ok(arguments[0].clone()),
        Map::Add => {
            let [left, right] = [&arguments[0], &arguments[1]];
            same_len(name, left, right)?;
            let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
            Ok(Operand::Elementwise { element, operation: Elementwise::Add, left, right })
        }
        Map::Matmul => {
            let [left, right] = [&arguments[0], &arguments[1]];
            let [rows, columns, inner] = sizes(name, [integers[0], integers[1], integers[2]])?;
            fits(name, left, rows, inner)?;
            fits(name, right, inner, columns)?;
            let len = rows.saturating_mul(columns);
            if elements.is_none() {
                has_room(name, len)?;
            }
            check_last(name, elements, len)?;
            Ok(matrix::product(element, [left, right], matrix::Shape { rows, columns, inner }, elements))
        }
        Map::Transpose => {
            let [rows, columns] = sizes(name, [integers[0], integers[1]])?;
            fits(name, &arguments[0], rows, columns)?;
            Ok(matrix::transposed(element, &arguments[0], rows, columns))
        }
        Map::Sort => Ok(arrays::sorted(element, &arguments[0])),
        Map::Scan => Ok(arrays::scanned(element, &arguments[0])),
        Map::Histogram => {
            let [bins] = sizes(name, [integers[0]])?;
            has_room(name, bins)?;
            arrays::histogram(element, &arguments[0], bins).map_err(|why| format!("{name}() {why}"))
        }
        Map::Softmax => {
            let [columns] = sizes(name, [integers[0]])?;
            let len = arguments[0].len().unwrap_or(0);
            fits(name, &arguments[0], len.checked_div(columns).unwrap_or(0), columns)?;
            arrays::softmax(element, &arguments[0], columns).map_err(|why| format!("{name}() {why}"))
        }
        Map::Exp => arrays::each(element, &arguments[0], libm::exp).map_err(|why| format!("{name}() {why}")),
        Map::Gelu => arrays::each(element, &arguments[0], gelu).map_err(|why| format!("{name}() {why}")),
        Map::GeluTanh => arrays::each(element, &arguments[0], gelu_tanh).map_err(|why| format!("{name}() {why}")),
        Map::LayerNorm => {
            let [columns] = sizes(name, [integers[0]])?;
            let len = arguments[0].len().unwrap_or(0);
            fits(name, &arguments[0], len.checked_div(columns).unwrap_or(0), columns)?;
            fits(name, &arguments[1], 1, columns)?;
            fits(name, &arguments[2], 1, columns)?;
            let [x, weight, bias] = [&arguments[0], &arguments[1], &arguments[2]];
            arrays::layernorm(element, [x, weight, bias], columns).map_err(|why| format!("{name}() {why}"))
        }
        Map::Convolution => {
            let [rows, columns, down, across] = sizes(name, [integers[0], integers[1], integers[2], integers[3]])?;
            fits(name, &arguments[0], rows, columns)?;
            fits(name, &arguments[1], down, across)?;
            check_last(name, elements, rows * columns)?;
            let sizes = [rows, columns, down, across];
            Ok(arrays::convolution(element, [&arguments[0], &arguments[1]], sizes, elements))
        }
        Map::Slice => {
            let [from, to] = sizes(name, [integers[0], integers[1]])?;
            let len = arguments[0].len().unwrap_or(0);
            if from > to || to > len {
                return Err(format!(
                    "{name}() expects indices from 0 to {len} in ascending order, but got {from} and {to}"
                ));
            }
            Ok(arrays::slice(element, &arguments[0], from..to))
        }
    }
}

/// Element type that the array arguments of a function share.
fn common_element(name: &str, arguments: &[Operand]) -> Result<ElementType, String> {
    let mut common = None;
    for argument in arguments {
        let (Some(element), Some(_)) = (argument.element(), argument.len()) else {
            return Err(format!("{name}() takes arrays, but one of its arguments is a number"));
        };
        match common {
            Some(first) if first != element => {
                return Err(format!("{name}() takes arrays of one type, but got {first} and {element}"));
            }
            _ => common = Some(element),
        }
    }
    common.ok_or_else(|| format!("{name}() got no array"))
}

fn same_len(name: &str, left: &Operand, right: &Operand) -> Result<(), String> {
    let (left, right) = (left.len().unwrap_or(0), right.len().unwrap_or(0));
    if left == right { Ok(()) } else { Err(format!("{name}() takes arrays of one length, but got {left} and {right}")) }
}

fn sizes<const N: usize>(name: &str, integers: [i64; N]) -> Result<[usize; N], String> {
    let mut sizes = [0; N];
    for (size, integer) in sizes.iter_mut().zip(integers) {
        *size = usize::try_from(integer).map_err(|_| format!("{name}() got a negative size, {integer}"))?;
    }
    Ok(sizes)
}

fn fits(name: &str, array: &Operand, rows: usize, columns: usize) -> Result<(), String> {
    let len = array.len().unwrap_or(0);
    if rows.checked_mul(columns) == Some(len) {
        Ok(())
    } else {
        Err(format!("{name}() expects {rows} × {columns} elements, but the array has {len}"))
    }
}

/// Rejects a result with this many elements if the host does not have enough memory for it.
fn has_room(name: &str, len: usize) -> Result<(), String> {
    let needed = (len as u64).saturating_mul(size_of::<f64>() as u64);
    host_memory::check(needed).map_err(|why| format!("{name}() returns {len} elements, which need {why}"))
}

/// Rejects elements past the end of a result.
fn check_last(name: &str, elements: Option<&[usize]>, len: usize) -> Result<(), String> {
    match elements.and_then(|elements| elements.iter().max()) {
        Some(last) if *last >= len => Err(format!("{name}() has {len} elements, but element {last} is compared")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
