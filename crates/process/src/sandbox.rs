//! Confines compilers and references, so that a malicious source gains little and only hashed files are compiled.
//!
//! NVRTC may read the toolkit and the hashed files. It may not write files, start programs or connect to the network.
//! nvcc, clang, g++ and references start other programs: these may also read and run what is installed on the system,
//! and write to their own folder.
//!
//! The kernel enforces this through Landlock (Linux 5.13; network connections need 6.7). Without Landlock, only the
//! limits on memory and file sizes apply.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Pid, Resource, Rlimit, prlimit, setrlimit};

use crate::programs;

/// Newest Landlock ABI. All of its access rights that the kernel supports are denied.
const NEWEST: ABI = ABI::V6;

/// Memory limit of a compiler in bytes. The largest templates in use need a quarter of it.
const MOST_MEMORY: u64 = 16 << 30;

/// Size limit of a file that a compiler writes, in bytes.
const LARGEST_FILE: u64 = 1 << 30;

/// Where systems keep programs, libraries and settings, plus the files that report the number of cores and the memory
/// size.
const SYSTEM_PATHS: [&str; 17] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix",
    "/gnu",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/clang",
    "/dev/urandom",
    "/dev/zero",
    "/sys/devices/system",
    "/proc/cpuinfo",
    "/proc/meminfo",
];

/// Environment variables that name folders for compilers to search.
const SEARCHED_VARIABLES: [&str; 8] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
];

/// Environment variable that sets nvcc's host compiler.
pub const HOST_COMPILER_VARIABLE: &str = "NVCC_CCBIN";
/// Host compilers that nvcc looks for on the search path if [`HOST_COMPILER_VARIABLE`] is unset.
pub const HOST_COMPILERS: [&str; 2] = ["g++", "gcc"];

/// Restricts this thread and its children to reading below these paths. Files that are already open stay usable.
/// Returns whether the kernel enforces the restriction.
pub fn confine<P: AsRef<Path>>(readable: impl IntoIterator<Item = P>) -> Result<bool, RulesetError> {
    let rules = nothing()?.add_rules(path_beneath_rules(readable, AccessFs::ReadFile | AccessFs::ReadDir))?;
    Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Starts a program from a confined thread, so that it and its children are confined too. They may read and run
/// `readable` and what is installed on the system. They may write only to `folder`, which also holds temporary files.
pub fn spawn(command: &mut Command, readable: &[PathBuf], folder: &Path) -> io::Result<Child> {
    command.env("PATH", programs::search_path()).env("TMPDIR", folder);
    // ccache would write outside `folder`.
    command.env("CCACHE_DISABLE", "1");
    let confined = || {
        confine_program(readable, folder).map_err(|error| io::Error::other(format!("confinement failed: {error}")))?;
        command.spawn()
    };
    let started = thread::scope(|scope| scope.spawn(confined).join());
    started.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it failed")))
}

/// Confines this thread and the programs that it starts. They may read and run `readable` and what is installed on the
/// system, and write to `folder`.
fn confine_program(readable: &[PathBuf], folder: &Path) -> Result<(), RulesetError> {
    // Programs that a compiler starts are confined too, so it may run any file that it may read.
    let run = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let make = AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::MakeSym | AccessFs::RemoveFile | AccessFs::RemoveDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate;
    let system = SYSTEM_PATHS.into_iter().map(PathBuf::from).chain(searched());
    nothing()?
        .add_rules(path_beneath_rules(system.chain(readable.iter().cloned()), run))?
        .add_rules(path_beneath_rules([folder], run | make | write | AccessFs::Refer))?
        .add_rules(path_beneath_rules(["/dev/null"], write | AccessFs::ReadFile))?
        .restrict_self()?;
    Ok(())
}

/// A ruleset that grants no access.
fn nothing() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

/// Folders named by environment variables, and the host compiler's installation.
fn searched() -> Vec<PathBuf> {
    let folders = SEARCHED_VARIABLES.into_iter().filter_map(env::var_os);
    let folders: Vec<PathBuf> = folders.flat_map(|value| env::split_paths(&value).collect::<Vec<_>>()).collect();
    let path = programs::Programs::in_dirs(env::split_paths(&programs::search_path()));
    let named = env::var_os(HOST_COMPILER_VARIABLE).map(PathBuf::from);
    let compilers = named.into_iter().chain(HOST_COMPILERS.into_iter().filter_map(|name| path.find(name)));
    let installed: Vec<PathBuf> = compilers.map(|program| installation(&program)).collect();
    // A relative folder would be inside the checkout.
    folders.into_iter().filter(|folder| folder.is_absolute()).chain(installed).collect()
}

/// Installation folder of a program: the parent of its `bin` folder, with links resolved. If the program is elsewhere,
/// or in the home folder's `bin`, the folder that contains it.
pub fn installation(program: &Path) -> PathBuf {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let folder = real.parent().map(Path::to_path_buf).unwrap_or_default();
    match folder.parent().filter(|_| folder.ends_with("bin")) {
        Some(parent) if !has_home(parent) => parent.to_owned(),
        _ => folder,
    }
}

/// Whether `folder` contains the home folder, so that it cannot be the installation folder of a single program.
pub fn has_home(folder: &Path) -> bool {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    home.is_some_and(|home| home.canonicalize().unwrap_or(home).starts_with(folder))
}

/// Whether every compiler may read this folder because it belongs to the system or to the search path.
pub fn is_always_readable(folder: &Path) -> bool {
    let mut readable = SYSTEM_PATHS.into_iter().map(PathBuf::from).chain(searched());
    readable.any(|readable| folder.starts_with(readable.canonicalize().unwrap_or(readable)))
}

/// Limits the memory and file sizes of a newly started program, and makes it the OOM killer's first choice. If the
/// system refuses, the program runs without limits.
pub fn limit_program(program: u32) {
    let Some(pid) = i32::try_from(program).ok().and_then(Pid::from_raw) else { return };
    let _ = prlimit(Some(pid), Resource::Data, at_most(MOST_MEMORY));
    let _ = prlimit(Some(pid), Resource::Fsize, at_most(LARGEST_FILE));
    let _ = std::fs::write(format!("/proc/{program}/oom_score_adj"), "1000");
}

fn at_most(limit: u64) -> Rlimit {
    Rlimit { current: Some(limit), maximum: Some(limit) }
}

/// Limits the memory and file sizes of this process. If the system refuses, compilation continues without limits.
pub fn limit() {
    let _ = setrlimit(Resource::Data, at_most(MOST_MEMORY));
    let _ = setrlimit(Resource::Fsize, at_most(LARGEST_FILE));
}

/// Whether a compiler's error output shows that it was denied access.
pub fn is_denied(errors: &str) -> bool {
    ["Permission denied", "Operation not permitted"].iter().any(|denied| errors.contains(denied)) && is_enforced()
}

/// Hint to append to a compiler's error output if it was denied access; otherwise empty.
pub fn hint(errors: &str) -> &'static str {
    // The assembler's message for an `.incbin` file that it may not read.
    let is_of_incbin = errors.contains("Error: file not found: ") && is_enforced();
    if !is_of_incbin && !is_denied(errors) {
        return "";
    }
    "; a compiler may read only its own files, the source, and the files included with `#include`"
}

