//! Tests of the feed with a scripted compiler.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::fixture::{compiled, environment, failure, group, unit};
use super::*;
use crate::pending;
use runner_types::Regime;

/// Longer than anything in these tests takes.
const LONG: Duration = Duration::from_mins(2);

fn resolved(job: GroupJob) -> ResolvedGroup {
    ResolvedGroup { job, settled: Vec::new(), undecided: Vec::new() }
}

/// Feeds groups to `consume` while `make` compiles; returns the result and the events.
fn feed(
    groups: Vec<GroupJob>,
    compile: Compile<'_>,
    interrupt: &Interrupt,
    consume: impl FnOnce(&mut Feed<'_>) -> RunEnd,
) -> (Ran, Vec<Event>) {
    let (environment, held, stop, fault) = (environment(), Held::default(), AtomicBool::new(false), OnceLock::new());
    let groups = groups.into_iter().map(resolved).collect();
    let (environment, held, needs_quiet) = (&environment, &held, pending::needs_quiet);
    let work = Work { groups, environment, held, needs_quiet, stop: &stop, fault: &fault };
    let mut events = Vec::new();
    let ran = run(work, compile, |feed, _| consume(feed), &mut |event| events.push(event), interrupt);
    assert!(stop.into_inner(), "compilation is stopped when no group needs it any more");
    (ran, events)
}

/// Takes every group from the feed.
fn take_all(feed: &mut Feed<'_>) -> Vec<u32> {
    std::iter::from_fn(|| feed.next()).map(|job| job.ordinal).collect()
}

fn settled(events: &[Event]) -> Vec<(&str, &str)> {
    let mut settled = Vec::new();
    for event in events {
        if let Event::CaseSettled { case, outcome, .. } = event {
            settled.push((case.key.variant.as_str(), outcome.name()));
        }
    }
    settled
}

fn compile_one(source: &str, on_compiled: OnCompiled<'_>) {
    on_compiled(&unit(source), &Ok(compiled(&unit(source))), 0.0);
}

#[test]
fn a_slow_unit_does_not_hold_up_the_group_before_it() {
    let (begun, hear) = channel();
    let hear: Mutex<Receiver<()>> = Mutex::new(hear);
    // `b` compiles until the first group runs, so a feed that waited for all units would never finish.
    let make = |units: &[CompileUnit], on_compiled: OnCompiled<'_>| {
        assert_eq!(units, [unit("a"), unit("b")]);
        compile_one("a", on_compiled);
        if hear.lock().is_ok_and(|hear| hear.recv_timeout(LONG).is_ok()) {
            compile_one("b", on_compiled);
        }
    };
    let groups = vec![group(0, &["a"], Regime::Cold), group(1, &["b"], Regime::Cold)];
    let (ran, events) = feed(groups, &make, &Interrupt::new(), |feed| {
        assert_eq!(feed.next().map(|job| job.ordinal), Some(0));
        assert!(begun.send(()).is_ok());
        assert_eq!(take_all(feed), [1]);
        RunEnd::Complete
    });
    assert_eq!(ran.groups.iter().map(|job| job.ordinal).collect::<Vec<_>>(), [0, 1]);
    let code = |job: &GroupJob| match &job.cases[0].body {
        runner_types::BodyPlan::Launches(launches) => launches[0].compiled.clone(),
        _ => None,
    };
    assert_eq!(code(&ran.groups[1]), Some(compiled(&unit("b"))));
    assert!(settled(&events).is_empty());
    assert!(matches!(&events[0], Event::CompileStarted { units: 2 }));
    assert_eq!(events.iter().filter(|e| matches!(e, Event::UnitCompiled { failed: false, .. })).count(), 2);
}

#[test]
fn a_unit_that_fails_is_a_row_and_a_group_of_nothing_else_is_not_handed_on() {
    let make = |_: &[CompileUnit], on_compiled: OnCompiled<'_>| {
        on_compiled(&unit("b"), &Err(failure()), 0.0);
        compile_one("a", on_compiled);
    };
    let groups = vec![group(0, &["b"], Regime::Cold), group(1, &["b", "a"], Regime::Cold)];
    let (ran, events) = feed(groups, &make, &Interrupt::new(), |feed| {
        assert_eq!(take_all(feed), [1]);
        RunEnd::Complete
    });
    assert_eq!(ran.groups[0].cases.len(), 1);
    assert_eq!(settled(&events), [("b", "compile_error"), ("b", "compile_error")]);
    let planned = events.iter().find_map(|event| match event {
        Event::CasesPlanned { todo, held } => Some((todo.len(), held.len())),
        _ => None,
    });
    assert_eq!(planned, Some((3, 0)), "every cell is announced, also those that do not compile");
}

