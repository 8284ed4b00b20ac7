//! What a compiler may do once it runs: read the toolkit and the project. It opens no file for writing, starts no program
//! and connects to nothing, so that a source which takes the compiler over gains little.
//!
//! The kernel enforces this by Landlock (Linux 5.13, connections 6.7). Without it, only the limits of memory and of file
//! sizes hold.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, setrlimit};

/// The newest interface whose rights are all taken away, where the kernel has it.
const NEWEST: ABI = ABI::V6;

/// Most memory of a compiler, bytes. The largest templates in use take a fourth of it.
const MOST_MEMORY: u64 = 16 << 30;

/// The largest file that a compiler may write, bytes.
const LARGEST_FILE: u64 = 1 << 30;

/// Confines this thread, and those that it starts, to reading below these places. What is open stays usable. Returns
/// whether the kernel enforces it.
pub(super) fn confine<P: AsRef<Path>>(readable: impl IntoIterator<Item = P>) -> Result<bool, RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::ReadFile | AccessFs::ReadDir))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Limits the memory of this process and the size of the files that it writes. If the system refuses, compiling works
/// all the same.
pub(super) fn limit() {
    let at_most = |limit| Rlimit { current: Some(limit), maximum: Some(limit) };
    let _ = setrlimit(Resource::Data, at_most(MOST_MEMORY));
    let _ = setrlimit(Resource::Fsize, at_most(LARGEST_FILE));
}

/// Whether compilers are confined on this machine.
pub fn is_enforced() -> bool {
    // Only the thread that asks loses its rights.
    std::thread::spawn(|| confine([Path::new("/")]))
        .join()
        .is_ok_and(|confined| confined.is_ok_and(|enforced| enforced))
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
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("project/kernels")).unwrap();
        for name in ["project/kernels/a.cuh", "secret"] {
            fs::write(at(name), name).unwrap();
        }
        std::os::unix::fs::symlink(at("secret"), at("project/link")).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut output = File::create(at("output")).unwrap();
        let mut known = File::open(at("secret")).unwrap();
        let confined = || {
            assert!(confine([at("project"), at("missing")]).unwrap());
            assert_eq!(fs::read_to_string(at("project/kernels/a.cuh")).unwrap(), "project/kernels/a.cuh");
            let denied = |what: &str, result: std::io::Result<()>| {
                assert_eq!(result.map_err(|e| e.kind()), Err(ErrorKind::PermissionDenied), "{what}");
            };
            denied("reads a file of the user", fs::read(at("secret")).map(drop));
            denied("reads through a link", fs::read(at("project/link")).map(drop));
            denied("lists a folder", fs::read_dir(dir.path()).map(drop));
            denied("writes in the project", fs::write(at("project/kernels/a.cuh"), "mine"));
            denied("creates a file", File::create(at("new")).map(drop));
            denied("removes a file", fs::remove_file(at("project/kernels/a.cuh")));
            denied("runs a program", Command::new("/bin/true").status().map(drop));
            let mut text = String::new();
            known.read_to_string(&mut text).unwrap();
            output.write_all(b"code").unwrap();
            (text, TcpStream::connect(address).map(drop))
        };
        let (read, connected) = std::thread::scope(|scope| scope.spawn(confined).join().unwrap());
        assert_eq!(read, "secret", "a file that was open");
        assert_eq!(fs::read(at("output")).unwrap(), b"code");
        assert_eq!(fs::read(at("project/kernels/a.cuh")).unwrap(), b"project/kernels/a.cuh");
        // Linux 6.7 and newer.
        if let Err(error) = connected {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        }
        assert_eq!(fs::read(at("secret")).unwrap(), b"secret", "other threads keep their rights");
    }
}
