//! Outcomes, notes and environments in words.
//!
//! Records hold data; this is where that data becomes sentences.

use super::units::{self, TimeUnit};
use runner_lang::format::{bytes, part_of, plural, plural_of, rough};
use runner_results::analyse::{self, Bound};
use runner_types::{
    Allowed, Calibration, Case, CaseRecord, Ceilings, Clock, DeviceInfo, Environment, FixedInputsReason, Machine,
    Mismatch, Mutant, NoiseFloor, Note, OccupancyLimiter, Outcome, RanAloneReason, Records, Regime, RegimeResult, Roof,
    Settings, Skipped, SmClock, Spread, ThrottleReason, Unchecked, Unit, Verdict, WeakCheck,
};

/// Cell of the `check` column. The marks differ in shape, for readers who cannot distinguish colours.
pub fn check(record: &CaseRecord) -> String {
    match (&record.outcome, &record.verdict) {
        (Outcome::Measured, Verdict::Pass) if record.has_weak_check() => "✓ pass, weak check".to_owned(),
        (Outcome::Unstable { .. }, Verdict::Pass) if record.has_weak_check() => "✓ unstable, weak check".to_owned(),
        (Outcome::Measured, verdict) => passed(verdict).to_owned(),
        (Outcome::Unstable { .. }, Verdict::Pass) => "✓ unstable".to_owned(),
        (Outcome::Unstable { .. }, verdict) => format!("{}, unstable", passed(verdict)),
        (Outcome::Excluded { .. } | Outcome::Invalid { .. } | Outcome::NotRun { .. }, _) => {
            format!("– {}", name(&record.outcome))
        }
        (Outcome::FailedAsExpected { end }, _) => format!("✓ {}, as expected", name(end)),
        (other, _) => format!("✗ {}", name(other)),
    }
}

const fn passed(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓ pass",
        Verdict::Mismatch(_) => "✗ wrong",
        Verdict::Unchecked(Unchecked::NoCheck) => "unchecked",
        Verdict::Unchecked(Unchecked::NotRun) => "not checked",
        Verdict::Unchecked(Unchecked::IsReference) => "reference",
        Verdict::Unchecked(Unchecked::NothingChanged) => "nothing changed",
    }
}

/// Checks of a case that accept wrong results.
pub fn weak_checks(record: &CaseRecord) -> impl Iterator<Item = &WeakCheck> {
    record.notes.iter().filter_map(|note| if let Note::Weak(weak) = note { Some(weak) } else { None })
}

/// Says which wrong results a check accepts, and why: `` `y` would also accept zeros: the largest expected value is
/// 3.4e-6, and abs = 0.01 is allowed ``.
pub fn weak_check(weak: &WeakCheck) -> String {
    let WeakCheck { check, accepts, greatest, tolerance, whole } = weak;
    let names: Vec<String> = accepts.iter().map(mutant).collect();
    let names = match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    };
    let parts = [
        ("abs", tolerance.abs),
        ("rel", tolerance.rel),
        ("ulp", tolerance.ulp as f64),
        ("fraction", whole.fraction),
        ("norm", whole.norm),
        ("max_norm", whole.max_norm),
    ];
    let parts = parts.iter().filter(|(_, value)| *value > 0.0);
    let parts: Vec<String> = parts.map(|(name, value)| format!("{name} = {}", shortest(*value))).collect();
    let allowed = match parts.as_slice() {
        [] => "no difference is".to_owned(),
        [one] => format!("{one} is"),
        several => format!("{} are", several.join(", ")),
    };
    format!(
        "`{check}` would also accept {names}: the largest expected value is {}, and {allowed} allowed",
        rough(*greatest)
    )
}

fn mutant(mutant: &Mutant) -> String {
    match mutant {
        Mutant::Zeros => "zeros".to_owned(),
        Mutant::SmallerHalfZero => "zeros for the smaller half of the values".to_owned(),
        Mutant::Constant => "one constant for all elements".to_owned(),
        Mutant::Input(name) => format!("a copy of `{name}`"),
        Mutant::OtherInputs => "the results for other inputs".to_owned(),
        Mutant::Changed => "the maximum in place of the minimum".to_owned(),
        Mutant::Swapped => "the minimum and the maximum swapped".to_owned(),
        Mutant::Shifted => "all elements shifted by one".to_owned(),
    }
}

