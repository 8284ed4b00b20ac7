//! The templates, and rendering Markdown, SVG and HTML with them.

use tera::{Context, Kwargs, State, Tera};

use super::RenderError;
use super::chart::Drawing;
use super::comparison;
use super::escape;
use super::fidelity;
use super::history;
use super::html;
use super::report::Report;
use super::source_view;
use runner_types::PageTemplate;

const REPORT: &str = "report.md";
const CHART: &str = "chart.svg";
const FIDELITY: &str = "fidelity.md";
const COMPARISON: &str = "compare.md";
const JUNIT: &str = "junit.xml";
const HISTORY: &str = "history.md";
const PAGE: &str = "page.html";
const CHANGES: &str = "changes.html";

/// Version of the view model, passed to `report.md` templates as `view_version`. Raised when a field is removed or
/// changes its meaning.
pub const VIEW_VERSION: u32 = 1;

/// Templates that can be listed and exported, with their descriptions.
pub const SHIPPED: [(&str, &str, &str); 8] = [
    (REPORT, "the page of a report; `template` in a manifest replaces it", REPORT_TEXT),
    (PAGE, "the page of runner report --html", PAGE_TEXT),
    (CHANGES, "the page of runner compare and runner history with --format html", CHANGES_TEXT),
    (CHART, "a chart of a report or a history", CHART_TEXT),
    (COMPARISON, "the page of runner compare and run --against", COMPARISON_TEXT),
    (JUNIT, "the tests of runner compare --format junit", JUNIT_TEXT),
    (HISTORY, "the page of runner history", HISTORY_TEXT),
    (FIDELITY, "the page of runner fidelity", FIDELITY_TEXT),
];

/// Name of the user's template; no shipped template has it.
const USER_TEMPLATE: &str = "user.md";

/// Shared by all pages: tables, cells, lists.
const COMPONENTS: &str = "components";

/// Shared by all HTML pages: the document, its styles and its script.
const SHELL: &str = "shell.html";
/// Source page of a case.
const SOURCE: &str = "source.html";

const REPORT_TEXT: &str = include_str!("templates/report.md.tera");
const PAGE_TEXT: &str = include_str!("templates/page.html.tera");
const CHANGES_TEXT: &str = include_str!("templates/changes.html.tera");
const SHELL_TEXT: &str = include_str!("templates/shell.html.tera");
const CHART_TEXT: &str = include_str!("templates/chart.svg.tera");
const COMPARISON_TEXT: &str = include_str!("templates/compare.md.tera");
const JUNIT_TEXT: &str = include_str!("templates/junit.xml.tera");
const HISTORY_TEXT: &str = include_str!("templates/history.md.tera");
const FIDELITY_TEXT: &str = include_str!("templates/fidelity.md.tera");
const SOURCE_TEXT: &str = include_str!("templates/source.html.tera");
const COMPONENTS_TEXT: &str = include_str!("templates/components.tera");

#[derive(Debug)]
pub struct Templates {
    tera: Tera,
    /// Path of the user's report template.
    of_user: Option<String>,
}

impl Templates {
    /// Parses the shipped templates.
    pub fn new() -> Result<Self, RenderError> {
        let mut tera = Tera::default();
        tera.autoescape_on([".svg", ".xml", ".html"]);
        tera.set_escape_fn(|text, out| out.write_all(escape::xml(text).as_bytes()));
        tera.register_filter("md", |text: &str, _: Kwargs, _: &State| escape::markdown(text));
        tera.register_filter("code", |text: &str, _: Kwargs, _: &State| escape::code(text));
        tera.register_filter("table_code", |text: &str, _: Kwargs, _: &State| escape::table_code(text));
        tera.register_filter("prose", |text: &str, _: Kwargs, _: &State| escape::prose(text));
        tera.register_filter("unbroken", |text: &str, _: Kwargs, _: &State| unbroken(text));
        tera.register_filter("html", |text: &str, _: Kwargs, _: &State| escape::html(text));
        tera.register_filter("prose_html", |text: &str, _: Kwargs, _: &State| escape::prose_html(text));
        tera.register_filter("lines", |text: &str, _: Kwargs, _: &State| escape::lines(text));
        tera.register_filter("fenced", |text: &str, args: Kwargs, _: &State| -> tera::TeraResult<String> {
            Ok(escape::fenced(text, args.must_get::<&str>("language")?))
        });
        let shipped = SHIPPED.iter().map(|(name, _, text)| (*name, *text));
        tera.add_raw_templates(shipped.chain([
            (COMPONENTS, COMPONENTS_TEXT),
            (SHELL, SHELL_TEXT),
            (SOURCE, SOURCE_TEXT),
        ]))?;
        Ok(Self { tera, of_user: None })
    }

    /// Loads the shipped templates and the user's template for `report.md`, if any.
    pub fn load(template: Option<&PageTemplate>) -> Result<Self, RenderError> {
        let mut templates = Self::new()?;
        if let Some(PageTemplate { path, text }) = template {
            templates.tera.add_raw_template(USER_TEMPLATE, text).map_err(|error| of_user(path, &error))?;
            templates.of_user = Some(path.clone());
        }
        Ok(templates)
    }

    pub fn report(&self, report: &Report) -> Result<String, RenderError> {
        let mut view = Context::from_serialize(report)?;
        view.insert("view_version", &VIEW_VERSION);
        match &self.of_user {
            None => Ok(self.tera.render(REPORT, &view)?),
            Some(path) => self.tera.render(USER_TEMPLATE, &view).map_err(|error| of_user(path, &error)),
        }
    }

