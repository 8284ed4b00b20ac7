//! Loads, stores, atomics, addresses.

use ScalarType::{B32, B64, Bf16, Bf16x2, F16, F16x2, F32, F64, S32, S64, U16, U32, U64};

use super::half::{bf16_value, f16_value, to_bf16, to_f16};
use super::{Builder, Form, integer, no_type};
use crate::ptx::{Operand, ScalarType};
use crate::sim::exec::access::{self, form};
use crate::sim::exec::arith::{canon, fma_odd, ftz, max32, min32};
use crate::sim::exec::row::Handler;
use crate::sim::exec::vector::{binary, unary};
use crate::sim::exec::{atomic as cells, system};
use crate::sim::lower::builder::{Symbol, class_of};
use crate::sim::lower::mir::{Class, Opnd};
use crate::sim::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};

type Done = Result<(), String>;

/// Hints about caches, which change nothing here.
pub(super) const CACHE: [&str; 23] = [
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "nc",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::evict_first",
    "L2::evict_last",
    "L2::evict_normal",
    "L2::cache_hint",
    "mmio",
    "unified",
    "weak",
];
pub(super) const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Takes the state space.
pub(super) fn space(f: &mut Form<'_, '_>) -> u32 {
    match f.one_of(&[
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "local",
        "param",
        "param::entry",
        "param::func",
        "const",
    ]) {
        Some("shared" | "shared::cta" | "shared::cluster") => form::SHARED,
        Some("local") => form::LOCAL,
        Some("param" | "param::entry" | "param::func") => form::PARAM,
        Some(_) => form::GLOBAL,
        None => form::GENERIC,
    }
}

/// An address: its row, the offset, and what `aux` says of both.
pub(super) fn address<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    space: u32,
) -> Result<(Opnd, i64, u32), String> {
    let Operand::Address { base, offset } = *operand else {
        return Err(format!("an operand {operand:?} where an address stands"));
    };
    let Some(name) = base else { return Ok((Opnd::None, offset, form::ABSOLUTE | space)) };
    Ok(match b.lookup(name)? {
        Symbol::Register(register, ty) => match class_of(ty)? {
            Class::Wide => (Opnd::Reg(register), offset, space),
            Class::Narrow => (Opnd::Reg(register), offset, space | form::NARROW),
            Class::Pred => return Err(format!("predicate `{name}` as an address")),
        },
        Symbol::Local(at, _) => (Opnd::None, i64::from(at) + offset, form::ABSOLUTE | form::FRAME | form::LOCAL),
        Symbol::Param(at) => (Opnd::None, i64::from(at) + offset, form::ABSOLUTE | form::PARAM),
        Symbol::Shared(at) => (Opnd::None, i64::from(at) + offset, form::ABSOLUTE | form::SHARED),
        Symbol::Global(at) => (Opnd::None, (at as i64).wrapping_add(offset), form::ABSOLUTE | form::GLOBAL),
        _ => return Err(format!("`{name}` is no address")),
    })
}

/// What the modifiers of a load or a store say of its order.
struct Strength {
    /// Another thread may be waited for: volatile, relaxed or acquiring.
    strong: bool,
    /// The bits of `aux`.
    aux: u32,
}

fn strength(f: &mut Form<'_, '_>) -> Strength {
    let volatile = f.flag("volatile");
    let semantics = f.one_of(&["relaxed", "acquire", "release"]);
    f.ignore(&SCOPES);
    f.ignore(&CACHE);
    let strong = volatile || semantics.is_some();
    let aux = [(strong, form::STRONG), (volatile, form::VOLATILE), (semantics == Some("release"), form::RELEASE)];
    Strength { strong, aux: aux.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit) }
}

fn vector(f: &mut Form<'_, '_>) -> u32 {
    match f.one_of(&["v2", "v4"]) {
        Some("v2") => 2,
        Some(_) => 4,
        None => 1,
    }
}

