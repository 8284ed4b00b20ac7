//! Runs every case once and judges it, before anything is timed.
//!
//! Cases share their inputs, so a kernel that changes one spoils the results of later cases. Inputs are compared once
//! after all cases, and at the first wrong result. If one was changed, everything runs again with a comparison after
//! each case. So the case at fault fails, and the normal path costs one comparison per group.

use super::bench::{Bench, host_allowance};
use super::buffers::Poison;
use super::cases::{Body, Cases, ReadyCase};
use super::idle::{count_stores, find_idle};
use super::illegal_writes::{find_changed_input, restore_inputs};
use super::input_sets::{FIRST, MIXED};
use super::judge::{judge, result_error};
use super::machine_code::{self, Derived};
use super::mutants::try_mutants;
use super::nan_results::find_unfounded;
use super::outputs::{keep_lines, keep_outputs};
use super::prepare::Prepared;
use super::printed;
use super::repeat::{Repeated, count_instructions, repeat};
use super::stop::{Lost, Stop};
use super::values::{begin_functions, keep_for_others};
use super::variables::{begin, look_at_variables, preparation};
use runner_backend::{Batch, CountReport, Launch, Step};
use runner_cuda_source::source_lines::gather_lines;
use runner_types::{
    Activity, BodyCounters, BodyPlan, CaseJob, CompileUnit, CountedLine, Counters, Event, ExpectPlan, KernelCode,
    LaunchPlan, LineCounts, MarkedLaunch, Note, Outcome, Phase, StepsPlan, Verdict,
};

/// Cases that have run and either passed their checks or have none. Only they hold memory.
pub struct Checked<'b, 'a> {
    pub cases: Cases<'b, 'a>,
}

/// A case after its first run, with the events of that run.
struct First {
    place: usize,
    result: Result<Verdict, Outcome>,
    events: Vec<Event>,
}

impl First {
    fn is_right(&self) -> bool {
        self.result.as_ref().is_ok_and(is_right)
    }
}

const fn is_right(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Unchecked(_))
}

impl<'b, 'a> Checked<'b, 'a> {
    /// Runs and judges every case; settles the wrong ones.
    pub fn check(Prepared { mut cases }: Prepared<'b, 'a>) -> Result<Self, Lost> {
        vary_inputs(&mut cases)?;
        cases.bench.spend(Phase::Check);
        begin_all_functions(&mut cases);
        let firsts = match check_in_turn(&mut cases, false)? {
            Some(firsts) => firsts,
            None => check_in_turn(&mut cases, true)?.unwrap_or_default(),
        };
        for First { place, result, events } in firsts {
            for event in events {
                cases.bench.say(event);
            }
            match result {
                Err(outcome) => cases.settle(place, outcome),
                Ok(verdict) => publish(&mut cases, place, verdict),
            }
        }
        cases.free_unused();
        Ok(Self { cases })
    }
}

/// Creates the sets of inputs, but only on a device that measures time. Other devices create them just before the
/// launches that use them, so that the addresses in later cases' messages do not depend on the sets.
fn vary_inputs(cases: &mut Cases<'_, '_>) -> Result<(), Lost> {
    let Some(first) = cases.on_device().first().copied() else { return Ok(()) };
    if cases.bench.device.clock().is_none() {
        return Ok(());
    }
    match cases.bench.store.vary(cases.bench.device, MIXED + 1) {
        Err(Stop::Lost(lost)) => Err(cases.lose(first, lost)),
        _ => Ok(()),
    }
}

/// Starts computing the expected values of functions, for every set of inputs, while the device runs.
fn begin_all_functions(cases: &mut Cases<'_, '_>) {
    for set in FIRST..cases.bench.store.sets.count {
        cases.bench.store.sets.current = set;
        for place in in_turn(cases) {
            // A case in `ready` cannot fail here.
            let _ = cases.try_step(place, |bench, case| {
                begin_functions(bench, case);
                Ok(())
            });
        }
    }
    cases.bench.store.sets.current = FIRST;
}

