//! Finds folders in the checkout with headers that a source includes but the compiler would not find.
//!
//! Samples keep their headers in a folder that their build names. If the checkout has a header only once, or in only
//! one folder for headers, that folder is used.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use runner_files::project::Project;

/// Maximum number of folder entries to examine.
const MOST_ENTRIES: usize = 50_000;

/// C standard headers, which every compiler has. Those of C++ have no extension.
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

/// Prefixes of headers that come from the toolkit or the system.
const OF_OTHERS: [&str; 10] =
    ["cuda", "cooperative_groups", "cub/", "thrust/", "sys/", "mma.h", "nv", "curand", "cublas", "vector_"];

/// Names of folders for headers that several programs share.
const SHARED: [&str; 5] = ["include", "inc", "common", "util", "utils"];

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
    let mut all: BTreeMap<&String, Vec<PathBuf>> = BTreeMap::new();
    let mut folders = VecDeque::from([root.clone()]);
    let mut left = MOST_ENTRIES;
    while let Some(folder) = folders.pop_front() {
        for name in &wanted {
            if folder.join(name).is_file() {
                all.entry(*name).or_default().push(folder.clone());
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
    let is_shared = |folder: &&PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        SHARED.contains(&name.as_str())
    };
    let chosen = all.into_iter().filter_map(|(name, folders)| match &folders[..] {
        [only] => Some((name.clone(), only.clone())),
        several => {
            let folder = several.iter().filter(is_shared).min_by_key(|folder| distance(&source, folder))?;
            Some((name.clone(), folder.clone()))
        }
    });
    chosen.collect()
}

/// Number of path steps from a source to a folder.
fn distance(source: &Path, folder: &Path) -> usize {
    let shared = source.components().zip(folder.components()).take_while(|(one, other)| one == other).count();
    source.components().count() + folder.components().count() - 2 * shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_the_checkout_has_once_or_in_a_shared_folder_is_found() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = std::fs::canonicalize(dir.path())?;
        for folder in ["p/.git", "p/a/k", "p/a/inc/sub", "p/other", "p/b/Common", "q"] {
            std::fs::create_dir_all(root.join(folder))?;
        }
        for file in [
            "a/k/k.cu",
            "a/inc/sub/x.h",
            "b/Common/w.h",
            "other/w.h",
            "other/v.h",
            "a/v.h",
            "other/y.h",
            "other/stdio.h",
        ] {
            std::fs::write(root.join("p").join(file), "")?;
        }
        std::fs::write(root.join("q/z.h"), "")?;
        let absent = ["w.h", "v.h", "sub/x.h", "y.h", "z.h", "stdio.h", "vector"].map(str::to_owned);
        let found = find(&root.join("p/a/k/k.cu"), &absent);
        let expected = [("sub/x.h", "p/a/inc"), ("w.h", "p/b/Common"), ("y.h", "p/other")];
        assert_eq!(found, expected.map(|(name, folder)| (name.to_owned(), root.join(folder))));
        Ok(())
    }
}
