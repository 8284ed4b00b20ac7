//! Planted faults, each of which must be found in the right place and with the right message.

use std::time::{Duration, Instant};

use simt::{LaunchError, Machine, Options, SimError, Site, Trap, TrapKind, profiles};

use crate::bench::{Arg, Bench};

const FAULTS: &str = include_str!("../ptx/kernels/faults.ptx");
const SOURCE: &str = include_str!("../ptx/kernels/faults.cu");

/// Runs a kernel with one block and returns the trap.
fn caught(kernel: &str, threads: u32, args: impl Fn(&mut Bench) -> Vec<Arg>) -> Trap {
    caught_with(Options { watchdog: 1_000_000, ..Options::default() }, kernel, threads, args)
}

fn caught_with(options: Options, kernel: &str, threads: u32, args: impl Fn(&mut Bench) -> Vec<Arg>) -> Trap {
    let mut b = Bench::load(FAULTS, options);
    let args = args(&mut b);
    match b.launch(kernel, [1, 1, 1], [threads, 1, 1], &args) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("`{kernel}` ends in {other:?}"),
    }
}

/// Returns the line of a kernel that contains `text`.
fn line(kernel: &str, text: &str) -> String {
    let mut lines = SOURCE.lines().enumerate().skip_while(|(_, l)| !l.contains(kernel));
    format!("faults.cu:{}", lines.find(|(_, l)| l.contains(text)).unwrap().0 + 1)
}

/// Checks the kind, kernel, place, block and thread, and that the message contains all of them.
#[track_caller]
fn expect(trap: &Trap, kind: TrapKind, kernel: &str, at: &str, thread: u32) {
    let place = line(kernel, at);
    assert_eq!((trap.kind, trap.kernel.as_str(), trap.place.as_str()), (kind, kernel, place.as_str()), "{trap}");
    assert_eq!((trap.block, trap.thread), ([0; 3], Some([thread, 0, 0])), "{trap}");
    let says = format!("{} in kernel `{kernel}` at {place}, block (0,0,0), thread ({thread},0,0)", trap.message);
    assert_eq!(trap.to_string(), says);
}

/// Checks a trap's memory location, given by its allocation and the offset in it, and returns it.
#[track_caller]
fn site<'t>(trap: &'t Trap, allocation: &str, offset: i64) -> &'t Site {
    let site = trap.site.as_ref().unwrap();
    assert_eq!((site.allocation.as_str(), site.offset), (allocation, offset), "{trap}");
    site
}

#[test]
fn a_store_past_the_end_names_the_buffer_the_thread_and_the_line() {
    let wrong = |b: &mut Bench| vec![Arg::Address(b.buffer(&[0; 64])), Arg::Int(1)];
    // Bounds are checked even without the sanitizer.
    for sanitize in [true, false] {
        let trap = caught_with(Options { sanitize, ..Options::default() }, "out_of_bounds", 64, wrong);
        expect(&trap, TrapKind::OutOfBounds, "out_of_bounds", "= n;", 63);
        let address = site(&trap, "buffer 0", 256).address;
        let place = "0 bytes past the end of buffer 0 (256 bytes)";
        let says = format!("out-of-bounds 4-byte write to global memory at {address:#x}, {place}");
        assert_eq!(trap.message, says);
    }
}

#[test]
fn a_store_between_two_allocations_names_the_nearest() {
    let trap = caught("out_of_bounds", 32, |b| {
        let data = b.buffer(&[0; 64]);
        b.buffer(&[0; 64]);
        // The first thread's element is 100 bytes past the end of the first allocation.
        vec![Arg::Address(data + 352), Arg::Int(1)]
    });
    expect(&trap, TrapKind::OutOfBounds, "out_of_bounds", "= n;", 0);
    let address = site(&trap, "buffer 0", 356).address;
    assert!(trap.message.ends_with("100 bytes past the end of buffer 0 (256 bytes)"), "{}", trap.message);
    assert!(trap.message.contains(&format!("{address:#x}")), "{}", trap.message);
}

