//! Bar chart with one bar per contender. Bars whose values differ little start from the baseline. On a logarithmic
//! axis, where the length of a bar means nothing, markers are drawn instead.

use super::scale::{Scale, ScaleKind};
use super::style::{BAR, BEST_BAR};
use super::{Area, BOTTOM, Drawing, Mark, TOP, disc, f, marked, rule, text, text_width, tick_text, widest};

#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    pub title: String,
    /// Title of the value axis, including the unit.
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

/// Maximum width of the names, about a third of the chart.
const WIDEST_NAME: f64 = 260.0;
/// Minimum width of the names.
const NARROWEST_NAME: f64 = 60.0;

/// If every value is within this factor of the baseline's, bars start there: from zero, they would look equal.
const NEAR: f64 = 1.25;

/// Margin of the axis at each end, as a fraction of the values' range.
const MARGIN: f64 = 0.05;

const VISIBLE: f64 = 3.0;

/// Where bars start, and in what unit the axis shows their values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Origin {
    Zero,
    Reference(f64),
    /// The baseline's value; the axis shows the difference in percent.
    Baseline(f64),
}

impl Origin {
    /// Value in the unit of the axis.
    fn shown(self, value: f64) -> f64 {
        match self {
            Self::Zero | Self::Reference(_) => value,
            Self::Baseline(base) => (value / base - 1.0) * 100.0,
        }
    }

    /// Where bars start on the axis.
    fn start(self) -> f64 {
        match self {
            Self::Zero | Self::Baseline(_) => 0.0,
            Self::Reference(value) => value,
        }
    }
}

impl BarChart {
    pub(super) fn draw(&self) -> Drawing {
        let Names { drawn: names, axes } = self.names();
        let left = widest(names.iter().map(String::as_str)).clamp(NARROWEST_NAME, WIDEST_NAME) + 20.0;
        let origin = self.origin();
        let values: Vec<String> = self.bars.iter().map(|bar| value_text(bar, origin)).collect();
        let right = widest(values.iter().map(String::as_str)) + 28.0;
        let height = STEP * self.bars.len() as f64;
        let x = self.scale(origin, (left, left + WIDTH));
        let axis = if matches!(origin, Origin::Baseline(_)) { ", difference from the baseline" } else { "" };
        let x_label = format!("{}{axis}{}", self.x_label, x.remark());
        let mut drawing = Drawing {
            width: f((left + WIDTH + right).max(widest(axes.iter().map(String::as_str)) + 24.0)),
            height: f(TOP + height + BOTTOM - 10.0),
            title: self.title.clone(),
            description: self.description(x),
            x_label: Some(text(left + WIDTH / 2.0, TOP + height + 34.0, "middle", "label", x_label)),
            y_label: axes.map(|axes| text(12.0, TOP - 14.0, "start", "label", axes)),
            ..Drawing::default()
        };
        for tick in x.ticks(6) {
            let shown = if let Origin::Baseline(_) = origin { percent(tick, tick_text) } else { tick_text(tick) };
            drawing.rules.push(rule((x.place(tick), TOP - 6.0), (x.place(tick), TOP + height), "grid"));
            drawing.texts.push(text(x.place(tick), TOP + height + 16.0, "middle", "tick", shown));
        }
        for (i, (bar, name)) in self.bars.iter().zip(&names).enumerate() {
            let middle = TOP + STEP * (i as f64 + 0.5);
            draw_bar(&mut drawing, bar, (x, origin), (left, middle));
            let class = if bar.is_best { "best-name" } else { "name" };
            drawing.texts.push(text(left - 8.0, middle + 4.0, "end", class, name));
            // Values have a column of their own, to the right of the bars.
            drawing.texts.push(text(left + WIDTH + right - 12.0, middle + 4.0, "end", "tick", &values[i]));
        }
        // Drawn after the bars, so that the line stays visible across them.
        let baselines = self.bars.iter().filter(|bar| bar.is_baseline).map(|bar| bar.value);
        for value in baselines.chain(self.reference) {
            let at = x.place(origin.shown(value));
            drawing.rules.push(rule((at, TOP - 6.0), (at, TOP + height), "baseline"));
        }
        drawing
    }

    fn origin(&self) -> Origin {
        if let Some(reference) = self.reference {
            return Origin::Reference(reference);
        }
        let base = self.bars.iter().find(|bar| bar.is_baseline).map(|bar| bar.value);
        let is_near = |bar: &Bar, base: f64| bar.low * NEAR >= base && bar.high <= base * NEAR;
        base.filter(|base| self.bars.iter().all(|bar| is_near(bar, *base))).map_or(Origin::Zero, Origin::Baseline)
    }

