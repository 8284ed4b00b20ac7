//! `runner devices`: everything the driver says of each GPU, and what Little's law makes of it.
//!
//! Nothing is measured here. What no driver reports is assumed, and the text names each assumption with its source.

use std::fmt::Write;

use super::cli::DevicesArgs;
use super::{Console, Exit, Failure};
use crate::backend::cuda;
use crate::model::{DeviceId, DeviceInfo, Dim3};

/// Cycles from a load to its data: the span that textbooks give; measured values of recent GPUs lie inside it.
const MEMORY_LATENCY: (f64, f64) = (400.0, 800.0);
/// Bytes that a warp moves when each of its 32 threads loads one float.
const BYTES_PER_WARP: f64 = 128.0;

/// Lists the devices; `--json` writes what `runner plan --device-profile` reads.
pub fn run(args: &DevicesArgs, console: &mut Console) -> Result<Exit, Failure> {
    let devices = cuda::probe().map_err(|error| Failure::environment(format!("no device to list: {error}")))?;
    let text = if args.json {
        json(&devices)?
    } else {
        let driver = cuda::driver_version().map_err(|error| Failure::environment(error.to_string()))?;
        let version = driver.version.unwrap_or_else(|| "of unknown version".to_owned());
        let mut text = format!("driver {version}, CUDA {}.{}\n", driver.cuda.0, driver.cuda.1);
        for (id, info) in &devices {
            text.push('\n');
            text.push_str(&describe(id, info));
        }
        text
    };
    console.print(&text)?;
    Ok(Exit::Success)
}

/// The list of devices, without the memory that happens to be free: a profile describes a device, not a moment.
fn json(devices: &[(DeviceId, DeviceInfo)]) -> Result<String, Failure> {
    let profiles: Vec<DeviceInfo> =
        devices.iter().map(|(_, info)| DeviceInfo { memory_free: None, ..info.clone() }).collect();
    serde_json::to_string_pretty(&profiles)
        .map(|text| text + "\n")
        .map_err(|error| Failure::environment(format!("cannot write the devices as JSON: {error}")))
}

/// One device, a block of lines: what it is, what a block may take, how fast it can be, what hides its latency.
fn describe(id: &DeviceId, info: &DeviceInfo) -> String {
    let mut lines = Lines(String::new());
    let uuid = id.uuid.as_ref().map(|uuid| format!(", {uuid}")).unwrap_or_default();
    lines.head(&format!("GPU {}: {} ({}{uuid})", id.ordinal, info.name, info.architecture()));
    machine(&mut lines, info);
    limits(&mut lines, info);
    peaks(&mut lines, info);
    hiding(&mut lines, info);
    lines.0
}

fn machine(lines: &mut Lines, info: &DeviceInfo) {
    let cores = info.cores_per_sm.map_or_else(
        || "unknown for this architecture".to_owned(),
        |cores| format!("{cores} an SM, {} in all", u64::from(cores) * u64::from(info.sm_count)),
    );
    lines.row("SMs", &info.sm_count.to_string());
    lines.row("FP32 cores", &cores);
    lines.row("SM clock, peak", &megahertz(info.sm_clock_khz));
    let free = info.memory_free.map(|free| format!(", {} free", bytes(free.0))).unwrap_or_default();
    let ecc = if info.ecc { ", ECC on" } else { ", ECC off" };
    lines.row("memory", &format!("{}{free}{ecc}", bytes(info.memory_bytes.0)));
    lines.row("memory clock, peak", &megahertz(info.memory_clock_khz));
    lines.row("memory bus", &format!("{} bit", info.memory_bus_bits));
    lines.row("L2 cache", &bytes(info.l2_bytes));
    lines.row("constant memory", &bytes(u64::from(info.constant_memory)));
}

fn limits(lines: &mut Lines, info: &DeviceInfo) {
    let warps = info.max_threads_per_sm / info.warp_size.max(1);
    lines.row("warp", &format!("{} threads", info.warp_size));
    lines.row(
        "resident on an SM",
        &format!("{} threads, {warps} warps, {} blocks", info.max_threads_per_sm, info.max_blocks_per_sm),
    );
    lines.row("threads a block", &format!("{}, at most {}", info.max_threads_per_block, extents(info.max_block_dim)));
    lines.row("blocks a grid", &format!("at most {}", extents(info.max_grid_dim)));
    lines.row("registers", &format!("{} an SM, {} a block", info.registers_per_sm, info.registers_per_block));
    lines.row(
        "shared memory",
        &format!(
            "{} an SM, {} a block, {} opted in, {} of each block reserved",
            bytes(u64::from(info.shared_per_sm)),
            bytes(u64::from(info.shared_per_block)),
            bytes(u64::from(info.shared_per_block_optin)),
            bytes(u64::from(info.shared_reserved_per_block))
        ),
    );
    lines.row("cooperative launch", if info.cooperative_launch { "yes" } else { "no" });
}

