//! The user's cache folder, shared by everything that stores results between runs.

use std::env;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// Environment variable that sets the cache folder. The default is `runner` in the user's cache folder.
pub const CACHE_VARIABLE: &str = "RUNNER_CACHE";

/// Path of the cache folder, which may not exist yet. Fails if no path is known.
pub fn cache_folder() -> Result<PathBuf, String> {
    if let Some(root) = env::var_os(CACHE_VARIABLE).filter(|root| !root.is_empty()) {
        return Ok(PathBuf::from(root));
    }
    let strategy = etcetera::choose_base_strategy().map_err(|error| error.to_string())?;
    Ok(strategy.cache_dir().join("runner"))
}

/// Cache subfolder for unpacked packages. Each package has a folder named after its archive's hash.
pub const PACKAGES: &str = "packages";

/// Folder of the package whose archive has this SHA-256.
pub fn package_folder(sha256: &str) -> Result<PathBuf, String> {
    Ok(cache_folder()?.join(PACKAGES).join(sha256))
}
