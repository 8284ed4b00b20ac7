//! The main loop of a search. Proposes configurations, has them compiled on all cores, and passes them in groups to the
//! workers of the devices for a brief measurement.

use std::sync::{Mutex, PoisonError, RwLock, mpsc};
use std::thread;
use std::time::Duration;

use search::history::History;
use search::pareto::{Front, Objectives, largest_multiples};
use search::random::Random;
use search::strategy::Strategy;

use crate::error::TuneError;
use crate::evaluations::{Evaluations, RunningGroup, Say};
use crate::log::Log;
use crate::objective::Objective;
use crate::search_context::SearchContext;
use crate::source::{Arrivals, Proposals, Source, lock};
use runner_types::{CompileUnit, Event};
use runner_workers::{Pool, RunEnd, Urgency};

#[derive(Debug)]
pub struct Searched {
    /// All evaluations, scored by the objective; with several objectives, by the worst ratio to that objective's best.
    pub history: History,
    /// Quantities that ranked the configurations: the objectives, or their PTX counts.
    pub objectives: Vec<Objective>,
    /// Objectives of each evaluation; empty for a single objective.
    pub rows: Vec<Objectives>,
    /// Pareto front; empty for a single objective.
    pub front: Front,
    pub log: Log,
    /// Whether the user interrupted the search.
    pub interrupted: bool,
    pub wall: Duration,
    /// Average time that each device waited for code.
    pub waited: Duration,
}

impl Searched {
    /// Points to measure at the end: the best, or well-spread members of the front.
    #[must_use]
    pub fn best(&self, count: usize) -> Vec<u64> {
        if self.rows.is_empty() {
            return self.history.ranked().take(count).map(|(point, _)| point).collect();
        }
        let evaluations = self.history.evaluations();
        self.front
            .spread(&self.rows, count, |place| evaluations[place].point)
            .into_iter()
            .map(|place| evaluations[place].point)
            .collect()
    }
}

/// Evaluates configurations until the budget is spent, the space is exhausted or the user interrupts. Each pool uses a
/// different device of the same model.
pub fn run(
    context: SearchContext<'_>,
    strategy: Box<dyn Strategy>,
    log: Log,
    pools: &mut [&mut Pool],
    say: Say<'_>,
) -> Result<Searched, TuneError> {
    let known = Evaluations::new(context, log, say)?;
    let (ask, asked) = mpsc::channel::<CompileUnit>();
    let asked = Mutex::new(asked);
    let (compiler, arrivals, host) = (context.compiler, Arrivals::default(), RwLock::new(()));
    compiler.begin();
    let random = Random::new(context.problem.settings.seed);
    let shared = Mutex::new(Proposals::new(context, strategy, random, known, ask));
    let serve = |place: usize, pool: &mut Pool| {
        let mut source = Source::new(&shared, (&arrivals, &host), place);
        let mut group = RunningGroup::new(Some(place as u32).filter(|_| context.devices > 1), 1);
        let mut observe = |event: Event| lock(&shared).observe(&event, &mut group);
        let end = pool.run_supplied(&mut source, &mut observe, context.interrupt);
        drop(source);
        if let RunEnd::Environment(why) = &end
            && context.devices > 1
        {
            lock(&shared).known.say(&format!("device {place} gets no more configurations: {why}"));
        }
        end
    };
    let compile = || {
        loop {
            let unit = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(unit) = unit else { break };
            let (result, seconds) = compiler.compile(&unit);
            arrivals.add(unit, result, seconds);
        }
    };
    let (serve, compile) = (&serve, &compile);
    let ends: Vec<RunEnd> = thread::scope(|scope| {
        for _ in 0..context.jobs() {
            scope.spawn(compile);
        }
        let serving: Vec<_> =
            pools.iter_mut().enumerate().map(|(place, pool)| scope.spawn(move || serve(place, pool))).collect();
        let ends = serving.into_iter().map(|device| {
            device.join().unwrap_or_else(|_| RunEnd::Environment("a thread of the search has panicked".to_owned()))
        });
        let ends = ends.collect();
        // Units still being compiled are not needed. The threads end when the sender is dropped.
        compiler.stop();
        lock(&shared).ask = None;
        ends
    });
    let known = shared.into_inner().unwrap_or_else(PoisonError::into_inner).known;
    if let Some(failure) = known.failure {
        return Err(failure);
    }
    let lost = ends.iter().all(|end| matches!(end, RunEnd::Environment(_)));
    let why_lost =
        ends.iter().find_map(|end| if let RunEnd::Environment(why) = end { Some(why.clone()) } else { None });
    if let Some(why) = compiler.fault().or(why_lost.filter(|_| lost)) {
        return Err(TuneError::Environment(format!("{why}; continue the search with --resume")));
    }
    let interrupted = ends.contains(&RunEnd::Interrupted) || context.interrupt.urgency() > Urgency::None;
    let Evaluations { mut history, log, ranking, begun, waited, rows, front, .. } = known;
    if !rows.is_empty() {
        history.replace(&largest_multiples(&rows));
    }
    let waited = waited / u32::try_from(context.devices.max(1)).unwrap_or(u32::MAX);
    let objectives = ranking.used();
    Ok(Searched { history, objectives, rows, front, log, interrupted, wall: begun.elapsed(), waited })
}
