//! Runs the commands of the how-to guides as a reader would type them, on the simulator. Each guide has its own
//! checkout.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Programs and files that some commands need and that not every machine has.
const ELSEWHERE: [&str; 5] = ["cargo ", "srun ", "rsync ", "jq ", "/opt/cuda"];

/// Commands that need a GPU; without one they exit with 2 or 3.
const NEEDS_GPU: [&str; 2] = ["runner profile", "--devices all"];

/// Copies the files of a folder that git tracks.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn run(dir: &Path, script: &str) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_runner")).parent().unwrap().display().to_string();
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).current_dir(dir);
    shell.env("PATH", format!("{program}:{}", std::env::var("PATH").unwrap()));
    // Hides all GPUs, because the commands take longer with one.
    shell.env("CUDA_VISIBLE_DEVICES", "").env("XDG_STATE_HOME", dir.join("state")).env_remove("RUNNER_LOG");
    let output = shell.output().unwrap();
    (
        output.status.code(),
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat(),
    )
}

/// A checkout with two experiments, and with reports since the second commit.
fn checkout() -> TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let (experiments, kernels) = (dir.path().join("experiments"), dir.path().join("kernels"));
    for folder in [&experiments, &kernels] {
        fs::create_dir(folder).unwrap();
    }
    for kernels in fs::read_dir(root.join("kernels")).unwrap().map(Result::unwrap) {
        fs::copy(kernels.path(), dir.path().join("kernels").join(kernels.file_name())).unwrap();
    }
    let reduce = fs::read_to_string(root.join("experiments/reduce.toml")).unwrap();
    let sizes = "[on.sim.axes]\nn = { pow2 = [14, 18, 2] }";
    assert!(reduce.contains(sizes));
    fs::write(experiments.join("reduce.toml"), reduce.replace(sizes, "[on.sim.axes]\nn = [16384]")).unwrap();
    let slurm = root.join("tests/slurm/project");
    let scale = fs::read_to_string(slurm.join("experiments/scale.toml")).unwrap();
    fs::write(experiments.join("scale.toml"), scale.replace("[8, 17, 1]", "[12, 12]")).unwrap();
    fs::copy(slurm.join("kernels/scale.cu"), kernels.join("scale.cu")).unwrap();
    copy(&root.join("reports/reduce"), &dir.path().join("reports/reduce"));
    copy(&root.join("reports/copy"), &dir.path().join("reports/copy"));
    let git = "git init -q -b main && git config user.name a && git config user.email a@b.c && git add -A \
               && git rm -rq --cached reports && git commit -qm one && git tag v1.0 && git add reports && git commit -qm two \
               && git update-ref refs/remotes/origin/main HEAD";
    let (code, said) = run(dir.path(), git);
    assert_eq!(code, Some(0), "{said}");
    dir
}

/// The scripts of a page: a block that contains a loop is one script; in other blocks, every line is.
fn scripts(page: &str) -> Vec<String> {
    let blocks = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let mut found = Vec::new();
    for (language, block) in blocks {
        let block = block.replace("\\\n", " ");
        let lines = block.lines().map(str::to_owned);
        match language {
            "sh" if block.contains("\ndone") => found.push(block),
            "sh" => found.extend(lines.filter(|line| !line.starts_with('#'))),
            "console" => found.extend(lines.filter_map(|line| Some(line.strip_prefix("$ ")?.to_owned()))),
            _ => {}
        }
    }
    found
}

#[track_caller]
fn follow(guide: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs").join(guide)).unwrap();
    let dir = checkout();
    let mut followed = 0;
    for script in scripts(&page).into_iter().filter(|script| !ELSEWHERE.iter().any(|name| script.contains(name))) {
        let script = script.replace("NAME", "scale");
        let (code, said) = run(dir.path(), &script);
        let expected: &[i32] = if NEEDS_GPU.iter().any(|part| script.contains(part)) { &[2, 3] } else { &[0] };
        assert!(code.is_some_and(|code| expected.contains(&code)), "{guide}: {script}: {code:?}\n{said}");
        followed += 1;
    }
    assert!(followed > 0, "{guide} has no command");
}

/// Defines a test for each guide with commands.
macro_rules! guides {
    ($($name:ident: $page:literal),* $(,)?) => {
        const GUIDES: &[&str] = &[$($page),*];
        $(#[test]
        fn $name() {
            follow($page);
        })*
    };
}

guides! {
    an_experiment_is_added: "how-to/add-an-experiment.md",
    two_versions_are_compared_in_one_run: "how-to/compare-in-one-run.md",
    two_reports_are_compared: "how-to/compare-two-reports.md",
    a_library_is_compared_with: "how-to/compare-with-a-library.md",
    events_of_hardware_are_counted: "how-to/count-hardware-events.md",
    a_run_is_divided: "how-to/divide-a-run.md",
    a_run_that_waits_is_explained: "how-to/find-out-why-a-run-waits.md",
    a_report_is_followed_over_time: "how-to/follow-a-report-over-time.md",
    a_report_is_read: "how-to/read-a-report.md",
    a_run_is_resumed_or_narrowed: "how-to/resume-or-narrow-a-run.md",
    pull_requests_are_compared: "how-to/run-in-ci.md",
    a_run_needs_no_network: "how-to/run-without-network.md",
    several_gpus_are_used: "how-to/use-several-gpus.md",
}

/// Exceptions: `tests/slurm/guide.sh` follows the guide to clusters on a real scheduler, and `cli::tune` runs the
/// commands of the guide to searches with its own manifests and measured spaces. The guide to publishing needs a release
/// build.
#[test]
fn every_guide_with_commands_is_followed() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let pages = fs::read_dir(docs.join("how-to")).unwrap().map(|page| page.unwrap().path());
    let with_commands = pages.filter(|page| !scripts(&fs::read_to_string(page).unwrap()).is_empty());
    let mut with_commands: Vec<String> =
        with_commands.map(|page| page.strip_prefix(&docs).unwrap().display().to_string()).collect();
    with_commands.retain(|page| {
        !["how-to/cluster.md", "how-to/publish-the-program.md", "how-to/tune.md"].contains(&page.as_str())
    });
    with_commands.sort();
    assert_eq!(with_commands, GUIDES);
}