#[test]
fn misaligned_stores_are_caught() {
    let trap = caught("misaligned", 1, |b| vec![Arg::Address(b.buffer(&[0; 4]))]);
    expect(&trap, TrapKind::Misaligned, "misaligned", "= 1;", 0);
    let address = site(&trap, "buffer 0", 2).address;
    assert!(
        trap.message.contains(&format!("misaligned 4-byte access to {address:#x} (buffer 0 + 2)")),
        "{}",
        trap.message
    );
}

#[test]
fn reads_of_memory_that_was_never_written_are_caught() {
    let trap = caught("uninitialised_global", 32, |b| {
        let data = b.machine.alloc(128).unwrap();
        b.machine.write(data, &[0; 100]).unwrap();
        vec![Arg::Address(data), Arg::Address(b.buffer(&[0; 32]))]
    });
    expect(&trap, TrapKind::Uninitialised, "uninitialised_global", "= data", 25);
    site(&trap, "buffer 0", 100);
    let says = format!(
        "a value stored to buffer 1 + 100 depends on buffer 0 + 100, which was never written and is read at {} (write it \
         first, or switch the class `uninitialised` off)",
        line("uninitialised_global", "= data")
    );
    assert_eq!(trap.message, says);
}

#[test]
fn reads_of_memory_whose_content_was_undefined_since_are_caught() {
    let trap = caught("uninitialised_global", 32, |b| {
        let data = b.machine.alloc(128).unwrap();
        b.machine.write(data, &[0; 128]).unwrap();
        b.machine.undefine(data + 64, 64, 0xCB).unwrap();
        vec![Arg::Address(data), Arg::Address(b.buffer(&[0; 32]))]
    });
    expect(&trap, TrapKind::Uninitialised, "uninitialised_global", "= data", 16);
    site(&trap, "buffer 0", 64);
}

#[test]
fn reads_of_shared_memory_that_was_never_written_are_caught() {
    let trap = caught("uninitialised_shared", 64, |b| vec![Arg::Address(b.buffer(&[0; 64]))]);
    expect(&trap, TrapKind::Uninitialised, "uninitialised_shared", "= tile", 10);
    site(&trap, "shared memory", 40);
    assert!(trap.message.contains("depends on shared memory + 40, which was never written and is read at"), "{trap}");
}

#[test]
fn warps_that_meet_in_shared_memory_without_a_barrier_race() {
    let trap = caught("shared_race", 64, |b| vec![Arg::Address(b.buffer(&[0; 64]))]);
    // Warp 0 runs first and reads what warp 1 writes later: without a barrier, nothing has been written yet.
    expect(&trap, TrapKind::Uninitialised, "shared_race", "= tile", 0);
    site(&trap, "shared memory", 252);
}

#[test]
fn a_shuffle_from_a_lane_that_is_not_there_is_caught() {
    let trap = caught("absent_lane", 32, |b| vec![Arg::Address(b.buffer(&[0; 32]))]);
    expect(&trap, TrapKind::Shuffle, "absent_lane", "__shfl_sync", 0);
    assert_eq!(trap.message, "a shuffle reads from a lane that is not active (mask 0x0000ffff)");
}

#[test]
fn shared_memory_has_an_end() {
    let args = |b: &mut Bench| vec![Arg::Address(b.buffer(&[0; 32])), Arg::Int(3)];
    let trap = caught("shared_out_of_range", 32, args);
    expect(&trap, TrapKind::OutOfBounds, "shared_out_of_range", "= 1;", 29);
    site(&trap, "shared memory", 128);
    let says = "out-of-bounds 4-byte access to shared memory, at offset 0x80: it has 128 bytes";
    assert_eq!(trap.message, says);
}

#[test]
fn the_watchdog_ends_what_never_ends() {
    let trap = caught("never_ends", 1, |b| vec![Arg::Address(b.buffer(&[0]))]);
    assert_eq!((trap.kind, trap.kernel.as_str()), (TrapKind::Watchdog, "never_ends"), "{trap}");
    assert_eq!(trap.place, line("never_ends", "while"), "{trap}");
    assert_eq!((trap.block, trap.thread), ([0; 3], Some([0; 3])), "{trap}");
    assert_eq!(trap.message, "the block has executed 1000000 warp instructions without ending: warp 0 runs");
}

