//! Heat map: values over two axes as coloured cells.

use super::style::{heat, is_dark};
use super::{Area, Drawing, LEFT, TOP, f, text};
use runner_lang::format::rough;

#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// Name and unit of the values.
    pub value_label: String,
    pub more_is_better: bool,
    pub across: Vec<String>,
    pub down: Vec<String>,
    /// Cells row by row; `None` if the matrix has no such cell.
    pub cells: Vec<Vec<Option<MapCell>>>,
}

/// A cell with its text, coloured only if it has a value.
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
/// Number of colour steps in the legend.
const STEPS: usize = 24;
const LEGEND: f64 = 240.0;
/// Values within this factor of the best get similar colours, whatever their rank.
const NEAR: f64 = 1.05;

impl HeatMap {
    pub(super) fn draw(&self) -> Drawing {
        let ranked = self.ranked();
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
                let share = cell.value.map(|value| share_of(value, &ranked));
                draw_cell(&mut drawing, cell, share, (LEFT + WIDE * column as f64, y));
            }
        }
        if !ranked.is_empty() {
            self.draw_legend(&mut drawing, &ranked, top + height + 40.0);
        }
        drawing
    }

    /// All values, the best first.
    fn ranked(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.cells.iter().flatten().flatten().filter_map(|cell| cell.value).collect();
        values.sort_by(f64::total_cmp);
        if self.more_is_better {
            values.reverse();
        }
        values
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

    /// Draws the colour scale, with the values at both ends and in the middle.
    fn draw_legend(&self, drawing: &mut Drawing, ranked: &[f64], y: f64) {
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
        let ends = [("start", LEFT, "best", 0), ("middle", LEFT + LEGEND / 2.0, "", ranked.len() / 2)];
        for (anchor, x, name, place) in ends.into_iter().chain([("end", LEFT + LEGEND, "worst", ranked.len() - 1)]) {
            let shown = format!("{name} {}", rough(ranked[place]));
            drawing.texts.push(text(x, y + 26.0, anchor, "tick", shown.trim_start()));
        }
        let label = format!("{}, by rank", self.value_label);
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

/// Position of a value between the best (0) and the worst (1): the share of values that are better, so that an outlier
/// does not hide all other differences. Values close to the best are pulled towards it in proportion to their distance.
fn share_of(value: f64, ranked: &[f64]) -> f64 {
    let (Some(best), Some(worst)) = (ranked.first(), ranked.last()) else { return 0.0 };
    let is_better = |other: &&f64| (*other - value) * (worst - best) < 0.0;
    let better = ranked.iter().filter(is_better).count();
    let equal = ranked.iter().filter(|other| (**other - value).abs() <= f64::EPSILON * value.abs()).count();
    // Equal values share their middle rank, except at the ends.
    let share = match better {
        0 => 0.0,
        _ if better + equal == ranked.len() => 1.0,
        _ => (better as f64 + (equal as f64 - 1.0) / 2.0) / (ranked.len() as f64 - 1.0),
    };
    let apart = (value / best).ln().abs() / NEAR.ln();
    if *best > 0.0 { share * apart.min(1.0) } else { share }
}

#[cfg(test)]
mod tests {
    use super::share_of;

    fn shares(ranked: &[f64]) -> Vec<f64> {
        ranked.iter().map(|value| share_of(*value, ranked)).collect()
    }

    /// If coloured by ratio, the middle three would look like the best.
    #[test]
    fn an_outlier_hides_no_other_differences() {
        assert_eq!(shares(&[1.0, 1.2, 1.4, 1.6, 40.0]), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(shares(&[40.0, 3.0, 2.0, 2.0, 1.0]), [0.0, 0.25, 0.625, 0.625, 1.0]);
    }

    #[test]
    fn values_near_the_best_keep_its_colour() {
        assert_eq!(shares(&[3.0, 3.0, 3.0]), [0.0; 3]);
        let [best, middle, worst] = shares(&[1.0, 1.001, 1.002])[..] else { panic!("three values") };
        assert!(best == 0.0 && middle < 0.02 && worst < 0.05, "{middle} {worst}");
    }
}
