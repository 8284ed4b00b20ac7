//! Validates launches: source, kernel, grid and block, arguments, options.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::buffers::element_types;
use super::checks;
use super::context::{Context, NTH, Names, OCCUPANCY_BLOCK, written};
use super::declared::{Declared, DeclaredVariant};
use crate::files::looked_for;
use crate::raw::{Arg, Expr, OF_HOST, OneOrMany, RawExtent, RawLaunch, RawVariant, Text, TextOrNumber};
use crate::read::{At, Table as _, missing};
use runner_experiment::{
    ArgSpec, Axis, BlockSpec, BodySpec, BufferSpec, CompileSpec, Expression, GridSpec, HostSpec, LaunchSpec, LoopSpec,
    StepSpec, Template, Times,
};
use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_lang::is_name;
use runner_lang::template::Style;
use runner_types::{
    Allocation, ArgPlan, CompileSettings, KernelCompiler, LaunchSettings, Setting, SourceForm, Span, Value,
};

mod attributes;
mod order;
mod sources;
mod steps;

use sources::{compiled_already, linked, source_file, unlinked};
pub use steps::no_graph;

/// Input shared by all checks of a variant's launches.
struct LaunchContext<'a> {
    /// Span of the variant's table.
    span: &'a Span,
    names: &'a Names,
    axes: Vec<Axis>,
    variant: &'a DeclaredVariant,
    declared: &'a Declared,
}

/// Reports launch keys in a variant that launches no kernel.
pub fn meaningless(ctx: &mut Context, raw: &RawLaunch, kind: &str) {
    for (key, span) in places(raw) {
        let message = format!("`{key}` has no meaning in a `{kind}` variant, which launches no kernel");
        ctx.fault(Diagnostic::at(span, message).hint(format!("remove `{key}`")));
    }
}

/// The first source, which contains the kernel.
fn first(sources: &OneOrMany<At<String>>) -> Option<&At<String>> {
    sources.as_slice().first()
}

/// The launch keys that are set, except `kernel`, which determines the kind of variant.
fn places(raw: &RawLaunch) -> impl Iterator<Item = (&'static str, Span)> {
    raw.given().into_iter().filter(|(key, _)| *key != "kernel")
}

pub fn host(
    ctx: &mut Context,
    raw: &At<RawVariant>,
    function: &Template,
    variant: &DeclaredVariant,
    declared: &Declared,
) -> HostSpec {
    let launch = &raw.value.kernel.0;
    for (key, span) in places(launch).filter(|(key, _)| !OF_HOST.contains(key)) {
        let message = format!("`{key}` has no meaning in a `host` variant, whose function makes its own launches");
        ctx.fault(Diagnostic::at(span, message).hint(format!("remove `{key}`")));
    }
    let axes = declared.axes_of(Some(variant));
    let place = LaunchContext { span: &raw.span, names: &variant.names, axes, variant, declared };
    if launch.source.is_none() && !ctx.refused(&raw.span, "source") {
        ctx.fault(missing("source", Some(&raw.span), "variant"));
    }
    let given = launch.source.as_ref();
    if let Some(second) = given.and_then(|sources| sources.as_slice().get(1)) {
        let fault = Diagnostic::at(second.span.clone(), "a host function must have one source, which nvcc builds");
        ctx.fault(fault.hint("include the others"));
    }
    if let Some(source) =
        given.and_then(first).filter(|at| SourceForm::from_path(Path::new(&at.value)) != SourceForm::Cuda)
    {
        let message = format!("`{}` is device code, but a host function must be CUDA C++", source.value);
        ctx.fault(Diagnostic::at(source.span.clone(), message).hint("launch its kernels with `kernel`"));
    }
    let compile = compile(ctx, &place, launch, KernelCompiler::Nvcc);
    let source =
        given.and_then(first).map(|source| source_file(ctx, source, &compile.include_paths)).unwrap_or_default();
    defined(ctx, &place, function, &source, &compile.include_paths, Definition::HostFunction);
    let libraries: Vec<Template> = raw.value.libraries.iter().flatten().map(|text| text.0.clone()).collect();
    for library in &libraries {
        ctx.known(library, &[place.names]);
    }
    let args = launch.args.iter().flat_map(|args| &args.value).map(|arg| argument(ctx, &place, arg, false)).collect();
    HostSpec { source, function: function.clone(), args, libraries, compile }
}

