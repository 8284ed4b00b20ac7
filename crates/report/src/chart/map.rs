//! Heat map: values over two axes as coloured cells.

use super::style::{heat, is_dark};
use super::{Area, Drawing, LEFT, TOP, f, text};
use runner_lang::format::rough;

#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// What the values are, with their unit.
    pub value_label: String,
    pub more_is_better: bool,
    pub across: Vec<String>,
    pub down: Vec<String>,
    /// Cells row by row; `None` if the matrix has no such cell.
    pub cells: Vec<Vec<Option<MapCell>>>,
}

/// A cell with its text. It has a colour only if it has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct MapCell {
    pub value: Option<f64>,
    pub shown: String,
    /// Longer text with interval and unit, for the tooltip and the description.
    pub about: String,
    pub is_baseline: bool,
    /// Whether it is the best, or as good as the best within the noise.
    pub is_best: bool,
}

const WIDE: f64 = 84.0;
const TALL: f64 = 36.0;
/// Colour steps in the legend.
const STEPS: usize = 24;
const LEGEND: f64 = 240.0;
/// Values this many times worse than the best have the last colour, so that an outlier does not hide all other
/// differences.
const WORST: f64 = 3.0;

impl HeatMap {
    pub(super) fn draw(&self) -> Drawing {
        let (best, worst) = self.extremes();
        let (width, height) = (WIDE * self.across.len() as f64, TALL * self.down.len() as f64);
        let top = TOP + 20.0;
        let mut drawing = Drawing {
            width: f((LEFT + width + 20.0).max(LEFT + LEGEND + 190.0)),
            height: f(top + height + 84.0),
            title: self.title.clone(),
            description: self.description(),
            x_label: Some(text(LEFT + width / 2.0, top + height + 22.0, "middle", "label", &self.x_label)),
            y_label: Some(text(LEFT - 8.0, top - 8.0, "end", "label", &self.y_label)),
            ..Drawing::default()
        };
        for (column, name) in self.across.iter().enumerate() {
            drawing.texts.push(text(LEFT + WIDE * (column as f64 + 0.5), top - 8.0, "middle", "tick", name));
        }
        for (row, (name, cells)) in self.down.iter().zip(&self.cells).enumerate() {
            let y = top + TALL * row as f64;
            drawing.texts.push(text(LEFT - 8.0, y + TALL / 2.0 + 4.0, "end", "tick", name));
            for (column, cell) in cells.iter().enumerate() {
                let Some(cell) = cell else { continue };
                let share = cell.value.map(|value| share_of(value, best, worst));
                draw_cell(&mut drawing, cell, share, (LEFT + WIDE * column as f64, y));
            }
        }
        if best.is_finite() {
            self.draw_legend(&mut drawing, (best, worst), top + height + 40.0);
        }
        drawing
    }

    fn extremes(&self) -> (f64, f64) {
        let values = || self.cells.iter().flatten().flatten().filter_map(|cell| cell.value);
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if self.more_is_better && least.is_finite() { (most, least) } else { (least, most) }
    }

    fn description(&self) -> String {
        let mut said =
            vec![format!("{} over {} and {}; darker is better.", self.value_label, self.x_label, self.y_label)];
        let cells = || self.cells.iter().flatten().flatten();
        let leading: Vec<&str> = cells().filter(|cell| cell.is_best).map(|cell| cell.about.as_str()).collect();
        if !leading.is_empty() {
            let tied = if leading.len() > 1 { ", tied" } else { "" };
            said.push(format!("Best{tied}: {}.", leading.join("; ")));
        }
        for cell in cells().filter(|cell| cell.is_baseline) {
            said.push(format!("Baseline, with a dashed frame: {}.", cell.about));
        }
        said.join(" ")
    }

    /// Draws the colours with the values at both ends.
    fn draw_legend(&self, drawing: &mut Drawing, (best, worst): (f64, f64), y: f64) {
        let last = limit(best, worst);
        let wide = LEGEND / STEPS as f64;
        for i in 0..STEPS {
            drawing.boxes.push(Area {
                x: f(LEFT + wide * i as f64),
                y: f(y),
                width: f(wide + 0.5),
                height: f(10.0),
                fill: heat((i as f64 + 0.5) / STEPS as f64),
                opacity: "1",
                class: "legend",
                about: None,
            });
        }
        let sign = if self.more_is_better { "≤" } else { "≥" };
        let cut = if (last - worst).abs() > 1e-9 * worst { format!("{sign} ") } else { String::new() };
        drawing.texts.push(text(LEFT, y + 26.0, "start", "tick", format!("best {}", rough(best))));
        let end = format!("{cut}{}", rough(last));
        drawing.texts.push(text(LEFT + LEGEND, y + 26.0, "end", "tick", end));
        let label = format!("{}, log scale", self.value_label);
        drawing.texts.push(text(LEFT + LEGEND + 10.0, y + 9.0, "start", "label", label));
        if self.cells.iter().flatten().flatten().any(|cell| cell.is_baseline) {
            drawing.texts.push(text(LEFT + LEGEND + 10.0, y + 26.0, "start", "tick", "dashed frame: baseline"));
        }
    }
}

fn draw_cell(drawing: &mut Drawing, cell: &MapCell, share: Option<f64>, (x, y): (f64, f64)) {
    let fill = share.map_or_else(|| "#8b949e".to_owned(), heat);
    let class = match share {
        None => "empty",
        Some(_) if cell.is_best && is_dark(&fill) => "best",
        Some(_) if cell.is_best => "best-on-light",
        Some(_) if is_dark(&fill) => "on-dark",
        Some(_) => "on-light",
    };
    drawing.boxes.push(Area {
        x: f(x + 1.0),
        y: f(y + 1.0),
        width: f(WIDE - 2.0),
        height: f(TALL - 2.0),
        fill,
        opacity: if share.is_some() { "1" } else { "0.15" },
        class: if cell.is_baseline { "frame" } else { "cell" },
        about: Some(cell.about.clone()),
    });
    drawing.texts.push(text(x + WIDE / 2.0, y + TALL / 2.0 + 4.5, "middle", class, &cell.shown));
}

/// Value from which on the colour does not change.
fn limit(best: f64, worst: f64) -> f64 {
    if worst >= best { worst.min(WORST * best) } else { worst.max(best / WORST) }
}

/// Position of a value between the best (0) and the worst (1), by ratio.
fn share_of(value: f64, best: f64, worst: f64) -> f64 {
    let whole = (limit(best, worst) / best).ln();
    if best > 0.0 && whole != 0.0 { ((value / best).ln() / whole).min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::share_of;

    #[test]
    fn shares_go_by_ratio() {
        assert!((share_of(1.21, 1.0, 1.4641) - 0.5).abs() < 1e-12);
        assert!((share_of(2.0, 1.0, 40.0) - 2_f64.ln() / 3_f64.ln()).abs() < 1e-12);
        assert!((share_of(40.0, 1.0, 40.0) - 1.0).abs() < 1e-12);
        assert!((share_of(3.0, 3.0, 3.0)).abs() < 1e-12);
    }

    #[test]
    fn of_rates_the_greatest_is_the_best() {
        assert!((share_of(1.0, 1.21, 1.0) - 1.0).abs() < 1e-12);
        assert!((share_of(1.1, 1.21, 1.0) - 0.5).abs() < 1e-12);
        assert!((share_of(1.0, 40.0, 1.0) - 1.0).abs() < 1e-12);
    }
}
