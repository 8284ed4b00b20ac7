//! Addresses in registers that are wider than the state space's addresses, and messages about addresses outside every
//! allocation.

use simt::{LaunchError, Options, Trap, TrapKind};

use crate::bench::{Arg, Bench};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// Kernel `test(out)` with the thread index in `%r1` and the address of the thread's word of `out` in `%rd2`.
fn kernel(variables: &str, body: &str) -> String {
    format!(
        "{HEAD}{variables}\n.visible .entry test(.param .u64 out)\n{{
    .local .align 4 .b8 mine[16];
    .shared .align 4 .b8 tile[256];
    .reg .pred %p<9>;
    .reg .b32 %r<19>;
    .reg .b64 %rd<19>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd1, %rd3;
    // The offset of element ~i, as C counts it with an unsigned i: 2^34 - 4 - 4i.
    not.b32 %r2, %r1;
    mul.wide.u32 %rd4, %r2, 4;
    {body}
    st.global.u32 [%rd2], %r9;
    ret;
}}\n"
    )
}

/// Runs one warp with and without the sanitizer and returns its results, which must be the same.
#[track_caller]
fn left(ptx: &str) -> Vec<i32> {
    let [with, without] = [true, false].map(|sanitize| {
        let mut bench = Bench::load(ptx, Options { sanitize, ..Options::default() });
        let out = bench.buffer(&[-1; 32]);
        bench.launch("test", [1, 1, 1], [32, 1, 1], &[Arg::Address(out)]).unwrap();
        bench.ints(out, 32)
    });
    assert_eq!(with, without);
    with
}

#[test]
fn addresses_of_shared_memory_have_32_bits() {
    // Each bit of the upper half of the first address is set, far beyond shared memory. Loads go up, then down.
    let body = "mov.u64 %rd5, tile;
    add.s64 %rd6, %rd5, %rd3;
    add.s64 %rd7, %rd6, 0x7700000000;
    st.shared.u32 [%rd7], %r1;
    ld.shared.u32 %r3, [%rd6];
    bar.sync 0;
    st.shared.u32 [%rd7+128], %r3;
    bar.sync 0;
    add.s64 %rd8, %rd5, 160;
    add.s64 %rd9, %rd8, %rd4;
    ld.shared.u32 %r9, [%rd9];";
    // Element 40 - 1 - i. Values at index 32 and above repeat the first ones.
    assert_eq!(left(&kernel("", body)), (0..32).map(|i| (39 - i) % 32).collect::<Vec<_>>());
}

#[test]
fn addresses_of_local_memory_have_32_bits() {
    let body = "mov.u64 %rd5, mine;
    cvta.local.u64 %rd6, %rd5;
    cvta.to.local.u64 %rd6, %rd6;
    st.local.u32 [%rd6+8], %r1;
    add.s64 %rd7, %rd6, 0x300000008;
    ld.local.u32 %r9, [%rd7];";
    assert_eq!(left(&kernel("", body)), (0..32).collect::<Vec<_>>());
}

#[test]
fn addresses_of_constants_have_32_bits() {
    let values: Vec<String> = (0..40).map(|k| (k * 3).to_string()).collect();
    let table = format!(".const .align 4 .u32 table[40] = {{{}}};", values.join(", "));
    let body = "mov.u64 %rd5, table;
    add.s64 %rd6, %rd5, 160;
    add.s64 %rd7, %rd6, %rd4;
    ld.const.u32 %r9, [%rd7];";
    assert_eq!(left(&kernel(&table, body)), (0..32).map(|i| 3 * (39 - i)).collect::<Vec<_>>());
}

#[test]
fn addresses_of_atomics_on_shared_memory_have_32_bits() {
    let body = "mov.u64 %rd5, tile;
    add.s64 %rd6, %rd5, %rd3;
    st.shared.u32 [%rd6], 5;
    add.s64 %rd7, %rd6, 0x500000000;
    atom.shared.add.u32 %r3, [%rd7], %r1;
    ld.shared.u32 %r9, [%rd6];";
    assert_eq!(left(&kernel("", body)), (5..37).collect::<Vec<_>>());
}

