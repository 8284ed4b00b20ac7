//! Parses arguments, runs the command, turns errors into exit codes.

use std::process::ExitCode;

use runner::cli::{Cli, ColorChoice};
use runner::commands::dispatch;
use runner::console::Console;

fn main() -> ExitCode {
    runner_files::atomic::report_full_files();
    let parsed = Cli::read(std::env::args_os());
    let mut console = Console::new(parsed.as_ref().map_or(ColorChoice::Auto, |cli| cli.color));
    let done = match &parsed {
        Ok(cli) => dispatch(cli, &mut console),
        Err(answer) => console.answer(answer),
    };
    let exit = done.unwrap_or_else(|failure| {
        console.fail(&failure);
        failure.exit
    });
    ExitCode::from(exit as u8)
}
