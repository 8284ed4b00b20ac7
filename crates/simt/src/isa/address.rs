//! Lowers the state spaces and addresses of memory instructions.

use crate::exec::bulk as bulks;
use crate::exec::vector::binary;
use crate::isa::decode::Form;
use crate::isa::forms::SPACES;
use crate::mir::builder::{Builder, Symbol, class_of};
use crate::mir::{Class, Opnd};
use crate::program::aux::{Access, Bulk, StateSpace};
use ptx_parser::Operand;

/// Consumes the state space modifiers.
pub fn space(f: &mut Form<'_, '_>) -> Access {
    let space = match f.one_of(&SPACES) {
        Some("shared" | "shared::cta" | "shared::cluster") => StateSpace::SHARED,
        Some("local") => StateSpace::LOCAL,
        Some("param" | "param::entry" | "param::func") => StateSpace::PARAM,
        Some("const") => return Access::to(StateSpace::GLOBAL) | Access::CONST,
        Some(_) => StateSpace::GLOBAL,
        None => StateSpace::GENERIC,
    };
    Access::to(space)
}

/// Lowers an address: its row, its offset, and the bits of `aux` about both.
pub fn address<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    space: Access,
) -> Result<(Opnd, i64, Access), String> {
    let Operand::Address { base, offset } = *operand else {
        return Err(format!("expected an address, found {operand:?}"));
    };
    let Some(name) = base else { return Ok((Opnd::None, offset, Access::ABSOLUTE | space)) };
    Ok(match b.lookup(name)? {
        Symbol::Register(register, ty) => match class_of(ty)? {
            Class::Wide => (Opnd::Reg(register), offset, space),
            Class::Narrow => (Opnd::Reg(register), offset, space | Access::NARROW),
            Class::Pred | Class::Quad => return Err(format!("register `{name}` cannot hold an address")),
        },
        Symbol::Local(at, _) => {
            (Opnd::None, i64::from(at) + offset, Access::ABSOLUTE | Access::FRAME | Access::to(StateSpace::LOCAL))
        }
        Symbol::Param(at) => (Opnd::None, i64::from(at) + offset, Access::ABSOLUTE | Access::to(StateSpace::PARAM)),
        Symbol::Shared(at) => (Opnd::None, i64::from(at) + offset, Access::ABSOLUTE | Access::to(StateSpace::SHARED)),
        Symbol::Global(at) => {
            (Opnd::None, (at as i64).wrapping_add(offset), Access::ABSOLUTE | Access::to(StateSpace::GLOBAL))
        }
        _ => return Err(format!("`{name}` is not an address")),
    })
}

/// Lowers one address of a bulk copy: its row, and its bits of `imm` and `aux`.
pub fn bulk_address<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    (space, which): (StateSpace, u32),
) -> Result<(Opnd, i64, Bulk), String> {
    let (row, offset, aux) = address(b, operand, Access::to(space))?;
    if aux.space() != space {
        return Err("expected an address of another space".to_owned());
    }
    if aux.contains(Access::ABSOLUTE) {
        return Ok((b.parts.constants.uniform(offset as u64, true), 0, Bulk::empty()));
    }
    let narrow = aux.contains(Access::NARROW);
    let flags = [Bulk::NARROW_TO, Bulk::NARROW_FROM, Bulk::NARROW_OBJECT];
    let flag = if narrow { flags[which as usize] } else { Bulk::empty() };
    let reach = 1 << (bulks::OFFSET_BITS - 1);
    if (-reach..reach).contains(&offset) {
        let field = (offset & ((1 << bulks::OFFSET_BITS) - 1)) << (which * bulks::OFFSET_BITS);
        return Ok((row, field, flag));
    }
    // An offset that does not fit into `imm` is added in advance.
    let sum = Opnd::Reg(b.fresh(if narrow { Class::Narrow } else { Class::Wide }));
    let by = b.parts.constants.uniform(offset as u64, !narrow);
    let run = if narrow {
        binary(b.isa, |x: u32, y: u32| x.wrapping_add(y))
    } else {
        binary(b.isa, |x: u64, y: u64| x.wrapping_add(y))
    };
    b.emit(run, [sum, row, by], 1, 0, 0);
    Ok((sum, 0, flag))
}
