//! Reference expressions: functions over buffers whose numbers are expressions.
//!
//! `sum(partial)`, `matmul(transpose(a, m, k), b, m, n, k)`, a buffer alone, or a number that every element must
//! equal. The first arguments of a reference function are buffers or reference functions again, the rest integers.
//! Arithmetic on the results of reference functions is refused.

use std::collections::BTreeSet;
use std::ops::Range;

use rhai::{Expr, FnCallExpr};

use super::lower::{self, token};
use super::{Engine, ExprError, Function, Program, Scope};
use crate::diagnostics::nearest;
use crate::model::{RefExpr, RefFunction, Value};

/// A reference expression that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct RefProgram {
    root: Node,
    buffers: BTreeSet<String>,
    names: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Buffer(String),
    /// With the byte at which it starts.
    Number(Program, usize),
    Call {
        function: RefFunction,
        buffers: Vec<Node>,
        integers: Vec<(Program, usize)>,
    },
}

/// Reads a reference expression. Errors point into `text`.
pub fn parse(engine: &Engine, text: &str) -> Result<RefProgram, ExprError> {
    let syntax = engine.syntax(text)?;
    let root = Reader { engine, text }.top(lower::expression(&syntax, text)?)?;
    let (mut buffers, mut names) = (BTreeSet::new(), BTreeSet::new());
    root.collect(&mut buffers, &mut names);
    Ok(RefProgram { root, buffers, names })
}

struct Reader<'a> {
    engine: &'a Engine,
    text: &'a str,
}

