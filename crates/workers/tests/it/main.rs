//! The pool with workers that hang, crash, print, lose their device, or die outside any case. The workers are real
//! processes that serve the real protocol. Their cases are scripted, except in `kernels`, where the real group
//! execution drives the fake device.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test panics to fail")]

mod death;
mod kernels;
mod processes;
mod scripted;
mod survey;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use runner_types::{Activity, Event, GroupJob, Outcome};
use runner_workers::{Interrupt, Limits, Pool, RunEnd, StartError, WorkerSpec};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use scripted::{LIMIT, LONG, NEVER, group, spec};

/// What a run did, and how it ended.
struct Run {
    end: RunEnd,
    events: Vec<Event>,
    /// One line per attempt: its variants and its baseline.
    attempts: Vec<String>,
    took: Duration,
}

fn run(groups: Vec<GroupJob>) -> Run {
    run_until(groups, |_, _| {})
}

/// Runs groups. `watch` sees every event and can raise the interrupt.
fn run_until(groups: Vec<GroupJob>, watch: impl Fn(&Event, &Interrupt)) -> Run {
    run_with(groups, watch, spec)
}

fn run_with(groups: Vec<GroupJob>, watch: impl Fn(&Event, &Interrupt), spec: impl Fn(&Path) -> WorkerSpec) -> Run {
    run_prepared(groups, watch, spec, |_| {})
}

/// Runs groups in a pool that `prepare` has changed.
fn run_prepared(
    groups: Vec<GroupJob>,
    watch: impl Fn(&Event, &Interrupt),
    spec: impl Fn(&Path) -> WorkerSpec,
    prepare: impl FnOnce(&mut Pool),
) -> Run {
    let folder = TempDir::new().unwrap();
    let interrupt = Interrupt::new();
    let (mut pool, _) = Pool::start(spec(folder.path()), &interrupt).unwrap();
    prepare(&mut pool);
    let mut events = Vec::new();
    let start = Instant::now();
    let emit = &mut |event| {
        watch(&event, &interrupt);
        events.push(event);
    };
    let end = pool.run(groups, emit, &interrupt);
    Run { end, events, attempts: attempts(folder.path()), took: start.elapsed() }
}

/// Runs groups with changed limits.
fn run_limited(groups: Vec<GroupJob>, change: impl Fn(&mut Limits)) -> Run {
    let limited = |folder: &Path| {
        let mut spec = spec(folder);
        change(&mut spec.limits);
        spec
    };
    run_with(groups, |_, _| {}, limited)
}

fn attempts(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("attempts")).unwrap_or_default().lines().map(str::to_owned).collect()
}

impl Run {
    /// Variant and outcome of every case, in the order in which they were settled; panics if a case has two.
    fn outcomes(&self) -> Vec<(&str, &Outcome)> {
        let mut settled = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for event in &self.events {
            if let Event::CaseSettled { case, outcome, .. } = event {
                assert!(seen.insert(case.ordinal), "two outcomes for {}", case.key);
                settled.push((case.key.variant.as_str(), outcome));
            }
        }
        settled
    }

    fn names(&self) -> Vec<(&str, &str)> {
        self.outcomes().into_iter().map(|(variant, outcome)| (variant, outcome.name())).collect()
    }

    fn outcome(&self, variant: &str) -> &Outcome {
        self.outcomes().into_iter().find(|(v, _)| *v == variant).unwrap().1
    }

    /// Each measured variant, and the number of cases in the attempt that measured it.
    fn measured(&self) -> Vec<(&str, f64)> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::CaseMeasured { case, measurement } => {
                    Some((case.key.variant.as_str(), measurement.rounds[0].whole))
                }
                _ => None,
            })
            .collect()
    }

    fn printed(&self) -> Vec<(&str, &str)> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::CasePrinted { case, text } => Some((case.key.variant.as_str(), text.as_str())),
                _ => None,
            })
            .collect()
    }
}

