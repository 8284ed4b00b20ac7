//! Source lines at which counts changed.

use super::notation::number_of;
use runner_lang::format::plural;
use runner_results::analyse::compare::{Change, CounterChange, LineChange};
use runner_types::CountedLine;

const MOST_LINES: usize = 3;

/// Minimum share of the total change that the listed lines must account for.
const LEAST_SHARE: f64 = 0.75;

/// Maximum number of changed lines to quote.
const MOST_TEXTS: usize = 2;

/// Maximum length of a quoted line, in characters.
const LONGEST_TEXT: usize = 48;

/// Where most of the change is, e.g. `all at new reduce.cu:31`; `None` if lines were not counted or too many changed.
pub fn place(change: &Change, counter: &CounterChange) -> Option<String> {
    let delta = |line: &LineChange| {
        let [base, new] = line.counts(&counter.name);
        new - base
    };
    let mut changed: Vec<&LineChange> = change.lines.iter().filter(|line| delta(line) != 0.0).collect();
    changed.sort_by(|a, b| delta(b).abs().total_cmp(&delta(a).abs()));
    let total: f64 = changed.iter().map(|line| delta(line).abs()).sum();
    if let [only] = changed[..]
        && (delta(only) - (counter.new - counter.base)).abs() < 0.5
    {
        return Some(format!("all at {}", name(only)));
    }
    let mut named = 0.0;
    let needed = changed.iter().position(|line| {
        named += delta(line).abs();
        named >= LEAST_SHARE * total
    });
    let most = needed.filter(|last| *last < MOST_LINES)?;
    let signed = |value: f64| format!("{}{}", if value < 0.0 { "−" } else { "+" }, number_of(value.abs()));
    let shown = &changed[..=most];
    let mut parts: Vec<String> =
        shown.iter().map(|line| format!("{} at {}", signed(delta(line)), name(line))).collect();
    let elsewhere = counter.new - counter.base - shown.iter().map(|line| delta(line)).sum::<f64>();
    parts.extend((elsewhere.abs() >= 0.5).then(|| format!("{} elsewhere", signed(elsewhere))));
    Some(parts.join(", "))
}

