//! Counts per source line, from the profiler's source page and the line tables of the code that ran.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_profile::Counted;
use runner_types::{CompileUnit, KernelCode};
use sass::Cubin;

use super::rig::{World, group};

const SOURCE: &str = "#include \"twice.cuh\"
__global__ void a(int *p) {
    int value = p[threadIdx.x];
    value = twice(value);
    p[threadIdx.x + 32] = value;
}
";

const HEADER: &str = "__device__ int twice(int value) {
    return atomicAdd(&counter, value);
}
";

/// Operations on `sm_90`, by the low twelve bits of the instruction word.
const OPERATIONS: [(u128, &str); 3] =
    [(0x981, "LDG.E R0, [R2.64]"), (0x986, "STG.E [R2.64], R0"), (0x9a8, "ATOMG.E.ADD R0")];

fn compiled(dir: &std::path::Path) -> KernelCode {
    fs::write(dir.join("k.cu"), SOURCE).unwrap();
    fs::write(dir.join("twice.cuh"), format!("__device__ int counter;\n{HEADER}")).unwrap();
    let unit = CompileUnit::from_kernels(dir.join("k.cu"), ["a"]);
    let cache = Cache::locate().unwrap();
    let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
    let options = CompileOptions {
        compiler: PathBuf::from(env!("CARGO_BIN_EXE_runner")),
        ..CompileOptions::new(Cache::at(dir.join("cache"))).unwrap()
    };
    let target = Target::Gpu((9, 0));
    let mut all = compile_all(std::slice::from_ref(&unit), target, &toolkit, &options, &mut |_, _, _| {});
    KernelCode { path: all.remove(&unit).unwrap().unwrap().code, unit }
}

/// A source page on which one warp executes each instruction, and each kind of access moves a different number of
/// sectors.
fn page(code: &KernelCode) -> String {
    let bytes = fs::read(&code.path).unwrap();
    let cubin = Cubin::parse(&bytes).unwrap();
    let function = cubin.functions().iter().find(|function| function.name == "_Z1aPi").unwrap();
    let mut page = String::from(
        "\"Kernel Name\",\"_Z1aPi\"\n\"Address\",\"Source\",\"Instructions Executed\",\"L2 Theoretical Sectors Global\"\n",
    );
    for (at, word) in function.words.iter().enumerate() {
        let known = OPERATIONS.iter().position(|(bits, _)| word & 0xfff == *bits);
        let (text, sectors) = known.map_or(("NOP", 0), |at| (OPERATIONS[at].1, 40 + at));
        let _ = writeln!(page, "\"{:#x}\",\"      {text} \",\"1\",\"{sectors}\"", 0x7f2d_4b5f_f200 + 16 * at);
    }
    page
}

#[test]
fn sectors_are_counted_at_the_lines_of_their_loads_and_stores() {
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let code = compiled(dir.path());
    let page = page(&code);
    world.has_source_page(&page, &BTreeMap::from([("_Z1aPi".to_owned(), code)]));
    let pass = world.count(&mut world.session_of_instructions(), vec![group(0, &["a"])]);
    let (_, Counted::Counters(counters)) = &pass.counted.as_ref().unwrap()[0] else { panic!("{:?}", pass.counted) };
    assert_eq!(counters.whole.get("inst_executed"), Some(1.0), "the counts of the launch are those of the raw page");
    let count = |file: &str, line: u32, name: &str| {
        let found = counters.lines.iter().find(|known| (known.file.as_str(), known.line) == (file, line));
        found.and_then(|line| line.counters.get(name))
    };
    assert_eq!(count("k.cu", 3, "gld_sectors"), Some(40.0), "{:#?}", counters.lines);
    assert_eq!(count("k.cu", 5, "gst_sectors"), Some(41.0));
    // The atomic is inlined from a user's header, and its sectors count neither as loads nor as stores.
    assert_eq!(count("twice.cuh", 3, "inst_executed").map(|count| count >= 1.0), Some(true));
    let total = |name: &str| counters.lines.iter().filter_map(|line| line.counters.get(name)).sum::<f64>();
    assert_eq!((total("gld_sectors"), total("gst_sectors")), (40.0, 41.0));
    let text = counters.lines.iter().find(|line| line.line == 5).map(|line| line.text.as_str());
    assert_eq!(text, Some("p[threadIdx.x + 32] = value;"));
    let arguments = world.arguments();
    assert!(arguments.windows(2).any(|pair| pair == ["--section", "SourceCounters"]), "{arguments:?}");
    assert!(!arguments.contains(&"--page".to_owned()), "{arguments:?}");
}

#[test]
fn a_launch_whose_page_is_printed_twice_is_counted_once() {
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let code = compiled(dir.path());
    let page = page(&code);
    world.has_source_page(&page.repeat(2), &BTreeMap::from([("_Z1aPi".to_owned(), code)]));
    let pass = world.count(&mut world.session_of_instructions(), vec![group(0, &["a"])]);
    let (_, Counted::Counters(counters)) = &pass.counted.as_ref().unwrap()[0] else { panic!("{:?}", pass.counted) };
    let total = |name: &str| counters.lines.iter().filter_map(|line| line.counters.get(name)).sum::<f64>();
    assert_eq!((total("gld_sectors"), total("gst_sectors")), (40.0, 41.0));
}

#[test]
fn a_page_that_lacks_launches_costs_the_lines_alone() {
    let world = World::new();
    world.has_source_page("", &BTreeMap::new());
    let mut session = world.session_of_instructions();
    let pass = world.count(&mut session, vec![group(0, &["a"])]);
    let (_, Counted::Counters(counters)) = &pass.counted.as_ref().unwrap()[0] else { panic!("{:?}", pass.counted) };
    assert_eq!((counters.whole.get("inst_executed"), counters.lines.len()), (Some(1.0), 0));
    let results = session.results().unwrap();
    assert_eq!((results.complaints.len(), results.without_page), (0, 1));
}
