//! Expands variants along the axes that only they have.

use std::collections::BTreeSet;
use std::sync::Arc;

use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_lang::template::Style;
use runner_lang::{ExprError, Scope};
use runner_types::Value;

use super::axes::{Axes, OwnAxes};
use super::{MAX_CELLS, PlanOptions};

/// One of the implementations under comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedVariant {
    /// Name including the values of the variant's own axes.
    pub name: String,
    pub spec: usize,
    /// Values of the axes that only this variant has.
    pub own: Vec<(Arc<str>, Value)>,
    /// False if `--variant` excludes it.
    pub selected: bool,
}

/// Expands every variant, in the manifest's order. The last of its axes varies fastest.
pub fn expand(axes: &Axes, options: &PlanOptions) -> Result<Vec<PlannedVariant>, Vec<Diagnostic>> {
    let (mut variants, mut faults) = (Vec::new(), Vec::new());
    let mut count = 0_u64;
    for (spec, own) in axes.own.iter().enumerate() {
        count = own.axes.iter().map(|axis| axis.values.len() as u64).fold(1, u64::saturating_mul).saturating_add(count);
        if count > MAX_CELLS {
            let message = format!("with `{}` there are more than {MAX_CELLS} variants", own.name.text());
            let fault = Diagnostic::at(own.name.span.clone(), message);
            return Err(vec![fault.hint("shorten an axis of the variant")]);
        }
        match expand_one(spec, own) {
            Ok(expanded) => variants.extend(expanded),
            Err(error) => {
                faults.push(own.name.fault(error));
            }
        }
    }
    faults.extend(same_names(&variants, axes));
    faults.extend(options.variants.iter().filter_map(|name| select(&mut variants, name)));
    for variant in &mut variants {
        variant.selected |= options.variants.is_empty();
    }
    if faults.is_empty() { Ok(variants) } else { Err(faults) }
}

fn expand_one(spec: usize, own: &OwnAxes) -> Result<Vec<PlannedVariant>, ExprError> {
    let mut points: Vec<Vec<(Arc<str>, Value)>> = vec![Vec::new()];
    for axis in &own.axes {
        let key: Arc<str> = axis.name.as_str().into();
        let extended = points.iter().flat_map(|point| {
            let extended = |value: &Value| [point.as_slice(), &[(key.clone(), value.clone())]].concat();
            axis.values.iter().map(extended).collect::<Vec<_>>()
        });
        points = extended.collect();
    }
    let variant = |values: Vec<(Arc<str>, Value)>| {
        let scope: Scope = values.iter().cloned().collect();
        Ok(PlannedVariant { name: own.name.render(&scope, Style::Names)?, spec, own: values, selected: false })
    };
    points.into_iter().map(variant).collect()
}

fn same_names(variants: &[PlannedVariant], axes: &Axes) -> Vec<Diagnostic> {
    let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
    for variant in variants {
        if !seen.insert(variant.name.as_str()) {
            let message = format!("two variants are called `{}`", variant.name);
            let hint = "put every axis of the variant into its name, as in \"unroll{u}\"";
            faults.push(Diagnostic::at(axes.own[variant.spec].name.span.clone(), message).hint(hint));
        }
    }
    faults
}

/// Marks the variant that a `--variant` option selects. A name that matches no variant is an error.
fn select(variants: &mut [PlannedVariant], name: &str) -> Option<Diagnostic> {
    if let Some(variant) = variants.iter_mut().find(|variant| variant.name == name) {
        variant.selected = true;
        return None;
    }
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    let fault = Diagnostic::whole(format!("--variant {name}: there is no such variant"));
    Some(match nearest(name, names.iter().copied()) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault.hint(format!("the variants are {}", names.join(", "))),
    })
}