    /// Scale of the value axis: linear from zero, or logarithmic if the values span more than a decade. If bars do not
    /// start at zero, a linear axis covers only the values.
    fn scale(&self, origin: Origin, range: (f64, f64)) -> Scale {
        let least = self.bars.iter().map(|bar| bar.low).chain(self.reference).fold(f64::INFINITY, f64::min);
        let most = self.bars.iter().map(|bar| bar.high).chain(self.reference).fold(0.0, f64::max);
        let scale = Scale::of_values((least, most), range);
        if origin == Origin::Zero || scale.is_logarithmic() {
            return scale;
        }
        let (least, most) = (origin.shown(least), origin.shown(most));
        let margin = MARGIN * (most - least);
        Scale::new(ScaleKind::Linear, (least - margin, most + margin), range)
    }

    /// Names as drawn. If one is too wide, all are shortened in steps: common parts go first, then axis names (stated
    /// once instead), then the middle of each name.
    fn names(&self) -> Names {
        let drawn = |name: &dyn Fn(&Bar) -> String| -> Vec<String> {
            self.bars.iter().map(|bar| marked(&name(bar), bar.is_baseline)).collect()
        };
        let fits = |names: &[String]| widest(names.iter().map(String::as_str)) <= WIDEST_NAME;
        let whole = drawn(&|bar| bar.name.clone());
        if fits(&whole) {
            return Names { drawn: whole, axes: None };
        }
        let all: Vec<Vec<&str>> = self.bars.iter().map(|bar| parts(&bar.name)).collect();
        let is_common = |part: &&str| all.iter().all(|others| others.contains(part));
        let own =
            |bar: &Bar| parts(&bar.name).into_iter().filter(|part| !is_common(part)).collect::<Vec<_>>().join(", ");
        let short = drawn(&own);
        if fits(&short) {
            return Names { drawn: short, axes: None };
        }
        let keys = |bar: &Bar| own(bar).split(", ").map(|part| Some(part.split_once('=')?.0.to_owned())).collect();
        let first: Option<Vec<String>> = self.bars.first().and_then(keys);
        let axes = first.filter(|first| self.bars.iter().all(|bar| keys(bar).as_ref() == Some(first)));
        let values = |bar: &Bar| {
            own(bar).split(", ").filter_map(|part| Some(part.split_once('=')?.1)).collect::<Vec<_>>().join(", ")
        };
        let named = if axes.is_some() { drawn(&values) } else { short };
        Names { drawn: named.iter().map(|name| cut(name)).collect(), axes: axes.map(|axes| axes.join(", ")) }
    }

