//! Files that hold what the program must print or write, byte for byte.
//!
//! `SNAPSHOTS=overwrite cargo test --test it` writes them again; read the difference before committing it.

use std::path::Path;

use snapbox::data::DataFormat;
use snapbox::{Assert, Data};

/// Fails with the difference unless `actual` is the content of the file.
#[track_caller]
pub fn assert_is(actual: &str, path: &Path) {
    if std::env::var_os("SNAPSHOTS").is_some_and(|action| action == "overwrite") {
        // snapbox itself would write line ends as LF, and CSV has CR LF.
        return std::fs::write(path, actual).unwrap();
    }
    let expected = Data::read_from(path, Some(DataFormat::Text)).raw();
    Assert::new().eq(Data::text(actual).raw(), expected);
}
