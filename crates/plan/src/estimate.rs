//! Costs of a plan: device memory by arithmetic, and time by a simple model.
//!
//! The model of time is rough. Inputs are made, and outputs checked, on the device at [`DEVICE_BYTES_PER_SECOND`]. A
//! launch moves its `work.bytes` (without these, all its buffers) at [`SHARE_OF_PEAK`] of the device's peak. A case
//! takes [`CASE_SECONDS`]. It is launched for warm-up, check and re-check, and then for [`SAMPLING_SECONDS`], in which
//! most cases reach their precision: at least `min_samples` and at most `max_samples` times, and no longer than its
//! budget. A case on the host uses up its budget. Compilation is left out, since it is cached. For six shipped
//! experiments on an H200 the estimates add up to 22 s, and the runs took 39 s. Each is within a factor of 2, except
//! `reduction_operators` with 4.4: many of its cases do not reach their precision and use up their budget.
//!
//! On the simulator the estimate is for one launch of a case, without a second set of inputs. Its warp instructions are
//! estimated as [`INSTRUCTIONS_PER_WARP`] for each warp, [`INSTRUCTIONS_PER_REQUEST`] for each 128 bytes that the job
//! moves, and one for each 32 operations. They take 1 / [`SIMULATED_PER_SECOND`] each. Over the committed simulated
//! reports the estimate of instructions has a median of 1.0 times the count; four of five cases are within a factor of
//! 4.

use std::collections::HashMap;

use runner_types::{
    Access, BackendKind, BlockPlan, BodyPlan, BufferPlan, Bytes, CaseJob, DeviceInfo, ElementType, GUARD_BYTES,
    GridPlan, GroupJob, LaunchPlan,
};

/// Bytes per second that a case on the host reads, and that the host of a simulation makes and checks.
pub const HOST_BYTES_PER_SECOND: f64 = 2e9;

/// Bytes per second that are made or checked on the device.
pub const DEVICE_BYTES_PER_SECOND: f64 = 1e11;

/// Seconds that a case needs to load code, allocate memory and read back the result of a check.
pub const CASE_SECONDS: f64 = 0.02;

/// Seconds that the samples of a case take in one regime.
pub const SAMPLING_SECONDS: f64 = 0.03;

/// Assumed share of the memory's peak that a kernel reaches.
pub const SHARE_OF_PEAK: f64 = 0.5;

/// Assumed peak if no device is known, in bytes per second.
pub const ASSUMED_PEAK: f64 = 1e12;

/// Instructions of a simulated warp besides moving and computing data.
pub const INSTRUCTIONS_PER_WARP: f64 = 40.0;

/// Simulated warp instructions for each 128 bytes that the job moves.
pub const INSTRUCTIONS_PER_REQUEST: f64 = 20.0;

/// Warp instructions that the simulator executes per second on two cores, with its sanitizer.
pub const SIMULATED_PER_SECOND: f64 = 2e7;

/// Bytes that a warp requests with one instruction, at four bytes per thread.
const BYTES_PER_REQUEST: f64 = 128.0;

const WARP: f64 = 32.0;

/// Launches of a case besides warm-up and samples: one for the check before and one for the check after.
const CHECKED_LAUNCHES: f64 = 2.0;

/// Device memory of a case: its buffers, guard zones on both sides of each, and a copy of each `inout` buffer to
/// restore it from. A buffer that is a `__device__` variable has no guard zones. A case on the host takes none.
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
    /// Device memory. The cases of a group keep their buffers at the same time and share equal ones.
    pub memory: Bytes,
    pub seconds: f64,
    /// Estimated seconds of one launch of the shortest case on the device; 0 on the simulator.
    pub shortest_launch: f64,
}

impl GroupCost {
    /// Costs of a resolved group on this device, or on an assumed one if it is unknown.
    pub fn estimate(job: &GroupJob, backend: BackendKind, device: Option<&DeviceInfo>) -> Self {
        let memory = distinct_buffers(job).into_iter().map(buffer_memory).fold(0, u64::saturating_add);
        // Inputs are made once per group; outputs are checked before and after timing, case by case.
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
    // Fills contain floats, which do not hash. Buffers that agree in all else are few and compared one by one.
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

/// Seconds of a case on the simulator: one launch of each kernel, and its check.
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

/// Warps of a launch. If its size is known only after compiling, enough to fill an H100.
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
