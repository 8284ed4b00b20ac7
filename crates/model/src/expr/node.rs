//! The tree of an expression.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Function;
use crate::model::Value;

/// One part of an expression, with the bytes of the text that it was parsed from: without the parentheses around it,
/// with those of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<F = Function> {
    /// What it is.
    pub kind: Kind<F>,
    /// The place of the node in the text, in bytes.
    pub span: Range<usize>,
}

/// A tree whose calls are not resolved yet.
pub type Syntax<'t> = Node<Callee<'t>>;

/// The name of a function that is called, and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Callee<'t> {
    pub name: &'t str,
    pub at: Range<usize>,
}

/// What a part of an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind<F = Function> {
    /// A number, a string, `true` or `false`.
    Literal(Value),
    /// A name, whose value a scope has.
    Name(String),
    /// The value is negated: `-x`.
    Negate(Box<Node<F>>),
    /// The truth value is inverted: `!x`.
    Not(Box<Node<F>>),
    /// An operator between two operands.
    Binary(Operator, Box<[Node<F>; 2]>),
    /// Left to right, until one is false.
    And(Vec<Node<F>>),
    /// Left to right, until one is true.
    Or(Vec<Node<F>>),
    /// The value is looked for in a list: `value in [a, b]`.
    In(Box<Node<F>>, Vec<Node<F>>),
    /// A call of a function.
    Call(F, Vec<Node<F>>),
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The operands are added: `+`.
    Add,
    /// The right operand is subtracted: `-`.
    Subtract,
    /// The operands are multiplied: `*`.
    Multiply,
    /// The left operand is divided: `/`.
    Divide,
    /// The remainder of the division is taken: `%`.
    Remainder,
    /// The left operand is raised to a power: `**`.
    Power,
    /// The bits are shifted left: `<<`.
    ShiftLeft,
    /// The bits are shifted right: `>>`.
    ShiftRight,
    /// The operands are equal: `==`.
    Equal,
    /// The operands differ: `!=`.
    NotEqual,
    /// The left operand is less: `<`.
    Less,
    /// The left operand is less or equal: `<=`.
    LessEqual,
    /// The left operand is greater: `>`.
    Greater,
    /// The left operand is greater or equal: `>=`.
    GreaterEqual,
}

impl Operator {
    /// The operators in one list.
    pub const ALL: [Self; 14] = [
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Remainder,
        Self::Power,
        Self::ShiftLeft,
        Self::ShiftRight,
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessEqual,
        Self::Greater,
        Self::GreaterEqual,
    ];

    /// Returns the operator that is written like this.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.symbol() == symbol)
    }

    /// As it is written.
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
    /// Returns the bytes of the first occurrence of a name.
    pub fn place_of(&self, name: &str) -> Option<Range<usize>> {
        let first = |parts: &[Self]| parts.iter().find_map(|part| part.place_of(name));
        match &self.kind {
            Kind::Literal(_) => None,
            Kind::Name(found) => (found == name).then(|| self.span.clone()),
            Kind::Negate(inner) | Kind::Not(inner) => inner.place_of(name),
            Kind::Binary(_, sides) => first(&**sides),
            Kind::And(parts) | Kind::Or(parts) | Kind::Call(_, parts) => first(parts),
            Kind::In(value, list) => value.place_of(name).or_else(|| first(list)),
        }
    }

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
