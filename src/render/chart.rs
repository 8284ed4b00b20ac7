//! Charts as SVG: this module computes the geometry, the templates draw it.
//!
//! Text and grid follow the reader's light or dark theme. Colours of data have a middle lightness and are never the
//! only mark (lines have names, cells have numbers). Coordinates have one decimal, so that the bytes are stable.

use serde::Serialize;

use super::scale::{Scale, Spread, spread_labels};

/// A chart without a size.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    Lines(LineChart),
    Bars(BarChart),
    Map(HeatMap),
}

/// One line per contender.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// Whether the vertical axis is linear from zero; otherwise it is logarithmic.
    pub from_zero: bool,
    /// A level to compare with, by name.
    pub reference: Option<(String, f64)>,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: String,
    /// In order of x.
    pub points: Vec<Point>,
}

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
}

/// One bar per contender.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    pub title: String,
    pub x_label: String,
    pub bars: Vec<Bar>,
}

/// A value with its interval, and as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub name: String,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub shown: String,
}

/// Values over two axes; less is better.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub across: Vec<String>,
    pub down: Vec<String>,
    /// Row by row; `None` if there is no cell.
    pub cells: Vec<Vec<Option<MapCell>>>,
}

/// A cell with its text, and with a colour if it has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct MapCell {
    pub value: Option<f64>,
    pub shown: String,
}

/// The data of a template.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Drawing {
    pub width: String,
    pub height: String,
    pub title: String,
    pub x_label: Option<Label>,
    pub y_label: Option<Label>,
    pub rules: Vec<Rule>,
    pub texts: Vec<Label>,
    pub boxes: Vec<Area>,
    pub paths: Vec<Path>,
    pub dots: Vec<Dot>,
}

/// A text at a place; `class` is of the template's style sheet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Label {
    pub x: String,
    pub y: String,
    pub anchor: &'static str,
    pub class: &'static str,
    pub fill: Option<&'static str>,
    pub text: String,
}

/// A straight line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    pub x1: String,
    pub y1: String,
    pub x2: String,
    pub y2: String,
    pub class: &'static str,
    pub stroke: Option<&'static str>,
}

/// A rectangle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Area {
    pub x: String,
    pub y: String,
    pub width: String,
    pub height: String,
    pub fill: String,
    pub opacity: String,
}

/// A line through points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Path {
    pub points: String,
    pub stroke: &'static str,
    pub dash: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dot {
    pub x: String,
    pub y: String,
    pub fill: &'static str,
}

/// Distinct for most readers (after Okabe and Ito), with enough contrast on white and on black.
pub(super) const COLOURS: [&str; 8] =
    ["#0a78c2", "#d55e00", "#00936b", "#b8629a", "#b97a00", "#6a61c9", "#7d7d18", "#c0392b"];

/// The second eight are dashed.
pub(super) const DASH: &str = "6 3";

pub(super) const LEFT: f64 = 62.0;
pub(super) const TOP: f64 = 52.0;
pub(super) const BOTTOM: f64 = 50.0;

pub(super) fn f(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

pub(super) fn text(x: f64, y: f64, anchor: &'static str, class: &'static str, text: impl Into<String>) -> Label {
    Label { x: f(x), y: f(y), anchor, class, fill: None, text: text.into() }
}

pub(super) fn rule(from: (f64, f64), to: (f64, f64), class: &'static str) -> Rule {
    Rule { x1: f(from.0), y1: f(from.1), x2: f(to.0), y2: f(to.1), class, stroke: None }
}

/// Approximate width of a text: the fonts are the reader's.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(text_width).fold(0.0, f64::max)
}

impl Chart {
    pub fn draw(&self) -> Drawing {
        match self {
            Self::Lines(lines) => lines.draw(),
            Self::Bars(bars) => bars.draw(),
            Self::Map(map) => map.draw(),
        }
    }
}

