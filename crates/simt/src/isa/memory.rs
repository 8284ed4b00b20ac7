//! Lowers loads, stores and address conversions.

use crate::exec::context::Handler;
use crate::exec::vector::{binary, unary};
use crate::exec::{load, store, system};
use crate::isa::address::{address, space};
use crate::isa::decode::{Done, Form, elements, no_type, scope};
use crate::isa::forms::CACHE;
use crate::isa::{moves, sending};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::mir::builder::{Builder, class_of};
use crate::mir::{Class, Inst, Opnd, Order};
use crate::program::aux::{Access, StateSpace};
use ptx_parser::ScalarType;

use ScalarType::{B128, S64, U64};

/// Ordering modifiers of a load or a store.
struct Strength {
    order: Order,
    flags: Access,
}

fn strength(f: &mut Form<'_, '_>) -> Strength {
    let volatile = f.flag("volatile");
    let semantics = f.one_of(&["relaxed", "acquire", "release"]);
    let scope = scope(f);
    f.ignore(&CACHE);
    let strong = volatile || semantics.is_some();
    let mut flags = Access::empty();
    flags.set(Access::STRONG, strong);
    flags.set(Access::VOLATILE, volatile);
    flags.set(Access::RELEASE, semantics == Some("release"));
    flags.set(Access::ACQUIRE, semantics == Some("acquire"));
    flags.set(scope, semantics.is_some());
    let order = match semantics {
        Some(_) => Order::Always,
        None if volatile => Order::Volatile,
        None => Order::Plain,
    };
    Strength { order, flags }
}

fn vector(f: &mut Form<'_, '_>) -> u32 {
    match f.one_of(&["v2", "v4", "v8"]) {
        Some("v2") => 2,
        Some("v4") => 4,
        Some(_) => 8,
        None => 1,
    }
}

/// Returns the type of two elements of an eight-element vector, which is accessed as four pairs.
fn pair(b: &Builder<'_, '_>, ty: ScalarType) -> Result<ScalarType, String> {
    if matches!(b.globals.target, Some(..100)) {
        return Err("vectors of eight elements need sm_100 or later".to_owned());
    }
    match ty.size() {
        1 => Ok(ScalarType::U16),
        2 => Ok(ScalarType::U32),
        4 => Ok(U64),
        _ => Err(format!("eight elements of the type `{ty:?}` have more than 32 bytes")),
    }
}

/// Returns the handlers that extract the lower and the upper element of a pair.
fn halves(b: &Builder<'_, '_>, ty: ScalarType) -> [Handler; 2] {
    match (ty.size(), ty.is_signed()) {
        (4, _) => [unary(b.isa, |x: u64| x as u32), unary(b.isa, |x: u64| (x >> 32) as u32)],
        (2, false) => [unary(b.isa, |x: u32| x & 0xffff), unary(b.isa, |x: u32| x >> 16)],
        (2, true) => [unary(b.isa, |x: u32| x as i16 as u32), unary(b.isa, |x: u32| (x as i32 >> 16) as u32)],
        (_, false) => [unary(b.isa, |x: u32| x & 0xff), unary(b.isa, |x: u32| x >> 8 & 0xff)],
        (_, true) => [unary(b.isa, |x: u32| x as i8 as u32), unary(b.isa, |x: u32| (x >> 8) as i8 as u32)],
    }
}

/// Loads a vector of eight elements.
fn load_eight<'a>(
    b: &mut Builder<'a, '_>,
    f: &Form<'a, '_>,
    ty: ScalarType,
    order: Order,
    (row, imm, aux): (Opnd, i64, Access),
) -> Done {
    let pair = pair(b, ty)?;
    let targets = elements(f.operand(0)?, 8, "destinations")?;
    let class = class_of(pair)?;
    let pairs = [0; 4].map(|_| Opnd::Reg(b.fresh(class)));
    let [x, y, z, w] = pairs;
    let run = loader(b, pair, false)?;
    let inst = b.emit(run, [x, y, z, w, row], 0b1111, imm, aux.with_elements(4).bits());
    order_load(inst, order, aux);
    for (k, target) in targets.iter().enumerate() {
        let d = b.dst(target, ty)?;
        if d != Opnd::None {
            let run = halves(b, ty)[k % 2];
            b.emit(run, [d, pairs[k / 2]], 1, 0, 0);
            b.uncount_last();
        }
    }
    Ok(())
}

