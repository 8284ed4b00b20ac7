//! Roofline: the rate of each contender against its operations per byte, below the ceilings of memory and arithmetic.

use super::scale::{Scale, ScaleKind, spread_labels};
use super::style::Style;
use super::{BOTTOM, Drawing, LEFT, Mark, Path, TOP, f, marked, rule, text, tick_text, widest};
use runner_lang::format::rough;

#[derive(Debug, Clone, PartialEq)]
pub struct Roofline {
    pub title: String,
    /// Memory bandwidth ceiling, in GB/s.
    pub memory: f64,
    /// Arithmetic ceiling, in GFLOP/s.
    pub arithmetic: f64,
    pub points: Vec<RoofPoint>,
}

/// Highest rate that a contender reached.
#[derive(Debug, Clone, PartialEq)]
pub struct RoofPoint {
    pub name: String,
    pub is_baseline: bool,
    pub intensity: f64,
    /// Rate in GFLOP/s.
    pub rate: f64,
    /// Rate as text, and the case that reached it.
    pub shown: String,
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 360.0;

const STEP: f64 = 17.0;

/// Factor by which the axes extend beyond the data.
const BEYOND: f64 = 3.0;

const ROOF: &str = "#6e7781";

impl Roofline {
    pub(super) fn draw(&self) -> Drawing {
        let names: Vec<String> = self.points.iter().map(|point| marked(&point.name, point.is_baseline)).collect();
        let (x, y) = self.scales();
        let right = LEFT + WIDTH;
        let mut drawing = Drawing {
            width: f(right + widest(names.iter().map(String::as_str)).clamp(60.0, 300.0) + 46.0),
            height: f(TOP + HEIGHT.max(STEP * names.len() as f64) + BOTTOM),
            title: self.title.clone(),
            description: self.description(),
            x_label: Some(text(
                LEFT + WIDTH / 2.0,
                TOP + HEIGHT + 40.0,
                "middle",
                "label",
                "operations per byte, log scale",
            )),
            y_label: Some(text(12.0, TOP - 14.0, "start", "label", "GFLOP/s, log scale")),
            ..Drawing::default()
        };
        for tick in y.ticks(7) {
            drawing.rules.push(rule((LEFT, y.place(tick)), (right, y.place(tick)), "grid"));
            drawing.texts.push(text(LEFT - 8.0, y.place(tick) + 4.0, "end", "tick", tick_text(tick)));
        }
        for tick in x.ticks(7) {
            drawing.rules.push(rule((x.place(tick), TOP + HEIGHT), (x.place(tick), TOP + HEIGHT + 5.0), "axis"));
            drawing.texts.push(text(x.place(tick), TOP + HEIGHT + 20.0, "middle", "tick", tick_text(tick)));
        }
        drawing.rules.push(rule((LEFT, TOP + HEIGHT), (right, TOP + HEIGHT), "axis"));
        self.draw_roof(&mut drawing, (x, y));
        for (i, point) in self.points.iter().enumerate() {
            let style = Style::from_position(i);
            let outline = style.marker(x.place(point.intensity), y.place(point.rate));
            drawing.marks.push(Mark { outline, fill: style.colour, about: Some(point.shown.clone()) });
        }
        let ends: Vec<f64> = self.points.iter().map(|point| y.place(point.rate)).collect();
        let places = spread_labels(&ends, STEP, (TOP, TOP + HEIGHT.max(STEP * names.len() as f64)));
        for (i, (name, place)) in names.into_iter().zip(places).enumerate() {
            let style = Style::from_position(i);
            drawing.marks.push(Mark { outline: style.marker(right + 18.0, place), fill: style.colour, about: None });
            drawing.texts.push(text(right + 30.0, place + 4.0, "start", "name", name));
        }
        drawing
    }

