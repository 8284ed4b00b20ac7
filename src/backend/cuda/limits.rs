//! Judges a launch by the device's limits before anything runs, in the words of the report.
//!
//! Pure: it looks at numbers and asks no driver. What it lets pass the driver may still refuse.

use crate::model::{DeviceInfo, Dim3};

use super::kernel::KernelFacts;

/// What a launch asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    pub cooperative: bool,
}

/// Why the device cannot run the launch, if it cannot: the first limit that it passes.
pub(super) fn judge(info: &DeviceInfo, kernel: &KernelFacts, shape: &Shape) -> Result<(), String> {
    threads(info, kernel, shape.block)?;
    each("block", shape.block, info.max_block_dim)?;
    each("grid", shape.grid, info.max_grid_dim)?;
    shared(info, kernel, shape.shared)?;
    if shape.cooperative && !info.cooperative_launch {
        return Err("a cooperative launch, the device has none".to_owned());
    }
    Ok(())
}

fn threads(info: &DeviceInfo, kernel: &KernelFacts, block: Dim3) -> Result<(), String> {
    let asked = block.count();
    if asked == 0 {
        return Err(format!("no thread a block ({block})"));
    }
    let most = info.max_threads_per_block;
    if asked > u64::from(most) {
        return Err(format!("{asked} threads a block, the device allows {most}"));
    }
    let most = kernel.max_threads;
    if asked > u64::from(most) {
        return Err(format!(
            "{asked} threads a block at {} registers a thread, the kernel allows {most}",
            kernel.registers
        ));
    }
    Ok(())
}

/// Each extent by itself: at least one, and at most the device's.
fn each(what: &str, asked: Dim3, most: Dim3) -> Result<(), String> {
    for (axis, asked, most) in [("x", asked.x, most.x), ("y", asked.y, most.y), ("z", asked.z, most.z)] {
        if asked == 0 {
            return Err(format!("{what}.{axis} is 0, at least 1 is needed"));
        }
        if asked > most {
            return Err(format!("{what}.{axis} is {asked}, the device allows {most}"));
        }
    }
    Ok(())
}

fn shared(info: &DeviceInfo, kernel: &KernelFacts, dynamic: u32) -> Result<(), String> {
    let asked = u64::from(kernel.shared_static) + u64::from(dynamic);
    let most = info.shared_per_block_optin.max(info.shared_per_block);
    if asked <= u64::from(most) {
        return Ok(());
    }
    let parts = match (kernel.shared_static, dynamic) {
        (0, _) | (_, 0) => String::new(),
        (fixed, dynamic) => format!(" ({fixed} static, {dynamic} dynamic)"),
    };
    Err(format!("{asked} bytes of shared memory a block{parts}, the device allows {most}"))
}

/// A cooperative grid must be resident whole.
pub(super) fn judge_cooperative(info: &DeviceInfo, grid: Dim3, blocks_per_sm: u32) -> Result<(), String> {
    let resident = u64::from(blocks_per_sm) * u64::from(info.sm_count);
    let asked = grid.count();
    if asked > resident {
        return Err(format!("a cooperative grid of {asked} blocks, {resident} are resident on the device at once"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::h100;
    use super::*;

    const PLAIN: KernelFacts = KernelFacts { registers: 32, shared_static: 0, local: 0, max_threads: 1024 };

    fn shape(grid: (u32, u32, u32), block: (u32, u32, u32), shared: u32) -> Shape {
        let dim = |(x, y, z)| Dim3::new(x, y, z);
        Shape { grid: dim(grid), block: dim(block), shared, cooperative: false }
    }

    fn refusal(kernel: &KernelFacts, shape: &Shape) -> String {
        judge(&h100(), kernel, shape).err().unwrap_or_default()
    }

    #[test]
    fn a_launch_at_every_limit_passes() {
        assert_eq!(refusal(&PLAIN, &shape((2_147_483_647, 65535, 65535), (16, 1, 64), 232_448)), "");
        assert_eq!(refusal(&PLAIN, &shape((1, 1, 1), (1024, 1, 1), 0)), "");
    }

    #[test]
    fn too_many_threads_are_told_before_a_dimension_that_is_too_large() {
        assert_eq!(refusal(&PLAIN, &shape((1, 1, 1), (64, 32, 1), 0)), "2048 threads a block, the device allows 1024");
        assert_eq!(refusal(&PLAIN, &shape((1, 1, 1), (2048, 1, 1), 0)), "2048 threads a block, the device allows 1024");
        assert_eq!(refusal(&PLAIN, &shape((1, 1, 1), (1, 1, 128), 0)), "block.z is 128, the device allows 64");
    }

    #[test]
    fn threads_that_do_not_fit_in_32_bits_are_counted_whole() {
        assert_eq!(
            refusal(&PLAIN, &shape((1, 1, 1), (65536, 65536, 1), 0)),
            "4294967296 threads a block, the device allows 1024"
        );
    }

    #[test]
    fn registers_bound_the_block() {
        let heavy = KernelFacts { registers: 96, max_threads: 640, ..PLAIN };
        assert_eq!(
            refusal(&heavy, &shape((1, 1, 1), (1024, 1, 1), 0)),
            "1024 threads a block at 96 registers a thread, the kernel allows 640"
        );
    }

    #[test]
    fn an_empty_extent_is_refused() {
        assert_eq!(refusal(&PLAIN, &shape((1, 1, 1), (32, 0, 1), 0)), "no thread a block (32×0)");
        assert_eq!(refusal(&PLAIN, &shape((0, 1, 1), (32, 1, 1), 0)), "grid.x is 0, at least 1 is needed");
        assert_eq!(refusal(&PLAIN, &shape((1, 65536, 1), (32, 1, 1), 0)), "grid.y is 65536, the device allows 65535");
    }

    #[test]
    fn static_and_dynamic_shared_memory_count_together() {
        let tiled = KernelFacts { shared_static: 8192, ..PLAIN };
        assert_eq!(
            refusal(&tiled, &shape((1, 1, 1), (32, 1, 1), 230_000)),
            "238192 bytes of shared memory a block (8192 static, 230000 dynamic), the device allows 232448"
        );
        assert_eq!(
            refusal(&PLAIN, &shape((1, 1, 1), (32, 1, 1), 232_449)),
            "232449 bytes of shared memory a block, the device allows 232448"
        );
    }

    #[test]
    fn a_cooperative_grid_must_be_resident_whole() {
        assert_eq!(judge_cooperative(&h100(), Dim3::new(264, 1, 1), 2), Ok(()));
        assert_eq!(
            judge_cooperative(&h100(), Dim3::new(265, 1, 1), 2),
            Err("a cooperative grid of 265 blocks, 264 are resident on the device at once".to_owned())
        );
        let mut old = h100();
        old.cooperative_launch = false;
        let mut asked = shape((1, 1, 1), (32, 1, 1), 0);
        asked.cooperative = true;
        assert_eq!(judge(&old, &PLAIN, &asked), Err("a cooperative launch, the device has none".to_owned()));
    }
}
