//! Checks the raw manifest and builds a `Manifest` from it.
//!
//! Checking continues after a fault. A missing expression is replaced by an empty one, which later checks skip. A
//! manifest with faults is never returned to the user.

mod axes;
mod bodies;
mod buffers;
mod checks;
mod claims;
mod comparison;
mod context;
mod declared;
mod fills;
mod function;
mod graph;
mod launches;
mod lets;
mod matrix;
mod measure;
mod memory;
mod named;
mod names;
mod packages;
mod printed;
mod sampling;
mod search;
mod uses;
mod variants;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::raw::{RawExperiment, RawManifest};
use super::read::{At, Findings};
use context::Context;
use runner_experiment::Manifest;
use runner_files::project::Project;
use runner_lang::diagnostics::Diagnostic;
use runner_types::{SourceText, Span, can_name_experiment, sha256_hex};

pub use names::may_name_buffer;

/// Builds the manifest. Also returns its faults and the number of faults left out; the manifest is valid only if there
/// are none.
pub fn validate(
    raw: &RawManifest,
    source: &Arc<SourceText>,
    project: Project,
    found: Findings,
) -> (Manifest, (Vec<Diagnostic>, usize)) {
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let mut ctx = Context::new(folder, project, found);
    let empty = At::default();
    let experiment: &At<RawExperiment> = raw.experiment.0.as_ref().unwrap_or(&empty);

    let packages = packages::packages(&mut ctx, raw);
    let (name, title) = titles(&mut ctx, &experiment.value);
    let template = template(&mut ctx, &experiment.value);
    let declared = variants::declare(&mut ctx, raw);
    lets::check(&mut ctx, &declared);
    let matrix = matrix::matrix(&mut ctx, raw.matrix.as_ref(), &declared);
    let compare = matrix::compare(&mut ctx, &experiment.value, &declared);
    let baseline = matrix::baseline(&mut ctx, experiment, &compare, &declared);
    let steps = matrix::steps(&mut ctx, &experiment.value);
    buffers::check(&mut ctx, raw, &declared);
    let (checks, printed) = checks::shared_checks(&mut ctx, raw, &declared);
    let work = checks::shared_work(&mut ctx, raw, &declared);
    let measure = measure::measure(&mut ctx, raw.measure.as_ref());
    let search = search::search(&mut ctx, raw.search.as_ref(), &declared);
    memory::allocations_are_timed(&mut ctx, raw, &measure.regimes);
    let variants = bodies::variants(&mut ctx, raw, &declared);
    let shared = sampling::Shared { checks: &checks, printed: printed.as_ref() };
    sampling::check(&mut ctx, raw, &variants, &declared, &shared);
    launches::no_graph(&mut ctx, &variants, &measure.regimes);
    let claims = claims::claims(&mut ctx, raw, &compare, &measure, &declared);
    let comparison = comparison::rules(&mut ctx, raw, &declared);

    let manifest = Manifest {
        source: Arc::clone(source),
        project: ctx.files.project().clone(),
        files: ctx.files.used().clone(),
        hash: sha256_hex(source.text.as_bytes()),
        name,
        title,
        question: experiment.value.question.as_ref().map(|q| q.value.clone()),
        template,
        baseline,
        compare,
        steps,
        packages,
        axes: declared.axes,
        zip: matrix.zip,
        exclude: matrix.exclude,
        include: matrix.include,
        on: declared.on,
        lets: declared.lets,
        buffers: declared.buffers,
        checks,
        printed,
        work,
        measure,
        search,
        variants,
        claims,
        comparison,
    };
    (manifest, ctx.into_faults())
}

/// Checks the template's path. The file is not read until a run begins, because a base that is only compared needs no
/// template.
fn template(ctx: &mut Context, raw: &RawExperiment) -> Option<(PathBuf, Span)> {
    let At { value: path, span } = raw.template.as_ref()?;
    if Path::new(path).is_absolute() {
        let fault = Diagnostic::at(span.clone(), "absolute paths are not portable");
        ctx.fault(fault.hint("name the template relative to the manifest's folder"));
    }
    let path = ctx.files.path_beside(path);
    ctx.is_inside(&path, span);
    Some((path, span.clone()))
}

fn titles(ctx: &mut Context, raw: &RawExperiment) -> (String, String) {
    let name = raw.name.0.clone().unwrap_or_default();
    // A missing name was already reported.
    if raw.name.0.is_some() && !can_name_experiment(&name.value) {
        ctx.fault(
            Diagnostic::at(name.span.clone(), format!("`{}` cannot name an experiment", name.value))
                .hint("the name is also used for a folder of reports: use letters, digits, `-` and `_`"),
        );
    }
    let title = raw.title.as_ref().map_or_else(|| name.value.clone(), |title| title.value.clone());
    (name.value, title)
}
