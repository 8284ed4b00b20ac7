//! When a variant has enough samples.

use super::measuring::{copy, rounds, samples, timed};
use super::rig::{Said, device, group, kernel, right, run};
use runner_types::{Event, GroupJob, Outcome, Sharing, Spread};

/// Alternates between two times, so that no number of samples narrows the interval.
fn restless(nth: u32) -> f64 {
    if nth.is_multiple_of(2) { 1000.0 } else { 1200.0 }
}

fn reached(said: &Said, variant: &str) -> f64 {
    match said.outcome(variant) {
        Outcome::Unstable { reached } => reached,
        other => panic!("{variant} ended as {other:?}"),
    }
}

#[test]
fn a_steady_variant_stops_at_the_least_number_of_samples_and_not_before() {
    for min_samples in [10, 25] {
        let mut job = copy("it");
        job.measure.min_samples = min_samples;
        let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
        assert_eq!(samples(&said, "it"), vec![1000.0; min_samples as usize]);
        assert_eq!(said.outcome("it"), Outcome::Measured);
    }
}

/// A microsecond with a deviation of 50 ns needs more processes than the maximum of five; an exactly known microsecond
/// needs one.
#[test]
fn the_first_of_several_processes_takes_its_share_of_the_samples() {
    for (nanoseconds, processes, samples_taken) in [(50.0, 5, 8), (0.0, 1, 40)] {
        let mut job = copy("it");
        job.measure.min_samples = 40;
        let spread = Some(Spread { nanoseconds, relative: 0.0, processes: 5 });
        let job = GroupJob { sharing: Sharing::First { spread }, ..group(vec![job]) };
        let said = run(device(vec![("it", kernel(right))]), &job);
        assert_eq!(samples(&said, "it").len(), samples_taken);
        let announced = said.events.iter().find_map(|event| match event {
            Event::SamplesShared { processes } => Some(*processes),
            _ => None,
        });
        assert_eq!(announced.unwrap_or(1), processes);
    }
}

#[test]
fn a_variant_stops_when_its_interval_is_narrow_enough() {
    // Three early samples are 10 % low. The 95 % interval extends from the k-th smallest to the k-th largest sample; k
    // is 3 for 12 to 14 samples and 4 for 15 (Conover's table). With 13 samples the bound is 0.684 of the way from the
    // third to the fourth, at 968; with 14 it is 0.949 of the way, at 995, and the half-width is a quarter of a
    // percent.
    let mut job = copy("it");
    job.measure.min_samples = 6;
    let early = |nth| if (3..6).contains(&nth) { 900.0 } else { 1000.0 };
    let said = run(device(vec![("it", timed(early))]), &group(vec![job]));
    assert_eq!(samples(&said, "it").len(), 14);
    assert_eq!(said.outcome("it"), Outcome::Measured);
}

#[test]
fn five_equal_samples_are_too_few_for_an_interval() {
    let mut job = copy("it");
    job.measure.min_samples = 3;
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job.clone()]));
    // Six is the fewest whose range covers the median with 95 %.
    assert_eq!(samples(&said, "it").len(), 6);
    job.measure.max_samples = 5;
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(samples(&said, "it").len(), 5);
    assert_eq!(reached(&said, "it"), 0.0);
}

#[test]
fn one_sample_says_nothing_about_its_precision() {
    let mut job = copy("it");
    job.measure.max_samples = 1;
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(samples(&said, "it"), [1000.0]);
    assert_eq!(reached(&said, "it"), 1.0);
}

#[test]
fn the_largest_number_of_samples_ends_an_unstable_variant() {
    let said = run(device(vec![("it", timed(restless))]), &group(vec![copy("it")]));
    assert_eq!(samples(&said, "it").len(), 40);
    // Twenty samples of 1000 and twenty of 1200: the median is 1100, and the interval contains both.
    assert!((reached(&said, "it") - 100.0 / 1100.0).abs() < 1e-12);
}

