//! Styles that distinguish series: colours, dashes and markers.
//!
//! Colours repeat after eight series and markers after seven, so no two of 56 series share both. No two of sixteen
//! share a dash and a marker, so they differ without colour.

use super::f;

/// Light and dark background of a chart. A chart draws its own because an image only knows the system's theme, not the
/// page's.
#[cfg(test)]
pub const BACKGROUNDS: [&str; 2] = ["#ffffff", "#0d1117"];

/// Series colours. They are distinct with normal vision and with each kind of dichromacy, and have a contrast of at
/// least 3 on both backgrounds. Found by searching for the set whose closest pair is farthest apart; neighbours differ
/// most.
pub const COLOURS: [&str; 8] = ["#781eff", "#969600", "#b41e87", "#1ea578", "#c378a5", "#5a6900", "#a578ff", "#0f785a"];

pub const BAR: &str = "#6e87a8";
pub const BEST_BAR: &str = "#1a6fd4";

/// Dash patterns. The solid line comes first, since most charts have few lines.
const DASHES: [Option<&str>; 4] = [None, Some("7 3"), Some("2 3"), Some("9 3 2 3")];

/// Number of marker shapes, coprime to the number of colours.
const MARKERS: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub colour: &'static str,
    pub dash: Option<&'static str>,
    marker: usize,
}

impl Style {
    pub const fn from_position(position: usize) -> Self {
        let (place, cycle) = (position % COLOURS.len(), position / COLOURS.len());
        let dash = DASHES[(place % 2 + 2 * cycle) % DASHES.len()];
        Self { colour: COLOURS[place], dash, marker: position % MARKERS }
    }

    /// Outline of the marker at a position, as SVG path data.
    pub fn marker(self, x: f64, y: f64) -> String {
        const SHAPES: [&[(f64, f64)]; MARKERS - 1] = [
            &[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
            &[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)],
            &[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)],
            &[(0.0, 4.4), (4.2, -3.2), (-4.2, -3.2)],
            &[(-4.4, 0.0), (3.2, -4.2), (3.2, 4.2)],
            &[
                (-1.4, -4.4),
                (1.4, -4.4),
                (1.4, -1.4),
                (4.4, -1.4),
                (4.4, 1.4),
                (1.4, 1.4),
                (1.4, 4.4),
                (-1.4, 4.4),
                (-1.4, 1.4),
                (-4.4, 1.4),
                (-4.4, -1.4),
                (-1.4, -1.4),
            ],
        ];
        match self.marker.checked_sub(1).and_then(|shape| SHAPES.get(shape)) {
            None => disc(x, y, 3.4),
            Some(corners) => {
                let each: Vec<String> = corners.iter().map(|(dx, dy)| format!("{},{}", f(x + dx), f(y + dy))).collect();
                format!("M{}Z", each.join("L"))
            }
        }
    }
}

/// A filled circle as SVG path data.
pub fn disc(x: f64, y: f64, radius: f64) -> String {
    let r = f(radius);
    format!("M{},{}a{r},{r} 0 1 0 {},0a{r},{r} 0 1 0 -{},0Z", f(x - radius), f(y), f(2.0 * radius), f(2.0 * radius))
}

