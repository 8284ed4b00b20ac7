//! Markdown, SVG and HTML, from templates.

use std::fmt::Write as _;

use tera::{Context, Kwargs, State, Tera};

use super::RenderError;
use super::chart::Drawing;
use super::comparison;
use super::fidelity;
use super::history;
use super::html;
use super::report::Report;

const REPORT: &str = "report.md";
const CHART: &str = "chart.svg";
const FIDELITY: &str = "fidelity.md";
const COMPARISON: &str = "compare.md";
const JUNIT: &str = "junit.xml";
const HISTORY: &str = "history.md";
const PAGE: &str = "page.html";

/// The templates, parsed.
#[derive(Debug)]
pub struct Templates {
    tera: Tera,
}

impl Templates {
    pub fn new() -> Result<Self, RenderError> {
        let mut tera = Tera::default();
        tera.autoescape_on([".svg", ".xml", ".html"]);
        tera.register_filter("md", |text: &str, _: Kwargs, _: &State| escape(text));
        tera.register_filter("code", |text: &str, _: Kwargs, _: &State| code(text));
        tera.register_filter("table_code", |text: &str, _: Kwargs, _: &State| code(text).replace('|', "\\|"));
        tera.register_filter("prose", |text: &str, _: Kwargs, _: &State| prose(text));
        tera.register_filter("unbroken", |text: &str, _: Kwargs, _: &State| unbroken(text));
        tera.register_filter("html", |text: &str, _: Kwargs, _: &State| in_element(text));
        tera.register_filter("fenced", |text: &str, args: Kwargs, _: &State| -> tera::TeraResult<String> {
            Ok(fenced(text, args.must_get::<&str>("language")?))
        });
        tera.add_raw_templates([
            (REPORT, include_str!("templates/report.md.tera")),
            (FIDELITY, include_str!("templates/fidelity.md.tera")),
            (COMPARISON, include_str!("templates/compare.md.tera")),
            (HISTORY, include_str!("templates/history.md.tera")),
            (JUNIT, include_str!("templates/junit.xml.tera")),
            (CHART, include_str!("templates/chart.svg.tera")),
            (PAGE, include_str!("templates/page.html.tera")),
        ])?;
        Ok(Self { tera })
    }

    /// `report.md`.
    pub fn report(&self, report: &Report) -> Result<String, RenderError> {
        Ok(self.tera.render(REPORT, &Context::from_serialize(report)?)?)
    }

    /// The page of simulated and hardware counters.
    pub fn fidelity(&self, page: &fidelity::Page) -> Result<String, RenderError> {
        Ok(self.tera.render(FIDELITY, &Context::from_serialize(page)?)?)
    }

    /// The page of a comparison.
    pub fn comparison(&self, view: &comparison::View) -> Result<String, RenderError> {
        Ok(self.tera.render(COMPARISON, &Context::from_serialize(view)?)?)
    }

    /// The page of times over revisions.
    pub fn history(&self, view: &history::View) -> Result<String, RenderError> {
        Ok(self.tera.render(HISTORY, &Context::from_serialize(view)?)?)
    }

    /// A comparison as `JUnit` XML.
    pub fn junit(&self, suites: &comparison::Suites) -> Result<String, RenderError> {
        Ok(self.tera.render(JUNIT, &Context::from_serialize(suites)?)?)
    }

    /// Reports for a browser.
    pub(super) fn page(&self, view: &html::View) -> Result<String, RenderError> {
        Ok(self.tera.render(PAGE, &Context::from_serialize(view)?)?)
    }

    /// One chart.
    pub fn chart(&self, drawing: &Drawing) -> Result<String, RenderError> {
        Ok(self.tera.render(CHART, &Context::from_serialize(drawing)?)?)
    }
}

/// Escapes text for Markdown, including tables.
///
/// An underscore within a word is kept: Markdown gives it no meaning there, and names stay readable in the source.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let chars: Vec<char> = text.chars().collect();
    let is_word = |i: usize| chars.get(i).is_some_and(|c| c.is_alphanumeric());
    for (i, c) in chars.iter().enumerate() {
        match c {
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(*c);
            }
            '_' if !(i > 0 && is_word(i - 1) && is_word(i + 1)) => escaped.push_str("\\_"),
            '<' => escaped.push_str("&lt;"),
            '&' if is_word(i + 1) || chars.get(i + 1) == Some(&'#') => escaped.push_str("&amp;"),
            '#' | '+' | '-' | '>' if i == 0 => {
                escaped.push('\\');
                escaped.push(*c);
            }
            '\n' | '\r' => escaped.push(' '),
            c => escaped.push(*c),
        }
    }
    escaped
}

/// Escapes a sentence, in which backticks enclose code. A single backtick is text.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut prose = String::with_capacity(text.len());
    for (i, part) in parts.iter().enumerate() {
        let is_closed = i + 1 < parts.len();
        match (i % 2 == 1, is_closed) {
            (true, true) => prose.push_str(&code(part)),
            (true, false) => prose.extend(["\\`", &escape(part)]),
            (false, _) => prose.push_str(&escape(part)),
        }
    }
    prose
}

/// Keeps a short cell on one line: otherwise `214.31 ± 0.12` would break at its spaces in a wide table.
fn unbroken(text: &str) -> String {
    const SHORT: usize = 28;
    if text.chars().count() <= SHORT { text.replace(' ', "\u{a0}") } else { text.to_owned() }
}

/// A code span, with a fence longer than any run of backticks in the text.
pub fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code block, with a fence longer than any run of backticks in the text.
fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    let mut block = String::new();
    let _ = write!(block, "{fence}{language}\n{text}\n{fence}");
    block
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text within an HTML element.
fn in_element(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::{code, escape, fenced, prose};

    #[test]
    fn backticks_in_a_sentence_enclose_code() {
        assert_eq!(prose("no counter `a_b` was *taken*"), "no counter `a_b` was \\*taken\\*");
        assert_eq!(prose("a ` alone_"), "a \\` alone\\_");
    }

    #[test]
    fn markup_in_names_is_shown_and_not_obeyed() {
        assert_eq!(escape("a|b *c* <d> [e](f) `g`"), "a\\|b \\*c\\* &lt;d> \\[e\\](f) \\`g\\`");
        assert_eq!(escape("# no heading\nsame line"), "\\# no heading same line");
    }

    #[test]
    fn underscores_within_words_stay_readable() {
        assert_eq!(escape("reduce_unroll_8 and _this_"), "reduce_unroll_8 and \\_this\\_");
    }

    #[test]
    fn backticks_lengthen_the_fence() {
        assert_eq!(code("plain"), "`plain`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(fenced("x\n```\ny", "toml"), "````toml\nx\n```\ny\n````");
    }
}