impl Reader<'_> {
    fn top(&self, expression: &Expr) -> Result<Node, ExprError> {
        match (self.buffer(expression)?, expression) {
            (Some(node), _) => Ok(node),
            (None, _) => self.number(expression).map(|(program, start)| Node::Number(program, start)),
        }
    }

    /// A buffer or a reference function; `None` for anything else.
    fn buffer(&self, expression: &Expr) -> Result<Option<Node>, ExprError> {
        match expression {
            Expr::Variable(variable, ..) => Ok(Some(Node::Buffer(variable.1.to_string()))),
            Expr::FnCall(call, position) if call.op_token.is_none() => {
                let Some(function) = RefFunction::ALL.into_iter().find(|f| f.name() == call.name) else {
                    return not_reference(call, token(self.text, *position));
                };
                // `min` and `max` are functions of numbers too: those take at least two.
                if Function::from_name(&call.name).is_some() && call.args.len() > 1 {
                    return Ok(None);
                }
                self.call(function, call, token(self.text, *position)).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn call(&self, function: RefFunction, call: &FnCallExpr, at: Range<usize>) -> Result<Node, ExprError> {
        let wanted = function.buffers() + function.integers();
        if call.args.len() != wanted {
            let plural = if wanted == 1 { "" } else { "s" };
            let message = format!("`{}` takes {wanted} argument{plural}, not {}", function.name(), call.args.len());
            return Err(ExprError::new(message).hint(signature(function)).at(at));
        }
        let (buffers, integers) = call.args.split_at(function.buffers());
        let buffers = buffers.iter().map(|b| self.operand(function, b)).collect::<Result<_, _>>()?;
        let integers = integers.iter().map(|i| self.number(i)).collect::<Result<_, _>>()?;
        Ok(Node::Call { function, buffers, integers })
    }

    /// What a reference function works on: a buffer or the elements that another function gives.
    fn operand(&self, function: RefFunction, expression: &Expr) -> Result<Node, ExprError> {
        let at = token(self.text, expression.start_position());
        match self.buffer(expression)? {
            Some(Node::Call { function: inner, .. }) if inner.is_reduction() => {
                let message = format!("`{}` gives one number, and `{}` takes a buffer", inner.name(), function.name());
                Err(ExprError::new(message).hint(signature(function)).at(at))
            }
            Some(node) => Ok(node),
            None => {
                let message = format!("`{}` takes a buffer here, not a number", function.name());
                Err(ExprError::new(message).hint(signature(function)).at(at))
            }
        }
    }

    fn number(&self, expression: &Expr) -> Result<(Program, usize), ExprError> {
        let span = lower::node(expression, self.text)?.span;
        let program = self.engine.parse(&self.text[span.clone()]).map_err(|e| e.shifted(span.start))?;
        Ok((program, span.start))
    }
}

/// A call of no reference function: a number if arithmetic has it, else a mistake.
fn not_reference(call: &FnCallExpr, at: Range<usize>) -> Result<Option<Node>, ExprError> {
    if Function::from_name(&call.name).is_some() {
        return Ok(None);
    }
    let known = || RefFunction::ALL.iter().map(|f| f.name());
    let error = ExprError::new(format!("there is no reference function `{}`", call.name)).at(at);
    Err(match nearest(&call.name, known()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("there are {}", known().collect::<Vec<_>>().join(", "))),
    })
}

fn signature(function: RefFunction) -> String {
    let arguments = match function {
        RefFunction::Matmul => "a, b, m, n, k): row-major m×k times k×n",
        RefFunction::Transpose => "a, rows, columns): row-major",
        _ if function.buffers() == 2 => "x, y)",
        _ => "x)",
    };
    format!("{}({arguments}", function.name())
}

impl Node {
    fn collect(&self, buffers: &mut BTreeSet<String>, names: &mut BTreeSet<String>) {
        match self {
            Self::Buffer(name) => {
                buffers.insert(name.clone());
            }
            Self::Number(program, _) => names.extend(program.names().iter().cloned()),
            Self::Call { buffers: operands, integers, .. } => {
                for operand in operands {
                    operand.collect(buffers, names);
                }
                for (program, _) in integers {
                    names.extend(program.names().iter().cloned());
                }
            }
        }
    }

    fn resolve(&self, engine: &Engine, scope: &Scope) -> Result<RefExpr, ExprError> {
        match self {
            Self::Buffer(name) => Ok(RefExpr::Buffer(name.clone())),
            Self::Number(program, start) => constant(engine, program, scope).map_err(|e| e.shifted(*start)),
            Self::Call { function, buffers, integers } => {
                let buffers = buffers.iter().map(|b| b.resolve(engine, scope)).collect::<Result<_, _>>()?;
                let extent = |(program, start): &(Program, usize)| {
                    let extent = engine.evaluate_u64(program, scope).map_err(|e| e.shifted(*start))?;
                    Ok(extent as i64)
                };
                let integers = integers.iter().map(extent).collect::<Result<_, ExprError>>()?;
                Ok(RefExpr::Call { function: *function, buffers, integers })
            }
        }
    }
}

fn constant(engine: &Engine, program: &Program, scope: &Scope) -> Result<RefExpr, ExprError> {
    match engine.evaluate(program, scope)? {
        value @ (Value::Int(_) | Value::Float(_)) => Ok(RefExpr::Constant(value)),
        other => Err(program.wrong_kind(scope, &other, "a number or a buffer")),
    }
}

impl RefProgram {
    /// The names that stand where a buffer does. A name that is the whole expression is among them, though it may
    /// turn out to be a number: see [`Self::bare`].
    pub fn buffers(&self) -> &BTreeSet<String> {
        &self.buffers
    }

    /// The names that stand where a number does.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// The name that is the whole expression: a buffer, or a number if the scope has it.
    pub fn bare(&self) -> Option<&str> {
        match &self.root {
            Node::Buffer(name) => Some(name),
            _ => None,
        }
    }

    /// Works out the numbers.
    pub fn resolve(&self, engine: &Engine, scope: &Scope) -> Result<RefExpr, ExprError> {
        match self.bare().and_then(|name| scope.get(name)) {
            Some(value @ (Value::Int(_) | Value::Float(_))) => Ok(RefExpr::Constant(value.clone())),
            Some(other) => {
                let name = self.bare().unwrap_or_default();
                Err(ExprError::new(format!(
                    "a number or a buffer is needed, and `{name}` is {}",
                    super::describe(other)
                )))
            }
            None => self.root.resolve(engine, scope),
        }
    }
}
