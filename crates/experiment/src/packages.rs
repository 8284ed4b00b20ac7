//! Published packages that a manifest uses files from.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSpec {
    /// Name in the manifest's sources.
    pub name: String,
    pub registry: Registry,
    /// Name in the registry.
    pub published: String,
    pub version: String,
    /// SHA-256 of the archive in lowercase hexadecimal.
    pub sha256: String,
    /// Licence as stated in the manifest.
    pub license: Option<String>,
    pub bytes: Option<u64>,
}

/// Where a package is published, which determines the program that downloads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// A crate, downloaded by cargo.
    Crate,
    /// A wheel, downloaded by pip.
    Wheel,
}

impl Registry {
    /// Manifest key for a package of this kind.
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
