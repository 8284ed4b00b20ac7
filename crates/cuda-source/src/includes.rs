//! Files that a CUDA C++ source reads: itself and everything it includes from outside the toolkit.
//!
//! The result is a superset: conditionals are not evaluated, so files of every branch are listed. If an `#include` uses
//! a macro with an unknown value, the result is marked incomplete. The toolkit's own headers are left out, since the
//! toolkit version identifies them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use self::header::{Include, definition, header_name, split_call, substitute};
use runner_files::project::Project;
use runner_files::regular::{self, Version};

mod header;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    pub source: Arc<str>,
    /// Files in the order in which they are found, starting with the source.
    pub files: Vec<Input>,
    /// False if an include uses a macro with an unknown value.
    pub whole: bool,
    /// Included files outside the project. They are not read and not listed in `files`.
    pub outside: Vec<PathBuf>,
}

impl Inputs {
    /// Paths of the files that were read, starting with the source.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.contents().map(|content| &*content.path)
    }

    /// Versions of the files that were read.
    pub fn versions(&self) -> impl Iterator<Item = Version> {
        self.contents().map(|content| content.version)
    }

    fn contents(&self) -> impl Iterator<Item = &Content> {
        self.files.iter().filter_map(|file| file.content.as_ref())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Name in the `#include`; empty for the source itself.
    pub name: String,
    /// Whether it is included as `<name>` and so may be a toolkit header.
    pub angled: bool,
    /// `None` if the file was not found.
    pub content: Option<Content>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Path that the file was read from.
    pub path: Arc<Path>,
    /// Its version before it was read.
    pub version: Version,
    pub digest: [u8; 32],
    /// Text of the file. Bytes that are not UTF-8 are replaced, as in NVRTC.
    pub text: Arc<str>,
}

/// Scans sources, reading each file only once.
#[derive(Debug, Default)]
pub struct Scanner {
    project: Project,
    files: Mutex<HashMap<PathBuf, Arc<Scanned>>>,
}

#[derive(Debug)]
struct Scanned {
    content: Content,
    includes: Vec<Include>,
    known: BTreeSet<Include>,
    /// Macros whose value is a header name: `#define HEADER "a.cuh"`.
    header_macros: Vec<(String, Include)>,
}

impl Include {
    fn input(&self, content: Option<Content>) -> Input {
        let (Self::Quoted(name) | Self::Angled(name) | Self::Next(name) | Self::Macro(name)) = self;
        Input { name: name.clone(), angled: !matches!(self, Self::Quoted(_)), content }
    }
}

/// Where to search for included files.
#[derive(Debug, Clone, Copy)]
pub struct SearchPath<'a> {
    /// Folders whose includes are followed.
    pub user: &'a [PathBuf],
    /// Folders whose files are left out.
    pub toolkit: &'a [PathBuf],
}

/// Some compilers end a line at a carriage return without a newline.
const LINE_ENDS: [char; 2] = ['\n', '\r'];

/// Directives that read a file. `import` is a GNU extension; `embed` is C++26.
const INCLUDING: [&str; 3] = ["include", "import", "embed"];

/// Macros defined by options: `NAME=VALUE`.
pub type Macros<'a> = &'a [String];

impl Scanner {
    /// A scanner that reads no file outside the project.
    pub fn confined_to(project: Project) -> Self {
        Self { project, files: Mutex::default() }
    }

    /// Follows the includes of `source` and of files force-included before it. Fails if the source cannot be read or is
    /// outside the project.
    pub fn inputs(
        &self,
        source: &Path,
        pre_includes: &[String],
        macros: Macros<'_>,
        path: SearchPath<'_>,
    ) -> io::Result<Inputs> {
        let main = self.scan(source)?;
        let mut walk = Walk {
            scanner: self,
            path,
            files: vec![Input { name: String::new(), angled: false, content: Some(main.content.clone()) }],
            seen: BTreeSet::from([real(source)]),
            header_macros: BTreeMap::new(),
            computed: BTreeSet::new(),
            outside: Vec::new(),
        };
        for definition in macros {
            if let Some((name, value)) = definition.split_once('=')
                && let Some(include) = header_name(value)
            {
                walk.header_macros.entry(name.to_owned()).or_default().insert(include);
            }
        }
        let dir = source.parent().unwrap_or(Path::new(""));
        for file in pre_includes {
            walk.follow(&Include::Quoted(file.clone()), Path::new("."));
        }
        walk.enter(&main, dir);
        let whole = walk.follow_computed(dir);
        Ok(Inputs { source: Arc::clone(&main.content.text), files: walk.files, whole, outside: walk.outside })
    }

