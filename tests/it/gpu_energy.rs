//! Energy measured on a GPU: power is within the board's limit, twice the work takes twice the energy, and the run time
//! implied by the energy matches the device's own clock.

use crate::gpu::{Gpu, gpu, launch, scalar, timed};
use runner_backend::{BufferId, EnergyReading, LaunchArg, Series, Step, TimedBatch};
use runner_stats::{Gain, Look, Meter, MeterLimits, median};
use runner_types::{ElementType, Regime};

/// Longer than in a normal run, so that the counter's resolution matters little.
const LIMITS: MeterLimits = MeterLimits { settle: 0.5, span: 3.0, moves: 20 };
/// Timeout in seconds; a working counter finishes earlier.
const LONGEST: f64 = 30.0;

/// Copies memory with a kernel.
fn copy(gpu: &mut Gpu, from: BufferId, to: BufferId, mib: u64) -> Step {
    let vectors = mib << 16;
    let args = vec![LaunchArg::Buffer(from), LaunchArg::Buffer(to), scalar(ElementType::U64, vectors)];
    let kernel = gpu.kernel("copy");
    launch(kernel, ((vectors / 256) as u32, 1, 1), (256, 1, 1), args)
}

fn meter(gpu: &mut Gpu, steps: &[Step]) -> Gain {
    let mut meter = Meter::new(LIMITS);
    let mut continues = |EnergyReading { at, energy, runs }| {
        meter.take(Look { at, level: energy.0, done: runs });
        !meter.is_enough() && at < LONGEST
    };
    gpu.device.energy_meter().unwrap().run_metered(&[], &[steps], &mut continues).unwrap();
    meter.gain().unwrap_or_else(|| panic!("the counter moved {} times in {LONGEST} s", meter.moves()))
}

#[test]
#[ignore = "needs a GPU"]
fn energy_is_what_the_board_may_take_and_grows_with_the_work() {
    let mut gpu = gpu();
    let limit = gpu.device.monitor().ok().and_then(|monitor| monitor.settings().power_limit_watts);
    let (from, to) = (gpu.device.alloc(1 << 30, 0).unwrap(), gpu.device.alloc(1 << 30, 0).unwrap());
    let mut found = Vec::new();
    // Together larger than any L2 cache, so that twice the bytes are twice the work.
    for mib in [512, 1024] {
        let step = copy(&mut gpu, from, to, mib);
        let gain = meter(&mut gpu, std::slice::from_ref(&step));
        let samples = gpu.time(&timed(vec![step], 21)).unwrap().times;
        let time = median(&samples.iter().map(|sample| sample.whole / 1e9).collect::<Vec<_>>()).unwrap();
        let of_run = gain.per_piece / gain.per_second;
        println!(
            "copy of {mib} MiB: {:.4} J a run, {:.1} W, ± {:.1} %, {} runs in {:.2} s; a run takes {:.1} µs, cold {:.1} µs",
            gain.per_piece,
            gain.per_second,
            gain.uncertainty * 100.0,
            gain.pieces,
            gain.span,
            of_run * 1e6,
            time * 1e6
        );
        // An idle board draws some tens of watts. The limit applies to the mean, so peaks may exceed it slightly.
        assert!(gain.per_second > 50.0, "{gain:?}");
        assert!(limit.is_none_or(|limit| gain.per_second < limit * 1.1), "{gain:?}, limit {limit:?}");
        assert!((of_run / time - 1.0).abs() < 0.15, "a run takes {of_run} s by the host and {time} s by the device");
        found.push(gain.per_piece);
    }
    let ratio = found[1] / found[0];
    assert!((ratio / 2.0 - 1.0).abs() < 0.15, "twice the work took {ratio:.3} times the energy: {found:?}");
}

#[test]
#[ignore = "needs a GPU"]
fn short_runs_follow_each_other_without_a_pause() {
    let mut gpu = gpu();
    if gpu.device.energy_meter().is_err() {
        return;
    }
    let (from, to) = (gpu.device.alloc(1 << 22, 0).unwrap(), gpu.device.alloc(1 << 22, 0).unwrap());
    let step = copy(&mut gpu, from, to, 4);
    let gain = meter(&mut gpu, std::slice::from_ref(&step));
    let series = Series { launches: 300, lead: 1, ..Series::default() };
    let warm = TimedBatch { regime: Regime::Warm, series, ..timed(vec![step], 21) };
    let samples = gpu.time(&warm).unwrap().times;
    let time = median(&samples.iter().map(|sample| sample.whole / 1e9).collect::<Vec<_>>()).unwrap();
    let of_run = gain.per_piece / gain.per_second;
    println!(
        "copy of 4 MiB: {:.1} µJ a run, {:.1} W; a run takes {:.2} µs, warm {:.2} µs",
        gain.per_piece * 1e6,
        gain.per_second,
        of_run * 1e6,
        time * 1e6
    );
    // Metered runs take as long as back-to-back runs behind a gate, unless the device waits for the host in between.
    assert!(of_run / time < 1.25, "a run takes {of_run} s, and {time} s behind a gate");
}
