//! The directories into which packages install kernel files.

/// The directories for kernel files, in which their library finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallLayout {
    /// AMD's packages: `/opt/rocm-<version>`, or `/opt/rocm` without a version.
    Rocm {
        /// `6.4.1`.
        version: Option<String>,
    },
    /// TheRock's packages: `/opt/rocm/core-<version>`.
    ///
    /// Source: ROCm/TheRock, `build_tools/packaging/linux`, `install_prefix`.
    TheRock {
        /// Major and minor: `7.11`.
        version: String,
    },
    /// `/usr`, with libMIOpen in `/usr/lib` or `/usr/lib64`.
    Fhs,
    /// Debian's multiarch: MIOpen looks in `../share` relative to its library's
    /// directory `/usr/lib/<triplet>`.
    Debian,
    /// A Python package; the paths are relative to it.
    Python,
    /// Any other prefix, absolute.
    Prefix(String),
}

impl InstallLayout {
    /// The name by which a user chooses it.
    pub fn name(&self) -> String {
        match self {
            Self::Rocm { version: None } => "rocm".to_owned(),
            Self::Rocm { version: Some(version) } => format!("rocm-{version}"),
            Self::TheRock { version } => format!("therock-{version}"),
            Self::Fhs => "fhs".to_owned(),
            Self::Debian => "debian".to_owned(),
            Self::Python => "python".to_owned(),
            Self::Prefix(prefix) => prefix.clone(),
        }
    }

    /// The absolute directory of MIOpen's kdbs.
    pub fn kdb_dir(&self) -> String {
        self.dir_of("miopen")
    }

    /// The absolute directory of a library's kdbs.
    pub fn dir_of(&self, library: &str) -> String {
        match self {
            Self::Python => "/db".to_owned(),
            _ => format!("{}/share/{library}/db", self.prefix()),
        }
    }

    /// The layout whose directory of kdbs this absolute directory is, and the
    /// library: `/usr/share/miopen/db` is [`Self::Fhs`] and `miopen`. `None`
    /// for other directories.
    pub fn of_dir(dir: &str) -> Option<(Self, &str)> {
        let (prefix, library) = dir.strip_suffix("/db")?.rsplit_once("/share/")?;
        if library.is_empty() || library.contains('/') {
            return None;
        }
        Some((Self::of_prefix(prefix), library))
    }

    /// The layout whose directory of libraries this absolute directory is:
    /// `/opt/rocm/lib` is [`Self::Rocm`].
    pub fn of_library_dir(dir: &str) -> Self {
        match dir.rsplit_once('/') {
            Some(("/usr", "lib64")) => Self::Fhs,
            Some(("/usr/lib", _)) => Self::Debian,
            Some((prefix, "lib")) => Self::of_prefix(prefix),
            _ => Self::Prefix(dir.to_owned()),
        }
    }

    /// The layout of the prefix below whose `share` a library finds its kernels. This alone says
    /// where kernels for a library are looked for.
    ///
    /// `file` is the absolute real path of the library where it is installed:
    /// `/usr/lib/x86_64-linux-gnu/libMIOpen.so.1.0` is [`Self::Debian`]. `None` for a file that is
    /// in no directory of libraries, such as a copy.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `GetSystemDbPath` in db_path.cpp: `../share/miopen/db`
    /// relative to the library's directory.
    pub fn of_library(file: &str) -> Option<Self> {
        let (prefix, dir) = file.rsplit_once('/')?.0.rsplit_once('/')?;
        let is_multiarch = dir.contains("-linux-gnu") && prefix.ends_with("/lib");
        (is_multiarch || ["lib", "lib64"].contains(&dir)).then(|| Self::of_prefix(prefix))
    }

    /// Whether the prefix is a Python package that has libraries of ROCm: `torch`, or
    /// `_rocm_sdk_libraries…` beside it. pip installs kernels for such a library.
    pub fn is_pythons(&self) -> bool {
        let Self::Prefix(prefix) = self else { return false };
        let name = prefix.rsplit('/').next().unwrap_or_default();
        name == "torch" || name.starts_with("_rocm_sdk_libraries")
    }

    /// The layout with this [`Self::prefix`].
    pub fn of_prefix(prefix: &str) -> Self {
        let version = |begin: &str| {
            let version = prefix.strip_prefix(begin)?;
            (!version.is_empty() && !version.contains('/')).then(|| version.to_owned())
        };
        match prefix {
            "/usr" => Self::Fhs,
            "/usr/lib" => Self::Debian,
            "/opt/rocm" => Self::Rocm { version: None },
            _ => match (version("/opt/rocm-"), version("/opt/rocm/core-")) {
                (Some(version), _) => Self::Rocm { version: Some(version) },
                (_, Some(version)) => Self::TheRock { version },
                _ => Self::Prefix(prefix.to_owned()),
            },
        }
    }

    /// The absolute directory of ROCm's libraries.
    pub fn library_dir(&self) -> String {
        let prefix = self.prefix();
        match self {
            // Fedora and openSUSE.
            Self::Fhs => format!("{prefix}/lib64"),
            Self::Debian => format!("{prefix}/x86_64-linux-gnu"),
            Self::Rocm { .. } | Self::TheRock { .. } | Self::Python | Self::Prefix(_) => {
                format!("{prefix}/lib")
            }
        }
    }

