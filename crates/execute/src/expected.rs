//! Expected values, computed once per group, and the host memory for downloaded outputs.

use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::buffers::{Slot, Store, same_input};
use super::fill;
use super::function::{self, Language, Task};
use super::input_sets::FIRST;
use super::operand::Operand;
use super::reference;
use super::stop::Stop;
use runner_backend::Device;
use runner_files::npy;
use runner_files::regular;
use runner_types::{
    Access, Allocation, BufferPlan, CaseJob, ElementType, FilePart, FillPlan, FunctionArgument, FunctionPlan, RefExpr,
    Value,
};

// Reduction blocks must coincide with fill chunks.
const _: () = assert!(reference::BLOCK == fill::CHUNK);

#[derive(Debug, Default)]
pub struct Expected {
    references: Vec<Reference<Arc<Vec<u8>>>>,
    /// Reductions of inputs that were never in memory as a whole.
    reductions: Vec<Reference<BufferPlan>>,
    goldens: Vec<(std::path::PathBuf, ElementType, Operand)>,
    parts: Vec<(FilePart, ElementType, Operand)>,
    functions: Vec<FunctionResult>,
    outputs: Vec<(Slot, Arc<Vec<u8>>)>,
    kept: Vec<Kept>,
}

/// Result of a case for an expression that other cases are compared with.
#[derive(Debug)]
struct Kept {
    /// Index of the case in the group.
    place: usize,
    /// Set of inputs from which it was computed.
    set: usize,
    expression: RefExpr,
    value: Operand,
}

/// A function's value over inputs, or the thread that computes it.
#[derive(Debug)]
struct FunctionResult {
    task: Task,
    running: Option<JoinHandle<Result<Operand, Stop>>>,
    value: Result<Operand, Stop>,
}

impl FunctionResult {
    fn begin(task: Task) -> Self {
        let own = task.clone();
        let running = std::thread::spawn(move || function::call(&own));
        Self { task, running: Some(running), value: Err(Stop::unresolved("the function has not ended")) }
    }

    /// Waits for the value.
    fn value(&mut self) -> Result<Operand, Stop> {
        if let Some(running) = self.running.take() {
            let panicked = |_| Err(Stop::unresolved("the thread of the function panicked"));
            self.value = running.join().unwrap_or_else(panicked);
        }
        self.value.clone()
    }
}

impl Drop for FunctionResult {
    /// Kills functions whose values are no longer wanted: they would disturb what is timed next.
    fn drop(&mut self) {
        self.task.cancel();
    }
}

/// Value of an expression over inputs.
#[derive(Debug)]
struct Reference<I> {
    expression: RefExpr,
    inputs: Vec<I>,
    value: Operand,
}

impl<I> Reference<I> {
    /// Whether the reference is for this expression over these inputs, compared with `same`.
    fn is_of(&self, expression: &RefExpr, inputs: &[I], same: fn(&I, &I) -> bool) -> bool {
        self.expression == *expression && self.inputs.iter().zip(inputs).all(|(one, other)| same(one, other))
    }
}

impl Expected {
    /// Value of a reference over the buffers' content before the launch.
    pub fn reference(&mut self, store: &mut Store, job: &CaseJob, expression: &RefExpr) -> Result<Operand, Stop> {
        if let Some(value) = self.reduction_in_parts(store, job, expression)? {
            return Ok(value);
        }
        let names = reference::names(expression).into_iter();
        let inputs: Vec<Arc<Vec<u8>>> =
            names.map(|name| plan_of(job, name).and_then(|plan| store.input(plan))).collect::<Result<_, _>>()?;
        if let Some(known) = self.references.iter().find(|known| known.is_of(expression, &inputs, Arc::ptr_eq)) {
            return Ok(known.value.clone());
        }
        let _span = tracing::debug_span!("compute a reference", set = store.sets.current).entered();
        let value = reference::evaluate(expression, &mut |name| {
            let plan = plan_of(job, name)?;
            Ok::<_, Stop>(Operand::Bytes { element: plan.element, bytes: store.input(plan)? })
        })?;
        self.references.push(Reference { expression: expression.clone(), inputs, value: value.clone() });
        Ok(value)
    }

