//! The files of a report: renders them, writes them, and compares them with those on disk.
//!
//! `runner report --check` uses the comparison, which relies on rendering being a pure function of the records.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{RenderError, Templates, csv, lines, page};
use runner_files::atomic::{self, WriteError};
use runner_files::regular;
use runner_results::journal::{
    self, ENVIRONMENT_FILE, FolderLock, JOURNAL_FILE, LOCK_FILE, PREVIOUS_JOURNAL_FILE, RECORDS_FILE,
};
use runner_types::{Records, sha256_hex};

/// Report for readers.
pub const REPORT_FILE: &str = "report.md";

/// Table for programs.
pub const RESULTS_FILE: &str = "results.csv";

/// Counts per source line, written only if the run recorded them.
pub const LINES_FILE: &str = "lines.csv";

pub const PLOTS_DIR: &str = "plots";

/// Folder of source pages that `show` writes. They are not part of the report.
pub const SOURCE_DIR: &str = "source";

/// Files that a run leaves in a report's folder and that do not belong in git.
const LOCAL_FILES: [&str; 5] = [JOURNAL_FILE, PREVIOUS_JOURNAL_FILE, LOCK_FILE, "report.html", PREVIOUS_SEARCH_JOURNAL];

const SEARCH_JOURNAL: &str = "search.jsonl";

/// Journal of the search before the last one in a folder.
pub const PREVIOUS_SEARCH_JOURNAL: &str = "search.previous.jsonl";

/// Files next to the report of a search's finalists, and in one subfolder per size if there are several. All are
/// generated from the search's journal, except the last two, which are generated from the records.
const SEARCH_FILES: [&str; 7] =
    ["search.md", "search.csv", "search.json", "search.svg", "search.html", "dispatch.json", "dispatch.h"];

/// SHA-256 of each of [`SEARCH_FILES`] and of [`SEARCH_JOURNAL`], in the format of `sha256sum`. These files cannot be
/// regenerated for a comparison: the journal is not committed, and the pages need the search's plan.
const SEARCH_SUMS: &str = "search.sums";

/// Maximum length of a line quoted in a message, in characters.
const LONGEST_QUOTE: usize = 120;

/// Every file of a report, by its path within the folder, in the order in which they are written. The records come
/// first, since the others can be regenerated from them.
pub fn files(records: &Records) -> Result<Vec<(PathBuf, String)>, RenderError> {
    let templates = Templates::load(records.header.template.as_ref())?;
    // Rendering the page on one core takes about as long as rendering the tables on the others.
    let (page, tables) = rayon::join(
        || page::page(records, &templates),
        || Ok::<_, RenderError>((journal::records_text(records)?, csv::csv(records)?)),
    );
    let ((view, page), (text, results)) = (page?, tables?);
    let mut files = vec![
        (PathBuf::from(RECORDS_FILE), text),
        (PathBuf::from(ENVIRONMENT_FILE), journal::environment_text(&records.environment)?),
        (PathBuf::from(RESULTS_FILE), results),
    ];
    if lines::are_counted(records) {
        files.push((PathBuf::from(LINES_FILE), lines::csv(records)?));
    }
    for plot in &view.plots {
        files.push((Path::new(PLOTS_DIR).join(&plot.file), templates.chart(&plot.chart.draw())?));
    }
    files.push((PathBuf::from(REPORT_FILE), page));
    Ok(files)
}

/// A difference between a report's folder and what the records produce.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Deviation {
    #[error("{}: missing", .0.display())]
    Missing(PathBuf),
    /// A search file is not the one that `tune` wrote.
    #[error(
        "{}: differs from what the search wrote; to write it again, run `runner tune` with --resume and the same \
         options",
        .0.display()
    )]
    Search(PathBuf),
    /// The report should not have this file.
    #[error("{}: not a file of this report", .0.display())]
    Extra(PathBuf),
    /// The first line that differs; later ones may differ too.
    #[error(
        "{}:{line}: differs\n    in the file:  {}\n    from records: {}",
        path.display(), shown(found.as_deref()), shown(made.as_deref())
    )]
    Differs {
        path: PathBuf,
        /// Number of the first differing line, 1-based.
        line: usize,
        /// Line in the file; `None` past its end.
        found: Option<String>,
        /// Line that the records produce; `None` past the end.
        made: Option<String>,
    },
}

/// A differing line, as shown in a message.
fn shown(line: Option<&str>) -> &str {
    line.unwrap_or("(the end of the file)")
}

