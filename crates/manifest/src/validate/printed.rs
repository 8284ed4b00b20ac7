//! Validates checks of printed output: lines in the manifest, or a file of lines.
//!
//! A case's lines depend on its axes. Here only the files are checked, at every point of the axes.

use super::context::{Context, written};
use super::declared::{CheckedVariants, DeclaredVariant};
use crate::raw::{RawCheck, RawPrinted};
use crate::read::At;
use runner_experiment::{Axis, PrintedSpec, Template};
use runner_files::regular;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::template::Style;
use runner_types::Span;

/// The check of printed lines among `entries`, with its names checked in each variant. At most one is allowed.
pub fn printed(ctx: &mut Context, entries: &[At<RawCheck>], of: CheckedVariants<'_>) -> Option<PrintedSpec> {
    let mut of_lines = entries.iter().filter_map(|entry| Some((entry, entry.value.printed.as_ref()?)));
    let (entry, raw) = of_lines.next()?;
    if let Some((_, again)) = of_lines.next() {
        let message = "printed lines are checked twice: write a single list";
        ctx.fault(Diagnostic::at(again.span.clone(), message).label("again").related(raw.span.clone(), "first"));
    }
    alone(ctx, &entry.value, &raw.span);
    match &raw.value {
        RawPrinted::Lines(lines) => {
            for line in lines {
                ctx.known(&line.0, &of.scopes());
            }
            Some(PrintedSpec::Lines(lines.iter().map(|line| line.0.clone()).collect()))
        }
        RawPrinted::File(table) => {
            let name = table.file.0.as_ref()?.0.clone();
            for variant in of.variants {
                look_for(ctx, &name, &of.declared.axes_of(Some(variant)), variant);
            }
            Some(PrintedSpec::File(ctx.files.folder().to_owned(), name))
        }
    }
}

/// Reports other keys in a check of printed lines, to which they do not apply.
fn alone(ctx: &mut Context, raw: &RawCheck, printed: &Span) {
    let others = [
        ("actual", raw.actual.as_ref().map(|actual| actual.0.span.clone())),
        ("expect", raw.expect.as_ref().map(|expect| expect.span.clone())),
        ("where", raw.r#where.as_ref().map(|mask| mask.0.span.clone())),
        ("error", raw.error.as_ref().map(|error| error.span.clone())),
        ("tolerance", raw.tolerance.as_ref().map(|tolerance| tolerance.span.clone())),
    ];
    for (key, span) in others {
        if let Some(span) = span {
            let message = format!("`{key}` has no meaning in a check of printed lines");
            let fault = Diagnostic::at(span, message).related(printed.clone(), "the lines");
            ctx.fault(fault.hint("write a separate `[[check]]`"));
        }
    }
}

/// Reports the first file that cannot be read.
fn look_for(ctx: &mut Context, name: &Template, axes: &[Axis], variant: &DeclaredVariant) {
    ctx.known(name, &[&variant.names]);
    for (_, text) in written(name, axes, Style::Names).unwrap_or_default() {
        let path = ctx.files.path_beside(&text);
        if !ctx.is_inside(&path, &name.span) {
            return;
        }
        if let Err(error) = regular::open(&path) {
            return ctx.unreadable(&path, &name.span, &error);
        }
    }
}
