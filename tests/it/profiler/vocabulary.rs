//! Counter names: what the simulator counts, what the profiler is asked for, and what the manual says.

use std::collections::BTreeSet;
use std::path::Path;

use runner_types::{CounterInfo, Counters, VOCABULARY};

/// Counter names of a launch in which everything happened once.
fn simulated() -> Vec<&'static str> {
    let traffic = simt::Traffic { requests: 1, sectors: 1, lines: 1, bytes: 4 };
    let counters = simt::Counters {
        warps: 1,
        warp_instructions: 1,
        thread_instructions: 1,
        branches: 1,
        device_launches: 1,
        global_load: traffic,
        global_store: traffic,
        ..simt::Counters::default()
    };
    counters.metrics().into_keys().collect()
}

#[test]
fn the_simulator_counts_what_the_vocabulary_says_it_does() {
    let counted = Counters(simulated().into_iter().map(|name| (name.into(), 1.0)).collect()).of_simulator();
    let counted: BTreeSet<&str> = counted.0.keys().map(AsRef::as_ref).collect();
    // Ratios of counts that are derived from the machine code are derived too.
    let follows = |name: &str| ["inst_per_warp", "gld_efficiency", "gst_efficiency"].contains(&name);
    let own = VOCABULARY.iter().filter(|info| info.simulated && !info.is_derived() && !follows(info.name));
    assert_eq!(counted, own.map(|info| info.name).collect());
}

/// Rows of the manual's table: the name, and the rest.
fn documented() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` |")?;
        CounterInfo::named(name).map(|info| (info.name.to_owned(), rest.to_owned()))
    };
    page.lines().filter_map(line).collect()
}

#[test]
fn the_manual_has_every_counter_once_with_the_profilers_names() {
    let lines = documented();
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let all: Vec<&str> = VOCABULARY.iter().map(|info| info.name).collect();
    assert_eq!(names, all);
    for ((name, rest), info) in lines.iter().zip(VOCABULARY) {
        let missing = info.nsight.iter().find(|metric| !rest.contains(&format!("`{metric}`")));
        assert_eq!(missing, None, "the line of {name}");
    }
}
