//! Planted races with correct counterparts: what the sanitizer must report, and what it must not.

use simt::{FindingClass, Ignored, LaunchError, LaunchReport, Options, Site, Trap, TrapKind};

use crate::bench::{Arg, Bench};

const KERNELS: &str = include_str!("../ptx/kernels/sanitizer.ptx");
const SOURCE: &str = include_str!("../ptx/kernels/sanitizer.cu");

/// A launch: kernel, number of blocks, number of threads, and whether it is cooperative.
#[derive(Clone, Copy)]
struct Shape(&'static str, u32, u32, bool);

type Args<'a> = &'a dyn Fn(&mut Bench) -> Vec<Arg>;

/// Runs a kernel on 1, 2 and 8 host threads. The outcome must be the same.
fn run(shape: Shape, args: Args<'_>) -> Result<LaunchReport, LaunchError> {
    let Shape(kernel, blocks, threads, cooperative) = shape;
    let outcome = |workers: usize| {
        let options = Options { watchdog: 5_000_000, threads: Some(workers), ..Options::default() };
        let mut bench = Bench::load(KERNELS, options);
        let args = args(&mut bench);
        bench.launch_with(kernel, ([blocks, 1, 1], [threads, 1, 1], 0, cooperative), &args)
    };
    let first = outcome(1);
    for workers in [2, 8] {
        assert_eq!(first, outcome(workers), "`{kernel}` on {workers} threads");
    }
    first
}

fn caught(shape: Shape, args: Args<'_>) -> Trap {
    match run(shape, args) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("`{}` ends in {other:?}", shape.0),
    }
}

/// Runs a kernel that has no fault and returns its notes.
fn clean(shape: Shape, args: Args<'_>) -> Vec<String> {
    run(shape, args).unwrap_or_else(|e| panic!("`{}`: {e}", shape.0)).notes
}

/// Returns the source line that contains `text`, searching after the line that contains `after`.
fn line(after: &str, text: &str) -> String {
    let mut lines = SOURCE.lines().enumerate().skip_while(|(_, l)| !l.contains(after));
    let (at, _) = lines.find(|(_, l)| l.contains(text)).unwrap();
    format!("sanitizer.cu:{}", at + 1)
}

fn ints(counts: &'static [i32]) -> impl Fn(&mut Bench) -> Vec<Arg> {
    move |b| counts.iter().map(|&n| Arg::Address(b.buffer(&(0..n).map(|i| i % 29).collect::<Vec<_>>()))).collect()
}

/// Returns arguments that are buffers of zeros.
fn zeros(counts: &'static [usize]) -> impl Fn(&mut Bench) -> Vec<Arg> {
    move |b| counts.iter().map(|&n| Arg::Address(b.buffer(&vec![0; n]))).collect()
}

fn with_ints(counts: &'static [i32], numbers: &'static [i32]) -> impl Fn(&mut Bench) -> Vec<Arg> {
    move |b| ints(counts)(b).into_iter().chain(numbers.iter().map(|&n| Arg::Int(n))).collect()
}

/// Checks every field of a report.
#[track_caller]
fn expect(trap: &Trap, kind: TrapKind, place: &str, block: u32, thread: u32, site: (&str, i64)) {
    assert_eq!(trap.kind, kind, "{trap}");
    assert_eq!((trap.block, trap.thread), ([block, 0, 0], Some([thread, 0, 0])), "{trap}");
    assert_eq!(trap.place, place, "{trap}");
    let Site { address, allocation, offset } = trap.site.as_ref().unwrap();
    assert_eq!((allocation.as_str(), *offset), site, "{trap}");
    let text = trap.to_string();
    assert!(text.contains(&format!("({allocation} + {offset})")) || *address == offset.unsigned_abs(), "{text}");
    assert!(text.contains(&format!("in kernel `{}` at {place}", trap.kernel)), "{text}");
}

#[test]
fn warps_that_meet_in_global_memory_without_a_barrier_race() {
    let trap = caught(Shape("global_race", 1, 64, false), &with_ints(&[64], &[64]));
    // Warp 0 runs first: it reads word 32 and writes words 0 to 31. Then warp 1 writes word 32 and reads word 0.
    expect(&trap, TrapKind::Race, &line("global_race(", "% n]"), 0, 63, ("buffer 0", 0));
    assert!(trap.message.contains(&format!("thread (0,0,0) at {}", line("global_race(", "+= next"))), "{trap}");
    assert_eq!(clean(Shape("global_race_mended", 1, 64, false), &with_ints(&[64], &[64])), [""; 0]);
}

