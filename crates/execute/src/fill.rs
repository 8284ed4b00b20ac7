//! Initial contents of buffers: the same bytes on every backend and with any number of threads.
//!
//! A buffer is filled in chunks of 2^16 elements. Chunk `c` draws from stream `c` of a `ChaCha8` generator whose key is
//! the SHA-256 of the seed and the buffer's name. So a chunk depends only on its index, a longer buffer starts with the
//! content of a shorter one, and two buffers under one seed differ. Transcendental functions come from `libm`, whose
//! results do not depend on the system. Values that the element type cannot hold are errors.

use std::f64::consts::TAU;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::parallel;
use super::source::Source;
use super::structured::{self, Elements};
use super::typed::{Float, Integer, Typed, by_type};
use runner_files::npy;
use runner_files::regular;
use runner_types::{BufferPlan, ElementType, FilePart, FillPlan, Structure, Value};

/// Number of elements filled from one stream of the generator.
pub const CHUNK: usize = 1 << 16;

/// Initial content of a buffer with this fill.
///
/// Errors say which buffer cannot be filled, and why.
pub fn fill(plan: &BufferPlan, fill: &FillPlan) -> Result<Vec<u8>, String> {
    let named = |problem: String| format!("buffer `{}`: {problem}", plan.name);
    match fill {
        FillPlan::Npy(path) => return npy::read(path, plan.element, Some(plan.len)).map_err(named),
        FillPlan::Raw(path) => return raw(path, plan).map_err(named),
        FillPlan::Part(file) => return part(file).map_err(named),
        FillPlan::Like { buffer, fill: other } => {
            return self::fill(&BufferPlan { name: buffer.clone(), ..plan.clone() }, other);
        }
        FillPlan::Permuted { fill, seed, stretch } => return permuted(plan, fill, *seed, stretch),
        _ => {}
    }
    let mut bytes = zeroed(plan).map_err(named)?;
    make(&mut bytes, 0, plan, fill).map_err(named)?;
    Ok(bytes)
}

/// Elements of a fill in random order; those in the range `stretch` are in a different random order. Each buffer under
/// one seed has its own order.
fn permuted(plan: &BufferPlan, content: &FillPlan, seed: u64, stretch: &Range<u64>) -> Result<Vec<u8>, String> {
    let first = fill(plan, content)?;
    let mut bytes = zeroed(plan).map_err(|problem| format!("buffer `{}`: {problem}", plan.name))?;
    let (key, size) = (Source::new(seed, &plan.name).words()[0], plan.element.size());
    parallel::chunks(&mut bytes, CHUNK * size, &|place, part| {
        for (offset, element) in part.chunks_exact_mut(size).enumerate() {
            let mut index = (place * CHUNK + offset) as u64;
            if stretch.contains(&index) {
                let len = stretch.end - stretch.start;
                index = stretch.start + structured::permuted(index - stretch.start, len, key);
            }
            let from = index as usize * size;
            element.copy_from_slice(&first[from..from + size]);
        }
    });
    Ok(bytes)
}

/// One chunk of a buffer's initial content; the last may be shorter. A file has no chunks.
pub fn chunk(plan: &BufferPlan, fill: &FillPlan, number: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    make_chunk(plan, fill, number, &mut bytes).map(|()| bytes)
}

/// Generates one chunk into memory that may hold earlier data.
pub fn make_chunk(plan: &BufferPlan, fill: &FillPlan, number: usize, bytes: &mut Vec<u8>) -> Result<(), String> {
    let elements = (plan.len as usize).saturating_sub(number * CHUNK).min(CHUNK);
    bytes.clear();
    bytes.resize(elements * plan.element.size(), 0);
    make(bytes, number, plan, fill)
}

/// Whether generating a single chunk costs no more than its share of the whole buffer.
pub fn is_made_by_chunks(fill: &FillPlan) -> bool {
    match fill {
        FillPlan::Constant(_) | FillPlan::Iota { .. } | FillPlan::Uniform { .. } | FillPlan::Normal { .. } => true,
        FillPlan::Spliced { fill, .. } => is_made_by_chunks(fill),
        _ => false,
    }
}

