//! Results and counts do not depend on the number of host threads, however blocks communicate. Expected values are
//! computed for blocks that run one after another.

use simt::Options;

use crate::bench::{Arg, Bench};

const BLOCKS: u32 = 24;
const LAUNCHES: usize = 12;
/// Number of host threads, which may exceed the number of cores.
const THREADS: usize = 4;

/// Returns a kernel whose first blocks take longest to reach `body`. In `body`, `%rd1` is the address of the word that
/// the blocks share, `%r1` is the block index, and `%r2` is a number below [`BLOCKS`] that is unique to the block.
/// `%r3` is stored at the end.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .func bump(.param .b64 at)\n{{\n.reg .b64 %rd<2>;\n\
         ld.param.u64 %rd1, [at]; red.global.add.u32 [%rd1], 1; ret;\n}}\n\
         .visible .entry test(.param .u64 word, .param .u64 out)\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<2>;\n\
         ld.param.u64 %rd1, [word]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %ctaid.x;\n\
         mul.lo.u32 %r2, %r1, 7; rem.u32 %r2, %r2, {BLOCKS}; mov.u32 %r3, 0;\n\
         sub.u32 %r4, {BLOCKS}, %r1; mul.lo.u32 %r4, %r4, 40;\n\
         WAIT: sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra WAIT;\n\
         {body}\n\
         mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r3; ret;\n}}\n"
    )
}

/// Launches a kernel repeatedly, on one host thread and on several. `block` computes what a block stores, given its
/// index and the shared word.
#[track_caller]
fn agrees(body: &str, block: impl Fn(i32, &mut i32) -> i32) {
    let mut word = 0;
    let stored: Vec<i32> = (0..BLOCKS as i32).map(|k| block(k, &mut word)).collect();
    for sanitize in [true, false] {
        let mut benches = [1, THREADS].map(|threads| {
            let options = Options { sanitize, threads: Some(threads), ..Options::default() };
            let mut bench = Bench::load(&kernel(body), options);
            let buffers = (bench.buffer(&[0]), bench.buffer(&[-1; BLOCKS as usize]));
            (bench, buffers)
        });
        let mut launch = |side: usize| {
            let (bench, (shared, out)) = &mut benches[side];
            bench.machine.fill(*shared, 4, 0).unwrap();
            let args = [Arg::Address(*shared), Arg::Address(*out)];
            let report = bench.launch("test", [BLOCKS, 1, 1], [1, 1, 1], &args).unwrap();
            (bench.ints(*shared, 1)[0], bench.ints(*out, BLOCKS as usize), report)
        };
        let one = launch(0);
        assert_eq!((one.0, &one.1), (word, &stored), "on one thread");
        for number in 0..LAUNCHES {
            assert_eq!(launch(1), one, "launch {number} on {THREADS} threads");
        }
    }
}

/// Returns the block's unique number.
const fn own(block: i32) -> i32 {
    block * 7 % BLOCKS as i32
}

#[test]
fn a_strong_load_sees_what_earlier_blocks_have_added() {
    for load in ["ld.volatile.global", "ld.relaxed.gpu.global", "ld.acquire.gpu", "ld.relaxed.sys"] {
        agrees(&format!("{load}.u32 %r3, [%rd1]; red.global.add.u32 [%rd1], 1;"), |_, word| {
            *word += 1;
            *word - 1
        });
    }
}

#[test]
fn a_result_that_is_read_does_not_include_the_sums_of_later_blocks() {
    agrees("red.global.add.u32 [%rd1], 1; atom.global.add.u32 %r3, [%rd1], 0;", |_, word| {
        *word += 1;
        *word
    });
}

#[test]
fn a_called_function_adds_in_commit_order_too() {
    let call = "{ .param .b64 a; st.param.b64 [a], %rd1; call.uni bump, (a); }";
    agrees(&format!("{call} ld.volatile.global.u32 %r3, [%rd1];"), |_, word| {
        *word += 1;
        *word
    });
}

