//! A search space: parameters with lists of values, and the valid combinations of these.

mod constraint;
mod diagram;
mod error;
mod expression;
mod neighbours;
mod node;
mod parameter;
mod parse;
mod points;
mod value;

pub use constraint::Constraint;
pub use error::SpaceError;
pub use expression::Expression;
pub use parameter::Parameter;
pub use parse::ExpressionError;
pub use points::{Point, Space};
pub use value::{Scale, Value};
