//! Several threads that store to the same place. Equal values of any size do not race; if lanes of one instruction
//! store different values, a note says so.

use simt::{LaunchError, LaunchReport, Options, Trap, TrapKind};

use crate::bench::{Arg, Bench};

/// Kernel `test(out)` with the address of `out` in `%rd1`, the thread index in `%r1` and the block index in `%r2`.
/// `%p1` is true in the first lane of each warp, `%p2` in the first thread of the first block.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"/home/me/stores.cu\"\n
.visible .entry test(.param .u64 out)\n{{
    .shared .align 16 .b8 tile[2048];
    .reg .pred %p<9>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<19>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    and.b32 %r3, %r1, 31;
    setp.eq.u32 %p1, %r3, 0;
    or.b32 %r4, %r1, %r2;
    setp.eq.u32 %p2, %r4, 0;
    mov.u16 %rs1, 1;
    .loc 1 9 1
    {body}
    ret;
}}\n"
    )
}

/// Runs blocks of this many threads on 1, 2 and 8 host threads. The outcome must be the same.
fn run(body: &str, blocks: u32, threads: u32) -> Result<LaunchReport, LaunchError> {
    let ptx = kernel(body);
    let outcome = |workers: usize| {
        let mut bench = Bench::load(&ptx, Options { threads: Some(workers), ..Options::default() });
        let out = Arg::Address(bench.buffer(&[0; 512]));
        bench.launch("test", [blocks, 1, 1], [threads, 1, 1], &[out])
    };
    let first = outcome(1);
    for workers in [2, 8] {
        assert_eq!(first, outcome(workers), "on {workers} threads");
    }
    first
}

#[track_caller]
fn notes(body: &str, blocks: u32, threads: u32) -> Vec<String> {
    run(body, blocks, threads).unwrap().notes
}

fn caught(body: &str, blocks: u32, threads: u32) -> Trap {
    match run(body, blocks, threads) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("it ends in {other:?}"),
    }
}

/// Returns a body in which the first lane of each warp stores 1 to an element, and the very first lane also stores 1 to
/// the next element.
fn flags(ty: &str, bytes: u32, space: &str, base: &str) -> String {
    format!("@%p1 st.{space}.{ty} [{base}+{bytes}], %rs1;\n@%p2 st.{space}.{ty} [{base}+{}], %rs1;", 2 * bytes)
}

#[test]
fn equal_values_stored_to_one_byte_or_halfword_are_no_race() {
    for (ty, bytes) in [("u8", 1), ("u16", 2)] {
        // Two warps in one block, one warp in each of two blocks, and three warps in each of three blocks.
        for (blocks, threads) in [(1, 64), (2, 32), (3, 96)] {
            assert_eq!(notes(&flags(ty, bytes, "global", "%rd1"), blocks, threads), [""; 0], "{ty} {blocks}");
        }
        let shared = format!("mov.u32 %r5, tile;\n{}", flags(ty, bytes, "shared", "%r5"));
        assert_eq!(notes(&shared, 1, 64), [""; 0], "{ty}");
    }
}

#[test]
fn equal_bytes_are_no_race_where_a_block_has_stored_all_bytes_of_their_word() {
    // Block 0 stores one byte per thread, block 1 only the last byte of the first word.
    let body = "cvt.u64.u32 %rd2, %r1;
    add.s64 %rd3, %rd1, %rd2;
    setp.eq.u32 %p3, %r2, 0;
    @%p3 st.global.u8 [%rd3], %rs1;
    @%p1 st.global.u8 [%rd1+3], %rs1;";
    assert_eq!(notes(body, 2, 32), [""; 0]);
}

