//! Reference expressions: functions over buffers, with expressions for numbers.
//!
//! Examples are `sum(partial)`, `matmul(transpose(a, m, k), b, m, n, k)`, `a * x + y`, a single buffer, or a number
//! that every element must equal. The first arguments of a reference function are buffers or other reference functions,
//! the rest are integers. Only a scope tells whether a name in arithmetic is a buffer or a number.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::node::{Callee, Kind, Operator, Syntax};
use super::{ExprError, Function, Parsed, Program, Scope, call, parser};
use crate::diagnostics::nearest;
use crate::format::plural;
use runner_types::{Elementwise, RefExpr, RefFunction, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct RefProgram {
    text: Arc<str>,
    root: Node,
    names: Box<Names>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Names {
    buffers: BTreeSet<String>,
    /// Names that may be buffers or numbers.
    either: BTreeSet<String>,
    numbers: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Name of a buffer, with its byte range in the text.
    Buffer(String, Range<usize>),
    Number(Program),
    /// Elementwise arithmetic, or arithmetic on numbers if all names are numbers.
    Arithmetic {
        operation: Elementwise,
        operands: Vec<Node>,
        /// The whole expression as arithmetic on numbers; `None` if some part cannot be a number.
        number: Option<Program>,
    },
    Call {
        function: RefFunction,
        buffers: Vec<Node>,
        integers: Vec<Program>,
    },
}

/// Parses a reference expression. Errors point into `text`.
pub fn parse(text: &str) -> Result<RefProgram, ExprError> {
    let whole: Arc<str> = text.into();
    let root = Reader { text: &whole }.node(parser::parse_indexed(text, 0..text.len())?)?;
    let mut names = Names::default();
    root.collect(&mut names, true);
    Ok(RefProgram { text: whole, root, names: Box::new(names) })
}

struct Reader<'a> {
    text: &'a Arc<str>,
}

impl Reader<'_> {
    fn node(&self, syntax: Syntax) -> Result<Node, ExprError> {
        if let Some((operation, operands)) = arithmetic(&syntax) {
            return self.arithmetic(&syntax, operation, operands);
        }
        match syntax.kind {
            Kind::Name(name) => Ok(Node::Buffer(name, syntax.span)),
            Kind::Call(callee, arguments) => match function(&callee, arguments.len())? {
                Some(function) => self.call(function, callee, arguments),
                None => self.number(Syntax { kind: Kind::Call(callee, arguments), ..syntax }).map(Node::Number),
            },
            _ => self.number(syntax).map(Node::Number),
        }
    }

    /// Arithmetic on operands. More than two are combined left to right.
    fn arithmetic(&self, whole: &Syntax, operation: Elementwise, operands: &[Syntax]) -> Result<Node, ExprError> {
        let mut nodes = operands.iter().map(|operand| self.node(operand.clone())).collect::<Result<Vec<_>, _>>()?;
        let mut names = Names::default();
        for node in &nodes {
            node.collect(&mut names, true);
        }
        let is_number = names.buffers.is_empty() && nodes.iter().all(|node| matches!(node, Node::Number(_)));
        if is_number {
            return self.number(whole.clone()).map(Node::Number);
        }
        let number = self.number(whole.clone()).ok();
        let later = nodes.split_off(nodes.len().min(2));
        let first =
            Node::Arithmetic { operation, operands: nodes, number: number.clone().filter(|_| later.is_empty()) };
        Ok(later.into_iter().fold(first, |left, right| Node::Arithmetic {
            operation,
            operands: vec![left, right],
            number: number.clone(),
        }))
    }

    fn call(&self, function: RefFunction, callee: Callee, mut arguments: Vec<Syntax>) -> Result<Node, ExprError> {
        let wanted = function.buffers() + function.integers();
        if arguments.len() != wanted {
            let wanted = plural(wanted as u64, "argument");
            let message = format!("`{}` takes {wanted}, not {}", function.name(), arguments.len());
            return Err(ExprError::new(message).hint(function.signature().to_string()).at(callee.at));
        }
        let integers = arguments.split_off(function.buffers());
        let buffers = arguments.into_iter().map(|b| self.operand(function, b)).collect::<Result<_, _>>()?;
        let integers = integers.into_iter().map(|i| self.number(i)).collect::<Result<_, _>>()?;
        Ok(Node::Call { function, buffers, integers })
    }

    /// Argument of a reference function: a buffer or the result of another function.
    fn operand(&self, function: RefFunction, syntax: Syntax) -> Result<Node, ExprError> {
        let at = syntax.span.clone();
        let refused = |message| Err(ExprError::new(message).hint(function.signature().to_string()).at(at));
        match self.node(syntax)? {
            Node::Call { function: inner, .. } if inner.is_reduction() => {
                refused(format!("`{}` returns one number, but `{}` takes a buffer", inner.name(), function.name()))
            }
            Node::Number(_) => refused(format!("`{}` takes a buffer here, not a number", function.name())),
            node => Ok(node),
        }
    }

    fn number(&self, syntax: Syntax) -> Result<Program, ExprError> {
        let span = syntax.span.clone();
        Ok(Program::new(self.text, span, call::resolve(syntax)?))
    }
}

