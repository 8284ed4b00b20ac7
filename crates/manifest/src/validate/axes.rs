//! Validates axes: lists of values of the same type, written out or generated.

use std::collections::BTreeMap;

use super::context::Context;
use crate::raw::{Expr, RawAxis, RawAxisTable};
use crate::read::{At, Named};
use runner_experiment::Axis;
use runner_files::npy;
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Span, Value};

/// Maximum number of values of all axes together. A plan may not have more cells, so more values would only waste
/// memory.
const MOST_VALUES: i64 = 1_000_000;

/// Axes of a table, in file order.
pub fn axes(ctx: &mut Context, raw: Option<&Named<At<RawAxis>>>) -> Vec<Axis> {
    let entries = raw.map(|named| named.0.as_slice()).unwrap_or_default();
    entries.iter().map(|(name, raw)| axis(ctx, name, raw)).collect()
}

fn axis(ctx: &mut Context, name: &At<String>, raw: &At<RawAxis>) -> Axis {
    let values = match &raw.value {
        RawAxis::List(list) => list.iter().map(|at| (at.value.0.clone(), at.span.clone())).collect(),
        RawAxis::Made(table) => made(ctx, &name.value, raw, table),
    };
    if values.is_empty() && !ctx.faulty(&raw.span) {
        ctx.fault(
            Diagnostic::at(raw.span.clone(), format!("axis `{}` has no values", name.value))
                .label("makes the matrix empty"),
        );
    }
    ctx.axis_values += values.len() as i64;
    one_kind(ctx, &name.value, &values);
    distinct(ctx, &name.value, &values);
    Axis {
        name: name.value.clone(),
        values: values.into_iter().map(|(value, _)| value).collect(),
        span: raw.span.clone(),
    }
}

/// Reports the first value whose type differs from the first value's.
fn one_kind(ctx: &mut Context, name: &str, values: &[(Value, Span)]) {
    let Some((first, rest)) = values.split_first() else { return };
    let Some(other) = rest.iter().find(|(value, _)| value.kind() != first.0.kind()) else { return };
    let (a, b) = (&first.0, &other.0);
    let message = format!("axis `{name}` mixes {} `{a}` with {} `{b}`", a.kind(), b.kind());
    let hint = match (a, b) {
        (Value::Str(_), Value::Type(_)) | (Value::Type(_), Value::Str(_)) => {
            "a string that names an element type becomes that type: rename it or the other values"
        }
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => "write `2.0` for the float 2",
        _ => "all values of an axis must have the same type",
    };
    let label = format!("{} among values of type {}", b.kind(), a.kind());
    ctx.fault(Diagnostic::at(other.1.clone(), message).label(label).related(first.1.clone(), a.kind()).hint(hint));
}

fn distinct(ctx: &mut Context, name: &str, values: &[(Value, Span)]) {
    let mut seen: BTreeMap<String, &Span> = BTreeMap::new();
    for (value, span) in values {
        if let Some(first) = seen.insert(value.to_string(), span) {
            let fault = Diagnostic::at(span.clone(), format!("axis `{name}` has the value `{value}` twice"));
            // All values of a range have the same location.
            ctx.fault(if first == span { fault } else { fault.label("again").related(first.clone(), "first") });
        }
    }
}

fn made(ctx: &mut Context, name: &str, raw: &At<RawAxis>, table: &RawAxisTable) -> Vec<(Value, Span)> {
    let given = [table.pow2.is_some(), table.range.is_some(), table.int.is_some(), table.npy.is_some()];
    if given.iter().filter(|given| **given).count() != 1 || (table.dim.is_some() && table.npy.is_none()) {
        if !ctx.faulty(&raw.span) {
            let message = format!("axis `{name}` needs exactly one of `pow2`, `range`, `int` and `npy`");
            ctx.fault(Diagnostic::at(raw.span.clone(), message));
        }
        return Vec::new();
    }
    if let Some(steps) = &table.pow2 {
        return powers(ctx, name, steps);
    }
    if let Some(files) = &table.npy {
        let dimension = table.dim.as_ref().map_or(0, |dimension| dimension.value);
        return files.as_slice().iter().filter_map(|file| extent(ctx, file, dimension)).collect();
    }
    if let Some(steps) = &table.range {
        let values = stepped(ctx, name, "range", steps);
        return values.into_iter().map(|value| (Value::Int(value), steps.span.clone())).collect();
    }
    let listed = table.int.iter().flat_map(|list| &list.value);
    listed.filter_map(|Expr(expression)| Some((integer(ctx, name, expression)?, expression.span.clone()))).collect()
}

