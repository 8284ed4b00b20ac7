//! Which groups may start, given what is compiled so far.

use runner::backend::fake::{compiled, environment};
use runner::model::{CaseJob, CompileFailure, CompileUnit, GroupJob, Outcome};
use runner::plan;
use runner::plan::waiting::{Linked, Waiting, hears_host};

use super::fixture::{device, expand, manifest, on_device, variant};

/// Three groups, for `n` of 0 to 2. Variant `own` has a unit for each of them, `shared` one for all.
fn groups() -> Vec<GroupJob> {
    let own = variant("own", "defines = { N = \"{n}\" }");
    groups_of(&["[axes]\nn = [0, 1, 2]\n", &own, &variant("shared", "")].concat())
}

fn groups_of(text: &str) -> Vec<GroupJob> {
    let manifest = manifest(text);
    let plan = expand(&manifest, &on_device());
    (0..plan.group_count()).map(|index| plan::resolve(&manifest, &plan, index).job).collect()
}

fn unit_of(group: &GroupJob, variant: &str) -> CompileUnit {
    let case = group.cases.iter().find(|case| case.case.key.variant == variant).unwrap();
    case.body.units()[0].clone()
}

fn arrive(waiting: &mut Waiting, unit: &CompileUnit) {
    waiting.arrive(unit, Ok(compiled("key")));
}

/// The groups that may start now.
fn startable(waiting: &mut Waiting) -> Vec<u32> {
    let environment = environment(device());
    std::iter::from_fn(|| waiting.next(&environment)).map(|linked| linked.job.ordinal).collect()
}

#[test]
fn a_group_starts_when_the_last_of_its_units_is_there_and_overtakes_those_that_wait() {
    let groups = groups();
    let units: Vec<CompileUnit> = groups.iter().map(|group| unit_of(group, "own")).collect();
    let shared = unit_of(&groups[0], "shared");
    let mut waiting = Waiting::new(groups, |_| false, hears_host);
    let mut wanted: Vec<&CompileUnit> = waiting.units().iter().collect();
    wanted.sort();
    let mut all: Vec<&CompileUnit> = units.iter().chain([&shared]).collect();
    all.sort();
    assert_eq!(wanted, all, "each unit once");
    assert_eq!(waiting.units()[2..], units[1..], "in the order of the groups that need them");

    arrive(&mut waiting, &units[1]);
    assert!(startable(&mut waiting).is_empty());
    arrive(&mut waiting, &shared);
    assert_eq!(startable(&mut waiting), [1]);
    arrive(&mut waiting, &units[2]);
    arrive(&mut waiting, &units[0]);
    assert_eq!(startable(&mut waiting), [0, 2], "of those that may, the first in the plan is next");
    assert!(waiting.is_empty());
}

#[test]
fn a_unit_that_does_not_compile_is_the_row_of_its_case_and_lets_the_others_start() {
    let group = groups().swap_remove(0);
    let (own, shared) = (unit_of(&group, "own"), unit_of(&group, "shared"));
    let mut waiting = Waiting::new(vec![group], |_| false, hears_host);
    arrive(&mut waiting, &own);
    waiting.arrive(&shared, Err(CompileFailure { summary: "line 1: no".into(), log: String::new() }));
    // A second word on it changes nothing.
    arrive(&mut waiting, &shared);
    let Linked { job, failed } = waiting.next(&environment(device())).unwrap();
    assert_eq!(job.cases.iter().map(|case| case.case.key.variant.as_str()).collect::<Vec<_>>(), ["own"]);
    let outcome = Outcome::CompileError { summary: "line 1: no".into(), log: String::new() };
    assert_eq!(failed.iter().map(|(case, _)| case.key.variant.as_str()).collect::<Vec<_>>(), ["shared"]);
    assert_eq!(failed[0].1, outcome);
}

#[test]
fn a_group_that_hears_the_host_starts_when_nothing_is_left_to_compile() {
    let groups = groups();
    let all: Vec<CompileUnit> = Waiting::new(groups.clone(), |_| false, |_| false).units().to_vec();
    let mut waiting = Waiting::new(groups, |_| false, |group| group.ordinal == 0);
    let (last, others) = all.split_last().unwrap();
    for unit in others {
        arrive(&mut waiting, unit);
    }
    assert_eq!(startable(&mut waiting), [1]);
    arrive(&mut waiting, last);
    assert_eq!(startable(&mut waiting), [0, 2]);
}

#[test]
fn the_host_shows_where_its_clock_or_its_calls_are_in_the_times() {
    let hears = |text: &str| hears_host(&groups_of(text)[0]);
    let buffers =
        "[buffers.a]\ntype = \"f32\"\nlen = 4\nfill = 1\n[buffers.b]\ntype = \"f32\"\nlen = 4\naccess = \"out\"\n";
    let plain = variant("plain", "");
    let cpu = "[[variant]]\nname = \"cpu\"\ncpu = \"sum(a)\"\n";
    let copy = "[[variant]]\nname = \"copy\"\nbuiltin = { memcpy = [[\"a\", \"b\"]] }\n";
    assert!(!hears(&plain));
    assert!(!hears(&[buffers, &plain, copy].concat()));
    assert!(hears(&[buffers, &plain, cpu].concat()));
    assert!(hears(&["[measure]\nregimes = [\"cold\", \"host\"]\n", plain.as_str()].concat()));
    assert!(!hears(&variant("some", "repeat = 64")));
    assert!(hears(&variant("many", "repeat = 65")));
}

#[test]
fn what_an_earlier_run_may_have_done_is_compiled_first_and_taken_away_where_it_holds() {
    let groups = groups();
    let units: Vec<CompileUnit> = groups.iter().map(|group| unit_of(group, "own")).collect();
    let shared = unit_of(&groups[0], "shared");
    let mut waiting = Waiting::new(groups, |group| group.ordinal > 0, |_| false);
    assert_eq!(waiting.units().last(), Some(&units[0]));
    let holds = |case: &CaseJob| case.case.group.to_string() == "n=1";
    arrive(&mut waiting, &units[1]);
    arrive(&mut waiting, &shared);
    assert!(waiting.take_held(&environment(device()), holds).is_none(), "the code of the third is not there yet");
    arrive(&mut waiting, &units[2]);
    let held = waiting.take_held(&environment(device()), holds).unwrap();
    assert_eq!(held.iter().map(|linked| linked.job.ordinal).collect::<Vec<_>>(), [1]);
    assert_eq!(startable(&mut waiting), [2]);
    assert_eq!(waiting.cases().count(), 2);
    assert_eq!(waiting.rest().iter().map(|job| job.ordinal).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_run_that_ends_early_leaves_what_it_could_not_ask_about() {
    let mut waiting = Waiting::new(groups(), |group| group.ordinal == 1, |_| false);
    for unit in waiting.units().to_vec() {
        arrive(&mut waiting, &unit);
    }
    assert_eq!(waiting.take_urgent().iter().map(|job| job.ordinal).collect::<Vec<_>>(), [1]);
    assert_eq!(startable(&mut waiting), [0, 2]);
}
