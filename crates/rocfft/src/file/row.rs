//! The checks of a row: its columns, and whether the driver can load its object.

use std::borrow::Cow;

use gfxpack_model::code_object;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSymbol as _};
use rusqlite::types::ValueRef;

use crate::key::CacheKey;

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct RowError {
    /// Its class in a verification.
    pub(crate) class: &'static str,
    what: String,
}

impl RowError {
    fn new(class: &'static str, what: impl ToString) -> Self {
        Self { class, what: what.to_string() }
    }

    /// The row does not come after the one before it.
    pub(crate) fn order() -> Self {
        Self::new("integrity", "its key is not above the one before it")
    }

    /// The index leads to a row with another key, or to none.
    pub(crate) fn other_key() -> Self {
        Self::new("integrity", "the index of keys leads to another row")
    }

    /// A column has another type, or its text is not UTF-8.
    fn column(name: &str) -> Self {
        Self::new("column", format!("column `{name}` holds something else than it should"))
    }
}

/// Checks that the driver can load the kernel of a row: that the bytes are an ELF code object, or a
/// bundle with one, for exactly the key's processor, and that it defines the kernel. If the driver
/// refuses a cached object, rocFFT does not compile the kernel.
pub fn check_row(key: &CacheKey, code: &[u8]) -> Result<(), RowError> {
    let bad = |what: &dyn ToString| RowError::new("code-object", what.to_string());
    if code.len() as u64 > code_object::MAX_BYTES {
        let (bytes, limit) = (code.len(), code_object::MAX_BYTES);
        return Err(bad(&format!("the code object has {bytes} bytes, the limit is {limit}")));
    }
    let files = code_object::elf_files(code).map_err(|error| bad(&error))?;
    // rocFFT ignores features, so the code must work with any.
    let Some((_, elf)) = files.iter().find(|(target, _)| target.to_string() == key.arch) else {
        let found: Vec<_> = files.into_iter().map(|(target, _)| target).collect();
        let (found, arch) = (code_object::spelled(&found), &key.arch);
        return Err(RowError::new("target", format!("the code object is for {found}, not {arch}")));
    };
    let symbol = key.symbol();
    // In a bundle, it may not be aligned for parsing.
    let aligned =
        if elf.as_ptr().align_offset(8) == 0 { Cow::from(*elf) } else { elf.to_vec().into() };
    if defines(&aligned, &symbol) {
        return Ok(());
    }
    Err(RowError::new("symbol", format!("the code object does not define `{symbol}`")))
}

/// Whether an ELF file exports a symbol.
fn defines(elf: &[u8], name: &str) -> bool {
    ElfFile64::<LittleEndian>::parse(elf).is_ok_and(|file| {
        file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(name))
    })
}

/// The key in the first four columns.
pub(crate) fn key_of(row: &rusqlite::Row<'_>) -> Result<CacheKey, RowError> {
    let text = |at, name| match row.get_ref(at) {
        Ok(ValueRef::Text(bytes)) => {
            str::from_utf8(bytes).map(str::to_owned).map_err(|_| RowError::column(name))
        }
        _ => Err(RowError::column(name)),
    };
    Ok(CacheKey {
        kernel_name: text(0, "kernel_name")?,
        arch: text(1, "arch")?,
        hip_version: row.get(2).map_err(|_| RowError::column("hip_version"))?,
        generator_sum: blob(row, 3)
            .and_then(|sum| sum.try_into().ok())
            .ok_or_else(|| RowError::column("generator_sum"))?,
    })
}

/// The code object in the fifth column.
pub(crate) fn code_of(row: &rusqlite::Row<'_>) -> Result<Vec<u8>, RowError> {
    blob(row, 4).map(<[u8]>::to_vec).ok_or_else(|| RowError::column("code"))
}

fn blob<'a>(row: &'a rusqlite::Row<'_>, at: usize) -> Option<&'a [u8]> {
    match row.get_ref(at) {
        Ok(ValueRef::Blob(bytes)) => Some(bytes),
        _ => None,
    }
}
