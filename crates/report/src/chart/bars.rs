//! Bar chart with one bar per contender. On a logarithmic axis, where a bar's length means nothing, it draws a marker.

use super::scale::Scale;
use super::style::{BAR, BEST_BAR};
use super::{Area, BOTTOM, Drawing, Mark, TOP, disc, f, marked, rule, text, tick_text, widest};

#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    pub title: String,
    /// Title of the value axis, which names the unit.
    pub x_label: String,
    pub bars: Vec<Bar>,
    /// Value to compare with, such as 1 for ratios.
    pub reference: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub name: String,
    pub is_baseline: bool,
    /// Whether it is the best, or as good as the best within the noise.
    pub is_best: bool,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub shown: String,
}

const STEP: f64 = 24.0;
const WIDTH: f64 = 440.0;

/// If a name is wider than this, all names lose the parts that they have in common.
const WIDEST_NAME: f64 = 380.0;
/// Maximum width for names. A longer name loses its beginning.
const WIDEST_SHORT_NAME: f64 = 800.0;

const VISIBLE: f64 = 3.0;

impl BarChart {
    pub(super) fn draw(&self) -> Drawing {
        let names = self.names();
        let left = widest(names.iter().map(String::as_str)).clamp(60.0, WIDEST_SHORT_NAME) + 20.0;
        let right = widest(self.bars.iter().map(|b| b.shown.as_str())) + 28.0;
        let height = STEP * self.bars.len() as f64;
        let least = self.bars.iter().map(|b| b.low).chain(self.reference).fold(f64::INFINITY, f64::min);
        let most = self.bars.iter().map(|b| b.high).chain(self.reference).fold(0.0, f64::max);
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
        for (i, (bar, name)) in self.bars.iter().zip(&names).enumerate() {
            let middle = TOP + STEP * (i as f64 + 0.5);
            draw_bar(&mut drawing, bar, x, (left, middle));
            let class = if bar.is_best { "best-name" } else { "name" };
            drawing.texts.push(text(left - 8.0, middle + 4.0, "end", class, name));
            // The value is in a column of its own, beyond the bars.
            drawing.texts.push(text(left + WIDTH + right - 12.0, middle + 4.0, "end", "tick", &bar.shown));
        }
        // Drawn over the bars, so that the line can be followed through them.
        let baselines = self.bars.iter().filter(|bar| bar.is_baseline).map(|bar| bar.value);
        for value in baselines.chain(self.reference) {
            let at = x.place(value);
            drawing.rules.push(rule((at, TOP - 6.0), (at, TOP + height), "baseline"));
        }
        drawing
    }

    /// Names as drawn.
    fn names(&self) -> Vec<String> {
        let drawn = |bar: &Bar, name: &str| marked(name, bar.is_baseline);
        let whole: Vec<String> = self.bars.iter().map(|bar| drawn(bar, &bar.name)).collect();
        if widest(whole.iter().map(String::as_str)) <= WIDEST_NAME {
            return whole;
        }
        let parts: Vec<Vec<&str>> = self.bars.iter().map(|bar| parts(&bar.name)).collect();
        let is_common = |part: &&str| parts.iter().all(|others| others.contains(part));
        let own =
            |parts: &Vec<&str>| parts.iter().filter(|part| !is_common(part)).copied().collect::<Vec<_>>().join(", ");
        self.bars.iter().zip(&parts).map(|(bar, parts)| drawn(bar, &own(parts))).collect()
    }

    fn description(&self, x: Scale) -> String {
        let kind = if x.is_logarithmic() { "markers" } else { "bars" };
        let mut said = vec![format!(
            "{}{}; {} {kind}, one per variant; horizontal lines are 95 % intervals where they can be seen.",
            self.x_label,
            x.remark(),
            self.bars.len()
        )];
        let best: Vec<String> =
            self.bars.iter().filter(|bar| bar.is_best).map(|bar| format!("{}, {}", bar.name, bar.shown)).collect();
        if !best.is_empty() {
            let tied = if best.len() > 1 { ", tied" } else { "" };
            said.push(format!("Best{tied}: {}.", best.join("; ")));
        }
        for bar in self.bars.iter().filter(|bar| bar.is_baseline) {
            said.push(format!("Baseline: {}, {}, the dashed line.", bar.name, bar.shown));
        }
        said.join(" ")
    }
}

/// The variant and each `axis=value` of a name such as `plain[n=4, k=1]`.
fn parts(name: &str) -> Vec<&str> {
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((variant, values)) => std::iter::once(variant).chain(values.split(", ")).collect(),
        None => vec![name],
    }
}

fn draw_bar(drawing: &mut Drawing, bar: &Bar, x: Scale, (left, middle): (f64, f64)) {
    let about = Some(format!("{}: {}", bar.name, bar.shown));
    let (colour, end) = (if bar.is_best { BEST_BAR } else { BAR }, x.place(bar.value));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(names: &[&str]) -> BarChart {
        let bar = |name: &&str| Bar {
            name: (*name).to_owned(),
            is_baseline: false,
            is_best: false,
            value: 1.0,
            low: 1.0,
            high: 1.0,
            shown: "1".to_owned(),
        };
        let bars = names.iter().map(bar).collect();
        BarChart { title: String::new(), x_label: String::new(), bars, reference: None }
    }

    #[test]
    fn long_names_lose_what_all_bars_have() {
        let long = |x, y| {
            format!("convolve[block_size_x={x}, tile_size_x=1, tile_size_y={y}, read_only=0, use_shared_memory=1]")
        };
        let (one, other) = (long(16, 4), long(32, 4));
        assert_eq!(chart(&[&one, &other]).names(), ["block_size_x=16", "block_size_x=32"]);
        let other = long(32, 1);
        assert_eq!(
            chart(&[&one, &other]).names(),
            ["block_size_x=16, tile_size_y=4", "block_size_x=32, tile_size_y=1"]
        );
        assert_eq!(chart(&["plain[n=4]", "plain[n=8]"]).names(), ["plain[n=4]", "plain[n=8]"]);
    }
}
