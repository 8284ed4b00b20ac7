//! What a kernel requests from the system: clocks, output, the heap, calls. Also how a kernel ends if it requests too
//! much.

use simt::{LaunchError, Options, Trap, TrapKind};

use crate::bench::{Arg, Bench};

const KERNELS: &str = include_str!("../ptx/kernels/system.ptx");
/// The same source, compiled with debug information and without optimisation.
const DEBUG: &str = include_str!("../ptx/kernels/system_debug.ptx");
const SOURCE: &str = include_str!("../ptx/kernels/system.cu");

const ONE: [u32; 3] = [1, 1, 1];

/// Returns the source line that contains `text`, searching after the line that contains `after`.
fn line(after: &str, text: &str) -> String {
    let mut lines = SOURCE.lines().enumerate().skip_while(|(_, l)| !l.contains(after));
    format!("system.cu:{}", lines.find(|(_, l)| l.contains(text)).unwrap().0 + 1)
}

/// Returns the trap of a kernel in this module.
fn caught_in(ptx: &str, kernel: &str, threads: u32, args: impl Fn(&mut Bench) -> Vec<Arg>) -> Trap {
    let mut b = Bench::new(ptx);
    let args = args(&mut b);
    match b.launch(kernel, ONE, [threads, 1, 1], &args) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("`{kernel}` ends in {other:?}"),
    }
}

fn out(b: &mut Bench, count: usize) -> Vec<Arg> {
    vec![Arg::Address(b.buffer(&vec![0; count]))]
}

#[test]
fn clocks_move_with_the_instructions_and_the_same_way_every_time() {
    let moved = |steps: i32, threads: usize| {
        let mut b = Bench::load(KERNELS, Options { threads: Some(threads), ..Options::default() });
        let (out, data) = (b.buffer(&[0; 6]), b.buffer(&[0; 32]));
        let args = [Arg::Address(out), Arg::Address(data), Arg::Int(steps)];
        let report = b.launch("clocks", ONE, [32, 1, 1], &args).unwrap();
        let moved: Vec<u64> =
            b.ints(out, 6).chunks_exact(2).map(|c| u64::from(c[0] as u32) | (c[1] as u64) << 32).collect();
        (moved, report.counters.warp_instructions)
    };
    let (few, all) = moved(100, 1);
    // The intervals are nested, and each includes one warp's loop, whose iterations have at least a store and an
    // addition.
    assert!(200 < few[0] && few[0] < few[1] && few[1] < few[2] && few[2] < all, "{few:?} of {all}");
    let (many, all_of_many) = moved(300, 1);
    for k in 0..3 {
        assert_eq!(many[k] - few[k], all_of_many - all, "clock {k}");
    }
    assert_eq!(moved(300, 4).0, many);
}

#[test]
fn a_thread_that_waits_for_its_clock_goes_on() {
    let mut b = Bench::new(KERNELS);
    let data = b.buffer(&[0; 64]);
    b.launch("waits", ONE, [64, 1, 1], &[Arg::Address(data), Arg::Bytes(100_000_i64.to_le_bytes().to_vec())]).unwrap();
    assert_eq!(b.ints(data, 64), [1; 64]);
}

#[test]
fn what_is_printed_is_what_c_prints() {
    let mut b = Bench::new(KERNELS);
    let (out, text) = (b.buffer(&[0]), b.buffer(&[0]));
    let report = b.launch("formats", ONE, ONE, &[Arg::Address(out), Arg::Address(text)]).unwrap();
    // These lines are the output of a C library's `printf`.
    let expected = "[   42|42   |00042|+42] [ff|0XFF|10|4294967295]\n\
                    [   3.142|2.5     |1.234568e+04|1e-07|1E+20] [x|   ab|cd   |ef] 100%\n\
                    [-5000000000|123456789abc|-3|200|7] [    12|1.00]\n";
    assert_eq!(report.printed, expected);
    assert_eq!(b.ints(out, 1), [8]);
}

#[test]
fn the_heap_ends_in_null_and_what_is_given_back_is_there_again() {
    // Room for 20 pieces. Three threads want eight each, so the last one gets four.
    let mut b = Bench::load(KERNELS, Options { heap: 20 * 1024 + 512, ..Options::default() });
    let data = b.buffer(&[0; 3]);
    for _ in 0..2 {
        b.launch("exhausts", ONE, [3, 1, 1], &[Arg::Address(data), Arg::Int(1024)]).unwrap();
        let mut got = b.ints(data, 3);
        got.sort_unstable();
        assert_eq!(got.iter().sum::<i32>(), 20, "{got:?}");
        assert!(got.iter().all(|&n| n <= 8), "{got:?}");
    }
    b.launch("exhausts", ONE, ONE, &[Arg::Address(data), Arg::Int(1 << 20)]).unwrap();
    assert_eq!(b.ints(data, 1), [0]);
}

