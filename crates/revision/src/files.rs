//! Files of a revision, read from git objects.
//!
//! Nothing is checked out: `list` returns names and object hashes, and `read` gets contents from a single `git
//! cat-file` process.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use super::checkout::Checkout;
use runner_files::regular::{self, LONGEST_VARIABLE};
use runner_process::programs::Programs;
use runner_types::Commit;

/// Why a revision's files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RevisionError {
    #[error("git is not in the search path, and reading a revision needs it")]
    NoGit,
    #[error("{} is not in a git checkout; change to the repository that has the revision", dir.display())]
    NoCheckout { dir: PathBuf },
    #[error("git knows no revision `{revision}` here ({said}); `git log --oneline` lists commits")]
    Unknown { revision: String, said: String },
    #[error("`{path}` is not in revision `{revision}`; a path in a revision begins at the root of the repository")]
    NoPath { revision: String, path: String },
    #[error("the clone is shallow: the older part of this history was not fetched; `git fetch --unshallow` fetches it")]
    Shallow,
    #[error("cannot read revision `{revision}`: {said}")]
    Git { revision: String, said: String },
    #[error(
        "`{path}` (git object {object}) is {} MB, over the limit of {} MB; raise it with {LONGEST_VARIABLE}=MB",
        size >> 20,
        most >> 20
    )]
    TooLong { path: String, object: String, size: u64, most: u64 },
    #[error("cannot run git: {0}")]
    Io(#[from] io::Error),
}

#[derive(Debug)]
pub struct Files {
    git: PathBuf,
    pub(super) checkout: Checkout,
    git_dir: Arc<TempDir>,
    revision: String,
    commit: String,
}

impl Files {
    /// Opens `revision` in the repository of the checkout that contains `dir`.
    pub fn open(dir: &Path, revision: &str, programs: &Programs) -> Result<Self, RevisionError> {
        let git = programs.find("git").ok_or(RevisionError::NoGit)?;
        let checkout = Checkout::around(dir).ok_or_else(|| RevisionError::NoCheckout { dir: dir.to_owned() })?;
        let git_dir = Arc::new(checkout.temporary_git_dir()?);
        let mut files = Self { git, checkout, git_dir, revision: revision.to_owned(), commit: String::new() };
        if revision.starts_with('-') {
            let said = "it looks like an option".to_owned();
            return Err(RevisionError::Unknown { revision: files.revision, said });
        }
        let wanted = format!("{revision}^{{commit}}");
        let named = files.run(files.command(&["rev-parse", "--verify", &wanted]));
        files.commit = match named {
            Ok(name) => String::from_utf8_lossy(&name).trim().to_owned(),
            Err(RevisionError::Git { revision, said }) => return Err(RevisionError::Unknown { revision, said }),
            Err(other) => return Err(other),
        };
        Ok(files)
    }

    /// Files of another commit in the same repository.
    #[must_use]
    pub fn at(&self, commit: &Commit) -> Self {
        Self {
            git: self.git.clone(),
            checkout: self.checkout.clone(),
            git_dir: Arc::clone(&self.git_dir),
            revision: commit.id.clone(),
            commit: commit.id.clone(),
        }
    }

    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Path of a working tree file relative to the repository's root; `None` if outside.
    pub fn path_of(&self, file: &Path) -> Option<String> {
        self.checkout.path_of(file)
    }

