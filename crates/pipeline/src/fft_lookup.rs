//! Looks a kernel up in the same files and order as rocFFT does on this machine.

use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_model::{Digest, KernelFileFormat, Target};
use gfxpack_rocfft::{CacheKey, CachePaths, Reader, check_row, verify};
use gfxpack_stock_library::Library;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Result, in_full};
use crate::rocfft;
use crate::text::counted;

/// The user's settings of rocFFT's variables.
#[derive(Debug, Clone, Default)]
pub struct FftVariables {
    /// `ROCFFT_RTC_CACHE_PATH`.
    pub user_file: Option<PathBuf>,
    /// `ROCFFT_RTC_SYS_CACHE_PATH`.
    pub system_file: Option<PathBuf>,
    /// Whether `ROCFFT_RTC_CACHE_READ_DISABLE` disables reading.
    pub reading_off: bool,
}

/// A librocfft, and the parameters of its lookups.
#[derive(Debug)]
pub struct FftLibrary {
    library: Library,
    version: String,
    hip_version: i64,
    generator_sum: [u8; 32],
    shares_file: bool,
}

/// The result for one file.
#[derive(Debug, Serialize)]
pub struct FftFile {
    /// `user` or `system`.
    pub layer: &'static str,
    /// The file.
    pub file: PathBuf,
    /// `no-file`, `not-asked`, `unreadable`, `no-row` or `found`.
    pub state: &'static str,
    /// The state as text.
    pub detail: String,
    /// The number of its kernels for this processor and this library.
    pub kernels: u64,
    /// The code object.
    #[serde(skip)]
    pub code: Option<Vec<u8>>,
}

impl FftLibrary {
    /// Finds out from a library by which keys it looks kernels up.
    ///
    /// # Errors
    /// If the library can't be asked.
    pub fn ask(library: Library, target: &Target, cancel: &Cancel) -> Result<Self> {
        let plan = "c2c sp ip 64 fwd".parse().expect("a plan");
        let answer = rocfft::with_options(&library, target, cancel, |options| {
            gfxpack_rocfft::ask(&[plan], options, |_| Ok(()))
        })?;
        let shares_file = rocfft::shares_file(&library)?;
        let (hip_version, generator_sum) = (answer.hip_version, answer.generator_sum);
        Ok(Self { library, version: answer.version, hip_version, generator_sum, shares_file })
    }

    /// The library as a message.
    pub fn message(&self) -> Value {
        json!({
            "file": self.library.file, "version": self.version, "hip_version": self.hip_version,
            "generator_sum": Digest::from_bytes(self.generator_sum),
        })
    }

    /// The library as text: its version and file.
    pub fn in_words(&self) -> String {
        format!("rocFFT {} ({})", self.version, self.library.file.display())
    }

    /// Every file that the library may open, in the order of its lookup, with the
    /// result for a kernel. Of the system's files it opens the first that exists.
    pub fn look(&self, kernel: &str, target: &Target, variables: &FftVariables) -> Vec<FftFile> {
        let dir = self.library.file.parent().unwrap_or(Path::new("/"));
        let name = KernelFileFormat::RocfftCache.name_looked_for(target, self.shares_file);
        let FftVariables { user_file, system_file, .. } = variables;
        let (user, system) = (user_file.as_deref(), system_file.as_deref());
        let paths = CachePaths::new(dir, &name, user, system);
        let mut files = Vec::new();
        let mut open = |layer, file: PathBuf, is_asked: bool| -> bool {
            let exists = file.exists();
            let (state, detail, kernels, code) = match (exists, is_asked) {
                (false, _) => ("no-file", "no such file".to_owned(), 0, None),
                (true, false) => {
                    ("not-asked", "not opened: another file comes first".to_owned(), 0, None)
                }
                (true, true) => self.answer(&file, kernel, target),
            };
            files.push(FftFile { layer, file, state, detail, kernels, code });
            exists
        };
        if let Some(user) = paths.user {
            open("user", user, true);
        }
        let mut is_asked = true;
        for system in paths.system {
            is_asked &= !open("system", system, is_asked);
        }
        files
    }

    fn answer(
        &self,
        file: &Path,
        kernel: &str,
        target: &Target,
    ) -> (&'static str, String, u64, Option<Vec<u8>>) {
        let wanted = CacheKey {
            kernel_name: kernel.to_owned(),
            arch: target.id().processor().to_owned(),
            hip_version: self.hip_version,
            generator_sum: self.generator_sum,
        };
        let (mut kernels, mut others) = (0, Vec::new());
        let read = Reader::open(file).and_then(|reader| {
            reader.for_each_key(|key| {
                if (&key.arch, key.hip_version, key.generator_sum)
                    == (&wanted.arch, wanted.hip_version, wanted.generator_sum)
                {
                    kernels += 1;
                } else if key.kernel_name == kernel {
                    others.push(self.difference(&key, &wanted));
                }
                Ok(())
            })?;
            reader.get(&wanted)
        });
        match read {
            Err(error) => ("unreadable", in_full(&error), kernels, None),
            Ok(None) => {
                let count = counted(kernels, "kernel");
                let mut detail = format!("does not have it among {count} for {}", wanted.arch);
                if let Some(other) = others.first() {
                    detail.push_str(&format!("; it has the kernel {other}"));
                }
                ("no-row", detail, kernels, None)
            }
            Ok(Some(code)) => {
                let mut detail = format!("has it, {} bytes", code.len());
                if let Err(error) = check_row(&wanted, &code) {
                    detail.push_str(&format!(
                        "; but the driver refuses it, so that plans fail: {error}"
                    ));
                }
                ("found", detail, kernels, Some(code))
            }
        }
    }

    /// Why a row with the right name does not match.
    fn difference(&self, key: &CacheKey, wanted: &CacheKey) -> String {
        if key.arch != wanted.arch {
            format!("for {}", key.arch)
        } else if key.hip_version != wanted.hip_version {
            format!("for HIP {}, not {}", key.hip_version, wanted.hip_version)
        } else {
            format!("of another rocFFT than {}", self.version)
        }
    }

    /// What is wrong with a file, one text for each fault. Every code object is
    /// read.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn faults(&self, file: &Path, target: &Target) -> Result<Vec<String>> {
        let report = verify(file, Some(target.id().processor()))?;
        Ok(report.findings.iter().map(ToString::to_string).collect())
    }
}
