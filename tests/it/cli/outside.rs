//! The files of a manifest must lie in its project: nothing outside is read unless the user allows it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

const MANIFEST: &str = r#"[experiment]
name = "x"

[buffers.data]
type = "i32"
len  = 4
fill = FILL
access = "inout"

[[variant]]
name   = "a"
source = "SOURCE"
kernel = "k"
grid   = [1]
block  = [4]
args   = ["data"]
"#;

const KERNEL: &str = "extern \"C\" __global__ void k(int* data) { data[threadIdx.x] = 1; }\n";

/// A project with a manifest and a kernel, and files of the user outside it.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.write("secret.cuh", "int secret_of_the_user;\n");
        // Header of an .npy file with four i32, exactly as the format specifies it.
        let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }";
        let header = format!("{header:117}\n");
        let bytes = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &[0; 16]].concat();
        fs::write(place.path("secret.npy"), bytes).unwrap();
        place.write("secret.txt", "password\n");
        place.write("p/kernels/k.cu", KERNEL);
        place.manifest("k.cu", "0", "");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn manifest(&self, source: &str, fill: &str, more: &str) {
        let text = MANIFEST.replace("SOURCE", source).replace("FILL", fill);
        self.write("p/experiments/x.toml", &format!("{text}{more}"));
    }

    fn runner(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command.current_dir(self.path("p")).args(arguments).output().unwrap()
    }

    /// Asserts that `check` finds exactly this fault, and none if the user allows outside files.
    fn is_refused(&self, line: u32) {
        let check = self.runner(&["check", "experiments/x.toml"]);
        let said = said(&check);
        assert_eq!(check.status.code(), Some(2), "{said}");
        assert!(said.contains("is outside of the project"), "{said}");
        assert!(said.contains(&format!("experiments/x.toml:{line}:")), "{said}");
        assert!(said.contains("--allow-outside") && said.contains(": 1 fault"), "{said}");
        for words in ["secret_of", "password"] {
            assert!(!said.contains(words), "{said}");
        }
        for flags in [&["--allow-outside"][..], &["--project", ".."]] {
            let check = self.runner(&[&["check", "experiments/x.toml"], flags].concat());
            assert!(check.status.success(), "{}", self::said(&check));
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_manifest_within_its_project_needs_no_flag() {
    let place = Place::new();
    let check = place.runner(&["check", "experiments/x.toml"]);
    assert!(check.status.success(), "{}", said(&check));
}

#[test]
fn a_checkout_that_contains_the_users_home_is_a_project_without_the_home() {
    let place = Place::new();
    place.write("p/home/private.cuh", "int secret_of_the_user;\n");
    let check = |home: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let command = command.current_dir(place.path("p")).env("HOME", place.path(home));
        let output = command.env("XDG_STATE_HOME", place.path("state")).args(["check", "experiments/x.toml"]).output();
        let output = output.unwrap();
        (output.status.success(), said(&output))
    };
    // Without a checkout, the folder may be the one that contains all homes.
    let (is_right, said) = check("p/home");
    assert!(!is_right && said.contains("is outside of the project"), "{said}");
    fs::create_dir(place.path("p/.git")).unwrap();
    let (is_right, said) = check("p/home");
    assert!(is_right, "{said}");
    assert!(!check("p").0, "the checkout is the home");
    place.write("p/kernels/k.cu", &format!("#include \"../home/private.cuh\"\n{KERNEL}"));
    let (is_right, said) = check("p/home");
    assert!(!is_right && said.contains("is in the user's home, which is not part of the project"), "{said}");
    assert!(!said.contains("secret_of"), "{said}");
}

#[test]
fn an_include_from_outside_of_the_project_is_refused_where_the_source_is_named() {
    let place = Place::new();
    for include in [place.path("secret.cuh").display().to_string(), "../../secret.cuh".to_owned()] {
        place.write("p/kernels/k.cu", &format!("#include \"near.cuh\"\n{KERNEL}"));
        place.write("p/kernels/near.cuh", &format!("#include \"{include}\"\n"));
        place.is_refused(12);
    }
}

#[test]
fn sources_and_arrays_from_outside_of_the_project_are_refused() {
    let place = Place::new();
    place.write("stranger.cu", KERNEL);
    place.manifest("../../stranger.cu", "0", "");
    place.is_refused(12);
    place.manifest("k.cu", "{ npy = \"../../secret.npy\" }", "");
    place.is_refused(7);
    place.manifest("k.cu", "0", "include_paths = [\"../..\"]\n");
    place.is_refused(17);
}

#[test]
fn expected_lines_from_outside_of_the_project_are_refused() {
    let place = Place::new();
    place.manifest("k.cu", "0", "[[check]]\nprinted = { file = \"../../secret.txt\" }\n");
    place.is_refused(18);
}

#[test]
fn a_link_that_leads_out_of_the_project_is_refused() {
    let place = Place::new();
    place.write("stranger.cu", KERNEL);
    symlink(place.path("stranger.cu"), place.path("p/kernels/link.cu")).unwrap();
    place.manifest("link.cu", "0", "");
    place.is_refused(12);
}

#[test]
fn nothing_below_git_is_part_of_the_project() {
    let place = Place::new();
    place.write("p/.git/config", "password\n");
    symlink("../.git/config", place.path("p/kernels/link.cu")).unwrap();
    let refused = |line: u32| {
        let check = place.runner(&["check", "experiments/x.toml"]);
        let said = said(&check);
        assert_eq!(check.status.code(), Some(2), "{said}");
        assert!(said.contains("is below .git, which is not part of the project"), "{said}");
        assert!(said.contains(&format!("experiments/x.toml:{line}:")) && !said.contains("password"), "{said}");
        let allowed = self::said(&place.runner(&["check", "experiments/x.toml", "--allow-outside"]));
        assert!(!allowed.contains("below .git"), "{allowed}");
    };
    place.manifest("k.cu", "{ raw = \"../.git/config\" }", "");
    refused(7);
    place.manifest("k.cu", "0", "[[check]]\nprinted = { file = \"../.git/config\" }\n");
    refused(18);
    place.manifest("link.cu", "0", "");
    refused(12);
    place.write("p/kernels/k.cu", &format!("#include \"../.git/config\"\n{KERNEL}"));
    place.manifest("k.cu", "0", "");
    refused(12);
}

#[test]
fn pipes_and_devices_in_place_of_files_are_refused_at_once() {
    let place = Place::new();
    let pipe = place.path("p/experiments/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = |words: &str| {
        let check = place.runner(&["check", "experiments/x.toml"]);
        assert_eq!(check.status.code(), Some(2), "{}", said(&check));
        assert!(said(&check).contains(words), "{}", said(&check));
    };
    place.manifest("k.cu", "{ npy = \"pipe\" }", "");
    refused("cannot read `experiments/pipe`: it is a pipe, not a file");
    place.manifest("k.cu", "0", "[[check]]\nprinted = { file = \"pipe\" }\n");
    refused("cannot read `experiments/pipe`: it is a pipe, not a file");
    for manifest in ["experiments/pipe", "/dev/zero"] {
        let check = place.runner(&["check", manifest]);
        assert_eq!(check.status.code(), Some(2), "{}", said(&check));
        assert!(said(&check).contains(", not a file"), "{}", said(&check));
    }
}

#[test]
fn a_project_that_is_no_folder_is_refused() {
    let place = Place::new();
    for (folder, why) in [("missing", "No such file"), ("kernels/k.cu", "it is not a folder")] {
        let check = place.runner(&["check", "experiments/x.toml", "--project", folder]);
        assert_eq!(check.status.code(), Some(2));
        assert!(
            said(&check).contains(&format!("--project {folder}: ")) && said(&check).contains(why),
            "{}",
            said(&check)
        );
    }
}

#[test]
fn a_link_in_place_of_the_folder_of_reports_is_not_followed_unless_it_is_named() {
    let place = Place::new();
    fs::create_dir(place.path("elsewhere")).unwrap();
    symlink(place.path("elsewhere"), place.path("p/reports")).unwrap();
    let run = place.runner(&["run", "experiments/x.toml", "--backend", "sim"]);
    assert_eq!(run.status.code(), Some(2), "{}", said(&run));
    assert!(said(&run).contains(": to write results there, pass that folder with --out"), "{}", said(&run));
    assert_eq!(fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
    let run = place.runner(&["run", "experiments/x.toml", "--backend", "sim", "--out", "reports/x"]);
    assert!(run.status.success(), "{}", said(&run));
    assert!(place.path("elsewhere/x/report.md").is_file());
}

#[test]
fn a_link_in_place_of_the_lock_or_the_journal_is_refused_and_what_it_leads_to_stays() {
    let place = Place::new();
    let run: &[&str] = &["run", "experiments/x.toml", "--backend", "sim", "--out", "reports/x"];
    let report: &[&str] = &["report", "reports/x"];
    let first = place.runner(run);
    assert!(first.status.success(), "{}", said(&first));
    let (journal, target) = (fs::read(place.path("p/reports/x/journal.jsonl")).unwrap(), place.path("target"));
    for (name, commands) in [("journal.lock", &[run, report][..]), ("journal.jsonl", &[run])] {
        let link = place.path("p/reports/x").join(name);
        for content in [None, Some(&b"as it was"[..]), Some(&journal)] {
            let _ = fs::remove_file(&link);
            symlink(&target, &link).unwrap();
            if let Some(content) = content {
                fs::write(&target, content).unwrap();
            }
            for command in commands {
                let output = place.runner(command);
                assert_eq!(output.status.code(), Some(3), "{name}: {}", said(&output));
                assert!(
                    said(&output).contains(&format!("{name}: it is a symbolic link; remove it")),
                    "{}",
                    said(&output)
                );
                assert_eq!(fs::read(&target).ok().as_deref(), content, "{name}");
            }
        }
        fs::remove_file(&link).unwrap();
        fs::remove_file(&target).unwrap();
    }
}
