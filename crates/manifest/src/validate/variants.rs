//! Collects the declarations of a manifest and its variants, and checks their names.
//!
//! This is the first pass of validation. `bodies` then validates the variants' bodies, with all names known.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{Context, Names, written};
use super::declared::{Declared, DeclaredVariant};
use super::names::{Kind, Taken};
use super::{axes, buffers, lets, named};
use crate::raw::{RawAxis, RawManifest, RawOn, RawVariant};
use crate::read::{At, Named};
use runner_experiment::{Axis, AxisOverride, BufferSpec, LetBinding, Template};
use runner_lang::diagnostics::Diagnostic;
use runner_lang::template::Style;
use runner_types::{BackendKind, DeviceInfo, Span};

pub fn declare(ctx: &mut Context, raw: &RawManifest) -> Declared {
    let mut taken = Taken::default();
    take_all(ctx, &mut taken, Kind::Axis, raw.axes.as_ref());
    take_all(ctx, &mut taken, Kind::Let, raw.r#let.as_ref());
    take_all(ctx, &mut taken, Kind::Buffer, raw.buffers.as_ref());
    let axes = axes::axes(ctx, raw.axes.as_ref());
    let lets = lets::bindings(raw.r#let.as_ref());
    let on = overrides(ctx, raw.on.as_ref(), &axes, &lets);
    let searched = raw.search.as_ref().and_then(|search| search.value.axes.as_ref());
    let searched = other_values(ctx, searched, &axes);
    let mut buffers = buffers::buffers(ctx, raw.buffers.as_ref());
    buffers::link(ctx, &mut buffers, &[]);
    let (has_checks, shared) = (raw.check.is_some(), Names::default());
    let experiment = raw.experiment.0.as_ref().and_then(|experiment| experiment.value.compiler.as_ref());
    let compiler = experiment.map(|at| at.value).unwrap_or_default();
    let mut declared =
        Declared { axes, on, searched, lets, buffers, variants: Vec::new(), compiler, has_checks, shared };
    declared.shared = names(None, &declared, &[], &[], &[]);
    for raw in raw.variant.0.iter().flatten() {
        let variant = variant(ctx, raw, &taken, &declared);
        declared.variants.push(variant);
    }
    if raw.variant.0.as_ref().is_some_and(Vec::is_empty) {
        ctx.fault(Diagnostic::whole("the manifest has no variant").hint("add a [[variant]]"));
    }
    unique(ctx, &declared);
    declared
}

fn take_all<T>(ctx: &mut Context, taken: &mut Taken, kind: Kind, raw: Option<&Named<T>>) {
    for (name, _) in raw.iter().flat_map(|named| &named.0) {
        taken.take(ctx, kind, name);
    }
}

/// Collects the axes, the device attributes, and the bindings that have a value.
fn names(
    variant: Option<String>,
    declared: &Declared,
    axes: &[Axis],
    lets: &[LetBinding],
    buffers: &[BufferSpec],
) -> Names {
    let axes = declared.axes.iter().chain(axes).map(|axis| axis.name.clone());
    let mut known: BTreeSet<String> = axes.chain(DeviceInfo::attribute_names().map(str::to_owned)).collect();
    let as_long_as_files = declared.buffers.iter().chain(buffers).filter(|buffer| buffer.is_as_long_as_its_file());
    known.extend(as_long_as_files.map(|buffer| BufferSpec::length_name(&buffer.name)));
    let with_extents = declared.buffers.iter().chain(buffers).filter(|buffer| buffer.has_extents());
    known.extend(with_extents.flat_map(|buffer| BufferSpec::extent_names(&buffer.name)));
    let mut broken = BTreeMap::new();
    for layer in lets::layers(declared) {
        broken.extend(lets::broken(&known, &[&declared.lets, layer, lets]));
    }
    let bindings = declared.lets.iter().chain(lets).map(|binding| binding.name.to_string());
    known.extend(bindings.filter(|name| !broken.contains_key(name)));
    Names { variant, known, broken }
}

fn overrides(
    ctx: &mut Context,
    raw: Option<&Named<At<RawOn>>>,
    shared: &[Axis],
    lets: &[LetBinding],
) -> BTreeMap<BackendKind, AxisOverride> {
    let mut on = BTreeMap::new();
    for (name, raw) in raw.iter().flat_map(|named| &named.0) {
        let Some(backend) = ctx.backend(&name.value, &name.span) else { continue };
        on.insert(backend, replacement(ctx, &raw.value, shared, lets));
    }
    on
}

fn replacement(ctx: &mut Context, raw: &RawOn, shared: &[Axis], lets: &[LetBinding]) -> AxisOverride {
    for (name, _) in raw.r#let.iter().flat_map(|named| &named.0) {
        if !lets.iter().any(|binding| *binding.name == *name.value) {
            ctx.unknown(name.span.clone(), "let", &name.value, lets.iter().map(|binding| &*binding.name));
        }
    }
    AxisOverride { axes: other_values(ctx, raw.axes.as_ref(), shared), lets: lets::bindings(raw.r#let.as_ref()) }
}

/// Overrides of shared axes, by name.
fn other_values(ctx: &mut Context, raw: Option<&Named<At<RawAxis>>>, shared: &[Axis]) -> Vec<Axis> {
    for (name, _) in raw.iter().flat_map(|named| &named.0) {
        if !shared.iter().any(|axis| axis.name == name.value) {
            ctx.unknown(name.span.clone(), "axis", &name.value, shared.iter().map(|axis| axis.name.as_str()));
        }
    }
    let axes = axes::axes(ctx, raw);
    for axis in &axes {
        let original = shared.iter().find(|other| other.name == axis.name).and_then(|other| other.values.first());
        if let (Some(theirs), Some(ours)) = (original, axis.values.first())
            && theirs.kind() != ours.kind()
        {
            let message = format!("axis `{}` has {} values, not {} values", axis.name, theirs.kind(), ours.kind());
            ctx.fault(Diagnostic::at(axis.span.clone(), message));
        }
    }
    axes
}

fn variant(ctx: &mut Context, raw: &At<RawVariant>, taken: &Taken, declared: &Declared) -> DeclaredVariant {
    let fields = &raw.value;
    let own = |named: &[String], name: &str| named.iter().any(|own| own == name);
    let own_lets = keys(fields.r#let.as_ref());
    let own_buffers = keys(fields.buffers.as_ref());
    let mut taken = taken.remove(Kind::Let, |n| own(&own_lets, n)).remove(Kind::Buffer, |n| own(&own_buffers, n));
    take_all(ctx, &mut taken, Kind::Axis, fields.axes.as_ref());
    take_all(ctx, &mut taken, Kind::Let, fields.r#let.as_ref());
    take_all(ctx, &mut taken, Kind::Buffer, fields.buffers.as_ref());

    let name = fields.name.0.clone().map_or_else(Template::missing, |name| name.0);
    let axes = axes::axes(ctx, fields.axes.as_ref());
    let lets = lets::bindings(fields.r#let.as_ref());
    let mut buffers = buffers::buffers(ctx, fields.buffers.as_ref());
    buffers::link(ctx, &mut buffers, &declared.buffers);
    let names = names(Some(name.text().to_owned()), declared, &axes, &lets, &buffers);
    let expanded = expand(ctx, &name, &axes, &names);
    DeclaredVariant {
        name,
        axes,
        lets,
        buffers,
        names,
        expanded,
        uses: named::in_body(fields),
        on_host: fields.cpu.is_some(),
        has_own_work: fields.work.is_some(),
        expects_failure: fields.fails.is_some(),
        own_checks: fields.check.as_ref().map(|entries| named::in_checks(entries.as_slice())),
    }
}

fn keys<T>(named: Option<&Named<T>>) -> Vec<String> {
    named.iter().flat_map(|named| &named.0).map(|(name, _)| name.value.clone()).collect()
}

/// Names of the variant at all points of its axes. The template must use all of the variant's axes and nothing else.
fn expand(ctx: &mut Context, name: &Template, axes: &[Axis], names: &Names) -> Vec<String> {
    let is_own = |name: &String| axes.iter().any(|axis| axis.name == *name);
    ctx.known(name, &[names]);
    if let Some(other) = name.names().iter().find(|other| names.known.contains(*other) && !is_own(other)) {
        let message = format!("the name of a variant cannot depend on `{other}`, which is not one of its own axes");
        let hint = "a variant must have the same name at every point of the shared axes";
        ctx.fault(Diagnostic::at(name.span.clone(), message).hint(hint));
        return Vec::new();
    }
    for axis in axes.iter().filter(|axis| !name.names().contains(&axis.name)) {
        let message = format!("the name `{}` does not contain axis `{}`", name.text(), axis.name);
        let hint = format!("each value is its own variant: put it in the name as `{{{}}}`", axis.name);
        ctx.fault(Diagnostic::at(name.span.clone(), message).hint(hint).related(axis.span.clone(), "its axis"));
    }
    let points = written(name, axes, Style::Names).unwrap_or_default();
    points.into_iter().map(|(_, name)| name).collect()
}

/// Reports a name shared by two variants, or by two points of one variant.
fn unique(ctx: &mut Context, declared: &Declared) {
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    for variant in &declared.variants {
        for name in &variant.expanded {
            if let Some(first) = seen.insert(name, &variant.name.span) {
                let fault = Diagnostic::at(variant.name.span.clone(), format!("two variants are called `{name}`"));
                let same = *first == variant.name.span;
                ctx.fault(if same { fault } else { fault.label("again").related(first.clone(), "first") });
            }
        }
    }
}
