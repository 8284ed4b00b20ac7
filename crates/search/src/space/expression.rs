//! Constraints as expressions in the subset of Python that tuners use: arithmetic, comparisons, `and`, `or`, `not`,
//! `in`, `a if c else b`, `min`, `max` and `abs`.
//!
//! An expression is folded as parameters become known, leaving a residual expression. Partial points with the same
//! residual have the same completions. Bounds on the unknown parameters show early whether a residual can be true or is
//! always true.

use super::node::{Bounds, Node};
use super::parse::{self, ExpressionError};
use super::value::Value;

/// An expression over the parameters of a space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expression(pub(super) Node);

impl Expression {
    /// Parses a constraint. `names` are the parameters of the space, in order.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, ExpressionError> {
        parse::expression(text, names).map(Self)
    }

    /// Indices of the parameters in the expression, ascending.
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

    /// Substitutes the known parameters.
    pub(super) fn fold(&self, known: &[Option<&Value>]) -> Self {
        Self(self.0.fold(known))
    }

    /// Truth value of the expression, if it is the same for all values within the bounds.
    pub(super) fn decided(&self, bounds: &[Bounds]) -> Option<bool> {
        match self.0.bounds(bounds) {
            Bounds { least, most } if least == 0.0 && most == 0.0 => Some(false),
            Bounds { least, most } if least > 0.0 || most < 0.0 => Some(true),
            _ => None,
        }
    }
}
