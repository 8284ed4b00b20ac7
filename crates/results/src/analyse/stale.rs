//! Judges whether a report is current: compares what its records were measured with to what a tree of files defines
//! now.
//!
//! Records have hashes of each case. A case is stale if one of its hashes changed, its launches have different extents,
//! or the manifest no longer runs it. If changed sources and options compile to the same code, nothing is stale. The
//! caller compiles them, since this module only judges.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use runner_types::{CaseHashes, CaseKey, CaseRecord, Outcome, Records, RunHeader, WorkAmount};

/// A part of a case that changed since it was measured, in report order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Source,
    Options,
    Inputs,
    Check,
    Work,
    /// Labels of the launches.
    Kernel,
    Grid,
    Block,
    /// Dynamic shared memory.
    Shared,
    /// The manifest no longer runs the case.
    Removed,
    /// The case is not in the report.
    Added,
}

/// A case as the tree of files defines it.
#[derive(Debug, Clone, PartialEq)]
pub struct Defined {
    pub hashes: CaseHashes,
    /// Hash of the sources if the compiler has its own copy of every file that was not found.
    pub source_of_found: String,
    pub launches: Vec<Launch>,
    pub work: WorkAmount,
    /// Files that the case is compiled from, relative to the root of the tree.
    pub sources: BTreeSet<String>,
}

impl Defined {
    fn has_source_of(&self, then: &CaseHashes) -> bool {
        then.source == self.hashes.source || then.source == self.source_of_found
    }

    /// Whether sources and options are the same as when the case was measured.
    pub fn has_code_of(&self, then: &CaseHashes) -> bool {
        self.has_source_of(then) && then.options == self.hashes.options
    }
}

/// What is known about a launch without a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Label in the report: the kernel's name, unless the manifest sets a different one.
    pub label: String,
    pub grid: Option<[u64; 3]>,
    pub block: Option<[u64; 3]>,
    pub shared: u64,
}

/// Code of a case whose sources or options changed since it was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Files that changed since the measurement, relative to the tree's root; empty if unknown.
    pub changed: BTreeSet<String>,
    /// Whether the code is the same, or why that is unknown.
    pub is_same: Result<bool, String>,
}

/// Cases that are stale for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub part: Part,
    /// Files that changed or, if unknown, files that the cases are compiled from.
    pub files: BTreeSet<String>,
    /// Whether `files` are known to have changed.
    pub files_known: bool,
    /// Why it is unknown whether the cases are stale.
    pub doubt: Option<String>,
    pub variants: Vec<String>,
    pub cases: usize,
}

/// Findings about a report that may not be current.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Staleness {
    pub experiment: String,
    pub device: String,
    /// Folder of the report.
    pub place: String,
    /// Number of cases in the report.
    pub of: usize,
    pub findings: Vec<Finding>,
    /// Why nothing is known about the report.
    pub unknown: Option<String>,
}

impl Staleness {
    /// A verdict on a report without findings.
    pub fn new(place: &str, records: &Records) -> Self {
        let keys: HashSet<&CaseKey> = records.cases.iter().map(|record| &record.case.key).collect();
        Self {
            experiment: records.header.experiment.clone(),
            device: records.environment.device.name.clone(),
            place: place.to_owned(),
            of: keys.len(),
            findings: Vec::new(),
            unknown: None,
        }
    }

    /// Whether some case is certainly stale.
    pub fn is_stale(&self) -> bool {
        self.findings.iter().any(|finding| finding.doubt.is_none())
    }

    /// Whether every case is known to be current.
    pub fn is_current(&self) -> bool {
        self.findings.is_empty() && self.unknown.is_none()
    }
}

/// Whether all measured records lack hashes, like those from older versions and from the profiler.
pub fn lacks_hashes(records: &Records) -> bool {
    let mut measured = records.cases.iter().filter(|record| record.outcome == Outcome::Measured).peekable();
    measured.peek().is_some() && measured.all(|record| record.hashes.is_none())
}

/// All cases defined by a tree of files; `None` for a case that the manifest excludes.
#[derive(Debug, Default)]
pub struct Tree(pub HashMap<CaseKey, Option<Defined>>);

