//! Validates the steps of a sequence: launches, loops, and buffer operations between launches.

use super::super::context::{Context, NTH, Names};
use super::super::lets;
use super::{LaunchContext, buffer_of, launch, whole};
use crate::raw::{Expr, RawLaunch, RawLaunchEntry};
use crate::read::{At, Table as _};
use runner_experiment::{ArgSpec, BodySpec, Expression, LaunchSpec, LoopSpec, StepSpec, Times, VariantSpec};
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Access, Allocation, Regime, Span};

/// Validates a list of steps. Launches inherit missing keys from `shared` and are appended to `launches`.
pub fn steps(
    ctx: &mut Context,
    place: &LaunchContext<'_>,
    (entries, shared): (&[At<RawLaunchEntry>], &RawLaunch),
    launches: &mut Vec<LaunchSpec>,
) -> Vec<StepSpec> {
    entries.iter().filter_map(|entry| step(ctx, place, (entry, shared), launches)).collect()
}

fn step(
    ctx: &mut Context,
    place: &LaunchContext<'_>,
    (entry, shared): (&At<RawLaunchEntry>, &RawLaunch),
    launches: &mut Vec<LaunchSpec>,
) -> Option<StepSpec> {
    let fields = &entry.value;
    let given = fields.given().into_iter().map(|(key, _)| key);
    let given: Vec<&str> = given.filter(|key| matches!(*key, "loop" | "swap" | "copy" | "memset")).collect();
    if given.len() > 1 {
        let message = format!("a step must be one of `{}`, not several", given.join("`, `"));
        ctx.fault(Diagnostic::at(entry.span.clone(), message).hint("write one step for each"));
        return None;
    }
    let kind = given.first().copied();
    only_of(ctx, entry, kind);
    match kind {
        None => {
            let names = local_names(ctx, place, fields, fields.kernel.0.repeat.is_some());
            let label = fields.label.as_ref().map(|label| label.value.clone());
            let merged = fields.kernel.0.clone().or_shared(shared);
            let inner = LaunchContext { names: &names, axes: place.axes.clone(), ..*place };
            let mut spec = launch(ctx, &inner, label, merged, &entry.span, "variant.launch");
            spec.lets = lets::bindings(fields.r#let.as_ref());
            launches.push(spec);
            Some(StepSpec::Launch(launches.len() - 1))
        }
        Some("loop") => repeated(ctx, place, (entry, shared), launches).map(StepSpec::Loop),
        Some("memset") => memset(ctx, place, fields),
        Some(kind) => pair(ctx, place, fields, kind),
    }
}

/// Reports keys that do not apply to a step of this kind; `None` is a launch.
fn only_of(ctx: &mut Context, entry: &At<RawLaunchEntry>, kind: Option<&str>) {
    for (key, span) in entry.value.given() {
        let applies = match key {
            "loop" | "swap" | "copy" | "memset" => true,
            "until" | "at_most" => kind == Some("loop"),
            "value" => kind == Some("memset"),
            "let" | "repeat" => matches!(kind, None | Some("loop")),
            _ => kind.is_none(),
        };
        if applies {
            continue;
        }
        let message = format!("`{key}` has no meaning in a {} step", kind.unwrap_or("launch"));
        ctx.fault(Diagnostic::at(span, message).hint(format!("remove `{key}`")));
    }
}

/// Names visible in a step, including its own bindings.
fn local_names(ctx: &mut Context, place: &LaunchContext<'_>, fields: &RawLaunchEntry, is_repeated: bool) -> Names {
    let mut names = place.names.clone();
    if is_repeated {
        names.known.insert(NTH.to_owned());
    }
    for (name, Expr(value)) in fields.r#let.iter().flat_map(|named| &named.0) {
        ctx.known(value, &[&names]);
        let is_buffer = place.declared.buffers_of(place.variant).any(|buffer| buffer.name == name.value);
        let is_axis = place.axes.iter().any(|axis| axis.name == name.value);
        let other = match (is_buffer, is_axis) {
            (true, _) => Some("a buffer"),
            (_, true) => Some("an axis"),
            _ => (name.value == NTH).then_some("the index of the iteration"),
        };
        if let Some(other) = other {
            let message = format!("`{}` is both a let and {other}", name.value);
            ctx.fault(Diagnostic::at(name.span.clone(), message).label("choose another name"));
        }
        names.broken.remove(&name.value);
        names.known.insert(name.value.clone());
    }
    names
}

