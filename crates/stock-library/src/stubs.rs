//! Empty shared libraries with the names of those that have a stand-in. The loader finds the
//! libraries, and their functions in the probe.
//!
//! Source: System V ABI, "Object Files" and "Program Loading and Dynamic
//! Linking"; `elf.h` for the numbers.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::elf::{
    DT_HASH, DT_NULL, DT_SONAME, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB, ELFCLASS64,
    ELFDATA2LSB, ELFMAG, ET_DYN, EV_CURRENT, PF_R, PF_W, PT_DYNAMIC, PT_GNU_STACK, PT_LOAD,
};

/// Sizes of a file header, a program header, a symbol and a dynamic entry.
const FILE_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const SYMBOL: u64 = 24;
const DYNAMIC: u64 = 16;
/// At least as large as any machine's pages.
const PAGE: u64 = 0x10000;

/// Writes an empty library for each soname, and returns their paths.
pub(crate) fn write_stubs(
    directory: &Path,
    machine: u16,
    sonames: &BTreeSet<String>,
) -> io::Result<Vec<PathBuf>> {
    sonames
        .iter()
        .map(|soname| {
            let path = directory.join(soname);
            fs::write(&path, empty_library(machine, soname))?;
            Ok(path)
        })
        .collect()
}

/// A shared library with that name and without symbols.
fn empty_library(machine: u16, soname: &str) -> Vec<u8> {
    let strings: Vec<u8> = [b"\0", soname.as_bytes(), b"\0"].concat();
    let program_headers = [PT_LOAD, PT_DYNAMIC, PT_GNU_STACK];
    let dynamic_at = FILE_HEADER + PROGRAM_HEADER * program_headers.len() as u64;
    let entries = 7;
    let symbols_at = dynamic_at + DYNAMIC * entries;
    let hash_at = symbols_at + SYMBOL;
    // One bucket and one symbol, the null symbol.
    let hash: [u32; 4] = [1, 1, 0, 0];
    let strings_at = hash_at + 4 * hash.len() as u64;
    let end = strings_at + strings.len() as u64;
    let dynamic: [(u32, u64); 7] = [
        (DT_SONAME, 1),
        (DT_HASH, hash_at),
        (DT_STRTAB, strings_at),
        (DT_SYMTAB, symbols_at),
        (DT_STRSZ, strings.len() as u64),
        (DT_SYMENT, SYMBOL),
        (DT_NULL, 0),
    ];

    let mut file: Vec<u8> = ELFMAG.to_vec();
    file.extend([ELFCLASS64, ELFDATA2LSB, EV_CURRENT]);
    file.resize(16, 0);
    file.extend(ET_DYN.to_le_bytes());
    file.extend(machine.to_le_bytes());
    file.extend(u32::from(EV_CURRENT).to_le_bytes());
    // No entry point, then the position of the program headers, and no sections.
    for value in [0, FILE_HEADER, 0] {
        file.extend(value.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for value in [FILE_HEADER, PROGRAM_HEADER, program_headers.len() as u64, 64, 0, 0] {
        file.extend(u16::try_from(value).expect("sizes of headers").to_le_bytes());
    }
    for kind in program_headers {
        let (start, size, align) = match kind {
            PT_LOAD => (0, end, PAGE),
            PT_DYNAMIC => (dynamic_at, DYNAMIC * entries, 8),
            _ => (0, 0, 16),
        };
        file.extend(kind.to_le_bytes());
        // The loader writes addresses into the dynamic section. Without the third header, it would
        // require an executable stack.
        file.extend((PF_R | PF_W).to_le_bytes());
        for value in [start, start, start, size, size, align] {
            file.extend(value.to_le_bytes());
        }
    }
    for (tag, value) in dynamic {
        file.extend(u64::from(tag).to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; SYMBOL as usize]);
    file.extend(hash.iter().flat_map(|word| word.to_le_bytes()));
    file.extend(strings);
    assert_eq!(file.len() as u64, end, "as the headers tell");
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;

    #[test]
    fn an_empty_library_has_only_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let machine = elf::own_machine().unwrap();
        let names = ["libamdhip64.so.7", "librocblas.so.5"].map(str::to_owned);
        let paths = write_stubs(directory.path(), machine, &names.clone().into()).unwrap();
        for (path, name) in paths.iter().zip(&names) {
            let bytes = fs::read(path).unwrap();
            let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
            let object = crate::elf::ElfFile::open(path).unwrap().shared_object().unwrap();
            assert_eq!(file.elf_header().e_machine.get(object::Endianness::Little), machine);
            assert_eq!(path.file_name().unwrap(), name.as_str());
            assert!(object.needed.is_empty() && object.defined.is_empty());
        }
    }

    /// Asks the loader: it prints nothing for a valid library, and an error for a broken one.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a program is started with the library")]
    fn the_loader_takes_an_empty_library() {
        let directory = tempfile::tempdir().unwrap();
        let name = "libamdhip64.so.7".to_owned();
        let machine = elf::own_machine().unwrap();
        let stub = write_stubs(directory.path(), machine, &[name].into()).unwrap().remove(0);
        let output = |library: &Path| {
            let program = std::env::current_exe().unwrap();
            let mut program = std::process::Command::new(program);
            let output = program.arg("--list").env("LD_PRELOAD", library).output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stderr).unwrap()
        };
        assert_eq!(output(&stub), "");
        let broken = directory.path().join("broken.so.7");
        fs::write(&broken, "no library").unwrap();
        assert!(output(&broken).contains("broken.so.7"));
    }
}
