//! What the simulator detects, and what it does not, in realistic kernels.

use std::path::Path;
use std::process::Command;

/// Runs a command in the kernels' folder. Returns its exit code and output.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/findings");
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let output = command.current_dir(folder).args(["--color", "never"]).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

const SHAPE: [&str; 8] = ["--n", "64", "--block", "64", "--grid", "1", "--backend", "sim"];

#[test]
fn the_padding_of_a_structure_is_no_finding() {
    let (code, text) = run(&[&["try", "points.cu"][..], &SHAPE].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("trap") && !text.contains("never written"), "{text}");
}

#[test]
fn a_tile_of_two_warps_does_not_touch_the_kernel_s_shared_memory() {
    for kernel in ["tile_sum", "tile_sum_and_copy"] {
        let kernels = ["try", "tile_sum.cu", "-k", "serial_sum", "-k", kernel, "--tolerance", "1e-4", "--no-sanitize"];
        let (code, text) = run(&[&kernels[..], &SHAPE].concat());
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(&format!("`{kernel}` matches `serial_sum`")), "{text}");
    }
}

#[test]
fn a_barrier_of_the_grid_needs_a_cooperative_launch_and_a_shuffle_the_lanes_that_it_names() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("report");
    let (code, text) = run(&["run", "launches.toml", "--backend", "sim", "--out", folder.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    let report = std::fs::read_to_string(folder.join("report.md")).unwrap();
    let trap = "a grid barrier in a launch that is not cooperative (set `cooperative = true`) in kernel `grid_sync` at \
                launches.cu:5";
    assert!(report.contains(trap), "{report}");
    assert!(
        report.contains("lanes 0x55555555 exit without executing the warp operation at launches.cu:15"),
        "{report}"
    );
    assert!(report.contains("2 of 3 cases passed"), "{report}");
}
