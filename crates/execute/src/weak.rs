//! Which wrong results the checks of a group accept, as found by [`super::mutants`].

use super::reference;
use runner_types::{Access, BufferPlan, CaseJob, CheckPlan, Mutant, Value, WeakCheck};

/// Checks of a group that were tried. Cases with the same check share one trial.
#[derive(Debug, Default)]
pub struct WeakChecks {
    pub tried: Vec<Tried>,
}

/// A check that was tried on mutants, with the axes and buffers that it uses.
#[derive(Debug)]
pub struct Tried {
    check: CheckPlan,
    axes: Vec<(String, Value)>,
    buffers: Vec<BufferPlan>,
    /// Whether results for other inputs were judged.
    pub with_others: bool,
    weak: WeakCheck,
}

impl Tried {
    pub fn new(job: &CaseJob, check: &CheckPlan) -> Self {
        let weak = WeakCheck {
            check: check.text.clone(),
            accepts: Vec::new(),
            greatest: 0.0,
            tolerance: check.tolerance,
            whole: check.whole,
        };
        let buffers = job.buffers.iter().filter(|plan| concerns(check, plan)).cloned().collect();
        Self { check: check.clone(), axes: job.case.key.axes.clone(), buffers, with_others: false, weak }
    }

    fn is_of(&self, job: &CaseJob, check: &CheckPlan) -> bool {
        let buffers = job.buffers.iter().filter(|plan| concerns(check, plan));
        self.check == *check && self.axes == job.case.key.axes && self.buffers.iter().eq(buffers)
    }

    pub fn note(&mut self, Found { accepts, greatest }: Found) {
        self.weak.accepts.extend(accepts);
        self.weak.greatest = self.weak.greatest.max(greatest);
    }
}

/// Whether a check reads a buffer, or may compare with it.
fn concerns(check: &CheckPlan, plan: &BufferPlan) -> bool {
    plan.access == Access::In
        || plan.access == Access::InOut
        || reference::names(&check.actual).contains(&plan.name.as_str())
}

impl WeakChecks {
    /// Checks of a case that accept a mutant.
    pub fn of(&self, job: &CaseJob) -> Vec<WeakCheck> {
        let tried = job.checks.iter().filter_map(|check| self.tried.iter().find(|tried| tried.is_of(job, check)));
        tried.map(|tried| tried.weak.clone()).filter(|weak| !weak.accepts.is_empty()).collect()
    }

    pub fn place(&self, job: &CaseJob, check: &CheckPlan) -> Option<usize> {
        self.tried.iter().position(|tried| tried.is_of(job, check))
    }
}

/// Mutants that a check accepts, and the largest magnitude that it expects.
#[derive(Debug, Default)]
pub struct Found {
    pub accepts: Vec<Mutant>,
    pub greatest: f64,
}
