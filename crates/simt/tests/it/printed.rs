//! What kernels print before a trap, beyond the limit, and without end.

use std::fmt::Write as _;
use std::time::Duration;

use simt::{LaunchError, Options, TrapKind};

use crate::bench::{Arg, Bench};

/// Every block prints its index. Then block n traps. If `waits`, earlier blocks poll a word that stays zero.
const PRINTS: &str = r"
.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[10] = {98, 108, 111, 99, 107, 32, 37, 117, 10, 0};
.visible .entry prints(.param .u64 word, .param .u32 n, .param .u32 waits)
{
    .local .align 8 .b8 values[8];
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd5, [word];
    ld.param.u32 %r2, [n];
    ld.param.u32 %r3, [waits];
    mov.u32 %r1, %ctaid.x;
    mov.u64 %rd1, values;
    cvta.local.u64 %rd2, %rd1;
    st.local.u32 [values], %r1;
    mov.u64 %rd3, text;
    cvta.global.u64 %rd4, %rd3;
    {
    .param .b64 param0;
    st.param.b64 [param0+0], %rd4;
    .param .b64 param1;
    st.param.b64 [param1+0], %rd2;
    .param .b32 retval0;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 %r4, [retval0+0];
    }
    setp.ne.u32 %p1, %r1, %r2;
    @%p1 bra $L_on;
    trap;
$L_on:
    setp.gt.u32 %p2, %r1, %r2;
    @%p2 bra $L_end;
    setp.eq.u32 %p3, %r3, 0;
    @%p3 bra $L_end;
$L_poll:
    ld.volatile.global.u32 %r5, [%rd5];
    setp.eq.u32 %p3, %r5, 0;
    @%p3 bra $L_poll;
$L_end:
    ret;
}
";

/// Returns what a launch of ten blocks has printed when block n traps.
fn printed(n: i32, waits: bool, cooperative: bool, workers: usize) -> String {
    let options = Options { threads: Some(workers), watchdog: 10_000_000, ..Options::default() };
    let mut bench = Bench::load(PRINTS, options);
    let word = bench.buffer(&[0]);
    let args = [Arg::Address(word), Arg::Int(n), Arg::Int(i32::from(waits))];
    match bench.launch_with("prints", ([10, 1, 1], [1, 1, 1], 0, cooperative), &args) {
        Err(LaunchError::Trap(trap)) => trap.printed,
        other => panic!("it ends in {other:?}"),
    }
}

#[test]
fn a_trap_keeps_what_its_block_and_those_before_it_have_printed() {
    for workers in [1, 2, 8] {
        for (waits, cooperative) in [(false, false), (false, true), (true, false), (true, true)] {
            let text = printed(3, waits, cooperative, workers);
            assert_eq!(text, "block 0\nblock 1\nblock 2\nblock 3\n", "{waits} {cooperative} {workers}");
        }
    }
}

#[test]
fn a_grid_keeps_the_first_mebibyte_however_many_blocks_print() {
    const BLOCKS: u32 = 100_000;
    let mut whole = String::new();
    (0..BLOCKS).for_each(|block| writeln!(whole, "block {block}").unwrap());
    assert!(whole.len() > 1 << 20);
    for workers in [1, 4] {
        let mut bench = Bench::load(PRINTS, Options { threads: Some(workers), ..Options::default() });
        let args = [Arg::Address(bench.buffer(&[0])), Arg::Int(-1), Arg::Int(0)];
        let printed = bench.launch("prints", [BLOCKS, 1, 1], [1, 1, 1], &args).unwrap().printed;
        assert!(printed == whole[..1 << 20], "{} bytes", printed.len());
    }
}

/// Returns a kernel whose warp prints 32 lines of 200 characters in all but two of its instructions, and never ends.
fn prints_for_ever() -> String {
    let text: Vec<String> = [b'x'; 200].iter().chain(b"\n\0").map(u8::to_string).collect();
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);\n\
         .global .align 1 .b8 text[202] = {{{}}};\n\
         .visible .entry chats()\n{{\n.reg .b32 %r<2>;\n.reg .b64 %rd<3>;\n\
         mov.u64 %rd1, text;\ncvta.global.u64 %rd2, %rd1;\n\
         $L_on:\n{{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd2;\n.param .b64 param1;\n\
         st.param.b64 [param1+0], 0;\n.param .b32 retval0;\ncall.uni (retval0), vprintf, (param0, param1);\n\
         ld.param.b32 %r1, [retval0+0];\n}}\nbra.uni $L_on;\n}}\n",
        text.join(", ")
    )
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn a_deadline_holds_though_every_instruction_takes_long() {
    let options = Options { watchdog: u64::MAX, threads: Some(1), ..Options::default() };
    let mut bench = Bench::load(&prints_for_ever(), options);
    let allowed = Duration::from_millis(100);
    let begun = processor_time();
    bench.machine.set_deadline(Some(allowed));
    let Err(LaunchError::Trap(trap)) = bench.launch("chats", [1, 1, 1], [32, 1, 1], &[]) else { panic!("it ends") };
    assert_eq!(trap.kind, TrapKind::Deadline(allowed), "{trap}");
    // Dropped output costs little, so the time is checked often enough. Without this, the launch took half a minute.
    let took = processor_time().saturating_sub(begun);
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert_eq!(trap.printed.len(), 1 << 20);
}