impl LineChart {
    fn draw(&self) -> Drawing {
        let names = self.lines.iter().map(|l| l.name.as_str());
        let right = widest(names).clamp(60.0, 240.0) + 24.0;
        let plot = (LEFT, LEFT + 640.0);
        let height = (self.lines.len() as f64 * 16.0).max(320.0);
        let (x, y) = self.scales(plot, (TOP + height, TOP));
        let mut drawing = Drawing {
            width: f(plot.1 + right),
            height: f(TOP + height + BOTTOM),
            title: self.title.clone(),
            x_label: Some(text(f64::midpoint(plot.0, plot.1), TOP + height + 40.0, "middle", "label", &self.x_label)),
            y_label: Some(text(12.0, TOP - 14.0, "start", "label", &self.y_label)),
            ..Drawing::default()
        };
        for tick in y.ticks(7) {
            drawing.rules.push(rule((plot.0, y.place(tick)), (plot.1, y.place(tick)), "grid"));
            drawing.texts.push(text(plot.0 - 8.0, y.place(tick) + 4.0, "end", "tick", tick_text(tick)));
        }
        for tick in self.x_ticks(x) {
            let at = x.place(tick);
            drawing.rules.push(rule((at, TOP + height), (at, TOP + height + 5.0), "axis"));
            drawing.texts.push(text(at, TOP + height + 20.0, "middle", "tick", tick_text(tick)));
        }
        drawing.rules.push(rule((plot.0, TOP + height), (plot.1, TOP + height), "axis"));
        if let Some((name, level)) = &self.reference {
            drawing.rules.push(rule((plot.0, y.place(*level)), (plot.1, y.place(*level)), "reference"));
            drawing.texts.push(text(plot.0 + 6.0, y.place(*level) - 5.0, "start", "tick", name));
        }
        self.draw_lines(&mut drawing, x, y, (plot.1, (TOP, TOP + height)));
        drawing
    }

    /// The values themselves if they are few and far apart, otherwise round ones.
    fn x_ticks(&self, x: Scale) -> Vec<f64> {
        const APART: f64 = 40.0;
        let mut values: Vec<f64> = self.lines.iter().flat_map(|l| &l.points).map(|p| p.x).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let lie_apart = values.windows(2).all(|pair| x.place(pair[1]) - x.place(pair[0]) >= APART);
        if lie_apart { values } else { x.ticks(8) }
    }

    fn scales(&self, across: (f64, f64), down: (f64, f64)) -> (Scale, Scale) {
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let extent = |value: fn(&Point) -> f64| {
            points().map(value).fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)))
        };
        let (x_low, x_high) = extent(|p| p.x);
        let x_spread = if x_low > 0.0 && x_high / x_low >= 8.0 { Spread::Log2 } else { Spread::Linear };
        let (y_low, y_high) = (extent(|p| p.low).0, extent(|p| p.high).1);
        let y_high = self.reference.as_ref().map_or(y_high, |(_, level)| y_high.max(*level));
        let y = if self.from_zero || y_low <= 0.0 {
            Scale::new(Spread::Linear, (0.0, y_high * 1.02), down)
        } else {
            Scale::new(Spread::Log10, (whole_power(y_low, f64::floor), whole_power(y_high, f64::ceil)), down)
        };
        (Scale::new(x_spread, (x_low, x_high), (across.0 + 12.0, across.1 - 12.0)), y)
    }

    fn draw_lines(&self, drawing: &mut Drawing, x: Scale, y: Scale, (right, down): (f64, (f64, f64))) {
        let ends: Vec<f64> = self.lines.iter().map(|l| l.points.last().map_or(down.1, |p| y.place(p.y))).collect();
        let labels = spread_labels(&ends, 15.0, down);
        for (i, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let places: Vec<(f64, f64)> = line.points.iter().map(|p| (x.place(p.x), y.place(p.y))).collect();
            let points: Vec<String> = places.iter().map(|(x, y)| format!("{},{}", f(*x), f(*y))).collect();
            let dash = (i / COLOURS.len() % 2 == 1).then_some(DASH);
            drawing.paths.push(Path { points: points.join(" "), stroke: colour, dash });
            for (point, place) in line.points.iter().zip(&places) {
                drawing.dots.push(Dot { x: f(place.0), y: f(place.1), fill: colour });
                let (low, high) = (y.place(point.low.max(f64::MIN_POSITIVE)), y.place(point.high));
                if low - high > 6.0 {
                    let whisker = rule((place.0, low), (place.0, high), "whisker");
                    drawing.rules.push(Rule { stroke: Some(colour), ..whisker });
                }
            }
            let end = places.last().copied().unwrap_or((right, down.1));
            let leader = rule((end.0 + 5.0, end.1), (right + 8.0, labels[i]), "leader");
            drawing.rules.push(Rule { stroke: Some(colour), ..leader });
            let label = text(right + 12.0, labels[i] + 4.0, "start", "name", &line.name);
            drawing.texts.push(Label { fill: Some(colour), ..label });
        }
    }
}