#[test]
fn different_values_of_blocks_or_warps_race_at_their_byte() {
    let own = |bits: &str, size: &str, at: u32| {
        format!("cvt.u16.u32 %rs2, {bits};\n@%p2 st.global.u8 [%rd1], %rs1;\n@%p1 st.global.{size} [%rd1+{at}], %rs2;")
    };
    for (size, at) in [("u8", 5), ("u16", 6)] {
        for (bits, blocks, threads) in [("%r2", 2, 32), ("%r1", 1, 64)] {
            let trap = caught(&own(bits, size, at), blocks, threads);
            let site = trap.site.as_ref().unwrap();
            assert_eq!((trap.kind, site.allocation.as_str(), site.offset), (TrapKind::Race, "buffer 0", i64::from(at)));
        }
    }
    // Halfwords that differ only in the upper byte.
    let upper = "shl.b32 %r5, %r2, 8;\ncvt.u16.u32 %rs2, %r5;\n@%p1 st.global.u16 [%rd1+2], %rs2;";
    assert_eq!(caught(upper, 2, 32).site.unwrap().offset, 3);
}

#[test]
fn a_byte_that_is_read_while_another_of_its_word_is_stored_to_is_no_race_and_its_own_is() {
    let body = |read: u32| {
        format!(
            "setp.eq.u32 %p3, %r2, 0;
    @%p3 st.global.u8 [%rd1+6], %rs1;
    @!%p3 ld.global.u8 %rs3, [%rd1+{read}];"
        )
    };
    assert_eq!(notes(&body(5), 2, 1), [""; 0]);
    let trap = caught(&body(6), 2, 1);
    assert_eq!((trap.kind, trap.site.unwrap().offset), (TrapKind::Race, 6));
}

#[test]
fn lanes_that_store_different_values_to_one_address_in_one_instruction_are_noted() {
    let says = |offset: &str, threads: &str| {
        format!(
            "kernel `test`: lanes of a warp store different values to {offset} in one instruction at stores.cu:9; it \
             is undefined which one is kept (block (0,0,0), threads {threads})"
        )
    };
    let found = notes("st.global.u32 [%rd1+4], %r1;", 1, 32);
    assert!(found.len() == 1 && found[0].contains("(buffer 0 + 4)"), "{found:#?}");
    assert!(found[0].contains("which one is kept (block (0,0,0), threads (0,0,0) and (1,0,0))"), "{found:#?}");
    // Pairs of lanes share an address. Lanes 0 and 1 store equal values, lanes 2 and 3 do not.
    let pairs = "shr.u32 %r5, %r1, 1;
    mul.wide.u32 %rd2, %r5, 8;
    add.s64 %rd3, %rd1, %rd2;
    max.u32 %r6, %r1, 2;
    st.global.v2.u32 [%rd3], {%r5, %r6};";
    let found = notes(pairs, 1, 32);
    assert!(found.len() == 1 && found[0].contains("(buffer 0 + 8)"), "{found:#?}");
    assert!(found[0].contains("threads (2,0,0) and (3,0,0))"), "{found:#?}");
    let shared = "mov.u32 %r5, tile;\ncvt.u16.u32 %rs2, %r1;\nst.shared.u8 [%r5+7], %rs2;";
    let found = notes(shared, 1, 32);
    assert!(found.len() == 1 && found[0].starts_with(&says("shared memory + 7", "(0,0,0) and (1,0,0)")), "{found:#?}");
}

#[test]
fn lanes_that_store_equal_values_or_apart_or_by_atomics_are_not() {
    for body in [
        "st.global.u32 [%rd1], 7;",
        "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1;",
        // In descending order, and one byte per lane.
        "sub.u32 %r5, 31, %r1;\nmul.wide.u32 %rd2, %r5, 4;\nadd.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1;",
        "cvt.u64.u32 %rd2, %r1;\nadd.s64 %rd3, %rd1, %rd2;\ncvt.u16.u32 %rs2, %r1;\nst.global.u8 [%rd3], %rs2;",
        "@%p1 st.global.u32 [%rd1], %r1;",
        "atom.global.exch.b32 %r5, [%rd1], %r1;",
    ] {
        assert_eq!(notes(body, 1, 32), [""; 0], "{body}");
    }
    let quiet = Options { sanitize: false, ..Options::default() };
    let mut bench = Bench::load(&kernel("st.global.u32 [%rd1], %r1;"), quiet);
    let out = bench.buffer(&[0]);
    assert_eq!(bench.launch("test", [1, 1, 1], [32, 1, 1], &[Arg::Address(out)]).unwrap().notes, [""; 0]);
    // The value of the last lane, as documented.
    assert_eq!(bench.ints(out, 1), [31]);
}
