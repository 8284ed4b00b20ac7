//! Published packages whose files a manifest names.

/// A package at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSpec {
    /// The name that sources call it by.
    pub name: String,
    /// The registry that has it.
    pub registry: Registry,
    /// The name that its registry calls it by.
    pub published: String,
    /// The exact version.
    pub version: String,
    /// The SHA-256 of the archive, hexadecimal and in lower case.
    pub sha256: String,
    /// The licence, as the manifest names it.
    pub license: Option<String>,
    /// The length of the archive.
    pub bytes: Option<u64>,
}

/// Where packages are published, and so which program downloads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// A crate, which cargo downloads.
    Crate,
    /// A wheel, which pip downloads.
    Wheel,
}

impl Registry {
    /// Returns the key of a manifest that names a package of this kind.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Crate => "crate",
            Self::Wheel => "wheel",
        }
    }
}

impl PackageSpec {
    /// Describes the package for messages: `crate candle-kernels 0.11.1`.
    pub fn describe(&self) -> String {
        format!("{} {} {}", self.registry.key(), self.published, self.version)
    }
}
