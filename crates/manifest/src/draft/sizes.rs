//! Chooses the sizes, launches and buffer lengths of a draft.
//!
//! Sizes differ from each other and are not powers of two, so that a kernel that mixes them up, or that is wrong at an
//! edge, computes a different result. A size that no kernel compares with an index must be a multiple of the block
//! size. Buffer lengths and grids follow from how far the kernels' bodies reach with such sizes.

use std::collections::{BTreeMap, BTreeSet};

use super::Wanted;
use super::layout;
use crate::element::{components, is_vector};
use crate::validate::may_name_buffer;
use runner_cuda_source::expression::{Expression, Interval, ceil_div};
use runner_cuda_source::launches::Launch;
use runner_cuda_source::reach::{Reach, Setting};
use runner_cuda_source::signature::Signature;
use runner_lang::{Program, Scope};
use runner_types::Value;

/// Number of grid dimensions that the kernel's body uses.
fn dimensions(wanted: &Wanted) -> usize {
    wanted.signature.body.as_ref().map_or(1, |body| body.thread_dimensions.max(body.block_dimensions))
}

/// Stand-ins for sizes while bodies are read. They are so far from kernel constants, and from multiples of each other,
/// that an extent shows which sizes it was computed from.
const STAND_INS: [i128; 6] = [1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099];

/// Maximum number of threads of a launch that does not follow from a size.
const MOST_FIXED_THREADS: i128 = 1 << 20;

/// Divisor of the sizes of matrices that tensor cores compute: the largest tile of a block that is common.
const MATRIX_TILE: usize = 128;

/// Whether a token is of loads or products of tiles in tensor cores.
fn is_of_tiles(token: &str) -> bool {
    let is_instruction = ["cp.async", "ldmatrix", "mma."].iter().any(|word| token.contains(word));
    token == "load_matrix_sync" || (token.starts_with('"') && is_instruction)
}

/// Maximum length of a buffer of the source's own size.
const MOST_FIXED_ELEMENTS: i128 = 1 << 24;

/// A block with at most this many threads: the largest side is halved until it fits.
fn within(mut block: Vec<i128>, most: Option<i128>) -> Vec<i128> {
    let Some(most) = most else { return block };
    if let [threads] = &mut block[..] {
        *threads = most.min(*threads);
    }
    while block.iter().product::<i128>() > most {
        match block.iter_mut().max() {
            Some(side) if *side > 1 => *side /= 2,
            _ => break,
        }
    }
    block
}

/// Stand-ins for sizes that must be multiples of a block.
const WHOLE_STAND_INS: [i128; 6] = [1_028_096, 1_052_672, 1_077_248, 1_101_824, 1_110_016, 1_134_592];

/// Values for integers that are not sizes. They differ from each other and from constants that kernels often use.
pub const SMALL: [i64; 6] = [3, 5, 7, 11, 13, 17];

/// Largest number that counts as a constant of the kernel rather than a fraction of a size.
const LARGEST_CONSTANT: i128 = 3000;

/// Smallest constant that may be a size.
const SMALLEST_SIZE: i128 = 64;

/// A size that determines buffer lengths and launches.
#[derive(Debug, Clone)]
pub struct Size {
    /// Name in the manifest.
    pub name: String,
    /// The size as an expression of the first one; `None` for the first size, which is the axis.
    pub text: Option<String>,
    stand_in: i128,
}

/// Sizes of a draft, and the values, lengths and launches that depend on them.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    pub all: Vec<Size>,
    /// Value of each integer parameter, by position.
    pub values: BTreeMap<usize, String>,
    /// Length of each pointer parameter's buffer, in elements of its type.
    pub lens: BTreeMap<usize, String>,
    /// Parameters whose elements are indices, each with the largest index if the indexed buffers are only read.
    pub indices: BTreeMap<usize, Option<String>>,
    pub shapes: Vec<Shape>,
    /// Default values of the axis for a GPU and for the simulator.
    pub defaults: [String; 2],
    /// Value of the axis in the source, if it must not change.
    pub kept: Option<i128>,
    /// Whether the source's launch gives every size, and is small enough to simulate.
    pub is_of_launch: bool,
}

/// Launch of a kernel.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    pub block: Vec<String>,
    pub grid: Vec<String>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<String>,
    /// Parts taken from the source's launch.
    pub taken: Vec<&'static str>,
}

/// Values given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Given<'a> {
    /// Expressions for parameters, by position.
    pub values: BTreeMap<usize, String>,
    /// Block sizes of each kernel.
    pub blocks: Vec<Option<Vec<String>>>,
    pub grids: Vec<Option<Vec<String>>>,
    pub shared: Vec<Option<String>>,
    /// Template arguments of each kernel.
    pub types: &'a [Vec<(String, String)>],
    /// Whether sizes have the values that the source's launch passes.
    pub is_exact: bool,
}

/// Meaning of an integer parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    Size,
    /// Length of a row in memory. The largest size is used, so that it is at least the row's width.
    Pitch,
    Number(i64),
    Text(String),
}

struct Plan<'a> {
    kernels: &'a [Wanted],
    given: &'a Given<'a>,
    meanings: BTreeMap<usize, Meaning>,
    sizes: Vec<Size>,
    /// Index into `sizes` for each parameter that is a size.
    of: BTreeMap<usize, usize>,
    /// Values of integer parameters while bodies are read.
    stand_ins: BTreeMap<usize, i128>,
    /// Size parameters that must be a multiple of the block size.
    whole: BTreeSet<usize>,
    kept: BTreeMap<usize, i128>,
    /// Whether numbers in lengths are final, since the launch depends on no size.
    is_fixed: bool,
}

/// The first launch whose block size agrees with the one implied by the kernel's constants, if any.
pub fn fitting(signature: &Signature, constants: &BTreeMap<String, i128>, launches: &[&Launch]) -> Option<Launch> {
    let fits = |launch: &&&Launch| {
        let Some(body) = &signature.body else { return true };
        let given: Vec<&str> = launch.template.as_deref().map(|text| text.split(", ").collect()).unwrap_or_default();
        let mut values = constants.clone();
        for (parameter, value) in signature.template.iter().zip(given) {
            values.extend(value.parse().ok().map(|value| (parameter.name.clone(), value)));
        }
        let reach = body.reach(&Setting { values, block: [1; 3], grid: [Some(1); 3], ..Setting::default() });
        let block: Vec<Option<i128>> = launch.block.iter().map(|side| launch.integer(side)).collect();
        let is_like =
            |axis: usize, threads: i128| block.get(axis).copied().unwrap_or(Some(1)).is_none_or(|side| side == threads);
        (0..3).all(|axis| reach.threads[axis].is_none_or(|threads| is_like(axis, threads)))
            && block.len() <= body.thread_dimensions.max(1)
    };
    launches.iter().find(fits).map(|launch| (*launch).clone())
}