fn peaks(lines: &mut Lines, info: &DeviceInfo) {
    let bandwidth = info.peak_bandwidth().map_or_else(
        || "unknown: the driver reports no memory clock".to_owned(),
        |peak| format!("{:.0} GB/s (clock × 2 × bus ÷ 8)", peak / 1e9),
    );
    let flops = info.peak_flops().map_or_else(
        || "unknown for this architecture".to_owned(),
        |peak| format!("{:.1} TFLOP/s in f32 (SMs × cores × 2 × clock)", peak / 1e12),
    );
    lines.row("peak bandwidth", &bandwidth);
    lines.row("peak arithmetic", &flops);
}

fn hiding(lines: &mut Lines, info: &DeviceInfo) {
    lines.head("  in flight to hide latency (Little's law: latency × throughput)");
    match Arithmetic::of(info) {
        Some(need) => lines.row(
            "arithmetic",
            &format!(
                "{} operations, {} warps an SM of {}: a dependent f32 operation takes {} cycles ({})",
                need.operations,
                need.warps,
                info.max_threads_per_sm / info.warp_size.max(1),
                need.cycles,
                need.source
            ),
        ),
        None => lines.row("arithmetic", "unknown for this architecture"),
    }
    match Memory::of(info) {
        Some(need) => {
            let (low, high) = MEMORY_LATENCY;
            lines.row(
                "memory",
                &format!(
                    "{:.0} to {:.0} KiB on the device, {:.1} to {:.1} KiB an SM: a load takes {low:.0} to {high:.0} SM \
                 cycles (assumed), at {:.0} bytes a cycle",
                    need.device.0 / 1024.0,
                    need.device.1 / 1024.0,
                    need.sm.0 / 1024.0,
                    need.sm.1 / 1024.0,
                    need.bytes_per_cycle
                ),
            );
            lines.row(
                "",
                &format!(
                    "{} to {} warps an SM with one float a thread on its way, {} to {} with a float4",
                    warps(need.sm.0, 1.0),
                    warps(need.sm.1, 1.0),
                    warps(need.sm.0, 4.0),
                    warps(need.sm.1, 4.0)
                ),
            );
        }
        None => lines.row("memory", "unknown: the driver reports no clocks"),
    }
}

/// What keeps the f32 lanes of one SM busy.
#[derive(Debug, PartialEq, Eq)]
struct Arithmetic {
    cycles: u32,
    source: &'static str,
    /// Operations in flight, an SM.
    operations: u32,
    /// Warps with one operation in flight each, an SM.
    warps: u32,
}

impl Arithmetic {
    /// Latency in cycles times lanes; `None` where either is not known.
    fn of(info: &DeviceInfo) -> Option<Self> {
        let (cycles, source) = match info.compute_capability.0 {
            3 => (9, "Kepler, by the microbenchmarks of Jia et al. 2018"),
            5 | 6 => (6, "Maxwell and Pascal, by the microbenchmarks of Jia et al. 2018"),
            7..=12 => (4, "since Volta, by the microbenchmarks of Jia et al. 2018"),
            _ => return None,
        };
        let operations = cycles * info.cores_per_sm?;
        Some(Self { cycles, source, operations, warps: operations.div_ceil(info.warp_size.max(1)) })
    }
}

/// Bytes on their way that keep the memory busy, for the shorter and the longer latency.
#[derive(Debug, PartialEq)]
struct Memory {
    /// Peak bandwidth over the SM clock, in which the latency is counted.
    bytes_per_cycle: f64,
    device: (f64, f64),
    sm: (f64, f64),
}

impl Memory {
    fn of(info: &DeviceInfo) -> Option<Self> {
        let clock = f64::from(info.sm_clock_khz) * 1e3;
        let sms = f64::from(info.sm_count);
        if clock <= 0.0 || sms <= 0.0 {
            return None;
        }
        let bytes_per_cycle = info.peak_bandwidth()? / clock;
        let device = (MEMORY_LATENCY.0 * bytes_per_cycle, MEMORY_LATENCY.1 * bytes_per_cycle);
        Some(Self { bytes_per_cycle, device, sm: (device.0 / sms, device.1 / sms) })
    }
}

/// Warps that have `bytes` on their way, with `floats` a thread.
fn warps(bytes: f64, floats: f64) -> u32 {
    (bytes / (BYTES_PER_WARP * floats)).ceil() as u32
}

/// Lines of `name   value`, aligned.
struct Lines(String);

impl Lines {
    fn head(&mut self, text: &str) {
        let _ = writeln!(self.0, "{text}");
    }

    fn row(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "  {name:<20}{value}");
    }
}

fn megahertz(khz: u32) -> String {
    if khz == 0 { "not reported".to_owned() } else { format!("{:.0} MHz", f64::from(khz) / 1e3) }
}

