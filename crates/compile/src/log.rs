//! Parses NVRTC's log: the first error in one line, the assembler's figures, the warnings.
//!
//! The formats are those of NVRTC 12.9 and 13.0. Unknown lines stay in the log.

use std::collections::BTreeMap;

use runner_cuda_source::flatten::included;
use runner_types::describe_layout;

/// The assembler's figures for one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Figures {
    pub registers: Option<u32>,
    /// Static shared memory in bytes per block; 0 if the assembler does not print it.
    pub shared: Option<u32>,
    /// Bytes of stack per thread.
    pub stack: Option<u32>,
    pub spill_stores: Option<u32>,
    pub spill_loads: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SuccessLog {
    /// Lines for the user.
    pub warnings: String,
    /// Figures by mangled name.
    pub figures: BTreeMap<String, Figures>,
}

/// Separates the assembler's figures from the log.
pub(super) fn read(log: &str) -> SuccessLog {
    let mut figures: BTreeMap<String, Figures> = BTreeMap::new();
    let mut warnings = Vec::new();
    let mut entry: Option<String> = None;
    let mut properties_of: Option<String> = None;
    for line in log.lines() {
        if let Some(info) = line.strip_prefix("ptxas info").map(|rest| rest.trim_start_matches([' ', ':'])) {
            if let Some(name) = info.strip_prefix("Compiling entry function '").and_then(|rest| rest.split('\'').next())
            {
                entry = Some(name.to_owned());
                figures.insert(name.to_owned(), Figures::default());
            } else if let Some(name) = info.strip_prefix("Function properties for ") {
                properties_of = Some(name.trim().to_owned());
            } else if info.starts_with("Used ")
                && let Some(kernel) = entry.as_ref().and_then(|name| figures.get_mut(name))
            {
                kernel.registers = number_before(info, " registers");
                kernel.shared = Some(number_before(info, " bytes smem").unwrap_or(0));
            }
        } else if line.contains(" bytes stack frame") && line.contains(" bytes spill stores") {
            // Functions that were not inlined have such lines, too.
            if let Some(kernel) = properties_of.as_ref().and_then(|name| figures.get_mut(name)) {
                kernel.stack = number_before(line, " bytes stack frame");
                kernel.spill_stores = number_before(line, " bytes spill stores");
                kernel.spill_loads = number_before(line, " bytes spill loads");
            }
        } else if !line.starts_with("Remark: The warnings can be suppressed") {
            warnings.push(line);
        }
    }
    SuccessLog { warnings: warnings.join("\n").trim().to_owned(), figures }
}

fn number_before(line: &str, what: &str) -> Option<u32> {
    let (before, _) = line.split_once(what)?;
    before.rsplit([' ', ',']).next()?.parse().ok()
}

/// Replaces the compiler's internal kernel names in the log of a failed compilation.
pub(super) fn readable(log: &str) -> String {
    const PRAGMA: &str = "#pragma nv_mangled_name";
    let lines: Vec<&str> = log.lines().collect();
    let mut out = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let named = line.strip_prefix("__nv_name_map(").and_then(|rest| rest.split_once("): "));
        let quoted = lines.get(at + 1).and_then(|next| next.trim().strip_prefix(PRAGMA));
        match (named, quoted) {
            (Some((_, message)), Some(name)) => {
                // The rest of the line is `error: …` and is handled like any other error.
                let name = name.trim();
                let subject = describe_layout(name).unwrap_or_else(|| format!("kernel name `{name}`"));
                out.push(format!("{subject}: {message}"));
            }
            _ => out.push((*line).to_owned()),
        }
    }
    out.join("\n")
}

/// Parts of errors that a manifest key resolves, each with advice for the user.
const REMEDIES: [(&str, &str); 6] = [
    ("requires separate compilation mode", OF_LAUNCHES),
    ("device-side kernel launch could not be processed", OF_LAUNCHES),
    ("requires --extended-lambda", "write `options = [\"--extended-lambda\"]`"),
    (": No such file or directory", "name the folder of the header in `include_paths` (`runner try`: -I DIR)"),
    ("Instruction 'tcgen05.", "it needs `options = [\"-arch=sm_100a\"]`"),
    ("not supported on .target 'sm_90'", "it may need `options = [\"-arch=sm_90a\"]`"),
];
const OF_LAUNCHES: &str = "a kernel that launches kernels needs `relocatable = true`";