pub fn name(outcome: &Outcome) -> String {
    outcome.name().replace('_', " ")
}

/// Counts cases with an outcome: `2 traps`, `1 compile error`, `3 excluded`.
pub fn tally(outcome: &str, count: usize) -> String {
    let name = outcome.replace('_', " ");
    let is_noun = matches!(outcome, "compile_error" | "launch_error" | "trap");
    if is_noun { plural(count as u64, &name) } else { format!("{count} {name}") }
}

/// Why the case was not timed, or only imprecisely; `None` if it was measured.
pub fn reason(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Unstable { reached } => {
            format!("the interval stayed at ± {} % of the median", rough(reached * 100.0))
        }
        Outcome::Suspect { nanoseconds, least, roof } => suspect_text(*nanoseconds, *least, *roof),
        Outcome::Wrong { mismatch } => mismatch_text(mismatch),
        Outcome::TimedOut { limit_seconds, message: None } => {
            format!("no answer within {limit_seconds} s; the worker was killed")
        }
        Outcome::OutOfMemory { needed, available } => {
            format!("needs {} of device memory, {} available", bytes(*needed), bytes(*available))
        }
        Outcome::FailedAsExpected { end } => format!("{}: {}", name(end), reason(end)?),
        Outcome::DidNotFail { fails } => {
            let ways: Vec<String> = fails.iter().map(|failure| failure.name().replace('_', " ")).collect();
            format!("expected to fail as {}, but the result is right", ways.join(" or "))
        }
        other => other.words()?.to_owned(),
    })
}

fn suspect_text(nanoseconds: f64, least: f64, roof: Roof) -> String {
    let what = match roof {
        Roof::Memory => "device memory",
        Roof::L2 => "the L2 cache",
    };
    let shown = |time: f64| {
        let unit = TimeUnit::choose(std::iter::once(time));
        format!("{} {}", rough(time / unit.nanoseconds()), unit.symbol())
    };
    format!(
        "measured at {}, but {what} alone needs at least {} for the bytes of [work]: the timed launch did not do the \
         job, or [work] bytes is too large",
        shown(nanoseconds),
        shown(least)
    )
}