fn whole_power(value: f64, round: fn(f64) -> f64) -> f64 {
    10_f64.powf(round(value.log10()))
}

/// `2^24` for large powers of two, otherwise the number.
pub(super) fn tick_text(value: f64) -> String {
    if value >= 65_536.0 && value.log2().fract() == 0.0 {
        return format!("2^{}", value.log2());
    }
    let rounded = (value * 1e9).round() / 1e9;
    rounded.to_string()
}

impl BarChart {
    fn draw(&self) -> Drawing {
        const STEP: f64 = 24.0;
        let left = widest(self.bars.iter().map(|b| b.name.as_str())).clamp(60.0, 300.0) + 20.0;
        let right = widest(self.bars.iter().map(|b| b.shown.as_str())) + 24.0;
        let height = STEP * self.bars.len() as f64;
        let most = self.bars.iter().map(|b| b.high).fold(0.0, f64::max);
        let x = Scale::new(Spread::Linear, (0.0, most), (left, left + 440.0));
        let mut drawing = Drawing {
            width: f(left + 440.0 + right),
            height: f(TOP + height + BOTTOM),
            title: self.title.clone(),
            x_label: Some(text(left + 220.0, TOP + height + 40.0, "middle", "label", &self.x_label)),
            ..Drawing::default()
        };
        for tick in x.ticks(6) {
            drawing.rules.push(rule((x.place(tick), TOP), (x.place(tick), TOP + height), "grid"));
            drawing.texts.push(text(x.place(tick), TOP + height + 18.0, "middle", "tick", tick_text(tick)));
        }
        let best = self.bars.iter().map(|b| b.value).fold(f64::INFINITY, f64::min);
        for (i, Bar { name, value, low, high, shown }) in self.bars.iter().enumerate() {
            let top = TOP + STEP * i as f64;
            let opacity = if *value <= best { "1" } else { "0.55" };
            drawing.boxes.push(Area {
                x: f(left),
                y: f(top + 4.0),
                width: f(x.place(*value) - left),
                height: f(STEP - 8.0),
                fill: COLOURS[0].to_owned(),
                opacity: opacity.to_owned(),
            });
            let middle = top + STEP / 2.0;
            drawing.rules.push(rule((x.place(*low), middle), (x.place(*high), middle), "axis"));
            drawing.texts.push(text(left - 8.0, middle + 4.0, "end", "name", name));
            drawing.texts.push(text(x.place(*high) + 8.0, middle + 4.0, "start", "tick", shown));
        }
        drawing
    }
}