    /// All files at or below `path`, with paths relative to the repository's root. An empty path means the root.
    pub fn list(&self, path: &str) -> Result<Vec<File>, RevisionError> {
        let path = path.trim_matches('/');
        let mut command = self.command(&["--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", &self.commit]);
        if !path.is_empty() {
            command.args(["--", path]);
        }
        let listed = self.run(command)?;
        let entries = listed.split(|byte| *byte == 0).filter_map(|entry| {
            // `100644 blob OBJECT\tPATH`. Skips symbolic links and submodules.
            let (facts, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
            let [mode, "blob", object] = facts.split(' ').collect::<Vec<_>>()[..] else { return None };
            let is_file = mode.starts_with("100");
            is_file.then(|| File { path: path.to_owned(), object: object.to_owned() })
        });
        let files: Vec<File> = entries.collect();
        if files.is_empty() {
            return Err(self.lacks(path));
        }
        Ok(files)
    }

    pub(super) fn lacks(&self, path: &str) -> RevisionError {
        RevisionError::NoPath { revision: self.revision.clone(), path: path.to_owned() }
    }

    /// Passes the content of each file to `take`, in order, using one git process.
    pub fn read<E: From<RevisionError>>(
        &self,
        files: &[File],
        mut take: impl FnMut(&File, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let most = regular::longest(regular::LONGEST_DATA).map_err(RevisionError::from)?;
        let (mut git, mut output) = self.start_reading(files).map_err(RevisionError::from)?;
        let taken = files.iter().try_for_each(|file| take(file, self.next_content(&mut output, file, most)?));
        // git may still be writing a file that exceeds the limit.
        let _ = git.kill();
        git.wait().map_err(RevisionError::from)?;
        taken
    }

    /// Starts the git process that outputs the files' contents.
    fn start_reading(&self, files: &[File]) -> io::Result<(Child, BufReader<ChildStdout>)> {
        let mut names = tempfile::tempfile()?;
        for file in files {
            writeln!(names, "{}", file.object)?;
        }
        names.rewind()?;
        let mut command = self.command(&["cat-file", "--batch"]);
        let mut git = command.stdin(names).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = git.stdout.take().ok_or_else(|| io::Error::other("git has no output"))?;
        Ok((git, BufReader::new(output)))
    }

    /// Reads one file from the output of `cat-file --batch`: `OBJECT blob SIZE\nCONTENT\n` or `OBJECT missing\n`.
    fn next_content(&self, output: &mut impl BufRead, file: &File, most: u64) -> Result<Vec<u8>, RevisionError> {
        let mut head = String::new();
        output.read_line(&mut head)?;
        let Some(size) = head.trim_end().split(' ').nth(2).and_then(|size| size.parse::<u64>().ok()) else {
            let said = format!("git does not have the contents of {}; fetch them first", file.path);
            return Err(RevisionError::Git { revision: self.revision.clone(), said });
        };
        if size > most {
            let (path, object) = (file.path.clone(), file.object.clone());
            return Err(RevisionError::TooLong { path, object, size, most });
        }
        let mut content = vec![0; size as usize];
        output.read_exact(&mut content)?;
        output.read_exact(&mut [0])?;
        Ok(content)
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.checkout.command(&self.git, self.git_dir.path());
        command.args(arguments).stderr(Stdio::piped());
        command
    }

    pub(super) fn run(&self, mut command: Command) -> Result<Vec<u8>, RevisionError> {
        let output = command.output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("git failed").trim_start_matches("fatal: ").to_owned();
        Err(RevisionError::Git { revision: self.revision.clone(), said })
    }

    /// Commits after `since` up to this one that changed a file, oldest first. Follows only the first parent of merges,
    /// so that the commits are states of this branch.
    pub fn changes(&self, since: Option<&Self>, path: &str) -> Result<Vec<Change>, RevisionError> {
        let range = since.map_or(self.commit().to_owned(), |since| format!("{}..{}", since.commit(), self.commit()));
        self.refuse_shallow(&range)?;
        let form = ["-z", "--raw", "--no-abbrev", "--no-renames", "--format=%H%x09%cs%x09%s"];
        let mut command = self.command(&["--literal-pathspecs", "log", "--first-parent", "-m", "--reverse"]);
        command.args(form).args([&range, "--", path]);
        Ok(parse_log(&self.run(command)?, path))
    }

    /// Rejects a shallow history, where a commit without fetched parents appears to add all files.
    fn refuse_shallow(&self, range: &str) -> Result<(), RevisionError> {
        let ends: BTreeSet<String> = self.checkout.shallow_commits();
        if ends.is_empty() {
            return Ok(());
        }
        let walked = self.run(self.command(&["rev-list", "--first-parent", range]))?;
        let reached = String::from_utf8_lossy(&walked).lines().any(|commit| ends.contains(commit));
        if reached { Err(RevisionError::Shallow) } else { Ok(()) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path relative to the repository's root, separated by `/`.
    pub path: String,
    /// Object hash of the content.
    pub(super) object: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub commit: Commit,
    /// The file after the commit; `None` if the commit deleted it.
    pub file: Option<File>,
}

/// Parses, for each commit, `HASH\tDATE\tSUBJECT` followed by `:MODE MODE OBJECT OBJECT STATUS` and the path. git
/// terminates each with a NUL byte, so a path may contain any other character.
fn parse_log(listed: &[u8], path: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut parts = listed.split(|byte| *byte == 0);
    while let Some(part) = parts.next() {
        let text = String::from_utf8_lossy(part);
        if let Some(facts) = text.trim_start().strip_prefix(':') {
            let [_, mode, _, object, _] = facts.split(' ').collect::<Vec<_>>()[..] else { continue };
            let is_file = parts.next() == Some(path.as_bytes()) && mode.starts_with("100");
            if let Some(change) = changes.last_mut().filter(|_| is_file) {
                change.file = Some(File { path: path.to_owned(), object: object.to_owned() });
            }
        } else if let [id, date, subject] = text.splitn(3, '\t').collect::<Vec<_>>()[..] {
            let commit = Commit { id: id.to_owned(), date: date.to_owned(), subject: subject.to_owned() };
            changes.push(Change { commit, file: None });
        }
    }
    changes
}