fn extents(dim: Dim3) -> String {
    format!("{} × {} × {}", dim.x, dim.y, dim.z)
}

/// Bytes in the largest binary unit that leaves at least one; whole where the number is.
fn bytes(count: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| count >> shift > 0) {
        None => format!("{count} B"),
        Some((unit, shift)) if count.trailing_zeros() >= shift => format!("{} {unit}", count >> shift),
        Some((unit, shift)) => format!("{:.1} {unit}", count as f64 / f64::from(1_u32 << shift)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;

    fn h100() -> DeviceInfo {
        DeviceInfo { memory_free: Some(Bytes(84_400_000_000)), ..crate::model::h100() }
    }

    /// The peak is 2619 MHz × 2 × 5120 bit ÷ 8 = 3352.3 GB/s, and 132 × 128 × 2 × 1.98 GHz = 66.9 TFLOP/s; over
    /// 1.98 GHz that is 1693 bytes a cycle, 400 cycles of it 677,253 bytes = 661 KiB, an SM's part 5.0 KiB or 41 warps.
    #[test]
    fn an_h100_is_described_whole() {
        let id = DeviceId { ordinal: 0, uuid: Some("GPU-8f3c2a1e-0011-2233-4455-66778899aabb".to_owned()) };
        let expected = "\
GPU 0: NVIDIA H100 80GB HBM3 (sm_90, GPU-8f3c2a1e-0011-2233-4455-66778899aabb)
  SMs                 132
  FP32 cores          128 an SM, 16896 in all
  SM clock, peak      1980 MHz
  memory              79.2 GiB, 78.6 GiB free, ECC on
  memory clock, peak  2619 MHz
  memory bus          5120 bit
  L2 cache            50 MiB
  constant memory     64 KiB
  warp                32 threads
  resident on an SM   2048 threads, 64 warps, 32 blocks
  threads a block     1024, at most 1024 × 1024 × 64
  blocks a grid       at most 2147483647 × 65535 × 65535
  registers           65536 an SM, 65536 a block
  shared memory       228 KiB an SM, 48 KiB a block, 227 KiB opted in, 1 KiB of each block reserved
  cooperative launch  yes
  peak bandwidth      3352 GB/s (clock × 2 × bus ÷ 8)
  peak arithmetic     66.9 TFLOP/s in f32 (SMs × cores × 2 × clock)
  in flight to hide latency (Little's law: latency × throughput)
  arithmetic          512 operations, 16 warps an SM of 64: a dependent f32 operation takes 4 cycles (since Volta, by \
the microbenchmarks of Jia et al. 2018)
  memory              661 to 1323 KiB on the device, 5.0 to 10.0 KiB an SM: a load takes 400 to 800 SM cycles \
(assumed), at 1693 bytes a cycle
                      41 to 81 warps an SM with one float a thread on its way, 11 to 21 with a float4
";
        assert_eq!(describe(&id, &h100()), expected);
    }

    #[test]
    fn an_unknown_architecture_says_so_in_place_of_a_number() {
        let mut info = h100();
        info.compute_capability = (99, 0);
        info.cores_per_sm = None;
        info.memory_clock_khz = 0;
        let text = describe(&DeviceId { ordinal: 3, uuid: None }, &info);
        assert!(text.starts_with("GPU 3: NVIDIA H100 80GB HBM3 (sm_990)\n"), "{text}");
        assert!(text.contains("  memory clock, peak  not reported\n"), "{text}");
        assert!(text.contains("  peak bandwidth      unknown: the driver reports no memory clock\n"), "{text}");
        assert!(text.contains("  peak arithmetic     unknown for this architecture\n"), "{text}");
        assert!(text.contains("  memory              unknown: the driver reports no clocks\n"), "{text}");
    }

    #[test]
    fn kepler_needs_what_its_192_lanes_and_9_cycles_make() {
        let mut info = h100();
        info.compute_capability = (3, 5);
        info.cores_per_sm = Some(192);
        let need = Arithmetic::of(&info).map(|need| (need.operations, need.warps));
        assert_eq!(need, Some((1728, 54)));
    }

    #[test]
    fn json_is_a_profile_without_the_moment() -> Result<(), Box<dyn std::error::Error>> {
        let id = DeviceId { ordinal: 0, uuid: None };
        let text = json(&[(id, h100())])?;
        let read: Vec<DeviceInfo> = serde_json::from_str(&text)?;
        assert_eq!(read, [DeviceInfo { memory_free: None, ..h100() }]);
        assert!(!text.contains("memory_free"), "{text}");
        Ok(())
    }

    #[test]
    fn bytes_are_whole_where_they_are() {
        assert_eq!([0, 512, 1024, 1536, 52_428_800].map(bytes), ["0 B", "512 B", "1 KiB", "1.5 KiB", "50 MiB"]);
    }
}
