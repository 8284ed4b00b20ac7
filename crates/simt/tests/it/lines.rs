//! Counts per line of the PTX, on a kernel whose counts are known.

use simt::{Counters, LaunchReport, LineCounts, Options};

use crate::bench::{Arg, Bench};

/// The first line of the PTX is empty, so `.visible` is on line 6. In each warp, lane k of lanes 0 to 7 runs k + 1
/// iterations of the loop, and lane 0 stores under a guard.
const KERNEL: &str = "
.version 9.0
.target sm_90
.address_size 64
.file 1 \"/home/me/k.cu\"
.visible .entry test(.param .u64 out)
{
    .reg .pred %p<9>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .loc 1 3 1
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 31;
    setp.ge.u32 %p1, %r2, 8;
    @%p1 bra END;
    .loc 1 5 1
LOOP:
    sub.u32 %r2, %r2, 1;
    setp.ne.s32 %p2, %r2, -1;
    @%p2 bra LOOP;
END:
    .loc 1 7 1
    and.b32 %r3, %r1, 31;
    setp.eq.u32 %p3, %r3, 0;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    @%p3 st.global.u32 [%rd3], %r1;
    ret;
}
";

/// Launches blocks of a kernel, on this many host threads.
fn launch(ptx: &str, host_threads: usize, blocks: u32, threads: u32) -> LaunchReport {
    let mut bench = Bench::load(ptx, Options { threads: Some(host_threads), ..Options::default() });
    let out = Arg::Address(bench.buffer(&[0; 64]));
    bench.machine.set_sanitizer(false, simt::Ignored::default());
    bench.launch("test", [blocks, 1, 1], [threads, 1, 1], &[out]).unwrap()
}

/// The lines of a launch of three blocks of 64 threads, i.e. six warps.
fn lines(host_threads: usize) -> Vec<LineCounts> {
    launch(KERNEL, host_threads, 3, 64).lines
}

fn line(lines: &[LineCounts], ptx: u32) -> (u64, u64) {
    let mut found = lines.iter().filter(|line| line.ptx_line == ptx);
    let counted = found.next().map_or((0, 0), |l| (l.counters.warp_instructions, l.counters.thread_instructions));
    assert!(found.next().is_none(), "line {ptx} is there once");
    counted
}

#[test]
fn each_line_is_counted_as_often_as_warps_and_threads_execute_it() {
    let lines = lines(1);
    // Copies of parameters and indices were removed, but their instructions still count.
    for ptx in 12..=16 {
        assert_eq!(line(&lines, ptx), (6, 6 * 32), "line {ptx}");
    }
    // Lane k runs k + 1 iterations: 8 iterations per warp, and 1 + 2 + … + 8 = 36 over its lanes.
    for ptx in 19..=21 {
        assert_eq!(line(&lines, ptx), (6 * 8, 6 * 36), "line {ptx}");
    }
    for ptx in [24, 25, 26, 27, 29] {
        assert_eq!(line(&lines, ptx), (6, 6 * 32), "line {ptx}");
    }
    // The guard lets only one lane through.
    assert_eq!(line(&lines, 28), (6, 6));
}

#[test]
fn divergence_and_sectors_belong_to_the_line_that_causes_them() {
    let lines = lines(1);
    let of = |count: fn(&Counters) -> u64| -> Vec<(u32, u64)> {
        let counted = lines.iter().map(|line| (line.ptx_line, count(&line.counters)));
        counted.filter(|(_, count)| *count > 0).collect()
    };
    // The loop diverges in every iteration except the last.
    assert_eq!(of(|c| c.divergent_branches), [(16, 6), (21, 6 * 7)]);
    assert_eq!(of(|c| c.branches), [(16, 6), (21, 6 * 8)]);
    assert_eq!(of(|c| c.global_store.sectors), [(28, 6)]);
    assert_eq!(of(|c| c.global_store.bytes), [(28, 6 * 4)]);
    let source = |ptx: u32| lines.iter().find(|line| line.ptx_line == ptx).and_then(|line| line.source.clone());
    assert_eq!([source(16), source(20), source(28)], [3, 5, 7].map(|line| Some(("/home/me/k.cu".to_owned(), line))));
}