/// Warp 2 of four spins at line 9. The others wait for it at the barrier in line 12.
const SPINS: &str = r#".version 9.0
.target sm_90
.address_size 64
.file 1 "/home/me/spins.cu"
.visible .entry spins()
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .loc 1 7 5
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.ne.u32 %p1, %r2, 2;
    @%p1 bra $L_end;
$L_spin:
    .loc 1 9 9
    add.u32 %r3, %r3, 1;
    bra $L_spin;
$L_end:
    .loc 1 12 5
    bar.sync 0;
    .loc 1 13 1
    ret;
}
"#;

fn spins(options: Options, deadline: Option<Duration>) -> Trap {
    let mut bench = Bench::load(SPINS, options);
    bench.machine.set_deadline(deadline);
    match bench.launch("spins", [3, 1, 1], [128, 1, 1], &[]) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("it ends in {other:?}"),
    }
}

#[test]
fn the_watchdog_says_where_each_warp_of_the_block_is() {
    let trap = spins(Options { watchdog: 1_000_000, ..Options::default() }, None);
    let says = "the block has executed 1000000 warp instructions without ending: warps 0, 1 and 3 wait at a barrier at \
                spins.cu:12, warp 2 runs in kernel `spins` at spins.cu:9, block (0,0,0), thread (64,0,0)";
    assert_eq!((trap.kind, trap.to_string().as_str()), (TrapKind::Watchdog, says));
}

#[test]
fn a_deadline_ends_a_launch_and_says_where_it_was() {
    let allowed = Duration::from_millis(50);
    let begun = Instant::now();
    let trap = spins(Options { watchdog: u64::MAX, ..Options::default() }, Some(allowed));
    assert!(begun.elapsed() >= allowed);
    assert_eq!(trap.kind, TrapKind::Deadline(allowed));
    // Warp 3 runs after warp 2, whose first time slice may last until the deadline if the host is busy.
    let says = trap.to_string();
    let where_it_was = "warp 2 runs in kernel `spins` at spins.cu:9, block (0,0,0), thread (64,0,0)";
    assert!(says.starts_with("the block did not end within 0.05 s: warps 0") && says.ends_with(where_it_was), "{says}");
}

/// Every block polls a word that is never written, which makes the fair scheduler take over.
const POLLS: &str = r#".version 9.0
.target sm_90
.address_size 64
.file 1 "/home/me/polls.cu"
.visible .entry polls(.param .u64 flag)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
$L_poll:
    .loc 1 4 9
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $L_poll;
    ret;
}
"#;

#[test]
fn blocks_that_wait_for_each_other_for_ever_are_ended_too() {
    for (watchdog, deadline) in [(100_000, None), (u64::MAX, Some(Duration::from_millis(100)))] {
        let mut bench = Bench::load(POLLS, Options { watchdog, ..Options::default() });
        bench.machine.set_deadline(deadline);
        let flag = Arg::Address(bench.buffer(&[0]));
        let Err(LaunchError::Trap(trap)) = bench.launch("polls", [200, 1, 1], [32, 1, 1], &[flag]) else { panic!() };
        assert_eq!((trap.place.as_str(), trap.kernel.as_str()), ("polls.cu:4", "polls"), "{trap}");
        assert!(trap.message.ends_with(": warp 0 runs"), "{trap}");
        let kind = deadline.map_or(TrapKind::Watchdog, TrapKind::Deadline);
        assert_eq!(trap.kind, kind, "{trap}");
    }
}

#[test]
fn a_launch_that_ends_in_time_is_as_without_a_deadline() {
    let counters = |deadline| {
        let mut bench = Bench::new(FAULTS);
        let data = bench.buffer(&[0; 65]);
        bench.machine.set_deadline(deadline);
        bench.launch("out_of_bounds", [1, 1, 1], [64, 1, 1], &[Arg::Address(data), Arg::Int(0)]).unwrap().counters
    };
    assert_eq!(counters(Some(Duration::from_mins(1))), counters(None));
}

#[test]
fn a_failed_assertion_says_which_and_where() {
    let trap = caught("failed_assertion", 8, |b| vec![Arg::Address(b.buffer(&[0, 1, 2, 3, 4, 5, 6, 7]))]);
    expect(&trap, TrapKind::Assert, "failed_assertion", "assert(", 3);
    assert!(trap.message.starts_with("assertion `data[threadIdx.x] != 3` failed ("), "{trap}");
}

