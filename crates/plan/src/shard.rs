//! Shards: deterministic subsets of the groups of a plan, for runs that share the work.
//!
//! A group is never divided, since its cases are compared with each other on one device. Groups go to shards by their
//! estimated costs, the costliest first, each to the shard with the least so far (the rule of Graham, 1969: no shard is
//! more than 4/3 of the best possible). The costs are those of an unknown device, so that every machine divides a plan
//! in the same way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use rayon::prelude::*;

use super::{GroupCost, PlanOptions, expand, resolve};
use crate::experiment::Manifest;
use crate::model::{Diagnostics, GroupKey, Shard};

/// The groups of a plan with their costs, from which shards are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Shards {
    groups: Vec<(GroupKey, f64)>,
}

impl Shards {
    /// Returns the groups of the plan that `options` make.
    ///
    /// # Errors
    ///
    /// The errors are those of [`expand`].
    pub fn plan(manifest: &Manifest, options: &PlanOptions) -> Result<Self, Diagnostics> {
        let anywhere = PlanOptions { device: None, ..options.clone() };
        let plan = expand(manifest, &anywhere)?;
        let cost = |index| {
            let group = resolve(manifest, &plan, index);
            let seconds = GroupCost::estimate(&group.job, plan.backend(), None).seconds;
            (group.job.key, seconds)
        };
        Ok(Self { groups: (0..plan.group_count()).into_par_iter().map(cost).collect() })
    }

    /// Returns the estimated seconds of all groups together.
    pub fn seconds(&self) -> f64 {
        self.groups.iter().map(|(_, seconds)| seconds).sum()
    }

    /// Returns how many groups there are.
    pub const fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns how many shards have at least `least` seconds of work each: at least one, and at most one for each
    /// group.
    pub fn count(&self, least: f64) -> u32 {
        let fitting = if least > 0.0 { (self.seconds() / least).floor() } else { f64::INFINITY };
        fitting.clamp(1.0, self.groups.len().max(1) as f64) as u32
    }

    /// Returns the groups of one shard.
    pub fn keys(&self, shard: Shard) -> HashSet<GroupKey> {
        let own = |(group, owner): (&(GroupKey, f64), u32)| (owner == shard.index).then(|| group.0.clone());
        self.groups.iter().zip(self.owners(shard.of)).filter_map(own).collect()
    }

    /// Returns the estimated seconds of each of `shards` shards.
    pub fn seconds_of(&self, shards: u32) -> Vec<f64> {
        let mut seconds = vec![0.0; shards as usize];
        for ((_, cost), owner) in self.groups.iter().zip(self.owners(shards)) {
            seconds[owner as usize - 1] += cost;
        }
        seconds
    }

    /// Returns the number of each group's shard, from 1.
    fn owners(&self, shards: u32) -> Vec<u32> {
        // Nanoseconds are ordered; a group without an estimate still takes its place.
        let nanoseconds = |seconds: f64| ((seconds * 1e9) as u64).saturating_add(1);
        let mut order: Vec<(u64, usize)> =
            self.groups.iter().enumerate().map(|(at, (_, seconds))| (nanoseconds(*seconds), at)).collect();
        order.sort_by_key(|&(cost, at)| (Reverse(cost), at));
        let mut loads: BinaryHeap<Reverse<(u64, u32)>> = (1..=shards).map(|shard| Reverse((0, shard))).collect();
        let mut owners = vec![1; self.groups.len()];
        for (cost, at) in order {
            let Some(Reverse((load, shard))) = loads.pop() else { break };
            owners[at] = shard;
            loads.push(Reverse((load.saturating_add(cost), shard)));
        }
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    fn shards(costs: &[f64]) -> Shards {
        let key = |at: usize| GroupKey(vec![("n".to_owned(), Value::Int(at as i64))]);
        Shards { groups: costs.iter().enumerate().map(|(at, cost)| (key(at), *cost)).collect() }
    }

    fn values(keys: &HashSet<GroupKey>) -> Vec<i64> {
        let mut found: Vec<i64> = keys
            .iter()
            .flat_map(|key| &key.0)
            .filter_map(|(_, v)| if let Value::Int(n) = v { Some(*n) } else { None })
            .collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn the_costliest_groups_come_first_and_go_where_least_is() {
        // The groups of 7 and 6 come first, then 5 goes to the 6 and 4 to the 7; 3 goes to either of two elevens: the
        // first.
        let plan = shards(&[3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(values(&plan.keys(Shard { index: 1, of: 2 })), [0, 1, 4]);
        assert_eq!(values(&plan.keys(Shard { index: 2, of: 2 })), [2, 3]);
        assert_eq!(plan.seconds_of(2), [14.0, 11.0]);
    }

    #[test]
    fn every_group_is_in_exactly_one_shard() {
        let plan = shards(&(0..97).map(|i| f64::from(i * i % 31)).collect::<Vec<_>>());
        for of in [1, 2, 7, 97, 200] {
            let mut all: Vec<i64> = (1..=of).flat_map(|index| values(&plan.keys(Shard { index, of }))).collect();
            all.sort_unstable();
            assert_eq!(all, (0..97).collect::<Vec<_>>(), "{of} shards");
        }
    }

    #[test]
    fn groups_without_an_estimate_are_spread_evenly() {
        let plan = shards(&[0.0; 12]);
        let sizes: Vec<usize> = (1..=4).map(|index| plan.keys(Shard { index, of: 4 }).len()).collect();
        assert_eq!(sizes, [3, 3, 3, 3]);
    }

    #[test]
    fn a_shard_has_at_least_the_work_that_is_asked_for() {
        let plan = shards(&[10.0; 100]);
        assert_eq!(plan.count(600.0), 1);
        assert_eq!(plan.count(100.0), 10);
        assert_eq!(plan.count(0.0), 100);
        assert_eq!(shards(&[10.0]).count(600.0), 1);
    }
}
