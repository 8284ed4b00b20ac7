//! Properties that hold for every matrix.

use std::collections::BTreeSet;

use proptest::prelude::*;
use runner_experiment::Manifest;
use runner_plan::{Plan, PlanOptions, PlannedOutcome};

use super::fixture::{cuda, expand, manifest, names, variant};

/// A matrix that is small enough to check as a whole.
#[derive(Debug, Clone)]
struct Shape {
    /// Number of values of each shared axis; the values are 0, 1, …
    axes: Vec<usize>,
    /// Number of values of each variant's own axis; 0 for no such axis.
    variants: Vec<usize>,
    /// Whether each shared axis is compared.
    compared: Vec<bool>,
    /// Cells whose sum of values is divisible by this are excluded.
    divisor: usize,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let axes = prop::collection::vec(1_usize..5, 0..4);
    (axes, prop::collection::vec(0_usize..4, 1..4), 2_usize..5).prop_flat_map(|(axes, variants, divisor)| {
        let compared = prop::collection::vec(any::<bool>(), axes.len());
        compared.prop_map(move |compared| Shape { axes: axes.clone(), variants: variants.clone(), compared, divisor })
    })
}

fn list(length: usize) -> String {
    (0..length).map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

impl Shape {
    fn manifest(&self, exclude: bool) -> Manifest {
        let compared = (0..self.axes.len()).filter(|&i| self.compared[i]).map(|i| format!("\"a{i}\""));
        let mut text = format!("compare = [{}]\n[axes]\n", compared.collect::<Vec<_>>().join(", "));
        text.extend(self.axes.iter().enumerate().map(|(i, length)| format!("a{i} = [{}]\n", list(*length))));
        if exclude && !self.axes.is_empty() {
            let sum = (0..self.axes.len()).map(|i| format!("a{i}")).collect::<Vec<_>>().join(" + ");
            let when = format!("({sum}) % {} == 0", self.divisor);
            text.extend(["[matrix]\nexclude = [{ when = \"", &when, "\", why = \"w\" }]\n"]);
        }
        text.extend(self.variants.iter().enumerate().map(|(i, length)| match length {
            0 => variant(&format!("v{i}"), ""),
            length => variant(&format!("v{i}_{{u}}"), &format!("axes = {{ u = [{}] }}", list(*length))),
        }));
        manifest(&text)
    }

    fn points(&self) -> usize {
        self.axes.iter().product()
    }

    fn variants(&self) -> usize {
        self.variants.iter().map(|length| (*length).max(1)).sum()
    }
}

fn ordinals(plan: &Plan) -> Vec<u32> {
    plan.cells().iter().map(|cell| cell.ordinal).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cell_of_the_product_comes_exactly_once(shape in shapes()) {
        let plan = expand(&shape.manifest(false), &cuda());
        let cells = shape.points() * shape.variants();
        let distinct: BTreeSet<String> = names(&plan).into_iter().collect();
        prop_assert_eq!(distinct.len(), cells);
        let mut ordinals = ordinals(&plan);
        ordinals.sort_unstable();
        prop_assert_eq!(ordinals, (0..cells as u32).collect::<Vec<_>>());
    }

    #[test]
    fn ordinals_spell_the_odometer(shape in shapes()) {
        let plan = expand(&shape.manifest(false), &cuda());
        for cell in plan.cells() {
            let case = plan.case(*cell);
            let digits = case.key.axes.iter().zip(&shape.axes);
            let point = digits.fold(0, |point, ((_, value), length)| {
                point * length + value.to_string().parse::<usize>().unwrap_or(usize::MAX)
            });
            prop_assert_eq!(cell.ordinal as usize / shape.variants(), point);
        }
    }

    #[test]
    fn groups_share_what_is_not_compared_and_no_two_share_it(shape in shapes()) {
        let plan = expand(&shape.manifest(false), &cuda());
        let mut keys = BTreeSet::new();
        for index in 0..plan.group_count() {
            let key = plan.group_key(index);
            prop_assert!(plan.group(index).iter().all(|cell| plan.case(*cell).group == key));
            prop_assert!(plan.group(index).windows(2).all(|pair| pair[0].ordinal < pair[1].ordinal));
            prop_assert!(keys.insert(key.to_string()));
        }
        let lengths: usize = (0..plan.group_count()).map(|index| plan.group(index).len()).sum();
        prop_assert_eq!(lengths, plan.cells().len());
        let apart = shape.axes.iter().zip(&shape.compared).filter(|(_, compared)| !**compared);
        prop_assert_eq!(plan.group_count(), apart.map(|(length, _)| length).product::<usize>());
    }

    #[test]
    fn what_is_excluded_and_what_is_kept_are_the_whole(shape in shapes()) {
        let (whole, cut) = (expand(&shape.manifest(false), &cuda()), expand(&shape.manifest(true), &cuda()));
        prop_assert_eq!(ordinals(&cut), ordinals(&whole));
        for cell in cut.cells() {
            let values = cut.case(*cell).key.axes.into_iter();
            let sum: usize = values.map(|(_, value)| value.to_string().parse::<usize>().unwrap_or(0)).sum();
            let excluded = !shape.axes.is_empty() && sum.is_multiple_of(shape.divisor);
            prop_assert_eq!(cell.outcome == PlannedOutcome::Excluded(0), excluded);
        }
    }

    #[test]
    fn a_filter_takes_away_and_changes_nothing_else(shape in shapes(), last in 0_usize..4) {
        prop_assume!(!shape.axes.is_empty());
        let manifest = shape.manifest(true);
        let options = PlanOptions { filter: Some(format!("a0 <= {last}")), ..cuda() };
        let (whole, kept) = (expand(&manifest, &cuda()), expand(&manifest, &options));
        let holds = |cell: &&runner_plan::Cell| {
            whole.case(**cell).key.axes[0].1.to_string().parse::<usize>().is_ok_and(|value| value <= last)
        };
        prop_assert_eq!(kept.cells().to_vec(), whole.cells().iter().filter(holds).copied().collect::<Vec<_>>());
    }

    #[test]
    fn zipped_axes_give_the_diagonal_of_the_product(length in 1_usize..6, other in 1_usize..4) {
        let axes = format!("[axes]\na = [{}]\nb = [{}]\nc = [{}]\n", list(length), list(other), list(length));
        let x = variant("x", "");
        let zipped = expand(&manifest(&format!("{axes}[matrix]\nzip = [[\"c\", \"a\"]]\n{x}")), &cuda());
        let product = expand(&manifest(&format!("{axes}{x}")), &PlanOptions { filter: Some("a == c".into()), ..cuda() });
        prop_assert_eq!(names(&zipped), names(&product));
    }
}
