//! `runner run` when it cannot start: what it says, its exit code, and that it leaves nothing behind.
//!
//! The device is hidden from the binary, so that these tests are the same on every machine.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use runner_compile::Cache;
use tempfile::TempDir;

const MANIFEST: &str = "tests/it/faults/quick.toml";

/// A run in an empty folder, which serves as home, cache and current folder.
struct Attempt {
    folder: TempDir,
    output: Output,
}

fn run(manifest: &Path, arguments: &[&str]) -> Attempt {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder.path())
        .args(["--color", "never", "run"])
        .arg(manifest)
        .args(arguments)
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("HOME", folder.path())
        .env("RUNNER_CACHE", folder.path().join("cache"))
        .output()
        .unwrap();
    Attempt { folder, output }
}

fn shipped(manifest: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)
}

impl Attempt {
    fn said(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }

    /// Asserts the exit code and words of standard error, and that nothing else was printed or written.
    #[track_caller]
    fn expect(&self, code: i32, words: &[&str]) {
        let said = self.said();
        assert_eq!(self.output.status.code(), Some(code), "{said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is not in:\n{said}");
        }
        assert!(self.output.stdout.is_empty(), "{}", String::from_utf8_lossy(&self.output.stdout));
        let left: Vec<PathBuf> = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "the run left something behind");
    }
}

#[test]
fn without_a_device_it_says_what_to_do() {
    let attempt = run(&shipped(MANIFEST), &["--backend", "cuda", "--out", "out"]);
    attempt.expect(3, &["NVIDIA driver"]);
    let said = attempt.said();
    // The message names the next step, whether there is no driver or one that sees no device.
    assert!(said.contains("install the NVIDIA driver") || said.contains("CUDA_VISIBLE_DEVICES"), "{said}");
}

#[test]
fn a_manifest_with_faults_ends_it_before_anything_is_touched() {
    let attempt = run(&shipped("tests/it/cli/check/experiments/unknown_keys.toml"), &["--out", "out"]);
    attempt.expect(2, &["unknown_keys.toml:", "did you mean"]);
    run(Path::new("nowhere.toml"), &["--out", "out"]).expect(2, &["nowhere.toml"]);
}

#[test]
fn a_wrong_path_suggests_the_manifest_that_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("reduce")).unwrap();
    fs::write(folder.path().join("reduce.toml"), "").unwrap();
    let meant = format!("did you mean `{}`?", folder.path().join("reduce.toml").display());
    for wrong in ["reduce", "reduce.tom", "redcue.toml", "redcue"] {
        run(&folder.path().join(wrong), &[]).expect(2, &["cannot read the manifest", &meant]);
    }
    let far = run(&folder.path().join("copy"), &[]);
    far.expect(2, &["name a manifest, a TOML file such as experiments/reduce.toml"]);
}

#[test]
fn a_file_of_another_kind_has_one_fault() {
    let attempt = run(&shipped("README.md"), &[]);
    attempt.expect(2, &["name a manifest, a TOML file such as"]);
    assert_eq!(attempt.said().matches("error: ").count(), 1, "{}", attempt.said());
}

#[test]
fn a_narrowing_that_fits_nothing_is_told_before_the_missing_device() {
    let manifest = shipped(MANIFEST);
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--set", "m=1"], &["--set m=1", "there is no axis `m`", "the axes are n, u"]),
        (&["--set", "n"], &["--set n", "--set axis=value,value"]),
        (&["--set", "n=many"], &["--set n=many", "`many` is a name, but the axis has values of type integer"]),
        (&["--filter", "n > 10**6"], &["no case matches --filter 'n > 10**6'"]),
        (&["--filter", "size > 4"], &["--filter 'size > 4'", "size"]),
        (&["--variant", "soun"], &["--variant soun", "did you mean `sound`?"]),
    ];
    for (arguments, words) in cases {
        let arguments: Vec<&str> = ["--backend", "cuda"].iter().chain(arguments).copied().collect();
        run(&manifest, &arguments).expect(2, words);
    }
    // A name that only a device can resolve is not a usage error.
    run(&manifest, &["--backend", "cuda", "--filter", "n > sm_count"]).expect(3, &["NVIDIA driver"]);
}