#[test]
fn lines_are_the_same_for_any_number_of_host_threads() {
    assert_eq!(lines(1), lines(4));
}

/// Three loops: one with as many iterations as the block index plus one; one with two iterations in the first warp and
/// five in the second; and one with a barrier.
const LOOPS: &str = "
.version 9.0
.target sm_90
.address_size 64
.visible .entry test(.param .u64 out)
{
    .reg .pred %p<4>;
    .reg .b32 %r<5>;
    mov.u32 %r1, %ctaid.x;
FIRST:
    sub.u32 %r1, %r1, 1;
    setp.ne.s32 %p1, %r1, -1;
    @%p1 bra FIRST;
    mov.u32 %r2, %tid.x;
    setp.lt.u32 %p2, %r2, 32;
    selp.b32 %r3, 2, 5, %p2;
SECOND:
    add.u32 %r3, %r3, -1;
    setp.eq.u32 %p3, %r3, 0;
    add.u32 %r2, %r2, 1;
    @!%p3 bra SECOND;
THIRD:
    bar.sync 0;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 3;
    @%p3 bra THIRD;
    ret;
}
";

#[test]
fn rounds_of_loops_are_counted_by_warp() {
    for threads in [1, 4] {
        let lines = launch(LOOPS, threads, 3, 64).lines;
        let with = lines.iter().filter(|line| !line.rounds.is_empty());
        let rounds: Vec<(u32, Vec<(u64, u64)>)> =
            with.map(|line| (line.ptx_line, line.rounds.clone().into_iter().collect())).collect();
        assert_eq!(rounds, [(13, vec![(1, 2), (2, 2), (3, 2)]), (21, vec![(2, 3), (5, 3)])]);
    }
}

/// Registers that are wider than the part that an instruction reads or writes, and the address of a local variable.
const WIDER: &str = "
.version 9.0
.target sm_90
.address_size 64
.visible .entry test(.param .u64 out)
{
    .local .align 4 .b8 depot[8];
    .reg .b16 %h<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, depot;
    cvt.s64.s32 %rd3, %rd2;
    ld.global.u8 %r1, [%rd1];
    cvt.s32.s8 %rd4, %r1;
    add.s64 %rd5, %rd3, %rd4;
    ret;
}
";

#[test]
fn an_instruction_whose_registers_are_wider_counts_once() {
    let launch = launch(WIDER, 1, 1, 32);
    for ptx in 11..=17 {
        assert_eq!(line(&launch.lines, ptx), (1, 32), "line {ptx}");
    }
    assert_eq!(launch.counters.warp_instructions, 7);
}

/// One instruction whose lower lanes load from shared memory and the others from global memory.
const IN_PARTS: &str = "
.version 9.0
.target sm_90
.address_size 64
.visible .entry test(.param .u64 out)
{
    .shared .align 4 .b8 tile[64];
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, tile;
    cvta.shared.u64 %rd3, %rd2;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 16;
    selp.b64 %rd4, %rd3, %rd1, %p1;
    ld.u32 %r2, [%rd4];
    st.u32 [%rd4], %r2;
    ret;
}
";

#[test]
fn an_access_in_parts_counts_each_part_once() {
    let launch = launch(IN_PARTS, 1, 2, 32);
    let requests = |c: &Counters| {
        [c.global_load.requests, c.global_store.requests, c.shared_load.requests, c.shared_store.requests]
    };
    let of = |ptx: u32| launch.lines.iter().find(|line| line.ptx_line == ptx).map(|line| requests(&line.counters));
    assert_eq!([of(17), of(18)], [Some([2, 0, 2, 0]), Some([0, 2, 0, 2])]);
    assert_eq!(requests(&launch.counters), [2, 2, 2, 2]);
}