fn message(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Crashed { message } | Outcome::LaunchError { message } => message,
        Outcome::NotRun { why, .. } => why,
        other => panic!("{other:?} has no message"),
    }
}

#[test]
fn a_group_without_faults_runs_once_and_its_events_keep_their_order() {
    let run = run(vec![group(0, &["a", "b"]), group(1, &["c"])]);
    assert_eq!(run.end, RunEnd::Complete);
    assert_eq!(run.names(), [("a", "measured"), ("b", "measured"), ("c", "measured")]);
    assert_eq!(run.attempts, ["a b of baseline Some(0)", "c of baseline Some(0)"]);
    let kinds: Vec<&str> = run.events[..3].iter().chain(run.events.last()).map(kind).collect();
    assert_eq!(kinds, ["group_started", "case_active", "case_checked", "group_finished"]);
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::GroupStarted { .. } => "group_started",
        Event::CaseActive { .. } => "case_active",
        Event::CaseChecked { .. } => "case_checked",
        Event::GroupFinished { .. } => "group_finished",
        _ => "other",
    }
}

#[test]
fn a_kernel_that_never_ends_costs_its_limit_and_no_other_row() {
    let run = run(vec![group(0, &["a", "hangs", "b"]), group(1, &["c"])]);
    assert_eq!(run.end, RunEnd::Complete);
    assert_eq!(run.names(), [("hangs", "timed_out"), ("a", "measured"), ("b", "measured"), ("c", "measured")]);
    assert_eq!(run.outcome("hangs"), &Outcome::TimedOut { limit_seconds: LIMIT, message: None });
    assert_eq!(run.attempts[1], "a b of baseline Some(0)");
    assert!(run.took > Duration::from_secs_f64(LIMIT), "{:?}", run.took);
    assert!(run.took < NEVER, "{:?}", run.took);
}

#[test]
fn a_baseline_that_hangs_leaves_the_group_without_one() {
    let run = run(vec![group(0, &["hangs", "a"])]);
    assert_eq!(run.attempts, ["hangs a of baseline Some(0)", "a of baseline None"]);
    assert_eq!(run.names(), [("hangs", "timed_out"), ("a", "measured")]);
}

#[test]
fn a_hang_among_the_measured_launches_voids_the_samples_taken_beside_it() {
    let run = run(vec![group(0, &["a", "hangs_when_measured", "b"])]);
    // `a` was measured in the attempt of three before the hang, but only the attempt of two counts.
    assert_eq!(run.measured(), [("a", 2.0), ("b", 2.0)]);
    assert_eq!(run.outcome("hangs_when_measured").name(), "timed_out");
    let checked = run.events.iter().filter(|e| kind(e) == "case_checked").count();
    assert_eq!(checked, 3, "a verdict is reported once, not once per attempt");
}

#[test]
fn every_way_to_die_is_reported_in_its_row_and_the_rest_is_measured() {
    let all = ["a", "aborts", "segfaults", "exits", "panics", "aborts_when_measured", "b"];
    let run = run(vec![group(0, &all)]);
    assert_eq!(run.end, RunEnd::Complete);
    assert_eq!(run.measured(), [("a", 2.0), ("b", 2.0)]);
    let says = |variant: &str, what: &str| {
        let text = message(run.outcome(variant));
        assert!(text.starts_with(what), "{variant}: {text}");
    };
    says("aborts", "the worker was killed by SIGABRT (it aborted itself) while checking");
    says("segfaults", "the worker was killed by SIGSEGV (invalid memory access) while checking");
    says("exits", "the worker exited with code 0 while checking");
    says("panics", "the worker exited with code 101 while checking; its last output: ");
    says("aborts_when_measured", "the worker was killed by SIGABRT (it aborted itself) while measuring");
    assert!(message(run.outcome("panics")).contains("index out of bounds"));
    assert_eq!(run.attempts.len(), 6);
}

