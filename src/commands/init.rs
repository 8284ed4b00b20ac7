//! `runner init`: writes a manifest for the kernels of a source file, or the files for a CI service.

mod ci;

use std::path::{Path, PathBuf};

use super::kernels::{Names, draft, experiment_name, file_of, reference_name, source_name, write_reference};
use crate::cli::InitArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;

/// Patterns for files that runs write and that do not belong in a commit.
const IGNORED: &str = "\
# Reports are committed; these files are made anew by each run.
journal.jsonl
journal.previous.jsonl
journal.lock
search.jsonl
search.previous.jsonl
report.html
/target/reports
/target/shards
";

pub fn run(args: &InitArgs, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(service) = args.ci {
        return ci::write(service, args.force, console);
    }
    let default = || Path::new("experiments").join(experiment_name(&file_of(&args.sources[0]))).with_extension("toml");
    let path: PathBuf = args.out.clone().unwrap_or_else(default);
    let experiment = experiment_name(&path);
    let names = Names {
        experiment: &experiment,
        source: &|source| source_name(source, &path),
        reference: Some(reference_name(&path)),
    };
    let drafted = draft(&args.sources, &args.kernels, &names)?;
    write_new("--out", &path, &drafted.commented(), args.force)?;
    write_reference("--out", &path, &drafted, (args.force, console))?;
    let ignored = Path::new(".gitignore");
    if !ignored.exists() {
        write_new(".gitignore", ignored, IGNORED, false)?;
        console.say("wrote .gitignore, so that git leaves out what is not part of reports");
    }
    let path = path.display();
    console.say(&format!("wrote {path}; edit it, then `runner check {path}` and `runner run {path}`"));
    Ok(Exit::Success)
}
