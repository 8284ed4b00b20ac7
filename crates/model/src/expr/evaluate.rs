//! Evaluates parsed expressions. Never panics, never wraps, never gives infinity or NaN.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::node::{Kind, Node, Operator};
use super::{ExprError, Function, Program, Scope};
use crate::diagnostics::nearest;
use crate::model::{ElementType, Value};

/// A value during evaluation; text is borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operand<'a> {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Type(ElementType),
}

/// An error at a node; the message with its values is made only when evaluation ends.
struct Fault<'a> {
    node: &'a Node,
    what: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
}

type Worked<'a> = Result<Operand<'a>, Box<Fault<'a>>>;

pub fn evaluate(program: &Program, scope: &Scope) -> Result<Value, ExprError> {
    match work(&program.root, scope) {
        Ok(operand) => Ok(operand.into_value()),
        Err(fault) => Err(explain(program, scope, &fault)),
    }
}

/// Returns the value of a part of an expression; `None` if it has none.
pub fn part(node: &Node, scope: &Scope) -> Option<Value> {
    work(node, scope).ok().map(Operand::into_value)
}

fn explain(program: &Program, scope: &Scope, fault: &Fault) -> ExprError {
    let mut names = BTreeSet::new();
    fault.node.collect_names(&mut names);
    let part = program.text.get(fault.node.span.clone()).unwrap_or_default();
    let error = ExprError::new(format!("{} in `{part}`", fault.what)).at(fault.node.span.clone());
    let error = error.with_values(names.into_iter(), scope);
    match &fault.hint {
        Some(hint) => error.hint(hint.clone()),
        None => error,
    }
}

impl<'a> Operand<'a> {
    fn new(value: &'a Value) -> Self {
        match value {
            Value::Int(value) => Self::Int(*value),
            Value::Float(value) => Self::Float(*value),
            Value::Bool(value) => Self::Bool(*value),
            Value::Str(value) => Self::Text(value),
            Value::Type(value) => Self::Type(*value),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Int(value) => Value::Int(value),
            Self::Float(value) => Value::Float(value),
            Self::Bool(value) => Value::Bool(value),
            Self::Text(value) => Value::from_text(value),
            Self::Type(value) => Value::Type(value),
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Bool(_) => "a bool",
            Self::Text(_) => "a string",
            Self::Type(_) => "an element type",
        }
    }

    const fn number(self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Strings and element types compare by their text.
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Type(element) => Some(element.name()),
            _ => None,
        }
    }
}

impl Node {
    fn fault<T>(&self, what: impl Into<Cow<'static, str>>) -> Result<T, Box<Fault<'_>>> {
        Err(Box::new(Fault { node: self, what: what.into(), hint: None }))
    }

    fn fault_with<T>(
        &self,
        what: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) -> Result<T, Box<Fault<'_>>> {
        Err(Box::new(Fault { node: self, what: what.into(), hint: Some(hint.into()) }))
    }

    fn int(&self, value: Option<i64>) -> Worked<'_> {
        value.map_or_else(|| self.fault("integer overflow"), |value| Ok(Operand::Int(value)))
    }

    fn float(&self, value: f64) -> Worked<'_> {
        if value.is_finite() { Ok(Operand::Float(value)) } else { self.fault("the float result is not finite") }
    }
}

fn work<'a>(node: &'a Node, scope: &'a Scope) -> Worked<'a> {
    match &node.kind {
        Kind::Literal(value) => Ok(Operand::new(value)),
        Kind::Name(name) => match scope.get(name) {
            Some(value) => Ok(Operand::new(value)),
            None => undefined(node, name, scope),
        },
        Kind::Negate(inner) => match work(inner, scope)? {
            Operand::Int(value) => node.int(value.checked_neg()),
            Operand::Float(value) => Ok(Operand::Float(-value)),
            other => node.fault(format!("a number is needed, not {},", other.kind())),
        },
        Kind::Not(inner) => Ok(Operand::Bool(!truth(node, inner, scope)?)),
        Kind::Binary(operator, sides) => {
            let [left, right] = &**sides;
            binary(node, *operator, work(left, scope)?, work(right, scope)?)
        }
        Kind::And(parts) => chain(node, parts, scope, false),
        Kind::Or(parts) => chain(node, parts, scope, true),
        Kind::In(value, list) => {
            let value = work(value, scope)?;
            for item in list {
                if equal(node, value, work(item, scope)?)? {
                    return Ok(Operand::Bool(true));
                }
            }
            Ok(Operand::Bool(false))
        }
        Kind::Call(function, arguments) => call(node, *function, arguments, scope),
    }
}

fn undefined<'a>(node: &'a Node, name: &str, scope: &Scope) -> Worked<'a> {
    let what = format!("`{name}` has no value");
    match nearest(name, scope.iter().map(|(known, _)| known)) {
        Some(known) => node.fault_with(what, format!("did you mean `{known}`?")),
        None => node.fault(what),
    }
}

