//! Handles Ctrl-C during a run.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::failure::Exit;
use crate::failure::Failure;
use runner_workers::{Interrupt, Urgency};

/// How long a run may take to end by itself after the second Ctrl-C.
const GRACE: Duration = Duration::from_secs(1);

/// Set while the report is written, which the second Ctrl-C must not cut off.
static CONCLUDES: AtomicBool = AtomicBool::new(false);

/// Calls `write`, which the second Ctrl-C must not cut off.
pub fn while_concluding<T>(write: impl FnOnce() -> T) -> T {
    CONCLUDES.store(true, Ordering::Relaxed);
    let written = write();
    CONCLUDES.store(false, Ordering::Relaxed);
    written
}

/// Handles Ctrl-C and says on standard error what it does. The second Ctrl-C ends phases that do not check for it, such
/// as planning; the third ends the process at once.
pub fn interrupt() -> Result<Interrupt, Failure> {
    let count = AtomicU32::new(0);
    let say = move |urgency| {
        let line = match urgency {
            Urgency::None => return,
            Urgency::Soon => "stopping after the current step; press Ctrl-C again to stop now",
            Urgency::Now => "stopping now",
        };
        let _ = writeln!(std::io::stderr().lock(), "{line}");
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => {}
            1 => drop(thread::spawn(|| {
                thread::sleep(GRACE);
                if !CONCLUDES.load(Ordering::Relaxed) {
                    end_now();
                }
            })),
            _ => end_now(),
        }
    };
    Interrupt::on_signals(say).map_err(|e| Failure::environment(format!("cannot listen for signals: {e}")))
}

/// Ends the process and its workers. The journal has the measurements so far.
fn end_now() -> ! {
    std::process::exit(Exit::Interrupted as i32)
}