/// Operation and operands, if the syntax is arithmetic that works elementwise.
fn arithmetic<'s, 't>(syntax: &'s Syntax<'t>) -> Option<(Elementwise, &'s [Syntax<'t>])> {
    Some(match &syntax.kind {
        Kind::Negate(inner) => (Elementwise::Negate, std::slice::from_ref(&**inner)),
        Kind::Binary(Operator::Add, sides) => (Elementwise::Add, &**sides),
        Kind::Binary(Operator::Subtract, sides) => (Elementwise::Subtract, &**sides),
        Kind::Binary(Operator::Multiply, sides) => (Elementwise::Multiply, &**sides),
        Kind::Binary(Operator::Divide, sides) => (Elementwise::Divide, &**sides),
        Kind::Binary(Operator::Remainder, sides) => (Elementwise::Remainder, &**sides),
        Kind::Binary(Operator::Less, sides) => (Elementwise::Less, &**sides),
        Kind::Binary(Operator::LessEqual, sides) => (Elementwise::LessOrEqual, &**sides),
        Kind::Binary(Operator::Greater, sides) => (Elementwise::Greater, &**sides),
        Kind::Binary(Operator::GreaterEqual, sides) => (Elementwise::GreaterOrEqual, &**sides),
        Kind::Binary(Operator::Equal, sides) => (Elementwise::Equal, &**sides),
        Kind::Binary(Operator::NotEqual, sides) => (Elementwise::NotEqual, &**sides),
        Kind::And(parts) => (Elementwise::And, parts),
        Kind::Or(parts) => (Elementwise::Or, parts),
        Kind::Not(inner) => (Elementwise::Not, std::slice::from_ref(&**inner)),
        Kind::Call(callee, arguments) => match (callee.name, arguments.as_slice()) {
            ("min", arguments @ [_, _, ..]) => (Elementwise::Min, arguments),
            ("max", arguments @ [_, _, ..]) => (Elementwise::Max, arguments),
            ("abs", arguments @ [_]) => (Elementwise::Abs, arguments),
            ("sqrt", arguments @ [_]) => (Elementwise::Sqrt, arguments),
            _ => return None,
        },
        _ => return None,
    })
}

/// The called reference function; `None` for a function on numbers.
fn function(callee: &Callee, given: usize) -> Result<Option<RefFunction>, ExprError> {
    let is_arithmetic = Function::from_name(callee.name).is_some();
    match RefFunction::ALL.into_iter().find(|f| f.name() == callee.name) {
        // With two or more arguments, `min` and `max` are functions on numbers.
        Some(_) if is_arithmetic && given > 1 => Ok(None),
        Some(function) => Ok(Some(function)),
        None if is_arithmetic => Ok(None),
        None => Err(unknown(callee)),
    }
}

fn unknown(callee: &Callee) -> ExprError {
    let known = || RefFunction::ALL.iter().map(|f| f.name());
    let error = ExprError::new(format!("there is no reference function `{}`", callee.name)).at(callee.at.clone());
    match nearest(callee.name, known()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("known functions: {}", known().collect::<Vec<_>>().join(", "))),
    }
}

impl Node {
    /// Collects the names. A name in arithmetic, or one that is the whole expression, may also be a number.
    fn collect(&self, names: &mut Names, may_be_number: bool) {
        match self {
            Self::Buffer(name, _) => {
                names.buffers.insert(name.clone());
                if may_be_number {
                    names.either.insert(name.clone());
                }
            }
            Self::Number(program) => names.numbers.extend(program.names().iter().cloned()),
            Self::Arithmetic { operands, .. } => {
                for operand in operands {
                    operand.collect(names, true);
                }
            }
            Self::Call { buffers: operands, integers, .. } => {
                for operand in operands {
                    operand.collect(names, false);
                }
                for program in integers {
                    names.numbers.extend(program.names().iter().cloned());
                }
            }
        }
    }

