//! Brings `records.jsonl` files of an earlier version up to date, with every file generated from them.
//!
//! `cargo run --example upgrade_records -- reports/*/*`
//!
//! Nothing is measured: the records are read as this version understands them, written, read again and compared.

use std::error::Error;
use std::path::PathBuf;

use runner_results::journal;

fn main() -> Result<(), Box<dyn Error>> {
    for dir in std::env::args_os().skip(1).map(PathBuf::from) {
        let path = dir.join(journal::RECORDS_FILE);
        let records = journal::read_records(&path)?;
        let lock = journal::FolderLock::take(&dir)?;
        runner_report::write_all(&dir, &lock, &records)?;
        if journal::read_records(&path)? != records {
            return Err(format!("{} does not read back as it was written", path.display()).into());
        }
    }
    Ok(())
}
