//! Kernels of published packages, tested through the real binary. A script replaces cargo, so no registry is asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use runner_compile::Cache;
use runner_compile::pinned::Pinned;
use runner_results::journal;
use runner_types::{Verdict, sha256_hex};

use crate::programs::write_program;

/// Packs a crate with a kernel and a header that the kernel includes.
const PACK: &str = "\
import io, sys, tarfile
with tarfile.open(sys.argv[1], 'w:gz') as out:
    for name, text in (('src/k.cu', sys.argv[2]), ('src/k.cuh', sys.argv[3])):
        info = tarfile.TarInfo('demo-kernels-1.0.0/' + name)
        info.size = len(text)
        out.addfile(info, io.BytesIO(text.encode()))
";

const SOURCE: &str =
    "#include \"k.cuh\"\nextern \"C\" __global__ void k(int *out) { out[threadIdx.x] = threadIdx.x + FIRST; }\n";

const MANIFEST: &str = r#"[experiment]
name = "demo"
[packages.demo]
crate   = "demo-kernels"
version = "1.0.0"
sha256  = "HASH"
license = "MIT"
[buffers.out]
type = "i32"
len  = 8
[check]
actual = "out"
expect = [5, 6, 7, 8, 9, 10, 11, 12]
[[variant]]
name   = "k"
source = "demo:src/k.cu"
kernel = "k"
grid   = [1]
block  = [8]
args   = ["out"]
"#;

struct Home {
    dir: tempfile::TempDir,
}

struct Said {
    code: Option<i32>,
    stderr: String,
}

impl Home {
    /// A folder with a manifest, a crate, and a `cargo` that provides it.
    fn new(header: &str) -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        for folder in ["experiments", "bin", "cargo/registry/cache/index"] {
            fs::create_dir_all(home.path(folder)).unwrap();
        }
        let archive = home.archive();
        let packed = Command::new("python3").args(["-c", PACK]).arg(&archive).args([SOURCE, header]).status().unwrap();
        assert!(packed.success());
        home.name(&sha256_hex(&fs::read(archive).unwrap()));
        home.cargo("exit 0");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where cargo keeps the crate.
    fn archive(&self) -> PathBuf {
        self.path("cargo/registry/cache/index/demo-kernels-1.0.0.crate")
    }

    /// Writes the manifest with this hash of the crate.
    fn name(&self, hash: &str) {
        fs::write(self.path("experiments/demo.toml"), MANIFEST.replace("HASH", hash)).unwrap();
    }

    /// Writes the script that replaces cargo.
    fn cargo(&self, script: &str) {
        write_program(&self.path("bin/cargo"), &format!("#!/bin/sh\n{script}\n"));
    }

    fn run(&self, more: &[&str]) -> Said {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let toolkit = Cache::locate().unwrap().toolkit_dir(Pinned::for_major(13).unwrap());
        let run = Command::new(env!("CARGO_BIN_EXE_runner"))
            .current_dir(self.dir.path())
            .env("PATH", path)
            .env("CARGO_HOME", self.path("cargo"))
            .env("RUNNER_CACHE", self.path("cache"))
            .env("RUNNER_TOOLKIT", toolkit)
            .args(["run", "experiments/demo.toml", "--backend", "sim", "--progress", "lines", "--out", "out"])
            .args(more)
            .output()
            .unwrap();
        Said { code: run.status.code(), stderr: String::from_utf8(run.stderr).unwrap() }
    }

