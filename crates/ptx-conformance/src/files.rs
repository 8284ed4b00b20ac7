//! The files in `ops`, each with one kernel and expected results that were computed by hand.
//!
//! The kernel `test` of a file takes the address of the results of 32 lanes, `width` bytes each, and stores a result
//! that each lane computes from its index. Comments state what is expected: `// width: 4`, followed by `// lane 0: 0x…`
//! for some lanes or `// all: 0x…` for all lanes. `// fails: …` means that the launch must end in a trap whose message
//! contains these words. `// refused: …` means that the simulator must refuse the file with these words. `// needs:
//! sm_100a` names the target of a file that an H100 cannot run; its expectations come from the PTX ISA, and no GPU has
//! confirmed them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Target of files that name none.
const TARGET: &str = "sm_90";

/// A test file for one operation.
#[derive(Debug, Clone)]
pub struct OpFile {
    /// Name of the file, without the extension.
    pub name: String,
    /// The module: a header for `sm_90` or the target in `needs`, followed by the text of the file.
    pub ptx: String,
    /// Size of each lane's result in bytes.
    pub width: usize,
    lanes: BTreeMap<usize, u64>,
    /// Words that the message of the expected trap contains.
    pub fails: Option<String>,
    /// Words in the message with which the simulator refuses the file.
    pub refused: Option<String>,
    /// Target of a file that an H100 cannot run.
    pub needs: Option<String>,
    /// Driver whose compiler crashes on the file.
    pub crashes: Option<String>,
}

/// Returns the folder that contains `ops` and `vectors`: this package, or `RUNNER_PTX` if the package was moved.
pub fn folder() -> PathBuf {
    let package = || PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("RUNNER_PTX").map_or_else(package, PathBuf::from)
}

/// Returns all files, sorted by name.
pub fn files() -> Vec<OpFile> {
    let mut paths: Vec<_> = std::fs::read_dir(folder().join("ops")).unwrap().map(|f| f.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| OpFile::read(path)).collect()
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse::<i64>().unwrap() as u64,
    }
}

impl OpFile {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let (mut width, mut lanes, mut fails, mut refused, mut needs, mut crashes) =
            (4, BTreeMap::new(), None, None, None, None);
        for line in text.lines().filter_map(|l| l.strip_prefix("// ")) {
            if let Some(value) = line.strip_prefix("width: ") {
                width = value.parse().unwrap();
            } else if let Some(words) = line.strip_prefix("fails: ") {
                fails = Some(words.to_owned());
            } else if let Some(words) = line.strip_prefix("refused: ") {
                refused = Some(words.to_owned());
            } else if let Some(target) = line.strip_prefix("needs: ") {
                needs = Some(target.to_owned());
            } else if let Some(compiler) = line.strip_prefix("crashes: ") {
                crashes = Some(compiler.to_owned());
            } else if let Some(value) = line.strip_prefix("all: ") {
                lanes.extend((0..32).map(|k| (k, number(value))));
            } else if let Some((lane, value)) = line.strip_prefix("lane ").and_then(|l| l.split_once(": ")) {
                lanes.insert(lane.parse().unwrap(), number(value));
            }
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let target = needs.as_deref().unwrap_or(TARGET);
        let ptx = format!(".version 9.0\n.target {target}\n.address_size 64\n{text}");
        Self { name, ptx, width, lanes, fails, refused, needs, crashes }
    }

    /// Compares the results of 32 lanes with the expected ones.
    pub fn judge(&self, bytes: &[u8]) -> Result<(), String> {
        if self.lanes.is_empty() {
            return Err("the file expects nothing".to_owned());
        }
        let mask = if self.width == 8 { u64::MAX } else { (1 << (8 * self.width)) - 1 };
        for (&lane, &expected) in &self.lanes {
            let mut word = [0; 8];
            word[..self.width].copy_from_slice(&bytes[lane * self.width..(lane + 1) * self.width]);
            let got = u64::from_le_bytes(word);
            if got != expected & mask {
                return Err(format!("lane {lane}: expected {:#x}, got {got:#x}", expected & mask));
            }
        }
        Ok(())
    }
}
