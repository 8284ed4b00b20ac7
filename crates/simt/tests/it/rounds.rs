//! Warps that run together from barrier to barrier, in rounds, and warps that fall out of step, with and without checks
//! of their accesses.

use simt::{Counters, Options, TrapKind};

use crate::bench::{Arg, Bench, trap};

const WARPS: usize = 8;

/// Returns a kernel with eight warps. `%w` is the index of the thread's warp, `%c` the value that the thread stores at
/// the end.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 out)\n{{\n\
         .reg .pred %p<8>; .reg .b32 %r<16>, %tid, %w, %c; .reg .b64 %addr;\n.shared .align 4 .b8 s[1024];\n\
         ld.param.u64 %addr, [out]; mov.u32 %tid, %tid.x; mad.wide.u32 %addr, %tid, 4, %addr; shr.u32 %w, %tid, 5;\n\
         mov.u32 %c, 0;\n{body}\nst.global.u32 [%addr], %c;\nret;\n}}\n"
    )
}

fn run(body: &str, sanitize: bool) -> (Vec<i32>, Counters) {
    let mut bench = Bench::load(&kernel(body), Options { sanitize, ..Options::default() });
    let out = bench.buffer(&[-1; 32 * WARPS]);
    let report = bench.launch("test", [1, 1, 1], [32 * WARPS as u32, 1, 1], &[Arg::Address(out)]).unwrap();
    (bench.ints(out, 32 * WARPS), report.counters)
}

/// Checks what each warp's threads store, how many warps pass barriers, and the number of instructions, with and
/// without rounds. Five instructions precede the body and two follow it.
fn agrees(body: &str, stored: impl Fn(i32) -> i32, barriers: u64, instructions: u64) {
    let (checked, counters) = run(body, true);
    let expected: Vec<i32> = (0..32 * WARPS as i32).map(|thread| stored(thread / 32)).collect();
    assert_eq!(checked, expected);
    assert_eq!((counters.barriers, counters.warp_instructions), (barriers, instructions));
    assert_eq!(run(body, false), (checked, counters));
}

#[test]
fn warps_that_end_early_are_not_waited_for() {
    let body = "L: setp.gt.u32 %p1, %c, %w; @%p1 bra E; bar.sync 0; add.u32 %c, %c, 1; bra L;\nE:";
    // Five instructions per iteration and two to leave the loop.
    agrees(body, |warp| warp + 1, (1..=8).sum(), (1..=8).map(|rounds| 7 + 5 * rounds + 2).sum());
}

#[test]
fn a_warp_that_computes_for_long_is_waited_for() {
    // Warp 5 counts to 20,000 before it stores, which takes more than one time slice. All warps read what it stored.
    let body = "setp.ne.u32 %p1, %w, 5; @%p1 bra B;\nL: add.u32 %c, %c, 1; setp.lt.u32 %p2, %c, 20000; @%p2 bra L;\n\
                st.shared.u32 [s], %c;\nB: bar.sync 0; ld.shared.u32 %c, [s]; bar.sync 0; bar.sync 0;";
    agrees(body, |_| 20_000, 3 * 8, 8 * (7 + 6) + 3 * 20_000 + 1);
}

#[test]
fn pairs_of_warps_meet_at_barriers_of_their_own_between_those_of_all() {
    let body = "shr.u32 %r1, %w, 1; add.u32 %r1, %r1, 1; mov.u32 %r2, 0;\n\
                L: bar.sync 0; barrier.sync %r1, 64; barrier.sync %r1, 64; add.u32 %c, %c, %r1; add.u32 %r2, %r2, 1;\n\
                setp.lt.u32 %p1, %r2, 3; @%p1 bra L;";
    agrees(body, |warp| 3 * (warp / 2 + 1), 9 * 8, 8 * (7 + 3 + 3 * 7));
}

#[test]
fn lanes_that_come_to_a_barrier_on_two_paths_wait_for_each_other() {
    // In warp 2, odd lanes take another path to the same barrier.
    let body = "and.b32 %r1, %tid, 1; setp.eq.u32 %p1, %w, 2; setp.eq.and.u32 %p2, %r1, 1, %p1; mov.u32 %c, 1;\n\
                bar.sync 0; @%p2 bra O; barrier.sync 0; bra J;\nO: barrier.sync 0;\nJ: bar.sync 0; add.u32 %c, %c, %w;";
    // The two paths of warp 2 each reach their own barrier, and then the last one.
    agrees(body, |warp| warp + 1, 3 * 8, 8 * (7 + 10) + 2);
}

#[test]
fn votes_at_a_barrier_are_those_of_the_round() {
    let body = "bar.sync 0; setp.lt.u32 %p1, %tid, 100; barrier.red.popc.u32 %c, 0, %p1; bar.sync 0;";
    agrees(body, |_| 100, 3 * 8, 8 * (7 + 4));
}

#[test]
fn warps_that_wait_at_two_barriers_never_go_on() {
    let body = "bar.sync 0; setp.lt.u32 %p1, %w, 3; @%p1 bra A; bar.sync 1; bra E;\nA: bar.sync 2;\nE:";
    let reports = [true, false].map(|sanitize| {
        let mut bench = Bench::load(&kernel(body), Options { sanitize, ..Options::default() });
        let out = bench.buffer(&[0; 32 * WARPS]);
        let (kind, text) = trap(bench.launch("test", [1, 1, 1], [32 * WARPS as u32, 1, 1], &[Arg::Address(out)]));
        assert_eq!(kind, TrapKind::Deadlock, "{text}");
        assert!(text.contains("barrier 1 has 160 threads") && text.contains("barrier 2 has 96 threads"), "{text}");
        text
    });
    assert_eq!(reports[0], reports[1]);
}
