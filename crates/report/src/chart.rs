//! Charts as SVG: this module computes the geometry, and the template draws it.
//!
//! A chart draws its own background, so that its text is readable on any page. Data colours have medium lightness and
//! are never the only distinction: series also have markers and dashes, and cells have numbers. Coordinates are rounded
//! to one decimal, so that the output is stable byte for byte.

mod bars;
mod lines;
mod map;
mod roofline;
mod scale;
mod style;

use serde::Serialize;

pub use bars::{Bar, BarChart};
pub use lines::{Line, LineChart, Point};
pub use map::{HeatMap, MapCell};
pub use roofline::{RoofPoint, Roofline};
pub use scale::{Scale, ScaleKind};
pub use style::{COLOURS, disc};

/// A chart before layout.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    Lines(LineChart),
    Bars(BarChart),
    Map(HeatMap),
    Roof(Roofline),
}

/// Geometry for the template.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Drawing {
    pub width: String,
    pub height: String,
    pub title: String,
    /// Text description for readers who cannot see the chart.
    pub description: String,
    pub x_label: Option<Label>,
    pub y_label: Option<Label>,
    pub rules: Vec<Rule>,
    pub texts: Vec<Label>,
    pub boxes: Vec<Area>,
    pub paths: Vec<Path>,
    pub marks: Vec<Mark>,
    /// Prefix for element ids, for several charts in one document.
    pub prefix: String,
    /// Whether the enclosing document already has the styles.
    pub is_part: bool,
}

/// Text at a position. `class` is a class of the template's style sheet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Label {
    pub x: String,
    pub y: String,
    pub anchor: &'static str,
    pub class: &'static str,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    pub x1: String,
    pub y1: String,
    pub x2: String,
    pub y2: String,
    pub class: &'static str,
    pub stroke: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Area {
    pub x: String,
    pub y: String,
    pub width: String,
    pub height: String,
    pub fill: String,
    pub opacity: &'static str,
    pub class: &'static str,
    pub about: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Path {
    pub points: String,
    pub stroke: &'static str,
    pub dash: Option<&'static str>,
    pub width: &'static str,
}

/// Marker, drawn as a filled outline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    pub outline: String,
    pub fill: &'static str,
    pub about: Option<String>,
}

pub const LEFT: f64 = 68.0;
pub const TOP: f64 = 52.0;
pub const BOTTOM: f64 = 50.0;

/// Formats a coordinate.
pub fn f(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

pub fn text(x: f64, y: f64, anchor: &'static str, class: &'static str, text: impl Into<String>) -> Label {
    Label { x: f(x), y: f(y), anchor, class, text: text.into() }
}

pub fn rule(from: (f64, f64), to: (f64, f64), class: &'static str) -> Rule {
    Rule { x1: f(from.0), y1: f(from.1), x2: f(to.0), y2: f(to.1), class, stroke: None }
}

/// Approximate width of text: the reader's fonts are unknown.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(text_width).fold(0.0, f64::max)
}

/// Tick label of a value axis.
pub fn tick_text(value: f64) -> String {
    let rounded = (value * 1e9).round() / 1e9;
    rounded.to_string()
}

/// Tick labels of a size axis: powers of two as `2^24` if the largest would have too many digits.
fn size_texts(ticks: &[f64]) -> Vec<String> {
    const LONG: f64 = 65_536.0;
    const SHORT: f64 = 1024.0;
    let are_long = ticks.iter().any(|tick| *tick >= LONG);
    let are_powers = ticks.iter().all(|tick| is_power_of_two(*tick));
    let show = |tick: &f64| {
        let as_power = are_long && is_power_of_two(*tick) && (are_powers || *tick >= SHORT);
        if as_power { format!("2^{}", tick.log2()) } else { tick_text(*tick) }
    };
    ticks.iter().map(show).collect()
}

fn is_power_of_two(value: f64) -> bool {
    value >= 1.0 && value.log2().fract() == 0.0
}

/// Name of a case in a chart, with a mark for the baseline.
fn marked(name: &str, is_baseline: bool) -> String {
    if is_baseline { format!("{name} (baseline)") } else { name.to_owned() }
}

impl Chart {
    pub fn draw(&self) -> Drawing {
        match self {
            Self::Lines(lines) => lines.draw(),
            Self::Bars(bars) => bars.draw(),
            Self::Map(map) => map.draw(),
            Self::Roof(roof) => roof.draw(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{size_texts, tick_text};

    #[test]
    fn ticks_are_short() {
        assert_eq!([tick_text(500.0), tick_text(0.1 + 0.2)], ["500", "0.3"]);
        assert_eq!(size_texts(&[1.0, 65_536.0, 16_777_216.0]), ["2^0", "2^16", "2^24"]);
        assert_eq!(size_texts(&[1.0, 2.0, 64.0]), ["1", "2", "64"]);
        assert_eq!(size_texts(&[1.0, 16_384.0, 100_003.0]), ["1", "2^14", "100003"]);
    }
}