#[test]
fn the_budget_ends_an_unstable_variant() {
    let slow = |nth| 1e5 * restless(nth + 1);
    let mut job = copy("it");
    job.measure.budget = 1.0;
    let said = run(device(vec![("it", timed(slow))]), &group(vec![job]));
    // 0.1 s and 0.12 s alternate: the tenth sample is the first past one second.
    assert_eq!(samples(&said, "it").len(), 10);
    assert!((reached(&said, "it") - 0.01 / 0.11).abs() < 1e-12);
}

#[test]
fn a_budget_of_two_samples_leaves_their_range() {
    let slower = |nth| if nth == 3 { 6e8 } else { 9e8 };
    let mut job = copy("it");
    job.measure.budget = 1.0;
    let said = run(device(vec![("it", timed(slower))]), &group(vec![job]));
    assert_eq!(samples(&said, "it"), [6e8, 9e8]);
    assert!((reached(&said, "it") - 1.5 / 7.5).abs() < 1e-12);
}

#[test]
fn the_baseline_goes_on_until_the_last_of_the_others_has_stopped() {
    for baseline in 0..3 {
        let names = ["quick", "restless", "steady"];
        let kernels = vec![("quick", kernel(right)), ("restless", timed(restless)), ("steady", kernel(right))];
        let job = GroupJob { baseline: Some(baseline), ..group(names.map(copy).to_vec()) };
        let said = run(device(kernels), &job);
        assert_eq!(rounds(&said, "restless"), (0..40).collect::<Vec<_>>(), "baseline {baseline}");
        for (place, name) in names.into_iter().enumerate().filter(|(_, name)| *name != "restless") {
            let taken = rounds(&said, name);
            if place == baseline {
                // One more if it was the first of the last round.
                assert!((40..=41).contains(&taken.len()), "{name}: {taken:?}");
                assert_eq!(taken, (0..taken.len() as u32).collect::<Vec<_>>());
            } else {
                // With a restless baseline the ratio stays wide, so a variant takes up to four times its ten samples.
                let last = if baseline == 1 { 40 } else { 10 };
                assert_eq!(taken, (0..last).collect::<Vec<_>>(), "{name} beside baseline {baseline}");
            }
            assert_eq!(said.outcome(name), Outcome::Measured);
        }
    }
}

/// The baseline and its A/A control take 1000 in one round and 1060 in the next. The steady variant's own median is
/// precise from the tenth sample on. The log ratios are half of ln 1.06, 2.9 %, from their mean, and trimming keeps 0.6
/// n of n samples. So the half-width is t · 2.9 % · √n / √(0.6 n (0.6 n − 1)): 4.3 % for 10 samples and 1.6 % for 40.
#[test]
fn a_variant_goes_on_for_its_ratio_no_longer_than_four_times_its_own_samples() {
    let alternating = |nth: u32| if (nth / 2).is_multiple_of(2) { 1000.0 } else { 1060.0 };
    let kernels = || vec![("base", timed(alternating)), ("steady", kernel(right))];
    for (precision, samples_of_steady) in [(0.01, 40), (0.1, 10)] {
        let jobs = ["base", "steady"].map(|name| {
            let mut job = copy(name);
            (job.measure.precision, job.measure.max_samples) = (precision, 80);
            job
        });
        let said = run(device(kernels()), &group(jobs.to_vec()));
        assert_eq!(samples(&said, "steady").len(), samples_of_steady, "to {precision}");
        assert_eq!(said.outcome("steady"), Outcome::Measured);
    }
}

#[test]
fn without_a_baseline_each_variant_stops_for_itself() {
    let kernels = vec![("quick", kernel(right)), ("restless", timed(restless))];
    let job = GroupJob { baseline: None, ..group(vec![copy("quick"), copy("restless")]) };
    let said = run(device(kernels), &job);
    assert_eq!((samples(&said, "quick").len(), samples(&said, "restless").len()), (10, 40));
}
