//! From rhai's syntax tree to [`Node`]: keeps the arithmetic, refuses the rest by name.

use std::collections::BTreeSet;
use std::ops::Range;

use rhai::{Expr, FnCallExpr, LexError, ParseError, ParseErrorType, Position, Stmt};

use super::node::{Kind, Node, Operator};
use super::{ExprError, Function, Program};
use crate::diagnostics::nearest;
use crate::model::{ElementType, RefFunction, Value};

/// The one expression of a syntax tree.
pub fn expression<'a>(syntax: &'a rhai::AST, text: &str) -> Result<&'a Expr, ExprError> {
    match syntax.statements() {
        [Stmt::Expr(expression)] => Ok(expression),
        _ => Err(refused("a statement", 0..text.len())),
    }
}

/// Lowers a whole expression.
pub fn program(text: &str, expression: &Expr) -> Result<Program, ExprError> {
    let root = node(expression, text)?;
    let mut names = BTreeSet::new();
    root.collect_names(&mut names);
    let names = names.into_iter().map(str::to_owned).collect();
    Ok(Program { text: text.into(), root, names })
}

/// Lowers one node and what is below it.
pub fn node(expression: &Expr, text: &str) -> Result<Node, ExprError> {
    let at = token(text, expression.position());
    let literal = |value| Ok(Node { kind: Kind::Literal(value), span: at.clone() });
    match expression {
        Expr::IntegerConstant(value, ..) => Ok(number(Value::Int(*value), text, at)),
        Expr::FloatConstant(value, ..) => Ok(number(Value::Float(**value), text, at)),
        Expr::BoolConstant(value, ..) => literal(Value::Bool(*value)),
        Expr::StringConstant(..) if text[at.start..].starts_with('`') => Err(backquoted(at)),
        Expr::StringConstant(value, ..) => literal(Value::from_text(value)),
        Expr::Variable(variable, ..) => name(&variable.1, at),
        Expr::And(parts, ..) => chain(parts, text, Kind::And),
        Expr::Or(parts, ..) => chain(parts, text, Kind::Or),
        Expr::FnCall(call, ..) if is_membership(call, &text[at.start..]) => membership(call, text),
        Expr::FnCall(call, ..) if call.is_operator_call() => operation(call, text, at),
        Expr::FnCall(call, ..) => function(call, text, at),
        Expr::CharConstant(..) => Err(refused("a text in single quotes", at).hint("use double quotes")),
        Expr::InterpolatedString(..) => Err(backquoted(at)),
        Expr::Array(..) => Err(refused("a list", at).hint("lists stand only after `in`")),
        Expr::MethodCall(..) | Expr::Dot(..) | Expr::Property(..) => {
            Err(refused("a method call", at).hint("write it as a function: f(x)"))
        }
        Expr::Index(..) => Err(refused("an index", at)),
        Expr::Map(..) => Err(refused("a map", at)),
        Expr::Coalesce(..) => Err(refused("`??`", at)),
        Expr::Stmt(..) => Err(refused("a statement", at).hint("use select(condition, a, b) in place of `if`")),
        _ => Err(refused("this", at)),
    }
}

/// What rhai itself refuses, in our words where they help.
pub fn syntax_error(error: &ParseError, text: &str) -> ExprError {
    let at = token(text, error.position());
    let found = &text[at.clone()];
    let message = match error.err_type() {
        ParseErrorType::UnexpectedEOF => "the expression ends too early".to_owned(),
        ParseErrorType::Reserved(word) => format!("`{word}` is a reserved word and cannot be a name"),
        ParseErrorType::ExprTooDeep => format!("the expression nests deeper than {} levels", super::MAX_DEPTH),
        ParseErrorType::BadInput(LexError::UnexpectedInput(said) | LexError::ImproperSymbol(_, said))
            if said.starts_with('\'') =>
        {
            // An operator of another language: rhai names it, and jokes.
            format!("`{}` is no operator", said.split('\'').nth(1).unwrap_or(found))
        }
        other => lowercase(&other.to_string()),
    };
    let error = ExprError::new(message).at(at.clone());
    match found {
        "!==" => error.hint("compare with `!=`"),
        "=" | "===" => error.hint("compare with `==`"),
        "&" | "|" => error.hint("use `&&` and `||`"),
        "^" => error.hint("a power is written `**`"),
        "if" | "switch" => error.hint("use select(condition, a, b)"),
        "let" | "while" | "for" | "loop" | "fn" | ";" => error.hint("only expressions are read, no statements"),
        _ => error,
    }
}

