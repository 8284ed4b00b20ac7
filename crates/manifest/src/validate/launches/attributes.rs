//! Validates launch attributes: the cluster size, and the buffer to keep in L2.

use super::super::context::Context;
use super::{LaunchContext, buffer_of, whole};
use crate::raw::{Expr, RawPersist};
use crate::read::At;
use runner_experiment::Expression;
use runner_lang::diagnostics::Diagnostic;
use runner_types::Persist;

/// Validates the number of blocks per cluster, in one to three dimensions.
pub fn cluster(ctx: &mut Context, place: &LaunchContext<'_>, raw: Option<&At<Vec<Expr>>>) -> Option<Vec<Expression>> {
    let dims = raw?;
    if !(1..=3).contains(&dims.value.len()) && !ctx.faulty(&dims.span) {
        let message = format!("`cluster` has {} dimensions", dims.value.len());
        ctx.fault(Diagnostic::at(dims.span.clone(), message).hint("a cluster has one to three"));
    }
    for Expr(dim) in &dims.value {
        whole(ctx, dim, &[place.names], &(1..=8), "a dimension of `cluster`");
    }
    Some(dims.value.iter().map(|Expr(dim)| dim.clone()).collect())
}

/// The buffer to keep in L2; `None` if its name was rejected.
pub fn persist(
    ctx: &mut Context,
    place: &LaunchContext<'_>,
    raw: &At<RawPersist>,
) -> Option<Persist<String, Expression>> {
    let name = raw.value.buffer.0.as_ref()?;
    buffer_of(ctx, place, &name.span, &name.value);
    let whole_buffer = Expression::integer(1, raw.span.clone());
    let ratio = raw.value.ratio.as_ref().map_or(whole_buffer, |Expr(ratio)| ratio.clone());
    ctx.known(&ratio, &[place.names]);
    Some(Persist { buffer: name.value.clone(), ratio })
}