/// Content of a file, which must be exactly as long as the buffer.
fn raw(path: &Path, plan: &BufferPlan) -> Result<Vec<u8>, String> {
    let bytes = regular::read_up_to(path, u64::MAX).map_err(|e| format!("{}: cannot be read: {e}", path.display()))?;
    let wanted = plan.bytes().0;
    let fits = bytes.len() as u64 == wanted;
    let found = bytes.len();
    fits.then_some(bytes).ok_or_else(|| format!("{} holds {found} bytes, expected {wanted}", path.display()))
}

pub fn part(part: &FilePart) -> Result<Vec<u8>, String> {
    let text = |problem: String| format!("{}: {problem}", part.path.display());
    let mut file = regular::open(&part.path).map_err(|e| text(format!("cannot be read: {e}")))?;
    file.seek(SeekFrom::Start(part.offset)).map_err(|e| text(format!("cannot be read: {e}")))?;
    let mut bytes = Vec::new();
    file.take(part.bytes).read_to_end(&mut bytes).map_err(|e| text(format!("cannot be read: {e}")))?;
    let whole = bytes.len() as u64 == part.bytes;
    whole.then_some(bytes).ok_or_else(|| text(format!("ends before the {} bytes at {}", part.bytes, part.offset)))
}

/// Generates consecutive chunks, starting with chunk `first`.
fn make(bytes: &mut [u8], first: usize, plan: &BufferPlan, fill: &FillPlan) -> Result<(), String> {
    if let FillPlan::Spliced { fill, seed, stretch } = fill {
        make(bytes, first, plan, fill)?;
        return splice(bytes, first, plan, (fill, *seed), stretch);
    }
    let made = by_type!(
        plan.element,
        integer T => integers::<T>(bytes, first, fill, plan),
        float T => floats::<T>(bytes, first, fill, plan),
    );
    made.map_err(|problem| problem.describe(plan.element))
}

/// Regenerates the elements of a range with another seed.
fn splice(
    bytes: &mut [u8],
    first: usize,
    plan: &BufferPlan,
    (fill, seed): (&FillPlan, u64),
    stretch: &Range<u64>,
) -> Result<(), String> {
    let (size, begin) = (plan.element.size(), first * CHUNK);
    let from = begin.max(stretch.start as usize);
    let to = (begin + bytes.len() / size).min(stretch.end as usize);
    if from >= to {
        return Ok(());
    }
    let mut fill = fill.clone();
    fill.seed_mut().into_iter().for_each(|own| *own = seed);
    // A chunk can only be generated from its beginning.
    let number = from / CHUNK;
    let mut made = room(((to - number * CHUNK) * size) as u64)?;
    make(&mut made, number, plan, &fill)?;
    bytes[(from - begin) * size..(to - begin) * size].copy_from_slice(&made[(from - number * CHUNK) * size..]);
    Ok(())
}

fn zeroed(plan: &BufferPlan) -> Result<Vec<u8>, String> {
    room(plan.bytes().0)
}

fn room(size: u64) -> Result<Vec<u8>, String> {
    let refused = || format!("the host has no memory for its {size} bytes");
    let len = usize::try_from(size).map_err(|_| refused())?;
    // Reserved first, so that an impossible length is an error and not an abort; then allocated zeroed, which is free.
    Vec::<u8>::new().try_reserve_exact(len).map_err(|_| refused())?;
    Ok(vec![0; len])
}

/// Why a fill's numbers do not fit the element type.
pub enum Misfit {
    /// The element type cannot hold the value.
    Value(Value),
    /// The lower bound is above the upper bound.
    Range(Value, Value),
    /// The mean or the standard deviation is not a number.
    Normal(f64, f64),
}

impl Misfit {
    fn describe(&self, element: ElementType) -> String {
        match self {
            Self::Value(value) => format!("its fill has {value}, which is not a value of {element}"),
            Self::Range(low, high) => format!("its fill is uniform on [{low}, {high}], which is empty"),
            Self::Normal(mean, deviation) => {
                format!(
                    "its fill is normal with mean {mean} and standard deviation {deviation}: both must be finite numbers"
                )
            }
        }
    }
}

