//! Finds the best point of a constrained discrete space with few evaluations, some of which may fail.
//!
//! A [`space::Space`] has parameters with lists of values, and constraints that are compiled into a decision diagram.
//! Its valid points are numbered, so they can be sampled without rejection. A [`strategy::Strategy`] proposes points
//! based on the [`history::History`] of evaluations; the caller evaluates them, as many at once as it likes.
//! [`replay::Measured`] is a fully measured space for comparing strategies. [`score`] rates strategies by a published
//! methodology, and [`format`] reads and writes the files that autotuners exchange.
//!
//! ```
//! use search::history::{History, Outcome};
//! use search::random::Random;
//! use search::space::{Constraint, Expression, Parameter, Space, Value};
//! use search::strategy::named;
//!
//! let integers = |name: &str, values: &[i64]| Parameter::new(name, values.iter().copied().map(Value::Int).collect());
//! let parameters = vec![integers("width", &[8, 16, 32, 64]), integers("height", &[1, 2, 4, 8])];
//! let fits = Expression::parse("width * height <= 128", &["width", "height"])?;
//! let space = Space::new(parameters, &[Constraint::Expression(fits)])?;
//! assert_eq!(space.len(), 13);
//!
//! let mut strategy = named("portfolio").ok_or("no such strategy")?;
//! let (mut history, mut random) = (History::default(), Random::new(1));
//! while let Some(point) = strategy.propose(&space, &history, &mut random) {
//!     history.start(point);
//!     // In place of a measurement: prefers an area of 64 with a small height.
//!     let values: Vec<f64> = space.values(point).iter().filter_map(Value::number).collect();
//!     let time = 1.0 + (values[0] * values[1] - 64.0).abs() + values[1] / 100.0;
//!     history.finish(point, Outcome::Value(time));
//! }
//! let best = history.best().map(|(point, _)| space.values(point));
//! assert_eq!(best, Some(vec![Value::Int(64), Value::Int(1)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

pub mod analysis;
mod budget;
pub mod compare;
pub mod format;
pub mod history;
pub mod made;
pub mod pareto;
pub mod random;
pub mod replay;
pub mod score;
pub mod space;
pub mod strategy;
pub mod surrogate;

pub use budget::Budget;
