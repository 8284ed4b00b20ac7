//! Runs groups in this process: for tests, and for devices that can neither hang nor crash.
//!
//! With no process to kill, there are no time limits, and a lost device stays lost.

use std::fmt;

use super::RunEnd;
use super::case_table::{self, CaseTable};
use super::interrupt::{Interrupt, Urgency};
use runner_backend::Device;
use runner_types::{Event, GroupJob, Outcome};

/// Runs the groups in order. An interrupt takes effect between two groups.
pub fn run<L: fmt::Display>(
    device: &mut dyn Device,
    groups: impl IntoIterator<Item = GroupJob>,
    emit: &mut dyn FnMut(Event),
    interrupt: &Interrupt,
    run_group: impl Fn(&mut dyn Device, &GroupJob, &mut dyn FnMut(Event)) -> Result<(), L>,
) -> RunEnd {
    let mut end = RunEnd::Complete;
    for job in groups {
        if end == RunEnd::Complete && interrupt.urgency() > Urgency::None {
            end = RunEnd::Interrupted;
        }
        if let Some(why) = end.why_not_run() {
            case_table::settle_all(job, &Outcome::not_run(why), emit);
            continue;
        }
        let (ordinal, key) = (job.ordinal, job.key.clone());
        emit(Event::GroupStarted { ordinal, key: key.clone(), cases: job.cases.len() as u32 });
        let mut table = CaseTable::new(job.clone());
        let ran = run_group(device, &job, &mut |event| table.observe(event, emit));
        let rest = match ran {
            Ok(()) => Outcome::not_run("the group ended without an outcome for this case"),
            Err(lost) => {
                let why = format!("the device is lost: {lost}");
                end = RunEnd::Environment(why.clone());
                Outcome::not_run(why)
            }
        };
        table.finish(&rest, emit);
        emit(Event::GroupFinished { ordinal, key });
    }
    end
}
