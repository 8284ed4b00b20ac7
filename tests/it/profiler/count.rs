//! Results of cases whose launches a profiler counts, fails to count, or must not count.

use runner_profile::{Counted, ProfilerError};
use runner_types::{BodyCounters, Event, Outcome};
use runner_workers::RunEnd;

use super::rig::{Pass, World, group};

impl Pass {
    fn find(&self, variant: &str) -> &Counted {
        let counted = self.counted.as_ref().unwrap();
        &counted.iter().find(|(case, _)| case.key.variant == variant).unwrap().1
    }

    fn counters(&self, variant: &str) -> &BodyCounters {
        match self.find(variant) {
            Counted::Counters(counters) => counters,
            Counted::Missing(why) => panic!("{variant} has no counters: {why}"),
        }
    }

    fn outcomes(&self) -> Vec<(&str, &str)> {
        let settled = |event: &'_ Event| match event {
            Event::CaseSettled { case, outcome, .. } => Some((case.key.variant.clone(), outcome.name())),
            _ => None,
        };
        let all: Vec<_> = self.events.iter().filter_map(settled).collect();
        all.into_iter().map(|(variant, name)| (String::leak(variant) as &str, name)).collect()
    }
}

#[test]
fn each_case_has_the_counters_of_its_launches() {
    let world = World::new();
    let pass =
        world.count(&mut world.session(&["lts__t_sectors_op_read.sum"]), vec![group(0, &["a", "b"]), group(1, &["c"])]);
    assert_eq!(pass.end, RunEnd::Complete);
    for (variant, scale) in [("a", 1.0), ("b", 10.0), ("c", 100.0)] {
        let counters = pass.counters(variant);
        assert_eq!(counters.whole.get("inst_executed"), Some(scale));
        assert_eq!(counters.whole.get("dram_read_throughput"), Some(5.0 * scale));
        assert_eq!(counters.whole.get("lts__t_sectors_op_read.sum"), Some(7.0 * scale), "by the profiler's name");
        assert_eq!(counters.whole.get("lts__t_sectors_op_read.avg"), None, "it was not asked for");
        assert_eq!(counters.whole.get("smsp__inst_executed.sum"), None, "the vocabulary has a name for it");
        assert!(counters.each.is_empty());
    }
    assert!(!pass.events.iter().any(|event| matches!(event, Event::LaunchesMarked { .. })), "an announcement went on");
}

#[test]
fn a_sequence_has_sums_and_ratios_of_sums_and_every_launch() {
    let world = World::new();
    let pass = world.count(&mut world.session(&["lts__t_sectors_op_read"]), vec![group(0, &["aab"])]);
    let BodyCounters { whole, each, .. } = pass.counters("aab");
    assert_eq!(whole.get("inst_executed"), Some(12.0));
    // 3 + 3 + 30 warps.
    assert_eq!(whole.get("inst_per_warp"), Some(12.0 / 36.0));
    // 5, 5 and 50 bytes per second, for 4, 4 and 40 ns.
    assert_eq!(whole.get("dram_read_throughput"), Some((5.0 * 4.0 + 5.0 * 4.0 + 50.0 * 40.0) / 48.0));
    assert_eq!(whole.get("lts__t_sectors_op_read.sum"), Some(84.0));
    assert_eq!(whole.get("lts__t_sectors_op_read.avg"), None, "an average of several launches has no meaning");
    assert_eq!(each.iter().map(|c| c.get("inst_executed").unwrap()).collect::<Vec<_>>(), [1.0, 1.0, 10.0]);
    assert_eq!(each[2].get("lts__t_sectors_op_read.avg"), Some(80.0));
}

#[test]
fn a_launch_that_was_not_counted_costs_its_case_alone() {
    let world = World::new();
    let pass = world.count(&mut world.session(&[]), vec![group(0, &["a", "bC", "d"])]);
    assert_eq!(pass.counters("a").whole.get("inst_executed"), Some(1.0));
    assert_eq!(pass.counters("d").whole.get("inst_executed"), Some(1000.0));
    let Counted::Missing(why) = pass.find("bC") else { panic!("half of a body was counted") };
    assert!(why.contains("_Z1cPi"), "{why}");
}

