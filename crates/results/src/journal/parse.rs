//! Parses a line of a journal: its envelope, checksum and event.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{from_slice, from_str};

use super::format::JOURNAL_VERSION;
use runner_files::sealed;
use runner_types::{
    Case, CaseHashes, CountedLine, Counters, Event, Fingerprint, LaunchRecord, Measurement, Outcome, Verdict,
    WorkAmount,
};

pub(super) struct Line<T> {
    pub seq: u64,
    pub content: T,
}

pub(super) enum Fault {
    Version(u32),
    Damage(String),
}

impl Fault {
    pub fn syntax(error: &serde_json::Error) -> Self {
        Self::Damage(error.to_string())
    }
}

/// Fields of a line without its event. `t` is for human readers; nothing is computed from it.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Envelope<'a> {
    pub v: u32,
    pub seq: Option<u64>,
    #[serde(borrow, default)]
    pub event: Cow<'a, str>,
}

impl<'a> Envelope<'a> {
    /// Parses the envelope at the start of a line written by [`Journal`](super::Journal); the rest of the line may be
    /// missing. Also returns the text after the event's name.
    pub fn of_start(line: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let rest = line.strip_prefix(WRITTEN_START)?;
        let rest = &rest[rest.iter().position(|byte| *byte == b'"')?..];
        let rest = rest.strip_prefix(b"\",\"seq\":")?;
        let (seq, rest) = rest.split_at(rest.iter().position(|byte| !byte.is_ascii_digit())?);
        let rest = rest.strip_prefix(b",\"event\":\"")?;
        let (event, rest) = rest.split_at(rest.iter().position(|byte| !matches!(byte, b'a'..=b'z' | b'_'))?);
        let (seq, event) = (std::str::from_utf8(seq).ok()?, std::str::from_utf8(event).ok()?);
        let envelope = Self { v: JOURNAL_VERSION, seq: Some(seq.parse().ok()?), event: Cow::Borrowed(event) };
        Some((envelope, rest.strip_prefix(b"\"")?))
    }

    fn parse(line: &'a [u8]) -> serde_json::Result<Self> {
        Self::of_start(line).map_or_else(|| from_slice(line), |(envelope, _)| Ok(envelope))
    }
}

/// Start of a line of this version, up to its time.
const WRITTEN_START: &[u8] = b"{\"v\":2,\"t\":\"";

pub(super) fn check(version: u32, line: &[u8]) -> Result<(), Fault> {
    match (sealed::check_line(line), version) {
        (Ok(()), JOURNAL_VERSION) => Ok(()),
        (Ok(()), other) => Err(Fault::Version(other)),
        (Err(bad), JOURNAL_VERSION) => Err(Fault::Damage(bad.to_string())),
        // A flipped bit in the version counts as damage too.
        (Err(bad), other) => Err(Fault::Damage(format!(
            "its version is {other}, but this runner reads version {JOURNAL_VERSION}; {bad}"
        ))),
    }
}

/// Number of a line. Only lines of other versions may lack it.
pub(super) fn numbered(seq: Option<u64>) -> Result<u64, Fault> {
    seq.ok_or_else(|| Fault::Damage("the line has no number".to_owned()))
}

/// Parses a line without its newline.
pub(super) fn parse(line: &[u8]) -> Result<Line<Event>, Fault> {
    let Envelope { v, seq, event } = Envelope::parse(line).map_err(|e| Fault::syntax(&e))?;
    check(v, line)?;
    // A correct checksum does not guarantee valid UTF-8.
    let text = std::str::from_utf8(line).map_err(|e| Fault::Damage(e.to_string()))?;
    let content = of_name(&event, text).map_err(|e| Fault::syntax(&e))?;
    Ok(Line { seq: numbered(seq)?, content })
}

#[derive(Deserialize)]
struct CaseChecked {
    case: Case,
    fingerprint: Option<Fingerprint>,
    #[serde(default)]
    hashes: Option<CaseHashes>,
    verdict: Verdict,
    launches: Vec<LaunchRecord>,
}

#[derive(Deserialize)]
struct CaseMeasured {
    case: Case,
    measurement: Measurement,
}

#[derive(Deserialize)]
struct CaseCounted {
    case: Case,
    counters: Counters,
    #[serde(default)]
    each: Vec<Counters>,
    #[serde(default)]
    lines: Vec<CountedLine>,
}

#[derive(Deserialize)]
struct CaseSettled {
    case: Case,
    fingerprint: Option<Fingerprint>,
    outcome: Outcome,
    work: WorkAmount,
}

#[derive(Deserialize)]
struct CasesPlanned {
    todo: Vec<Case>,
    held: Vec<Case>,
}

