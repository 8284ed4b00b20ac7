//! The ceilings of a device: the highest rates of reading, writing, copying and multiplying, each over several
//! variants.
//!
//! The fastest variant differs between architectures, so each ceiling is the highest rate of a few shapes, each the
//! median of its samples. Memory is measured twice: with as much as there is room for, and with little more than the L2
//! holds. When a short kernel ends, part of what it wrote is still in L2, so it can exceed the rate of a long one.
//! Tensor cores are left out: plain C++ kernels do not use them.

use super::bench::{Bench, Shape, count, word};
use runner_backend::{BufferId, DeviceError, LaunchArg};
use runner_types::{Ceilings, DeviceInfo, ElementType, ScalarValue};

/// Samples per shape.
const SAMPLES: u32 = 7;

/// Bytes per access.
const VECTOR: u64 = 16;

/// Maximum bytes to read; a copy reads half as much and writes half as much.
const MOST_BYTES: u64 = 4 << 30;

/// How often a launch reads a buffer in L2.
const L2_ROUNDS: u32 = 50;

/// A round has 256 multiply-adds; the loop's own overhead is below 1 %.
const OPERATIONS_PER_ROUND: f64 = 2.0 * 256.0;

/// Rounds per launch: about a millisecond for f32 on an SM with 128 lanes.
const FMA_ROUNDS: u32 = 500;

#[derive(Debug, Clone, Copy)]
struct Cover {
    kernel: &'static str,
    threads: u32,
    /// Vectors in flight per thread.
    ahead: u64,
    /// Blocks per SM of a grid-stride loop; `None` if the grid covers everything at once.
    resident: Option<u32>,
}

const fn once(kernel: &'static str, threads: u32, ahead: u64) -> Cover {
    Cover { kernel, threads, ahead, resident: None }
}

const fn striding(kernel: &'static str, threads: u32, ahead: u64, resident: u32) -> Cover {
    Cover { kernel, threads, ahead, resident: Some(resident) }
}

const READS: [Cover; 6] = [
    once("read_all<1>", 256, 1),
    once("read_all<1>", 512, 1),
    once("read_all<2>", 512, 2),
    once("read_all<2>", 1024, 2),
    once("read_all<4>", 1024, 4),
    striding("read_all<8>", 256, 8, 8),
];

const WRITES: [Cover; 5] = [
    once("write_all<1>", 512, 1),
    once("write_all<1>", 1024, 1),
    once("write_all<2>", 1024, 2),
    once("write_all<4>", 512, 4),
    striding("write_all<8>", 256, 8, 8),
];

const COPIES: [Cover; 6] = [
    once("copy_all<1>", 512, 1),
    once("copy_all<1>", 1024, 1),
    once("copy_all<2>", 1024, 2),
    once("copy_all<4>", 512, 4),
    striding("copy_all<4>", 512, 4, 4),
    striding("copy_all<8>", 256, 8, 8),
];

const L2_READS: [Cover; 3] =
    [striding("read_again<2>", 1024, 2, 2), striding("read_again<4>", 512, 4, 4), striding("read_again<8>", 256, 8, 8)];

/// Threads per block and blocks per SM.
const FMA_SHAPES: [(u32, u32); 3] = [(256, 4), (256, 8), (1024, 2)];

const FMA_KERNELS: [&str; 3] = ["multiply_add<float>", "multiply_add<double>", "multiply_add_halves"];

