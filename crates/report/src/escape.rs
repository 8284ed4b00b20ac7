//! Escapes text for each form of output, so that it is shown and never interpreted.
//!
//! Names and messages come from manifests, kernels, compilers and records that others wrote. All functions show control
//! characters as symbols, like [`visible`].

use std::borrow::Cow;
use std::fmt::Write as _;

use runner_lang::format::{visible, visible_lines};

/// Escapes text for a line or a table cell of Markdown.
///
/// An underscore within a word is kept: Markdown gives it no meaning there, and names stay readable in the source.
pub fn markdown(text: &str) -> String {
    let text = visible(text);
    let mut escaped = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let next = chars.peek().copied();
        match c {
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '_' if !(is_word(before) && is_word(next)) => escaped.push_str("\\_"),
            '<' => escaped.push_str("&lt;"),
            '&' if is_word(next) || next == Some('#') => escaped.push_str("&amp;"),
            // GitHub and GitLab would notify the person with that name.
            '@' if !is_word(before) && is_word(next) => escaped.push_str("@&#8203;"),
            '#' | '+' | '-' | '>' if before.is_none() => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
        before = Some(c);
    }
    escaped
}

/// Escapes a sentence in which backticks enclose code. An unpaired backtick is text.
pub fn prose(text: &str) -> String {
    sentence(text, markdown, code, "\\`")
}

/// Escapes a sentence for an HTML element, where backticks enclose code.
pub fn prose_html(text: &str) -> String {
    sentence(text, html, |part| format!("<code>{}</code>", html(part)), "`")
}

/// Escapes a sentence; `backtick` replaces an unpaired backtick.
fn sentence(text: &str, plain: fn(&str) -> String, code: fn(&str) -> String, backtick: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut sentence = String::with_capacity(text.len());
    for (i, part) in parts.iter().enumerate() {
        let is_closed = i + 1 < parts.len();
        match (i % 2 == 1, is_closed) {
            (true, true) => sentence.push_str(&code(part)),
            (true, false) => sentence.extend([backtick, &plain(part)]),
            (false, _) => sentence.push_str(&plain(part)),
        }
    }
    sentence
}

/// A code span, with a fence longer than any run of backticks in the text.
pub fn code(text: &str) -> String {
    let text = visible(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span in a table cell. If the text has a backslash before a bar, a code span cannot be used: whether the bar
/// ends the cell depends on the renderer.
pub fn table_code(text: &str) -> String {
    if text.contains("\\|") { entities(text) } else { code(text).replace('|', "\\|") }
}

/// Escapes all punctuation as entities, so that Markdown interprets none of it.
fn entities(text: &str) -> String {
    let mut escaped = String::from("<code>");
    for c in visible(text).chars() {
        if c.is_ascii_punctuation() {
            let _ = write!(escaped, "&#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped + "</code>"
}

/// A code block, with a fence longer than any run of backticks in the text.
pub fn fenced(text: &str, language: &str) -> String {
    let text = visible_lines(text);
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Markdown by the manifest's author, unescaped.
pub fn lines(text: &str) -> String {
    visible_lines(text).into_owned()
}

pub fn html(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes multi-line text or a quoted attribute, for SVG, XML and HTML.
pub fn xml(text: &str) -> String {
    visible_lines(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A CSV cell. A string that a spreadsheet would run as a formula gets an apostrophe; a number is unchanged.
pub fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let shown = visible_lines(text);
    if is_formula { Cow::Owned(format!("'{shown}")) } else { shown }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_in_names_is_shown_and_not_obeyed() {
        assert_eq!(markdown("a|b *c* <d> [e](f) `g`"), "a\\|b \\*c\\* &lt;d> \\[e\\](f) \\`g\\`");
        assert_eq!(markdown("# no heading\nsame line"), "\\# no heading same line");
        assert_eq!(markdown("a\\|b &lt; \u{1b}[31m"), "a\\\\\\|b &amp;lt; ␛\\[31m");
    }

    #[test]
    fn backticks_in_a_sentence_enclose_code() {
        assert_eq!(prose("no counter `a_b` was *taken*"), "no counter `a_b` was \\*taken\\*");
        assert_eq!(prose("a ` alone_"), "a \\` alone\\_");
    }

    #[test]
    fn a_name_after_an_at_sign_is_not_mentioned() {
        assert_eq!(markdown("by @octocat, not a@b or @ alone"), "by @&#8203;octocat, not a@b or @ alone");
    }

    #[test]
    fn backticks_in_a_sentence_enclose_code_in_html() {
        assert_eq!(prose_html("no `a<b>` was *taken*"), "no <code>a&lt;b&gt;</code> was *taken*");
        assert_eq!(prose_html("a ` alone"), "a ` alone");
    }

    #[test]
    fn underscores_within_words_stay_readable() {
        assert_eq!(markdown("reduce_unroll_8 and _this_"), "reduce_unroll_8 and \\_this\\_");
    }

    #[test]
    fn backticks_lengthen_the_fence() {
        assert_eq!(code("plain"), "`plain`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(fenced("x\n```\ny", "toml"), "````toml\nx\n```\ny\n````");
    }

    #[test]
    fn a_bar_in_code_does_not_end_the_cell() {
        assert_eq!(table_code("a|b"), "`a\\|b`");
        assert_eq!(table_code("a\\|<b"), "<code>a&#92;&#124;&#60;b</code>");
    }

    #[test]
    fn markup_is_text_in_html_and_xml() {
        assert_eq!(html("<script>&\"\n"), "&lt;script&gt;&amp;\" ");
        assert_eq!(xml("]]> \"a\"\u{0}"), "]]&gt; &quot;a&quot;␀");
    }

    #[test]
    fn formulas_are_text_and_numbers_stay_numbers() {
        let formulas = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1"];
        let shown = ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(1)", "'\t=1", "' =1"];
        assert_eq!(formulas.map(|text| cell(text).into_owned()), shown);
        for number in ["-1", "+1", "-2.5e-7", "0", "17"] {
            assert_eq!(cell(number), number);
        }
    }

    proptest! {
        /// Characters that no line of any output may contain.
        #[test]
        fn no_text_leaves_its_place(text in "[\\PC\\x00-\\x1f\u{7f}-\u{9f}|`<>&\\\\\"'=]{0,40}") {
            let is_other_control = |c: char| c.is_control() && !['\n', '\t'].contains(&c);
            prop_assert!(!xml(&text).contains(is_other_control));
            for shown in [markdown(&text), code(&text), table_code(&text), html(&text)] {
                prop_assert!(!shown.contains(char::is_control), "{shown:?}");
            }
            prop_assert!(!html(&text).contains(['<', '>']) && !xml(&text).contains(['<', '>', '"']));
            prop_assert!(!markdown(&text).contains('<'));
            // A bar ends a cell unless an unescaped backslash precedes it.
            for shown in [markdown(&text), table_code(&text)] {
                let pairs = shown.replace("\\\\", "");
                prop_assert!(pairs.replace("\\|", "").find('|').is_none(), "{shown:?}");
            }
            prop_assert!(!cell(&text).starts_with(['=', '@', '\t', '\r']));
        }
    }
}
