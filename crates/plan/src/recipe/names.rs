//! Names that a recipe uses, and the bindings and device attributes that they refer to.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use super::{NTH, OCCUPANCY_BLOCK, Recipe, Rule, VARIANT};
use crate::axes::{Axes, OwnAxes};
use runner_experiment::{
    ArgSpec, BlockSpec, BodySpec, BuiltinSpec, CheckSpec, CompileSpec, Expectation, FillSpec, FunctionParameter,
    GridSpec, HostSpec, LaunchSpec, LetBinding, PrintedSpec, StepSpec, StructureSpec, TensorSpec, Times,
};
use runner_lang::Program;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_lang::reference::RefProgram;
use runner_lang::template::TemplateProgram;
use runner_types::DeviceInfo;

/// Everything that must be known to evaluate some expressions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Indices of bindings, each after those that it uses.
    pub lets: Vec<usize>,
    /// Device attributes used directly or through a binding.
    pub device: Vec<String>,
    /// Whether the variant's name is used.
    pub variant: bool,
}

impl Needs {
    /// Collects everything that `names` refer to. Each binding comes after those that it uses.
    pub fn collect<'a>(names: impl IntoIterator<Item = &'a String>, lets: &'a [LetBinding]) -> Self {
        let mut wanted: BTreeSet<&str> = names.into_iter().map(String::as_str).collect();
        let mut needed = Vec::new();
        for (index, binding) in lets.iter().enumerate().rev() {
            if wanted.contains(&*binding.name) {
                wanted.extend(binding.value.names().iter().map(String::as_str));
                needed.push(index);
            }
        }
        needed.reverse();
        let device = DeviceInfo::attribute_names().filter(|name| wanted.contains(name));
        Self { lets: needed, device: device.map(str::to_owned).collect(), variant: wanted.contains(VARIANT) }
    }
}

/// Sorts bindings so that each comes after those that it uses. Rejects cyclic bindings.
pub fn in_order(lets: Vec<LetBinding>) -> Result<Vec<LetBinding>, Diagnostic> {
    let places: HashMap<&str, usize> =
        lets.iter().enumerate().map(|(place, binding)| (&*binding.name, place)).collect();
    let (mut users, mut waits) = (vec![Vec::new(); lets.len()], vec![0_usize; lets.len()]);
    for (user, binding) in lets.iter().enumerate() {
        for used in binding.value.names().iter().filter_map(|name| places.get(name.as_str())) {
            users[*used].push(user);
            waits[user] += 1;
        }
    }
    // Among the available bindings, take the first in the file.
    let mut free: BinaryHeap<Reverse<usize>> =
        (0..lets.len()).filter(|place| waits[*place] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(lets.len());
    while let Some(Reverse(place)) = free.pop() {
        order.push(place);
        for &user in &users[place] {
            waits[user] -= 1;
            if waits[user] == 0 {
                free.push(Reverse(user));
            }
        }
    }
    if let Some(LetBinding { name, value }) = lets.iter().zip(&waits).find(|(_, waits)| **waits > 0).map(|(own, _)| own)
    {
        return Err(Diagnostic::at(value.span.clone(), format!("`{name}` depends on itself")));
    }
    let mut lets: Vec<Option<LetBinding>> = lets.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|place| lets[place].take()).collect())
}

pub fn buffers_used(body: &BodySpec, checks: &[CheckSpec]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    match body {
        BodySpec::Launches { launches, steps, .. } => {
            used.extend(launches.iter().flat_map(|launch| buffers_of(&launch.args)));
            used.extend(launches.iter().filter_map(|launch| Some(launch.persist.as_ref()?.buffer.clone())));
            // Names in a condition that are not buffers are harmless: they match no buffer.
            steps.iter().flatten().for_each(|step| buffers_of_step(step, &mut used));
        }
        BodySpec::Host(host) => used.extend(buffers_of(&host.args)),
        BodySpec::Builtin(BuiltinSpec::Memcpy(pairs)) => {
            used.extend(pairs.iter().flat_map(|(from, to)| [from.clone(), to.clone()]));
        }
        BodySpec::Cpu(reference) => used.extend(reference.buffers().iter().cloned()),
    }
    for check in checks {
        used.extend(check.actual.buffers().iter().cloned());
        used.extend(check.mask.iter().flat_map(|mask| mask.buffers().iter().cloned()));
        match &check.expect {
            Expectation::Reference(expect) => used.extend(expect.buffers().iter().cloned()),
            Expectation::Python(function) | Expectation::Cpp(function) => {
                used.extend(function.parameters.iter().filter_map(|parameter| match parameter {
                    FunctionParameter::Buffer(name) => Some(name.clone()),
                    FunctionParameter::Value(_) => None,
                }));
            }
            _ => {}
        }
    }
    used
}

fn buffers_of(args: &[ArgSpec]) -> impl Iterator<Item = String> {
    args.iter().flat_map(ArgSpec::buffers).cloned()
}

