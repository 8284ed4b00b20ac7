//! Files that hold what the program must print or write, byte for byte.
//!
//! `SNAPSHOTS=overwrite cargo test --test it` writes them again; read the difference before committing it.

use std::path::Path;

use snapbox::data::DataFormat;
use snapbox::{Assert, Data};

/// Fails with the difference unless `actual` is the content of the file.
#[track_caller]
pub fn assert_is(actual: &str, path: &Path) {
    let expected = Data::read_from(path, Some(DataFormat::Text)).raw();
    Assert::new().action_env("SNAPSHOTS").eq(Data::text(actual).raw(), expected);
}
