//! The cells of a plan, their order, and their groups.

use runner_plan::{PlanOptions, PlannedOutcome};
use runner_types::{AxisColumn, BackendKind, Value};

use super::fixture::{cuda, expand, faults, manifest, names, on_device, variant};

#[test]
fn the_last_axis_turns_fastest_and_variants_faster_still() {
    let text = format!("[axes]\na = [1, 2]\nb = [3, 4]\n{}{}", variant("x", ""), variant("y", ""));
    let plan = expand(&manifest(&text), &cuda());
    let expected = ["x[a=1, b=3]", "y[a=1, b=3]", "x[a=1, b=4]", "y[a=1, b=4]", "x[a=2, b=3]", "y[a=2, b=3]"];
    assert_eq!(names(&plan)[..6], expected);
    assert_eq!(plan.cells().len(), 8);
    assert_eq!(plan.group_count(), 4);
}

#[test]
fn a_manifest_without_axes_has_one_group_of_its_variants() {
    let plan = expand(&manifest(&format!("{}{}", variant("x", ""), variant("y", ""))), &cuda());
    assert_eq!(names(&plan), ["x", "y"]);
    assert_eq!((plan.group_count(), plan.group_key(0).to_string()), (1, String::new()));
}

#[test]
fn axes_of_a_variant_make_variants_that_meet_in_one_group() {
    let axes = "axes = { u = [2, 4], v = [\"a\", \"b\"] }";
    let text = format!("[axes]\nn = [1, 2]\n{}{}", variant("plain", ""), variant("u{u}{v}", axes));
    let plan = expand(&manifest(&text), &cuda());
    let group: Vec<String> = plan.group(1).iter().map(|cell| plan.case(*cell).key.variant).collect();
    assert_eq!(group, ["plain", "u2a", "u2b", "u4a", "u4b"]);
    assert_eq!(plan.group_key(1).to_string(), "n=2");
}

#[test]
fn compared_axes_are_inside_a_group() {
    let text = format!("compare = [\"a\"]\n[axes]\na = [1, 2]\nb = [3, 4]\n{}", variant("x", ""));
    let plan = expand(&manifest(&text), &cuda());
    assert_eq!(names(&plan), ["x[a=1, b=3]", "x[a=2, b=3]", "x[a=1, b=4]", "x[a=2, b=4]"]);
    assert_eq!((plan.group_key(0).to_string(), plan.group_key(1).to_string()), ("b=3".into(), "b=4".into()));
    let ordinals: Vec<u32> = plan.cells().iter().map(|cell| cell.ordinal).collect();
    assert_eq!(ordinals, [0, 2, 1, 3]);
    let column = |name: &str, compared| AxisColumn { name: name.to_owned(), compared };
    assert_eq!(plan.axis_columns(), [column("a", true), column("b", false)]);
}

#[test]
fn zipped_axes_advance_together_at_the_place_of_the_first() {
    let axes = "[axes]\na = [1, 2]\nb = [\"p\", \"q\"]\nc = [5, 6]\n[matrix]\nzip = [[\"a\", \"c\"]]\n";
    let plan = expand(&manifest(&format!("{axes}{}", variant("x", ""))), &cuda());
    let expected = ["x[a=1, b=p, c=5]", "x[a=1, b=q, c=5]", "x[a=2, b=p, c=6]", "x[a=2, b=q, c=6]"];
    assert_eq!(names(&plan), expected);
}

#[test]
fn an_excluded_cell_stays_in_the_plan_with_its_rule() {
    let rules = "[axes]\nn = [1, 2, 3]\ntype = [\"i32\", \"f32\"]\n[matrix]\nexclude = [\n\
        { when = 'type == \"f32\" && n > 2', why = \"rounding\" },\n\
        { when = 'variant == \"y\" && n > 1', why = \"slow\" }]\n";
    let plan = expand(&manifest(&format!("{rules}{}{}", variant("x", ""), variant("y", ""))), &cuda());
    let outcome = |name: &str| plan.cells()[names(&plan).iter().position(|n| n == name).unwrap_or(99)].outcome;
    assert_eq!(plan.cells().len(), 12);
    assert_eq!(outcome("-x[n=3, type=f32]"), PlannedOutcome::Excluded(0));
    assert_eq!(outcome("-y[n=2, type=i32]"), PlannedOutcome::Excluded(1));
    // If two rules hold, the first one is the reason.
    assert_eq!(outcome("-y[n=3, type=f32]"), PlannedOutcome::Excluded(0));
    assert_eq!(outcome("x[n=3, type=i32]"), PlannedOutcome::Kept);
}

