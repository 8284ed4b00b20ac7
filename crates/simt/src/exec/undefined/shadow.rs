//! How instructions read and change the undefined bits of a warp's registers.

use crate::error::Site;
use crate::exec::context::Context;
use crate::exec::undefined::state::{Shadow, Source};
use crate::program::ins::{Area, Ins, Slot};
use crate::program::row::{LANES, Row};
use crate::program::{Origin, Position, Width};

/// Bit that is set if a value is not a plain copy of what was read.
const COMPUTED: u16 = 1 << 15;

/// What the loader recorded about an instruction.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    pub place: Position,
    pub origin: Origin,
    pub defs: u8,
    /// Mask of the destinations that some instruction reads.
    pub read: u8,
    pub widths: [Width; 6],
    /// Whether the loader generated only this instruction for its PTX instruction.
    pub whole: bool,
}

impl Info {
    /// Looks up an instruction of the current function.
    pub fn at(cx: &Context<'_>, i: &Ins) -> Option<Self> {
        let code = &cx.launch.kernel.functions[cx.function];
        let bytes = std::ptr::from_ref(i).addr().checked_sub(code.ins.as_ptr().addr())?;
        let origin = *code.origins.get(bytes / size_of::<Ins>())?;
        let place = Position { function: cx.function, line: i.line };
        Some(match origin {
            Origin::Instruction { defs, read, widths, counts, .. } => {
                Self { place, origin, defs, read, widths, whole: counts > 0 }
            }
            _ => Self { place, origin, defs: 0, read: 0, widths: [Width::None; 6], whole: false },
        })
    }

    /// Returns the opcode; empty for an instruction that the loader added.
    pub fn opcode<'k>(&self, cx: &Context<'k>) -> &'k str {
        let Origin::Instruction { opcode, .. } = self.origin else { return "" };
        &cx.launch.kernel.opcodes[opcode as usize]
    }

    /// Whether the instruction uses or sets the carry flag.
    pub fn has_carry(&self, cx: &Context<'_>) -> bool {
        let opcode = self.opcode(cx);
        let name = opcode.split('.').next().unwrap_or_default();
        matches!(name, "addc" | "subc" | "madc") || opcode.split('.').any(|modifier| modifier == "cc")
    }

    /// Returns the size of a load's or store's elements in bytes, and the lanes that access memory.
    pub fn access(&self, cx: &Context<'_>) -> (u32, u32) {
        let opcode = self.opcode(cx);
        if opcode.contains("matrix") {
            let lanes = if opcode.contains(".x1") {
                8
            } else if opcode.contains(".x2") {
                16
            } else {
                32
            };
            return (4, u32::MAX >> (32 - lanes));
        }
        let ty = opcode.rsplit('.').next().unwrap_or_default();
        let bits = ty.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().unwrap_or(32_u32);
        // 128-bit elements are handled as two of 64 bits.
        ((bits / 8).min(8), cx.mask)
    }

    /// Returns the registers that the instruction writes, or those that it reads.
    pub fn operands(&self, written: bool) -> impl Iterator<Item = usize> + use<> {
        let (defs, widths) = (self.defs, self.widths);
        (0..6).filter(move |&k| widths[k] != Width::None && (defs >> k & 1 == 1) == written)
    }
}

/// Number of rows after the registers: copies of registers, by operand number, and zeros.
const SPARE: usize = 4 * (ZEROS + 1);
/// Index of the zeros among the copies.
const ZEROS: usize = 6;

impl Shadow {
    pub fn fit(&mut self, cx: &Context<'_>) {
        let rows = cx.warp.registers.len();
        if self.bits.len() < rows + SPARE {
            self.bits.truncate(rows.min(self.bits.len().saturating_sub(SPARE)));
            self.bits.resize(rows + SPARE, Row([0; LANES]));
            self.from.resize(rows * LANES, 0);
        }
        self.steps += 1;
    }

    /// Whether no register is undefined any more. Checked only after the first load, and from time to time.
    pub fn is_clear(&self) -> bool {
        let rows = self.bits.len() - SPARE;
        (self.steps == 1 || self.steps.is_multiple_of(64))
            && self.carry == 0
            && self.bits[..rows].iter().all(|row| row.0.iter().all(|&bits| bits == 0))
    }

    /// Returns the index of a register's first word.
    fn word(cx: &Context<'_>, slot: Slot) -> usize {
        (cx.registers + (slot.0 & !3)) as usize / 4
    }

    fn at(&mut self, word: usize) -> &mut u32 {
        &mut self.bits[word / LANES].0[word % LANES]
    }

    /// Returns the undefined bits of a register in one lane; zero for an operand that is not a register.
    pub fn get(&self, cx: &Context<'_>, (slot, width): (Slot, Width), lane: usize) -> u128 {
        let words = width.words();
        if width == Width::None || slot.0 & 3 != Area::Frame as u32 {
            return 0;
        }
        let first = Self::word(cx, slot);
        let word = |at: usize| self.bits[at / LANES].0[at % LANES];
        if width == Width::Pred {
            return u128::from(word(first) >> lane & 1);
        }
        (0..words).fold(0, |bits, k| bits | u128::from(word(first + lane * words + k)) << (32 * k))
    }

