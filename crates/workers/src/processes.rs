//! Joins the results of several processes that measured the same case.

use runner_types::{Event, Outcome};

/// Adds one more process's results to those of earlier ones. Counts, energy and result errors are kept from the first
/// process. `first_round` is the first unused round number of the group. `precision` is the precision of the case, then
/// the one of each process after the first.
pub(super) fn join(earlier: &mut Vec<Event>, later: Vec<Event>, first_round: u32, precision: [f64; 2]) {
    if earlier.is_empty() {
        *earlier = later;
        return;
    }
    let mut processes = 1;
    for event in later {
        match event {
            Event::CaseMeasured { measurement, .. } => {
                let same = earlier.iter_mut().find_map(|event| match event {
                    Event::CaseMeasured { measurement: same, .. } => {
                        (same.regime == measurement.regime && same.unit == measurement.unit).then_some(same)
                    }
                    _ => None,
                });
                if let Some(same) = same {
                    same.extend(measurement, first_round);
                    processes = processes.max(same.processes());
                }
            }
            note @ Event::CaseNote { .. } if !earlier.iter().any(|event| is_like(event, &note)) => {
                let place = earlier.iter().position(|event| matches!(event, Event::CaseSettled { .. }));
                earlier.insert(place.unwrap_or(earlier.len()), note);
            }
            Event::CaseSettled { outcome: now, .. } => {
                for event in earlier.iter_mut() {
                    if let Event::CaseSettled { outcome, .. } = event {
                        *outcome = join_outcomes(outcome, &now, processes, precision);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether both are notes of the same kind. Numbers in notes on samples differ between processes.
fn is_like(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (Event::CaseNote { note: one, .. }, Event::CaseNote { note: other, .. }) => {
            std::mem::discriminant(one) == std::mem::discriminant(other)
        }
        _ => false,
    }
}

/// Outcome of a case that `processes` processes have measured. `before` is the joined outcome of all but the last. The
/// half-width for the mean of their medians assumes independent errors.
fn join_outcomes(before: &Outcome, last: &Outcome, processes: u32, [whole, each]: [f64; 2]) -> Outcome {
    let reached = |outcome: &Outcome, precision: f64| match outcome {
        Outcome::Unstable { reached } => *reached,
        _ => precision,
    };
    let count = f64::from(processes);
    let joined = ((count - 1.0) * reached(before, whole)).hypot(reached(last, each)) / count;
    if joined <= whole { Outcome::Measured } else { Outcome::Unstable { reached: joined } }
}

#[cfg(test)]
mod tests {
    use super::{join, join_outcomes};
    use runner_types::{Case, CaseKey, Event, GroupKey, Measurement, Note, Outcome, Regime, Round, Unit, WorkAmount};

    fn measurement(regime: Regime, samples: &[f64]) -> Measurement {
        let rounds = (0..).zip(samples).map(|(round, whole)| Round { round, whole: *whole, ..Round::default() });
        Measurement::from_rounds(regime, Unit::DeviceNanoseconds, rounds.collect())
    }

    fn case() -> Case {
        let key = CaseKey { experiment: "e".into(), variant: "v".into(), axes: Vec::new() };
        Case { ordinal: 0, key, group: GroupKey(Vec::new()) }
    }

    fn results(samples: &[f64], note: &str, outcome: Outcome) -> Vec<Event> {
        vec![
            Event::CaseMeasured { case: case(), measurement: measurement(Regime::Cold, samples) },
            Event::CaseNote { case: case(), note: Note::Text(note.into()) },
            Event::CaseSettled { case: case(), fingerprint: None, outcome, work: WorkAmount::default() },
        ]
    }

    #[test]
    fn samples_of_another_process_are_in_later_rounds() {
        let mut joined = results(&[1.0, 2.0], "hot", Outcome::Measured);
        join(&mut joined, results(&[3.0, 4.0], "hotter", Outcome::Measured), 7, [0.01, 0.02]);
        let [Event::CaseMeasured { measurement, .. }, Event::CaseNote { note, .. }, Event::CaseSettled { .. }] =
            &joined[..]
        else {
            panic!("{joined:?}")
        };
        let found: Vec<(u32, u32, f64)> =
            measurement.rounds.iter().map(|round| (round.process, round.round, round.whole)).collect();
        assert_eq!(found, [(0, 0, 1.0), (0, 1, 2.0), (1, 7, 3.0), (1, 8, 4.0)]);
        assert_eq!(*note, Note::Text("hot".into()));
    }

    /// If two independent medians have half-widths of 3 % and 4 %, their mean has 5 % / 2. With a third of 1 % (the
    /// precision of each process), the mean has √(5² + 1²) % / 3.
    #[test]
    fn the_half_width_of_several_processes_is_that_of_the_mean_of_their_medians() {
        let unstable = |reached| Outcome::Unstable { reached };
        let reached = |outcome| match outcome {
            Outcome::Unstable { reached } => reached,
            other => panic!("{other:?}"),
        };
        let precision = [0.005, 0.01];
        let two = join_outcomes(&unstable(0.03), &unstable(0.04), 2, precision);
        assert!((reached(two.clone()) - 0.025).abs() < 1e-12);
        let three = join_outcomes(&two, &Outcome::Measured, 3, precision);
        assert!((reached(three) - 0.05_f64.hypot(0.01) / 3.0).abs() < 1e-12);
        assert_eq!(join_outcomes(&unstable(0.0055), &Outcome::Measured, 3, precision), Outcome::Measured);
    }
}
