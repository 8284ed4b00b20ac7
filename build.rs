//! Passes the checkout's commit to `--version`. A build without a repository, e.g. from a tarball, has none.

#[path = "build/commit.rs"]
mod commit;

use std::path::Path;

fn main() {
    // Without such a line, Cargo reruns a build script whenever any file changes.
    println!("cargo:rerun-if-changed=build.rs");
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let Some(head) = commit::head(Path::new(&root)) else { return };
    for file in head.depends_on {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    println!("cargo:rustc-env=RUNNER_COMMIT={}", head.commit);
}