    pub fn fidelity(&self, page: &fidelity::Page) -> Result<String, RenderError> {
        Ok(self.tera.render(FIDELITY, &Context::from_serialize(page)?)?)
    }

    pub fn comparison(&self, view: &comparison::View) -> Result<String, RenderError> {
        Ok(self.tera.render(COMPARISON, &Context::from_serialize(view)?)?)
    }

    pub fn history(&self, view: &history::View) -> Result<String, RenderError> {
        Ok(self.tera.render(HISTORY, &Context::from_serialize(view)?)?)
    }

    pub(super) fn source(&self, page: &source_view::Page<'_>) -> Result<String, RenderError> {
        Ok(self.tera.render(SOURCE, &Context::from_serialize(page)?)?)
    }

    pub fn junit(&self, suites: &comparison::Suites) -> Result<String, RenderError> {
        Ok(self.tera.render(JUNIT, &Context::from_serialize(suites)?)?)
    }

    /// Renders the HTML page of reports.
    pub(super) fn page(&self, view: &html::View) -> Result<String, RenderError> {
        Ok(self.tera.render(PAGE, &Context::from_serialize(view)?)?)
    }

    /// Renders the HTML page of a comparison or a history.
    pub(super) fn changes(&self, page: &html::changes::Page) -> Result<String, RenderError> {
        Ok(self.tera.render(CHANGES, &Context::from_serialize(page)?)?)
    }

    pub fn chart(&self, drawing: &Drawing) -> Result<String, RenderError> {
        Ok(self.tera.render(CHART, &Context::from_serialize(drawing)?)?)
    }
}

/// Keeps a short cell on one line: otherwise `214.31 ± 0.12` would break at its spaces in a wide table.
fn unbroken(text: &str) -> String {
    const SHORT: usize = 28;
    if text.chars().count() <= SHORT { text.replace(' ', "\u{a0}") } else { text.to_owned() }
}

/// An error in a user's template, with its location.
fn of_user(path: &str, error: &tera::Error) -> RenderError {
    let (place, message) = match error.kind() {
        tera::ErrorKind::SyntaxError(fault) | tera::ErrorKind::RenderingError(fault)
            if fault.filename() == USER_TEMPLATE =>
        {
            let span = fault.span();
            (format!("{path}:{}:{}", span.start_line, span.start_col + 1), fault.message().to_owned())
        }
        tera::ErrorKind::RenderingError(fault) => (path.to_owned(), fault.message().to_owned()),
        _ => drawn(path, &error.to_string()),
    };
    RenderError::OfUser { place, message }
}

/// Location and message from an error that is already formatted: `error: …`, then ` --> name:line:column` and the line.
fn drawn(path: &str, text: &str) -> (String, String) {
    let mut places =
        text.lines().filter_map(|line| line.trim_start().strip_prefix("--> ")?.strip_prefix(USER_TEMPLATE));
    let message = text.lines().next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    (format!("{path}{}", places.next().unwrap_or_default()), message.to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::*;

    fn fault(text: &str) -> String {
        let template = PageTemplate { path: "my.md.tera".to_owned(), text: text.to_owned() };
        let made = Templates::load(Some(&template)).and_then(|templates| templates.report(&Report::default()));
        made.map_or_else(|error| error.to_string(), |page| panic!("{page}"))
    }

    #[test]
    fn a_fault_in_a_template_of_the_user_has_file_line_and_remedy() {
        let unclosed = fault("# {{ title | md }}\n{% if claims %}\n");
        assert!(unclosed.starts_with("my.md.tera:"), "{unclosed}");
        let unknown = fault("# {{ title | md }}\n\n{{ headin }}\n");
        assert!(unknown.starts_with("my.md.tera:3:4: "), "{unknown}");
        assert!(unknown.contains("headin") && unknown.contains("docs/reference/templates.md"), "{unknown}");
        let filter = fault("{{ title | loud }}");
        assert!(filter.starts_with("my.md.tera:1:") && filter.contains("loud"), "{filter}");
    }

    #[test]
    fn a_template_of_the_user_has_the_view_and_the_shared_components() {
        let text = "{{ view_version }}: {{ title | md }}{% for s in sections %}{{ <table t={s.table} /> }}{% endfor %}";
        let template = PageTemplate { path: "my.md.tera".to_owned(), text: text.to_owned() };
        let report = Report { title: "a*b".to_owned(), ..Report::default() };
        assert_eq!(Templates::load(Some(&template)).unwrap().report(&report).unwrap(), "1: a\\*b");
    }

    #[test]
    fn a_template_of_the_user_may_have_the_name_of_a_shipped_one() {
        let template = PageTemplate { path: CHART.to_owned(), text: "{{ title | md }}".to_owned() };
        let templates = Templates::load(Some(&template)).unwrap();
        let report = Report { title: "a < b & c".to_owned(), ..Report::default() };
        assert_eq!(templates.report(&report).unwrap(), escape::markdown("a < b & c"));
        assert!(templates.chart(&Drawing::default()).unwrap().starts_with("<svg"));
    }

    #[test]
    fn a_template_can_refuse_another_version_of_the_view() {
        let message = fault("{% if view_version != 0 %}{{ throw(message=\"made for version 0\") }}{% endif %}");
        assert!(message.starts_with("my.md.tera:1:") && message.contains("made for version 0"), "{message}");
    }
}
