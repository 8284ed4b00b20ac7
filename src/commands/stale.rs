//! Finds reports that no longer match their file tree: the manifest, its sources and what those include.
//!
//! Nothing is compiled if the hashes of sources and options match the records. If they differ, the measured revision is
//! looked up in the report's history. It tells which files changed, and its code is compared with the present code, so
//! a changed comment makes no report stale.

mod code;
pub mod tree;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use runner_compile::{Cache, Requirement, Toolkit};
use runner_process::programs::Programs;
use runner_results::analyse::stale::{Code, Finding, Staleness, lacks_hashes};
use runner_results::journal::RECORDS_FILE;
use runner_results::stored::Stored;
use runner_revision::Files;
use runner_types::{CaseKey, CaseRecord, Records};
use tree::{Definition, Exports};

/// Maximum number of report revisions to search for the measured sources.
const MOST_REVISIONS: usize = 8;

/// A report and the location of its folder: a path, or relative to the root of the repository.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    pub place: &'a str,
    pub records: &'a Records,
}

impl<'a> Placed<'a> {
    /// Removes the prefix `before` from the report's location.
    pub fn new(stored: &'a Stored, before: &str) -> Self {
        Self { place: stored.place.strip_prefix(before).unwrap_or(&stored.place), records: &stored.records }
    }
}

/// File tree to compare reports with.
#[derive(Debug, Clone, Copy)]
pub enum Tree<'a> {
    /// The working files around each report.
    Working,
    Revision(&'a Files),
}

/// Findings about the reports that are not known to be current, in the order of the reports. Reports with neither a
/// manifest nor a checkout around them are skipped.
pub fn find<'a>(reports: impl IntoIterator<Item = Placed<'a>>, tree: Tree<'_>) -> Vec<Staleness> {
    let search = Search::new(tree);
    reports.into_iter().filter_map(|report| search.judge(report)).filter(|found| !found.is_current()).collect()
}

struct Search<'a> {
    tree: Tree<'a>,
    exports: Exports,
    programs: Programs,
    toolkit: Option<Toolkit>,
}

impl<'a> Search<'a> {
    fn new(tree: Tree<'a>) -> Self {
        let toolkit = Cache::locate().ok().and_then(|cache| Toolkit::locate(Requirement::Pinned, &cache).ok());
        Self { tree, exports: Exports::default(), programs: Programs::of_this_machine(), toolkit }
    }

    fn judge(&self, report: Placed<'_>) -> Option<Staleness> {
        let mut judged = Staleness::new(report.place, report.records);
        match self.findings(report) {
            Ok(found) => judged.findings = found?,
            Err(why) => judged.unknown = Some(why),
        }
        Some(judged)
    }

    fn findings(&self, report: Placed<'_>) -> Result<Option<Vec<Finding>>, String> {
        let records = report.records;
        if lacks_hashes(records) {
            return Err("its records have no source hashes".to_owned());
        }
        let now = match self.tree {
            Tree::Working => match tree::around(report)? {
                Some(site) => Definition::read(site, records, self.toolkit.as_ref())?,
                None => return Ok(None),
            },
            Tree::Revision(files) => {
                Definition::read(self.exports.site(files, report)?, records, self.toolkit.as_ref())?
            }
        };
        let defined = now.defined();
        let other = defined.with_other_code(records);
        let code = if other.is_empty() { HashMap::new() } else { self.compare_code(report, &other, &now) };
        Ok(Some(defined.findings(records, |key| code.get(key))))
    }

    /// Judges each of these cases: which files changed since it was measured, and whether its code is the same.
    fn compare_code<'r>(
        &self,
        report: Placed<'_>,
        other: &[&'r CaseRecord],
        now: &Definition,
    ) -> HashMap<&'r CaseKey, Code> {
        let then = self.measured(report, other);
        let of_key = |record: &&'r CaseRecord| {
            let key = &record.case.key;
            let sides = then.as_ref().and_then(|then| then.measured(record)).zip(now.case(key));
            (key, sides.map(|(then, now)| then.changed_files(now)).unwrap_or_default())
        };
        let changed: HashMap<&CaseKey, BTreeSet<String>> = other.iter().map(of_key).collect();
        let mut same = code::compare(report.records, other, (then.as_ref(), now), self.toolkit.as_ref());
        let code = |(key, changed)| {
            let is_same = same.remove(key).unwrap_or(Ok(false));
            (key, Code { changed, is_same })
        };
        changed.into_iter().map(code).collect()
    }

    /// Cases as defined by the newest revision of the report that has the measured sources; `None` if git has no such
    /// revision.
    fn measured(&self, report: Placed<'_>, other: &[&CaseRecord]) -> Option<Definition> {
        let own;
        let (files, place) = match self.tree {
            Tree::Revision(files) => (files, report.place.to_owned()),
            Tree::Working => {
                own = Files::open(Path::new(report.place), "HEAD", &self.programs).ok()?;
                let place = own.path_of(Path::new(report.place))?;
                (&own, place)
            }
        };
        let records = Path::new(&place).join(RECORDS_FILE);
        let changes = files.changes(None, records.to_str()?).ok()?;
        changes.iter().rev().take(MOST_REVISIONS).find_map(|change| {
            let placed = Placed { place: &place, records: report.records };
            let site = self.exports.site(&files.at(&change.commit), placed).ok()?;
            let then = Definition::read(site, report.records, self.toolkit.as_ref()).ok()?;
            other.iter().any(|record| then.measured(record).is_some()).then_some(then)
        })
    }
}