pub fn note(note: &Note) -> String {
    let percent = |part: f64| format!("{:.1} %", part.abs() * 100.0);
    match note {
        Note::Trend { regime, drift } => {
            let way = if *drift > 0.0 { "slower" } else { "faster" };
            format!("{regime}: trend: samples became {} {way} from first to last", percent(*drift))
        }
        Note::Bimodal { regime, share, slower } => {
            format!("{regime}: bimodal: {} of samples are {} slower", percent(*share), percent(*slower))
        }
        Note::Correlated { regime, correlation, half_width } => format!(
            "{regime}: consecutive samples are correlated (r = {correlation:.2}): an interval that accounts for this \
            is ± {}",
            percent(*half_width)
        ),
        Note::Throttled { regime, reasons, discarded, kept } => {
            let reasons: Vec<String> = reasons.iter().map(|reason| throttle(*reason).to_owned()).collect();
            let discarded =
                (*discarded > 0).then(|| format!("{} discarded and repeated", plural(*discarded, "sample")));
            let kept = (*kept > 0).then(|| format!("{} kept, since throttling persisted", plural(*kept, "sample")));
            let counts: Vec<String> = discarded.into_iter().chain(kept).collect();
            format!("{regime}: the device was throttled ({}): {}", reasons.join(", "), counts.join(", "))
        }
        Note::RanAlone { why, timed } => {
            let why = match why {
                RanAloneReason::Memory => {
                    "it does not fit in device memory together with the rest of its group".to_owned()
                }
                RanAloneReason::Reference(name) => format!("`{name}`, its reference, ran alone"),
            };
            let times = if *timed { "; it shares no rounds with other cases" } else { "" };
            format!("ran alone after its group: {why}{times}")
        }
        Note::FixedInputs { why } => {
            let why = match why {
                FixedInputsReason::NotRandom => "none of them is random",
                FixedInputsReason::Expected => "expected values from a file or a list fit only one set of inputs",
                FixedInputsReason::Memory => "device memory has no room for a second set",
            };
            format!("the inputs are the same in every launch: {why}")
        }
        Note::LaunchBound { regime, interval } => format!(
            "{regime}: launch-bound: launches of an empty kernel are {:.1} µs apart, so this is not the kernel's own \
             time; `cold` and `graph` show that",
            interval / 1e3
        ),
        Note::RotatesInCache { sets, bytes: all, l2 } => format!(
            "rotate: all {} of buffers have {} in total and stay in the L2 ({}), as in `warm`",
            plural(u64::from(*sets), "set"),
            bytes(all.0),
            bytes(l2.0)
        ),
        Note::OneSet { why } => format!("checked on one set of inputs, since {}", one_set(*why)),
        Note::NotGated { function } => {
            format!("`{function}` synchronizes, so its launches are not gated: its times include launch latency")
        }
        Note::Loop { iterations, round_trip } => {
            let ran = format!("the loop ended after {}", plural(u64::from(*iterations), "iteration"));
            match round_trip {
                Some(seconds) => format!(
                    "{ran}; the host reads the condition after each, which takes {:.1} µs on an idle device; the time \
                     includes this",
                    seconds * 1e6
                ),
                None => ran,
            }
        }
        Note::Sampled { ran, of } => {
            format!(
                "counts are estimates: {ran} of {of} blocks ran, each weighted by the number of blocks that it \
                represents"
            )
        }
        Note::Underived { kernel, unknown, of } => format!(
            "no counts of machine instructions: the machine code of `{kernel}` is not fully attributed ({unknown} of \
             {of} instructions)"
        ),
        Note::UnderivedAccesses { kernel, counters } => {
            format!("no {} of machine code: not fully attributed in `{kernel}`", counters.join(", "))
        }
        Note::NoMachineCode { why } => format!("no counts of machine code: {why}"),
        Note::Judged { check, elements, of } => {
            format!("`{check}`: {} compared", part_of(*elements, *of, "element", ["was", "were"]))
        }
        Note::Weak(weak) => weak_check(weak),
        Note::NoEnergy { moved, seconds, needed } => {
            format!("no energy: the device's counter changed {moved} times in {seconds} s, but {needed} are needed")
        }
        Note::NoCounters { why } => format!("no hardware counters: {why}"),
        Note::NotMemchecked { outcome } => {
            format!("no memory check: the case ended as {} under compute-sanitizer", outcome.replace('_', " "))
        }
        Note::FailedUnderProfiler { outcome } => {
            format!("no hardware counters: the case ended as {} under the profiler", outcome.replace('_', " "))
        }
        Note::Printed { lines } => format!("the kernel printed {} (kept in the journal)", plural(*lines, "line")),
        Note::NoSamples => "the journal has no usable samples of this case".to_owned(),
        Note::Text(text) => text.clone(),
    }
}

/// Why the simulator checked a case on only one set of inputs.
const fn one_set(why: Skipped) -> &'static str {
    match why {
        Skipped::Cost => "another launch would take more than about a second; `--thorough` checks both sets of inputs",
        Skipped::Function => "how long the reference in Python or C++ takes is unknown; `--thorough` checks two",
        Skipped::Sample => "the sampled blocks do not write everything that a second launch would read from a variable",
        Skipped::Memory => "memory has no room for a second one",
    }
}

/// Reason for throttling, named as in NVML.
const fn throttle(reason: ThrottleReason) -> &'static str {
    match reason {
        ThrottleReason::PowerCap => "power cap",
        ThrottleReason::HardwareSlowdown => "hardware slowdown",
        ThrottleReason::SyncBoost => "sync boost",
        ThrottleReason::Temperature => "thermal slowdown",
        ThrottleReason::HardwareTemperature => "hardware thermal slowdown",
        ThrottleReason::PowerBrake => "hardware power brake",
    }
}

