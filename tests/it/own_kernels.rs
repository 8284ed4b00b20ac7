//! The runner's own kernels: the committed PTX is what the pinned compiler generates from their source.
//!
//! `SNAPSHOTS=overwrite cargo test --test it own_kernels::` updates it.

use std::fs;
use std::path::{Path, PathBuf};

use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_types::CompileUnit;

use fixture::snapshot;

const KERNELS: [&str; 4] = ["runner_compare", "runner_digest", "runner_fill", "runner_mask"];

/// Directives that the compiler writes, and the committed replacements. The kernels use nothing newer, so drivers and
/// GPUs that are older than the compiler accept them.
const HEADER: [(&str, &str); 2] = [(".version 9.0", ".version 6.3"), (".target sm_75", ".target sm_60")];

#[test]
fn the_committed_ptx_is_made_from_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/execute/src/kernels");
    let made = ptx(folder.join("kernels.cu"));
    snapshot::assert_is(&made, &folder.join("kernels.ptx"));
}

fn ptx(source: PathBuf) -> String {
    let cache = tempfile::tempdir().unwrap();
    let toolkit =
        Toolkit::ensure(Requirement::PinnedMajor(13), &Cache::locate().unwrap(), Network::Allowed, &mut |_| {})
            .unwrap();
    let unit = CompileUnit {
        // The host rounds the product and the sum separately.
        options: vec!["--fmad=false".to_owned()],
        ..CompileUnit::from_kernels(source, KERNELS)
    };
    let options = CompileOptions {
        compiler: PathBuf::from(env!("CARGO_BIN_EXE_runner")),
        ..CompileOptions::new(Cache::at(cache.path().to_owned())).unwrap()
    };
    let compiled = compile_all(std::slice::from_ref(&unit), Target::Ptx((7, 5)), &toolkit, &options, &mut |_, _, _| {})
        .remove(&unit)
        .unwrap();
    let compiled = compiled.unwrap_or_else(|failure| panic!("{}\n{}", failure.summary, failure.log));
    let text = fs::read_to_string(compiled.code).unwrap();
    // Drops line numbers and the paths that they refer to.
    let code = text.split("\t.file").next().unwrap().lines();
    let code = code.filter(|line| !line.starts_with("//") && !line.trim_start().starts_with(".loc\t"));
    let code = format!("{}\n", code.collect::<Vec<_>>().join("\n").trim_end());
    HEADER.iter().fold(code, |code, (from, to)| {
        assert!(code.contains(from), "the compiler writes another header than {from}");
        code.replacen(from, to, 1)
    })
}
