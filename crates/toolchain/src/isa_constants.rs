//! The one-constant modules that device libraries lack for newer processors: their values, and a
//! directory of device libraries that includes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::compiler::SuppliedConstant;
use gfxpack_model::digest::Hasher;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_model::{Digest, Error};

use crate::error;
use crate::probe::ProgramRunner;

/// The checksums of the directory's files.
const SUMS: &str = "supplied.json";
const ISA: &str = "__oclc_ISA_version";
const ABI: &str = "__oclc_ABI_version";

/// The number of a processor in device libraries: major times 1000, minor times 100, plus stepping.
///
/// Source: ROCm/llvm-project, `amd/device-libs/oclc/src/isa_version_*.cl`.
fn isa_version(processor: &str) -> Option<u32> {
    let digits = processor.strip_prefix("gfx")?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let (minor, stepping) = rest.split_at_checked(1)?;
    let hex = |digit| u32::from_str_radix(digit, 16).ok();
    Some(major.parse::<u32>().ok()? * 1000 + hex(minor)? * 100 + hex(stepping)?)
}

/// The constants that the device libraries lack for processors that clang can build for, and that
/// gfxpack can supply.
///
/// Nothing else in them depends on the processor: everywhere else the constant is compared, to
/// choose among code for all processors. Libraries without the constants of any code object version
/// are of another kind.
pub(crate) fn missing(
    device_libs: &Path,
    processors: &BTreeSet<String>,
    isas: &BTreeSet<String>,
) -> Vec<SuppliedConstant> {
    let mut missing = Vec::new();
    let has = |name: &str| device_libs.join(name).is_file();
    if !has("oclc_abi_version_500.bc") {
        return missing;
    }
    if !has("oclc_abi_version_600.bc") {
        let file = "oclc_abi_version_600.bc".to_owned();
        missing.push(SuppliedConstant { file, symbol: ABI.to_owned(), value: 600, gfx: None });
    }
    for processor in PROCESSORS {
        let isa = processor.name.trim_start_matches("gfx");
        let wanted = processors.contains(processor.name) && !isas.contains(isa);
        if let Some(value) = isa_version(processor.name).filter(|_| wanted) {
            missing.push(SuppliedConstant {
                file: format!("oclc_isa_version_{isa}.bc"),
                symbol: ISA.to_owned(),
                value,
                gfx: Some(processor.name.to_owned()),
            });
        }
    }
    missing
}

/// The module as text, with the linkage of those in the device libraries.
/// clang fills in its own data layout.
fn module(constant: &SuppliedConstant) -> String {
    format!(
        "target triple = \"amdgcn-amd-amdhsa\"\n\n@{} = linkonce_odr protected local_unnamed_addr \
         addrspace(4) constant i32 {}, align 4\n",
        constant.symbol, constant.value
    )
}

/// A digest of the constants' values. Their bitcode depends only on clang, whose digest is combined
/// with this one.
pub(crate) fn digest(constants: &[SuppliedConstant]) -> Digest {
    Hasher::new("gfxpack supplied constants 1")
        .list(constants.iter().map(|constant| constant.file.as_bytes()))
        .list(constants.iter().map(|constant| module(constant).into_bytes()))
        .finish()
}

/// The directory, below a cache directory, of device libraries with these constants. Its name is a
/// digest of its content.
pub(crate) fn directory(
    cache: &Path,
    device_libs: &Path,
    toolchain: Digest,
    constants: &[SuppliedConstant],
) -> PathBuf {
    let name = Hasher::new("gfxpack device libraries 1")
        .field(toolchain.as_ref())
        .field(digest(constants).as_ref())
        .field(device_libs.as_os_str().as_encoded_bytes())
        .finish();
    cache.join("device-libs").join(name.to_string())
}