#[test]
fn a_trap_names_the_first_thread_that_reached_it() {
    let trap = caught("trapped", 8, |_| Vec::new());
    expect(&trap, TrapKind::Trap, "trapped", "__trap", 5);
}

#[test]
fn a_null_pointer_is_called_that() {
    let trap = caught("null_pointer", 1, |b| vec![Arg::Address(b.buffer(&[0]))]);
    expect(&trap, TrapKind::OutOfBounds, "null_pointer", "= *out", 0);
    assert!(trap.message.contains("a null pointer"), "{trap}");
}

#[test]
fn an_unknown_opcode_is_refused_at_load_with_its_line_and_kernel() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"/home/me/k.cu\"\n.visible .entry k()\n{\n\
                .loc 1 7 3\nwgmma.fence.sync.aligned;\nret;\n}\n";
    let mut machine = Machine::new(profiles().remove(0), Options::default()).unwrap();
    let error = machine.load(text).unwrap_err().to_string();
    // The message has no folders, so reports are the same on every machine.
    assert_eq!(error, "kernel `k`, k.cu:7 (line 8 of the PTX): opcode `wgmma.fence.sync.aligned` is not simulated");
    let other = ".visible .entry other()\n{\nwgmma.commit_group.sync.aligned;\nret;\n}\n";
    let module = machine.load(&format!("{text}{other}")).unwrap();
    let refused: Vec<String> = machine.refused(module).map(|(name, why)| format!("{name}: {why}")).collect();
    let [first, second] = refused.as_slice() else { panic!("{refused:?}") };
    assert!(first.starts_with("k: kernel `k`,") && first.contains("wgmma"), "{first}");
    assert!(second.starts_with("other: kernel `other`,") && second.contains("commit_group"), "{second}");
}

/// A missing argument is the caller's error, not a limit of the device.
#[test]
fn arguments_that_do_not_fit_the_parameters_are_told_apart_from_limits() {
    let mut bench = Bench::new(FAULTS);
    let data = Arg::Address(bench.buffer(&[0; 64]));
    let refused = bench.launch("out_of_bounds", [1, 1, 1], [32, 1, 1], std::slice::from_ref(&data));
    let Err(LaunchError::Refused(SimError::Arguments(message))) = refused else { panic!("{refused:?}") };
    let says = "kernel `out_of_bounds` has 2 parameters, but got 1: `args` needs one per parameter";
    assert_eq!(message, says);
    let large = bench.launch("out_of_bounds", [1, 1, 1], [2048, 1, 1], &[data, Arg::Int(0)]);
    assert!(matches!(large, Err(LaunchError::Refused(SimError::Launch(_)))), "{large:?}");
}

/// In `increments`, every thread adds one to its element. In `exchanges`, it first replaces its element with one.
const ATOMICS: &str = ".version 8.5
.target sm_90
.address_size 64

.visible .entry increments(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    red.global.add.u32 [%rd3], 1;
    ret;
}

.visible .entry exchanges(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    atom.global.exch.b32 %r2, [%rd3], 1;
    red.global.add.u32 [%rd3], 1;
    ret;
}
";

#[test]
fn atomics_that_add_to_what_was_never_written_are_caught_and_exchanges_write_it() {
    let mut b = Bench::new(ATOMICS);
    let data = b.machine.alloc(128).unwrap();
    b.machine.write(data, &[0; 80]).unwrap();
    let mut launch = |kernel: &str| b.launch(kernel, [1, 1, 1], [32, 1, 1], &[Arg::Address(data)]);
    let Err(LaunchError::Trap(trap)) = launch("increments") else { panic!("no trap") };
    assert_eq!((trap.kind, trap.thread), (TrapKind::Uninitialised, Some([20, 0, 0])), "{trap}");
    assert!(trap.message.starts_with("read of 4 bytes at") && trap.site.unwrap().offset == 80, "{}", trap.message);
    launch("exchanges").unwrap();
    launch("increments").unwrap();
    assert_eq!(b.ints(data, 32), [3; 32]);
}
