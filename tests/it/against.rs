//! Which changes `--against` detects and which it does not, on a device with known timing noise.

use fake_backend::{FakeDevice, FakeKernel, device_info};
use runner_execute::{GroupCache, run_group};
use runner_results::analyse;
use runner_results::analyse::compare::{ClaimKind, Comparison, Gate, Kind, Options, Together, compare_together};
use runner_results::journal::History;
use runner_types::{BlockPlan, BodyPlan, CaseJob, Claim, Event, GridPlan, LaunchPlan, MeasurePlan};

/// Standard deviation of a time, relative to it.
const NOISE: f64 = 0.003;

/// A standard normal deviate for `(seed, nth)`: the sum of twelve uniform deviates, minus 6.
fn deviate(seed: u64, nth: u64) -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ nth.wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

fn launch(kernel: &str) -> LaunchPlan {
    LaunchPlan {
        grid: GridPlan::Fixed([4, 1, 1]),
        block: BlockPlan::Fixed([256, 1, 1]),
        ..fake_backend::ready_launch("kernels/test.cu", kernel)
    }
}

/// Compares four variants with a base that takes the same times, except that `c` may be slower by a factor.
fn trial(seed: u64, slowed: Option<f64>) -> Comparison {
    measured(seed, ("c", slowed.unwrap_or(1.0)), &[])
}

/// Like [`trial`], for any variant and with claims. The manifest's baseline is `a`.
fn measured(seed: u64, (slowed, factor): (&str, f64), claims: &[Claim]) -> Comparison {
    let variants = ["a", "a@base", "b", "b@base", "c", "c@base", "d", "d@base"];
    let mut job = fake_backend::idle_group("regimes", 0, &variants, 30.0);
    let measure = MeasurePlan { min_samples: 20, max_samples: 60, ..job.cases[0].measure.clone() };
    let mut device = FakeDevice::new(device_info());
    for (index, (variant, case)) in variants.iter().zip(&mut job.cases).enumerate() {
        let nanoseconds = 20e3 * if *variant == slowed { factor } else { 1.0 };
        let stream = seed * 16 + index as u64;
        let kernel = FakeKernel::new(|_| Ok(()))
            .taking(move |nth| nanoseconds * (1.0 + NOISE * deviate(stream, u64::from(nth))));
        device = device.with_kernel(variant, kernel);
        let body = BodyPlan::Launches(vec![launch(variant)]);
        *case = CaseJob { body, measure: measure.clone(), ..case.clone() };
    }
    let cases = job.cases.iter().map(|case| case.case.clone()).collect();
    // Keeps only the start of the run.
    let mut events: Vec<Event> = fixture::regimes().events.into_iter().take(1).collect();
    if let Some(Event::RunStarted { header, .. }) = events.first_mut() {
        header.baseline = Some(("a".to_owned(), Vec::new()));
        header.variants = variants.map(str::to_owned).into();
        header.claims = claims.to_vec();
    }
    events.push(Event::CasesPlanned { todo: cases, held: Vec::new() });
    assert!(run_group(&mut device, &job, &mut GroupCache::default(), &mut |event| events.push(event)).is_ok());
    events.push(Event::RunFinished { complete: true, wall_seconds: 1.0 });
    let records = analyse::records(&events).unwrap();
    compare_together(&[Together::split(History::fold(events), &records, "@base").unwrap()], &Options::default())
}

fn called(comparison: &Comparison) -> Vec<(&str, Kind)> {
    let is_called = |kind| matches!(kind, Kind::Slower | Kind::Faster);
    let called = comparison.changes().filter(|change| is_called(change.kind));
    called.map(|change| (change.case.key.variant.as_str(), change.kind)).collect()
}

#[test]
fn a_kernel_that_is_2_percent_slower_is_found_in_95_of_100_runs() {
    let mut found = 0;
    for seed in 1..=100 {
        let comparison = trial(seed, Some(1.02));
        assert_eq!(comparison.tests, 4);
        let called = called(&comparison);
        assert!(called.iter().all(|call| *call == ("c", Kind::Slower)), "seed {seed}: {called:?}");
        found += called.len();
    }
    println!("found in {found} of 100 runs");
    assert!(found >= 95, "found in {found} of 100 runs");
}

#[test]
fn of_100_runs_of_the_same_kernels_none_has_a_change() {
    let mut same = 0;
    for seed in 1001..=1100 {
        let comparison = trial(seed, None);
        assert_eq!(called(&comparison), [], "seed {seed}");
        same += comparison.counts().get(&Kind::Same).copied().unwrap_or(0);
    }
    println!("{same} of 400 rows are the same, the rest ambiguous");
    assert!(same >= 380, "{same} of 400 rows are the same");
}

/// The new baseline `a` takes twice as long, so `c` is now twice as fast as `a`. In the base, both take the same time.
#[test]
fn claims_compare_new_cases_with_new_ones_and_those_of_the_base_with_each_other() {
    let claim = |text: &str| Claim { text: text.to_owned(), condition: None, regime: None, backend: None };
    let claims = ["speedup(\"c\", \"a\") >= 1.5", "speedup(\"c\", \"a\") < 1.5", "speedup(\"c\", \"b\") < 1.5"];
    let found = measured(7, ("a", 2.0), &claims.map(claim));
    let kinds: Vec<ClaimKind> = found.claims().map(|claim| claim.kind).collect();
    assert_eq!(kinds, [ClaimKind::Repaired, ClaimKind::NewlyBroken, ClaimKind::Held]);
    // A broken claim takes precedence over a regression.
    assert_eq!(called(&found), [("a", Kind::Slower)]);
    assert_eq!(found.gate(), Gate::BrokenClaim);
}
