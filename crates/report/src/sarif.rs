//! Hints of a source view, and the fault that ended its case, as SARIF 2.1.0.
//!
//! Code hosts show each result at its line of a pull request.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::RenderError;
use super::source_view::{At, SourceView, sum};
use runner_types::Counters;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// What to do about accesses that move more of global memory than they use.
pub const COALESCE: &str =
    "Let neighbouring threads access neighbouring addresses, or stage the data in shared memory.";

/// What to do about bank conflicts.
pub const AVOID_CONFLICTS: &str =
    "Pad rows by one element, or swizzle the index, so that the lanes access different banks.";

/// What to do about local memory.
pub const KEEP_IN_REGISTERS: &str =
    "Index arrays with constants so that they stay in registers, or give the kernel more registers.";

struct Rule {
    id: &'static str,
    level: &'static str,
    title: &'static str,
    help: &'static str,
    /// Hint that follows from the counts of a line, if any.
    hint: fn(&Counters) -> Option<String>,
}

/// Rules for results that follow from counts, and last the rule for faults.
const RULES: [Rule; 5] = [
    Rule {
        id: "uncoalesced-access",
        level: "warning",
        title: "Less than half of what global memory moves is used",
        help: COALESCE,
        hint: uncoalesced,
    },
    Rule {
        id: "bank-conflict",
        level: "warning",
        title: "Bank conflicts in shared memory",
        help: AVOID_CONFLICTS,
        hint: conflicts,
    },
    Rule {
        id: "local-memory",
        level: "note",
        title: "A per-thread array or spilled registers are in local memory",
        help: KEEP_IN_REGISTERS,
        hint: local,
    },
    Rule {
        id: "divergent-branch",
        level: "note",
        title: "Lanes of a warp diverge at a branch",
        help: "Make whole warps take the same path, or replace the branch with a select.",
        hint: divergent,
    },
    Rule {
        id: "fault",
        level: "error",
        title: "The simulator's sanitizer ended the case",
        help: "The message names the kernel, the block and the thread.",
        hint: |_| None,
    },
];

fn uncoalesced(counters: &Counters) -> Option<String> {
    let accesses = [("loads", "gld_sectors", "gld_requested_bytes"), ("stores", "gst_sectors", "gst_requested_bytes")];
    let parts = accesses.into_iter().filter_map(|(what, sectors, bytes)| {
        let (moved, asked) = (32 * sum(counters, &[sectors]), sum(counters, &[bytes]));
        (moved > 2 * asked).then(|| {
            let share = 100.0 * asked as f64 / moved as f64;
            format!("{what} move {moved} bytes of global memory, of which {share:.0} % are used")
        })
    });
    joined(parts)
}

fn conflicts(counters: &Counters) -> Option<String> {
    let accesses = [
        ("loads", "shared_ld_bank_conflicts", "shared_ld_requests"),
        ("stores", "shared_st_bank_conflicts", "shared_st_requests"),
    ];
    let parts = accesses.into_iter().filter_map(|(what, passes, requests)| {
        let (passes, requests) = (sum(counters, &[passes]), sum(counters, &[requests]));
        (passes > 0).then(|| format!("{requests} {what} of shared memory take {passes} additional passes"))
    });
    joined(parts)
}

fn local(counters: &Counters) -> Option<String> {
    let [loads, stores] = ["local_ld_requests", "local_st_requests"].map(|name| sum(counters, &[name]));
    (loads + stores > 0).then(|| format!("warps load local memory {loads} times and store to it {stores} times"))
}

fn divergent(counters: &Counters) -> Option<String> {
    let [diverged, branches] = ["divergent_branch", "branch"].map(|name| sum(counters, &[name]));
    (diverged > 0).then(|| format!("lanes diverge at {diverged} of {branches} branches that warps execute here"))
}

fn joined(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

impl SourceView {
    /// Formats the hints and the fault as SARIF. Files below `root` are named relative to it.
    pub fn sarif(&self, root: &Path) -> Result<String, RenderError> {
        let result = |index: usize, at: Option<At>, text: &str| {
            let rule = &RULES[index];
            let mut result = json!({
                "ruleId": rule.id,
                "ruleIndex": index,
                "level": rule.level,
                "message": { "text": format!("{}: {text}", self.case) },
            });
            if let Some(at) = at {
                let uri = uri(&self.files[at.file].path, root);
                result["locations"] = json!([{
                    "physicalLocation": { "artifactLocation": { "uri": uri }, "region": { "startLine": at.line } },
                }]);
            }
            result
        };
        let mut results = Vec::new();
        if let Some(fault) = &self.fault {
            results.push(result(RULES.len() - 1, self.named_in(fault), fault));
        }
        for (file, lines) in self.files.iter().enumerate() {
            for line in &lines.lines {
                let at = At { file, line: line.line };
                let hints =
                    RULES.iter().enumerate().filter_map(|(index, rule)| Some((index, (rule.hint)(&line.counters)?)));
                results.extend(hints.map(|(index, text)| result(index, Some(at), &text)));
            }
        }
        let rules = RULES.iter().map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.title },
                "help": { "text": rule.help },
                "defaultConfiguration": { "level": rule.level },
            })
        });
        let driver = json!({
            "name": "runner",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": rules.collect::<Vec<Value>>(),
        });
        let log = json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints", "results": results }],
        });
        let mut text = serde_json::to_string_pretty(&log)?;
        text.push('\n');
        Ok(text)
    }

    /// The location that a fault names as `FILE:LINE`, if it is in a file of the view.
    fn named_in(&self, fault: &str) -> Option<At> {
        self.files.iter().enumerate().find_map(|(file, of)| {
            let name = format!("{}:", Path::new(&of.path).file_name()?.to_str()?);
            fault.split(&name).skip(1).find_map(|after| {
                let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
                let line = digits.parse().ok()?;
                of.lines.iter().any(|known| known.line == line).then_some(At { file, line })
            })
        })
    }
}