/// Launches of a variant in order, and the loops around them.
pub fn launches(ctx: &mut Context, raw: &At<RawVariant>, variant: &DeclaredVariant, declared: &Declared) -> BodySpec {
    let shared = &raw.value.kernel.0;
    let axes = declared.axes_of(Some(variant));
    let place = LaunchContext { span: &raw.span, names: &variant.names, axes, variant, declared };
    let Some(sequence) = &raw.value.launch else {
        let launch = launch(ctx, &place, None, shared.clone(), &raw.span, "variant");
        symbols(ctx, &place, std::slice::from_ref(&launch));
        order::check(ctx, &place, std::slice::from_ref(&launch), None);
        return BodySpec::Launches { rounds: None, launches: vec![launch], steps: None };
    };
    if sequence.value.is_empty() && !ctx.faulty(&sequence.span) {
        let message = format!("variant `{}` launches nothing", variant.name.text());
        ctx.fault(Diagnostic::at(sequence.span.clone(), message));
    }
    // The variant's `repeat` applies to the whole sequence; an entry may have its own.
    let shared = &mut shared.clone();
    let rounds = shared.repeat.take().map(|Expr(rounds)| rounds);
    let mut names = place.names.clone();
    if let Some(rounds) = &rounds {
        whole(ctx, rounds, &[place.names], &LaunchSpec::REPEATS, "`repeat`");
        names.known.insert(NTH.to_owned());
    }
    let place = LaunchContext { names: &names, ..place };
    let mut launches = Vec::new();
    let steps = steps::steps(ctx, &place, (&sequence.value, shared), &mut launches);
    symbols(ctx, &place, &launches);
    order::check(ctx, &place, &launches, Some(&steps));
    let is_plain = steps.iter().all(|step| matches!(step, StepSpec::Launch(_)));
    if is_plain {
        return BodySpec::Launches { rounds, launches, steps: None };
    }
    // The variant's `repeat` is a loop around all steps.
    let steps = match rounds {
        Some(times) => {
            vec![StepSpec::Loop(LoopSpec { times: Times::Fixed(times), lets: Vec::new(), steps })]
        }
        None => steps,
    };
    steps::conditions(ctx, &sequence.span, &steps, &launches);
    BodySpec::Launches { rounds: None, launches, steps: Some(steps) }
}

fn launch(
    ctx: &mut Context,
    place: &LaunchContext<'_>,
    label: Option<String>,
    raw: RawLaunch,
    span: &Span,
    table: &str,
) -> LaunchSpec {
    let given = [raw.source.is_some(), raw.kernel.is_some(), raw.grid.is_some(), raw.block.is_some()];
    for (key, given) in ["source", "kernel", "grid", "block"].into_iter().zip(given) {
        let refused = [span, place.span].into_iter().any(|table| ctx.refused(table, key));
        if !given && !refused {
            ctx.fault(missing(key, Some(span), table));
        }
    }
    if let Some(Expr(repeat)) = &raw.repeat {
        whole(ctx, repeat, &[place.names], &LaunchSpec::REPEATS, "`repeat`");
    }
    let (mut names, axes) = (place.names.clone(), place.axes.clone());
    names.known.extend(raw.repeat.iter().map(|_| NTH.to_owned()));
    let place = &LaunchContext { names: &names, axes, ..*place };
    let settings = LaunchSettings::from(&raw.settings.0);
    numbers(ctx, place, settings.numbers());
    if let Some(pending) =
        settings.pending_launches.as_ref().filter(|_| !CompileSettings::from(&raw.compile.0).relocatable)
    {
        let message = "`pending_launches` has no meaning without `relocatable`: only linked kernels launch kernels";
        ctx.fault(Diagnostic::at(pending.span.clone(), message).hint("write `relocatable = true`"));
    }
    let cluster = attributes::cluster(ctx, place, raw.cluster.as_ref());
    let persist = raw.persist.as_ref().and_then(|given| attributes::persist(ctx, place, given));
    let compiler = raw.compiler.as_ref().map_or_else(|| default_compiler(place, &raw), |at| at.value);
    let mut compile = compile(ctx, place, &raw, compiler);
    compile.compiler = compiler;
    unlinked(ctx, &raw, compiler);
    compiled_already(ctx, &raw);
    let given = raw.source.as_ref();
    let source = given.and_then(first).map(|at| source_file(ctx, at, &compile.include_paths)).unwrap_or_default();
    linked(ctx, &raw, &mut compile);
    let kernel = raw.kernel.map_or_else(Template::missing, |text| text.0);
    defined(ctx, place, &kernel, &source, &compile.include_paths, Definition::Kernel);
    let block = raw.block.map_or(BlockSpec::Dims(Vec::new()), |block| block_spec(ctx, place, &block));
    let grid = raw.grid.map_or(GridSpec::Dims(Vec::new()), |grid| grid_spec(ctx, place, &grid, &block));
    let is_laid_out = source == Path::new("") || SourceForm::from_path(&source) == SourceForm::Cuda;
    let args = raw.args.iter().flat_map(|args| &args.value).map(|arg| argument(ctx, place, arg, is_laid_out)).collect();
    LaunchSpec {
        label,
        source,
        kernel,
        grid,
        block,
        settings,
        args,
        repeat: raw.repeat.map(|Expr(repeat)| repeat),
        cluster,
        persist,
        lets: Vec::new(),
        compile,
    }
}

