//! Order of the launches of a body that does not simply run each launch once: loops, and driver operations between
//! launches.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ElementType, Value};

/// A number as a kernel receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScalarValue {
    pub element: ElementType,
    /// Little-endian bytes of the value, in the low `element.size()` bytes.
    pub bits: u64,
}

/// Buffers that names refer to after swaps, as pairs of name and buffer. A name that is not listed refers to the buffer
/// of that name.
pub type Renamed = Vec<(String, String)>;

/// Steps of a body, in order. Loops with a fixed count are unrolled.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepsPlan {
    /// Steps in order. Only the last may be a loop that swaps buffers.
    pub steps: Vec<StepPlan>,
    /// For each manifest entry that launches a kernel, the launch shown in the report.
    pub shown: Vec<usize>,
    /// Renamed buffers after the body, unless its last step is a loop that renames them itself.
    pub renamed: Renamed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPlan {
    /// The launch with this index.
    Launch(usize),
    /// Sets every element of a buffer to a number.
    Memset {
        buffer: String,
        /// Value in the buffer's element type.
        value: ScalarValue,
    },
    /// Copies a whole buffer to another of the same size.
    Copy { from: String, to: String },
    /// Repeats steps until a condition on buffers holds.
    Loop(Box<LoopPlan>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopPlan {
    /// Iterations, executed cyclically.
    pub iterations: Vec<IterationPlan>,
    /// Maximum number of iterations. If the condition does not hold after that, it is an error.
    pub at_most: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationPlan {
    /// Steps in order. Loops among them do not swap buffers.
    pub steps: Vec<StepPlan>,
    /// Exit condition, evaluated after the steps.
    pub until: ConditionPlan,
    /// Renamed buffers after the iteration.
    pub renamed: Renamed,
}

/// A condition on the first elements of buffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConditionPlan {
    pub text: String,
    /// Values of the names that are not buffers.
    pub scope: BTreeMap<String, Value>,
    /// Buffers that the condition reads.
    pub reads: Vec<ReadPlan>,
}

/// The first element of a buffer, as used in a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadPlan {
    /// Name in the condition.
    pub name: String,
    pub buffer: String,
    pub element: ElementType,
}

impl StepsPlan {
    /// Buffer that a name refers to after a run whose last loop ran `iterations` iterations.
    pub fn buffer_after<'n>(&'n self, name: &'n str, iterations: u32) -> &'n str {
        let renamed = match self.steps.last() {
            Some(StepPlan::Loop(last)) => last.renamed_after(iterations).unwrap_or(&self.renamed),
            _ => &self.renamed,
        };
        renamed.iter().find(|(known, _)| known == name).map_or(name, |(_, buffer)| buffer)
    }

    /// Indices of the launches outside loops, in execution order.
    pub fn order(&self) -> Vec<usize> {
        let launch = |step: &StepPlan| if let StepPlan::Launch(index) = step { Some(*index) } else { None };
        self.steps.iter().filter_map(launch).collect()
    }

    /// Whether there is a loop with an exit condition.
    pub fn has_loop(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, StepPlan::Loop(_)))
    }

    /// Names of the buffers that its steps use, not counting launches.
    pub fn buffers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.renamed.iter().map(|(_, buffer)| buffer.as_str()).collect();
        buffers_of(&self.steps, &mut names);
        names
    }
}

impl LoopPlan {
    fn renamed_after(&self, iterations: u32) -> Option<&Renamed> {
        let last = (iterations.max(1) as usize - 1) % self.iterations.len().max(1);
        self.iterations.get(last).map(|iteration| &iteration.renamed)
    }
}

fn buffers_of<'p>(steps: &'p [StepPlan], names: &mut Vec<&'p str>) {
    for step in steps {
        match step {
            StepPlan::Launch(_) => {}
            StepPlan::Memset { buffer, .. } => names.push(buffer),
            StepPlan::Copy { from, to } => names.extend([from.as_str(), to.as_str()]),
            StepPlan::Loop(plan) => {
                for iteration in &plan.iterations {
                    names.extend(iteration.until.reads.iter().map(|read| read.buffer.as_str()));
                    names.extend(iteration.renamed.iter().map(|(_, buffer)| buffer.as_str()));
                    buffers_of(&iteration.steps, names);
                }
            }
        }
    }
}