pub fn load<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let Strength { strong, aux: order } = strength(f);
    let space = space(f);
    let count = vector(f);
    let ty = f.ty()?;
    f.done()?;
    let (row, imm, mut aux) = address(b, f.operand(1)?, space)?;
    aux |= count | order;
    let targets: Vec<&Operand<'a>> = match f.operand(0)? {
        Operand::Vector(parts) => parts.iter().collect(),
        one => vec![one],
    };
    if targets.len() != count as usize {
        return Err(format!("{} destinations for {count} elements", targets.len()));
    }
    // Registers may be wider than the elements: those are extended by the load itself.
    let wide = targets.iter().any(|t| b.register_class(t) == Some(Class::Wide));
    let run = loader(b, ty, wide)?;
    let held = if wide && ty.size() < 8 { if ty.is_signed() { S64 } else { U64 } } else { ty };
    let mut o = [Opnd::None; 6];
    for (slot, target) in o.iter_mut().zip(&targets) {
        *slot = b.dst(target, held)?;
    }
    if aux == form::ABSOLUTE | form::PARAM | 1 && held == ty && in_a_row(b, imm, ty.size()) {
        let wide = ty.size() == 8;
        let row = b.parts.constants.param(imm as u32, wide);
        integer::copy(b, o[0], row, wide);
        return Ok(());
    }
    o[4] = row;
    if let Opnd::None = row
        && aux & form::ABSOLUTE == 0
    {
        return Err("an address is expected".to_owned());
    }
    b.emit(run, o, 0b1111, imm, aux).polls =
        strong && aux & form::SPACE != form::SHARED && aux & form::SPACE != form::LOCAL;
    Ok(())
}

/// Whether so many bytes at an offset of the kernel's parameters can be a row.
fn in_a_row(b: &Builder<'_, '_>, offset: i64, bytes: u32) -> bool {
    let (offset, bytes) = (offset as u64, u64::from(bytes));
    bytes >= 4 && offset.is_multiple_of(bytes) && offset.saturating_add(bytes) <= u64::from(b.param_bytes)
}

fn loader(b: &Builder<'_, '_>, ty: ScalarType, wide: bool) -> Result<Handler, String> {
    Ok(match (ty.size(), ty.is_signed(), wide) {
        (1, false, false) => access::load(b.isa, |x: u8| u32::from(x)),
        (1, true, false) => access::load(b.isa, |x: i8| i32::from(x) as u32),
        (2, false, false) => access::load(b.isa, |x: u16| u32::from(x)),
        (2, true, false) => access::load(b.isa, |x: i16| i32::from(x) as u32),
        (4, _, false) => access::load(b.isa, |x: u32| x),
        (1, false, true) => access::load(b.isa, |x: u8| u64::from(x)),
        (1, true, true) => access::load(b.isa, |x: i8| i64::from(x) as u64),
        (2, false, true) => access::load(b.isa, |x: u16| u64::from(x)),
        (2, true, true) => access::load(b.isa, |x: i16| i64::from(x) as u64),
        (4, false, true) => access::load(b.isa, |x: u32| u64::from(x)),
        (4, true, true) => access::load(b.isa, |x: i32| i64::from(x) as u64),
        (8, ..) => access::load(b.isa, |x: u64| x),
        _ => return no_type(ty),
    })
}

pub fn store<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let Strength { strong, aux: order } = strength(f);
    let space = space(f);
    let count = vector(f);
    let ty = f.ty()?;
    f.done()?;
    let (row, imm, mut aux) = address(b, f.operand(0)?, space)?;
    aux |= count | order;
    let sources: Vec<&Operand<'a>> = match f.operand(1)? {
        Operand::Vector(parts) => parts.iter().collect(),
        one => vec![one],
    };
    if sources.len() != count as usize {
        return Err(format!("{} sources for {count} elements", sources.len()));
    }
    let mut o = [Opnd::None; 6];
    o[0] = row;
    for (slot, source) in o[1..].iter_mut().zip(&sources) {
        *slot = b.src(source, ty)?;
    }
    let run = match ty.size() {
        1 => access::store(b.isa, |x: u32| x as u8),
        2 => access::store(b.isa, |x: u32| x as u16),
        4 => access::store(b.isa, |x: u32| x),
        8 => access::store(b.isa, |x: u64| x),
        _ => return no_type(ty),
    };
    b.emit(run, o, 0, imm, aux).publishes =
        strong && aux & form::SPACE != form::SHARED && aux & form::SPACE != form::LOCAL;
    Ok(())
}

