//! Work between the samples of the rounds, outside every timed span: inputs change, and results are checked.

use std::time::{Duration, Instant};

use super::attribution::{Halt, attribute, look_at_inputs};
use super::bench::{Bench, host_allowance};
use super::buffers::Poison;
use super::case_samples::{CaseSamples, Role};
use super::cases::{Cases, ReadyCase};
use super::fill::below;
use super::illegal_writes::find_trespass;
use super::judge::judge_results;
use super::nan_results::explain_wrong_result;
use super::series::{take_sample, timed_batch, timed_run};
use super::stop::Stop;
use super::variables::look_at_variables;
use runner_backend::Series;
use runner_types::{Access, Activity, Outcome, Phase, Regime};

/// After the first few, input changes are limited to the rounds' time divided by this.
const RARITY: u32 = 30;

/// Maximum number of runs of a sample that are checked one by one.
const MOST_RUNS: u32 = 32;

/// Number of spots of an output that are poisoned between two runs.
const PLACES: usize = 4;
/// Bytes per spot.
const PIECE: usize = 64;

/// Number of input changes always allowed in the rounds of a regime, however long they take.
const LEAST: u32 = 3;

/// Input changes during the rounds of a regime.
#[derive(Debug)]
pub struct Changes {
    began: Instant,
    made: u32,
    took: Duration,
}

impl Changes {
    pub fn new() -> Self {
        Self { began: Instant::now(), made: 0, took: Duration::ZERO }
    }

    fn are_affordable(&self) -> bool {
        self.made < LEAST || self.took * RARITY < self.began.elapsed()
    }
}

/// Changes to a random other set of inputs, on average before every second round.
pub fn change_between_rounds(cases: &mut Cases<'_, '_>, changes: &mut Changes) -> Result<(), Halt> {
    let bench = &mut *cases.bench;
    if !bench.store.has_other_sets() || !changes.are_affordable() || below(&mut bench.secret, 2) == 0 {
        return Ok(());
    }
    let start = Instant::now();
    change_to_another(cases)?;
    changes.made += 1;
    changes.took += start.elapsed();
    Ok(())
}

/// Changes to a random other set of inputs.
fn change_to_another(cases: &mut Cases<'_, '_>) -> Result<(), Halt> {
    let bench = &mut *cases.bench;
    let (current, count) = (bench.store.sets.current, bench.store.sets.count);
    let steps = 1 + below(&mut bench.secret, count as u64 - 1) as usize;
    change_to(cases, (current + steps) % count)
}

/// Chooses a set of inputs, after checking that the current one is unchanged.
fn change_to(cases: &mut Cases<'_, '_>, set: usize) -> Result<(), Halt> {
    let Some(first) = cases.on_device().first().copied() else { return Ok(()) };
    if cases.bench.store.sets.current == set {
        return Ok(());
    }
    let phase = cases.bench.spend(Phase::Check);
    let looked = look_at_inputs(cases);
    if looked.is_ok() {
        cases.step(first, |bench, _| bench.store.choose(bench.device, set))?;
    }
    cases.bench.spend(phase);
    looked
}

/// Runs each case once more on each set of inputs except that of its last sample, and checks it: a result stored
/// meanwhile is wrong for one of them. Leaves the first set chosen.
pub fn check_on_other_inputs(cases: &mut Cases<'_, '_>, tracks: &[CaseSamples]) -> Result<(), Halt> {
    let _span = tracing::debug_span!("check with the other sets of inputs").entered();
    let count = cases.bench.store.sets.count;
    for set in (1..=count).map(|next| next % count) {
        change_to(cases, set)?;
        for track in tracks.iter().filter(|track| track.role == Role::Variant && track.set != set) {
            let phase = cases.bench.spend(Phase::Check);
            let judged = judge_another_run(cases, track);
            cases.bench.spend(phase);
            judged?;
        }
    }
    Ok(())
}

/// Checks an additional run that is timed like those of a sample but not counted.
fn judge_another_run(cases: &mut Cases<'_, '_>, track: &CaseSamples) -> Result<(), Halt> {
    let CaseSamples { place, regime, .. } = *track;
    // Multiple buffer sets or a graph would cost more than the check.
    let timed = if matches!(regime, Regime::Graph | Regime::Rotate) { Regime::Warm } else { regime };
    cases.step(place, |bench, case| {
        bench.announce(case.job, Activity::Measuring, case.job.measure.timeout);
        let batch = timed_batch(bench, case, timed, &Series::default());
        take_sample(bench, case, &batch)
    })?;
    judge_result(cases, place, &format!(", in timed run 1 after the last sample ({regime})")).map(drop)
}

/// Checks the results of a track's last timed launch.
pub fn check_last(cases: &mut Cases<'_, '_>, track: &CaseSamples) -> Result<(), Halt> {
    let job = &cases.bench.job.cases[track.place];
    cases.bench.announce(job, Activity::Rechecking, host_allowance(job));
    let phase = cases.bench.spend(Phase::Check);
    let checked = judge_last(cases, track);
    cases.bench.spend(phase);
    checked
}

