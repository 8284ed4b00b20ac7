//! Asynchronous copies, and the mbarrier objects on which threads wait for them.

use crate::exec::context::Handler;
use crate::exec::vector::unary;
use crate::exec::{bulk as bulks, copy, mbarrier, system};
use crate::isa::address::{address, bulk_address, space};
use crate::isa::decode::{Done, Form, apply, selector};
use crate::isa::forms::{CACHE, SCOPES};
use crate::isa::reductions::{ReductionUnit, cell, operation};
use crate::mir::builder::Builder;
use crate::mir::{Class, Inst, Opnd, Order};
use crate::program::aux::{Access, Bulk, StateSpace};
use crate::program::ins::Slot;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B32, B64, Bf16, F16, F32, F64, S32, S64, U16, U32, U64};

/// Lowers `cp.async` with its groups, and `cp.reduce.async.bulk`.
pub fn copy<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let reduces = f.flag("reduce");
    if !f.flag("async") {
        return Err("expected `.async`".to_owned());
    }
    let many = f.flag("bulk");
    if many && f.flag("tensor") {
        return Err("copies of tensors are not simulated".to_owned());
    }
    if reduces && !many {
        return Err("expected `.bulk`".to_owned());
    }
    if reduces {
        return bulk_reduction(b, f);
    }
    if many {
        return bulk(b, f);
    }
    if f.flag("mbarrier") {
        return arrive_behind_copies(b, f);
    }
    if f.flag("commit_group") {
        b.emit::<0>(system::commit_copies, [], 0, 0, 0);
        return f.done();
    }
    if f.flag("wait_all") {
        b.emit::<0>(system::wait_for_copies, [], 0, -1, 0);
        return f.done();
    }
    if f.flag("wait_group") {
        let Operand::Int(groups) = *f.operand(0)? else { return Err("expected a number of groups".to_owned()) };
        b.emit::<0>(system::wait_for_copies, [], 0, groups as i64, 0);
        return f.done();
    }
    f.ignore(&["shared", "shared::cta", "global"]);
    let (whole, hinted) = (f.flag("cg"), f.flag("L2::cache_hint"));
    f.ignore(&CACHE);
    f.done()?;
    let (mut to, mut to_offset, mut to_aux) = address(b, f.operand(0)?, Access::to(StateSpace::SHARED))?;
    let (mut from, mut from_offset, from_aux) = address(b, f.operand(1)?, Access::to(StateSpace::GLOBAL))?;
    if to_aux.contains(Access::ABSOLUTE) {
        to = b.parts.constants.uniform(to_offset as u64 & 0xffff_ffff, false);
        (to_offset, to_aux) = (0, Access::NARROW);
    }
    if from_aux.contains(Access::ABSOLUTE) {
        from = b.parts.constants.uniform(from_offset as u64, true);
        from_offset = 0;
    } else if from_aux.contains(Access::NARROW) {
        return Err("expected an address of 64 bits".to_owned());
    }
    let size = match *f.operand(2)? {
        Operand::Int(16) => 16,
        Operand::Int(size @ (4 | 8)) if !whole => size,
        _ => return Err("expected a size of 16, or of 4 or 8 with `.ca`".to_owned()),
    };
    // The next operand is the number of bytes to read, or a predicate that skips the read. A cache policy comes last.
    let bytes = match f.ins.operands.get(3).filter(|_| f.count() > 3 + usize::from(hinted)) {
        None => Opnd::None,
        Some(fewer) if b.register_class(fewer) == Some(Class::Pred) => {
            let (skips, all) = (b.parts.constants.uniform(0, false), b.parts.constants.uniform(size, false));
            let bytes = Opnd::Reg(b.fresh(Class::Narrow));
            let p = b.src(fewer, ScalarType::Pred)?;
            let run = selector(b, false);
            b.emit(run, [bytes, skips, all, p], 1, 0, 0);
            bytes
        }
        Some(fewer) => b.src(fewer, U32)?,
    };
    let imm = (to_offset & 0xffff_ffff) | from_offset << 32;
    b.emit(copy::copy_async, [to, from, bytes], 0, imm, (size as u32) << 16 | (to_aux & Access::NARROW).bits());
    Ok(())
}