/// Compares the report in `dir` with what `records` produce. Writes nothing.
pub fn deviations(dir: &Path, records: &Records) -> Result<Vec<Deviation>, RenderError> {
    let files = files(records)?;
    let mut found = Vec::new();
    for (name, made) in &files {
        let path = dir.join(name);
        match regular::read_data(&path, regular::LONGEST_DATA) {
            Ok(bytes) if bytes == made.as_bytes() => {}
            Ok(bytes) => found.push(first_difference(path, &String::from_utf8_lossy(&bytes), made)),
            Err(error) if error.kind() == ErrorKind::NotFound => found.push(Deviation::Missing(path)),
            Err(source) => return Err(RenderError::Read { path, source }),
        }
    }
    let mut others = Vec::new();
    others_in(dir, Path::new(""), &mut |name| files.iter().any(|(file, _)| file == name), &mut others)?;
    others.sort();
    found.extend(others.into_iter().map(Deviation::Extra));
    for folder in search_folders(dir)? {
        found.extend(search_deviations(&folder)?);
    }
    Ok(found)
}

/// Folders of a report that contain search files: the folder itself and, with several sizes, its subfolders.
fn search_folders(dir: &Path) -> Result<Vec<PathBuf>, RenderError> {
    let refused = |source| RenderError::Read { path: dir.to_owned(), source };
    let mut folders = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        if entry.file_type().map_err(refused)?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.retain(|folder| [SEARCH_SUMS].iter().chain(&SEARCH_FILES).any(|name| folder.join(name).exists()));
    folders.sort();
    Ok(folders)
}

/// Compares the search files in a folder with their checksums. The journal is local and may be missing.
fn search_deviations(folder: &Path) -> Result<Vec<Deviation>, RenderError> {
    let path = folder.join(SEARCH_SUMS);
    let sums = match regular::read_text(&path) {
        Ok(sums) => sums,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![Deviation::Missing(path)]),
        Err(source) => return Err(RenderError::Read { path, source }),
    };
    let mut found = Vec::new();
    let mut listed = Vec::new();
    for line in sums.lines() {
        let Some((sum, name)) = line.split_once("  ").filter(|(_, name)| is_of_search(Path::new(name))) else {
            found.push(Deviation::Search(path.clone()));
            continue;
        };
        listed.push(name);
        let path = folder.join(name);
        match regular::read_data(&path, regular::LONGEST_DATA) {
            Ok(bytes) if sha256_hex(&bytes) == sum => {}
            Ok(_) => found.push(Deviation::Search(path)),
            Err(error) if error.kind() == ErrorKind::NotFound && name == SEARCH_JOURNAL => {}
            Err(error) if error.kind() == ErrorKind::NotFound => found.push(Deviation::Missing(path)),
            Err(source) => return Err(RenderError::Read { path, source }),
        }
    }
    let unlisted = SEARCH_FILES.iter().filter(|name| !listed.contains(*name)).map(|name| folder.join(name));
    found.extend(unlisted.filter(|path| path.exists()).map(Deviation::Extra));
    Ok(found)
}

