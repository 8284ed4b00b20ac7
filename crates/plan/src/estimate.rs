//! Costs of a plan: device memory, calculated, and time, from a simple model.
//!
//! The time model is rough. Inputs are generated and outputs checked on the device at [`DEVICE_BYTES_PER_SECOND`]. A
//! launch transfers its `work.bytes` (or all its buffers if not stated) at [`SHARE_OF_PEAK`] of the device's peak. A
//! case takes [`CASE_SECONDS`] plus its launches: warm-up, check, re-check and samples. Sampling takes
//! [`SAMPLING_SECONDS`], in which most cases reach their precision; it makes at least `min_samples` and at most
//! `max_samples` launches, and takes no longer than the budget. A case on the host uses up its budget. Compilation is
//! not included, since it is cached. For six shipped experiments on an H200 the estimates add up to 22 s; the runs took
//! 39 s. Each estimate is within a factor of 2, except for `reduction_operators` (4.4): many of its cases use up their
//! budget without reaching their precision.
//!
//! On the simulator, the estimate covers one launch per case, without a second set of inputs. Its warp instructions are
//! estimated as [`INSTRUCTIONS_PER_WARP`] per warp, [`INSTRUCTIONS_PER_REQUEST`] per 128 bytes transferred, and one per
//! 32 operations. Each takes 1 / [`SIMULATED_PER_SECOND`]. Over the committed simulator reports, the median ratio of
//! estimated to actual instructions is 1.0; four of five cases are within a factor of 4.

use std::collections::HashMap;

use runner_types::{
    Access, BackendKind, BlockPlan, BodyPlan, BufferPlan, Bytes, CaseJob, DeviceInfo, ElementType, GUARD_BYTES,
    GridPlan, GroupJob, LaunchPlan,
};

/// Bytes per second that a host case reads, and that the host generates and checks for the simulator.
pub const HOST_BYTES_PER_SECOND: f64 = 2e9;

/// Bytes per second that the device generates or checks.
pub const DEVICE_BYTES_PER_SECOND: f64 = 1e11;

/// Seconds per case to load code, allocate memory and read back the result of a check.
pub const CASE_SECONDS: f64 = 0.02;

/// Seconds to sample a case in one regime.
pub const SAMPLING_SECONDS: f64 = 0.03;

/// Assumed fraction of peak memory bandwidth that a kernel reaches.
pub const SHARE_OF_PEAK: f64 = 0.5;

/// Assumed peak bandwidth of an unknown device, in bytes per second.
pub const ASSUMED_PEAK: f64 = 1e12;

/// Overhead instructions per simulated warp, in addition to moving data and computing.
pub const INSTRUCTIONS_PER_WARP: f64 = 40.0;

/// Simulated warp instructions per 128 bytes transferred.
pub const INSTRUCTIONS_PER_REQUEST: f64 = 20.0;

/// Warp instructions per second that the simulator executes on two cores, with its sanitizer on.
pub const SIMULATED_PER_SECOND: f64 = 2e7;

/// Bytes that a warp requests with one instruction, at four bytes per thread.
const BYTES_PER_REQUEST: f64 = 128.0;

const WARP: f64 = 32.0;

/// Launches in addition to warm-up and samples: the checks before and after timing.
const CHECKED_LAUNCHES: f64 = 2.0;

/// Device memory of a case: its buffers, guard zones on both sides of each, and a copy of each `inout` buffer for
/// restoring it. `__device__` variables have no guard zones. A host case needs none.
pub fn memory_needed(job: &CaseJob) -> Bytes {
    let buffers = job.buffers.iter().filter(|_| is_on_device(job));
    Bytes(buffers.map(buffer_memory).fold(0, u64::saturating_add))
}

const fn is_on_device(job: &CaseJob) -> bool {
    !matches!(job.body, BodyPlan::Cpu(_))
}

