//! `runner schema`: prints the JSON Schema of manifests, for editors.

use crate::cli::SchemaArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_out;

pub fn run(args: &SchemaArgs, console: &mut Console) -> Result<Exit, Failure> {
    let schema = runner_manifest::schema();
    match &args.out {
        None => console.print(&schema)?,
        Some(path) => write_out(path, &schema)?,
    }
    Ok(Exit::Success)
}