/// `cp.async.mbarrier.arrive`. Copies are complete by the time it executes, so it is an ordinary arrival. Without
/// `.noinc` it would increment the pending count and then arrive, with no net effect.
fn arrive_behind_copies<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if !f.flag("arrive") {
        return Err("expected `.arrive`".to_owned());
    }
    let counted = f.flag("noinc");
    let space = space(f);
    f.ty()?;
    f.done()?;
    if !counted {
        b.emit::<0>(system::wait_for_copies, [], 0, -1, 0);
        return Ok(());
    }
    let (row, imm, aux) = address(b, f.operand(0)?, space)?;
    let arrives = Opnd::Fixed(Slot(mbarrier::ARRIVE_BEHIND_COPIES));
    let none = Opnd::None;
    b.emit(
        mbarrier::barrier_object,
        [none, row, none, none, none, arrives],
        0,
        imm,
        (aux | Access::STRONG | Access::RELEASE).with_elements(1).bits(),
    );
    Ok(())
}

/// Lowers `cp.async.bulk` with its groups.
fn bulk<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if f.flag("commit_group") {
        b.emit::<0>(bulks::commit, [], 0, 0, 0);
        return f.done();
    }
    if f.flag("wait_group") {
        let Operand::Int(groups) = *f.operand(0)? else { return Err("expected a number of groups".to_owned()) };
        f.flag("read");
        b.emit::<0>(bulks::wait, [], 0, groups as i64, 0);
        return f.done();
    }
    f.flag("L2::cache_hint");
    if f.flag("prefetch") {
        f.ignore(&["L2", "global"]);
        f.done()?;
        let (from, size) = (bulk_address(b, f.operand(0)?, (StateSpace::GLOBAL, 1))?, b.src(f.operand(1)?, U32)?);
        let flags = Bulk::PREFETCH | Bulk::FROM_GLOBAL | from.2;
        b.emit(bulks::bulk_copy, [from.0, from.0, Opnd::None, size], 0, from.1, flags.bits());
        return Ok(());
    }
    let way = way(f)?;
    let multicast = f.flag("multicast::cluster");
    f.done()?;
    if multicast && way != Way::In {
        return Err("`.multicast::cluster` copies only from global to shared memory".to_owned());
    }
    let blocks = if multicast { Some(b.src(f.operand(4)?, U16)?) } else { None };
    bulk_transfer(b, f, way, (bulks::bulk_copy, blocks))?;
    Ok(())
}

/// Source and destination of a bulk copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From global to shared memory; an mbarrier object counts its bytes.
    In,
    /// Within the shared memory of a cluster; an mbarrier object counts its bytes.
    Across,
    /// From shared to global memory, in a bulk group.
    Out,
}

/// Consumes the source and destination of a bulk copy.
fn way(f: &mut Form<'_, '_>) -> Result<Way, String> {
    let (grouped, counted) = (f.flag("bulk_group"), f.flag("mbarrier::complete_tx::bytes"));
    let global = f.flag("global");
    f.ignore(&["shared::cta", "shared::cluster"]);
    match (grouped, counted, global) {
        (true, false, true) => Ok(Way::Out),
        (false, true, true) => Ok(Way::In),
        (false, true, false) => Ok(Way::Across),
        _ => {
            Err("a bulk copy writes global memory with `.bulk_group`, or shared memory with an mbarrier object"
                .to_owned())
        }
    }
}

/// Emits a bulk copy or reduction, performed by `run`. `blocks` is the mask of a multicast's destination blocks.
fn bulk_transfer<'a, 'b>(
    b: &'b mut Builder<'a, '_>,
    f: &Form<'a, '_>,
    way: Way,
    (run, blocks): (Handler, Option<Opnd>),
) -> Result<&'b mut Inst, String> {
    let (shared, global) = (StateSpace::SHARED, StateSpace::GLOBAL);
    let (to_space, from_space, led) = match way {
        Way::In => (shared, global, Bulk::FROM_GLOBAL),
        Way::Across => (shared, shared, Bulk::empty()),
        Way::Out => (global, shared, Bulk::TO_GLOBAL),
    };
    let to = bulk_address(b, f.operand(0)?, (to_space, 0))?;
    let from = bulk_address(b, f.operand(1)?, (from_space, 1))?;
    let size = b.src(f.operand(2)?, U32)?;
    let object =
        if way == Way::Out { (Opnd::None, 0, Bulk::empty()) } else { bulk_address(b, f.operand(3)?, (shared, 2))? };
    let mut flags = led | to.2 | from.2 | object.2;
    flags.set(Bulk::MULTICAST, blocks.is_some());
    let imm = to.1 | from.1 | object.1;
    let blocks = blocks.unwrap_or(Opnd::None);
    Ok(b.emit(run, [to.0, from.0, object.0, size, blocks], 0, imm, flags.bits()))
}

