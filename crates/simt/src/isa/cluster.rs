//! Lowers operations on addresses in the shared memory of a cluster, and the cluster barrier.

use crate::exec::cluster;
use crate::isa::decode::{Done, Form};
use crate::mir::Opnd;
use crate::mir::builder::{Builder, Symbol};
use crate::program::aux::ClusterAddress;
use ptx_parser::{Operand, ScalarType};

/// Lowers the address operand. Returns its type, row and offset, and the `aux` for its kind.
fn address<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Result<(ScalarType, Opnd, i64, u32), String> {
    let offsets = f.flag("shared::cluster");
    let ty = f.ty()?;
    f.done()?;
    let mut kind = ClusterAddress::empty();
    kind.set(ClusterAddress::NARROW, ty.size() == 4);
    kind.set(ClusterAddress::OFFSET, offsets);
    let aux = kind.bits();
    if !offsets && ty.size() == 4 {
        return Err("a generic address has 64 bits".to_owned());
    }
    let (name, offset) = match *f.operand(1)? {
        Operand::Name(name) => (name, 0),
        Operand::Offset(name, offset) => (name, offset),
        ref other => return Ok((ty, b.src(other, ty)?, 0, aux)),
    };
    Ok(match b.lookup(name)? {
        Symbol::Shared(at) if offsets => (ty, b.parts.constants.uniform(u64::from(at), ty.size() == 8), offset, aux),
        Symbol::Register(..) => (ty, b.src(&Operand::Name(name), ty)?, offset, aux),
        _ => return Err(format!("`{name}` is neither a register nor a shared variable")),
    })
}

/// Lowers `mapa`.
pub fn map<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (ty, from, offset, aux) = address(b, f)?;
    let d = b.dst(f.operand(0)?, ty)?;
    let rank = b.src(f.operand(2)?, ScalarType::U32)?;
    b.emit(cluster::map, [d, from, rank], 1, offset, aux);
    Ok(())
}

/// Lowers `getctarank`.
pub fn rank<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (_, from, offset, aux) = address(b, f)?;
    let d = b.dst(f.operand(0)?, ScalarType::U32)?;
    b.emit(cluster::rank, [d, from], 1, offset, aux);
    Ok(())
}

/// Lowers `barrier.cluster`.
pub fn barrier<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["aligned", "acquire", "release", "relaxed"]);
    if f.flag("arrive") {
        b.emit::<0>(cluster::arrive, [], 0, 0, 0);
    } else if f.flag("wait") {
        b.emit::<0>(cluster::wait, [], 0, 0, 0);
    } else {
        return Err("expected `.arrive` or `.wait`".to_owned());
    }
    f.done()
}
