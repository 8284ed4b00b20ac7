//! Validates buffers: type, length, initial contents, access.

use super::context::{BESIDE, Context, Names, integers, written};
use super::declared::{Declared, DeclaredVariant};
use super::fills::check_fill;
use super::{memory, named};
use crate::files::reason;
use crate::raw::{Expr, FILLS, OneOrMany, RawBuffer, RawFill, RawFillTable, RawManifest, Text};
use crate::read::{At, Named, Table as _, missing};
use runner_experiment::{Axis, BufferSpec, Expression, FileSpec, FillSpec, StructureSpec, Template, TensorSpec};
use runner_files::npy;
use runner_files::regular;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::template::Style;
use runner_types::{Access, ElementType, Span, Value};

const SEED: u64 = 1;

/// Buffers of a table, in file order. [`check`] checks the names that they use.
pub fn buffers(ctx: &mut Context, raw: Option<&Named<At<RawBuffer>>>) -> Vec<BufferSpec> {
    let entries = raw.map(|named| named.0.as_slice()).unwrap_or_default();
    entries.iter().map(|(name, raw)| buffer(ctx, name, raw)).collect()
}

fn buffer(ctx: &mut Context, name: &At<String>, raw: &At<RawBuffer>) -> BufferSpec {
    let fields = &raw.value;
    let fill = fields.fill.as_ref().and_then(|fill| fill_spec(ctx, &name.value, fill));
    let default = if fields.fill.is_some() { Access::In } else { Access::Out };
    let access = fields.access.as_ref().map_or(default, |access| access.value);
    memory::agree(ctx, name, fields, access);
    BufferSpec {
        name: name.value.clone(),
        element: fields.r#type.0.clone().map_or_else(Template::missing, |text| text.0),
        len: length(ctx, name, raw),
        fill,
        access,
        symbol: fields.symbol.clone().map(|symbol| symbol.0),
        allocate: memory::allocation(ctx, name, fields, access),
        vary: memory::varied(ctx, name, fields, access),
        poison: memory::poisoned(ctx, name, fields, access),
    }
}

/// Length of a buffer. A file or a list in `fill` may determine it.
fn length(ctx: &mut Context, name: &At<String>, raw: &At<RawBuffer>) -> Expression {
    if let Some(Expr(len)) = &raw.value.len {
        return len.clone();
    }
    let span = raw.value.fill.as_ref().map_or_else(|| raw.span.clone(), |fill| fill.span.clone());
    match raw.value.fill.as_ref().map(|fill| &fill.value) {
        Some(RawFill::List(elements)) => return Expression::integer(elements.len() as i64, span),
        Some(RawFill::Table(table)) if table.npy.is_some() || table.raw.is_some() || table.safetensors.is_some() => {
            if let Ok(len) = Expression::parse(&BufferSpec::length_name(&name.value), span) {
                return len;
            }
        }
        _ => {}
    }
    if !ctx.refused(&raw.span, "len") {
        ctx.fault(
            missing("len", Some(&raw.span), "buffers").hint("only a file or a list in `fill` has its own length"),
        );
    }
    Expression::missing()
}

/// Resolves fills that are copies of, or depend on, another buffer's.
pub fn link(ctx: &mut Context, buffers: &mut [BufferSpec], shared: &[BufferSpec]) {
    let known: Vec<BufferSpec> = buffers.iter().chain(shared).cloned().collect();
    for buffer in buffers {
        let (of, span) = match &buffer.fill {
            Some(FillSpec::Like { buffer: of, .. }) => (of.clone(), buffer.len.span.clone()),
            Some(FillSpec::Structured { structure: StructureSpec::CsrColumns { rows, .. }, .. }) => {
                (rows.clone(), buffer.len.span.clone())
            }
            _ => continue,
        };
        let Some(other) = known.iter().find(|other| other.name == of && other.name != buffer.name) else {
            ctx.unknown(span, "buffer", &of, known.iter().map(|other| other.name.as_str()));
            buffer.fill = None;
            continue;
        };
        let linked = match (&buffer.fill, &other.fill) {
            (Some(FillSpec::Like { .. }), Some(fill)) if !matches!(fill, FillSpec::Like { .. }) => {
                Some(FillSpec::Like { buffer: of.clone(), fill: Box::new(fill.clone()) })
            }
            (
                Some(FillSpec::Structured { .. }),
                Some(FillSpec::Structured { structure: StructureSpec::CsrRows { nonzeros, columns }, seed }),
            ) => Some(FillSpec::Structured {
                structure: StructureSpec::CsrColumns {
                    rows: of.clone(),
                    begins: other.len.clone(),
                    nonzeros: nonzeros.clone(),
                    columns: columns.clone(),
                },
                seed: *seed,
            }),
            _ => None,
        };
        if linked.is_none() {
            let like = matches!(buffer.fill, Some(FillSpec::Like { .. }));
            let wanted = if like { "a fill of its own" } else { "the fill `csr_rows`" };
            let message =
                format!("the fill of `{}` depends on buffer `{of}`, which does not have {wanted}", buffer.name);
            ctx.fault(Diagnostic::at(span, message));
        }
        buffer.vary = other.vary.filter(|_| matches!(linked, Some(FillSpec::Like { .. })));
        buffer.fill = linked;
    }
}