/// Writes the checksums of the search files in a folder.
pub fn write_search_sums(folder: &Path) -> Result<(), WriteError> {
    let mut sums = Vec::new();
    for name in [SEARCH_JOURNAL].iter().chain(&SEARCH_FILES) {
        let path = folder.join(name);
        match regular::read_data(&path, regular::LONGEST_DATA) {
            Ok(bytes) => sums.push(format!("{}  {name}\n", sha256_hex(&bytes))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(WriteError { action: "read", path, source }),
        }
    }
    atomic::write(&folder.join(SEARCH_SUMS), sums.concat().as_bytes())
}

/// Whether a search writes a file of this name.
fn is_of_search(name: &Path) -> bool {
    [SEARCH_JOURNAL, SEARCH_SUMS].iter().chain(&SEARCH_FILES).any(|other| name == Path::new(other))
}

fn first_difference(path: PathBuf, found: &str, made: &str) -> Deviation {
    // Lines include their endings, which may be the only difference.
    let (mut of_file, mut of_records) = (found.split_inclusive('\n'), made.split_inclusive('\n'));
    let mut line = 1;
    loop {
        match (of_file.next(), of_records.next()) {
            (found, made) if found == made && found.is_some() => line += 1,
            (found, made) => {
                let at = found.zip(made).map_or(0, |(found, made)| difference_at(found, made));
                let quote = |line: &str| excerpt(line, at);
                return Deviation::Differs { path, line, found: found.map(quote), made: made.map(quote) };
            }
        }
    }
}

/// Index of the first character at which two lines differ.
fn difference_at(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// The line or, if it is long, an excerpt around character `at`.
fn excerpt(line: &str, at: usize) -> String {
    let (text, no_end) = line.strip_suffix('\n').map_or((line, " (without a line feed)"), |text| (text, ""));
    let length = text.chars().count();
    let before = if length > LONGEST_QUOTE { at.saturating_sub(LONGEST_QUOTE / 3) } else { 0 };
    let part: String = text.chars().skip(before).take(LONGEST_QUOTE).collect();
    let start = if before > 0 { "…" } else { "" };
    let end = if length > before + LONGEST_QUOTE { "…" } else { "" };
    format!("{start}{}{end}{no_end}", part.replace('\r', "\\r"))
}

/// Unknown files in a folder and its subfolders, except local ones.
fn others_in(
    dir: &Path,
    within: &Path,
    is_known: &mut dyn FnMut(&Path) -> bool,
    others: &mut Vec<PathBuf>,
) -> Result<(), RenderError> {
    let folder = dir.join(within);
    let refused = |source| RenderError::Read { path: folder.clone(), source };
    for entry in fs::read_dir(&folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let name = within.join(entry.file_name());
        if name == Path::new(SOURCE_DIR) || within != Path::new("") && entry.file_name() == LOCK_FILE {
            continue;
        }
        let is_local = LOCAL_FILES.iter().any(|other| name == Path::new(other));
        if entry.file_type().map_err(refused)?.is_dir() {
            others_in(dir, &name, is_known, others)?;
        } else if !is_known(&name) && !is_local && !is_of_search(Path::new(&entry.file_name())) {
            others.push(dir.join(name));
        }
    }
    Ok(())
}

/// Writes the report into the locked folder `dir`, each file whole or not at all. Removes charts of the previous report
/// that the new one does not have.
///
/// Everything is rendered before the first file is written, so a rendering error leaves the old report unchanged. A
/// `plots` folder that is a symbolic link is refused.
pub fn write_all(dir: &Path, _lock: &FolderLock, records: &Records) -> Result<(), RenderError> {
    let files = files(records)?;
    let plots = dir.join(PLOTS_DIR);
    if plots.is_symlink() {
        let source = io::Error::new(ErrorKind::InvalidInput, "it is a symbolic link; remove it");
        return Err(RenderError::Write(WriteError { action: "write to", path: plots, source }));
    }
    atomic::remove_unfinished(&plots);
    // If the old page cannot be read, no old charts are known.
    let before = regular::read_text(&dir.join(REPORT_FILE)).unwrap_or_default();
    for (path, text) in &files {
        atomic::write(&dir.join(path), text.as_bytes())?;
    }
    remove_charts(dir, &charts_of(&before), &files);
    if !lines::are_counted(records) {
        // The previous report may have had this file.
        let _ = fs::remove_file(dir.join(LINES_FILE));
    }
    Ok(())
}

/// Files in `plots/` that a page references.
fn charts_of(page: &str) -> BTreeSet<&str> {
    let link = format!("({PLOTS_DIR}/");
    let after = page.split(&link).skip(1);
    let names = after.filter_map(|text| text.split_once(')').map(|(name, _)| name));
    names
        .filter(|name| {
            Path::new(name).extension().is_some_and(|extension| extension == "svg") && !name.contains(['/', '\\', '\n'])
        })
        .collect()
}

/// Removes charts of the previous page that the new report does not have. Other files in the folder are the user's.
/// Failing to remove a chart is not an error.
fn remove_charts(dir: &Path, before: &BTreeSet<&str>, files: &[(PathBuf, String)]) {
    let page = files.iter().find(|(path, _)| path == Path::new(REPORT_FILE)).map_or("", |(_, text)| text.as_str());
    let shown = charts_of(page);
    for name in before.iter().filter(|name| !shown.contains(**name)) {
        let within = Path::new(PLOTS_DIR).join(name);
        if !files.iter().any(|(path, _)| *path == within) {
            let _ = fs::remove_file(dir.join(within));
        }
    }
    // Succeeds only if the folder is empty.
    let _ = fs::remove_dir(dir.join(PLOTS_DIR));
}
