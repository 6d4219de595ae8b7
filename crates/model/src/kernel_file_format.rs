//! The names of kernel files, for each format that a library looks kernels up
//! in. The crate of each format knows their content.

use std::path::Path;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::target::{Target, TargetError};

/// A format of files in which a library looks kernels up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum KernelFileFormat {
    /// MIOpen's kernel databases, which gfxpack's runtime reads too.
    #[default]
    Kdb,
    /// rocFFT's kernel caches.
    RocfftCache,
}

/// Source of rocFFT's names: rocFFT 1.0.32, `rtc_cache.cpp`, `default_cache_filename`, for the
/// shared file; and rocm-libraries' pull request 4892, in releases after ROCm 7.2, for the others.
impl KernelFileFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Kdb, Self::RocfftCache];

    /// The format of a file by its name; `None` if it is not a file of kernels.
    pub fn of_file_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let has = |format: &Self| {
            format.shared_file_name() == Some(name) || format.target_part(path).is_some()
        };
        Self::ALL.into_iter().find(has)
    }

    /// The name of the file with the kernels of a target.
    pub fn file_name(self, target: &Target) -> String {
        match self {
            Self::Kdb => target.kdb_file_name(),
            Self::RocfftCache => {
                format!("rocfft_kernel_cache_{}.db", target.id().processor())
            }
        }
    }

    /// The name of the one file for all GPUs, which some versions of the library read instead.
    pub fn shared_file_name(self) -> Option<&'static str> {
        match self {
            Self::Kdb => None,
            Self::RocfftCache => Some("rocfft_kernel_cache.db"),
        }
    }

    /// The name of the file that a library reads for a target, depending on
    /// whether it reads one file for all GPUs (`shares_file`).
    pub fn name_looked_for(self, target: &Target, shares_file: bool) -> String {
        let shared = self.shared_file_name().filter(|_| shares_file);
        shared.map_or_else(|| self.file_name(target), str::to_owned)
    }

    /// The part of a file's name that names its target, unchanged; `None` for a
    /// shared file.
    pub fn target_part(self, path: &Path) -> Option<&str> {
        let name = path.file_name()?.to_str()?;
        match self {
            Self::Kdb => name.strip_suffix(".kdb").filter(|target| !target.is_empty()),
            Self::RocfftCache => {
                let target = name.strip_prefix("rocfft_kernel_cache_")?.strip_suffix(".db")?;
                target.starts_with("gfx").then_some(target)
            }
        }
    }

    /// The target in a file's name; `None` for a shared file.
    ///
    /// # Errors
    /// If the name has something else in that place.
    pub fn target_of(self, path: &Path) -> Result<Option<Target>, TargetError> {
        self.target_part(path).map(str::parse).transpose()
    }

    /// Directory of such files within a build's output directory.
    pub fn output_dir(self) -> &'static str {
        match self {
            Self::Kdb => "kdb",
            Self::RocfftCache => "rocfft",
        }
    }

    /// The library that looks for such names, and examples of them, for
    /// display.
    pub fn expected(self) -> (&'static str, &'static str) {
        match self {
            Self::Kdb => ("MIOpen", "gfx906_60.kdb or gfx90a.kdb"),
            Self::RocfftCache => ("rocFFT", "rocfft_kernel_cache_gfx90a.db"),
        }
    }
}

/// The target in the name of a kdb or of a user's kdb: `gfx90a68.ukdb`.
pub fn target_of_kdb(path: &Path) -> Option<Target> {
    let extension = path.extension()?;
    (extension == "kdb" || extension == "ukdb").then_some(())?;
    path.file_stem()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kdb_gives_its_target() {
        let check = |path: &str, expected: Option<&str>| {
            let target = target_of_kdb(Path::new(path)).map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{path}");
        };
        check("/db/gfx90a68.kdb", Some("gfx90a@104"));
        check("gfx906_60.ukdb", Some("gfx906@60"));
        check("gfx1030.kdb", Some("gfx1030"));
        check("gfx906_60.db.txt", None);
        check("kernels.kdb", None);
    }

    #[test]
    fn the_name_of_a_file_gives_its_format() {
        for (target, format, name) in [
            ("gfx906@60", KernelFileFormat::Kdb, "gfx906_60.kdb"),
            ("gfx90a:xnack+@104", KernelFileFormat::Kdb, "gfx90a_xnack68.kdb"),
            ("gfx1201", KernelFileFormat::RocfftCache, "rocfft_kernel_cache_gfx1201.db"),
        ] {
            let (target, path): (Target, _) = (target.parse().unwrap(), Path::new("/a").join(name));
            assert_eq!(format.file_name(&target), name);
            assert_eq!(KernelFileFormat::of_file_name(&path), Some(format), "{name}");
            assert_eq!(format.target_of(&path), Ok(Some(target)), "{name}");
        }
    }

    #[test]
    fn a_name_may_give_no_target() {
        for format in KernelFileFormat::ALL {
            if let Some(shared) = format.shared_file_name() {
                assert_eq!(KernelFileFormat::of_file_name(Path::new(shared)), Some(format));
                assert_eq!(format.target_of(Path::new(shared)), Ok(None));
            }
        }
        for wrong in ["kernels.kdb", "rocfft_kernel_cache_gfxes.db"] {
            let format = KernelFileFormat::of_file_name(Path::new(wrong)).expect(wrong);
            assert!(format.target_of(Path::new(wrong)).is_err(), "{wrong}");
        }
        for other in [".kdb", "gfx906_60.db", "rocfft_kernel_cache_x.db", "kdb", ""] {
            assert_eq!(KernelFileFormat::of_file_name(Path::new(other)), None, "{other}");
        }
    }
}