    /// Rejects a source that includes, or may include, files outside the project. The error names them and says what to
    /// do.
    pub fn confine(&self, inputs: &Inputs) -> Result<(), String> {
        if let Some(outside) = inputs.outside.first() {
            return Err(format!("it includes a file: {}: {}", self.project.refusal(outside), Project::REMEDY));
        }
        if inputs.whole || !self.project.is_limited() {
            return Ok(());
        }
        Err("an #include uses a macro whose value is unknown, so the file may be outside the project: write the file's \
             name, or, if you trust the source, allow all files with --allow-outside"
            .to_owned())
    }

    fn scan(&self, path: &Path) -> io::Result<Arc<Scanned>> {
        if let Some(known) = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return Ok(Arc::clone(known));
        }
        if !self.project.has(path) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, self.project.refusal(path)));
        }
        let version = Version::of(path)?;
        let bytes = regular::read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let digest = Sha256::digest(&bytes).into();
        let content = Content { path: Arc::from(path), version, digest, text: Arc::from(&*text) };
        let mut scanned = Scanned { content, includes: vec![], known: BTreeSet::new(), header_macros: vec![] };
        // Compilers skip a byte order mark, and some join lines even if spaces follow the backslash.
        let joined = joined_lines(text.trim_start_matches('\u{feff}'));
        // A comment may hide a directive, and a string may look like a comment. So use the directives found with and
        // without comments.
        scanned.read_directives(&without_comments(&joined));
        scanned.read_directives(&joined);
        let scanned = Arc::new(scanned);
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), Arc::clone(&scanned));
        Ok(scanned)
    }
}

impl Scanned {
    fn read_directives(&mut self, text: &str) {
        for line in text.split(LINE_ENDS) {
            let mut rest = line;
            while let Some((_, after)) = rest.split_once("__has_include") {
                rest = after.trim_start().trim_start_matches("_next").trim_start();
                if let Some(include) = rest.strip_prefix('(').and_then(header_name) {
                    self.add(include);
                }
            }
            let line = line.trim_start();
            let marks = ["#", "%:", "??="];
            let Some(directive) = marks.iter().find_map(|mark| line.strip_prefix(mark)) else { continue };
            let directive = directive.trim_start();
            if let Some(operand) = directive.strip_prefix("include_next") {
                if let Some(Include::Quoted(name) | Include::Angled(name)) = header_name(operand) {
                    self.add(Include::Next(name));
                }
            } else if let Some(operand) = INCLUDING.iter().find_map(|word| directive.strip_prefix(word)) {
                self.add(header_name(operand).unwrap_or_else(|| Include::Macro(operand.trim().to_owned())));
            } else if let Some((name, value)) = directive.strip_prefix("define").and_then(definition) {
                self.header_macros.push((name, value));
            }
        }
    }

    fn add(&mut self, include: Include) {
        if self.known.insert(include.clone()) {
            self.includes.push(include);
        }
    }
}

/// State while following the includes of one unit.
struct Walk<'a> {
    scanner: &'a Scanner,
    path: SearchPath<'a>,
    files: Vec<Input>,
    seen: BTreeSet<PathBuf>,
    header_macros: BTreeMap<String, BTreeSet<Include>>,
    computed: BTreeSet<String>,
    outside: Vec<PathBuf>,
}

/// Pending work; the last item is next. A stack instead of recursion: include chains may be arbitrarily long.
enum Task {
    /// Find the files for an include in a file of this folder.
    Follow(Include, Arc<Path>),
    /// Read a file found for an include.
    Enter(Include, PathBuf),
}