#[test]
fn arguments_that_do_not_exist_are_refused() {
    run(&shipped(MANIFEST), &["--bakend", "cuda"]).expect(2, &["--bakend", "--backend"]);
    run(&shipped(MANIFEST), &["--device", "first"]).expect(2, &["--device"]);
    run(&shipped(MANIFEST), &["--quiet", "--progress", "json"]).expect(2, &["cannot be used with"]);
}

#[test]
fn an_unknown_simulated_device_is_a_usage_error() {
    let attempt = run(&shipped(MANIFEST), &["--sim-device", "h1000"]);
    attempt.expect(2, &["--sim-device: ", "h1000", "h100, a100, v100"]);
}

#[test]
fn a_file_past_the_limit_of_the_process_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("ulimit -f 1; exec {} schema --out big.json", env!("CARGO_BIN_EXE_runner"));
    let output = Command::new("sh").current_dir(folder.path()).args(["-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("big.json") && said.contains("File too large"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "half a file stayed");
}

#[test]
fn a_cache_whose_path_is_not_utf_8_leaves_the_old_report_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"od\xffd"));
    let cache = Cache::locate().unwrap();
    symlink(cache.root(), &odd).unwrap();
    let run = |cache: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command.current_dir(folder.path()).arg("run").arg(shipped(MANIFEST)).args(["--backend", "sim", "--out", "out"]);
        command.env("RUNNER_CACHE", cache).output().unwrap()
    };
    run(cache.root());
    let file = |name| fs::read(folder.path().join("out").join(name)).unwrap();
    let files = || ["report.md", "records.jsonl", "journal.jsonl"].map(file);
    let before = files();
    let output = run(&odd);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("is not UTF-8") && said.contains("set RUNNER_CACHE to another folder"), "{said}");
    assert!(files() == before, "the old report changed");
}

#[test]
fn a_cache_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    fs::create_dir(&cache).unwrap();
    let mode = |mode| {
        for path in [folder.path(), &cache] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let setup = |user: Option<u32>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command.current_dir(folder.path()).args(["setup", "--cuda", "13", "--offline"]);
        command.env("HOME", folder.path()).env("RUNNER_CACHE", &cache);
        user.map(|user| command.uid(user));
        command.output()
    };
    mode(0o777);
    let refused = |output: Output, why: &str| {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(why) && said.contains("set RUNNER_CACHE to a folder of your own"), "{said}");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0, "{said}");
    };
    refused(setup(None).unwrap(), "other users can write to it");
    mode(0o755);
    match setup(Some(65534)) {
        Ok(output) => refused(output, "it belongs to another user"),
        Err(error) => println!("skipped: the program cannot be run as another user: {error}"),
    }
}

#[test]
fn a_byte_order_mark_is_dropped_and_a_nul_byte_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = "[experiment]\nname = \"mark\"\n[buffers.o]\ntype = \"i32\"\nlen = 32\n[[variant]]\nname = \"v\"\n\
                    source = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [32]\nargs = [\"o\"]\n";
    fs::write(folder.path().join("m.toml"), manifest).unwrap();
    let run = |source: &str| {
        fs::write(folder.path().join("k.cu"), source).unwrap();
        let mut runner = Command::new(env!("CARGO_BIN_EXE_runner"));
        let words = ["run", "m.toml", "--backend", "sim", "--out", "out"];
        let output = runner.current_dir(folder.path()).args(words).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), text)
    };
    let kernel = "extern \"C\" __global__ void k(int *o) { o[threadIdx.x] = 1; }\n";
    let (code, said) = run(&format!("\u{feff}{kernel}"));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&format!("// one\n// two \0\n{kernel}"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("line 2 of k.cu has a NUL byte: remove it"), "{said}");
}
