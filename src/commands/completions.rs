//! `runner completions`: prints a completion script for a shell.

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;

pub fn run(args: &CompletionsArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "runner", &mut script);
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
