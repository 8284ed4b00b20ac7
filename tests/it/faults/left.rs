//! What a run leaves: exit code, output, records and journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use runner_results::journal;
use runner_types::{CaseRecord, Event, Mismatch, Outcome, Records, Verdict};

/// A run that has ended.
pub struct Left {
    pub status: ExitStatus,
    pub took: Duration,
    pub stdout: String,
    pub stderr: String,
    pub dir: PathBuf,
}

impl Left {
    pub fn records(&self) -> Records {
        journal::read_records(&self.dir.join(journal::RECORDS_FILE))
            .unwrap_or_else(|e| panic!("no records: {e}\n{}", self.words()))
    }

    pub fn events(&self) -> Vec<Event> {
        let contents = journal::read(&self.dir.join(journal::JOURNAL_FILE));
        contents.unwrap_or_else(|e| panic!("no journal: {e}\n{}", self.words())).events().cloned().collect()
    }

    pub fn report(&self) -> String {
        fs::read_to_string(self.dir.join("report.md")).unwrap_or_else(|e| panic!("no report: {e}\n{}", self.words()))
    }

    fn words(&self) -> String {
        let (status, took) = (self.status, self.took.as_secs_f64());
        format!("{status} after {took:.1} s\n-- stdout\n{}\n-- stderr\n{}", self.stdout, self.stderr)
    }

    /// Everything that a failed test should print.
    pub fn story(&self) -> String {
        let mut story = self.words();
        story.push_str("\n-- records\n");
        if let Ok(records) = journal::read_records(&self.dir.join(journal::RECORDS_FILE)) {
            for record in &records.cases {
                let CaseRecord { case, outcome, verdict, notes, result, .. } = record;
                let time = result.as_ref().map(|result| result.time.point);
                let _ = writeln!(story, "{} {outcome:?} {verdict:?} {time:?} {notes:?}", case.key);
            }
        }
        story
    }

    #[track_caller]
    pub fn expect_code(&self, code: i32) {
        assert_eq!(self.status.code(), Some(code), "{}", self.story());
    }

    /// Records of one variant; panics if there are none.
    #[track_caller]
    pub fn find_all(&self, variant: &str) -> Vec<CaseRecord> {
        let records = self.records();
        let of: Vec<CaseRecord> = records.cases.into_iter().filter(|r| r.case.key.variant == variant).collect();
        assert!(!of.is_empty(), "`{variant}` has no row\n{}", self.story());
        of
    }

    /// The only record of a variant with this value of the shared axis `type`.
    #[track_caller]
    pub fn at(&self, variant: &str, element: &str) -> CaseRecord {
        let here = |record: &CaseRecord| record.case.key.axes.iter().any(|(_, value)| value.to_string() == element);
        let mut of = self.find_all(variant).into_iter().filter(here);
        let record = of.next().unwrap_or_else(|| panic!("`{variant}` has no row at {element}\n{}", self.story()));
        assert!(of.next().is_none(), "`{variant}` has two rows at {element}\n{}", self.story());
        record
    }

    /// The mismatch of a variant that must be wrong.
    #[track_caller]
    pub fn mismatch(&self, variant: &str, element: &str) -> Mismatch {
        match self.at(variant, element) {
            CaseRecord { outcome: Outcome::Wrong { mismatch }, verdict: Verdict::Mismatch(other), .. } => {
                assert_eq!(mismatch, other, "outcome and verdict of `{variant}` differ\n{}", self.story());
                mismatch
            }
            record => panic!("`{variant}` at {element} is {:?}\n{}", record.outcome, self.story()),
        }
    }

    /// Asserts that every row of these variants was measured and is right.
    #[track_caller]
    pub fn expect_sound(&self, variants: &[&str]) {
        for record in variants.iter().flat_map(|variant| self.find_all(variant)) {
            let sound = is_timed(&record) && record.verdict == Verdict::Pass;
            assert!(sound, "{} is {:?}, {:?}\n{}", record.case.key, record.outcome, record.verdict, self.story());
        }
    }

    /// Asserts that each planned cell (`variants` in each of `groups` groups) has one record and was settled once in
    /// the journal. Only cells that stayed right to the end have a time.
    #[track_caller]
    pub fn expect_whole(&self, variants: usize, groups: usize) {
        let records = self.records();
        assert!(records.header.complete, "the run is not complete\n{}", self.story());
        let cells: BTreeSet<u64> = records.cases.iter().map(|record| record.case.ordinal).collect();
        assert_eq!((cells.len(), records.cases.len()), (variants * groups, variants * groups), "{}", self.story());
        let keys: BTreeSet<String> = records.cases.iter().map(|record| record.case.group.to_string()).collect();
        assert_eq!(keys.len(), groups, "{}", self.story());
        let mut settled: BTreeMap<u64, usize> = BTreeMap::new();
        for event in self.events() {
            if let Event::CaseSettled { case, .. } = event {
                *settled.entry(case.ordinal).or_default() += 1;
            }
        }
        assert_eq!(settled, cells.iter().map(|ordinal| (*ordinal, 1)).collect(), "{}", self.story());
        for record in &records.cases {
            let timed = matches!(record.outcome, Outcome::Measured | Outcome::Unstable { .. });
            assert_eq!(record.result.is_some(), timed, "{}\n{}", record.case.key, self.story());
        }
    }
}

/// Whether a case has a time, even if a short run is less precise than requested.
pub fn is_timed(record: &CaseRecord) -> bool {
    matches!(record.outcome, Outcome::Measured | Outcome::Unstable { .. }) && record.result.is_some()
}

/// Every file below a folder: relative path and content.
pub fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                files.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}
