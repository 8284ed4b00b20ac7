//! State shared by the threads of the GPUs: the queue, the lock for groups that run alone, the console and the times.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::experiment::{Experiment, WorkItem};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::session::gpus::Gpu;
use runner_lang::format::seconds;
use runner_workers::Interrupt;
use runner_workers::queue::Queue;

pub struct Run<'a> {
    pub queue: Queue<WorkItem>,
    /// All work, in the queue's initial order.
    pub planned: Vec<WorkItem>,
    pub experiments: &'a [Experiment],
    pub interrupt: &'a Interrupt,
    /// Write-locked by groups that run alone.
    pub groups: RwLock<()>,
    pub lost: AtomicUsize,
    pub console: Mutex<&'a mut Console>,
    pub times: Mutex<Times>,
}

impl Run<'_> {
    pub fn lose(&self, gpu: &Gpu, failure: &Failure) {
        if failure.exit == Exit::Interrupted {
            return self.queue.close();
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        self.with_console(|console| {
            console.fail(failure);
            console.say(&format!("GPU {} takes no more groups", gpu.number));
        });
    }

    pub fn with_console<T>(&self, act: impl FnOnce(&mut Console) -> T) -> T {
        act(&mut self.console.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records how long a GPU waited before its next group could start.
    pub fn waited(&self, waited: Duration) {
        self.times().alone += waited;
    }

    /// Records a finished group; returns its time.
    pub fn took(&self, gpu: &Gpu, begun: Instant) -> Duration {
        self.times().add(gpu.number, begun, Instant::now())
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time that groups ran and GPUs waited.
#[derive(Debug, Default)]
pub struct Times {
    /// Total time of all groups, as if run one after another.
    sum: Duration,
    /// Time that GPUs waited because of groups that run alone.
    alone: Duration,
    /// Start of the first group and end of the last one, by GPU ordinal.
    spans: BTreeMap<u32, (Instant, Instant)>,
}

impl Times {
    /// Adds a group, and returns its time.
    fn add(&mut self, gpu: u32, begun: Instant, ended: Instant) -> Duration {
        let took = ended.duration_since(begun);
        self.sum += took;
        let span = self.spans.entry(gpu).or_insert((begun, ended));
        span.1 = ended;
        took
    }

    /// Describes the times, e.g. `40.0 s of work in 21.0 s, 1.90 GPUs busy on average`, with the total waiting
    /// time; `None` without groups.
    pub fn describe(&self) -> Option<String> {
        let first = self.spans.values().map(|(begun, _)| *begun).min()?;
        let last = self.spans.values().map(|(_, ended)| *ended).max()?;
        let (sum, span) = (self.sum.as_secs_f64(), last.duration_since(first).as_secs_f64());
        let ratio = sum / span.max(f64::MIN_POSITIVE);
        let starts: Duration = self.spans.values().map(|(begun, _)| begun.duration_since(first)).sum();
        let ends: Duration = self.spans.values().map(|(_, ended)| last.duration_since(*ended)).sum();
        let words = format!("{} of work in {}, {ratio:.2} GPUs busy on average", seconds(sum), seconds(span));
        let waits = [(starts, "to start"), (self.alone, "for groups that run alone"), (ends, "at the end")];
        let waits = waits.map(|(wait, why)| format!("{} {why}", seconds(wait.as_secs_f64())));
        Some(if self.spans.len() < 2 { words } else { format!("{words}; GPUs waited {}", waits.join(", ")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_groups_is_compared_with_the_time_that_it_took() {
        let start = Instant::now();
        let instant = |seconds: u64| start + Duration::from_secs(seconds);
        let mut times = Times::default();
        assert_eq!(times.describe(), None);
        times.add(0, instant(0), instant(10));
        assert_eq!(times.describe().as_deref(), Some("10.0 s of work in 10.0 s, 1.00 GPUs busy on average"));
        for (gpu, begun, ended) in [(1, 2, 12), (1, 12, 20), (0, 11, 18)] {
            times.add(gpu, instant(begun), instant(ended));
        }
        times.alone += Duration::from_millis(500);
        let expected = "35.0 s of work in 20.0 s, 1.75 GPUs busy on average; GPUs waited 2.0 s to start, 0.5 s for groups \
                        that run alone, 2.0 s at the end";
        assert_eq!(times.describe().as_deref(), Some(expected));
    }
}
