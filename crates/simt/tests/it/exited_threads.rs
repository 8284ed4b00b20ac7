//! Barriers and warp operations in warps in which some threads have exited.

use simt::{LaunchError, LaunchReport, Options, TrapKind};

use crate::bench::{Arg, Bench, trap};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// Kernel `test(out, n)` with the thread index in `%r1`, n in `%r2` and the address of the thread's word of `out` in
/// `%rd2`. Threads n and above exit immediately.
fn kernel(directives: &str, body: &str) -> String {
    format!(
        "{HEAD}.visible .entry test(.param .u64 out, .param .u32 n){directives}\n{{
    .reg .pred %p<9>;
    .reg .b32 %r<19>;
    .reg .b64 %rd<9>;
    .shared .align 4 .b8 tile[512];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r2, [n];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd1, %rd3;
    setp.ge.u32 %p1, %r1, %r2;
    {body}
}}\n"
    )
}

/// Launches blocks of this many threads with and without the sanitizer. Returns the result and the memory of each
/// launch.
fn launched(ptx: &str, blocks: u32, threads: u32, n: i32) -> [(Result<LaunchReport, LaunchError>, Vec<i32>); 2] {
    [true, false].map(|sanitize| {
        let mut bench = Bench::load(ptx, Options { sanitize, watchdog: 1_000_000, ..Options::default() });
        let out = bench.buffer(&[-1; 64]);
        let done = bench.launch("test", [blocks, 1, 1], [threads, 1, 1], &[Arg::Address(out), Arg::Int(n)]);
        (done, bench.ints(out, 64))
    })
}

/// Returns the results of a kernel with one block, which must be the same with and without the sanitizer.
#[track_caller]
fn left(ptx: &str, threads: u32, n: i32) -> Vec<i32> {
    let [(with, left), (without, same)] = launched(ptx, 1, threads, n);
    let (with, without) = (with.unwrap(), without.unwrap());
    assert_eq!((with.notes, with.counters, &left), (Vec::new(), without.counters, &same));
    left
}

/// Returns the first n values of a function, followed by the initial content.
fn first(n: i32, of: impl Fn(i32) -> i32) -> Vec<i32> {
    (0..64).map(|k| if k < n { of(k) } else { -1 }).collect()
}

/// Reverses the first n words in shared memory, with a barrier before and after.
const REVERSE: &str = "shl.b32 %r3, %r1, 2;
    mov.u32 %r4, tile;
    add.u32 %r5, %r4, %r3;
    st.shared.u32 [%r5], %r1;
    bar.sync 0;
    sub.u32 %r6, %r2, %r1;
    shl.b32 %r7, %r6, 2;
    add.u32 %r8, %r4, %r7;
    ld.shared.u32 %r9, [%r8+-4];
    bar.sync 0;
    st.global.u32 [%rd2], %r9;";

#[test]
fn a_barrier_waits_only_for_threads_that_have_not_exited() {
    let ptx = kernel("", &format!("@%p1 bra $L_end;\n{REVERSE}\n$L_end:\nret;"));
    // What remains: part of the only warp, part of the second warp, only the first warp, a single thread, all threads.
    for (threads, n) in [(32, 20), (64, 40), (64, 32), (64, 1), (64, 64)] {
        assert_eq!(left(&ptx, threads, n), first(n, |k| n - 1 - k), "{n} of {threads}");
    }
    let [(done, _), _] = launched(&ptx, 1, 64, 40);
    // Two warps arrive at two barriers.
    assert_eq!(done.unwrap().counters.barriers, 4);
}

#[test]
fn threads_may_work_before_they_exit_whichever_side_of_the_branch_they_are_on() {
    let leave = "st.global.u32 [%rd2], 77;";
    let near = format!("@!%p1 bra $L_stay;\n{leave}\nret;\n$L_stay:\n{REVERSE}\nret;");
    let far = format!("@%p1 bra $L_leave;\n{REVERSE}\nret;\n$L_leave:\n{leave}\nexit;");
    for body in [near, far] {
        let wanted: Vec<i32> = (0..64).map(|k| if k < 40 { 39 - k } else { 77 }).collect();
        assert_eq!(left(&kernel("", &body), 64, 40), wanted, "{body}");
    }
}

#[test]
fn a_barrier_inside_a_called_function_does_not_wait_for_them_either() {
    let function = ".func together()\n{\n    bar.sync 0;\n    ret;\n}\n";
    let call = "{\n    call.uni together, ();\n    }";
    let body = format!("@%p1 bra $L_end;\n{}\n$L_end:\nret;", REVERSE.replace("bar.sync 0;", call));
    let ptx = kernel("", &body).replace(HEAD, &format!("{HEAD}{function}"));
    assert_eq!(left(&ptx, 64, 40), first(40, |k| 39 - k));
}

