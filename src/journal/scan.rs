//! What merging needs of a journal: the events of runs, and of each line of a group where it is and what it settles.
//!
//! The lines of groups, with all samples and counters, stay in the file. They are read when the merged journal is written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{from_slice, from_str};

use super::damage::{Role, Step};
use super::parse::{self, Checked, Envelope, Fault, Line};
use super::read::{Place, Sound, bytes_of, lines_of, sound};
use super::{Damaged, JournalError, Torn};
use crate::model::{Event, GroupKey, Outcome};

/// A journal that was scanned.
#[derive(Debug)]
pub struct Scan {
    /// The journal.
    pub path: PathBuf,
    /// The last line, if it was cut off.
    pub torn: Option<Torn>,
    /// As [`Contents::damaged`](super::Contents::damaged).
    pub damaged: Vec<Damaged>,
    pub(super) steps: Vec<Scanned>,
}

impl Scan {
    /// Whether it holds no event.
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// What a line holds.
#[derive(Debug)]
pub(super) enum Scanned {
    /// Of a run.
    Run(Box<Event>),
    Group(GroupLine),
}

/// A line about a group or one of its cases.
#[derive(Debug)]
pub(super) struct GroupLine {
    pub key: Arc<GroupKey>,
    /// The ordinal of the case.
    pub case: Option<u64>,
    pub kind: Kind,
    pub text: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Started,
    Finished,
    /// The result of a case that was run.
    Result,
    /// The end of a case that was run.
    Settled,
    /// Another line of a case.
    Other,
    /// Ratios of the group.
    Ratios,
}

/// Where the text of a line is.
#[derive(Debug)]
pub(super) enum Text {
    /// In the file, without the line's end.
    Stored { offset: u64, length: u32 },
    /// The line is of the first version: the event that it would be now.
    Upgraded(Box<Event>),
}

impl Step for Scanned {
    fn role(&self) -> Role<'_> {
        match self {
            Self::Run(event) => event.role(),
            Self::Group(line) => match line.kind {
                Kind::Started => Role::GroupStarted(&line.key),
                Kind::Finished => Role::GroupFinished(&line.key),
                Kind::Result => Role::Result(&line.key),
                Kind::Settled | Kind::Other => Role::OfCase(&line.key),
                Kind::Ratios => Role::Other,
            },
        }
    }
}

/// Scans the journal at `path`. Errors and damage are those of [`read`](super::read), except that the inside of a line
/// whose checksum is right is not looked at.
pub fn scan(path: &Path) -> Result<Scan, JournalError> {
    let bytes = bytes_of(path)?;
    let lines = lines_of(&bytes);
    let mut keys = Keys::default();
    let scanned = lines.iter().map(|&(offset, line)| {
        let is_last = offset + line.len() == bytes.len();
        let place = Place { offset, is_ended: line.ends_with(b"\n"), is_last };
        (place, scan_line(line.trim_ascii_end(), offset, &mut keys))
    });
    let Sound { content: steps, torn, damaged, .. } = sound(path, scanned)?;
    Ok(Scan { path: path.to_owned(), torn, damaged, steps })
}

/// What is read of a line.
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
}

#[derive(Deserialize)]
struct CaseHead<'a> {
    ordinal: u64,
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

/// Keys of groups by their text. Most lines have that of the line before.
#[derive(Default)]
struct Keys(HashMap<String, Arc<GroupKey>>);

impl Keys {
    fn of(&mut self, text: &RawValue) -> Result<Arc<GroupKey>, Fault> {
        let text = text.get();
        if let Some(key) = self.0.get(text) {
            return Ok(Arc::clone(key));
        }
        let key: Arc<GroupKey> = Arc::new(from_str(text).map_err(|e| Fault::syntax(&e))?);
        self.0.insert(text.to_owned(), Arc::clone(&key));
        Ok(key)
    }
}

/// How the case of an event begins, which comes first.
const CASE_FIELD: &[u8] = b",\"case\":";

