//! Validates `[matrix]`, the compared axes and the baseline: everything that selects or groups points.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{Context, Names, VARIANT};
use super::declared::Declared;
use crate::raw::{Literal, RawBaseline, RawExperiment, RawMatrix};
use crate::read::{At, Named};
use runner_experiment::{Axis, Baseline, ExcludeRule, Expression};
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Span, Value};

/// Contents of `[matrix]`.
#[derive(Debug, Default)]
pub struct Matrix {
    pub zip: Vec<Vec<String>>,
    pub exclude: Vec<ExcludeRule>,
    pub include: Vec<BTreeMap<String, Value>>,
}

pub fn matrix(ctx: &mut Context, raw: Option<&At<RawMatrix>>, declared: &Declared) -> Matrix {
    let Some(raw) = raw else { return Matrix::default() };
    let zip = zip(ctx, raw.value.zip.as_deref().unwrap_or_default(), declared);
    let mut exclude = Vec::new();
    for rule in raw.value.exclude.iter().flatten() {
        let (Some(when), Some(why)) = (&rule.value.when.0, &rule.value.why.0) else { continue };
        condition(ctx, &when.0, declared);
        exclude.push(ExcludeRule { when: when.0.clone(), why: why.value.clone() });
    }
    let points = raw.value.include.iter().flatten();
    let include = points.map(|point| include(ctx, point, &declared.axes)).collect();
    Matrix { zip, exclude, include }
}

/// Validates a condition on cells. It applies to the variants that have all its names, and there must be at least one.
fn condition(ctx: &mut Context, when: &Expression, declared: &Declared) {
    let mut scopes: Vec<Names> = declared.scopes(|_| true).into_iter().cloned().collect();
    for scope in &mut scopes {
        scope.known.insert(VARIANT.to_owned());
    }
    if !scopes.iter().any(|scope| when.names().is_subset(&scope.known)) {
        // Checked against the names of all variants together, so that only names that no variant has are reported.
        let known = scopes.iter().flat_map(|scope| scope.known.iter().cloned()).collect();
        let all = Names { known, ..Names::default() };
        if when.names().is_subset(&all.known) {
            let message = "no variant defines all the names in this condition";
            ctx.fault(Diagnostic::at(when.span.clone(), message).hint("write one rule for each variant"));
        }
        ctx.known(when, &[&all]);
    }
    if let Some(value) = ctx.constant(when) {
        let message = format!("`when` is {value} for every cell: it uses no axis");
        ctx.fault(Diagnostic::at(when.span.clone(), message));
    }
}

fn axis_names(axes: &[Axis]) -> impl Iterator<Item = &str> + Clone {
    axes.iter().map(|axis| axis.name.as_str())
}

/// Reports names that are not shared axes, and repeated names.
fn shared_axes(ctx: &mut Context, names: &[At<String>], axes: &[Axis]) {
    for (index, name) in names.iter().enumerate() {
        if !axes.iter().any(|axis| axis.name == name.value) {
            ctx.unknown(name.span.clone(), "axis", &name.value, axis_names(axes));
        } else if let Some(first) = names[..index].iter().find(|other| other.value == name.value) {
            let fault = Diagnostic::at(name.span.clone(), format!("axis `{}` is listed twice", name.value));
            ctx.fault(fault.label("again").related(first.span.clone(), "first"));
        }
    }
}

fn zip(ctx: &mut Context, raw: &[At<Vec<At<String>>>], declared: &Declared) -> Vec<Vec<String>> {
    let mut together: Vec<At<String>> = Vec::new();
    for list in raw {
        if list.value.len() < 2 && !ctx.faulty(&list.span) {
            let message = "a list of `zip` needs at least two axes";
            ctx.fault(Diagnostic::at(list.span.clone(), message).hint("axes that advance together belong in one list"));
        }
        together.extend(list.value.iter().cloned());
        lengths(ctx, list, &declared.axes, None);
        for (backend, on) in &declared.on {
            let axes: Vec<Axis> = declared.axes.iter().map(|axis| replaced(axis, &on.axes).clone()).collect();
            lengths(ctx, list, &axes, Some(&backend.to_string()));
        }
    }
    shared_axes(ctx, &together, &declared.axes);
    raw.iter().map(|list| list.value.iter().map(|name| name.value.clone()).collect()).collect()
}