fn buffers_of_step(step: &StepSpec, used: &mut BTreeSet<String>) {
    match step {
        StepSpec::Launch(_) => {}
        StepSpec::Memset { buffer, .. } => used.extend([buffer.clone()]),
        StepSpec::Copy { from: one, to: other } | StepSpec::Swap(one, other) => {
            used.extend([one.clone(), other.clone()]);
        }
        StepSpec::Loop(inner) => {
            if let Times::Until { condition, .. } = &inner.times {
                used.extend(condition.names().iter().cloned());
            }
            inner.steps.iter().for_each(|step| buffers_of_step(step, used));
        }
    }
}

/// All names used in the expressions of a launch.
pub fn of_launch(launch: &LaunchSpec) -> BTreeSet<String> {
    let mut names = Names(BTreeSet::new());
    names.launch(launch);
    names.0
}

/// All names used in the job's expressions, except in `requires`.
pub fn of_recipe(recipe: &Recipe) -> BTreeSet<String> {
    let mut names = Names(BTreeSet::new());
    for buffer in &recipe.buffers {
        names.template(&buffer.element);
        names.program(&buffer.len);
        names.fill(buffer.fill.as_ref());
        buffer.symbol.iter().for_each(|symbol| names.template(symbol));
    }
    match &recipe.body {
        BodySpec::Launches { rounds, launches, steps } => {
            if let Some(rounds) = rounds {
                names.program(rounds);
            }
            for launch in launches {
                names.launch(launch);
            }
            steps.iter().flatten().for_each(|step| names.step(step));
        }
        BodySpec::Builtin(BuiltinSpec::Memcpy(_)) => {}
        BodySpec::Cpu(reference) => names.reference(reference),
        BodySpec::Host(host) => names.host(host),
    }
    for check in &recipe.checks {
        names.reference(&check.actual);
        check.mask.iter().for_each(|mask| names.reference(mask));
        match &check.expect {
            Expectation::Reference(expect) => names.reference(expect),
            Expectation::Npy(file) | Expectation::Raw(file) => names.template(&file.name),
            Expectation::Tensor(tensor) => names.tensor(tensor),
            Expectation::List(elements) => elements.iter().for_each(|element| names.program(element)),
            Expectation::Python(function) | Expectation::Cpp(function) => {
                for parameter in &function.parameters {
                    if let FunctionParameter::Value(value) = parameter {
                        names.program(value);
                    }
                }
            }
            Expectation::Variant { .. } => {}
        }
    }
    match &recipe.printed {
        Some(PrintedSpec::Lines(lines)) => lines.iter().for_each(|line| names.template(line)),
        Some(PrintedSpec::File(_, name)) => names.template(name),
        None => {}
    }
    recipe.work.bytes.iter().chain(&recipe.work.flops).for_each(|program| names.program(program));
    names.0.remove(OCCUPANCY_BLOCK);
    names.0.remove(NTH);
    names.0
}

struct Names(BTreeSet<String>);

impl Names {
    fn program(&mut self, program: &Program) {
        self.0.extend(program.names().iter().cloned());
    }

    fn template(&mut self, template: &TemplateProgram) {
        self.0.extend(template.names().iter().cloned());
    }

    fn reference(&mut self, reference: &RefProgram) {
        self.0.extend(reference.names().iter().cloned());
        // These names may be bindings. If one is a buffer, no binding has its name.
        self.0.extend(reference.either().iter().cloned());
    }

    fn fill(&mut self, fill: Option<&FillSpec>) {
        match fill {
            Some(FillSpec::Constant(value)) => self.program(value),
            Some(
                FillSpec::Iota { start: a, step: b }
                | FillSpec::Uniform { low: a, high: b, .. }
                | FillSpec::Normal { mean: a, deviation: b, .. },
            ) => {
                self.program(a);
                self.program(b);
            }
            Some(FillSpec::Npy(file) | FillSpec::Raw(file)) => self.template(&file.name),
            Some(FillSpec::Tensor(tensor)) => self.tensor(tensor),
            Some(FillSpec::List(elements)) => elements.iter().for_each(|element| self.program(element)),
            Some(FillSpec::Like { fill, .. }) => self.fill(Some(fill)),
            Some(FillSpec::Structured { structure, .. }) => self.structure(structure),
            None => {}
        }
    }

    fn tensor(&mut self, tensor: &TensorSpec) {
        self.template(&tensor.file.name);
        self.template(&tensor.tensor);
    }

    fn structure(&mut self, structure: &StructureSpec) {
        match structure {
            StructureSpec::Permutation => {}
            StructureSpec::OneHot(size) | StructureSpec::Identity(size) | StructureSpec::Dominant(size) => {
                self.program(size);
            }
            StructureSpec::Sorted { low: a, high: b }
            | StructureSpec::Zipf { values: a, exponent: b }
            | StructureSpec::CsrRows { nonzeros: a, columns: b } => {
                self.program(a);
                self.program(b);
            }
            StructureSpec::CsrColumns { begins, nonzeros, columns, .. } => {
                for program in [begins, nonzeros, columns] {
                    self.program(program);
                }
            }
        }
    }

