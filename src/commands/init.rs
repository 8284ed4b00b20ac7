//! `runner init`: writes a manifest for the kernels of a source, or the files of a CI service.

mod ci;

use std::path::{Path, PathBuf};

use super::kernels::{draft, experiment_name, file_of, source_name};
use crate::cli::InitArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;

pub fn run(args: &InitArgs, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(service) = args.ci {
        return ci::write(service, args.force, console);
    }
    let default = || Path::new("experiments").join(experiment_name(&file_of(&args.sources[0]))).with_extension("toml");
    let path: PathBuf = args.out.clone().unwrap_or_else(default);
    let drafted = draft(&args.sources, &args.kernels, &experiment_name(&path), |source| source_name(source, &path))?;
    write_new("--out", &path, &drafted.commented(), args.force)?;
    let path = path.display();
    console.say(&format!("wrote {path}; edit it, then `runner check {path}` and `runner run {path}`"));
    Ok(Exit::Success)
}