    /// Sets the undefined bits of a register in one lane.
    pub fn set(&mut self, cx: &Context<'_>, (slot, width): (Slot, Width), lane: usize, bits: u128) {
        let (first, words) = (Self::word(cx, slot), width.words());
        match width {
            Width::None => {}
            Width::Pred => {
                let word = self.at(first);
                *word = *word & !(1 << lane) | u32::from(bits != 0) << lane;
            }
            _ => (0..words).for_each(|k| *self.at(first + lane * words + k) = (bits >> (32 * k)) as u32),
        }
    }

    /// Returns the active lanes in which a register has undefined bits.
    pub fn lanes(&self, cx: &Context<'_>, operand: (Slot, Width)) -> u32 {
        if operand.1 == Width::Pred && operand.0.0 & 3 == Area::Frame as u32 {
            let word = Self::word(cx, operand.0);
            return self.bits[word / LANES].0[word % LANES] & cx.mask;
        }
        active(cx.mask).filter(|&lane| self.get(cx, operand, lane) != 0).fold(0, |m, lane| m | 1 << lane)
    }

    /// Returns the origin of a register's undefined value.
    pub fn source(&self, cx: &Context<'_>, slot: Slot) -> Option<&Source> {
        self.sources.get((*self.from.get(Self::word(cx, slot))? & !COMPUTED) as usize)
    }

    /// Whether a register's undefined value is not a plain copy of memory.
    pub fn is_computed(&self, cx: &Context<'_>, slot: Slot) -> bool {
        self.from.get(Self::word(cx, slot)).is_some_and(|from| from & COMPUTED != 0)
    }

    /// Passes the origin of an undefined value on to a register that is a copy of it or is computed from it.
    pub fn pass(&mut self, cx: &Context<'_>, from: Slot, to: Slot, is_copy: bool) {
        if let Some(&source) = self.from.get(Self::word(cx, from)) {
            self.from[Self::word(cx, to)] = source | if is_copy { 0 } else { COMPUTED };
        }
    }

    /// Records that a register's undefined value was read from memory.
    pub fn comes_from(&mut self, cx: &Context<'_>, to: Slot, place: Position, site: impl FnOnce() -> Site) {
        let number = self.sources.iter().position(|source| source.place == place).unwrap_or_else(|| {
            self.sources.push(Source { place, site: site() });
            self.sources.len() - 1
        });
        self.from[Self::word(cx, to)] = (number as u16).min(COMPUTED - 1);
    }

    /// Returns the start of the shadow bits, which are laid out like the running function's registers.
    pub fn base(&mut self, cx: &Context<'_>) -> *mut u8 {
        self.bits.as_mut_ptr().cast::<u8>().wrapping_add(cx.registers as usize)
    }

    fn spare(&self, cx: &Context<'_>, number: usize) -> Slot {
        let row = self.bits.len() - SPARE + 4 * number;
        Slot::new(Area::Frame, (row * size_of::<Row<u32>>()) as u32 - cx.registers)
    }

    /// Copies a register's value to a spare row.
    fn hold(&mut self, cx: &Context<'_>, (slot, width): (Slot, Width), number: usize) -> Slot {
        let row = self.bits.len() - SPARE + 4 * number;
        let word = Self::word(cx, slot);
        if width == Width::Pred {
            self.bits[row].0[0] = cx.warp.registers[word / LANES].0[word % LANES];
        }
        for k in 0..width.words() {
            self.bits[row + k] = cx.warp.registers[word / LANES + k];
        }
        self.spare(cx, number)
    }

    /// Returns an instruction that moves undefined bits the way `i` moves values. Operands at `control` and above
    /// keep their values. Also returns the lanes in which one of these is undefined.
    pub fn mirror(&mut self, cx: &Context<'_>, (i, info): (&Ins, &Info), control: usize) -> (Ins, u32) {
        let (mut mirrored, mut undefined) = (*i, 0);
        for k in (0..6).filter(|&k| i.o[k] != Slot::NONE) {
            let operand = (i.o[k], info.widths[k]);
            let is_written = info.defs >> k & 1 == 1;
            mirrored.o[k] = match operand.1 {
                Width::Pred if is_written => Slot::NONE,
                Width::None if !is_written && k < control => self.spare(cx, ZEROS),
                width if !is_written && k >= control && width != Width::None => {
                    undefined |= self.lanes(cx, operand);
                    self.hold(cx, operand, k)
                }
                _ => operand.0,
            };
        }
        (mirrored, undefined)
    }

    /// Copies the undefined bits of arguments or results, for the lanes in a mask.
    pub fn copy_locals(&mut self, mask: u32, from: u32, to: u32, bytes: u32) {
        for k in 0..bytes.div_ceil(4) {
            let lanes = self.locals.get(&(from / 4 + k)).copied().unwrap_or(0);
            self.set_local(to / 4 + k, mask, lanes & mask);
        }
    }

    /// Records the lanes of `mask` in which a word of local memory is undefined.
    pub fn set_local(&mut self, word: u32, mask: u32, undefined: u32) {
        let lanes = self.locals.entry(word).or_insert(0);
        *lanes = *lanes & !mask | undefined;
    }
}

/// Iterates over the lanes in a mask.
pub fn active(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}