/// Parses the event `name` of a line. For frequent and long events, this avoids serde's copy of the line, which it
/// needs to find an event's name.
fn of_name(name: &str, line: &str) -> serde_json::Result<Event> {
    Ok(match name {
        "case_checked" => {
            let CaseChecked { case, fingerprint, hashes, verdict, launches } = from_str(line)?;
            Event::CaseChecked { case, fingerprint, hashes, verdict, launches }
        }
        "case_measured" => {
            let CaseMeasured { case, measurement } = from_str(line)?;
            Event::CaseMeasured { case, measurement }
        }
        "case_counted" => {
            let CaseCounted { case, counters, each, lines } = from_str(line)?;
            Event::CaseCounted { case, counters, each, lines }
        }
        "case_settled" => {
            let CaseSettled { case, fingerprint, outcome, work } = from_str(line)?;
            Event::CaseSettled { case, fingerprint, outcome, work }
        }
        "cases_planned" => {
            let CasesPlanned { todo, held } = from_str(line)?;
            Event::CasesPlanned { todo, held }
        }
        _ => from_str(line)?,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use runner_types::{CaseKey, GroupKey, Mismatch, Regime, Round, Unit, Value};

    #[test]
    fn the_start_of_a_line_tells_what_the_whole_line_does() {
        let line = br#"{"v":2,"t":"2026-01-02T03:04:05Z","seq":17,"event":"case_note","case":1}"#;
        let (envelope, rest) = Envelope::of_start(line).unwrap();
        assert_eq!(envelope, from_slice(line).unwrap());
        assert_eq!(envelope, Envelope { v: JOURNAL_VERSION, seq: Some(17), event: "case_note".into() });
        assert_eq!(rest, br#","case":1}"#);
        for other in [
            r#"{"v":1,"t":"","seq":17,"event":"case_note"}"#,
            r#"{"v":2,"t":"","event":"case_note"}"#,
            r#"{"v":2,"t":"","seq":17,"event":"case\u005fnote"}"#,
            r#"{"v":2,"t":"\"","seq":17,"event":"case_note"}"#,
            r#"{"v":2,"t":"","seq":99999999999999999999,"event":"x"}"#,
            r#"{"v":2,"t":"","seq":1"#,
        ] {
            assert_eq!(Envelope::of_start(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn every_event_is_read_as_serde_reads_it() {
        let axes = vec![("n".to_owned(), Value::Int(4)), ("name".to_owned(), Value::Str("a \"b\"\n".to_owned()))];
        let key = CaseKey { experiment: "x".to_owned(), variant: "v".to_owned(), axes: axes.clone() };
        let case = Case { ordinal: 7, key, group: GroupKey(axes) };
        let wrong = Mismatch {
            what: "output".to_owned(),
            index: 1,
            expected: "1".to_owned(),
            got: "2".to_owned(),
            error: Some(1.0),
            wrong: 1,
            of: 2,
            allowed: None,
        };
        let counters = Counters([("inst_executed".into(), 1.5), ("of the user".into(), 2.0)].into());
        let rounds = vec![Round { round: 3, place: 1, whole: 0.1 + 0.2, each: vec![0.1], process: 1 }];
        let hashes = CaseHashes {
            source: "a".to_owned(),
            options: "b".to_owned(),
            inputs: "c".to_owned(),
            check: "d".to_owned(),
            code: Some("e".to_owned()),
            operations: Some("BAR 2 LDG 4".to_owned()),
        };
        let events = [
            Event::CasesPlanned { todo: vec![case.clone()], held: vec![case.clone()] },
            Event::CaseChecked {
                case: case.clone(),
                fingerprint: Some(Fingerprint("f".to_owned())),
                hashes: Some(hashes),
                verdict: Verdict::Mismatch(wrong.clone()),
                launches: Vec::new(),
            },
            Event::CaseChecked {
                case: case.clone(),
                fingerprint: None,
                hashes: None,
                verdict: Verdict::Pass,
                launches: Vec::new(),
            },
            Event::CaseMeasured {
                case: case.clone(),
                measurement: Measurement::from_rounds(Regime::Warm, Unit::DeviceNanoseconds, rounds),
            },
            Event::CaseCounted {
                case: case.clone(),
                counters: counters.clone(),
                each: vec![counters],
                lines: Vec::new(),
            },
            Event::CaseSettled {
                case: case.clone(),
                fingerprint: None,
                outcome: Outcome::Wrong { mismatch: wrong },
                work: WorkAmount { bytes: Some(8), flops: None },
            },
            Event::CasePrinted { case, text: "a line".to_owned() },
            Event::RunFinished { complete: true, wall_seconds: 1.5 },
        ];
        for event in events {
            let text = serde_json::to_string(&event).unwrap();
            let name = serde_json::to_value(&event).unwrap()["event"].as_str().unwrap().to_owned();
            assert_eq!(of_name(&name, &text).unwrap(), from_str::<Event>(&text).unwrap(), "{text}");
            assert_eq!(of_name(&name, &text).unwrap(), event, "{text}");
        }
    }
}