/// Picks the cell operation; the second part says whether the order of such operations cannot be seen.
fn cell(operation: &str, ty: ScalarType, shared: bool) -> Result<(Handler, bool), String> {
    macro_rules! cell {
        ($t:ty, |$old:ident, $b:ident, $c:ident| $body:expr) => {
            cells::handler::<$t, _>(|$old: $t, $b: $t, $c: $t| {
                let _ = ($old, $c);
                $body
            })
        };
    }
    macro_rules! float {
        ($t:ty, $f:ty, |$x:ident, $y:ident| $body:expr) => {
            cells::handler::<$t, _>(|old: $t, b: $t, _: $t| {
                let ($x, $y) = (<$f>::from_bits(old), <$f>::from_bits(b));
                let r: $f = $body;
                r.to_bits()
            })
        };
    }
    Ok(match (operation, ty) {
        ("add", U32 | S32) => (cell!(u32, |old, b, c| old.wrapping_add(b)), true),
        ("add", U64 | S64) => (cell!(u64, |old, b, c| old.wrapping_add(b)), true),
        ("and", B32) => (cell!(u32, |old, b, c| old & b), true),
        ("and", B64) => (cell!(u64, |old, b, c| old & b), true),
        ("or", B32) => (cell!(u32, |old, b, c| old | b), true),
        ("or", B64) => (cell!(u64, |old, b, c| old | b), true),
        ("xor", B32) => (cell!(u32, |old, b, c| old ^ b), true),
        ("xor", B64) => (cell!(u64, |old, b, c| old ^ b), true),
        ("min", U32) => (cell!(u32, |old, b, c| old.min(b)), true),
        ("min", S32) => (cell!(u32, |old, b, c| (old as i32).min(b as i32) as u32), true),
        ("min", U64) => (cell!(u64, |old, b, c| old.min(b)), true),
        ("min", S64) => (cell!(u64, |old, b, c| (old as i64).min(b as i64) as u64), true),
        ("max", U32) => (cell!(u32, |old, b, c| old.max(b)), true),
        ("max", S32) => (cell!(u32, |old, b, c| (old as i32).max(b as i32) as u32), true),
        ("max", U64) => (cell!(u64, |old, b, c| old.max(b)), true),
        ("max", S64) => (cell!(u64, |old, b, c| (old as i64).max(b as i64) as u64), true),
        ("inc", U32) => (cell!(u32, |old, b, c| if old >= b { 0 } else { old + 1 }), false),
        ("dec", U32) => (cell!(u32, |old, b, c| if old == 0 || old > b { b } else { old - 1 }), false),
        ("exch", B32 | U32 | S32 | F32) => (cell!(u32, |old, b, c| b), false),
        ("exch", B64 | U64 | S64 | F64) => (cell!(u64, |old, b, c| b), false),
        ("cas", ScalarType::B16 | U16) => (cell!(u16, |old, b, c| if old == b { c } else { old }), false),
        ("cas", B32 | U32 | S32) => (cell!(u32, |old, b, c| if old == b { c } else { old }), false),
        ("cas", B64 | U64 | S64) => (cell!(u64, |old, b, c| if old == b { c } else { old }), false),
        // The units of global memory flush subnormals and pass on a double's NaN as it is; shared memory has neither.
        ("add", F32) if shared => (float!(u32, f32, |x, y| canon(x + y)), false),
        ("add", F32) => (float!(u32, f32, |x, y| ftz(canon(ftz(x) + ftz(y)))), false),
        ("add", F64) if shared => (float!(u64, f64, |x, y| x + y), false),
        ("add", F64) => (
            float!(u64, f64, |x, y| if x.is_nan() {
                x
            } else if y.is_nan() {
                y
            } else {
                x + y
            }),
            false,
        ),
        ("min", F32) => (float!(u32, f32, |x, y| min32(x, y)), true),
        ("max", F32) => (float!(u32, f32, |x, y| max32(x, y)), true),
        ("add", F16) => (cell!(u16, |old, b, c| f16_sum(old.into(), b.into()) as u16), false),
        ("add", Bf16) => (cell!(u16, |old, b, c| bf16_sum(old.into(), b.into()) as u16), false),
        ("add", F16x2) => {
            (cell!(u32, |old, b, c| f16_sum(old >> 16, b >> 16) << 16 | f16_sum(old & 0xffff, b & 0xffff)), false)
        }
        ("add", Bf16x2) => {
            (cell!(u32, |old, b, c| bf16_sum(old >> 16, b >> 16) << 16 | bf16_sum(old & 0xffff, b & 0xffff)), false)
        }
        (operation, ty) => return Err(format!("atomic `.{operation}` on `{ty:?}` is not simulated")),
    })
}

