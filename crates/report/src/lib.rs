//! Turns the summary of a run into its report: Markdown, CSV, SVG and HTML.
//!
//! Never opens a device or a journal: a report is a pure function of records and templates.

pub mod render;
