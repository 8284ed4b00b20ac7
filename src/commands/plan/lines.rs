//! The plan as JSON lines: first the plan, then every case in group order. The manual's page on planning describes the
//! fields.

use serde::Serialize;

use crate::cli::Narrowing;
use crate::failure::Failure;
use runner_experiment::Manifest;
use runner_lang::format::visible_json;
use runner_plan::{self, Plan, PlanOptions, ResolvedGroup};
use runner_types::{
    AxisColumn, BackendKind, BodyPlan, BufferPlan, Bytes, Case, CaseJob, CheckPlan, MeasurePlan, Outcome, Value,
    WorkAmount,
};

/// Format version, raised when an older reader would misread the new lines.
const VERSION: u32 = 1;

/// Number of bytes to print at once.
const AT_ONCE: usize = 1 << 16;

#[derive(Serialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line<'a> {
    Plan {
        version: u32,
        experiment: &'a str,
        manifest_hash: &'a str,
        backend: BackendKind,
        device: Option<&'a str>,
        narrowed: Option<String>,
        axes: Vec<AxisColumn>,
        variants: Vec<&'a str>,
        baseline: Option<&'a (String, Vec<(String, Value)>)>,
        groups: usize,
        cases: usize,
    },
    Case {
        group: u32,
        case: &'a Case,
        #[serde(flatten)]
        state: State<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum State<'a> {
    Ready {
        baseline: bool,
        memory: Bytes,
        buffers: &'a [BufferPlan],
        body: &'a BodyPlan,
        checks: &'a [CheckPlan],
        work: &'a WorkAmount,
        measure: &'a MeasurePlan,
    },
    Settled {
        outcome: &'a Outcome,
    },
    NeedsDevice {
        names: &'a [String],
    },
}

/// Passes every line to `print`, group by group, so that a large plan's text is never in memory as a whole.
pub fn print(
    manifest: &Manifest,
    plan: &Plan,
    (options, narrowing): (&PlanOptions, &Narrowing),
    print: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut text = String::new();
    push(&mut text, &header(manifest, plan, options, narrowing))?;
    for index in 0..plan.group_count() {
        for line in lines(&runner_plan::resolve(manifest, plan, index)) {
            push(&mut text, &line)?;
        }
        if text.len() >= AT_ONCE {
            print(&text)?;
            text.clear();
        }
    }
    print(&text)
}

fn push(text: &mut String, line: &Line) -> Result<(), Failure> {
    let line = serde_json::to_string(line).map_err(|e| Failure::environment(format!("no JSON of the plan: {e}")))?;
    text.push_str(&visible_json(&line));
    text.push('\n');
    Ok(())
}

fn header<'a>(manifest: &'a Manifest, plan: &'a Plan, options: &PlanOptions, narrowing: &Narrowing) -> Line<'a> {
    let selected = plan.variants().iter().filter(|variant| variant.selected);
    Line::Plan {
        version: VERSION,
        experiment: &manifest.name,
        manifest_hash: &manifest.hash,
        backend: options.backend,
        device: plan.device().map(|device| device.name.as_str()),
        narrowed: narrowing.describe(),
        axes: plan.axis_columns(),
        variants: selected.map(|variant| variant.name.as_str()).collect(),
        baseline: plan.baseline(),
        groups: plan.group_count(),
        cases: plan.cells().len(),
    }
}

/// Lines of one group, in the manifest's order.
fn lines(group: &ResolvedGroup) -> Vec<Line<'_>> {
    let number = group.job.ordinal;
    let ready = group
        .job
        .cases
        .iter()
        .enumerate()
        .map(|(index, job)| (&job.case, ready(job, group.job.baseline == Some(index))));
    let settled = group.settled.iter().map(|(case, outcome)| (case, State::Settled { outcome }));
    let undecided = group.undecided.iter().map(|u| (&u.case, State::NeedsDevice { names: &u.names }));
    let mut states: Vec<(&Case, State)> = ready.chain(settled).chain(undecided).collect();
    states.sort_by_key(|(case, _)| case.ordinal);
    states.into_iter().map(|(case, state)| Line::Case { group: number, case, state }).collect()
}

fn ready(job: &CaseJob, baseline: bool) -> State<'_> {
    State::Ready {
        baseline,
        memory: runner_plan::memory_needed(job),
        buffers: &job.buffers,
        body: &job.body,
        checks: &job.checks,
        work: &job.work,
        measure: &job.measure,
    }
}
