//! Machine instruction counts derived on the simulator, compared with hardware counts.

use std::fs;
use std::path::Path;
use std::process::Command;

use runner_report::case_name;
use runner_results::journal::read_records;

/// Experiments whose kernels launch kernels. For these, the hardware also counts the device runtime.
const LAUNCHES: [&str; 3] = ["dynamic_parallelism", "launch_limits", "nested_hello"];

/// Machine instructions of a case as the source view derives them: each one's function, and how many warps executed it.
fn machine_instructions(manifest: &str, case: &str) -> Option<Vec<(String, Option<u64>)>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.args(["show", manifest, case, "--source", "--json", "--backend", "sim"]).output().unwrap();
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let one = |one: &serde_json::Value| Some((one["function"].as_str()?.to_owned(), one["executed"].as_u64()));
    view["machine"].as_array()?.iter().map(one).collect()
}

/// Total of warp instructions that the source view derives for a case.
fn derived(manifest: &str, case: &str) -> Option<u64> {
    Some(machine_instructions(manifest, case)?.into_iter().filter_map(|(_, executed)| executed).sum())
}

/// When the host launches `interleaved` with the same grid, the hardware counts 18,366 instructions.
#[test]
fn a_kernel_that_a_kernel_launches_has_the_counts_that_the_hardware_has_where_the_host_launches_it() {
    let counted = machine_instructions("experiments/dynamic_parallelism.toml", "launched[n = 5003]").unwrap();
    let sum = |kernel: &str| -> Option<u64> {
        counted.iter().filter(|(function, _)| function == kernel).map(|(_, executed)| *executed).sum()
    };
    assert_eq!(sum("_Z18reduce_interleavedIiEvPT_S1_j"), Some(18_366));
    // One warp executes each of the 54 instructions before the padding once.
    assert_eq!(sum("_Z8launchedPiS_jj"), Some(54));
}

#[test]
#[ignore = "runs every case with committed counters, which takes ten minutes"]
#[expect(clippy::print_stderr, reason = "the list of cases that are further apart is what it is run for")]
fn machine_instructions_are_executed_as_often_as_the_hardware_counted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<_> = fs::read_dir(root.join("reports")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (mut all, mut near) = (0_u32, 0_u32);
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let path = folder.join("nvidia-h100-80gb-hbm3-counters/records.jsonl");
        if LAUNCHES.contains(&name.as_str()) || !path.exists() {
            continue;
        }
        for record in read_records(&path).unwrap().cases {
            let counted = record.counters.as_ref().and_then(|counters| counters.get("inst_executed"));
            let Some(counted) = counted.filter(|counted| *counted > 0.0) else { continue };
            let case = case_name(&record.case);
            let derived = derived(&format!("experiments/{name}.toml"), &case);
            let deviation = derived.map(|derived| derived as f64 / counted - 1.0);
            let is_near = deviation.is_some_and(|deviation| deviation.abs() <= 0.01);
            (all, near) = (all + 1, near + u32::from(is_near));
            if !is_near {
                eprintln!("{name}: {case}: derived {derived:?}, hardware {counted}, {deviation:+.4?}");
            }
        }
    }
    assert!(all > 700 && 100 * near >= 95 * all, "{near} of {all} cases are within 1 %");
}
