//! Executes `malloc` and `free` in kernels.

use crate::error::TrapKind;
use crate::exec::context::Context;
use crate::memory::Extent;
use crate::program::ins::Ins;
use crate::runtime::heap;

/// `malloc`. `imm`: offset of the argument in the function's locals; `aux`: offset of the result.
pub unsafe fn malloc(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    allocate(cx, i, |_, _| true)
}

/// `malloc` with an alignment, whose offset is in the upper half of `imm`. Every allocation is aligned to 256 bytes.
/// Larger alignments fail, and so do those that are not powers of two.
pub unsafe fn aligned_malloc(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let at = (i.imm >> 32) as u32;
    allocate(cx, i, |cx, lane| {
        let align = cx.local_u64(lane, at);
        align.is_power_of_two() && align <= 256
    })
}

#[inline(always)]
fn allocate(cx: &mut Context<'_>, i: &Ins, may: impl Fn(&Context<'_>, usize) -> bool) -> *const Ins {
    if let Some(stopped) = cx.wait_for_commit(i) {
        return stopped;
    }
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let bytes = cx.local_u64(k, i.imm as u32);
        let address = if may(cx, k) { heap::allocate(cx.launch.memory, cx.launch.heap, bytes) } else { None };
        cx.set_local_u64(k, i.aux, address.unwrap_or(0));
    }
    Context::next(i)
}

/// `free`. `imm`: offset of the argument.
pub unsafe fn free(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Some(stopped) = cx.wait_for_commit(i) {
        return stopped;
    }
    cx.cached = Extent::default();
    // Orders this block's accesses before the next owner's.
    cx.shadow.barrier();
    let mut lanes = cx.mask;
    while lanes != 0 {
        let k = lanes.trailing_zeros();
        lanes &= lanes - 1;
        let address = cx.local_u64(k as usize, i.imm as u32);
        if !heap::free(cx.launch.memory, cx.launch.heap, address) {
            let message = format!("`free` of {address:#x}, which `malloc` did not return, or which was already freed");
            return cx.trap(i, TrapKind::Heap, 1 << k, message);
        }
    }
    Context::next(i)
}
