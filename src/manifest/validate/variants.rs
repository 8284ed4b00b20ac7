//! What there is to refer to: shared axes, bindings and buffers, and those of each variant.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{Context, Names, written};
use super::names::{Kind, Taken};
use super::{axes, buffers, checks, lets};
use crate::experiment::{ArgSpec, Axis, AxisOverride, BufferSpec, LetBinding, Template};
use crate::expr::template::Style;
use crate::manifest::raw::{Arg, RawManifest, RawOn, RawVariant, Ref};
use crate::manifest::read::{At, Named};
use crate::model::{BackendKind, DeviceInfo, Diagnostic, Span, Value};

/// Everything that has a name.
#[derive(Debug, Default)]
pub struct Declared {
    pub axes: Vec<Axis>,
    pub on: BTreeMap<BackendKind, AxisOverride>,
    pub lets: Vec<LetBinding>,
    pub buffers: Vec<BufferSpec>,
    pub variants: Vec<DeclaredVariant>,
    /// Whether there are shared checks.
    pub has_checks: bool,
    /// Of no variant: what shared expressions are held against where there is none.
    shared: Names,
}

/// One `[[variant]]`, before its body is looked at.
#[derive(Debug)]
pub struct DeclaredVariant {
    pub name: Template,
    pub axes: Vec<Axis>,
    pub lets: Vec<LetBinding>,
    pub buffers: Vec<BufferSpec>,
    /// What its expressions may name.
    pub names: Names,
    /// Its names for every point of its axes.
    pub expanded: Vec<String>,
    /// The buffers that its body names.
    pub uses: BTreeSet<String>,
    /// Whether it is timed on the host: it writes no buffer, and is not checked.
    pub on_host: bool,
    pub has_own_work: bool,
    /// Whether it is to fail.
    pub is_lesson: bool,
    /// The buffers that its own checks name; absent where the shared checks are its.
    pub own_checks: Option<BTreeSet<String>>,
}

impl Declared {
    /// What the expressions of the variants that `wanted` picks may name; the shared names where there is no variant.
    pub fn scopes(&self, wanted: impl Fn(&DeclaredVariant) -> bool) -> Vec<&Names> {
        if self.variants.is_empty() {
            return vec![&self.shared];
        }
        self.variants.iter().filter(|variant| wanted(variant)).map(|variant| &variant.names).collect()
    }

    /// The names of all variants after expansion.
    pub fn variant_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.variants.iter().flat_map(|variant| &variant.expanded).map(String::as_str)
    }

    /// The axes that a template of `variant` may name, with the values that they take on any backend.
    pub fn axes_of(&self, variant: Option<&DeclaredVariant>) -> Vec<Axis> {
        let mut axes = self.axes.clone();
        for axis in &mut axes {
            for other in self.on.values().flat_map(|on| &on.axes).filter(|other| other.name == axis.name) {
                let new = other.values.iter().filter(|value| !axis.values.contains(value));
                let new: Vec<Value> = new.cloned().collect();
                axis.values.extend(new);
            }
        }
        axes.extend(variant.into_iter().flat_map(|variant| variant.axes.iter().cloned()));
        axes
    }
}

impl DeclaredVariant {
    /// The buffer of this name as the variant has it.
    pub fn buffer<'d>(&'d self, shared: &'d [BufferSpec], name: &str) -> Option<&'d BufferSpec> {
        self.buffers.iter().chain(shared).find(|buffer| buffer.name == name)
    }

    pub fn has_own_buffer(&self, name: &str) -> bool {
        self.buffers.iter().any(|buffer| buffer.name == name)
    }
}

