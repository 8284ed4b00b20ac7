//! Lowers `wmma`: loads and stores of fragments become plain accesses, and products become two `mma`.
//!
//! PTX does not specify which lane holds which element of a fragment. Here, fragments have the layout of `mma`: a 16 ×
//! 16 result consists of two halves of eight columns, a 32 × 8 result of two halves of sixteen rows, and an 8 × 32
//! result is the product of the transposed matrices. Some f16 fragments have more registers than they need.

use crate::exec::matrix::{self, Element, Multiply};
use crate::exec::vector::binary;
use crate::isa::address::{address, space};
use crate::isa::decode::{Done, Form, elements};
use crate::isa::matrix::{multiply_doubles, pack, rounding, unpack};
use crate::isa::{memory, moves};
use crate::mir::builder::Builder;
use crate::mir::{Class, Opnd};
use crate::program::aux::Access;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B32, B64, F32, S32, U8, U16, U32, U64};

/// Rows of an `mma` product.
const ROWS: u32 = 16;
/// Columns of an `mma` product.
const COLUMNS: u32 = 8;
/// Number of registers of an f16 fragment.
const REGISTERS_OF_HALVES: usize = 8;

/// Shape of a product: rows of A, columns of B, and depth.
#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: u32,
    columns: u32,
    depth: u32,
    /// Whether the matrices are transposed, so that A is the instruction's B.
    transposed: bool,
}

impl Shape {
    /// Consumes the shape.
    fn take(f: &mut Form<'_, '_>) -> Result<Self, String> {
        let of = |rows, columns, depth, transposed| Self { rows, columns, depth, transposed };
        let shapes = [
            ("m16n16k16", of(16, 16, 16, false)),
            ("m32n8k16", of(32, 8, 16, false)),
            ("m8n32k16", of(32, 8, 16, true)),
            ("m16n16k8", of(16, 16, 8, false)),
            ("m8n8k4", of(8, 8, 4, false)),
        ];
        let found = shapes.iter().find(|(name, _)| f.flag(name)).map(|(_, shape)| *shape);
        found.ok_or_else(|| format!("the simulated shapes are {}", shapes.map(|(name, _)| name).join(", ")))
    }

    const fn is_of_doubles(self) -> bool {
        self.depth == 4
    }

    /// Splits the product into `mma` products, given by the indices of their rows and columns.
    fn products(self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.rows / ROWS).flat_map(move |row| (0..self.columns / COLUMNS).map(move |column| (row, column)))
    }
}

/// How the lane determines an index: by its group of four, or by its position in the group times a factor.
#[derive(Debug, Clone, Copy)]
enum Part {
    Group,
    Place(u32),
}

/// A contiguous piece of a register in memory: its distance from the lane's first element, in lines and elements, and
/// its bit position in the register.
#[derive(Debug, Clone, Copy)]
struct Piece {
    line: u32,
    element: u32,
    below: u32,
}

/// A fragment in memory. Its lines are rows, or columns in column-major layout.
#[derive(Debug)]
struct Fragment {
    /// How the lane determines the line, and the index within the line.
    lane: [Part; 2],
    registers: Vec<Vec<Piece>>,
    /// Size of an element and of a piece, in bytes.
    bytes: [u32; 2],
    /// Default leading dimension, in elements.
    leading: u32,
    /// Number of registers in the instruction, which may exceed the number needed.
    count: usize,
}

impl Fragment {
    /// Returns a fragment of A or B.
    fn factor(element: Element, is_a: bool, shape: Shape, by_rows: bool) -> Self {
        let each = element.in_register() as u32;
        let quarters = shape.depth / (4 * each);
        // The elements of a register are consecutive along the depth: in a row of A, or in a column of B.
        let contiguous = is_a == by_rows;
        let register = |other: u32, quarter: u32| -> Vec<Piece> {
            let along = |at: u32| 4 * each * quarter + at;
            let piece = |at: u32| {
                let (line, element) = if contiguous { (8 * other, along(at)) } else { (along(at), 8 * other) };
                Piece { line, element, below: 32 / each * at }
            };
            (0..if contiguous { 1 } else { each }).map(piece).collect()
        };
        // In each product, registers of A alternate between the upper and the lower rows.
        let lines = if is_a { shape.rows } else { shape.columns };
        let order = (0..lines / 8 * quarters).map(|k| match (k / (2 * quarters), k % (2 * quarters)) {
            (product, k) if is_a => (2 * product + k % 2, k / 2),
            _ => (k / quarters, k % quarters),
        });
        let registers: Vec<Vec<Piece>> = order.map(|(other, quarter)| register(other, quarter)).collect();
        let lane = if contiguous { [Part::Group, Part::Place(each)] } else { [Part::Place(each), Part::Group] };
        let count = if element == Element::F16 { REGISTERS_OF_HALVES } else { registers.len() };
        let leading = if contiguous { shape.depth } else { lines };
        Self { lane, registers, bytes: [4 / each, if contiguous { 4 } else { 4 / each }], leading, count }
    }