    fn place_of(&self, name: &str) -> Option<Range<usize>> {
        match self {
            Self::Buffer(found, at) => (found == name).then(|| at.clone()),
            Self::Number(program) => program.place_of(name),
            Self::Arithmetic { operands, .. } => operands.iter().find_map(|operand| operand.place_of(name)),
            Self::Call { buffers, integers, .. } => {
                let buffer = buffers.iter().find_map(|buffer| buffer.place_of(name));
                buffer.or_else(|| integers.iter().find_map(|program| program.place_of(name)))
            }
        }
    }

    fn is_part_of_buffer(&self) -> bool {
        match self {
            Self::Buffer(..) => true,
            Self::Call { function: RefFunction::Copy | RefFunction::Slice, buffers, .. } => {
                buffers.iter().all(Self::is_part_of_buffer)
            }
            Self::Number(_) | Self::Arithmetic { .. } | Self::Call { .. } => false,
        }
    }

    fn resolve(&self, scope: &Scope) -> Result<RefExpr, ExprError> {
        match self {
            Self::Buffer(name, _) => Ok(RefExpr::Buffer(name.clone())),
            Self::Number(program) => constant(program, scope),
            Self::Arithmetic { operation, operands, number } => {
                let is_known = |program: &&Program| program.names().iter().all(|name| scope.get(name).is_some());
                if let Some(program) = number.as_ref().filter(is_known) {
                    return constant(program, scope);
                }
                let operands =
                    operands.iter().map(|operand| operand.resolve_operand(scope)).collect::<Result<_, _>>()?;
                Ok(RefExpr::Elementwise { operation: *operation, operands })
            }
            Self::Call { function, buffers, integers } => {
                let buffers = buffers.iter().map(|b| b.resolve(scope)).collect::<Result<_, _>>()?;
                let extent = |program: &Program| program.evaluate_u64(scope).map(|extent| extent as i64);
                let integers = integers.iter().map(extent).collect::<Result<_, _>>()?;
                Ok(RefExpr::Call { function: *function, buffers, integers })
            }
        }
    }
}

impl Node {
    /// Resolves an operand of arithmetic or the whole expression. Either may be the name of a number.
    fn resolve_operand(&self, scope: &Scope) -> Result<RefExpr, ExprError> {
        let Self::Buffer(name, at) = self else { return self.resolve(scope) };
        match scope.get(name) {
            Some(value @ (Value::Int(_) | Value::Float(_))) => Ok(RefExpr::Constant(value.clone())),
            Some(other) => {
                let described = super::describe(other);
                let message = format!("expected a number or a buffer, but `{name}` is {described}");
                Err(ExprError::new(message).at(at.clone()))
            }
            None => self.resolve(scope),
        }
    }
}

fn constant(program: &Program, scope: &Scope) -> Result<RefExpr, ExprError> {
    match program.evaluate(scope)? {
        value @ (Value::Int(_) | Value::Float(_)) => Ok(RefExpr::Constant(value)),
        other => Err(program.wrong_kind(scope, &other, "a number or a buffer")),
    }
}

impl Parsed for RefProgram {
    fn parse(text: &str) -> Result<Self, ExprError> {
        parse(text)
    }

    fn text(&self) -> &str {
        self.text()
    }

    fn names(&self) -> &BTreeSet<String> {
        self.names()
    }

    fn place_of(&self, name: &str) -> Option<Range<usize>> {
        self.root.place_of(name)
    }
}

impl RefProgram {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names used as buffers. Some may turn out to be numbers: see [`Self::either`].
    pub fn buffers(&self) -> &BTreeSet<String> {
        &self.names.buffers
    }

    /// Names in arithmetic, or a name that is the whole expression. Numbers if the scope has them, buffers otherwise.
    pub fn either(&self) -> &BTreeSet<String> {
        &self.names.either
    }

    pub fn names(&self) -> &BTreeSet<String> {
        &self.names.numbers
    }

    /// The name, if the expression is just a name: a buffer, or a number if the scope has it.
    pub fn bare(&self) -> Option<&str> {
        match &self.root {
            Node::Buffer(name, _) => Some(name),
            _ => None,
        }
    }

    /// Whether its elements come unchanged from a buffer: the buffer itself, a copy, or a slice.
    pub fn is_part_of_buffer(&self) -> bool {
        self.root.is_part_of_buffer()
    }

    pub fn resolve(&self, scope: &Scope) -> Result<RefExpr, ExprError> {
        self.root.resolve_operand(scope)
    }
}