/// Extent of a file's array along a dimension.
fn extent(ctx: &mut Context, file: &At<String>, dimension: u64) -> Option<(Value, Span)> {
    let path = ctx.files.path_beside(&file.value);
    if !ctx.is_inside(&path, &file.span) {
        return None;
    }
    let header = match npy::Header::read(&path) {
        Ok(header) => header,
        Err(error) => {
            ctx.unreadable(&path, &file.span, &error);
            return None;
        }
    };
    let extent = usize::try_from(dimension).ok().and_then(|dimension| header.shape().get(dimension));
    let Some(extent) = extent.and_then(|extent| i64::try_from(*extent).ok()) else {
        let message =
            format!("`{}` has shape {:?}, so there is no dimension {dimension}", path.display(), header.shape());
        ctx.fault(Diagnostic::at(file.span.clone(), message).hint("dimensions are 0-based"));
        return None;
    };
    Some((Value::Int(extent), file.span.clone()))
}

fn powers(ctx: &mut Context, name: &str, steps: &At<Vec<At<i64>>>) -> Vec<(Value, Span)> {
    for exponent in steps.value.iter().take(2).filter(|exponent| !(0..=62).contains(&exponent.value)) {
        let message = format!("exponent {} of axis `{name}` is out of range", exponent.value);
        let hint = "`pow2` takes exponents from 0 to 62; each stands for that power of 2";
        ctx.fault(Diagnostic::at(exponent.span.clone(), message).hint(hint));
    }
    if ctx.faulty(&steps.span) {
        return Vec::new();
    }
    let exponents = stepped(ctx, name, "pow2", steps);
    exponents.into_iter().map(|exponent| (Value::Int(1 << exponent), steps.span.clone())).collect()
}

/// `first, first + step, …` up to `last`, which is included only if a step reaches it.
fn stepped(ctx: &mut Context, name: &str, key: &str, steps: &At<Vec<At<i64>>>) -> Vec<i64> {
    let numbers: Vec<i64> = steps.value.iter().map(|at| at.value).collect();
    let (first, last, step) = match numbers.as_slice() {
        [first, last] => (*first, *last, 1),
        [first, last, step] => (*first, *last, *step),
        _ => {
            if !ctx.faulty(&steps.span) {
                let message = format!("`{key}` of axis `{name}` takes [first, last] or [first, last, step]");
                ctx.fault(Diagnostic::at(steps.span.clone(), message));
            }
            return Vec::new();
        }
    };
    let problem = if step < 1 {
        Some(format!("the step of axis `{name}` must be at least 1, not {step}"))
    } else if first > last {
        Some(format!("axis `{name}` is empty: its first value {first} is greater than its last {last}"))
    } else if last.checked_sub(first).is_none_or(|extent| extent / step >= MOST_VALUES - ctx.axis_values) {
        Some(format!("with axis `{name}`, the axes have more than {MOST_VALUES} values in total"))
    } else {
        None
    };
    if let Some(message) = problem {
        ctx.fault(Diagnostic::at(steps.span.clone(), message));
        return Vec::new();
    }
    (0..=(last - first) / step).map(|i| first + i * step).collect()
}

/// Value of an integer expression that contains no names.
fn integer(ctx: &mut Context, name: &str, expression: &runner_experiment::Expression) -> Option<Value> {
    if let Some(used) = expression.names().iter().next() {
        let message = format!("a value of axis `{name}` cannot depend on `{used}`");
        ctx.fault(
            Diagnostic::at(expression.place_of(used), message)
                .hint("values of axes are numbers; derive others from them in [let]"),
        );
        return None;
    }
    match ctx.constant(expression)? {
        value @ Value::Int(_) => Some(value),
        other => {
            let message = format!("axis `{name}` needs integers here, found the {} {other}", other.kind());
            ctx.fault(Diagnostic::at(expression.span.clone(), message));
            None
        }
    }
}