/// Heat map colour of a share, from deep blue (0, best) to pale sand (1).
pub fn heat(share: f64) -> String {
    const STOPS: [(f64, f64, f64); 3] = [(8.0, 74.0, 134.0), (102.0, 164.0, 190.0), (243.0, 228.0, 196.0)];
    let scaled = share.clamp(0.0, 1.0) * 2.0;
    let (from, to) = if scaled < 1.0 { (STOPS[0], STOPS[1]) } else { (STOPS[1], STOPS[2]) };
    let part = scaled.fract() + if scaled >= 2.0 { 1.0 } else { 0.0 };
    let mix = |a: f64, b: f64| (a + (b - a) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// Whether white is easier to read on a colour than near-black.
pub fn is_dark(colour: &str) -> bool {
    contrast(colour, "#ffffff") >= contrast(colour, "#1c2128")
}

/// WCAG contrast ratio of two colours, from 1 to 21.
pub fn contrast(a: &str, b: &str) -> f64 {
    let luminance = |colour: &str| {
        let [r, g, b] = linear(colour);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Linear components of `#rrggbb`, from 0 to 1.
fn linear(colour: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let part = colour.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let share = f64::from(part) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BACKGROUNDS, BAR, BEST_BAR, COLOURS, Style, contrast, heat, is_dark, linear};

    /// Simulates dichromacy in linear RGB: Machado, Oliveira, Fernandes 2009, severity 1.
    const VISIONS: [(&str, [[f64; 3]; 3]); 4] = [
        ("normal", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopic",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "deuteranopic",
            [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        ),
        (
            "tritanopic",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    fn times(matrix: &[[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2])
    }

    /// Converts linear sRGB under D65 to CIE L*a*b*.
    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        const XYZ: [[f64; 3]; 3] = [
            [0.412_456_4, 0.357_576_1, 0.180_437_5],
            [0.212_672_9, 0.715_152_2, 0.072_175_0],
            [0.019_333_9, 0.119_192_0, 0.950_304_1],
        ];
        let [x, y, z] = times(&XYZ, rgb.map(|part| part.clamp(0.0, 1.0)));
        let f = |t: f64| if t > 216.0 / 24_389.0 { t.cbrt() } else { (24_389.0 / 27.0 * t + 16.0) / 116.0 };
        let (x, y, z) = (f(x / 0.950_47), f(y), f(z / 1.088_83));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// CIEDE2000 colour difference.
    fn difference(one: [f64; 3], two: [f64; 3]) -> f64 {
        let chroma = |[_, a, b]: [f64; 3]| a.hypot(b);
        let seventh = |c: f64| (c.powi(7) / (c.powi(7) + 25_f64.powi(7))).sqrt();
        let grey = 0.5 * (1.0 - seventh(f64::midpoint(chroma(one), chroma(two))));
        let polar = |[l, a, b]: [f64; 3]| {
            let a = a * (1.0 + grey);
            (l, a.hypot(b), b.atan2(a).to_degrees().rem_euclid(360.0))
        };
        let ((l1, c1, h1), (l2, c2, h2)) = (polar(one), polar(two));
        let neutral = c1 * c2 == 0.0;
        let apart = if neutral { 0.0 } else { (h2 - h1 + 540.0).rem_euclid(360.0) - 180.0 };
        let hue = 2.0 * (c1 * c2).sqrt() * (apart / 2.0).to_radians().sin();
        let (l, c) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2));
        let h = if neutral { h1 + h2 } else { (h1 + apart / 2.0).rem_euclid(360.0) };
        let wave = |factor: f64, shift: f64| (factor * h + shift).to_radians().cos();
        let t = 1.0 - 0.17 * wave(1.0, -30.0) + 0.24 * wave(2.0, 0.0) + 0.32 * wave(3.0, 6.0) - 0.20 * wave(4.0, -63.0);
        let from_grey = (l - 50.0).powi(2);
        let lightness = (l2 - l1) / (1.0 + 0.015 * from_grey / (20.0 + from_grey).sqrt());
        let (chroma, hue) = ((c2 - c1) / (1.0 + 0.045 * c), hue / (1.0 + 0.015 * c * t));
        let blue = -(2.0 * 30.0 * (-((h - 275.0) / 25.0).powi(2)).exp()).to_radians().sin() * 2.0 * seventh(c);
        (lightness.powi(2) + chroma.powi(2) + hue.powi(2) + blue * chroma * hue).sqrt()
    }

    /// Pairs 1, 7, 15 and 17 of the test data of Sharma, Wu and Dalal 2005.
    #[test]
    fn the_colour_difference_is_that_of_the_published_test_data() {
        for (one, two, expected) in [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669),
            ([50.0, -0.001, 2.49], [50.0, 0.0011, -2.49], 4.7461),
            ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        ] {
            let found = difference(one, two);
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }

    #[test]
    fn all_colours_of_series_can_be_told_apart_with_every_kind_of_vision() {
        for (vision, matrix) in &VISIONS {
            let seen = COLOURS.map(|colour| lab(times(matrix, linear(colour))));
            for (i, one) in seen.iter().enumerate() {
                for (j, two) in seen.iter().enumerate().skip(i + 1) {
                    let far = difference(*one, *two);
                    assert!(far >= 14.0, "{} and {}, {vision}: {far}", COLOURS[i], COLOURS[j]);
                }
            }
        }
    }

    #[test]
    fn every_colour_has_a_contrast_of_three_on_both_backgrounds() {
        for colour in COLOURS.into_iter().chain([BAR, BEST_BAR]) {
            for background in BACKGROUNDS {
                let found = contrast(colour, background);
                assert!(found >= 3.0, "{colour} on {background}: {found}");
            }
        }
    }

    #[test]
    fn no_two_of_sixteen_series_share_dash_and_marker() {
        let styles: BTreeSet<(Option<&str>, String)> =
            (0..16).map(Style::from_position).map(|style| (style.dash, style.marker(0.0, 0.0))).collect();
        assert_eq!(styles.len(), 16);
    }

    #[test]
    fn no_two_of_56_series_share_colour_and_marker() {
        let styles: BTreeSet<(&str, String)> =
            (0..56).map(Style::from_position).map(|style| (style.colour, style.marker(0.0, 0.0))).collect();
        assert_eq!(styles.len(), 56);
    }

    #[test]
    fn the_best_is_deep_blue_and_the_worst_is_sand() {
        assert_eq!([heat(0.0), heat(0.5), heat(1.0)], ["#084a86", "#66a4be", "#f3e4c4"]);
    }

    #[test]
    fn the_number_in_a_cell_has_the_contrast_of_text() {
        for i in 0..=100 {
            let colour = heat(f64::from(i) / 100.0);
            let text = if is_dark(&colour) { "#ffffff" } else { "#1c2128" };
            assert!(contrast(&colour, text) >= 4.0, "{colour} {}", contrast(&colour, text));
        }
    }
}
