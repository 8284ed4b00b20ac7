//! Attributes of a launch besides its extents and arguments.

use super::super::checks;
use super::super::context::Context;
use super::{Place, whole};
use crate::experiment::{AttributesSpec, Expression};
use crate::model::Diagnostic;
use crate::raw::{Expr, RawLaunch};

/// Reads the attributes of a launch.
pub fn attributes(ctx: &mut Context, place: &Place<'_>, raw: &RawLaunch) -> AttributesSpec {
    let cluster = raw.cluster.as_ref().map(|dims| {
        if !(1..=3).contains(&dims.value.len()) && !ctx.faulty(&dims.span) {
            let message = format!("`cluster` has {} dimensions", dims.value.len());
            ctx.fault(Diagnostic::at(dims.span.clone(), message).hint("a cluster has one to three"));
        }
        for Expr(dim) in &dims.value {
            whole(ctx, dim, &[place.names], &(1..=8), "a dimension of `cluster`");
        }
        dims.value.iter().map(|Expr(dim)| dim.clone()).collect()
    });
    let priority = raw.priority.as_ref().map(|Expr(priority)| priority.clone());
    if let Some(priority) = &priority {
        ctx.known(priority, &[place.names]);
    }
    let carveout = raw.carveout.as_ref().map(|Expr(percent)| percent.clone());
    if let Some(percent) = &carveout {
        whole(ctx, percent, &[place.names], &(0..=100), "`carveout`");
    }
    let persist = raw.persist.as_ref().and_then(|given| {
        let name = given.value.buffer.0.as_ref()?;
        if place.variant.buffer(&place.declared.buffers, &name.value).is_none() {
            checks::no_buffer(ctx, name.span.clone(), &name.value, place.declared, place.variant);
        }
        let whole_buffer = Expression::integer(1, given.span.clone());
        let ratio = given.value.ratio.as_ref().map_or(whole_buffer, |Expr(ratio)| ratio.clone());
        ctx.known(&ratio, &[place.names]);
        Some((name.value.clone(), ratio))
    });
    AttributesSpec { cluster, overlap: raw.overlap.as_ref().is_some_and(|at| at.value), priority, carveout, persist }
}
