//! `lookup` for rocFFT's kernels: in the same files and order as rocFFT does on this machine.

use std::path::{Path, PathBuf};

use gfxpack_compile::Cancel;
use gfxpack_miopen::Library;
use gfxpack_model::{Digest, KernelFileFormat, Target};
use gfxpack_pipeline::destination;
use gfxpack_pipeline::options::LibraryOptions;
use gfxpack_pipeline::rocfft::{shares_file, with_options};
use gfxpack_pipeline::stock_library;
use gfxpack_rocfft::{CacheKey, CachePaths, ROCFFT, Reader, check_row};
use gfxpack_runtime::Environment as RuntimeEnvironment;
use serde::Serialize;

use super::lookup::{not_found, target_of};
use crate::args::{CacheDir, Lookup};
use crate::context::Context;
use crate::environment::Environment;
use crate::fail::{self, Result, in_full};
use crate::output::{counted, display, message};
use crate::progress::Reporter;

const MISS_HINT: &str =
    "build it by `gfxpack dist --plans FILE`, from the plans of the program's log";

/// Shows which file has the kernel; fails if none has it.
pub(crate) fn run(args: &Lookup, context: &Context) -> Result {
    let Context { environment, cancel, output } = context;
    let kernel = &args.name;
    // Only names of MIOpen's kernels contain a dot: they end like files.
    if kernel.contains('.') {
        return Err(fail::usage(
            format!("failed to look `{kernel}` up: its arguments are missing"),
            "give them after the name, as `gfxpack kdb list --keys` or a log has them",
        ));
    }
    if !args.asked.system_dir.is_empty() {
        return Err(fail::usage(
            "failed to accept --system-dir: rocFFT looks for its files beside its library",
            "name that library, as --rocfft DIR; ROCFFT_RTC_SYS_CACHE_PATH names another file",
        ));
    }
    let target = target_of(&args.asked, &RuntimeEnvironment::read(), output)?;
    let cache = CacheDir::default().directory()?;
    let reporter = Reporter::new(context);
    let (source, options) = (args.rocfft.as_ref(), LibraryOptions::default());
    let library = stock_library::locate(&ROCFFT, source, &options, &cache, &reporter)?;
    let library = FftLibrary::ask(library, &target, cancel)?;
    let files = library.look(kernel, &target, environment);
    let mut found: Option<&FftFile> = files.iter().find(|file| file.code.is_some());
    if environment.rocfft_reading_off {
        output.warn("ROCFFT_RTC_CACHE_READ_DISABLE is set: rocFFT reads no file");
        found = None;
    }
    message!(output, "rocfft-lookup", {
        "kernel_name": kernel, "target": target, "library": {
            "file": library.library.file, "version": library.version,
            "hip_version": library.hip_version,
            "generator_sum": Digest::from_bytes(library.generator_sum),
        },
        "found": found.map(|file| display(&file.file)), "files": files,
    });
    output.text(&library.in_words());
    for file in &files {
        output.text(&format!("{:<6}  {}", file.layer, file.file.display()));
        output.text(&format!("        {}", file.detail));
    }
    match (found.and_then(|found| found.code.as_ref()), &args.out) {
        (Some(code), Some(path)) => destination::replace(path, code),
        (Some(_), None) => Ok(()),
        (None, _) => Err(not_found(&format!("`{kernel}`"), &target, MISS_HINT)),
    }
}

/// A librocfft, and the parameters of its lookups.
pub(super) struct FftLibrary {
    library: Library,
    version: String,
    hip_version: i64,
    generator_sum: [u8; 32],
    shares_file: bool,
}

/// The result for one file.
#[derive(Serialize)]
pub(super) struct FftFile {
    /// `user` or `system`.
    pub(super) layer: &'static str,
    pub(super) file: PathBuf,
    /// `no-file`, `not-asked`, `unreadable`, `no-row` or `found`.
    pub(super) state: &'static str,
    /// The state as text.
    pub(super) detail: String,
    /// The number of its kernels for this processor and this library.
    pub(super) kernels: u64,
    /// The code object.
    #[serde(skip)]
    code: Option<Vec<u8>>,
}

impl FftLibrary {
    /// Finds out from a library by which keys it looks kernels up.
    pub(super) fn ask(library: Library, target: &Target, cancel: &Cancel) -> Result<Self> {
        let plan = "c2c sp ip 64 fwd".parse().expect("a plan");
        let answer = with_options(&library, target, cancel, |options| {
            gfxpack_rocfft::ask(&[plan], options, |_| Ok(()))
        })?;
        let shares_file = shares_file(&library)?;
        let (hip_version, generator_sum) = (answer.hip_version, answer.generator_sum);
        Ok(Self { library, version: answer.version, hip_version, generator_sum, shares_file })
    }

    pub(super) fn in_words(&self) -> String {
        format!("rocFFT {} ({})", self.version, self.library.file.display())
    }

    /// Every file that the library may open, in the order of its lookup, with the
    /// result for a kernel. Of the system's files it opens the first that exists.
    pub(super) fn look(
        &self,
        kernel: &str,
        target: &Target,
        environment: &Environment,
    ) -> Vec<FftFile> {
        let dir = self.library.file.parent().unwrap_or(Path::new("/"));
        let name = KernelFileFormat::RocfftCache.name_looked_for(target, self.shares_file);
        let [user, system] = environment.rocfft_files.each_ref().map(Option::as_deref);
        let paths = CachePaths::new(dir, &name, user, system);
        let mut files = Vec::new();
        let mut is_asked = true;
        let user = paths.user.into_iter().map(|file| ("user", file));
        for (layer, file) in user.chain(paths.system.into_iter().map(|file| ("system", file))) {
            let exists = file.exists();
            let (state, detail, kernels, code) = match (exists, is_asked) {
                (false, _) => ("no-file", "no such file".to_owned(), 0, None),
                (true, false) => {
                    ("not-asked", "not opened: another file comes first".to_owned(), 0, None)
                }
                (true, true) => self.answer(&file, kernel, target),
            };
            is_asked &= !exists || layer == "user";
            files.push(FftFile { layer, file, state, detail, kernels, code });
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
}
