//! Draws one bar for each contender; on a logarithmic axis, where a bar's length means nothing, a marker.

use super::scale::Scale;
use super::style::{BAR, BEST_BAR};
use super::{Area, BOTTOM, Drawing, Mark, TOP, disc, f, marked, rule, text, tick_text, widest};

/// A chart that has one bar for each contender.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    pub title: String,
    /// The title of the axis of values, which names their unit.
    pub x_label: String,
    pub more_is_better: bool,
    pub bars: Vec<Bar>,
}

/// A value that is drawn with its interval, and as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub name: String,
    pub is_baseline: bool,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub shown: String,
}

const STEP: f64 = 24.0;
const WIDTH: f64 = 440.0;

/// An interval smaller than this cannot be seen.
const VISIBLE: f64 = 3.0;

impl BarChart {
    fn best(&self) -> Option<&Bar> {
        let sign = if self.more_is_better { -1.0 } else { 1.0 };
        self.bars.iter().min_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)))
    }

    pub(super) fn draw(&self) -> Drawing {
        let names: Vec<String> = self.bars.iter().map(|bar| marked(&bar.name, bar.is_baseline)).collect();
        let left = widest(names.iter().map(String::as_str)).clamp(60.0, 380.0) + 20.0;
        let right = widest(self.bars.iter().map(|b| b.shown.as_str())) + 28.0;
        let height = STEP * self.bars.len() as f64;
        let least = self.bars.iter().map(|b| b.low).fold(f64::INFINITY, f64::min);
        let most = self.bars.iter().map(|b| b.high).fold(0.0, f64::max);
        let x = Scale::of_values((least, most), (left, left + WIDTH));
        let x_label = format!("{}{}", self.x_label, x.remark());
        let mut drawing = Drawing {
            width: f(left + WIDTH + right),
            height: f(TOP + height + BOTTOM - 10.0),
            title: self.title.clone(),
            description: self.description(x),
            x_label: Some(text(left + WIDTH / 2.0, TOP + height + 34.0, "middle", "label", x_label)),
            ..Drawing::default()
        };
        for tick in x.ticks(6) {
            drawing.rules.push(rule((x.place(tick), TOP - 6.0), (x.place(tick), TOP + height), "grid"));
            drawing.texts.push(text(x.place(tick), TOP + height + 16.0, "middle", "tick", tick_text(tick)));
        }
        let best = self.best().map(|bar| bar.value);
        for (i, (bar, name)) in self.bars.iter().zip(&names).enumerate() {
            let is_best = best == Some(bar.value);
            let middle = TOP + STEP * (i as f64 + 0.5);
            draw_bar(&mut drawing, bar, is_best, x, (left, middle));
            let class = if is_best { "best-name" } else { "name" };
            drawing.texts.push(text(left - 8.0, middle + 4.0, "end", class, name));
            // The mark is in a column where no other one is.
            drawing.texts.push(text(left + WIDTH + right - 12.0, middle + 4.0, "end", "tick", &bar.shown));
        }
        // Above the bars, so that it can be followed through them.
        for bar in self.bars.iter().filter(|bar| bar.is_baseline) {
            let at = x.place(bar.value);
            drawing.rules.push(rule((at, TOP - 6.0), (at, TOP + height), "baseline"));
        }
        drawing
    }

    fn description(&self, x: Scale) -> String {
        let kind = if x.is_logarithmic() { "markers" } else { "bars" };
        let mut said = vec![format!(
            "{}{}; {} {kind}, one per variant; horizontal lines are 95 % intervals where they can be seen.",
            self.x_label,
            x.remark(),
            self.bars.len()
        )];
        if let Some(bar) = self.best() {
            said.push(format!("Best: {}, {}.", bar.name, bar.shown));
        }
        for bar in self.bars.iter().filter(|bar| bar.is_baseline) {
            said.push(format!("Baseline: {}, {}, the dashed line.", bar.name, bar.shown));
        }
        said.join(" ")
    }
}

fn draw_bar(drawing: &mut Drawing, bar: &Bar, is_best: bool, x: Scale, (left, middle): (f64, f64)) {
    let about = Some(format!("{}: {}", bar.name, bar.shown));
    let (colour, end) = (if is_best { BEST_BAR } else { BAR }, x.place(bar.value));
    if x.is_logarithmic() {
        drawing.rules.push(rule((left, middle), (end, middle), "guide"));
        drawing.marks.push(Mark { outline: disc(end, middle, 5.0), fill: colour, about });
    } else {
        drawing.boxes.push(Area {
            x: f(left),
            y: f(middle - 8.0),
            width: f(end - left),
            height: f(16.0),
            fill: colour.to_owned(),
            opacity: "1",
            class: "bar",
            about,
        });
    }
    let (low, high) = (x.place(bar.low), x.place(bar.high));
    if high - low > VISIBLE {
        drawing.rules.push(rule((low, middle), (high, middle), "interval"));
        drawing.rules.extend([low, high].map(|at| rule((at, middle - 4.0), (at, middle + 4.0), "interval")));
    }
}
