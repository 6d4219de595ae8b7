//! `lookup` for rocFFT's kernels.

use gfxpack_pipeline::destination;
use gfxpack_pipeline::fft_lookup::{FftFile, FftLibrary};
use gfxpack_pipeline::options::LibraryOptions;
use gfxpack_pipeline::rocfft::locate;
use gfxpack_runtime::Environment as RuntimeEnvironment;

use super::lookup::{not_found, target_of};
use crate::args::{CacheDir, Lookup};
use crate::context::Context;
use crate::fail::{self, Result};
use crate::options::cache_dir;
use crate::output::{display, message};
use crate::progress::Reporter;

/// The hint if no file has a kernel.
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
    let cache = cache_dir(&CacheDir::default(), environment).directory()?;
    let reporter = Reporter::new(context);
    let library =
        LibraryOptions { environment: environment.run.clone(), ..LibraryOptions::default() };
    let library = locate(args.rocfft.as_ref(), &library, &cache, &reporter)?;
    let library = FftLibrary::ask(library, &target, cancel)?;
    let variables = &environment.rocfft;
    let files = library.look(kernel, &target, variables);
    let mut found: Option<&FftFile> = files.iter().find(|file| file.code.is_some());
    if variables.reading_off {
        output.warn("ROCFFT_RTC_CACHE_READ_DISABLE is set: rocFFT reads no file");
        found = None;
    }
    message!(output, "rocfft-lookup", {
        "kernel_name": kernel, "target": target, "library": library.message(),
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
