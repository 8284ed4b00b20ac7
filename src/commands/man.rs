//! `runner man`: prints the man page of the program or of one command.

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::cli::{Cli, ManArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;

pub fn run(args: &ManArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut program = Cli::command();
    program.build();
    let command = match &args.command {
        None => program,
        Some(name) => program
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| Failure::usage(format!("there is no command `{name}`; `runner --help` lists them")))?,
    };
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::environment(format!("cannot write the man page: {error}")))?;
    console.print(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Success)
}
