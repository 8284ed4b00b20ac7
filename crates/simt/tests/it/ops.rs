//! Runs the files `crates/ptx-conformance/ops/*.ptx`, one per operation, on the simulator.

use simt::{Machine, Options, profiles};

use crate::bench::{Arg, Bench};
use ptx_conformance::files::{OpFile, files};

/// Checks that something failed with this message.
fn expect<T>(words: &str, ended: Result<T, String>) -> Result<(), String> {
    match ended {
        Err(text) if text.contains(words) => Ok(()),
        Err(text) => Err(format!("`{text}` does not say `{words}`")),
        Ok(_) => Err(format!("it should have failed with `{words}`")),
    }
}

fn check(file: &OpFile) -> Result<(), String> {
    if let Some(words) = &file.refused {
        let mut machine = Machine::new(profiles().remove(0), Options::default()).map_err(|e| e.to_string())?;
        return expect(words, machine.load(&file.ptx).map_err(|e| e.to_string()));
    }
    let mut bench = Bench::new(&file.ptx);
    let out = bench.buffer(&vec![0; 32 * file.width / 4]);
    let ended = bench.launch("test", [1, 1, 1], [32, 1, 1], &[Arg::Address(out)]).map_err(|e| e.to_string());
    if let Some(words) = &file.fails {
        return expect(words, ended);
    }
    ended?;
    let mut bytes = vec![0; 32 * file.width];
    bench.machine.read(out, &mut bytes).unwrap();
    file.judge(&bytes)
}

#[test]
fn every_operation_gives_the_lanes_that_its_file_expects() {
    let files = files();
    let wrong: Vec<String> =
        files.iter().filter_map(|file| check(file).err().map(|e| format!("{}: {e}", file.name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_operation_of_the_table_has_a_file() {
    let names: Vec<String> = files().into_iter().map(|f| f.name).collect();
    let missing: Vec<&str> = simt::operations()
        .map(|operation| operation.name)
        .filter(|op| !names.iter().any(|n| n == op || n.strip_prefix(op).is_some_and(|rest| rest.starts_with('_'))))
        .collect();
    assert!(missing.is_empty(), "no file under crates/ptx-conformance/ops for {missing:?}");
}