fn fill_spec(ctx: &mut Context, buffer: &str, raw: &At<RawFill>) -> Option<FillSpec> {
    match &raw.value {
        RawFill::Constant(Expr(expression)) if expression.text() == "iota" => Some(iota(expression)),
        RawFill::Constant(Expr(expression)) => Some(FillSpec::Constant(expression.clone())),
        RawFill::List(elements) => {
            if elements.is_empty() && !ctx.faulty(&raw.span) {
                ctx.fault(Diagnostic::at(raw.span.clone(), format!("the fill of `{buffer}` has no elements")));
            }
            Some(FillSpec::List(elements.iter().map(|Expr(element)| element.clone()).collect()))
        }
        RawFill::Table(table) => fill_table(ctx, buffer, table, &raw.span),
    }
}

/// Contents 0, 1, 2, …
fn iota(word: &Expression) -> FillSpec {
    let number = |value| Expression::integer(value, word.span.clone());
    FillSpec::Iota { start: number(0), step: number(1) }
}

fn fill_table(ctx: &mut Context, buffer: &str, table: &RawFillTable, span: &Span) -> Option<FillSpec> {
    let mut given: Vec<&str> = table.given().into_iter().map(|(key, _)| key).collect();
    given.retain(|key| FILLS.iter().any(|(fill, _)| fill == key));
    if given.len() != 1 {
        if !ctx.faulty(span) {
            let names: Vec<String> = FILLS.iter().map(|(key, _)| format!("`{key}`")).collect();
            let message = format!("the fill of `{buffer}` needs exactly one of {}", names.join(", "));
            ctx.fault(Diagnostic::at(span.clone(), message));
        }
        return None;
    }
    if table.safetensors.is_some() != table.tensor.is_some() {
        let message = format!("the fill of `{buffer}` needs both `safetensors` and `tensor`, or neither");
        let hint = "write { safetensors = \"model.safetensors\", tensor = \"weight\" }";
        ctx.fault(Diagnostic::at(span.clone(), message).hint(hint));
        return None;
    }
    if let Some(seed) = &table.seed
        && FILLS.contains(&(given[0], false))
    {
        let is_of_other = matches!(given[0], "csr_columns" | "like");
        let why = if is_of_other { "it uses the other buffer's" } else { "nothing in it is random" };
        let message = format!("the fill of `{buffer}` takes no `seed`: {why}");
        ctx.fault(Diagnostic::at(seed.span.clone(), message));
    }
    let seed = table.seed.as_ref().map_or(SEED, |seed| seed.value);
    let pair =
        |at: &Option<At<[Expr; 2]>>| at.clone().map(|At { value: [Expr(first), Expr(second)], .. }| (first, second));
    let structured = |structure| Some(FillSpec::Structured { structure, seed });
    if let Some((low, high)) = pair(&table.uniform) {
        return Some(FillSpec::Uniform { low, high, seed });
    }
    if let Some((mean, deviation)) = pair(&table.normal) {
        return Some(FillSpec::Normal { mean, deviation, seed });
    }
    if let Some((start, step)) = pair(&table.iota) {
        return Some(FillSpec::Iota { start, step });
    }
    if let Some((low, high)) = pair(&table.sorted) {
        return structured(StructureSpec::Sorted { low, high });
    }
    if let Some((values, exponent)) = pair(&table.zipf) {
        return structured(StructureSpec::Zipf { values, exponent });
    }
    if let Some((nonzeros, columns)) = pair(&table.csr_rows) {
        return structured(StructureSpec::CsrRows { nonzeros, columns });
    }
    if let Some(At { value: Expr(classes), .. }) = table.one_hot.clone() {
        return structured(StructureSpec::OneHot(classes));
    }
    if let Some(At { value: Expr(columns), .. }) = table.identity.clone() {
        return structured(StructureSpec::Identity(columns));
    }
    if let Some(At { value: Expr(columns), .. }) = table.diagonally_dominant.clone() {
        return structured(StructureSpec::Dominant(columns));
    }
    if let Some(on) = &table.permutation {
        if !on.value {
            ctx.fault(
                Diagnostic::at(on.span.clone(), "`permutation` must be true").hint("remove it, or write another fill"),
            );
        }
        return structured(StructureSpec::Permutation);
    }
    // The remaining parameters are later taken from the other buffer.
    if let Some(rows) = &table.csr_columns {
        let (begins, nonzeros, columns) = (Expression::missing(), Expression::missing(), Expression::missing());
        return structured(StructureSpec::CsrColumns { rows: rows.value.clone(), begins, nonzeros, columns });
    }
    if let Some(other) = &table.like {
        let fill = Box::new(FillSpec::Constant(Expression::missing()));
        return Some(FillSpec::Like { buffer: other.value.clone(), fill });
    }
    if let Some(file) = &table.npy {
        return Some(FillSpec::Npy(npy_file(ctx, file)));
    }
    if let (Some(file), Some(Text(tensor))) = (&table.safetensors, &table.tensor) {
        return Some(FillSpec::Tensor(TensorSpec { file: raw_file(ctx, file), tensor: tensor.clone() }));
    }
    table.raw.as_ref().map(|file| FillSpec::Raw(raw_file(ctx, file)))
}

