//! Scans a journal for merging. Keeps the events of runs and, for each line of a group, its position and its effect.
//!
//! Lines of groups, with all samples and counters, stay in the file. They are read when the merged journal is written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{from_slice, from_str};

use super::parse::{self, Envelope, Fault, Line};
use super::read::{LinePlace, bytes_of, in_order, lines_of};
use super::role::{Content, Part, Role};
use super::{Damaged, History, JournalError, Run, Torn};
use runner_types::{Case, CaseKey, Event, GroupKey};

#[derive(Debug)]
pub struct Scan {
    pub path: PathBuf,
    /// The last line, if it was cut off.
    pub torn: Option<Torn>,
    pub damaged: Vec<Damaged>,
    pub(super) history: History<Scanned>,
}

impl Scan {
    /// Whether no run ever started.
    pub fn is_empty(&self) -> bool {
        self.run().is_none()
    }

    /// The last run that counts.
    pub fn run(&self) -> Option<&Run> {
        self.history.run()
    }
}

#[derive(Debug)]
pub(super) enum Scanned {
    /// A line about a run.
    Run(Box<Event>),
    /// A line about a group or one of its cases.
    Group(GroupLine),
}

/// A line about a group or one of its cases.
#[derive(Debug)]
pub(super) struct GroupLine {
    key: Arc<GroupKey>,
    kind: Kind,
    text: Text,
}

impl Scanned {
    /// Variant and code hashes of a line that has them.
    pub fn code(&self) -> Option<(&str, &Arc<Code>)> {
        match self {
            Self::Group(GroupLine { kind: Kind::Case { key, code: Some(code), .. }, .. }) => Some((&key.variant, code)),
            _ => None,
        }
    }

    /// Location of the text of a group's line.
    pub const fn text(&self) -> Option<Text> {
        match self {
            Self::Run(_) => None,
            Self::Group(line) => Some(line.text),
        }
    }
}

#[derive(Debug)]
enum Kind {
    Started,
    Finished,
    Ratios,
    Case { ordinal: u64, key: Arc<CaseKey>, part: Part, code: Option<Arc<Code>> },
}

/// Hashes of a case's sources and compiler options.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Code {
    pub source: String,
    pub options: String,
}

/// Location of a line's text in the file, without its newline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    pub offset: u64,
    pub length: u32,
}

impl Content for Scanned {
    fn role(&self) -> Role<'_> {
        match self {
            Self::Run(event) => event.role(),
            Self::Group(GroupLine { key: group, kind, .. }) => match kind {
                Kind::Started => Role::GroupStarted(group),
                Kind::Finished => Role::GroupFinished(group),
                Kind::Ratios => Role::Ratios(group),
                Kind::Case { key, part, .. } => Role::Case(group, key, *part),
            },
        }
    }

    fn case(&self) -> Option<Case> {
        match self {
            Self::Group(GroupLine { key: group, kind: Kind::Case { ordinal, key, .. }, .. }) => {
                Some(Case { ordinal: *ordinal, key: (**key).clone(), group: (**group).clone() })
            }
            _ => None,
        }
    }

    fn into_event(self) -> Option<Event> {
        match self {
            Self::Run(event) => Some(*event),
            Self::Group(_) => None,
        }
    }
}

/// Scans the journal at `path`. Reports the same errors and damage as [`read`](super::read), except that a line with a
/// correct checksum is not fully parsed.
pub fn scan(path: &Path) -> Result<Scan, JournalError> {
    let bytes = bytes_of(path)?;
    let lines = lines_of(&bytes);
    let mut keys = Keys::default();
    let scanned = lines.iter().map(|&(offset, line)| {
        let is_last = offset + line.len() == bytes.len();
        let place = LinePlace { offset: offset as u64, is_ended: line.ends_with(b"\n"), is_last };
        (place, scan_line(line.trim_ascii_end(), offset, &mut keys))
    });
    let lines = in_order(path, scanned)?;
    let torn = lines.torn;
    let (history, damaged) = lines.into_history(path)?;
    Ok(Scan { path: path.to_owned(), torn, damaged, history })
}

/// A journal's last run, if all its cases have an outcome. Otherwise, describes the damage.
pub fn whole_run(path: &Path) -> Result<Run, String> {
    let scan = scan(path).map_err(|error| error.to_string())?;
    let damaged = scan.damaged.first().map(|Damaged { line, message }| format!("{}:{line}: {message}", path.display()));
    let last = scan.history.into_last_run().filter(|last| last.cases.iter().all(|case| case.is_run));
    last.map(|last| last.run)
        .ok_or_else(|| damaged.unwrap_or_else(|| format!("{}: results of its last run are missing", path.display())))
}

/// The parsed start of a line.
#[derive(Deserialize)]
struct Head<'a> {
    v: u32,
    seq: Option<u64>,
    #[serde(borrow, default)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    case: Option<&'a RawValue>,
    #[serde(borrow)]
    key: Option<&'a RawValue>,
    #[serde(borrow)]
    outcome: Option<&'a RawValue>,
    #[serde(borrow)]
    hashes: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CaseHead<'a> {
    ordinal: u64,
    #[serde(borrow)]
    key: &'a RawValue,
    #[serde(borrow)]
    group: &'a RawValue,
}

#[derive(Deserialize)]
struct SettledHead<'a> {
    #[serde(borrow)]
    case: CaseHead<'a>,
    #[serde(borrow)]
    outcome: OutcomeHead<'a>,
}