fn judge_last(cases: &mut Cases<'_, '_>, track: &CaseSamples) -> Result<(), Halt> {
    let place = track.place;
    if let Some(found) = cases.step(place, |bench, case| find_trespass(bench, case))?.flatten() {
        return Err(attribute(cases, &found, Some(place)));
    }
    if cases.step(place, |bench, case| look_at_variables(bench, case))? == Some(true) {
        // From now on the variable is restored; earlier launches may have found a result in it, so their times are
        // void.
        return Err(Halt::Spoiled);
    }
    judge_result(cases, place, &name_last_sample(track)).map(drop)
}

/// Describes the last sample of a case, for a message.
fn name_last_sample(track: &CaseSamples) -> String {
    format!(", in timed sample {} ({})", track.rounds.len(), track.regime)
}

/// Checks the result of a case's last timed run. If a sample has several runs, some checks repeat it, run by run or up
/// to a random run, so that earlier runs are checked too.
pub fn check_sample(cases: &mut Cases<'_, '_>, track: &mut CaseSamples) -> Result<(), Halt> {
    let start = Instant::now();
    let phase = cases.bench.spend(Phase::Check);
    let checked = judge_sample(cases, track);
    cases.bench.spend(phase);
    track.audit.record(start.elapsed().as_secs_f64(), track.seconds(), &mut cases.bench.secret);
    checked
}

fn judge_sample(cases: &mut Cases<'_, '_>, track: &CaseSamples) -> Result<(), Halt> {
    let CaseSamples { place, regime, series, .. } = track;
    let mut at = name_last_sample(track);
    let is_several = series.launches > 1 && series.others.is_empty();
    let choice = below(&mut cases.bench.secret, 3);
    if is_several && (choice == 0 || track.audit.is_thorough(track.rounds.len())) {
        return judge_runs(cases, track);
    }
    if is_several && choice == 1 {
        let runs = 1 + below(&mut cases.bench.secret, u64::from(series.launches)) as u32;
        // A graph for every number of runs would cost more than the check.
        let shorter = if *regime == Regime::Graph { Regime::Warm } else { *regime };
        cases.step(*place, |bench, case| {
            let batch = timed_batch(bench, case, shorter, &Series { launches: runs, ..series.clone() });
            take_sample(bench, case, &batch)
        })?;
        at = format!(", in timed run {runs} of a sample ({shorter})");
    }
    judge_result(cases, *place, &at).map(drop)
}

/// Repeats the runs of a sample, untimed, and checks each. Cold runs are prepared one by one. Runs of the other regimes
/// follow each other as in a timed span, except that a few spots of the outputs are poisoned again: if a kernel returns
/// early because part of its output is already right, the poison remains. The inputs change before every second run on
/// average: in a timed span, all runs have the same inputs, so a kernel could store the result of the first run and
/// reuse it.
fn judge_runs(cases: &mut Cases<'_, '_>, track: &CaseSamples) -> Result<(), Halt> {
    for run in 1..=track.series.launches.min(MOST_RUNS) {
        if run > 1 && cases.bench.store.has_other_sets() && below(&mut cases.bench.secret, 2) == 0 {
            change_to_another(cases)?;
        }
        let follows = track.regime != Regime::Cold && run > 1;
        cases.step(track.place, |bench, case| {
            let mut batch = timed_run(bench, case, 1);
            bench.announce(case.job, Activity::Measuring, case.job.measure.timeout);
            if follows {
                batch.prepare.clear();
                poison_places(bench, case)?;
            }
            Ok(bench.device.run(&batch)?)
        })?;
        if !judge_result(cases, track.place, &format!(", in timed run {run} of a sample ({})", track.regime))? {
            break;
        }
    }
    // The cases of a round are measured on the same inputs.
    change_to(cases, track.set)
}

/// Poisons a few random spots of each output.
fn poison_places(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<(), Stop> {
    for buffer in case.slots().into_iter().filter_map(|slot| bench.store.get(slot)) {
        let size = bench.device.size(buffer.id);
        if buffer.plan.access != Access::Out || size == 0 {
            continue;
        }
        let poison = [Poison::Timed.byte(buffer.plan.element); PIECE];
        for _ in 0..PLACES {
            let offset = PIECE * below(&mut bench.secret, size.div_ceil(PIECE) as u64) as usize;
            bench.device.upload(buffer.id, offset, &poison[..PIECE.min(size - offset)])?;
        }
    }
    Ok(())
}

/// Checks the result of the last run; returns false if the case has ended. `at` names the run in a message.
fn judge_result(cases: &mut Cases<'_, '_>, place: usize, at: &str) -> Result<bool, Halt> {
    let judgement = cases.step(place, |bench, case| {
        bench.announce(case.job, Activity::Rechecking, host_allowance(case.job));
        judge_results(bench, case)
    })?;
    let Some(judgement) = judgement else { return Ok(false) };
    let Some(mut mismatch) = judgement.mismatch() else { return Ok(true) };
    // A changed input makes a correct kernel's results wrong.
    look_at_inputs(cases)?;
    mismatch.what.push_str(at);
    match cases.try_step(place, |bench, case| explain_wrong_result(bench, case)) {
        Ok(advice) => mismatch.what.push_str(advice),
        Err(Stop::Lost(lost)) => return Err(cases.lose(place, lost).into()),
        Err(Stop::Case(_)) => {}
    }
    cases.settle(place, Outcome::Wrong { mismatch });
    Ok(false)
}
