//! Checks a launch against the limits of a device, with uniform error messages.
//!
//! The plan checks what is known without a device, a group checks when the kernel is loaded, and the CUDA backend
//! checks once more before launching. All use these functions, so the messages are the same. The functions only compare
//! numbers, so a driver may still reject a launch that passes here.

use super::{DeviceInfo, Dim3, KernelResources};

/// Checks a block's extents against the device and the kernel. The error names the first limit exceeded.
pub fn block(info: &DeviceInfo, kernel: &KernelResources, dims: [u64; 3]) -> Result<Dim3, String> {
    let threads = dims.iter().copied().fold(1, u64::saturating_mul);
    let most = u64::from(info.max_threads_per_block);
    if threads > most {
        return Err(format!("{threads} threads per block, the device allows {most}"));
    }
    let dims = extents("block", dims, info.max_block_dim)?;
    if let Some(most) = kernel.max_threads.filter(|most| threads > u64::from(*most)) {
        let at = kernel.registers.map(|count| format!(" at {count} registers per thread")).unwrap_or_default();
        return Err(format!("{threads} threads per block{at}, the kernel allows {most}"));
    }
    Ok(dims)
}

/// Checks a grid's extents against the device. The error names the first limit exceeded.
pub fn grid(info: &DeviceInfo, dims: [u64; 3]) -> Result<Dim3, String> {
    extents("grid", dims, info.max_grid_dim)
}

/// Checks that each extent is between 1 and the device's maximum.
fn extents(what: &str, dims: [u64; 3], most: Dim3) -> Result<Dim3, String> {
    for ((axis, asked), most) in ["x", "y", "z"].into_iter().zip(dims).zip([most.x, most.y, most.z]) {
        if asked == 0 {
            return Err(format!("{what}.{axis} is 0, but must be at least 1"));
        }
        if asked > u64::from(most) {
            return Err(format!("{what}.{axis} is {asked}, the device allows {most}"));
        }
    }
    let [x, y, z] = dims.map(|extent| extent as u32);
    Ok(Dim3::new(x, y, z))
}

/// Portable maximum of blocks per cluster, supported by every device with clusters. Source: CUDA C++ Programming Guide,
/// thread block clusters.
const MOST_OF_CLUSTER: u64 = 8;

/// Checks that the grid is a multiple of the cluster size, if the kernel was compiled for clusters.
pub fn clusters(kernel: &KernelResources, grid: Dim3) -> Result<(), String> {
    let Some(cluster @ [x, y, z]) = kernel.cluster else { return Ok(()) };
    let blocks = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
    if blocks > MOST_OF_CLUSTER {
        return Err(format!("{blocks} blocks per cluster, but only up to {MOST_OF_CLUSTER} run on every device"));
    }
    for ((axis, asked), of) in ["x", "y", "z"].into_iter().zip([grid.x, grid.y, grid.z]).zip(cluster) {
        if of == 0 || !asked.is_multiple_of(of) {
            return Err(format!(
                "grid.{axis} is {asked}, but the kernel is compiled for clusters of {x}×{y}×{z} blocks: it must be a \
                 multiple of {of}"
            ));
        }
    }
    Ok(())
}

/// Checks that static plus dynamic shared memory fits the limit per block.
pub fn shared(info: &DeviceInfo, kernel: &KernelResources, dynamic: u64) -> Result<(), String> {
    let fixed = kernel.shared_static.unwrap_or(0);
    let asked = dynamic.saturating_add(u64::from(fixed));
    let most = info.shared_per_block_optin.max(info.shared_per_block);
    if asked <= u64::from(most) {
        return Ok(());
    }
    let parts = match (fixed, dynamic) {
        (0, _) | (_, 0) => String::new(),
        (fixed, dynamic) => format!(" ({fixed} static, {dynamic} dynamic)"),
    };
    Err(format!("{asked} bytes of shared memory per block{parts}, the device allows {most}"))
}

/// Checks that the device supports grids that synchronise as a whole.
pub fn cooperative(info: &DeviceInfo) -> Result<(), String> {
    if info.cooperative_launch {
        Ok(())
    } else {
        Err("a cooperative launch, which the device does not support".to_owned())
    }
}

/// Checks that all blocks of a cooperative grid fit on a device that holds `at_once` of them.
pub fn resident(grid: Dim3, at_once: u64) -> Result<(), String> {
    let asked = grid.count();
    if asked <= at_once {
        return Ok(());
    }
    Err(format!("a cooperative grid of {asked} blocks, but only {at_once} fit on the device at once"))
}