/// Name expressions of all kernels used here, with repetitions.
pub(super) fn kernels() -> impl Iterator<Item = &'static str> {
    let covers = READS.iter().chain(&WRITES).chain(&COPIES).chain(&L2_READS).map(|cover| cover.kernel);
    covers.chain(FMA_KERNELS)
}

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Ceilings, DeviceError> {
    let info = bench.device.info().clone();
    let bytes = working_set(bench.device.memory_free(), info.memory_bytes.0);
    let sink = bench.zeros(VECTOR)?;
    let from = bench.zeros(bytes)?;
    let to = bench.zeros(bytes / 2)?;
    let (mut read, mut write, mut copy) = (0.0_f64, 0.0_f64, 0.0_f64);
    for bytes in [bytes, beyond_cache(info.l2_bytes, bytes)] {
        let moved = |n: u64| n as f64 * VECTOR as f64;
        let reads = best(bench, &info, &READS, bytes, |n| (moved(n), vec![buffer(from), count(n), buffer(sink)]))?;
        let writes = best(bench, &info, &WRITES, bytes, |n| (moved(n), vec![buffer(from), count(n)]))?;
        let copies =
            best(bench, &info, &COPIES, bytes / 2, |n| (2.0 * moved(n), vec![buffer(from), buffer(to), count(n)]))?;
        (read, write, copy) = (read.max(reads), write.max(writes), copy.max(copies));
    }
    // A cache in two partitions may hold a line twice, but a quarter of it certainly fits.
    let l2_read = best(bench, &info, &L2_READS, (info.l2_bytes / 4).clamp(1 << 16, bytes), |n| {
        let amount = n as f64 * VECTOR as f64 * f64::from(L2_ROUNDS);
        (amount, vec![buffer(from), count(n), word(L2_ROUNDS), buffer(sink)])
    })?;
    let scalar = |element, bits| LaunchArg::Scalar(ScalarValue { element, bits });
    let single = |value: f32| scalar(ElementType::F32, u64::from(value.to_bits()));
    let double = |value: f64| scalar(ElementType::F64, value.to_bits());
    // The constants are 0.5 and 0.25 as halves, in both halves of a register.
    let halves = [word(0x3800_3800), word(0x3400_3400)];
    let [f32, f64, f16] = FMA_KERNELS;
    Ok(Ceilings {
        read,
        write: Some(write),
        copy,
        l2_read,
        fma_f32: fastest_fma(bench, &info, f32, [single(0.5), single(0.25)], 1.0, sink)?,
        fma_f64: fastest_fma(bench, &info, f64, [double(0.5), double(0.25)], 1.0, sink)?,
        fma_f16: fastest_fma(bench, &info, f16, halves, 2.0, sink)?,
    })
}

/// Largest power of two, in bytes, that is at most an eighth of the free memory.
pub(super) fn working_set(free: Option<u64>, total: u64) -> u64 {
    let most = (free.unwrap_or(total) / 8).clamp(1 << 20, MOST_BYTES);
    1 << most.ilog2()
}

/// Smallest power of two, in bytes, that is at least twice the size of the L2, limited to `room`.
fn beyond_cache(l2_bytes: u64, room: u64) -> u64 {
    (2 * l2_bytes).next_power_of_two().min(room)
}

/// Highest rate over several ways to cover `bytes` bytes. `work` returns a launch's amount of work and its arguments
/// for a number of vectors.
fn best(
    bench: &mut Bench<'_>,
    info: &DeviceInfo,
    covers: &[Cover],
    bytes: u64,
    work: impl Fn(u64) -> (f64, Vec<LaunchArg>),
) -> Result<f64, DeviceError> {
    let vectors = bytes / VECTOR;
    let (amount, args) = work(vectors);
    let mut highest = 0.0_f64;
    for cover in covers {
        let all = vectors.div_ceil(u64::from(cover.threads) * cover.ahead);
        let blocks = cover.resident.map_or(all, |each| u64::from(each) * u64::from(info.sm_count));
        let shape = Shape { kernel: cover.kernel, blocks, threads: cover.threads, args: args.clone() };
        highest = highest.max(rate(bench, &shape, amount)?);
    }
    Ok(highest)
}

