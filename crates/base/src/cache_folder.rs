//! The folder of the user's cache.

use std::env;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// The environment variable that holds the path of the cache; without it, the cache is `runner` in the user's cache
/// folder.
pub const CACHE_VARIABLE: &str = "RUNNER_CACHE";

/// Returns the folder of the cache, which may not exist yet, or why it is unknown.
pub fn cache_folder() -> Result<PathBuf, String> {
    if let Some(root) = env::var_os(CACHE_VARIABLE).filter(|root| !root.is_empty()) {
        return Ok(PathBuf::from(root));
    }
    let strategy = etcetera::choose_base_strategy().map_err(|error| error.to_string())?;
    Ok(strategy.cache_dir().join("runner"))
}

/// The folder of the cache with unpacked packages, each in a folder with the hash of its archive as name.
pub const PACKAGES: &str = "packages";

/// Returns the folder that the package whose archive has this SHA-256 is unpacked in.
pub fn package_folder(sha256: &str) -> Result<PathBuf, String> {
    Ok(cache_folder()?.join(PACKAGES).join(sha256))
}
