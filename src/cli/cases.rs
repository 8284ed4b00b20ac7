//! Options that select the part of the matrix a command is about.

use clap::Args;

/// The options that select the part of the matrix to run.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Narrowing {
    /// Replace the values of an axis, as in `--set n=1024,4096`; may be repeated.
    #[arg(help_heading = "Cases", long, value_name = "AXIS=VALUES")]
    pub set: Vec<String>,
    /// Keep only cases for which the expression is true, as in `--filter 'n >= 2**20'`.
    #[arg(help_heading = "Cases", long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Keep only this variant; may be repeated.
    #[arg(help_heading = "Cases", long, value_name = "NAME")]
    pub variant: Vec<String>,
}
