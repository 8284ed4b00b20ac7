//! nvcc: where it is, and the shared libraries of host functions that it builds for a worker process.
//!
//! NVRTC compiles only device code. So nvcc compiles sources with host code and, together with a host compiler,
//! functions that call CUB, Thrust or cuBLAS. A toolkit's nvcc is in the toolkit's folder, or a fetched one of the same
//! build as NVRTC, so a unit's key covers both. A host compiler is never fetched.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{env, fs};

use super::cache::Cache;
use super::fetch::{FetchError, NVCC, Network, ensure_program, find_program};
use super::key::Compiler;
use super::options::UnitOptions;
use super::pinned::{self, Pinned};
use super::program::{self, Bounds};
use super::toolkit::{Toolkit, ToolkitSource};
use runner_process::programs::Programs;
use runner_process::sandbox::{HOST_COMPILER_VARIABLE, HOST_COMPILERS};
use runner_types::{CompileFailure, CompileUnit, Plugin};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nvcc {
    pub path: PathBuf,
    /// Output of `nvcc --version`.
    version: String,
    /// The toolkit's folder: the parent of `bin`, with links resolved.
    root: PathBuf,
    /// Folders of its own headers and libraries.
    include_dirs: Vec<PathBuf>,
    library_dirs: Vec<PathBuf>,
}

impl Nvcc {
    /// The nvcc of a toolkit, if it is on this machine.
    pub fn of_toolkit(toolkit: &Toolkit, cache: &Cache) -> Option<Self> {
        let path = match &toolkit.source {
            ToolkitSource::System(root) => root.join("bin").join(NVCC),
            ToolkitSource::Fetched => find_program(&cache.program_dir(NVCC, pinned_for(toolkit)?), NVCC).ok()?,
        };
        Self::at(path)
    }

    /// Finds the nvcc of a toolkit; for a fetched toolkit, fetches it if necessary. Progress goes to `say`.
    pub fn ensure(
        toolkit: &Toolkit,
        cache: &Cache,
        network: Network,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, NvccError> {
        let programs = Programs::of_this_machine();
        if env::var_os(HOST_COMPILER_VARIABLE).is_none()
            && !HOST_COMPILERS.iter().any(|name| programs.find(name).is_some())
        {
            return Err(NvccError::NoHostCompiler);
        }
        if let Some(found) = Self::of_toolkit(toolkit, cache) {
            return Ok(found);
        }
        if let ToolkitSource::System(root) = &toolkit.source {
            return Err(NvccError::Incomplete { place: root.display().to_string() });
        }
        let set = pinned_for(toolkit).ok_or_else(|| NvccError::NoPackage(toolkit.describe()))?;
        let offline = NvccError::Offline { build: set.build, mb: set.download_mb };
        let path = ensure_program((NVCC, NVCC), set, cache, (network, offline), say)?;
        let place = cache.program_dir(NVCC, set);
        Self::at(path)
            .ok_or_else(|| FetchError::Incomplete { place, reason: "has an nvcc that does not run".to_owned() }.into())
    }

    /// The nvcc of the toolkit that compiles kernels, otherwise the first on this machine.
    pub fn find(toolkit: &Toolkit, programs: &Programs) -> Option<Self> {
        let beside = match &toolkit.source {
            ToolkitSource::System(root) => Some(root.join("bin").join("nvcc")),
            ToolkitSource::Fetched => None,
        };
        beside.into_iter().chain(programs.find("nvcc")).find_map(Self::at)
    }

    pub fn installed(programs: &Programs) -> Option<Self> {
        programs.find("nvcc").and_then(Self::at)
    }

    pub fn include_dirs(&self) -> &[PathBuf] {
        &self.include_dirs
    }

    /// The nvcc at this path, if it runs.
    pub fn at(path: PathBuf) -> Option<Self> {
        let output = Command::new(&path).arg("--version").stdin(Stdio::null()).output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || version.is_empty() {
            return None;
        }
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let root = real.parent().and_then(Path::parent).map_or_else(PathBuf::new, Path::to_path_buf);
        let paths = |folders: &[&str]| folders.iter().map(|folder| root.join(folder)).collect::<Vec<_>>();
        let include_dirs = paths(&["include", "include/cccl", "targets/x86_64-linux/include"]);
        let library_dirs = paths(&["lib64", "lib", "targets/x86_64-linux/lib"]);
        let library_dirs = library_dirs.into_iter().filter(|folder| folder.is_dir()).collect();
        Some(Self { path, version, root, include_dirs, library_dirs })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Name and version, e.g. `nvcc 13.0.88`.
    pub fn name(&self) -> String {
        let build = self.version.split_whitespace().find_map(|word| word.strip_prefix('V'));
        format!("nvcc {}", build.unwrap_or("of unknown version"))
    }

    /// Compiler properties on which a built library depends. The version covers the toolkit's headers.
    pub(super) fn compiler(&self) -> Compiler<'_> {
        Compiler { identity: self.version.clone(), include_dirs: &self.include_dirs, root: Some(&self.root) }
    }

    /// Builds the library in `folder`; returns it and the compiler's warnings.
    pub(super) fn build(&self, build: &PluginBuild<'_>, folder: &Path) -> Result<(Vec<u8>, String), CompileFailure> {
        let output = folder.join("library");
        let mut command = Command::new(&self.path);
        command.args(build.arguments(&self.library_dirs, &output));
        let readable = build.readable.to_vec();
        let log = program::run(&mut command, &Bounds { readable, folder, limit: build.limit, stop: build.stop })?;
        let library = fs::read(&output).map_err(|error| CompileFailure {
            summary: format!("cannot read what nvcc built: {error}"),
            log: log.clone(),
        })?;
        Ok((library, log))
    }
}

fn pinned_for(toolkit: &Toolkit) -> Option<&'static Pinned> {
    pinned::nvcc(toolkit.info.build.as_deref()?)
}