/// Lowers `cp.reduce.async.bulk`.
fn bulk_reduction<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let way = way(f)?;
    if f.flag("L2::cache_hint") && way != Way::Out {
        return Err("`.L2::cache_hint` is only for copies to global memory".to_owned());
    }
    let operation = operation(f)?;
    let keeps = f.flag("noftz");
    let ty = f.ty()?;
    f.done()?;
    let out = way == Way::Out;
    let known = match (operation, ty) {
        ("add", F16 | Bf16) => out && keeps,
        _ if keeps => false,
        ("add", U32 | S32 | U64) | ("min" | "max", U32 | S32) | ("inc" | "dec", U32) | ("and" | "or" | "xor", B32) => {
            way != Way::In
        }
        ("add", F32 | F64) | ("min" | "max", U64 | S64 | F16 | Bf16) | ("and" | "or" | "xor", B64) => out,
        _ => false,
    };
    if !known {
        return Err(format!("a reduction by `.{operation}` of `{ty:?}` between these state spaces is not valid PTX"));
    }
    let (handlers, commutes) = cell(operation, ty, ReductionUnit::Bulk)?;
    let inst = bulk_transfer(b, f, way, (handlers.bulk, None))?;
    if out {
        inst.order = if commutes { Order::Commuting(operation, ty) } else { Order::Always };
    }
    Ok(())
}

/// Lowers `mbarrier`.
pub fn barrier_object<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let relaxed = f.flag("relaxed");
    f.ignore(&["acquire", "release"]);
    let expects = f.flag("expect_tx");
    let operation = f
        .one_of(&["init", "inval", "arrive", "arrive_drop", "test_wait", "try_wait", "pending_count", "complete_tx"])
        .or(expects.then_some("expect_tx"))
        .ok_or("expected an operation")?;
    let (parity, no_complete) = (f.flag("parity"), f.flag("noComplete"));
    let space = space(f);
    f.ignore(&SCOPES);
    f.ty()?;
    f.done()?;
    if operation == "pending_count" {
        return apply(b, f, [U32, B64], unary(b.isa, |x: u64| x as u32 & 0xf_ffff));
    }
    if no_complete && f.count() < 3 {
        return Err("`.noComplete` needs a count of arrivals".to_owned());
    }
    if expects && !matches!(operation, "expect_tx" | "arrive" | "arrive_drop") {
        return Err(format!("`.{operation}` does not take `.expect_tx`"));
    }
    // Position of the address operand. The operand after it is a count of arrivals or bytes, a state, or a parity.
    let (what, at, arrivals, bytes) = match operation {
        "init" => (mbarrier::INIT, 0, true, false),
        "inval" => (mbarrier::INVALIDATE, 0, false, false),
        "expect_tx" => (mbarrier::EXPECT, 0, false, true),
        "complete_tx" => (mbarrier::COMPLETE, 0, false, true),
        "arrive" => (mbarrier::ARRIVE, 1, !expects, expects),
        "arrive_drop" => (mbarrier::ARRIVE_DROP, 1, !expects, expects),
        _ => (if parity { mbarrier::TEST_PARITY } else { mbarrier::TEST }, 1, false, false),
    };
    // A remote arrival may omit the state, or have the sink `_` in its place.
    let stateless = at == 1 && matches!(f.operand(0)?, Operand::Address { .. });
    let at = if stateless { 0 } else { at };
    let tests = matches!(what, mbarrier::TEST | mbarrier::TEST_PARITY);
    let d = match (at, tests) {
        (0, _) => Opnd::None,
        (_, true) => b.dst(f.operand(0)?, ScalarType::Pred)?,
        _ => b.dst(f.operand(0)?, B64)?,
    };
    let (row, imm, aux) = address(b, f.operand(at)?, space)?;
    let second = match f.ins.operands.get(at + 1) {
        Some(state) if tests => b.src(state, if parity { U32 } else { B64 })?,
        Some(count) if arrivals || bytes => b.src(count, U32)?,
        None if bytes || tests || what == mbarrier::INIT => return Err(format!("operand {} is missing", at + 2)),
        _ => Opnd::None,
    };
    let (count, bytes) = if bytes { (Opnd::None, second) } else { (second, Opnd::None) };
    let raw = Opnd::Fixed(Slot(what));
    let releases = if relaxed { Access::empty() } else { Access::RELEASE };
    let aux = (aux | Access::STRONG | releases).with_elements(1);
    b.emit(mbarrier::barrier_object, [d, row, count, bytes, Opnd::None, raw], u8::from(at == 1), imm, aux.bits());
    Ok(())
}
