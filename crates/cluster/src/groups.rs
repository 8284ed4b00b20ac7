//! Files that list the groups of each shard of an experiment. The first submission plans them once. A task then reads
//! only its own shards' groups: it need not plan the rest, and another version of the program cannot divide the work
//! differently.
//!
//! Format, in little-endian `u32`: for each shard the number of groups before it, the total number of groups, and
//! then for each group its ordinal in the plan and a point in it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::job::{Experiment, JobError};
use runner_files::atomic;
use runner_files::regular;
use runner_types::{GroupPlace, Shard};

/// Upper limit of the groups of a plan, the same as for its cases.
const MOST_GROUPS: u32 = 1_000_000;

/// Bytes per number.
const NUMBER: u64 = 4;

fn path(dir: &Path, experiment: &Experiment) -> PathBuf {
    dir.join("groups").join(&experiment.name)
}

pub fn write_groups(dir: &Path, experiment: &Experiment, shards: &[Vec<GroupPlace>]) -> Result<(), JobError> {
    let mut before = 0_u32;
    let mut numbers: Vec<u32> = Vec::with_capacity(shards.len() + 1);
    for groups in shards {
        numbers.push(before);
        before += groups.len() as u32;
    }
    numbers.push(before);
    numbers.extend(shards.iter().flatten().flat_map(|group| [group.ordinal, group.point]));
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    Ok(atomic::write(&path(dir, experiment), &bytes)?)
}

pub fn read_groups(dir: &Path, experiment: &Experiment, shard: Shard) -> Result<Vec<GroupPlace>, JobError> {
    let path = path(dir, experiment);
    let unreadable = |source| JobError::Read { path: path.clone(), source };
    let mut file = regular::open(&path).map_err(unreadable)?;
    let bounds = numbers(&mut file, u64::from(shard.index) - 1, 2).map_err(unreadable)?;
    let count = match bounds[..] {
        [start, end] if start <= end && end <= MOST_GROUPS => end - start,
        _ => {
            let why = format!("it has no groups of shard {shard}");
            return Err(JobError::Invalid { path, why });
        }
    };
    let first = u64::from(shard.of) + 1 + 2 * u64::from(bounds[0]);
    let found = numbers(&mut file, first, 2 * u64::from(count)).map_err(unreadable)?;
    Ok(found.chunks_exact(2).map(|pair| GroupPlace { ordinal: pair[0], point: pair[1] }).collect())
}

/// Reads `count` numbers, beginning with number `first`.
fn numbers(file: &mut File, first: u64, count: u64) -> io::Result<Vec<u32>> {
    file.seek(SeekFrom::Start(first * NUMBER))?;
    let mut bytes = vec![0; (count * NUMBER) as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number)).collect())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_its_groups_and_a_file_that_was_cut_off_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let experiment = Experiment { name: "scale".to_owned(), ..Experiment::default() };
        let place = |ordinal, point| GroupPlace { ordinal, point };
        let shards = [vec![place(0, 3), place(2, 9)], vec![], vec![place(1, 5)]];
        write_groups(dir.path(), &experiment, &shards).unwrap();
        for (index, expected) in (1..).zip(&shards) {
            assert_eq!(read_groups(dir.path(), &experiment, Shard { index, of: 3 }).unwrap(), *expected);
        }
        let file = path(dir.path(), &experiment);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - 4]).unwrap();
        assert!(read_groups(dir.path(), &experiment, Shard { index: 3, of: 3 }).is_err());
        std::fs::write(&file, [0xff; 64]).unwrap();
        let error = read_groups(dir.path(), &experiment, Shard { index: 1, of: 3 }).unwrap_err().to_string();
        assert!(error.contains("no groups of shard 1/3"), "{error}");
    }
}