fn replaced<'a>(axis: &'a Axis, by: &'a [Axis]) -> &'a Axis {
    by.iter().find(|other| other.name == axis.name).unwrap_or(axis)
}

fn lengths(ctx: &mut Context, list: &At<Vec<At<String>>>, axes: &[Axis], backend: Option<&str>) {
    let zipped: Vec<&Axis> =
        list.value.iter().filter_map(|name| axes.iter().find(|axis| axis.name == name.value)).collect();
    let Some((first, rest)) = zipped.split_first() else { return };
    let Some(other) = rest.iter().find(|axis| axis.values.len() != first.values.len()) else { return };
    // The list is shorter because of a rejected value, which has been reported.
    if ctx.faulty(&first.span) || ctx.faulty(&other.span) {
        return;
    }
    let place = backend.map(|backend| format!(" on {backend}")).unwrap_or_default();
    let message = format!("`{}` and `{}` cannot advance together{place}", first.name, other.name);
    let count = |axis: &Axis| format!("{} values", axis.values.len());
    ctx.fault(
        Diagnostic::at(list.span.clone(), message)
            .related(first.span.clone(), count(first))
            .related(other.span.clone(), count(other))
            .hint("zipped axes must have the same number of values"),
    );
}

fn include(ctx: &mut Context, point: &At<Named<At<Literal>>>, axes: &[Axis]) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    for (name, value) in &point.value.0 {
        match axes.iter().find(|axis| axis.name == name.value) {
            None => ctx.unknown(name.span.clone(), "axis", &name.value, axis_names(axes)),
            Some(axis) => {
                same_kind(ctx, axis, value);
                values.insert(name.value.clone(), value.value.0.clone());
            }
        }
    }
    let lacking: Vec<String> =
        axes.iter().filter(|axis| !values.contains_key(&axis.name)).map(|axis| format!("`{}`", axis.name)).collect();
    if !lacking.is_empty() && !ctx.faulty(&point.span) {
        let message = format!("this point has no value for {}", lacking.join(", "));
        ctx.fault(Diagnostic::at(point.span.clone(), message).hint("a point must give every axis of [axes] a value"));
    }
    values
}

/// Reports a value whose type differs from the axis.
fn same_kind(ctx: &mut Context, axis: &Axis, value: &At<Literal>) {
    let Some(first) = axis.values.first() else { return };
    let given = &value.value.0;
    if given.kind() != first.kind() {
        let message = format!("axis `{}` has {} values, not the {} `{given}`", axis.name, first.kind(), given.kind());
        ctx.fault(Diagnostic::at(value.span.clone(), message).related(axis.span.clone(), "the axis"));
    }
}

pub fn compare(ctx: &mut Context, raw: &RawExperiment, declared: &Declared) -> Vec<String> {
    let names = raw.compare.as_deref().unwrap_or_default();
    shared_axes(ctx, names, &declared.axes);
    names.iter().map(|name| name.value.clone()).collect()
}

pub fn baseline(
    ctx: &mut Context,
    raw: &At<RawExperiment>,
    compare: &[String],
    declared: &Declared,
) -> Option<Baseline> {
    let (variant, at, span) = match raw.value.baseline.as_ref()? {
        RawBaseline::Name(name) => (name.clone(), BTreeMap::new(), name.span.clone()),
        RawBaseline::Table(table) => {
            let (variant, at) = point(ctx, table, compare, declared)?;
            (variant, at, table.span.clone())
        }
    };
    // The baseline may refer to a variant whose own name has a fault.
    if !declared.variants.is_empty() {
        declared.require_variant(ctx, &variant.value, variant.span.clone());
    }
    if declared.variants.iter().any(|declared| declared.expects_failure && declared.expanded.contains(&variant.value)) {
        let message = format!("the baseline `{}` has `fails`: nothing can be compared with it", variant.value);
        ctx.fault(Diagnostic::at(variant.span.clone(), message));
    }
    lacking(ctx, compare, &at, &variant.value, &span, declared);
    Some(Baseline { variant: variant.value, at, span })
}

