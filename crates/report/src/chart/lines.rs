//! Line chart with one line per contender over an axis of sizes.

use super::scale::{Scale, ScaleKind, spread_labels};
use super::style::Style;
use super::{
    BOTTOM, Drawing, LEFT, Mark, Path, Rule, TOP, f, is_power_of_two, marked, rule, size_texts, text, tick_text, widest,
};

#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    pub title: String,
    pub x_label: String,
    /// Title of the value axis, including the unit.
    pub y_label: String,
    pub more_is_better: bool,
    /// Level to compare with, and its name.
    pub reference: Option<(String, f64)>,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: String,
    pub is_baseline: bool,
    /// Connected points, in order of x.
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
    pub shown: String,
}

const WIDTH: f64 = 640.0;

const STEP: f64 = 17.0;

/// Length of the line sample in a series label.
const SWATCH: f64 = 34.0;

/// Intervals shorter than this are hidden by their markers.
const VISIBLE: f64 = 9.0;

impl LineChart {
    pub(super) fn draw(&self) -> Drawing {
        let names: Vec<String> = self.lines.iter().map(|line| marked(&line.name, line.is_baseline)).collect();
        let right = widest(names.iter().map(String::as_str)).clamp(60.0, 300.0) + SWATCH + 34.0;
        let plot = (LEFT, LEFT + WIDTH);
        let height = (self.lines.len() as f64 * STEP).max(320.0);
        let (x, y) = self.scales(plot, (TOP + height, TOP));
        let x_label = format!("{}{}", self.x_label, x.remark());
        let mut drawing = Drawing {
            width: f(plot.1 + right),
            height: f(TOP + height + BOTTOM),
            title: self.title.clone(),
            description: self.description(y),
            x_label: Some(text(f64::midpoint(plot.0, plot.1), TOP + height + 40.0, "middle", "label", x_label)),
            y_label: Some(text(12.0, TOP - 14.0, "start", "label", format!("{}{}", self.y_label, y.remark()))),
            ..Drawing::default()
        };
        for tick in y.ticks(7) {
            drawing.rules.push(rule((plot.0, y.place(tick)), (plot.1, y.place(tick)), "grid"));
            drawing.texts.push(text(plot.0 - 8.0, y.place(tick) + 4.0, "end", "tick", tick_text(tick)));
        }
        let ticks = self.x_ticks(x);
        for (tick, shown) in ticks.iter().zip(size_texts(&ticks)) {
            let at = x.place(*tick);
            drawing.rules.push(rule((at, TOP + height), (at, TOP + height + 5.0), "axis"));
            drawing.texts.push(text(at, TOP + height + 20.0, "middle", "tick", shown));
        }
        drawing.rules.push(rule((plot.0, TOP + height), (plot.1, TOP + height), "axis"));
        if let Some((name, level)) = &self.reference {
            drawing.rules.push(rule((plot.0, y.place(*level)), (plot.1, y.place(*level)), "reference"));
            drawing.texts.push(text(plot.0 + 6.0, y.place(*level) - 5.0, "start", "tick", name));
        }
        for (i, line) in self.lines.iter().enumerate() {
            draw_line(&mut drawing, line, Style::from_position(i), &self.x_label, (x, y));
        }
        self.draw_labels(&mut drawing, &names, y, (plot.1, (TOP, TOP + height)));
        drawing
    }

    /// Describes the chart, the best series and the baseline, in one sentence each.
    fn description(&self, y: Scale) -> String {
        let mut said = vec![format!(
            "{}{} over {}; {} lines; vertical bars are 95 % intervals, where visible.",
            self.y_label,
            y.remark(),
            self.x_label,
            self.lines.len()
        )];
        let most = self.lines.iter().flat_map(|l| &l.points).map(|p| p.x).fold(f64::NEG_INFINITY, f64::max);
        let at_end = |line: &Line| line.points.iter().find(|p| p.x >= most).cloned();
        let ends = self.lines.iter().filter_map(|line| Some((line, at_end(line)?)));
        let sign = if self.more_is_better { -1.0 } else { 1.0 };
        let best = ends.clone().min_by(|a, b| (sign * a.1.y).total_cmp(&(sign * b.1.y)));
        if let Some((line, point)) = best {
            let place = size_texts(&[most]).concat();
            said.push(format!("Best at {} = {place}: {}, {}.", self.x_label, line.name, point.shown));
        }
        for (line, point) in ends.filter(|(line, _)| line.is_baseline) {
            said.push(format!("Baseline: {}, {}.", line.name, point.shown));
        }
        said.join(" ")
    }