/// Highest rate of multiply-adds, with `lanes` per instruction.
fn fastest_fma(
    bench: &mut Bench<'_>,
    info: &DeviceInfo,
    kernel: &str,
    [factor, addend]: [LaunchArg; 2],
    lanes: f64,
    sink: BufferId,
) -> Result<f64, DeviceError> {
    let mut highest = 0.0_f64;
    for (threads, each) in FMA_SHAPES {
        let blocks = u64::from(each) * u64::from(info.sm_count);
        let args = vec![factor.clone(), addend.clone(), word(FMA_ROUNDS), buffer(sink)];
        let operations = OPERATIONS_PER_ROUND * lanes * f64::from(FMA_ROUNDS) * f64::from(threads) * blocks as f64;
        highest = highest.max(rate(bench, &Shape { kernel, blocks, threads, args }, operations)?);
    }
    Ok(highest)
}

/// `amount` per second, at the median time.
fn rate(bench: &mut Bench<'_>, shape: &Shape<'_>, amount: f64) -> Result<f64, DeviceError> {
    let times = bench.times(shape, SAMPLES)?;
    // `times` is never empty.
    Ok(runner_stats::median(&times).map_or(0.0, |time| amount / (time * 1e-9)))
}

fn buffer(id: BufferId) -> LaunchArg {
    LaunchArg::Buffer(id)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::super::fixture::{device, request};
    use super::*;
    use crate::survey;

    /// The device has slightly less than 256 MiB free, so 2^24 bytes are read. In 10 µs that is 1.6777216 TB/s; 256 KiB
    /// in L2 read 50 times in 10 µs are 1.31072 TB/s. The best of three multiply-add shapes is the one with the most
    /// threads, 4 SMs × 8 × 256: 2·256·500·8192 operations in 10 µs are 209.7152 TFLOP/s, and twice that with halves.
    #[test]
    fn a_ceiling_is_the_work_over_the_time_of_the_fastest_way() {
        let mut device = device(|name| match name {
            "read_all<8>" | "write_all<4>" | "copy_all<2>" => 10_000.0,
            name if name.contains("_all<") => 25_000.0,
            _ => 10_000.0,
        });
        let found = survey(&mut device, &request(true)).unwrap().ceilings.unwrap();
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-9;
        assert!(near(found.read, 1.677_721_6e12), "{}", found.read);
        assert!(near(found.write.unwrap(), 1.677_721_6e12), "{:?}", found.write);
        assert!(near(found.copy, 1.677_721_6e12), "{}", found.copy);
        assert!(near(found.l2_read, 1.310_72e12), "{}", found.l2_read);
        assert!(near(found.fma_f32, 209.715_2e12), "{}", found.fma_f32);
        assert!(near(found.fma_f16, 419.430_4e12), "{}", found.fma_f16);
    }

    #[test]
    fn a_survey_leaves_no_memory_behind() {
        let mut device = device(|_| 1000.0);
        let before = runner_backend::Device::memory_free(&device);
        survey(&mut device, &request(true)).unwrap();
        assert_eq!(runner_backend::Device::memory_free(&device), before);
    }

    #[test]
    fn a_zero_time_ends_the_survey_with_the_kernels_name_and_frees_the_memory() {
        let mut device = device(|name| if name == "copy_all<4>" { 0.0 } else { 1000.0 });
        let before = runner_backend::Device::memory_free(&device);
        let refused = survey(&mut device, &request(true)).unwrap_err().to_string();
        assert_eq!(refused, "survey: the device's clock returns no valid time for `copy_all<4>`");
        assert_eq!(runner_backend::Device::memory_free(&device), before);
    }

    #[test]
    fn a_short_kernel_moves_more_than_the_cache_holds() {
        assert_eq!(beyond_cache(50 << 20, 4 << 30), 128 << 20);
        assert_eq!(beyond_cache(64 << 20, 4 << 30), 128 << 20);
        assert_eq!(beyond_cache(50 << 20, 16 << 20), 16 << 20);
    }

    #[test]
    fn the_working_set_fits_into_what_is_free() {
        assert_eq!(working_set(Some(79 << 30), 80 << 30), 4 << 30);
        assert_eq!(working_set(Some(3 << 30), 80 << 30), 256 << 20);
        assert_eq!(working_set(None, 16 << 30), 2 << 30);
        assert_eq!(working_set(Some(0), 1 << 30), 1 << 20);
    }
}