/// A number; rhai has taken the sign before it into the value.
fn number(value: Value, text: &str, at: Range<usize>) -> Node {
    let digits = text[at.start..].find(|c: char| c.is_ascii_digit()).map_or(at.start, |i| at.start + i);
    let end = if text[at.clone()] == *"-" { digits + token_length(&text[digits..]) } else { at.end };
    Node { kind: Kind::Literal(value), span: at.start..end }
}

fn name(name: &str, at: Range<usize>) -> Result<Node, ExprError> {
    if let Ok(element) = name.parse::<ElementType>() {
        let message = format!("`{element}` is an element type, not a name");
        return Err(ExprError::new(message).hint(format!("write it in double quotes: \"{element}\"")).at(at));
    }
    Ok(Node { kind: Kind::Name(name.to_owned()), span: at })
}

fn chain(parts: &[Expr], text: &str, kind: fn(Vec<Node>) -> Kind) -> Result<Node, ExprError> {
    let parts = nodes(parts, text)?;
    let span = covering(&parts, text);
    Ok(Node { kind: kind(parts), span })
}

fn operation(call: &FnCallExpr, text: &str, at: Range<usize>) -> Result<Node, ExprError> {
    let mut arguments = nodes(&call.args, text)?;
    let mut span = covering(&arguments, text);
    span.start = span.start.min(at.start);
    if let (Some(operator), 2) = (Operator::from_symbol(&call.name), arguments.len())
        && let (Some(right), Some(left)) = (arguments.pop(), arguments.pop())
    {
        return Ok(Node { kind: Kind::Binary(operator, Box::new([left, right])), span });
    }
    match (call.name.as_str(), arguments.pop()) {
        ("-", Some(inner)) => Ok(Node { kind: Kind::Negate(Box::new(inner)), span }),
        ("+", Some(inner)) => Ok(inner),
        ("!", Some(inner)) => Ok(Node { kind: Kind::Not(Box::new(inner)), span }),
        ("^", _) => Err(refused("`^`", at).hint("a power is written `**`")),
        ("&" | "|", _) => Err(refused(&format!("`{}`", call.name), at).hint("use `&&` and `||`")),
        (symbol, _) => Err(refused(&format!("`{symbol}`"), at)),
    }
}

/// Whether a call of `contains` is how rhai reads `in` or `!in`: the text says so.
fn is_membership(call: &FnCallExpr, at: &str) -> bool {
    call.name == "contains" && (at.starts_with("in") || at.starts_with("!in"))
}

/// `value in [a, b]`; rhai hands it over as `contains(list, value)`.
fn membership(call: &FnCallExpr, text: &str) -> Result<Node, ExprError> {
    let [list, value] = call.args.as_slice() else { return Err(ExprError::new("`in` needs two sides")) };
    let value = node(value, text)?;
    let Expr::Array(items, ..) = list else {
        return Err(ExprError::new("`in` needs a list on its right, as in `block in [128, 256]`").at(value.span));
    };
    let list = nodes(items, text)?;
    let last = list.last().map_or(value.span.end, |item| item.span.end);
    let end = text[last..].find(']').map_or(last, |i| last + i + 1);
    let span = value.span.start..end;
    Ok(Node { kind: Kind::In(Box::new(value), list), span })
}

