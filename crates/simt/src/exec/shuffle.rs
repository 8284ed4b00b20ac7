//! `shfl.sync`: a lane reads another lane's value. Compiled for several instruction sets, because every warp-wide sum
//! uses it.

use crate::error::TrapKind;
use crate::exec::collective::{by_members, members, write_u32};
use crate::exec::context::{Context, Handler};
use crate::exec::simd;
use crate::exec::simd::HostIsa;
use crate::program::ins::Ins;
use crate::program::row::{Flags, LANES, Row};
use crate::sanitize::Class;

/// Modes of `shfl`, in `aux`.
pub const UP: u32 = 0;
pub const DOWN: u32 = 1;
pub const BUTTERFLY: u32 = 2;
pub const INDEX: u32 = 3;

/// Returns, for each lane, the lane that it reads and whether that lane is in its segment. Outside the segment, a lane
/// reads itself.
#[inline(always)]
fn sources(b: &Row<u32>, c: &Row<u32>, from: impl Fn(u32, u32, u32, u32) -> (u32, bool)) -> (Row<u32>, Flags) {
    let (mut lanes, mut inside) = (Row([0; LANES]), [0; LANES]);
    for (k, inside) in inside.iter_mut().enumerate() {
        let (lane, by) = (k as u32, b.0[k] & 31);
        let (clamp, segment) = (c.0[k] & 31, (c.0[k] >> 8) & 31);
        let lowest = lane & segment;
        let (source, good) = from(lane, by, lowest | (by & !segment), lowest | (clamp & !segment));
        lanes.0[k] = if good { source & 31 } else { lane };
        *inside = if good { -1 } else { 0 };
    }
    (lanes, inside)
}

/// `shfl.sync`. Slot 0: value; slot 1: predicate, or none; slot 2: source; slot 3: lane operand; slot 4: clamp and
/// segment mask; slot 5: member mask.
#[inline(always)]
unsafe fn body(
    cx: &mut Context<'_>,
    i: &Ins,
    part: Handler,
    bits: impl Fn(&Flags) -> u32,
    permute: impl Fn(&Row<u32>, &Row<u32>) -> Row<u32>,
) -> *const Ins {
    if let Some(next) = by_members(cx, i, i.o[5], part) {
        return next;
    }
    let mask = match members(cx, i, i.o[5]) {
        Ok(mask) => mask,
        Err(stopped) => return stopped,
    };
    // SAFETY: all are 32-bit rows.
    let (a, b, c): (Row<u32>, Row<u32>, Row<u32>) = unsafe { (cx.row(i.o[2]), cx.row(i.o[3]), cx.row(i.o[4])) };
    let (mut from, inside) = match i.aux {
        UP => sources(&b, &c, |lane, by, _, end| (lane.wrapping_sub(by), lane as i32 - by as i32 >= end as i32)),
        DOWN => sources(&b, &c, |lane, by, _, end| (lane + by, lane + by <= end)),
        BUTTERFLY => sources(&b, &c, |lane, by, _, end| (lane ^ by, lane ^ by <= end)),
        _ => sources(&b, &c, |_, _, named, end| (named, named <= end)),
    };
    if cx.mask != u32::MAX {
        let absent = (0..LANES)
            .filter(|&k| cx.is_active(k) && !cx.is_active(from.0[k] as usize & 31))
            .fold(0, |m, k| m | 1 << k);
        if absent != 0 && cx.launch.sanitize && cx.launch.shadow.ignored().reports_class(Class::Shuffle) {
            let message = format!("a shuffle reads from a lane that is not active (mask {mask:#010x})");
            return cx.trap(i, TrapKind::Shuffle, absent, message);
        }
        // The value of an absent lane is undefined. Reading the lane's own value instead makes runs reproducible.
        (0..LANES).filter(|&k| absent >> k & 1 == 1).for_each(|k| from.0[k] = k as u32);
    }
    write_u32(cx, i.o[0], &permute(&a, &from));
    // SAFETY: slot 1 is a predicate or none.
    unsafe { cx.set_pred(i.o[1], bits(&inside)) };
    Context::next(i)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn shuffle_avx512(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: same contract as this function.
    unsafe { body(cx, i, shuffle_avx512, |flags| simd::bits_avx512(flags), |a, from| simd::permute_avx512(a, from)) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn shuffle_avx2(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: same contract as this function.
    unsafe { body(cx, i, shuffle_avx2, |flags| simd::bits_avx2(flags), simd::permute_base) }
}

unsafe fn shuffle_base(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: same contract as this function.
    unsafe { body(cx, i, shuffle_base, simd::bits_base, simd::permute_base) }
}

/// Returns the handler of `shfl.sync`.
pub fn handler(isa: HostIsa) -> Handler {
    match isa {
        #[cfg(target_arch = "x86_64")]
        HostIsa::Avx512 => shuffle_avx512,
        #[cfg(target_arch = "x86_64")]
        HostIsa::Avx2 => shuffle_avx2,
        HostIsa::Baseline => shuffle_base,
    }
}