#[test]
fn blocks_that_store_to_the_same_word_race() {
    let trap = caught(Shape("block_race", 3, 64, false), &zeros(&[200]));
    // The last thread of block 0 and the first thread of block 1 store to word 64.
    expect(&trap, TrapKind::Race, &line("block_race(", "= -1"), 1, 0, ("buffer 0", 256));
    let other = format!("thread (63,0,0) of block (0,0,0) at {}", line("block_race(", "= threadIdx.x"));
    assert!(trap.message.contains(&other), "{trap}");
    assert_eq!(clean(Shape("block_race_mended", 3, 64, false), &zeros(&[200])), [""; 0]);
}

#[test]
fn a_stencil_in_place_races_with_its_neighbours() {
    let place = |b: &mut Bench| {
        let data = b.buffer(&[1; 96]);
        vec![Arg::Address(data), Arg::Address(data), Arg::Int(96)]
    };
    let trap = caught(Shape("stencil", 3, 32, false), &place);
    // Block 1 reads word 31, which thread 31 of block 0 writes. Block 0 reads word 32, which thread 0 of block 1
    // writes.
    expect(&trap, TrapKind::Race, &line("stencil(", "left ="), 1, 0, ("buffer 0", 124));
    assert!(trap.message.contains("written by thread (31,0,0) of block (0,0,0)"), "{trap}");
    let apart = |b: &mut Bench| {
        let (from, to) = (b.buffer(&[1; 96]), b.buffer(&[0; 96]));
        vec![Arg::Address(from), Arg::Address(to), Arg::Int(96)]
    };
    assert_eq!(clean(Shape("stencil", 3, 32, false), &apart), [""; 0]);
}

#[test]
fn blocks_that_all_store_the_same_value_do_not_race() {
    assert_eq!(clean(Shape("same_flag", 5, 64, false), &zeros(&[1, 1])), [""; 0]);
}

#[test]
fn a_counter_that_is_cleared_while_others_add_is_a_race() {
    let trap = caught(Shape("clears_counter", 4, 32, false), &zeros(&[1]));
    expect(&trap, TrapKind::Race, &line("clears_counter(", "atomicAdd"), 1, 31, ("buffer 0", 0));
    assert!(trap.message.contains("written by thread (0,0,0) of block (0,0,0)"), "{trap}");
}

#[test]
fn what_the_last_block_reads_needs_a_fence_before_the_ticket() {
    let args = |b: &mut Bench| {
        let data = b.buffer(&(0..20).collect::<Vec<_>>());
        vec![data, b.buffer(&[0; 20]), b.buffer(&[0]), b.buffer(&[0])].into_iter().map(Arg::Address).collect()
    };
    let trap = caught(Shape("no_fence", 20, 32, false), &args);
    expect(&trap, TrapKind::Race, &line("last_block(", "all +="), 19, 0, ("buffer 1", 0));
    assert!(trap.message.contains("written by thread (0,0,0) of block (0,0,0)"), "{trap}");
    assert_eq!(clean(Shape("no_fence_mended", 20, 32, false), &args), [""; 0]);
}

#[test]
fn a_missing_barrier_of_the_grid_is_a_race_of_blocks() {
    let trap = caught(Shape("grid_race", 4, 64, true), &with_ints(&[256], &[256, 4]));
    assert_eq!((trap.kind, trap.site.as_ref().unwrap().allocation.as_str()), (TrapKind::Race, "buffer 0"), "{trap}");
    assert!(trap.message.contains(&line("grid_steps(", "= other + 1")) || trap.place == line("grid_steps(", "= other"));
    assert_eq!(clean(Shape("grid_race_mended", 4, 64, true), &with_ints(&[256], &[256, 4])), [""; 0]);
}

#[test]
fn lanes_of_a_warp_need_a_synchronisation_between_store_and_load() {
    let notes = clean(Shape("warp_race", 1, 32, false), &ints(&[64, 32]));
    let (read, write) = (line("warp_tree(", "const int value"), line("warp_tree(", "= value"));
    // The compiler may load the values of all steps before it stores anything.
    let wanted = format!("shared memory + 4 is written at {write} and was read at {read} by another lane of the warp");
    assert!(notes.iter().any(|n| n.contains(&wanted)), "{notes:#?}");
    let threads = "no `__syncwarp` between; lanes do not run in lockstep since Volta (block (0,0,0), threads (1,0,0) \
                   and (0,0,0))";
    assert!(notes.iter().any(|n| n.contains(threads)), "{notes:#?}");
    assert_eq!(clean(Shape("warp_race_mended", 1, 32, false), &ints(&[64, 32])), [""; 0]);
    let notes = clean(Shape("warp_volatile", 1, 32, false), &ints(&[64, 32]));
    let (first, second) = (line("volatile int *v", "lane + 32]"), line("volatile int *v", "lane + 16]"));
    let wanted = format!("is read at {second} and was written at {first} by another lane of the warp");
    assert!(notes.iter().any(|n| n.contains(&wanted)), "{notes:#?}");
}

