//! Parser for the output of `ncu --csv --page raw`: one row per profiled launch, one column per metric, units in the
//! second row.
//!
//! Messages of `ncu` (`==PROF==`, `==ERROR==`) may precede, interrupt or follow the table; they are collected
//! separately. A value that is not a number (`n/a`, or empty) is left out. A table without the columns that identify a
//! launch is an error.

use std::collections::BTreeMap;

use runner_types::{Dim3, MarkedLaunch};

use super::ProfilerError;
use super::source_page::{InstructionRow, number};

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Id of the process that made the launch.
    pub process: u32,
    pub launch: MarkedLaunch,
    /// Values under the profiler's names, in base units.
    pub values: BTreeMap<String, f64>,
    /// Counts per instruction; empty unless requested.
    pub instructions: Vec<InstructionRow>,
}

/// Parsed output of the profiler.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Rows in the order in which the launches were profiled.
    pub rows: Vec<Row>,
    /// Errors and warnings, without their `==ERROR==` or `==WARNING==` prefix.
    pub complaints: Vec<String>,
    /// Number of launches without instruction counts because their source page could not be identified.
    pub without_page: usize,
}

/// Columns that identify a launch, in the order in which [`row`] reads them.
const IDENTITY: [&str; 4] = ["Process ID", "Kernel Name", "Grid Size", "Block Size"];

/// Other columns that are not metrics.
const OTHERS: [&str; 7] = ["ID", "Process Name", "Host Name", "Context", "Stream", "Device", "CC"];

/// Parses one output of `ncu`.
pub fn read(text: &str) -> Result<Table, ProfilerError> {
    let mut table = Table::default();
    let mut csv = String::new();
    for line in text.lines() {
        if line.starts_with("==") {
            table.complaints.extend(complaint(line));
        } else if line.starts_with('"') || !csv.is_empty() {
            csv.push_str(line);
            csv.push('\n');
        }
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(csv.as_bytes());
    let headers: Vec<String> = reader.headers().map_err(unreadable)?.iter().map(str::to_owned).collect();
    if csv.is_empty() {
        return Ok(table);
    }
    let mut identity = [0; 4];
    for (place, name) in identity.iter_mut().zip(IDENTITY) {
        *place = headers.iter().position(|header| header == name).ok_or_else(|| missing_column(name, &headers))?;
    }
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        // In the row of units, the process id is empty.
        let process = record.get(identity[0]).unwrap_or_default().trim();
        if process.is_empty() {
            continue;
        }
        table.rows.push(row(&headers, &identity, process, &record)?);
    }
    Ok(table)
}

fn row(
    headers: &[String],
    identity: &[usize; 4],
    process: &str,
    record: &csv::StringRecord,
) -> Result<Row, ProfilerError> {
    let cell = |place: usize| record.get(place).unwrap_or_default().trim();
    let wrong = |name: &str, text: &str| ProfilerError::Unreadable(format!("`{text}` in the column {name}"));
    let [_, kernel, grid, block] = *identity;
    let extent = |place: usize, name: &str| dimensions(cell(place)).ok_or_else(|| wrong(name, cell(place)));
    let is_metric = |name: &str| !IDENTITY.contains(&name) && !OTHERS.contains(&name);
    let values = headers.iter().enumerate().filter(|(_, name)| is_metric(name));
    Ok(Row {
        process: process.parse().map_err(|_| wrong(IDENTITY[0], process))?,
        launch: MarkedLaunch {
            kernel: cell(kernel).to_owned(),
            grid: extent(grid, IDENTITY[2])?,
            block: extent(block, IDENTITY[3])?,
        },
        values: values.filter_map(|(place, name)| Some((name.clone(), number(cell(place))?))).collect(),
        instructions: Vec::new(),
    })
}

/// Parses dimensions such as `(65536, 1, 1)`.
fn dimensions(text: &str) -> Option<Dim3> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let extents: Vec<u32> = inner.split(',').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
    match extents[..] {
        [x, y, z] => Some(Dim3::new(x, y, z)),
        _ => None,
    }
}

/// Text of an error or warning; `None` for progress messages and notes on clocks and caches.
fn complaint(line: &str) -> Option<String> {
    let line = line.trim();
    let words = line.strip_prefix("==ERROR==").or_else(|| line.strip_prefix("==WARNING=="))?.trim();
    (!words.starts_with("Note:")).then(|| words.to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn unreadable(error: csv::Error) -> ProfilerError {
    ProfilerError::Unreadable(error.to_string())
}

fn missing_column(name: &str, headers: &[String]) -> ProfilerError {
    let first: Vec<&str> = headers.iter().take(12).map(String::as_str).collect();
    ProfilerError::Unreadable(format!("no column `{name}`; columns: {}, …", first.join(", ")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// Table header of Nsight Compute 2025.3.1.
    const HEADS: &str = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","dram__bytes_read.sum","smsp__inst_executed.sum""#;
    const UNITS: &str = r#""","","","","","","","","","","","ns","byte","inst""#;

    fn table(rows: &[&str]) -> Table {
        let words = "==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling \
                     results may be inconsistent.\n==PROF== Connected to process 553 (/tmp/mprobe)\n";
        read(&format!("{words}{HEADS}\n{UNITS}\n{}\n==PROF== Disconnected from process 553\n", rows.join("\n")))
            .unwrap()
    }

    #[test]
    fn a_row_is_a_launch_with_its_values_in_base_units() {
        let found = table(&[
            r#""0","553","mprobe","127.0.0.1","_Z3fmaIfLi8EEvT_S0_iPS0_","1","13","(256, 1, 1)","(1056, 2, 1)","0","9.0","10,836,736","25.5","n/a""#,
        ]);
        let [row] = found.rows.as_slice() else { panic!("{found:?}") };
        assert_eq!((row.process, row.launch.kernel.as_str()), (553, "_Z3fmaIfLi8EEvT_S0_iPS0_"));
        assert_eq!((row.launch.grid, row.launch.block), (Dim3::new(1056, 2, 1), Dim3::new(256, 1, 1)));
        let values = [("gpu__time_duration.sum", 10_836_736.0), ("dram__bytes_read.sum", 25.5)];
        assert_eq!(
            row.values,
            values.map(|(name, value)| (name.to_owned(), value)).into(),
            "what is not a number is absent"
        );
        assert!(found.complaints.is_empty(), "{:?}", found.complaints);
    }

    #[test]
    fn errors_are_kept_with_and_without_a_table() {
        let text = "==PROF== Connected to process 1 (/tmp/a)\n==ERROR== Unknown Error on device 0.\n\
                    ==WARNING== No kernels were profiled.\n";
        let found = read(text).unwrap();
        assert_eq!(found.complaints, ["Unknown Error on device 0.", "No kernels were profiled."]);
        assert!(found.rows.is_empty());
        assert_eq!(read("").unwrap(), Table::default());
    }

    #[test]
    fn a_table_that_names_no_launch_is_refused_with_what_it_has() {
        let error = read("\"ID\",\"Kernel Name\"\n\"0\",\"k\"\n").unwrap_err();
        assert_eq!(error, ProfilerError::Unreadable("no column `Process ID`; columns: ID, Kernel Name, …".to_owned()));
        let heads = HEADS.replace("\"Grid Size\"", "\"Grid\"");
        assert!(read(&heads).unwrap_err().to_string().contains("no column `Grid Size`"));
    }
}
