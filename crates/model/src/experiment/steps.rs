//! The order of launches, where it is more than one after the other: loops, and operations between launches.

use std::ops::RangeInclusive;

use super::{Expression, LetBinding};

/// A step of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum StepSpec {
    /// The step is the launch with this index in the body.
    Launch(usize),
    /// Every element of a buffer becomes a number.
    Memset {
        /// The name of the buffer.
        buffer: String,
        /// The number, in the buffer's type.
        value: Expression,
    },
    /// The step copies a whole buffer to another of the same size.
    Copy {
        /// The name of the buffer that is read.
        from: String,
        /// The name of the buffer that is written.
        to: String,
    },
    /// Exchanges what the names of two buffers stand for in all that follows, checks included.
    Swap(String, String),
    /// The step repeats other steps.
    Loop(LoopSpec),
}

/// Steps that are repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopSpec {
    /// How often the steps are repeated.
    pub times: Times,
    /// Evaluated in every iteration, in order; they may use `nth`, the index of the iteration from 0.
    pub lets: Vec<LetBinding>,
    /// The steps of one iteration, in order.
    pub steps: Vec<StepSpec>,
}

/// The number of times that a loop runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Times {
    /// The loop runs as often as the expression says.
    Fixed(Expression),
    /// The loop ends when a condition holds after an iteration. It is an error if none of `at_most` iterations ends it.
    Until {
        /// May name buffers, for their first elements.
        condition: Expression,
        /// The number of iterations after which the loop ends in any case.
        at_most: Expression,
    },
}

impl LoopSpec {
    /// The iterations that a loop of a fixed count may have.
    pub const ITERATIONS: RangeInclusive<u64> = 1..=16_384;
    /// The bounds that a loop with a condition may have.
    pub const BOUNDS: RangeInclusive<u64> = 1..=1 << 20;
    /// Most steps of a body, with loops of a fixed count and iterations that use `nth` written out.
    pub const MOST_STEPS: usize = 16_384;
}

impl StepSpec {
    /// Whether this is a loop that ends on a condition, or has one in it.
    pub fn has_condition(&self) -> bool {
        match self {
            Self::Loop(inner) => {
                matches!(inner.times, Times::Until { .. }) || inner.steps.iter().any(Self::has_condition)
            }
            _ => false,
        }
    }
}