#[derive(Debug, thiserror::Error)]
pub enum NvccError {
    #[error("nvcc is not in {place}: install the toolkit's compiler, or set RUNNER_TOOLKIT=pinned to fetch one")]
    Incomplete { place: String },
    #[error("there is no nvcc package for {0}: install a CUDA toolkit and set RUNNER_TOOLKIT to its folder")]
    NoPackage(String),
    #[error("nvcc {build} ({mb} MB) is not in the cache, and --offline forbids fetching it: run once without it")]
    Offline { build: &'static str, mb: u32 },
    #[error("nvcc needs a C++ compiler, and neither g++ nor gcc is on the search path: install g++")]
    NoHostCompiler,
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

pub(super) struct PluginBuild<'a> {
    pub unit: &'a CompileUnit,
    pub plugin: &'a Plugin,
    pub options: &'a UnitOptions,
    pub compute_capability: (u32, u32),
    /// Files that the compiler may read.
    pub readable: &'a [PathBuf],
    pub limit: Duration,
    pub stop: &'a AtomicBool,
}

impl PluginBuild<'_> {
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
        // A scratch file has no extension that indicates the language.
        arguments.push("--x=cu".to_owned());
        arguments.push(self.unit.source.display().to_string());
        // RPATH instead of RUNPATH: it also applies to the dependencies of a library, as cuBLAS needs for cuBLASLt.
        for folder in library_dirs {
            arguments.push(format!("--library-path={}", folder.display()));
            arguments.push(format!("--linker-options=--disable-new-dtags,-rpath,{}", folder.display()));
        }
        arguments.extend(self.plugin.libraries.iter().map(|library| format!("--library={library}")));
        arguments
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics to fail, and says why it skips")]
mod tests {
    use std::thread;

    use super::*;
    use runner_process::sandbox;

    fn unit() -> CompileUnit {
        CompileUnit {
            defines: vec![("T".to_owned(), "float".to_owned())],
            plugin: Some(Plugin { libraries: vec!["cublas".to_owned()] }),
            ..CompileUnit::from_kernels("kernels/cub.cu", ["cub_sum"])
        }
    }