fn publish(cases: &mut Cases<'_, '_>, place: usize, verdict: Verdict) {
    let job = &cases.bench.job.cases[place];
    let launches = cases.get(place).and_then(ReadyCase::device_body).map(|body| body.launches.clone());
    cases.bench.say(Event::CaseChecked {
        case: job.case.clone(),
        fingerprint: job.fingerprint.clone(),
        hashes: job.hashes.clone(),
        verdict: verdict.clone(),
        launches: launches.unwrap_or_default(),
    });
    if let Verdict::Mismatch(mismatch) = verdict {
        cases.settle(place, Outcome::Wrong { mismatch });
    } else {
        cases.bench.passed.push(place);
    }
}

/// Checks every case once. If `careful`, compares the inputs after each case; otherwise returns `None` if an input has
/// changed.
fn check_in_turn(cases: &mut Cases<'_, '_>, careful: bool) -> Result<Option<Vec<First>>, Lost> {
    let order = in_turn(cases);
    if careful && let Some(first) = order.first() {
        go_on(cases, *first, |bench, _| restore_inputs(bench))?.ok();
    }
    let mut firsts: Vec<First> = Vec::new();
    for place in order {
        let mut events = Vec::new();
        let result = go_on(cases, place, |bench, case| check_one(bench, case, &firsts, &mut events))?;
        let mut first = First { place, result, events };
        if careful || !first.is_right() {
            let changed = go_on(cases, place, |bench, _| find_changed_input(bench))?;
            if changed != Ok(None) {
                if !careful {
                    return Ok(None);
                }
                first.result = changed.map(|found| found.map_or(Verdict::Pass, Verdict::Mismatch));
                go_on(cases, place, |bench, _| restore_inputs(bench))?.ok();
            }
        }
        firsts.push(first);
    }
    let Some(last) = firsts.last().map(|first| first.place).filter(|_| !careful) else { return Ok(Some(firsts)) };
    let changed = go_on(cases, last, |bench, _| find_changed_input(bench))?;
    Ok((changed == Ok(None)).then_some(firsts))
}

/// Indices of the cases in checking order, starting with those that others are compared with.
fn in_turn(cases: &Cases<'_, '_>) -> Vec<usize> {
    let mut order: Vec<&ReadyCase<'_>> = cases.iter().collect();
    order.sort_by_key(|case| cases.bench.checks_against(case.job).is_empty());
    order.into_iter().map(|case| case.place).collect()
}

/// Runs `work` on a case, returning the case's failure as a value; a lost device ends the group.
fn go_on<'a, T>(
    cases: &mut Cases<'_, 'a>,
    place: usize,
    work: impl FnOnce(&mut Bench<'a>, &mut ReadyCase<'a>) -> Result<T, Stop>,
) -> Result<Result<T, Outcome>, Lost> {
    match cases.try_step(place, work) {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Case(outcome)) => Ok(Err(outcome)),
        Err(Stop::Lost(lost)) => Err(cases.lose(place, lost)),
    }
}