#[test]
fn included_points_come_last_are_not_repeated_and_escape_the_rules() {
    let text = "[axes]\nn = [1, 2]\nm = [1, 2]\n[matrix]\n\
        exclude = [{ when = 'n >= 2', why = \"no\" }]\n\
        include = [{ n = 7, m = 1 }, { n = 1, m = 2 }, { n = 7, m = 1 }, { n = 2, m = 9 }]\n";
    let plan = expand(&manifest(&format!("{text}{}", variant("x", ""))), &cuda());
    let expected = ["x[n=1, m=1]", "x[n=1, m=2]", "-x[n=2, m=1]", "-x[n=2, m=2]", "x[n=7, m=1]", "x[n=2, m=9]"];
    assert_eq!(names(&plan), expected);
    assert_eq!(plan.axes()[0].values, [1, 2, 7].map(Value::Int));
}

#[test]
fn another_backend_runs_its_own_axes_and_bindings() {
    let text = "[axes]\nn = [100, 200]\n[matrix]\ninclude = [{ n = 300 }, { n = 5 }]\n[let]\nk = \"n\"\n\
        [on.sim.axes]\nn = [4, 5]\n[on.sim.let]\nk = \"n + 1\"\n";
    let manifest = manifest(&format!("{text}{}", variant("x", "requires = \"k > 5\"")));
    assert_eq!(names(&expand(&manifest, &cuda())), ["x[n=100]", "x[n=200]", "x[n=300]", "-x[n=5]"]);
    // An included point that is not among the backend's values is ignored.
    assert_eq!(names(&expand(&manifest, &PlanOptions::for_backend(BackendKind::Sim))), ["-x[n=4]", "x[n=5]"]);
}

#[test]
fn requires_sees_bindings_in_any_order_and_the_variants_own() {
    let text = "[axes]\nn = [6, 8]\n[let]\na = \"b * 2\"\nb = \"n / 2\"\n";
    let x = variant("x", "requires = \"a == n && b == 4\"");
    let y = variant("y", "requires = [\"n > 0\", \"a == 6\"]\nlet = { b = \"3\" }");
    let plan = expand(&manifest(&format!("{text}{x}{y}")), &cuda());
    let outcomes: Vec<PlannedOutcome> = plan.cells().iter().map(|cell| cell.outcome).collect();
    assert_eq!(outcomes, [PlannedOutcome::Unmet(0), PlannedOutcome::Kept, PlannedOutcome::Kept, PlannedOutcome::Kept]);
}

#[test]
fn what_names_the_device_is_open_until_there_is_one() {
    let text = format!("[axes]\nn = [512, 2048]\n{}", variant("x", "requires = \"n <= max_threads_per_block\""));
    let outcomes = |options: &PlanOptions| {
        expand(&manifest(&text), options).cells().iter().map(|cell| cell.outcome).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&cuda()), [PlannedOutcome::NeedsDevice, PlannedOutcome::NeedsDevice]);
    assert_eq!(outcomes(&on_device()), [PlannedOutcome::Kept, PlannedOutcome::Unmet(0)]);
}

#[test]
fn a_rule_that_fails_is_told_once_with_its_place_its_values_and_how_often() {
    let text = "[axes]\nn = [0, 1, 2]\n[matrix]\nexclude = [\n\
        { when = '8 / n > 4 && 1 / (n - 1) > 0', why = \"w\" }, { when = 'n + 1', why = \"v\" }]\n";
    let manifest = manifest(&format!("{text}{}{}", variant("x", ""), variant("y", "")));
    let found = runner_plan::expand(&manifest, &cuda()).err().map(|faults| faults.items).unwrap_or_default();
    let told: Vec<(&str, &str)> =
        found.iter().map(|item| (item.message.as_str(), item.label.as_deref().unwrap_or(""))).collect();
    let expected = [
        ("division by zero in `8 / n` where n = 0", "at x[n=0] and at another cell"),
        ("division by zero in `1 / (n - 1)` where n = 1", "at x[n=1] and at another cell"),
        ("expected a bool, but `n + 1` is the integer 3 where n = 2", "at x[n=2] and at another cell"),
    ];
    assert_eq!(told, expected);
    let place = found[0].span.clone().map(|span| &manifest.source.text[span]);
    assert_eq!(place, Some("8 / n"));
}

#[test]
fn a_matrix_past_all_reason_is_refused() {
    let axes: Vec<String> = (0..5).map(|i| format!("a{i} = {{ range = [1, 1000, 1] }}\n")).collect();
    let text = format!("[axes]\n{}{}", axes.concat(), variant("x", ""));
    let [(message, _)] = faults(&manifest(&text), &cuda()).try_into().unwrap_or_default();
    assert_eq!(message, "the matrix has 1000000000000000 cells, but at most 1000000 are allowed");
}