    fn build<'a>(
        unit: &'a CompileUnit,
        options: &'a UnitOptions,
        limit: Duration,
        stop: &'a AtomicBool,
    ) -> PluginBuild<'a> {
        PluginBuild {
            unit,
            plugin: unit.plugin.as_ref().unwrap(),
            options,
            compute_capability: (9, 0),
            readable: &[],
            limit,
            stop,
        }
    }

    /// A program that prints nvcc's version if asked and otherwise runs `script`.
    fn fake_nvcc(dir: &Path, script: &str) -> Nvcc {
        let path = dir.join("nvcc");
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit 0; \
             fi\n{script}\n"
        );
        fs::write(dir.join("nvcc.txt"), text).unwrap();
        // Another process writes the file, since a file that this process had open during a fork could not be executed.
        let made = Command::new("install").args(["-m", "755"]).arg(dir.join("nvcc.txt")).arg(&path).status().unwrap();
        assert!(made.success());
        Nvcc::at(path).unwrap()
    }

    #[test]
    fn a_library_is_built_for_the_device_with_what_it_is_linked_with() {
        let unit = unit();
        let options = UnitOptions::parse(&unit).unwrap();
        let stop = AtomicBool::new(false);
        let arguments = build(&unit, &options, Duration::from_secs(1), &stop)
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
        let nvcc =
            fake_nvcc(dir.path(), "echo 'a.cu(3): warning: w' >&2; echo 'a.cu(4): error: no such x' >&2; exit 2");
        let (unit, stop) = (unit(), AtomicBool::new(false));
        let options = UnitOptions::parse(&unit).unwrap();
        let build = build(&unit, &options, Duration::from_mins(2), &stop);
        let failure = nvcc.build(&build, dir.path()).unwrap_err();
        assert_eq!(failure.summary, "a.cu(4): error: no such x");
        assert!(failure.log.contains("warning: w"), "{}", failure.log);
    }

    #[test]
    fn a_compiler_that_never_ends_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let nvcc = fake_nvcc(dir.path(), "sleep 1000 & echo $! > \"$TMPDIR/child\"; wait");
        let (unit, stop) = (unit(), AtomicBool::new(false));
        let options = UnitOptions::parse(&unit).unwrap();
        // On a busy machine the script needs longer to start its child.
        let child = [1, 8, 64].into_iter().find_map(|seconds| {
            let build = build(&unit, &options, Duration::from_secs(seconds), &stop);
            let failure = nvcc.build(&build, dir.path()).unwrap_err();
            let says = format!("killed: it ran past its limit of {seconds} s");
            assert!(failure.summary.contains(&says), "{}", failure.summary);
            fs::read_to_string(dir.path().join("child")).ok().filter(|child| child.ends_with('\n'))
        });
        let child = child.unwrap();
        let state = || fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        let gone = (0..6000).any(|_| {
            thread::sleep(Duration::from_millis(20));
            let state = state();
            state.is_empty() || state.contains(") Z ")
        });
        assert!(gone, "{}", state());
    }

    #[test]
    fn a_compiler_reads_and_writes_nothing_of_the_user() {
        if !sandbox::is_enforced() {
            println!("skipped: the kernel has no Landlock");
            return;
        }
        let folder = || tempfile::tempdir().unwrap();
        let (installed, project, own, home) = (folder(), folder(), folder(), folder());
        fs::write(project.path().join("mine"), "mine").unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        let (mine, secret) = (project.path().join("mine"), home.path().join("secret"));
        let script = |commands: &str| {
            let commands = commands.replace("MINE", mine.to_str().unwrap());
            commands.replace("SECRET", secret.to_str().unwrap()).replace("OUT", own.path().to_str().unwrap())
        };
        let (unit, stop) = (unit(), AtomicBool::new(false));
        let options = UnitOptions::parse(&unit).unwrap();
        let readable = [project.path().to_owned()];
        let build = PluginBuild { readable: &readable, ..build(&unit, &options, Duration::from_mins(2), &stop) };
        let run = |commands: &str| {
            fake_nvcc(installed.path(), &script(commands)).build(&build, own.path()).map_err(|failure| failure.log)
        };
        let commands = "cat MINE > OUT/made 2> /dev/null && mv OUT/made \"$TMPDIR/library\"";
        assert_eq!(run(commands).unwrap().0, b"mine");
        for refused in [
            "cat SECRET > OUT/library",
            "cp SECRET OUT/library",
            "ln -s SECRET OUT/link && cat OUT/link",
            "echo > SECRET",
            "echo > MINE",
            "cat /etc/passwd",
            "sh -c 'cat SECRET'",
            "rm SECRET",
            "ls /root /proc/1",
        ] {
            let log = run(&format!("{refused} || exit 2")).unwrap_err();
            assert!(log.contains("denied"), "{refused}: {log}");
        }
        assert_eq!(fs::read(&secret).unwrap(), b"secret");
        assert_eq!(fs::read(&mine).unwrap(), b"mine");
    }

    #[test]
    fn what_does_not_answer_as_nvcc_is_none() {
        assert_eq!(Nvcc::at(PathBuf::from("/bin/false")), None);
        assert_eq!(Nvcc::at(PathBuf::from("/nowhere/nvcc")), None);
    }
}
