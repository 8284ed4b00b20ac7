//! Extracts the files that a manifest needs from a revision, so that it loads like one in the working tree.
//!
//! The files that a manifest reads are known only after parsing it, and the files that sources include only after
//! reading them. So a file counts as reached if a reached file contains its name. This covers sources, included files,
//! header folders, `.npy` files and expected lines. Extra files are harmless.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};

use super::files::{File, Files, RevisionError};

/// Delimiters of file names in manifests and sources.
const DELIMITERS: &[char] = &['/', '"', '\'', '<', '>', '(', ')', '[', ']', ',', ';', '=', '#'];

impl Files {
    /// Extracts `start` and every file reached from it into `folder`, at their paths relative to the repository's root.
    pub fn export(&self, start: &str, folder: &Path) -> Result<(), RevisionError> {
        let mut rest: HashMap<String, Vec<File>> = HashMap::new();
        let mut reached = Vec::new();
        for file in self.list("")?.into_iter().filter(|file| is_within(&file.path)) {
            if file.path == start {
                reached.push(file);
            } else {
                rest.entry(name_of(&file.path).to_owned()).or_default().push(file);
            }
        }
        if reached.is_empty() {
            return Err(self.lacks(start));
        }
        let mut is_manifest = true;
        while !reached.is_empty() {
            let mut names = HashSet::new();
            self.read(&std::mem::take(&mut reached), |file, content| {
                write(&folder.join(&file.path), &content)?;
                let Ok(text) = std::str::from_utf8(&content) else { return Ok(()) };
                names.extend(rest.keys().filter(|name| name.contains(char::is_whitespace) && text.contains(*name)));
                names.extend(named(text, &rest));
                if is_manifest {
                    names.extend(rest.keys().filter(|name| patterns(text).iter().any(|pattern| fits(name, pattern))));
                }
                Ok::<_, RevisionError>(())
            })?;
            let names: Vec<String> = names.into_iter().cloned().collect();
            reached.extend(names.iter().filter_map(|name| rest.remove(name)).flatten());
            is_manifest = false;
        }
        Ok(())
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whether a path stays inside the folder that it is joined to. Git objects can have any name.
fn is_within(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(name) if name != ".git"))
}

/// Names in `files` that occur as words in the text.
fn named<'a, T>(text: &str, files: &'a HashMap<String, T>) -> impl Iterator<Item = &'a String> {
    let words: HashSet<&str> = text.split(|c: char| c.is_whitespace() || DELIMITERS.contains(&c)).collect();
    let found: Vec<&String> =
        words.into_iter().filter_map(|word| files.get_key_value(word)).map(|(name, _)| name).collect();
    found.into_iter()
}

/// Splits names that contain expressions in braces, such as `expected_{n}.npy`, into the parts before the first and
/// after the last brace.
fn patterns(manifest: &str) -> Vec<(&str, &str)> {
    let texts = manifest.lines().flat_map(|line| line.split(['"', '\'']));
    let around = texts.filter_map(|text| {
        let (before, rest) = text.split_once('{')?;
        let (_, after) = rest.rsplit_once('}')?;
        Some((name_of(before), name_of(after)))
    });
    around.filter(|(_, after)| after.contains('.')).collect()
}

fn fits(name: &str, (before, after): &(&str, &str)) -> bool {
    name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_names_in_a_text() {
        let files: HashMap<String, u8> = ["a.cu", "b.cuh", "c.npy", "d.h"].map(|name| (name.to_owned(), 0)).into();
        let manifest = "source = \"sub/a.cu\"\n#include <b.cuh>\nfill = { npy = 'c.npy' } # not xd.h";
        let mut found: Vec<&str> = named(manifest, &files).map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["a.cu", "b.cuh", "c.npy"]);
    }

    #[test]
    fn an_expression_in_a_name_stands_for_any_text() {
        let found = patterns("printed = { file = \"lines/out_{n * 2}_{m}.txt\" }\nlet = { b = \"{n}\" }");
        assert_eq!(found, [("out_", ".txt")]);
        assert!(fits("out_8_1.txt", &found[0]) && !fits("in_8.txt", &found[0]) && !fits("out_.tx", &found[0]));
    }

    #[test]
    fn no_path_leaves_the_folder() {
        assert!(is_within("kernels/a.cu"));
        for path in ["../a", "a/../../b", "/etc/passwd", ".git/config", "x/.git/hooks/y"] {
            assert!(!is_within(path), "{path}");
        }
    }
}
