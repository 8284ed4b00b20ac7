//! Configurations over parallel axes, one per parameter, to show what the good ones have in common.

use super::chart::{COLOURS, Drawing, LEFT, Path, TOP, f, rule, text};
use super::{RenderError, Templates};

/// A parameter and its values in order, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// Tick labels, from the bottom to the top.
    pub values: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Positions of its values on the axes.
    pub places: Vec<usize>,
    /// Objective divided by the best one.
    pub ratio: f64,
}

/// Line colours and widths, each for configurations up to a ratio.
const KINDS: [(f64, &str, &str, &str); 4] = [
    (1.0, COLOURS[2], "3", "best"),
    (1.05, COLOURS[0], "1.6", "within 5 %"),
    (1.25, COLOURS[3], "1", "within 25 %"),
    (f64::INFINITY, "#8b949e", "0.4", "others"),
];
/// Maximum number of lines to draw; more would blur into a grey area.
const MOST: usize = 1000;
const TALL: f64 = 320.0;
const NARROWEST: f64 = 90.0;

/// An SVG chart in which each configuration is a line through its values. The best ones are on top.
pub fn parallel(title: &str, axes: &[Parameter], lines: &[Configuration]) -> Result<String, RenderError> {
    Templates::new()?.chart(&draw(title, axes, lines))
}

fn draw(title: &str, axes: &[Parameter], lines: &[Configuration]) -> Drawing {
    let longest = axes.iter().map(|axis| axis.name.chars().count()).max().unwrap_or(0);
    let wide = (longest as f64 * 7.2 + 16.0).max(NARROWEST);
    let (left, bottom) = (LEFT.max(wide / 2.0 + 8.0), TOP + 20.0 + TALL);
    let width = left + wide * axes.len() as f64;
    let at = |axis: usize, place: usize| {
        let steps = axes[axis].values.len().saturating_sub(1).max(1) as f64;
        (left + wide * axis as f64, bottom - TALL * place as f64 / steps)
    };
    let mut drawing = Drawing {
        width: f(width.max(460.0)),
        height: f(bottom + 44.0),
        title: title.to_owned(),
        description: format!(
            "Each line is a configuration, drawn through its value of each parameter; wide lines are good. Drawn: the \
             best {} of {}.",
            lines.len().min(MOST),
            lines.len()
        ),
        ..Drawing::default()
    };
    let mut sorted: Vec<&Configuration> = lines.iter().collect();
    sorted.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    for line in sorted.into_iter().take(MOST).rev() {
        let kind = KINDS.iter().find(|kind| line.ratio <= kind.0).unwrap_or(&KINDS[3]);
        let points = line.places.iter().enumerate().map(|(axis, &place)| at(axis, place));
        let points: Vec<String> = points.map(|(x, y)| format!("{},{}", f(x), f(y))).collect();
        drawing.paths.push(Path { points: points.join(" "), stroke: kind.1, dash: None, width: kind.2 });
    }
    for (place, axis) in axes.iter().enumerate() {
        let x = left + wide * place as f64;
        drawing.rules.push(rule((x, bottom - TALL), (x, bottom), "axis"));
        drawing.texts.push(text(x, bottom - TALL - 14.0, "middle", "label", &axis.name));
        for (value, name) in axis.values.iter().enumerate() {
            drawing.texts.push(text(x - 6.0, at(place, value).1 + 4.0, "end", "tick", name));
        }
    }
    for (place, (_, stroke, width, name)) in KINDS.into_iter().enumerate() {
        let (x, y) = (left + 100.0 * place as f64, bottom + 26.0);
        let points = format!("{},{} {},{}", f(x), f(y), f(x + 20.0), f(y));
        drawing.paths.push(Path { points, stroke, dash: None, width });
        drawing.texts.push(text(x + 26.0, y + 4.0, "start", "tick", name));
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_values_and_the_best_is_drawn_last() {
        let axis = |name: &str, values: &[&str]| Parameter {
            name: name.to_owned(),
            values: values.iter().map(ToString::to_string).collect(),
        };
        let axes = [axis("x", &["1", "2", "4"]), axis("y", &["a", "b"])];
        let line = |x, y, ratio| Configuration { places: vec![x, y], ratio };
        let drawing = draw("Title", &axes, &[line(0, 1, 1.0), line(2, 0, 2.0), line(1, 1, 1.2)]);
        // Axes start at x = 68, 90 apart, and extend 320 upwards from y = 392.
        let drawn: Vec<(&str, &str)> =
            drawing.paths[..3].iter().map(|path| (path.points.as_str(), path.width)).collect();
        assert_eq!(
            drawn,
            [("68.0,72.0 158.0,392.0", "0.4"), ("68.0,232.0 158.0,72.0", "1"), ("68.0,392.0 158.0,72.0", "3")]
        );
    }
}
