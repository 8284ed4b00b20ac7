//! Assigns launches to cases and adds up their counts.

use std::collections::{BTreeMap, BTreeSet};

use super::by_line::{CountedLaunch, count_lines};
use super::table::{Row, Table};
use super::{ProfilerError, metrics};
use runner_types::{BodyCounters, Case, Counters, Event, KernelCode, MarkedLaunch};

/// Announced launches of all workers, in order.
#[derive(Debug, Default)]
pub struct Tally {
    announced: Vec<Announced>,
    /// Cases that failed; their counters would be meaningless.
    failed: BTreeSet<u64>,
}

#[derive(Debug)]
struct Announced {
    case: Case,
    process: u32,
    launches: Vec<MarkedLaunch>,
    whole_only: bool,
    code: BTreeMap<String, KernelCode>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Counted {
    Counters(BodyCounters),
    /// Why some launches were not counted.
    Missing(String),
}

impl Tally {
    /// Consumes announcements of launches and records which cases failed; returns every other event.
    pub fn observe(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::LaunchesMarked { case, process, launches, whole_only, code } => {
                self.announced.push(Announced { case, process, launches, whole_only, code });
                None
            }
            other => {
                if let Event::CaseSettled { case, outcome, .. } = &other
                    && outcome.is_failure()
                {
                    self.failed.insert(case.ordinal);
                }
                Some(other)
            }
        }
    }

    /// Assigns rows to launches. A case that was launched several times gets the counters of its last launches; failed
    /// cases are left out. Fails if launches were announced but none was counted.
    pub fn close(self, table: &Table) -> Result<Vec<(Case, Counted)>, ProfilerError> {
        if table.rows.is_empty() && !self.announced.is_empty() {
            return Err(ProfilerError::of_complaints(&table.complaints));
        }
        let mut cases: BTreeMap<u64, (Case, Counted)> = BTreeMap::new();
        for (process, announced) in by_process(&self.announced) {
            let rows: Vec<&Row> = table.rows.iter().filter(|row| row.process == process).collect();
            let seen: Vec<MarkedLaunch> = rows.iter().map(|row| row.launch.clone()).collect();
            let made: Vec<MarkedLaunch> = announced.iter().flat_map(|a| a.launches.iter().cloned()).collect();
            let mut places = assign(&made, &seen).into_iter();
            for Announced { case, launches, whole_only, code, .. } in announced {
                let found: Vec<Option<&Row>> =
                    places.by_ref().take(launches.len()).map(|place| place.map(|row| rows[row])).collect();
                let mut counted = counted(&found, (launches, *whole_only), &table.complaints);
                if let Counted::Counters(counters) = &mut counted {
                    let launches: Vec<_> = found.iter().flatten().filter_map(|row| with_code(row, code)).collect();
                    // Lines of only some launches would be mistaken for those of all.
                    if launches.iter().all(|launch| !launch.instructions.is_empty()) {
                        counters.lines = count_lines(&launches);
                    }
                }
                cases.insert(case.ordinal, (case.clone(), counted));
            }
        }
        Ok(cases.into_iter().filter(|(ordinal, _)| !self.failed.contains(ordinal)).map(|(_, case)| case).collect())
    }
}

fn by_process(announced: &[Announced]) -> BTreeMap<u32, Vec<&Announced>> {
    let mut processes: BTreeMap<u32, Vec<&Announced>> = BTreeMap::new();
    for one in announced {
        processes.entry(one.process).or_default().push(one);
    }
    processes
}

fn with_code<'a>(row: &'a Row, code: &'a BTreeMap<String, KernelCode>) -> Option<CountedLaunch<'a>> {
    let (kernel, code) = code.get_key_value(&row.launch.kernel)?;
    Some(CountedLaunch { kernel, code, instructions: &row.instructions })
}

fn counted(rows: &[Option<&Row>], (launches, whole_only): (&[MarkedLaunch], bool), complaints: &[String]) -> Counted {
    let missing = rows.iter().position(Option::is_none);
    let each: Vec<Counters> = rows.iter().flatten().map(|row| metrics::of_launch(&row.values)).collect();
    if let Some(missing) = missing {
        let message = complaints.first().map(|message| format!("; ncu reports: {message}")).unwrap_or_default();
        return Counted::Missing(format!("ncu did not count the launch of `{}`{message}", launches[missing].kernel));
    }
    let whole = metrics::of_body(&each);
    let each = if each.len() > 1 && !whole_only { each } else { Vec::new() };
    Counted::Counters(BodyCounters { whole, each, lines: Vec::new() })
}

/// Row index of each launch. Rows that match no launch are skipped.
///
/// The profiler names a kernel, its grid and its block, but not the case. A process announces its launches in order,
/// and the profiler lists its counts in the same order, but may have skipped some. So rows are matched from both ends,
/// and a row is assigned only if both directions agree. An ambiguous launch gets no row: a wrong count is worse than a
/// missing one.
fn assign(launches: &[MarkedLaunch], rows: &[MarkedLaunch]) -> Vec<Option<usize>> {
    let front = embed(&launches.iter().collect::<Vec<_>>(), &rows.iter().collect::<Vec<_>>());
    let mut back = embed(&launches.iter().rev().collect::<Vec<_>>(), &rows.iter().rev().collect::<Vec<_>>());
    back.reverse();
    let flipped = back.into_iter().map(|place| place.map(|row| rows.len() - 1 - row));
    front.into_iter().zip(flipped).map(|(front, back)| front.filter(|row| back == Some(*row))).collect()
}

/// Assigns each row to the first remaining launch that matches. A row without a match is skipped.
fn embed(launches: &[&MarkedLaunch], rows: &[&MarkedLaunch]) -> Vec<Option<usize>> {
    let mut places = vec![None; launches.len()];
    let mut next = 0;
    for (index, row) in rows.iter().enumerate() {
        if let Some(skipped) = launches[next..].iter().position(|launch| launch == row) {
            places[next + skipped] = Some(index);
            next += skipped + 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::Dim3;

    fn launches(names: &str) -> Vec<MarkedLaunch> {
        let one = |name: char| MarkedLaunch {
            kernel: name.to_string(),
            grid: Dim3::new(4, 1, 1),
            block: Dim3::new(32, 1, 1),
        };
        names.chars().map(one).collect()
    }

    fn places(made: &str, counted: &str) -> Vec<Option<usize>> {
        assign(&launches(made), &launches(counted))
    }

    #[test]
    fn rows_in_full_number_are_the_launches_in_order() {
        assert_eq!(places("aabca", "aabca"), [Some(0), Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(places("", ""), []);
    }

    #[test]
    fn a_launch_that_was_not_counted_has_no_row_and_shifts_no_other() {
        assert_eq!(places("abcd", "acd"), [Some(0), None, Some(1), Some(2)]);
        assert_eq!(places("abcd", ""), [None; 4]);
        assert_eq!(places("abcd", "d"), [None, None, None, Some(0)]);
    }

    #[test]
    fn a_row_that_could_be_either_of_two_launches_is_neithers() {
        assert_eq!(places("abba", "aba"), [Some(0), None, None, Some(2)]);
        assert_eq!(places("aa", "a"), [None, None]);
    }

    #[test]
    fn a_row_of_no_launch_is_passed_over() {
        assert_eq!(places("ab", "axb"), [Some(0), Some(2)]);
    }

    #[test]
    fn a_launch_of_another_shape_is_another_launch() {
        let made = launches("a");
        let mut counted = made.clone();
        counted[0].grid = Dim3::new(5, 1, 1);
        assert_eq!(assign(&made, &counted), [None]);
    }
}