/// Result of comparing the baseline with itself.
pub fn noise(floor: &NoiseFloor, several: bool) -> String {
    let NoiseFloor { regime, width, comparisons } = *floor;
    let regime = if several { format!("{regime}: ") } else { String::new() };
    let over = match comparisons {
        1 => "of the baseline relative to its A/A control, the same launches measured as another variant".to_owned(),
        n => format!("that covers 95 % of {n} A/A controls, a baseline's launches measured as another variant"),
    };
    let width = rough(width * 100.0);
    format!(
        "{regime}Noise floor: ± {width} %, the interval {over}. A ratio marked ≈ overlaps it, or the A/A control of \
         its own group in the same rounds: no difference."
    )
}

/// The median clock, and the lowest if it differs.
pub fn sm_clock(clock: SmClock) -> String {
    if clock.least == clock.median {
        clock.median.to_string()
    } else {
        format!("{} (lowest {})", clock.median, clock.least)
    }
}

/// Number of runs averaged per sample, for each regime that averages several.
pub fn samples(records: &Records) -> Vec<String> {
    let describe = |regime: Regime| {
        let results = records.cases.iter().filter_map(|r| r.result.as_ref());
        let here = || results.clone().filter(|r| r.regime == regime && r.unit == regime.unit());
        let range = |count: fn(&RegimeResult) -> u32| {
            let (least, most) = (here().map(count).min()?, here().map(count).max()?);
            Some((most, if least == most { most.to_string() } else { format!("{least} to {most}") }))
        };
        let ((most, launches), (most_sets, sets)) = (range(|r| r.launches)?, range(|r| r.sets)?);
        let sets = if most_sets > 1 { format!(", rotating over {sets} sets of buffers") } else { String::new() };
        Some(match regime {
            Regime::Cold if most == 1 => return None,
            Regime::Cold => {
                format!("cold: a sample is the trimmed mean of {launches} runs, each with its own flush")
            }
            Regime::Warm => format!(
                "warm: a sample is the mean of {launches} runs back to back{sets}, each with the gap to the next launch"
            ),
            Regime::Graph => format!("graph: a sample is the mean of {launches} runs in one launch of a graph{sets}"),
            Regime::Rotate => {
                format!(
                    "rotate: a sample is the mean of {launches} runs back to back{sets}, each with the gap to the \
                     next launch"
                )
            }
            Regime::Host => {
                "host: a sample is one run on the CPU's clock, from its first call until the device is idle".to_owned()
            }
        })
    };
    Regime::ALL.iter().copied().filter_map(describe).map(|line| line + ".").collect()
}

/// Why a rate exceeds the memory bandwidth: the data came from the cache.
pub fn cached_traffic(record: &CaseRecord, device: &DeviceInfo) -> Option<String> {
    let result = record.result.as_ref().filter(|r| r.regime != Regime::Cold && r.unit == Unit::DeviceNanoseconds)?;
    let rate = units::per_second(record.work.bytes? as f64, &result.time);
    let set = result.working_set.filter(|_| rate > device.peak_bandwidth().unwrap_or(f64::INFINITY))?;
    let held = if set <= device.l2_bytes { "stay" } else { "partly stay" };
    Some(format!(
        "{}: GB/s exceed the bandwidth of device memory: the buffers ({}) {held} in L2 ({}) between runs",
        result.regime,
        bytes(set),
        bytes(device.l2_bytes)
    ))
}

/// Why a case is faster than the measured ceilings.
pub fn above_ceiling(share: f64, record: &CaseRecord, ceilings: &Ceilings, device: &DeviceInfo) -> String {
    let above = format!("{} % faster than the ceiling", rough((share - 1.0) * 100.0));
    if bound_of(record, ceilings) == Bound::Arithmetic {
        return format!(
            "{above}, which is the rate of an f32 multiply-add kernel on this device; other units, or a better mix of \
             instructions, can be faster"
        );
    }
    format!(
        "{above}: up to {} of a run's writes may still be in L2 when it ends, and the ceiling may have been measured \
        with more data",
        bytes(device.l2_bytes)
    )
}