/// Stores a vector of eight elements.
fn store_eight<'a>(
    b: &mut Builder<'a, '_>,
    f: &Form<'a, '_>,
    ty: ScalarType,
    order: Order,
    (row, imm, aux): (Opnd, i64, Access),
) -> Done {
    let pair = pair(b, ty)?;
    let mut o = [row, Opnd::None, Opnd::None, Opnd::None, Opnd::None];
    for (k, two) in elements(f.operand(1)?, 8, "sources")?.chunks_exact(2).enumerate() {
        let (x, y) = (b.src(&two[0], ty)?, b.src(&two[1], ty)?);
        o[1 + k] = Opnd::Reg(b.fresh(class_of(pair)?));
        let run = match ty.size() {
            4 => binary(b.isa, |x: u32, y: u32| u64::from(y) << 32 | u64::from(x)),
            2 => binary(b.isa, |x: u32, y: u32| y << 16 | x & 0xffff),
            _ => binary(b.isa, |x: u32, y: u32| (y & 0xff) << 8 | x & 0xff),
        };
        b.emit(run, [o[1 + k], x, y], 1, 0, 0);
        b.uncount_last();
    }
    let run = storer(b, pair)?;
    let inst = b.emit(run, o, 0, imm, aux.with_elements(4).bits());
    order_store(inst, order, aux);
    Ok(())
}

pub fn load<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let Strength { order, flags } = strength(f);
    let space = space(f);
    let count = vector(f);
    let ty = f.ty()?;
    f.done()?;
    let (row, imm, mut aux) = address(b, f.operand(1)?, space)?;
    if ty == B128 && count == 1 {
        let halves = [0, 1].map(|_| Opnd::Reg(b.fresh(Class::Wide)));
        let o = [halves[0], halves[1], Opnd::None, Opnd::None, row];
        let run = load::handler(b.isa, |x: u64| x);
        let inst = b.emit(run, o, 0b11, imm, (aux | flags).with_elements(2).bits());
        order_load(inst, order, aux);
        let d = b.quad(f.operand(0)?)?;
        moves::join(b, d, halves);
        b.uncount_last();
        return Ok(());
    }
    if count == 8 {
        return load_eight(b, f, ty, order, (row, imm, aux | flags));
    }
    aux = (aux | flags).with_elements(count);
    let targets = elements(f.operand(0)?, count as usize, "destinations")?;
    // A register may be wider than an element, in which case the load extends the element.
    let wide = targets.iter().any(|t| b.register_class(t) == Some(Class::Wide));
    let run = loader(b, ty, wide)?;
    let held = if wide && ty.size() < 8 { if ty.is_signed() { S64 } else { U64 } } else { ty };
    let mut o = [Opnd::None; 6];
    for (slot, target) in o.iter_mut().zip(targets) {
        *slot = b.dst(target, held)?;
    }
    if aux == (Access::ABSOLUTE | Access::to(StateSpace::PARAM)).with_elements(1)
        && held == ty
        && in_a_row(b, imm, ty.size())
    {
        let wide = ty.size() == 8;
        let row = b.parts.constants.param(imm as u32, wide);
        moves::copy(b, o[0], row, wide);
        return Ok(());
    }
    o[4] = row;
    if let Opnd::None = row
        && !aux.contains(Access::ABSOLUTE)
    {
        return Err("expected an address".to_owned());
    }
    let inst = b.emit(run, o, 0b1111, imm, aux.bits());
    order_load(inst, order, aux);
    Ok(())
}

/// Whether other blocks can change memory in this state space.
const fn is_between_blocks(aux: Access) -> bool {
    matches!(aux.space(), StateSpace::GLOBAL | StateSpace::GENERIC) && !aux.contains(Access::CONST)
}

fn order_load(inst: &mut Inst, order: Order, aux: Access) {
    if is_between_blocks(aux) {
        (inst.order, inst.address) = (order, 4);
        inst.polls = order != Order::Plain;
    }
}

fn order_store(inst: &mut Inst, order: Order, aux: Access) {
    if is_between_blocks(aux) && order != Order::Plain {
        inst.order = order;
    }
}

/// Whether `bytes` bytes at this offset in the kernel's parameters can be read as a row.
fn in_a_row(b: &Builder<'_, '_>, offset: i64, bytes: u32) -> bool {
    let (offset, bytes) = (offset as u64, u64::from(bytes));
    bytes >= 4 && offset.is_multiple_of(bytes) && offset.saturating_add(bytes) <= u64::from(b.param_bytes)
}

