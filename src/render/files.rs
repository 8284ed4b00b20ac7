//! The files of a report.

use std::path::{Path, PathBuf};

use super::{RenderError, Templates, csv, limits};
use crate::atomic;
use crate::journal::{self, ENVIRONMENT_FILE, RECORDS_FILE};
use crate::model::Records;

/// The report for readers.
pub const REPORT_FILE: &str = "report.md";

/// The table for programs.
pub const RESULTS_FILE: &str = "results.csv";

/// The folder of the charts.
pub const PLOTS_DIR: &str = "plots";

/// Every file of a report, by its path within the folder, in the order of writing: the records come first, since the
/// others can be made from them.
pub fn files(records: &Records) -> Result<Vec<(PathBuf, String)>, RenderError> {
    let templates = Templates::new()?;
    let (view, page) = limits::page(records, &templates)?;
    let mut files = vec![
        (PathBuf::from(RECORDS_FILE), journal::records_text(records)?),
        (PathBuf::from(ENVIRONMENT_FILE), journal::environment_text(&records.environment)?),
        (PathBuf::from(RESULTS_FILE), csv::csv(records)?),
    ];
    for plot in &view.plots {
        files.push((Path::new(PLOTS_DIR).join(&plot.file), templates.chart(&plot.chart.draw())?));
    }
    files.push((PathBuf::from(REPORT_FILE), page));
    Ok(files)
}

/// Writes the report into `dir`, each file whole or not at all, and removes charts that it no longer has.
///
/// Everything is rendered before the first file is written, so that an error in rendering leaves the old report
/// unchanged.
pub fn write_all(dir: &Path, records: &Records) -> Result<(), RenderError> {
    let files = files(records)?;
    for (path, text) in &files {
        atomic::write(&dir.join(path), text.as_bytes())?;
    }
    remove_other_charts(dir, &files);
    Ok(())
}

/// A chart that the file system does not let us remove is not an error of the report.
fn remove_other_charts(dir: &Path, files: &[(PathBuf, String)]) {
    let Ok(entries) = std::fs::read_dir(dir.join(PLOTS_DIR)) else { return };
    for entry in entries.flatten() {
        let within = Path::new(PLOTS_DIR).join(entry.file_name());
        let is_chart = within.extension().is_some_and(|e| e == "svg");
        if is_chart && !files.iter().any(|(path, _)| *path == within) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    // Succeeds only if the folder is empty.
    let _ = std::fs::remove_dir(dir.join(PLOTS_DIR));
}
