//! libMIOpens for tests, and the probe that asks them.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_debian::{Archive, KEYS, Options, Progress};
use gfxpack_miopen::{MIOPEN, Problem};
use gfxpack_model::Error;
use gfxpack_rocfft::ROCFFT;
use gfxpack_stock_library::{Library, LibrarySource, Product};
use tempfile::TempDir;

use super::project::{binary, command};

/// The probe, built with the same profile as these tests.
pub(crate) fn probe() -> PathBuf {
    binary().with_file_name("gfxpack-miopen-probe")
}

/// A library that behaves as described in `fake_miopen.c`, compiled with this definition, the
/// directory that contains it, and a MIOpenDriver as in `fake_driver.c`.
pub(crate) fn fake_library(definition: Option<&str>) -> (TempDir, Library) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("libMIOpen.so.1");
    let compile = |source: &str, out: &Path, options: &[&str]| {
        let mut cc = command("cc");
        cc.arg("-o").arg(out);
        cc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support").join(source))
            .args(options);
        assert!(cc.status().expect("cc starts").success(), "`{source}` could not be compiled");
    };
    let definition = definition.map(|name| format!("-D{name}"));
    let mut options = vec!["-shared", "-fPIC", "-Wno-deprecated-non-prototype"];
    options.extend(["-Wl,-soname,libMIOpen.so.1"].into_iter().chain(definition.as_deref()));
    compile("fake_miopen.c", &file, &options);
    let library = file.to_str().expect("a path in UTF-8");
    let options = [library, "-Wl,--unresolved-symbols=ignore-in-shared-libs"];
    compile("fake_driver.c", &directory.path().join("MIOpenDriver"), &options);
    let library =
        locate(&MIOPEN, &LibrarySource::Path(file), directory.path()).expect("a libMIOpen");
    (directory, library)
}

/// Debian's libraries are fetched into it once for all tests of this checkout.
pub(crate) const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/libmiopen-cache");

/// A problem of two kernels, whose sources Debian's library has.
pub(crate) const SMALL: &str = "convbfp16 -n 1 -c 8 -H 4 -W 4 -k 8 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -F 1 \
     --in_layout NHWC --fil_layout NHWC --out_layout NHWC\n";

/// Debian's library; `None` if Debian's archive can't be reached.
pub(crate) fn debian_library() -> Option<Library> {
    debian(&MIOPEN)
}

/// Debian's librocfft, in the same way.
pub(crate) fn debian_rocfft() -> Option<Library> {
    debian(&ROCFFT)
}

/// Copies a library, and those that it needs, into a directory.
pub(crate) fn copy_library(library: &Library, to: &Path) {
    fs::create_dir_all(to).expect("made");
    let dirs = library.search_path.iter().map(PathBuf::as_path).chain(library.file.parent());
    for file in dirs.flat_map(entries).filter(|path| path.is_file()) {
        fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
    }
}

/// Whether Debian's archive can't be reached, or has nothing for this machine.
#[must_use]
pub(crate) fn is_not_here(error: &Error) -> bool {
    let begins = ["failed to fetch `", "found no mirror of", "Debian has no packages for `"];
    begins.iter().any(|begin| error.to_string().starts_with(begin))
}

#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
fn debian(product: &'static Product) -> Option<Library> {
    let source = LibrarySource::Debian { suite: "sid".to_owned(), version: None };
    match locate(product, &source, Path::new(CACHE)) {
        Ok(library) => Some(library),
        Err(error) => {
            assert!(is_not_here(&error), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Ignores the progress of fetching.
struct IgnoredProgress;

impl Progress for IgnoredProgress {}

/// Finds a library.
pub(crate) fn locate(
    product: &'static Product,
    source: &LibrarySource,
    cache: &Path,
) -> Result<Library, Error> {
    let options = Options {
        mirror: None,
        apt: PathBuf::from("/etc/apt"),
        keys: KEYS.to_vec(),
        architecture: None,
    };
    Library::locate(product, source, None, &Archive::new(cache, options, &IgnoredProgress))
}

/// A convolution of this many images.
pub(crate) fn convolution(images: u32, directions: u8) -> Problem {
    let sizes = "-c 8 -H 8 -W 8 -k 8 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -g 1";
    format!("conv -n {images} {sizes} -F {directions}").parse().expect("a convolution")
}

/// The entries of a directory.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}
