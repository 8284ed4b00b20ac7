//! Properties that hold for all comparisons.

use proptest::prelude::*;

use super::fixture::{compared, records, timed};
use crate::analyse::compare::{Kind, Options};
use runner_types::{Records, Spread};

/// Times of base and new, each in nanoseconds with its half-width.
type Times = [(f64, f64); 2];

fn cases() -> impl Strategy<Value = Vec<Times>> {
    prop::collection::vec((1e3..1e7, 0.8..1.25, 1e-4..0.02, 1e-4..0.02), 1..20)
        .prop_map(|cases| cases.into_iter().map(|(base, ratio, a, b)| [(base, a), (base * ratio, b)]).collect())
}

fn reports(cases: &[Times], scale: f64) -> [Records; 2] {
    let case = |(n, (nanoseconds, half)): (usize, (f64, f64))| timed(n as i64, nanoseconds * scale, half);
    [0, 1].map(|side| records(cases.iter().map(|case| case[side]).enumerate().map(case).collect()))
}

fn kinds(base: &Records, new: &Records, options: &Options) -> Vec<Kind> {
    compared(base, new, options).changes().map(|change| change.kind).collect()
}

proptest! {
    #[test]
    fn base_and_new_exchanged_turn_faster_into_slower(cases in cases()) {
        let [base, new] = reports(&cases, 1.0);
        let there = kinds(&base, &new, &Options::default());
        let back = kinds(&new, &base, &Options::default());
        for (there, back) in there.into_iter().zip(back) {
            let expected = match there {
                Kind::LessWork => Kind::MoreWork,
                Kind::MoreWork => Kind::LessWork,
                Kind::Faster => Kind::Slower,
                Kind::Slower => Kind::Faster,
                other => other,
            };
            prop_assert_eq!(back, expected);
        }
    }

    #[test]
    fn a_report_compared_with_itself_never_changed(cases in cases()) {
        let [base, _] = reports(&cases, 1.0);
        for kind in kinds(&base, &base, &Options::default()) {
            prop_assert!(matches!(kind, Kind::Same | Kind::Ambiguous), "{:?}", kind);
        }
    }

    /// These reports have no variation between processes: part of it would be in nanoseconds, which do not scale.
    #[test]
    fn slower_devices_change_nothing(cases in cases(), scale in 0.1..10.0) {
        let options = Options { threshold: Some(0.02), ..Options::default() };
        let scaled = |scale: f64| {
            let [mut base, mut new] = reports(&cases, scale);
            let exact = Some(Spread { nanoseconds: 0.0, relative: 0.0, processes: 5 });
            base.environment.machine.spread = exact;
            new.environment.machine.spread = exact;
            kinds(&base, &new, &options)
        };
        prop_assert_eq!(scaled(1.0), scaled(scale));
    }
}