/// Whether each variant is compared with the previous one. Reports an explicit `true` without effect.
pub fn steps(ctx: &mut Context, raw: &RawExperiment) -> bool {
    let Some(steps) = &raw.steps else { return true };
    let lacks = if raw.baseline.is_none() {
        "without a `baseline`, there are no speedups"
    } else if raw.compare.as_ref().is_some_and(|axes| !axes.is_empty()) {
        "with `compare`, a variant has no previous variant"
    } else {
        return steps.value;
    };
    if steps.value {
        let message = format!("`steps = true` has no effect: {lacks}");
        ctx.fault(Diagnostic::at(steps.span.clone(), message).hint("remove `steps`"));
    }
    steps.value
}

type Point = (At<String>, BTreeMap<String, Value>);

/// Reads a point such as `{ variant = "sum", bx = 32 }`.
fn point(ctx: &mut Context, table: &At<Named<At<Literal>>>, compare: &[String], declared: &Declared) -> Option<Point> {
    let (mut variant, mut at) = (None, BTreeMap::new());
    for (name, value) in &table.value.0 {
        let axis = declared.axes.iter().find(|axis| axis.name == name.value);
        if name.value == VARIANT {
            variant = Some(At { value: value.value.0.to_string(), span: value.span.clone() });
        } else if let Some(axis) = axis {
            if !compare.contains(&name.value) {
                let message = format!("the baseline sets axis `{}`, which is not compared", name.value);
                ctx.fault(
                    Diagnostic::at(name.span.clone(), message).hint("name it in `compare`, or leave it out here"),
                );
            }
            value_of_axis(ctx, axis, value);
            at.insert(name.value.clone(), value.value.0.clone());
        } else {
            let known = compare.iter().map(String::as_str).chain([VARIANT]);
            ctx.unknown(name.span.clone(), "axis", &name.value, known);
        }
    }
    if variant.is_none() {
        let message = "the baseline names no variant";
        ctx.fault(Diagnostic::at(table.span.clone(), message).hint("write { variant = \"…\", … }"));
    }
    Some((variant?, at))
}

fn value_of_axis(ctx: &mut Context, axis: &Axis, value: &At<Literal>) {
    if axis.values.is_empty() || axis.values.contains(&value.value.0) {
        return;
    }
    let message = format!("axis `{}` has no value `{}`", axis.name, value.value.0);
    ctx.fault(
        Diagnostic::at(value.span.clone(), message).label("no such value").related(axis.span.clone(), "the axis"),
    );
}

/// Reports compared axes for which the baseline has no value.
fn lacking(
    ctx: &mut Context,
    compare: &[String],
    at: &BTreeMap<String, Value>,
    variant: &str,
    span: &Span,
    declared: &Declared,
) {
    let shared = |name: &&String| declared.axes.iter().any(|axis| axis.name == **name);
    let lacking: BTreeSet<&String> = compare.iter().filter(shared).filter(|name| !at.contains_key(*name)).collect();
    if lacking.is_empty() {
        return;
    }
    let names: Vec<String> = lacking.iter().map(|name| format!("`{name}`")).collect();
    let axes = if names.len() == 1 { "axis" } else { "axes" };
    let mut example = vec![format!("variant = \"{variant}\"")];
    for axis in declared.axes.iter().filter(|axis| compare.contains(&axis.name)) {
        let value = at.get(&axis.name).or(axis.values.first());
        example.extend(value.map(|value| format!("{} = {}", axis.name, quoted(value))));
    }
    let message = format!("the baseline has no value for the compared {axes} {}", names.join(", "));
    let hint = format!("write baseline = {{ {} }}", example.join(", "));
    ctx.fault(Diagnostic::at(span.clone(), message).hint(hint));
}

/// Formats a value as TOML.
fn quoted(value: &Value) -> String {
    match value {
        Value::Str(_) | Value::Type(_) => format!("\"{value}\""),
        other => other.to_string(),
    }
}