/// Creates the directory, unless it exists and is undamaged: links to the device libraries, and the
/// constants compiled by the toolchain's own clang. It is filled in the scratch directory, which is
/// on the same disk and is removed after a killed build.
pub(crate) fn make(
    dir: &Path,
    device_libs: &Path,
    clang: &Path,
    constants: &[SuppliedConstant],
    runner: &ProgramRunner<'_>,
) -> Result<(), Error> {
    if is_sound(dir, device_libs, constants) {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(dir);
    fs::create_dir_all(parent).map_err(error::io("create", parent))?;
    let new = tempfile::Builder::new()
        .prefix("new-")
        .tempdir_in(runner.scratch)
        .map_err(error::io("create", parent))?;
    fill(new.path(), device_libs, clang, constants, runner)?;
    // Readable by all users, like everything in a shared cache.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(new.path(), readable).map_err(error::io("create", new.path()))?;
    if dir.exists() {
        // The existing directory is damaged, or another build has just created it; the last build
        // checks it.
        if is_sound(dir, device_libs, constants) {
            return Ok(());
        }
        let aside = tempfile::tempdir_in(runner.scratch).map_err(error::io("create", parent))?;
        fs::rename(dir, aside.path().join("damaged")).map_err(error::io("replace", dir))?;
    }
    match fs::rename(new.path(), dir) {
        Ok(()) => {
            // It was renamed, and must stay.
            let _gone = new.keep();
            Ok(())
        }
        Err(_) if is_sound(dir, device_libs, constants) => Ok(()),
        Err(error) => Err(error::io("create", dir)(error)),
    }
}

fn fill(
    dir: &Path,
    device_libs: &Path,
    clang: &Path,
    constants: &[SuppliedConstant],
    runner: &ProgramRunner<'_>,
) -> Result<(), Error> {
    for name in names(device_libs)? {
        let link = dir.join(&name);
        let make = std::os::unix::fs::symlink(device_libs.join(&name), &link);
        make.map_err(error::io("create", link))?;
    }
    let mut sums: Vec<(String, Digest)> = Vec::new();
    for constant in constants {
        let bytes = runner.bitcode(clang, &module(constant))?;
        let file = dir.join(&constant.file);
        fs::write(&file, &bytes).map_err(error::io("write", &file))?;
        sums.push((constant.file.clone(), Digest::of(&bytes)));
    }
    let file = dir.join(SUMS);
    let text = serde_json::to_vec(&sums).expect("plain data");
    fs::write(&file, text).map_err(error::io("write", &file))
}

/// The bitcode files of a directory.
fn names(device_libs: &Path) -> Result<BTreeSet<String>, Error> {
    let entries = fs::read_dir(device_libs).map_err(error::io("read", device_libs))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| name.ends_with(".bc")).collect())
}

/// Whether the directory has exactly the expected content.
pub(crate) fn is_sound(dir: &Path, device_libs: &Path, constants: &[SuppliedConstant]) -> bool {
    let sums = fs::read(dir.join(SUMS)).ok();
    let sums: Option<Vec<(String, Digest)>> =
        sums.and_then(|text| serde_json::from_slice(&text).ok());
    let (Some(sums), Ok(linked), Ok(all)) = (sums, names(device_libs), names(dir)) else {
        return false;
    };
    let made = constants.iter().zip(&sums).all(|(constant, (file, digest))| {
        *file == constant.file
            && fs::read(dir.join(file)).is_ok_and(|bytes| Digest::of(&bytes) == *digest)
    });
    let links = |name: &String| {
        fs::read_link(dir.join(name)).is_ok_and(|target| target == device_libs.join(name))
    };
    made && sums.len() == constants.len()
        && linked.iter().all(links)
        && all.len() == linked.len() + constants.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_device_libraries() {
        for (processor, number) in [
            ("gfx803", 8003),
            ("gfx906", 9006),
            ("gfx90a", 9010),
            ("gfx90c", 9012),
            ("gfx942", 9402),
            ("gfx950", 9500),
            ("gfx1013", 10103),
            ("gfx1030", 10300),
            ("gfx1103", 11003),
            ("gfx1152", 11502),
            ("gfx1201", 12001),
        ] {
            assert_eq!(isa_version(processor), Some(number), "{processor}");
        }
        for none in ["gfx", "gfx9", "gfx9-generic", "x", "gfx9é"] {
            assert_eq!(isa_version(none), None, "{none}");
        }
    }
}
