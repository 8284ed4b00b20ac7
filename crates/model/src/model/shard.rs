//! Shards: deterministic subsets of the groups of a plan.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of several shards, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    /// From 1 to `of`.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Shard {
    /// `03-of-40`: the name of its folder, padded so that folders are in order of number.
    pub fn folder(self) -> String {
        let width = self.of.to_string().len();
        format!("{:0width$}-of-{}", self.index, self.of)
    }
}

impl fmt::Display for Shard {
    /// `3/40`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((index, of)) if 1 <= index && index <= of => Ok(Self { index, of }),
            Some(_) => Err("the shards of I/N are numbered from 1 to N".to_owned()),
            None => Err("write I/N, for example 3/40".to_owned()),
        }
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
        for wrong in ["0/4", "5/4", "3", "a/b", "-1/4", "1/0"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
