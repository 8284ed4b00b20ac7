//! Renders errors in a manifest like `rustc`: message, file, line, column, the quoted line, a hint.
//!
//! The stage that finds an error decides what it says and where it points.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use runner_types::{SourceText, Span};

const MOST_SHOWN: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Offending bytes of the manifest; `None` for an error in the file as a whole.
    pub span: Option<Span>,
    /// The error in lowercase, naming the key and the value.
    pub message: String,
    /// Text shown under the marked bytes.
    pub label: Option<String>,
    pub hint: Option<String>,
    /// Other places related to the error, each with a label.
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::whole(message) }
    }

    pub fn whole(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), label: None, hint: None, related: Vec::new() }
    }

    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    pub source: Arc<SourceText>,
    pub items: Vec<Diagnostic>,
    /// Number of further errors that were dropped.
    pub omitted: usize,
}

impl Diagnostics {
    pub fn new(source: Arc<SourceText>, items: Vec<Diagnostic>) -> Self {
        Self { source, items, omitted: 0 }
    }

    /// The errors in the order of their places.
    pub fn in_order(&self) -> Vec<&Diagnostic> {
        let mut items: Vec<&Diagnostic> = self.items.iter().collect();
        items.sort_by_key(|item| item.span.as_ref().map(|span| (span.start, span.end)));
        items
    }

    /// Line and column of an error in the manifest, from 1; `None` for an error of the whole file.
    pub fn place(&self, item: &Diagnostic) -> Option<(usize, usize)> {
        let text = &self.source.text;
        let before = &text[..text.floor_char_boundary(item.span.as_ref()?.start)];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        Some((before.matches('\n').count() + 1, before[line..].chars().count() + 1))
    }

    /// Renders all errors in file order, each followed by an empty line.
    pub fn render(&self, color: bool) -> String {
        self.render_within(color, None)
    }

    /// Like [`Self::render`], with quoted lines truncated to the width of the terminal.
    pub fn render_within(&self, color: bool, width: Option<usize>) -> String {
        let mut renderer = if color { Renderer::styled() } else { Renderer::plain() };
        if let Some(width) = width {
            renderer = renderer.term_width(width);
        }
        let path = self.source.path.display().to_string();
        let items = self.in_order();
        let mut text = String::new();
        let shown = items.len().min(MOST_SHOWN);
        for item in &items[..shown] {
            text.push_str(renderer.render(&report(&self.source, &path, item)).trim_end());
            text.push_str("\n\n");
        }
        let others = items.len() - shown + self.omitted;
        if others > 0 {
            text.extend(["error: and ", &others.to_string(), " more\n\n"]);
        }
        text
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// The candidate that a mistyped name most likely stands for, if any is similar.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn report<'a>(source: &'a SourceText, path: &'a str, item: &'a Diagnostic) -> [Group<'a>; 1] {
    let title = Level::ERROR.primary_title(item.message.as_str());
    let mut group = Group::with_title(title);
    if let Some(span) = &item.span {
        let mut primary = AnnotationKind::Primary.span(visible(&source.text, span.start, span.end));
        if let Some(label) = &item.label {
            primary = primary.label(label.as_str());
        }
        let mut snippet = Snippet::source(source.text.as_str()).path(path).annotation(primary);
        for (span, label) in &item.related {
            let span = visible(&source.text, span.start, span.end);
            snippet = snippet.annotation(AnnotationKind::Context.span(span).label(label.as_str()));
        }
        group = group.element(snippet);
    } else {
        group = group.element(annotate_snippets::Origin::path(path));
    }
    if let Some(hint) = &item.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    [group]
}

/// The span clamped to the text and to character boundaries, without line ends.
fn visible(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(start);
    let end = text.ceil_char_boundary(end.max(start));
    let kept = text[start..end].trim_end().len();
    start..start + kept
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;

    fn faults(items: Vec<Diagnostic>) -> Diagnostics {
        let text = "[axes]\nn = [1, 2]\nblok = \"µ\"\n".to_owned();
        Diagnostics::new(Arc::new(SourceText { path: PathBuf::from("a.toml"), text }), items)
    }

    #[test]
    fn faults_come_in_the_order_of_their_place_with_line_column_quote_and_hint() {
        let late = Diagnostic::at(18..22, "unknown key `blok`").label("no such key").hint("did you mean `block`?");
        let early = Diagnostic::at(7..8, "`n` is wrong");
        let expected = "\
error: `n` is wrong
 --> a.toml:2:1
  |
2 | n = [1, 2]
  | ^

error: unknown key `blok`
 --> a.toml:3:1
  |
3 | blok = \"µ\"
  | ^^^^ no such key
  |
  = help: did you mean `block`?

";
        assert_eq!(faults(vec![late, early]).render(false), expected);
    }

    #[test]
    fn a_place_is_a_line_and_a_column_in_characters() {
        let [micro, whole] = [Diagnostic::at(28..29, "after µ"), Diagnostic::whole("cannot be read")];
        let faults = faults(vec![micro.clone()]);
        // `blok = "µ"` begins at byte 18, and µ has two bytes.
        assert_eq!([faults.place(&micro), faults.place(&whole)], [Some((3, 10)), None]);
    }

    #[test]
    fn a_fault_of_the_whole_file_names_the_file() {
        let text = faults(vec![Diagnostic::whole("cannot be read")]).render(false);
        assert_eq!(text, "error: cannot be read\n--> a.toml\n\n");
    }

    #[test]
    fn a_terminal_gets_as_much_of_a_line_as_it_has_room_for() {
        let text = format!("args = [\"{}\", \"wrong\"]", "x".repeat(90));
        let source = SourceText { path: PathBuf::from("a.toml"), text };
        let faults = Diagnostics::new(source.into(), vec![Diagnostic::at(103..108, "no argument").label("here")]);
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        let narrow = faults.render_within(false, Some(60));
        assert!(widest(&narrow) <= Some(60) && narrow.contains("wrong") && narrow.contains("^^^^^ here"), "{narrow}");
        assert!(widest(&faults.render(false)) > Some(100), "what goes to a file is whole");
    }

    #[test]
    fn a_second_place_is_shown_with_its_own_label() {
        let fault = Diagnostic::at(12..13, "twice").label("here again").related(15..16, "first here");
        let text = faults(vec![fault]).render(false);
        assert!(text.contains("first here") && text.contains("here again"), "{text}");
    }

    #[test]
    fn a_mistyped_name_finds_the_nearest_and_a_foreign_one_finds_none() {
        assert_eq!(nearest("blok", ["grid", "block", "black"]), Some("block"));
        assert_eq!(nearest("nmae", ["name", "when"]), Some("name"));
        assert_eq!(nearest("x", ["block", "grid"]), None);
    }

    #[test]
    fn colour_is_asked_for() {
        let items = vec![Diagnostic::at(7..8, "x")];
        assert!(faults(items.clone()).render(true).contains('\u{1b}'));
        assert!(!faults(items).render(false).contains('\u{1b}'));
    }

    #[test]
    fn a_span_past_the_end_or_inside_a_character_is_brought_to_a_boundary() {
        // The micro sign occupies bytes 26 and 27.
        let text = faults(vec![Diagnostic::at(27..27, "inside"), Diagnostic::at(900..901, "past")]).render(false);
        assert!(text.contains("3:9") && text.contains("past"), "{text}");
    }
}
