//! The manifest's expressions, read once for the whole plan.
//!
//! A [`Recipe`] is one variant of the manifest with every expression parsed, its bindings in an order in which each
//! follows what it uses, and the ones it needs known beforehand: a binding that nothing of a variant uses is never
//! worked out for it, and so cannot fail there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::expr::reference::{self, RefProgram};
use crate::expr::template::{self, TemplateProgram};
use crate::expr::{ExprError, Program, Scope};
use crate::model::{
    Access, Allocation, ArgSpec, BlockSpec, BodySpec, BufferSpec, BuiltinSpec, CheckSpec, CompileSpec, DeviceInfo,
    Diagnostic, Expectation, Expression, FillSpec, GridSpec, LaunchSpec, LetBinding, Manifest, PrintedSpec, Template,
    ToleranceSpec, VariantSpec, WorkSpec,
};

use super::PlanOptions;
use super::axes::Axes;

mod names;

pub use names::Needs;

/// The name that stands for the variant's name.
pub const VARIANT: &str = "variant";

/// The block size that `block = "occupancy"` finds, known only on the device.
pub const OCCUPANCY_BLOCK: &str = "occupancy_block";

/// Which repetition of a launch or of the sequence it is, from 0.
pub const NTH: &str = "nth";

/// One variant of the manifest, read.
#[derive(Debug)]
pub struct Recipe {
    pub lets: Vec<LetRecipe>,
    pub requires: Vec<Program>,
    /// What `requires` needs.
    pub guard: Needs,
    /// What the job needs.
    pub needs: Needs,
    pub buffers: Vec<BufferRecipe>,
    pub body: BodyRecipe,
    pub checks: Vec<CheckRecipe>,
    pub printed: Option<PrintedRecipe>,
    pub bytes: Option<Program>,
    pub flops: Option<Program>,
}

/// One binding.
#[derive(Debug, Clone)]
pub struct LetRecipe {
    pub name: Arc<str>,
    pub program: Program,
}

#[derive(Debug)]
pub struct BufferRecipe {
    pub name: String,
    pub element: TemplateProgram,
    pub len: Program,
    pub fill: Option<FillRecipe>,
    pub access: Access,
    pub symbol: Option<TemplateProgram>,
    pub allocate: Allocation,
}

#[derive(Debug)]
pub enum FillRecipe {
    Constant(Program),
    Iota { start: Program, step: Program },
    Uniform { low: Program, high: Program, seed: u64 },
    Normal { mean: Program, deviation: Program, seed: u64 },
    Npy(PathBuf),
}

#[derive(Debug)]
pub enum BodyRecipe {
    Launches { rounds: Option<Program>, launches: Vec<LaunchRecipe> },
    Memcpy(Vec<(String, String)>),
    Cpu(RefProgram),
    Host(HostRecipe),
}

#[derive(Debug)]
pub struct HostRecipe {
    pub source: PathBuf,
    pub function: TemplateProgram,
    pub args: Vec<ArgRecipe>,
    pub libraries: Vec<TemplateProgram>,
    pub compile: CompileRecipe,
}

#[derive(Debug)]
pub struct LaunchRecipe {
    pub label: Option<String>,
    pub source: PathBuf,
    pub kernel: TemplateProgram,
    /// `None` for as many blocks as reside on the device at once.
    pub grid: Option<Vec<Program>>,
    /// `None` for the block size with the most resident threads.
    pub block: Option<Vec<Program>>,
    pub shared: Option<Program>,
    pub args: Vec<ArgRecipe>,
    pub cooperative: bool,
    pub repeat: Option<Program>,
    pub stream: Option<Program>,
    pub pending_launches: Option<Program>,
    pub compile: CompileRecipe,
}

#[derive(Debug)]
pub struct CompileRecipe {
    pub defines: Vec<(String, TemplateProgram)>,
    pub options: Vec<TemplateProgram>,
    pub include_paths: Vec<PathBuf>,
    pub debug: bool,
    pub max_registers: Option<Program>,
    pub relocatable: bool,
}

#[derive(Debug)]
pub enum ArgRecipe {
    Buffer(String),
    Scalar { element: TemplateProgram, value: Program },
}

#[derive(Debug)]
pub struct CheckRecipe {
    pub text: String,
    pub actual: RefProgram,
    pub expect: ExpectRecipe,
    pub tolerance: ToleranceSpec,
    pub error: bool,
}