/// Chooses sizes, launches and lengths for these kernels.
pub fn sizes(kernels: &[Wanted], given: &Given<'_>) -> Sizes {
    let mut plan = Plan {
        kernels,
        given,
        meanings: BTreeMap::new(),
        sizes: Vec::new(),
        of: BTreeMap::new(),
        stand_ins: BTreeMap::new(),
        whole: BTreeSet::new(),
        kept: BTreeMap::new(),
        is_fixed: false,
    };
    plan.understand();
    plan.name_sizes();
    plan.finish()
}

impl Plan<'_> {
    fn positions(&self) -> usize {
        self.kernels.iter().map(|wanted| wanted.signature.parameters.len()).max().unwrap_or(0)
    }

    /// Whether the parameter is an integer in every kernel that has it.
    fn is_integer(&self, position: usize) -> bool {
        self.kernels.iter().enumerate().all(|(kernel, wanted)| {
            wanted.signature.parameters.get(position).is_some_and(|parameter| {
                let base = self.base(kernel, &parameter.base);
                parameter.pointers == 0
                    && base != "bool"
                    && !is_vector(&base)
                    && crate::element::element(&base).is_some_and(|element| !element.is_float())
            })
        })
    }

    /// Whether an integer has one byte and so is not a size.
    fn is_narrow(&self, position: usize) -> bool {
        self.kernels.iter().enumerate().any(|(kernel, wanted)| {
            let base = wanted.signature.parameters.get(position).map(|parameter| self.base(kernel, &parameter.base));
            base.and_then(|base| crate::element::element(&base)).is_some_and(|element| element.size() == 1)
        })
    }

    fn base(&self, kernel: usize, base: &str) -> String {
        let types = self.given.types.get(kernel).into_iter().flatten();
        types.into_iter().find(|(name, _)| name == base).map_or_else(|| base.to_owned(), |(_, value)| value.clone())
    }

    fn setting(
        &self,
        kernel: usize,
        block: [i128; 3],
        grid: [Option<i128>; 3],
        indices: &BTreeMap<usize, Interval>,
    ) -> Setting {
        let wanted = &self.kernels[kernel];
        let mut values = wanted.constants.clone();
        for (name, value) in self.given.types.get(kernel).into_iter().flatten() {
            values.extend(value.parse().ok().map(|value| (name.clone(), value)));
        }
        let mut pointers = BTreeMap::new();
        for (position, parameter) in wanted.signature.parameters.iter().enumerate() {
            let Some(name) = &parameter.name else { continue };
            if parameter.pointers > 0 {
                let base = self.base(kernel, &parameter.base);
                let is_integer = crate::element::element(&base).is_some_and(|element| !element.is_float());
                pointers
                    .insert(name.clone(), indices.get(&position).copied().or_else(|| is_integer.then_some((0, 255))));
            } else if let Some(value) = self.stand_ins.get(&position) {
                values.insert(name.clone(), *value);
            }
        }
        Setting { values, pointers, block, grid }
    }

    fn reach(
        &self,
        kernel: usize,
        block: [i128; 3],
        grid: [Option<i128>; 3],
        indices: &BTreeMap<usize, Interval>,
    ) -> Option<Reach> {
        let body = self.kernels[kernel].signature.body.as_ref()?;
        Some(body.reach(&self.setting(kernel, block, grid, indices)))
    }

    fn position(&self, kernel: usize, name: &str) -> Option<usize> {
        let parameters = &self.kernels[kernel].signature.parameters;
        parameters.iter().position(|parameter| parameter.name.as_deref() == Some(name))
    }

    /// Determines the meaning of each integer, and which sizes must be multiples of a block.
    fn understand(&mut self) {
        let integers: Vec<usize> = (0..self.positions()).filter(|position| self.is_integer(*position)).collect();
        for (place, position) in integers.iter().enumerate() {
            self.stand_ins.insert(*position, STAND_INS[place % STAND_INS.len()]);
        }
        let [mut limits, mut factors, mut divided, mut seen] = [const { BTreeSet::<usize>::new() }; 4];
        for kernel in 0..self.kernels.len() {
            let Some(reach) = self.reach(kernel, [256, 1, 1], [None; 3], &BTreeMap::new()) else { continue };
            let positions = |names: &BTreeSet<String>| -> Vec<usize> {
                names.iter().filter_map(|name| self.position(kernel, name)).collect()
            };
            limits.extend(positions(&reach.limits));
            factors.extend(positions(&reach.factors));
            divided.extend(positions(&reach.divided));
            let body = self.kernels[kernel].signature.body.as_ref();
            seen.extend(
                integers
                    .iter()
                    .filter(|position| {
                        let name = self.kernels[kernel].signature.parameters[**position].name.as_deref();
                        body.is_some_and(|body| body.mentions(|token| Some(token) == name))
                    })
                    .copied(),
            );
        }
        let mut small = SMALL.into_iter().cycle();
        for position in &integers {
            let name = self.kernels[0].signature.parameters[*position].name.clone().unwrap_or_default();
            let is_used = limits.contains(position) || factors.contains(position);
            let meaning = match self.given.values.get(position) {
                Some(text) => Meaning::Text(text.clone()),
                None if self.given.is_exact && !is_used => {
                    Meaning::Number(self.launched(*position).unwrap_or_else(|| small.next().unwrap_or(3)))
                }
                None if is_pitch(&name) && factors.contains(position) => Meaning::Pitch,
                None if self.is_narrow(*position) || is_small(&name) => Meaning::Number(small.next().unwrap_or(3)),
                None if is_used || is_size(&name) || !seen.contains(position) => Meaning::Size,
                None => Meaning::Number(small.next().unwrap_or(3)),
            };
            self.meanings.insert(*position, meaning);
        }
        let has_vectors = self.kernels.iter().any(|wanted| {
            // Rows of matrices that are loaded in tiles are as aligned as vectors.
            let is_vector_token = |token: &str| runner_cuda_source::source::is_vector_name(token) || is_of_tiles(token);
            wanted.signature.body.as_ref().is_some_and(|body| body.mentions(is_vector_token))
                || wanted
                    .signature
                    .parameters
                    .iter()
                    .any(|parameter| parameter.pointers > 0 && is_vector(&parameter.base))
        });
        for (position, meaning) in &self.meanings {
            if *meaning == Meaning::Size
                && (!limits.contains(position)
                    || divided.contains(position)
                    || has_vectors
                    || self.is_divided_by_launch(*position))
            {
                self.whole.insert(*position);
            }
        }
        self.keep();
    }

    /// The source's launch of a kernel.
    fn launch(&self, kernel: usize) -> Option<&Launch> {
        self.kernels[kernel].launch.as_ref()
    }

    /// Integer that a launch passes for a parameter.
    fn launched(&self, position: usize) -> Option<i64> {
        let launches = (0..self.kernels.len()).filter_map(|kernel| self.launch(kernel));
        launches.into_iter().find_map(|launch| {
            let value = launch.integer(&launch.arguments.get(position)?.value)?;
            i64::try_from(value).ok()
        })
    }

    /// Host variable that a launch passes for a parameter.
    fn host_name(launch: &Launch, position: usize) -> Option<&str> {
        match launch.arguments.get(position).map(|argument| &argument.value) {
            Some(Expression::Name(name)) => Some(name),
            _ => None,
        }
    }

    /// Whether a launch divides the size without rounding up.
    fn is_divided_by_launch(&self, position: usize) -> bool {
        (0..self.kernels.len()).filter_map(|kernel| self.launch(kernel)).any(|launch| {
            let Some(name) = Self::host_name(launch, position) else { return false };
            launch.grid.iter().any(|expression| {
                let (mut plain, mut rounded) = (false, false);
                expression.visit(&mut |part| {
                    rounded |= part.as_ceil_div().is_some();
                    if let Expression::Binary(runner_cuda_source::expression::Operator::Divide, dividend, _) = part {
                        plain |= matches!(&**dividend, Expression::Name(found) if found == name);
                    }
                });
                plain && !rounded
            })
        })
    }

    /// Keeps the source's value of each size to which a launch cannot adapt by changing only its grid.
    fn keep(&mut self) {
        let mut kept = BTreeMap::new();
        for kernel in 0..self.kernels.len() {
            let Some(launch) = self.launch(kernel) else { continue };
            let Some(reach) = self.reach(kernel, [256, 1, 1], [None; 3], &BTreeMap::new()) else { continue };
            let has_guard = reach.spans.iter().any(Option::is_some);
            let body = self.kernels[kernel].signature.body.as_ref();
            let strides = body.is_some_and(|body| body.mentions(|token| token == "gridDim"));
            for (position, meaning) in &self.meanings {
                if *meaning != Meaning::Size {
                    continue;
                }
                let value = launch.arguments.get(*position).and_then(|argument| launch.integer(&argument.value));
                let Some(value) = value.filter(|value| *value > 0) else {
                    continue;
                };
                let mentions = |expressions: &[Expression]| {
                    let name = Self::host_name(launch, *position);
                    let mut found = false;
                    for expression in expressions {
                        expression.visit(&mut |part| {
                            found |= matches!(part, Expression::Name(other) if Some(other.as_str()) == name);
                        });
                    }
                    found
                };
                let is_of_block = mentions(&launch.block) || mentions(launch.shared.as_slice());
                // The kernel also uses a constant with the same value.
                let is_constant = value >= SMALLEST_SIZE
                    && self.kernels[kernel].constants.iter().any(|(name, other)| {
                        *other == value
                            && self.position(kernel, name).is_none()
                            && body.is_some_and(|body| body.mentions(|token| token == name))
                    });
                // The file fixes it, and the launch does not depend on it.
                let is_fixed = Self::host_name(launch, *position).is_some()
                    && !mentions(&launch.grid)
                    && value <= LARGEST_CONSTANT;
                if self.given.is_exact
                    || is_of_block
                    || is_constant
                    || is_fixed
                    || (!has_guard && !strides && !mentions(&launch.grid))
                {
                    kept.insert(*position, value);
                }
            }
        }
        self.kept = kept;
    }

    fn name_sizes(&mut self) {
        let positions: Vec<usize> = self
            .meanings
            .iter()
            .filter(|(_, meaning)| **meaning == Meaning::Size)
            .map(|(position, _)| *position)
            .collect();
        let needs_rows = self.needs_rows(&positions);
        let mut taken = BTreeSet::from(["n".to_owned(), "block".to_owned()]);
        for wanted in self.kernels {
            let pointers = wanted.signature.parameters.iter().filter(|parameter| parameter.pointers > 0);
            taken.extend(pointers.filter_map(|parameter| parameter.name.clone()));
        }
        if needs_rows || positions.is_empty() {
            self.sizes.push(Size {
                name: "n".into(),
                text: None,
                stand_in: if self.whole.is_empty() && !positions.is_empty() {
                    STAND_INS[5]
                } else {
                    WHOLE_STAND_INS[5]
                },
            });
        }
        for position in positions {
            let place = self.sizes.len();
            let stand_ins = if self.whole.contains(&position) { WHOLE_STAND_INS } else { STAND_INS };
            let stand_in = self.kept.get(&position).copied().unwrap_or(stand_ins[place % 5]);
            let mut name = self.kernels[0].signature.parameters[position].name.clone().unwrap_or_default();
            while place > 0 && (!may_name_buffer(&name) || taken.contains(&name)) {
                name = if name.is_empty() { format!("size{place}") } else { format!("{name}_size") };
            }
            let name = if place == 0 { "n".to_owned() } else { name };
            taken.insert(name.clone());
            let text = (place > 0).then(|| match self.kept.get(&position) {
                Some(value) => value.to_string(),
                None => self.further(place, self.whole.contains(&position)),
            });
            self.of.insert(position, place);
            self.stand_ins.insert(position, stand_in);
            self.sizes.push(Size { name, text, stand_in });
        }
        let largest = self.sizes.iter().map(|size| size.stand_in).max().unwrap_or(1);
        let scope = self.scope(&[]);
        for (position, meaning) in self.meanings.clone() {
            let value = match meaning {
                Meaning::Size => continue,
                Meaning::Pitch => largest,
                Meaning::Number(value) => value.into(),
                Meaning::Text(text) => match evaluate(&text, &scope) {
                    Some(value) => value,
                    None => continue,
                },
            };
            self.stand_ins.insert(position, value);
        }
    }

    /// Whether each block works on a row, but the number of rows is not a parameter.
    fn needs_rows(&self, positions: &[usize]) -> bool {
        let Some(reach) = self.reach(0, [256, 1, 1], [None; 3], &BTreeMap::new()) else { return false };
        let inner = positions.iter().filter(|position| {
            let name = self.kernels[0].signature.parameters[**position].name.as_ref();
            name.is_some_and(|name| reach.inner_limits.contains(name))
        });
        reach.per_block[0] && reach.spans[0].is_none() && inner.count() == positions.len() && !positions.is_empty()
    }

    /// Further size as an expression of the first one; larger and smaller ones alternate.
    fn further(&self, place: usize, is_whole: bool) -> String {
        match (place, is_whole) {
            (1, false) => "n + n / 8 + 1".to_owned(),
            (2, false) => "n - n / 5".to_owned(),
            (place, false) => format!("n + n / 3 + {place}"),
            (2, true) => format!("round_up(n - n / 5, {})", self.grain()),
            (place, true) => {
                format!("round_up(n, {}) + {}", self.grain(), usize::max(place - place / 3, 1) * self.grain())
            }
        }
    }

    /// Divisor of the sizes that must be multiples of a block.
    fn grain(&self) -> usize {
        // The product of many sizes must fit in memory, and a shared array in a block's.
        let is_small = self.sizes.len() > 3 || self.shared_grows();
        if self.has_tiles() {
            return MATRIX_TILE;
        }
        if !is_small && self.kernels.iter().any(|wanted| dimensions(wanted) == 1) { 256 } else { 32 }
    }

    /// Whether a kernel computes with the tiles of tensor cores.
    fn has_tiles(&self) -> bool {
        let bodies = self.kernels.iter().filter_map(|wanted| wanted.signature.body.as_ref());
        bodies.into_iter().any(|body| body.mentions(is_of_tiles))
    }

    /// Whether a launch's dynamic shared memory grows with a size.
    fn shared_grows(&self) -> bool {
        (0..self.kernels.len()).any(|kernel| {
            let Some(launch) = self.launch(kernel) else { return false };
            self.meanings.iter().any(|(position, meaning)| {
                let name = Self::host_name(launch, *position);
                let mut found = false;
                if let Some(shared) = &launch.shared {
                    shared.visit(&mut |part| {
                        found |= matches!(part, Expression::Name(other) if Some(other.as_str()) == name);
                    });
                }
                *meaning == Meaning::Size && found
            })
        })
    }

    /// Sizes by their manifest names, with their stand-ins.
    fn scope(&self, block: &[i128]) -> Scope {
        let mut scope = Scope::new();
        let mut set = |name: &str, value: i128| {
            if let Ok(value) = i64::try_from(value) {
                scope.set(name.to_owned(), Value::Int(value));
            }
        };
        self.sizes.iter().for_each(|size| set(&size.name, size.stand_in));
        if let Some(block) = block.first() {
            set("block", *block);
        }
        scope
    }

    /// Like [`Self::scope`], for sizes as small as the simulator's.
    fn small_scope(&self, kernel: usize, block: &[i128]) -> Scope {
        let mut scope = self.scope(block);
        let small = if dimensions(&self.kernels[kernel]) == 1 { 1 << 15 } else { 1 << 7 };
        self.sizes.iter().for_each(|size| scope.set(size.name.clone(), Value::Int(small)));
        scope
    }

    fn finish(mut self) -> Sizes {
        let mut found = Sizes::default();
        let mut lens: BTreeMap<usize, Vec<(i128, bool)>> = BTreeMap::new();
        let mut covers = Vec::new();
        let blocks = self.blocks();
        for (kernel, (block, sides, taken)) in blocks.iter().enumerate() {
            let mut shape = Shape { block: block.clone(), taken: taken.clone(), ..Shape::default() };
            let grid = self.grid(kernel, *sides, block.len(), &mut shape);
            self.is_fixed = self.of.is_empty() && !shape.grid.iter().any(|text| self.names_size(text));
            let none = BTreeMap::new();
            let mut reach = self.reach(kernel, *sides, grid.map(Some), &none).unwrap_or_default();
            // Indices that are only used for reading may have any value.
            let inputs = |targets: &BTreeSet<String>| {
                targets.iter().all(|name| {
                    self.position(kernel, name)
                        .is_some_and(|position| self.kernels[kernel].signature.parameters[position].is_const)
                })
            };
            let first = self.sizes.first().map_or(1, |size| size.stand_in);
            let mut intervals = BTreeMap::new();
            for (pointer, targets) in &reach.indices {
                let Some(position) = self.position(kernel, pointer) else { continue };
                let targets_only_read = inputs(targets);
                if targets_only_read {
                    intervals.insert(position, (0, first - 1));
                }
                found.indices.insert(position, targets_only_read.then(|| "n - 1".to_owned()));
            }
            if !intervals.is_empty() {
                reach = self.reach(kernel, *sides, grid.map(Some), &intervals).unwrap_or_default();
            }
            for (name, extent) in &reach.extents {
                let Some(position) = self.position(kernel, name) else { continue };
                let parameter = &self.kernels[kernel].signature.parameters[position];
                let base = self.base(kernel, &parameter.base);
                let count = layout::elements(&parameter.fields).map_or_else(|| components(&base), |(_, count)| count);
                lens.entry(position).or_default().push((extent.known * count, extent.is_open));
            }
            self.shared(kernel, &reach, sides, &mut shape);
            covers.push(self.covered(&grid, *sides));
            found.shapes.push(shape);
        }
        let default = covers.first().cloned().unwrap_or_else(|| "n".to_owned());
        let mut degree = 1;
        for position in 0..self.positions() {
            let text = self.len(position, lens.get(&position), &default);
            degree = degree.max(self.degree(&text));
            found.lens.insert(position, text);
        }
        for (position, meaning) in &self.meanings {
            let text = match meaning {
                Meaning::Size => {
                    self.of.get(position).map_or_else(|| "n".to_owned(), |place| self.sizes[*place].name.clone())
                }
                Meaning::Pitch => self
                    .sizes
                    .iter()
                    .max_by_key(|size| size.stand_in)
                    .map_or_else(|| "n".to_owned(), |size| size.name.clone()),
                Meaning::Number(value) => value.to_string(),
                Meaning::Text(text) => text.clone(),
            };
            found.values.insert(*position, text);
        }
        found.kept =
            self.of.iter().find(|(_, place)| **place == 0).and_then(|(position, _)| self.kept.get(position).copied());
        found.is_of_launch = self.given.is_exact && self.is_small_launch(&found);
        found.defaults = self.defaults(degree);
        found.all = self.sizes;
        found
    }

    /// Whether the launches give every integer, and neither threads nor buffers are too many to simulate.
    fn is_small_launch(&self, found: &Sizes) -> bool {
        let is_given = |(position, meaning): (&usize, &Meaning)| match meaning {
            Meaning::Size => self.kept.contains_key(position),
            _ => self.launched(*position).is_some() || matches!(meaning, Meaning::Text(_)),
        };
        let scope = self.scope(&[]);
        let product = |texts: &[String], block: Option<i128>| {
            let scope = self.scope(block.as_slice());
            texts.iter().map(|text| evaluate(text, &scope)).try_fold(1_i128, |all, side| all.checked_mul(side?))
        };
        let is_small = |shape: &Shape| {
            let first = shape.block.first().and_then(|text| evaluate(text, &scope));
            let threads = product(&shape.block, None).zip(product(&shape.grid, first));
            threads.is_some_and(|(block, grid)| block.saturating_mul(grid) <= 2 * MOST_FIXED_THREADS)
        };
        (0..self.kernels.len()).all(|kernel| self.launch(kernel).is_some())
            && self.meanings.iter().all(is_given)
            && found.shapes.iter().all(is_small)
            && found.lens.values().all(|len| evaluate(len, &scope).is_some_and(|len| len <= MOST_FIXED_ELEMENTS))
    }

    /// Block size of each kernel as text and as numbers, and the parts taken from a launch.
    fn blocks(&self) -> Vec<(Vec<String>, [i128; 3], Vec<&'static str>)> {
        let shown = |block: &[i128]| block.iter().map(ToString::to_string).collect::<Vec<_>>();
        let own = |kernel: usize| -> Option<Vec<i128>> {
            let reach = self.reach(kernel, [1; 3], [Some(1); 3], &BTreeMap::new())?;
            let threads = self.kernels[kernel].signature.body.as_ref()?.thread_dimensions;
            let known = reach.threads.iter().take(threads);
            let known: Vec<i128> = known.copied().collect::<Option<_>>()?;
            (known.iter().product::<i128>() <= 1024).then_some(known)
        };
        let launched = |kernel: usize| -> Option<Vec<i128>> {
            let launch = self.launch(kernel)?;
            let block: Vec<i128> = launch.block.iter().map(|side| launch.integer(side)).collect::<Option<_>>()?;
            let is_launch = (1..=3).contains(&block.len()) && block.iter().all(|side| (1..=1024).contains(side));
            (is_launch && block.iter().product::<i128>() <= 1024).then_some(block)
        };
        let all: Vec<Option<Vec<i128>>> =
            (0..self.kernels.len()).map(|kernel| launched(kernel).or_else(|| own(kernel))).collect();
        (0..self.kernels.len())
            .map(|kernel| {
                let threads = self.kernels[kernel].signature.body.as_ref().map_or(1, |body| body.thread_dimensions);
                let other = all.iter().flatten().find(|block| block.len() == threads);
                let default = match threads {
                    _ if !self.has_threads(kernel) => vec![1],
                    1 => vec![256],
                    2 => vec![16, 16],
                    _ => vec![8, 8, 4],
                };
                let block = all[kernel].clone().or_else(|| other.cloned()).unwrap_or(default);
                let block = within(block, self.most_threads(kernel));
                let given = self.given.blocks.get(kernel).cloned().flatten();
                let scope = self.scope(&[]);
                let numbers =
                    given.as_ref().and_then(|texts| texts.iter().map(|text| evaluate(text, &scope)).collect());
                let numbers: Vec<i128> = numbers.unwrap_or_else(|| block.clone());
                let sides = [0, 1, 2].map(|axis| numbers.get(axis).copied().unwrap_or(1));
                let taken = if given.is_none() && launched(kernel).is_some() { vec!["block"] } else { Vec::new() };
                (given.unwrap_or_else(|| shown(&block)), sides, taken)
            })
            .collect()
    }

    /// Whether the blocks of a kernel may do different work.
    fn has_blocks(&self, kernel: usize) -> bool {
        let is_of_grid = |token: &str| token == "blockIdx" || token.contains("grid");
        let body = self.kernels[kernel].signature.body.as_ref();
        body.is_none_or(|body| {
            body.mentions(is_of_grid) || (!body.mentions(|token| token == "threadIdx") && self.has_threads(kernel))
        })
    }

    /// Whether the threads of a kernel may do different work.
    fn has_threads(&self, kernel: usize) -> bool {
        let words = ["thread", "block", "grid", "lane", "rank", "idx", "warp", "shfl", "tid", "unknown_result"];
        let is_of_thread = |token: &str| words.iter().any(|word| token.to_lowercase().contains(word));
        let body = self.kernels[kernel].signature.body.as_ref();
        body.is_none_or(|body| !body.mentions(|_| true) || body.mentions(is_of_thread))
    }

    /// Maximum number of threads per block that the kernel's `__launch_bounds__` allow.
    fn most_threads(&self, kernel: usize) -> Option<i128> {
        let wanted = &self.kernels[kernel];
        let of_template = |name: &str| {
            let (_, value) = self.given.types.get(kernel)?.iter().find(|(parameter, _)| parameter == name)?;
            value.parse().ok()
        };
        let value = |name: &Expression| match name {
            Expression::Name(name) => {
                of_template(name).or_else(|| wanted.constants.get(name).copied()).map(|value| (value, value))
            }
            _ => None,
        };
        let (low, high) = wanted.signature.most_threads.as_ref()?.interval(&value)?;
        (low == high && low >= 1).then_some(low)
    }

    /// Grid of a kernel as numbers; its text is stored in `shape`.
    fn grid(&self, kernel: usize, sides: [i128; 3], block_dimensions: usize, shape: &mut Shape) -> [i128; 3] {
        let reach = self.reach(kernel, sides, [None; 3], &BTreeMap::new()).unwrap_or_default();
        let body = self.kernels[kernel].signature.body.as_ref();
        let scope = self.scope(&sides);
        let numbers = |texts: &[String]| {
            let value = |axis: usize| texts.get(axis).map_or(Some(1), |text| evaluate(text, &scope));
            Some([value(0)?, value(1)?, value(2)?])
        };
        if let Some(texts) = self.given.grids.get(kernel).cloned().flatten() {
            let found = numbers(&texts).unwrap_or([1; 3]);
            shape.grid = texts;
            return found;
        }
        if let Some(texts) = self.launched_grid(kernel, &reach)
            && let Some(found) = numbers(&texts).filter(|found| found.iter().all(|blocks| *blocks >= 1))
        {
            // A quotient that suits the file's sizes may be zero for smaller ones.
            let small = self.small_scope(kernel, &sides);
            let is_zero = |text: &String| evaluate(text, &small).is_some_and(|blocks| blocks < 1);
            let at_least_one = |text: String| if is_zero(&text) { format!("max(1, {text})") } else { text };
            shape.grid = texts.into_iter().map(at_least_one).collect();
            shape.taken.push("grid");
            return found;
        }
        // The kernel only uses the threads of one block, or a single thread.
        if !self.has_blocks(kernel) {
            shape.grid = vec!["1".to_owned()];
            return [1; 3];
        }
        let dimensions = body.map_or(1, |body| body.block_dimensions.max(body.thread_dimensions)).max(block_dimensions);
        let spans = self.spans(kernel, &reach, dimensions);
        let is_plain = shape.block.len() == 1;
        let mut grid = [1; 3];
        for axis in 0..dimensions {
            let fixed = reach.spans[axis].filter(|span| self.of.is_empty() && *span <= MOST_FIXED_THREADS);
            let span = fixed.map(|span| span.to_string()).or_else(|| self.describe(spans[axis], sides));
            let span = span.unwrap_or_else(|| "n".to_owned());
            let is_row = reach.per_block[axis] && reach.spans[axis].is_none();
            let per_block = reach.tile[axis].unwrap_or(sides[axis]);
            let (text, blocks) = if is_row || per_block == 1 {
                (span, spans[axis])
            } else {
                let per = if is_plain && axis == 0 { "block".to_owned() } else { per_block.to_string() };
                (format!("ceil_div({span}, {per})"), ceil_div(spans[axis], per_block))
            };
            grid[axis] = blocks;
            shape.grid.push(text);
        }
        grid
    }

    /// Number of elements that each grid dimension covers.
    fn spans(&self, kernel: usize, reach: &Reach, dimensions: usize) -> [i128; 3] {
        let mut free: Vec<i128> = self.sizes.iter().map(|size| size.stand_in).collect();
        let inner: Vec<i128> = reach
            .inner_limits
            .iter()
            .filter_map(|name| self.stand_ins.get(&self.position(kernel, name)?).copied())
            .collect();
        free.retain(|size| !reach.spans.contains(&Some(*size)) && (!inner.contains(size) || !reach.per_block[0]));
        let first = self.sizes.first().map_or(1, |size| size.stand_in);
        let mut spans = reach.spans;
        for (axis, span) in spans.iter_mut().enumerate().take(dimensions) {
            if span.is_none() {
                let place = if axis == 0 && dimensions > 1 { free.len().checked_sub(1) } else { Some(0) };
                let chosen = place.filter(|place| *place < free.len()).map(|place| free.remove(place));
                *span = Some(chosen.unwrap_or(first));
            }
        }
        // A guard that excludes the last elements, as in `i < n - 1`, does not change the grid.
        let near = |span: i128| self.sizes.iter().map(|size| size.stand_in).find(|size| (size - span).abs() <= 16);
        spans.map(|span| span.map_or(1, |span| near(span).unwrap_or(span)))
    }

    /// Grid of the source's launch, if it still fits when sizes change.
    fn launched_grid(&self, kernel: usize, reach: &Reach) -> Option<Vec<String>> {
        let launch = self.launch(kernel)?;
        let texts: Vec<String> =
            launch.grid.iter().map(|side| self.of_host(kernel, side)?.text()).collect::<Option<_>>()?;
        let mentions = texts.iter().any(|text| self.names_size(text));
        let strides =
            self.kernels[kernel].signature.body.as_ref().is_some_and(|body| body.mentions(|token| token == "gridDim"));
        let is_kept = self.of.keys().all(|position| self.kept.contains_key(position)) && !self.of.is_empty();
        // Nothing but the launch says how many threads there are. If they are too many to simulate, `n` takes their place.
        let threads =
            |sides: &mut dyn Iterator<Item = Option<i128>>| sides.map(Option::unwrap_or_default).product::<i128>();
        let block = threads(&mut launch.block.iter().map(|side| launch.integer(side)));
        let is_huge = block * threads(&mut texts.iter().map(|text| text.parse().ok())) > MOST_FIXED_THREADS;
        let is_fixed = reach.spans == [None; 3] && self.of.is_empty() && !is_huge;
        (mentions || strides || is_kept || is_fixed).then_some(texts)
    }

    /// Whether an expression names a size.
    fn names_size(&self, text: &str) -> bool {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| self.sizes.iter().any(|size| size.name == word))
    }

    /// Translates a host expression to the manifest's names. Variables that are not passed to the kernel are replaced
    /// by their values.
    fn of_host(&self, kernel: usize, expression: &Expression) -> Option<Expression> {
        let launch = self.launch(kernel)?;
        let replaced = expression.replaced(&|name| {
            let position =
                (0..launch.arguments.len()).find(|position| Self::host_name(launch, *position) == Some(name));
            let place = position.and_then(|position| self.of.get(&position));
            match place {
                Some(place) => Expression::Name(self.sizes[*place].name.clone()),
                None => launch.values.get(name).map_or(Expression::Unknown, |value| Expression::Integer(*value)),
            }
        });
        // If no name is left, a number is easier to read than an expression.
        let mut names = 0;
        replaced.visit(&mut |part| names += usize::from(matches!(part, Expression::Name(_))));
        let whole = (names == 0).then(|| launch.integer(&replaced)).flatten();
        Some(whole.map_or(replaced, Expression::Integer))
    }

    fn shared(&self, kernel: usize, reach: &Reach, sides: &[i128; 3], shape: &mut Shape) {
        if let Some(text) = self.given.shared.get(kernel).cloned().flatten() {
            shape.shared = Some(text);
            return;
        }
        let launched = self.launch(kernel).and_then(|launch| self.of_host(kernel, launch.shared.as_ref()?)?.text());
        if let Some(text) = launched {
            if text != "0" {
                shape.shared = Some(text);
                shape.taken.push("shared memory");
            }
            return;
        }
        let Some((words, extent)) = &reach.shared else { return };
        let base = self.base(kernel, &words.join(" "));
        let size = crate::element::element(&base).map_or(8, bytes_of) * components(&base);
        let elements = if extent.known > 0 { extent.known } else { sides.iter().product() };
        // Shared memory per block must not grow with the sizes, or it would not fit.
        shape.shared = match self.describe(elements, *sides) {
            Some(text) => Some(format!("{size} * ({text})")),
            None => Some((size * elements.min(LARGEST_CONSTANT)).to_string()),
        };
    }

    /// Number of elements that the grid's threads cover, used as the default length.
    fn covered(&self, grid: &[i128; 3], sides: [i128; 3]) -> String {
        let parts = (0..3).filter(|axis| grid[*axis] > 1).map(|axis| {
            // The size that results in this number of blocks.
            let fits = |size: &&Size| ceil_div(size.stand_in, sides[axis]) == grid[axis] || size.stand_in == grid[axis];
            self.sizes
                .iter()
                .find(fits)
                .map(|size| size.name.clone())
                .or_else(|| self.describe(grid[axis] * sides[axis], sides))
                .unwrap_or_else(|| "n".to_owned())
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() { "n".to_owned() } else { parts.join(" * ") }
    }

    /// Length of the buffer behind a pointer.
    fn len(&self, position: usize, found: Option<&Vec<(i128, bool)>>, default: &str) -> String {
        if let Some(text) = self.allocated(position) {
            return text;
        }
        let Some(found) = found else { return default.to_owned() };
        let is_input = self
            .kernels
            .iter()
            .any(|wanted| wanted.signature.parameters.get(position).is_some_and(|parameter| parameter.is_const));
        let known = if is_input {
            found.iter().map(|(known, _)| *known).max()
        } else {
            found
                .iter()
                .find(|(known, is_open)| *known > 0 && !is_open)
                .or_else(|| found.iter().find(|(known, _)| *known > 0))
                .map(|(known, _)| *known)
        };
        let is_open = found.iter().all(|(_, is_open)| *is_open);
        // A tile's last elements are loaded by the address of the first of 16 bytes.
        let known = known.map(|known| if self.has_tiles() { ceil_div(known, 8) * 8 } else { known });
        match known.filter(|known| *known > 0) {
            // A guard of the file's own size, of which the grid covers a part.
            Some(known) if self.of.is_empty() && known > MOST_FIXED_ELEMENTS => default.to_owned(),
            Some(known) if !(is_open && is_input) => {
                self.describe(known, [256, 1, 1]).unwrap_or_else(|| default.to_owned())
            }
            _ => default.to_owned(),
        }
    }

    /// Length that the source allocates for a parameter.
    fn allocated(&self, position: usize) -> Option<String> {
        (0..self.kernels.len()).find_map(|kernel| {
            let launch = self.launch(kernel)?;
            let bytes = launch.arguments.get(position)?.bytes.as_ref()?;
            let base = self.base(kernel, &self.kernels[kernel].signature.parameters.get(position)?.base);
            let size = bytes_of(crate::element::element(&base)?);
            let bytes = self.of_host(kernel, bytes)?;
            // A length without any size in it would not change with the sizes.
            let mut names = 0;
            bytes.visit(&mut |part| names += usize::from(matches!(part, Expression::Name(_))));
            let is_kept = self.of.keys().all(|position| self.kept.contains_key(position));
            let is_small = self.launch(kernel)?.integer(&bytes).is_none_or(|bytes| bytes <= size * MOST_FIXED_ELEMENTS);
            (names > 0 || (is_kept && is_small)).then_some(())?;
            elements(&bytes, size)
        })
    }

    /// Terms for lengths: the sizes, and the values given by the user.
    fn terms(&self) -> Vec<(String, i128)> {
        let sizes = self.sizes.iter().map(|size| (size.name.clone(), size.stand_in));
        let given = self.meanings.iter().filter_map(|(position, meaning)| match meaning {
            Meaning::Text(text) => Some((grouped(text), *self.stand_ins.get(position)?)),
            _ => None,
        });
        sizes.chain(given.filter(|(_, value)| *value > 1)).collect()
    }

    /// Rewrites a number computed from stand-ins as an expression of the sizes.
    fn describe(&self, value: i128, sides: [i128; 3]) -> Option<String> {
        let terms = self.terms();
        // If no size varies, every number is final.
        if self.is_fixed || (self.of.is_empty() && terms.len() > self.sizes.len()) {
            return Some(value.to_string());
        }
        let mut products: Vec<(i128, Vec<usize>)> = vec![(1, Vec::new())];
        let mut from = 0;
        for _ in 0..4 {
            let to = products.len();
            for at in from..to {
                let (product, places) = products[at].clone();
                let first = places.last().copied().unwrap_or(0);
                for (place, (_, value)) in terms.iter().enumerate().take(6).skip(first) {
                    if let Some(next) = product.checked_mul(*value) {
                        products.push((next, [&places[..], &[place]].concat()));
                    }
                }
            }
            from = to;
        }
        products.remove(0);
        let text =
            |places: &[usize]| places.iter().map(|place| terms[*place].0.clone()).collect::<Vec<_>>().join(" * ");
        let divisors =
            sides.into_iter().chain([sides.iter().product(), 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]);
        let divisors: Vec<i128> = divisors.filter(|divisor| *divisor > 1).collect();
        if let Some((_, places)) = products.iter().find(|(product, _)| *product == value) {
            return Some(text(places));
        }
        if value <= LARGEST_CONSTANT {
            return Some(value.to_string());
        }
        for (product, places) in &products {
            let shown = text(places);
            let (times, rest) = (value / product, value % product);
            if (1..=64).contains(&times) && rest <= LARGEST_CONSTANT {
                let times = if times == 1 { shown } else { format!("{times} * {}", grouped(&shown)) };
                return Some(if rest == 0 { times } else { format!("{times} + {rest}") });
            }
            if value < *product && product - value <= LARGEST_CONSTANT {
                return Some(format!("{shown} - {}", product - value));
            }
            if let Some(divisor) = divisors.iter().find(|divisor| ceil_div(*product, **divisor) == value) {
                return Some(format!("ceil_div({shown}, {divisor})"));
            }
            if let Some(divisor) = divisors.iter().find(|divisor| ceil_div(*product, **divisor) * **divisor == value) {
                return Some(format!("round_up({shown}, {divisor})"));
            }
        }
        // Two factors with a margin, such as `(rows + 2) * (columns + 2)`, or the blocks of one size times the elements
        // of another.
        for size in &self.sizes {
            for rim in -16..=16 {
                let side = size.stand_in + rim;
                if side > 1 && value % side == 0 && value / side > 1 {
                    let other = self.describe(value / side, sides)?;
                    let side = if rim == 0 { size.name.clone() } else { format!("({} + {rim})", size.name) };
                    return Some(format!("{side} * {}", grouped(&other)));
                }
            }
            for divisor in &divisors {
                let blocks = ceil_div(size.stand_in, *divisor);
                if value % blocks == 0 && value / blocks <= LARGEST_CONSTANT {
                    return Some(format!("ceil_div({}, {divisor}) * {}", size.name, value / blocks));
                }
            }
        }
        // The next larger product is always enough.
        let next = products.iter().filter(|(product, _)| *product >= value).min_by_key(|(product, _)| *product);
        next.map(|(_, places)| text(places))
    }

    /// Number of sizes that are multiplied in an expression.
    fn degree(&self, text: &str) -> usize {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| self.sizes.iter().any(|size| size.name == *word))
            .count()
            .max(1)
    }

    /// Default values of the first size for a GPU and for the simulator.
    fn defaults(&self, degree: usize) -> [String; 2] {
        let is_whole = !self.whole.is_empty() || self.of.is_empty();
        let narrow = (0..self.positions()).filter(|position| self.of.contains_key(position)).any(|position| {
            let base = &self.kernels[0].signature.parameters[position].base;
            crate::element::element(base).is_some_and(|element| element.size() < 4)
        });
        let exponents: [u32; 2] = match (degree, self.sizes.len()) {
            _ if narrow => [6, 6],
            _ if self.shared_grows() => [7, 7],
            (1, 1) => [24, 16],
            (1, _) => [20, 12],
            (2, 1 | 2) => [12, 8],
            (2, _) => [10, 7],
            (3, _) => [8, 5],
            _ if is_whole => [5, 5],
            _ => [6, 4],
        };
        exponents.map(|exponent| match is_whole {
            true if self.has_tiles() && degree > 1 => MATRIX_TILE.to_string(),
            // Multiples of the block size that are not powers of two.
            true if exponent >= 16 => format!("2**{exponent} - 2**12"),
            true if exponent >= 10 && self.grain() == 256 => format!("2**{exponent} - 2**8"),
            true if self.grain() == 256 => "3 * 2**8".to_owned(),
            true if exponent >= 7 => format!("2**{exponent} - 2**5"),
            true if degree > 3 => "2**5".to_owned(),
            true => "3 * 2**5".to_owned(),
            // Mostly primes.
            false => format!(
                "2**{exponent} - {}",
                match exponent {
                    5 | 7 => 1,
                    8 => 5,
                    16 => 15,
                    _ => 3,
                }
            ),
        })
    }
}

