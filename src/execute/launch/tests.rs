//! Limits of a launch: what fits passes, what does not is named with both numbers.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use super::{Dim3, KernelResources, judge_block, judge_cooperative, judge_grid, merged, shared_text, too_much_shared};
use crate::backend::fake::device_info;
use crate::execute::stop::Stop;
use crate::model::Outcome;

fn block(extents: [u64; 3]) -> Result<Dim3, String> {
    judge_block(&device_info(), &KernelResources::default(), extents, 0)
}

#[test]
fn the_largest_block_passes_and_one_more_thread_does_not() {
    assert_eq!(block([1024, 1, 1]), Ok(Dim3::new(1024, 1, 1)));
    assert_eq!(block([32, 32, 1]), Ok(Dim3::new(32, 32, 1)));
    assert_eq!(block([2048, 1, 1]).unwrap_err(), "2048 threads a block, the device allows 1024");
    assert_eq!(block([33, 32, 1]).unwrap_err(), "1056 threads a block, the device allows 1024");
    assert_eq!(block([1, 1, 64]), Ok(Dim3::new(1, 1, 64)));
    assert_eq!(block([1, 1, 65]).unwrap_err(), "65 threads along z, the device allows 64");
}

#[test]
fn a_block_whose_threads_overflow_is_too_large_and_no_small_one() {
    let wrapping = [1 << 32, 1 << 32, 1];
    assert_eq!(block(wrapping).unwrap_err(), format!("{} threads a block, the device allows 1024", u64::MAX));
}

#[test]
fn a_block_or_a_grid_of_nothing_is_invalid() {
    assert_eq!(block([0, 8, 1]).unwrap_err(), "a block of 0 × 8 × 1 threads");
    assert_eq!(judge_grid(&device_info(), [4, 0, 1]).unwrap_err(), "a grid of 4 × 0 × 1 blocks");
}

#[test]
fn the_kernels_own_bound_is_told_from_the_devices() {
    let bounded = KernelResources { max_threads: Some(256), ..KernelResources::default() };
    assert!(judge_block(&device_info(), &bounded, [256, 1, 1], 0).is_ok());
    let limit = judge_block(&device_info(), &bounded, [512, 1, 1], 0).unwrap_err();
    assert_eq!(limit, "512 threads a block, the kernel's registers and bounds allow 256");
}

#[test]
fn static_and_dynamic_shared_memory_count_together() {
    let half = KernelResources { shared_static: Some(200 * 1024), ..KernelResources::default() };
    assert!(judge_block(&device_info(), &half, [32, 1, 1], 27 * 1024).is_ok());
    let limit = judge_block(&device_info(), &half, [32, 1, 1], 27 * 1024 + 1).unwrap_err();
    assert_eq!(limit, "232449 bytes of shared memory a block, the device allows 232448");
    // More than a launch can even ask for.
    let stop = too_much_shared(&device_info(), &half, 1 << 40);
    let limit = shared_text(&device_info(), &half, 1 << 40);
    assert!(limit.starts_with("1099511832576 bytes"), "{limit}");
    assert_eq!(stop, Stop::Case(Outcome::Invalid { limit }));
}

#[test]
fn each_axis_of_a_grid_has_its_limit() {
    let info = device_info();
    assert_eq!(judge_grid(&info, [0x7fff_ffff, 65_535, 65_535]), Ok(Dim3::new(0x7fff_ffff, 65_535, 65_535)));
    let limit = judge_grid(&info, [1 << 31, 1, 1]).unwrap_err();
    assert_eq!(limit, "2147483648 blocks along x, the device allows 2147483647");
    assert_eq!(judge_grid(&info, [1, 65_536, 1]).unwrap_err(), "65536 blocks along y, the device allows 65535");
    // 2^32 blocks are not none.
    assert!(judge_grid(&info, [1, 1, 1 << 32]).is_err());
}

#[test]
fn a_cooperative_grid_must_reside_at_once() {
    let mut info = device_info();
    assert_eq!(judge_cooperative(&info, Dim3::new(8, 4, 1), 32), Ok(()));
    let limit = judge_cooperative(&info, Dim3::new(33, 1, 1), 32).unwrap_err();
    assert_eq!(limit, "33 blocks in a cooperative launch, 32 reside on the device");
    info.cooperative_launch = false;
    let limit = judge_cooperative(&info, Dim3::new(1, 1, 1), 32).unwrap_err();
    assert_eq!(limit, "a cooperative launch, which the device does not have");
}

#[test]
fn the_device_speaks_first_of_resources_and_the_compiler_of_the_rest() {
    let device = KernelResources { registers: Some(40), ..KernelResources::default() };
    let compiler = KernelResources { registers: Some(38), spill_stores: Some(16), ..KernelResources::default() };
    let known = merged(device, compiler);
    assert_eq!((known.registers, known.spill_stores, known.local), (Some(40), Some(16), None));
}