    /// Returns a fragment of the addend or the result, with f16 or 32-bit elements.
    fn result(halves: bool, shape: Shape, by_rows: bool) -> Self {
        let piece = |(rows, columns): (u32, u32), k: u32| {
            let (row, column) = (ROWS * rows + 8 * (k / 2), COLUMNS * columns + k % 2);
            let below = if halves { 16 * (k % 2) } else { 0 };
            if by_rows {
                Piece { line: row, element: column, below }
            } else {
                Piece { line: column, element: row, below }
            }
        };
        let each = if halves { 2 } else { 1 };
        let joins = halves && by_rows;
        let register = |product, register: u32| -> Vec<Piece> {
            (0..if joins { 1 } else { each }).map(|at| piece(product, each * register + at)).collect()
        };
        let registers: Vec<Vec<Piece>> =
            shape.products().flat_map(|product| (0..4 / each).map(move |k| register(product, k))).collect();
        let lane = if by_rows { [Part::Group, Part::Place(2)] } else { [Part::Place(2), Part::Group] };
        let size = 4 / each;
        let leading = if by_rows { shape.columns } else { shape.rows };
        Self { lane, bytes: [size, if joins { 4 } else { size }], leading, count: registers.len(), registers }
    }

    /// Returns an f64 fragment: a row of A or column of B with four elements, or two columns of the result.
    fn doubles(what: &str, by_rows: bool) -> Self {
        let each = if matches!(what, "a" | "b") { 1 } else { 2 };
        let along_groups = (what == "b") != by_rows;
        let piece = |at: u32| {
            let (line, element) = if along_groups { (0, at) } else { (at, 0) };
            vec![Piece { line, element, below: 0 }]
        };
        Self {
            lane: if along_groups { [Part::Group, Part::Place(each)] } else { [Part::Place(each), Part::Group] },
            registers: (0..each).map(piece).collect(),
            bytes: [8, 8],
            leading: if along_groups && each == 1 { 4 } else { 8 },
            count: each as usize,
        }
    }

    const fn is_of_doubles(&self) -> bool {
        self.bytes[1] == 8
    }
}

/// Consumes the element type; `None` if it is not simulated.
fn element(f: &mut Form<'_, '_>) -> Option<Element> {
    let name = f.one_of(&["f16", "bf16", "tf32", "s8", "u8"])?;
    Element::from_name(name)
}

/// Addresses of a fragment's lines in memory.
struct Lines {
    first: Opnd,
    /// Bytes between consecutive lines.
    step: Opnd,
    known: Vec<(u32, Opnd)>,
    imm: i64,
    aux: Access,
}

fn multiply(b: &mut Builder<'_, '_>, x: Opnd, by: Opnd) -> Opnd {
    let to = Opnd::Reg(b.fresh(Class::Wide));
    b.emit(binary(b.isa, |x: u64, by: u32| x.wrapping_mul(u64::from(by))), [to, x, by], 1, 0, 0);
    b.uncount_last();
    to
}

fn add(b: &mut Builder<'_, '_>, x: Opnd, y: Opnd) -> Opnd {
    let to = Opnd::Reg(b.fresh(Class::Wide));
    b.emit(binary(b.isa, |x: u64, y: u64| x.wrapping_add(y)), [to, x, y], 1, 0, 0);
    b.uncount_last();
    to
}

