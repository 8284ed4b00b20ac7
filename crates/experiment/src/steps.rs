//! Steps of a body that is more than a sequence of launches: loops, and operations between launches.

use std::ops::RangeInclusive;

use super::{Expression, LetBinding};

#[derive(Debug, Clone, PartialEq)]
pub enum StepSpec {
    /// The launch with this index.
    Launch(usize),
    /// Sets every element of a buffer to a number.
    Memset {
        buffer: String,
        /// Value in the buffer's element type.
        value: Expression,
    },
    /// Copies a whole buffer to another of the same size.
    Copy {
        from: String,
        to: String,
    },
    /// Swaps the buffers behind two names for everything that follows, including checks.
    Swap(String, String),
    Loop(LoopSpec),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoopSpec {
    pub times: Times,
    /// Bindings evaluated in every iteration, in order. They may use `nth`, the 0-based index of the iteration.
    pub lets: Vec<LetBinding>,
    pub steps: Vec<StepSpec>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Times {
    /// Fixed iteration count.
    Fixed(Expression),
    /// Iterates until a condition holds after an iteration. Exceeding `at_most` iterations is an error.
    Until {
        /// Condition. The name of a buffer stands for its first element.
        condition: Expression,
        at_most: Expression,
    },
}

impl LoopSpec {
    pub const ITERATIONS: RangeInclusive<u64> = 1..=16_384;
    pub const BOUNDS: RangeInclusive<u64> = 1..=1 << 20;
    /// Maximum number of steps of a body, with fixed-count loops and iterations that use `nth` unrolled.
    pub const MOST_STEPS: usize = 16_384;
}

impl StepSpec {
    /// Whether this is or contains a loop with an exit condition.
    pub fn has_condition(&self) -> bool {
        match self {
            Self::Loop(inner) => {
                matches!(inner.times, Times::Until { .. }) || inner.steps.iter().any(Self::has_condition)
            }
            _ => false,
        }
    }
}