fn check_one<'a>(
    bench: &mut Bench<'a>,
    case: &mut ReadyCase<'a>,
    firsts: &[First],
    events: &mut Vec<Event>,
) -> Result<Verdict, Stop> {
    let job = case.job;
    let note = |note| Event::CaseNote { case: job.case.clone(), note };
    bench.announce(job, Activity::Checking, job.measure.timeout);
    bench.device.set_unsanitized(job.unsanitized.as_ref());
    bench.device.set_sampling(job.sampled);
    bench.device.count_lines(job.lines || job.outputs.is_some() || machine_code::is_listed(job));
    if let Some(unsanitized) = job.unsanitized.as_ref().filter(|_| bench.device.counter().is_some()) {
        let classes: Vec<&str> = unsanitized.classes.iter().map(|class| class.name()).collect();
        let off = if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) };
        let text = format!("the sanitizer{off} is off for this variant: {}", unsanitized.reason);
        events.push(note(Note::Text(text)));
    }
    let text = run_first(bench, case, events)?;
    bench.announce(job, Activity::Checking, host_allowance(job));
    if let Some(why) = unfit_reference(bench, case, firsts) {
        return Err(Stop::Case(Outcome::not_run(why)));
    }
    keep_outputs(bench, case, &text)?;
    let judgement = judge(bench, case)?;
    let mut verdict = judgement.verdict;
    if let Some(lines) = job.printed.as_ref().filter(|_| case.device_body().is_some() && is_right(&verdict)) {
        let made = if bench.is_profiled() { printed::Made::Replayed } else { printed::Made::Once };
        verdict = printed::judge(lines, &text, made)?.map_or(Verdict::Pass, Verdict::Mismatch);
    }
    events.extend(judgement.notes.into_iter().map(note));
    if verdict == Verdict::Pass
        && let Some(error) = result_error(bench, case)?
    {
        events.push(Event::CaseErred { case: job.case.clone(), error });
    }
    if is_right(&verdict) {
        keep_for_others(bench, case)?;
        if let Some(mismatch) = find_unfounded(bench, case, &verdict)? {
            return Ok(Verdict::Mismatch(mismatch));
        }
        if let Some(idle) = find_idle(bench, case, &verdict)? {
            verdict = idle;
        }
        if verdict == Verdict::Pass {
            try_mutants(bench, case)?;
        }
        if is_right(&verdict) {
            match repeat(bench, case)? {
                Repeated::Wrong(mismatch) => return Ok(Verdict::Mismatch(mismatch)),
                Repeated::Skipped(why) if verdict == Verdict::Pass => events.push(note(Note::OneSet { why })),
                Repeated::Skipped(_) | Repeated::Right => {}
            }
        }
        // A device without a clock has no timed launches.
        let fixed = bench.device.clock().is_some().then(|| bench.store.fixed(&case.slots())).flatten();
        events.extend(fixed.map(|why| note(Note::FixedInputs { why })));
        if verdict == Verdict::Pass {
            events.extend(bench.weak.of(job).into_iter().map(|weak| note(Note::Weak(weak))));
        }
    }
    Ok(verdict)
}

/// Runs a case for the first time; returns what its kernels printed.
fn run_first<'a>(bench: &mut Bench<'a>, case: &mut ReadyCase<'a>, events: &mut Vec<Event>) -> Result<String, Stop> {
    let job = case.job;
    let _span = tracing::debug_span!("run for the first time", case = %job.case.key).entered();
    if let Body::Host(body) = &mut case.body {
        body.run();
        return Ok(String::new());
    }
    begin(bench, case)?;
    // An earlier attempt at the group may have launched kernels that wrote variables.
    look_at_variables(bench, case)?;
    let batch = Batch {
        capture_printf: job.printed.is_some() || job.outputs.is_some(),
        ..Batch::once(preparation(bench, case, Poison::Checked), case.steps().to_vec())
    };
    announce_marks(bench, case);
    // The manifest does not know which kernels a host function launches, so they are not counted.
    let is_counted = job.printed.is_some() || !matches!(job.body, BodyPlan::Host(_));
    let done = match bench.device.counter().filter(|_| is_counted) {
        Some(counter) => counter.count(&batch),
        None => bench.device.run(&batch).map(|run| CountReport { run, ..CountReport::default() }),
    };
    let report = done.inspect_err(|error| events.extend(printed_event(job, error.printed().to_owned())))?;
    look_at_variables(bench, case)?;
    let text = report.run.printed.clone();
    case.is_partial = report.run.notes.iter().any(|note| matches!(note, Note::Sampled { .. }));
    case.instructions = count_instructions(&report);
    case.stores = count_stores(&report, case.steps());
    keep_lines(job, &report.lines)?;
    let derived = match &report.counters {
        Some(_) => bench.machine_code.derive(job, &report.lines),
        None => Derived::default(),
    };
    events.extend(reported(job, report, derived));
    Ok(text)
}