    fn step(&mut self, step: &StepSpec) {
        match step {
            StepSpec::Memset { value, .. } => self.program(value),
            StepSpec::Loop(inner) => {
                match &inner.times {
                    Times::Fixed(times) => self.program(times),
                    Times::Until { condition, at_most } => {
                        self.program(condition);
                        self.program(at_most);
                    }
                }
                inner.lets.iter().for_each(|binding| self.program(&binding.value));
                inner.steps.iter().for_each(|step| self.step(step));
            }
            StepSpec::Launch(_) | StepSpec::Copy { .. } | StepSpec::Swap(..) => {}
        }
    }

    fn launch(&mut self, launch: &LaunchSpec) {
        launch.lets.iter().for_each(|binding| self.program(&binding.value));
        launch.settings.numbers().for_each(|(_, program)| self.program(program));
        self.template(&launch.kernel);
        let grid = if let GridSpec::Dims(dims) = &launch.grid { dims.as_slice() } else { &[] };
        let block = if let BlockSpec::Dims(dims) = &launch.block { dims.as_slice() } else { &[] };
        let cluster = launch.cluster.iter().flatten();
        let ratio = launch.persist.iter().map(|persist| &persist.ratio);
        grid.iter().chain(block).chain(cluster).chain(ratio).chain(&launch.repeat).for_each(|dim| self.program(dim));
        self.compile(&launch.compile);
        self.args(&launch.args);
    }

    fn host(&mut self, host: &HostSpec) {
        self.template(&host.function);
        host.libraries.iter().for_each(|library| self.template(library));
        self.compile(&host.compile);
        self.args(&host.args);
    }

    fn compile(&mut self, compile: &CompileSpec) {
        compile.settings.numbers().for_each(|(_, program)| self.program(program));
        compile.defines.iter().for_each(|(_, value)| self.template(value));
        compile.options.iter().for_each(|option| self.template(option));
    }

    fn args(&mut self, args: &[ArgSpec]) {
        for part in args.iter().flat_map(ArgSpec::parts) {
            match part {
                ArgSpec::Buffer(_) | ArgSpec::Struct(_) | ArgSpec::Named(_) => {}
                ArgSpec::Offset { offset, .. } => self.program(offset),
                ArgSpec::Scalar { element, value } => {
                    self.template(element);
                    self.program(value);
                }
                ArgSpec::Array { count, .. } => self.program(count),
                ArgSpec::Texture(texture) => texture.size.iter().for_each(|extent| self.program(extent)),
            }
        }
    }
}

/// Whether conditions on cells of a variant may use a name.
pub fn in_scope(name: &str, recipe: &Recipe, axes: &Axes, own: &OwnAxes) -> bool {
    name == VARIANT
        || axes.shared.iter().chain(&own.axes).any(|axis| axis.name == name)
        || recipe.lets.iter().any(|binding| *binding.name == *name)
        || DeviceInfo::attribute_names().any(|known| known == name)
}

/// Errors in a filter: unknown names, names that no single variant has together, or attributes of an unknown device.
pub fn faults_of_filter(rule: &Rule, recipes: &[Recipe], axes: &Axes, device_known: bool) -> Vec<Diagnostic> {
    let text = rule.program.text();
    let usable: Vec<&Needs> = rule.needs.iter().flatten().collect();
    if let Some(name) = usable.iter().find_map(|needs| needs.device.first().filter(|_| !device_known)) {
        let message = format!("--filter '{text}': `{name}` has no value without a device");
        return vec![Diagnostic::whole(message)];
    }
    if !usable.is_empty() {
        return Vec::new();
    }
    let mut known: BTreeSet<&str> = axes.shared.iter().map(|axis| axis.name.as_str()).collect();
    known.extend(axes.own.iter().flat_map(|own| &own.axes).map(|axis| axis.name.as_str()));
    known.extend(recipes.iter().flat_map(|recipe| &recipe.lets).map(|binding| &*binding.name));
    known.extend(DeviceInfo::attribute_names().map(|name| -> &str { name }));
    known.insert(VARIANT);
    let unknown = rule.program.names().iter().filter(|name| !known.contains(name.as_str()));
    let mut faults: Vec<Diagnostic> = unknown
        .map(|name| {
            let fault = Diagnostic::whole(format!("--filter '{text}': there is no axis `{name}`"));
            match nearest(name, known.iter().copied()) {
                Some(near) => fault.hint(format!("did you mean `{near}`?")),
                None => fault.hint("a filter may name axes, bindings of [let] and `variant`"),
            }
        })
        .collect();
    if faults.is_empty() {
        faults.push(Diagnostic::whole(format!("--filter '{text}': no variant has all of these axes")));
    }
    faults
}