/// Lines whose text changed, such as `reduce.cu:31 is "b", was "a"`; further ones are only counted.
pub fn texts(change: &Change) -> Option<String> {
    let changed: Vec<&LineChange> = change.lines.iter().filter(|line| line.is_other_text()).collect();
    let one = |line: &&LineChange| match (&line.base, &line.new) {
        (Some(base), Some(new)) => {
            let [base, new] = shortened(&base.text, &new.text);
            format!("{} is \"{new}\", was \"{base}\"", name(line))
        }
        (None, Some(new)) => format!("{} added: \"{}\"", name(line), cut(&new.text)),
        (base, None) => {
            format!("{} removed: \"{}\"", name(line), cut(base.as_ref().map_or("", |base| &base.text)))
        }
    };
    let mut parts: Vec<String> = changed.iter().take(MOST_TEXTS).map(one).collect();
    let more = changed.len().saturating_sub(MOST_TEXTS);
    parts.extend((more > 0).then(|| plural(more as u64, "other changed line")));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Name of a line: `reduce.cu:31` if it has this number before and after, otherwise `new reduce.cu:31` or `former
/// reduce.cu:31`.
fn name(line: &LineChange) -> String {
    let place = |line: &CountedLine| format!("{}:{}", line.file, line.line);
    match (&line.base, &line.new) {
        (Some(base), Some(new)) if base.line == new.line => place(new),
        (_, Some(new)) => format!("new {}", place(new)),
        (Some(base), None) => format!("former {}", place(base)),
        (None, None) => String::new(),
    }
}

/// Removes the common prefix of long strings.
fn shortened(base: &str, new: &str) -> [String; 2] {
    if base.chars().count().max(new.chars().count()) <= LONGEST_TEXT {
        return [base.to_owned(), new.to_owned()];
    }
    let same = base.chars().zip(new.chars()).take_while(|(b, n)| b == n).count();
    let from = same.saturating_sub(LONGEST_TEXT / 4);
    [base, new].map(|text| {
        let rest: String = text.chars().skip(from).collect();
        format!("{}{}", if from > 0 { "…" } else { "" }, cut(&rest))
    })
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST_TEXT {
        return text.to_owned();
    }
    text.chars().take(LONGEST_TEXT).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_results::analyse::compare::Kind;
    use runner_types::{Case, CaseKey, Counters, GroupKey};

    fn line(number: u32, text: &str, sectors: f64) -> CountedLine {
        CountedLine {
            file: "k.cu".to_owned(),
            line: number,
            text: text.to_owned(),
            counters: Counters([("gld_sectors".into(), sectors)].into()),
        }
    }

    fn change(lines: Vec<(Option<CountedLine>, Option<CountedLine>)>) -> Change {
        let key = CaseKey { experiment: "e".to_owned(), variant: "v".to_owned(), axes: Vec::new() };
        Change {
            lines: lines.into_iter().map(|(base, new)| LineChange { base, new }).collect(),
            ..Change::new(Case { ordinal: 0, key, group: GroupKey(Vec::new()) }, Kind::MoreWork)
        }
    }

    fn sectors(base: f64, new: f64) -> CounterChange {
        CounterChange { name: "gld_sectors".to_owned(), base, new, is_cost: true, decides: true }
    }

    #[test]
    fn a_count_is_placed_at_the_lines_that_most_of_its_change_is_at() {
        let moved = |number, base, new| (Some(line(number, "a", base)), Some(line(number, "a", new)));
        let one = change(vec![moved(31, 100.0, 142.0), moved(33, 5.0, 5.0)]);
        assert_eq!(place(&one, &sectors(105.0, 147.0)).as_deref(), Some("all at k.cu:31"));
        // The total changed by more than the lines account for: some code maps to no line.
        assert_eq!(place(&one, &sectors(105.0, 150.0)).as_deref(), Some("+42 at k.cu:31, +3 elsewhere"));
        let two = change(vec![moved(31, 100.0, 110.0), moved(35, 60.0, 20.0), moved(36, 1.0, 2.0)]);
        assert_eq!(place(&two, &sectors(161.0, 132.0)).as_deref(), Some("−40 at k.cu:35, +11 elsewhere"));
        let many = change((1..=8).map(|number| moved(number, 1.0, 2.0)).collect());
        assert_eq!(place(&many, &sectors(8.0, 16.0)), None);
        assert_eq!(place(&change(Vec::new()), &sectors(1.0, 2.0)), None);
    }

    #[test]
    fn texts_that_changed_are_shown_if_they_are_few() {
        let long = "value = combine(value, block[threadIdx.x], partial[blockIdx.x], ";
        let one = change(vec![(Some(line(3, &format!("{long}1);"), 1.0)), Some(line(4, &format!("{long}2);"), 1.0)))]);
        let expected = "new k.cu:4 is \"…lockIdx.x], 2);\", was \"…lockIdx.x], 1);\"";
        assert_eq!(texts(&one).as_deref(), Some(expected));
        let ends = change(vec![(None, Some(line(7, "new();", 1.0))), (Some(line(9, "old();", 1.0)), None)]);
        assert_eq!(texts(&ends).as_deref(), Some("new k.cu:7 added: \"new();\"; former k.cu:9 removed: \"old();\""));
        let other = |number| (Some(line(number, "a", 1.0)), Some(line(number, "b", 1.0)));
        let many = change((1..=3).map(other).collect());
        assert_eq!(
            texts(&many).as_deref(),
            Some("k.cu:1 is \"b\", was \"a\"; k.cu:2 is \"b\", was \"a\"; 1 other changed line")
        );
        assert_eq!(texts(&change(vec![(Some(line(1, "a", 1.0)), Some(line(2, "a", 3.0)))])), None);
    }
}