fn truth<'a>(node: &'a Node, part: &'a Node, scope: &'a Scope) -> Result<bool, Box<Fault<'a>>> {
    match work(part, scope)? {
        Operand::Bool(value) => Ok(value),
        other => node.fault(format!("a bool is needed, not {},", other.kind())),
    }
}

fn chain<'a>(node: &'a Node, parts: &'a [Node], scope: &'a Scope, ends_at: bool) -> Worked<'a> {
    for part in parts {
        if truth(node, part, scope)? == ends_at {
            return Ok(Operand::Bool(ends_at));
        }
    }
    Ok(Operand::Bool(!ends_at))
}

fn binary<'a>(node: &'a Node, operator: Operator, left: Operand<'a>, right: Operand<'a>) -> Worked<'a> {
    match operator {
        Operator::Equal => Ok(Operand::Bool(equal(node, left, right)?)),
        Operator::NotEqual => Ok(Operand::Bool(!equal(node, left, right)?)),
        Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => {
            order(node, operator, left, right)
        }
        _ => match (left, right) {
            (Operand::Int(a), Operand::Int(b)) => integers(node, operator, a, b),
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => floats(node, operator, a, b),
                _ => mismatch(node, operator, a, b),
            },
        },
    }
}

fn mismatch<'a, T>(node: &'a Node, operator: Operator, left: Operand, right: Operand) -> Result<T, Box<Fault<'a>>> {
    node.fault(format!("`{}` does not take {} and {}", operator.symbol(), left.kind(), right.kind()))
}

fn equal<'a>(node: &'a Node, left: Operand<'a>, right: Operand<'a>) -> Result<bool, Box<Fault<'a>>> {
    match (left, right) {
        (Operand::Int(a), Operand::Int(b)) => Ok(a == b),
        (Operand::Bool(a), Operand::Bool(b)) => Ok(a == b),
        (a, b) => match (a.number().zip(b.number()), a.text().zip(b.text())) {
            (Some((a, b)), _) => Ok(a.total_cmp(&b).is_eq() || (a == 0.0 && b == 0.0)),
            (_, Some((a, b))) => Ok(a == b),
            _ => mismatch(node, Operator::Equal, a, b),
        },
    }
}

fn order<'a>(node: &'a Node, operator: Operator, left: Operand<'a>, right: Operand<'a>) -> Worked<'a> {
    let ordering = match (left, right) {
        (Operand::Int(a), Operand::Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.number().zip(b.number()).and_then(|(a, b)| a.partial_cmp(&b)),
    };
    let Some(ordering) = ordering else { return mismatch(node, operator, left, right) };
    Ok(Operand::Bool(match operator {
        Operator::Less => ordering.is_lt(),
        Operator::LessEqual => ordering.is_le(),
        Operator::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    }))
}

fn integers(node: &Node, operator: Operator, a: i64, b: i64) -> Worked<'_> {
    match operator {
        Operator::Add => node.int(a.checked_add(b)),
        Operator::Subtract => node.int(a.checked_sub(b)),
        Operator::Multiply => node.int(a.checked_mul(b)),
        Operator::Divide | Operator::Remainder if b == 0 => node.fault("division by zero"),
        Operator::Divide => node.int(a.checked_div(b)),
        Operator::Remainder => node.int(a.checked_rem(b)),
        Operator::Power => power(node, a, b),
        Operator::ShiftLeft | Operator::ShiftRight if !(0..=62).contains(&b) => {
            node.fault("a shift by less than 0 or more than 62 bits")
        }
        Operator::ShiftLeft => node.int(a.checked_mul(1 << b)),
        Operator::ShiftRight => Ok(Operand::Int(a >> b)),
        _ => mismatch(node, operator, Operand::Int(a), Operand::Int(b)),
    }
}

fn power(node: &Node, base: i64, exponent: i64) -> Worked<'_> {
    match (base, u32::try_from(exponent)) {
        (_, Ok(exponent)) => node.int(base.checked_pow(exponent)),
        _ if exponent < 0 => {
            node.fault_with("a negative power of an integer", "make the base a float, as in 2.0 ** -3")
        }
        (0 | 1, _) => Ok(Operand::Int(base)),
        (-1, _) => Ok(Operand::Int(if exponent % 2 == 0 { 1 } else { -1 })),
        _ => node.int(None),
    }
}

fn floats(node: &Node, operator: Operator, a: f64, b: f64) -> Worked<'_> {
    match operator {
        Operator::Add => node.float(a + b),
        Operator::Subtract => node.float(a - b),
        Operator::Multiply => node.float(a * b),
        Operator::Divide | Operator::Remainder if b == 0.0 => node.fault("division by zero"),
        Operator::Divide => node.float(a / b),
        Operator::Remainder => node.float(a % b),
        Operator::Power => node.float(a.powf(b)),
        _ => mismatch(node, operator, Operand::Float(a), Operand::Float(b)),
    }
}