fn f16_sum(x: u32, y: u32) -> u32 {
    to_f16(fma_odd(f16_value(x), 1.0, f16_value(y)))
}

fn bf16_sum(x: u32, y: u32) -> u32 {
    to_bf16(fma_odd(bf16_value(x), 1.0, bf16_value(y)))
}

/// `atom` and `red`.
pub fn atomic<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let returns = f.ins.opcode.starts_with("atom");
    let strong = f.one_of(&["relaxed", "acquire", "release", "acq_rel"]);
    f.ignore(&SCOPES);
    f.ignore(&["noftz", "L2::cache_hint"]);
    let space = space(f);
    let operation = f
        .one_of(&["add", "and", "or", "xor", "min", "max", "inc", "dec", "exch", "cas"])
        .ok_or("an operation is expected")?;
    let vector = f.one_of(&["v2", "v4", "v8"]);
    let ty = f.ty()?;
    f.done()?;
    let (run, commutes) = cell(operation, ty, space == form::SHARED)?;
    let first = usize::from(returns);
    let (row, imm, aux) = address(b, f.operand(first)?, space)?;
    if let Some(vector) = vector {
        let release = if matches!(strong, Some("release" | "acq_rel")) { form::RELEASE } else { 0 };
        return atomic_vector(b, f, (vector, ty, returns), (run, operation), (row, imm, aux | release));
    }
    let d = if returns { b.dst(f.operand(0)?, ty)? } else { Opnd::None };
    let x = b.src(f.operand(first + 1)?, ty)?;
    let y = if operation == "cas" { b.src(f.operand(first + 2)?, ty)? } else { Opnd::None };
    let local_order = aux & form::SPACE == form::SHARED;
    // What only this block sees, and sums that commute, need no order; a value that is read does.
    let ordered = if local_order || commutes { 0 } else { form::ORDERED };
    let polls = if matches!(operation, "cas" | "exch") || strong.is_some() { form::POLL } else { 0 };
    let release = if matches!(strong, Some("release" | "acq_rel")) { form::RELEASE } else { 0 };
    let aux = aux | 1 | form::STRONG | ordered | polls | release;
    let inst = b.emit(run, [d, row, x, y], u8::from(returns), imm, aux);
    // A block that polls may be waiting for a sum that nobody else reads.
    inst.publishes = !local_order;
    inst.polls = returns && !local_order;
    inst.ordered_by_result = returns && !local_order && ordered == 0 && d != Opnd::None;
    Ok(())
}

