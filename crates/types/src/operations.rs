//! Opcode counts of machine code in a compact text form: `BAR 2 LDG 4`.
//!
//! The list of instructions may follow, each with its source line: `BAR 1 LDG 1 ; LDG k.cu:3 BAR :4`.

use std::collections::BTreeMap;

use serde::Serialize;

/// Separator between the counts and the list of instructions.
const LISTED: &str = " ; ";

/// Marks an instruction without a source line. A file name is written only if it differs from the previous one.
const NOWHERE: &str = "-";

/// A machine instruction with its source line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedOperation {
    /// Opcode without modifiers, such as `LDG`.
    pub name: String,
    /// File name and line, such as `k.cu:3`, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Formats a list of instructions, each with its file and line.
pub fn write_list<'a>(instructions: impl IntoIterator<Item = (&'a str, Option<(&'a str, u32)>)>) -> String {
    let mut before = "";
    let mut words = Vec::new();
    for (name, place) in instructions {
        let place = match place {
            Some((file, line)) if file == before => format!(":{line}"),
            Some((file, line)) => {
                before = file;
                format!("{}:{line}", file.replace(char::is_whitespace, "_"))
            }
            None => NOWHERE.to_owned(),
        };
        words.push(format!("{name} {place}"));
    }
    words.join(" ")
}

/// Appends the kernels' instruction lists to their counts.
pub fn with_lists<'a>(counts: String, lists: impl IntoIterator<Item = &'a str>) -> String {
    let lists: Vec<&str> = lists.into_iter().filter(|list| !list.is_empty()).collect();
    if lists.is_empty() { counts } else { format!("{counts}{LISTED}{}", lists.join(" ")) }
}

/// The instruction list of a text in this format; empty if it has none.
pub fn list_of(text: &str) -> &str {
    text.split_once(LISTED).map_or("", |(_, list)| list)
}

/// Parses a list of instructions.
pub fn listed_operations(list: &str) -> Vec<ListedOperation> {
    let mut words = list.split(' ').filter(|word| !word.is_empty());
    let mut file = "";
    let mut found = Vec::new();
    while let (Some(name), Some(place)) = (words.next(), words.next()) {
        let place = place.rsplit_once(':').map(|(named, line)| {
            file = if named.is_empty() { file } else { named };
            format!("{file}:{line}")
        });
        found.push(ListedOperation { name: name.to_owned(), place });
    }
    found
}

pub fn write_operations(counts: &BTreeMap<&str, u32>) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(" ")
}

/// Parses the opcodes and counts of a text in this format. Skips words that are not counts.
pub fn operation_counts(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let mut words = text.split(LISTED).next().unwrap_or_default().split(' ');
    std::iter::from_fn(move || Some((words.next()?, words.next()?)))
        .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let counts = BTreeMap::from([("LDG", 4), ("BAR", 2)]);
        let text = write_operations(&counts);
        assert_eq!(text, "BAR 2 LDG 4");
        assert_eq!(operation_counts(&text).collect::<BTreeMap<_, _>>(), counts);
        for damaged in ["", "BAR", "BAR two", " "] {
            assert_eq!(operation_counts(damaged).count(), 0, "{damaged}");
        }
    }

    #[test]
    fn instructions_are_read_as_they_were_listed() {
        let list =
            [("LDG", Some(("k.cu", 3))), ("BAR", Some(("k.cu", 4))), ("EXIT", None), ("LDG", Some(("a b.cuh", 1)))];
        let text = with_lists("BAR 1 EXIT 1 LDG 2".to_owned(), [write_list(list).as_str(), ""]);
        assert_eq!(text, "BAR 1 EXIT 1 LDG 2 ; LDG k.cu:3 BAR :4 EXIT - LDG a_b.cuh:1");
        assert_eq!(operation_counts(&text).map(|(_, count)| count).sum::<u32>(), 4);
        let listed = listed_operations(list_of(&text));
        let places: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.place.as_deref())).collect();
        let expected = [("LDG", Some("k.cu:3")), ("BAR", Some("k.cu:4")), ("EXIT", None), ("LDG", Some("a_b.cuh:1"))];
        assert_eq!(places, expected);
        assert_eq!((list_of("BAR 1"), listed_operations("LDG")), ("", Vec::new()));
        assert_eq!(with_lists("BAR 1".to_owned(), [""]), "BAR 1");
    }
}