#[test]
fn a_group_that_the_host_clock_times_waits_for_the_last_unit() {
    let (begun, hear) = channel();
    let hear: Mutex<Receiver<()>> = Mutex::new(hear);
    let make = |_: &[CompileUnit], on_compiled: OnCompiled<'_>| {
        compile_one("a", on_compiled);
        compile_one("b", on_compiled);
        if hear.lock().is_ok_and(|hear| hear.recv_timeout(LONG).is_ok()) {
            compile_one("c", on_compiled);
        }
    };
    let groups = vec![group(0, &["a"], Regime::Host), group(1, &["b"], Regime::Cold), group(2, &["c"], Regime::Cold)];
    feed(groups, &make, &Interrupt::new(), |feed| {
        assert_eq!(feed.next().map(|job| job.ordinal), Some(1));
        assert!(begun.send(()).is_ok());
        assert_eq!(take_all(feed), [0, 2]);
        RunEnd::Complete
    });
}

#[test]
fn an_interrupt_ends_the_waiting_and_leaves_the_rest_to_be_settled() {
    let interrupt = Interrupt::new();
    let stopper = interrupt.clone();
    // When stopped, the compiler reports a failure that is not the unit's fault.
    let make = move |_: &[CompileUnit], on_compiled: OnCompiled<'_>| {
        compile_one("a", on_compiled);
        stopper.request();
        thread::sleep(POLL * 4);
        on_compiled(&unit("b"), &Err(failure()), 0.0);
    };
    let groups = vec![group(0, &["b"], Regime::Cold)];
    let groups = [groups, vec![group(1, &["a", "b"], Regime::Cold)]].concat();
    let (_, events) = feed(groups, &make, &interrupt, |feed| {
        assert_eq!(feed.next(), None);
        assert_eq!(feed.remaining().iter().map(|job| job.ordinal).collect::<Vec<_>>(), [0, 1]);
        RunEnd::Interrupted
    });
    assert!(settled(&events).is_empty());
    assert!(!events.iter().any(|event| matches!(event, Event::UnitCompiled { failed: true, .. })));
}

#[test]
fn a_compiler_that_vanishes_costs_its_rows_and_ends_the_waiting() {
    let make = |_: &[CompileUnit], on_compiled: OnCompiled<'_>| compile_one("a", on_compiled);
    let groups = vec![group(0, &["a"], Regime::Cold), group(1, &["b"], Regime::Cold)];
    let (_, events) = feed(groups, &make, &Interrupt::new(), |feed| {
        assert_eq!(take_all(feed), [0]);
        RunEnd::Complete
    });
    assert_eq!(settled(&events), [("b", "compile_error")]);
}

#[test]
fn only_what_was_waited_for_is_time_spent_compiling() {
    const PAUSE: Duration = Duration::from_millis(300);
    let (begun, hear) = channel();
    let hear: Mutex<Receiver<()>> = Mutex::new(hear);
    let make = |_: &[CompileUnit], on_compiled: OnCompiled<'_>| {
        compile_one("a", on_compiled);
        let _ = hear.lock().map(|hear| hear.recv_timeout(LONG));
        compile_one("b", on_compiled);
    };
    let groups = vec![group(0, &["a"], Regime::Cold), group(1, &["b"], Regime::Cold)];
    let mut taking = Duration::ZERO;
    let (_, events) = feed(groups, &make, &Interrupt::new(), |feed| {
        let mut take = |expected| {
            let since = Instant::now();
            assert_eq!(feed.next().map(|job| job.ordinal), expected);
            taking += since.elapsed();
        };
        take(Some(0));
        // Compiling the second unit takes at least as long as running the first group.
        thread::sleep(PAUSE);
        assert!(begun.send(()).is_ok());
        take(Some(1));
        take(None);
        RunEnd::Complete
    });
    let find = |wanted: fn(&Event) -> Option<f64>| events.iter().find_map(wanted).unwrap_or(f64::NAN);
    let waited = find(|event| match event {
        Event::PhaseSpent { phase: Phase::Compile, seconds } => Some(*seconds),
        _ => None,
    });
    let compiled = find(|event| match event {
        Event::CompileFinished { seconds } => Some(*seconds),
        _ => None,
    });
    assert!(compiled >= PAUSE.as_secs_f64(), "{compiled}");
    assert!(waited <= taking.as_secs_f64(), "{waited} of {taking:?}");
}
