//! `runner --version` and the commit that the build script reads.

#[path = "../../../build/commit.rs"]
mod commit;

use std::fs;
use std::path::Path;
use std::process::Command;

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

fn printed(flag: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).arg(flag).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(root: &Path) -> Option<String> {
    commit::head(root).map(|head| head.commit)
}

#[test]
fn the_version_names_the_commit_and_the_toolkit() {
    let package = env!("CARGO_PKG_VERSION");
    assert_eq!(printed("-V"), format!("runner {package}\n"));
    let long = printed("--version");
    assert!(long.starts_with(&format!("runner {package} (")) && long.contains("CUDA toolkit 13."), "{long}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(long.contains(", CUDA"), commit::head(root).is_some(), "{long}");
}

#[test]
fn a_reference_is_read_from_its_file_or_from_the_packed_ones() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), ".git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(read(root.path()), None, "no commit yet");
    write(root.path(), ".git/packed-refs", &format!("# pack-refs\n{HASH} refs/heads/main\n"));
    assert_eq!(read(root.path()).as_deref(), Some(HASH));
    let newer = HASH.replace('0', "f");
    write(root.path(), ".git/refs/heads/main", &format!("{newer}\n"));
    assert_eq!(read(root.path()), Some(newer));
}

#[test]
fn a_detached_head_and_a_linked_worktree_are_read() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "main/.git/HEAD", &format!("{HASH}\n"));
    assert_eq!(read(&root.path().join("main")).as_deref(), Some(HASH));
    write(root.path(), "main/.git/refs/heads/topic", &format!("{HASH}\n"));
    write(root.path(), "main/.git/worktrees/topic/HEAD", "ref: refs/heads/topic\n");
    write(root.path(), "main/.git/worktrees/topic/commondir", "../..\n");
    write(root.path(), "topic/.git", "gitdir: ../main/.git/worktrees/topic\n");
    let head = commit::head(&root.path().join("topic")).unwrap();
    assert_eq!(head.commit, HASH);
    assert!(head.depends_on.iter().all(|file| file.exists()), "{head:?}");
    assert_eq!(head.depends_on.len(), 2, "HEAD and the reference: {head:?}");
}

#[test]
fn a_folder_without_a_repository_has_no_commit() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(commit::head(root.path()), None);
    write(root.path(), ".git/HEAD", "nonsense\n");
    assert_eq!(commit::head(root.path()), None);
}
