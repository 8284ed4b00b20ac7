//! Finds the cases of a run that took the longest, without their compilation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use runner_report::case_name;
use runner_types::{Case, Event};

/// Time per case so far: from the start of each of its steps to the next event of another case.
#[derive(Debug, Default)]
pub struct Slowest {
    active: Option<(Case, Instant)>,
    spent: BTreeMap<u64, (Case, Duration)>,
}

impl Slowest {
    pub fn observe(&mut self, event: &Event) {
        let begins = match event {
            Event::CaseActive { case, .. } => Some(case),
            Event::CaseSettled { .. } | Event::GroupFinished { .. } => None,
            _ => return,
        };
        let now = Instant::now();
        if let Some((case, since)) = self.active.take() {
            self.spent.entry(case.ordinal).or_insert((case, Duration::ZERO)).1 += now - since;
        }
        self.active = begins.map(|case| (case.clone(), now));
    }

    /// The slowest cases, one per line.
    pub fn table(&self, most: usize) -> String {
        let mut cases: Vec<_> = self.spent.values().collect();
        cases.sort_by_key(|(case, spent)| (std::cmp::Reverse(*spent), case.ordinal));
        let mut text = "slowest cases, excluding compilation:".to_owned();
        for (case, spent) in cases.into_iter().take(most) {
            let _ = write!(text, "\n  {:>8.2} s  {}", spent.as_secs_f64(), case_name(case));
        }
        text
    }
}