/// Atomics on the elements of a vector in global memory, one after the other: none of it is atomic as a whole.
fn atomic_vector<'a>(
    b: &mut Builder<'a, '_>,
    f: &mut Form<'a, '_>,
    (vector, ty, returns): (&str, ScalarType, bool),
    (run, operation): (Handler, &str),
    (row, imm, aux): (Opnd, i64, u32),
) -> Done {
    let count = match (vector, ty) {
        ("v2", F32 | F16 | Bf16 | F16x2 | Bf16x2) => 2,
        ("v4", F32 | F16 | Bf16 | F16x2 | Bf16x2) => 4,
        ("v8", F16 | Bf16) => 8,
        _ => return Err(format!("vectors `.{vector}` of `{ty:?}` are not known to PTX")),
    };
    if operation != "add" || aux & form::SPACE != form::GLOBAL {
        return Err("of vectors only sums in global memory are simulated".to_owned());
    }
    let parts = |at: usize| match f.operand(at)? {
        Operand::Vector(parts) if parts.len() == count => Ok(parts),
        other => Err(format!("an operand {other:?} where {count} elements stand")),
    };
    let sources = parts(usize::from(returns) + 1)?;
    let mut olds = Vec::new();
    for (k, source) in sources.iter().enumerate() {
        let x = b.src(source, ty)?;
        // An element's old value may replace what a later one adds: all are written at the end.
        let old = if returns { Opnd::Reg(b.fresh(class_of(ty)?)) } else { Opnd::None };
        olds.push(old);
        // The first one stands for the vector: it is counted, and its address is that of all.
        let width = if k == 0 { count as u32 } else { 0 };
        let at = imm + k as i64 * i64::from(ty.size());
        let inst = b.emit(run, [old, row, x], u8::from(returns), at, aux | width | form::STRONG | form::ORDERED);
        (inst.publishes, inst.polls, inst.counts) = (true, returns, u32::from(k == 0));
    }
    if returns {
        for (target, old) in parts(0)?.iter().zip(olds) {
            let d = b.dst(target, ty)?;
            if d == Opnd::None {
                continue;
            }
            integer::copy(b, d, old, false);
            if let Some(last) = b.body.insts.last_mut() {
                last.counts = 0;
            }
        }
    }
    Ok(())
}

pub fn cvta<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let to = f.flag("to");
    let window = match space(f) {
        form::SHARED => SHARED_WINDOW,
        form::LOCAL => LOCAL_WINDOW,
        form::PARAM => PARAM_WINDOW,
        _ => 0,
    };
    let ty = f.ty()?;
    if ty.size() != 8 {
        return no_type(ty);
    }
    let d = b.dst(f.operand(0)?, U64)?;
    let x = b.src(f.operand(1)?, U64)?;
    if window == 0 {
        integer::copy(b, d, x, true);
        return f.done();
    }
    let base = b.parts.constants.uniform(window, true);
    let run = if to {
        binary(b.isa, |x: u64, base: u64| x.wrapping_sub(base))
    } else {
        binary(b.isa, |x: u64, base: u64| x.wrapping_add(base))
    };
    b.emit(run, [d, x, base], 1, 0, 0);
    f.done()
}

pub fn isspacep<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let constant = f.flag("const");
    let wanted = if f.flag("shared::cluster") { system::CLUSTER_SPACE } else { space(f) };
    f.done()?;
    let d = b.dst(f.operand(0)?, ScalarType::Pred)?;
    let x = b.src(f.operand(1)?, U64)?;
    // Constants lie among the globals; a pointer to one is never told apart.
    b.emit(system::is_space, [d, x], 1, 0, if constant { u32::MAX } else { wanted });
    Ok(())
}

/// `createpolicy`: a policy of the cache, which nothing here reads.
pub fn policy<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["fractional", "range", "cvt", "L2", "global"]);
    f.ignore(&["L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"]);
    let ty = f.ty()?;
    let d = b.dst(f.operand(0)?, ty)?;
    let zero = b.parts.constants.uniform(0, true);
    b.emit(unary(b.isa, |x: u64| x), [d, zero], 1, 0, 0);
    f.done()
}
