//! Evaluates parsed expressions.
//!
//! Never panics, never wraps, never returns infinity or NaN. An error names the failing part and its values.

use std::collections::BTreeSet;

use super::function::Rule;
use super::node::{Kind, Node, Operator};
use super::operand::{Operand, Refusal, Worked, float, int};
use super::{ExprError, Function, Program, Scope};
use crate::diagnostics::nearest;
use runner_types::Value;

/// An error at a node. The message with the values is built only when evaluation ends.
struct Fault<'a> {
    node: &'a Node,
    refusal: Refusal,
}

type Result<'a, T> = std::result::Result<T, Box<Fault<'a>>>;

pub fn evaluate(program: &Program, scope: &Scope) -> std::result::Result<Value, ExprError> {
    match work(&program.root, scope) {
        Ok(operand) => Ok(operand.into_value()),
        Err(fault) => Err(explain(program, scope, *fault)),
    }
}

/// Value of part of an expression; `None` if it cannot be evaluated.
pub fn part(node: &Node, scope: &Scope) -> Option<Value> {
    work(node, scope).ok().map(Operand::into_value)
}

fn explain(program: &Program, scope: &Scope, Fault { node, refusal }: Fault) -> ExprError {
    let mut names = BTreeSet::new();
    node.collect_names(&mut names);
    let part = program.text.get(node.span.clone()).unwrap_or_default();
    let error = ExprError::new(format!("{} in `{part}`", refusal.what)).at(node.span.clone());
    let error = error.with_values(names.into_iter(), scope);
    match refusal.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn work<'a>(node: &'a Node, scope: &'a Scope) -> Result<'a, Operand<'a>> {
    let fault = |refusal| Box::new(Fault { node, refusal });
    match &node.kind {
        Kind::Literal(value) => Ok(Operand::new(value)),
        Kind::Name(name) => scope.get(name).map(Operand::new).ok_or_else(|| fault(undefined(name, scope))),
        Kind::Negate(inner) => match work(inner, scope)? {
            Operand::Int(value) => int(value.checked_neg()),
            Operand::Float(value) => Ok(Operand::Float(-value)),
            other => Err(Refusal::new(format!("expected a number, not {},", other.kind()))),
        }
        .map_err(fault),
        Kind::Not(inner) => Ok(Operand::Bool(!truth(node, inner, scope)?)),
        Kind::Binary(operator, sides) => {
            let [left, right] = &**sides;
            binary(*operator, work(left, scope)?, work(right, scope)?).map_err(fault)
        }
        Kind::And(parts) => chain(node, parts, scope, false),
        Kind::Or(parts) => chain(node, parts, scope, true),
        Kind::In(value, list) => {
            let value = work(value, scope)?;
            for item in list {
                if equal(value, work(item, scope)?).map_err(fault)? {
                    return Ok(Operand::Bool(true));
                }
            }
            Ok(Operand::Bool(false))
        }
        Kind::Call(function, arguments) => match (function.rule(), arguments.as_slice()) {
            (Rule::Select, [condition, yes, no]) => work(if truth(node, condition, scope)? { yes } else { no }, scope),
            (Rule::Fold(of_integers, of_floats), [first, rest @ ..]) => {
                let number = |argument| match work(argument, scope)? {
                    operand if operand.number().is_some() => Ok(operand),
                    other => Err(fault(not_taken(*function, "numbers", other))),
                };
                let mut best = number(first)?;
                for argument in rest {
                    best = match (best, number(argument)?) {
                        (Operand::Int(a), Operand::Int(b)) => Operand::Int(of_integers(a, b)),
                        (a, b) => {
                            float(of_floats(a.number().unwrap_or(0.0), b.number().unwrap_or(0.0))).map_err(fault)?
                        }
                    };
                }
                Ok(best)
            }
            (Rule::Integers(rule), [a, b]) => match (work(a, scope)?, work(b, scope)?) {
                (Operand::Int(a), Operand::Int(b)) => rule(a, b).map_err(fault),
                (a, b) => {
                    let (name, a, b) = (function.name(), a.kind(), b.kind());
                    Err(fault(Refusal::new(format!("`{name}` takes integers, not {a} and {b},"))))
                }
            },
            (Rule::One(takes, rule), [a]) => {
                let operand = work(a, scope)?;
                rule(operand).unwrap_or_else(|| Err(not_taken(*function, takes, operand))).map_err(fault)
            }
            _ => {
                let (name, given) = (function.name(), arguments.len());
                Err(fault(Refusal::new(format!("`{name}` does not take {given} arguments"))))
            }
        },
    }
}

fn undefined(name: &str, scope: &Scope) -> Refusal {
    let refusal = Refusal::new(format!("`{name}` has no value"));
    match nearest(name, scope.iter().map(|(known, _)| known)) {
        Some(known) => refusal.hint(format!("did you mean `{known}`?")),
        None => refusal,
    }
}

