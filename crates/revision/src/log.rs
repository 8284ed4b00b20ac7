//! Commits that changed a file, and the file's content after each.

use std::collections::BTreeSet;

use super::files::{File, Files, RevisionError};
use runner_types::Commit;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub commit: Commit,
    /// The file after the commit; `None` if the commit deleted it.
    pub file: Option<File>,
}

impl Files {
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
