//! Names an instruction's operation from its word, so that instructions can be counted without a disassembler.
//!
//! The lowest nine bits of a word are the operation, and the next three are the form of its operands. The table was
//! derived from nvdisasm 13.2's output for `sm_90`. Code for `sm_75` to `sm_89` uses the same numbers.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::{Cubin, Function, INSTRUCTION_BYTES, Place, Tables};

/// Operations by hexadecimal number. Operations that share a number differ in other bits, and share one name here.
const NAMES: &str = "
    002 MOV  003 P2R  004 R2P  005 CS2R  006 VOTE  007 SEL  008 FSEL  009 FMNMX  00a FSET  00b FSETP  00c ISETP
    00f VIMNMX3  010 IADD3  011 LEA  012 LOP3  013 IABS  014 VABSDIFF  015 VABSDIFF4  016 PRMT  017 IMNMX  019 SHF
    01a SGXT  01b BMSK  01c PLOP3  01f PLOP3  020 FMUL  021 FADD  023 FFMA  024 IMAD  025 IMAD  026 IDP  027 IMAD
    028 DMUL  029 DADD  02a DSETP  02b DFMA  02f ELECT  030 HADD2  031 HFMA2  032 HMUL2  033 HSET2  034 HSETP2
    035 HFMA2  036 VIADD  037 IMMA  03b LDSM  03c HMMA  03e F2FP  03f DMMA  040 HMNMX2  045 I2FP  046 VIADDMNMX
    048 VIMNMX  082 UMOV  086 VOTEU  087 USEL  08c UISETP  090 UIADD3  091 ULEA  092 ULOP3  096 UPRMT  097 UIADD3
    099 USHF  0a4 UIMAD  0a5 UIMAD  0b9 ULDC  0bd UFLO  0bf UPOPC  0ca R2UR  100 FLO  101 BREV  102 FCHK  104 F2F
    105 F2I  106 I2F  107 FRND  108 MUFU  109 POPC  110 F2F  111 F2I  112 I2F  113 FRND  118 NOP  119 S2R
    11a DEPBAR  11b ENDCOLLECTIVE  11c B2R  11d BAR  141 BSYNC  142 BREAK  143 CALL  144 CALL  145 BSSY  146 YIELD
    147 BRA  148 WARPSYNC  149 BRX  14d EXIT  150 RET  155 BMOV  156 BMOV  15c BPT  15d NANOSLEEP  180 LD  181 LDG
    182 LDC  183 LDL  184 LDS  185 ST  186 STG  187 STL  188 STS  189 SHFL  18a ATOM  18b ATOM  18c ATOMS
    18d ATOMS  18e REDG  18f CCTL  192 MEMBAR  1a1 MATCH  1a2 ATOM  1a3 ATOMG  1a6 REDG  1a7 SYNCS  1a8 ATOMG
    1a9 ATOMG  1aa QSPC  1ab ERRBAR  1ae LDGSTS  1af LDGDEPBAR  1b0 ARRIVES  1b1 SYNCS  1b2 SYNCS
    1b7 UTMACMDFLUSH  1ba UBLKCP  1bb UBLKRED  1bc UBLKPF  1c3 S2UR  1c4 REDUX  1c6 FENCE  1c7 UCGABAR
";

/// Operation that pads the end of the code.
const PADDING: &str = "NOP";

/// Bits of a word that contain the operation.
const OPERATION: u128 = 0x1ff;

/// Architectures that use these numbers.
const KNOWN: std::ops::RangeInclusive<u32> = 70..=90;

impl Cubin<'_> {
    /// Counts the instructions of a function by operation, without padding. Unknown operations count as `OTHER`. `None`
    /// for an unknown architecture.
    pub fn count_operations(&self, function: &Function) -> Option<BTreeMap<&'static str, u32>> {
        KNOWN.contains(&self.architecture()).then(|| {
            let mut counts = BTreeMap::new();
            for name in function.words.iter().map(|word| name(*word)).filter(|name| *name != PADDING) {
                *counts.entry(name).or_default() += 1;
            }
            counts
        })
    }

    /// Returns the operations of a function in order, without padding. Each has its source line and the lines of the
    /// inlined calls, innermost first.
    pub fn list_operations<'t>(
        &self,
        function: &Function,
        tables: &'t Tables,
    ) -> impl Iterator<Item = (&'static str, Vec<&'t Place>)> {
        let offsets = (function.start..).step_by(INSTRUCTION_BYTES as usize);
        let named = offsets.zip(&function.words).map(|(offset, word)| (offset, name(*word)));
        let named = named.filter(|(_, name)| *name != PADDING);
        named.map(|(offset, name)| (name, tables.source.places(function.section, offset)))
    }
}

fn name(word: u128) -> &'static str {
    static TABLE: OnceLock<BTreeMap<u128, &str>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let words: Vec<&str> = NAMES.split_whitespace().collect();
        let (pairs, _) = words.as_chunks::<2>();
        pairs.iter().filter_map(|[number, name]| Some((u128::from_str_radix(number, 16).ok()?, *name))).collect()
    });
    table.get(&(word & OPERATION)).copied().unwrap_or("OTHER")
}