/// Path of a file as a URI: relative to `root` if below it, otherwise absolute.
fn uri(path: &str, root: &Path) -> String {
    let below = Path::new(path).strip_prefix(root).ok().and_then(Path::to_str);
    let mut uri = String::from(if below.is_some() || !path.starts_with('/') { "" } else { "file://" });
    for byte in below.unwrap_or(path).bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::super::source_view::{SourceFile, SourceLine};
    use super::*;

    fn counters(counts: &[(&'static str, f64)]) -> Counters {
        Counters(counts.iter().map(|&(name, count)| (name.into(), count)).collect())
    }

    /// A file with one line that violates each rule, and a line without fault.
    fn view() -> SourceView {
        let counts = [
            // Exactly half of the bytes are used.
            counters(&[("gld_sectors", 8.0), ("gld_requested_bytes", 128.0)]),
            counters(&[
                ("gld_sectors", 32.0),
                ("gld_requested_bytes", 128.0),
                ("gst_sectors", 4.0),
                ("gst_requested_bytes", 128.0),
            ]),
            counters(&[("shared_ld_requests", 8.0), ("shared_ld_bank_conflicts", 24.0)]),
            counters(&[("local_ld_requests", 3.0), ("local_st_requests", 5.0)]),
            counters(&[("branch", 16.0), ("divergent_branch", 4.0)]),
        ];
        let lines = (1..).zip(counts).map(|(line, counters)| SourceLine { line, text: String::new(), counters });
        SourceView {
            case: "k[n = 8]".to_owned(),
            files: vec![SourceFile { path: "/home/me/a b/k.cu".to_owned(), lines: lines.collect() }],
            ..SourceView::default()
        }
    }

    fn log(view: &SourceView, root: &str) -> Value {
        serde_json::from_str(&view.sarif(Path::new(root)).unwrap()).unwrap()
    }

    /// Rule, line and text of each result.
    fn results<'l>(log: &'l Value) -> Vec<(&'l str, u64, &'l str)> {
        let results = log["runs"][0]["results"].as_array().unwrap();
        let line = |result: &Value| result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64();
        let text = |value: &'l Value| value.as_str().unwrap();
        let read = results
            .iter()
            .map(|result| (text(&result["ruleId"]), line(result).unwrap_or(0), text(&result["message"]["text"])));
        read.collect()
    }

    #[test]
    fn each_line_that_wastes_something_has_a_result() {
        let expected = [
            ("uncoalesced-access", 2, "k[n = 8]: loads move 1024 bytes of global memory, of which 12 % are used"),
            ("bank-conflict", 3, "k[n = 8]: 8 loads of shared memory take 24 additional passes"),
            ("local-memory", 4, "k[n = 8]: warps load local memory 3 times and store to it 5 times"),
            ("divergent-branch", 5, "k[n = 8]: lanes diverge at 4 of 16 branches that warps execute here"),
        ];
        assert_eq!(results(&log(&view(), "/home/me")), expected);
    }

    #[test]
    fn a_fault_is_an_error_at_the_line_that_it_names() {
        let fault = "read past the end in kernel `k` at k.cu:4, block (0,0,0)";
        let log = log(&SourceView { fault: Some(fault.to_owned()), ..view() }, "/home/me");
        let first = &log["runs"][0]["results"][0];
        assert_eq!(results(&log)[0], ("fault", 4, format!("k[n = 8]: {fault}").as_str()));
        assert_eq!(first["level"], "error");
        let place = SourceView { fault: Some("at k.cu:99 or lock.cu:1".to_owned()), ..view() };
        assert_eq!(place.named_in("at k.cu:99"), None, "the file has no such line");
    }

    #[test]
    fn files_are_named_from_the_root_and_by_their_whole_path_elsewhere() {
        assert_eq!(uri("/home/me/a b/k.cu", Path::new("/home/me")), "a%20b/k.cu");
        assert_eq!(uri("/home/me/k.cu", Path::new("/home/you")), "file:///home/me/k.cu");
        assert_eq!(uri("k\u{e4}.cu", Path::new("/home/me")), "k%C3%A4.cu");
    }

    /// Properties that SARIF 2.1.0 requires of each object we write, and the allowed values of its enumerations.
    #[test]
    fn a_log_has_what_the_schema_requires() {
        let log = log(&SourceView { fault: Some("somewhere".to_owned()), ..view() }, "/");
        assert_eq!(log["version"], "2.1.0");
        for run in log["runs"].as_array().unwrap() {
            assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().unwrap()));
            assert!(run["tool"]["driver"]["name"].is_string());
            let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
            for rule in rules {
                assert!(rule["id"].is_string() && rule["shortDescription"]["text"].is_string());
            }
            for result in run["results"].as_array().unwrap() {
                assert!(result["message"]["text"].is_string());
                assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
                let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
                assert_eq!(rule["id"], result["ruleId"]);
                for location in result["locations"].as_array().into_iter().flatten() {
                    let place = &location["physicalLocation"];
                    let uri = place["artifactLocation"]["uri"].as_str().unwrap();
                    assert!(!uri.contains(' ') && place["region"]["startLine"].as_u64().unwrap() >= 1, "{location}");
                }
            }
        }
    }
}
