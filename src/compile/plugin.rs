//! Host functions: CUDA C++ that nvcc builds into a shared library, which a worker loads.
//!
//! NVRTC compiles device code alone, so that a function that calls CUB, thrust or cuBLAS needs the toolkit's own
//! driver and a host compiler. Neither is fetched here: where there is no nvcc, there are no host functions.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::child::{self, Death};
use super::key::Compiler;
use super::options::UnitOptions;
use super::toolkit::{Toolkit, ToolkitSource};
use crate::model::{CompileFailure, CompileUnit, Plugin};
use crate::programs::{Programs, search_path};

/// nvcc, with what tells its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nvcc {
    pub path: PathBuf,
    /// What `nvcc --version` prints.
    version: String,
    /// The toolkit's folder: the parent of `bin`, links followed.
    root: PathBuf,
    /// Where its own headers and libraries may lie.
    include_dirs: Vec<PathBuf>,
    library_dirs: Vec<PathBuf>,
}

impl Nvcc {
    /// The one beside the toolkit that compiles kernels, else the first that this machine has.
    pub fn find(toolkit: &Toolkit, programs: &Programs) -> Option<Self> {
        let beside = match &toolkit.source {
            ToolkitSource::System(root) => Some(root.join("bin").join("nvcc")),
            ToolkitSource::Fetched => None,
        };
        beside.into_iter().chain(programs.find("nvcc")).find_map(Self::at)
    }

    /// The compiler at this path, if it runs.
    pub fn at(path: PathBuf) -> Option<Self> {
        let output = Command::new(&path).arg("--version").stdin(Stdio::null()).output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || version.is_empty() {
            return None;
        }
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let root = real.parent().and_then(Path::parent).map_or_else(PathBuf::new, Path::to_path_buf);
        let under = |folders: &[&str]| folders.iter().map(|folder| root.join(folder)).collect::<Vec<_>>();
        let include_dirs = under(&["include", "include/cccl", "targets/x86_64-linux/include"]);
        let library_dirs = under(&["lib64", "lib", "targets/x86_64-linux/lib"]);
        let library_dirs = library_dirs.into_iter().filter(|folder| folder.is_dir()).collect();
        Some(Self { path, version, root, include_dirs, library_dirs })
    }

    /// Its name with its version, for example `nvcc 13.0.88`.
    pub fn name(&self) -> String {
        let build = self.version.split_whitespace().find_map(|word| word.strip_prefix('V'));
        format!("nvcc {}", build.unwrap_or("of unknown version"))
    }

    /// What a built library depends on besides its source. Headers that come with it have its version.
    pub(super) fn compiler(&self) -> Compiler<'_> {
        Compiler { identity: self.version.clone(), include_dirs: &self.include_dirs, root: Some(&self.root) }
    }

    /// Builds the library into `output`; gives the compiler's warnings.
    pub(super) fn build(&self, order: &Order<'_>, output: &Path) -> Result<String, CompileFailure> {
        let not_started = |source| failure(Death::NotStarted { program: self.path.clone(), source }.to_string(), "");
        let mut child = Command::new(&self.path)
            .args(order.arguments(&self.library_dirs, output))
            .env("PATH", search_path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // It starts compilers of its own, which must end with it; Ctrl-C is the parent's to answer.
            .process_group(0)
            .spawn()
            .map_err(not_started)?;
        let words = child::read_all(child.stderr.take());
        let Some(log) = child::wait(&words, Instant::now() + order.limit, order.stop) else {
            end(&mut child);
            let interrupted = order.stop.load(Ordering::Relaxed);
            let death = if interrupted { Death::Interrupted } else { Death::Killed(order.limit) };
            return Err(failure(death.to_string(), ""));
        };
        // Its words end with it.
        let status = child.wait().map_err(|error| failure(format!("lost sight of nvcc: {error}"), ""))?;
        let log = String::from_utf8_lossy(&log).into_owned();
        if status.success() { Ok(log) } else { Err(rejected(&log)) }
    }
}

/// One library to build.
pub(super) struct Order<'a> {
    pub unit: &'a CompileUnit,
    pub plugin: &'a Plugin,
    pub options: &'a UnitOptions,
    pub compute_capability: (u32, u32),
    pub limit: Duration,
    pub stop: &'a AtomicBool,
}

impl Order<'_> {
    fn arguments(&self, library_dirs: &[PathBuf], output: &Path) -> Vec<String> {
        let (major, minor) = self.compute_capability;
        let own = format!("sm_{major}{minor}");
        let real = self.options.architecture.as_deref().unwrap_or(&own);
        let version = real.rsplit('_').next().unwrap_or(real);
        let mut arguments: Vec<String> = ["--shared", "--cudart=static", "--compiler-options=-fPIC", "-O3"]
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        arguments.push(format!("--generate-code=arch=compute_{version},code=sm_{version}"));
        arguments.extend(self.options.stable.iter().cloned());
        arguments.extend(self.options.include_dirs.iter().map(|dir| format!("--include-path={}", dir.display())));
        arguments.push(format!("--output-file={}", output.display()));
        // A scratch file has no extension to tell the language by.
        arguments.push("--x=cu".to_owned());
        arguments.push(self.unit.source.display().to_string());
        // The older of the two tags, which holds for the libraries of a library too: cuBLAS needs its cuBLASLt.
        for folder in library_dirs {
            arguments.push(format!("--library-path={}", folder.display()));
            arguments.push(format!("--linker-options=--disable-new-dtags,-rpath,{}", folder.display()));
        }
        arguments.extend(self.plugin.libraries.iter().map(|library| format!("--library={library}")));
        arguments
    }
}

