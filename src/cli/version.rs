//! The output of `--version`: the version of the package, the commit it was built from and the pinned CUDA toolkit.

use std::sync::LazyLock;

use runner_compile::pinned;

/// Commit, if the build script found one. A build from a tarball has none.
const COMMIT: Option<&str> = option_env!("RUNNER_COMMIT");

static LONG: LazyLock<String> = LazyLock::new(|| long(COMMIT));

/// Version with details: `0.1.0 (1286e4d90f0a, CUDA toolkit 13.0.88)`.
pub fn long_version() -> &'static str {
    &LONG
}

fn long(commit: Option<&str>) -> String {
    let commit = commit.map(|commit| format!("{commit:.12}, ")).unwrap_or_default();
    format!("{} ({commit}CUDA toolkit {})", env!("CARGO_PKG_VERSION"), pinned::NEWEST.build)
}

#[cfg(test)]
mod tests {
    use super::long;

    #[test]
    fn a_build_without_a_repository_names_no_commit() {
        assert!(long(None).starts_with("0.1.0 (CUDA toolkit "), "{}", long(None));
        assert!(
            long(Some("1286e4d90f0a63f9a1d5ee0e3b77f2f6c0c1a2b3")).starts_with("0.1.0 (1286e4d90f0a, CUDA toolkit ")
        );
    }
}
