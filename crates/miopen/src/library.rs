//! Recognises libMIOpen and its version.

use std::fs;
use std::path::Path;

use gfxpack_stock_library::{ElfFile, Product, installed_file};

/// The text before MIOpen's version.
///
/// Source: MIOpen 3.3 (2d1fd997a), src/execution_context.cpp,
/// `ExecutionContext::ExecutionContext` (`LogRange` of the library's versions).
const VERSION_MARK: &[u8] = b", MIOpen version ";

/// What to do about a library that is not as any known version is.
pub(crate) const NOT_SUPPORTED: &str =
    "this version of MIOpen is not supported yet; use another one";

/// libMIOpen.
pub static MIOPEN: Product = Product {
    name: "libMIOpen",
    file: "libMIOpen.so",
    soname: "libMIOpen.so.1",
    function: "miopenCreate",
    option: "--miopen",
    package: "libmiopen1",
    companions: &["libmiopen1-tests", "libmiopen-tests-data"],
    databases_package: Some("libmiopen-tests-data"),
    driver: Some("MIOpenDriver"),
    databases: &["share/miopen/db", "usr/share/miopen/db", "opt/rocm/share/miopen/db"],
    version,
    version_of_tree: |roots| roots.iter().find_map(|root| header_version(root)),
    scratch_hint: "make room on that disk, or choose a directory that you may write to with \
                   --cache-dir",
    probe_hint: "install gfxpack-miopen-probe of the same version beside gfxpack",
    load_hint: "check that it is an undamaged libMIOpen for this machine, and that the libraries it \
                needs are there (`ldd` lists them)",
    function_hint: NOT_SUPPORTED,
};

/// The directory below `~/.cache/miopen` in which the installed library stores kernels: `3.4.0.`.
/// `None` if no library is installed, or its version can't be found. Does not read the whole
/// library, as [`Library::installed`](gfxpack_stock_library::Library::installed) does.
///
/// Source: MIOpen 3.3 (2d1fd997a), `ComputeUserCachePath` in binary_cache.cpp.
pub fn installed_cache_version(rocm: Option<&Path>) -> Option<String> {
    let (file, root) = installed_file(&MIOPEN, rocm)?;
    cache_version(&file, &root)
}

/// The same of a library in this tree.
pub fn cache_version(file: &Path, root: &Path) -> Option<String> {
    let constants = ElfFile::open(file).and_then(|library| library.constants()).ok();
    let own = constants.and_then(|constants| full_version(&constants));
    own.or_else(|| Some(format!("{}.", header_version(root)?)))
}

/// The version in `, MIOpen version 3.3.0.2d1fd997a-dirty` with its last part,
/// which may be empty: `3.4.0.`.
fn full_version(constants: &[u8]) -> Option<String> {
    version(constants)?;
    let at = memchr::memmem::find(constants, VERSION_MARK)? + VERSION_MARK.len();
    let text = constants[at..].split(|byte| *byte == 0).next()?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+".contains(byte);
    let text = text.get(..text.len().min(64))?;
    if !text.iter().all(plain) {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}

/// The version in `, MIOpen version 3.4.0.` or `… 3.3.0.2d1fd997a`.
fn version(constants: &[u8]) -> Option<String> {
    let at = memchr::memmem::find(constants, VERSION_MARK)? + VERSION_MARK.len();
    let text = constants.get(at..at + 32).unwrap_or(&constants[at..]);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let text = std::str::from_utf8(&text[..digits]).ok()?;
    let numbers: Vec<&str> = text.split('.').filter(|number| !number.is_empty()).collect();
    // The fourth part is the commit, which may begin with digits.
    (numbers.len() >= 3).then(|| numbers[..3].join("."))
}

/// MIOpen's version in its header.
///
/// Source: MIOpen 3.3 (2d1fd997a), include/miopen/version.h.in.
pub(crate) fn header_version(root: &Path) -> Option<String> {
    let places = ["include", "usr/include", "opt/rocm/include"];
    let text = places
        .iter()
        .find_map(|dir| fs::read_to_string(root.join(dir).join("miopen/version.h")).ok())?;
    let number = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix("#define "));
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u32>().ok()
    };
    let [major, minor, patch] =
        ["MAJOR", "MINOR", "PATCH"].map(|part| number(&format!("MIOPEN_VERSION_{part} ")));
    Some(format!("{}.{}.{}", major?, minor?, patch?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_the_library_logs() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(version(text.as_bytes()).as_deref(), expected, "{text:?}");
        };
        check("\0, HIP version 6.4.0, MIOpen version 3.4.0.\0x", Some("3.4.0"));
        check(", MIOpen version 3.3.0.2d1fd997a-dirty\0", Some("3.3.0"));
        check(", MIOpen version 3.10.21", Some("3.10.21"));
        check(", MIOpen version 3.4\0", None);
        check(", MIOpen version \0", None);
        check("MIOpen", None);
        let full = |text: &str| full_version(text.as_bytes());
        assert_eq!(full(", MIOpen version 3.4.0.\0x").as_deref(), Some("3.4.0."));
        let dirty = ", MIOpen version 3.3.0.2d1fd997a-dirty\0";
        assert_eq!(full(dirty).as_deref(), Some("3.3.0.2d1fd997a-dirty"));
        assert_eq!(full(", MIOpen version 3.4.0./../x\0"), None);
    }
}
