//! Declarations of a manifest: the axes, bindings and buffers that are shared, and those of each variant.
//!
//! They are collected before any body is checked, since bodies, checks and claims may use any of them.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{Context, Names};
use runner_experiment::{Axis, AxisOverride, BufferSpec, LetBinding, Template};
use runner_types::{BackendKind, KernelCompiler, Span, Value};

#[derive(Debug, Default)]
pub struct Declared {
    pub axes: Vec<Axis>,
    pub on: BTreeMap<BackendKind, AxisOverride>,
    /// Axes of `[search]`.
    pub searched: Vec<Axis>,
    pub lets: Vec<LetBinding>,
    pub buffers: Vec<BufferSpec>,
    pub variants: Vec<DeclaredVariant>,
    /// Default kernel compiler of the variants.
    pub compiler: KernelCompiler,
    pub has_checks: bool,
    /// Names available to every variant. If there are no variants, shared expressions are checked against them.
    pub shared: Names,
}

/// Declarations of one `[[variant]]`. Its body is checked later.
#[derive(Debug)]
pub struct DeclaredVariant {
    pub name: Template,
    pub axes: Vec<Axis>,
    pub lets: Vec<LetBinding>,
    pub buffers: Vec<BufferSpec>,
    pub names: Names,
    /// Names of the variant at all points of its axes.
    pub expanded: Vec<String>,
    /// Buffers used by its body.
    pub uses: BTreeSet<String>,
    /// Whether it is timed on the host; if so, it writes no buffer and is not checked.
    pub on_host: bool,
    pub has_own_work: bool,
    /// Whether its cases are expected to fail.
    pub expects_failure: bool,
    /// Buffers used by its own checks; `None` if the shared checks apply.
    pub own_checks: Option<BTreeSet<String>>,
}

/// The variants to which a check applies, and the manifest's declarations.
#[derive(Debug, Clone, Copy)]
pub struct CheckedVariants<'d> {
    pub declared: &'d Declared,
    pub variants: &'d [&'d DeclaredVariant],
}

impl<'d> CheckedVariants<'d> {
    pub fn scopes(&self) -> Vec<&'d Names> {
        self.variants.iter().map(|variant| &variant.names).collect()
    }
}

impl Declared {
    /// Names of each variant that `wanted` accepts, or the shared names if there are no variants.
    pub fn scopes(&self, wanted: impl Fn(&DeclaredVariant) -> bool) -> Vec<&Names> {
        if self.variants.is_empty() {
            return vec![&self.shared];
        }
        self.variants.iter().filter(|variant| wanted(variant)).map(|variant| &variant.names).collect()
    }

    /// Names of all variants, expanded over their axes.
    pub fn variant_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.variants.iter().flat_map(|variant| &variant.expanded).map(String::as_str)
    }

    /// Reports a name that no variant has, unless some variants' names are unknown.
    pub fn require_variant(&self, ctx: &mut Context, name: &str, place: Span) {
        let are_known = self.variants.iter().all(|variant| !variant.expanded.is_empty());
        if are_known && !self.variant_names().any(|known| known == name) {
            ctx.unknown(place, "variant", name, self.variant_names());
        }
    }

    /// Axes that a template of `variant` may use, with their values on all backends and in a search.
    pub fn axes_of(&self, variant: Option<&DeclaredVariant>) -> Vec<Axis> {
        let mut axes = self.axes.clone();
        for axis in &mut axes {
            let others = self.on.values().flat_map(|on| &on.axes).chain(&self.searched);
            for other in others.filter(|other| other.name == axis.name) {
                let new = other.values.iter().filter(|value| !axis.values.contains(value));
                let new: Vec<Value> = new.cloned().collect();
                axis.values.extend(new);
            }
        }
        axes.extend(variant.into_iter().flat_map(|variant| variant.axes.iter().cloned()));
        axes
    }

    /// Buffers that a variant can use, starting with its own.
    pub fn buffers_of<'d>(&'d self, variant: &'d DeclaredVariant) -> impl Iterator<Item = &'d BufferSpec> + Clone {
        let shared = self.buffers.iter().filter(|buffer| !variant.has_own_buffer(&buffer.name));
        variant.buffers.iter().chain(shared)
    }
}

impl DeclaredVariant {
    /// The variant's own buffer with this name, or else the shared one.
    pub fn buffer<'d>(&'d self, shared: &'d [BufferSpec], name: &str) -> Option<&'d BufferSpec> {
        self.buffers.iter().chain(shared).find(|buffer| buffer.name == name)
    }

    pub fn has_own_buffer(&self, name: &str) -> bool {
        self.buffers.iter().any(|buffer| buffer.name == name)
    }
}
