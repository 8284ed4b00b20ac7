//! Folders of headers that a source includes and does not find, within its checkout.
//!
//! Samples keep their headers in a folder that their build names. Where the checkout has exactly such a header, its
//! folder is the one that the build would name.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use runner_files::project::Project;

/// Entries of folders that are looked at.
const MOST_ENTRIES: usize = 50_000;

/// Headers of C that every compiler has. Those of C++ have no ending.
const OF_C: [&str; 24] = [
    "assert.h",
    "complex.h",
    "ctype.h",
    "errno.h",
    "fenv.h",
    "float.h",
    "inttypes.h",
    "limits.h",
    "locale.h",
    "malloc.h",
    "math.h",
    "memory.h",
    "setjmp.h",
    "signal.h",
    "stdarg.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "time.h",
    "unistd.h",
    "wchar.h",
];

/// Beginnings of headers that the toolkit or the system has.
const OF_OTHERS: [&str; 10] =
    ["cuda", "cooperative_groups", "cub/", "thrust/", "sys/", "mma.h", "nv", "curand", "cublas", "vector_"];

/// Each of these headers with the nearest folder of the source's checkout that has it.
pub fn find(source: &Path, absent: &[String]) -> Vec<(String, PathBuf)> {
    let is_own = |name: &&String| {
        name.contains('.')
            && !name.contains("..")
            && !OF_C.contains(&name.as_str())
            && !OF_OTHERS.iter().any(|begin| name.starts_with(begin))
    };
    let wanted: Vec<&String> = absent.iter().filter(is_own).collect();
    let project = Project::from_source(source);
    let (Ok(source), Some([root]), false) = (std::fs::canonicalize(source), project.folders(), wanted.is_empty())
    else {
        return Vec::new();
    };
    let mut best: BTreeMap<&String, (usize, PathBuf)> = BTreeMap::new();
    let mut folders = VecDeque::from([root.clone()]);
    let mut left = MOST_ENTRIES;
    while let Some(folder) = folders.pop_front() {
        for name in &wanted {
            if folder.join(name).is_file() {
                let distance = distance(&source, &folder);
                let is_nearer = best.get(*name).is_none_or(|(known, _)| distance < *known);
                if is_nearer {
                    best.insert(*name, (distance, folder.clone()));
                }
            }
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            left = left.saturating_sub(1);
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && left > 0 && !entry.file_name().to_string_lossy().starts_with('.') {
                folders.push_back(entry.path());
            }
        }
    }
    best.into_iter().map(|(name, (_, folder))| (name.clone(), folder)).collect()
}

/// Steps from a source to a folder.
fn distance(source: &Path, folder: &Path) -> usize {
    let shared = source.components().zip(folder.components()).take_while(|(one, other)| one == other).count();
    source.components().count() + folder.components().count() - 2 * shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_folder_of_the_checkout_is_taken() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = std::fs::canonicalize(dir.path())?;
        for folder in ["p/.git", "p/a/k", "p/a/inc/sub", "p/other", "q"] {
            std::fs::create_dir_all(root.join(folder))?;
        }
        for file in ["p/a/k/k.cu", "p/a/inc/sub/x.h", "p/other/x.h", "p/other/y.h", "q/z.h", "p/other/stdio.h"] {
            std::fs::write(root.join(file), "")?;
        }
        let absent = ["x.h", "sub/x.h", "y.h", "z.h", "stdio.h", "vector"].map(str::to_owned);
        let found = find(&root.join("p/a/k/k.cu"), &absent);
        let expected = [("sub/x.h", "p/a/inc"), ("x.h", "p/a/inc/sub"), ("y.h", "p/other")];
        assert_eq!(found, expected.map(|(name, folder)| (name.to_owned(), root.join(folder))));
        Ok(())
    }
}