#[test]
fn the_last_block_stores_last() {
    for store in ["st.relaxed.gpu.global", "st.release.gpu"] {
        agrees(&format!("{store}.u32 [%rd1], %r1;"), |block, word| {
            *word = block;
            0
        });
    }
}

#[test]
fn different_operations_on_a_word_do_not_commute() {
    let body = "and.b32 %r5, %r1, 1; setp.eq.u32 %p2, %r5, 0; @%p2 red.global.add.u32 [%rd1], 1; \
                @!%p2 red.global.max.s32 [%rd1], %r2;";
    agrees(body, |block, word| {
        *word = if block % 2 == 0 { *word + 1 } else { own(block).max(*word) };
        0
    });
}

/// Maximum over the blocks so far, by compare-and-swap. `%r3` counts the attempts.
fn largest(load: &str) {
    let body = format!(
        "cvta.to.global.u64 %rd4, %rd1; {load}.u32 %r5, [%rd4];\n\
         TRY: setp.ge.s32 %p2, %r5, %r2; @%p2 bra END;\n\
         add.u32 %r3, %r3, 1; atom.relaxed.gpu.global.cas.b32 %r6, [%rd1], %r5, %r2;\n\
         setp.eq.u32 %p3, %r6, %r5; @%p3 bra END; mov.u32 %r5, %r6; bra TRY;\nEND:"
    );
    agrees(&body, |block, word| {
        let attempts = i32::from(own(block) > *word);
        *word = own(block).max(*word);
        attempts
    });
}

#[test]
fn compare_and_swap_succeeds_at_the_first_attempt() {
    largest("ld.relaxed.gpu.global");
    // A plain load that races with the atomics, as in the CUDA C++ Programming Guide.
    largest("ld.global");
}

#[test]
fn a_plain_load_decides_whether_an_atomic_is_needed() {
    let body = "ld.global.u32 %r3, [%rd1]; setp.gt.s32 %p2, %r2, %r3; @%p2 red.global.max.s32 [%rd1], %r2;";
    agrees(body, |block, word| {
        let seen = *word;
        *word = own(block).max(seen);
        seen
    });
}

/// Whether the bytecode of a kernel contains an access in commit order.
fn waits(body: &str) -> bool {
    let bench = Bench::new(&kernel(body));
    let listing = bench.machine.listing(bench.module, "test").unwrap();
    let kernel = listing.split("bump:").next().unwrap();
    let flags = kernel.lines().filter(|line| line.contains(".global")).filter_map(|line| line.split(" aux 0x").nth(1));
    flags.map(|flags| u32::from_str_radix(flags, 16).unwrap()).any(|flags| flags & 0x800 != 0)
}

#[test]
fn accesses_do_not_wait_if_no_block_sees_their_order() {
    for parallel in [
        "red.global.add.u32 [%rd1], 1; red.global.add.u32 [%rd2], 1;",
        "atom.global.add.u32 %r5, [%rd1], 1;",
        "ld.global.u32 %r5, [%rd2]; red.global.add.u32 [%rd1], %r5;",
        "ld.volatile.global.u32 %r5, [%rd1]; add.u32 %r5, %r5, 1; st.volatile.global.u32 [%rd1], %r5;",
        "ld.global.u32 %r5, [%rd1+4]; ld.global.u32 %r3, [%rd2]; st.global.u32 [%rd2], %r5;",
    ] {
        assert!(!waits(parallel), "{parallel}");
    }
    for ordered in [
        "atom.global.add.u32 %r3, [%rd1], 1;",
        "red.global.add.f32 [%rd1], %f1;",
        "ld.global.u32 %r3, [%rd1]; red.global.add.u32 [%rd1], 1;",
        "ld.relaxed.gpu.global.u32 %r3, [%rd1];",
        "ld.volatile.global.u32 %r3, [%rd2]; red.global.add.u32 [%rd1], 1;",
        "L: ld.volatile.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;",
    ] {
        assert!(waits(ordered), "{ordered}");
    }
}