fn not_taken(function: Function, takes: &str, operand: Operand) -> Refusal {
    Refusal::new(format!("`{}` takes {takes}, not {},", function.name(), operand.kind()))
}

fn truth<'a>(node: &'a Node, part: &'a Node, scope: &'a Scope) -> Result<'a, bool> {
    match work(part, scope)? {
        Operand::Bool(value) => Ok(value),
        other => {
            let refusal = Refusal::new(format!("expected a bool, not {},", other.kind()));
            Err(Box::new(Fault { node, refusal }))
        }
    }
}

fn chain<'a>(node: &'a Node, parts: &'a [Node], scope: &'a Scope, ends_at: bool) -> Result<'a, Operand<'a>> {
    for part in parts {
        if truth(node, part, scope)? == ends_at {
            return Ok(Operand::Bool(ends_at));
        }
    }
    Ok(Operand::Bool(!ends_at))
}

fn binary<'a>(operator: Operator, left: Operand<'a>, right: Operand<'a>) -> Worked<'a> {
    match operator {
        Operator::Equal => Ok(Operand::Bool(equal(left, right)?)),
        Operator::NotEqual => Ok(Operand::Bool(!equal(left, right)?)),
        Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => {
            order(operator, left, right)
        }
        _ => match (left, right) {
            (Operand::Int(a), Operand::Int(b)) => integers(operator, a, b),
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => floats(operator, a, b),
                _ => Err(mismatch(operator, a, b)),
            },
        },
    }
}

fn mismatch(operator: Operator, left: Operand, right: Operand) -> Refusal {
    Refusal::new(format!("`{}` does not take {} and {}", operator.symbol(), left.kind(), right.kind()))
}

fn equal(left: Operand, right: Operand) -> std::result::Result<bool, Refusal> {
    match (left, right) {
        (Operand::Int(a), Operand::Int(b)) => Ok(a == b),
        (Operand::Bool(a), Operand::Bool(b)) => Ok(a == b),
        (a, b) => match (a.number().zip(b.number()), a.text().zip(b.text())) {
            (Some((a, b)), _) => Ok(a.total_cmp(&b).is_eq() || (a == 0.0 && b == 0.0)),
            (_, Some((a, b))) => Ok(a == b),
            _ => Err(mismatch(Operator::Equal, a, b)),
        },
    }
}

fn order<'a>(operator: Operator, left: Operand, right: Operand) -> Worked<'a> {
    let ordering = match (left, right) {
        (Operand::Int(a), Operand::Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.number().zip(b.number()).and_then(|(a, b)| a.partial_cmp(&b)),
    };
    let ordering = ordering.ok_or_else(|| mismatch(operator, left, right))?;
    Ok(Operand::Bool(match operator {
        Operator::Less => ordering.is_lt(),
        Operator::LessEqual => ordering.is_le(),
        Operator::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    }))
}

fn integers<'a>(operator: Operator, a: i64, b: i64) -> Worked<'a> {
    match operator {
        Operator::Add => int(a.checked_add(b)),
        Operator::Subtract => int(a.checked_sub(b)),
        Operator::Multiply => int(a.checked_mul(b)),
        Operator::Divide | Operator::Remainder if b == 0 => Err(Refusal::new("division by zero")),
        Operator::Divide => int(a.checked_div(b)),
        Operator::Remainder => int(a.checked_rem(b)),
        Operator::Power => power(a, b),
        Operator::ShiftLeft | Operator::ShiftRight if !(0..=62).contains(&b) => {
            Err(Refusal::new("a shift by fewer than 0 or more than 62 bits"))
        }
        Operator::ShiftLeft => int(a.checked_mul(1 << b)),
        Operator::ShiftRight => Ok(Operand::Int(a >> b)),
        _ => Err(mismatch(operator, Operand::Int(a), Operand::Int(b))),
    }
}

fn power<'a>(base: i64, exponent: i64) -> Worked<'a> {
    match (base, u32::try_from(exponent)) {
        (_, Ok(exponent)) => int(base.checked_pow(exponent)),
        _ if exponent < 0 => {
            Err(Refusal::new("a negative power of an integer").hint("make the base a float, as in 2.0 ** -3"))
        }
        (0 | 1, _) => Ok(Operand::Int(base)),
        (-1, _) => Ok(Operand::Int(if exponent % 2 == 0 { 1 } else { -1 })),
        _ => int(None),
    }
}

fn floats<'a>(operator: Operator, a: f64, b: f64) -> Worked<'a> {
    match operator {
        Operator::Add => float(a + b),
        Operator::Subtract => float(a - b),
        Operator::Multiply => float(a * b),
        Operator::Divide | Operator::Remainder if b == 0.0 => Err(Refusal::new("division by zero")),
        Operator::Divide => float(a / b),
        Operator::Remainder => float(a % b),
        Operator::Power => float(a.powf(b)),
        _ => Err(mismatch(operator, Operand::Float(a), Operand::Float(b))),
    }
}
