//! Syntax tree of an expression.

use std::collections::BTreeSet;
use std::ops::Range;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::Function;
use runner_types::Value;

/// A node with its byte range in the text, which excludes enclosing parentheses but includes those inside.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<F = Function> {
    pub kind: Kind<F>,
    /// Byte range in the text.
    pub span: Range<usize>,
}

/// A tree with unresolved calls.
pub type Syntax<'t> = Node<Callee<'t>>;

#[derive(Debug, Clone, PartialEq)]
pub struct Callee<'t> {
    pub name: &'t str,
    pub at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind<F = Function> {
    /// A number, a string, `true` or `false`.
    Literal(Value),
    /// A name to look up in a scope.
    Name(String),
    /// `-x`
    Negate(Box<Node<F>>),
    /// `!x`
    Not(Box<Node<F>>),
    Binary(Operator, Box<[Node<F>; 2]>),
    /// Operands of `&&`, evaluated left to right until one is false.
    And(Vec<Node<F>>),
    /// Operands of `||`, evaluated left to right until one is true.
    Or(Vec<Node<F>>),
    /// `value in [a, b]`
    In(Box<Node<F>>, Vec<Node<F>>),
    Call(F, Vec<Node<F>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
pub enum Operator {
    #[strum(serialize = "+")]
    Add,
    #[strum(serialize = "-")]
    Subtract,
    #[strum(serialize = "*")]
    Multiply,
    #[strum(serialize = "/")]
    Divide,
    #[strum(serialize = "%")]
    Remainder,
    #[strum(serialize = "**")]
    Power,
    #[strum(serialize = "<<")]
    ShiftLeft,
    #[strum(serialize = ">>")]
    ShiftRight,
    #[strum(serialize = "==")]
    Equal,
    #[strum(serialize = "!=")]
    NotEqual,
    #[strum(serialize = "<")]
    Less,
    #[strum(serialize = "<=")]
    LessEqual,
    #[strum(serialize = ">")]
    Greater,
    #[strum(serialize = ">=")]
    GreaterEqual,
}

impl Operator {
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        symbol.parse().ok()
    }

    pub fn symbol(self) -> &'static str {
        self.into()
    }
}

impl Node {
    /// Byte range of the first occurrence of a name.
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

    /// Adds all names in this subtree to `names`.
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
