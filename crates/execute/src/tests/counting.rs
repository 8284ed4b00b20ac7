//! What is announced to an active profiler, and which notes are reported.

use super::rig::{Said, case, device, group, kernel, launch, right, run};
use fake_backend::FakeDevice;
use runner_types::{BodyPlan, Dim3, ElementType, Event, MarkedLaunch, Outcome};

/// Announced launches: the case, and its kernels.
fn announced(said: &Said) -> Vec<(&str, Vec<&str>)> {
    let marked = |event: &'_ Event| matches!(event, Event::LaunchesMarked { .. });
    let names = |launches: &'_ [MarkedLaunch]| launches.iter().map(|l| l.kernel.clone()).collect::<Vec<_>>();
    said.events
        .iter()
        .filter(|event| marked(event))
        .filter_map(|event| match event {
            Event::LaunchesMarked { case, process, launches, .. } => {
                assert_eq!(*process, std::process::id());
                let names = names(launches).into_iter().map(|name| String::leak(name) as &str).collect();
                Some((case.key.variant.as_str(), names))
            }
            _ => None,
        })
        .collect()
}

fn copies() -> FakeDevice {
    device(vec![("one", kernel(right)), ("two", kernel(right))])
}

#[test]
fn every_checked_launch_is_announced_before_it_is_made_and_shown_once() {
    let mut both = case("two", ElementType::I32);
    both.body = BodyPlan::Launches(vec![launch("one", &["input", "out"]), launch("two", &["input", "out"])]);
    let said = run(copies().watched(), &group(vec![case("one", ElementType::I32), both]));
    assert_eq!(announced(&said), [("one", vec!["one"]), ("two", vec!["one", "two"])]);
    assert_eq!(said.device.counted(), [0, 1], "the batches that the profiler is shown begin with these launches");
    for variant in ["one", "two"] {
        assert_eq!(said.outcome(variant), Outcome::Measured);
        assert!(said.measurement(variant).is_none(), "a time was taken under the profiler");
    }
    let place = |wanted: fn(&Event) -> bool| said.events.iter().position(wanted);
    let announcement = place(|event| matches!(event, Event::LaunchesMarked { .. }));
    assert!(announcement < place(|event| matches!(event, Event::CaseChecked { .. })));
    let Some(Event::LaunchesMarked { launches, .. }) = announcement.map(|i| &said.events[i]) else { panic!() };
    assert_eq!((launches[0].grid, launches[0].block), (Dim3::new(4, 1, 1), Dim3::new(256, 1, 1)));
}

#[test]
fn nothing_is_announced_without_a_profiler() {
    let said = run(copies(), &group(vec![case("one", ElementType::I32)]));
    assert_eq!(announced(&said), []);
    assert!(said.device.counted().is_empty());
}