/// A file without a format. Reports an unreadable one, unless the name has placeholders, which the plan fills in.
pub fn raw_file(ctx: &mut Context, Text(name): &Text) -> FileSpec {
    if name.names().is_empty() {
        let path = ctx.files.path_beside(name.text());
        if ctx.is_inside(&path, &name.span)
            && let Err(error) = regular::open(&path)
        {
            ctx.unreadable(&path, &name.span, &error);
        }
    }
    FileSpec { folder: ctx.files.folder().to_owned(), name: name.clone() }
}

/// An `.npy` file in the manifest's folder. Reports a file that is missing or not in this format.
pub fn npy_file(ctx: &mut Context, Text(name): &Text) -> FileSpec {
    let spec = FileSpec { folder: ctx.files.folder().to_owned(), name: name.clone() };
    let path = ctx.files.path_beside(name.text());
    if !name.names().is_empty() || !ctx.is_inside(&path, &name.span) {
        return spec;
    }
    if let Err(error) = regular::open(&path) {
        ctx.unreadable(&path, &name.span, &error);
    } else if let Err(error) = npy::Header::read(&path) {
        let message = format!("`{}` is not an .npy file: {}", path.display(), reason(&error));
        ctx.fault(Diagnostic::at(name.span.clone(), message).hint(BESIDE));
    }
    spec
}

/// Checks the names that buffers use, for every variant that uses the buffer.
pub fn check(ctx: &mut Context, raw: &RawManifest, declared: &Declared) {
    let checked = named::in_checks(raw.check.as_ref().map(OneOrMany::as_slice).unwrap_or_default());
    for buffer in &declared.buffers {
        let uses = |variant: &DeclaredVariant| {
            let checked = variant.own_checks.as_ref().unwrap_or(&checked);
            let check = checked.contains(&buffer.name) || buffer.symbol.is_some();
            let needs = variant.uses.contains(&buffer.name) || (check && !variant.on_host);
            needs && !variant.has_own_buffer(&buffer.name)
        };
        let mut scopes = declared.scopes(uses);
        if scopes.is_empty() {
            scopes = declared.scopes(|_| true);
            scopes.truncate(1);
        }
        check_one(ctx, buffer, &scopes, &declared.axes_of(None));
    }
    for variant in &declared.variants {
        for buffer in &variant.buffers {
            check_one(ctx, buffer, &[&variant.names], &declared.axes_of(Some(variant)));
        }
    }
}

/// Whether the buffer's elements are vectors at any point of the axes.
pub fn is_vector(buffer: &BufferSpec, axes: &[Axis]) -> bool {
    let texts = written(&buffer.element, axes, Style::Names).unwrap_or_default();
    texts.iter().any(|(_, text)| ElementType::of_vector(text.trim()).is_some())
}