/// What a name must refer to in its source.
#[derive(Clone, Copy)]
enum Definition {
    Kernel,
    HostFunction,
}

/// Reports a name that its source does not define.
fn defined(
    ctx: &mut Context,
    place: &LaunchContext<'_>,
    name: &Template,
    source: &Path,
    includes: &[PathBuf],
    as_what: Definition,
) {
    ctx.known(name, &[place.names]);
    if source.as_os_str().is_empty() {
        return;
    }
    let scanned = ctx.files.source(source, includes);
    if scanned.incomplete {
        return;
    }
    let (what, style, known) = match as_what {
        Definition::Kernel if SourceForm::from_path(source) == SourceForm::Cuda => {
            ("kernel", Style::Cpp, &scanned.kernels)
        }
        Definition::Kernel => ("kernel", Style::Names, &scanned.kernels),
        Definition::HostFunction => ("`extern \"C\"` function", Style::Names, &scanned.host_functions),
    };
    for (_, written) in written(name, &place.axes, style).unwrap_or_default() {
        let plain = plain_name(&written);
        if !known.contains(plain) {
            return not_defined(ctx, name, what, plain, source, known);
        }
    }
}

/// Name without scopes, template arguments and parameter types: `reduce` for `ns::reduce<int, 4>` and `reduce(const int
/// *, int)`.
fn plain_name(expression: &str) -> &str {
    let before = expression.split(['<', '(']).next().unwrap_or(expression);
    before.rsplit("::").next().unwrap_or(before).trim().trim_start_matches('&')
}

fn not_defined(
    ctx: &mut Context,
    place: &Template,
    what: &str,
    name: &str,
    source: &Path,
    defined: &std::collections::BTreeSet<String>,
) {
    let message = format!("`{}` defines no {what} `{name}`", source.display());
    let mut fault = Diagnostic::at(place.span.clone(), message).label(format!("no such {what}"));
    let list: Vec<String> = defined.iter().map(|name| format!("`{name}`")).collect();
    if let Some(near) = nearest(name, defined.iter().map(String::as_str)) {
        fault = fault.hint(format!("did you mean `{near}`?"));
    } else if list.is_empty() {
        fault = fault.hint("it defines none");
    } else {
        fault = fault.hint(format!("it defines {}", list.join(", ")));
    }
    ctx.fault(fault);
}

/// Reports buffers whose `__device__` variable is not defined in the first launch's source.
fn symbols(ctx: &mut Context, place: &LaunchContext<'_>, launches: &[LaunchSpec]) {
    let Some(launch) = launches.first().filter(|launch| !launch.source.as_os_str().is_empty()) else { return };
    let source = ctx.files.source(&launch.source, &launch.compile.include_paths);
    if source.incomplete || SourceForm::from_path(&launch.source) != SourceForm::Cuda {
        return;
    }
    for symbol in place.declared.buffers_of(place.variant).filter_map(|buffer| buffer.symbol.as_ref()) {
        for (_, name) in written(symbol, &place.axes, Style::Cpp).unwrap_or_default() {
            let plain = plain_name(&name);
            if !source.variables.contains(plain) {
                not_defined(ctx, symbol, "`__device__` variable", plain, &launch.source, &source.variables);
            }
        }
    }
}

fn block_spec(ctx: &mut Context, place: &LaunchContext<'_>, raw: &At<RawExtent>) -> BlockSpec {
    extent(ctx, "block", raw, &[place.names]).map_or(BlockSpec::Occupancy, BlockSpec::Dims)
}