/// Checks that the device can run architecture-specific code: `sm_90a` needs exactly compute capability 9.0; `sm_100f`
/// needs its family, 10.0 and later of the same major version. Source: the NVCC manual on GPU feature sets.
pub fn architecture(info: &DeviceInfo, named: &str) -> Result<(), String> {
    let digits = named.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
    let (major, minor) = info.compute_capability;
    let is_family = named.ends_with('f');
    let runs = digits.parse::<u32>().is_ok_and(|wanted| {
        let (own_major, own_minor) = (wanted / 10, wanted % 10);
        own_major == major && (own_minor == minor || is_family && own_minor < minor)
    });
    if runs { Ok(()) } else { Err(format!("compiled for {named}, but the device is {}", info.architecture())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h100;

    const PLAIN: KernelResources = KernelResources {
        registers: None,
        shared_static: None,
        local: None,
        spill_stores: None,
        spill_loads: None,
        max_threads: None,
        cluster: None,
    };

    fn refused<T>(judged: Result<T, String>) -> String {
        judged.err().unwrap_or_default()
    }

    fn of_block(dims: [u64; 3]) -> String {
        refused(block(&h100(), &PLAIN, dims))
    }

    #[test]
    fn a_launch_at_every_limit_passes() {
        let info = h100();
        assert_eq!(block(&info, &PLAIN, [16, 1, 64]), Ok(Dim3::new(16, 1, 64)));
        assert_eq!(block(&info, &PLAIN, [1024, 1, 1]), Ok(Dim3::new(1024, 1, 1)));
        assert_eq!(grid(&info, [0x7fff_ffff, 65_535, 65_535]), Ok(Dim3::new(0x7fff_ffff, 65_535, 65_535)));
        assert_eq!(shared(&info, &PLAIN, 232_448), Ok(()));
    }

    #[test]
    fn too_many_threads_are_told_before_a_dimension_that_is_too_large() {
        assert_eq!(of_block([64, 32, 1]), "2048 threads per block, the device allows 1024");
        assert_eq!(of_block([2048, 1, 1]), "2048 threads per block, the device allows 1024");
        assert_eq!(of_block([1, 1, 128]), "block.z is 128, the device allows 64");
    }

    #[test]
    fn threads_past_any_counter_are_too_many_and_not_few() {
        assert_eq!(of_block([65_536, 65_536, 1]), "4294967296 threads per block, the device allows 1024");
        assert_eq!(of_block([1 << 32, 1 << 32, 1]), format!("{} threads per block, the device allows 1024", u64::MAX));
    }

    #[test]
    fn a_grid_is_made_of_whole_clusters() {
        let clustered = KernelResources { cluster: Some([4, 1, 2]), ..PLAIN };
        assert_eq!(clusters(&PLAIN, Dim3::new(5, 1, 1)), Ok(()));
        assert_eq!(clusters(&clustered, Dim3::new(8, 3, 2)), Ok(()));
        let odd = "grid.x is 6, but the kernel is compiled for clusters of 4×1×2 blocks: it must be a multiple of 4";
        assert_eq!(refused(clusters(&clustered, Dim3::new(6, 1, 2))), odd);
        assert!(refused(clusters(&clustered, Dim3::new(4, 1, 1))).starts_with("grid.z is 1"));
        let large = KernelResources { cluster: Some([16, 1, 1]), ..PLAIN };
        let told = "16 blocks per cluster, but only up to 8 run on every device";
        assert_eq!(refused(clusters(&large, Dim3::new(16, 1, 1))), told);
    }

    #[test]
    fn an_empty_extent_is_refused() {
        assert_eq!(of_block([32, 0, 1]), "block.y is 0, but must be at least 1");
        assert_eq!(refused(grid(&h100(), [0, 1, 1])), "grid.x is 0, but must be at least 1");
    }

    #[test]
    fn each_axis_of_a_grid_has_its_limit() {
        let of_grid = |dims| refused(grid(&h100(), dims));
        assert_eq!(of_grid([1 << 31, 1, 1]), "grid.x is 2147483648, the device allows 2147483647");
        assert_eq!(of_grid([1, 65_536, 1]), "grid.y is 65536, the device allows 65535");
        assert_eq!(of_grid([1, 1, 1 << 32]), "grid.z is 4294967296, the device allows 65535");
    }

    #[test]
    fn the_kernels_own_bound_is_told_from_the_devices() {
        let bounded = KernelResources { max_threads: Some(640), ..PLAIN };
        assert!(block(&h100(), &bounded, [640, 1, 1]).is_ok());
        assert_eq!(refused(block(&h100(), &bounded, [1024, 1, 1])), "1024 threads per block, the kernel allows 640");
        let heavy = KernelResources { registers: Some(96), ..bounded };
        assert_eq!(
            refused(block(&h100(), &heavy, [1024, 1, 1])),
            "1024 threads per block at 96 registers per thread, the kernel allows 640"
        );
    }

    #[test]
    fn static_and_dynamic_shared_memory_count_together() {
        let tiled = KernelResources { shared_static: Some(8192), ..PLAIN };
        assert_eq!(shared(&h100(), &tiled, 224_256), Ok(()));
        assert_eq!(
            refused(shared(&h100(), &tiled, 230_000)),
            "238192 bytes of shared memory per block (8192 static, 230000 dynamic), the device allows 232448"
        );
        assert_eq!(
            refused(shared(&h100(), &PLAIN, 232_449)),
            "232449 bytes of shared memory per block, the device allows 232448"
        );
        assert!(shared(&h100(), &tiled, u64::MAX).is_err());
    }

    #[test]
    fn a_cooperative_grid_must_be_resident_whole() {
        assert_eq!(resident(Dim3::new(8, 33, 1), 264), Ok(()));
        assert_eq!(
            refused(resident(Dim3::new(265, 1, 1), 264)),
            "a cooperative grid of 265 blocks, but only 264 fit on the device at once"
        );
        let mut old = h100();
        assert_eq!(cooperative(&old), Ok(()));
        old.cooperative_launch = false;
        assert_eq!(refused(cooperative(&old)), "a cooperative launch, which the device does not support");
    }
}