/// Why the result of the case that this one is compared with is unusable.
fn unfit_reference(bench: &Bench<'_>, case: &ReadyCase<'_>, firsts: &[First]) -> Option<String> {
    case.job.checks.iter().find_map(|check| {
        let ExpectPlan::Variant(name) = &check.expect else { return None };
        let Some(other) = bench.find_variant(case.job, name) else {
            return Some(format!("variant `{name}`, with which it is compared, is not in this run"));
        };
        // A case that ran separately was judged earlier.
        let fit = other == case.place
            || bench.passed.contains(&other)
            || firsts.iter().any(|first| first.place == other && first.is_right());
        (!fit).then(|| format!("variant `{name}`, with which it is compared, did not pass its own check"))
    })
}

/// Maximum length of kept kernel output in bytes: the default size of a GPU's `printf` buffer.
const MOST_PRINTED: usize = 1 << 20;

/// Event with the kernels' output, if any.
fn printed_event(job: &CaseJob, mut text: String) -> Option<Event> {
    if text.len() >= MOST_PRINTED {
        text.truncate(text.floor_char_boundary(MOST_PRINTED));
        text.push_str("\n(output beyond 1 MiB is omitted)\n");
    }
    (!text.is_empty()).then(|| Event::CasePrinted { case: job.case.clone(), text })
}

/// Events for the device's report of the first launch.
fn reported(job: &CaseJob, CountReport { run, counters, lines }: CountReport, derived: Derived) -> Vec<Event> {
    let case = || job.case.clone();
    let mut events: Vec<Event> = printed_event(job, run.printed).into_iter().collect();
    let notes = run.notes.into_iter().chain(derived.notes);
    events.extend(notes.map(|note| Event::CaseNote { case: case(), note }));
    // The report has one line per manifest entry, and an entry may run many times.
    let each = |each| if job.steps.is_some() { Vec::new() } else { each };
    let lines = if job.lines { counted_lines(job, &lines, &derived.lines) } else { Vec::new() };
    let counted = |BodyCounters { mut whole, each: of_launches, .. }: BodyCounters| {
        whole.0.extend(derived.counters.0);
        whole.form_ratios();
        Event::CaseCounted { case: case(), counters: whole, each: each(of_launches), lines }
    };
    events.extend(counters.map(counted));
    events
}

/// Counts per source line of a case.
fn counted_lines(job: &CaseJob, lines: &[LineCounts], derived: &[((String, u32), Counters)]) -> Vec<CountedLine> {
    let BodyPlan::Launches(launches) = &job.body else { return Vec::new() };
    let units: Vec<&CompileUnit> = launches.iter().map(|launch| &launch.unit).collect();
    let of_ptx: Vec<_> =
        lines.iter().filter_map(|line| Some((line.place(&units)?, without_instructions(&line.counters)))).collect();
    let of_ptx = of_ptx.iter().map(|(place, counters)| (*place, counters));
    let derived = derived.iter().map(|((path, line), counters)| ((path.as_str(), *line), counters));
    gather_lines(&units, of_ptx.chain(derived))
}

/// PTX counts without instruction counts, which come from the machine code.
fn without_instructions(counters: &Counters) -> Counters {
    let kept =
        counters.0.iter().filter(|(name, _)| !["inst_executed", "thread_inst_executed"].contains(&name.as_ref()));
    Counters(kept.map(|(name, count)| (name.clone(), *count)).collect())
}

/// Tells a surrounding profiler which kernels the next launches run, so that it can attribute its counts. The number of
/// launches of a conditional loop is unknown.
fn announce_marks(bench: &mut Bench<'_>, case: &ReadyCase<'_>) {
    let job = case.job;
    if let (true, BodyPlan::Launches(plans)) = (bench.is_profiled(), &job.body)
        && let Some(body) = case.device_body()
    {
        if job.steps.as_ref().is_some_and(StepsPlan::has_loop) {
            let note = Note::NoCounters { why: "the number of launches depends on the condition of a loop".into() };
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
