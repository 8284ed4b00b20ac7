//! Resolves the order of launches: unrolls loops with a fixed count, and renames buffers in the steps after a swap.

use std::collections::BTreeMap;

use super::{AtPlace, CaseEvaluator, Worked, unresolved};
use crate::recipe::{NTH, of_launch};
use runner_experiment::{Expression, LaunchSpec, LetBinding, LoopSpec, StepSpec, Times};
use runner_lang::Scope;
use runner_types::{
    ArgPlan, BufferPlan, ConditionPlan, IterationPlan, LaunchPlan, LoopPlan, ReadPlan, Renamed, StepPlan, StepsPlan,
    Value,
};

/// Number of previous launches to search for an equal one.
const LOOKED_THROUGH: usize = 64;

/// Maximum number of stored iterations of a loop that swaps buffers. Usually a few swaps restore the original names.
const LONGEST_CYCLE: usize = 64;

/// Launches and buffer names after the steps resolved so far.
struct Written<'a> {
    specs: &'a [LaunchSpec],
    buffers: &'a [BufferPlan],
    launches: Vec<LaunchPlan>,
    /// First launch of each manifest entry.
    shown: Vec<Option<usize>>,
    /// Names affected by swaps, with the buffers that they refer to.
    names: BTreeMap<String, String>,
    steps: usize,
}

impl CaseEvaluator<'_> {
    /// Distinct launches of a body, and their order.
    pub fn steps(
        &self,
        specs: &[LaunchSpec],
        steps: &[StepSpec],
        buffers: &[BufferPlan],
    ) -> Worked<(Vec<LaunchPlan>, StepsPlan)> {
        let shown = vec![None; specs.len()];
        let mut written = Written { specs, buffers, launches: Vec::new(), shown, names: BTreeMap::new(), steps: 0 };
        let steps = self.write_all(steps, &mut written)?;
        let renamed = written.renamed();
        Ok((written.launches, StepsPlan { steps, shown: written.shown.into_iter().flatten().collect(), renamed }))
    }

    fn write_all(&self, specs: &[StepSpec], written: &mut Written<'_>) -> Worked<Vec<StepPlan>> {
        let mut steps = Vec::new();
        for spec in specs {
            self.write_one(spec, written, &mut steps)?;
        }
        Ok(steps)
    }

    fn write_one(&self, spec: &StepSpec, written: &mut Written<'_>, steps: &mut Vec<StepPlan>) -> Worked<()> {
        match spec {
            StepSpec::Launch(index) => {
                let specs = written.specs;
                let launch = &specs[*index];
                return self.repeat(launch.repeat.as_ref(), 1, &mut |worker, _| {
                    let plan = worker.launch(launch)?;
                    let place = written.add(plan, *index);
                    steps.push(StepPlan::Launch(place));
                    written.count()
                });
            }
            StepSpec::Swap(first, second) => return written.swap(first, second),
            StepSpec::Loop(inner) => {
                return match &inner.times {
                    Times::Fixed(times) => self.fixed(inner, times, written, steps),
                    Times::Until { condition, at_most } => {
                        steps.push(StepPlan::Loop(Box::new(self.resolve_until(
                            inner,
                            (condition, at_most),
                            written,
                        )?)));
                        Ok(())
                    }
                };
            }
            StepSpec::Memset { buffer, value } => {
                let plan = written.buffer(buffer)?;
                let value = self.number(plan.element, value, "memset")?;
                let halves = (value.bits as u32, (value.bits >> 32) as u32);
                if value.element.size() == 8 && halves.0 != halves.1 {
                    let message = format!(
                        "`memset` repeats a pattern of up to 4 bytes, but the two halves of this {} differ",
                        value.element
                    );
                    return Err(unresolved("memset", &message));
                }
                steps.push(StepPlan::Memset { buffer: plan.name.clone(), value });
            }
            StepSpec::Copy { from, to } => {
                let (source, target) = (written.buffer(from)?, written.buffer(to)?);
                let (size, room) = (source.bytes().0, target.bytes().0);
                if size != room {
                    let message = format!("`{from}` has {size} bytes, but `{to}` has {room}");
                    return Err(unresolved("copy", &message));
                }
                steps.push(StepPlan::Copy { from: source.name.clone(), to: target.name.clone() });
            }
        }
        written.count()
    }

    /// Calls `work` with an iteration's index and the loop's bindings in scope.
    fn with_index<T>(
        &self,
        nth: u64,
        lets: &[LetBinding],
        work: impl FnOnce(&CaseEvaluator<'_>) -> Worked<T>,
    ) -> Worked<T> {
        let mut scope = self.scope.clone();
        scope.set(NTH, Value::Int(nth as i64));
        let scope = CaseEvaluator { scope: &scope, ..*self }.bound(lets)?;
        work(&CaseEvaluator { scope: &scope, ..*self })
    }

    fn fixed(
        &self,
        spec: &LoopSpec,
        times: &Expression,
        written: &mut Written<'_>,
        steps: &mut Vec<StepPlan>,
    ) -> Worked<()> {
        let times = self.bounded_integer(times, "repeat", &LoopSpec::ITERATIONS)?;
        for nth in 0..times {
            steps.extend(self.with_index(nth, &spec.lets, |worker| worker.write_all(&spec.steps, written))?);
        }
        Ok(())
    }

    /// A loop with a condition. Stores only iterations that differ from each other.
    fn resolve_until(
        &self,
        spec: &LoopSpec,
        (condition, at_most): (&Expression, &Expression),
        written: &mut Written<'_>,
    ) -> Worked<LoopPlan> {
        let at_most = self.bounded_integer(at_most, "at_most", &LoopSpec::BOUNDS)?;
        let uses_index = uses_index(spec, written.specs) || condition.names().contains(NTH);
        let first = written.names.clone();
        let mut iterations = Vec::new();
        for nth in 0..at_most {
            iterations.push(self.with_index(nth, &spec.lets, |worker| {
                let steps = worker.write_all(&spec.steps, written)?;
                let until = worker.condition(condition, written)?;
                Ok(IterationPlan { steps, until, renamed: written.renamed() })
            })?);
            if !uses_index && (written.names == first || iterations.len() == LONGEST_CYCLE) {
                break;
            }
        }
        Ok(LoopPlan { iterations, at_most: at_most as u32 })
    }

    fn condition(&self, condition: &Expression, written: &Written<'_>) -> Worked<ConditionPlan> {
        let (mut scope, mut reads) = (BTreeMap::new(), Vec::new());
        for name in condition.names() {
            if let Some(value) = self.scope.get(name) {
                scope.insert(name.clone(), value.clone());
            } else {
                let plan = written.buffer(name)?;
                reads.push(ReadPlan { name: name.clone(), buffer: plan.name.clone(), element: plan.element });
            }
        }
        Ok(ConditionPlan { text: condition.text().to_owned(), scope, reads })
    }

    /// The scope extended by the bindings of a launch or a loop, in order. Also re-evaluates the variant's bindings
    /// that depend on these or on the iteration index.
    pub fn bound(&self, lets: &[LetBinding]) -> Worked<Scope> {
        let mut scope = self.scope.clone();
        let mut changed = vec![NTH];
        for binding in lets {
            let value = binding.value.evaluate(&scope).place(&format!("let.{}", binding.name))?;
            scope.set(binding.name.clone(), value);
            changed.push(&binding.name);
        }
        for index in &self.recipe.needs.lets {
            let binding = &self.recipe.lets[*index];
            let follows = binding.value.names().iter().any(|name| changed.contains(&name.as_str()));
            if follows && !lets.iter().any(|own| own.name == binding.name) {
                let value = binding.value.evaluate(&scope).place(&format!("let.{}", binding.name))?;
                scope.set(binding.name.clone(), value);
                changed.push(&binding.name);
            }
        }
        Ok(scope)
    }
}

