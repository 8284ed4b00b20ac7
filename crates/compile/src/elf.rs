//! Reads kernel properties from a cubin's ELF: registers, stack frame, launch bounds.
//!
//! NVIDIA does not document the attributes. These were found in the output of NVRTC 12.9 and 13.0 and agree with the
//! assembler's log. Missing attributes stay unknown. Static shared memory is not read here: on some architectures, the
//! section's size includes what the system reserves.

use std::collections::BTreeMap;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolIndex};

use sass::{Cubin, Function, Place, Tables};

use runner_types::{sha256_hex, with_lists, write_list, write_operations};

/// Attributes that apply to all functions: symbol index, then the value.
const REGISTER_COUNT: u8 = 0x2f;
const FRAME_SIZE: u8 = 0x11;
/// Kernel attribute with the maximum block dimensions: three numbers.
const MAX_THREADS: u8 = 0x05;

/// Format of an attribute whose value states its length. The other formats have two bytes.
const SIZED: u8 = 0x04;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Attributes {
    pub registers: Option<u32>,
    /// Bytes of stack per thread.
    pub frame: Option<u32>,
    /// Maximum number of threads per block that `__launch_bounds__` allows.
    pub max_threads: Option<u32>,
}

/// Attributes of each kernel by mangled name; empty if the code is not a cubin.
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

/// Hash of each kernel's machine code and of the data that it may read, by mangled name. Line tables are in separate
/// sections and not covered. Instructions that read a `__constant__` variable or the address of a `__device__` variable
/// name a bank and an offset without a relocation, so the initial values of all variables belong to every kernel. If a
/// kernel refers to functions, its hash covers all of the file's code.
pub(super) fn digests(cubin: &[u8]) -> BTreeMap<String, String> {
    const OWN: [&str; 4] = [".text.", ".nv.constant0.", ".nv.constant2.", ".nv.shared."];
    const DATA: [&str; 4] = [".nv.global", ".nv.constant3", ".nv.constant4", ".rodata"];
    const SHARED: [&str; 2] = [".text.", ".nv.constant"];
    let Ok(file) = ElfFile64::<Endianness>::parse(cubin) else { return BTreeMap::new() };
    let sections: Vec<(&str, &[u8], u64)> =
        file.sections().filter_map(|s| Some((s.name().ok()?, s.data().ok()?, s.size()))).collect();
    let digest = |kernel: &str| {
        let refers = sections.iter().any(|(name, ..)| {
            [".rel.text.", ".rela.text."].iter().any(|prefix| name.strip_prefix(prefix) == Some(kernel))
        });
        let is_part = |name: &str| {
            OWN.iter().any(|prefix| name.strip_prefix(prefix) == Some(kernel))
                || DATA.iter().any(|prefix| name.starts_with(prefix))
                || (refers && SHARED.iter().any(|prefix| name.starts_with(prefix)))
        };
        let mut text = Vec::new();
        for (name, data, size) in sections.iter().filter(|(name, ..)| is_part(name)) {
            // A mere renaming leaves the hash unchanged.
            let name = name.strip_suffix(kernel).unwrap_or(name);
            text.extend_from_slice(format!("{name} {size} {}\n", data.len()).as_bytes());
            text.extend_from_slice(data);
        }
        sha256_hex(&text)
    };
    let kernels = sections.iter().filter_map(|(name, ..)| name.strip_prefix(".text."));
    kernels.map(|kernel| (kernel.to_owned(), digest(kernel))).collect()
}

/// Maximum number of functions per file whose instructions are listed, and of instructions per function.
const MOST_LISTED: [usize; 2] = [64, 1000];

/// Opcode counts of each function, by mangled name, as text, with a list of instructions unless it is too long. Empty
/// if the code has no known opcodes.
pub(super) fn operations(cubin: &[u8]) -> BTreeMap<String, String> {
    let Ok(cubin) = Cubin::parse(cubin) else { return BTreeMap::new() };
    let [functions, instructions] = MOST_LISTED;
    let tables = if cubin.functions().len() > functions { None } else { Tables::read(&cubin).ok() };
    let list = |function: &Function| {
        let tables = tables.as_ref().filter(|_| function.words.len() <= instructions)?;
        let listed = cubin.list_operations(function, tables);
        Some(write_list(listed.map(|(name, places)| (name, author_place(tables, &places)))))
    };
    let counts = |function| Some((function, cubin.count_operations(function)?));
    let counts = cubin.functions().iter().filter_map(counts);
    let text = |(function, counts): (&Function, _)| {
        (function.name.clone(), with_lists(write_operations(&counts), list(function).as_deref()))
    };
    counts.map(text).collect()
}

