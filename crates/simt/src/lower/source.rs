//! Where an instruction was written, as its author would say it.
//!
//! What the compiler inlines has the place of the inlined function, which is often a header of the toolkit. The author's
//! place is the innermost one in the folder of the function's own file or below it.

use std::collections::HashMap;
use std::path::Path;

use ptx_parser::Place;

/// The places of one function.
#[derive(Debug)]
pub struct Source<'f> {
    files: &'f [(u32, String)],
    /// The folder of the function's own file, once a place is known that is not inlined.
    folder: Option<&'f Path>,
    /// Where the function that a place lies in was inlined.
    callers: HashMap<Place, Place>,
}

impl<'f> Source<'f> {
    pub fn new(files: &'f [(u32, String)]) -> Self {
        Self { files, folder: None, callers: HashMap::new() }
    }

    /// The author's place of what follows a `.loc`.
    pub fn place(&mut self, place: Place, inlined_at: Option<Place>) -> Place {
        match inlined_at {
            Some(caller) => drop(self.callers.insert(place, caller)),
            None if self.folder.is_none() => self.folder = self.path(place).and_then(Path::parent),
            None => {}
        }
        let mut here = place;
        // Functions that inline each other in turn would make a circle: the compiler makes none so long.
        for _ in 0..64 {
            if self.is_own(here) {
                return here;
            }
            let Some(&caller) = self.callers.get(&here) else { break };
            here = caller;
        }
        place
    }

    fn path(&self, place: Place) -> Option<&'f Path> {
        self.files.iter().find(|(index, _)| *index == place.file).map(|(_, path)| Path::new(path))
    }

    fn is_own(&self, place: Place) -> bool {
        match (self.folder, self.path(place)) {
            (Some(folder), Some(path)) if folder.as_os_str().is_empty() => path.is_relative(),
            (Some(folder), Some(path)) => path.starts_with(folder),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Source};

    const fn at(file: u32, line: u32) -> Place {
        Place { file, line, column: 1 }
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
    fn what_a_toolkits_header_inlines_stands_where_the_author_called_it() {
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
    fn a_place_stays_where_no_caller_is_the_authors() {
        let files = files();
        let mut source = Source::new(&files);
        assert_eq!(source.place(at(3, 1), Some(at(4, 2))), at(3, 1));
        assert_eq!(source.place(at(9, 1), None), at(9, 1));
    }
}