    /// Value of a reduction of large inputs, generated block by block; `None` if it is better to generate them as a
    /// whole.
    fn reduction_in_parts(
        &mut self,
        store: &Store,
        job: &CaseJob,
        expression: &RefExpr,
    ) -> Result<Option<Operand>, Stop> {
        let Some(names) = reference::reduced_buffers(expression) else { return Ok(None) };
        let plans = names.into_iter().map(|name| plan_of(job, name).map(|plan| store.made_by_chunks(plan)));
        let Some(inputs) = plans.collect::<Result<Option<Vec<BufferPlan>>, Stop>>()? else { return Ok(None) };
        let Some((element, len)) = inputs.first().map(|plan| (plan.element, plan.len)) else { return Ok(None) };
        if inputs.iter().any(|plan| (plan.element, plan.len) != (element, len)) {
            return Ok(None);
        }
        if let Some(known) = self.reductions.iter().find(|known| known.is_of(expression, &inputs, same_input)) {
            return Ok(Some(known.value.clone()));
        }
        let _span = tracing::debug_span!("compute a reference in parts", set = store.sets.current).entered();
        let part = |input: usize, block: Range<usize>, bytes: &mut Vec<u8>| -> Result<(), String> {
            let plan = &inputs[input];
            let number = block.start / fill::CHUNK;
            let made = plan.fill.as_ref().map(|fill| fill::make_chunk(plan, fill, number, bytes));
            made.unwrap_or_else(|| Err("it has no fill".to_owned())).map_err(|e| format!("of `{}`: {e}", plan.name))
        };
        let Some(value) = reference::evaluate_in_parts(expression, element, len as usize, &part)? else {
            return Ok(None);
        };
        self.reductions.push(Reference { expression: expression.clone(), inputs, value: value.clone() });
        Ok(Some(value))
    }

    /// Some elements of a reference over the buffers' content before the launch.
    pub fn reference_at(
        store: &mut Store,
        job: &CaseJob,
        expression: &RefExpr,
        elements: &[usize],
    ) -> Result<Operand, Stop> {
        reference::evaluate_at(expression, elements, &mut |name| {
            let plan = plan_of(job, name)?;
            Ok::<_, Stop>(Operand::Bytes { element: plan.element, bytes: store.input(plan)? })
        })
    }

    /// Value of a function over the buffers' content before the launch.
    pub fn function(
        &mut self,
        store: &mut Store,
        job: &CaseJob,
        function: (&FunctionPlan, Language),
        element: ElementType,
    ) -> Result<Operand, Stop> {
        let place = self.begin_function(store, job, function, element)?;
        self.functions[place].value()
    }

    /// Starts computing a function's value over the buffers, unless it exists or is being computed. Returns its index
    /// in the list.
    pub fn begin_function(
        &mut self,
        store: &mut Store,
        job: &CaseJob,
        (plan, language): (&FunctionPlan, Language),
        element: ElementType,
    ) -> Result<usize, Stop> {
        let mut inputs = Vec::new();
        for argument in &plan.arguments {
            if let FunctionArgument::Buffer(name) = argument {
                let buffer = plan_of(job, name)?;
                inputs.push((name.clone(), buffer.element, store.input(buffer)?));
            }
        }
        // No other process asks for the results of a secret set of inputs.
        let keep = store.sets.current == FIRST;
        let limit = Duration::from_secs_f64(job.measure.timeout);
        let task = Task::new((plan.clone(), language), inputs, element, (limit, keep));
        if let Some(place) = self.functions.iter().position(|known| known.task.is_same(&task)) {
            return Ok(place);
        }
        self.functions.push(FunctionResult::begin(task));
        Ok(self.functions.len() - 1)
    }

    /// Converts the values of a list to an array.
    pub fn list(values: &[Value], element: ElementType) -> Result<Operand, Stop> {
        let plan = BufferPlan {
            name: "expect".to_owned(),
            element,
            len: values.len() as u64,
            fill: None,
            access: Access::In,
            symbol: None,
            allocate: Allocation::Once,
            vary: None,
            poison: false,
        };
        let bytes = fill::fill(&plan, &FillPlan::List(values.to_vec()))?;
        Ok(Operand::Bytes { element, bytes: Arc::new(bytes) })
    }

