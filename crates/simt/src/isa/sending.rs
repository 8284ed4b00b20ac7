//! Lowers `st.async` and `red.async`, which store to or reduce into the shared memory of a cluster and complete on an
//! mbarrier object.

use crate::exec::sending;
use crate::isa::address::bulk_address;
use crate::isa::decode::{Done, Form, elements};
use crate::isa::reductions::{ReductionUnit, cell, operation};
use crate::mir::Opnd;
use crate::mir::builder::Builder;
use crate::program::aux::{Bulk, StateSpace};
use ptx_parser::ScalarType;

use ScalarType::{B32, B64, F32, F64, S32, S64, U32, U64};

/// Consumes the state space and the completion mechanism. Returns the space and its bits of `aux`.
fn destination(f: &mut Form<'_, '_>) -> Result<(StateSpace, Bulk), String> {
    if !f.flag("mbarrier::complete_tx::bytes") {
        return Err("expected `.mbarrier::complete_tx::bytes`".to_owned());
    }
    Ok(if f.flag("shared::cluster") {
        (StateSpace::SHARED, Bulk::empty())
    } else {
        (StateSpace::GENERIC, Bulk::GENERIC)
    })
}

/// Lowers `st.async`.
pub fn store<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.flag("weak");
    let (space, mut flags) = destination(f)?;
    let vector = f.one_of(&["v2", "v4"]);
    let ty = f.ty()?;
    f.done()?;
    let count = match (vector, ty) {
        (None, B32 | U32 | S32 | F32 | B64 | U64 | S64 | F64) => 1,
        (Some("v2"), B32 | U32 | S32 | F32 | B64 | U64 | S64 | F64) => 2,
        (Some("v4"), B32 | U32 | S32 | F32) => 4,
        (vector, ty) => {
            let vector = vector.map_or_else(String::new, |v| format!(" in `.{v}`"));
            return Err(format!("elements of `{ty:?}`{vector} are not valid PTX"));
        }
    };
    let to = bulk_address(b, f.operand(0)?, (space, 0))?;
    let object = bulk_address(b, f.operand(2)?, (space, 2))?;
    let sources = elements(f.operand(1)?, count, "sources")?;
    let mut o = [to.0, Opnd::None, object.0, Opnd::None, Opnd::None, Opnd::None];
    for (slot, source) in [1, 3, 4, 5].into_iter().zip(sources) {
        o[slot] = b.src(source, ty)?;
    }
    flags |= to.2 | object.2;
    flags.set(Bulk::DOUBLE, ty.size() == 8);
    b.emit(sending::store_async, o, 0, to.1 | object.1, flags.bits());
    Ok(())
}

/// Lowers `red.async`.
pub fn reduce<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    if !f.flag("relaxed") || !f.flag("cluster") {
        return Err("expected `.relaxed.cluster`".to_owned());
    }
    let (space, mut flags) = destination(f)?;
    let operation = operation(f)?;
    let ty = f.ty()?;
    f.done()?;
    let known = matches!(
        (operation, ty),
        ("add", U32 | S32 | U64 | S64)
            | ("min" | "max", U32 | S32)
            | ("inc" | "dec", U32)
            | ("and" | "or" | "xor", B32)
    );
    if !known {
        return Err(format!("`.{operation}` on `{ty:?}` is not valid PTX"));
    }
    let to = bulk_address(b, f.operand(0)?, (space, 0))?;
    let value = b.src(f.operand(1)?, ty)?;
    let object = bulk_address(b, f.operand(2)?, (space, 2))?;
    let (handlers, _) = cell(operation, ty, ReductionUnit::Shared)?;
    flags |= to.2 | object.2;
    b.emit(handlers.sent, [to.0, value, object.0], 0, to.1 | object.1, flags.bits());
    Ok(())
}