fn repeated(
    ctx: &mut Context,
    place: &LaunchContext<'_>,
    (entry, shared): (&At<RawLaunchEntry>, &RawLaunch),
    launches: &mut Vec<LaunchSpec>,
) -> Option<LoopSpec> {
    let fields = &entry.value;
    let inner = fields.r#loop.as_ref()?;
    if inner.value.is_empty() && !ctx.faulty(&inner.span) {
        ctx.fault(Diagnostic::at(inner.span.clone(), "the loop has no steps"));
    }
    let times = times(ctx, place, entry);
    let names = local_names(ctx, place, fields, true);
    let inside = LaunchContext { names: &names, axes: place.axes.clone(), ..*place };
    if let Some(Times::Until { condition, .. }) = &times {
        check_until(ctx, &inside, condition);
    }
    let steps = steps(ctx, &inside, (&inner.value, shared), launches);
    Some(LoopSpec { times: times?, lets: lets::bindings(fields.r#let.as_ref()), steps })
}

/// Number of iterations of a loop, from `repeat` or `until`.
fn times(ctx: &mut Context, place: &LaunchContext<'_>, entry: &At<RawLaunchEntry>) -> Option<Times> {
    let fields = &entry.value;
    let repeat = fields.kernel.0.repeat.as_ref();
    match (repeat, &fields.until, &fields.at_most) {
        (Some(Expr(times)), None, None) => {
            whole(ctx, times, &[place.names], &LoopSpec::ITERATIONS, "`repeat`");
            Some(Times::Fixed(times.clone()))
        }
        (None, Some(Expr(condition)), Some(Expr(at_most))) => {
            whole(ctx, at_most, &[place.names], &LoopSpec::BOUNDS, "`at_most`");
            Some(Times::Until { condition: condition.clone(), at_most: at_most.clone() })
        }
        (None, Some(Expr(condition)), None) => {
            let fault = Diagnostic::at(condition.span.clone(), "a loop with `until` needs a bound");
            ctx.fault(fault.hint("write `at_most`: the condition must hold within this many iterations"));
            None
        }
        _ => {
            let message = "a loop needs either `repeat`, its number of iterations, or `until` with `at_most`";
            let hint = "write repeat = 10, or until = \"flag == 0\" and at_most = 1000";
            ctx.fault(Diagnostic::at(entry.span.clone(), message).hint(hint));
            None
        }
    }
}

/// Validates the condition of a loop, which must read the first element of at least one buffer.
fn check_until(ctx: &mut Context, place: &LaunchContext<'_>, condition: &Expression) {
    let mut names = place.names.clone();
    let buffers: Vec<_> = place.declared.buffers_of(place.variant).map(|buffer| buffer.name.clone()).collect();
    names.known.extend(buffers.iter().cloned());
    ctx.known(condition, &[&names]);
    if !condition.names().iter().any(|name| buffers.contains(name)) && !ctx.faulty(&condition.span) {
        let message = format!("`until` uses no buffer, so `{}` never changes", condition.text());
        ctx.fault(Diagnostic::at(condition.span.clone(), message).hint("compare a buffer: until = \"changed == 0\""));
    }
}

fn memset(ctx: &mut Context, place: &LaunchContext<'_>, fields: &RawLaunchEntry) -> Option<StepSpec> {
    let name = fields.memset.as_ref()?;
    writable(ctx, place, name, "is written by `memset`");
    let zero = Expression::integer(0, name.span.clone());
    let value = fields.value.as_ref().map_or(zero, |Expr(value)| value.clone());
    ctx.known(&value, &[place.names]);
    Some(StepSpec::Memset { buffer: name.value.clone(), value })
}

fn pair(ctx: &mut Context, place: &LaunchContext<'_>, fields: &RawLaunchEntry, kind: &str) -> Option<StepSpec> {
    let pair = if kind == "swap" { fields.swap.as_ref()? } else { fields.copy.as_ref()? };
    let [first, second] = &pair.value;
    if first.value == second.value {
        let message = format!("`{kind}` names `{}` twice", first.value);
        ctx.fault(Diagnostic::at(pair.span.clone(), message));
    }
    if kind == "copy" {
        buffer_of(ctx, place, &first.span, &first.value);
        writable(ctx, place, second, "is written by `copy`");
        return Some(StepSpec::Copy { from: first.value.clone(), to: second.value.clone() });
    }
    writable(ctx, place, first, "is swapped");
    writable(ctx, place, second, "is swapped");
    Some(StepSpec::Swap(first.value.clone(), second.value.clone()))
}

/// Reports a buffer that a step cannot write: an input, or one whose address is not known.
fn writable(ctx: &mut Context, place: &LaunchContext<'_>, name: &At<String>, what: &str) {
    let Some(buffer) = buffer_of(ctx, place, &name.span, &name.value) else { return };
    let (problem, hint) = if buffer.access == Access::In {
        ("is `in`: the change would be caught as a changed input", "write access = \"inout\"")
    } else if buffer.symbol.is_some() {
        ("is a `__device__` variable, which kernels access by name", "pass it as an argument")
    } else if buffer.allocate != Allocation::Once {
        ("is allocated in every run", "allocate it once")
    } else {
        return;
    };
    let message = format!("buffer `{}` {what}, but {problem}", name.value);
    ctx.fault(Diagnostic::at(name.span.clone(), message).hint(hint));
}

/// Checks the requirements of loops with a condition: their launches must be in one stream, and no later step may
/// depend on which buffer a name refers to.
pub fn conditions(ctx: &mut Context, span: &Span, steps: &[StepSpec], launches: &[LaunchSpec]) {
    if !steps.iter().any(StepSpec::has_condition) {
        return;
    }
    if let Some(stream) = launches.iter().find_map(|launch| launch.settings.stream.as_ref()) {
        let message = "a loop with `until` waits for its launches, so the launches of the body must be in one stream";
        ctx.fault(Diagnostic::at(stream.span.clone(), message).hint("remove `stream`"));
    }
    let last = steps.len().saturating_sub(1);
    for (index, step) in steps.iter().enumerate() {
        let StepSpec::Loop(inner) = step else { continue };
        let is_until = matches!(inner.times, Times::Until { .. });
        let own = is_until && swaps(&inner.steps) && index != last;
        if own || inner.steps.iter().any(swaps_until) {
            let message = "a loop with `until` swaps buffers, so the steps after it cannot tell which buffer a name \
                           stands for";
            ctx.fault(Diagnostic::at(span.clone(), message).hint("make it the last step, or copy instead of swapping"));
        }
    }
}

fn swaps(steps: &[StepSpec]) -> bool {
    steps.iter().any(|step| match step {
        StepSpec::Swap(..) => true,
        StepSpec::Loop(inner) => swaps(&inner.steps),
        _ => false,
    })
}

/// Whether a step is or contains a loop that has a condition and a swap.
fn swaps_until(step: &StepSpec) -> bool {
    let StepSpec::Loop(inner) = step else { return false };
    (matches!(inner.times, Times::Until { .. }) && swaps(&inner.steps)) || inner.steps.iter().any(swaps_until)
}

/// If graphs are timed, reports conditional loops that use the iteration index: a graph keeps the arguments of the
/// iteration from which it was captured.
pub fn no_graph(ctx: &mut Context, variants: &[VariantSpec], regimes: &[Regime]) {
    if !regimes.contains(&Regime::Graph) {
        return;
    }
    for variant in variants {
        let BodySpec::Launches { steps: Some(steps), launches, .. } = &variant.body else { continue };
        if let Some(condition) = indexed_condition(steps, launches) {
            let message = "an iteration of this loop depends on `nth`, but in the regime `graph` all iterations are \
                the same";
            let hint = "remove `graph` from `regimes`, or let a kernel count in a buffer";
            ctx.fault(Diagnostic::at(condition.span.clone(), message).hint(hint));
        }
    }
}

/// Condition of a loop that uses its iteration index.
fn indexed_condition<'a>(steps: &'a [StepSpec], launches: &[LaunchSpec]) -> Option<&'a Expression> {
    steps.iter().find_map(|step| match step {
        StepSpec::Loop(inner) => match &inner.times {
            Times::Until { condition, .. } if condition.names().contains(NTH) || uses_index(inner, launches) => {
                Some(condition)
            }
            _ => indexed_condition(&inner.steps, launches),
        },
        _ => None,
    })
}

/// Whether a loop's own steps use its iteration index.
fn uses_index(spec: &LoopSpec, launches: &[LaunchSpec]) -> bool {
    let uses = |value: &Expression| value.names().contains(NTH);
    let part = |part: &ArgSpec| match part {
        ArgSpec::Buffer(_) | ArgSpec::Struct(_) | ArgSpec::Named(_) => false,
        ArgSpec::Offset { offset, .. } => uses(offset),
        ArgSpec::Scalar { value, .. } => uses(value),
        ArgSpec::Array { count, .. } => uses(count),
        ArgSpec::Texture(texture) => texture.size.iter().any(&uses),
    };
    let argument = |argument: &ArgSpec| argument.parts().into_iter().any(part);
    spec.lets.iter().any(|binding| uses(&binding.value))
        || spec.steps.iter().any(|step| match step {
            // In a launch with `repeat`, `nth` counts the launch's own repetitions.
            StepSpec::Launch(index) => {
                let launch = launches.get(*index).filter(|launch| launch.repeat.is_none());
                launch.is_some_and(|launch| launch.args.iter().any(argument))
            }
            StepSpec::Memset { value, .. } => uses(value),
            StepSpec::Copy { .. } | StepSpec::Swap(..) | StepSpec::Loop(_) => false,
        })
}