    /// Content of a golden file: `.npy`, or elements without a header if `raw`.
    pub fn golden(&mut self, path: &std::path::Path, element: ElementType, raw: bool) -> Result<Operand, Stop> {
        if let Some((.., value)) = self.goldens.iter().find(|(known, e, _)| known == path && *e == element) {
            return Ok(value.clone());
        }
        let bytes = if raw {
            regular::read_up_to(path, u64::MAX).map_err(|e| format!("{}: cannot be read: {e}", path.display()))?
        } else {
            npy::read(path, element, None)?
        };
        let value = Operand::Bytes { element, bytes: Arc::new(bytes) };
        self.goldens.push((path.to_owned(), element, value.clone()));
        Ok(value)
    }

    /// Content of part of a file.
    pub fn part(&mut self, part: &FilePart, element: ElementType) -> Result<Operand, Stop> {
        if let Some((.., value)) = self.parts.iter().find(|(known, e, _)| known == part && *e == element) {
            return Ok(value.clone());
        }
        let value = Operand::Bytes { element, bytes: Arc::new(fill::part(part)?) };
        self.parts.push((part.clone(), element, value.clone()));
        Ok(value)
    }

    /// Current content of a buffer. Its host memory is allocated once and reused while nothing else refers to it.
    pub fn output(&mut self, device: &mut dyn Device, store: &Store, slot: Slot) -> Result<Operand, Stop> {
        let Some(buffer) = store.get(slot) else { return Err(Stop::unresolved("the buffer was freed")) };
        let place = self.outputs.iter().position(|(known, _)| *known == slot);
        let mut bytes = place.map(|place| self.outputs.swap_remove(place).1).unwrap_or_default();
        if Arc::get_mut(&mut bytes).is_none() {
            bytes = Arc::default();
        }
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            bytes.resize(device.size(buffer.id), 0);
            device.download(buffer.id, 0, bytes)?;
        }
        self.outputs.push((slot, Arc::clone(&bytes)));
        Ok(Operand::Bytes { element: buffer.plan.element, bytes })
    }

    /// Keeps the value that the case `place` computed for an expression from a set of inputs.
    pub fn keep(&mut self, place: usize, set: usize, expression: RefExpr, value: Operand) {
        self.kept.push(Kept { place, set, expression, value });
    }

    /// Value that the case `place` computed for an expression from a set of inputs.
    pub fn kept(&self, place: usize, set: usize, expression: &RefExpr) -> Option<Operand> {
        let is_kept = |kept: &&Kept| (kept.place, kept.set) == (place, set) && kept.expression == *expression;
        self.kept.iter().find(is_kept).map(|kept| kept.value.clone())
    }

    /// Drops everything that the case `place` computed from a set of inputs.
    pub fn forget(&mut self, place: usize, set: usize) {
        self.kept.retain(|kept| (kept.place, kept.set) != (place, set));
    }

    /// Keeps only values that depend neither on the cases of a group nor on files.
    pub fn end_group(&mut self) {
        self.outputs.clear();
        self.kept.clear();
        self.goldens.clear();
        self.parts.clear();
        self.functions.retain(|function| function.running.is_none());
    }

    /// Size of the kept values in bytes, at eight bytes per element.
    pub fn size(&self) -> usize {
        let references = self.references.iter().map(|known| &known.value);
        let functions = self.functions.iter().filter_map(|known| known.value.as_ref().ok());
        let values = references.chain(self.reductions.iter().map(|known| &known.value)).chain(functions);
        values.map(|value| 8 * value.len().unwrap_or(1)).sum()
    }

    /// Drops the values whose inputs are not kept: arrays that `keeps` rejects, and plans that `keeps_plan` rejects.
    pub fn retain_values(&mut self, keeps: &dyn Fn(&Arc<Vec<u8>>) -> bool, keeps_plan: &dyn Fn(&BufferPlan) -> bool) {
        self.references.retain(|known| known.inputs.iter().all(keeps));
        self.reductions.retain(|known| known.inputs.iter().all(keeps_plan));
        self.functions.retain(|known| known.task.inputs().all(keeps));
    }

    pub fn is_empty(&self) -> bool {
        self.references.is_empty() && self.reductions.is_empty() && self.functions.is_empty()
    }

    /// Frees the host memory of all buffers except these.
    pub fn retain(&mut self, slots: &[Slot]) {
        self.outputs.retain(|(slot, _)| slots.contains(slot));
    }
}

fn plan_of<'j>(job: &'j CaseJob, name: &str) -> Result<&'j BufferPlan, Stop> {
    let plan = job.buffers.iter().find(|b| b.name == name);
    plan.ok_or_else(|| Stop::unresolved(format!("a reference uses a buffer `{name}` that the case does not have")))
}
