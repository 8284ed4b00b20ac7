//! What a kernel has printed before it traps.

use simt::{LaunchError, Options};

use crate::bench::{Arg, Bench};

/// Every block prints its number. Then block n traps, and those before it poll a word that stays zero where `waits` is not.
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

/// What a launch of ten blocks has printed when block n traps.
fn printed(n: i32, waits: bool, cooperative: bool, workers: usize) -> String {
    let options = Options { threads: Some(workers), watchdog: 10_000_000, ..Options::default() };
    let mut bench = Bench::with(PRINTS, options);
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
