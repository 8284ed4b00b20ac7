//! Atomic read-modify-write operations.

use crate::exec::context::Handler;
use crate::isa::address::{address, space};
use crate::isa::decode::{Done, Form, scope};
use crate::isa::reductions::{Handlers, ReductionUnit, cell, operation};
use crate::isa::{moves, sending};
use crate::mir::builder::{Builder, class_of};
use crate::mir::{Opnd, Order};
use crate::program::aux::{Access, StateSpace};
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B128, Bf16, Bf16x2, F16, F16x2, F32};

/// Lowers `atom` and `red`.
pub fn atomic<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let returns = f.ins.opcode.starts_with("atom");
    if !returns && f.flag("async") {
        return sending::reduce(b, f);
    }
    let strong = f.one_of(&["relaxed", "acquire", "release", "acq_rel"]);
    let scope = scope(f);
    f.ignore(&["noftz", "L2::cache_hint"]);
    let mut order = scope;
    order.set(Access::RELEASE, matches!(strong, Some("release" | "acq_rel")));
    order.set(Access::ACQUIRE, matches!(strong, Some("acquire" | "acq_rel")));
    let space = space(f);
    let operation = operation(f)?;
    let vector = f.one_of(&["v2", "v4", "v8"]);
    let ty = f.ty()?;
    f.done()?;
    if vector.is_none() && operation != "add" && matches!(ty, F16 | Bf16 | F16x2 | Bf16x2) {
        return Err(format!("atomic `.{operation}` on `{ty:?}` is not valid PTX"));
    }
    let unit = if space.space() == StateSpace::SHARED { ReductionUnit::Shared } else { ReductionUnit::Global };
    let (Handlers { atomic: run, .. }, commutes) = cell(operation, ty, unit)?;
    let first = usize::from(returns);
    let (row, imm, aux) = address(b, f.operand(first)?, space)?;
    if let Some(vector) = vector {
        return atomic_vector(b, f, (vector, ty, returns), (run, operation), (row, imm, aux | order));
    }
    if !returns && matches!(operation, "exch" | "cas") {
        return Err(format!("`red` has no `.{operation}`, which returns the old value"));
    }
    let d = match f.operand(0)? {
        Operand::Sink => Opnd::None,
        d if returns && ty == B128 => b.quad(d)?,
        d if returns => b.dst(d, ty)?,
        _ => Opnd::None,
    };
    let mut source = |at: usize| match f.operand(first + at)? {
        x if ty == B128 => b.quad(x),
        x => b.src(x, ty),
    };
    let x = source(1)?;
    let y = if operation == "cas" { source(2)? } else { Opnd::None };
    let local_order = aux.space() == StateSpace::SHARED;
    let polls = if matches!(operation, "cas" | "exch") || strong.is_some() { Access::POLL } else { Access::empty() };
    let replaces = if operation == "exch" { Access::REPLACES } else { Access::empty() };
    let aux = (aux | Access::STRONG | polls | order | replaces).with_elements(1);
    let inst = b.emit(run, [d, row, x, y], u8::from(returns), imm, aux.bits());
    inst.address = 1;
    inst.polls = returns && !local_order;
    inst.order = match commutes {
        _ if local_order => Order::Never,
        true => Order::Commuting(operation, ty),
        false => Order::Always,
    };
    Ok(())
}

/// Lowers atomics on the elements of a vector in global memory, one element after another. The vector as a whole is not
/// updated atomically.
fn atomic_vector<'a>(
    b: &mut Builder<'a, '_>,
    f: &mut Form<'a, '_>,
    (vector, ty, returns): (&str, ScalarType, bool),
    (run, operation): (Handler, &str),
    (row, imm, aux): (Opnd, i64, Access),
) -> Done {
    let count = match (vector, ty) {
        ("v2", F32 | F16 | Bf16 | F16x2 | Bf16x2) => 2,
        ("v4", F32 | F16 | Bf16 | F16x2 | Bf16x2) => 4,
        ("v8", F16 | Bf16) => 8,
        _ => return Err(format!("vectors `.{vector}` of `{ty:?}` are not valid PTX")),
    };
    if !matches!((operation, ty), ("add", _) | ("min" | "max", F16 | Bf16 | F16x2 | Bf16x2)) {
        return Err(format!("atomic `.{operation}` on vectors of `{ty:?}` is not valid PTX"));
    }
    if !matches!(aux.space(), StateSpace::GLOBAL | StateSpace::GENERIC) {
        return Err("vector atomics require global memory".to_owned());
    }
    let parts = |at: usize| match f.operand(at)? {
        Operand::Vector(parts) if parts.len() == count => Ok(parts),
        other => Err(format!("expected {count} elements, found {other:?}")),
    };
    let sources = parts(usize::from(returns) + 1)?;
    let mut olds = Vec::new();
    for (k, source) in sources.iter().enumerate() {
        let x = b.src(source, ty)?;
        // The destination of one element may be the source of a later one, so all destinations are written at the end.
        let old = if returns { Opnd::Reg(b.fresh(class_of(ty)?)) } else { Opnd::None };
        olds.push(old);
        // The first element has the vector's address and stands for the whole vector in the counters.
        let width = if k == 0 { count as u32 } else { 0 };
        let at = imm + k as i64 * i64::from(ty.size());
        let aux = (aux | Access::STRONG).with_elements(width);
        let inst = b.emit(run, [old, row, x], u8::from(returns), at, aux.bits());
        (inst.order, inst.address) = (Order::Always, 1);
        (inst.polls, inst.counts) = (returns, u32::from(k == 0));
    }
    if returns {
        for (target, old) in parts(0)?.iter().zip(olds) {
            let d = b.dst(target, ty)?;
            if d == Opnd::None {
                continue;
            }
            moves::copy(b, d, old, false);
            b.uncount_last();
        }
    }
    Ok(())
}
