//! Runs groups, in this process ([`inline`]) or in a worker process that can be killed (`pool`).
//!
//! A kernel may hang, corrupt its device's context or crash its process. The pool survives that: the case at fault gets
//! its outcome, another worker starts, and the group continues without the case. Every case ends in exactly one
//! `CaseSettled`. `feed` compiles while groups run; `calibrate` measures the device itself with several workers.
//! Measuring and checking happen in `execute`.

mod capture;
mod case_table;
pub mod cores;
mod interrupt;
mod process;
mod source;

pub mod calibrate;
pub mod feed;
pub mod inline;
pub mod pending;
mod pool;
mod processes;
mod protocol;
pub mod queue;
pub mod shared;
pub mod worker;

pub use interrupt::Interrupt;
pub use interrupt::{Urgency, leave_end_to_dispatcher};
pub use pool::{OwnCalibration, Pool, SurveyError};
pub use process::{KILLED, Limits, StartError, WorkerSpec};
pub use protocol::Ready;
pub use source::GroupSource;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    Complete,
    /// The user stopped the run; the remaining cases are settled as not run.
    Interrupted,
    /// The device or its worker is unusable, for this reason; the remaining cases are settled as not run.
    Environment(String),
}

/// Reason given for cases that an interrupt skips.
const INTERRUPTED: &str = "interrupted";

impl RunEnd {
    /// Why the remaining groups are not run; `None` while the run continues.
    fn why_not_run(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some(INTERRUPTED.to_owned()),
            Self::Environment(why) => Some(why.clone()),
        }
    }
}