/// Ends nvcc and the compilers that it started.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // It may be gone already, which is what is wanted.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

fn rejected(log: &str) -> CompileFailure {
    let error = log.lines().find(|line| line.contains("error"));
    let summary = error.or_else(|| log.lines().next()).unwrap_or("nvcc gave no reason");
    failure(summary.trim().to_owned(), log)
}

fn failure(summary: String, log: &str) -> CompileFailure {
    CompileFailure { summary, log: log.to_owned() }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::thread;

    use super::*;

    fn unit() -> CompileUnit {
        CompileUnit {
            defines: vec![("T".to_owned(), "float".to_owned())],
            plugin: Some(Plugin { libraries: vec!["cublas".to_owned()] }),
            ..CompileUnit::of("kernels/cub.cu", ["cub_sum"])
        }
    }

    fn order<'a>(unit: &'a CompileUnit, options: &'a UnitOptions, limit: Duration, stop: &'a AtomicBool) -> Order<'a> {
        Order { unit, plugin: unit.plugin.as_ref().unwrap(), options, compute_capability: (9, 0), limit, stop }
    }

    /// A program that answers as nvcc does, and otherwise does what `script` says.
    fn stand_in(dir: &Path, script: &str) -> Nvcc {
        let path = dir.join("nvcc");
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit 0; fi\n{script}\n"
        );
        fs::write(dir.join("nvcc.txt"), text).unwrap();
        // Another process writes what is executed: a test that forks meanwhile would hold it open for writing.
        let made = Command::new("install").args(["-m", "755"]).arg(dir.join("nvcc.txt")).arg(&path).status().unwrap();
        assert!(made.success());
        Nvcc::at(path).unwrap()
    }

    #[test]
    fn a_library_is_built_for_the_device_with_what_it_is_linked_with() {
        let unit = unit();
        let options = UnitOptions::of(&unit).unwrap();
        let stop = AtomicBool::new(false);
        let arguments = order(&unit, &options, Duration::from_secs(1), &stop)
            .arguments(&[PathBuf::from("/cuda/lib64")], Path::new("/tmp/out"));
        assert_eq!(
            arguments,
            [
                "--shared",
                "--cudart=static",
                "--compiler-options=-fPIC",
                "-O3",
                "--generate-code=arch=compute_90,code=sm_90",
                "--std=c++17",
                "--generate-line-info",
                "--define-macro=T=float",
                "--include-path=kernels",
                "--output-file=/tmp/out",
                "--x=cu",
                "kernels/cub.cu",
                "--library-path=/cuda/lib64",
                "--linker-options=--disable-new-dtags,-rpath,/cuda/lib64",
                "--library=cublas",
            ]
        );
    }

    #[test]
    fn the_first_error_is_the_summary_and_the_whole_log_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let nvcc = stand_in(dir.path(), "echo 'a.cu(3): warning: w' >&2; echo 'a.cu(4): error: no such x' >&2; exit 2");
        let (unit, stop) = (unit(), AtomicBool::new(false));
        let options = UnitOptions::of(&unit).unwrap();
        let order = order(&unit, &options, Duration::from_secs(20), &stop);
        let failure = nvcc.build(&order, &dir.path().join("out")).unwrap_err();
        assert_eq!(failure.summary, "a.cu(4): error: no such x");
        assert!(failure.log.contains("warning: w"), "{}", failure.log);
    }

    #[test]
    fn a_compiler_that_never_ends_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let nvcc = stand_in(dir.path(), "sleep 1000 & echo $! > \"$(dirname \"$0\")/child\"; wait");
        let (unit, stop) = (unit(), AtomicBool::new(false));
        let options = UnitOptions::of(&unit).unwrap();
        let order = order(&unit, &options, Duration::from_millis(600), &stop);
        let failure = nvcc.build(&order, &dir.path().join("out")).unwrap_err();
        assert_eq!(failure.summary, "the compiler was killed: it ran past its limit of 0.6 s");
        let child = fs::read_to_string(dir.path().join("child")).unwrap();
        let state = || fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        let gone = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(20));
            let state = state();
            state.is_empty() || state.contains(") Z ")
        });
        assert!(gone, "{}", state());
    }

    #[test]
    fn what_does_not_answer_as_nvcc_is_none() {
        assert_eq!(Nvcc::at(PathBuf::from("/bin/false")), None);
        assert_eq!(Nvcc::at(PathBuf::from("/nowhere/nvcc")), None);
    }
}