impl Tree {
    /// One record of each case whose code may have changed because its sources or options did.
    pub fn with_other_code<'a>(&self, records: &'a Records) -> Vec<&'a CaseRecord> {
        let differs = |record: &&CaseRecord| {
            let now = self.0.get(&record.case.key).and_then(Option::as_ref);
            record.hashes.as_ref().zip(now).is_some_and(|(then, now)| !now.has_code_of(then))
        };
        each_case(records).filter(differs).collect()
    }

    /// What is stale in a report. `code_of` returns the code of each case in [`Self::with_other_code`].
    pub fn findings<'c>(&self, records: &Records, code_of: impl Fn(&CaseKey) -> Option<&'c Code>) -> Vec<Finding> {
        let mut found: BTreeMap<Reason, HashSet<&CaseKey>> = BTreeMap::new();
        for record in each_case(records) {
            let key = &record.case.key;
            let Some(then) = &record.hashes else { continue };
            let Some(Some(now)) = self.0.get(key) else {
                found.entry(Part::Removed.into()).or_default().insert(key);
                continue;
            };
            let other = code_of(key).filter(|code| code.is_same != Ok(true));
            let code = other.map(|code| Reason::of_code(then, now, code));
            for reason in code.into_iter().chain(parts(record, then, now).into_iter().map(Reason::from)) {
                found.entry(reason).or_default().insert(key);
            }
        }
        let header = &records.header;
        if header.complete && header.narrowed.is_none() && header.planned.is_none() {
            let known: HashSet<&CaseKey> = records.cases.iter().map(|record| &record.case.key).collect();
            let runs = self.0.iter().filter(|(key, now)| now.is_some() && !known.contains(key));
            for (key, _) in runs {
                found.entry(Part::Added.into()).or_default().insert(key);
            }
        }
        found.into_iter().map(|(reason, keys)| reason.finding(&keys, header)).collect()
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reason {
    part: Part,
    files_known: bool,
    files: BTreeSet<String>,
    doubt: Option<String>,
}

impl From<Part> for Reason {
    fn from(part: Part) -> Self {
        Self { part, files_known: false, files: BTreeSet::new(), doubt: None }
    }
}

impl Reason {
    fn of_code(then: &CaseHashes, now: &Defined, Code { changed, is_same }: &Code) -> Self {
        let doubt = is_same.clone().err();
        if now.has_source_of(then) {
            return Self { doubt, ..Part::Options.into() };
        }
        let files_known = !changed.is_empty();
        let files = if files_known { changed } else { &now.sources };
        Self { part: Part::Source, files_known, files: files.clone(), doubt }
    }

    fn finding(self, keys: &HashSet<&CaseKey>, header: &RunHeader) -> Finding {
        let Self { part, files_known, files, doubt } = self;
        let mut variants: Vec<&str> = keys.iter().map(|key| key.variant.as_str()).collect();
        let place = |name: &str| header.variants.iter().position(|variant| variant == name).unwrap_or(usize::MAX);
        variants.sort_by_cached_key(|name| (place(name), *name));
        variants.dedup();
        let variants = variants.into_iter().map(str::to_owned).collect();
        Finding { part, files, files_known, doubt, variants, cases: keys.len() }
    }
}

fn each_case(records: &Records) -> impl Iterator<Item = &CaseRecord> {
    let mut seen = HashSet::new();
    records.cases.iter().filter(move |record| seen.insert(&record.case.key))
}

/// Parts of a case that changed, apart from its code.
fn parts(record: &CaseRecord, then: &CaseHashes, now: &Defined) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut differ = |part, differs: bool| {
        if differs {
            parts.push(part);
        }
    };
    differ(Part::Inputs, then.inputs != now.hashes.inputs);
    differ(Part::Check, then.check != now.hashes.check);
    differ(Part::Work, record.work != now.work);
    let launches = || record.launches.iter().zip(&now.launches);
    if record.launches.len() == now.launches.len() {
        let is_other = |then: runner_types::Dim3, now: Option<[u64; 3]>| {
            now.is_some_and(|now| now != [then.x, then.y, then.z].map(u64::from))
        };
        differ(Part::Kernel, launches().any(|(then, now)| then.label != now.label));
        differ(Part::Grid, launches().any(|(then, now)| is_other(then.grid, now.grid)));
        differ(Part::Block, launches().any(|(then, now)| is_other(then.block, now.block)));
        differ(Part::Shared, launches().any(|(then, now)| u64::from(then.shared) != now.shared));
    }
    parts
}
