//! The folder of a job that is being submitted. A new folder is removed again unless the job is written.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use runner_cluster::Job;
use runner_files::atomic;

#[derive(Debug)]
pub struct NewFolder {
    dir: PathBuf,
    /// Folders that did not exist before, innermost first.
    created: Vec<PathBuf>,
}

impl NewFolder {
    pub fn create(dir: &Path) -> Result<Self, Failure> {
        let created = dir.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let new = Self { dir: dir.to_owned(), created };
        atomic::create_folder(dir).map_err(Failure::environment)?;
        Ok(new)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if self.created.is_empty() || Job::exists(&self.dir) {
            return;
        }
        // What cannot be removed stays: the failure that led here matters more.
        let _ = fs::remove_dir_all(&self.dir);
        // Other jobs may have been submitted into the outer folders meanwhile.
        self.created.iter().skip(1).all(|folder| fs::remove_dir(folder).is_ok());
    }
}