impl Lines {
    /// Lowers the address and the optional stride of an instruction.
    fn new<'a>(
        b: &mut Builder<'a, '_>,
        fragment: &Fragment,
        (place, space): (&Operand<'a>, Access),
        stride: Option<&Operand<'a>>,
    ) -> Result<Self, String> {
        let (row, offset, mut aux) = address(b, place, space)?;
        let mut imm = offset;
        let base = if aux.contains(Access::ABSOLUTE) {
            aux.remove(Access::ABSOLUTE);
            imm = 0;
            b.parts.constants.uniform(offset as u64, true)
        } else if aux.contains(Access::NARROW) {
            aux.remove(Access::NARROW);
            b.adapt(row, Class::Narrow, Class::Wide, false)
        } else {
            row
        };
        let size = b.parts.constants.uniform(u64::from(fragment.bytes[0]), true);
        let stride = match stride {
            Some(stride) => b.src(stride, U32)?,
            None => b.parts.constants.uniform(u64::from(fragment.leading), false),
        };
        let step = multiply(b, size, stride);
        let part = |b: &mut Builder<'a, '_>, part: Part| match part {
            Part::Group => b.parts.constants.lanes("group of four lanes", |lane| lane / 4),
            Part::Place(1) => b.parts.constants.lanes("place in a group of four lanes", |lane| lane % 4),
            Part::Place(2) => b.parts.constants.lanes("place in a group of four lanes, twice", |lane| lane % 4 * 2),
            Part::Place(_) => {
                b.parts.constants.lanes("place in a group of four lanes, four times", |lane| lane % 4 * 4)
            }
        };
        let [line, element] = fragment.lane.map(|which| part(b, which));
        let line = multiply(b, step, line);
        let element = multiply(b, size, element);
        let within = add(b, line, element);
        Ok(Self { first: add(b, base, within), step, known: Vec::new(), imm, aux })
    }

    /// Returns the address of the lane's part in a line.
    fn line(&mut self, b: &mut Builder<'_, '_>, number: u32) -> Opnd {
        if number == 0 {
            return self.first;
        }
        if let Some((_, known)) = self.known.iter().find(|(line, _)| *line == number) {
            return *known;
        }
        let by = b.parts.constants.uniform(u64::from(number), false);
        let distance = multiply(b, self.step, by);
        let at = add(b, self.first, distance);
        self.known.push((number, at));
        at
    }

    fn imm(&self, fragment: &Fragment, piece: Piece) -> i64 {
        self.imm + i64::from(piece.element * fragment.bytes[0])
    }

    fn aux(&self) -> u32 {
        self.aux.with_elements(1).bits()
    }
}

const fn piece_type(fragment: &Fragment) -> ScalarType {
    match fragment.bytes[1] {
        1 => U8,
        2 => U16,
        8 => U64,
        _ => U32,
    }
}

pub fn lower<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["sync", "aligned"]);
    if f.flag("mma") {
        return product(b, f);
    }
    let shape = Shape::take(f)?;
    let which = f.one_of(&["load", "store"]).ok_or("expected `.load`, `.store` or `.mma`")?;
    let what = f.one_of(&["a", "b", "c", "d"]).ok_or("expected `.a`, `.b`, `.c` or `.d`")?;
    let by_rows = f.flag("col") == shape.transposed;
    f.flag("row");
    let space = space(f);
    let fragment = match what {
        _ if f.flag("f64") != shape.is_of_doubles() => {
            return Err("`.m8n8k4` needs `.f64`, and `.f64` needs `.m8n8k4`".to_owned());
        }
        _ if shape.is_of_doubles() => Fragment::doubles(what, by_rows),
        "a" | "b" => {
            let element = element(f).ok_or("this type is not simulated")?;
            Fragment::factor(element, (what == "a") != shape.transposed, shape, by_rows)
        }
        _ => {
            let halves = f.flag("f16");
            f.ignore(&["f32", "s32"]);
            Fragment::result(halves, shape, by_rows)
        }
    };
    f.done()?;
    if which == "load" { load(b, f, space, &fragment) } else { store(b, f, space, &fragment) }
}

fn load<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>, space: Access, fragment: &Fragment) -> Done {
    let targets = elements(f.operand(0)?, fragment.count, "registers of a fragment")?;
    let mut lines = Lines::new(b, fragment, (f.operand(1)?, space), f.operand(2).ok())?;
    let run = memory::loader(b, piece_type(fragment), false)?;
    let is_wide = fragment.is_of_doubles();
    let (class, ty) = if is_wide { (Class::Wide, B64) } else { (Class::Narrow, B32) };
    let mut values = Vec::new();
    for pieces in &fragment.registers {
        let mut value = None;
        for piece in pieces {
            let from = lines.line(b, piece.line);
            let part = Opnd::Reg(b.fresh(class));
            let (imm, aux) = (lines.imm(fragment, *piece), lines.aux());
            b.emit(run, [part, Opnd::None, Opnd::None, Opnd::None, from], 1, imm, aux);
            b.uncount_last();
            value = Some(match value {
                None => part,
                Some(lower) => {
                    let by = b.parts.constants.uniform(u64::from(piece.below), false);
                    let [shifted, both] = [0; 2].map(|_| Opnd::Reg(b.fresh(Class::Narrow)));
                    b.emit(binary(b.isa, |x: u32, by: u32| x << by), [shifted, part, by], 1, 0, 0);
                    b.uncount_last();
                    b.emit(binary(b.isa, |x: u32, y: u32| x | y), [both, lower, shifted], 1, 0, 0);
                    b.uncount_last();
                    both
                }
            });
        }
        values.extend(value);
    }
    for (target, value) in targets.iter().zip(values.iter().cycle()) {
        let d = b.dst(target, ty)?;
        if d != Opnd::None {
            moves::copy(b, d, *value, is_wide);
            b.uncount_last();
        }
    }
    b.count_last();
    Ok(())
}