fn function(call: &FnCallExpr, text: &str, at: Range<usize>) -> Result<Node, ExprError> {
    let name = call.name.as_str();
    let Some(function) = Function::from_name(name) else { return Err(unknown_function(name, at)) };
    let (least, most) = function.arity();
    let given = call.args.len();
    if given < least || given > most {
        let wanted = match (least, most) {
            (1, 1) => "1 argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, _) => format!("at least {least} arguments"),
        };
        return Err(ExprError::new(format!("`{name}` takes {wanted}, not {given}")).hint(function.signature()).at(at));
    }
    let arguments = nodes(&call.args, text)?;
    let last = arguments.last().map_or(at.end, |argument| argument.span.end);
    let span = at.start..closing(text, last);
    Ok(Node { kind: Kind::Call(function, arguments), span })
}

fn unknown_function(name: &str, at: Range<usize>) -> ExprError {
    if RefFunction::ALL.iter().any(|f| f.name() == name) {
        let message = format!("`{name}` is a reference function over buffers, and cannot be part of arithmetic");
        return ExprError::new(message).hint("in `actual` and `expect` it stands alone or inside another one").at(at);
    }
    let error = ExprError::new(format!("there is no function `{name}`")).at(at);
    match nearest(name, Function::ALL.iter().map(|f| f.name())) {
        Some(known) => error.hint(format!("did you mean `{known}`?")),
        None => error.hint(format!("there are {}", Function::ALL.map(Function::name).join(", "))),
    }
}

fn nodes(expressions: &[Expr], text: &str) -> Result<Vec<Node>, ExprError> {
    expressions.iter().map(|e| node(e, text)).collect()
}

fn backquoted(at: Range<usize>) -> ExprError {
    refused("a text in backquotes", at).hint("use double quotes")
}

fn refused(what: &str, at: Range<usize>) -> ExprError {
    ExprError::new(format!("{what} is refused here: only expressions over numbers, bools and texts are read")).at(at)
}

fn lowercase(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

/// The bytes of the token that starts at rhai's position.
pub fn token(text: &str, position: Position) -> Range<usize> {
    let (Some(line), Some(column)) = (position.line(), position.position()) else { return text.len()..text.len() };
    let start_of_line = text.split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>();
    let rest = &text[start_of_line..];
    let start = start_of_line + rest.char_indices().nth(column - 1).map_or(rest.len(), |(i, _)| i);
    start..start + token_length(&text[start..])
}

fn token_length(text: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut chars = text.char_indices().peekable();
    match chars.next() {
        None => 0,
        Some((_, '"')) => quoted_length(text),
        Some((_, c)) if c.is_ascii_digit() => text.find(|c: char| !word(c) && c != '.').unwrap_or(text.len()),
        Some((_, c)) if word(c) => text.find(|c: char| !word(c)).unwrap_or(text.len()),
        Some((_, c)) => {
            let operators = ["===", "!==", "**", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "??"];
            operators.iter().find(|o| text.starts_with(**o)).map_or(c.len_utf8(), |o| o.len())
        }
    }
}

/// Length of the text in double quotes at the start of `text`, quotes included.
pub fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

/// From the first part's start to the last one's end, widened until its parentheses are balanced.
fn covering(parts: &[Node], text: &str) -> Range<usize> {
    let start = parts.iter().map(|p| p.span.start).min().unwrap_or(0);
    let end = parts.iter().map(|p| p.span.end).max().unwrap_or(text.len());
    balanced(text, start..end)
}

fn balanced(text: &str, span: Range<usize>) -> Range<usize> {
    let (mut open, mut unopened) = (0_usize, 0_usize);
    let mut rest = &text[span.clone()];
    while let Some(c) = rest.chars().next() {
        match c {
            '(' => open += 1,
            ')' if open > 0 => open -= 1,
            ')' => unopened += 1,
            _ => {}
        }
        rest = &rest[if c == '"' { quoted_length(rest) } else { c.len_utf8() }..];
    }
    let mut wide = span;
    for _ in 0..open {
        wide.end = closing(text, wide.end);
    }
    for _ in 0..unopened {
        wide.start = text[..wide.start].rfind('(').unwrap_or(wide.start);
    }
    wide
}

/// Just past the next closing parenthesis.
fn closing(text: &str, from: usize) -> usize {
    text[from..].find(')').map_or(from, |i| from + i + 1)
}
