//! How many instructions of each operation machine code has, as a short text: `BAR 2 LDG 4`.

use std::collections::BTreeMap;

/// Returns the counts as a text, in the order of the names.
pub fn write_operations(counts: &BTreeMap<&str, u32>) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(" ")
}

/// Returns the names and counts in such a text. What is none is left out.
pub fn operation_counts(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let mut words = text.split(' ');
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
}
