//! Groups for several devices of one host. Each device takes its next group from a common queue, and some groups must
//! run while no other does.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::GroupSource;
use super::queue::Queue;
use runner_types::GroupJob;

/// The groups that one device takes from a queue.
#[derive(Debug)]
pub struct Shared<'a, T, F> {
    queue: &'a Queue<T>,
    /// Lock that all devices of the host share.
    host: &'a RwLock<()>,
    /// Builds the job of a work item and says whether it runs alone; `None` if there is nothing to run.
    begin: F,
    running: Option<T>,
    held: Option<Held<'a>>,
}

/// Host lock held by the running group.
#[derive(Debug)]
enum Held<'a> {
    WithOthers { _guard: RwLockReadGuard<'a, ()> },
    Alone { _guard: RwLockWriteGuard<'a, ()> },
}

impl<'a, T, F: FnMut(&T) -> Option<(GroupJob, bool)>> Shared<'a, T, F> {
    pub const fn new(queue: &'a Queue<T>, host: &'a RwLock<()>, begin: F) -> Self {
        Self { queue, host, begin, running: None, held: None }
    }

    /// Returns the running work, which this device did not finish, to the queue.
    pub fn give_back(mut self) {
        self.held = None;
        if let Some(work) = self.running.take() {
            self.queue.give_back(work);
        }
    }
}

impl<T, F: FnMut(&T) -> Option<(GroupJob, bool)>> GroupSource for Shared<'_, T, F> {
    fn next(&mut self) -> Option<GroupJob> {
        self.held = None;
        if self.running.take().is_some() {
            self.queue.done();
        }
        loop {
            let work = self.queue.take()?;
            let Some((job, alone)) = (self.begin)(&work) else {
                self.queue.done();
                continue;
            };
            self.running = Some(work);
            let _span = tracing::info_span!("wait for groups that run alone", alone).entered();
            self.held = Some(if alone {
                Held::Alone { _guard: self.host.write().unwrap_or_else(PoisonError::into_inner) }
            } else {
                Held::WithOthers { _guard: self.host.read().unwrap_or_else(PoisonError::into_inner) }
            });
            return Some(job);
        }
    }

    /// Empty: the remaining groups are for the other devices.
    fn remaining(&mut self) -> Vec<GroupJob> {
        self.held = None;
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn job(ordinal: u32) -> GroupJob {
        fake_backend::idle_group("x", ordinal, &["a"], 1.0)
    }

    #[test]
    fn a_group_that_runs_alone_waits_for_the_others_and_they_for_it() {
        let (queue, host) = (Queue::new([false, true]), RwLock::new(()));
        let mut groups = Shared::new(&queue, &host, |is_alone| Some((job(0), *is_alone)));
        assert!(host.try_write().is_ok());
        assert!(groups.next().is_some());
        assert!(host.try_write().is_err() && host.try_read().is_ok(), "other devices go on");
        assert!(groups.next().is_some());
        assert!(host.try_read().is_err(), "other devices wait");
        assert!(groups.next().is_none());
        assert!(host.try_write().is_ok(), "the host is free after the last group");
    }

    #[test]
    fn four_devices_begin_in_the_order_of_the_queue_and_never_beside_a_group_that_runs_alone() {
        // After the first 30, every third group runs alone.
        let is_alone = |ordinal: u32| ordinal >= 30 && ordinal.is_multiple_of(3);
        let work: Vec<u32> = (0..60).collect();
        let (queue, host) = (Queue::new(work.clone()), RwLock::new(()));
        let (begun, ended) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        let (running, alone, most) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let device = || {
            let begin = |&ordinal: &u32| {
                begun.lock().unwrap_or_else(PoisonError::into_inner).push(ordinal);
                Some((job(ordinal), is_alone(ordinal)))
            };
            let mut groups = Shared::new(&queue, &host, begin);
            while let Some(job) = groups.next() {
                let beside = running.fetch_add(1, Ordering::SeqCst);
                most.fetch_max(beside + 1, Ordering::SeqCst);
                let own = usize::from(is_alone(job.ordinal));
                assert!(alone.fetch_add(own, Ordering::SeqCst) == 0, "beside a group that runs alone");
                assert!(own == 0 || beside == 0, "group {} is not alone", job.ordinal);
                thread::sleep(Duration::from_millis(2));
                // The first waits until another group runs concurrently, however long that takes.
                while job.ordinal == 0 && most.load(Ordering::SeqCst) < 2 {
                    thread::yield_now();
                }
                alone.fetch_sub(own, Ordering::SeqCst);
                running.fetch_sub(1, Ordering::SeqCst);
                ended.fetch_add(1, Ordering::SeqCst);
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(device);
            }
        });
        assert_eq!(ended.into_inner(), work.len());
        // Between taking a group and recording it, a device may be overtaken once by each other device.
        let begun = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (place, ordinal) in begun.iter().enumerate() {
            assert!(place.abs_diff(*ordinal as usize) <= 3, "{begun:?}");
        }
    }

    #[test]
    fn what_a_lost_device_had_begun_goes_to_another_and_the_rest_stays() {
        let (queue, host) = (Queue::new([1, 2, 3]), RwLock::new(()));
        let begin = |ordinal: &u32| Some((job(*ordinal), true));
        let mut lost = Shared::new(&queue, &host, begin);
        assert_eq!(lost.next().map(|job| job.ordinal), Some(1));
        assert_eq!(lost.next().map(|job| job.ordinal), Some(2));
        assert!(lost.remaining().is_empty());
        lost.give_back();
        let mut other = Shared::new(&queue, &host, begin);
        let rest: Vec<u32> = std::iter::from_fn(|| other.next()).map(|job| job.ordinal).collect();
        assert_eq!(rest, [2, 3]);
    }
}
