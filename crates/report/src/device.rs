//! A device as text: what the driver reports, the peaks computed from it, and how many bytes must be in flight by
//! Little's law.

use std::fmt::Write;

use runner_lang::format::bytes;
use runner_results::analyse::{ArithmeticInFlight, MEMORY_LATENCY, MemoryInFlight, warps_for};
use runner_types::{DeviceId, DeviceInfo, Dim3};

/// Describes one device: its properties, launch limits, peaks, and what it takes to hide latency.
pub fn device(id: &DeviceId, info: &DeviceInfo) -> String {
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
        |cores| format!("{cores} per SM, {} in total", u64::from(cores) * u64::from(info.sm_count)),
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
        "resident per SM",
        &format!("{} threads, {warps} warps, {} blocks", info.max_threads_per_sm, info.max_blocks_per_sm),
    );
    lines.row("threads per block", &format!("{}, at most {}", info.max_threads_per_block, extents(info.max_block_dim)));
    lines.row("blocks per grid", &format!("at most {}", extents(info.max_grid_dim)));
    lines.row("registers", &format!("{} per SM, {} per block", info.registers_per_sm, info.registers_per_block));
    lines.row(
        "shared memory",
        &format!(
            "{} per SM, {} per block, {} with opt-in, {} reserved per block",
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
        || "unknown (the driver reports no memory clock)".to_owned(),
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
    match ArithmeticInFlight::compute(info) {
        Some(need) => lines.row(
            "arithmetic",
            &format!(
                "{} operations per SM, {} of {} warps: a dependent f32 operation takes {} cycles ({})",
                need.operations,
                need.warps,
                info.max_threads_per_sm / info.warp_size.max(1),
                need.cycles,
                need.source
            ),
        ),
        None => lines.row("arithmetic", "unknown for this architecture"),
    }
    match MemoryInFlight::compute(info) {
        Some(need) => {
            let (low, high) = MEMORY_LATENCY;
            lines.row(
                "memory",
                &format!(
                    "{:.0} to {:.0} KiB on the device, {:.1} to {:.1} KiB per SM: a load takes {low:.0} to {high:.0} \
                     SM cycles (assumed), at {:.0} bytes per cycle",
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
                    "{} to {} warps per SM with one float per thread in flight, {} to {} with a float4",
                    warps_for(need.sm.0, 1.0),
                    warps_for(need.sm.1, 1.0),
                    warps_for(need.sm.0, 4.0),
                    warps_for(need.sm.1, 4.0)
                ),
            );
        }
        None => lines.row("memory", "unknown (the driver reports no clocks)"),
    }
}

/// Aligned lines of the form `name   value`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::Bytes;

    fn h100() -> DeviceInfo {
        DeviceInfo { memory_free: Some(Bytes(84_400_000_000)), ..runner_types::h100() }
    }

    /// The peak is 2619 MHz × 2 × 5120 bit ÷ 8 = 3352.3 GB/s, and 132 × 128 × 2 × 1.98 GHz = 66.9 TFLOP/s. Divided by
    /// 1.98 GHz that is 1693 bytes per cycle: in 400 cycles 677,253 bytes = 661 KiB, or 5.0 KiB or 41 warps per SM.
    #[test]
    fn an_h100_is_described_completely() {
        let id = DeviceId { ordinal: 0, uuid: Some("GPU-8f3c2a1e-0011-2233-4455-66778899aabb".to_owned()) };
        let expected = "\
GPU 0: NVIDIA H100 80GB HBM3 (sm_90, GPU-8f3c2a1e-0011-2233-4455-66778899aabb)
  SMs                 132
  FP32 cores          128 per SM, 16896 in total
  SM clock, peak      1980 MHz
  memory              79.2 GiB, 78.6 GiB free, ECC on
  memory clock, peak  2619 MHz
  memory bus          5120 bit
  L2 cache            50 MiB
  constant memory     64 KiB
  warp                32 threads
  resident per SM     2048 threads, 64 warps, 32 blocks
  threads per block   1024, at most 1024 × 1024 × 64
  blocks per grid     at most 2147483647 × 65535 × 65535
  registers           65536 per SM, 65536 per block
  shared memory       228 KiB per SM, 48 KiB per block, 227 KiB with opt-in, 1 KiB reserved per block
  cooperative launch  yes
  peak bandwidth      3352 GB/s (clock × 2 × bus ÷ 8)
  peak arithmetic     66.9 TFLOP/s in f32 (SMs × cores × 2 × clock)
  in flight to hide latency (Little's law: latency × throughput)
  arithmetic          512 operations per SM, 16 of 64 warps: a dependent f32 operation takes 4 cycles (since Volta, \
microbenchmarks by Jia et al. 2018)
  memory              661 to 1323 KiB on the device, 5.0 to 10.0 KiB per SM: a load takes 400 to 800 SM cycles \
(assumed), at 1693 bytes per cycle
                      41 to 81 warps per SM with one float per thread in flight, 11 to 21 with a float4
";
        assert_eq!(device(&id, &h100()), expected);
    }

    #[test]
    fn an_unknown_architecture_says_so_in_place_of_a_number() {
        let mut info = h100();
        info.compute_capability = (99, 0);
        info.cores_per_sm = None;
        info.memory_clock_khz = 0;
        let text = device(&DeviceId { ordinal: 3, uuid: None }, &info);
        assert!(text.starts_with("GPU 3: NVIDIA H100 80GB HBM3 (sm_990)\n"), "{text}");
        assert!(text.contains("  memory clock, peak  not reported\n"), "{text}");
        assert!(text.contains("  peak bandwidth      unknown (the driver reports no memory clock)\n"), "{text}");
        assert!(text.contains("  peak arithmetic     unknown for this architecture\n"), "{text}");
        assert!(text.contains("  memory              unknown (the driver reports no clocks)\n"), "{text}");
    }
}
