//! Files that list the groups of each shard of an experiment. The first submission plans them once. A task then reads
//! only the groups of its own shards: it need not plan the rest, and a different version of the program cannot divide
//! the work differently.
//!
//! Format: a sealed file of little-endian `u32`. For each shard, the number of groups before it; then the total number
//! of groups; then, for each group, its ordinal in the plan and a point in it.

use std::io;
use std::path::{Path, PathBuf};

use super::job::{Experiment, JobError};
use runner_files::regular;
use runner_files::sealed;
use runner_types::{GroupPlace, Shard};

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
    Ok(sealed::write(&path(dir, experiment), &bytes)?)
}

/// Whether the experiment's file of groups is readable and undamaged.
pub fn are_groups_sound(dir: &Path, experiment: &Experiment) -> bool {
    content(&path(dir, experiment)).is_ok()
}

pub fn read_groups(dir: &Path, experiment: &Experiment, shard: Shard) -> Result<Vec<GroupPlace>, JobError> {
    let path = path(dir, experiment);
    let content = content(&path)?;
    let words = content.as_chunks::<4>().0;
    let number = |place: u64| words.get(usize::try_from(place).ok()?).map(|word| u32::from_le_bytes(*word));
    let index = u64::from(shard.index) - 1;
    let group = |place: u64| Some(GroupPlace { ordinal: number(place)?, point: number(place + 1)? });
    let groups = || {
        let (start, end) = (number(index)?, number(index + 1)?);
        let first = u64::from(shard.of) + 1;
        (start..end)
            .map(|place| group(first + 2 * u64::from(place)))
            .collect::<Option<Vec<_>>>()
            .filter(|_| start <= end)
    };
    groups().ok_or_else(|| JobError::Invalid { path, why: format!("it has no groups for shard {shard}") })
}

/// Content of a file without its seal. Files of older versions have no seal and start with a zero word.
fn content(path: &Path) -> Result<Vec<u8>, JobError> {
    let bytes = regular::read_data(path, regular::LONGEST_DATA)
        .map_err(|source| JobError::Read { path: path.to_owned(), source })?;
    if bytes.starts_with(&[0; 4]) {
        return Ok(bytes);
    }
    sealed::read(path).ok_or_else(|| {
        let source = io::Error::new(io::ErrorKind::InvalidData, "it is damaged; submit again");
        JobError::Read { path: path.to_owned(), source }
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_its_groups_and_a_damaged_file_has_none() {
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
        assert!(error.ends_with("it is damaged; submit again"), "{error}");
        // Format of older versions: two groups of the only shard.
        std::fs::write(&file, [0, 2, 0, 3, 2, 9].map(u32::to_le_bytes).concat()).unwrap();
        assert_eq!(read_groups(dir.path(), &experiment, Shard { index: 1, of: 1 }).unwrap(), shards[0]);
    }
}