/// What bounds a job whose bytes or operations may be unknown.
fn bound_of(record: &CaseRecord, ceilings: &Ceilings) -> Bound {
    let unknown = if record.work.bytes.is_none() { Bound::Arithmetic } else { Bound::Memory };
    analyse::bound(&record.work, ceilings).unwrap_or(unknown)
}

fn mismatch_text(mismatch: &Mismatch) -> String {
    let Mismatch { what, index, expected, got, error, wrong, of, allowed } = mismatch;
    let allowed = error.and(allowed.as_deref()).and_then(allowed_text).unwrap_or_default();
    let error = error.map(|e| format!(", off by {}{allowed}", shortest(e))).unwrap_or_default();
    let wrong = || format!("; {} wrong", part_of(*wrong, *of, "element", ["is", "are"]));
    let count = if *of > 1 { wrong() } else { String::new() };
    format!("{what}: element {index} is {got}, expected {expected}{error}{count}")
}

/// The tolerance at an element, and what changes it; `None` if there is none.
fn allowed_text(allowed: &Allowed) -> Option<String> {
    let Allowed { rel, abs, ulp } = *allowed;
    let rough = |value: f64| if value < 1e-4 { format!("{value:.1e}") } else { rough(value) };
    let mut parts = Vec::new();
    parts.extend((rel > 0.0).then(|| format!("{} relative", shortest(rel))));
    parts.extend((abs > 0.0).then(|| format!("{} absolute", rough(abs))));
    parts.extend((ulp > 0 && parts.is_empty()).then(|| format!("{ulp} ulp")));
    let text = parts.join(" or ");
    (!parts.is_empty()).then(|| format!("; {text} is allowed (`tolerance`; `runner try`: --tolerance)"))
}

/// Formats a number plainly if that is short, otherwise with an exponent.
fn shortest(value: f64) -> String {
    if value == 0.0 || (1e-4..1e15).contains(&value.abs()) { value.to_string() } else { format!("{value:e}") }
}

pub const fn limiter(limiter: OccupancyLimiter) -> &'static str {
    match limiter {
        OccupancyLimiter::Blocks => "blocks",
        OccupancyLimiter::Warps => "warps",
        OccupancyLimiter::Registers => "registers",
        OccupancyLimiter::Shared => "shared memory",
    }
}

/// Name of the case, with every axis.
pub fn case_name(case: &Case) -> String {
    runner_types::case_name(&case.key)
}

/// Machine and versions, in separate sentences.
pub fn environment(environment: &Environment) -> Vec<String> {
    let device = &environment.device;
    let ticks = device.sm_clock_khz > 0 && device.capabilities.has_clock;
    let clock = if ticks { format!(" at up to {} MHz", device.sm_clock_khz / 1000) } else { String::new() };
    let mut parts = vec![device.architecture(), format!("{} SMs{clock}", device.sm_count)];
    parts.push(format!("{} L2", bytes(device.l2_bytes)));
    let peak = device.peak_bandwidth().map(|p| format!(" at {:.0} GB/s (data-sheet peak)", p / 1e9));
    parts.push(format!("{}{}", bytes(device.memory_bytes.0), peak.unwrap_or_default()));
    if device.ecc {
        parts.push("ECC on".to_owned());
    }
    let mut versions = Vec::new();
    if let Some(driver) = &environment.driver {
        let cuda = environment.driver_cuda.map(|(major, minor)| format!(" (CUDA {major}.{minor})"));
        versions.push(format!("Driver {driver}{}", cuda.unwrap_or_default()));
    }
    let (major, minor) = environment.toolkit.version;
    let build = environment.toolkit.build.clone().unwrap_or_else(|| format!("{major}.{minor}"));
    versions.push(format!("NVRTC {build}"));
    versions.extend(environment.host_compiler.clone());
    versions.push(format!("runner {}", environment.runner));
    vec![format!("{}: {}", device.name, parts.join(", ")), versions.join(", ")]
}

/// Measured properties of the machine, in separate sentences.
pub fn machine(machine: &Machine) -> Vec<String> {
    conditions(machine).into_iter().chain(doubts(machine)).collect()
}

