//! Shards: deterministic subsets of the groups of a plan, and the position of a group in its plan.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum number of shards of a plan. Each may have a folder, and a merge lists the missing ones.
const MOST_SHARDS: u32 = 1_000_000;

/// Identifies a group, so that a plan of selected groups can be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPlace {
    /// Index of the group in the whole plan.
    pub ordinal: u32,
    /// Index of any point of the group.
    pub point: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Numbers")]
pub struct Shard {
    /// Index of the shard, from 1 to `of`.
    pub index: u32,
    pub of: u32,
}

/// A shard as stored in a file, not yet validated.
#[derive(Deserialize)]
struct Numbers {
    index: u32,
    of: u32,
}

impl TryFrom<Numbers> for Shard {
    type Error = String;

    fn try_from(Numbers { index, of }: Numbers) -> Result<Self, String> {
        if of > MOST_SHARDS {
            return Err(format!("a plan has at most {MOST_SHARDS} shards, not {of}"));
        }
        if !(1..=of).contains(&index) {
            return Err("the shards of I/N are numbered from 1 to N".to_owned());
        }
        Ok(Self { index, of })
    }
}

impl Shard {
    /// Folder name, such as `03-of-40`. Zero-padded, so that folders sort by index.
    pub fn folder(self) -> String {
        let width = self.of.to_string().len();
        format!("{:0width$}-of-{}", self.index, self.of)
    }
}

impl fmt::Display for Shard {
    /// Formats the shard like `3/40`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        let (index, of) = parsed.ok_or("write I/N, for example 3/40")?;
        Numbers { index, of }.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_written_as_its_number_and_how_many_there_are() {
        assert_eq!("3/40".parse(), Ok(Shard { index: 3, of: 40 }));
        assert_eq!(Shard { index: 3, of: 40 }.folder(), "03-of-40");
        assert_eq!(Shard { index: 3, of: 40 }.to_string(), "3/40");
        for wrong in ["0/4", "5/4", "3", "a/b", "-1/4", "1/0", "1/1000001"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_shard_in_a_file_is_checked_as_one_on_the_command_line() {
        let read = |text: &str| serde_json::from_str::<Shard>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"index":3,"of":40}"#), Ok(Shard { index: 3, of: 40 }));
        for (index, of) in [(0, 4), (5, 4), (1, 4_000_000_000_u32)] {
            assert!(read(&format!(r#"{{"index":{index},"of":{of}}}"#)).is_err(), "{index}/{of}");
        }
    }
}
