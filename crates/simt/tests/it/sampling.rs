//! Launches that run only a sample of their blocks.

use simt::{LaunchError, LaunchReport, Sampled, TrapKind};

use crate::bench::{Arg, Bench, trap};

/// In `edges`, every thread counts to a number and writes it to its element: 2, or 3 in blocks at the edges along y, or 3
/// or 4 in blocks at the edges along x. In `increments`, every block adds to one word without using the old value.
const KERNELS: &str = "
.version 8.5
.target sm_90
.address_size 64

.visible .entry edges(.param .u64 out)
{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ctaid.y;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %nctaid.y;
    sub.u32 %r5, %r3, 1;
    sub.u32 %r6, %r4, 1;
    mov.u32 %r7, 2;
    setp.eq.u32 %p1, %r1, 0;
    setp.eq.or.u32 %p1, %r1, %r5, %p1;
    @%p1 add.u32 %r7, %r7, 1;
    setp.eq.u32 %p2, %r2, 0;
    setp.eq.or.u32 %p2, %r2, %r6, %p2;
    @%p2 add.u32 %r7, %r7, 1;
    mov.u32 %r8, 0;
$L_loop:
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p3, %r8, %r7;
    @%p3 bra $L_loop;
    mad.lo.u32 %r9, %r2, %r3, %r1;
    mov.u32 %r10, %ntid.x;
    mov.u32 %r11, %tid.x;
    mad.lo.u32 %r9, %r9, %r10, %r11;
    mul.wide.u32 %rd2, %r9, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r8;
    ret;
}

.visible .entry increments(.param .u64 out)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    red.global.add.u32 [%rd1], 1;
    ret;
}

.visible .entry takes(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    atom.global.add.u32 %r1, [%rd1], 1;
    st.global.u32 [%rd1+4], %r1;
    ret;
}
";

const GRID: [u32; 3] = [40, 30, 1];
const BLOCK: u32 = 64;
const THREADS: usize = 40 * 30 * BLOCK as usize;

fn edges(sampling: bool) -> (LaunchReport, Vec<i32>) {
    let mut bench = Bench::new(KERNELS);
    let out = bench.buffer(&vec![-1; THREADS]);
    bench.machine.set_sampling(sampling);
    let report = bench.launch("edges", GRID, [BLOCK, 1, 1], &[Arg::Address(out)]).unwrap();
    (report, bench.ints(out, THREADS))
}

#[test]
fn the_scaled_counts_of_a_regular_kernel_with_edges_are_the_exact_ones() {
    let (whole, sampled) = (edges(false).0, edges(true).0);
    assert_eq!((whole.sampled, sampled.sampled), (None, Some(Sampled { ran: 256, of: 1200 })));
    assert_eq!(sampled.counters, whole.counters);
    // Each block has two warps.
    assert_eq!(whole.counters.global_store.requests, 2 * 1200);
}

#[test]
fn blocks_that_do_not_run_write_nothing_and_the_others_what_they_always_do() {
    let (whole, sampled) = (edges(false).1, edges(true).1);
    let written = sampled.iter().filter(|value| **value != -1).count();
    assert_eq!(written, 256 * BLOCK as usize);
    assert!(sampled.iter().zip(&whole).all(|(sampled, whole)| *sampled == -1 || sampled == whole));
    // In the corners, blocks count to four.
    for corner in [0, 39, 29 * 40, 30 * 40 - 1] {
        assert_eq!(sampled[corner * BLOCK as usize], 4);
    }
}

#[test]
fn a_small_grid_runs_as_a_whole() {
    let mut bench = Bench::new(KERNELS);
    let out = bench.buffer(&vec![-1; 256]);
    bench.machine.set_sampling(true);
    let report = bench.launch("edges", [16, 16, 1], [1, 1, 1], &[Arg::Address(out)]).unwrap();
    assert_eq!(report.sampled, None);
    assert!(!bench.ints(out, 256).contains(&-1));
}

#[test]
fn blocks_that_communicate_are_not_sampled() {
    for kernel in ["increments", "takes"] {
        let mut bench = Bench::new(KERNELS);
        let out = bench.buffer(&[0, 0]);
        bench.machine.set_sampling(true);
        let (kind, message) = trap(bench.launch(kernel, [300, 1, 1], [1, 1, 1], &[Arg::Address(out)]));
        assert_eq!(kind, TrapKind::Communication);
        let expected = format!(
            "an access through which blocks communicate (a sample of them cannot run without the others) in kernel `{kernel}` at \
             line "
        );
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn a_cooperative_launch_is_not_sampled() {
    let mut bench = Bench::new(KERNELS);
    let out = bench.buffer(&vec![-1; 300]);
    bench.machine.set_sampling(true);
    let refused = bench.launch_with("edges", ([300, 1, 1], [1, 1, 1], 0, true), &[Arg::Address(out)]);
    let Err(LaunchError::Refused(error)) = refused else { panic!("{refused:?}") };
    let expected = "a cooperative launch: its blocks communicate, and a sample of them cannot run without the others";
    assert_eq!(error.to_string(), expected);
}
