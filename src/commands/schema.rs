//! `runner schema`: the JSON Schema of the manifest, for editors.

use super::cli::SchemaArgs;
use super::{Console, Exit, Failure};
use crate::manifest;

pub fn run(args: &SchemaArgs, console: &mut Console) -> Result<Exit, Failure> {
    let schema = manifest::schema();
    match &args.out {
        None => console.print(&schema)?,
        Some(path) => std::fs::write(path, schema)
            .map_err(|error| Failure::environment(format!("cannot write {}: {error}", path.display())))?,
    }
    Ok(Exit::Success)
}
