//! The shared memory that the system reserves in each block, and the grid barrier.

use simt::{Options, TrapKind};

use crate::bench::{Arg, Bench, trap};

const KERNELS: &str = r"
.version 8.3
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];

.visible .entry registers(.param .u64 out)
{
    .reg .u64 %a;
    .reg .u32 %r;
    .shared .align 4 .b8 own[8];
    ld.param.u64 %a, [out];
    mov.u32 %r, own;
    st.global.u32 [%a], %r;
    mov.u32 %r, dynamic;
    st.global.u32 [%a+4], %r;
    mov.u32 %r, %reserved_smem_offset_begin;
    st.global.u32 [%a+8], %r;
    mov.u32 %r, %reserved_smem_offset_end;
    st.global.u32 [%a+12], %r;
    mov.u32 %r, %reserved_smem_offset_cap;
    st.global.u32 [%a+16], %r;
    mov.u32 %r, %total_smem_size;
    st.global.u32 [%a+20], %r;
    mov.u32 %r, %aggr_smem_size;
    st.global.u32 [%a+24], %r;
    ret;
}

.visible .entry apart(.param .u64 out)
{
    .reg .u64 %a;
    .reg .u32 %r, %at;
    .shared .align 4 .b8 own[4];
    ld.param.u64 %a, [out];
    mov.u32 %r, 7;
    st.shared.u32 [own], %r;
    mov.u32 %at, %reserved_smem_offset_1;
    mov.u32 %r, 9;
    st.shared.u32 [%at], %r;
    st.shared.u32 [%at+284], %r;
    ld.shared.u32 %r, [own];
    st.global.u32 [%a], %r;
    ld.shared.u32 %r, [%at];
    st.global.u32 [%a+4], %r;
    ret;
}

.visible .entry before(.param .u64 out)
{
    .reg .u64 %a;
    .reg .u32 %r;
    .shared .align 4 .b8 own[4];
    ld.param.u64 %a, [out];
    mov.u32 %r, own;
    st.shared.u32 [%r+-4], %r;
    ret;
}

.visible .entry grid(.param .u64 out)
{
    .reg .u64 %a, %bar, %high;
    .reg .u32 %r;
    ld.param.u64 %a, [out];
    mov.u32 %r, %envreg1;
    cvt.u64.u32 %high, %r;
    shl.b64 %high, %high, 32;
    mov.u32 %r, %envreg2;
    cvt.u64.u32 %bar, %r;
    or.b64 %bar, %bar, %high;
    st.global.u64 [%a], %bar;
    atom.add.release.gpu.u32 %r, [%bar+4], 1;
    st.global.u32 [%a], %r;
    ret;
}
";

fn run(kernel: &str, shared: u32, cooperative: bool) -> Result<Vec<i32>, (TrapKind, String)> {
    let mut b = Bench::load(KERNELS, Options::default());
    let out = b.buffer(&[-1; 8]);
    let done = b.launch_with(kernel, ([1; 3], [1, 1, 1], shared, cooperative), &[Arg::Address(out)]);
    if done.is_err() { Err(trap(done)) } else { Ok(b.ints(out, 8)) }
}

#[test]
fn a_block_s_own_shared_memory_starts_behind_the_kilobyte_of_the_system() {
    // Dynamic memory follows the eight static bytes, aligned to 16. An H200 reports 288 reserved bytes in use, and
    // rounds the total up to a multiple of 128.
    assert_eq!(run("registers", 48, false).unwrap(), [1024, 1040, 0, 288, 1024, 128, 1088, -1]);
}

#[test]
fn what_groups_keep_in_the_reserved_memory_is_apart_from_the_kernel_s() {
    assert_eq!(run("apart", 0, false).unwrap()[..2], [7, 9]);
}

#[test]
fn a_kernel_that_does_not_ask_for_the_reserved_memory_may_not_touch_it() {
    let (kind, text) = run("before", 0, false).unwrap_err();
    assert_eq!(kind, TrapKind::OutOfBounds);
    assert!(text.starts_with("out-of-bounds 4-byte access to shared memory, 4 bytes before its start: it has 4 bytes"));
}

#[test]
fn the_barrier_of_a_grid_works_in_a_cooperative_launch_only() {
    assert_eq!(run("grid", 0, true).unwrap()[0], 0);
    let (kind, text) = run("grid", 0, false).unwrap_err();
    assert_eq!(kind, TrapKind::Barrier);
    assert!(text.contains("launch that is not cooperative (set `cooperative = true`)"), "{text}");
}
