//! Wraps sentences at the width of a terminal. Lines break between words only: a long path or name stays whole.

use textwrap::{Options, WordSplitter};

/// The text with each of its lines wrapped at `width`, and continued lines indented by `indent`. Without a width
/// nothing is wrapped.
pub fn prose(text: &str, width: Option<usize>, indent: &str) -> String {
    let Some(width) = width else { return text.to_owned() };
    let options =
        Options::new(width).subsequent_indent(indent).break_words(false).word_splitter(WordSplitter::NoHyphenation);
    let lines = text.split('\n').map(|line| textwrap::fill(line, &options));
    lines.collect::<Vec<_>>().join("\n")
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
    fn colour_takes_no_room() {
        let text = "\u{1b}[31merror\u{1b}[0m: it is";
        assert_eq!(prose(text, Some(12), ""), text);
        assert_eq!(prose(text, Some(11), ""), "\u{1b}[31merror\u{1b}[0m: it\nis");
    }
}
