//! Compilers and programs that can be fetched: NVIDIA's packages, pinned by version and hash.

/// Packages that together form a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Pinned {
    /// CUDA major version of the set.
    pub major: u32,
    /// Version of NVRTC or of the program.
    pub build: &'static str,
    pub download_mb: u32,
    /// Size on disk. Fetching temporarily needs about three times as much.
    pub installed_mb: u32,
    /// Requirements in pip's format, one package with its hashes per entry.
    pub(super) requirements: &'static str,
}

pub static NEWEST: &Pinned = &PINNED[1];

static PINNED: [Pinned; 2] = [
    Pinned {
        major: 12,
        build: "12.9.86",
        download_mb: 137,
        installed_mb: 138,
        requirements: include_str!("pinned/cuda12.txt"),
    },
    Pinned {
        major: 13,
        build: "13.0.88",
        download_mb: 96,
        installed_mb: 142,
        requirements: include_str!("pinned/cuda13.txt"),
    },
];

static SANITIZERS: [Pinned; 2] = [
    Pinned {
        major: 12,
        build: "12.9.79",
        download_mb: 9,
        installed_mb: 26,
        requirements: include_str!("pinned/sanitizer12.txt"),
    },
    Pinned {
        major: 13,
        build: "13.0.85",
        download_mb: 14,
        installed_mb: 42,
        requirements: include_str!("pinned/sanitizer13.txt"),
    },
];

/// nvcc of CUDA 13; there is no package for CUDA 12.
static NVCC: Pinned = Pinned {
    major: 13,
    build: "13.0.88",
    download_mb: 104,
    installed_mb: 284,
    requirements: include_str!("pinned/nvcc13.txt"),
};

/// There is no nvdisasm package for 13.0. This one reads the code of CUDA 12 and 13.
pub static NVDISASM: &Pinned = &Pinned {
    major: 13,
    build: "13.2.51",
    download_mb: 5,
    installed_mb: 6,
    requirements: include_str!("pinned/nvdisasm13.txt"),
};

/// nvcc of this build, if there are packages for it.
pub fn nvcc(build: &str) -> Option<&'static Pinned> {
    Some(&NVCC).filter(|set| set.build == build)
}

/// compute-sanitizer for a CUDA major version, which must be one of [`Pinned::for_major`].
pub fn sanitizer(major: u32) -> &'static Pinned {
    SANITIZERS.iter().find(|set| set.major == major).unwrap_or(&SANITIZERS[1])
}

impl Pinned {
    pub fn for_major(major: u32) -> Option<&'static Self> {
        PINNED.iter().find(|set| set.major == major)
    }
}

/// Supported major versions, e.g. `12, 13`.
pub(super) fn majors() -> String {
    PINNED.iter().map(|set| set.major.to_string()).collect::<Vec<_>>().join(", ")
}
