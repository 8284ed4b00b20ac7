//! `runner schema`: the JSON Schema of the manifest, for editors.

use super::cli::SchemaArgs;
use super::{Console, Exit, Failure};
use crate::{atomic, manifest};

pub fn run(args: &SchemaArgs, console: &mut Console) -> Result<Exit, Failure> {
    let schema = manifest::schema();
    match &args.out {
        None => console.print(&schema)?,
        Some(path) => {
            atomic::write(path, schema.as_bytes()).map_err(|error| Failure::environment(error.to_string()))?;
        }
    }
    Ok(Exit::Success)
}