/// Evaluates a manifest expression; `None` unless it is a number.
fn evaluate(text: &str, scope: &Scope) -> Option<i128> {
    Program::parse(text).ok()?.evaluate_i64(scope).ok().map(i128::from)
}

fn bytes_of(element: runner_types::ElementType) -> i128 {
    i128::try_from(element.size()).unwrap_or(1)
}

fn grouped(text: &str) -> String {
    if text.contains(' ') && !text.ends_with(')') { format!("({text})") } else { text.to_owned() }
}

/// Number of elements in `bytes`, as an expression.
fn elements(bytes: &Expression, size: i128) -> Option<String> {
    use runner_cuda_source::expression::Operator::Multiply;
    if let Expression::Binary(Multiply, one, other) = bytes {
        for (part, rest) in [(one, other), (other, one)] {
            match &**part {
                Expression::Integer(value) if *value == size => return rest.text(),
                Expression::Integer(value) if *value > size && value % size == 0 => {
                    let times = Expression::Integer(value / size);
                    return Expression::Binary(Multiply, rest.clone(), Box::new(times)).text();
                }
                Expression::Binary(Multiply, ..) => {
                    if let Some(inner) = elements(part, size) {
                        let rest = rest.text()?;
                        return Some(format!("{} * {}", grouped(&inner), grouped(&rest)));
                    }
                }
                _ => {}
            }
        }
        return None;
    }
    match bytes {
        Expression::Integer(value) if value % size == 0 => Some((value / size).to_string()),
        _ => None,
    }
}

/// Whether the name suggests the length of a row in memory.
fn is_pitch(name: &str) -> bool {
    let name = name.to_lowercase();
    name.starts_with("ld") || name.contains("pitch") || name.contains("stride")
}

/// Whether the name suggests a small number.
fn is_small(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = [
        "radius",
        "offset",
        "shift",
        "seed",
        "stride",
        "halo",
        "pad",
        "channel",
        "iter",
        "threshold",
        "value",
        "mask",
        "filter",
        "kernel",
        "window",
        "factor",
        "scale",
        "alpha",
        "beta",
        "dilation",
        "order",
        "shared",
        "smem",
    ];
    words.iter().any(|word| name.contains(word)) || matches!(name.as_str(), "r" | "c0" | "val" | "bias")
}

/// Whether the name suggests a size.
pub fn is_size(name: &str) -> bool {
    let lower = name.to_lowercase();
    let words = ["size", "len", "num", "count", "row", "col", "width", "height", "dim", "elem", "batch", "total"];
    words.iter().any(|word| lower.contains(word))
        || matches!(lower.as_str(), "n" | "m" | "k" | "w" | "h" | "nx" | "ny" | "nz" | "b" | "t" | "c")
}
