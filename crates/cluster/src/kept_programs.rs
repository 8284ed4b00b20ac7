//! Copies of the programs that tasks run, stored next to the jobs. A task must run the program that submitted it, even
//! after an upgrade. Jobs with the same program share one copy. A copy that no job refers to is removed a day after its
//! last use.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::job::{JobError, subfolders};
use super::snapshot::{Snapshot, SnapshotError, hash_of, keep_copy};

const PROGRAMS: &str = ".programs";

/// How long to keep a copy that no job refers to: its job may not be written yet.
const UNNAMED: Duration = Duration::from_hours(24);

/// Hash that identifies a program.
pub fn hash_of_program(program: &Path) -> io::Result<String> {
    hash_of(program)
}

/// Keeps a copy of a program in `folder`, so that replacing the program does not affect tasks. Returns the copy's path
/// and hash.
pub fn keep_program(folder: &Path, program: &Path) -> io::Result<(PathBuf, String)> {
    let place_of = |hash: &str| folder.join(PROGRAMS).join(hash).join("runner");
    let hash = hash_of(program)?;
    let place = place_of(&hash);
    let parent = place.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    // Restart the copy's removal period. This fails for another user's copy, but then this user does not remove it
    // either.
    let _ = File::open(parent).and_then(|parent| parent.set_modified(SystemTime::now()));
    if place.exists() && hash_of(&place)? != hash {
        fs::remove_file(&place)?;
    }
    // A hard link is enough: programs are replaced by a rename. Tasks check the hash, so they notice an overwritten
    // file.
    if !place.exists() && fs::hard_link(program, &place).is_err() && !place.exists() {
        let copied = keep_copy(program, 0o555, place_of)?;
        return Ok((place_of(&copied), copied));
    }
    Ok((place, hash))
}

/// Removes the old copies that no job's snapshot names, and returns how many were removed. Removes none if a snapshot
/// cannot be read.
pub fn remove_unused_programs(folder: &Path) -> u64 {
    let Ok(used) = used_programs(folder) else { return 0 };
    let mut removed = 0;
    for place in subfolders(&folder.join(PROGRAMS)) {
        let is_used = place.file_name().and_then(|name| name.to_str()).is_none_or(|name| used.contains(name));
        let age = fs::metadata(&place).and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        if !is_used && age.is_some_and(|age| age > UNNAMED) {
            removed += u64::from(fs::remove_dir_all(&place).is_ok());
        }
    }
    removed
}

/// Hashes of the programs that the jobs' snapshots name.
fn used_programs(folder: &Path) -> Result<HashSet<String>, JobError> {
    let mut used = HashSet::new();
    for job in subfolders(folder) {
        for id in Snapshot::ids(&job) {
            used.insert(Snapshot::read(&job, &id)?.program);
        }
    }
    Ok(used)
}

/// Fails unless this process runs the program with this hash.
pub fn check_program(hash: &str) -> Result<(), SnapshotError> {
    let program = std::env::current_exe().unwrap_or_default();
    match hash_of(&program) {
        Ok(found) if found == hash => Ok(()),
        Ok(_) => Err(SnapshotError::Changed(program)),
        Err(source) => Err(JobError::Read { path: program, source }.into()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_program_stays_while_a_job_names_it_and_a_day_after_it_was_kept() {
        let jobs = tempfile::tempdir().unwrap();
        let keep = |text: &str, age: Duration| {
            let program = jobs.path().join("program");
            fs::write(&program, text).unwrap();
            let (place, hash) = keep_program(jobs.path(), &program).unwrap();
            fs::remove_file(&program).unwrap();
            File::open(place.parent().unwrap()).unwrap().set_modified(SystemTime::now() - age).unwrap();
            (place, hash)
        };
        let old = Duration::from_hours(25);
        let ((named, hash), (unnamed, _), (young, _)) =
            (keep("a", old), keep("b", old), keep("c", Duration::from_hours(23)));
        let job = jobs.path().join("job");
        let id = Snapshot::copy(&job, (&BTreeSet::new(), &BTreeSet::new()), hash, None).unwrap().write(&job).unwrap();
        let list = job.join("snapshots").join(&id[..16]).join("files.json");
        let text = fs::read(&list).unwrap();
        fs::write(&list, "{").unwrap();
        remove_unused_programs(jobs.path());
        assert!(unnamed.exists(), "a job whose list is damaged may name it");
        fs::write(&list, text).unwrap();
        remove_unused_programs(jobs.path());
        assert_eq!([named.exists(), unnamed.exists(), young.exists()], [true, false, true]);
        // The old job is gone. A new job has kept the program but not written its snapshot yet.
        fs::remove_dir_all(job).unwrap();
        keep("a", Duration::ZERO);
        remove_unused_programs(jobs.path());
        assert!(named.exists());
    }
}