#[test]
fn what_malloc_did_not_give_is_not_freed() {
    for ptx in [KERNELS, DEBUG] {
        let trap = caught_in(ptx, "frees_twice", 4, |b| out(b, 4));
        assert_eq!((trap.kind, trap.thread), (TrapKind::Heap, Some([2, 0, 0])), "{trap}");
        assert_eq!((trap.kernel.as_str(), trap.place), ("frees_twice", line("threadIdx.x == 2", "free(piece)")));
        let trap = caught_in(ptx, "frees_a_buffer", 4, |b| out(b, 8));
        assert_eq!((trap.kind, trap.thread), (TrapKind::Heap, Some([1, 0, 0])), "{trap}");
        assert_eq!(trap.place, line("frees_a_buffer", "free(out + 4)"));
        assert!(trap.message.contains("which `malloc` did not return, or which was already freed"), "{}", trap.message);
    }
}

#[test]
fn what_was_freed_is_out_of_bounds() {
    let trap = caught_in(KERNELS, "reads_what_was_freed", 1, |b| out(b, 1));
    assert_eq!(
        (trap.kind, trap.place),
        (TrapKind::OutOfBounds, line("reads_what_was_freed", "= piece[5]")),
        "{}",
        trap.message
    );
}

#[test]
fn recursion_goes_deep_and_ends_in_words_where_it_never_ends() {
    for ptx in [KERNELS, DEBUG] {
        let mut b = Bench::new(ptx);
        let data = b.buffer(&[0; 40]);
        b.launch("recurses", ONE, [40, 1, 1], &[Arg::Address(data), Arg::Int(500)]).unwrap();
        let expected: Vec<i32> = (0..40).map(|t| (500 + t) * (501 + t) / 2).collect();
        assert_eq!(b.ints(data, 40), expected);
        let trap = caught_in(ptx, "recurses_without_end", 32, |b| out(b, 32));
        assert_eq!(trap.kind, TrapKind::StackOverflow, "{trap}");
        assert_eq!(
            (trap.kernel.as_str(), &trap.place),
            ("recurses_without_end", &line("int without_end", "")),
            "{trap}"
        );
        assert!(trap.message.starts_with("stack overflow: calls are nested "), "{}", trap.message);
    }
}

#[test]
fn a_call_through_what_is_no_function_says_so() {
    for ptx in [KERNELS, DEBUG] {
        let trap = caught_in(ptx, "calls_nothing", 32, |b| [out(b, 1), vec![Arg::Address(0x1234)]].concat());
        assert_eq!((trap.kind, trap.thread), (TrapKind::BadCall, Some([3, 0, 0])), "{trap}");
        assert_eq!(trap.place, line("calls_nothing", "function(1)"));
        assert_eq!(trap.message, "a call to 0x1234, which is not a function");
    }
}

#[test]
fn functions_are_overridden() {
    for ptx in [KERNELS, DEBUG] {
        let mut b = Bench::new(ptx);
        let data = b.buffer(&[0; 64]);
        b.launch("overrides", ONE, [64, 1, 1], &[Arg::Address(data)]).unwrap();
        let expected: Vec<i32> = (0..64).map(|x| [x, x * x, 6 * x * x][x as usize % 3]).collect();
        assert_eq!(b.ints(data, 64), expected);
    }
}

#[test]
fn an_assertion_in_a_function_stands_where_it_was_written() {
    for ptx in [KERNELS, DEBUG] {
        let values: Vec<i32> = (0..64).map(|t| i32::from(t != 37)).collect();
        let trap = caught_in(ptx, "asserts_in_a_function", 64, |b| {
            vec![Arg::Address(b.buffer(&values)), Arg::Address(b.buffer(&[0; 64]))]
        });
        assert_eq!((trap.kind, trap.block, trap.thread), (TrapKind::Assert, [0, 0, 0], Some([37, 0, 0])), "{trap}");
        let place = line("int checked", "assert(");
        assert_eq!((trap.kernel.as_str(), &trap.place), ("asserts_in_a_function", &place));
        assert_eq!(trap.message, format!("assertion `data[at] > 0` failed ({place})"));
    }
}

#[test]
fn a_kernel_with_debug_information_computes_the_same() {
    let values: Vec<i32> = (0..128).map(|i| i * 37 % 101).collect();
    let mut counted = Vec::new();
    for ptx in [KERNELS, DEBUG] {
        let mut b = Bench::new(ptx);
        let (data, out) = (b.buffer(&values), b.buffer(&[0]));
        let report = b.launch("plain_sum", ONE, [128, 1, 1], &[data, out].map(Arg::Address)).unwrap();
        assert_eq!(b.ints(out, 1), [values.iter().sum::<i32>()]);
        // The memory accesses are determined by the program, the number of instructions by the compiler.
        assert_eq!((report.counters.global_load.requests, report.counters.global_store.requests), (4, 1));
        counted.push(report.counters.warp_instructions);
    }
    assert!(counted[0] < counted[1], "{counted:?}");
}
