//! Constraints as text, in the part of Python that tuners use: arithmetic, comparisons, `and`, `or`, `not`, `in`,
//! `a if c else b`, `min`, `max` and `abs`.
//!
//! An expression is folded when parameters become known: what is left is again an expression, and two partial points
//! with the same rest have the same completions. Bounds over the values of the unknown parameters find out early that a
//! rest cannot hold, or always does.

use super::node::{Bounds, Node};
use super::parse::{self, ExpressionError};
use super::value::Value;

/// An expression over the parameters of a space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expression(pub(super) Node);

impl Expression {
    /// Reads a constraint. `names` are the parameters of its space, in their order.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, ExpressionError> {
        parse::expression(text, names).map(Self)
    }

    /// Returns the places of the parameters that the expression uses, in increasing order.
    #[must_use]
    pub fn parameters(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.0.visit(&mut |node| {
            if let Node::Name(place) = node {
                found.push(*place);
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Puts in the values of the parameters that are known.
    pub(super) fn fold(&self, known: &[Option<&Value>]) -> Self {
        Self(self.0.fold(known))
    }

    /// Returns whether the expression holds, if that is the same for all values of its parameters within their bounds.
    pub(super) fn decided(&self, bounds: &[Bounds]) -> Option<bool> {
        match self.0.bounds(bounds) {
            Bounds { least, most } if least == 0.0 && most == 0.0 => Some(false),
            Bounds { least, most } if least > 0.0 || most < 0.0 => Some(true),
            _ => None,
        }
    }
}