fn grid_spec(ctx: &mut Context, place: &LaunchContext<'_>, raw: &At<RawExtent>, block: &BlockSpec) -> GridSpec {
    let mut names = place.names.clone();
    if *block == BlockSpec::Occupancy {
        names.known.insert(OCCUPANCY_BLOCK.to_owned());
    }
    extent(ctx, "grid", raw, &[&names]).map_or(GridSpec::Occupancy, GridSpec::Dims)
}

/// One to three expressions; `None` for `"occupancy"`.
fn extent(ctx: &mut Context, key: &str, raw: &At<RawExtent>, scopes: &[&Names]) -> Option<Vec<Expression>> {
    match &raw.value {
        RawExtent::Word(word) if word == "occupancy" => None,
        RawExtent::Word(word) => {
            let message = format!("`{key}` must be a list of one to three expressions, or \"occupancy\"");
            ctx.fault(Diagnostic::at(raw.span.clone(), message).hint(format!("write {key} = [\"{word}\"]")));
            Some(Vec::new())
        }
        RawExtent::Dims(dims) => {
            if !(1..=3).contains(&dims.len()) && !ctx.faulty(&raw.span) {
                let message = format!("`{key}` has {} dimensions", dims.len());
                ctx.fault(Diagnostic::at(raw.span.clone(), message).hint("a grid and a block have one to three"));
            }
            for Expr(expression) in dims {
                whole(ctx, expression, scopes, &(1..=u64::MAX), &format!("a dimension of `{key}`"));
            }
            Some(dims.iter().map(|Expr(expression)| expression.clone()).collect())
        }
    }
}

/// Reports constant settings that are out of range.
fn numbers<'s>(
    ctx: &mut Context,
    place: &LaunchContext<'_>,
    settings: impl Iterator<Item = (&'static Setting, &'s Expression)>,
) {
    for (setting, number) in settings {
        ctx.known(number, &[place.names]);
        let (least, most) = setting.bounds.unwrap_or((i64::MIN, i64::MAX));
        let Some(value) = ctx.constant(number) else { continue };
        if !matches!(value, Value::Int(number) if (least..=most).contains(&number)) {
            let wanted = match (least, most) {
                (0, i64::MAX) => "a non-negative integer".to_owned(),
                (_, i64::MAX) => format!("an integer of at least {least}"),
                _ => format!("an integer from {least} to {most}"),
            };
            let message = format!("`{}` must be {wanted}, not {value}", setting.name);
            ctx.fault(Diagnostic::at(number.span.clone(), message));
        }
    }
}

/// Reports a constant expression that is not an integer in range.
fn whole(ctx: &mut Context, expression: &Expression, scopes: &[&Names], bounds: &RangeInclusive<u64>, what: &str) {
    ctx.known(expression, scopes);
    let Some(value) = ctx.constant(expression) else { return };
    if matches!(value, Value::Int(number) if u64::try_from(number).is_ok_and(|number| bounds.contains(&number))) {
        return;
    }
    let wanted = match (*bounds.start(), *bounds.end()) {
        (0, u64::MAX) => "a non-negative integer".to_owned(),
        (least, u64::MAX) => format!("an integer of at least {least}"),
        (least, most) => format!("an integer from {least} to {most}"),
    };
    let message = format!("{what} must be {wanted}, not {value}");
    ctx.fault(Diagnostic::at(expression.span.clone(), message));
}

/// Validates an argument. `is_laid_out` says whether the kernels' compiler knows the field offsets of structs.
fn argument(ctx: &mut Context, place: &LaunchContext<'_>, Arg(argument): &Arg, is_laid_out: bool) -> ArgSpec {
    if matches!(argument.value, ArgSpec::Named(_)) && !is_laid_out {
        let message =
            "structs with named fields need a kernel in CUDA C++, because only its compiler knows their offsets";
        let fault = Diagnostic::at(argument.span.clone(), message);
        ctx.fault(fault.hint("list the fields in the order of their declaration, without names"));
    }
    for part in argument.value.parts() {
        let is_whole = *part == argument.value;
        match part {
            ArgSpec::Buffer(name) if is_whole => {
                buffer_of(ctx, place, &argument.span, name);
            }
            ArgSpec::Buffer(name) => address(ctx, place, &argument.span, name),
            ArgSpec::Offset { buffer: name, offset } => {
                address(ctx, place, &argument.span, name);
                whole(ctx, offset, &[place.names], &(0..=u64::MAX), "an offset");
            }
            ArgSpec::Scalar { element, value } => {
                element_types(ctx, element, (&[place.names], &place.axes), false);
                ctx.known(value, &[place.names]);
            }
            ArgSpec::Array { count, .. } => {
                let most = ArgPlan::MOST_STRUCT_BYTES as u64;
                whole(ctx, count, &[place.names], &(1..=most), "the number of elements");
            }
            ArgSpec::Texture(texture) => {
                address(ctx, place, &argument.span, &texture.buffer);
                for extent in &texture.size {
                    whole(ctx, extent, &[place.names], &(1..=u64::from(u32::MAX)), "an extent of a texture");
                }
            }
            ArgSpec::Struct(_) | ArgSpec::Named(_) => {}
        }
    }
    argument.value.clone()
}

