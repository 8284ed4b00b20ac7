//! Synthetic measured spaces, each with one kind of difficulty. They supplement the published spaces for comparing
//! strategies.

use std::collections::HashMap;

use crate::history::Outcome;
use crate::random::Random;
use crate::replay::Measured;
use crate::space::{Constraint, Expression, Parameter, Space, Value};

/// Kind of difficulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each parameter has an independent effect on the logarithm of the time.
    Separable,
    /// Pairs of parameters have effects too.
    Interacting,
    /// Times are rounded, so that large regions have the same value.
    Plateaus,
    /// The time decreases towards a resource limit, beyond which points fail.
    Cliffs,
    /// All parameters are unordered words; every parameter and every pair has an effect.
    Words,
    /// A wide basin leads away from the small one that contains the optimum.
    SmallBasin,
    /// A simple model of a kernel: waves of blocks, memory that favours wide rows, spilled registers.
    Kernel,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Separable, Self::Interacting, Self::Plateaus, Self::Cliffs, Self::Words, Self::SmallBasin, Self::Kernel];

    /// Creates a space of this kind with a few thousand points, which depend on the seed.
    #[must_use]
    pub fn make(self, seed: u64) -> Measured {
        let mut random = Random::new(seed.wrapping_mul(97).wrapping_add(self as u64));
        let space = match self {
            Self::Kernel | Self::Cliffs => tiles(),
            Self::Words => words(),
            _ => numbers(),
        };
        let points: Vec<Box<[u16]>> = (0..space.len()).map(|number| space.point(number)).collect();
        let outcomes: Vec<Outcome> = match self {
            Self::Separable => {
                let effects = Effects::draw(&space, &mut random, 0.0);
                points.iter().map(|point| Outcome::Value(effects.evaluate(point).exp())).collect()
            }
            Self::Interacting | Self::Words => {
                let effects = Effects::draw(&space, &mut random, 0.5);
                points.iter().map(|point| Outcome::Value(effects.evaluate(point).exp())).collect()
            }
            Self::Plateaus => {
                let effects = Effects::draw(&space, &mut random, 0.4);
                points
                    .iter()
                    .map(|point| Outcome::Value(((effects.evaluate(point) / 0.15).floor() * 0.15).exp()))
                    .collect()
            }
            Self::Cliffs => {
                let effects = Effects::draw(&space, &mut random, 0.1);
                points
                    .iter()
                    .zip(0..)
                    .map(|(point, number)| {
                        let use_of = resources(&space.values(number));
                        if use_of > 48.0 {
                            Outcome::Failed
                        } else {
                            Outcome::Value((0.5 * effects.evaluate(point)).exp() * (0.5 + 24.0 / (use_of + 1.0)))
                        }
                    })
                    .collect()
            }
            Self::SmallBasin => {
                let near = space.point(random.below(space.len()));
                let far = space.point(random.below(space.len()));
                let effects = Effects::draw(&space, &mut random, 0.15);
                points
                    .iter()
                    .map(|point| {
                        let wide: f64 = distance(&space, point, &far);
                        let apart = point.iter().zip(&near).filter(|(a, b)| a != b).count();
                        let deep = [1.1, 0.7, 0.35].get(apart).copied().unwrap_or(0.0);
                        Outcome::Value((0.8 * wide + 0.25 * effects.evaluate(point) - deep).exp())
                    })
                    .collect()
            }
            Self::Kernel => {
                let device = Device::draw(&mut random);
                (0..space.len()).map(|number| device.time(&space.values(number))).collect()
            }
        };
        Measured::new(space, &(0..).zip(outcomes).collect::<HashMap<_, _>>())
    }
}

/// Distance between two points, where each parameter's full range has length 1.
fn distance(space: &Space, one: &[u16], other: &[u16]) -> f64 {
    one.iter()
        .zip(other)
        .zip(space.parameters())
        .map(|((&a, &b), parameter)| f64::from(a.abs_diff(b)) / (parameter.values.len() - 1) as f64)
        .sum()
}

fn integers(name: &str, values: &[i64]) -> Parameter {
    Parameter::new(name, values.iter().copied().map(Value::Int).collect())
}

fn build(parameters: Vec<Parameter>, constraints: &[&str]) -> Space {
    let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let constraints: Vec<Constraint> = constraints
        .iter()
        .filter_map(|text| Expression::parse(text, &names).ok())
        .map(Constraint::Expression)
        .collect();
    Space::new(parameters, &constraints).unwrap_or_else(|error| unreachable!("a made space: {error}"))
}

fn numbers() -> Space {
    build(
        vec![
            integers("a", &[1, 2, 4, 8, 16, 32, 64]),
            integers("b", &[1, 2, 3, 4, 5, 6, 7, 8]),
            integers("c", &[0, 1, 2, 3, 4]),
            integers("d", &[1, 2, 4, 8]),
            integers("e", &[0, 1]),
            integers("f", &[0, 1]),
            integers("g", &[0, 1, 2]),
        ],
        &["a * b <= 256", "e == 1 or g < 2"],
    )
}

fn words() -> Space {
    let word = |name: &str, count: usize| {
        Parameter::new(name, (0..count).map(|value| Value::Text(format!("{name}{value}"))).collect())
    };
    build(
        vec![word("a", 7), word("b", 6), word("c", 5), word("d", 4), word("e", 3), word("f", 2)],
        &["a != 'a0' or b != 'b0'"],
    )
}

