//! `compare`, `history` and `fidelity`: what they read has been run before.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ComparisonFormat {
    /// The verdict and what changed.
    #[default]
    Text,
    /// A page for a comment of a pull request.
    Markdown,
    /// A page for a browser: the same, with a table of all cases to filter and the distributions of their times.
    Html,
    /// Everything, for programs.
    Json,
    /// One row per case, in full precision.
    Csv,
    /// Tests that CI services show.
    Junit,
}

/// A difference that does not keep cases from being compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AllowedDifference {
    Device,
    /// Another GPU of the model: call changes that are smaller than GPUs of one model differ by.
    Gpu,
    Driver,
    /// How times were taken.
    Timing,
    Work,
    Check,
    Inputs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 no regression, 1 newly wrong, 5 broken claim, 4 slower or more work counted, 6 not comparable: the first of \
1, 5, 4, 6 that applies.")]
pub struct CompareArgs {
    /// Report folder, tree of reports, `records.jsonl`, journal, or a path in a git revision as in
    /// `main:reports/reduce`.
    pub base: String,
    /// The same for what is compared with it.
    pub new: String,
    /// Smallest change that matters, as in `2%` [default: 0.5 % of times, or the noise of the row if that is more, and
    /// 1 % of counts].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Compare despite these differences.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub allow: Vec<AllowedDifference>,
    /// Compare despite these differences, but fail for no time or count of such cases.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub inform: Vec<AllowedDifference>,
    /// Let hardware counters decide, too.
    #[arg(long)]
    pub gate_counters: bool,
    /// Fail also if a check is loosened or accepts wrong results, a claim, a case or a report is gone, or a report was
    /// measured before its sources or its manifest changed.
    #[arg(long)]
    pub strict: bool,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: ComparisonFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write the page for a pull request to this file.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Most bytes of that page; rows that matter least are left out first [default: what a comment on GitHub may have].
    #[arg(long, value_name = "BYTES", requires = "markdown")]
    pub markdown_limit: Option<usize>,
}

/// How a history is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HistoryFormat {
    /// Changes, breaks and a line per case.
    #[default]
    Text,
    /// The same as a page, with charts if --charts writes them.
    Markdown,
    /// A page for a browser: the same with charts, and a table of all cases to filter.
    Html,
    /// Everything, for programs.
    Json,
    /// One row per time, in full precision.
    Csv,
}

#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Folder of a report, or of several, in a git repository.
    pub dir: PathBuf,
    /// Revisions to look at, as in `v1.0..main`: those after the first, up to the second [default: up to HEAD].
    pub range: Option<String>,
    /// Keep only cases for which the expression is true, as in `--filter 'n >= 2**20'`.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Keep only this variant; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Smallest change that is reported, as in `2%` [default: 0.5 %].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: HistoryFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a chart of each case to this folder, as SVG: those with changes first, at most 24.
    #[arg(long, value_name = "DIR")]
    pub charts: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FidelityArgs {
    /// Report folders or `records.jsonl` files: for each experiment one of the simulator and one of
    /// `runner profile --sizes sim`.
    #[arg(required = true)]
    pub records: Vec<PathBuf>,
    /// File with the known causes of differences [default: `reports/fidelity.toml` if it exists].
    #[arg(long, value_name = "FILE")]
    pub causes: Option<PathBuf>,
    /// Write the page to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Returns a fraction, of a percentage with or without its sign.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let percent = number.parse::<f64>().ok().filter(|percent| (0.0..=1000.0).contains(percent));
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a percentage from 0 to 1000 is expected, as in `2%`".to_owned())
}
