//! Resolves the calls in an expression: looks up functions and checks the number of arguments.
//!
//! Separate from the parser, because claims and reference expressions share the syntax but have different functions.

use std::ops::Range;

use super::node::{Callee, Kind, Node, Syntax};
use super::{ExprError, Function};
use crate::diagnostics::nearest;
use runner_types::{ElementType, RefFunction};

/// Looks up the function of every call. Rejects names that cannot be variables.
pub fn resolve(syntax: Syntax) -> Result<Node, ExprError> {
    let kind = match syntax.kind {
        Kind::Literal(value) => Kind::Literal(value),
        Kind::Name(name) => match name.parse::<ElementType>() {
            Ok(element) => return Err(unquoted(element, syntax.span)),
            Err(_) => Kind::Name(name),
        },
        Kind::Negate(inner) => Kind::Negate(Box::new(resolve(*inner)?)),
        Kind::Not(inner) => Kind::Not(Box::new(resolve(*inner)?)),
        Kind::Binary(operator, sides) => {
            let [left, right] = *sides;
            Kind::Binary(operator, Box::new([resolve(left)?, resolve(right)?]))
        }
        Kind::And(parts) => Kind::And(all(parts)?),
        Kind::Or(parts) => Kind::Or(all(parts)?),
        Kind::In(value, list) => Kind::In(Box::new(resolve(*value)?), all(list)?),
        Kind::Call(callee, arguments) => Kind::Call(function(&callee, arguments.len())?, all(arguments)?),
    };
    Ok(Node { kind, span: syntax.span })
}

fn all(parts: Vec<Syntax>) -> Result<Vec<Node>, ExprError> {
    parts.into_iter().map(resolve).collect()
}

fn unquoted(element: ElementType, at: Range<usize>) -> ExprError {
    let message = format!("`{element}` is an element type, not a name");
    ExprError::new(message).hint(format!("write it in double quotes: \"{element}\"")).at(at)
}

fn function(callee: &Callee, given: usize) -> Result<Function, ExprError> {
    let (name, at) = (callee.name, callee.at.clone());
    let Some(function) = Function::from_name(name) else { return Err(unknown(name, at)) };
    let (least, most) = function.arity();
    if given < least || given > most {
        let wanted = match (least, most) {
            (1, 1) => "1 argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, _) => format!("at least {least} arguments"),
        };
        return Err(ExprError::new(format!("`{name}` takes {wanted}, not {given}")).hint(function.signature()).at(at));
    }
    Ok(function)
}

fn unknown(name: &str, at: Range<usize>) -> ExprError {
    if RefFunction::ALL.iter().any(|f| f.name() == name) {
        let message = format!("`{name}` is a reference function over buffers, so it cannot be part of arithmetic");
        return ExprError::new(message)
            .hint("use it only in `actual` and `expect`, alone or inside another one")
            .at(at);
    }
    let error = ExprError::new(format!("there is no function `{name}`")).at(at);
    match nearest(name, Function::ALL.iter().map(|f| f.name())) {
        Some(known) => error.hint(format!("did you mean `{known}`?")),
        None => error.hint(format!(
            "known functions: {}",
            Function::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")
        )),
    }
}
