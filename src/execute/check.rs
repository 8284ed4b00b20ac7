//! Runs every case once and judges it, before anything is timed; judges again what the last timed launch left.
//!
//! Cases share their inputs, so a kernel that changes one spoils the results of those after it. The inputs are looked
//! at once, after all cases, and on the first that is not right; where one was changed, everything is run again with a
//! look after each case, so that the right case fails and the common case costs one check per group.

use super::accuracy::Errors;
use super::buffers::{GUARD_PATTERN, Poison, Slot};
use super::compare::{Difference, bitwise};
use super::expected::Expected;
use super::function::called;
use super::group::{Body, Group, Kept, host_allowance};
use super::operand::Operand;
use super::partial::Sides;
use super::prepare::is_reference;
use super::printed;
use super::reference;
use super::repeat::executed;
use super::sets::FIRST;
use super::stop::{Lost, Stop};
use super::unwritten::part_of;
use crate::backend::{Batch, CountReport};
use crate::model::{
    Access, Activity, BodyCounters, BodyPlan, CaseJob, CheckPlan, ElementType, Event, ExpectPlan, Mismatch, Note,
    Outcome, Phase, ResultError, Unchecked, Verdict,
};

/// Bytes of an input that are compared at a time.
const LOOK: usize = 64 << 20;

/// What the first run of a case came to.
enum Checked {
    Verdict(Verdict),
    Ended(Outcome),
}

/// A case after its first run, with the events that the run caused.
struct First {
    member: usize,
    checked: Checked,
    events: Vec<Event>,
}

