//! Finds the line in the author's own files for each instruction.
//!
//! Inlined code has the line of the inlined function, often in a header of the toolkit. The author's line is the
//! innermost one in or below the folder of the function's own file.

use std::collections::HashMap;
use std::path::Path;

use ptx_parser::SourcePosition;

/// Source lines of a function.
#[derive(Debug)]
pub struct Source<'f> {
    files: &'f [(u32, String)],
    /// Folder of the function's own file, known from the first line that is not inlined.
    folder: Option<&'f Path>,
    /// Call site of each inlined line.
    callers: HashMap<SourcePosition, SourcePosition>,
}

impl<'f> Source<'f> {
    pub fn new(files: &'f [(u32, String)]) -> Self {
        Self { files, folder: None, callers: HashMap::new() }
    }

    /// Returns the author's line for the instructions that follow a `.loc`.
    pub fn place(&mut self, place: SourcePosition, inlined_at: Option<SourcePosition>) -> SourcePosition {
        match inlined_at {
            Some(caller) => drop(self.callers.insert(place, caller)),
            None if self.folder.is_none() => self.folder = self.path(place).and_then(Path::parent),
            None => {}
        }
        let mut here = place;
        // The bound stops at cycles, which call sites could form in malformed PTX. Compilers emit no chain this long.
        for _ in 0..64 {
            if self.is_own(here) {
                return here;
            }
            let Some(&caller) = self.callers.get(&here) else { break };
            here = caller;
        }
        place
    }

    fn path(&self, place: SourcePosition) -> Option<&'f Path> {
        self.files.iter().find(|(index, _)| *index == place.file).map(|(_, path)| Path::new(path))
    }

    fn is_own(&self, place: SourcePosition) -> bool {
        match (self.folder, self.path(place)) {
            (Some(folder), Some(path)) if folder.as_os_str().is_empty() => path.is_relative(),
            (Some(folder), Some(path)) => path.starts_with(folder),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::mir::source::{Source, SourcePosition};

    const fn at(file: u32, line: u32) -> SourcePosition {
        SourcePosition { file, line, column: 1 }
    }

    fn files() -> Vec<(u32, String)> {
        let paths = [
            "/home/me/kernels/tree.cu",
            "/home/me/kernels/sum.cuh",
            "/opt/cuda/include/sync.h",
            "/opt/cuda/include/a.h",
        ];
        (1..).zip(paths.map(str::to_owned)).collect()
    }

    #[test]
    fn inlined_toolkit_code_has_the_line_of_the_authors_call() {
        let files = files();
        let mut source = Source::new(&files);
        assert_eq!(source.place(at(1, 10), None), at(1, 10));
        // a.h is inlined in sync.h, which is inlined in the author's header, which is inlined in the kernel.
        assert_eq!(source.place(at(2, 5), Some(at(1, 12))), at(2, 5));
        assert_eq!(source.place(at(3, 70), Some(at(2, 6))), at(2, 6));
        assert_eq!(source.place(at(4, 900), Some(at(3, 70))), at(2, 6));
        assert_eq!(source.place(at(1, 13), None), at(1, 13));
    }

    #[test]
    fn a_line_is_kept_if_no_caller_is_in_the_authors_files() {
        let files = files();
        let mut source = Source::new(&files);
        assert_eq!(source.place(at(3, 1), Some(at(4, 2))), at(3, 1));
        assert_eq!(source.place(at(9, 1), None), at(9, 1));
    }
}
