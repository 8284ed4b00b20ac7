//! The driver's occupancy, compared with our computation and with the simulator's profiles.

use std::fmt::Write;

use runner_backend::DeviceError;
use simt::{DeviceProfile, profiles};

use super::gpu;

/// PTX of a kernel with `live` values in registers at once: all are loaded before the first one is stored.
fn hungry(live: usize) -> String {
    let mut text = format!(
        ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry hungry(.param .u64 at)\n{{\n.reg .b32 \
         %v<{live}>;\n.reg .b64 %at;\nld.param.u64 %at, [at];\n"
    );
    for i in 0..live {
        writeln!(text, "ld.volatile.global.u32 %v{i}, [%at+{}];", 4 * i).unwrap();
    }
    for i in (0..live).rev() {
        writeln!(text, "st.volatile.global.u32 [%at+{}], %v{i};", 4 * i).unwrap();
    }
    text + "ret;\n}\n"
}

#[test]
#[ignore = "needs a GPU"]
fn occupancy_names_its_limiter_wherever_arithmetic_and_driver_agree() {
    let mut gpu = gpu();
    let mut kernels = vec![gpu.kernel("count"), gpu.kernel("shared")];
    for live in [40, 60, 100, 150, 200] {
        let module = gpu.load(&hungry(live), &["hungry"]).unwrap();
        kernels.push(gpu.device.kernel(module, "hungry").unwrap());
    }
    let info = gpu.device.info().clone();
    for kernel in kernels {
        let resources = gpu.device.resources(kernel).unwrap();
        for threads in [1, 32, 48, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1024] {
            for shared in [0, 1000, 12_345, 49_152, 65_536, 100_000, 200_000] {
                let occupancy = gpu.device.occupancy(kernel, threads, shared).unwrap();
                let point = format!("{resources:?}, {threads} threads, {shared} bytes: {occupancy:?}");
                assert!(occupancy.limiter.is_some(), "{point}");
                let warps = occupancy.blocks_per_sm * threads.div_ceil(32);
                let full = f64::from(info.max_threads_per_sm / 32);
                assert!((occupancy.fraction - f64::from(warps) / full).abs() < 1e-12, "{point}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_profile_of_this_gpu_has_the_drivers_occupancy_and_limits() {
    let mut gpu = gpu();
    let info = gpu.device.info().clone();
    let same = |p: &DeviceProfile| p.capability == info.compute_capability && p.sm_count == info.sm_count;
    let profile = profiles()
        .into_iter()
        .find(same)
        .unwrap_or_else(|| panic!("no profile of {} with {} SMs", info.name, info.sm_count));
    assert_eq!(
        (
            profile.max_warps_per_sm * 32,
            profile.max_blocks_per_sm,
            profile.registers_per_sm,
            profile.registers_per_block
        ),
        (info.max_threads_per_sm, info.max_blocks_per_sm, info.registers_per_sm, info.registers_per_block)
    );
    assert_eq!(
        (profile.shared_per_sm, profile.shared_per_block, profile.shared_per_block_optin, profile.shared_reserved),
        (info.shared_per_sm, info.shared_per_block, info.shared_per_block_optin, info.shared_reserved_per_block)
    );
    let mut kernels = vec![gpu.kernel("count"), gpu.kernel("shared"), gpu.kernel("copy")];
    for live in [20, 30, 40, 50, 60, 80, 100, 120, 150, 180, 200, 240] {
        let module = gpu.load(&hungry(live), &["hungry"]).unwrap();
        kernels.push(gpu.device.kernel(module, "hungry").unwrap());
    }
    for kernel in kernels {
        let resources = gpu.device.resources(kernel).unwrap();
        let (registers, fixed) = (resources.registers.unwrap(), resources.shared_static.unwrap());
        let most = resources.max_threads.unwrap_or(1024);
        for threads in (1..=most.min(1024)).filter(|t| t % 16 == 0 || *t < 4) {
            for shared in (0..=profile.shared_per_block_optin - fixed).step_by(4999) {
                let driver = gpu.device.occupancy(kernel, threads, shared).unwrap();
                let ours = profile.occupancy(threads, registers, fixed + shared);
                let point = format!("{registers} registers, {threads} threads, {fixed} + {shared} bytes");
                assert_eq!(ours.blocks_per_sm, driver.blocks_per_sm, "{point}");
                assert!((ours.fraction - driver.fraction).abs() < 1e-12, "{point}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_proposed_block_has_the_most_resident_threads() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("copy");
    let best = gpu.device.best_block(kernel, 0).unwrap();
    let fraction = gpu.device.occupancy(kernel, best, 0).unwrap().fraction;
    for threads in (32..=1024).step_by(32) {
        assert!(gpu.device.occupancy(kernel, threads, 0).unwrap().fraction <= fraction, "{threads} beats {best}");
    }
    let refused = gpu.device.best_block(kernel, 1 << 30).unwrap_err();
    assert!(matches!(refused, DeviceError::InvalidLaunch(_)), "{refused}");
}
