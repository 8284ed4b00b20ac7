//! Simulates how often a comparison is wrong: false changes, missed changes, and undecided rows.
//!
//! A simulated time is the kernel's own time plus effects of the process: a constant shared by all its kernels, a
//! constant and a fraction specific to the kernel, and sampling noise. One kernel in ten varies three times as much
//! between processes, which no calibration shows. The spread stated in a report is the upper limit from five processes
//! with ten kernels, as in a calibration.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::fixture::{compared, in_regime, records};
use crate::analyse::compare::{Kind, Options};
use crate::analyse::times::time_of;
use runner_types::{CaseRecord, GroupKey, Measurement, Records, Regime, Round, Spread, Unit, Value};

/// True standard deviation between processes, in nanoseconds, of the constant shared by a process's kernels. A report
/// from an H100 shows such values.
const SHARED: f64 = 15.0;
/// The same for each kernel's own constant.
const CONSTANT: f64 = 20.0;

/// True standard deviation between processes, as a fraction of the time.
const RELATIVE: f64 = 5e-4;

/// One in this many kernels varies more.
const WILD: i64 = 10;
/// Factor by which such kernels vary more.
const WILDER: f64 = 3.0;

struct Source(ChaCha8Rng);

impl Source {
    /// A uniform random number between 0 and 1.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A standard normal random number.
    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// The result of a calibration.
    fn spread(&mut self) -> Spread {
        let kernels = |source: &mut Self, deviation: f64| -> f64 {
            let groups: Vec<Vec<f64>> =
                (0..10).map(|_| (0..5).map(|_| deviation * source.normal()).collect()).collect();
            runner_stats::pooled_deviation(&groups).unwrap().at_most()
        };
        let constant = SHARED.hypot(CONSTANT);
        Spread { nanoseconds: kernels(self, constant), relative: kernels(self, RELATIVE), processes: 5 }
    }

    /// Twenty samples with 0.5 % noise and some outliers. Twenty are enough for the default precision.
    fn samples(&mut self, nanoseconds: f64, process: u32) -> Vec<Round> {
        let sample = |source: &mut Self| {
            let outlier = if source.uniform() < 0.05 { 0.02 * source.uniform() } else { 0.0 };
            nanoseconds * (1.0 + 0.005 * source.normal() + outlier)
        };
        (0..20).map(|round| Round { round, whole: sample(self), process, ..Round::default() }).collect()
    }

    /// A kernel with this time, measured in processes with these shared constants.
    fn case(&mut self, n: i64, nanoseconds: f64, shared: &[f64]) -> CaseRecord {
        let wild = if n % WILD == 0 { WILDER } else { 1.0 };
        let of_process = |(process, shared): (u32, &f64)| {
            let own = wild * (CONSTANT * self.normal() + RELATIVE * nanoseconds * self.normal());
            self.samples(nanoseconds + shared + own, process)
        };
        let rounds = (0..).zip(shared).flat_map(of_process).collect();
        let measurement = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds);
        let (time, processes) = time_of(&measurement, 0.95).unwrap();
        let mut case = in_regime(super::fixture::case(n), Regime::Cold, time);
        case.result.as_mut().unwrap().processes = processes;
        case
    }

    /// A report of kernels with these times, each measured by this many processes.
    fn report(&mut self, kernels: &[f64], processes: u32) -> Records {
        let shared: Vec<f64> = (0..processes).map(|_| SHARED * self.normal()).collect();
        let cases =
            kernels.iter().enumerate().map(|(n, nanoseconds)| self.case(n as i64, *nanoseconds, &shared)).collect();
        let mut report = records(cases);
        report.environment.machine.spread = Some(self.spread());
        report
    }
}

fn source(seed: u64) -> Source {
    Source(ChaCha8Rng::seed_from_u64(seed))
}

/// `count` kernel times in ns, log-spaced from 2 µs to 2 ms.
fn kernels(count: usize) -> Vec<f64> {
    (0..count).map(|i| 2e3 * 1000_f64.powf(i as f64 / count as f64)).collect()
}

/// Fractions of rows of unchanged code that are called changed and that are ambiguous.
fn of_unchanged(seed: u64, processes: u32) -> [f64; 2] {
    let mut source = source(seed);
    let kernels = kernels(500);
    let (mut called, mut undecided) = (0, 0);
    for _ in 0..10 {
        let (base, new) = (source.report(&kernels, processes), source.report(&kernels, processes));
        let comparison = compared(&base, &new, &Options::default());
        called += comparison.changes().filter(|c| matches!(c.kind, Kind::Faster | Kind::Slower)).count();
        undecided += comparison.changes().filter(|c| c.kind == Kind::Ambiguous).count();
    }
    [called, undecided].map(|rows| rows as f64 / 5000.0)
}

/// Fraction of changes detected if half of twenty kernels with this time are slower by `change`.
fn found(seed: u64, nanoseconds: f64, change: f64, processes: u32) -> f64 {
    let mut source = source(seed);
    let is_changed = |n: usize| n % 2 == 1;
    let kernels = |change: f64| -> Vec<f64> {
        (0..20).map(|n| nanoseconds * if is_changed(n) { 1.0 + change } else { 1.0 }).collect()
    };
    let mut found = 0;
    for _ in 0..40 {
        let (base, new) = (source.report(&kernels(0.0), processes), source.report(&kernels(change), processes));
        let comparison = compared(&base, &new, &Options::default());
        let changes = comparison.changes().enumerate();
        found += changes.filter(|(n, change)| is_changed(*n) && change.kind == Kind::Slower).count();
    }
    found as f64 / 400.0
}