fn scan_line(line: &[u8], offset: usize, keys: &mut Keys) -> Result<Line<Scanned>, Fault> {
    if let Some(scanned) = scan_start(line, offset, keys) {
        return scanned;
    }
    let head: Head<'_> = from_slice(line).map_err(|e| Fault::syntax(&e))?;
    let content = match parse::check(head.v, line)? {
        Checked::Upgraded(event) => of_event(event),
        Checked::Current => of_line(&head, line, offset, keys)?,
    };
    Ok(Line { seq: head.seq, content })
}

/// Scans a line as it is written, of which the long rest behind the case is not parsed.
fn scan_start(line: &[u8], offset: usize, keys: &mut Keys) -> Option<Result<Line<Scanned>, Fault>> {
    let (Envelope { v, seq, event }, rest) = Envelope::of_start(line)?;
    let at_start = || {
        let rest = serde_json::Deserializer::from_slice(rest.strip_prefix(CASE_FIELD)?);
        rest.into_iter::<CaseHead<'_>>().next()?.ok()
    };
    let (CaseHead { ordinal, group }, kind) = match &*event {
        "case_checked" | "case_measured" => (at_start()?, Kind::Result),
        "case_counted" => (at_start()?, Kind::Other),
        "case_settled" => {
            let SettledHead { case, outcome } = from_slice(line).ok()?;
            (case, if outcome.kind == "not_run" { Kind::Other } else { Kind::Settled })
        }
        _ => return None,
    };
    let length = u32::try_from(line.len()).ok()?;
    let mut scanned = || {
        parse::check(v, line)?;
        let text = Text::Stored { offset: offset as u64, length };
        let content = Scanned::Group(GroupLine { key: keys.of(group)?, case: Some(ordinal), kind, text });
        Ok(Line { seq, content })
    };
    Some(scanned())
}

fn of_line(head: &Head<'_>, line: &[u8], offset: usize, keys: &mut Keys) -> Result<Scanned, Fault> {
    let lacks = |what: &str| Fault::Damage(format!("missing field `{what}`"));
    let kind = match &*head.event {
        "group_started" => Kind::Started,
        "group_finished" => Kind::Finished,
        "case_checked" | "case_measured" => Kind::Result,
        "case_settled" => {
            let outcome = head.outcome.ok_or_else(|| lacks("outcome"))?;
            let OutcomeHead { kind } = from_str(outcome.get()).map_err(|e| Fault::syntax(&e))?;
            if kind == "not_run" { Kind::Other } else { Kind::Settled }
        }
        "ratios_formed" => Kind::Ratios,
        "case_counted" | "case_metered" | "case_erred" | "case_printed" | "case_note" => Kind::Other,
        _ => {
            let event = parse::parse(line)?.content;
            return Ok(Scanned::Run(Box::new(event)));
        }
    };
    let length = u32::try_from(line.len()).map_err(|_| Fault::Damage("the line is longer than 4 GB".to_owned()))?;
    let text = Text::Stored { offset: offset as u64, length };
    Ok(Scanned::Group(if matches!(kind, Kind::Started | Kind::Finished | Kind::Ratios) {
        GroupLine { key: keys.of(head.key.ok_or_else(|| lacks("key"))?)?, case: None, kind, text }
    } else {
        let case = head.case.ok_or_else(|| lacks("case"))?;
        let CaseHead { ordinal, group } = from_str(case.get()).map_err(|e| Fault::syntax(&e))?;
        GroupLine { key: keys.of(group)?, case: Some(ordinal), kind, text }
    }))
}

fn of_event(event: Box<Event>) -> Scanned {
    let kind = match &*event {
        Event::GroupStarted { .. } => Kind::Started,
        Event::GroupFinished { .. } => Kind::Finished,
        Event::CaseChecked { .. } | Event::CaseMeasured { .. } => Kind::Result,
        Event::CaseSettled { outcome, .. } if !matches!(outcome, Outcome::NotRun { .. }) => Kind::Settled,
        _ => Kind::Other,
    };
    let (key, case) = match (&*event, event.case()) {
        (Event::GroupStarted { key, .. } | Event::GroupFinished { key, .. }, _) => (key.clone(), None),
        (_, Some(case)) => (case.group.clone(), Some(case.ordinal)),
        _ => return Scanned::Run(event),
    };
    Scanned::Group(GroupLine { key: Arc::new(key), case, kind, text: Text::Upgraded(event) })
}