/// Advice on the manifest key that resolves an error.
pub(super) fn remedy(error: &str, relocatable: bool) -> Option<&'static str> {
    let found = REMEDIES.iter().find(|(says, _)| error.contains(says)).map(|(_, remedy)| *remedy);
    found.filter(|remedy| !relocatable || *remedy != OF_LAUNCHES)
}

/// Header that a source includes, as it names it, and that an error says is missing or has a fault of its own.
pub(super) fn header_of_error(error: &str, source: &str) -> Option<String> {
    let is_included = |header: &str| source.lines().any(|line| included(line) == Some(header));
    let missing = error.split_once(": No such file or directory").map(|(before, _)| before);
    let missing = missing.and_then(|before| before.rsplit_once("fatal error: ")).map(|(_, header)| header);
    if let Some(missing) = missing.filter(|header| is_included(header)) {
        return Some(missing.to_owned());
    }
    // The path of a header ends with the name that the source has for it, up to its folders.
    let place = error.split([':', '(']).next().unwrap_or_default();
    let mut steps = place.match_indices('/').map(|(at, _)| &place[at + 1..]);
    steps.find(|header| is_included(header)).map(str::to_owned)
}

/// First error of a readable log, as `file:line: message`.
pub(super) fn first_error(log: &str) -> Option<String> {
    log.lines().find_map(|line| {
        let (place, message) = split_error(line)?;
        Some(match place.strip_suffix(')').and_then(|place| place.rsplit_once('(')) {
            Some((file, number)) => format!("{file}:{number}: {message}"),
            None if place.is_empty() => message.to_owned(),
            None => format!("{place}: {message}"),
        })
    })
}

/// Splits an error line into location and message.
fn split_error(line: &str) -> Option<(&str, &str)> {
    for mark in [": error: ", ": catastrophic error: ", ": internal error: ", " fatal   : ", " error   : "] {
        if let Some((place, message)) = line.split_once(mark) {
            return Some((place, message));
        }
    }
    // Errors with a number: `error #20: …`.
    let (place, rest) = line.split_once(": error #")?;
    rest.split_once(": ").map(|(_, message)| (place, message))
}

/// NVRTC's error for host functions and variables.
const HOST_CODE: &str = "not allowed in JIT mode";

/// NVRTC's error for a missing header, even if a toolkit header includes it, as `<cuda.h>` includes `<stdlib.h>`.
const NO_HEADER: &str = "cannot open source file";

/// Prefixes of names from headers that nvcc includes before every source: `<math.h>`, `<limits.h>` and `<sys/types.h>`.
const OF_NVCC: [&str; 12] =
    ["M_", "INFINITY", "NAN", "HUGE_VAL", "INT_", "UINT_", "LONG_", "FLT_", "DBL_", "uint", "ushort", "ulong"];

