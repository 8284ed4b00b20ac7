//! Reference expressions: functions over buffers whose numbers are expressions.
//!
//! `sum(partial)`, `matmul(transpose(a, m, k), b, m, n, k)`, a buffer alone, or a number that every element must
//! equal. The first arguments of a reference function are buffers or reference functions again, the rest integers.
//! Arithmetic on the results of reference functions is refused.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::node::{Callee, Kind, Syntax};
use super::{ExprError, Function, Parsed, Program, Scope, call, parser};
use crate::diagnostics::nearest;
use crate::format::plural;
use crate::model::{RefExpr, RefFunction, Value};

/// A parsed reference expression.
#[derive(Debug, Clone, PartialEq)]
pub struct RefProgram {
    text: Arc<str>,
    root: Node,
    buffers: BTreeSet<String>,
    names: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// The value is the buffer with this name, at this place in bytes.
    Buffer(String, Range<usize>),
    Number(Program),
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
    let (mut buffers, mut names) = (BTreeSet::new(), BTreeSet::new());
    root.collect(&mut buffers, &mut names);
    Ok(RefProgram { text: whole, root, buffers, names })
}

struct Reader<'a> {
    text: &'a Arc<str>,
}

impl Reader<'_> {
    fn node(&self, syntax: Syntax) -> Result<Node, ExprError> {
        match syntax.kind {
            Kind::Name(name) => Ok(Node::Buffer(name, syntax.span)),
            Kind::Call(callee, arguments) => match function(&callee, arguments.len())? {
                Some(function) => self.call(function, callee, arguments),
                None => self.number(Syntax { kind: Kind::Call(callee, arguments), ..syntax }).map(Node::Number),
            },
            _ => self.number(syntax).map(Node::Number),
        }
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

    /// Returns an argument of a reference function: a buffer or the result of another function.
    fn operand(&self, function: RefFunction, syntax: Syntax) -> Result<Node, ExprError> {
        let at = syntax.span.clone();
        let refused = |message| Err(ExprError::new(message).hint(function.signature().to_string()).at(at));
        match self.node(syntax)? {
            Node::Call { function: inner, .. } if inner.is_reduction() => {
                refused(format!("`{}` gives one number, and `{}` takes a buffer", inner.name(), function.name()))
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

/// Returns the reference function of a call; `None` for a function of numbers.
fn function(callee: &Callee, given: usize) -> Result<Option<RefFunction>, ExprError> {
    let is_arithmetic = Function::from_name(callee.name).is_some();
    match RefFunction::ALL.into_iter().find(|f| f.name() == callee.name) {
        // `min` and `max` are also functions of numbers, with at least two arguments.
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
        None => error.hint(format!("there are {}", known().collect::<Vec<_>>().join(", "))),
    }
}

impl Node {
    fn collect(&self, buffers: &mut BTreeSet<String>, names: &mut BTreeSet<String>) {
        match self {
            Self::Buffer(name, _) => {
                buffers.insert(name.clone());
            }
            Self::Number(program) => names.extend(program.names().iter().cloned()),
            Self::Call { buffers: operands, integers, .. } => {
                for operand in operands {
                    operand.collect(buffers, names);
                }
                for program in integers {
                    names.extend(program.names().iter().cloned());
                }
            }
        }
    }

    fn place_of(&self, name: &str) -> Option<Range<usize>> {
        match self {
            Self::Buffer(found, at) => (found == name).then(|| at.clone()),
            Self::Number(program) => program.place_of(name),
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
            Self::Number(_) | Self::Call { .. } => false,
        }
    }

    fn resolve(&self, scope: &Scope) -> Result<RefExpr, ExprError> {
        match self {
            Self::Buffer(name, _) => Ok(RefExpr::Buffer(name.clone())),
            Self::Number(program) => constant(program, scope),
            Self::Call { function, buffers, integers } => {
                let buffers = buffers.iter().map(|b| b.resolve(scope)).collect::<Result<_, _>>()?;
                let extent = |program: &Program| program.evaluate_u64(scope).map(|extent| extent as i64);
                let integers = integers.iter().map(extent).collect::<Result<_, _>>()?;
                Ok(RefExpr::Call { function: *function, buffers, integers })
            }
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
    /// Returns the text as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names in places of buffers. A name that is the whole expression is included, although it may be a
    /// number: see [`Self::bare`].
    pub fn buffers(&self) -> &BTreeSet<String> {
        &self.buffers
    }

    /// Returns the names in places of numbers.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Returns the name that is the whole expression: a buffer, or a number if the scope has it.
    pub fn bare(&self) -> Option<&str> {
        match &self.root {
            Node::Buffer(name, _) => Some(name),
            _ => None,
        }
    }

    /// Whether its elements are elements of a buffer: the buffer itself, a copy, or a slice.
    pub fn is_part_of_buffer(&self) -> bool {
        self.root.is_part_of_buffer()
    }

    /// Evaluates the numbers.
    pub fn resolve(&self, scope: &Scope) -> Result<RefExpr, ExprError> {
        match self.bare().and_then(|name| scope.get(name)) {
            Some(value @ (Value::Int(_) | Value::Float(_))) => Ok(RefExpr::Constant(value.clone())),
            Some(other) => {
                let name = self.bare().unwrap_or_default();
                Err(ExprError::new(format!(
                    "a number or a buffer is needed, and `{name}` is {}",
                    super::describe(other)
                )))
            }
            None => self.root.resolve(scope),
        }
    }
}
