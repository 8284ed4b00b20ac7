//! Times the correct cases in one regime, in interleaved rounds, each in a random order from a seed.
//!
//! Drift (clocks, temperature) affects all variants alike, so ratios of samples from the same round are meaningful. A
//! variant stops when the interval of its median is narrow enough, or at its limits. The baseline and its A/A control
//! continue to the end, so that every round has them. The control is the baseline under another name: its difference
//! from the baseline is noise.

use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::attribution::Halt;
use super::bench::Bench;
use super::case_samples::{CaseSamples, Role};
use super::cases::{Cases, ReadyCase};
use super::fill::below;
use super::recheck::{Changes, change_between_rounds, check_last, check_on_other_inputs, check_sample};
use super::series::{lengthen, make_sets, take_sample, timed_batch, timed_run};
use super::stop::{Lost, Stop};
use super::watch::Watch;
use runner_backend::Series;
use runner_types::{Activity, MeasurePlan, Regime, Sharing};

/// Measures every device case that requests a regime.
pub fn measure_regime(cases: &mut Cases<'_, '_>, regime: Regime) -> Result<Vec<CaseSamples>, Halt> {
    let _span = tracing::debug_span!("measure the device", %regime).entered();
    let mut tracks = warm_up_all(cases, regime)?;
    if regime == Regime::Cold {
        CaseSamples::take_as_many_runs(&mut tracks);
    }
    let baseline = cases.bench.job.baseline;
    add_control(&mut tracks, baseline);
    let mut rng = ChaCha8Rng::seed_from_u64(cases.bench.job.seed);
    rng.set_stream(regime as u64);
    let mut watch = Watch::new();
    let mut changes = Changes::new();
    for round in 0.. {
        let mut order: Vec<usize> = (0..tracks.len()).filter(|i| !tracks[*i].done).collect();
        if order.is_empty() {
            break;
        }
        if round > 0 {
            change_between_rounds(cases, &mut changes)?;
        }
        shuffle(&mut order, &mut rng);
        for (nth, own) in (0..).zip(order) {
            // The control may have ended with the baseline in this round.
            if !tracks[own].done {
                extend_track(cases, &mut tracks, own, (round, nth))?;
            }
        }
        let running = cases.places();
        watch.look(cases.bench.device, &mut tracks, round, |place| running.contains(&place));
    }
    check_on_other_inputs(cases, &tracks)?;
    cases.bench.store.free_copies(cases.bench.device);
    Ok(tracks)
}

fn warm_up_all(cases: &mut Cases<'_, '_>, regime: Regime) -> Result<Vec<CaseSamples>, Lost> {
    let mut tracks = Vec::new();
    for place in cases.on_device() {
        let series = cases.step(place, |bench, case| {
            let is_asked = case.job.measure.regimes.contains(&regime);
            if is_asked { warm_up(bench, case, regime).map(Some) } else { Ok(None) }
        })?;
        tracks.extend(series.flatten().map(|series| CaseSamples::new(place, regime, regime.unit(), series)));
    }
    Ok(tracks)
}

/// Warms up with untimed runs, and determines how many runs a sample needs.
fn warm_up<'a>(bench: &mut Bench<'a>, case: &ReadyCase<'a>, regime: Regime) -> Result<Series, Stop> {
    let plan = &case.job.measure;
    bench.announce(case.job, Activity::Measuring, plan.timeout);
    let mut series = make_sets(bench, case, regime)?;
    if plan.warmup > 0 {
        let batch = timed_run(bench, case, plan.warmup);
        bench.device.run(&batch)?;
    }
    let is_lengthened = match regime {
        Regime::Cold => {
            let has_tick = bench.device.clock().is_some_and(|clock| clock.tick().is_some());
            has_tick || bench.job.sharing != Sharing::Alone
        }
        Regime::Warm | Regime::Graph | Regime::Rotate => true,
        Regime::Host => false,
    };
    if is_lengthened {
        let batch = timed_batch(bench, case, regime, &series);
        let timing = take_sample(bench, case, &batch)?;
        bench.expect_processes(case.job, timing.whole, regime, 1);
        lengthen(bench, case, regime, &mut series, timing.whole);
    }
    Ok(series)
}

/// Adds the A/A control if anything is compared with the baseline.
fn add_control(tracks: &mut Vec<CaseSamples>, baseline: Option<usize>) {
    let baseline = tracks.iter().find(|track| baseline == Some(track.place));
    if let Some(control) = baseline.filter(|_| tracks.len() > 1).map(CaseSamples::control) {
        tracks.push(control);
    }
}

/// Takes one sample of a case, and checks its result if the audit selects it or if it is the last. `at` is the round
/// and the position in its order.
fn extend_track(cases: &mut Cases<'_, '_>, tracks: &mut [CaseSamples], own: usize, at: (u32, u32)) -> Result<(), Halt> {
    let (place, regime) = (tracks[own].place, tracks[own].regime);
    let sample = cases.step(place, |bench, case| {
        bench.announce(case.job, Activity::Measuring, case.job.measure.timeout);
        let batch = timed_batch(bench, case, regime, &tracks[own].series);
        let start = Instant::now();
        Ok((take_sample(bench, case, &batch)?, start.elapsed().as_secs_f64()))
    })?;
    if let Some((timing, took)) = sample {
        tracks[own].record(at, timing, took);
        tracks[own].set = cases.bench.store.sets.current;
        check_new_sample(cases, tracks, own)?;
    }
    if cases.get(place).is_none() {
        end(tracks, place);
    }
    Ok(())
}

fn check_new_sample(cases: &mut Cases<'_, '_>, tracks: &mut [CaseSamples], own: usize) -> Result<(), Halt> {
    let CaseSamples { place, role, .. } = tracks[own];
    let baseline = cases.bench.job.baseline;
    let plan = cases.bench.measure_plan(&cases.bench.job.cases[place]);
    // The baseline and its A/A control accompany the others to the end, and end together.
    let accompanies = |track: &CaseSamples| baseline == Some(track.place);
    let alone = tracks.iter().all(|track| track.done || accompanies(track));
    let may_stop = role == Role::Variant && (alone || !accompanies(&tracks[own]));
    if may_stop && is_enough(tracks, own, baseline, &plan) {
        tracks[own].close();
        end(tracks, place);
        return check_last(cases, &tracks[own]);
    }
    let track = &mut tracks[own];
    let sampled = track.seconds();
    if track.audit.is_due(track.rounds.len(), sampled, plan.min_samples as usize, &mut cases.bench.secret) {
        check_sample(cases, track)?;
    }
    Ok(())
}

/// Ends the tracks of a case.
fn end(tracks: &mut [CaseSamples], place: usize) {
    tracks.iter_mut().filter(|track| track.place == place).for_each(|track| track.done = true);
}

/// Whether a case needs no more samples, for its own median and for its ratio to the baseline.
fn is_enough(tracks: &mut [CaseSamples], own: usize, baseline: Option<usize>, plan: &MeasurePlan) -> bool {
    let base = tracks.iter().position(|track| baseline == Some(track.place) && track.role == Role::Variant);
    match base.and_then(|base| tracks.get_disjoint_mut([base, own]).ok()) {
        Some([base, own]) => own.is_enough(plan, Some(&base.rounds)),
        None => tracks[own].is_enough(plan, None),
    }
}

/// Fisher–Yates shuffle.
fn shuffle(order: &mut [usize], rng: &mut ChaCha8Rng) {
    for last in (1..order.len()).rev() {
        order.swap(last, below(rng, last as u64 + 1) as usize);
    }
}
