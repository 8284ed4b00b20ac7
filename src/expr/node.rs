//! A read expression: what remains of rhai's tree once everything but arithmetic is refused.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Function;
use crate::model::Value;

/// One part of an expression, with the bytes of the text that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub kind: Kind,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Literal(Value),
    Name(String),
    Negate(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<[Node; 2]>),
    /// Left to right, until one is false.
    And(Vec<Node>),
    /// Left to right, until one is true.
    Or(Vec<Node>),
    /// `value in [a, b]`.
    In(Box<Node>, Vec<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Operator {
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "%" => Self::Remainder,
            "**" => Self::Power,
            "<<" => Self::ShiftLeft,
            ">>" => Self::ShiftRight,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            _ => return None,
        })
    }

    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Power => "**",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }
}

impl Node {
    /// Adds the names of this part to `names`.
    pub fn collect_names<'a>(&'a self, names: &mut BTreeSet<&'a str>) {
        match &self.kind {
            Kind::Literal(_) => {}
            Kind::Name(name) => {
                names.insert(name);
            }
            Kind::Negate(inner) | Kind::Not(inner) => inner.collect_names(names),
            Kind::Binary(_, sides) => {
                for side in &**sides {
                    side.collect_names(names);
                }
            }
            Kind::And(parts) | Kind::Or(parts) | Kind::Call(_, parts) => {
                for part in parts {
                    part.collect_names(names);
                }
            }
            Kind::In(value, list) => {
                value.collect_names(names);
                for item in list {
                    item.collect_names(names);
                }
            }
        }
    }
}