#[test]
fn of_unchanged_kernels_at_most_one_in_two_hundred_is_called_and_one_in_ten_undecided() {
    for processes in [1, 5] {
        let [called, undecided] = of_unchanged(1, processes);
        assert!(called <= 0.005 && undecided <= 0.1, "{processes} processes: {called} called, {undecided} undecided");
    }
}

#[test]
fn two_percent_in_five_microseconds_are_found_by_five_processes() {
    let found = found(2, 5e3, 0.02, 5);
    assert!(found >= 0.95, "{found}");
}

#[test]
fn one_percent_in_fifty_microseconds_is_found_by_one_process() {
    let found = found(3, 50e3, 0.01, 1);
    assert!(found >= 0.95, "{found}");
}

/// Two reports. In the new one, every interval is 200 ns longer, and every `each`th kernel is 3 % slower.
fn offset_reports(seed: u64, kernels: &[f64], each: usize) -> [Records; 2] {
    let mut source = source(seed);
    let change = |n: usize| if n % each == each - 1 { 1.03 } else { 1.0 };
    let changed: Vec<f64> = kernels.iter().enumerate().map(|(n, time)| time * change(n) + 200.0).collect();
    [source.report(kernels, 5), source.report(&changed, 5)]
}

#[test]
fn a_clock_that_reads_more_in_a_whole_run_makes_no_kernel_slower() {
    let kernels = kernels(500);
    let (mut called, mut undecided) = (0, 0);
    for seed in 0..10 {
        let [base, new] = offset_reports(seed, &kernels, usize::MAX);
        let comparison = compared(&base, &new, &Options::default());
        let offset = comparison.reports[0].clock_offsets[0].clone();
        assert!((offset.nanoseconds - 200.0).abs() < 40.0, "{offset:?}");
        called += comparison.changes().filter(|c| matches!(c.kind, Kind::Faster | Kind::Slower)).count();
        undecided += comparison.changes().filter(|c| c.kind == Kind::Ambiguous).count();
    }
    assert!(called <= 25 && undecided <= 500, "of 5000 {called} called, {undecided} undecided");
}

#[test]
fn kernels_that_are_slower_are_found_beside_a_clock_that_reads_more() {
    let kernels: Vec<f64> = (0..60).map(|n| 6e3 + 250.0 * f64::from(n)).collect();
    let [base, new] = offset_reports(3, &kernels, 10);
    let comparison = compared(&base, &new, &Options::default());
    let slower: Vec<usize> =
        (0..).zip(comparison.changes()).filter(|(_, c)| c.kind == Kind::Slower).map(|(n, _)| n).collect();
    assert_eq!(slower, [9, 19, 29, 39, 49, 59]);
    let ratio = comparison.changes().nth(9).and_then(|change| change.time.as_ref()).unwrap().ratio;
    assert!((ratio - 1.03).abs() < 0.012, "{ratio}");
}

/// Ten groups of six kernels. The third group has a clock offset of 90 ns, and one of its kernels is 5 % slower.
#[test]
fn kernels_are_compared_with_those_that_were_measured_beside_them() {
    let mut source = source(4);
    let kernels: Vec<f64> = (0..60).map(|n| 2e3 + 50.0 * f64::from(n)).collect();
    let shifted = |n: usize| if n / 6 == 2 { 90.0 } else { 0.0 };
    let changed: Vec<f64> =
        kernels.iter().enumerate().map(|(n, time)| time * if n == 14 { 1.05 } else { 1.0 } + shifted(n)).collect();
    let [base, new] = [&kernels, &changed].map(|kernels| {
        let mut report = source.report(kernels, 5);
        for (n, case) in (0_i64..).zip(&mut report.cases) {
            case.case.group = GroupKey(vec![("n".to_owned(), Value::Int(n / 6))]);
        }
        report
    });
    let comparison = compared(&base, &new, &Options::default());
    let called: Vec<usize> =
        (0..).zip(comparison.changes()).filter(|(_, c)| c.kind == Kind::Slower).map(|(n, _)| n).collect();
    assert_eq!(called, [14]);
    let offsets = comparison.reports[0].clock_offsets.iter();
    let of_third = offsets.filter(|offset| offset.group == Some(GroupKey(vec![("n".to_owned(), Value::Int(2))])));
    let found: Vec<f64> = of_third.map(|offset| offset.nanoseconds).collect();
    assert!(found.len() == 1 && (found[0] - 90.0).abs() < 40.0, "{found:?}");
}

/// Prints the rates quoted in the manual, and checks the rates of unchanged kernels for any number of processes: `cargo
/// test --release -p runner-results --lib -- rates --ignored --nocapture`.
#[test]
#[ignore = "takes a minute"]
#[expect(clippy::print_stdout, reason = "it is for a reader")]
fn rates_of_the_manual() {
    for processes in [1, 3, 5, 10] {
        let [called, undecided] = of_unchanged(11, processes);
        assert!(called <= 0.005 && undecided <= 0.1, "{processes} processes: {called} called, {undecided} undecided");
        println!(
            "{processes} processes, unchanged: {:.2} % called, {:.1} % ambiguous",
            100.0 * called,
            100.0 * undecided
        );
        for nanoseconds in [2e3, 5e3, 10e3, 20e3, 50e3, 200e3, 1e6] {
            let shares = [0.01, 0.02, 0.03, 0.05].map(|change| 100.0 * found(12, nanoseconds, change, processes));
            println!("  {:6.0} µs: 1, 2, 3, 5 % found in {shares:.0?} %", nanoseconds / 1e3);
        }
    }
}
