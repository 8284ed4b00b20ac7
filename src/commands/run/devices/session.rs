//! Journals of one GPU, one for each manifest whose groups it runs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::experiment::{Experiment, WorkItem};
use super::shared::Run;
use crate::cli::DisplayArgs;
use crate::cli::options::RunOptions;
use crate::console::Console;
use crate::failure::Failure;
use crate::session::gpus::Gpu;
use crate::session::{Destination, ManifestRun, Recorder, Unwritten, close};
use runner_lang::format::seconds;
use runner_plan::ResolvedGroup;
use runner_plan::link::link;
use runner_types::{Case, CaseJob, Environment, Event, GroupJob, GroupKey, Machine, WorkAmount};
use runner_workers::{Ready, RunEnd};

pub struct GpuJournals<'a, 'r> {
    run: &'a Run<'r>,
    gpu: &'a Gpu,
    ready: &'a Ready,
    machine: Machine,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// Open journals by experiment index.
    open: BTreeMap<usize, OpenJournal>,
    /// Experiments whose journal could not be opened.
    broken: BTreeSet<usize>,
    running: Option<Running>,
}

/// A journal and the environment of its results.
struct OpenJournal {
    recorder: Recorder,
    environment: Environment,
    destination: Destination,
    started: Instant,
}

struct Running {
    experiment: usize,
    key: GroupKey,
    begun: Instant,
}

impl<'a, 'r> GpuJournals<'a, 'r> {
    pub fn new(run: &'a Run<'r>, gpu: &'a Gpu, ready: &'a Ready, machine: Machine) -> Self {
        Self { run, gpu, ready, machine, state: RefCell::default() }
    }

    /// Opens a journal for every experiment. An interrupted run is continued even if no group of it is left.
    pub fn open_all(&self) {
        for experiment in 0..self.run.experiments.len() {
            self.open(&mut self.state.borrow_mut(), experiment);
        }
    }

    /// Announces a group and settles those of its cases that do not run; `None` if none is left to run.
    pub fn begin(&self, unit: &WorkItem) -> Option<GroupJob> {
        let mut state = self.state.borrow_mut();
        self.open(&mut state, unit.experiment);
        let State { open, running, .. } = &mut *state;
        let session = open.get_mut(&unit.experiment)?;
        let Experiment { planned, units, held, .. } = &self.run.experiments[unit.experiment];
        let resolved = &planned.groups[unit.group];
        let (job, failed) = link(resolved.job.clone(), units, &session.environment);
        let applies = |case: &CaseJob| {
            case.fingerprint.as_ref().is_some_and(|fingerprint| held.holds(&case.case.key, fingerprint))
        };
        // The continued journal already has results for all cases.
        if !job.cases.is_empty() && job.cases.iter().all(applies) {
            return None;
        }
        let settled = [resolved.settled.as_slice(), &failed].concat();
        let cases = settled.iter().map(|(case, _)| case).chain(job.cases.iter().map(|case| &case.case)).cloned();
        session.recorder.emit(&Event::CasesPlanned { todo: cases.collect(), held: Vec::new() });
        for (case, outcome) in settled {
            let work = WorkAmount::default();
            session.recorder.emit(&Event::CaseSettled { case, fingerprint: None, outcome, work });
        }
        let (experiment, key) = (unit.experiment, job.key.clone());
        *running = Some(Running { experiment, key, begun: Instant::now() });
        (!job.cases.is_empty()).then_some(job)
    }

    pub fn emit(&self, event: &Event) {
        let mut state = self.state.borrow_mut();
        let State { open, running, .. } = &mut *state;
        let Some(running) = running else { return };
        let Some(session) = open.get_mut(&running.experiment) else { return };
        session.recorder.emit(event);
        match event {
            Event::GroupStarted { .. } => {
                self.run.waited(running.begun.elapsed());
                running.begun = Instant::now();
            }
            Event::GroupFinished { .. } => {
                let experiment = &self.run.experiments[running.experiment];
                let took = self.run.took(self.gpu, running.begun);
                experiment.took(took);
                let (name, left) = (&experiment.manifest.name, self.run.queue.count_waiting());
                let took = seconds(took.as_secs_f64());
                let line = format!("GPU {}: {name} {}: {took}, {left} left", self.gpu.number, running.key);
                self.run.with_console(|console| console.say(&line));
            }
            _ => {}
        }
    }

    pub fn close(self, end: &RunEnd) {
        for OpenJournal { recorder, destination, started, .. } in self.state.into_inner().open.into_values() {
            if let Err(failure) = close(Unwritten { end, started, recorder, destination: &destination }) {
                self.run.with_console(|console| console.fail(&failure));
            }
        }
    }

    fn open(&self, state: &mut State, experiment: usize) {
        if state.open.contains_key(&experiment) || state.broken.contains(&experiment) {
            return;
        }
        match self.session(&self.run.experiments[experiment]) {
            Ok(session) => {
                state.open.insert(experiment, session);
            }
            Err(failure) => {
                state.broken.insert(experiment);
                self.run.with_console(|console| console.fail(&failure));
            }
        }
    }

    fn session(&self, experiment: &Experiment) -> Result<OpenJournal, Failure> {
        let Experiment { manifest, options, planned, .. } = experiment;
        let options = RunOptions {
            target: self.gpu.target.clone(),
            out: Some(experiment.folder(self.gpu.number)),
            resume: true,
            display: DisplayArgs { quiet: true, ..options.display },
            ..options.clone()
        };
        let environment = planned.environment(self.ready, None, self.machine.clone());
        let destination = Destination::choose(&options, manifest, &self.ready.device);
        let mut quiet = self.run.with_console(|console| Console { quiet: true, ..*console });
        let (mut recorder, held) = Recorder::open(&options, &manifest.name, &destination, &mut quiet)?;
        recorder.expect(manifest, &planned.plan, "", &BTreeMap::new());
        // The command that reproduces the report covers the whole run, so it is the same for every GPU.
        let whole = RunOptions { target: experiment.options.target.clone(), ..options };
        let command = whole.command(environment.device.backend);
        recorder.emit(&planned.start(
            (ManifestRun { manifest, options: &whole }, command),
            &environment,
            self.ready.uuid.clone(),
        ));
        // Groups are planned one by one before they run. Finished ones stay in the plan of this journal.
        let cases = |group: &ResolvedGroup| -> Vec<Case> {
            let settled = group.settled.iter().map(|(case, _)| case);
            settled.chain(group.job.cases.iter().map(|case| &case.case)).cloned().collect()
        };
        let groups = planned.groups.iter().map(cases);
        let done = groups.filter(|cases| cases.iter().any(|case| held.has_settled(&case.key))).flatten();
        recorder.emit(&Event::CasesPlanned { todo: Vec::new(), held: done.collect() });
        Ok(OpenJournal { recorder, environment, destination, started: Instant::now() })
    }
}