#[test]
fn a_plain_read_that_meets_an_atomic_is_noted() {
    let notes = clean(Shape("early_read", 1, 64, false), &ints(&[64, 64]));
    let (read, add) = (line("counted(", "= bins["), line("counted(", "atomicAdd"));
    let wanted = format!("is changed by an atomic at {add} and was read at {read} by another thread with no barrier");
    assert!(notes.iter().any(|n| n.contains(&wanted)), "{notes:#?}");
    assert_eq!(clean(Shape("early_read_mended", 1, 64, false), &ints(&[64, 64])), [""; 0]);
}

#[test]
fn a_plain_store_that_meets_an_atomic_is_a_race() {
    let trap = caught(Shape("late_clear", 1, 64, false), &ints(&[64, 64]));
    assert_eq!(trap.kind, TrapKind::Race, "{trap}");
    assert_eq!(trap.site.as_ref().unwrap().allocation, "shared memory");
}

#[test]
fn the_target_of_an_asynchronous_copy_is_not_touched_before_the_wait() {
    let trap = caught(Shape("copy_not_awaited", 1, 64, false), &ints(&[128, 64]));
    expect(&trap, TrapKind::Race, &line("void copied(", "= tile["), 0, 0, ("shared memory", 508));
    assert!(trap.message.contains("with no wait for the asynchronous copy into it at"), "{trap}");
    let trap = caught(Shape("copy_no_barrier", 1, 64, false), &ints(&[128, 64]));
    assert_eq!(trap.kind, TrapKind::Uninitialised, "{trap}");
    assert_eq!(clean(Shape("copy_mended", 1, 64, false), &ints(&[128, 64])), [""; 0]);
}

#[test]
fn a_wait_that_lets_too_many_groups_pass_waits_for_nothing() {
    let trap = caught(Shape("stages_early", 1, 32, false), &ints(&[64, 32]));
    expect(&trap, TrapKind::Race, &line("two_stages(", "sum = tile"), 0, 0, ("shared memory", 124));
    assert_eq!(clean(Shape("stages_mended", 1, 32, false), &ints(&[64, 32])), [""; 0]);
}

#[test]
fn reads_of_local_memory_that_was_never_written_are_caught() {
    let trap = caught(Shape("local_sum", 1, 8, false), &with_ints(&[32, 8], &[17]));
    // `data[i]` is i, up to 28. Thread 0 has written words 0 to 15 and reads word 16.
    expect(&trap, TrapKind::Uninitialised, &line("local_sum(", "= sum"), 0, 0, ("local memory", 64));
    assert!(trap.message.contains(&format!("is read at {}", line("local_sum(", "sum +="))), "{trap}");
    assert_eq!(clean(Shape("local_sum", 1, 8, false), &with_ints(&[32, 8], &[16])), [""; 0]);
}

#[test]
fn local_memory_has_an_end() {
    let trap = caught(Shape("local_out_of_range", 1, 20, false), &ints(&[20, 20]));
    expect(&trap, TrapKind::OutOfBounds, &line("local_out_of_range(", "= mine["), 0, 8, ("local memory", 32));
}

#[test]
fn a_barrier_reached_from_two_places_is_noted() {
    let notes = clean(Shape("two_places", 1, 64, false), &zeros(&[64]));
    let (one, other) = (line("two_places(", "__syncthreads"), line("= 2;", "__syncthreads"));
    let wanted = format!("a block barrier is reached at {one} by some threads and at {other} by others");
    assert!(notes.iter().any(|n| n.contains(&wanted)), "{notes:#?}");
}

#[test]
fn a_barrier_that_both_sides_of_a_branch_reach_is_caught() {
    let trap = caught(Shape("both_sides", 1, 32, false), &zeros(&[32]));
    assert_eq!(trap.kind, TrapKind::Barrier, "{trap}");
    assert!(trap.place.starts_with("sanitizer.cu:") && trap.message.contains("lanes 0x"), "{trap}");
}

