//! Finds arguments in the wrong order by comparing a launch's buffers with the kernel's parameters in its source.
//!
//! Only unambiguous mistakes are reported: a type may be a macro, and memory may be read as another type on purpose.

use std::path::Path;

use super::super::context::{Context, written};
use super::LaunchContext;
use crate::element::element;
use runner_cuda_source::parameter::Parameter;
use runner_cuda_source::signature::Signature;
use runner_experiment::{ArgSpec, BufferSpec, LaunchSpec, StepSpec, Template};
use runner_lang::Scope;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::template::Style;
use runner_types::{Access, ElementType, SourceForm};

/// A buffer passed by a launch, with its parameter.
struct Passed<'a> {
    buffer: &'a BufferSpec,
    parameter: &'a Parameter,
    /// Element type that the parameter points to, if known.
    wanted: Option<ElementType>,
    has: Option<ElementType>,
}

/// Reports buffers that are swapped in a launch's arguments.
pub fn check(ctx: &mut Context, place: &LaunchContext<'_>, launches: &[LaunchSpec], steps: Option<&[StepSpec]>) {
    let signatures: Vec<_> = launches.iter().map(|launch| signature(ctx, launch)).collect();
    let passed: Vec<Vec<Passed<'_>>> =
        launches.iter().zip(&signatures).map(|(launch, kernel)| passed(place, launch, kernel.as_ref())).collect();
    for (launch, passed) in launches.iter().zip(&passed) {
        exchanged(ctx, launch, passed);
    }
    let moves = steps.is_some_and(|steps| steps.iter().any(|step| !matches!(step, StepSpec::Launch(_))));
    let known = signatures.iter().all(Option::is_some);
    // Writes and swaps in other steps are not followed.
    if known && !moves {
        never_written(ctx, launches, &passed);
    }
}

/// The launch's kernel, if the source has one with this name and the right number of parameters.
fn signature(ctx: &mut Context, launch: &LaunchSpec) -> Option<Signature> {
    if SourceForm::from_path(&launch.source) != SourceForm::Cuda || launch.source == Path::new("") {
        return None;
    }
    let text = launch.kernel.text();
    let name = text.split(['<', '{', '(']).next().unwrap_or(text).rsplit("::").next().unwrap_or(text).trim();
    let known = ctx.files.signatures(&launch.source);
    let mut fitting = known.iter().filter(|kernel| kernel.name == name);
    let found = fitting.next().filter(|kernel| kernel.parameters.len() == launch.args.len())?;
    fitting.next().is_none().then(|| found.clone())
}

fn passed<'a>(place: &LaunchContext<'a>, launch: &LaunchSpec, kernel: Option<&'a Signature>) -> Vec<Passed<'a>> {
    let Some(kernel) = kernel else { return Vec::new() };
    // One point of the axes is enough, since a mix-up is visible at every point.
    let points = written(&launch.kernel, &place.axes, Style::Cpp).unwrap_or_default();
    let (scope, name) = points.into_iter().next().unwrap_or((Scope::new(), launch.kernel.text().to_owned()));
    let pairs = launch.args.iter().zip(&kernel.parameters).filter(|(_, parameter)| parameter.pointers == 1);
    pairs
        .filter_map(|(arg, parameter)| {
            let ArgSpec::Buffer(buffer) = arg else { return None };
            let buffer = place.variant.buffer(&place.declared.buffers, buffer)?;
            let wanted = element(&argument_of(kernel, &name, &parameter.base));
            Some(Passed { buffer, parameter, wanted, has: element_of(&buffer.element, &scope) })
        })
        .collect()
}

/// Type in a template instance: `float` for `T` in `reduce<float, 4>`.
fn argument_of(kernel: &Signature, instance: &str, base: &str) -> String {
    let arguments = instance.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>')).map(|(inside, _)| inside);
    let place = kernel.template.iter().position(|parameter| parameter.name == base);
    let argument = place.zip(arguments).and_then(|(place, inside)| inside.split(',').nth(place));
    argument.map_or(base, str::trim).to_owned()
}

fn element_of(template: &Template, scope: &Scope) -> Option<ElementType> {
    template.render(scope, Style::Names).ok()?.trim().parse().ok()
}

/// Whether a buffer cannot be meant for a pointer: one type is a float and the other an integer, or their sizes differ.
/// Byte types match anything.
fn disagrees(has: Option<ElementType>, wanted: Option<ElementType>) -> bool {
    let (Some(has), Some(wanted)) = (has, wanted) else { return false };
    wanted.size() > 1 && has.size() > 1 && (has.size() != wanted.size() || has.is_float() != wanted.is_float())
}

/// Reports two buffers whose types fit only if they are swapped.
fn exchanged(ctx: &mut Context, launch: &LaunchSpec, passed: &[Passed<'_>]) {
    for (place, one) in passed.iter().enumerate() {
        let wrong = |other: &&Passed<'_>| {
            disagrees(one.has, one.wanted)
                && disagrees(other.has, other.wanted)
                && other.has.is_some()
                && one.has == other.wanted
                && other.has == one.wanted
        };
        if let Some(other) = passed[place + 1..].iter().find(wrong) {
            let message = format!(
                "buffers `{}` and `{}` are in the wrong order for `{}`: its parameters are `{}` and `{}`",
                one.buffer.name,
                other.buffer.name,
                launch.kernel.text(),
                one.parameter.text,
                other.parameter.text
            );
            ctx.fault(Diagnostic::at(launch.kernel.span.clone(), message).hint("exchange them in `args`"));
            return;
        }
    }
}

/// Reports an `out` buffer that every launch passes as a pointer to `const`, so that nothing can write it.
fn never_written(ctx: &mut Context, launches: &[LaunchSpec], passed: &[Vec<Passed<'_>>]) {
    let all = || launches.iter().zip(passed).flat_map(|(launch, passed)| passed.iter().map(move |one| (launch, one)));
    for (launch, one) in all() {
        let name = &one.buffer.name;
        let read_only = one.buffer.access == Access::Out && one.buffer.symbol.is_none() && one.parameter.is_const;
        let is_written = || {
            // Passed to an unknown parameter, or as an address within the buffer.
            let elsewhere = launches.iter().zip(passed).any(|(launch, passed)| {
                let uses = launch.args.iter().flat_map(ArgSpec::buffers).filter(|buffer| *buffer == name);
                uses.count() != passed.iter().filter(|one| one.buffer.name == *name).count()
            });
            elsewhere || all().any(|(_, other)| other.buffer.name == *name && !other.parameter.is_const)
        };
        if !read_only || is_written() {
            continue;
        }
        let message = format!(
            "buffer `{name}` is `out`, but `{}` takes it as `{}` and cannot write to it",
            launch.kernel.text(),
            one.parameter.text
        );
        let taken = all().find(|(other, pair)| {
            std::ptr::eq(*other, launch) && pair.buffer.access == Access::In && !pair.parameter.is_const
        });
        let hint = match taken {
            Some((_, pair)) => format!(
                "`{}`, which is `in`, is passed to `{}`: are the two in the wrong order?",
                pair.buffer.name, pair.parameter.text
            ),
            None => "is it meant for another parameter?".to_owned(),
        };
        ctx.fault(Diagnostic::at(launch.kernel.span.clone(), message).hint(hint));
    }
}