    /// The absolute directory above `share`.
    pub fn prefix(&self) -> String {
        match self {
            Self::Rocm { version: Some(version) } => format!("/opt/rocm-{version}"),
            Self::Rocm { version: None } => "/opt/rocm".to_owned(),
            Self::TheRock { version } => format!("/opt/rocm/core-{version}"),
            Self::Fhs => "/usr".to_owned(),
            Self::Debian => "/usr/lib".to_owned(),
            Self::Python => String::new(),
            Self::Prefix(prefix) => prefix.trim_end_matches('/').to_owned(),
        }
    }

    /// The ROCm version in the directory's name. Packages for different
    /// versions can be installed side by side, so their names contain it too.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Rocm { version } => version.as_deref(),
            Self::TheRock { version } => Some(version),
            Self::Fhs | Self::Debian | Self::Python | Self::Prefix(_) => None,
        }
    }

    /// Whether AMD's classic packages install into the same directory.
    pub fn is_amds(&self) -> bool {
        matches!(self, Self::Rocm { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_gives_the_directories_miopen_searches() {
        let check = |layout: InstallLayout, expected: &str| assert_eq!(layout.kdb_dir(), expected);
        let installed = |layout: &InstallLayout| {
            let dir = layout.dir_of("miopen");
            assert_eq!(InstallLayout::of_dir(&dir), Some((layout.clone(), "miopen")), "{dir}");
        };
        installed(&InstallLayout::Rocm { version: Some("6.4.1".to_owned()) });
        installed(&InstallLayout::Rocm { version: None });
        installed(&InstallLayout::TheRock { version: "7.11".to_owned() });
        installed(&InstallLayout::Fhs);
        installed(&InstallLayout::Debian);
        installed(&InstallLayout::Prefix("/srv/r".to_owned()));
        for prefix in ["/opt/rocm-6.4.1/x", "/opt/rocm-", "/opt/rocm/core-"] {
            installed(&InstallLayout::Prefix(prefix.to_owned()));
        }
        for layout in [
            InstallLayout::Rocm { version: Some("6.4.1".to_owned()) },
            InstallLayout::TheRock { version: "7.11".to_owned() },
            InstallLayout::Fhs,
            InstallLayout::Debian,
        ] {
            assert_eq!(InstallLayout::of_library_dir(&layout.library_dir()), layout);
        }
        let of = |file: &str| InstallLayout::of_library(file).map(|layout| layout.kdb_dir());
        for (file, dir) in [
            ("/usr/lib/x86_64-linux-gnu/libMIOpen.so.1.0", "/usr/lib/share/miopen/db"),
            ("/usr/lib64/libMIOpen.so.1.0", "/usr/share/miopen/db"),
            ("/opt/rocm-6.4.1/lib/libMIOpen.so.1.0.60401", "/opt/rocm-6.4.1/share/miopen/db"),
            ("/opt/rocm/core-7.11/lib/libMIOpen.so.1", "/opt/rocm/core-7.11/share/miopen/db"),
            ("/v/site-packages/torch/lib/libMIOpen.so", "/v/site-packages/torch/share/miopen/db"),
            ("/srv/rocm/lib64/libMIOpen.so.1", "/srv/rocm/share/miopen/db"),
        ] {
            assert_eq!(of(file).as_deref(), Some(dir), "{file}");
            let layout = InstallLayout::of_library(file).unwrap();
            assert_eq!(InstallLayout::of_prefix(&layout.prefix()), layout);
            assert_eq!(layout.is_pythons(), file.contains("torch"), "{file}");
        }
        for copy in ["/tmp/copy/libMIOpen.so.1", "/srv/x86_64-linux-gnu/libMIOpen.so.1", "/x", ""] {
            assert_eq!(of(copy), None, "{copy}");
        }
        let sdk = InstallLayout::of_library("/s/_rocm_sdk_libraries_gfx110X/lib/libMIOpen.so.1");
        assert!(sdk.unwrap().is_pythons());
        for other in ["/usr/share/db", "/usr/share/a/b/db", "/usr/lib/rocfft", ""] {
            assert_eq!(InstallLayout::of_dir(other), None, "{other}");
        }
        let versioned = InstallLayout::Rocm { version: Some("6.4.1".to_owned()) };
        check(versioned, "/opt/rocm-6.4.1/share/miopen/db");
        check(InstallLayout::Rocm { version: None }, "/opt/rocm/share/miopen/db");
        let core = InstallLayout::TheRock { version: "7.11".to_owned() };
        check(core, "/opt/rocm/core-7.11/share/miopen/db");
        check(InstallLayout::Fhs, "/usr/share/miopen/db");
        check(InstallLayout::Debian, "/usr/lib/share/miopen/db");
        check(InstallLayout::Python, "/db");
        check(InstallLayout::Prefix("/srv/r/".to_owned()), "/srv/r/share/miopen/db");
        let check = |layout: InstallLayout, expected| assert_eq!(layout.library_dir(), expected);
        check(InstallLayout::Rocm { version: None }, "/opt/rocm/lib");
        check(InstallLayout::Fhs, "/usr/lib64");
        check(InstallLayout::Debian, "/usr/lib/x86_64-linux-gnu");
    }
}
