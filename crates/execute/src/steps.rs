//! Resolves a plan of steps for the device: names become memory, conditions are parsed.

use super::stop::Stop;
use runner_backend::{BufferId, Condition, Iteration, Loop, Read, Step};
use runner_lang::Program;
use runner_types::{ConditionPlan, IterationPlan, StepPlan};

/// Resolves steps. The plan refers to `launches` by index; `buffer` returns the memory of a named buffer.
pub fn resolve(
    plan: &[StepPlan],
    launches: &[Step],
    buffer: &dyn Fn(&str) -> Option<BufferId>,
) -> Result<Vec<Step>, Stop> {
    plan.iter().map(|step| one(step, launches, buffer)).collect()
}

fn one(plan: &StepPlan, launches: &[Step], buffer: &dyn Fn(&str) -> Option<BufferId>) -> Result<Step, Stop> {
    let memory = |name: &str| {
        buffer(name).ok_or_else(|| Stop::unresolved(format!("a step names a buffer `{name}` that the case lacks")))
    };
    Ok(match plan {
        StepPlan::Launch(index) => {
            let launch = launches.get(*index).cloned();
            launch.ok_or_else(|| Stop::unresolved(format!("the case has no launch {index}")))?
        }
        StepPlan::Memset { buffer, value } => Step::Memset { buffer: memory(buffer)?, value: *value },
        StepPlan::Copy { from, to } => Step::Copy { from: memory(from)?, to: memory(to)? },
        StepPlan::Loop(plan) => {
            let iteration = |plan: &IterationPlan| {
                let steps = resolve(&plan.steps, launches, buffer)?;
                Ok(Iteration { steps, until: condition(&plan.until, &memory)? })
            };
            let iterations = plan.iterations.iter().map(iteration).collect::<Result<_, Stop>>()?;
            Step::Loop(Box::new(Loop { iterations, at_most: plan.at_most }))
        }
    })
}

fn condition(plan: &ConditionPlan, memory: &dyn Fn(&str) -> Result<BufferId, Stop>) -> Result<Condition, Stop> {
    let program = Program::parse(&plan.text).map_err(|error| format!("until `{}`: {}", plan.text, error.message))?;
    let scope = plan.scope.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let reads = plan.reads.iter().map(|read| {
        Ok::<_, Stop>(Read { name: read.name.clone(), buffer: memory(&read.buffer)?, element: read.element })
    });
    Ok(Condition { program, scope, reads: reads.collect::<Result<_, _>>()? })
}