/// Writes every element, chunks in parallel, starting with chunk `first`. `chunk` returns the element source for a
/// chunk index.
fn write<T: Typed, S: FnMut(usize) -> T>(bytes: &mut [u8], first: usize, chunk: impl Fn(usize) -> S + Sync) {
    parallel::chunks(bytes, CHUNK * T::SIZE, &|place, part| {
        let number = first + place;
        let mut next = chunk(number);
        for (offset, element) in part.chunks_exact_mut(T::SIZE).enumerate() {
            next(number * CHUNK + offset).store(element);
        }
    });
}

fn integers<T: Integer>(bytes: &mut [u8], first: usize, fill: &FillPlan, plan: &BufferPlan) -> Result<(), Misfit> {
    let name = &plan.name;
    match fill {
        FillPlan::Constant(value) => {
            let value = T::from_lane(integer::<T>(value)?);
            write(bytes, first, |_| move |_| value);
        }
        FillPlan::Iota { start, step } => {
            let (start, step) = (integer::<T>(start)?, any_integer(step)?);
            write(bytes, first, |_| move |i| T::from_lane(start.wrapping_add(step.wrapping_mul(i as i64))));
        }
        FillPlan::Uniform { low, high, seed } => {
            let (from, to) = (integer::<T>(low)?, integer::<T>(high)?);
            if from > to {
                return Err(Misfit::Range(low.clone(), high.clone()));
            }
            let (source, span) = (Source::new(*seed, name), to.wrapping_sub(from).wrapping_add(1) as u64);
            if (1..=1 << 32).contains(&span) {
                narrow_uniform::<T>(bytes, first, (from, span), &source);
                return Ok(());
            }
            write(bytes, first, |number| {
                let mut rng = source.stream(number);
                move |_| T::from_lane(from.wrapping_add(below(&mut rng, span) as i64))
            });
        }
        FillPlan::Normal { mean, deviation, seed } => {
            normal::<T>(bytes, first, (*mean, *deviation), &Source::new(*seed, name), T::nearest)?;
        }
        FillPlan::List(values) => {
            let values =
                values.iter().map(|value| integer::<T>(value).map(T::from_lane)).collect::<Result<Vec<_>, _>>()?;
            listed(bytes, first, &values);
        }
        FillPlan::Structured { structure: structure @ Structure::Sorted { low, high }, seed } => {
            let (low, high) = (any_integer(low)?, any_integer(high)?);
            let elements = Elements::new(structure, *seed, name, plan.len);
            write(bytes, first, |_| {
                |i| T::from_lane((low as f64 + (high as f64 - low as f64) * elements.way(i as u64)).floor() as i64)
            });
        }
        FillPlan::Structured { structure, seed } => {
            let elements = Elements::new(structure, *seed, name, plan.len);
            write(bytes, first, |_| |i| T::from_lane(elements.integer(i as u64).cast_signed()));
        }
        FillPlan::Npy(_)
        | FillPlan::Raw(_)
        | FillPlan::Part(_)
        | FillPlan::Like { .. }
        | FillPlan::Permuted { .. }
        | FillPlan::Spliced { .. } => {}
    }
    Ok(())
}

/// Writes as many elements of a list as the buffer has room for.
fn listed<T: Typed>(bytes: &mut [u8], first: usize, values: &[T]) {
    let values = values.get(first * CHUNK..).unwrap_or_default();
    bytes.chunks_exact_mut(T::SIZE).zip(values).for_each(|(element, value)| value.store(element));
}