fn buffer_memory(buffer: &BufferPlan) -> u64 {
    let guards = if buffer.symbol.is_some() { 0 } else { 2 * GUARD_BYTES };
    let copies = if buffer.access == Access::InOut { 2 } else { 1 };
    buffer.bytes().0.saturating_mul(copies).saturating_add(guards)
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GroupCost {
    /// Device memory. The cases of a group hold their buffers at the same time and share equal ones.
    pub memory: Bytes,
    pub seconds: f64,
    /// Estimated seconds per launch of the fastest case on the device; 0 on the simulator.
    pub shortest_launch: f64,
}

impl GroupCost {
    /// Costs of a resolved group on this device, or on an assumed one for `None`.
    pub fn estimate(job: &GroupJob, backend: BackendKind, device: Option<&DeviceInfo>) -> Self {
        let memory = distinct_buffers(job).into_iter().map(buffer_memory).fold(0, u64::saturating_add);
        // Inputs are generated once per group; outputs are checked for each case, before and after timing.
        let inputs = job.cases.iter().map(|case| bytes_where(case, |b| b.fill.is_some())).fold(0.0, f64::max);
        let case = |case: &CaseJob| match backend {
            BackendKind::Sim => simulated_seconds(case),
            BackendKind::Cuda | BackendKind::Fake => case_seconds(case, device),
        };
        let rate = if backend == BackendKind::Sim { HOST_BYTES_PER_SECOND } else { DEVICE_BYTES_PER_SECOND };
        let seconds = inputs / rate + job.cases.iter().map(case).sum::<f64>();
        let launches = job.cases.iter().filter(|case| backend != BackendKind::Sim && is_on_device(case));
        let shortest_launch = launches.map(|case| launch_seconds(case, device)).reduce(f64::min).unwrap_or(0.0);
        Self { memory: Bytes(memory), seconds, shortest_launch }
    }
}

fn distinct_buffers(job: &GroupJob) -> Vec<&BufferPlan> {
    // Fills contain floats, which cannot be hashed. Few buffers agree in everything else, so these are compared one by
    // one.
    let mut alike: HashMap<(&str, ElementType, u64, Access), Vec<&BufferPlan>> = HashMap::new();
    let mut distinct = Vec::new();
    for buffer in job.cases.iter().filter(|case| is_on_device(case)).flat_map(|case| &case.buffers) {
        let known = alike.entry((&buffer.name, buffer.element, buffer.len, buffer.access)).or_default();
        if !known.contains(&buffer) {
            known.push(buffer);
            distinct.push(buffer);
        }
    }
    distinct
}

fn bytes_where(case: &CaseJob, wanted: impl Fn(&BufferPlan) -> bool) -> f64 {
    case.buffers.iter().filter(|buffer| wanted(buffer)).map(|buffer| buffer.bytes().0 as f64).sum()
}

/// Seconds for a case on the simulator: one launch of each kernel, and its check.
fn simulated_seconds(case: &CaseJob) -> f64 {
    let moved = case.work.bytes.map_or_else(|| bytes_where(case, |_| true), |bytes| bytes as f64);
    let checks = bytes_where(case, |b| matches!(b.access, Access::Out | Access::InOut)) / HOST_BYTES_PER_SECOND;
    let launched = match &case.body {
        BodyPlan::Launches(launches) => launches.iter().map(warps).sum::<f64>(),
        BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) | BodyPlan::Host(_) => return checks + moved / HOST_BYTES_PER_SECOND,
    };
    let computed = case.work.flops.unwrap_or_default() / WARP;
    let instructions =
        INSTRUCTIONS_PER_WARP * launched + INSTRUCTIONS_PER_REQUEST * moved / BYTES_PER_REQUEST + computed;
    checks + share_of_blocks(case) * instructions / SIMULATED_PER_SECOND
}

fn share_of_blocks(case: &CaseJob) -> f64 {
    const SAMPLE: f64 = 256.0;
    match &case.body {
        BodyPlan::Launches(launches) if case.sampled => {
            let blocks = launches.iter().map(|launch| match &launch.grid {
                GridPlan::Fixed(grid) => grid.iter().map(|&n| n as f64).product(),
                _ => SAMPLE,
            });
            (SAMPLE / blocks.fold(SAMPLE, f64::max)).min(1.0)
        }
        _ => 1.0,
    }
}

/// Number of warps of a launch. If the size is known only after compilation, enough to fill an H100.
fn warps(launch: &LaunchPlan) -> f64 {
    const FULL_DEVICE: f64 = 132.0 * 64.0;
    match (&launch.grid, &launch.block) {
        (GridPlan::Fixed(grid), BlockPlan::Fixed(block)) => {
            let product = |dims: &[u64; 3]| dims.iter().map(|&n| n as f64).product::<f64>();
            product(grid) * (product(block) / WARP).ceil()
        }
        _ => FULL_DEVICE,
    }
}

fn launch_seconds(case: &CaseJob, device: Option<&DeviceInfo>) -> f64 {
    let moved = case.work.bytes.map_or_else(|| bytes_where(case, |_| true), |bytes| bytes as f64);
    let speed = match case.body {
        BodyPlan::Cpu(_) => HOST_BYTES_PER_SECOND,
        _ => device.and_then(DeviceInfo::peak_bandwidth).unwrap_or(ASSUMED_PEAK) * SHARE_OF_PEAK,
    };
    moved / speed
}

fn case_seconds(case: &CaseJob, device: Option<&DeviceInfo>) -> f64 {
    let launch = launch_seconds(case, device);
    let measure = &case.measure;
    let (least, most) = (f64::from(measure.min_samples) * launch, f64::from(measure.max_samples) * launch);
    let sampling = if is_on_device(case) { measure.budget.min(SAMPLING_SECONDS) } else { measure.budget };
    let samples = sampling.min(most).max(least) * measure.regimes.len() as f64;
    let checks = CHECKED_LAUNCHES * bytes_where(case, |b| matches!(b.access, Access::Out | Access::InOut));
    let launches = (f64::from(measure.warmup) + CHECKED_LAUNCHES) * launch;
    CASE_SECONDS + samples + launches + checks / DEVICE_BYTES_PER_SECOND
}
