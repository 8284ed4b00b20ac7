//! The commits that changed a file, and what it held after each.

use std::collections::BTreeSet;

use super::files::{Files, RevisionError, contents};
use crate::model::Commit;

impl Files {
    /// The commits up to this one that changed a file, the oldest first. Of a merge only the first parent counts, so
    /// that they are the states which this branch had. `since` and what is before it are left out.
    pub fn changes(&self, since: Option<&Self>, path: &str) -> Result<Vec<Commit>, RevisionError> {
        let range = since.map_or(self.commit().to_owned(), |since| format!("{}..{}", since.commit(), self.commit()));
        self.refuse_shallow(&range)?;
        let log =
            ["--literal-pathspecs", "log", "--first-parent", "--reverse", "--format=%H%x09%cs%x09%s", &range, "--"];
        let mut command = self.command(&log);
        command.arg(path);
        let listed = self.run(command)?;
        let commit = |line: &str| {
            let mut parts = line.splitn(3, '\t').map(str::to_owned);
            Some(Commit { id: parts.next()?, date: parts.next()?, subject: parts.next()? })
        };
        Ok(String::from_utf8_lossy(&listed).lines().filter_map(commit).collect())
    }

    /// A commit whose parents were not fetched seems to add all files.
    fn refuse_shallow(&self, range: &str) -> Result<(), RevisionError> {
        let ends: BTreeSet<String> = self.checkout.shallow_commits();
        if ends.is_empty() {
            return Ok(());
        }
        let walked = self.run(self.command(&["rev-list", "--first-parent", range]))?;
        let reached = String::from_utf8_lossy(&walked).lines().any(|commit| ends.contains(commit));
        if reached { Err(RevisionError::Shallow) } else { Ok(()) }
    }

    /// A file after each of these commits; `None` where it was removed.
    pub fn versions(&self, path: &str, commits: &[Commit]) -> Result<Vec<Option<Vec<u8>>>, RevisionError> {
        contents(self, commits.iter().map(|commit| format!("{}:{path}", commit.id)))
    }
}
