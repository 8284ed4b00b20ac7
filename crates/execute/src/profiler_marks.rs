//! Tells a surrounding profiler which kernels the next launches run, so that it can attribute its counts.

use super::bench::Bench;
use super::cases::ReadyCase;
use runner_backend::{Launch, Step};
use runner_types::{BodyPlan, Event, KernelCode, LaunchPlan, MarkedLaunch, Note, StepsPlan};

/// Announces the next launches if a profiler is active. The number of launches of a conditional loop is unknown.
pub fn announce_marks(bench: &mut Bench<'_>, case: &ReadyCase<'_>) {
    let job = case.job;
    if let (true, BodyPlan::Launches(plans)) = (bench.is_profiled(), &job.body)
        && let Some(body) = case.device_body()
    {
        if job.steps.as_ref().is_some_and(StepsPlan::has_loop) {
            let note = Note::NoCounters { why: "the condition of a loop decides how many launches there are".into() };
            return bench.note(job, note);
        }
        let made: Vec<&Launch> = body
            .steps
            .iter()
            .filter_map(|step| if let Step::Launch(made) = step { Some(made) } else { None })
            .collect();
        let order: Vec<usize> = match &job.steps {
            Some(steps) => steps.order(),
            None => (0..plans.len()).collect(),
        };
        let marked = |(plan, made): (&usize, &&Launch)| {
            Some(MarkedLaunch { kernel: plans.get(*plan)?.mangled().to_owned(), grid: made.grid, block: made.block })
        };
        let launches = order.iter().zip(&made).filter_map(marked).collect();
        let (case, process, whole_only) = (job.case.clone(), std::process::id(), job.steps.is_some());
        let code = |plan: &LaunchPlan| {
            let path = plan.compiled.as_ref()?.code.clone();
            Some((plan.mangled().to_owned(), KernelCode { unit: plan.unit.clone(), path }))
        };
        let code = plans.iter().filter(|_| job.lines).filter_map(code).collect();
        bench.say(Event::LaunchesMarked { case, process, launches, whole_only, code });
    }
}
