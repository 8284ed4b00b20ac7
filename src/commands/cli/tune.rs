//! Defines the arguments of `tune`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::compare::percent;
use super::{DisplayArgs, Narrowing, TargetArgs, TrustArgs};

/// How many configurations are evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// So many.
    Count(u64),
    /// This share of the space.
    Share(f64),
}

impl Budget {
    /// Returns the number of configurations in a space of `size`, at least 1.
    pub fn resolve(self, size: u64) -> u64 {
        match self {
            Self::Count(count) => count.min(size),
            Self::Share(share) => ((size as f64 * share) as u64).min(size),
        }
        .max(1)
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_end().ends_with('%') {
            return percent(text).map(Self::Share);
        }
        let count = text.parse().ok().filter(|count| *count > 0);
        count.map(Self::Count).ok_or_else(|| "a number of configurations is expected, or a share as in `5%`".to_owned())
    }
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Exit codes: 0 the best configuration was found among those that were evaluated, 1 none of them is right, or a finalist failed.")]
pub struct TuneArgs {
    /// Manifest whose compared axes are the space.
    #[arg(required_unless_present = "simulate", conflicts_with = "simulate")]
    pub manifest: Option<PathBuf>,
    /// Search in a measured space instead, without a device: T4 (`.json`) or a table (`.csv`), also compressed (`.gz`).
    #[arg(long, value_name = "FILE")]
    pub simulate: Option<PathBuf>,
    /// What is minimised. With --simulate a measurement or column; on the simulator a counter [default:
    /// `inst_executed`]; on a GPU it is the time.
    #[arg(long, value_name = "NAME")]
    pub objective: Option<String>,
    /// How configurations are proposed: `portfolio`, `gaussian`, `forest`, `genetic`, `evolution`, `annealing`, `tabu`,
    /// `local`, `even`, `random` or `exhaustive`. With --simulate several between commas, or `all`.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "portfolio")]
    pub strategy: Vec<String>,
    /// How many configurations are evaluated, as a number or a share of the space.
    #[arg(long, value_name = "N|PERCENT", default_value = "5%")]
    pub budget: Budget,
    /// Seed of the strategy: with the same one and the same results, the same configurations are proposed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// With --simulate: repeat each search with so many seeds.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "simulate")]
    pub searches: u64,
    /// With --simulate: how many configurations are evaluated at once.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "simulate")]
    pub parallel: usize,
    /// How many of the best configurations are measured at the end, in the same rounds as the baseline.
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "simulate")]
    pub finalists: usize,
    #[command(flatten)]
    pub narrowing: Narrowing,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Do not look for races, uninitialized reads and similar errors in the simulator; bounds are still checked.
    #[arg(long, help_heading = "Device")]
    pub no_sanitize: bool,
    /// Folder of the report [default: `reports/<experiment>/<device>-tuned`, or below `target/reports/` if only a part of
    /// the matrix is searched].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue an interrupted search: what it has evaluated is not evaluated again.
    #[arg(long, conflicts_with = "simulate")]
    pub resume: bool,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub display: DisplayArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_or_a_share_of_the_space() {
        assert_eq!("5%".parse(), Ok(Budget::Share(0.05)));
        assert_eq!("300".parse(), Ok(Budget::Count(300)));
        assert!("0".parse::<Budget>().is_err() && "many".parse::<Budget>().is_err());
        assert_eq!(Budget::Share(0.05).resolve(4362), 218);
        assert_eq!((Budget::Count(300).resolve(100), Budget::Share(0.01).resolve(10)), (100, 1));
    }
}
