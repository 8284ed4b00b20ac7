//! Puts the headers of a source's project in place of their `#include`.
//!
//! A header often includes what only the host needs, or defines host functions next to device functions. Its own host
//! half can be removed only from one text with the source. `#line` directives keep the files' names and line numbers.

use std::path::{Component, Path, PathBuf};

/// Maximum nesting depth of includes.
const DEEPEST: usize = 32;

/// Maximum length of the text in bytes.
const LONGEST: usize = 1 << 20;

/// A file's path and text.
pub type File = (String, String);

/// The source with the text of `headers` in place of each `#include` of one.
pub fn flattened(source: &File, headers: &[File]) -> String {
    let mut flat = Flat { headers, once: Vec::new(), text: String::with_capacity(source.1.len()) };
    flat.add(source, DEEPEST);
    flat.text
}

/// Name in an `#include` directive.
pub fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    rest.strip_prefix(['"', '<'])?.split(['"', '>']).next()
}

struct Flat<'a> {
    headers: &'a [File],
    /// Headers with `#pragma once` that were added.
    once: Vec<&'a str>,
    text: String,
}

impl<'a> Flat<'a> {
    fn add(&mut self, (path, text): &File, depth: usize) {
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let found = included(line).and_then(|name| self.find(path, name));
            let Some(header) = found.filter(|_| depth > 0 && self.text.len() < LONGEST) else {
                self.text.push_str(line);
                continue;
            };
            if !self.once.contains(&header.0.as_str()) {
                if header.1.lines().any(|line| line.split_whitespace().eq(["#pragma", "once"])) {
                    self.once.push(&header.0);
                }
                self.text.push_str(&line_directive(1, &header.0));
                self.add(header, depth - 1);
                self.text.push('\n');
            }
            self.text.push_str(&line_directive(number + 2, path));
        }
    }

    /// The header that a file includes by this name: next to it, or else the first one whose path ends with the name.
    fn find(&self, file: &str, name: &str) -> Option<&'a File> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let beside = normal(&folder.join(name));
        let end: PathBuf = Path::new(name).components().filter(|part| !matches!(part, Component::ParentDir)).collect();
        let headers = self.headers;
        let exact = headers.iter().find(|(path, _)| normal(Path::new(path)) == beside);
        exact.or_else(|| headers.iter().find(|(path, _)| Path::new(path).ends_with(&end)))
    }
}

fn line_directive(number: usize, path: &str) -> String {
    format!("#line {number} \"{}\"\n", path.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        (path.to_owned(), text.to_owned())
    }

    #[test]
    fn headers_take_the_place_of_their_includes_and_lines_keep_their_numbers() {
        let source = file("/p/k/a.cu", "#include <cmath>\n#include \"../u/b.h\"\nint a;\n");
        let headers = [
            file("/p/other/b.h", "wrong\n"),
            file("/p/u/b.h", "#pragma once\n#include \"c.h\"\nint b;\n"),
            file("/p/u/c.h", "#include <sub/d.h>\nint c;"),
            file("/p/inc/sub/d.h", "#include \"../../u/b.h\"\n"),
        ];
        let expected = "#include <cmath>\n#line 1 \"/p/u/b.h\"\n#pragma once\n#line 1 \"/p/u/c.h\"\n\
                        #line 1 \"/p/inc/sub/d.h\"\n#line 2 \"/p/inc/sub/d.h\"\n\n#line 2 \"/p/u/c.h\"\nint c;\n\
                        #line 3 \"/p/u/b.h\"\nint b;\n\n#line 3 \"/p/k/a.cu\"\nint a;\n";
        assert_eq!(flattened(&source, &headers), expected);
    }

    #[test]
    fn a_header_that_includes_itself_ends() {
        let header = file("/p/a.h", "#include \"a.h\"\n#include \"a.h\"\n");
        let flat = flattened(&file("/p/a.cu", "#include \"a.h\"\n"), &[header]);
        assert!(flat.len() < 2 * LONGEST);
    }
}