fn check_one(ctx: &mut Context, buffer: &BufferSpec, scopes: &[&Names], axes: &[Axis]) {
    let types = element_types(ctx, &buffer.element, (scopes, axes), true);
    // A file stores several elements per vector, so the plan compares the lengths.
    if let Some(FillSpec::Npy(file)) = buffer.fill.as_ref().filter(|_| !is_vector(buffer, axes)) {
        fits_file(ctx, file, buffer, &types, axes);
    }
    ctx.known(&buffer.len, scopes);
    if let Some(value) = ctx.constant(&buffer.len)
        && !matches!(value, Value::Int(1..))
    {
        let message = format!("the length of buffer `{}` must be a positive integer, not {value}", buffer.name);
        ctx.fault(Diagnostic::at(buffer.len.span.clone(), message));
    }
    if let Some(symbol) = &buffer.symbol {
        ctx.known(symbol, scopes);
    }
    if let Some(fill) = &buffer.fill {
        check_fill(ctx, &buffer.name, fill, &types, scopes);
    }
}

/// Reports a file that fits the buffer at no point of the axes. If it fits at some points, the plan checks each case,
/// since rules may exclude the others.
pub fn fits_file(ctx: &mut Context, file: &FileSpec, buffer: &BufferSpec, types: &[ElementType], axes: &[Axis]) {
    if !file.name.names().is_empty() {
        return;
    }
    let path = &file.folder.join(file.name.text());
    let Ok(header) = npy::Header::read(path) else { return };
    let name = &buffer.name;
    if let Some(element) = types.first()
        && let Some(Err(why)) = types.iter().all(|t| !header.holds(*t)).then(|| header.check(*element, None))
    {
        let fault = Diagnostic::at(buffer.element.span.clone(), format!("`{}` {why}", path.display()));
        ctx.fault(fault.label(format!("the type of buffer `{name}`")));
        return;
    }
    let lengths = integers(&buffer.len, axes);
    if lengths.is_empty() || lengths.iter().any(|len| u64::try_from(*len) == Ok(header.len())) {
        return;
    }
    let wanted = match lengths.as_slice() {
        [only] => format!("`{name}` has {only}"),
        _ => format!("`{name}` never has that many"),
    };
    let message = format!("`{}` holds {} elements, but buffer {wanted}", path.display(), header.len());
    ctx.fault(Diagnostic::at(buffer.len.span.clone(), message).label("its length"));
}

/// Types that a template evaluates to, if it uses only axes. If `vectors` are allowed, their component types. Reports a
/// string that is not a type.
pub fn element_types(
    ctx: &mut Context,
    template: &Template,
    (scopes, axes): (&[&Names], &[Axis]),
    vectors: bool,
) -> Vec<ElementType> {
    ctx.known(template, scopes);
    let mut types = Vec::new();
    for (point, text) in written(template, axes, Style::Names).unwrap_or_default() {
        let component = ElementType::of_vector(text.trim()).filter(|_| vectors);
        match component.map_or_else(|| text.trim().parse::<ElementType>(), |(component, _)| Ok(component)) {
            Ok(element) if types.contains(&element) => {}
            Ok(element) => types.push(element),
            Err(_) => {
                let values: Vec<String> = point.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                let place = if values.is_empty() { String::new() } else { format!(" where {}", values.join(", ")) };
                let fault = Diagnostic::at(template.span.clone(), format!("`{text}` is not an element type{place}"));
                ctx.fault(fault.hint(type_hint(&text)));
                break;
            }
        }
    }
    types
}

/// Hint with the element type that corresponds to a C type, or with all element types.
fn type_hint(text: &str) -> String {
    let meant = ElementType::ALL.iter().copied().find(|element| element.cpp_name() == text).or(match text {
        "char" | "int8_t" => Some(ElementType::I8),
        "int16_t" => Some(ElementType::I16),
        "int32_t" => Some(ElementType::I32),
        "long" | "int64_t" => Some(ElementType::I64),
        "uint8_t" | "bool" => Some(ElementType::U8),
        "uint16_t" => Some(ElementType::U16),
        "unsigned" | "uint32_t" => Some(ElementType::U32),
        "size_t" | "uint64_t" | "unsigned long" => Some(ElementType::U64),
        "half" => Some(ElementType::F16),
        _ => None,
    });
    match meant {
        Some(element) => format!("write `{element}`"),
        None => format!("valid types: {}", ElementType::NAMES.join(", ")),
    }
}