    /// Names of the packages in the cache.
    fn packages(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache/packages")).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

/// Fetches the pinned toolkit, which the runs use.
fn fetch_toolkit() {
    use runner_compile::{Network, Requirement, Toolkit};
    Toolkit::ensure(Requirement::Pinned, &Cache::locate().unwrap(), Network::Allowed, &mut |_| {}).unwrap();
}

#[test]
fn a_kernel_of_a_package_is_run_and_every_file_of_it_that_is_read_counts_for_the_fingerprint() {
    fetch_toolkit();
    let fingerprint = |header: &str| {
        let home = Home::new(header);
        let said = home.run(&[]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let announced = "fetching crate demo-kernels 1.0.0 (unknown size, licence: MIT)";
        assert!(said.stderr.contains(announced), "{}", said.stderr);
        let [folder] = home.packages().try_into().unwrap();
        let file = home.path("cache/packages").join(folder).join("src/k.cu");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o444);
        let records = journal::read_records(&home.path("out/records.jsonl")).unwrap();
        let [case] = records.cases.as_slice() else { panic!("{} cases", records.cases.len()) };
        assert_eq!(case.verdict, Verdict::Pass);
        // The second run needs neither cargo nor a network.
        home.cargo("exit 1");
        let again = home.run(&["--offline"]);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        case.fingerprint.clone()
    };
    let first = fingerprint("#define FIRST 5\n");
    assert_eq!(first, fingerprint("#define FIRST 5\n"), "the same package in another cache");
    assert_ne!(first, fingerprint("#define FIRST (2 + 3)\n"), "another header");
}

/// A file of a package, and a change to it.
type Change<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn a_package_with_a_changed_file_is_fetched_again_and_refused_without_the_network() {
    fetch_toolkit();
    let home = Home::new("#define FIRST 5\n");
    assert_eq!(home.run(&[]).code, Some(0));
    let [folder] = home.packages().try_into().unwrap();
    let folder = home.path("cache/packages").join(folder);
    let expected = fs::read(home.path("out/records.jsonl")).unwrap();
    let changes: [Change<'_>; 3] = [
        ("src/k.cuh", &|file| fs::write(file, "#define FIRST 6\n").unwrap()),
        ("src/k.cu", &|file| fs::remove_file(file).unwrap()),
        ("src/extra.cuh", &|file| fs::write(file, "").unwrap()),
    ];
    for (name, change) in changes {
        for folder in [&folder, &folder.join("src")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let file = folder.join(name);
        if file.exists() {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        change(&file);
        let refused = home.run(&["--offline"]);
        assert_eq!(refused.code, Some(3), "{}", refused.stderr);
        assert!(refused.stderr.contains("was changed since it was unpacked"), "{}", refused.stderr);
        let again = home.run(&[]);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        assert_eq!(again.stderr.matches("is fetched again").count(), 1, "{}", again.stderr);
        assert_eq!(fs::read(home.path("out/records.jsonl")).unwrap(), expected, "{name}");
    }
    let sums = folder.with_added_extension("sums");
    for damage in [&|path: &Path| fs::write(path, "").unwrap(), &|path: &Path| fs::remove_file(path).unwrap()]
        as [&dyn Fn(&Path); 2]
    {
        damage(&sums);
        let refused = home.run(&["--offline"]);
        assert_eq!(refused.code, Some(3), "{}", refused.stderr);
        assert!(refused.stderr.contains("its checksums are damaged or missing"), "{}", refused.stderr);
        assert_eq!(home.run(&[]).code, Some(0));
        assert!(sums.exists());
    }
}

#[test]
fn a_package_that_is_not_in_the_cache_is_an_error_of_the_manifest_without_the_network() {
    let home = Home::new("");
    let said = home.run(&["--offline"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("crate demo-kernels 1.0.0 is not in the cache"), "{}", said.stderr);
    assert!(said.stderr.contains("experiments/demo.toml:3:"), "{}", said.stderr);
    assert!(!said.stderr.contains("there is no source"), "{}", said.stderr);
    assert!(!home.path("cache/packages").exists());
}

#[test]
fn a_package_that_is_gone_or_has_another_hash_is_refused_and_nothing_is_kept() {
    let refused = |home: &Home, words: &str| {
        let said = home.run(&[]);
        assert_eq!(said.code, Some(3), "{}", said.stderr);
        assert!(said.stderr.contains(words), "{}", said.stderr);
        assert_eq!(home.packages(), [""; 0]);
    };
    let home = Home::new("");
    home.name(&"0".repeat(64));
    refused(&home, ", but the manifest says 00000000");
    let home = Home::new("");
    home.cargo("echo 'error: could not find `demo-kernels@1.0.0`' >&2; exit 101");
    refused(&home, "cargo downloaded no archive of it\nerror: could not find `demo-kernels@1.0.0`");
}

#[test]
fn a_source_may_not_lead_out_of_its_package() {
    let home = Home::new("#define FIRST 5\n");
    let manifest = home.path("experiments/demo.toml");
    let text = fs::read_to_string(&manifest).unwrap().replace("demo:src/k.cu", "demo:../../../cargo/secret.cu");
    fs::write(&manifest, text).unwrap();
    fs::write(home.path("cargo/secret.cu"), SOURCE).unwrap();
    let inside = home.run(&["--project", "experiments"]);
    assert_eq!(inside.code, Some(2), "{}", inside.stderr);
    assert!(inside.stderr.contains("outside of the project"), "{}", inside.stderr);
}