fn tiles() -> Space {
    build(
        vec![
            integers("block_x", &[8, 16, 32, 64, 128, 256]),
            integers("block_y", &[1, 2, 4, 8, 16]),
            integers("tile_x", &[1, 2, 3, 4, 6, 8]),
            integers("tile_y", &[1, 2, 3, 4, 6, 8]),
            integers("vector", &[1, 2, 4]),
            integers("shared", &[0, 1]),
            integers("unroll", &[1, 2, 4]),
        ],
        &["32 <= block_x * block_y <= 1024", "tile_x % vector == 0"],
    )
}

/// Amount of a resource that a configuration of [`tiles`] needs, limited to 48.
fn resources(values: &[Value]) -> f64 {
    let value = |place: usize| values[place].number().unwrap_or(1.0);
    (value(0) * value(2)).sqrt() * (value(1) * value(3)).sqrt() * value(6).sqrt() / 16.0
}

/// Effects of parameters and pairs on the logarithm of a time.
struct Effects {
    single: Vec<Vec<f64>>,
    pairs: Vec<(usize, usize, f64, f64, f64)>,
}

impl Effects {
    /// Draws a curve for each parameter: a valley with some roughness. `strength` scales the effects of pairs.
    fn draw(space: &Space, random: &mut Random, strength: f64) -> Self {
        let count = space.parameters().len();
        let single = space
            .parameters()
            .iter()
            .map(|parameter| {
                let len = parameter.values.len();
                let (valley, depth) = (random.unit(), 0.3 + random.unit());
                let mut effects: Vec<f64> = (0..len)
                    .map(|value| {
                        let place = value as f64 / (len - 1).max(1) as f64;
                        depth * (place - valley).abs() + 0.25 * random.unit()
                    })
                    .collect();
                if parameter.values[0].number().is_none() {
                    random.shuffle(&mut effects);
                }
                effects
            })
            .collect();
        let mut pairs = Vec::new();
        for a in 0..count {
            for b in a + 1..count {
                pairs.push((a, b, strength * (random.unit() - 0.5) * 2.0, 6.0 * random.unit(), 6.0 * random.unit()));
            }
        }
        Self { single, pairs }
    }

    fn evaluate(&self, point: &[u16]) -> f64 {
        let single: f64 = self.single.iter().zip(point).map(|(effects, &value)| effects[usize::from(value)]).sum();
        let pairs: f64 = self
            .pairs
            .iter()
            .map(|&(a, b, strength, x, y)| {
                strength * ((f64::from(point[a]) * 1.3 + x) * 0.9).sin() * (f64::from(point[b]) * 1.1 + y).cos()
            })
            .sum();
        single + pairs
    }
}

struct Device {
    multiprocessors: f64,
    registers: f64,
    latency: f64,
    bank: f64,
    salt: u64,
}

impl Device {
    fn draw(random: &mut Random) -> Self {
        Self {
            multiprocessors: [48.0, 84.0, 108.0, 132.0][random.index(4)],
            registers: 48.0 + 40.0 * random.unit(),
            latency: 4.0 + 12.0 * random.unit(),
            bank: 0.2 + random.unit(),
            salt: random.below(u64::MAX),
        }
    }

    fn time(&self, values: &[Value]) -> Outcome {
        let value = |place: usize| values[place].number().unwrap_or(1.0);
        let (bx, by, tx, ty, vector, shared, unroll) =
            (value(0), value(1), value(2), value(3), value(4), value(5), value(6));
        let threads = bx * by;
        let work = tx * ty;
        let registers = 12.0 + 2.0 * work + 4.0 * unroll + 2.0 * vector;
        let memory = if shared > 0.0 { (bx * tx + 8.0) * (by * ty + 8.0) * 4.0 } else { 0.0 };
        if memory > 48.0 * 1024.0 || registers * threads > 65536.0 * 1.5 {
            return Outcome::Failed;
        }
        let spill = (registers - self.registers).max(0.0) / 10.0;
        let per_multiprocessor = (2048.0 / threads)
            .min(65536.0 / (registers * threads))
            .min(if memory > 0.0 { 100_000.0 / memory } else { 32.0 })
            .floor()
            .max(1.0);
        let blocks = (2048.0 / (bx * tx)).ceil() * (2048.0 / (by * ty)).ceil();
        let waves = (blocks / (self.multiprocessors * per_multiprocessor)).ceil();
        let occupancy = (per_multiprocessor * threads / 2048.0).min(1.0);
        let hidden = 1.0 + self.latency / (1.0 + 10.0 * occupancy * (1.0 + unroll.ln()) * vector.sqrt());
        let rows = (32.0 / bx).max(1.0) * if shared > 0.0 { 1.0 } else { 1.0 + 1.5 / (tx * ty).sqrt() };
        let conflicts = if shared > 0.0 && (bx * tx) % 32.0 == 0.0 && tx % 2.0 == 0.0 { 1.0 + self.bank } else { 1.0 };
        let per_block = work * threads / 128.0 * conflicts * rows + hidden * 4.0 + 6.0;
        // Noise of up to a few percent that no model can explain, deterministic for each point.
        let mut own = Random::new(
            self.salt
                ^ (bx * 7919.0 + by * 104_729.0 + tx * 1301.0 + ty * 17.0 + vector * 5.0 + shared * 3.0 + unroll * 31.0)
                    as u64,
        );
        Outcome::Value(waves * per_multiprocessor.sqrt() * per_block * (1.0 + spill) * (1.0 + 0.06 * own.unit()))
    }
}
