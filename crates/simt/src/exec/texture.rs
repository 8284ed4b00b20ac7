//! Executes accesses to textures and surfaces: `tex`, `tld4`, `suld`, `sust`, `txq` and `suq`.
//!
//! Accesses are checked texel by texel, like accesses to global memory. They count as instructions but not as memory
//! requests: the counters of global loads and stores exclude the bytes of textures and surfaces.

use crate::error::TrapKind;
use crate::exec::access::{misaligned, region, survey};
use crate::exec::context::Context;
use crate::exec::{sanitizer, traffic};
use crate::image::{Coordinates, Geometry, Image};
use crate::program::aux::{Access, StateSpace, Texture};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row, each};

/// The texels that an instruction accesses, one per lane.
type Texels = [[u8; 16]; LANES];

/// Return value of a handler that has ended the launch.
type Stopped = *const Ins;

/// Calls `run` once for each object that the active lanes name in `slot`, with only that object's lanes active.
///
/// # Safety
///
/// The slot is a 64-bit row.
unsafe fn each_image(
    cx: &mut Context<'_>,
    i: &Ins,
    slot: Slot,
    run: impl Fn(&mut Context<'_>, &Ins, &Image) -> Result<(), Stopped>,
) -> *const Ins {
    // SAFETY: the slot is a 64-bit row.
    let handles: Row<u64> = unsafe { cx.row(slot) };
    let (whole, images) = (cx.mask, cx.launch.images);
    let access = &Ins { aux: Access::to(StateSpace::GLOBAL).with_elements(1).bits(), ..*i };
    let mut left = whole;
    while left != 0 {
        let handle = handles.0[left.trailing_zeros() as usize];
        let group = (0..LANES).filter(|&k| left >> k & 1 == 1 && handles.0[k] == handle).fold(0, |m, k| m | 1 << k);
        left &= !group;
        let what = Texture::from_bits_retain(i.aux);
        let problem = match images.get(handle) {
            None => Some(format!("{handle:#x} is not a texture or surface object")),
            Some(image) => mismatch(image, what),
        };
        cx.set_mask(group);
        let done = match (images.get(handle), problem) {
            (Some(image), None) => run(cx, access, image),
            (_, problem) => Err(cx.trap(i, TrapKind::Illegal, group, problem.unwrap_or_default())),
        };
        cx.set_mask(whole);
        if let Err(stopped) = done {
            return stopped;
        }
    }
    Context::next(i)
}

/// Returns the reason why an object does not fit an instruction, if any.
fn mismatch(image: &Image, what: Texture) -> Option<String> {
    let wanted = what.geometry();
    let name = image.geometry.name();
    if what.contains(Texture::QUERY) {
        return None;
    }
    if what.contains(Texture::SURFACE) == image.sampler.is_some() {
        let (is, wants) = if image.sampler.is_some() { ("texture", "surface") } else { ("surface", "texture") };
        return Some(format!("the object is a {is}, but the instruction accesses a {wants}"));
    }
    if image.geometry == Geometry::Linear && wanted == Geometry::OneD {
        let fits = !what.contains(Texture::FLOAT_COORDINATES);
        return (!fits).then(|| "a texture of linear memory can be read only with integer coordinates".to_owned());
    }
    if wanted != image.geometry {
        return Some(format!("the object is a `{name}` one, but the instruction accesses a `{}` one", wanted.name()));
    }
    if !what.contains(Texture::SURFACE) && what.contains(Texture::FLOAT_RESULT) != image.gives_floats() {
        let (gives, wants) = if image.gives_floats() { ("floats", "integers") } else { ("integers", "floats") };
        return Some(format!("the texture returns {gives}, but the instruction reads {wants}"));
    }
    None
}

/// Checks the active lanes' reads and copies their texels.
fn read(cx: &mut Context<'_>, i: &Ins, at: &Row<u64>, bytes: u64, into: &mut Texels) -> Result<(), Stopped> {
    let s = survey(cx, at, bytes);
    let r = region(cx, i, at, &s, bytes, false)?;
    if cx.launch.sanitize {
        if traffic::reads_unwritten(cx, at, &s, bytes) {
            return Err(traffic::uninitialised(cx, i, at, bytes));
        }
        sanitizer::load(cx, i, at, &s, &r, bytes).map_or(Ok(()), Err)?;
    }
    each(cx.mask, |k| {
        // SAFETY: the region has these bytes for every active lane; a texel has at most 16.
        unsafe { std::ptr::copy_nonoverlapping(r.at(k, at.0[k]), into[k].as_mut_ptr(), bytes as usize) };
    });
    Ok(())
}

/// Checks the active lanes' writes and performs them.
fn write(cx: &mut Context<'_>, i: &Ins, at: &Row<u64>, bytes: u64, from: &Texels) -> Result<(), Stopped> {
    let s = survey(cx, at, bytes);
    let r = region(cx, i, at, &s, bytes, true)?;
    if cx.launch.sanitize {
        traffic::note_written(cx, at, &s, bytes);
        sanitizer::store_texels(cx, i, at, &s, &r, (bytes, from)).map_or(Ok(()), Err)?;
    }
    each(cx.mask, |k| {
        // SAFETY: the region has these bytes for every active lane; a texel has at most 16.
        unsafe { std::ptr::copy_nonoverlapping(from[k].as_ptr(), r.at(k, at.0[k]), bytes as usize) };
    });
    Ok(())
}

/// Returns the coordinates of all lanes, with the first axis in the lowest bits.
///
/// # Safety
///
/// The slot is a 128-bit row.
unsafe fn coordinates(cx: &Context<'_>, slot: Slot) -> [[u32; 4]; LANES] {
    // SAFETY: the slot is a 128-bit row.
    let packed: Row<u128> = unsafe { cx.row(slot) };
    packed.0.map(|bits| [0, 32, 64, 96].map(|by| (bits >> by) as u32))
}

/// `tex` and `tld4`. Slots 0 to 3: channels; slot 4: object; slot 5: coordinates. The lower half of `imm` is the
/// channel that `tld4` gathers.
pub unsafe fn fetch(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let what = Texture::from_bits_retain(i.aux);
    // SAFETY: slot 5 is a 128-bit row, slot 4 a 64-bit row, and the others are 32-bit rows.
    unsafe {
        let coordinates = coordinates(cx, i.o[5]);
        each_image(cx, i, i.o[4], |cx, i, image| {
            let Some(sampler) = image.sampler else { return Ok(()) };
            let gathers = what.contains(Texture::GATHERS);
            let (group, floats) = (cx.mask, what.contains(Texture::FLOAT_COORDINATES));
            let filters = sampler.linear && floats && !gathers;
            let prints = coordinates.map(|bits| image.footprint(sampler, Coordinates { bits, floats }, gathers));
            let mut results = [[0_u32; 4]; LANES];
            let mut sums = [[0.0_f64; 4]; LANES];
            for n in 0..prints[0].1 {
                let bytes = u64::from(image.texel_bytes());
                let number = |k: usize| prints[k].0[n].0.filter(|_| prints[k].0[n].1 > 0.0 || gathers);
                let lanes = (0..LANES).filter(|&k| group >> k & 1 == 1 && number(k).is_some());
                cx.set_mask(lanes.fold(0, |m, k| m | 1 << k));
                let at = Row(std::array::from_fn(|k| image.address + number(k).unwrap_or(0) * bytes));
                let mut texels = [[0; 16]; LANES];
                if cx.mask != 0 {
                    read(cx, i, &at, bytes, &mut texels)?;
                }
                each(cx.mask, |k| {
                    let texel = &texels[k][..bytes as usize];
                    if gathers {
                        // Counter-clockwise from the lower left; the second axis points down.
                        results[k][[3, 2, 0, 1][n]] = image.channel_of(texel, i.imm as usize);
                        return;
                    }
                    for channel in 0..4 {
                        let bits = image.channel_of(texel, channel);
                        results[k][channel] = bits;
                        if filters {
                            sums[k][channel] += prints[k].0[n].1 * f64::from(f32::from_bits(bits));
                        }
                    }
                });
            }
            cx.set_mask(group);
            if filters {
                results = sums.map(|sum| sum.map(|sum| (sum as f32).to_bits()));
            }
            each(group, |k| {
                for (slot, value) in i.o[..4].iter().zip(results[k]).filter(|(slot, _)| **slot != Slot::NONE) {
                    cx.set_lane(*slot, k, value);
                }
            });
            Ok(())
        })
    }
}

/// Returns the addresses of a surface access, and leaves only the lanes inside the surface active. `Err` if a lane is
/// outside and the instruction does not allow that.
fn on_surface(
    cx: &mut Context<'_>,
    i: &Ins,
    (image, what): (&Image, Texture),
    coordinates: &[[u32; 4]; LANES],
    bytes: u64,
) -> Result<Row<u64>, Stopped> {
    let unit = if what.contains(Texture::FORMATTED) { bytes } else { 1 };
    let row = u64::from(image.size[0]) * u64::from(image.texel_bytes());
    let layers = usize::from(image.geometry.is_layered());
    let mut at = Row([image.address; LANES]);
    let mut outside = 0_u32;
    for k in (0..LANES).filter(|&k| cx.is_active(k)) {
        let mut place = [0_i64; 3];
        for axis in 0..image.geometry.axes() {
            place[axis] = i64::from(coordinates[k][axis + layers].cast_signed());
        }
        if layers == 1 {
            place[2] = i64::from(coordinates[k][0].cast_signed());
        }
        place[0] *= unit as i64;
        let most = [row as i64 - bytes as i64, i64::from(image.size[1]) - 1, i64::from(image.size[2]) - 1];
        let inside = [0, 1, 2].map(|axis| place[axis].clamp(0, most[axis].max(0)));
        outside |= u32::from(inside != place || most[0] < 0) << k;
        at.0[k] += inside[0] as u64 + row * (inside[1] as u64 + inside[2] as u64 * u64::from(image.size[1]));
    }
    if (0..LANES).any(|k| cx.is_active(k) && !at.0[k].is_multiple_of(bytes)) {
        return Err(misaligned(cx, i, &at, bytes));
    }
    if outside != 0 && !what.intersects(Texture::CLAMPS | Texture::ZEROES) {
        let [x, y, z] = image.size;
        let lane = outside.trailing_zeros() as usize;
        let message = format!(
            "out-of-bounds access to a surface of {x} × {y} × {z} texels of {} bytes, at {:?}",
            image.texel_bytes(),
            coordinates[lane][..image.geometry.axes() + layers].iter().map(|c| c.cast_signed()).collect::<Vec<_>>()
        );
        return Err(cx.trap(i, TrapKind::OutOfBounds, outside, message));
    }
    if what.contains(Texture::ZEROES) {
        cx.set_mask(cx.mask & !outside);
    }
    Ok(at)
}

/// `suld`. Slots 0 to 3: elements; slot 4: object; slot 5: coordinates. The low 8 bits of `imm` are the size of an
/// element in bytes, the bits above them the number of elements.
pub unsafe fn load(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let what = Texture::from_bits_retain(i.aux);
    let (element, count) = ((i.imm & 0xff) as usize, (i.imm >> 8) as usize);
    // SAFETY: slot 5 is a 128-bit row, slot 4 a 64-bit row; the other rows have the elements' width.
    unsafe {
        let coordinates = coordinates(cx, i.o[5]);
        each_image(cx, i, i.o[4], |cx, i, image| {
            let (group, bytes) = (cx.mask, (element * count) as u64);
            let at = on_surface(cx, i, (image, what), &coordinates, bytes)?;
            let mut texels = [[0; 16]; LANES];
            if cx.mask != 0 {
                read(cx, i, &at, bytes, &mut texels)?;
            }
            cx.set_mask(group);
            each(group, |k| {
                for (part, &slot) in texels[k].chunks_exact(element).zip(&i.o[..count]) {
                    let value = part.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
                    match (slot, element) {
                        (Slot::NONE, _) => {}
                        (_, 8) => cx.set_lane(slot, k, value),
                        _ => cx.set_lane(slot, k, value as u32),
                    }
                }
            });
            Ok(())
        })
    }
}

/// `sust`. Slot 0: object; slots 1 to 4: elements; slot 5: coordinates; `imm` as for [`load`].
pub unsafe fn store(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let what = Texture::from_bits_retain(i.aux);
    let (element, count) = ((i.imm & 0xff) as usize, (i.imm >> 8) as usize);
    // SAFETY: slot 5 is a 128-bit row, slot 0 a 64-bit row; the other rows have the elements' width.
    unsafe {
        let coordinates = coordinates(cx, i.o[5]);
        let mut values = [[0_u64; 4]; LANES];
        for (v, &slot) in i.o[1..=count].iter().enumerate() {
            let row = if element == 8 { cx.row::<u64>(slot) } else { Row(cx.row::<u32>(slot).0.map(u64::from)) };
            (0..LANES).for_each(|k| values[k][v] = row.0[k]);
        }
        each_image(cx, i, i.o[0], |cx, i, image| {
            let formatted = what.contains(Texture::FORMATTED);
            let bytes = if formatted { image.texel_bytes() as usize } else { element * count };
            let at = on_surface(cx, i, (image, what), &coordinates, bytes as u64)?;
            let texels = values.map(|values| {
                if formatted {
                    return image.texel(values.map(|value| value as u32));
                }
                let mut texel = [0; 16];
                for (to, value) in texel.chunks_exact_mut(element).zip(values) {
                    to.copy_from_slice(&value.to_le_bytes()[..element]);
                }
                texel
            });
            if cx.mask == 0 { Ok(()) } else { write(cx, i, &at, bytes as u64, &texels) }
        })
    }
}

/// `txq` and `suq`. Slot 0: result; slot 4: object. `imm`: the axis whose extent is queried, or 3 to query whether
/// coordinates are normalized.
pub unsafe fn query(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: slot 4 is a 64-bit row, slot 0 a 32-bit row.
    unsafe {
        each_image(cx, i, i.o[4], |cx, i, image| {
            let normalized = || u32::from(image.sampler.is_some_and(|sampler| sampler.normalized));
            let value = image.size.get(i.imm as usize).copied().unwrap_or_else(normalized);
            each(cx.mask, |k| {
                if i.o[0] != Slot::NONE {
                    cx.set_lane(i.o[0], k, value);
                }
            });
            Ok(())
        })
    }
}
