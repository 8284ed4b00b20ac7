//! `runner completions`: prints a completion script for a shell.

use clap::CommandFactory as _;

use super::cli::{Cli, CompletionsArgs};
use super::{Console, Exit, Failure};

pub fn run(args: &CompletionsArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "runner", &mut script);
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