fn call<'a>(node: &'a Node, function: Function, arguments: &'a [Node], scope: &'a Scope) -> Worked<'a> {
    match (function, arguments) {
        (Function::Select, [condition, yes, no]) => work(if truth(node, condition, scope)? { yes } else { no }, scope),
        (Function::Min | Function::Max, [first, rest @ ..]) => {
            let mut best = numeric(node, function, work(first, scope)?)?;
            for argument in rest {
                best = extreme(node, function, best, numeric(node, function, work(argument, scope)?)?)?;
            }
            Ok(best)
        }
        (_, [a, b]) => match (work(a, scope)?, work(b, scope)?) {
            (Operand::Int(a), Operand::Int(b)) => divisions(node, function, a, b),
            (a, b) => node.fault(format!("`{}` takes integers, not {} and {},", function.name(), a.kind(), b.kind())),
        },
        (_, [a]) => unary(node, function, work(a, scope)?),
        _ => node.fault(format!("`{}` does not take {} arguments", function.name(), arguments.len())),
    }
}

fn numeric<'a>(node: &'a Node, function: Function, operand: Operand<'a>) -> Worked<'a> {
    match operand.number() {
        Some(_) => Ok(operand),
        None => node.fault(format!("`{}` takes numbers, not {},", function.name(), operand.kind())),
    }
}

/// Returns the least or greatest of two; a float if either is one.
fn extreme<'a>(node: &'a Node, function: Function, a: Operand<'a>, b: Operand<'a>) -> Worked<'a> {
    let least = function == Function::Min;
    match (a, b) {
        (Operand::Int(a), Operand::Int(b)) => Ok(Operand::Int(if least { a.min(b) } else { a.max(b) })),
        (a, b) => match a.number().zip(b.number()) {
            Some((a, b)) => node.float(if least { a.min(b) } else { a.max(b) }),
            None => numeric(node, function, b),
        },
    }
}

fn divisions(node: &Node, function: Function, a: i64, b: i64) -> Worked<'_> {
    if b == 0 {
        return node.fault("division by zero");
    }
    let Some((quotient, remainder)) = a.checked_div(b).zip(a.checked_rem(b)) else { return node.int(None) };
    let up = i64::from(remainder != 0 && (remainder < 0) == (b < 0));
    match function {
        Function::RoundUp if b < 0 => node.fault("a multiple of a negative number"),
        Function::RoundUp => node.int((quotient + up).checked_mul(b)),
        _ => node.int(quotient.checked_add(up)),
    }
}

fn unary<'a>(node: &'a Node, function: Function, operand: Operand<'a>) -> Worked<'a> {
    match (function, operand) {
        (Function::Abs, Operand::Int(value)) => node.int(value.checked_abs()),
        (Function::Abs, Operand::Float(value)) => Ok(Operand::Float(value.abs())),
        (Function::Log2, Operand::Int(value)) if is_pow2(value) => Ok(Operand::Int(i64::from(value.trailing_zeros()))),
        (Function::Log2, Operand::Int(_)) => {
            node.fault_with("log2 of an integer that is not a power of two", "for a float write log2(float(x))")
        }
        (Function::Log2, Operand::Float(value)) if value <= 0.0 => node.fault("log2 of a number that is not positive"),
        (Function::Log2, Operand::Float(value)) => node.float(value.log2()),
        (Function::IsPow2, Operand::Int(value)) => Ok(Operand::Bool(is_pow2(value))),
        (Function::Sizeof, Operand::Type(element)) => Ok(Operand::Int(element.size() as i64)),
        (Function::Sizeof, _) => node.fault(format!("`sizeof` takes an element type, not {},", operand.kind())),
        (Function::Int, Operand::Float(value)) => to_integer(node, value),
        (Function::Int, Operand::Int(_)) => Ok(operand),
        (Function::Float | Function::Sqrt, _) => match (function, operand.number()) {
            (Function::Sqrt, Some(value)) if value < 0.0 => node.fault("square root of a negative number"),
            (Function::Sqrt, Some(value)) => node.float(value.sqrt()),
            (_, Some(value)) => node.float(value),
            (_, None) => numeric(node, function, operand),
        },
        (Function::IsPow2, _) => node.fault(format!("`is_pow2` takes an integer, not {},", operand.kind())),
        _ => node.fault(format!("`{}` takes a number, not {},", function.name(), operand.kind())),
    }
}

const fn is_pow2(value: i64) -> bool {
    value > 0 && value.count_ones() == 1
}

fn to_integer(node: &Node, value: f64) -> Worked<'_> {
    // 2^63 is the first float outside of the range; its negative is the last inside.
    let bound = 9_223_372_036_854_775_808.0;
    if (-bound..bound).contains(&value) { Ok(Operand::Int(value as i64)) } else { node.int(None) }
}
