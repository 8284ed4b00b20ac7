//! The control bits of an instruction.
//!
//! Since Volta, the compiler schedules instructions. Each instruction states how long the warp waits before the next
//! one, which of six barriers it waits for, and which it sets. Jia, Maggioni, Staiger and Scarpazza found the layout
//! for Volta ("Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1). Turing, Ampere,
//! Ada and Hopper use the same one.

/// What an instruction tells the warp scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Control {
    /// Cycles until the warp's next instruction may issue, 0 to 15.
    pub stall: u8,
    /// Whether the scheduler prefers another warp for the next cycle.
    pub yields: bool,
    /// Barrier that is released once the result is written, 0 to 5.
    pub write_barrier: Option<u8>,
    /// Barrier that is released once the operands are read, 0 to 5.
    pub read_barrier: Option<u8>,
    /// Barriers that must be released before the instruction issues; bit 0 is barrier 0.
    pub wait_mask: u8,
    /// Operands to keep in the reuse cache; bit 0 is the first register operand. Branches, texture instructions and
    /// sparse matrix instructions use these bits differently.
    pub reuse: u8,
}

/// Field value that means no barrier.
const NO_BARRIER: u8 = 7;

impl Control {
    /// Decodes the control bits of an instruction word. Bit 0 of the word is the lowest bit of its first byte.
    pub const fn decode(word: u128) -> Self {
        Self {
            stall: field(word, 105, 4),
            // The bit is 0 if the warp yields.
            yields: field(word, 109, 1) == 0,
            write_barrier: barrier(field(word, 110, 3)),
            read_barrier: barrier(field(word, 113, 3)),
            wait_mask: field(word, 116, 6),
            reuse: field(word, 122, 4),
        }
    }

    /// Returns the barriers that the instruction waits for, in ascending order.
    pub fn waits(self) -> impl Iterator<Item = u8> {
        (0..6).filter(move |barrier| self.wait_mask >> barrier & 1 == 1)
    }
}

const fn field(word: u128, low: u32, bits: u32) -> u8 {
    (word >> low) as u8 & ((1 << bits) - 1)
}

const fn barrier(field: u8) -> Option<u8> {
    if field == NO_BARRIER { None } else { Some(field) }
}

#[cfg(test)]
mod tests {
    use super::Control;

    /// Decodes the two halves in the order in which `nvdisasm -hex` prints them, low word first.
    fn decode(low: u64, high: u64) -> Control {
        Control::decode(u128::from(high) << 64 | u128::from(low))
    }

    #[test]
    fn a_load_sets_a_barrier_and_its_consumer_waits_for_it() {
        // `LDG.E R5, desc[UR6][R4.64]` and `FFMA R8, R5, R5, R8`, from a sum of squares compiled for `sm_90`.
        let load = decode(0x0000_0006_0405_7981, 0x000e_a200_0c1e_1900);
        assert_eq!((load.stall, load.write_barrier, load.read_barrier), (1, Some(2), None));
        assert_eq!(load.waits().count(), 0);
        let product = decode(0x0000_0005_0508_7223, 0x004f_d800_0000_0008);
        assert_eq!(product.waits().collect::<Vec<_>>(), [2]);
        assert_eq!((load.yields, product.stall, product.yields, product.write_barrier), (false, 12, true, None));
    }

    #[test]
    fn a_reused_operand_is_marked() {
        // ISETP.GT.U32.AND P1, PT, R3.reuse, 0x7f, PT
        let compare = decode(0x0000_007f_0300_780c, 0x040f_e400_03f2_4070);
        assert_eq!((compare.reuse, compare.stall), (1, 2));
    }
}
