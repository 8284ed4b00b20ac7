//! Runs groups, in this process ([`inline`]) or in a worker process that can be killed (`pool`).
//!
//! A kernel may hang, corrupt its device's context or crash its process. The pool survives that: the case at fault gets
//! its outcome, another worker starts, and the group continues without it. Every given case ends in exactly one
//! `CaseSettled`. `feed` compiles while groups run, `calibrate` measures the device itself with several workers.
//! Dispatch neither measures nor checks results (that is `execute`), and it does not know what receives the events.

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
pub use process::{Limits, StartError, WorkerSpec};
pub use protocol::Ready;
pub use source::GroupSource;

/// How a run of groups ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// Every case was run.
    Complete,
    /// The user stopped it; the remaining cases are settled as not run.
    Interrupted,
    /// The device or its worker is unusable, and why; the remaining cases are settled as not run.
    Environment(String),
}

/// Why cases are not run after an interrupt.
const INTERRUPTED: &str = "interrupted";

impl RunEnd {
    /// Returns why the remaining groups are not run; `None` while the run goes on.
    fn why_not_run(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some(INTERRUPTED.to_owned()),
            Self::Environment(why) => Some(why.clone()),
        }
    }
}