    /// Ticks at the values themselves if they are few and far apart, otherwise at round values.
    fn x_ticks(&self, x: Scale) -> Vec<f64> {
        const APART: f64 = 40.0;
        let values = self.xs();
        let lie_apart = values.windows(2).all(|pair| x.place(pair[1]) - x.place(pair[0]) >= APART);
        if lie_apart { values } else { x.ticks(8) }
    }

    fn xs(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.lines.iter().flat_map(|l| &l.points).map(|p| p.x).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    fn scales(&self, across: (f64, f64), down: (f64, f64)) -> (Scale, Scale) {
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let low = points().map(|p| p.low).fold(f64::INFINITY, f64::min);
        let high = points().map(|p| p.high).chain(self.reference.iter().map(|(_, level)| *level)).fold(0.0, f64::max);
        let xs = self.xs();
        let ends = (xs.first().copied().unwrap_or(0.0), xs.last().copied().unwrap_or(1.0));
        // The sizes often include one that is not a multiple of the block size.
        let are_powers = 2 * xs.iter().filter(|x| is_power_of_two(**x)).count() > xs.len();
        let kind = match ends.1 / ends.0 {
            ratio if ends.0 <= 0.0 || ratio < 8.0 => ScaleKind::Linear,
            _ if are_powers => ScaleKind::Log2,
            ratio if ratio > 10.0 => ScaleKind::Log10,
            _ => ScaleKind::Linear,
        };
        (Scale::new(kind, ends, (across.0 + 12.0, across.1 - 12.0)), Scale::of_values((low, high), down))
    }

    /// Labels each line near its end, with a line sample. Labels keep the order of the ends.
    fn draw_labels(&self, drawing: &mut Drawing, names: &[String], y: Scale, (right, down): (f64, (f64, f64))) {
        let ends: Vec<f64> = self.lines.iter().map(|l| l.points.last().map_or(down.1, |p| y.place(p.y))).collect();
        let places = spread_labels(&ends, STEP, down);
        let from = right + 14.0;
        for (i, (line, place)) in self.lines.iter().zip(places).enumerate() {
            let style = Style::from_position(i);
            drawing.paths.push(path(&[(from, place), (from + SWATCH, place)], style, line.is_baseline));
            let outline = style.marker(from + SWATCH / 2.0, place);
            drawing.marks.push(Mark { outline, fill: style.colour, about: None });
            drawing.texts.push(text(from + SWATCH + 8.0, place + 4.0, "start", "name", &names[i]));
        }
    }
}

fn path(places: &[(f64, f64)], style: Style, is_baseline: bool) -> Path {
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{},{}", f(*x), f(*y))).collect();
    let width = if is_baseline { "3.5" } else { "2" };
    Path { points: points.join(" "), stroke: style.colour, dash: style.dash, width }
}

fn draw_line(drawing: &mut Drawing, line: &Line, style: Style, axis: &str, (x, y): (Scale, Scale)) {
    let places: Vec<(f64, f64)> = line.points.iter().map(|p| (x.place(p.x), y.place(p.y))).collect();
    drawing.paths.push(path(&places, style, line.is_baseline));
    for (point, place) in line.points.iter().zip(&places) {
        let at = size_texts(&[point.x]).concat();
        let about = Some(format!("{}, {axis} = {at}: {}", line.name, point.shown));
        drawing.marks.push(Mark { outline: style.marker(place.0, place.1), fill: style.colour, about });
        let (low, high) = (y.place(point.low.max(f64::MIN_POSITIVE)), y.place(point.high));
        if low - high > VISIBLE {
            let ends = [((place.0, low), (place.0, high)), whisker_end(*place, low), whisker_end(*place, high)];
            let whiskers = ends.map(|(a, b)| Rule { stroke: Some(style.colour), ..rule(a, b, "whisker") });
            drawing.rules.extend(whiskers);
        }
    }
}

fn whisker_end((x, _): (f64, f64), y: f64) -> ((f64, f64), (f64, f64)) {
    ((x - 4.0, y), (x + 4.0, y))
}