impl Walk<'_> {
    /// Follows all includes of a file, depth first.
    fn enter(&mut self, file: &Scanned, dir: &Path) {
        let mut tasks = self.includes_of(file, dir);
        self.work_off(&mut tasks);
    }

    /// Follows one include, depth first.
    fn follow(&mut self, include: &Include, dir: &Path) {
        self.work_off(&mut vec![Task::Follow(include.clone(), dir.into())]);
    }

    fn work_off(&mut self, tasks: &mut Vec<Task>) {
        while let Some(task) = tasks.pop() {
            match task {
                Task::Follow(include, dir) => {
                    let found = self.find(&include, &dir).into_iter().rev();
                    tasks.extend(found.map(|path| Task::Enter(include.clone(), path)));
                }
                Task::Enter(include, path) => tasks.extend(self.read(&include, &path)),
            }
        }
    }

    /// Records the file's macros and returns one task per include.
    fn includes_of(&mut self, file: &Scanned, dir: &Path) -> Vec<Task> {
        for (name, value) in &file.header_macros {
            self.header_macros.entry(name.clone()).or_default().insert(value.clone());
        }
        let dir: Arc<Path> = dir.into();
        file.includes.iter().rev().map(|include| Task::Follow(include.clone(), Arc::clone(&dir))).collect()
    }

    /// Files that an include may refer to.
    fn find(&mut self, include: &Include, dir: &Path) -> Vec<PathBuf> {
        let name = match include {
            Include::Macro(name) => {
                self.computed.insert(name.clone());
                return Vec::new();
            }
            Include::Quoted(name) | Include::Angled(name) | Include::Next(name) => name,
        };
        let own = matches!(include, Include::Quoted(_)).then_some(dir);
        let mut candidates =
            own.into_iter().chain(self.path.user.iter().map(PathBuf::as_path)).map(|dir| dir.join(name));
        let found: Vec<PathBuf> = match include {
            Include::Next(_) => candidates.filter(|path| path.is_file()).collect(),
            _ => candidates.find(|path| path.is_file()).into_iter().collect(),
        };
        if found.is_empty() && !self.path.toolkit.iter().any(|dir| dir.join(name).is_file()) {
            self.files.push(include.input(None));
        }
        found
    }

    /// Reads a file that was not read before. Returns the tasks for its includes.
    fn read(&mut self, include: &Include, path: &Path) -> Vec<Task> {
        // Files are identified by their real paths. If `a/../k.cu` and `k.cu` were different files, an include cycle
        // would never end.
        if !self.seen.insert(real(path)) {
            return Vec::new();
        }
        if !self.scanner.project.has(path) {
            self.outside.push(path.to_owned());
            return Vec::new();
        }
        // NVRTC reports an unreadable file. Here it enters the key as an absent file.
        let scanned = self.scanner.scan(path).ok();
        self.files.push(include.input(scanned.as_ref().map(|scanned| scanned.content.clone())));
        scanned.map_or_else(Vec::new, |scanned| self.includes_of(&scanned, path.parent().unwrap_or(Path::new(""))))
    }

    /// Headers that a macro may expand to: `HEADER`, or `HEADER(name)` for a macro such as `#define HEADER(name)
    /// <folder/name>`.
    fn values_of(&self, name: &str) -> BTreeSet<Include> {
        let mut values = self.header_macros.get(name).cloned().unwrap_or_default();
        if let Some((function, argument)) = split_call(name) {
            for (definition, headers) in &self.header_macros {
                if let Some((_, parameter)) = split_call(definition).filter(|(name, _)| *name == function) {
                    values.extend(headers.iter().map(|header| substitute(header, parameter, argument)));
                }
            }
        }
        values
    }

    /// Follows includes that use a macro, for every value that a file or an option defines. Returns false if a macro
    /// has no known value.
    fn follow_computed(&mut self, dir: &Path) -> bool {
        let mut done = BTreeSet::new();
        while let Some(name) = self.computed.iter().find(|name| !done.contains(*name)).cloned() {
            let values = self.values_of(&name);
            if values.is_empty() {
                return false;
            }
            for value in &values {
                self.follow(value, dir);
            }
            done.insert(name);
        }
        true
    }
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Joins continued lines as a compiler does: a word may continue on the next line.
pub fn joined_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = line.trim_end();
        match rest.strip_suffix('\\').or_else(|| rest.strip_suffix("??/")) {
            Some(rest) if line.ends_with('\n') => joined.push_str(rest),
            _ => joined.push_str(line),
        }
    }
    joined
}

/// Replaces each comment by a space, but keeps newlines.
pub fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The digit separator in `1'000`, not the start of a character literal.
        if rest.starts_with('\'') && out.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            out.push('\'');
            rest = &rest[1..];
            continue;
        }
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let (inside, after) = comment.split_once("*/").unwrap_or((comment, ""));
            out.push(' ');
            out.extend(inside.chars().filter(|&c| c == '\n'));
            rest = after;
        } else {
            let length = literal_length(rest);
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    out.push_str(rest);
    out
}