#[derive(Debug)]
pub enum PrintedRecipe {
    Lines(Vec<TemplateProgram>),
    /// A file of this folder.
    File(PathBuf, TemplateProgram),
}

#[derive(Debug)]
pub enum ExpectRecipe {
    Reference(RefProgram),
    Variant(String),
    Npy(PathBuf),
}

/// A condition on cells: an `exclude` rule, or the filter.
#[derive(Debug)]
pub struct Rule {
    pub program: Program,
    pub why: String,
    /// What it needs of each variant of the manifest; `None` for one that lacks a name of the rule.
    pub needs: Vec<Option<Needs>>,
}

/// Every condition on cells.
#[derive(Debug)]
pub struct Rules {
    pub exclude: Vec<Rule>,
    pub filter: Option<Rule>,
}

/// Reads every variant.
pub fn read_all(manifest: &Manifest, options: &PlanOptions) -> Result<Vec<Recipe>, Vec<Diagnostic>> {
    let mut reader = Reader { manifest, options };
    let (mut recipes, mut faults) = (Vec::new(), Vec::new());
    for spec in &manifest.variants {
        match reader.recipe(spec) {
            Ok(recipe) => recipes.push(recipe),
            Err(fault) if faults.contains(&fault) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(recipes) } else { Err(faults) }
}

/// Reads the conditions.
pub fn rules(
    manifest: &Manifest,
    recipes: &[Recipe],
    axes: &Axes,
    options: &PlanOptions,
) -> Result<Rules, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let bind = |program: Program, why: String| {
        let needs = recipes.iter().zip(&axes.own).map(|(recipe, own)| {
            let known = |name: &str| names::in_scope(name, recipe, axes, own);
            program.names().iter().all(|name| known(name)).then(|| Needs::of(program.names(), &recipe.lets))
        });
        Rule { needs: needs.collect(), program, why }
    };
    let mut exclude = Vec::new();
    for rule in &manifest.exclude {
        match Program::parse(&rule.when.text) {
            Ok(program) => exclude.push(bind(program, rule.why.clone())),
            Err(error) => faults.push(fault(&rule.when, error)),
        }
    }
    let filter = options.filter.as_ref().and_then(|text| match Program::parse(text) {
        Ok(program) => Some(bind(program, String::new())),
        Err(error) => {
            faults.push(option_fault(text, error));
            None
        }
    });
    if let Some(rule) = &filter {
        faults.extend(names::faults_of_filter(rule, recipes, axes, options.device.is_some()));
    }
    if faults.is_empty() { Ok(Rules { exclude, filter }) } else { Err(faults) }
}

