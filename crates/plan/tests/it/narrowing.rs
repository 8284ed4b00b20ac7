//! `--set`, `--filter` and `--variant`.

use runner_experiment::Manifest;
use runner_plan::PlanOptions;

use super::fixture::{cuda, expand, faults, manifest, names, variant};

fn two_by_two() -> Manifest {
    let axes = "axes = { u = [2, 4] }\nlet = { blocks = \"n / u\" }";
    let text = "baseline = \"plain\"\n[axes]\nn = [1, 2]\ntype = [\"i32\", \"f32\"]\nx = [0.5]\nopt = [true, false]\n\
        [matrix]\nzip = [[\"n\", \"type\"]]\ninclude = [{ n = 9, type = \"u8\", x = 0.5, opt = true }]\n";
    manifest(&format!("{text}{}{}", variant("plain", ""), variant("unroll{u}", axes)))
}

fn set(values: &[&str]) -> PlanOptions {
    PlanOptions { set: values.iter().map(|v| (*v).to_owned()).collect(), ..cuda() }
}

fn filter(text: &str) -> PlanOptions {
    PlanOptions { filter: Some(text.to_owned()), ..cuda() }
}

fn variants(names: &[&str]) -> PlanOptions {
    PlanOptions { variants: names.iter().map(|v| (*v).to_owned()).collect(), ..cuda() }
}

fn message(options: &PlanOptions) -> String {
    faults(&two_by_two(), options)
        .into_iter()
        .map(|(message, hint)| format!("{message} [{}]", hint.unwrap_or_default()))
        .collect::<Vec<_>>()
        .join("; ")
}

#[test]
fn a_filter_keeps_ordinals_and_order() {
    let manifest = two_by_two();
    let (whole, kept) = (expand(&manifest, &cuda()), expand(&manifest, &filter("n == 2 && variant != \"unroll4\"")));
    let expected: Vec<_> = whole
        .cells()
        .iter()
        .filter(|c| {
            let key = whole.case(**c).key.to_string();
            key.contains("n=2") && !key.starts_with("unroll4")
        })
        .collect();
    assert_eq!(kept.cells().iter().collect::<Vec<_>>(), expected);
    assert_eq!(kept.cells().len(), 4);
}

#[test]
fn a_filter_on_the_axis_of_a_variant_keeps_only_that_variant() {
    let plan = expand(&two_by_two(), &filter("u > 2 && opt"));
    let expected = [
        "unroll4[n=1, type=i32, x=0.5, opt=true]",
        "unroll4[n=2, type=f32, x=0.5, opt=true]",
        "unroll4[n=9, type=u8, x=0.5, opt=true]",
    ];
    assert_eq!(names(&plan), expected);
}

#[test]
fn set_replaces_an_axis_and_keeps_the_included_points_that_fit() {
    let plan = expand(&two_by_two(), &set(&["n=2**3, 9", "type=u8,f64", "opt=true", "u=8"]));
    let key = |v: &str, n, t| format!("{v}[n={n}, type={t}, x=0.5, opt=true]");
    let points = [(8, "u8"), (9, "f64"), (9, "u8")];
    let expected: Vec<String> = points.iter().flat_map(|&(n, t)| ["plain", "unroll8"].map(|v| key(v, n, t))).collect();
    assert_eq!(names(&plan), expected);
    assert!(names(&expand(&two_by_two(), &set(&["x=1,max(2,3)"]))).iter().all(|name| !name.contains("n=9")));
}

#[test]
fn variants_are_kept_by_name_and_the_baseline_is_not_forced_in() {
    let manifest = two_by_two();
    let plan = expand(&manifest, &variants(&["unroll2"]));
    assert!(names(&plan).iter().all(|name| name.starts_with("unroll2")));
    assert_eq!(plan.cells().len(), 5);
    let group = runner_plan::resolve(&manifest, &plan, 0);
    assert_eq!((group.job.cases.len(), group.job.baseline), (1, None));
}

#[test]
fn mistakes_of_the_command_line_are_named_with_a_way_out() {
    let cases = [
        (set(&["n"]), "--set n: no `=` [write --set axis=value,value]"),
        (set(&["m=1"]), "--set m=1: there is no axis `m` [the axes are n, opt, type, u, x]"),
        (
            set(&["blocks=8"]),
            "--set blocks=8: `blocks` is a let, but --set changes only axes [change `blocks` in the manifest, or make it an axis there]",
        ),
        (set(&["typ=i8"]), "--set typ=i8: there is no axis `typ` [did you mean `type`?]"),
        (set(&["n=1,1"]), "--set n=1,1: `1` is listed twice []"),
        (set(&["n=1,"]), "--set n=1,: a value is missing []"),
        (set(&["n=1.5,2"]), "--set n=1.5,2: `1.5` is of type float, but the axis has values of type integer []"),
        (set(&["type=i31,i8"]), "--set type=i31,i8: `i31` names no element type []"),
        (set(&["n=1/0,2"]), "--set n=1/0,2: division by zero in `1/0` []"),
        (
            set(&["n=5"]),
            "axes `n` and `type` advance together, but have 1 and 2 values [set both: --set n=… --set type=…]",
        ),
        (filter("n >"), "--filter 'n >': the expression ends too early []"),
        (
            filter("m > 1"),
            "--filter 'm > 1': there is no axis `m` [a filter may name axes, bindings of [let] and `variant`]",
        ),
        (filter("n > 99"), "no case matches --filter 'n > 99' []"),
        (
            filter("n"),
            "--filter 'n': expected a bool, but `n` is the integer 1 where n = 1 at plain[n=1, type=i32, x=0.5, opt=true] and at 14 more cells []",
        ),
        (filter("sm_count > 1"), "--filter 'sm_count > 1': `sm_count` has no value without a device []"),
        (variants(&["unrol2"]), "--variant unrol2: there is no such variant [did you mean `unroll2`?]"),
    ];
    for (options, expected) in cases {
        assert!(message(&options).starts_with(expected), "{}\n{expected}", message(&options));
    }
}