fn floats<T: Float>(bytes: &mut [u8], first: usize, fill: &FillPlan, plan: &BufferPlan) -> Result<(), Misfit> {
    let name = &plan.name;
    match fill {
        FillPlan::Constant(value) => {
            let value = T::nearest(number::<T>(value)?);
            write(bytes, first, |_| move |_| value);
        }
        FillPlan::Iota { start, step } => {
            let (start, step) = (number::<T>(start)?, number::<T>(step)?);
            write(bytes, first, |_| move |i| T::nearest(start + step * i as f64));
        }
        FillPlan::Uniform { low, high, seed } => {
            let (from, to) = (number::<T>(low)?, number::<T>(high)?);
            if from > to || !from.is_finite() || !to.is_finite() {
                return Err(Misfit::Range(low.clone(), high.clone()));
            }
            uniform::<T>(bytes, first, (from, to), &Source::new(*seed, name));
        }
        FillPlan::Normal { mean, deviation, seed } => {
            normal::<T>(bytes, first, (*mean, *deviation), &Source::new(*seed, name), T::nearest)?;
        }
        FillPlan::List(values) => {
            let values =
                values.iter().map(|value| number::<T>(value).map(T::nearest)).collect::<Result<Vec<_>, _>>()?;
            listed(bytes, first, &values);
        }
        FillPlan::Structured { structure: structure @ Structure::Sorted { low, high }, seed } => {
            let (low, high) = (number::<T>(low)?, number::<T>(high)?);
            let elements = Elements::new(structure, *seed, name, plan.len);
            write(bytes, first, |_| |i| T::nearest(low + (high - low) * elements.way(i as u64)));
        }
        FillPlan::Structured { structure, seed } => {
            let elements = Elements::new(structure, *seed, name, plan.len);
            write(bytes, first, |_| |i| T::nearest(elements.float(i as u64)));
        }
        FillPlan::Npy(_)
        | FillPlan::Raw(_)
        | FillPlan::Part(_)
        | FillPlan::Like { .. }
        | FillPlan::Permuted { .. }
        | FillPlan::Spliced { .. } => {}
    }
    Ok(())
}

/// Converts an integer of the type to a lane.
pub fn integer<T: Integer>(value: &Value) -> Result<i64, Misfit> {
    let lane = any_integer(value)?;
    if (T::MIN..=T::MAX).contains(&i128::from(lane)) { Ok(lane) } else { Err(Misfit::Value(value.clone())) }
}

pub fn any_integer(value: &Value) -> Result<i64, Misfit> {
    match value {
        Value::Int(value) => Ok(*value),
        // An expression like `2.0 ** 3` yields a float with an integral value.
        Value::Float(value) if value.fract() == 0.0 && value.abs() < 2f64.powi(63) => Ok(*value as i64),
        other => Err(Misfit::Value(other.clone())),
    }
}

/// Converts a number within the type's range; rounding happens where it is used.
pub fn number<T: Float>(value: &Value) -> Result<f64, Misfit> {
    let number = match value {
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        other => return Err(Misfit::Value(other.clone())),
    };
    let overflows = number.is_finite() && !T::nearest(number).wide().is_finite();
    if overflows { Err(Misfit::Value(value.clone())) } else { Ok(number) }
}

/// Draws a number uniformly from `0..span`, or from all 64 bits for a span of 0. Uses multiplication with rejection
/// (Lemire 2019), so there is no bias.
pub fn below(rng: &mut ChaCha8Rng, span: u64) -> u64 {
    if span == 0 {
        return rng.next_u64();
    }
    if span <= 1 << 32 {
        loop {
            if let Some(number) = narrow_below(rng.next_u32(), span, rejected_below(span)) {
                return number;
            }
        }
    }
    let rejected = span.wrapping_neg() % span;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(span);
        if product as u64 >= rejected {
            return (product >> 64) as u64;
        }
    }
}

/// Maps 32 random bits to a number in `0..span`, for a span of up to 2^32; `None` if the bits are rejected.
fn narrow_below(bits: u32, span: u64, rejected: u64) -> Option<u64> {
    let product = u64::from(bits) * span;
    (product & 0xffff_ffff >= rejected).then_some(product >> 32)
}

/// Smallest accepted low half of a product, chosen so that all numbers are equally frequent.
const fn rejected_below(span: u64) -> u64 {
    ((1 << 32) - span) % span
}

