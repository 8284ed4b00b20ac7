//! Wraps sentences to a terminal's width.
//!
//! Lines break only between words, so long paths and names stay whole. Characters that would control the terminal are
//! shown as symbols.

use textwrap::{Options, WordSplitter};

use runner_lang::format::visible_lines;

/// Wraps each line of the text at `width`, indenting continuation lines by `indent`. Without a width nothing is
/// wrapped.
pub fn prose(text: &str, width: Option<usize>, indent: &str) -> String {
    prose_after("", text, width, indent)
}

/// Wraps the text like [`prose`], preceded by a coloured word.
pub fn prose_after(word: &str, text: &str, width: Option<usize>, indent: &str) -> String {
    let text = format!("{word}{}", visible_lines(text));
    let Some(width) = width else { return text };
    let options =
        Options::new(width).subsequent_indent(indent).break_words(false).word_splitter(WordSplitter::NoHyphenation);
    let lines = text.split('\n').map(|line| textwrap::fill(&with_joined_units(line), &options).replace(JOINED, " "));
    lines.collect::<Vec<_>>().join("\n")
}

/// No-break space.
const JOINED: char = '\u{a0}';

/// Units that may follow a number.
const UNITS: [&str; 26] = [
    "%", "ns", "µs", "ms", "s", "min", "h", "B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "B/s", "KB/s",
    "MB/s", "GB/s", "TB/s", "MHz", "GHz", "W", "J", "±",
];

/// Joins each number to its unit, so that no line breaks between them.
fn with_joined_units(line: &str) -> String {
    let mut joined = String::with_capacity(line.len());
    for (place, word) in line.split(' ').enumerate() {
        let unit = word.trim_end_matches(['.', ',', ';', ':', ')']);
        let follows_number = joined.ends_with(|c: char| c.is_ascii_digit());
        if place > 0 {
            joined.push(if follows_number && UNITS.contains(&unit) { JOINED } else { ' ' });
        }
        joined.push_str(word);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_nowhere_else() {
        let text = "one two-three four\n/a/very/long/path/to/a/file five";
        let expected = "one\n  two-three\n  four\n/a/very/long/path/to/a/file\n  five";
        assert_eq!(prose(text, Some(11), "  "), expected);
        assert_eq!(prose(text, None, "  "), text);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(prose("takes 12.5 µs, twice", Some(11), ""), "takes\n12.5 µs,\ntwice");
        assert_eq!(prose("all 35 groups", Some(7), ""), "all 35\ngroups");
        assert_eq!(prose("  a  b", Some(20), ""), "  a  b");
    }

    #[test]
    fn colour_takes_no_room() {
        let word = "\u{1b}[31merror\u{1b}[0m: ";
        assert_eq!(prose_after(word, "it is", Some(12), ""), "\u{1b}[31merror\u{1b}[0m: it is");
        assert_eq!(prose_after(word, "it is", Some(11), ""), "\u{1b}[31merror\u{1b}[0m: it\nis");
    }

    #[test]
    fn a_name_does_not_control_the_terminal() {
        assert_eq!(prose("\u{1b}]0;title\u{7}a\nb", None, ""), "␛]0;title␇a\nb");
    }
}