/// File name and line of the innermost inlined call outside header folders.
fn author_place<'t>(tables: &'t Tables, places: &[&Place]) -> Option<(&'t str, u32)> {
    let is_header = |path: &Path| path.components().any(|part| part.as_os_str() == "include");
    let path = |place: &Place| tables.source.files().get(place.file).map(|path| Path::new(path.as_str()));
    let place = places.iter().find(|place| path(place).is_some_and(|path| !is_header(path)))?;
    Some((path(place)?.file_name()?.to_str()?, place.line))
}

/// Records of a section: a format byte, an attribute byte, then either a length and as many bytes, or two bytes.
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

fn word(value: &[u8], at: usize) -> Option<u32> {
    value.get(4 * at..4 * at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::nvrtc::{Nvrtc, Source};
    use crate::{Cache, Network, Requirement, Toolkit, log};
    use runner_types::CodeKind;

    const KERNELS: &str = "
extern \"C\" __global__ void __launch_bounds__(256) framed(float *p, int n) {
    float a[40];
    for (int i = 0; i < 40; i++) a[i] = p[i * n];
    for (int i = 0; i < n; i++) a[(i * 7) % 40] += a[i % 40];
    p[threadIdx.x] = a[n % 40];
}
extern \"C\" __global__ void small(int *p) { p[threadIdx.x] = 1; }
";

    /// Cubin of both kernels, and the compiler's log.
    fn compile(text: &str, options: &[&str], architecture: &str) -> (Vec<u8>, String) {
        let cache = Cache::locate().unwrap();
        let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
        let nvrtc = Nvrtc::open(&toolkit.library, &toolkit.builtins).unwrap();
        let source = Source {
            text,
            name: "k.cu",
            expressions: &["framed".to_owned(), "small".to_owned()],
            options: &options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>(),
        };
        let product = nvrtc.compile(&source, architecture, CodeKind::Cubin).unwrap();
        (product.code, product.log)
    }

    #[test]
    fn the_digest_of_a_kernel_is_of_its_code_and_not_of_its_lines_or_neighbours() {
        for architecture in ["sm_75", "sm_90", "sm_120"] {
            let of = |text: &str, options: &[&str]| digests(&compile(text, options, architecture).0);
            let plain = of(KERNELS, &["-lineinfo"]);
            assert_eq!(plain.len(), 2, "{plain:?}");
            assert_ne!(plain["framed"], plain["small"]);
            assert_eq!(of(&format!("// A comment.\n\n{KERNELS}"), &["-lineinfo"]), plain, "{architecture}");
            assert_eq!(of(KERNELS, &[]), plain, "{architecture}");
            // One kernel changed.
            let changed = of(&KERNELS.replace("= 1;", "= 2;"), &["-lineinfo"]);
            assert_eq!(changed["framed"], plain["framed"], "{architecture}");
            assert_ne!(changed["small"], plain["small"], "{architecture}");
            // One constant of a called function.
            let calls = |value: u32| {
                let function = format!("__noinline__ __device__ int added(int x) {{ return x * {value}; }}\n");
                of(&(function + &KERNELS.replace("= 1;", "= added(threadIdx.x);")), &[])
            };
            assert_ne!(calls(3)["small"], calls(5)["small"], "{architecture}");
            assert_eq!(calls(3)["framed"], calls(5)["framed"], "{architecture}");
        }
    }

    #[test]
    fn the_digest_of_a_kernel_is_of_the_initial_values_of_variables() {
        for (architecture, space) in [("sm_75", "__constant__"), ("sm_90", "__constant__"), ("sm_90", "__device__")] {
            let with = |value: u32| {
                let table = format!("{space} int table[4] = {{1, 2, 3, {value}}};\n");
                digests(&compile(&(table + &KERNELS.replace("= 1;", "= table[threadIdx.x];")), &[], architecture).0)
            };
            assert_eq!(with(4)["small"], with(4)["small"], "{architecture}, {space}");
            assert_ne!(with(4)["small"], with(5)["small"], "{architecture}, {space}");
        }
    }

    #[test]
    fn the_elf_agrees_with_the_assemblers_log_on_every_architecture() {
        for architecture in ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"] {
            let (code, said) = compile(KERNELS, &["--ptxas-options=-v"], architecture);
            let (found, log) = (attributes(&code), log::read(&said));
            for kernel in ["framed", "small"] {
                let (elf, figures) = (found[kernel], log.figures[kernel]);
                assert!(elf.registers.unwrap() > 0);
                assert_eq!(elf.registers, figures.registers, "{kernel} for {architecture}");
                assert_eq!(elf.frame, figures.stack, "{kernel} for {architecture}");
            }
            // Forty floats, indexed at run time.
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