/// Numbers drawn from a generator at a time; drawing one by one takes twice as long.
const DRAWN: usize = 1024;

/// Draws integers uniformly from the `span` values (at most 2^32) that start at `from`.
fn narrow_uniform<T: Integer>(bytes: &mut [u8], first: usize, (from, span): (i64, u64), source: &Source) {
    let rejected = rejected_below(span);
    parallel::chunks(bytes, CHUNK * T::SIZE, &|place, chunk| {
        let mut rng = source.stream(first + place);
        let (mut drawn, mut next) = ([0; 4 * DRAWN], 4 * DRAWN);
        for element in chunk.chunks_exact_mut(T::SIZE) {
            let number = loop {
                if next == drawn.len() {
                    rng.fill_bytes(&mut drawn);
                    next = 0;
                }
                let bits = u32::load(&drawn[next..next + 4]);
                next += 4;
                if let Some(number) = narrow_below(bits, span, rejected) {
                    break number;
                }
            };
            T::from_lane(from.wrapping_add(number as i64)).store(element);
        }
    });
}

/// Draws numbers uniformly from `[low, high)`: from 53 random bits for f64, from 32 for the narrower types.
fn uniform<T: Float>(bytes: &mut [u8], first: usize, (low, high): (f64, f64), source: &Source) {
    let (lowest, highest) = (T::nearest(low), T::nearest(high).below());
    let between = |unit: f64| {
        // A weighted mean of the bounds, since `high - low` may overflow.
        let drawn = T::nearest(low * (1.0 - unit) + high * unit);
        let inside = if drawn.wide() >= high { highest } else { drawn };
        if inside.wide() < low { lowest } else { inside }
    };
    let is_wide = T::SIZE == 8;
    let width = if is_wide { 8 } else { 4 };
    parallel::chunks(bytes, CHUNK * T::SIZE, &|place, chunk| {
        let mut rng = source.stream(first + place);
        let mut drawn = [0; 8 * DRAWN];
        for part in chunk.chunks_mut(DRAWN * T::SIZE) {
            let drawn = &mut drawn[..part.len() / T::SIZE * width];
            rng.fill_bytes(drawn);
            let elements = part.chunks_exact_mut(T::SIZE).zip(drawn.chunks_exact(width));
            if is_wide {
                let unit = |bits: &[u8]| (u64::load(bits) >> 11) as f64 * 2f64.powi(-53);
                elements.for_each(|(element, bits)| between(unit(bits)).store(element));
            } else {
                let unit = |bits: &[u8]| f64::from(u32::load(bits)) * 2f64.powi(-32);
                elements.for_each(|(element, bits)| between(unit(bits)).store(element));
            }
        }
    });
}

/// Draws normally distributed numbers with the Box–Muller method. Two uniform numbers yield two normal ones, so every
/// chunk starts a new pair.
fn normal<T: Typed>(
    bytes: &mut [u8],
    first: usize,
    (mean, deviation): (f64, f64),
    source: &Source,
    round: fn(f64) -> T,
) -> Result<(), Misfit> {
    if !mean.is_finite() || !deviation.is_finite() {
        return Err(Misfit::Normal(mean, deviation));
    }
    write(bytes, first, |number| {
        let mut rng = source.stream(number);
        let mut second = None;
        move |_| {
            let unit = second.take().unwrap_or_else(|| {
                let (first, other) = pair_of_normals(&mut rng);
                second = Some(other);
                first
            });
            round(mean + deviation * unit)
        }
    });
    Ok(())
}

fn pair_of_normals(rng: &mut ChaCha8Rng) -> (f64, f64) {
    // In (0, 1], so that the logarithm is finite.
    let radial = ((rng.next_u64() >> 11) + 1) as f64 * 2f64.powi(-53);
    let angle = TAU * ((rng.next_u64() >> 11) as f64 * 2f64.powi(-53));
    let radius = (-2.0 * libm::log(radial)).sqrt();
    (radius * libm::cos(angle), radius * libm::sin(angle))
}

#[cfg(test)]
mod tests;
