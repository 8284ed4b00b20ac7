//! A work queue shared by several devices. If a device is lost, the others take over its work.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// In reverse order: the last item is next.
    waiting: Vec<T>,
    running: usize,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// `work` is in the order in which to start it.
    pub fn new(work: impl IntoIterator<Item = T>) -> Self {
        let mut waiting: Vec<T> = work.into_iter().collect();
        waiting.reverse();
        Self { state: Mutex::new(State { waiting, running: 0, is_closed: false }), changed: Condvar::new() }
    }

    /// Takes the next work item. If none is left, waits for running ones, since they may be given back. Returns `None`
    /// when everything is done or the queue is closed.
    pub fn take(&self) -> Option<T> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(work) = state.waiting.pop() {
                state.running += 1;
                return Some(work);
            }
            if state.running == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a work item is done.
    pub fn done(&self) {
        self.state().running -= 1;
        self.changed.notify_all();
    }

    /// Returns an unfinished work item to the queue; it is the next to be taken.
    pub fn give_back(&self, work: T) {
        let mut state = self.state();
        state.running -= 1;
        state.waiting.push(work);
        drop(state);
        self.changed.notify_all();
    }

    /// Closes the queue: no more work is handed out.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    pub fn count_waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_begins_in_the_given_order() {
        let queue = Queue::new([3, 1, 2]);
        let order: Vec<u32> = std::iter::from_fn(|| queue.take().inspect(|_| queue.done())).collect();
        assert_eq!(order, [3, 1, 2]);
    }

    #[test]
    fn work_that_is_given_back_goes_to_a_device_that_has_none_left() {
        let queue = Queue::new(["lost"]);
        let (sender, taken) = mpsc::channel();
        thread::scope(|scope| {
            let work = queue.take();
            scope.spawn(|| {
                // Blocks, since the only work item is running.
                let _ = sender.send(queue.take());
                queue.done();
            });
            assert!(taken.recv_timeout(Duration::from_millis(50)).is_err());
            queue.give_back(work.unwrap_or_default());
            assert_eq!(taken.recv_timeout(Duration::from_mins(2)), Ok(Some("lost")));
        });
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn every_device_ends_when_the_last_work_is_done() {
        let queue = Queue::new([1]);
        thread::scope(|scope| {
            let work = queue.take();
            assert!(work.is_some());
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| queue.take())).collect();
            queue.done();
            for thread in waiting {
                assert!(matches!(thread.join(), Ok(None)));
            }
        });
    }

    #[test]
    fn a_closed_queue_gives_out_nothing() {
        let queue = Queue::new([1, 2]);
        assert_eq!(queue.take(), Some(1));
        queue.close();
        assert_eq!(queue.take(), None);
        assert_eq!(queue.count_waiting(), 1);
    }
}
