//! Steps of a body that is more than a sequence of launches: loops, and operations between launches.

use std::ops::RangeInclusive;

use super::{Expression, LetBinding};

#[derive(Debug, Clone, PartialEq)]
pub enum StepSpec {
    /// Launch with this index in the body.
    Launch(usize),
    /// Sets every element of a buffer to a number.
    Memset {
        buffer: String,
        /// Number in the buffer's type.
        value: Expression,
    },
    /// Copies a whole buffer to another of the same size.
    Copy {
        from: String,
        to: String,
    },
    /// Exchanges the buffers behind two names for everything that follows, checks included.
    Swap(String, String),
    Loop(LoopSpec),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoopSpec {
    pub times: Times,
    /// Bindings evaluated in every iteration, in order. They may use `nth`, the index of the iteration from 0.
    pub lets: Vec<LetBinding>,
    pub steps: Vec<StepSpec>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Times {
    /// Fixed iteration count.
    Fixed(Expression),
    /// Iterates until a condition holds after an iteration. It is an error if that takes more than `at_most`.
    Until {
        /// Condition, which may name buffers for their first elements.
        condition: Expression,
        at_most: Expression,
    },
}

impl LoopSpec {
    pub const ITERATIONS: RangeInclusive<u64> = 1..=16_384;
    pub const BOUNDS: RangeInclusive<u64> = 1..=1 << 20;
    /// Maximum number of steps of a body, with loops of a fixed count and iterations that use `nth` written out.
    pub const MOST_STEPS: usize = 16_384;
}

impl StepSpec {
    /// Whether this is or contains a loop that ends on a condition.
    pub fn has_condition(&self) -> bool {
        match self {
            Self::Loop(inner) => {
                matches!(inner.times, Times::Until { .. }) || inner.steps.iter().any(Self::has_condition)
            }
            _ => false,
        }
    }
}
