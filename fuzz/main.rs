#![no_main]
//! Runs the fuzz target named by `RUNNER_FUZZ_TARGET` in libFuzzer. `fuzz/build` builds this program; `fuzz/run.py`
//! starts it.

mod bodies;

use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("RUNNER_FUZZ_TARGET").unwrap_or_default();
    let found = bodies::TARGETS.iter().find(|(known, _)| *known == name);
    let names = || bodies::TARGETS.map(|(name, _)| name).join(", ");
    found.unwrap_or_else(|| panic!("set RUNNER_FUZZ_TARGET to one of {}", names())).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