/// A fault of an expression of the manifest, at its place.
pub fn fault(expression: &Expression, error: ExprError) -> Diagnostic {
    let at = error.at.map_or_else(|| expression.span.clone(), |at| expression.place(at));
    let fault = Diagnostic::at(at, error.message);
    match error.hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

/// A fault of the filter.
pub fn option_fault(filter: &str, error: ExprError) -> Diagnostic {
    let fault = Diagnostic::whole(format!("--filter '{filter}': {}", error.message));
    match error.hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

struct Reader<'a> {
    manifest: &'a Manifest,
    options: &'a PlanOptions,
}

type Read<T> = Result<T, Diagnostic>;

impl Reader<'_> {
    fn recipe(&mut self, spec: &VariantSpec) -> Read<Recipe> {
        let lets = self.lets(spec)?;
        let body = Self::body(&spec.body)?;
        let (checks, every_buffer) = (self.checks(spec)?, self.buffers(spec)?);
        let used = names::buffers_used(&body, &checks);
        let launches = matches!(body, BodyRecipe::Launches { .. });
        let keep = |buffer: &BufferRecipe| used.contains(&buffer.name) || (launches && buffer.symbol.is_some());
        let work = spec.work.as_ref().unwrap_or(&self.manifest.work);
        let WorkSpec { bytes, flops } = work;
        let requires = Self::programs(&spec.requires)?;
        let guard = Needs::of(requires.iter().flat_map(Program::names), &lets);
        let mut recipe = Recipe {
            lets,
            requires,
            guard,
            needs: Needs::default(),
            buffers: every_buffer.into_iter().filter(keep).collect(),
            body,
            checks,
            printed: self.printed(spec)?,
            bytes: bytes.as_ref().map(Self::program).transpose()?,
            flops: flops.as_ref().map(Self::program).transpose()?,
        };
        recipe.needs = Needs::of(&names::of_recipe(&recipe), &recipe.lets);
        Ok(recipe)
    }

    fn program(expression: &Expression) -> Read<Program> {
        Program::parse(&expression.text).map_err(|e| fault(expression, e))
    }

    fn programs(expressions: &[Expression]) -> Read<Vec<Program>> {
        expressions.iter().map(Self::program).collect()
    }

    fn template(text: &Template) -> Read<TemplateProgram> {
        template::parse(&text.text).map_err(|error| {
            let at = error.at.map_or_else(|| text.span.clone(), |at| text.place(at));
            Diagnostic::at(at, error.message)
        })
    }

    fn templates(texts: &[Template]) -> Read<Vec<TemplateProgram>> {
        texts.iter().map(Self::template).collect()
    }

    fn reference(expression: &Expression) -> Read<RefProgram> {
        reference::parse(&expression.text).map_err(|e| fault(expression, e))
    }

    /// The bindings that this variant sees: its own, else the backend's, else the manifest's.
    fn lets(&self, spec: &VariantSpec) -> Read<Vec<LetRecipe>> {
        let backend = self.manifest.on.get(&self.options.sizes).map(|on| on.lets.as_slice()).unwrap_or_default();
        let mut bindings: Vec<&LetBinding> = Vec::new();
        for binding in self.manifest.lets.iter().chain(backend).chain(&spec.lets) {
            match bindings.iter_mut().find(|known| known.name == binding.name) {
                Some(known) => *known = binding,
                None => bindings.push(binding),
            }
        }
        let read = |binding: &&LetBinding| {
            Ok(LetRecipe { name: binding.name.as_str().into(), program: Self::program(&binding.value)? })
        };
        let lets = bindings.iter().map(read).collect::<Read<Vec<_>>>()?;
        names::in_order(lets).map_err(|name| {
            let span = bindings.iter().find(|b| b.name == name).map_or(spec.span.clone(), |b| b.value.span.clone());
            Diagnostic::at(span, format!("`{name}` depends on itself"))
        })
    }

    fn buffers(&self, spec: &VariantSpec) -> Read<Vec<BufferRecipe>> {
        let mut specs: Vec<&BufferSpec> = self.manifest.buffers.iter().collect();
        for own in &spec.buffers {
            match specs.iter_mut().find(|known| known.name == own.name) {
                Some(known) => *known = own,
                None => specs.push(own),
            }
        }
        specs.into_iter().map(Self::buffer).collect()
    }

    fn buffer(spec: &BufferSpec) -> Read<BufferRecipe> {
        Ok(BufferRecipe {
            name: spec.name.clone(),
            element: Self::template(&spec.element)?,
            len: Self::program(&spec.len)?,
            fill: spec.fill.as_ref().map(Self::fill).transpose()?,
            access: spec.access,
            symbol: spec.symbol.as_ref().map(Self::template).transpose()?,
            allocate: spec.allocate,
        })
    }

    fn fill(spec: &FillSpec) -> Read<FillRecipe> {
        Ok(match spec {
            FillSpec::Constant(value) => FillRecipe::Constant(Self::program(value)?),
            FillSpec::Iota { start, step } => {
                FillRecipe::Iota { start: Self::program(start)?, step: Self::program(step)? }
            }
            FillSpec::Uniform { low, high, seed } => {
                FillRecipe::Uniform { low: Self::program(low)?, high: Self::program(high)?, seed: *seed }
            }
            FillSpec::Normal { mean, deviation, seed } => {
                FillRecipe::Normal { mean: Self::program(mean)?, deviation: Self::program(deviation)?, seed: *seed }
            }
            FillSpec::Npy(path) => FillRecipe::Npy(path.clone()),
        })
    }

    /// The checks, of every body alike: what a reference timed on the host makes is held against `expect` too.
    fn checks(&self, spec: &VariantSpec) -> Read<Vec<CheckRecipe>> {
        spec.checks.as_ref().unwrap_or(&self.manifest.checks).iter().map(Self::check).collect()
    }

    /// What is to be printed belongs to the checks, and is the variant's own where those are.
    fn printed(&self, spec: &VariantSpec) -> Read<Option<PrintedRecipe>> {
        let shared = if spec.checks.is_some() { None } else { self.manifest.printed.as_ref() };
        Ok(match spec.printed.as_ref().or(shared) {
            None => None,
            Some(PrintedSpec::Lines(lines)) => Some(PrintedRecipe::Lines(Self::templates(lines)?)),
            Some(PrintedSpec::File(name)) => {
                let folder = self.manifest.source.path.parent().unwrap_or(Path::new("")).to_owned();
                Some(PrintedRecipe::File(folder, Self::template(name)?))
            }
        })
    }

    fn check(spec: &CheckSpec) -> Read<CheckRecipe> {
        let (expect, text) = match &spec.expect {
            Expectation::Reference(e) => (ExpectRecipe::Reference(Self::reference(e)?), e.text.to_string()),
            Expectation::Variant { name, .. } => (ExpectRecipe::Variant(name.clone()), format!("variant {name}")),
            Expectation::Npy(path) => (ExpectRecipe::Npy(path.clone()), path.display().to_string()),
        };
        Ok(CheckRecipe {
            text: format!("{} against {text}", spec.actual.text),
            actual: Self::reference(&spec.actual)?,
            expect,
            tolerance: spec.tolerance,
            error: spec.error,
        })
    }

    fn body(spec: &BodySpec) -> Read<BodyRecipe> {
        Ok(match spec {
            BodySpec::Launches { rounds, launches } => BodyRecipe::Launches {
                rounds: rounds.as_ref().map(Self::program).transpose()?,
                launches: launches.iter().map(Self::launch).collect::<Read<_>>()?,
            },
            BodySpec::Builtin(BuiltinSpec::Memcpy(pairs)) => BodyRecipe::Memcpy(pairs.clone()),
            BodySpec::Cpu(expression) => BodyRecipe::Cpu(Self::reference(expression)?),
            BodySpec::Host(host) => BodyRecipe::Host(HostRecipe {
                source: host.source.clone(),
                function: Self::template(&host.function)?,
                args: Self::args(&host.args)?,
                libraries: Self::templates(&host.libraries)?,
                compile: Self::compile(&host.compile)?,
            }),
        })
    }

    fn launch(spec: &LaunchSpec) -> Read<LaunchRecipe> {
        Ok(LaunchRecipe {
            label: spec.label.clone(),
            source: spec.source.clone(),
            kernel: Self::template(&spec.kernel)?,
            grid: match &spec.grid {
                GridSpec::Dims(dims) => Some(Self::programs(dims)?),
                GridSpec::Occupancy => None,
            },
            block: match &spec.block {
                BlockSpec::Dims(dims) => Some(Self::programs(dims)?),
                BlockSpec::Occupancy => None,
            },
            shared: spec.shared.as_ref().map(Self::program).transpose()?,
            args: Self::args(&spec.args)?,
            cooperative: spec.cooperative,
            repeat: spec.repeat.as_ref().map(Self::program).transpose()?,
            stream: spec.stream.as_ref().map(Self::program).transpose()?,
            pending_launches: spec.pending_launches.as_ref().map(Self::program).transpose()?,
            compile: Self::compile(&spec.compile)?,
        })
    }

    fn compile(spec: &CompileSpec) -> Read<CompileRecipe> {
        let define = |(name, value): &(String, Template)| Ok((name.clone(), Self::template(value)?));
        Ok(CompileRecipe {
            defines: spec.defines.iter().map(define).collect::<Read<_>>()?,
            options: Self::templates(&spec.options)?,
            include_paths: spec.include_paths.clone(),
            debug: spec.debug,
            max_registers: spec.max_registers.as_ref().map(Self::program).transpose()?,
            relocatable: spec.relocatable,
        })
    }

    fn args(specs: &[ArgSpec]) -> Read<Vec<ArgRecipe>> {
        specs.iter().map(Self::arg).collect()
    }

    fn arg(spec: &ArgSpec) -> Read<ArgRecipe> {
        Ok(match spec {
            ArgSpec::Buffer(name) => ArgRecipe::Buffer(name.clone()),
            ArgSpec::Scalar { element, value } => {
                ArgRecipe::Scalar { element: Self::template(element)?, value: Self::program(value)? }
            }
        })
    }
}

impl Recipe {
    /// Works out the bindings that `needs` lists and the scope lacks; the failing one is named in the error.
    pub fn bind(&self, needs: &Needs, scope: &mut Scope) -> Result<(), ExprError> {
        for &index in &needs.lets {
            let binding = &self.lets[index];
            if scope.get(&binding.name).is_none() {
                let value = binding.program.evaluate(scope).map_err(|error| ExprError {
                    message: format!("let `{}`: {}", binding.name, error.message),
                    // It points into the binding, not into the expression that uses it.
                    at: None,
                    hint: error.hint,
                })?;
                scope.set(binding.name.clone(), value);
            }
        }
        Ok(())
    }
}
