//! Passes the commit of the checkout to `--version`. A build without a repository, from a tarball say, has none.

#[path = "build/commit.rs"]
mod commit;

use std::path::Path;

fn main() {
    // Cargo runs a build script without such a line whenever any file changes.
    println!("cargo:rerun-if-changed=build.rs");
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let Some(head) = commit::head(Path::new(&root)) else { return };
    for file in head.depends_on {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    println!("cargo:rustc-env=RUNNER_COMMIT={}", head.commit);
}
