//! `compare`, `history` and `fidelity`, which read results of earlier runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Output format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ComparisonFormat {
    /// The verdict and what changed.
    #[default]
    Text,
    /// A comment for a pull request.
    Markdown,
    /// A page for a browser: the same, with a filterable table of all cases and the distributions of their times.
    Html,
    /// Everything, for programs.
    Json,
    /// One row per case, in full precision.
    Csv,
    /// Tests that CI services show.
    Junit,
}

/// A difference despite which cases are still compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AllowedDifference {
    Device,
    /// Another GPU of the same model: report even changes that are smaller than the differences between such GPUs.
    Gpu,
    Driver,
    /// How times were measured.
    Timing,
    Work,
    Check,
    Inputs,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 no regression, 1 newly wrong, 5 broken claim, 4 slower or more work, 6 not \
comparable: the first of 1, 5, 4, 6 that applies. Two variants of one report: 0, or 1 if one of them is wrong.")]
pub struct CompareArgs {
    /// Report folder, tree of reports, `records.jsonl`, journal, or a path in a git revision as in
    /// `main:reports/reduce`.
    pub base: String,
    /// The same, for the report to compare with the base. With three arguments, the first of two variants of the one
    /// report.
    pub new: String,
    /// Second of two variants of one report, as in `compare reports/reduce/simulated-h100 neighbored interleaved`:
    /// prints what differs most between them, and where.
    #[arg(value_name = "VARIANT", conflicts_with_all = ["threshold", "allow", "inform", "gate_counters", "strict",
          "format", "out", "markdown", "markdown_limit"])]
    pub variant: Option<String>,
    /// Smallest change that matters, as in `2%` [default: for times 0.5 %, or the row's noise if that is more; for
    /// counts 1 %].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Compare despite these differences.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub allow: Vec<AllowedDifference>,
    /// Compare despite these differences, but never fail because of a time or count of such cases.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub inform: Vec<AllowedDifference>,
    /// Let hardware counters decide, too.
    #[arg(long)]
    pub gate_counters: bool,
    /// Also fail if a check is loosened or accepts wrong results, if a claim, a case or a report is missing, or if a
    /// report was measured before its sources or its manifest changed.
    #[arg(long)]
    pub strict: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: ComparisonFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write a comment for the pull request to this file.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Maximum size of that comment in bytes; the least important rows are omitted first [default: GitHub's limit for a
    /// comment].
    #[arg(long, value_name = "BYTES", requires = "markdown")]
    pub markdown_limit: Option<usize>,
}

/// Output format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HistoryFormat {
    /// Changes, breaks and a line per case.
    #[default]
    Text,
    /// The same as a Markdown page, with charts if --charts writes them.
    Markdown,
    /// A page for a browser: the same with charts, and a filterable table of all cases.
    Html,
    /// Everything, for programs.
    Json,
    /// One row per time, in full precision.
    Csv,
}

#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Folder of one report, or of several, in a git repository.
    pub dir: PathBuf,
    /// Revisions to look at, as in `v1.0..main`: after the first, up to the second [default: up to HEAD].
    pub range: Option<String>,
    /// Keep only cases for which the expression is true, as in `--filter 'n >= 2**20'`.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Keep only this variant; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Smallest change to report, as in `2%` [default: 0.5 %].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: HistoryFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a chart of each case to this folder, as SVG: cases with changes first, at most 24.
    #[arg(long, value_name = "DIR")]
    pub charts: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FidelityArgs {
    /// Report folders or `records.jsonl` files: for each experiment, one from the simulator and one from `runner
    /// profile --sizes sim`.
    #[arg(required = true)]
    pub records: Vec<PathBuf>,
    /// File of known causes of differences [default: `reports/fidelity.toml` if it exists].
    #[arg(long, value_name = "FILE")]
    pub causes: Option<PathBuf>,
    /// Write the page to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Parses a percentage, with or without its sign, into a fraction.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let percent = number.parse::<f64>().ok().filter(|percent| (0.0..=1000.0).contains(percent));
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected a percentage from 0 to 1000, such as `2%`".to_owned())
}
