//! Markdown, SVG and HTML, from templates.

use tera::{Context, Kwargs, State, Tera};

use super::RenderError;
use super::chart::Drawing;
use super::comparison;
use super::escape;
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
        tera.set_escape_fn(|text, out| out.write_all(escape::xml(text).as_bytes()));
        tera.register_filter("md", |text: &str, _: Kwargs, _: &State| escape::markdown(text));
        tera.register_filter("code", |text: &str, _: Kwargs, _: &State| escape::code(text));
        tera.register_filter("table_code", |text: &str, _: Kwargs, _: &State| escape::table_code(text));
        tera.register_filter("prose", |text: &str, _: Kwargs, _: &State| escape::prose(text));
        tera.register_filter("unbroken", |text: &str, _: Kwargs, _: &State| unbroken(text));
        tera.register_filter("html", |text: &str, _: Kwargs, _: &State| escape::html(text));
        tera.register_filter("lines", |text: &str, _: Kwargs, _: &State| escape::lines(text));
        tera.register_filter("fenced", |text: &str, args: Kwargs, _: &State| -> tera::TeraResult<String> {
            Ok(escape::fenced(text, args.must_get::<&str>("language")?))
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

/// Keeps a short cell on one line: otherwise `214.31 ± 0.12` would break at its spaces in a wide table.
fn unbroken(text: &str) -> String {
    const SHORT: usize = 28;
    if text.chars().count() <= SHORT { text.replace(' ', "\u{a0}") } else { text.to_owned() }
}