/// Machine settings and measured rates.
pub fn conditions(machine: &Machine) -> Vec<String> {
    let settings = machine.settings.as_ref().and_then(settings);
    let calibrated = machine.clock.as_ref().filter(|clock| !is_doubtful(clock)).map(clock);
    let measured = machine.ceilings.as_ref().map(ceilings).into_iter().chain(calibrated);
    settings.into_iter().chain(measured).chain(machine.spread.as_ref().map(spread)).collect()
}

/// What makes times less reliable.
pub fn doubts(machine: &Machine) -> Vec<String> {
    let uncalibrated = machine.clock.as_ref().filter(|clock| is_doubtful(clock)).map(clock);
    let others = machine.other_processes.map(|others| {
        let others = plural_of(others, "other process", "other processes");
        format!("{others} had the GPU open when the run started and may have disturbed the times")
    });
    uncalibrated.into_iter().chain(others).collect()
}

const fn is_doubtful(clock: &Clock) -> bool {
    matches!(clock, Clock::Uncalibrated { .. })
}

/// Device settings; `None` if unknown.
fn settings(settings: &Settings) -> Option<String> {
    let clock = |what: &str, chosen: Option<u32>, most: Option<u32>| match (chosen, most) {
        (Some(chosen), Some(most)) => Some(format!("{what} clock set to {chosen} MHz of {most}")),
        (None, Some(most)) => Some(format!("{what} clock up to {most} MHz")),
        (_, None) => None,
    };
    let state = |what: &str, is_on: Option<bool>| is_on.map(|on| format!("{what} {}", if on { "on" } else { "off" }));
    let parts: Vec<String> = [
        clock("SM", settings.application_sm_clock_mhz, settings.max_sm_clock_mhz),
        clock("memory", settings.application_memory_clock_mhz, settings.max_memory_clock_mhz),
        settings.power_limit_watts.map(|watts| format!("power limit {watts:.0} W")),
        state("persistence", settings.persistence),
        settings.compute_mode.as_ref().map(|mode| format!("compute mode {mode}")),
        state("MIG", settings.mig),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("Settings: {}", parts.join(", ")))
}

fn ceilings(c: &Ceilings) -> String {
    let written = c.write.map(|write| format!("{:.0} GB/s written, ", write / 1e9)).unwrap_or_default();
    format!(
        "Measured ceilings: {:.0} GB/s read, {written}{:.0} GB/s copied, {:.0} GB/s read from L2; multiply-adds {} \
         TFLOP/s in f32, {} in f64, {} in f16",
        c.read / 1e9,
        c.copy / 1e9,
        c.l2_read / 1e9,
        rough(c.fma_f32 / 1e12),
        rough(c.fma_f64 / 1e12),
        rough(c.fma_f16 / 1e12)
    )
}

fn clock(clock: &Clock) -> String {
    let nanoseconds = |value: f64| format!("{:.2} µs", value / 1e3);
    match clock {
        Clock::Calibrated(Calibration { constant, uncertainty, kernels, reference_clock, empty }) => format!(
            "Clock calibrated against {reference_clock} on {kernels} kernels: {} is subtracted from every interval; \
             calibrated times agree within {}; an empty interval reads {}",
            nanoseconds(*constant),
            nanoseconds(*uncertainty),
            nanoseconds(*empty)
        ),
        Clock::Uncalibrated { why, empty } => format!(
            "Clock uncalibrated: {why}; every time includes the {} that an empty interval reads",
            nanoseconds(*empty)
        ),
    }
}

/// How much a speedup's interval is wider than its samples imply.
fn spread(spread: &Spread) -> String {
    format!(
        "Process-to-process spread: at most {:.0} ns and {:.2} % (standard deviation, {} processes), included in the ± \
         of ratios. A ratio marked † is a difference in this run, but another process may find the opposite",
        spread.nanoseconds,
        100.0 * spread.relative,
        spread.processes
    )
}

pub const fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Memory => "memory",
        Bound::Arithmetic => "arithmetic",
    }
}
