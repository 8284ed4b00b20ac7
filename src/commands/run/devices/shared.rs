//! Holds what the threads of the GPUs share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::experiment::{Experiment, WorkItem};
use crate::commands::session::gpus::Gpu;
use crate::commands::{Console, Exit, Failure};
use crate::dispatch::Interrupt;
use crate::dispatch::queue::Queue;
use crate::format::seconds;
use crate::host_lock::HostLock;

/// What the threads share.
pub struct Run<'a> {
    pub queue: Queue<WorkItem>,
    pub experiments: &'a [Experiment],
    pub sanitize: bool,
    pub interrupt: &'a Interrupt,
    /// Locked by groups whose times depend on the host.
    pub groups: RwLock<()>,
    /// Locked by workers while they time the host.
    pub host: HostLock,
    /// How many GPUs were lost.
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

    pub fn took(&self, begun: Instant) -> Duration {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).add(begun, Instant::now())
    }
}

/// How long groups took.
#[derive(Debug, Default)]
pub struct Times {
    /// The time of all groups, as if one ran after the other.
    sum: Duration,
    /// The time from the beginning of the first group to the end of the last.
    span: Option<(Instant, Instant)>,
}

impl Times {
    /// Adds a group, and returns its time.
    pub fn add(&mut self, begun: Instant, ended: Instant) -> Duration {
        let took = ended.duration_since(begun);
        self.sum += took;
        let (first, last) = self.span.unwrap_or((begun, ended));
        self.span = Some((first.min(begun), last.max(ended)));
        took
    }

    /// Describes the times: `40.0 s of work in 21.0 s, 1.90 at a time`; `None` without groups.
    pub fn describe(&self) -> Option<String> {
        let (first, last) = self.span?;
        let (sum, span) = (self.sum.as_secs_f64(), last.duration_since(first).as_secs_f64());
        let ratio = sum / span.max(f64::MIN_POSITIVE);
        Some(format!("{} of work in {}, {ratio:.2} at a time", seconds(sum), seconds(span)))
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
        for (begun, ended) in [(0, 10), (0, 12), (12, 20), (10, 18)] {
            times.add(instant(begun), instant(ended));
        }
        assert_eq!(times.describe().as_deref(), Some("38.0 s of work in 20.0 s, 1.90 at a time"));
    }
}
