//! Shards: deterministic subsets of the groups of a plan, for runs that share the work.
//!
//! A group is never split, since its cases are compared with each other on one device. Groups are assigned in order of
//! decreasing estimated cost, each to the shard with the lowest total so far. With this rule no shard takes more than
//! 4/3 of the optimum (Graham, 1969). The costs assume an unknown device, so that every machine divides a plan in the
//! same way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use rayon::prelude::*;

use super::{GroupCost, Plan, PlanOptions, expand, resolve};
use runner_experiment::Manifest;
use runner_lang::diagnostics::Diagnostics;
use runner_types::{GroupKey, GroupPlace, Shard};

/// A plan with the cost of each group, ready to be divided into shards.
#[derive(Debug)]
pub struct Shards {
    plan: Plan,
    /// Estimated seconds of each group, on an unknown device.
    seconds: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    pub groups: Vec<Vec<GroupPlace>>,
    pub cases: Vec<u64>,
    pub seconds: Vec<f64>,
}

impl Shards {
    /// Estimates the groups of the plan that `options` select.
    pub fn plan(manifest: &Manifest, options: &PlanOptions) -> Result<Self, Diagnostics> {
        let plan = expand(manifest, options)?;
        let estimate = |index| GroupCost::estimate(&resolve(manifest, &plan, index).job, plan.backend(), None).seconds;
        let seconds = (0..plan.group_count()).into_par_iter().map(estimate).collect();
        Ok(Self { plan, seconds })
    }

    pub const fn whole(&self) -> &Plan {
        &self.plan
    }

    /// Number of shards with at least `least` seconds of work on average. At least one, and at most one per group.
    pub fn count(&self, least: f64) -> u32 {
        let fitting = if least > 0.0 { (self.seconds.iter().sum::<f64>() / least).floor() } else { f64::INFINITY };
        fitting.clamp(1.0, self.seconds.len().max(1) as f64) as u32
    }

    pub fn keys(&self, shard: Shard) -> HashSet<GroupKey> {
        let owners = owners(&self.seconds, shard.of).into_iter().enumerate();
        owners.filter(|(_, owner)| *owner == shard.index).map(|(group, _)| self.plan.group_key(group)).collect()
    }

    pub fn divide(&self, shards: u32) -> Division {
        let count = shards as usize;
        let mut division =
            Division { groups: vec![Vec::new(); count], cases: vec![0; count], seconds: vec![0.0; count] };
        for (group, owner) in owners(&self.seconds, shards).into_iter().enumerate() {
            let shard = owner as usize - 1;
            division.groups[shard].push(self.plan.place(group));
            division.cases[shard] += self.plan.group(group).len() as u64;
            division.seconds[shard] += self.seconds[group];
        }
        division
    }
}

/// 1-based shard of each group, from the groups' seconds.
fn owners(seconds: &[f64], shards: u32) -> Vec<u32> {
    // Integers are totally ordered. The added 1 gives weight to groups without an estimate.
    let nanoseconds = |seconds: f64| ((seconds * 1e9) as u64).saturating_add(1);
    let mut order: Vec<(u64, usize)> =
        seconds.iter().enumerate().map(|(at, seconds)| (nanoseconds(*seconds), at)).collect();
    order.sort_by_key(|&(cost, at)| (Reverse(cost), at));
    let mut loads: BinaryHeap<Reverse<(u64, u32)>> = (1..=shards).map(|shard| Reverse((0, shard))).collect();
    let mut owners = vec![1; seconds.len()];
    for (cost, at) in order {
        let Some(Reverse((load, shard))) = loads.pop() else { break };
        owners[at] = shard;
        loads.push(Reverse((load.saturating_add(cost), shard)));
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups_of(seconds: &[f64], shard: Shard) -> Vec<usize> {
        let owners = owners(seconds, shard.of).into_iter().enumerate();
        owners.filter(|(_, owner)| *owner == shard.index).map(|(group, _)| group).collect()
    }

    #[test]
    fn the_costliest_groups_come_first_and_go_where_least_is() {
        // 7 and 6 are assigned first, then 5 joins 6 and 4 joins 7. 3 goes to the first of the two shards with 11.
        let seconds = [3.0, 4.0, 5.0, 6.0, 7.0];
        assert_eq!(groups_of(&seconds, Shard { index: 1, of: 2 }), [0, 1, 4]);
        assert_eq!(groups_of(&seconds, Shard { index: 2, of: 2 }), [2, 3]);
    }

    #[test]
    fn every_group_is_in_exactly_one_shard() {
        let seconds: Vec<f64> = (0..97).map(|i| f64::from(i * i % 31)).collect();
        for of in [1, 2, 7, 97, 200] {
            let mut all: Vec<usize> = (1..=of).flat_map(|index| groups_of(&seconds, Shard { index, of })).collect();
            all.sort_unstable();
            assert_eq!(all, (0..97).collect::<Vec<_>>(), "{of} shards");
        }
    }

    #[test]
    fn groups_without_an_estimate_are_spread_evenly() {
        let sizes: Vec<usize> = (1..=4).map(|index| groups_of(&[0.0; 12], Shard { index, of: 4 }).len()).collect();
        assert_eq!(sizes, [3, 3, 3, 3]);
    }
}