/// Whether nvcc might compile what NVRTC rejected: host code, or a name that nvcc defines without an `#include`.
pub(super) fn needs_nvcc(log: &str) -> bool {
    let undefined = || log.split("identifier \"").skip(1).filter(|rest| rest.contains("\" is undefined"));
    log.contains(HOST_CODE)
        || log.contains(NO_HEADER)
        || undefined().any(|name| OF_NVCC.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// Log of NVRTC 13.0, shortened.
    const SUCCESS: &str = "\
a.cu(3): warning #177-D: variable \"unused\" was declared but never referenced
  int unused;
      ^

Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"

ptxas info    : 4 bytes gmem
ptxas info    : Compiling entry function '_Z3fooIiEvPT_' for 'sm_90'
ptxas info    : Function properties for _Z3fooIiEvPT_
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 1 barriers, 256 bytes smem
ptxas info    : Compile time = 2.755 ms
ptxas info    : Compiling entry function '_Z3barPfi' for 'sm_90'
ptxas info    : Function properties for _Z6helperf
    16 bytes stack frame, 3 bytes spill stores, 5 bytes spill loads
ptxas info    : Function properties for _Z3barPfi
    160 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 160 bytes cumulative stack size
ptxas info    : Compile time = 11.402 ms
";

    #[test]
    fn figures_are_taken_out_of_the_log_and_warnings_stay() {
        let read = read(SUCCESS);
        assert_eq!(
            read.warnings,
            "a.cu(3): warning #177-D: variable \"unused\" was declared but never referenced\n  int unused;\n      ^"
        );
        let foo = Figures {
            registers: Some(14),
            shared: Some(256),
            stack: Some(0),
            spill_stores: Some(0),
            spill_loads: Some(0),
        };
        let bar = Figures {
            registers: Some(32),
            shared: Some(0),
            stack: Some(160),
            spill_stores: Some(8),
            spill_loads: Some(12),
        };
        let expected = [("_Z3fooIiEvPT_".to_owned(), foo), ("_Z3barPfi".to_owned(), bar)];
        assert_eq!(read.figures, BTreeMap::from(expected));
    }

    #[test]
    fn the_first_error_becomes_one_line_with_its_place() {
        let error = |log: &str| first_error(&readable(log)).unwrap();
        assert_eq!(
            error("k/a b(1).cu(12): error: identifier \"x\" is undefined\n  x = 1;\nk/a.cu(13): error: other\n"),
            "k/a b(1).cu:12: identifier \"x\" is undefined"
        );
        assert_eq!(error("k.cu(2): error #20: identifier"), "k.cu:2: identifier");
        assert_eq!(
            error("k.cu(1): catastrophic error: cannot open source file \"x.h\"\n"),
            "k.cu:1: cannot open source file \"x.h\""
        );
        assert_eq!(error("nvrtc: error: invalid value for --std (-std)"), "nvrtc: invalid value for --std (-std)");
        assert_eq!(first_error("a.cu(3): warning: error-prone"), None);
    }

    #[test]
    fn a_kernel_that_is_not_there_is_named_as_the_manifest_does() {
        let log = "__nv_name_map(3): error: identifier \"nope\" is undefined\n  #pragma nv_mangled_name \
                   nope<int>\n          ^\n";
        let readable = readable(log);
        assert_eq!(first_error(&readable).unwrap(), "kernel name `nope<int>`: identifier \"nope\" is undefined");
        assert!(!readable.contains("__nv_name_map"));
    }

    #[test]
    fn an_error_that_a_key_mends_names_it() {
        let lambda =
            "lam.cu(2): error: __host__ or __device__ annotation on lambda requires --extended-lambda nvcc flag";
        assert_eq!(remedy(lambda, true), Some("write `options = [\"--extended-lambda\"]`"));
        let of_sm_90a = "line 69; error   : Instruction 'wgmma.fence' not supported on .target 'sm_90'";
        assert!(remedy(of_sm_90a, false).is_some_and(|remedy| remedy.contains("`options = [\"-arch=sm_90a\"]`")));
        let of_sm_100a = "line 9; error   : Instruction 'tcgen05.alloc' not supported on .target 'sm_90a'";
        assert!(remedy(of_sm_100a, false).is_some_and(|remedy| remedy.contains("`options = [\"-arch=sm_100a\"]`")));
        assert_eq!(remedy("line 9; error   : Instruction 'cvt' not supported on .target 'sm_90a'", false), None);
        let header = "k.cu:1:10: fatal error: helper_cuda.h: No such file or directory";
        assert_eq!(
            remedy(header, false),
            Some("name the folder of the header in `include_paths` (`runner try`: -I DIR)")
        );
        let launch = "k.cu(3): error: kernel launch from __device__ functions requires separate compilation mode";
        assert_eq!([false, true].map(|relocatable| remedy(launch, relocatable).is_some()), [true, false]);
        assert_eq!(remedy("k.cu(1): error: expected a \";\"", false), None);
    }

    #[test]
    fn the_header_of_an_error_is_the_one_that_the_source_includes() {
        let source = "#include <a.h>\n #  include \"sub/b.h\"\n";
        let header = |error: &str| header_of_error(error, source);
        assert_eq!(header("/x/sub/unknown.h:1:10: fatal error: c.h: No such file or directory"), None);
        assert_eq!(header("k.cu:1:10: fatal error: a.h: No such file or directory").as_deref(), Some("a.h"));
        assert_eq!(header("/x/sub/b.h:7:10: fatal error: c.h: No such file or directory").as_deref(), Some("sub/b.h"));
        assert_eq!(header("/x/sub/b.h(3): error: no").as_deref(), Some("sub/b.h"));
        assert_eq!(header("/x/k.cu(3): error: no"), None);
    }

    #[test]
    fn only_what_nvcc_adds_is_a_reason_for_nvcc() {
        let undefined = |name: &str| needs_nvcc(&format!("k.cu(1): error: identifier \"{name}\" is undefined\n  x\n"));
        assert!(undefined("M_PI") && undefined("uint"));
        assert!(!undefined("q") && !undefined("twice"));
        assert!(needs_nvcc(
            "k.cu(1): error: A function without execution space annotations is not allowed in JIT mode"
        ));
        assert!(needs_nvcc("cuda.h(56): catastrophic error: cannot open source file \"stdlib.h\""));
        assert!(!needs_nvcc("k.cu(1): error: expected a \";\""));
    }
}