#[test]
fn counts_of_a_barrier_must_agree() {
    let trap = caught(Shape("counts_differ", 1, 128, false), &zeros(&[128]));
    assert_eq!((trap.kind, trap.thread), (TrapKind::Barrier, Some([32, 0, 0])), "{trap}");
    let (here, there) = (line("counts_differ(", "1, 96"), line("counts_differ(", "1, 64"));
    assert_eq!((trap.place.as_str(), trap.block), (here.as_str(), [0, 0, 0]), "{trap}");
    assert_eq!(trap.message, format!("barrier 1 waits for 96 threads here, but for 64 at {there}"));
}

#[test]
fn a_barrier_that_too_few_threads_reach_is_a_deadlock() {
    let trap = caught(Shape("too_few", 1, 96, false), &zeros(&[96]));
    assert_eq!((trap.kind, trap.place), (TrapKind::Deadlock, line("too_few(", "bar.sync")), "{}", trap.message);
    assert!(trap.message.contains("barrier 1 has 64 threads and waits for 96 threads"), "{}", trap.message);
}

#[test]
fn threads_that_have_ended_are_not_waited_for() {
    assert_eq!(clean(Shape("some_wait", 1, 96, false), &zeros(&[96])), [""; 0]);
    assert_eq!(clean(Shape("half_waits", 1, 96, false), &zeros(&[96])), [""; 0]);
}

#[test]
fn lanes_that_are_named_must_be_there_and_only_those_may_call() {
    let trap = caught(Shape("shuffle_from_gone", 1, 32, false), &zeros(&[32]));
    assert_eq!((trap.kind, trap.thread), (TrapKind::Shuffle, Some([0, 0, 0])), "{trap}");
    assert_eq!(trap.place, line("shuffle_from_gone(", "__shfl_down_sync"));
    let trap = caught(Shape("stranger_votes", 1, 32, false), &zeros(&[32]));
    assert_eq!((trap.kind, trap.thread), (TrapKind::Shuffle, Some([16, 0, 0])), "{trap}");
    assert_eq!(trap.place, line("stranger_votes(", "__ballot_sync"));
}

#[test]
fn a_value_handed_from_block_to_block_needs_a_fence() {
    let trap = caught(Shape("flag_race", 6, 32, false), &zeros(&[6, 6]));
    // Block 0 writes nothing. Block 1 writes word 1, which block 2 reads.
    expect(&trap, TrapKind::Race, &line("flag_race(", "+= data"), 2, 0, ("buffer 0", 4));
    assert_eq!(clean(Shape("flag_mended", 6, 32, false), &zeros(&[6, 6])), [""; 0]);
}

/// Runs a kernel whose blocks wait for each other. Returns its notes and the final buffers.
fn left(
    kernel: &'static str,
    blocks: u32,
    threads: u32,
    counts: &[usize],
    read: &[usize],
) -> (Vec<String>, Vec<Vec<i32>>) {
    let outcome = |workers| {
        let mut b =
            Bench::load(KERNELS, Options { threads: Some(workers), watchdog: 50_000_000, ..Options::default() });
        let buffers: Vec<u64> =
            counts.iter().map(|&n| b.buffer(&(0..n as i32).map(|i| i % 7).collect::<Vec<_>>())).collect();
        for &at in &buffers[1..] {
            let bytes = counts[buffers.iter().position(|&x| x == at).unwrap()] as u64 * 4;
            b.machine.fill(at, bytes, 0).unwrap();
        }
        let args: Vec<Arg> = buffers.iter().map(|&a| Arg::Address(a)).collect();
        let report = b.launch(kernel, [blocks, 1, 1], [threads, 1, 1], &args).unwrap();
        (report.notes, read.iter().map(|&k| b.ints(buffers[k], counts[k])).collect::<Vec<_>>())
    };
    let first = outcome(1);
    for workers in [2, 4] {
        assert_eq!(first, outcome(workers), "`{kernel}` on {workers} threads");
    }
    first
}

fn waits_for_later(notes: &[String]) -> bool {
    notes.iter().any(|n| n.contains("wait for later ones"))
}

#[test]
fn blocks_that_wait_for_the_next_one_all_end() {
    let (notes, left) = left("backwards", 40, 32, &[40, 40], &[0]);
    let values: Vec<i32> = (0..40).map(|i| i % 7).collect();
    assert_eq!(left[0], (0..40).map(|k| values[k..].iter().sum()).collect::<Vec<i32>>());
    assert!(waits_for_later(&notes) && notes.len() == 1, "{notes:#?}");
}

