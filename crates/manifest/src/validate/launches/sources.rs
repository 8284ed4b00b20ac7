//! Validates a launch's sources: their files, and keys that do not apply to them.

use std::path::{Path, PathBuf};

use super::{first, places};
use crate::files::{looked_for, reason};
use crate::raw::{OneOrMany, RawLaunch};
use crate::read::At;
use crate::validate::context::Context;
use runner_experiment::CompileSpec;
use runner_files::project::Project;
use runner_files::regular;
use runner_lang::diagnostics::Diagnostic;
use runner_types::{KernelCompiler, SourceForm};

/// Compiler keys, which do not apply to precompiled code.
const OF_COMPILER: [&str; 8] =
    ["defines", "options", "include_paths", "debug", "max_registers", "relocatable", "pending_launches", "compiler"];

/// Reports `relocatable` with a compiler whose output is not linked.
pub fn unlinked(ctx: &mut Context, raw: &RawLaunch, compiler: KernelCompiler) {
    let Some(relocatable) =
        raw.compile.0.relocatable.as_ref().filter(|at| at.value && compiler == KernelCompiler::Clang)
    else {
        return;
    };
    let message = format!("code from {} is not linked: `relocatable` needs NVRTC or nvcc", compiler.name());
    ctx.fault(Diagnostic::at(relocatable.span.clone(), message).hint("write `compiler = \"nvrtc\"`"));
}

/// Reports compiler keys for precompiled code.
pub fn compiled_already(ctx: &mut Context, raw: &RawLaunch) {
    let Some(source) = raw
        .source
        .as_ref()
        .and_then(first)
        .filter(|at| SourceForm::from_path(Path::new(&at.value)) != SourceForm::Cuda)
    else {
        return;
    };
    for (key, span) in places(raw).filter(|(key, _)| OF_COMPILER.contains(key)) {
        let message = format!("`{key}` has no meaning for `{}`, which is already compiled", source.value);
        ctx.fault(Diagnostic::at(span, message).hint(format!("remove `{key}`")));
    }
}

/// Path of a source; empty if the project has no such file.
pub fn source_file(ctx: &mut Context, source: &At<String>, include_paths: &[PathBuf]) -> PathBuf {
    let places = ctx.files.places(&source.value);
    if let Some(found) = places.iter().find(|path| path.is_file()) {
        if !ctx.is_inside(found, &source.span) {
            return PathBuf::new();
        }
        if let Some(outside) = ctx.files.source(found, include_paths).outside.first() {
            let why = ctx.files.project().refusal(outside);
            let fault = Diagnostic::at(source.span.clone(), format!("`{}` includes a file: {why}", found.display()));
            ctx.fault(fault.label("includes a file outside of the project").hint(Project::REMEDY));
            return PathBuf::new();
        }
        if let Err(error) = regular::open(found) {
            let message = format!("cannot read `{}`: {}", found.display(), reason(&error));
            ctx.fault(Diagnostic::at(source.span.clone(), message));
        }
        return found.clone();
    }
    if places.is_empty() {
        // The missing package has been reported.
        return PathBuf::new();
    }
    // A folder, a pipe, a device or a dangling link.
    if let Some(found) = places.iter().find(|path| path.is_symlink() || path.exists()) {
        if !found.exists() || ctx.is_inside(found, &source.span) {
            let why = regular::open(found).err().map(|error| reason(&error)).unwrap_or_default();
            let message = format!("cannot read `{}`: {why}", found.display());
            ctx.fault(Diagnostic::at(source.span.clone(), message));
        }
        return PathBuf::new();
    }
    let message = format!("there is no source `{}`", source.value);
    let hint = looked_for(&places);
    ctx.fault(Diagnostic::at(source.span.clone(), message).label("no such file").hint(hint));
    PathBuf::new()
}

/// Checks the sources to link with the first one. Only code compiled by NVRTC is linked.
pub fn linked(ctx: &mut Context, raw: &RawLaunch, compile: &mut CompileSpec) {
    let Some(sources) = &raw.source else { return };
    if let OneOrMany::Many(list) = sources
        && list.is_empty()
    {
        let message = "`source` is an empty list";
        let at = raw.kernel.as_ref().map(|kernel| kernel.0.span.clone());
        let fault = at.map_or_else(|| Diagnostic::whole(message), |kernel| Diagnostic::at(kernel, message));
        ctx.fault(fault.label("the kernel must be in the first source").hint("list the file with the kernel first"));
    }
    let Some((first, others)) = sources.as_slice().split_first() else { return };
    for (at, source) in others.iter().enumerate() {
        if SourceForm::from_path(Path::new(&source.value)) != SourceForm::Cuda {
            let message = format!("`{}` is already compiled, but only CUDA C++ is linked", source.value);
            ctx.fault(Diagnostic::at(source.span.clone(), message));
        } else if let Some(again) = [first].into_iter().chain(&others[..at]).find(|one| one.value == source.value) {
            let fault = Diagnostic::at(source.span.clone(), format!("`{}` is listed twice", source.value));
            ctx.fault(fault.label("again").related(again.span.clone(), "first"));
        }
    }
    if let Some(second) = others.first() {
        if compile.compiler == KernelCompiler::Clang {
            let message =
                format!("code from {} is not linked: several sources need NVRTC or nvcc", compile.compiler.name());
            ctx.fault(Diagnostic::at(second.span.clone(), message).hint("write `compiler = \"nvrtc\"`"));
        }
        compile.settings.relocatable = true;
        compile.linked = others.iter().map(|source| source_file(ctx, source, &compile.include_paths)).collect();
    }
}
