//! Definition of each variant, assembled once for the whole plan.
//!
//! A [`Recipe`] is one variant with the parts of the shared tables that it uses. Its bindings are sorted by dependency.
//! A binding that a variant does not use is never evaluated for it, and so cannot fail.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use runner_experiment::{
    BodySpec, BufferSpec, CheckSpec, Expression, LetBinding, Manifest, PrintedSpec, VariantSpec, WorkSpec,
};
use runner_lang::diagnostics::Diagnostic;
use runner_lang::{ExprError, Program, Scope};
use runner_types::{BackendKind, Unsanitized};

use super::PlanOptions;
use super::axes::Axes;

mod names;

pub use names::{Needs, of_launch};

/// Name that evaluates to the variant's name.
pub const VARIANT: &str = "variant";

/// Name of the block size chosen by `block = "occupancy"`, which is known only on the device.
pub const OCCUPANCY_BLOCK: &str = "occupancy_block";

/// Name of the 0-based index of a repetition of a launch or of the whole sequence.
pub const NTH: &str = "nth";

/// A variant of the manifest, with the parts of the shared tables that it uses.
#[derive(Debug)]
pub struct Recipe {
    /// Bindings, sorted so that each comes after those that it uses.
    pub lets: Vec<LetBinding>,
    pub requires: Vec<Expression>,
    pub guard: Needs,
    /// Names that everything else in the job needs.
    pub needs: Needs,
    /// Buffers that the body or the checks use.
    pub buffers: Vec<BufferSpec>,
    pub body: BodySpec,
    pub checks: Vec<CheckSpec>,
    pub printed: Option<PrintedSpec>,
    pub work: WorkSpec,
    pub unsanitized: Option<Unsanitized>,
    /// Whether to run only a sample of the blocks.
    pub sampled: bool,
}

/// A condition on cells: an `exclude` rule, or the filter.
#[derive(Debug)]
pub struct Rule {
    pub program: Program,
    pub why: String,
    /// Names that it needs from each variant of the manifest; `None` for a variant that lacks one of them.
    pub needs: Vec<Option<Needs>>,
}

#[derive(Debug)]
pub struct Rules {
    pub exclude: Vec<Rule>,
    pub filter: Option<Rule>,
}

/// Builds the recipe of every variant.
pub fn of_variants(manifest: &Manifest, options: &PlanOptions) -> Result<Vec<Recipe>, Vec<Diagnostic>> {
    let (mut recipes, mut faults) = (Vec::new(), Vec::new());
    for spec in &manifest.variants {
        match recipe(manifest, options, spec) {
            Ok(recipe) => recipes.push(recipe),
            Err(fault) if faults.contains(&fault) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(recipes) } else { Err(faults) }
}

fn recipe(manifest: &Manifest, options: &PlanOptions, spec: &VariantSpec) -> Result<Recipe, Diagnostic> {
    let lets = lets(manifest, options, spec)?;
    // Expected output is part of the checks: a variant with its own checks also has its own expected output.
    let (checks, printed) = match &spec.checks {
        Some(own) => (own, spec.printed.as_ref()),
        None => (&manifest.checks, spec.printed.as_ref().or(manifest.printed.as_ref())),
    };
    let used = names::buffers_used(&spec.body, checks);
    let launches = matches!(spec.body, BodySpec::Launches { .. });
    let keep = |buffer: &&BufferSpec| used.contains(&buffer.name) || (launches && buffer.symbol.is_some());
    let buffers = replaced(&manifest.buffers, &spec.buffers, |buffer| &buffer.name);
    let own = spec.on.get(&options.backend);
    let conditions = spec.requires.iter().chain(own.iter().flat_map(|own| &own.requires));
    let requires: Vec<Expression> = conditions.cloned().collect();
    let mut recipe = Recipe {
        guard: Needs::collect(requires.iter().flat_map(|condition| condition.names()), &lets),
        lets,
        requires,
        unsanitized: spec.unsanitized.clone(),
        sampled: spec.sampled && options.backend == BackendKind::Sim,
        needs: Needs::default(),
        buffers: buffers.into_iter().filter(keep).cloned().collect(),
        body: spec.body.clone(),
        checks: checks.clone(),
        printed: printed.cloned(),
        work: spec.work.as_ref().unwrap_or(&manifest.work).clone(),
    };
    recipe.needs = Needs::collect(&names::of_recipe(&recipe), &recipe.lets);
    Ok(recipe)
}

/// Bindings of a variant. Its own take precedence over the backend's, and these over the manifest's.
fn lets(manifest: &Manifest, options: &PlanOptions, spec: &VariantSpec) -> Result<Vec<LetBinding>, Diagnostic> {
    let backend = manifest.on.get(&options.sizes).map(|on| on.lets.as_slice()).unwrap_or_default();
    let bindings = replaced(manifest.lets.iter().chain(backend), &spec.lets, |binding| &*binding.name);
    names::in_order(bindings.into_iter().cloned().collect())
}

/// Merges tables by name: a later entry replaces an earlier one.
fn replaced<'m, T>(
    shared: impl IntoIterator<Item = &'m T>,
    own: &'m [T],
    name: impl Fn(&'m T) -> &'m str,
) -> Vec<&'m T> {
    let (mut entries, mut places): (Vec<&T>, HashMap<&str, usize>) = (Vec::new(), HashMap::new());
    for entry in shared.into_iter().chain(own) {
        match places.entry(name(entry)) {
            Entry::Occupied(place) => entries[*place.get()] = entry,
            Entry::Vacant(place) => {
                place.insert(entries.len());
                entries.push(entry);
            }
        }
    }
    entries
}

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
            program.names().iter().all(|name| known(name)).then(|| Needs::collect(program.names(), &recipe.lets))
        });
        Rule { needs: needs.collect(), program, why }
    };
    let mut exclude = Vec::new();
    for rule in &manifest.exclude {
        exclude.push(bind(Program::clone(&rule.when), rule.why.clone()));
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

pub fn option_fault(filter: &str, error: ExprError) -> Diagnostic {
    let fault = Diagnostic::whole(format!("--filter '{filter}': {}", error.message));
    match error.hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

impl Recipe {
    /// Evaluates the bindings in `needs` that are not yet in the scope. The error names the binding that failed.
    pub fn bind(&self, needs: &Needs, scope: &mut Scope) -> Result<(), ExprError> {
        for &index in &needs.lets {
            let binding = &self.lets[index];
            if scope.get(&binding.name).is_none() {
                let value = binding.value.evaluate(scope).map_err(|error| ExprError {
                    message: format!("let `{}`: {}", binding.name, error.message),
                    // The range would be in the binding, not in the expression that uses it.
                    at: None,
                    hint: error.hint,
                })?;
                scope.set(binding.name.clone(), value);
            }
        }
        Ok(())
    }
}
