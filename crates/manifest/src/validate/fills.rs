//! Validates the numbers in fills: types, bounds, and whether the buffer's type can represent them.
//!
//! Separate from `buffers`, because a number can be checked only once the names of all variants are known.

use super::context::{Context, Names};
use runner_experiment::{Expression, FillSpec, StructureSpec};
use runner_lang::diagnostics::Diagnostic;
use runner_types::{ElementType, Value, nearest_bf16, nearest_f16};

pub fn check_fill(ctx: &mut Context, buffer: &str, fill: &FillSpec, types: &[ElementType], scopes: &[&Names]) {
    match fill {
        FillSpec::Constant(value) => {
            fitting(ctx, buffer, value, types, scopes);
        }
        FillSpec::Iota { start, step } => {
            fitting(ctx, buffer, start, types, scopes);
            number(ctx, step, scopes);
        }
        FillSpec::Uniform { low, high, .. } => {
            let bounds = (fitting(ctx, buffer, low, types, scopes), fitting(ctx, buffer, high, types, scopes));
            if let (Some(from), Some(to)) = bounds
                && from > to
            {
                let message = format!("the fill of `{buffer}` is empty: {from} is greater than {to}");
                ctx.fault(Diagnostic::at(low.span.clone(), message).related(high.span.clone(), "the upper bound"));
            }
        }
        FillSpec::Normal { mean, deviation, .. } => {
            number(ctx, mean, scopes);
            let deviates = number(ctx, deviation, scopes).and_then(|value| as_f64(&value));
            if let Some(value) = deviates.filter(|value| *value < 0.0) {
                let message = format!("the standard deviation of `{buffer}` is negative: {value}");
                ctx.fault(Diagnostic::at(deviation.span.clone(), message));
            }
            if let Some(element) = types.iter().find(|element| !element.is_float()) {
                let message = format!("buffer `{buffer}` holds {element}, but a normal distribution needs floats");
                ctx.fault(Diagnostic::at(mean.span.clone(), message).hint("use { uniform = [low, high] }"));
            }
        }
        FillSpec::Npy(file) | FillSpec::Raw(file) => ctx.known(&file.name, scopes),
        FillSpec::Tensor(tensor) => {
            ctx.known(&tensor.file.name, scopes);
            ctx.known(&tensor.tensor, scopes);
        }
        FillSpec::List(elements) => {
            for element in elements {
                fitting(ctx, buffer, element, types, scopes);
            }
        }
        // Checked with the buffer that it refers to.
        FillSpec::Like { .. } => {}
        FillSpec::Structured { structure, .. } => check_structure(ctx, buffer, structure, types, scopes),
    }
}

fn check_structure(
    ctx: &mut Context,
    buffer: &str,
    structure: &StructureSpec,
    types: &[ElementType],
    scopes: &[&Names],
) {
    match structure {
        StructureSpec::Sorted { low, high } => {
            fitting(ctx, buffer, low, types, scopes);
            fitting(ctx, buffer, high, types, scopes);
        }
        StructureSpec::OneHot(size) | StructureSpec::Identity(size) => {
            number(ctx, size, scopes);
        }
        StructureSpec::Dominant(columns) => {
            number(ctx, columns, scopes);
            if let Some(element) = types.iter().find(|element| !element.is_float() && !element.is_signed_integer()) {
                let message =
                    format!("buffer `{buffer}` holds {element}, but elements off the diagonal may be negative");
                ctx.fault(Diagnostic::at(columns.span.clone(), message).hint("use a signed type"));
            }
        }
        StructureSpec::Zipf { values: a, exponent: b } | StructureSpec::CsrRows { nonzeros: a, columns: b } => {
            number(ctx, a, scopes);
            number(ctx, b, scopes);
        }
        // The columns are checked with the buffer that contains the rows.
        StructureSpec::Permutation | StructureSpec::CsrColumns { .. } => {}
    }
}

/// Value of a constant, which must be a number.
fn number(ctx: &mut Context, expression: &Expression, scopes: &[&Names]) -> Option<Value> {
    ctx.known(expression, scopes);
    let value = ctx.constant(expression)?;
    if as_f64(&value).is_some() {
        return Some(value);
    }
    let message = format!("expected a number, found the {} {value}", value.kind());
    ctx.fault(Diagnostic::at(expression.span.clone(), message));
    None
}

fn as_f64(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

/// Value of a constant that all of `types` must be able to represent.
fn fitting(
    ctx: &mut Context,
    buffer: &str,
    expression: &Expression,
    types: &[ElementType],
    scopes: &[&Names],
) -> Option<f64> {
    let value = number(ctx, expression, scopes)?;
    if let Some(element) = types.iter().find(|element| !fits(&value, **element)) {
        let message = format!("{value} is not a value of {element}, which buffer `{buffer}` holds");
        ctx.fault(Diagnostic::at(expression.span.clone(), message).hint(range(*element)));
    }
    as_f64(&value)
}

fn fits(value: &Value, element: ElementType) -> bool {
    match value {
        Value::Int(value) if !element.is_float() => {
            let (low, high) = bounds(element);
            (low..=high).contains(&i128::from(*value))
        }
        Value::Int(value) => rounds_to_finite(*value as f64, element),
        Value::Float(value) => element.is_float() && rounds_to_finite(*value, element),
        _ => false,
    }
}

/// Whether the nearest value of a float type is finite: the largest value is often written rounded, e.g.
/// `3.4028235e38`.
fn rounds_to_finite(value: f64, element: ElementType) -> bool {
    match element {
        ElementType::F16 => nearest_f16(value).is_finite(),
        ElementType::Bf16 => nearest_bf16(value).is_finite(),
        ElementType::F32 => (value as f32).is_finite(),
        _ => value.is_finite(),
    }
}

fn bounds(element: ElementType) -> (i128, i128) {
    let bits = 8 * element.size() as u32;
    if element.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn largest(element: ElementType) -> f64 {
    match element {
        ElementType::F16 => half::f16::MAX.to_f64(),
        ElementType::Bf16 => half::bf16::MAX.to_f64(),
        ElementType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

fn range(element: ElementType) -> String {
    if element.is_float() {
        return format!("the largest {element} is {:e}", largest(element));
    }
    let (low, high) = bounds(element);
    format!("{element} holds the integers from {low} to {high}")
}
