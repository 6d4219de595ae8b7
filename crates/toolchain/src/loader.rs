//! Where the dynamic loader looks for a program's shared libraries.
//!
//! Source: ld.so(8).

use std::fs;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, ReadCache};

use crate::witness::Witness;

const FILES: [&str; 3] = ["/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/ld.so.conf"];
const CONFIGURATION: &str = "/etc/ld.so.conf.d";
/// Without those of a triplet, which show by the libraries that lie there.
const DIRECTORIES: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
/// Below a directory with libraries: those for newer processors.
const HWCAPS: [&str; 4] =
    ["glibc-hwcaps", "glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v4"];

/// Looks at everything that decides for all programs alike.
pub(crate) fn look(witness: &mut Witness) {
    FILES.iter().for_each(|file| witness.look(Path::new(file)));
    witness.look_into(Path::new(CONFIGURATION));
    DIRECTORIES.iter().for_each(|dir| look_at_directory(witness, Path::new(dir)));
}

/// Looks at the names in a directory with libraries.
pub(crate) fn look_at_directory(witness: &mut Witness, dir: &Path) {
    witness.look(dir);
    HWCAPS.iter().for_each(|name| witness.look(&dir.join(name)));
}

/// The directories that a program or library names itself, by `RUNPATH` or
/// `RPATH`; none where it is nothing that the loader loads.
pub(crate) fn searched(file: &Path) -> Vec<PathBuf> {
    let text = run_path(file).unwrap_or_default();
    let origin = file.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let named = text.split(':').filter(|dir| !dir.is_empty());
    let filled = |dir: &str| dir.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin);
    named.map(|dir| PathBuf::from(filled(dir))).collect()
}

fn run_path(file: &Path) -> Option<String> {
    let data = ReadCache::new(fs::File::open(file).ok()?);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &data).ok()?;
    let (entries, strings) = sections.dynamic(endian, &data).ok()??;
    let strings = sections.strings(endian, &data, strings).ok()?;
    let mut found = String::new();
    for entry in entries {
        let tag = u32::try_from(entry.d_tag(endian)).ok();
        if matches!(tag, Some(elf::DT_RUNPATH | elf::DT_RPATH)) {
            let offset = u32::try_from(entry.d_val(endian)).ok()?;
            let text = strings.get(offset).ok()?;
            found.push_str(std::str::from_utf8(text).ok()?);
            found.push(':');
        }
    }
    Some(found)
}
