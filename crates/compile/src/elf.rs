//! What a cubin's ELF contains about its kernels: registers, stack frame, launch bounds.
//!
//! NVIDIA does not document the attributes. These were found in the output of NVRTC 12.9 and 13.0 and agree with the
//! assembler's log. Attributes that a cubin lacks stay unknown. Static shared memory is not read here, since on some
//! architectures the size of the section includes what the system reserves.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolIndex};

/// Attributes of all functions: symbol index, then the value.
const REGISTER_COUNT: u8 = 0x2f;
const FRAME_SIZE: u8 = 0x11;
/// The attribute of a kernel that holds the largest block dimensions: three numbers.
const MAX_THREADS: u8 = 0x05;

/// Format of an attribute whose value has its own length. The other formats have two bytes.
const SIZED: u8 = 0x04;

/// What the ELF contains about one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Attributes {
    pub registers: Option<u32>,
    /// The bytes of stack that each thread has.
    pub frame: Option<u32>,
    /// The largest number of threads per block that `__launch_bounds__` allows.
    pub max_threads: Option<u32>,
}

/// Mangled name → attributes; empty if the code is no cubin.
pub(super) fn attributes(cubin: &[u8]) -> BTreeMap<String, Attributes> {
    let mut found: BTreeMap<String, Attributes> = BTreeMap::new();
    let Ok(file) = ElfFile64::<Endianness>::parse(cubin) else { return found };
    for section in file.sections() {
        let (Ok(name), Ok(data)) = (section.name(), section.data()) else { continue };
        if name == ".nv.info" {
            for (attribute, value) in records(data) {
                let (Some(index), Some(number)) = (word(value, 0), word(value, 1)) else { continue };
                let symbol = file.symbol_by_index(SymbolIndex(index as usize));
                let Some(name) = symbol.ok().and_then(|symbol| symbol.name().ok().map(str::to_owned)) else { continue };
                match attribute {
                    REGISTER_COUNT => found.entry(name).or_default().registers = Some(number),
                    FRAME_SIZE => found.entry(name).or_default().frame = Some(number),
                    _ => {}
                }
            }
        } else if let Some(kernel) = name.strip_prefix(".nv.info.") {
            let bounds = records(data).find(|(attribute, _)| *attribute == MAX_THREADS);
            let extents = bounds.and_then(|(_, value)| Some([word(value, 0)?, word(value, 1)?, word(value, 2)?]));
            let threads = extents.and_then(|[x, y, z]| x.checked_mul(y)?.checked_mul(z));
            found.entry(kernel.to_owned()).or_default().max_threads = threads;
        }
    }
    found
}

/// Returns the records of a section: a byte of format, a byte of attribute, then either a length and that many bytes,
/// or two bytes.
fn records(data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (&[format, attribute, low, high], after) = rest.split_first_chunk::<4>()?;
        let length = if format == SIZED { usize::from(u16::from_le_bytes([low, high])) } else { 0 };
        let value = after.get(..length)?;
        rest = &after[length..];
        Some((attribute, value))
    })
}

/// Returns the little-endian word at position `at`.
fn word(value: &[u8], at: usize) -> Option<u32> {
    value.get(4 * at..4 * at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::model::CodeKind;
    use crate::nvrtc::{Nvrtc, Source};
    use crate::{Cache, Network, Requirement, Toolkit, log};

    const KERNELS: &str = "
extern \"C\" __global__ void __launch_bounds__(256) framed(float *p, int n) {
    float a[40];
    for (int i = 0; i < 40; i++) a[i] = p[i * n];
    for (int i = 0; i < n; i++) a[(i * 7) % 40] += a[i % 40];
    p[threadIdx.x] = a[n % 40];
}
extern \"C\" __global__ void small(int *p) { p[threadIdx.x] = 1; }
";

    #[test]
    fn the_elf_agrees_with_the_assemblers_log_on_every_architecture() {
        let cache = Cache::locate().unwrap();
        let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
        let nvrtc = Nvrtc::open(&toolkit.library, &toolkit.builtins).unwrap();
        let source = Source {
            text: KERNELS,
            name: "k.cu",
            expressions: &["framed".to_owned(), "small".to_owned()],
            options: &["--ptxas-options=-v".to_owned()],
            headers: &[],
        };
        for architecture in ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"] {
            let product = nvrtc.compile(&source, architecture, CodeKind::Cubin).unwrap();
            let (found, log) = (attributes(&product.code), log::read(&product.log));
            for kernel in ["framed", "small"] {
                let (elf, figures) = (found[kernel], log.figures[kernel]);
                assert!(elf.registers.unwrap() > 0);
                assert_eq!(elf.registers, figures.registers, "{kernel} for {architecture}");
                assert_eq!(elf.frame, figures.stack, "{kernel} for {architecture}");
            }
            // Forty floats that are indexed at run time.
            assert_eq!(found["framed"].frame, Some(160), "{architecture}");
            assert_eq!(found["framed"].max_threads, Some(256), "{architecture}");
            assert_eq!(found["small"].max_threads, None, "{architecture}");
        }
    }

    #[test]
    fn what_is_no_cubin_has_no_attributes() {
        assert!(attributes(b"//\n.version 9.0\n").is_empty());
        assert!(attributes(&[]).is_empty());
    }
}