#[test]
fn blocks_enter_a_ticket_lock_in_order() {
    let (notes, left) = left("ticket_lock", 30, 32, &[1, 1, 30, 1], &[2, 3]);
    assert_eq!(left[0], (0..30).collect::<Vec<_>>());
    assert_eq!(left[1], [(0..30_i32).fold(0, |s: i32, k| s.wrapping_mul(3).wrapping_add(k))]);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn blocks_that_are_served_last_first_all_end() {
    let (notes, left) = left("last_first", 25, 32, &[1, 25], &[1]);
    assert_eq!(left[0], (0..25).rev().collect::<Vec<_>>());
    assert!(waits_for_later(&notes) && notes.len() == 1, "{notes:#?}");
}

#[test]
fn a_scan_that_looks_back_is_right_and_clean() {
    let (notes, left) = left("look_back", 50, 64, &[3200, 3200, 1, 100], &[1]);
    let sums = (0..3200).scan(0, |sum, i| {
        *sum += i % 7;
        Some(*sum)
    });
    assert_eq!(left[0], sums.collect::<Vec<i32>>());
    assert_eq!(notes, [""; 0]);
}

#[test]
fn a_flag_between_warps_with_fences_of_the_block_is_clean() {
    assert_eq!(clean(Shape("flag_in_block", 1, 64, false), &zeros(&[1])), [""; 0]);
}

#[test]
fn bytes_of_a_word_may_belong_to_different_warps_and_blocks() {
    assert_eq!(clean(Shape("bytes_apart", 4, 64, false), &zeros(&[64])), [""; 0]);
}

#[test]
fn a_warp_whose_first_lane_waits_for_another_block_meets_at_the_barrier() {
    let (notes, left) = left("block_waits_for_later", 12, 64, &[12, 768], &[1]);
    assert_eq!(left[0], (0..768).map(|t| t % 64).collect::<Vec<_>>());
    assert!(waits_for_later(&notes) && notes.len() == 1, "{notes:#?}");
}

#[test]
fn lanes_contend_for_a_lock_under_the_fair_scheduler() {
    let mut b = Bench::new(KERNELS);
    let (lock, sum) = (b.buffer(&[0]), b.buffer(&[0]));
    let args = [Arg::Address(lock), Arg::Address(sum)];
    let report = b.launch_with("lock_in_turn", ([2, 1, 1], [32, 1, 1], 0, true), &args).unwrap();
    assert_eq!(b.ints(sum, 1), [64]);
    assert!(report.notes.iter().any(|n| n.contains("independent thread scheduling")), "{:?}", report.notes);
}

#[test]
fn a_class_that_is_ignored_is_not_reported_and_the_others_are() {
    let all = [FindingClass::Race, FindingClass::Uninitialised, FindingClass::Asynchronous, FindingClass::Shuffle];
    let cases: [(FindingClass, Shape, Args<'_>); 5] = [
        (FindingClass::Race, Shape("late_clear", 1, 64, false), &ints(&[64, 64])),
        (FindingClass::Race, Shape("block_race", 3, 64, false), &zeros(&[200])),
        (FindingClass::Uninitialised, Shape("local_sum", 1, 8, false), &with_ints(&[32, 8], &[17])),
        (FindingClass::Asynchronous, Shape("copy_not_awaited", 1, 64, false), &ints(&[128, 64])),
        (FindingClass::Shuffle, Shape("shuffle_from_gone", 1, 32, false), &zeros(&[32])),
    ];
    for (class, Shape(kernel, blocks, threads, cooperative), args) in cases {
        let launch = |ignored: Vec<FindingClass>| {
            let options = Options { ignored: Ignored::from_classes(ignored), threads: Some(1), ..Options::default() };
            let mut bench = Bench::load(KERNELS, options);
            let args = args(&mut bench);
            bench.launch_with(kernel, ([blocks, 1, 1], [threads, 1, 1], 0, cooperative), &args)
        };
        let others: Vec<FindingClass> = all.into_iter().filter(|other| *other != class).collect();
        assert!(matches!(launch(others), Err(LaunchError::Trap(_))), "`{kernel}`: {class:?} is on");
        let report = launch(vec![class]).unwrap_or_else(|error| panic!("`{kernel}` without {class:?}: {error}"));
        assert_eq!(report.notes, Vec::<String>::new(), "`{kernel}`");
    }
}
