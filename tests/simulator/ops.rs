//! One file an operation: `tests/ptx/ops/*.ptx`.
//!
//! A file's kernel `test` takes the address of 32 lanes' results, `width` bytes each, and stores what each lane
//! computes from its index. Comments of the file carry the expectation, worked out by hand or by arithmetic on paper:
//! `// width: 4`, then `// lane 0: 0x…` for some lanes or `// all: 0x…` for every one.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bench::{Arg, Bench};

fn parse(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse::<i64>().unwrap() as u64,
    }
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut width, mut lanes) = (4, BTreeMap::new());
    for line in text.lines().filter_map(|l| l.strip_prefix("// ")) {
        if let Some(value) = line.strip_prefix("width: ") {
            width = value.parse().unwrap();
        } else if let Some(value) = line.strip_prefix("all: ") {
            lanes.extend((0..32).map(|k| (k, parse(value))));
        } else if let Some((lane, value)) = line.strip_prefix("lane ").and_then(|l| l.split_once(": ")) {
            lanes.insert(lane.parse().unwrap(), parse(value));
        }
    }
    if lanes.is_empty() {
        return Err("the file expects nothing".to_owned());
    }
    let header = ".version 9.0\n.target sm_90\n.address_size 64\n";
    let mut bench = Bench::new(&format!("{header}{text}"));
    let out = bench.buffer(&vec![0; 32 * width / 4]);
    bench.launch("test", [1, 1, 1], [32, 1, 1], &[Arg::Address(out)]).map_err(|e| e.to_string())?;
    let mut bytes = vec![0; 32 * width];
    bench.machine.read(out, &mut bytes).unwrap();
    for (lane, expected) in lanes {
        let mut word = [0; 8];
        word[..width].copy_from_slice(&bytes[lane * width..(lane + 1) * width]);
        let got = u64::from_le_bytes(word);
        let mask = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
        if got != expected & mask {
            return Err(format!("lane {lane}: expected {:#x}, got {got:#x}", expected & mask));
        }
    }
    Ok(())
}

#[test]
fn every_operation_gives_the_lanes_that_its_file_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/ops");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 40, "{} files", files.len());
    let wrong: Vec<String> = files
        .iter()
        .filter_map(|path| check(path).err().map(|e| format!("{}: {e}", path.file_name().unwrap().display())))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
