//! Reads shared libraries: the libraries and symbols that they need and define, and their data.
//!
//! Source: System V ABI, "Dynamic Section"; LSB Core 5.0, "Symbol Versioning".

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use gfxpack_model::{Error, Result};
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, ElfFile64, FileHeader, Sym};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

/// The most bytes of a section that is read; libMIOpen has 6 MB of constants.
const SECTION_MAX: u64 = 1 << 30;

/// What to do about a library that can't be read.
const HINT: &str = "check that the libMIOpen is undamaged and may be read, or fetch it again";

/// A symbol that a library imports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Undefined {
    /// Its name.
    pub name: String,
    /// The soname that its version belongs to, if it has a version.
    pub from: Option<String>,
    /// Whether the library can be loaded without it.
    pub weak: bool,
}

/// The dynamic section and symbols of a shared library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedObject {
    /// `e_machine`.
    pub machine: u16,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RUNPATH` and `DT_RPATH`, `$ORIGIN` replaced.
    pub run_path: Vec<PathBuf>,
    /// Symbols that other libraries must define.
    pub undefined: Vec<Undefined>,
    /// Names of the symbols that it defines.
    pub defined: BTreeSet<String>,
}

/// An open ELF file.
pub struct ElfFile {
    path: PathBuf,
    cache: ReadCache<File>,
}

impl ElfFile {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| {
            Error::internal(format!("failed to read `{}`", path.display()), HINT).caused_by(source)
        })?;
        Ok(Self { path: path.to_owned(), cache: ReadCache::new(file) })
    }

    fn with<T>(
        &self,
        read: impl for<'a> FnOnce(ElfFile64<'a, Endianness, &'a ReadCache<File>>) -> object::Result<T>,
    ) -> Result<T> {
        ElfFile64::parse(&self.cache).and_then(read).map_err(|source| {
            let path = self.path.display();
            Error::internal(format!("`{path}` is no 64-bit shared library, or damaged"), HINT)
                .caused_by(source)
        })
    }

    /// The properties that the loader needs.
    pub fn shared_object(&self) -> Result<SharedObject> {
        let origin = self.path.parent().unwrap_or(Path::new("/"));
        self.with(|file| shared_object(&file, origin))
    }

    /// The bytes of every data symbol whose name begins with `prefix`, each with the rest of its
    /// name, in the order of the symbol table.
    pub fn data_symbols(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>> {
        let symbols = self.with(|file| {
            let mut symbols = Vec::new();
            for symbol in file.dynamic_symbols() {
                let name = text(symbol.name_bytes()?);
                let Some(name) = name.strip_prefix(prefix) else { continue };
                if symbol.kind() == SymbolKind::Data && !symbol.is_undefined() {
                    let section = symbol.section_index().map(|it| file.section_by_index(it));
                    let bytes = match section.transpose()? {
                        Some(section) if section.size() <= SECTION_MAX => {
                            section.data_range(symbol.address(), symbol.size())?
                        }
                        _ => None,
                    };
                    symbols.push((name.to_owned(), bytes.map(<[u8]>::to_vec)));
                }
            }
            Ok(symbols)
        })?;
        let found = symbols.into_iter().map(|(name, bytes)| match bytes {
            Some(bytes) => Ok((name, bytes)),
            None => {
                let path = self.path.display();
                let message = format!("`{path}` does not hold all of its symbol `{prefix}{name}`");
                Err(Error::internal(message, HINT))
            }
        });
        found.collect()
    }

    /// The bytes of the sections of constants, concatenated.
    pub fn constants(&self) -> Result<Vec<u8>> {
        self.with(|file| {
            let mut constants = Vec::new();
            for section in file.sections() {
                if section.name()?.starts_with(".rodata") && section.size() <= SECTION_MAX {
                    constants.extend_from_slice(section.data()?);
                    // Strings must not continue in the next section.
                    constants.push(0);
                }
            }
            Ok(constants)
        })
    }
}

fn shared_object<'a, R: ReadRef<'a>>(
    file: &ElfFile64<'a, Endianness, R>,
    origin: &Path,
) -> object::Result<SharedObject> {
    let endian = file.endian();
    let header: &FileHeader64<Endianness> = file.elf_header();
    let sections = file.elf_section_table();
    let mut object = SharedObject {
        machine: header.e_machine(endian),
        needed: Vec::new(),
        run_path: Vec::new(),
        undefined: Vec::new(),
        defined: BTreeSet::new(),
    };
    if let Some((entries, strings)) = sections.dynamic(endian, file.data())? {
        let strings = sections.strings(endian, file.data(), strings)?;
        for entry in entries {
            let Ok(tag) = u32::try_from(entry.d_tag(endian)) else { continue };
            if !matches!(tag, elf::DT_NEEDED | elf::DT_RUNPATH | elf::DT_RPATH) {
                continue;
            }
            let at = u32::try_from(entry.d_val(endian)).unwrap_or(u32::MAX);
            let value = strings.get(at).map(text).unwrap_or_default().to_owned();
            match tag {
                elf::DT_NEEDED => object.needed.push(value),
                _ => object.run_path.extend(run_path(&value, origin)),
            }
        }
    }
    let versions = sections.versions(endian, file.data())?;
    let table = file.elf_dynamic_symbol_table();
    for (index, symbol) in table.enumerate() {
        let name = text(symbol.name(endian, table.strings())?).to_owned();
        if name.is_empty() || symbol.is_local() {
            continue;
        }
        if !symbol.is_undefined(endian) {
            object.defined.insert(name);
            continue;
        }
        let version = match &versions {
            Some(versions) => versions.version(versions.version_index(endian, index))?,
            None => None,
        };
        let from = version.and_then(|version| version.file()).map(|from| text(from).to_owned());
        object.undefined.push(Undefined { name, from, weak: symbol.is_weak() });
    }
    Ok(object)
}

/// Source: ld.so(8), "Dynamic string tokens".
fn run_path<'a>(value: &'a str, origin: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let origin = origin.to_string_lossy();
    value
        .split(':')
        .filter(|dir| !dir.is_empty())
        .map(move |dir| dir.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into())
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// `e_machine` of this machine's programs, if MIOpen is built for it.
pub(crate) fn own_machine() -> Option<u16> {
    match std::env::consts::ARCH {
        "x86_64" => Some(elf::EM_X86_64),
        "aarch64" => Some(elf::EM_AARCH64),
        "powerpc64" => Some(elf::EM_PPC64),
        "riscv64" => Some(elf::EM_RISCV),
        _ => None,
    }
}
