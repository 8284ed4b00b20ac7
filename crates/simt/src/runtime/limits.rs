//! The limits of a launch.

use std::fmt;

use crate::profile::DeviceProfile;
use crate::program::Kernel;
use crate::runtime::Shape;

/// The maximum number of blocks per cluster that every device supports.
const MOST_OF_CLUSTER: u64 = 8;

/// The limit of kernel or device that a launch exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    Block { block: [u32; 3], most: u32 },
    Grid { grid: [u32; 3] },
    Shared { bytes: u32, most: u32, device: String },
    Cluster { cluster: [u32; 3], grid: [u32; 3] },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { block: [x, y, z], most } => {
                write!(f, "a block of {x}×{y}×{z} threads: 1 to {most} are possible, at most 1024×1024×64")
            }
            Self::Grid { grid: [x, y, z] } => {
                write!(f, "a grid of {x}×{y}×{z} blocks: 1 to 2147483647×65535×65535 are possible")
            }
            Self::Shared { bytes, most, device } => {
                write!(f, "{bytes} bytes of shared memory per block: {device} has {most}")
            }
            Self::Cluster { cluster: [0, ..], .. } => {
                write!(f, "the kernel is compiled for clusters whose size the launch has to say, which none here does")
            }
            Self::Cluster { cluster: [x, y, z], grid: [gx, gy, gz] } => {
                write!(
                    f,
                    "clusters of {x}×{y}×{z} blocks in a grid of {gx}×{gy}×{gz}: along each axis the grid is a \
                     multiple of the cluster, and a cluster has at most {MOST_OF_CLUSTER} blocks"
                )
            }
        }
    }
}

/// Returns the limit that a launch exceeds; blocks may have `shared_limit` bytes of shared memory.
pub fn violation(kernel: &Kernel, shape: &Shape, profile: &DeviceProfile, shared_limit: u32) -> Option<Violation> {
    let [bx, by, bz] = shape.block;
    let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
    let most = kernel.max_threads.unwrap_or(1024).min(1024);
    if threads == 0 || threads > u64::from(most) || bx > 1024 || by > 1024 || bz > 64 {
        return Some(Violation::Block { block: shape.block, most });
    }
    let [gx, gy, gz] = shape.grid;
    if gx == 0 || gy == 0 || gz == 0 || gx > 0x7fff_ffff || gy > 0xffff || gz > 0xffff {
        return Some(Violation::Grid { grid: shape.grid });
    }
    if let Some(cluster) = shape.cluster.or(kernel.cluster) {
        let blocks = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
        let whole = shape.grid.iter().zip(cluster).all(|(grid, cluster)| cluster != 0 && grid.is_multiple_of(cluster));
        if !whole || blocks > MOST_OF_CLUSTER {
            return Some(Violation::Cluster { cluster, grid: shape.grid });
        }
    }
    let bytes = kernel.shared_static.saturating_add(shape.shared);
    (bytes > shared_limit).then(|| Violation::Shared { bytes, most: shared_limit, device: profile.name.clone() })
}