#[test]
fn a_case_whose_worker_is_killed_runs_again() {
    let run = run(vec![group(0, &["a", "is_killed_once", "is_killed_once_too", "b"]), group(1, &["c"])]);
    assert_eq!(run.end, RunEnd::Complete);
    let all = ["a", "is_killed_once", "is_killed_once_too", "b"];
    assert_eq!(run.names(), all.into_iter().chain(["c"]).map(|name| (name, "measured")).collect::<Vec<_>>());
    // The worker was killed once in each of the two cases, so the third attempt is complete.
    assert_eq!(run.attempts.len(), 4);
    assert!(run.attempts[..3].iter().all(|attempt| *attempt == format!("{} of baseline Some(0)", all.join(" "))));
}

#[test]
fn a_case_whose_worker_is_killed_again_crashed() {
    let run = run(vec![group(0, &["a", "is_killed", "b"])]);
    assert_eq!(run.names(), [("is_killed", "crashed"), ("a", "measured"), ("b", "measured")]);
    assert!(message(run.outcome("is_killed")).starts_with("the worker was killed by SIGKILL"));
    assert_eq!(run.attempts.len(), 3);
}

#[test]
fn a_run_that_can_get_more_memory_ends_when_a_worker_is_killed_again() {
    let groups = vec![group(0, &["is_killed_once", "is_killed", "b"]), group(1, &["c"])];
    let run = run_prepared(groups, |_, _| {}, spec, Pool::end_when_killed);
    let RunEnd::Environment(why) = &run.end else { panic!("{:?}", run.end) };
    assert!(why.starts_with(&format!("the worker was killed by {}", runner_workers::KILLED)), "{why}");
    let mut names = run.names();
    names.sort_unstable();
    assert_eq!(names, ["b", "c", "is_killed", "is_killed_once"].map(|name| (name, "not_run")));
}

#[test]
fn what_a_kernel_prints_reaches_its_row_and_never_the_protocol() {
    let run = run(vec![group(0, &["prints", "a", "floods"])]);
    assert_eq!(run.names(), [("prints", "measured"), ("a", "measured"), ("floods", "measured")]);
    let printed = run.printed();
    assert_eq!(printed[0], ("prints", "{\"reply\":\"stopped\"}\nthread 0 was here"));
    assert_eq!(printed.len(), 2);
    let kept = 64 << 10;
    assert_eq!(printed[1].1, format!("{}\n… ({} more bytes were printed)", "x".repeat(kept), (1 << 20) - kept));
}

#[test]
fn a_lost_device_costs_the_case_that_lost_it() {
    let run = run(vec![group(0, &["a", "loses_the_device", "b"])]);
    assert_eq!(message(run.outcome("loses_the_device")), "an illegal memory access was encountered");
    assert_eq!(run.names(), [("loses_the_device", "launch_error"), ("a", "measured"), ("b", "measured")]);
    assert_eq!(run.attempts[1], "a b of baseline Some(0)");
}

#[test]
fn an_outcome_that_was_settled_before_a_crash_is_neither_lost_nor_repeated() {
    let run = run(vec![group(0, &["a", "is_wrong", "is_invalid", "aborts"])]);
    let expected = [("is_wrong", "wrong"), ("is_invalid", "invalid"), ("aborts", "crashed"), ("a", "measured")];
    assert_eq!(run.names(), expected);
    assert_eq!(run.attempts[1], "a of baseline Some(0)");
}

#[test]
fn a_worker_that_dies_outside_any_case_costs_its_group_and_not_the_next() {
    let run = run(vec![group(0, &["dies_between", "a"]), group(1, &["b"])]);
    assert_eq!(run.end, RunEnd::Complete);
    assert_eq!(run.names(), [("dies_between", "crashed"), ("a", "crashed"), ("b", "measured")]);
    assert_eq!(message(run.outcome("a")), "the worker exited with code 7 outside of any case");
    assert_eq!(run.attempts.len(), 3, "one more try, then the group is given up");
}

