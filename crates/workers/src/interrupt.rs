//! Interrupts by Ctrl-C: the first stops the run after the current launch, the second stops it at once.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::iterator::Signals;

/// How often a waiting dispatcher checks for an interrupt.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Signals that ask a run to end.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Whether the scheduler has warned of the time limit.
static WAS_WARNED: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The run continues.
    None,
    /// The run ends after the current launch.
    Soon,
    /// The run ends at once; work in progress is lost.
    Now,
}

/// Counts the user's requests to stop. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicU32>);

impl Interrupt {
    /// An interrupt that only [`Self::request`] raises.
    pub fn new() -> Self {
        Self::default()
    }

    /// An interrupt that Ctrl-C (SIGINT), SIGTERM and SIGHUP raise. Each signal calls `notify` on a separate thread.
    /// Signals that were ignored when the process started stay ignored, as expected by `nohup` and the shell's `&`.
    pub fn on_signals(notify: impl Fn(Urgency) + Send + 'static) -> io::Result<Self> {
        let interrupt = Self::default();
        let raised = interrupt.clone();
        let heard: Vec<libc::c_int> = SIGNALS.into_iter().filter(|signal| !is_ignored(*signal)).collect();
        each(&heard, move || {
            raised.request();
            notify(raised.urgency());
        })?;
        Ok(interrupt)
    }

    /// Lets SIGUSR1 raise the interrupt, too: a scheduler sends it when the time limit is near.
    pub fn on_warning(&self) -> io::Result<()> {
        let raised = self.clone();
        each(&[libc::SIGUSR1], move || {
            WAS_WARNED.store(true, Ordering::Relaxed);
            raised.request();
        })
    }

    pub fn was_warned() -> bool {
        WAS_WARNED.load(Ordering::Relaxed)
    }

    pub fn request(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Withdraws the first request once the work that it was meant to stop has ended. A second request stays.
    pub fn acknowledge(&self) {
        let _ = self.0.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Sleeps, but wakes up on a further interrupt.
    pub fn sleep(&self, duration: Duration) {
        let (start, before) = (Instant::now(), self.urgency());
        while self.urgency() == before && start.elapsed() < duration {
            thread::sleep(TICK.min(duration.saturating_sub(start.elapsed())));
        }
    }

    /// Urgency according to the number of requests so far.
    pub fn urgency(&self) -> Urgency {
        match self.0.load(Ordering::Acquire) {
            0 => Urgency::None,
            1 => Urgency::Soon,
            _ => Urgency::Now,
        }
    }
}

/// Ignores SIGTERM in a worker. A scheduler that ends a job sends it to every process, but the dispatcher needs its
/// worker until the current launch ends. A worker never outlives its dispatcher.
pub fn leave_end_to_dispatcher() {
    // SAFETY: an ignored signal runs no handler.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

/// Calls `act` on a separate thread for each signal received.
fn each(signals: &[libc::c_int], act: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || signals.forever().for_each(|_| act()))?;
    Ok(())
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is passed, and the old one is written to a `sigaction`.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call returned 0, so it initialized `action`.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_is_the_urgent_one() {
        let interrupt = Interrupt::new();
        let other = interrupt.clone();
        assert_eq!(interrupt.urgency(), Urgency::None);
        other.request();
        assert_eq!(interrupt.urgency(), Urgency::Soon);
        other.request();
        other.request();
        assert_eq!(interrupt.urgency(), Urgency::Now);
        interrupt.acknowledge();
        assert_eq!(interrupt.urgency(), Urgency::Now);
    }

    #[test]
    fn what_follows_an_acknowledged_request_runs_until_the_next() {
        let interrupt = Interrupt::new();
        interrupt.request();
        interrupt.acknowledge();
        assert_eq!(interrupt.urgency(), Urgency::None);
        interrupt.request();
        assert_eq!(interrupt.urgency(), Urgency::Soon);
    }
}
