//! Lowers texture and surface accesses through objects, whose handles are in 64-bit registers.

use crate::exec::texture;
use crate::image::Geometry;
use crate::isa::decode::{Done, Form, elements};
use crate::isa::forms::CACHE;
use crate::isa::matrix::pack;
use crate::mir::builder::Builder;
use crate::mir::{Class, Opnd};
use crate::program::aux::Texture;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B32, B64, F32, S32, U32};

/// Consumes the geometry. Also returns how many coordinates the instruction has.
fn geometry(f: &mut Form<'_, '_>) -> Result<(Geometry, usize), String> {
    Ok(match f.one_of(&["1d", "2d", "3d", "a1d", "a2d", "cube"]) {
        Some("1d") => (Geometry::OneD, 1),
        Some("2d") => (Geometry::TwoD, 2),
        Some("3d") => (Geometry::ThreeD, 4),
        Some("a1d") => (Geometry::OneDLayered, 2),
        Some("a2d") => (Geometry::TwoDLayered, 4),
        Some(_) => (Geometry::Cube, 4),
        None => return Err("expected `.1d`, `.2d`, `.3d`, `.a1d`, `.a2d` or `.cube`".to_owned()),
    })
}

/// Lowers an object's handle.
fn object<'a>(b: &mut Builder<'a, '_>, operand: &Operand<'a>) -> Result<Opnd, String> {
    if b.register_class(operand) != Some(Class::Wide) {
        return Err("expected a texture or surface object in a register of 64 bits".to_owned());
    }
    b.src(operand, B64)
}

/// Lowers `[object, {coordinates}]` to the object and a 128-bit row of coordinates.
fn place<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    count: usize,
    ty: ScalarType,
) -> Result<(Opnd, Opnd), String> {
    let Operand::Place(parts) = operand else {
        return Err(format!("expected an object with coordinates in brackets, found {operand:?}"));
    };
    let [name, coordinates] = &parts[..] else { return Err("expected an object and coordinates".to_owned()) };
    let object = object(b, name)?;
    // A layer next to float coordinates is an integer, but both have 32 bits.
    Ok((object, pack(b, elements(coordinates, count, "coordinates")?, ty)?))
}

/// Lowers `tex` and `tld4`. Levels of detail and derivatives have no effect, since an object has only one level.
pub fn fetch<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let gathers = f.ins.opcode.starts_with("tld4");
    f.ignore(&["base", "level", "grad", "v4"]);
    let channel = f.one_of(&["r", "g", "b", "a"]).and_then(|name| "rgba".find(name)).unwrap_or(0);
    let (geometry, count) = geometry(f)?;
    let types = f.types();
    f.done()?;
    let &[to, from] = &types[..] else {
        return Err("expected the types of the result and of coordinates".to_owned());
    };
    let mut what = Texture::to(geometry);
    what.set(Texture::FLOAT_RESULT, to == F32);
    what.set(Texture::FLOAT_COORDINATES, from == F32);
    what.set(Texture::GATHERS, gathers);
    let (object, place) = place(b, f.operand(1)?, count, from)?;
    let mut o = [Opnd::None, Opnd::None, Opnd::None, Opnd::None, object, place];
    for (slot, target) in o.iter_mut().zip(elements(f.operand(0)?, 4, "destinations")?) {
        *slot = b.dst(target, to)?;
    }
    b.emit(texture::fetch, o, 0b1111, channel as i64, what.bits());
    Ok(())
}

/// Decodes what surface accesses have in common: flags, number of coordinates, `imm` (element size, with the element
/// count in the bits above) and element type.
fn access(f: &mut Form<'_, '_>) -> Result<(Texture, usize, i64, ScalarType), String> {
    f.flag("b");
    let formatted = f.flag("p");
    let (geometry, count) = geometry(f)?;
    f.ignore(&CACHE);
    let mut what = Texture::to(geometry) | Texture::SURFACE;
    what.set(Texture::FORMATTED, formatted);
    match f.one_of(&["trap", "clamp", "zero"]) {
        Some("clamp") => what |= Texture::CLAMPS,
        Some("zero") => what |= Texture::ZEROES,
        _ => {}
    }
    let vector = match f.one_of(&["v2", "v4"]) {
        Some("v2") => 2,
        Some(_) => 4,
        None => 1,
    };
    let ty = f.ty()?;
    f.done()?;
    if ty.size() * vector > 16 {
        return Err("an access may have at most 16 bytes".to_owned());
    }
    Ok((what, count, i64::from(ty.size() | vector << 8), ty))
}

/// Lowers `suld`.
pub fn load<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (what, count, imm, ty) = access(f)?;
    let (object, place) = place(b, f.operand(1)?, count, S32)?;
    let mut o = [Opnd::None, Opnd::None, Opnd::None, Opnd::None, object, place];
    for (slot, target) in o.iter_mut().zip(elements(f.operand(0)?, (imm >> 8) as usize, "destinations")?) {
        *slot = b.dst(target, ty)?;
    }
    b.emit(texture::load, o, 0b1111, imm, what.bits());
    Ok(())
}

/// Lowers `sust`.
pub fn store<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (what, count, imm, ty) = access(f)?;
    let (object, place) = place(b, f.operand(0)?, count, S32)?;
    let mut o = [object, Opnd::None, Opnd::None, Opnd::None, Opnd::None, place];
    for (slot, source) in o[1..].iter_mut().zip(elements(f.operand(1)?, (imm >> 8) as usize, "sources")?) {
        *slot = b.src(source, ty)?;
    }
    b.emit(texture::store, o, 0, imm, what.bits());
    Ok(())
}

/// Lowers `txq` and `suq`.
pub fn query<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let asked = f.one_of(&["width", "height", "depth", "array_size", "normalized_coords"]);
    let axis = match asked.ok_or("expected `.width`, `.height` or `.depth`; other properties are not simulated")? {
        "width" => 0,
        "height" => 1,
        "normalized_coords" => 3,
        _ => 2,
    };
    let ty = f.ty()?;
    f.done()?;
    let Operand::Address { base: Some(name), offset: 0 } = *f.operand(1)? else {
        return Err("expected an object in brackets".to_owned());
    };
    let object = object(b, &Operand::Name(name))?;
    let d = b.dst(f.operand(0)?, if ty == B32 { U32 } else { ty })?;
    b.emit(texture::query, [d, Opnd::None, Opnd::None, Opnd::None, object], 1, axis, Texture::QUERY.bits());
    Ok(())
}