fn store<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>, space: Access, fragment: &Fragment) -> Done {
    let sources = elements(f.operand(1)?, fragment.count, "registers of a fragment")?;
    let mut lines = Lines::new(b, fragment, (f.operand(0)?, space), f.operand(2).ok())?;
    let run = memory::storer(b, piece_type(fragment))?;
    for (source, pieces) in sources.iter().zip(&fragment.registers) {
        let value = b.src(source, if fragment.is_of_doubles() { B64 } else { B32 })?;
        for piece in pieces {
            let to = lines.line(b, piece.line);
            let mut part = value;
            if piece.below > 0 {
                let by = b.parts.constants.uniform(u64::from(piece.below), false);
                part = Opnd::Reg(b.fresh(Class::Narrow));
                b.emit(binary(b.isa, |x: u32, by: u32| x >> by), [part, value, by], 1, 0, 0);
                b.uncount_last();
            }
            let (imm, aux) = (lines.imm(fragment, *piece), lines.aux());
            b.emit(run, [to, part, Opnd::None, Opnd::None, Opnd::None], 0, imm, aux);
            b.uncount_last();
        }
    }
    b.count_last();
    Ok(())
}

/// Lowers `wmma.mma`. Fragments do not depend on the memory layouts of A and B.
fn product<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let shape = Shape::take(f)?;
    f.ignore(&["row", "col"]);
    if shape.is_of_doubles() {
        f.ignore(&["rn", "f64"]);
        f.done()?;
        return multiply_doubles(b, f);
    }
    let saturates = f.flag("satfinite");
    let types: Vec<&str> = f.ins.opcode.split('.').filter(|m| !matches!(*m, "satfinite")).collect();
    let (d, a, right, c) = match types[..] {
        [.., d, a, right, c] if Element::from_name(a).is_some() && !d.starts_with('m') => (d, a, right, c),
        [.., d, c] => (d, "f16", "f16", c),
        _ => return Err("expected the types of the matrices".to_owned()),
    };
    f.ignore(&["f16", "bf16", "tf32", "s8", "u8", "f32", "s32"]);
    f.done()?;
    let (Some(a), Some(right), true) = (Element::from_name(a), Element::from_name(right), d == c) else {
        return Err("these types are not simulated".to_owned());
    };
    let (fraction, group) = rounding(b.globals.target, a);
    let halves = d == "f16";
    let depth = shape.depth as usize;
    let what = Multiply { a, b: right, depth, exclusive: false, halves, saturates, fraction, group };
    let quarters = depth / (4 * a.in_register());
    let factor = |at: usize| {
        let count = Fragment::factor(a, (at == 1) != shape.transposed, shape, true).count;
        elements(f.operand(at)?, count, "registers of a fragment")
    };
    let (left, right) = if shape.transposed { (factor(2)?, factor(1)?) } else { (factor(1)?, factor(2)?) };
    let (count, ty) = match c {
        "f16" => (2, B32),
        "f32" => (4, F32),
        _ => (4, S32),
    };
    let addend = elements(f.operand(3)?, 2 * count, "registers of a fragment")?;
    let targets = elements(f.operand(0)?, 2 * count, "registers of a fragment")?;
    let mut results = Vec::new();
    for ((row, column), addend) in shape.products().zip(addend.chunks(count)) {
        let [row, column] = [row, column].map(|number| number as usize);
        let left = pack(b, &left[row * 2 * quarters..][..2 * quarters], B32)?;
        let right = pack(b, &right[column * quarters..][..quarters], B32)?;
        let addend = pack(b, addend, ty)?;
        let result = Opnd::Reg(b.fresh(Class::Quad));
        b.emit(matrix::multiply, [result, left, right, addend], 1, what.to_imm(), 0);
        b.uncount_last();
        results.push(result);
    }
    b.count_last();
    for (targets, result) in targets.chunks(count).zip(results) {
        unpack(b, targets, ty, result)?;
    }
    Ok(())
}