/// Whether compilers are confined on this machine.
pub fn is_enforced() -> bool {
    // Confines only a throwaway thread.
    thread::spawn(|| confine([Path::new("/")])).join().is_ok_and(|confined| confined.is_ok_and(|enforced| enforced))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics to fail, and says why it skips")]
mod tests {
    use std::fs::{self, File};
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    use super::*;

    #[test]
    fn a_confined_thread_reads_the_project_and_does_nothing_else() {
        if !is_enforced() {
            println!("skipped: the kernel has no Landlock");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir_all(path("project/kernels")).unwrap();
        for name in ["project/kernels/a.cuh", "secret"] {
            fs::write(path(name), name).unwrap();
        }
        std::os::unix::fs::symlink(path("secret"), path("project/link")).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut output = File::create(path("output")).unwrap();
        let mut known = File::open(path("secret")).unwrap();
        let confined = || {
            assert!(confine([path("project"), path("missing")]).unwrap());
            assert_eq!(fs::read_to_string(path("project/kernels/a.cuh")).unwrap(), "project/kernels/a.cuh");
            let denied = |what: &str, result: io::Result<()>| {
                assert_eq!(result.map_err(|e| e.kind()), Err(ErrorKind::PermissionDenied), "{what}");
            };
            denied("reads a file of the user", fs::read(path("secret")).map(drop));
            denied("reads through a link", fs::read(path("project/link")).map(drop));
            denied("lists a folder", fs::read_dir(dir.path()).map(drop));
            denied("writes in the project", fs::write(path("project/kernels/a.cuh"), "mine"));
            denied("creates a file", File::create(path("new")).map(drop));
            denied("removes a file", fs::remove_file(path("project/kernels/a.cuh")));
            denied("runs a program", Command::new("/bin/true").status().map(drop));
            let mut text = String::new();
            known.read_to_string(&mut text).unwrap();
            output.write_all(b"code").unwrap();
            (text, TcpStream::connect(address).map(drop))
        };
        let (read, connected) = thread::scope(|scope| scope.spawn(confined).join().unwrap());
        assert_eq!(read, "secret", "a file that was open");
        assert_eq!(fs::read(path("output")).unwrap(), b"code");
        assert_eq!(fs::read(path("project/kernels/a.cuh")).unwrap(), b"project/kernels/a.cuh");
        // Linux 6.7 and newer refuse the connection.
        if let Err(error) = connected {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        }
        assert_eq!(fs::read(path("secret")).unwrap(), b"secret", "other threads keep their rights");
    }
}