/// Returns the handler of loads of a type.
pub fn loader(b: &Builder<'_, '_>, ty: ScalarType, wide: bool) -> Result<Handler, String> {
    Ok(match (ty.size(), ty.is_signed(), wide) {
        (1, false, false) => load::handler(b.isa, |x: u8| u32::from(x)),
        (1, true, false) => load::handler(b.isa, |x: i8| i32::from(x) as u32),
        (2, false, false) => load::handler(b.isa, |x: u16| u32::from(x)),
        (2, true, false) => load::handler(b.isa, |x: i16| i32::from(x) as u32),
        (4, _, false) => load::handler(b.isa, |x: u32| x),
        (1, false, true) => load::handler(b.isa, |x: u8| u64::from(x)),
        (1, true, true) => load::handler(b.isa, |x: i8| i64::from(x) as u64),
        (2, false, true) => load::handler(b.isa, |x: u16| u64::from(x)),
        (2, true, true) => load::handler(b.isa, |x: i16| i64::from(x) as u64),
        (4, false, true) => load::handler(b.isa, |x: u32| u64::from(x)),
        (4, true, true) => load::handler(b.isa, |x: i32| i64::from(x) as u64),
        (8, ..) => load::handler(b.isa, |x: u64| x),
        _ => return no_type(ty),
    })
}

pub fn store<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if f.flag("async") {
        return sending::store(b, f);
    }
    let Strength { order, flags } = strength(f);
    let space = space(f);
    let count = vector(f);
    let ty = f.ty()?;
    f.done()?;
    let (row, imm, mut aux) = address(b, f.operand(0)?, space)?;
    if ty == B128 && count == 1 {
        let from = b.quad(f.operand(1)?)?;
        let mut o = [row, Opnd::None, Opnd::None];
        for half in 0..2 {
            o[1 + half] = Opnd::Reg(b.fresh(Class::Wide));
            moves::half(b, o[1 + half], from, half);
            b.uncount_last();
        }
        let run = store::handler(b.isa, |x: u64| x);
        let inst = b.emit(run, o, 0, imm, (aux | flags).with_elements(2).bits());
        order_store(inst, order, aux);
        return Ok(());
    }
    if count == 8 {
        return store_eight(b, f, ty, order, (row, imm, aux | flags));
    }
    aux = (aux | flags).with_elements(count);
    let sources = elements(f.operand(1)?, count as usize, "sources")?;
    let mut o = [Opnd::None; 6];
    o[0] = row;
    for (slot, source) in o[1..].iter_mut().zip(sources) {
        *slot = b.src(source, ty)?;
    }
    let run = storer(b, ty)?;
    let inst = b.emit(run, o, 0, imm, aux.bits());
    order_store(inst, order, aux);
    Ok(())
}

/// Returns the handler of stores of a type.
pub fn storer(b: &Builder<'_, '_>, ty: ScalarType) -> Result<Handler, String> {
    Ok(match ty.size() {
        1 => store::handler(b.isa, |x: u32| x as u8),
        2 => store::handler(b.isa, |x: u32| x as u16),
        4 => store::handler(b.isa, |x: u32| x),
        8 => store::handler(b.isa, |x: u64| x),
        _ => return no_type(ty),
    })
}

pub fn cvta<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let to = f.flag("to");
    let window = match space(f).space() {
        StateSpace::SHARED => SHARED_WINDOW,
        StateSpace::LOCAL => LOCAL_WINDOW,
        StateSpace::PARAM => PARAM_WINDOW,
        _ => 0,
    };
    let ty = f.ty()?;
    if ty.size() != 8 {
        return no_type(ty);
    }
    let d = b.dst(f.operand(0)?, U64)?;
    let x = b.src(f.operand(1)?, U64)?;
    if window == 0 {
        moves::copy(b, d, x, true);
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
    let wanted = if f.flag("shared::cluster") { Access::to(StateSpace::REMOTE) } else { space(f) };
    f.done()?;
    let d = b.dst(f.operand(0)?, ScalarType::Pred)?;
    let x = b.src(f.operand(1)?, U64)?;
    // Constants are kept in global memory, so no generic pointer is recognised as pointing to constant memory.
    b.emit(system::is_space, [d, x], 1, 0, if constant { u32::MAX } else { wanted.bits() });
    Ok(())
}

/// Lowers `createpolicy`, which creates a cache policy. No simulated instruction reads it.
pub fn policy<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["fractional", "range", "cvt", "L2", "global"]);
    f.ignore(&["L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"]);
    let ty = f.ty()?;
    let d = b.dst(f.operand(0)?, ty)?;
    let zero = b.parts.constants.uniform(0, true);
    b.emit(unary(b.isa, |x: u64| x), [d, zero], 1, 0, 0);
    f.done()
}
