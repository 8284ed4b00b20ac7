//! Control over where the hardware starts each launch.
//!
//! An H100 starts the first block of each launch in the next of eight places, most likely its GPCs, which differ in
//! their distance from memory. So the time of a short kernel repeats with every eighth launch: 16,384 integers summed
//! in two launches take 4.2 to 5.5 µs, and one block takes 1.8 to 2.2 µs. If a run makes an even number of launches,
//! its repetitions see only some of the places, and chance decides which. One more empty launch, before the flush,
//! makes the number odd: eight consecutive runs then start once in every place.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::operation::Operation;

/// Number of launches after which the place repeats.
pub(super) const LAUNCHES: u32 = 8;

/// Chooses how many empty launches precede a run.
#[derive(Debug)]
pub(super) struct Cycle {
    random: ChaCha8Rng,
}

impl Cycle {
    pub fn new() -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(0) }
    }

    /// Number of empty launches before a sample's run number `run` (0-based). `own` is the number of launches per run,
    /// including the flush.
    ///
    /// Every eighth run starts at a random place. So a sample of one run does too, and a wrong launch count (e.g. of a
    /// host function) does not restrict a sample to some of the places.
    pub fn empty_launches(&mut self, run: u32, own: usize) -> u32 {
        if run.is_multiple_of(LAUNCHES) { self.random.next_u32() % LAUNCHES } else { u32::from(own.is_multiple_of(2)) }
    }
}

/// Number of runs that time the launches of a sequence one by one, for a sample of `runs` whole runs. These times are
/// only informative, so one run in each place is enough.
pub(super) fn runs_of_parts(runs: u32) -> u32 {
    runs.min(LAUNCHES)
}

/// Number of launches of a run with one flush.
pub(super) fn launches(prepare: &[Operation<'_>], body: &[Operation<'_>]) -> usize {
    prepare.iter().chain(body).map(Operation::launches).sum::<usize>() + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Places where the runs of a sample start, each with `own` launches.
    fn places(cycle: &mut Cycle, own: u32, runs: u32) -> Vec<u32> {
        let mut launched = 5;
        let place = |run| {
            launched += cycle.empty_launches(run, own as usize);
            let place = launched % LAUNCHES;
            launched += own;
            place
        };
        (0..runs).map(place).collect()
    }

    #[test]
    fn eight_runs_in_a_row_begin_in_every_place_once() {
        let mut cycle = Cycle::new();
        for own in 1..20 {
            for _ in 0..10 {
                let found: BTreeSet<u32> = places(&mut cycle, own, 8).into_iter().collect();
                assert_eq!(found.len(), 8, "{own} launches per run");
            }
        }
    }

    #[test]
    fn samples_of_one_run_begin_in_all_places_alike() {
        let mut cycle = Cycle::new();
        let mut counts = [0; LAUNCHES as usize];
        (0..8000).for_each(|_| counts[places(&mut cycle, 2, 1)[0] as usize] += 1);
        // The expected count of each is 1000, with a standard deviation of 30.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_wrong_count_of_launches_keeps_no_sample_to_some_of_the_places() {
        let mut cycle = Cycle::new();
        let mut launched = 0;
        let mut counts = [0; LAUNCHES as usize];
        // Two launches counted as one: an even step.
        for run in 0..32_000 {
            launched += cycle.empty_launches(run, 2) + 3;
            counts[(launched % LAUNCHES) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (3400..4600).contains(count)), "{counts:?}");
    }
}