impl Written<'_> {
    /// Buffer that a name refers to after the swaps so far.
    fn buffer(&self, name: &str) -> Worked<&BufferPlan> {
        let meant = self.names.get(name).map_or(name, String::as_str);
        let found = self.buffers.iter().find(|buffer| buffer.name == meant);
        found.ok_or_else(|| unresolved("launch", &format!("the case has no buffer `{name}`")))
    }

    fn swap(&mut self, first: &str, second: &str) -> Worked<()> {
        let (one, other) = (self.buffer(first)?, self.buffer(second)?);
        if (one.element, one.len) != (other.element, other.len) {
            let form = |buffer: &BufferPlan| format!("{} {}", buffer.len, buffer.element);
            let message = format!("`{first}` is {}, but `{second}` is {}", form(one), form(other));
            return Err(unresolved("swap", &message));
        }
        let (one, other) = (one.name.clone(), other.name.clone());
        for (name, buffer) in [(first, other), (second, one)] {
            if name == buffer {
                self.names.remove(name);
            } else {
                self.names.insert(name.to_owned(), buffer);
            }
        }
        Ok(())
    }

    fn renamed(&self) -> Renamed {
        self.names.iter().map(|(name, buffer)| (name.clone(), buffer.clone())).collect()
    }

    /// Adds a launch, with names replaced by buffers, and returns its index. Equal launches share an index.
    fn add(&mut self, mut plan: LaunchPlan, entry: usize) -> usize {
        for name in plan.args.iter_mut().flat_map(ArgPlan::buffers_mut) {
            if let Some(meant) = self.names.get(name) {
                name.clone_from(meant);
            }
        }
        let from = self.launches.len().saturating_sub(LOOKED_THROUGH);
        let known = self.launches[from..].iter().position(|known| *known == plan).map(|place| from + place);
        let place = known.unwrap_or_else(|| {
            self.launches.push(plan);
            self.launches.len() - 1
        });
        self.shown[entry].get_or_insert(place);
        place
    }

    fn count(&mut self) -> Worked<()> {
        self.steps += 1;
        if self.steps <= LoopSpec::MOST_STEPS {
            return Ok(());
        }
        let message = format!("the body has more than {} steps with its loops unrolled", LoopSpec::MOST_STEPS);
        Err(unresolved("launch", &message))
    }
}

/// Whether an iteration depends on its index.
fn uses_index(spec: &LoopSpec, launches: &[LaunchSpec]) -> bool {
    let in_step = |step: &StepSpec| match step {
        StepSpec::Launch(index) => of_launch(&launches[*index]).contains(NTH),
        StepSpec::Memset { value, .. } => value.names().contains(NTH),
        StepSpec::Copy { .. } | StepSpec::Swap(..) => false,
        StepSpec::Loop(inner) => {
            let times = match &inner.times {
                Times::Fixed(times) => times.names().contains(NTH),
                Times::Until { condition, at_most } => condition.names().contains(NTH) || at_most.names().contains(NTH),
            };
            times || uses_index(inner, launches)
        }
    };
    spec.lets.iter().any(|binding| binding.value.names().contains(NTH)) || spec.steps.iter().any(in_step)
}