#[test]
fn a_worker_that_dies_or_hangs_inside_the_profiler_costs_its_case_alone() {
    let world = World::new();
    let pass =
        world.count(&mut world.session(&[]), vec![group(0, &["a", "!", "b"]), group(1, &["c", "?"]), group(2, &["d"])]);
    assert_eq!(pass.end, RunEnd::Complete);
    let settled = pass.outcomes();
    for (variant, outcome) in [
        ("a", "measured"),
        ("!", "crashed"),
        ("b", "measured"),
        ("c", "measured"),
        ("?", "timed_out"),
        ("d", "measured"),
    ] {
        assert!(settled.contains(&(variant, outcome)), "{settled:?}");
    }
    for (variant, count) in [("a", 1.0), ("b", 10.0), ("c", 100.0), ("d", 1000.0)] {
        assert_eq!(pass.counters(variant).whole.get("inst_executed"), Some(count), "{variant}");
    }
    assert_eq!(pass.counted.as_ref().map(Vec::len), Ok(4), "what failed has no counters, and needs no word about them");
    assert!(pass.events.iter().any(|e| matches!(e, Event::CaseSettled { outcome: Outcome::TimedOut { .. }, .. })));
}

#[test]
fn a_case_whose_result_is_wrong_has_no_counters() {
    let world = World::new();
    let pass = world.count(&mut world.session(&[]), vec![group(0, &["a", "b~", "c"])]);
    assert!(pass.outcomes().contains(&("b~", "wrong")));
    assert_eq!(pass.counted.as_ref().map(Vec::len), Ok(2));
    assert_eq!(pass.counters("c").whole.get("inst_executed"), Some(100.0), "its row is still its own");
}

#[test]
fn without_permission_it_says_who_can_give_it() {
    let world = World::new();
    world.refuse(
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on \
         the target device 0. For instructions on enabling permissions and to get more information see \
         https://developer.nvidia.com/ERR_NVGPUCTRPERM\n",
    );
    let pass = world.count(&mut world.session(&[]), vec![group(0, &["a"])]);
    assert_eq!(pass.counted, Err(ProfilerError::NotPermitted));
    assert!(ProfilerError::NotPermitted.to_string().contains("NVreg_RestrictProfilingToAdminUsers=0"));
    world.refuse("==ERROR== Unknown Error on device 0.\n");
    let pass = world.count(&mut world.session(&[]), vec![group(0, &["a"])]);
    assert_eq!(pass.counted, Err(ProfilerError::Nothing("Unknown Error on device 0.".to_owned())));
}

#[test]
fn the_profiler_is_asked_for_everything_once_and_told_to_keep_its_hands_off_the_clocks() {
    let world = World::new();
    let mut session = world.session(&["dram__bytes_read.sum", "lts__t_sectors_op_read.sum"]);
    world.count(&mut session, vec![group(0, &["a"])]);
    let words = world.arguments();
    let argument = |option: &str| words[words.iter().position(|word| word == option).unwrap() + 1].clone();
    let metrics: Vec<String> = argument("--metrics").split(',').map(str::to_owned).collect();
    assert_eq!(metrics.iter().filter(|name| *name == "dram__bytes_read.sum").count(), 1);
    assert!(metrics.contains(&"lts__t_sectors_op_read.sum".to_owned()));
    assert_eq!((argument("--clock-control").as_str(), argument("--cache-control").as_str()), ("none", "all"));
    assert_eq!(session.method().split(':').next(), Some("Nsight Compute 2025.3.1.0"));
}

#[test]
fn a_metric_that_the_profiler_does_not_know_is_left_out_and_told() {
    let world = World::new();
    world.has_no(&["dram__bytes_read.sum.per_second", "some__thing.avg"]);
    let mut session = world.session(&["some__thing.avg", "lts__t_sectors_op_read.sum"]);
    let pass = world.count(&mut session, vec![group(0, &["a"])]);
    assert_eq!(session.unknown(), ["dram__bytes_read.sum.per_second", "some__thing.avg"]);
    assert_eq!(pass.counters("a").whole.get("inst_executed"), Some(1.0));
    let metrics = world.arguments().into_iter().find(|word| word.contains("smsp__inst_executed.sum")).unwrap();
    assert!(metrics.split(',').any(|name| name == "dram__bytes_read.sum"), "a longer name does not take a shorter one");
}

#[test]
fn a_profiler_that_does_not_start_is_quoted() {
    let world = World::new();
    world.has_no(&["--csv"]);
    let error = world.open(&mut world.session(&[])).err();
    assert_eq!(error, Some(ProfilerError::Nothing("Failed to find metric --csv".to_owned())));
}

#[test]
fn a_machine_without_the_profiler_is_told_where_it_was_sought() {
    let empty = tempfile::tempdir().unwrap();
    let programs = runner_process::programs::Programs::in_dirs([empty.path()]);
    let error = runner_profile::ProfilerSession::start(&programs, &[], runner_profile::Detail::Launches).unwrap_err();
    assert_eq!(error, ProfilerError::NotFound);
    assert!(error.to_string().contains("CUDA_HOME"), "{error}");
}
