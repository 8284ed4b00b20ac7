//! Limits how much of the results a page shows, so that it stays below the size up to which GitHub renders Markdown.
//!
//! A [page](super::page) is first built with the widest limits. If it is too large, it is rebuilt with narrower ones:
//! the counters of each group go first, then the groups, then rows of the tables over all groups, then the manifest.
//! The page says what is omitted, and `results.csv` has everything.

use super::table::WIDEST;

/// Maximum size of a page, in bytes. GitHub does not render larger Markdown files.
pub const LARGEST_PAGE: usize = 512 * 1024;

/// How much of a report a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub width: usize,
    /// Maximum total size of the group sections, in bytes, estimated from their cells.
    pub section_bytes: usize,
    pub rows: usize,
    pub counters: bool,
    pub reasons: usize,
    pub log_bytes: usize,
    pub manifest_bytes: usize,
}

impl Limits {
    pub const WIDEST: Self = Self {
        width: WIDEST,
        section_bytes: 400 * 1024,
        rows: 1000,
        counters: true,
        reasons: 200,
        log_bytes: 32 * 1024,
        manifest_bytes: usize::MAX,
    };

    /// Unlimited width: the terminal fits tables to its own width.
    pub const TERMINAL: Self = Self { width: usize::MAX, ..Self::WIDEST };

    /// Limits to try, from widest to narrowest.
    pub const LEVELS: [Self; 4] = [
        Self::WIDEST,
        Self { counters: false, section_bytes: 256 * 1024, log_bytes: 4 * 1024, ..Self::WIDEST },
        Self {
            counters: false,
            section_bytes: 64 * 1024,
            rows: 200,
            reasons: 50,
            log_bytes: 1024,
            manifest_bytes: 128 * 1024,
            ..Self::WIDEST
        },
        Self {
            counters: false,
            section_bytes: 0,
            rows: 50,
            reasons: 10,
            log_bytes: 256,
            manifest_bytes: 16 * 1024,
            ..Self::WIDEST
        },
    ];
}
