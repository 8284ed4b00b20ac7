//! Where a plan runs: in this process ([`inline`]), or in a worker process that can be killed ([`pool`]).
//!
//! A kernel may hang, poison its device's context or take its process along. The pool survives that: the case at fault
//! gets its outcome, another worker starts, and the group goes on without it. Every case that is handed in ends in
//! exactly one `CaseSettled`. Dispatch neither measures nor judges results (that is `execute`), and it does not know
//! who listens to the events.

mod capture;
mod interrupt;
mod ledger;
mod process;
mod supply;

pub mod inline;
pub mod pool;
pub mod protocol;
pub mod worker;

pub use interrupt::{Interrupt, Urgency};
pub use pool::{Pool, SurveyError};
pub use process::{Limits, StartError, WorkerSpec};
pub use protocol::Ready;
pub use supply::Supply;

/// How a run of groups ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// Every case had its turn.
    Complete,
    /// The user stopped it; cases without a turn are settled as not run.
    Interrupted,
    /// The device or its worker is beyond use, and why; cases without a turn are settled as not run.
    Environment(String),
}

/// Why a case was not run after the user stopped the run.
const INTERRUPTED: &str = "interrupted";

impl RunEnd {
    /// Why the groups after this end are not run; `None` while the run goes on.
    fn why_not_run(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some(INTERRUPTED.to_owned()),
            Self::Environment(why) => Some(why.clone()),
        }
    }
}