impl HeatMap {
    fn draw(&self) -> Drawing {
        const WIDE: f64 = 84.0;
        const TALL: f64 = 36.0;
        let values = || self.cells.iter().flatten().flatten().filter_map(|cell| cell.value);
        let best = values().fold(f64::INFINITY, f64::min);
        let worst = values().fold(0.0, f64::max);
        let (width, height) = (WIDE * self.across.len() as f64, TALL * self.down.len() as f64);
        let top = TOP + 20.0;
        let mut drawing = Drawing {
            width: f(LEFT + width + 20.0),
            height: f(top + height + 34.0),
            title: self.title.clone(),
            x_label: Some(text(LEFT + width / 2.0, top + height + 22.0, "middle", "label", &self.x_label)),
            y_label: Some(text(LEFT - 8.0, top - 8.0, "end", "label", &self.y_label)),
            ..Drawing::default()
        };
        for (i, name) in self.across.iter().enumerate() {
            drawing.texts.push(text(LEFT + WIDE * (i as f64 + 0.5), top - 8.0, "middle", "tick", name));
        }
        for (row, (name, cells)) in self.down.iter().zip(&self.cells).enumerate() {
            let y = top + TALL * row as f64;
            drawing.texts.push(text(LEFT - 8.0, y + TALL / 2.0 + 4.0, "end", "tick", name));
            for (column, cell) in cells.iter().enumerate() {
                let Some(MapCell { value, shown }) = cell else { continue };
                let x = LEFT + WIDE * column as f64;
                let share = value.map(|v| share_of(v, best, worst));
                let class = match share {
                    None => "empty",
                    Some(share) if share <= 0.0 => "best",
                    Some(share) if share < 0.45 => "on-dark",
                    Some(_) => "on-light",
                };
                drawing.boxes.push(Area {
                    x: f(x + 1.0),
                    y: f(y + 1.0),
                    width: f(WIDE - 2.0),
                    height: f(TALL - 2.0),
                    fill: share.map_or_else(|| "#8b949e".to_owned(), heat),
                    opacity: if share.is_some() { "1" } else { "0.15" }.to_owned(),
                });
                drawing.texts.push(text(x + WIDE / 2.0, y + TALL / 2.0 + 4.5, "middle", class, shown));
            }
        }
        drawing
    }
}

/// The position of a value between the best (0) and the worst (1), by ratio. Three times the best counts as worst, so
/// that an outlier does not hide the differences of all others.
fn share_of(value: f64, best: f64, worst: f64) -> f64 {
    let worst = worst.min(3.0 * best);
    if worst > best && best > 0.0 { ((value / best).ln() / (worst / best).ln()).min(1.0) } else { 0.0 }
}

/// From deep blue (best) to pale sand.
fn heat(share: f64) -> String {
    const STOPS: [(f64, f64, f64); 3] = [(8.0, 74.0, 134.0), (102.0, 164.0, 190.0), (243.0, 228.0, 196.0)];
    let scaled = share.clamp(0.0, 1.0) * 2.0;
    let (from, to) = if scaled < 1.0 { (STOPS[0], STOPS[1]) } else { (STOPS[1], STOPS[2]) };
    let part = scaled.fract() + if scaled >= 2.0 { 1.0 } else { 0.0 };
    let mix = |a: f64, b: f64| (a + (b - a) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::{heat, share_of, tick_text};

    #[test]
    fn the_best_is_deep_blue_and_the_worst_is_sand() {
        assert_eq!([heat(0.0), heat(0.5), heat(1.0)], ["#084a86", "#66a4be", "#f3e4c4"]);
    }

    #[test]
    fn shares_go_by_ratio() {
        assert!((share_of(1.21, 1.0, 1.4641) - 0.5).abs() < 1e-12);
        assert!((share_of(2.0, 1.0, 40.0) - 2_f64.ln() / 3_f64.ln()).abs() < 1e-12);
        assert!((share_of(40.0, 1.0, 40.0) - 1.0).abs() < 1e-12);
        assert!((share_of(3.0, 3.0, 3.0)).abs() < 1e-12);
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([tick_text(500.0), tick_text(16_777_216.0), tick_text(0.1 + 0.2)], ["500", "2^24", "0.3"]);
    }
}