/// Length of the literal or single character at the start of the text. A literal ends no later than its line.
pub fn literal_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, quote @ ('"' | '\''))) = chars.next() else { return 1 };
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '\n' => return at,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self { dir: tempfile::tempdir().unwrap() };
            for (name, text) in files {
                let path = tree.dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            tree
        }

        /// Names of the files that `k.cu` reads, with `-` before missing ones, and whether the list is complete.
        fn names(&self, user: &[&str], macros: &[&str]) -> (Vec<String>, bool) {
            let file = |name: &str| self.dir.path().join(name);
            let user: Vec<PathBuf> = user.iter().map(|name| file(name)).collect();
            let macros: Vec<String> = macros.iter().map(|&m| m.to_owned()).collect();
            let path = SearchPath { user: &user, toolkit: &[file("toolkit")] };
            let inputs = Scanner::default().inputs(&file("k.cu"), &[], &macros, path).unwrap();
            let names = inputs.files[1..].iter().map(|Input { name, content, .. }| match content {
                Some(_) => name.clone(),
                None => format!("-{name}"),
            });
            (names.collect(), inputs.whole)
        }
    }

    #[test]
    fn a_file_that_was_written_twice_has_another_version_with_the_same_content() {
        let tree = Tree::new(&[("k.cu", "#include \"h.cuh\"\n"), ("h.cuh", "int a;")]);
        let read = || {
            let source = tree.dir.path().join("k.cu");
            Scanner::default().inputs(&source, &[], &[], SearchPath { user: &[], toolkit: &[] }).unwrap()
        };
        let (before, again) = (read(), read());
        assert_eq!(before.versions().collect::<Vec<_>>(), again.versions().collect::<Vec<_>>());
        for text in ["int b;", "int a;"] {
            fs::write(tree.dir.path().join("h.cuh"), text).unwrap();
            // Some file systems count time in steps of several milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let after = read();
        let digests = |inputs: &Inputs| inputs.contents().map(|content| content.digest).collect::<Vec<_>>();
        assert_eq!(digests(&before), digests(&after));
        assert_ne!(before.versions().collect::<Vec<_>>(), after.versions().collect::<Vec<_>>());
    }

    #[test]
    fn includes_are_followed_beside_the_file_and_along_the_path_each_file_once() {
        let tree = Tree::new(&[
            ("k.cu", "#include \"sub/a.cuh\"\n  #  include <b.cuh>\n#include <c.cuh>\n"),
            ("sub/a.cuh", "#include \"near.cuh\"\n#include <b.cuh>\n"),
            ("sub/near.cuh", "#include \"../k.cu\"\n"),
            ("inc/b.cuh", "#include \"a.cuh\"\n"),
            ("toolkit/c.cuh", "#include \"never.cuh\"\n"),
        ]);
        // inc/b.cuh includes a.cuh, which is neither next to it nor in the search path.
        let (names, whole) = tree.names(&["inc"], &[]);
        assert_eq!(names, ["sub/a.cuh", "near.cuh", "b.cuh", "-a.cuh"]);
        assert!(whole);
    }

    #[test]
    fn every_branch_counts_and_comments_hide_nothing() {
        let tree = Tree::new(&[
            (
                "k.cu",
                "#if 0\n#include \"a.cuh\"\n#endif\n/* x */ #include \"b.cuh\"\n#include \\\n \"c.cuh\"\n\
                 const char *s = \"/*\";\n#include \"d.cuh\" // */\n#if __has_include(\"e.cuh\")\n#endif\n",
            ),
            ("a.cuh", ""),
            ("b.cuh", ""),
            ("c.cuh", ""),
            ("d.cuh", ""),
        ]);
        let (mut names, whole) = tree.names(&[], &[]);
        names.sort();
        assert_eq!(names, ["-e.cuh", "a.cuh", "b.cuh", "c.cuh", "d.cuh"]);
        assert!(whole);
    }

    #[test]
    fn a_name_in_a_macro_is_followed_through_every_value_that_is_known() {
        let tree = Tree::new(&[
            (
                "k.cu",
                "#ifdef A\n#define HEADER \"a.cuh\"\n#else\n#define HEADER \"b.cuh\"\n#endif\n#include HEADER\n\
                 #include OUTSIDE\n",
            ),
            ("a.cuh", ""),
            ("b.cuh", ""),
            ("o.cuh", ""),
        ]);
        let (names, whole) = tree.names(&["."], &["OUTSIDE=<o.cuh>", "OTHER=1"]);
        assert_eq!(names, ["a.cuh", "b.cuh", "o.cuh"]);
        assert!(whole);
        assert!(!tree.names(&["."], &[]).1, "OUTSIDE has no known value");
    }

    #[test]
    fn a_name_in_a_macro_with_a_parameter_is_followed() {
        let tree = Tree::new(&[
            (
                "k.cu",
                "#define HEADER(header) <std/header>\n#define OTHER(x) \"x.cuh\"\n#include HEADER(tuple)\n\
                 #include HEADER( header_of )\n#include OTHER(a)\n",
            ),
            ("std/tuple", ""),
            ("x.cuh", ""),
        ]);
        let (names, whole) = tree.names(&["."], &[]);
        assert_eq!(names, ["-std/header_of", "std/tuple", "x.cuh"]);
        assert!(whole);
        let unknown = Tree::new(&[("k.cu", "#define HEADER(a, b) <a/b>\n#include HEADER(c, d)\n")]);
        assert!(!unknown.names(&["."], &[]).1, "two parameters");
        let nested = Tree::new(&[("k.cu", "#define HEADER(a) <a>\n#include HEADER(OTHER(a))\n")]);
        assert!(!nested.names(&["."], &[]).1, "a macro as the argument");
    }

    #[test]
    fn every_spelling_of_an_include_is_found() {
        let spellings = [
            "\u{feff}#include \"a.cuh\"",
            "#inc\\\nlude \"a.cuh\"",
            "#include \\ \n \"a.cuh\"",
            "%:include \"a.cuh\"",
            "??=include \"a.cuh\"",
            "#/* */import \"a.cuh\"",
            "int x;\r#include \"a.cuh\"",
            "#embed \"a.cuh\"",
        ];
        for spelling in spellings {
            let tree = Tree::new(&[("k.cu", spelling), ("a.cuh", "")]);
            assert_eq!(tree.names(&[], &[]).0, ["a.cuh"], "{spelling:?}");
        }
    }

    #[test]
    fn a_chain_of_any_length_is_followed_depth_first() {
        let last = 5000;
        let link = |nth: usize| (format!("{nth}.cuh"), format!("#include \"{}.cuh\"\n#include \"end.cuh\"\n", nth + 1));
        let mut files: Vec<(String, String)> = (1..last).map(link).collect();
        files.extend(
            [("k.cu", "#include \"1.cuh\"\n#include \"beside.cuh\"\n"), ("beside.cuh", ""), ("end.cuh", "")]
                .map(|(name, text)| (name.to_owned(), text.to_owned())),
        );
        files.push((format!("{last}.cuh"), String::new()));
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (names, _) = Tree::new(&files).names(&[], &[]);
        let chain = (1..=last).map(|nth| format!("{nth}.cuh"));
        assert_eq!(names, chain.chain(["end.cuh".to_owned(), "beside.cuh".to_owned()]).collect::<Vec<_>>());
    }

    #[test]
    fn files_outside_of_the_project_are_not_read() {
        let tree = Tree::new(&[
            ("p/kernels/k.cu", "#include \"a.cuh\"\n#include \"../../secret\"\n"),
            ("p/kernels/a.cuh", "#include \"link.cuh\"\n"),
            ("secret", "#include \"beyond\"\n"),
        ]);
        let file = |name: &str| tree.dir.path().join(name);
        std::os::unix::fs::symlink(file("secret"), file("p/kernels/link.cuh")).unwrap();
        let scanner = Scanner::confined_to(Project::at(&file("p")).unwrap());
        let path = SearchPath { user: &[], toolkit: &[] };
        let inputs = scanner.inputs(&file("p/kernels/k.cu"), &[], &[], path).unwrap();
        assert_eq!(inputs.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["", "a.cuh"]);
        assert_eq!(inputs.outside, [file("p/kernels/link.cuh")], "both are the same file");
        let refused = scanner.inputs(&file("secret"), &[], &[], path).unwrap_err().to_string();
        assert!(refused.contains("is outside of the project"), "{refused}");
    }

    #[test]
    fn the_next_file_of_a_name_counts_beside_the_first() {
        let tree =
            Tree::new(&[("k.cu", "#include <a.cuh>\n"), ("one/a.cuh", "#include_next <a.cuh>\n"), ("two/a.cuh", "")]);
        assert_eq!(tree.names(&["one", "two"], &[]).0, ["a.cuh", "a.cuh"]);
    }

    #[test]
    fn a_file_that_appears_earlier_in_the_path_changes_the_answer() {
        let tree = Tree::new(&[("k.cu", "#include <a.cuh>\n"), ("two/a.cuh", "2"), ("one/other", "")]);
        let files = |tree: &Tree| {
            let user = [tree.dir.path().join("one"), tree.dir.path().join("two")];
            let path = SearchPath { user: &user, toolkit: &[] };
            Scanner::default().inputs(&tree.dir.path().join("k.cu"), &[], &[], path).unwrap().files
        };
        let before = files(&tree);
        fs::write(tree.dir.path().join("one/a.cuh"), "1").unwrap();
        assert_ne!(files(&tree), before);
    }

    #[test]
    fn a_source_that_is_not_there_is_an_error() {
        let path = SearchPath { user: &[], toolkit: &[] };
        assert!(Scanner::default().inputs(Path::new("/nonexistent/k.cu"), &[], &[], path).is_err());
    }
}