#[derive(Deserialize)]
struct OutcomeHead<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

impl OutcomeHead<'_> {
    fn part(&self) -> Part {
        Part::Settled { is_run: self.kind != "not_run" }
    }
}

/// Keys of groups and cases by their text, so that each is parsed once. Most lines repeat the previous line's keys.
#[derive(Default)]
struct Keys {
    groups: HashMap<String, Arc<GroupKey>>,
    cases: HashMap<String, Arc<CaseKey>>,
    codes: HashMap<String, Arc<Code>>,
}

impl Keys {
    fn line(
        &mut self,
        head: &CaseHead<'_>,
        part: Part,
        hashes: Option<&RawValue>,
        text: Text,
    ) -> Result<Scanned, Fault> {
        let code = hashes.map(|hashes| parsed(&mut self.codes, hashes)).transpose()?;
        let kind = Kind::Case { ordinal: head.ordinal, key: parsed(&mut self.cases, head.key)?, part, code };
        Ok(Scanned::Group(GroupLine { key: parsed(&mut self.groups, head.group)?, kind, text }))
    }
}

fn parsed<K: DeserializeOwned>(known: &mut HashMap<String, Arc<K>>, text: &RawValue) -> Result<Arc<K>, Fault> {
    let text = text.get();
    if let Some(key) = known.get(text) {
        return Ok(Arc::clone(key));
    }
    let key: Arc<K> = Arc::new(from_str(text).map_err(|e| Fault::syntax(&e))?);
    known.insert(text.to_owned(), Arc::clone(&key));
    Ok(key)
}

/// Text before an event's case, which is its first field.
const CASE_FIELD: &[u8] = b",\"case\":";
/// Text after the case in a `CaseChecked` event.
const FINGERPRINT_FIELD: &[u8] = b",\"fingerprint\":";
const HASHES_FIELD: &[u8] = b",\"hashes\":";

fn scan_line(line: &[u8], offset: usize, keys: &mut Keys) -> Result<Line<Scanned>, Fault> {
    if let Some(scanned) = scan_start(line, offset, keys) {
        return scanned;
    }
    let head: Head<'_> = from_slice(line).map_err(|e| Fault::syntax(&e))?;
    parse::check(head.v, line)?;
    Ok(Line { seq: parse::numbered(head.seq)?, content: of_line(&head, line, offset, keys)? })
}

/// Scans a line as written by this program, without parsing the long rest after the case.
fn scan_start(line: &[u8], offset: usize, keys: &mut Keys) -> Option<Result<Line<Scanned>, Fault>> {
    let (Envelope { v, seq, event }, rest) = Envelope::of_start(line)?;
    let at_start = || value_of::<CaseHead<'_>>(rest, CASE_FIELD);
    let (case, part, hashes) = match &*event {
        "case_checked" => {
            let (case, rest) = at_start()?;
            let (_, rest) = value_of::<&RawValue>(rest, FINGERPRINT_FIELD)?;
            (case, Part::Result, value_of::<&RawValue>(rest, HASHES_FIELD).map(|(hashes, _)| hashes))
        }
        "case_measured" => (at_start()?.0, Part::Result, None),
        "case_counted" => (at_start()?.0, Part::Counted, None),
        "case_settled" => {
            let SettledHead { case, outcome } = from_slice(line).ok()?;
            (case, outcome.part(), None)
        }
        _ => return None,
    };
    let text = Text { offset: offset as u64, length: u32::try_from(line.len()).ok()? };
    let checked = parse::check(v, line).and_then(|()| parse::numbered(seq));
    Some(checked.and_then(|seq| Ok(Line { seq, content: keys.line(&case, part, hashes, text)? })))
}

/// Value of the field at the start of a text, and the text after it.
fn value_of<'a, T: Deserialize<'a>>(text: &'a [u8], field: &[u8]) -> Option<(T, &'a [u8])> {
    let text = text.strip_prefix(field)?;
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

fn of_line(head: &Head<'_>, line: &[u8], offset: usize, keys: &mut Keys) -> Result<Scanned, Fault> {
    let lacks = |what: &str| Fault::Damage(format!("missing field `{what}`"));
    let length = u32::try_from(line.len()).map_err(|_| Fault::Damage("the line is longer than 4 GB".to_owned()))?;
    let text = Text { offset: offset as u64, length };
    let mut group = |kind| {
        let key = parsed(&mut keys.groups, head.key.ok_or_else(|| lacks("key"))?)?;
        Ok(Scanned::Group(GroupLine { key, kind, text }))
    };
    let part = match &*head.event {
        "group_started" => return group(Kind::Started),
        "group_finished" => return group(Kind::Finished),
        "ratios_formed" => return group(Kind::Ratios),
        "case_checked" | "case_measured" => Part::Result,
        "case_counted" => Part::Counted,
        "case_note" => Part::Note,
        "case_metered" | "case_erred" | "case_printed" => Part::Detail,
        "case_settled" => {
            let outcome = head.outcome.ok_or_else(|| lacks("outcome"))?;
            from_str::<OutcomeHead<'_>>(outcome.get()).map_err(|e| Fault::syntax(&e))?.part()
        }
        _ => return Ok(Scanned::Run(Box::new(parse::parse(line)?.content))),
    };
    let case = head.case.ok_or_else(|| lacks("case"))?;
    keys.line(&from_str(case.get()).map_err(|e| Fault::syntax(&e))?, part, head.hashes, text)
}
