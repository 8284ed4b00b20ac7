//! Files for a CI service: jobs that compare a pull request with its base, and one that comments on it.

use std::path::Path;
use std::{fs, io};

use runner_types::sha256_hex;

use crate::cli::CiService;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;

/// Scripts that several jobs share, each with the template line that it replaces.
const SCRIPTS: [(&str, &str); 5] = [
    ("@changed.sh@", include_str!("changed.sh")),
    ("@install.sh@", include_str!("install.sh")),
    ("@compare.sh@", include_str!("compare.sh")),
    ("@comment.sh@", include_str!("comment.sh")),
    ("@body.sh@", include_str!("body.sh")),
];

const fn files(service: CiService) -> &'static [(&'static str, &'static str)] {
    match service {
        CiService::Github => &[
            (".github/workflows/runner.yml", include_str!("github/runner.yml")),
            (".github/workflows/runner-gpu.yml", include_str!("github/runner-gpu.yml")),
            (".github/workflows/runner-comment.yml", include_str!("github/runner-comment.yml")),
        ],
        CiService::Gitlab => &[(".gitlab/runner.yml", include_str!("gitlab/runner.yml"))],
    }
}

/// Placeholder for the hash of the runner binary that the jobs download.
const HASH: &str = "@sha256@";

/// Writes the files below the working directory: all of them, or none if any exists.
pub fn write(service: CiService, force: bool, console: &mut Console) -> Result<Exit, Failure> {
    let files = files(service);
    let existing: Vec<&str> = files.iter().map(|(path, _)| *path).filter(|path| Path::new(path).exists()).collect();
    if !force && !existing.is_empty() {
        let existing = existing.join(", ");
        return Err(Failure::usage(format!("{existing} already exists; pass --force to overwrite it")));
    }
    let program = std::env::current_exe().map_err(|error| unreadable(Path::new("runner"), &error))?;
    let hash = sha256_hex(&fs::read(&program).map_err(|error| unreadable(&program, &error))?);
    for (path, template) in files {
        write_new("--ci", Path::new(path), &with_scripts(&template.replace(HASH, &hash)), true)?;
        console.say(&format!("wrote {path}"));
    }
    console.say(&format!(
        "publish {} and set RUNNER_URL at the top of each file to its address; comments in the files list the other \
         settings",
        program.display()
    ));
    Ok(Exit::Success)
}

fn unreadable(program: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot read {} to compute its hash for the jobs: {error}", program.display()))
}

/// The template with script lines replaced by the scripts, at the same indentation. Scripts may contain such lines too.
fn with_scripts(template: &str) -> String {
    let mut text = String::new();
    for line in template.lines() {
        let script = SCRIPTS.iter().find(|(mark, _)| line.trim() == *mark);
        let Some((mark, script)) = script else {
            text.extend([line, "\n"]);
            continue;
        };
        let indent = &line[..line.len() - mark.len()];
        for line in with_scripts(script).lines() {
            text.extend([if line.is_empty() { "" } else { indent }, line, "\n"]);
        }
    }
    text
}