/// Reads one word at an address and returns the trap.
fn caught(ptx: &str, address: impl Fn(&mut Bench) -> u64) -> Trap {
    let mut bench = Bench::new(ptx);
    let at = address(&mut bench);
    match bench.launch("test", [1, 1, 1], [1, 1, 1], &[Arg::Address(at)]) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("it ends in {other:?}"),
    }
}

/// Kernel that reads the word at its argument.
const READS: &str = ".visible .entry test(.param .u64 at)\n{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    ld.global.u32 %r1, [%rd1];
    ret;
}\n";

fn message(ptx: &str, address: impl Fn(&mut Bench) -> u64) -> String {
    let trap = caught(ptx, address);
    assert_eq!(trap.kind, TrapKind::OutOfBounds);
    trap.message
}

#[test]
fn an_address_outside_is_named_by_the_nearest_allocation_on_either_side() {
    let reads = format!("{HEAD}{READS}");
    // Returns an address relative to the second of two buffers of 128 bytes, which starts 512 bytes after the first.
    let allocate_between = |from_second: u64| {
        move |b: &mut Bench| {
            let (first, second) = (b.buffer(&[0; 32]), b.buffer(&[0; 32]));
            assert_eq!(second - first, 512);
            b.machine.name_memory(first, "buffer `first`");
            b.machine.name_memory(second, "buffer `second`");
            second.wrapping_sub(from_second)
        }
    };
    for (from_second, says) in [
        (16, "16 bytes before buffer `second` (128 bytes)"),
        (384, "0 bytes past the end of buffer `first` (128 bytes)"),
        (284, "100 bytes past the end of buffer `first` (128 bytes)"),
        (0_u64.wrapping_sub(132), "4 bytes past the end of buffer `second` (128 bytes)"),
        // Only the workspace of cooperative groups is before the first buffer, and programs do not know about it.
        (768, "256 bytes before buffer `first` (128 bytes)"),
    ] {
        let text = message(&reads, allocate_between(from_second));
        assert!(text.starts_with("out-of-bounds 4-byte read of global memory at 0x7"), "{text}");
        assert!(text.ends_with(&format!(", {says}")), "{text}");
    }
    let trap = caught(&reads, allocate_between(16));
    let site = trap.site.unwrap();
    assert_eq!((site.allocation.as_str(), site.offset), ("buffer `second`", -16));
    assert_eq!(site.to_string(), format!("{:#x} (buffer `second` - 16)", site.address));
    assert!(message(&reads, |_| 8).ends_with("at 0x8, a null pointer"));
    let across = |b: &mut Bench| {
        let five = b.machine.alloc(5).unwrap();
        b.machine.name_memory(five, "buffer `five`");
        five + 4
    };
    assert!(message(&reads, across).ends_with("at offset 4, across the end of buffer `five` (5 bytes)"));
}

#[test]
fn an_address_before_the_start_of_shared_memory_is_said_to_be_that() {
    let body = "mov.u32 %r5, tile;\nld.shared.u32 %r9, [%r5+-8];";
    let text = message(&kernel("", body), |b| b.buffer(&[0; 32]));
    assert_eq!(text, "out-of-bounds 4-byte access to shared memory, 8 bytes before its start: it has 256 bytes");
}

#[test]
fn variables_of_the_module_are_named_as_in_the_source_and_those_of_the_compiler_never() {
    let variables = ".global .align 1 .b8 $str[8];\n.global .align 4 .b8 _ZN4mine5tableE[64];\n";
    let ptx = format!("{HEAD}{variables}.global .align 1 .b8 __last[8];\n{READS}");
    let address_behind = |bytes: u64| {
        move |b: &mut Bench| {
            let (at, size) = b.machine.variable(b.module, "_ZN4mine5tableE").unwrap();
            at + size + bytes
        }
    };
    assert!(message(&ptx, address_behind(0)).ends_with(", 0 bytes past the end of variable `table` (64 bytes)"));
    // The address is closer to a variable that the compiler placed after `table`.
    assert!(message(&ptx, address_behind(440)).ends_with(", 440 bytes past the end of variable `table` (64 bytes)"));
}