#[test]
fn a_worker_that_keeps_dying_outside_any_case_ends_the_run() {
    let groups = vec![group(0, &["dies_between"]), group(1, &["hangs_between"]), group(2, &["a"])];
    let run = run_limited(groups, |limits| limits.silence = Duration::from_secs(3));
    let why = "the worker keeps failing outside of any case: the worker sent nothing for 3 s outside of any case";
    assert_eq!(run.end, RunEnd::Environment(why.into()));
    assert_eq!(run.names(), [("dies_between", "crashed"), ("hangs_between", "crashed"), ("a", "not_run")]);
}

#[test]
fn a_device_that_needs_a_moment_after_a_crash_gets_it() {
    let run = run(vec![group(0, &["breaks_the_device_for_a_moment", "a"])]);
    assert_eq!(run.end, RunEnd::Complete);
    assert_eq!(run.names(), [("breaks_the_device_for_a_moment", "crashed"), ("a", "measured")]);
}

#[test]
fn a_device_that_stays_broken_ends_the_run_with_every_case_accounted_for() {
    let groups = vec![group(0, &["a", "breaks_the_device", "b"]), group(1, &["c"])];
    let run = run_limited(groups, |limits| limits.restart = Duration::from_millis(800));
    let why = "the worker could not be restarted: the device is resting";
    assert_eq!(run.end, RunEnd::Environment(why.into()));
    let rows = [("breaks_the_device", "crashed"), ("a", "not_run"), ("b", "not_run"), ("c", "not_run")];
    assert_eq!(run.names(), rows);
    assert_eq!(message(run.outcome("c")), why);
}

#[test]
fn what_a_kernel_prints_is_kept_where_its_check_has_another_step_after_the_launch() {
    let run = run(vec![group(0, &["prints_and_is_compared", "a"])]);
    assert_eq!(run.names(), [("prints_and_is_compared", "measured"), ("a", "measured")]);
    assert_eq!(run.printed(), [("prints_and_is_compared", "{\"reply\":\"stopped\"}\nthread 0 was here")]);
}

#[test]
fn the_first_interrupt_ends_after_the_current_step() {
    let run = run_until(vec![group(0, &["dawdles", "a", "b"]), group(1, &["c"])], |event, interrupt| {
        if matches!(event, Event::CaseActive { activity: Activity::Checking, .. }) {
            interrupt.request();
        }
    });
    assert_eq!(run.end, RunEnd::Interrupted);
    let rows = [("dawdles", "not_run"), ("a", "not_run"), ("b", "not_run"), ("c", "not_run")];
    assert_eq!(run.names(), rows);
    assert_eq!(message(run.outcome("c")), "interrupted");
    let checked = run.events.iter().filter(|e| kind(e) == "case_checked").count();
    assert_eq!(checked, 1, "the launch under way is brought to its end");
}

#[test]
fn the_second_interrupt_does_not_wait_for_the_kernel() {
    let mut group = group(0, &["hangs", "a"]);
    group.cases[0].measure.timeout = LONG;
    let run = run_until(vec![group], |event, interrupt| {
        if matches!(event, Event::CaseActive { .. }) {
            interrupt.request();
            interrupt.request();
        }
    });
    assert_eq!(run.end, RunEnd::Interrupted);
    assert_eq!(run.names(), [("hangs", "not_run"), ("a", "not_run")]);
    assert!(run.took < Duration::from_secs_f64(LONG), "{:?}", run.took);
}

#[test]
fn a_worker_that_cannot_open_its_device_says_why() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("broken"), "1").unwrap();
    let error = Pool::start(spec(folder.path()), &Interrupt::new()).unwrap_err();
    assert!(matches!(&error, StartError::Refused(why) if why == "the device is resting"), "{error}");
}

