//! Parses arguments, runs the command, turns errors into exit codes.

use std::process::ExitCode;

use runner::commands::{Cli, Console, dispatch};

fn main() -> ExitCode {
    runner::atomic::report_full_files();
    let cli = Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let mut console = Console::new(cli.color);
    let exit = dispatch(&cli, &mut console).unwrap_or_else(|failure| {
        console.fail(&failure);
        failure.exit
    });
    ExitCode::from(exit as u8)
}
