//! Chart of a series: a point with its interval per revision, the level of each segment, breaks and changes.

use super::words;
use crate::chart::{
    BOTTOM, COLOURS, Drawing, LEFT, Mark, Path, Rule, Scale, ScaleKind, disc, f, rule, text, tick_text,
};
use crate::number;
use crate::units::TimeUnit;
use runner_lang::format::plural;
use runner_results::analyse::history::{Point, Series};
use runner_types::Commit;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
/// Height above the plot, for the title and the labels of breaks.
const TOP: f64 = 76.0;
/// Minimum distance between revision labels.
const APART: f64 = 64.0;
/// Margin of the vertical range at each end, as a fraction of it.
const MARGIN: f64 = 0.08;

pub fn draw(title: &str, series: &Series<'_>, commits: &[Commit]) -> Drawing {
    let unit = TimeUnit::choose(series.points.iter().map(|point| point.time.point));
    let x = Scale::new(ScaleKind::Linear, (0.0, (series.points.len() - 1) as f64), (LEFT + 24.0, LEFT + WIDTH - 24.0));
    let y = vertical(series, unit);
    let mut drawing = Drawing {
        width: f(LEFT + WIDTH + 24.0),
        height: f(TOP + HEIGHT + BOTTOM),
        title: title.to_owned(),
        description: description(series, unit),
        x_label: Some(text(LEFT + WIDTH / 2.0, TOP + HEIGHT + 40.0, "middle", "label", "revision")),
        y_label: Some(text(
            12.0,
            40.0,
            "start",
            "label",
            format!("time ({}){}; bars: 95 % intervals", unit.symbol(), y.remark()),
        )),
        ..Drawing::default()
    };
    for tick in y.ticks(6) {
        drawing.rules.push(rule((LEFT, y.place(tick)), (LEFT + WIDTH, y.place(tick)), "grid"));
        drawing.texts.push(text(LEFT - 8.0, y.place(tick) + 4.0, "end", "tick", tick_text(tick)));
    }
    drawing.rules.push(rule((LEFT, TOP + HEIGHT), (LEFT + WIDTH, TOP + HEIGHT), "axis"));
    revisions(&mut drawing, series, commits, x);
    marks(&mut drawing, series, x);
    for (start, end) in series.levels() {
        let level = y.place(level(&series.points[start..end]) / unit.nanoseconds());
        let points = [start as f64 - 0.3, end as f64 - 0.7].map(|at| {
            // With few points, the spacing is so wide that the ends would leave the plot.
            let at = x.place(at).clamp(LEFT, LEFT + WIDTH);
            format!("{},{}", f(at), f(level))
        });
        drawing.paths.push(Path { points: points.join(" "), stroke: COLOURS[1], dash: None, width: "2" });
    }
    for (i, point) in series.points.iter().enumerate() {
        let position = |time: f64| (x.place(i as f64), y.place(time / unit.nanoseconds()));
        drawing.rules.push(Rule {
            stroke: Some(COLOURS[0]),
            ..rule(position(point.time.low), position(point.time.high), "whisker")
        });
        let (x, y) = position(point.time.point);
        let shown = number::plus_minus(&point.time, unit.nanoseconds());
        let about = format!("{}: {shown} {}", commits[point.revision].short(), unit.symbol());
        drawing.marks.push(Mark { outline: disc(x, y, 3.0), fill: COLOURS[0], about: Some(about) });
    }
    drawing
}

fn description(series: &Series<'_>, unit: TimeUnit) -> String {
    let revisions = plural(series.points.len() as u64, "revision");
    let mut said =
        vec![format!("Time in {} at {revisions} with 95 % intervals, and the level of each part.", unit.symbol())];
    for change in &series.changes {
        said.push(format!("Change: {}.", words::change(change)));
    }
    for found in &series.breaks {
        said.push(format!("Break: {}.", words::names(found).join(", ")));
    }
    said.join(" ")
}

/// A scale that is linear around the times, or logarithmic if they span more than a decade.
fn vertical(series: &Series<'_>, unit: TimeUnit) -> Scale {
    let ends = series.points.iter().map(|point| (point.time.low, point.time.high));
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(low, high), end| (low.min(end.0), high.max(end.1)));
    let (low, high) = (low / unit.nanoseconds(), high / unit.nanoseconds());
    let range = (TOP + HEIGHT, TOP);
    if high / low > 10.0 {
        return Scale::new(
            ScaleKind::Log10,
            (10_f64.powf(low.log10().floor()), 10_f64.powf(high.log10().ceil())),
            range,
        );
    }
    let margin = (high - low).max(high * 1e-3) * MARGIN;
    Scale::new(ScaleKind::Linear, (low - margin, high + margin), range)
}

/// Draws the names of the revisions that fit.
fn revisions(drawing: &mut Drawing, series: &Series<'_>, commits: &[Commit], x: Scale) {
    let step = x.place(1.0) - x.place(0.0);
    let every = if series.points.len() > 1 { (APART / step).ceil().max(1.0) as usize } else { 1 };
    for (i, point) in series.points.iter().enumerate().step_by(every) {
        let at = x.place(i as f64);
        drawing.rules.push(rule((at, TOP + HEIGHT), (at, TOP + HEIGHT + 5.0), "axis"));
        drawing.texts.push(text(at, TOP + HEIGHT + 20.0, "middle", "tick", commits[point.revision].short()));
    }
}

/// Draws each break and change as a line before the first point after it. Labels alternate between two rows.
fn marks(drawing: &mut Drawing, series: &Series<'_>, x: Scale) {
    let breaks = series.breaks.iter().map(|at| (at.point, words::names(at).join(", "), "reference", None));
    let changes = series.changes.iter().map(|at| (at.point, words::change(at), "whisker", Some(COLOURS[1])));
    let mut marks: Vec<_> = breaks.chain(changes).collect();
    marks.sort_by_key(|(point, ..)| *point);
    for (i, (point, label, class, stroke)) in marks.into_iter().enumerate() {
        let at = x.place(point as f64 - 0.5);
        let row = TOP - 6.0 - 14.0 * (i % 2) as f64;
        drawing.rules.push(Rule { stroke, ..rule((at, row + 3.0), (at, TOP + HEIGHT), class) });
        let (anchor, shift) = if at > LEFT + WIDTH * 0.6 { ("end", -4.0) } else { ("start", 4.0) };
        drawing.texts.push(text(at + shift, row, anchor, "tick", label));
    }
}

/// Median of a segment without changes, so that outliers do not move the level; 0 without points.
fn level(points: &[Point]) -> f64 {
    runner_stats::median(&points.iter().map(|point| point.time.point).collect::<Vec<f64>>()).unwrap_or_default()
}