#[test]
fn a_program_that_is_no_worker_is_refused_with_what_it_said() {
    let worker_within = |start: Duration, script: &str| {
        let mut spec = WorkerSpec::new("/bin/sh", ["-c", script]);
        spec.limits.start = start;
        Pool::start(spec, &Interrupt::new()).unwrap_err().to_string()
    };
    let worker = |script: &str| worker_within(NEVER, script);
    let dies = worker("echo no driver >&2; exit 4");
    assert_eq!(dies, "the worker exited with code 4 before its device was open; its last output: no driver");
    let chatters = worker("echo hello; sleep 600");
    assert!(chatters.starts_with("the worker sent an invalid reply (not a line of the worker protocol:"), "{chatters}");
    let sleeps = worker_within(Duration::from_millis(700), "sleep 600");
    assert_eq!(sleeps, "the worker did not open its device within 0.7 s");
    let other = worker(r#"read hello; echo '{"reply":"failed","message":"version 2 only"}'; sleep 600"#);
    assert_eq!(other, "version 2 only");
}

#[test]
fn a_request_that_means_nothing_to_the_worker_costs_its_group_and_says_why() {
    // Replaces the first group's request with one that has no job.
    let garbled = |folder: &Path| {
        let mut spec = spec(folder);
        let garble = r#"sed -u 's/.*"variant":"b".*/{"request":"group","job":null}/' | "#;
        let script = format!("{garble}{}", spec.args[1].to_string_lossy().replace("exec ", ""));
        spec.args[1] = script.into();
        spec
    };
    let run = run_with(vec![group(0, &["a", "b"]), group(1, &["c"])], |_, _| {}, garbled);
    assert_eq!(run.names(), [("a", "crashed"), ("b", "crashed"), ("c", "measured")]);
    let text = message(run.outcome("a"));
    assert!(
        text.starts_with("the worker cannot continue (not a line of the worker protocol: invalid type: null"),
        "{text}"
    );
}

/// Runs a group, stops the worker with SIGSTOP, and runs a group whose request is longer than a pipe holds.
fn run_after_a_stop(interrupts: u32, silence: Duration) -> Vec<&'static str> {
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let folder = TempDir::new().unwrap();
        let interrupt = Interrupt::new();
        let mut spec = spec(folder.path());
        spec.limits.silence = silence;
        let (mut pool, _) = Pool::start(spec, &interrupt).unwrap();
        let mut outcomes = Vec::new();
        let emit = &mut |event| match event {
            Event::GroupFinished { ordinal: 0, .. } => {
                let pid = fs::read_to_string(folder.path().join("pid")).unwrap().parse().unwrap();
                rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
            }
            Event::GroupStarted { ordinal: 1, .. } => (0..interrupts).for_each(|_| interrupt.request()),
            Event::CaseSettled { outcome, .. } => outcomes.push(outcome.name()),
            _ => {}
        };
        let names: Vec<String> = (0..40).map(|nth| format!("{nth}{}", "x".repeat(1 << 14))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        pool.run([group(0, &["a"]), group(1, &names)], emit, &interrupt);
        sender.send(outcomes).unwrap();
    });
    ended.recv_timeout(NEVER).expect("the dispatcher still waits for the worker")
}

#[test]
fn a_stopped_worker_is_replaced_and_its_cases_are_measured() {
    // The silence limit also applies to the replacement worker, and its request is long.
    assert_eq!(run_after_a_stop(0, Duration::from_secs(15)), ["measured"; 41]);
}

#[test]
fn the_second_interrupt_does_not_wait_for_a_stopped_worker() {
    let outcomes = run_after_a_stop(2, NEVER * 2);
    assert_eq!(outcomes, [&["measured"][..], &["not_run"; 40]].concat());
}

#[test]
fn this_program_can_be_its_own_worker() {
    let spec = WorkerSpec::of_this_program(["--list", "scripted::worker_entry"]);
    let error = Pool::start(spec, &Interrupt::new()).unwrap_err().to_string();
    assert!(error.contains("`scripted::worker_entry: test`"), "{error}");
}

#[test]
fn a_missing_program_is_named() {
    let spec = WorkerSpec::new("/nowhere/runner", ["__worker"]);
    let error = Pool::start(spec, &Interrupt::new()).unwrap_err().to_string();
    assert!(error.starts_with("cannot start the worker `/nowhere/runner`: "), "{error}");
}
