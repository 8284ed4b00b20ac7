//! Passes after timing: a memory check and hardware counters.
//!
//! Each has its own worker, inside compute-sanitizer or the profiler, so that neither disturbs the times.

use super::prepare::{ManifestRun, Prepared};
use super::worker::{self, Worker};
use crate::cli::options::RunOptions;
use crate::console::Console;
use crate::failure::Failure;
use runner_compile::{self, Cache, Requirement};
use runner_process::programs::Programs;
use runner_profile::memcheck::{self, Memcheck};
use runner_profile::pass::{self, Passed};
use runner_profile::{Detail, ProfilerError, ProfilerSession};
use runner_types::{BackendKind, Event};
use runner_workers::feed::Ran;
use runner_workers::{Interrupt, RunEnd};

/// Requested passes that the backend does not already cover.
#[derive(Debug)]
pub struct Passes {
    memcheck: Option<Memcheck>,
    /// The profiler, or why there is none.
    counting: Option<Result<ProfilerSession, ProfilerError>>,
}

impl Passes {
    /// Finds the required programs. A run does not start if a requested memory check is impossible.
    pub fn prepare(run: ManifestRun<'_>, worker: &Worker, console: &mut Console) -> Result<Self, Failure> {
        let ManifestRun { options, manifest } = run;
        let counts = options.passes.counters && worker.backend() == BackendKind::Cuda;
        if options.passes.lines && worker.backend() == BackendKind::Cuda && !counts {
            return Err(Failure::usage(
                "--lines needs counts: add --counters on a GPU, or run on the simulator (--backend sim)",
            ));
        }
        let detail = Detail::for_lines(options.passes.lines);
        let start = || ProfilerSession::start(&Programs::of_this_machine(), &manifest.measure.metrics, detail);
        let counting = counts.then(start);
        Ok(Self { memcheck: memory_check(options, worker, console)?, counting })
    }

    /// How counters are collected, in one sentence for the environment.
    pub fn counting_method(&self) -> Option<String> {
        self.counting.as_ref().and_then(|session| session.as_ref().ok()).map(ProfilerSession::method)
    }

    /// Runs the passes, if timing is complete. Frees the run's jobs at the end.
    pub fn run(
        self,
        ran: Ran,
        mut passed: Passed,
        (options, interrupt): (&RunOptions, &Interrupt),
        prepared: &mut Prepared,
    ) -> RunEnd {
        let (Prepared { work, recorder, .. }, ordinal) = (prepared, options.target.ordinal());
        let Ran { mut end, mut groups, held } = ran;
        if let (RunEnd::Complete, Some(memcheck)) = (&end, self.memcheck) {
            let mut all = passed.clone();
            all.add(&held, |_| true);
            let groups = groups.iter().chain(&held).cloned().collect();
            let emit = &mut |event: Event| {
                passed.observe(&event);
                recorder.emit(&event);
            };
            let open = |memcheck: &Memcheck| worker::start_memchecked(ordinal, memcheck, interrupt);
            end = memcheck::check(memcheck, open, groups, &all, emit, interrupt);
        }
        if let (RunEnd::Complete, Some(counting)) = (&end, self.counting) {
            passed.add(&held, |key| work.held.lacks_counters(key));
            groups.extend(held);
            let emit = &mut |event: Event| recorder.emit(&event);
            let open = |session: &mut ProfilerSession| {
                worker::start_profiled(ordinal, session, interrupt).map(|worker| worker.pool)
            };
            match counting {
                Ok(session) => end = pass::count(session, open, groups, &passed, emit, interrupt),
                Err(why) => emit(pass::missing(&why)),
            }
        }
        end
    }
}

/// Opens compute-sanitizer, if `--memcheck` requests it and the backend does not check memory itself.
fn memory_check(options: &RunOptions, worker: &Worker, console: &mut Console) -> Result<Option<Memcheck>, Failure> {
    if !options.passes.memcheck {
        return Ok(None);
    }
    let Some(driver) = worker.ready.driver_cuda.filter(|_| worker.backend() == BackendKind::Cuda) else {
        console.say("--memcheck: the simulator checks every access anyway, and more than compute-sanitizer does");
        return Ok(None);
    };
    let failure = |why: &dyn std::fmt::Display| Failure::environment(format!("--memcheck: {why}"));
    let want = Requirement::Gpu { driver, compute_capability: worker.ready.device.compute_capability };
    let cache = Cache::locate().map_err(|e| failure(&e))?;
    let (programs, say) = (Programs::of_this_machine(), &mut |line: &str| console.say(line));
    let program =
        runner_compile::sanitizer::ensure(want, &programs, &cache, options.network, say).map_err(|e| failure(&e))?;
    Memcheck::new(program).map(Some).map_err(|e| failure(&format!("cannot create a folder for its output: {e}")))
}
