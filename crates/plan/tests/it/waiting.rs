//! Which groups may start, given what has been compiled so far.

use fake_backend::{compiled, environment};
use runner_types::{CaseJob, CompileFailure, CompileUnit, GroupJob, Outcome};
use runner_workers::pending::{Linked, Pending, needs_quiet};

use super::fixture::{device, expand, manifest, on_device, variant};

/// Three groups, for `n` from 0 to 2. Variant `own` has a unit for each group, `shared` has one for all.
fn groups() -> Vec<GroupJob> {
    let own = variant("own", "defines = { N = \"{n}\" }");
    groups_of(&["[axes]\nn = [0, 1, 2]\n", &own, &variant("shared", "")].concat())
}

fn groups_of(text: &str) -> Vec<GroupJob> {
    let manifest = manifest(text);
    let plan = expand(&manifest, &on_device());
    (0..plan.group_count()).map(|index| runner_plan::resolve(&manifest, &plan, index).job).collect()
}

fn unit_of(group: &GroupJob, variant: &str) -> CompileUnit {
    let case = group.cases.iter().find(|case| case.case.key.variant == variant).unwrap();
    case.body.units()[0].clone()
}

fn arrive(pending: &mut Pending, unit: &CompileUnit) {
    pending.arrive(unit, Ok(compiled("key")));
}

/// Groups that may start now.
fn startable(pending: &mut Pending) -> Vec<u32> {
    let environment = environment(device());
    std::iter::from_fn(|| pending.next(&environment)).map(|linked| linked.job.ordinal).collect()
}

#[test]
fn a_group_starts_when_the_last_of_its_units_is_compiled() {
    let groups = groups();
    let units: Vec<CompileUnit> = groups.iter().map(|group| unit_of(group, "own")).collect();
    let shared = unit_of(&groups[0], "shared");
    let mut pending = Pending::new(groups, |_| false, needs_quiet);
    let mut wanted: Vec<&CompileUnit> = pending.units().iter().collect();
    wanted.sort();
    let mut all: Vec<&CompileUnit> = units.iter().chain([&shared]).collect();
    all.sort();
    assert_eq!(wanted, all, "each unit once");
    assert_eq!(pending.units()[2..], units[1..], "in the order of the groups that need them");

    arrive(&mut pending, &units[1]);
    assert!(startable(&mut pending).is_empty());
    arrive(&mut pending, &shared);
    assert_eq!(startable(&mut pending), [1]);
    arrive(&mut pending, &units[2]);
    arrive(&mut pending, &units[0]);
    assert_eq!(startable(&mut pending), [0, 2], "of those that may, the first in the plan is next");
    assert!(pending.is_empty());
}

#[test]
fn a_unit_that_does_not_compile_settles_its_case_and_lets_the_others_start() {
    let group = groups().swap_remove(0);
    let (own, shared) = (unit_of(&group, "own"), unit_of(&group, "shared"));
    let mut pending = Pending::new(vec![group], |_| false, needs_quiet);
    arrive(&mut pending, &own);
    pending.arrive(&shared, Err(CompileFailure { summary: "line 1: no".into(), log: String::new() }));
    // A second result is ignored.
    arrive(&mut pending, &shared);
    let Linked { job, failed } = pending.next(&environment(device())).unwrap();
    assert_eq!(job.cases.iter().map(|case| case.case.key.variant.as_str()).collect::<Vec<_>>(), ["own"]);
    let outcome = Outcome::CompileError { summary: "line 1: no".into(), log: String::new() };
    assert_eq!(failed.iter().map(|(case, _)| case.key.variant.as_str()).collect::<Vec<_>>(), ["shared"]);
    assert_eq!(failed[0].1, outcome);
}

#[test]
fn a_group_that_needs_quiet_starts_when_everything_is_compiled() {
    let groups = groups();
    let all: Vec<CompileUnit> = Pending::new(groups.clone(), |_| false, |_| false).units().to_vec();
    let mut pending = Pending::new(groups, |_| false, |group| group.ordinal == 0);
    let (last, others) = all.split_last().unwrap();
    for unit in others {
        arrive(&mut pending, unit);
    }
    assert_eq!(startable(&mut pending), [1]);
    arrive(&mut pending, last);
    assert_eq!(startable(&mut pending), [0, 2]);
}

#[test]
fn times_depend_on_the_host_if_its_clock_or_its_calls_are_in_them() {
    let depends = |text: &str| groups_of(text)[0].needs_host();
    let buffers =
        "[buffers.a]\ntype = \"f32\"\nlen = 4\nfill = 1\n[buffers.b]\ntype = \"f32\"\nlen = 4\naccess = \"out\"\n";
    let plain = variant("plain", "");
    let cpu = "[[variant]]\nname = \"cpu\"\ncpu = \"sum(a)\"\n";
    let copy = "[[variant]]\nname = \"copy\"\nbuiltin = { memcpy = [[\"a\", \"b\"]] }\n";
    assert!(!depends(&plain));
    assert!(!depends(&[buffers, &plain, copy].concat()));
    // A host function does not affect the device's times, but compilers would disturb the function's own times.
    let beside = [buffers, &plain, cpu].concat();
    assert!(!depends(&beside) && needs_quiet(&groups_of(&beside)[0]));
    assert!(depends(&["[measure]\nregimes = [\"cold\", \"host\"]\n", plain.as_str()].concat()));
    assert!(!depends(&variant("some", "repeat = 64")));
    assert!(depends(&variant("many", "repeat = 65")));
}

#[test]
fn what_an_earlier_run_may_have_done_is_compiled_first_and_skipped_if_it_holds() {
    let groups = groups();
    let units: Vec<CompileUnit> = groups.iter().map(|group| unit_of(group, "own")).collect();
    let shared = unit_of(&groups[0], "shared");
    let mut pending = Pending::new(groups, |group| group.ordinal > 0, |_| false);
    assert_eq!(pending.units().last(), Some(&units[0]));
    let holds = |case: &CaseJob| case.case.group.to_string() == "n=1";
    arrive(&mut pending, &units[1]);
    arrive(&mut pending, &shared);
    assert!(pending.take_held(&environment(device()), holds).is_none(), "the third has no code yet");
    arrive(&mut pending, &units[2]);
    let held = pending.take_held(&environment(device()), holds).unwrap();
    assert_eq!(held.iter().map(|linked| linked.job.ordinal).collect::<Vec<_>>(), [1]);
    assert_eq!(startable(&mut pending), [2]);
    assert_eq!(pending.cases().count(), 2);
    assert_eq!(pending.remaining().iter().map(|job| job.ordinal).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_run_that_ends_early_keeps_what_an_earlier_run_may_have_done() {
    let mut pending = Pending::new(groups(), |group| group.ordinal == 1, |_| false);
    for unit in pending.units().to_vec() {
        arrive(&mut pending, &unit);
    }
    assert_eq!(pending.take_urgent().iter().map(|job| job.ordinal).collect::<Vec<_>>(), [1]);
    assert_eq!(startable(&mut pending), [0, 2]);
}
