//! The order of a body's launches where they are not made once each, in the order of the manifest: loops, and
//! operations of the driver between launches.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ElementType, Value};

/// A number as a kernel receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScalarValue {
    /// The type of the parameter.
    pub element: ElementType,
    /// The value's bytes, little-endian, in the low `element.size()` bytes.
    pub bits: u64,
}

/// What the names of buffers mean after a swap: the name, and the buffer that it stands for. Other names stand for the
/// buffer of that name.
pub type Renamed = Vec<(String, String)>;

/// The steps of a body, in order. Loops of a fixed count are written out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepsPlan {
    /// The steps in their order. A loop that swaps buffers is last.
    pub steps: Vec<StepPlan>,
    /// The launch that stands in the report for each entry of the manifest that launches a kernel.
    pub shown: Vec<usize>,
    /// The names after the body, unless its last step is a loop that renames them itself.
    pub renamed: Renamed,
}

/// A step of a body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPlan {
    /// The step is the launch with this index in the body.
    Launch(usize),
    /// Every element of a buffer becomes a number.
    Memset {
        /// The buffer that is written.
        buffer: String,
        /// The number, in the buffer's type.
        value: ScalarValue,
    },
    /// The step copies a whole buffer to another of the same size.
    Copy {
        /// The buffer that is read.
        from: String,
        /// The buffer that is written.
        to: String,
    },
    /// Steps that are repeated until a condition on buffers holds.
    Loop(Box<LoopPlan>),
}

/// Steps that are repeated until a condition holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopPlan {
    /// The iterations that the loop makes. After the last of these, the first follows again.
    pub iterations: Vec<IterationPlan>,
    /// Most iterations: it is an error if the condition does not hold after the last one.
    pub at_most: u32,
}

/// What one iteration of a loop does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationPlan {
    /// The steps in their order; no loop among them swaps buffers.
    pub steps: Vec<StepPlan>,
    /// The loop ends if this holds after the steps.
    pub until: ConditionPlan,
    /// The names that buffers have when the iteration is over.
    pub renamed: Renamed,
}

/// A condition on the first elements of buffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConditionPlan {
    /// The text of the expression.
    pub text: String,
    /// The values of its names that are no buffers.
    pub scope: BTreeMap<String, Value>,
    /// The names in the expression that are buffers.
    pub reads: Vec<ReadPlan>,
}

/// The first element of a buffer, as a condition reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadPlan {
    /// The name in the condition.
    pub name: String,
    /// The name of the buffer.
    pub buffer: String,
    /// The type that the element has.
    pub element: ElementType,
}

impl StepsPlan {
    /// Returns the buffer that a name stands for after a run in which the loop that comes last made so many iterations.
    pub fn buffer_after<'n>(&'n self, name: &'n str, iterations: u32) -> &'n str {
        let renamed = match self.steps.last() {
            Some(StepPlan::Loop(last)) => last.renamed_after(iterations).unwrap_or(&self.renamed),
            _ => &self.renamed,
        };
        renamed.iter().find(|(known, _)| known == name).map_or(name, |(_, buffer)| buffer)
    }

    /// Returns the launches outside of loops, by index, in the order in which they are made.
    pub fn order(&self) -> Vec<usize> {
        let launch = |step: &StepPlan| if let StepPlan::Launch(index) = step { Some(*index) } else { None };
        self.steps.iter().filter_map(launch).collect()
    }

    /// Whether it has a loop that ends on a condition.
    pub fn has_loop(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, StepPlan::Loop(_)))
    }

    /// Returns the names of buffers that its steps use besides those of launches.
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