pub fn declare(ctx: &mut Context, raw: &RawManifest) -> Declared {
    let mut taken = Taken::default();
    take_all(ctx, &mut taken, Kind::Axis, raw.axes.as_ref());
    take_all(ctx, &mut taken, Kind::Let, raw.r#let.as_ref());
    take_all(ctx, &mut taken, Kind::Buffer, raw.buffers.as_ref());
    let axes = axes::axes(ctx, raw.axes.as_ref());
    let lets = lets::bindings(raw.r#let.as_ref());
    let on = overrides(ctx, raw.on.as_ref(), &axes, &lets);
    let buffers = buffers::buffers(ctx, raw.buffers.as_ref());
    let (has_checks, shared) = (raw.check.is_some(), Names::default());
    let mut declared = Declared { axes, on, lets, buffers, variants: Vec::new(), has_checks, shared };
    declared.shared = names(None, &declared, &[], &[]);
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

/// Axes, device attributes, and the bindings that have a value.
fn names(variant: Option<String>, declared: &Declared, axes: &[Axis], lets: &[LetBinding]) -> Names {
    let axes = declared.axes.iter().chain(axes).map(|axis| axis.name.clone());
    let mut known: BTreeSet<String> = axes.chain(DeviceInfo::ATTRIBUTE_NAMES.map(str::to_owned)).collect();
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
        let backend = match name.value.as_str() {
            "cuda" => BackendKind::Cuda,
            "sim" => BackendKind::Sim,
            other => {
                ctx.unknown(name.span.clone(), "backend", other, ["cuda", "sim"]);
                continue;
            }
        };
        on.insert(backend, replacement(ctx, &raw.value, shared, lets));
    }
    on
}

fn replacement(ctx: &mut Context, raw: &RawOn, shared: &[Axis], lets: &[LetBinding]) -> AxisOverride {
    for (name, _) in raw.axes.iter().flat_map(|named| &named.0) {
        if !shared.iter().any(|axis| axis.name == name.value) {
            ctx.unknown(name.span.clone(), "axis", &name.value, shared.iter().map(|axis| axis.name.as_str()));
        }
    }
    for (name, _) in raw.r#let.iter().flat_map(|named| &named.0) {
        if !lets.iter().any(|binding| *binding.name == *name.value) {
            ctx.unknown(name.span.clone(), "let", &name.value, lets.iter().map(|binding| &*binding.name));
        }
    }
    let axes = axes::axes(ctx, raw.axes.as_ref());
    for axis in &axes {
        let original = shared.iter().find(|other| other.name == axis.name).and_then(|other| other.values.first());
        if let (Some(theirs), Some(ours)) = (original, axis.values.first())
            && theirs.kind() != ours.kind()
        {
            let message = format!("axis `{}` has {} values, not {} values", axis.name, theirs.kind(), ours.kind());
            ctx.fault(Diagnostic::at(axis.span.clone(), message));
        }
    }
    AxisOverride { axes, lets: lets::bindings(raw.r#let.as_ref()) }
}

fn variant(ctx: &mut Context, raw: &At<RawVariant>, taken: &Taken, declared: &Declared) -> DeclaredVariant {
    let fields = &raw.value;
    let own = |named: &[String], name: &str| named.iter().any(|own| own == name);
    let own_lets = keys(fields.r#let.as_ref());
    let own_buffers = keys(fields.buffers.as_ref());
    let mut taken = taken.without(Kind::Let, |n| own(&own_lets, n)).without(Kind::Buffer, |n| own(&own_buffers, n));
    take_all(ctx, &mut taken, Kind::Axis, fields.axes.as_ref());
    take_all(ctx, &mut taken, Kind::Let, fields.r#let.as_ref());
    take_all(ctx, &mut taken, Kind::Buffer, fields.buffers.as_ref());

    let name = fields.name.0.clone().map_or_else(Template::missing, |name| name.0);
    let axes = axes::axes(ctx, fields.axes.as_ref());
    let lets = lets::bindings(fields.r#let.as_ref());
    let names = names(Some(name.text().to_owned()), declared, &axes, &lets);
    let expanded = expand(ctx, &name, &axes, &names);
    let buffers = buffers::buffers(ctx, fields.buffers.as_ref());
    DeclaredVariant {
        name,
        axes,
        lets,
        buffers,
        names,
        expanded,
        uses: uses(fields),
        on_host: fields.cpu.is_some(),
        has_own_work: fields.work.is_some(),
        is_lesson: fields.fails.is_some(),
        own_checks: fields.check.as_ref().map(|entries| checks::buffers_named(entries.as_slice())),
    }
}

/// The buffers that a body names, whatever it does; what is wrong with it is said elsewhere.
fn uses(raw: &RawVariant) -> BTreeSet<String> {
    let entries = raw.launch.iter().flat_map(|launch| &launch.value).map(|entry| &entry.value.kernel.0);
    let args = entries.chain([&raw.kernel.0]).filter_map(|launch| launch.args.as_ref()).flat_map(|args| &args.value);
    let args = args.filter_map(|Arg(arg)| match &arg.value {
        ArgSpec::Buffer(name) => Some(name.clone()),
        ArgSpec::Scalar { .. } => None,
    });
    let copies = raw.builtin.iter().filter_map(|builtin| builtin.value.memcpy.0.as_ref());
    let copied = copies.flat_map(|list| &list.value).flat_map(|pair| &pair.value).map(|name| name.value.clone());
    let host = raw.cpu.iter().flat_map(|Ref(cpu)| cpu.buffers().clone());
    args.chain(copied).chain(host).collect()
}

fn keys<T>(named: Option<&Named<T>>) -> Vec<String> {
    named.iter().flat_map(|named| &named.0).map(|(name, _)| name.value.clone()).collect()
}

/// The variant's name for every point of its own axes, which are all that it may name and must name.
fn expand(ctx: &mut Context, name: &Template, axes: &[Axis], names: &Names) -> Vec<String> {
    let is_own = |name: &String| axes.iter().any(|axis| axis.name == *name);
    ctx.known(name, &[names]);
    if let Some(other) = name.names().iter().find(|other| names.known.contains(*other) && !is_own(other)) {
        let message = format!("the name of a variant cannot depend on `{other}`, which is not an axis of its own");
        let hint = "a variant has one name at every point of the shared axes";
        ctx.fault(Diagnostic::at(name.span.clone(), message).hint(hint));
        return Vec::new();
    }
    for axis in axes.iter().filter(|axis| !name.names().contains(&axis.name)) {
        let message = format!("the name `{}` does not tell the values of axis `{}` apart", name.text(), axis.name);
        let hint = format!("each value makes a variant: write it into the name as `{{{}}}`", axis.name);
        ctx.fault(Diagnostic::at(name.span.clone(), message).hint(hint).related(axis.span.clone(), "its axis"));
    }
    let points = written(name, axes, Style::Names).unwrap_or_default();
    points.into_iter().map(|(_, name)| name).collect()
}

/// Reports names that two variants, or two points of one, share.
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
