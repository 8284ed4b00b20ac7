//! The tree of an expression.

use std::collections::BTreeSet;
use std::ops::Range;

use strum::{EnumString, IntoStaticStr, VariantArray};

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
    /// The parts are evaluated left to right, until one is false.
    And(Vec<Node<F>>),
    /// The parts are evaluated left to right, until one is true.
    Or(Vec<Node<F>>),
    /// The value is looked for in a list: `value in [a, b]`.
    In(Box<Node<F>>, Vec<Node<F>>),
    /// A call of a function.
    Call(F, Vec<Node<F>>),
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
pub enum Operator {
    /// The operands are added: `+`.
    #[strum(serialize = "+")]
    Add,
    /// The right operand is subtracted: `-`.
    #[strum(serialize = "-")]
    Subtract,
    /// The operands are multiplied: `*`.
    #[strum(serialize = "*")]
    Multiply,
    /// The left operand is divided: `/`.
    #[strum(serialize = "/")]
    Divide,
    /// The remainder of the division is taken: `%`.
    #[strum(serialize = "%")]
    Remainder,
    /// The left operand is raised to a power: `**`.
    #[strum(serialize = "**")]
    Power,
    /// The bits are shifted left: `<<`.
    #[strum(serialize = "<<")]
    ShiftLeft,
    /// The bits are shifted right: `>>`.
    #[strum(serialize = ">>")]
    ShiftRight,
    /// The operands are equal: `==`.
    #[strum(serialize = "==")]
    Equal,
    /// The operands differ: `!=`.
    #[strum(serialize = "!=")]
    NotEqual,
    /// The left operand is less: `<`.
    #[strum(serialize = "<")]
    Less,
    /// The left operand is less or equal: `<=`.
    #[strum(serialize = "<=")]
    LessEqual,
    /// The left operand is greater: `>`.
    #[strum(serialize = ">")]
    Greater,
    /// The left operand is greater or equal: `>=`.
    #[strum(serialize = ">=")]
    GreaterEqual,
}

impl Operator {
    /// Returns the operator that is written like this.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        symbol.parse().ok()
    }

    /// Returns the operator as it is written.
    pub fn symbol(self) -> &'static str {
        self.into()
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
