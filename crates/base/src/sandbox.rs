//! What a compiler or a reference may do once it runs, so that a source which takes it over gains little, and so that
//! what runs is what was hashed.
//!
//! NVRTC reads the toolkit and the hashed files. It opens no file for writing, starts no program and connects to
//! nothing. nvcc, clang, g++ and references are programs that start others: they also read and run what the system has
//! installed, and write to a folder of their own.
//!
//! The kernel enforces this by Landlock (Linux 5.13, connections 6.7). Without it, only the limits of memory and of
//! file sizes hold.

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

/// The newest interface whose rights are all taken away, where the kernel has it.
const NEWEST: ABI = ABI::V6;

/// The largest amount of memory that a compiler may use, in bytes. The largest templates in use take a fourth of it.
const MOST_MEMORY: u64 = 16 << 30;

/// The largest file that a compiler may write, bytes.
const LARGEST_FILE: u64 = 1 << 30;

/// Where systems keep programs, their libraries and the settings that these need to start, and what says how many cores
/// and how much memory there are.
const OF_THE_SYSTEM: [&str; 17] = [
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

/// Environment variables with folders in which compilers and their libraries are searched for.
const SEARCHED: [&str; 8] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
];

/// Environment variable with the host compiler of nvcc.
pub const HOST_COMPILER_VARIABLE: &str = "NVCC_CCBIN";
/// The host compilers of which nvcc takes the first in the search path where that variable is not set.
pub const HOST_COMPILERS: [&str; 2] = ["g++", "gcc"];

/// Confines this thread, and those that it starts, to reading below these places. What is open stays usable. Returns
/// whether the kernel enforces it.
pub fn confine<P: AsRef<Path>>(readable: impl IntoIterator<Item = P>) -> Result<bool, RulesetError> {
    let rules = nothing()?.add_rules(path_beneath_rules(readable, AccessFs::ReadFile | AccessFs::ReadDir))?;
    Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Starts a program from a thread that is confined, so that the program and what it starts are. They read and run what
/// the system has installed and `readable`, and write in `folder`, also their temporary files.
pub fn spawn(command: &mut Command, readable: &[PathBuf], folder: &Path) -> io::Result<Child> {
    command.env("PATH", programs::search_path()).env("TMPDIR", folder);
    // A cache of compiled files would be outside of that folder.
    command.env("CCACHE_DISABLE", "1");
    let confined = || {
        confine_program(readable, folder)
            .map_err(|error| io::Error::other(format!("it cannot be confined: {error}")))?;
        command.spawn()
    };
    let started = thread::scope(|scope| scope.spawn(confined).join());
    started.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it failed")))
}

/// Confines this thread, and the programs that it starts, to reading and running what the system has installed and
/// `readable`, and to writing in `folder`.
fn confine_program(readable: &[PathBuf], folder: &Path) -> Result<(), RulesetError> {
    // What it runs is confined as it is, so a file that may be read may be run.
    let run = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let make = AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::MakeSym | AccessFs::RemoveFile | AccessFs::RemoveDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate;
    let system = OF_THE_SYSTEM.into_iter().map(PathBuf::from).chain(searched());
    nothing()?
        .add_rules(path_beneath_rules(system.chain(readable.iter().cloned()), run))?
        .add_rules(path_beneath_rules([folder], run | make | write | AccessFs::Refer))?
        .add_rules(path_beneath_rules(["/dev/null"], write | AccessFs::ReadFile))?
        .restrict_self()?;
    Ok(())
}

/// Returns a set of rules that grants no rights at all.
fn nothing() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

/// Returns the folders that the environment names, and the host compiler's installation.
fn searched() -> Vec<PathBuf> {
    let folders = SEARCHED.into_iter().filter_map(env::var_os);
    let folders: Vec<PathBuf> = folders.flat_map(|value| env::split_paths(&value).collect::<Vec<_>>()).collect();
    let path = programs::Programs::in_dirs(env::split_paths(&programs::search_path()));
    let named = env::var_os(HOST_COMPILER_VARIABLE).map(PathBuf::from);
    let compilers = named.into_iter().chain(HOST_COMPILERS.into_iter().filter_map(|name| path.find(name)));
    let installed: Vec<PathBuf> = compilers.map(|program| installation(&program)).collect();
    // A relative folder is one of the checkout.
    folders.into_iter().filter(|folder| folder.is_absolute()).chain(installed).collect()
}

/// Returns the folder that a program was installed to, links resolved: the parent of `bin`. A program in another
/// folder, or in `bin` of the home folder, is taken for alone in it.
pub fn installation(program: &Path) -> PathBuf {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let folder = real.parent().map(Path::to_path_buf).unwrap_or_default();
    match folder.parent().filter(|_| folder.ends_with("bin")) {
        Some(parent) if !has_home(parent) => parent.to_owned(),
        _ => folder,
    }
}

/// Whether the home folder is in this one: it is no folder of one program alone.
pub fn has_home(folder: &Path) -> bool {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    home.is_some_and(|home| home.canonicalize().unwrap_or(home).starts_with(folder))
}

/// Whether every compiler may read below this folder, because it is one of the system or of the search path.
pub fn is_always_readable(folder: &Path) -> bool {
    let mut readable = OF_THE_SYSTEM.into_iter().map(PathBuf::from).chain(searched());
    readable.any(|readable| folder.starts_with(readable.canonicalize().unwrap_or(readable)))
}

/// Limits the memory of a program that was just started and the size of the files that it writes, and has the system
/// end it before others if memory runs out. Compiling works even if the system refuses.
pub fn limit_program(program: u32) {
    let Some(pid) = i32::try_from(program).ok().and_then(Pid::from_raw) else { return };
    let _ = prlimit(Some(pid), Resource::Data, at_most(MOST_MEMORY));
    let _ = prlimit(Some(pid), Resource::Fsize, at_most(LARGEST_FILE));
    let _ = std::fs::write(format!("/proc/{program}/oom_score_adj"), "1000");
}

fn at_most(limit: u64) -> Rlimit {
    Rlimit { current: Some(limit), maximum: Some(limit) }
}

/// Limits the memory of this process and the size of the files that it writes. Compiling works even if the system
/// refuses.
pub fn limit() {
    let _ = setrlimit(Resource::Data, at_most(MOST_MEMORY));
    let _ = setrlimit(Resource::Fsize, at_most(LARGEST_FILE));
}

/// Whether a confined program says that it was denied something.
pub fn is_denied(errors: &str) -> bool {
    ["Permission denied", "Operation not permitted"].iter().any(|denied| errors.contains(denied)) && is_enforced()
}

/// Returns what to add to the errors of a compiler that was denied something; nothing for other errors.
pub fn hint(errors: &str) -> &'static str {
    // So the assembler names the file of an `.incbin` that it may not read.
    let is_of_incbin = errors.contains("Error: file not found: ") && is_enforced();
    if !is_of_incbin && !is_denied(errors) {
        return "";
    }
    "; a compiler may read only the source and the files that `#include` names in it, and its own"
}

/// Whether compilers are confined on this machine.
pub fn is_enforced() -> bool {
    // Only the thread that asks loses its rights.
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