impl Group<'_> {
    /// Runs and judges every case that is ready. The wrong ones are settled.
    pub fn check_all(&mut self) -> Result<(), Lost> {
        let firsts = match self.check_in_turn(false)? {
            Some(firsts) => firsts,
            None => self.check_in_turn(true)?.unwrap_or_default(),
        };
        for First { member, checked, events } in firsts {
            for event in events {
                self.say(event);
            }
            match checked {
                Checked::Ended(outcome) => self.settle(member, outcome),
                Checked::Verdict(verdict) => self.publish(member, verdict),
            }
        }
        Ok(())
    }

    fn publish(&mut self, member: usize, verdict: Verdict) {
        let state = &mut self.members[member];
        state.verdict = Some(verdict.clone());
        let launches = match &state.body {
            Some(Body::Device(body)) => body.launches.clone(),
            _ => Vec::new(),
        };
        let (case, fingerprint) = (state.job.case.clone(), state.job.fingerprint.clone());
        let hashes = state.job.hashes.clone();
        self.say(Event::CaseChecked { case, fingerprint, hashes, verdict: verdict.clone(), launches });
        if let Verdict::Mismatch(mismatch) = verdict {
            self.settle(member, Outcome::Wrong { mismatch });
        }
    }

    /// Checks every case once. If `careful`, inputs are compared after each; if not, the result is `None` if one was
    /// found changed.
    fn check_in_turn(&mut self, careful: bool) -> Result<Option<Vec<First>>, Lost> {
        if careful && let Some(first) = self.ready().first() {
            let restored = self.restore_inputs();
            self.go_on(*first, restored)?;
        }
        let mut firsts: Vec<First> = Vec::new();
        for member in self.ready() {
            let mut events = Vec::new();
            let result = self.check_one(member, &firsts, &mut events);
            let mut checked = self.go_on(member, result)?;
            let suspicious = !matches!(checked, Checked::Verdict(Verdict::Pass | Verdict::Unchecked(_)));
            if careful || suspicious {
                let changed = self.changed_inputs();
                let changed = self.go_on(member, changed)?;
                match changed {
                    Checked::Verdict(Verdict::Pass) => {}
                    _ if !careful => return Ok(None),
                    changed => {
                        checked = changed;
                        let restored = self.restore_inputs();
                        self.go_on(member, restored)?;
                    }
                }
            }
            firsts.push(First { member, checked, events });
        }
        let Some(last) = firsts.last().map(|first| first.member).filter(|_| !careful) else { return Ok(Some(firsts)) };
        let changed = self.changed_inputs();
        let unchanged = matches!(self.go_on(last, changed)?, Checked::Verdict(Verdict::Pass));
        Ok(unchanged.then_some(firsts))
    }

    /// The cases to check, first those that others are compared with.
    fn ready(&self) -> Vec<usize> {
        let ready = |i: &usize| !self.members[*i].settled && self.members[*i].body.is_some();
        let mut order: Vec<usize> = (0..self.members.len()).filter(ready).collect();
        order.sort_by_key(|i| self.awaited(self.members[*i].job).is_empty());
        order
    }

    /// The end of a case is a result of its check; a lost device ends the group.
    fn go_on(&mut self, member: usize, result: Result<Verdict, Stop>) -> Result<Checked, Lost> {
        match result {
            Ok(verdict) => Ok(Checked::Verdict(verdict)),
            Err(Stop::Case(outcome)) => Ok(Checked::Ended(outcome)),
            Err(Stop::Lost(lost)) => Err(self.lost(member, lost)),
        }
    }

    fn check_one(&mut self, member: usize, firsts: &[First], events: &mut Vec<Event>) -> Result<Verdict, Stop> {
        let job = self.members[member].job;
        self.active(member, Activity::Checking, job.measure.timeout);
        let mut printed = None;
        let mut text = String::new();
        self.device.set_unsanitized(job.unsanitized.as_ref());
        self.device.set_sampling(job.sampled);
        if let Some(unsanitized) = job.unsanitized.as_ref().filter(|_| self.device.counter().is_some()) {
            let classes: Vec<&str> = unsanitized.classes.iter().map(|class| class.name()).collect();
            let off = if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) };
            let note = Note::Text(format!("the sanitizer{off} is off for this variant: {}", unsanitized.reason));
            events.push(Event::CaseNote { case: job.case.clone(), note });
        }
        if let Some(Body::Host(body)) = &mut self.members[member].body {
            body.run();
        } else if let Some(body) = self.members[member].device_body() {
            let steps = body.steps.clone();
            let prepare = self.preparation(member, Poison::Checked);
            let batch =
                Batch { capture_printf: job.printed.is_some() || job.outputs.is_some(), ..Batch::once(prepare, steps) };
            self.announce_marks(member);
            // The kernels that a host function launches are not the manifest's to count.
            let is_counted = job.printed.is_some() || !matches!(job.body, BodyPlan::Host(_));
            let done = match self.device.counter().filter(|_| is_counted) {
                Some(counter) => counter.count(&batch),
                None => self.device.run(&batch).map(|run| CountReport { run, counters: None }),
            };
            let report = done.inspect_err(|error| events.extend(printed_event(job, error.printed().to_owned())))?;
            text.clone_from(&report.run.printed);
            printed = job.printed.as_ref().map(|lines| (lines, report.run.printed.clone()));
            self.members[member].is_partial = report.run.notes.iter().any(|note| matches!(note, Note::Sampled { .. }));
            self.members[member].instructions = executed(&report);
            events.extend(reported(job, report));
        }
        self.active(member, Activity::Checking, host_allowance(job));
        if let Some(why) = self.unfit_reference(member, firsts) {
            return Err(Stop::Case(Outcome::NotRun { why }));
        }
        self.keep_outputs(member, &text)?;
        let mut verdict = self.judge(member)?;
        if let (Some((lines, text)), Verdict::Pass | Verdict::Unchecked(_)) = (printed, &verdict) {
            let made = if self.is_profiled() { printed::Made::Replayed } else { printed::Made::Once };
            verdict = printed::judge(lines, &text, made)?.map_or(Verdict::Pass, Verdict::Mismatch);
        }
        let judged = std::mem::take(&mut self.members[member].judged).into_iter();
        events.extend(judged.map(|note| Event::CaseNote { case: job.case.clone(), note }));
        if verdict == Verdict::Pass
            && let Some(error) = self.result_error(member)?
        {
            events.push(Event::CaseErred { case: job.case.clone(), error });
        }
        if matches!(verdict, Verdict::Pass | Verdict::Unchecked(_)) {
            self.keep_for_others(member)?;
            if let Some(mismatch) = self.repeat(member)? {
                return Ok(Verdict::Mismatch(mismatch));
            }
            let fixed = self.fixed_inputs(member).map(|why| Note::FixedInputs { why });
            events.extend(fixed.map(|note| Event::CaseNote { case: job.case.clone(), note }));
        }
        Ok(verdict)
    }

    /// Why the result of the case that this one is compared with cannot be used.
    fn unfit_reference(&self, member: usize, firsts: &[First]) -> Option<String> {
        self.members[member].job.checks.iter().find_map(|check| {
            let ExpectPlan::Variant(name) = &check.expect else { return None };
            let Some(other) = self.named(member, name) else {
                return Some(format!("`{name}`, which it is compared with, is not in this run"));
            };
            let right =
                |first: &First| matches!(first.checked, Checked::Verdict(Verdict::Pass | Verdict::Unchecked(_)));
            // One that ran separately has been judged before.
            let judged = matches!(self.members[other].verdict, Some(Verdict::Pass | Verdict::Unchecked(_)));
            let fit = other == member || judged || firsts.iter().any(|first| first.member == other && right(first));
            (!fit).then(|| format!("`{name}`, which it is compared with, did not pass its own check"))
        })
    }

    /// The case of a variant at the same point of the axes.
    pub fn named(&self, member: usize, variant: &str) -> Option<usize> {
        let axes = &self.members[member].job.case.key.axes;
        self.members.iter().position(|m| m.job.case.key.variant == variant && m.job.case.key.axes == *axes)
    }

    /// The checks of other cases that expect the results of this one.
    pub fn awaited<'j>(&self, own: &CaseJob) -> Vec<&'j CheckPlan>
    where
        Self: 'j,
    {
        let jobs: &'j [CaseJob] = &self.job.cases;
        let others = jobs.iter().filter(|job| job.case.key.axes == own.case.key.axes);
        let named = |check: &&CheckPlan| matches!(&check.expect, ExpectPlan::Variant(n) if *n == own.case.key.variant);
        others.flat_map(|job| &job.checks).filter(named).collect()
    }

    /// Keeps what others compare with this case while its outputs exist.
    pub fn keep_for_others(&mut self, member: usize) -> Result<(), Stop> {
        let set = self.store.sets.current;
        self.members[member].kept.retain(|kept| kept.set != set);
        for check in self.awaited(self.members[member].job) {
            let is_kept = |kept: &Kept| kept.set == set && kept.expression == check.actual;
            if !self.members[member].kept.iter().any(is_kept) {
                let value = self.actual(member, check)?;
                self.members[member].kept.push(Kept { expression: check.actual.clone(), set, value });
            }
        }
        Ok(())
    }

    /// Judges the guard zones and the buffers after the last launch of a case.
    pub fn judge(&mut self, member: usize) -> Result<Verdict, Stop> {
        match self.trespass(member)? {
            Some(mismatch) => Ok(Verdict::Mismatch(mismatch)),
            None => self.compare_results(member),
        }
    }

    /// Judges the buffers after the last launch of a case.
    pub fn compare_results(&mut self, member: usize) -> Result<Verdict, Stop> {
        let job = self.members[member].job;
        let mut compared = 0;
        self.members[member].judged.clear();
        for check in self.own_checks(member) {
            if self.surely_passes(member, check)? {
                compared += 1;
                continue;
            }
            let Some(sides) = self.sides(member, check)? else { continue };
            compared += 1;
            let unwritten = if sides.elements.is_none() { self.unwritten(member, check)? } else { None };
            if let Some(mismatch) = sides.mismatch(check, unwritten.as_ref())? {
                return Ok(Verdict::Mismatch(mismatch));
            }
            if let Some(mismatch) = self.outside_of_bins(member, check)? {
                return Ok(Verdict::Mismatch(mismatch));
            }
        }
        Ok(match compared {
            0 if self.awaited(job).is_empty() => Verdict::Unchecked(Unchecked::NoCheck),
            0 => Verdict::Unchecked(Unchecked::IsReference),
            _ => Verdict::Pass,
        })
    }

    /// The error over the checks that request it; `None` if none does, or all compare integers.
    fn result_error(&mut self, member: usize) -> Result<Option<ResultError>, Stop> {
        let mut errors: Option<Errors> = None;
        for check in self.own_checks(member).into_iter().filter(|check| check.error) {
            let Some(Sides { actual, expected, .. }) = self.sides(member, check)? else { continue };
            if let Some(found) = Errors::of(&actual, &expected) {
                errors = Some(errors.map_or(found, |known| known.join(found)));
            }
        }
        Ok(errors.map(Errors::result))
    }

    /// A host function has one result: it is checked by the check that expects the same expression, or else by the first.
    fn own_checks<'j>(&self, member: usize) -> Vec<&'j CheckPlan>
    where
        Self: 'j,
    {
        let job: &'j CaseJob = self.members[member].job;
        if !matches!(self.members[member].body, Some(Body::Host(_))) {
            return job.checks.iter().collect();
        }
        let same = |check: &&CheckPlan| matches!(&check.expect, ExpectPlan::Reference(e) if is_reference(job, e));
        job.checks.iter().find(same).or(job.checks.first()).into_iter().collect()
    }

    /// Starts to work out what functions expect, for every set of inputs, while the device runs.
    pub fn begin_functions(&mut self) {
        for set in 0..self.store.sets.count {
            self.store.sets.current = set;
            for member in self.ready() {
                let job = self.members[member].job;
                for check in &job.checks {
                    if let (Some(function), Some(element)) = (called(&check.expect), self.element_of(member, check)) {
                        // The check itself reports an error.
                        let _ = self.expected.begin_function(&mut self.store, job, function, element);
                    }
                }
            }
        }
        self.store.sets.current = FIRST;
    }

    /// The type of what a check compares, where that is a buffer or a part of one.
    fn element_of(&self, member: usize, check: &CheckPlan) -> Option<ElementType> {
        let (name, _) = part_of(&check.actual)?;
        self.members[member].job.buffers.iter().find(|buffer| buffer.name == name).map(|buffer| buffer.element)
    }

    /// What a check expects; `None` if that is the case itself.
    pub fn expectation(&mut self, member: usize, check: &CheckPlan) -> Result<Option<Operand>, Stop> {
        let job = self.members[member].job;
        match &check.expect {
            ExpectPlan::Reference(expression) => self.expected.reference(&mut self.store, job, expression).map(Some),
            ExpectPlan::Npy(path) | ExpectPlan::Raw(path) => {
                let element = self.actual(member, check)?.element().unwrap_or(ElementType::F64);
                let raw = matches!(check.expect, ExpectPlan::Raw(_));
                self.expected.golden(path, element, raw).map(Some)
            }
            ExpectPlan::Part(part) => {
                let element = self.actual(member, check)?.element().unwrap_or(ElementType::F64);
                self.expected.part(part, element).map(Some)
            }
            ExpectPlan::Python(_) | ExpectPlan::Cpp(_) => {
                let Some(function) = called(&check.expect) else { return Ok(None) };
                let element = match self.element_of(member, check) {
                    Some(element) => element,
                    None => self.actual(member, check)?.element().unwrap_or(ElementType::F64),
                };
                self.expected.function(&mut self.store, job, function, element).map(Some)
            }
            ExpectPlan::List(values) => {
                let element = self.actual(member, check)?.element().unwrap_or(ElementType::F64);
                Expected::list(values, element).map(Some)
            }
            ExpectPlan::Variant(name) => {
                let other = self.named(member, name).filter(|other| *other != member);
                let set = self.store.sets.current;
                let is_kept = |kept: &&Kept| kept.set == set && kept.expression == check.actual;
                let kept = other.and_then(|other| self.members[other].kept.iter().find(is_kept));
                Ok(kept.map(|kept| kept.value.clone()))
            }
        }
    }

    /// The result of the case.
    pub fn actual(&mut self, member: usize, check: &CheckPlan) -> Result<Operand, Stop> {
        let body = match &self.members[member].body {
            Some(Body::Host(body)) => return Ok(body.result()),
            Some(Body::Device(body)) => body.slots.clone(),
            None => return Err(Stop::unresolved("the case has no body")),
        };
        let (steps, iterations) = (self.members[member].job.steps.as_ref(), self.device.iterations());
        let slot = |name: &str| {
            let meant = steps.map_or(name, |steps| steps.buffer_after(name, iterations));
            body.iter().find(|(known, _)| known == meant).map(|(_, slot)| *slot)
        };
        let phase = self.spend(Phase::Transfer);
        let Self { expected, device, store, .. } = self;
        let value =
            reference::evaluate(&check.actual, &mut |name| now_in(expected, *device, store, (name, slot(name))));
        self.spend(phase);
        value
    }

    /// A write outside of the case's buffers, or into an input that is a variable of its module.
    pub fn trespass(&mut self, member: usize) -> Result<Option<Mismatch>, Stop> {
        let slots = self.members[member].device_body().map(|body| body.slots.clone()).unwrap_or_default();
        for (name, slot) in &slots {
            let Some(buffer) = self.store.get(*slot) else { continue };
            let (id, element, is_input) = (buffer.id, buffer.plan.element, buffer.plan.access == Access::In);
            if buffer.is_symbol() {
                if is_input && let Some(difference) = self.changed(*slot)? {
                    return Ok(Some(changed_text(name, &difference, element)));
                }
                continue;
            }
            let (before, behind) = self.device.read_guards(id)?;
            let found = damage("before", name, before.iter().rev()).or_else(|| damage("behind", name, behind.iter()));
            if found.is_some() {
                // The next case that shares the buffer must not fail for it.
                self.device.write_guards(id, GUARD_PATTERN)?;
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Compares every shared input with its first content: `Pass`, or which was changed.
    pub fn changed_inputs(&mut self) -> Result<Verdict, Stop> {
        for slot in self.store.shared_inputs() {
            if let (Some(difference), Some(buffer)) = (self.changed(slot)?, self.store.get(slot)) {
                let mismatch = changed_text(&buffer.plan.name, &difference, buffer.plan.element);
                return Ok(Verdict::Mismatch(mismatch));
            }
        }
        Ok(Verdict::Pass)
    }

    pub fn restore_inputs(&mut self) -> Result<Verdict, Stop> {
        for slot in self.store.shared_inputs() {
            self.store.restore(self.device, slot)?;
        }
        Ok(Verdict::Pass)
    }

    /// How an input differs from its first content.
    pub fn changed(&mut self, slot: Slot) -> Result<Option<Difference>, Stop> {
        let phase = self.spend(Phase::Transfer);
        let difference = self.look(slot);
        self.spend(phase);
        difference
    }

    fn look(&mut self, slot: Slot) -> Result<Option<Difference>, Stop> {
        let Some(buffer) = self.store.get(slot).filter(|buffer| buffer.has_content()) else { return Ok(None) };
        let (id, element, plan) = (buffer.id, buffer.plan.element, buffer.plan.clone());
        if self.store.surely_unchanged(self.device, slot)? {
            return Ok(None);
        }
        let first = self.store.input(&plan)?;
        let mut now = vec![0; first.len().min(LOOK)];
        let mut found: Option<Difference> = None;
        for (part, before) in first.chunks(LOOK).enumerate() {
            let now = &mut now[..before.len()];
            self.device.download(id, part * LOOK, now)?;
            let Some(difference) = bitwise(now, before, element) else { continue };
            let start = (part * LOOK / element.size()) as u64;
            let known = found.get_or_insert(Difference { index: start + difference.index, wrong: 0, ..difference });
            known.wrong += difference.wrong;
            known.of = (first.len() / element.size()) as u64;
        }
        Ok(found)
    }
}

/// The current content of a buffer; an input has its first content, since a case that changes it fails anyway.
fn now_in(
    expected: &mut Expected,
    device: &mut dyn crate::backend::Device,
    store: &mut super::buffers::Store,
    (name, slot): (&str, Option<Slot>),
) -> Result<Operand, Stop> {
    let Some((slot, plan)) = slot.and_then(|slot| Some((slot, store.get(slot)?.plan.clone()))) else {
        return Err(Stop::unresolved(format!("the check names a buffer `{name}` that the case does not have")));
    };
    if plan.access == Access::In {
        return Ok(Operand::Bytes { element: plan.element, bytes: store.input(&plan)? });
    }
    expected.output(device, store, slot)
}

fn changed_text(name: &str, difference: &Difference, element: ElementType) -> Mismatch {
    difference.mismatch(format!("input `{name}` was changed"), Some(element))
}

/// The first byte of a guard zone, counted away from the buffer from 0, that has lost its pattern.
fn damage<'b>(side: &str, name: &str, zone: impl ExactSizeIterator<Item = &'b u8>) -> Option<Mismatch> {
    let of = zone.len() as u64;
    let mut broken = zone.enumerate().filter(|(_, byte)| **byte != GUARD_PATTERN);
    let (index, byte) = broken.next()?;
    Some(Mismatch {
        what: format!("guard zone {side} `{name}`, byte by byte away from it"),
        index: index as u64,
        expected: format!("{GUARD_PATTERN:#04x}"),
        got: format!("{byte:#04x}"),
        error: None,
        wrong: 1 + broken.count() as u64,
        of,
    })
}

/// The longest text of kernels that is kept, bytes: as much as a GPU's buffer of `printf` holds by default.
const MOST_PRINTED: usize = 1 << 20;

/// The text that kernels printed, as an event.
fn printed_event(job: &CaseJob, mut text: String) -> Option<Event> {
    if text.len() >= MOST_PRINTED {
        text.truncate(text.floor_char_boundary(MOST_PRINTED));
        text.push_str("\n(what was printed after 1 MiB is left out)\n");
    }
    (!text.is_empty()).then(|| Event::CasePrinted { case: job.case.clone(), text })
}

/// What the device reported of the first launch, as events.
fn reported(job: &CaseJob, CountReport { run, counters }: CountReport) -> Vec<Event> {
    let case = || job.case.clone();
    let mut events: Vec<Event> = printed_event(job, run.printed).into_iter().collect();
    events.extend(run.notes.into_iter().map(|note| Event::CaseNote { case: case(), note }));
    // The report has one line for each entry of the manifest, and an entry may run many times.
    let each = |each| if job.steps.is_some() { Vec::new() } else { each };
    let counted =
        |counted: BodyCounters| Event::CaseCounted { case: case(), counters: counted.whole, each: each(counted.each) };
    events.extend(counters.map(counted));
    events
}