#[test]
fn a_reduction_at_a_barrier_is_of_the_threads_that_have_not_exited() {
    let body = "@%p1 bra $L_end;
    setp.ne.u32 %p2, %r1, 3;
    bar.red.popc.u32 %r3, 0, %p2;
    bar.red.and.pred %p3, 0, %p2;
    selp.u32 %r4, 1000, 0, %p3;
    add.u32 %r3, %r3, %r4;
    setp.ne.u32 %p2, %r1, 50;
    bar.red.and.pred %p3, 0, %p2;
    selp.u32 %r4, 2000, 0, %p3;
    add.u32 %r3, %r3, %r4;
    st.global.u32 [%rd2], %r3;
$L_end:
    ret;";
    // 39 of 40 threads vote yes, and then all of them, because thread 50 has exited.
    assert_eq!(left(&kernel("", body), 64, 40), first(40, |_| 2039));
}

#[test]
fn a_barrier_with_a_count_takes_a_warp_of_which_lanes_have_exited_for_a_whole_one() {
    let ptx = kernel("", &format!("@%p1 bra $L_end;\n{}\n$L_end:\nret;", REVERSE.replace("sync 0", "sync 1, 64")));
    assert_eq!(left(&ptx, 64, 40), first(40, |k| 39 - k));
}

#[test]
fn warp_operations_wait_only_for_named_lanes_that_have_not_exited() {
    let body = |operation: &str| kernel("", &format!("@%p1 bra $L_end;\n{operation}\n$L_end:\nret;"));
    let ballot = "setp.eq.u32 %p2, %r1, %r1;
    vote.sync.ballot.b32 %r3, %p2, 0xffffffff;
    bar.warp.sync 0xffffffff;
    st.global.u32 [%rd2], %r3;";
    assert_eq!(left(&body(ballot), 32, 20), first(20, |_| 0xf_ffff));
    let shuffle = "shfl.sync.down.b32 %r3, %r1, 1, 0x1f, 0xffffffff;
    st.global.u32 [%rd2], %r3;";
    // Lane 19 would read from a lane that has exited, which is undefined.
    let [(with, _), (without, same)] = launched(&body(shuffle), 1, 32, 20);
    assert_eq!(trap(with).0, TrapKind::Shuffle);
    without.unwrap();
    assert_eq!(same[..19], first(20, |k| k + 1)[..19]);
    // Two tiles, each of which names its own 16 lanes.
    let tiles = "and.b32 %r4, %r1, 16;
    mov.u32 %r5, 0xffff;
    shl.b32 %r6, %r5, %r4;
    setp.eq.u32 %p2, %r1, %r1;
    vote.sync.ballot.b32 %r3, %p2, %r6;
    st.global.u32 [%rd2], %r3;";
    assert_eq!(left(&body(tiles), 32, 20), first(20, |k| if k < 16 { 0xffff } else { 0xf_0000 }));
}

#[test]
fn the_barrier_of_a_cluster_waits_only_for_threads_that_have_not_exited() {
    let body = "@%p1 bra $L_end;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r3, %ctaid.x;
    mad.lo.u32 %r4, %r3, 32, %r1;
    mul.wide.u32 %rd4, %r4, 4;
    add.s64 %rd5, %rd1, %rd4;
    st.global.u32 [%rd5], %r1;
$L_end:
    ret;";
    let ptx = kernel("\n.explicitcluster\n.reqnctapercluster 2, 1, 1", body);
    let wanted: Vec<i32> = (0..64).map(|k| if k % 32 < 20 { k % 32 } else { -1 }).collect();
    for (done, left) in launched(&ptx, 2, 32, 20) {
        done.unwrap();
        assert_eq!(left, wanted);
    }
}

#[test]
fn a_barrier_that_a_part_of_a_warp_passes_by_is_caught() {
    let body = "@%p1 bra $L_on;
    bar.sync 0;
$L_on:
    st.global.u32 [%rd2], %r1;
    ret;";
    let [(with, _), _] = launched(&kernel("", body), 1, 32, 7);
    let (kind, text) = trap(with);
    assert_eq!(kind, TrapKind::Barrier);
    let says = "barrier 0 is reached by lanes 0x0000007f of a warp while lanes 0xffffff80 are elsewhere";
    assert!(text.contains(says), "{text}");
}

#[test]
fn lanes_of_a_warp_that_wait_at_two_barriers_are_caught() {
    let body = "@%p1 bra $L_other;
    bar.sync 0;
    ret;
$L_other:
    bar.sync 0;
    exit;";
    let [(with, _), _] = launched(&kernel("", body), 1, 32, 7);
    let (kind, text) = trap(with);
    assert_eq!(kind, TrapKind::Barrier);
    let says = "is reached by lanes 0xffffff80 of a warp while lanes 0x0000007f wait at another barrier";
    assert!(text.contains(says), "{text}");
}

#[test]
fn lanes_that_wait_for_each_other_at_a_barrier_and_a_warp_operation_are_a_deadlock_that_names_both() {
    let body = "@%p1 bra $L_other;
    bar.sync 0;
    ret;
$L_other:
    bar.warp.sync 0xffffffff;
    exit;";
    for (done, _) in launched(&kernel("", body), 1, 32, 7) {
        let (kind, text) = trap(done);
        assert_eq!(kind, TrapKind::Deadlock);
        for part in [
            "barrier 0 is reached only by lanes 0x0000007f of warp 0",
            "lanes 0xffffff80 of warp 0 wait for lanes 0x0000007f, which wait elsewhere",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
