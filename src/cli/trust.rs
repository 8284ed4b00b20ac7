//! What a manifest may do, and where its files may be.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use runner_files::project::Project;

/// Where the files of manifests may be.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct ReachArgs {
    /// Folder that all files of a manifest must be in [default: the parent of the manifest's folder].
    #[arg(help_heading = "Trust", long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Allow files outside the project.
    #[arg(help_heading = "Trust", long, conflicts_with = "project")]
    pub allow_outside: bool,
}

impl ReachArgs {
    /// The project of a manifest, which contains its files. Fails if the given folder does not exist.
    pub fn project_of(&self, manifest: &Path) -> Result<Project, Failure> {
        match &self.project {
            _ if self.allow_outside => Ok(Project::everywhere()),
            None => Ok(Project::from_manifest(manifest)),
            Some(folder) => Project::at(folder)
                .map_err(|error| Failure::usage(format!("--project {}: {error}; name a folder", folder.display()))),
        }
    }

    /// Project of a source on the command line.
    pub fn project_of_source(&self, source: &Path) -> Result<Project, Failure> {
        match &self.project {
            None if !self.allow_outside => Ok(Project::from_source(source)),
            _ => self.project_of(source),
        }
    }

    fn words(&self) -> Vec<String> {
        let project = self.project.as_ref().map(|folder| format!("--project={}", folder.display()));
        project.into_iter().chain(self.allow_outside.then(|| "--allow-outside".to_owned())).collect()
    }
}

/// What manifests may do.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct TrustArgs {
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Build and run host functions and scripts, which can do anything that you can. The consent is remembered until
    /// they change.
    #[arg(help_heading = "Trust", long)]
    pub allow_host_code: bool,
}

impl TrustArgs {
    /// The options as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let host_code = self.allow_host_code.then(|| "--allow-host-code".to_owned());
        self.reach.words().into_iter().chain(host_code).collect()
    }
}