    /// Draws the slope of the memory limit up to the ridge, and the arithmetic limit after it.
    fn draw_roof(&self, drawing: &mut Drawing, (x, y): (Scale, Scale)) {
        let ends = self.across();
        let ridge = self.ridge();
        let corners = [(ends.0, ends.0 * self.memory), (ridge, self.arithmetic), (ends.1, self.arithmetic)];
        let points = corners.map(|(at, rate)| format!("{},{}", f(x.place(at)), f(y.place(rate))));
        drawing.paths.push(Path { points: points.join(" "), stroke: ROOF, dash: None, width: "2" });
        // The label is above the slope, but not past the end of the axis.
        let memory = format!("memory, {} GB/s", rough(self.memory));
        let middle = x.place((ends.0 * ridge).sqrt());
        let end = (middle - 8.0).max(LEFT + 8.0 + widest([memory.as_str()].into_iter()));
        let above = y.place((x.value(end) * self.memory).min(self.arithmetic));
        drawing.texts.push(text(end, above - 8.0, "end", "tick", memory));
        let arithmetic = format!("arithmetic, {} GFLOP/s", rough(self.arithmetic));
        drawing.texts.push(text(LEFT + WIDTH - 6.0, y.place(self.arithmetic) - 8.0, "end", "tick", arithmetic));
    }

    /// Operations per byte at which memory and arithmetic allow the same rate.
    fn ridge(&self) -> f64 {
        self.arithmetic / self.memory
    }

    /// Range of the axis of operations per byte.
    fn across(&self) -> (f64, f64) {
        let all = || self.points.iter().map(|point| point.intensity).chain([self.ridge()]);
        (all().fold(f64::INFINITY, f64::min) / BEYOND, all().fold(0.0, f64::max) * BEYOND)
    }

    fn scales(&self) -> (Scale, Scale) {
        let across = self.across();
        let least = self.points.iter().map(|point| point.rate).fold(across.0 * self.memory, f64::min);
        let x = Scale::new(ScaleKind::Log10, across, (LEFT, LEFT + WIDTH));
        (x, Scale::new(ScaleKind::Log10, (least / 1.5, self.arithmetic * 1.5), (TOP + HEIGHT, TOP)))
    }

    fn description(&self) -> String {
        let nearest = self.points.iter().max_by(|a, b| self.share(a).total_cmp(&self.share(b)));
        let nearest = nearest.map(|point| format!(" Nearest to the roof: {}.", point.shown)).unwrap_or_default();
        format!(
            "GFLOP/s against operations per byte, log-log; {} variants, each where it comes closest to the limits of memory \
             ({} GB/s) and arithmetic ({} GFLOP/s).{nearest}",
            self.points.len(),
            rough(self.memory),
            rough(self.arithmetic)
        )
    }

    fn share(&self, point: &RoofPoint) -> f64 {
        point.rate / (point.intensity * self.memory).min(self.arithmetic)
    }
}

#[cfg(test)]
mod tests {
    use super::{RoofPoint, Roofline};

    fn point(intensity: f64, rate: f64) -> RoofPoint {
        RoofPoint { name: String::new(), is_baseline: false, intensity, rate, shown: rate.to_string() }
    }

    /// With 1000 GB/s and 20,000 GFLOP/s, the ridge is at 20 operations per byte. At 0.25 operations per byte, memory
    /// limits the rate to 250 GFLOP/s; at 100, arithmetic is the limit.
    #[test]
    fn a_share_is_of_what_limits() {
        let roof = Roofline {
            title: String::new(),
            memory: 1000.0,
            arithmetic: 20_000.0,
            points: vec![point(0.25, 200.0), point(100.0, 15_000.0)],
        };
        assert!((roof.ridge() - 20.0).abs() < 1e-12);
        assert!((roof.share(&roof.points[0]) - 0.8).abs() < 1e-12);
        assert!((roof.share(&roof.points[1]) - 0.75).abs() < 1e-12);
        assert!(roof.description().ends_with("Nearest to the roof: 200."), "{}", roof.description());
        // The corner of the roof is drawn at the ridge.
        let (x, y) = roof.scales();
        let corner = format!("{},{}", super::f(x.place(20.0)), super::f(y.place(20_000.0)));
        assert!(roof.draw().paths[0].points.contains(&corner), "{corner}");
    }
}
