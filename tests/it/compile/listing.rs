//! Listings of incomplete or damaged cubins, through the real nvdisasm.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use runner_compile::{Cache, Disassembler, Network, Target, compile_all};
use runner_process::programs::Programs;
use runner_types::{CompileFailure, CompileUnit, list_of, listed_operations, write_operations};
use sass::Listing;

use super::{Bench, SCALE, toolkit};

/// Mangled name of the kernel.
const PLAIN: &str = "plain";

/// A cubin with line tables, and the bench that it was compiled in.
fn compiled() -> (Bench, Vec<u8>) {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let code = bench.compile(&bench.unit("k.cu", &[PLAIN])).unwrap().code;
    (bench, fs::read(code).unwrap())
}

fn list(bench: &Bench, cubin: &[u8]) -> Result<Vec<Listing>, CompileFailure> {
    list_kernel(bench, cubin, PLAIN)
}

fn list_kernel(bench: &Bench, cubin: &[u8], kernel: &str) -> Result<Vec<Listing>, CompileFailure> {
    let program =
        Disassembler::ensure(&Programs::of_this_machine(), &Cache::locate().unwrap(), Network::Allowed, &mut |_| {});
    let path = bench.path("k.cubin");
    fs::write(&path, cubin).unwrap();
    program.unwrap().list(&path, &[kernel])
}

/// Renames every section whose name begins with `name`, keeping the length.
fn without(cubin: &[u8], name: &str) -> Vec<u8> {
    let mut changed = cubin.to_vec();
    let places: Vec<usize> = (1..cubin.len() - name.len())
        .filter(|at| cubin[at - 1] == 0 && cubin[*at..].starts_with(name.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{name} is in the cubin");
    for at in places {
        changed[at + 1] = b'?';
    }
    changed
}

#[test]
fn a_cubin_without_line_tables_has_a_listing_without_lines() {
    let (bench, cubin) = compiled();
    let whole = list(&bench, &cubin).unwrap();
    assert!(whole[0].instructions.iter().any(|one| one.ptx_line.is_some() && !one.source.is_empty()));
    let without_source = list(&bench, &without(&cubin, ".debug_line")).unwrap();
    assert!(without_source[0].instructions.iter().all(|one| one.source.is_empty() && !one.opcode.is_empty()));
    let without_any = list(&bench, &without(&without(&cubin, ".debug_line"), ".nv_debug_line_sass")).unwrap();
    assert!(without_any[0].instructions.iter().all(|one| one.source.is_empty() && one.ptx_line.is_none()));
    assert_eq!(without_any[0].instructions.len(), whole[0].instructions.len());
}

#[test]
fn operations_are_counted_from_the_words_as_the_disassembler_names_them() {
    let kernels = [
        ("warp_primitives.cu", vec!["warp_primitives"]),
        ("reduce.cu", vec!["reduce_neighbored<int>", "reduce_vector<float, 4>"]),
        ("softmax.cu", vec!["softmax"]),
        ("copy.cu", vec!["copy_guarded"]),
    ];
    // Opcodes that share their number with another one, or are named differently on older architectures.
    let shared = [("CGAERRBAR", "ERRBAR"), ("RED", "REDG")];
    let bench = Bench::new(&[]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let mut compared = 0;
    for capability in [(9, 0), (8, 0)] {
        let units = kernels.iter().map(|(file, names)| CompileUnit::from_kernels(folder.join(file), names.clone()));
        let units: Vec<CompileUnit> = units.collect();
        let all = compile_all(&units, Target::Gpu(capability), toolkit(), &bench.options(), &mut |_, _, _| {});
        for compiled in all.into_values().filter_map(Result::ok) {
            let code = fs::read(&compiled.code).unwrap();
            for (kernel, mangled) in &compiled.kernels {
                let listings = list_kernel(&bench, &code, mangled).unwrap();
                let (mut counts, mut names) = (BTreeMap::new(), Vec::new());
                for one in listings.iter().flat_map(|listing| &listing.instructions) {
                    let name = one.opcode.split('.').next().unwrap();
                    let name = shared.iter().find(|(other, _)| *other == name).map_or(name, |(_, known)| known);
                    if name != "NOP" {
                        *counts.entry(name).or_default() += 1;
                        names.push(name);
                    }
                }
                let text = &compiled.operations[kernel];
                assert_eq!(text.split(" ; ").next(), Some(&*write_operations(&counts)), "{kernel} of {capability:?}");
                let listed = listed_operations(list_of(text));
                // Functions with more than 1000 instructions are not listed.
                names.truncate(if names.len() > 1000 { 0 } else { names.len() });
                assert_eq!(listed.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), names, "{kernel}");
                // The stores belong to the two lines that copy an element; the loads are on the same lines.
                let stored = listed.iter().filter(|one| one.name == "STG" && kernel == "copy_guarded");
                assert!(stored.zip(["copy.cu:24", "copy.cu:25"]).all(|(one, line)| one.place.as_deref() == Some(line)));
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 10);
}

#[test]
fn a_cubin_of_an_unknown_architecture_is_refused_with_what_nvdisasm_says() {
    let (bench, mut cubin) = compiled();
    // The header's flags contain the architecture: 90 in the second byte, or in the first byte in older formats.
    let flags = 48..52;
    let at: Vec<usize> = flags.filter(|at| cubin[*at] == 90).collect();
    assert!(!at.is_empty(), "{:?}", &cubin[48..52]);
    for at in at {
        cubin[at] = 250;
    }
    let failure = list(&bench, &cubin).unwrap_err();
    assert!(failure.summary.contains("nvdisasm") || failure.log.contains("nvdisasm"), "{failure:?}");
}

#[test]
fn cubins_that_are_cut_or_stripped_are_refused_or_have_fewer_functions() {
    let (bench, cubin) = compiled();
    for part in [0, 1, 4, 7] {
        let failure = list(&bench, &cubin[..cubin.len() * part / 8]).unwrap_err();
        assert!(!failure.summary.is_empty(), "{part} eighths");
    }
    // Changes the type of the symbol table to a note section, so that tools do not find it.
    let (offset, entries) = (u64::from_le_bytes(cubin[40..48].try_into().unwrap()) as usize, cubin[60] as usize);
    let mut stripped = cubin;
    let kind = |entry: usize| offset + 64 * entry + 4;
    let symbols: Vec<usize> = (0..entries).filter(|entry| stripped[kind(*entry)] == 2).collect();
    assert_eq!(symbols.len(), 1);
    stripped[kind(symbols[0])] = 7;
    match list(&bench, &stripped) {
        Ok(listings) => assert!(listings.is_empty(), "{listings:?}"),
        Err(failure) => assert!(!failure.summary.is_empty()),
    }
}
