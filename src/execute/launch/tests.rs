//! Limits, in the words of the report.

use super::{DeviceInfo, KernelResources, judge_block, judge_cooperative, judge_grid};
use crate::backend::fake::device_info;
use crate::model::Dim3;

fn refused(block: [u64; 3], shared: u32, resources: KernelResources) -> String {
    judge_block(&device_info(), &resources, block, shared).err().unwrap_or_default()
}

fn plain(block: [u64; 3]) -> String {
    refused(block, 0, KernelResources::default())
}

#[test]
fn a_block_at_every_limit_is_allowed() {
    for block in [[1024, 1, 1], [1, 1024, 1], [16, 1, 64], [1, 1, 1]] {
        assert_eq!(plain(block), "");
    }
    assert_eq!(refused([1, 1, 1], 227 * 1024, KernelResources::default()), "");
}

#[test]
fn too_many_threads_are_counted_whole() {
    assert_eq!(plain([512, 4, 1]), "2048 threads a block, the device allows 1024");
    assert_eq!(plain([1 << 33, 1, 1]), "8589934592 threads a block, the device allows 1024");
    assert_eq!(plain([1 << 40, 1 << 40, 1]), format!("{} threads a block, the device allows 1024", u64::MAX));
}

#[test]
fn one_extent_can_be_too_long_by_itself() {
    assert_eq!(plain([1, 1, 128]), "128 threads along z, the device allows 64");
}

#[test]
fn a_block_without_threads_is_none() {
    assert_eq!(plain([0, 4, 1]), "a block of 0 × 4 × 1 threads");
}

#[test]
fn the_kernel_may_allow_less_than_the_device() {
    let heavy = KernelResources { max_threads: Some(640), ..KernelResources::default() };
    assert_eq!(refused([1024, 1, 1], 0, heavy), "1024 threads a block, the kernel's registers and bounds allow 640");
}

#[test]
fn static_and_dynamic_shared_memory_count_together() {
    let some = KernelResources { shared_static: Some(1024), ..KernelResources::default() };
    assert_eq!(refused([1, 1, 1], 226 * 1024, some), "");
    assert_eq!(refused([1, 1, 1], 227 * 1024, some), "233472 bytes of shared memory a block, the device allows 232448");
}

#[test]
fn grids_have_limits_along_each_axis() {
    let grid = |dims| judge_grid(&device_info(), dims);
    assert_eq!(grid([0x7fff_ffff, 65535, 65535]), Ok(Dim3::new(0x7fff_ffff, 65535, 65535)));
    assert_eq!(grid([1, 65536, 1]), Err("65536 blocks along y, the device allows 65535".to_owned()));
    assert_eq!(grid([1 << 40, 1, 1]), Err("1099511627776 blocks along x, the device allows 2147483647".to_owned()));
    assert_eq!(grid([1, 0, 1]), Err("a grid of 1 × 0 × 1 blocks".to_owned()));
}

#[test]
fn a_cooperative_grid_must_reside_whole() {
    let grid = Dim3::new(33, 1, 1);
    assert_eq!(judge_cooperative(&device_info(), grid, 33), Ok(()));
    assert_eq!(
        judge_cooperative(&device_info(), grid, 32),
        Err("33 blocks in a cooperative launch, 32 reside on the device".to_owned())
    );
    let info = DeviceInfo { cooperative_launch: false, ..device_info() };
    assert_eq!(
        judge_cooperative(&info, grid, 99),
        Err("a cooperative launch, which the device does not have".to_owned())
    );
}