    fn description(&self, x: Scale) -> String {
        let kind = if x.is_logarithmic() { "markers" } else { "bars" };
        let mut said = vec![format!(
            "{}{}; {} {kind}, one per variant; horizontal lines are 95 % intervals, where visible.",
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

#[derive(Debug, Clone, PartialEq, Eq)]
struct Names {
    drawn: Vec<String>,
    /// Names of the axes, if the bars are named only by axis values.
    axes: Option<String>,
}

/// Splits a name such as `plain[n=4, k=1]` into the variant and each `axis=value`.
fn parts(name: &str) -> Vec<&str> {
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((variant, values)) => std::iter::once(variant).chain(values.split(", ")).collect(),
        None => vec![name],
    }
}

/// Replaces the middle of a name that is too wide with an ellipsis.
fn cut(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let most = (WIDEST_NAME / text_width("0")) as usize;
    if characters.len() <= most {
        return name.to_owned();
    }
    let half = most / 2 - 1;
    let end: String = characters[characters.len() - half..].iter().collect();
    format!("{}…{end}", characters[..half].iter().collect::<String>())
}

/// Percentage with a sign, such as `+2.5 %`.
fn percent(value: f64, shown: impl Fn(f64) -> String) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    let shown = shown(value.abs());
    if shown == "0" { "0 %".to_owned() } else { format!("{sign}{shown} %") }
}

/// The value of a bar, with its difference from the baseline if bars start there.
fn value_text(bar: &Bar, origin: Origin) -> String {
    match origin {
        Origin::Baseline(_) if !bar.is_baseline => {
            format!("{}, {}", bar.shown, percent(origin.shown(bar.value), |value| format!("{value:.1}")))
        }
        _ => bar.shown.clone(),
    }
}

fn draw_bar(drawing: &mut Drawing, bar: &Bar, (x, origin): (Scale, Origin), (left, middle): (f64, f64)) {
    let place = |value: f64| x.place(origin.shown(value));
    let about = Some(format!("{}: {}", bar.name, bar.shown));
    let (colour, end) = (if bar.is_best { BEST_BAR } else { BAR }, place(bar.value));
    if x.is_logarithmic() {
        drawing.rules.push(rule((left, middle), (end, middle), "guide"));
        drawing.marks.push(Mark { outline: disc(end, middle, 5.0), fill: colour, about });
    } else {
        let start = x.place(origin.start());
        drawing.boxes.push(Area {
            x: f(start.min(end)),
            y: f(middle - 8.0),
            width: f((end - start).abs()),
            height: f(16.0),
            fill: colour.to_owned(),
            opacity: "1",
            class: "bar",
            about,
        });
    }
    let (low, high) = (place(bar.low), place(bar.high));
    if high - low > VISIBLE {
        drawing.rules.push(rule((low, middle), (high, middle), "interval"));
        drawing.rules.extend([low, high].map(|at| rule((at, middle - 4.0), (at, middle + 4.0), "interval")));
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn bar(name: &str, value: f64) -> Bar {
        let (low, high, shown) = (value, value, value.to_string());
        Bar { name: name.to_owned(), is_baseline: false, is_best: false, value, low, high, shown }
    }

    fn chart(bars: Vec<Bar>) -> BarChart {
        BarChart { title: String::new(), x_label: "time (µs)".to_owned(), bars, reference: None }
    }

    fn names(names: &[&str]) -> Names {
        chart(names.iter().map(|name| bar(name, 1.0)).collect()).names()
    }

    #[test]
    fn long_names_lose_what_all_bars_have() {
        let long =
            |x, y| format!("convolve[block_size_x={x}, tile_size_x=1, tile_y={y}, read_only=0, use_shared_memory=1]");
        let (one, other) = (long(16, 4), long(32, 4));
        assert_eq!(names(&[&one, &other]).drawn, ["block_size_x=16", "block_size_x=32"]);
        let other = long(32, 1);
        assert_eq!(names(&[&one, &other]).drawn, ["block_size_x=16, tile_y=4", "block_size_x=32, tile_y=1"]);
        assert_eq!(names(&["plain[n=4]", "plain[n=8]"]).drawn, ["plain[n=4]", "plain[n=8]"]);
    }

    /// Names that include seven axes would take up half of the chart.
    #[test]
    fn names_of_many_axes_are_their_values_and_the_axes_are_named_once() {
        let long = |x, y, z| format!("convolve[block_size_x={x}, block_size_y={y}, tile_size_x={z}, read_only=0]");
        let found = names(&[&long(16, 4, 1), &long(32, 1, 2)]);
        assert_eq!(found.drawn, ["16, 4, 1", "32, 1, 2"]);
        assert_eq!(found.axes.as_deref(), Some("block_size_x, block_size_y, tile_size_x"));
    }

    #[test]
    fn names_take_at_most_a_third_of_the_chart() {
        let drawing = chart(vec![bar(&"a".repeat(200), 1.0), bar("b", 2.0)]).draw();
        let name = drawing.texts.iter().find(|text| text.text.starts_with("aa")).unwrap();
        assert!(name.text.contains('…'), "{}", name.text);
        let [end, width] = [&name.x, &drawing.width].map(|text| text.parse::<f64>().unwrap());
        assert!(end <= width / 2.0 && text_width(&name.text) <= width / 3.0 + 14.0, "{end} {width}");
    }

    /// 100 is the baseline. Drawn from zero, the bars of 99 and 102 would be nearly as long.
    #[test]
    fn bars_that_differ_by_little_start_from_the_baseline_and_show_the_difference() {
        let near = |worst: f64| {
            let base = Bar { is_baseline: true, ..bar("base", 100.0) };
            chart(vec![base, bar("faster", 99.0), bar("slower", worst)]).draw()
        };
        let drawing = near(102.0);
        let shown: Vec<&str> = drawing.texts.iter().map(|text| text.text.as_str()).collect();
        for text in ["99, −1.0 %", "102, +2.0 %", "100", "+1 %", "0 %", "−1 %"] {
            assert!(shown.contains(&text), "{text} {shown:?}");
        }
        let label = drawing.x_label.unwrap().text;
        assert_eq!(label, "time (µs), difference from the baseline");
        // The axis runs from -1.15 to 2.15, so 3.3 % are 440 units wide.
        let sizes = drawing.boxes.iter().map(|area| [&area.x, &area.width].map(|text| text.parse::<f64>().unwrap()));
        // `base (baseline)` is the widest name, with 15 characters.
        let zero = 15.0 * 7.2 + 20.0 + 440.0 * 1.15 / 3.3;
        let expected = [[zero, 0.0], [zero - 440.0 / 3.3, 440.0 / 3.3], [zero, 880.0 / 3.3]];
        for (found, expected) in sizes.zip(expected) {
            assert!((found[0] - expected[0]).abs() < 0.1 && (found[1] - expected[1]).abs() < 0.1, "{found:?}");
        }
        // A bar of twice the length already shows that its value is twice as large.
        let far = near(200.0);
        assert_eq!(far.x_label.unwrap().text, "time (µs)");
        assert!(far.texts.iter().all(|text| !text.text.contains('%')));
    }
}
