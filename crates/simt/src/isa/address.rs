//! State spaces and addresses of memory instructions.

use crate::exec::bulk as bulks;
use crate::exec::vector::binary;
use crate::isa::decode::Form;
use crate::isa::forms::SPACES;
use crate::mir::builder::{Builder, Symbol, class_of};
use crate::mir::{Class, Opnd};
use crate::program::aux::form;
use ptx_parser::Operand;

/// Takes the state space.
pub fn space(f: &mut Form<'_, '_>) -> u32 {
    match f.one_of(&SPACES) {
        Some("shared" | "shared::cta" | "shared::cluster") => form::SHARED,
        Some("local") => form::LOCAL,
        Some("param" | "param::entry" | "param::func") => form::PARAM,
        Some("const") => form::GLOBAL | form::CONST,
        Some(_) => form::GLOBAL,
        None => form::GENERIC,
    }
}

/// An address: its row, its offset, and what `aux` says about both.
pub fn address<'a>(b: &mut Builder<'a, '_>, operand: &Operand<'a>, space: u32) -> Result<(Opnd, i64, u32), String> {
    let Operand::Address { base, offset } = *operand else {
        return Err(format!("an address is expected, not {operand:?}"));
    };
    let Some(name) = base else { return Ok((Opnd::None, offset, form::ABSOLUTE | space)) };
    Ok(match b.lookup(name)? {
        Symbol::Register(register, ty) => match class_of(ty)? {
            Class::Wide => (Opnd::Reg(register), offset, space),
            Class::Narrow => (Opnd::Reg(register), offset, space | form::NARROW),
            Class::Pred | Class::Quad => return Err(format!("register `{name}` cannot hold an address")),
        },
        Symbol::Local(at, _) => (Opnd::None, i64::from(at) + offset, form::ABSOLUTE | form::FRAME | form::LOCAL),
        Symbol::Param(at) => (Opnd::None, i64::from(at) + offset, form::ABSOLUTE | form::PARAM),
        Symbol::Shared(at) => (Opnd::None, i64::from(at) + offset, form::ABSOLUTE | form::SHARED),
        Symbol::Global(at) => (Opnd::None, (at as i64).wrapping_add(offset), form::ABSOLUTE | form::GLOBAL),
        _ => return Err(format!("`{name}` is not an address")),
    })
}

/// One address of a bulk copy: its row, and its bits of `imm` and `aux`.
pub fn bulk_address<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    (space, which): (u32, u32),
) -> Result<(Opnd, i64, u32), String> {
    let (row, offset, aux) = address(b, operand, space)?;
    if aux & form::SPACE != space {
        return Err("an address of another space is expected".to_owned());
    }
    if aux & form::ABSOLUTE != 0 {
        return Ok((b.parts.constants.uniform(offset as u64, true), 0, 0));
    }
    let narrow = aux & form::NARROW != 0;
    let flag = if narrow { [bulks::NARROW_TO, bulks::NARROW_FROM, bulks::NARROW_OBJECT][which as usize] } else { 0 };
    let reach = 1 << (bulks::OFFSET_BITS - 1);
    if (-reach..reach).contains(&offset) {
        let field = (offset & ((1 << bulks::OFFSET_BITS) - 1)) << (which * bulks::OFFSET_BITS);
        return Ok((row, field, flag));
    }
    // An offset that does not fit in `imm` is added beforehand.
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
