//! Checks a launch against the limits of its kernel and device.

use crate::profile::DeviceProfile;
use crate::program::Kernel;
use crate::runtime::Shape;

/// Maximum number of blocks per cluster that every device supports.
const MOST_OF_CLUSTER: u64 = 8;

/// Returns a message if a launch exceeds a limit of the kernel or the device. Blocks may have `shared_limit` bytes of
/// shared memory.
pub fn violation(kernel: &Kernel, shape: &Shape, profile: &DeviceProfile, shared_limit: u32) -> Option<String> {
    let [bx, by, bz] = shape.block;
    let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
    let most = kernel.max_threads.unwrap_or(1024).min(1024);
    if threads == 0 || threads > u64::from(most) || bx > 1024 || by > 1024 || bz > 64 {
        return Some(format!("a block of {bx}×{by}×{bz} threads: 1 to {most} are allowed, at most 1024×1024×64"));
    }
    let [gx, gy, gz] = shape.grid;
    if gx == 0 || gy == 0 || gz == 0 || gx > 0x7fff_ffff || gy > 0xffff || gz > 0xffff {
        return Some(format!("a grid of {gx}×{gy}×{gz} blocks; 1 to 2,147,483,647 × 65,535 × 65,535 are allowed"));
    }
    if let Some(cluster) = shape.cluster.or(kernel.cluster) {
        let blocks = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
        let whole = shape.grid.iter().zip(cluster).all(|(grid, cluster)| cluster != 0 && grid.is_multiple_of(cluster));
        if !whole || blocks > MOST_OF_CLUSTER {
            let [x, y, z] = cluster;
            return Some(if x == 0 {
                "the kernel is compiled for clusters whose size the launch must set, but it sets none".to_owned()
            } else {
                format!(
                    "clusters of {x}×{y}×{z} blocks in a grid of {gx}×{gy}×{gz}: along each axis the grid must be a \
                     multiple of the cluster, and a cluster may have at most {MOST_OF_CLUSTER} blocks"
                )
            });
        }
    }
    let bytes = kernel.shared_static.saturating_add(shape.shared);
    (bytes > shared_limit)
        .then(|| format!("{bytes} bytes of shared memory per block, but {} has {shared_limit}", profile.name))
}