/// The buffer with this name. Reports a missing one.
fn buffer_of<'a>(ctx: &mut Context, place: &LaunchContext<'a>, span: &Span, name: &str) -> Option<&'a BufferSpec> {
    let found = place.variant.buffer(&place.declared.buffers, name);
    if found.is_none() {
        checks::no_buffer(ctx, span.clone(), name, place.declared, place.variant);
    }
    found
}

/// Checks an address that must be known before the run: a buffer plus an offset, or an address in a struct.
fn address(ctx: &mut Context, place: &LaunchContext<'_>, span: &Span, name: &str) {
    if buffer_of(ctx, place, span, name).is_some_and(|buffer| buffer.allocate != Allocation::Once) {
        let message = format!(
            "buffer `{name}` is allocated in every run, so its address is not known for an offset, a struct or a \
            texture"
        );
        let fault = Diagnostic::at(span.clone(), message);
        ctx.fault(fault.hint("pass the buffer as a separate argument, and an offset as a number"));
    }
}

/// Compiler of a launch that sets none: the experiment's, or nvcc if only nvcc supports one of the options.
fn default_compiler(place: &LaunchContext<'_>, raw: &RawLaunch) -> KernelCompiler {
    let is_for_nvcc = |option: &Text| {
        let is_allowed = |compiler: KernelCompiler| compiler.check_option(option.0.text()).is_ok();
        !is_allowed(KernelCompiler::Nvrtc) && is_allowed(KernelCompiler::Nvcc)
    };
    match place.declared.compiler {
        KernelCompiler::Nvrtc if raw.options.iter().flatten().any(is_for_nvcc) => KernelCompiler::Nvcc,
        compiler => compiler,
    }
}

fn compile(ctx: &mut Context, place: &LaunchContext<'_>, raw: &RawLaunch, compiler: KernelCompiler) -> CompileSpec {
    let mut spec = CompileSpec { settings: (&raw.compile.0).into(), ..CompileSpec::default() };
    numbers(ctx, place, spec.settings.numbers());
    for (name, TextOrNumber(value)) in raw.defines.iter().flat_map(|named| &named.0) {
        if !is_name(&name.value) {
            let fault = Diagnostic::at(name.span.clone(), format!("`{}` is not a macro name", name.value));
            ctx.fault(fault.hint("macros with parameters belong in the source"));
        }
        ctx.known(value, &[place.names]);
        spec.defines.push((name.value.clone(), value.clone()));
    }
    for text in raw.options.iter().flatten() {
        option(ctx, place, &text.0, compiler);
        spec.options.push(text.0.clone());
    }
    spec.include_paths = raw.include_paths.iter().flatten().filter_map(|path| include_path(ctx, path)).collect();
    spec
}

/// Reports a compiler option that is not allowed, both as written and with axis values substituted. Options that use a
/// binding are checked before they are passed to the compiler.
fn option(ctx: &mut Context, place: &LaunchContext<'_>, option: &Template, compiler: KernelCompiler) {
    ctx.known(option, &[place.names]);
    for (_, text) in written(option, &place.axes, Style::Cpp).unwrap_or_default() {
        if let Err(refused) = compiler.check_option(&text) {
            return ctx.fault(Diagnostic::at(option.span.clone(), refused.message).hint(refused.hint));
        }
    }
}

fn include_path(ctx: &mut Context, path: &At<String>) -> Option<PathBuf> {
    let places = ctx.files.places(&path.value);
    let found = places.iter().find(|place| place.is_dir()).cloned();
    // Without places to look, the package is missing and has been reported.
    if found.is_none() && !places.is_empty() {
        let hint = looked_for(&places);
        let message = format!("there is no folder `{}`", path.value);
        ctx.fault(Diagnostic::at(path.span.clone(), message).label("no such folder").hint(hint));
    }
    found.filter(|found| ctx.is_inside(found, &path.span))
}
