//! The checks of a row: its columns, and whether the driver can load its object.

use std::borrow::Cow;

use gfxpack_model::code_object::{self, CodeObjectError};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSymbol as _};
use rusqlite::types::ValueRef;

use crate::key::CacheKey;

/// An error of a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// A column has another type, or its text is not UTF-8.
    #[error("column `{0}` holds something else than it should")]
    Column(&'static str),
    /// The row does not come after the one before it.
    #[error("its key is not above the one before it")]
    Order,
    /// The index leads to a row with another key, or to none.
    #[error("the index of keys leads to another row")]
    OtherKey,
    /// The object is larger than any kernel.
    #[error("the code object has {0} bytes, the limit is {limit}", limit = code_object::MAX_BYTES)]
    TooLarge(u64),
    /// The bytes are no code object.
    #[error(transparent)]
    CodeObject(#[from] CodeObjectError),
    /// The object is for other devices than the key, or for only some of them.
    #[error("the code object is for {found}, not {arch}")]
    OtherTarget {
        /// The target of the object.
        found: String,
        /// The processor in the key.
        arch: String,
    },
    /// The kernel is not in the code object.
    #[error("the code object does not define `{0}`")]
    NoSymbol(String),
}

impl RowError {
    /// The class of this error in a verification.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::Column(_) => "column",
            Self::Order | Self::OtherKey => "integrity",
            Self::TooLarge(_) | Self::CodeObject(_) => "code-object",
            Self::OtherTarget { .. } => "target",
            Self::NoSymbol(_) => "symbol",
        }
    }
}

/// Checks that the driver can load the kernel of a row: that the bytes are an ELF code object, or a
/// bundle with one, for exactly the key's processor, and that it defines the kernel. If the driver
/// refuses a cached object, rocFFT does not compile the kernel.
///
/// # Errors
/// [`RowError`] if it can't.
pub fn check_row(key: &CacheKey, code: &[u8]) -> Result<(), RowError> {
    if code.len() as u64 > code_object::MAX_BYTES {
        return Err(RowError::TooLarge(code.len() as u64));
    }
    let files = code_object::elf_files(code)?;
    // rocFFT ignores features, so the code must work with any.
    let Some((_, elf)) = files.iter().find(|(target, _)| target.to_string() == key.arch) else {
        let found: Vec<_> = files.into_iter().map(|(target, _)| target).collect();
        return Err(RowError::OtherTarget {
            found: code_object::spelled(&found),
            arch: key.arch.clone(),
        });
    };
    let symbol = key.symbol();
    // In a bundle, it may not be aligned for parsing.
    let aligned =
        if elf.as_ptr().align_offset(8) == 0 { Cow::from(*elf) } else { elf.to_vec().into() };
    if defines(&aligned, &symbol) { Ok(()) } else { Err(RowError::NoSymbol(symbol)) }
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
            str::from_utf8(bytes).map(str::to_owned).map_err(|_| RowError::Column(name))
        }
        _ => Err(RowError::Column(name)),
    };
    Ok(CacheKey {
        kernel_name: text(0, "kernel_name")?,
        arch: text(1, "arch")?,
        hip_version: row.get(2).map_err(|_| RowError::Column("hip_version"))?,
        generator_sum: blob(row, 3)
            .and_then(|sum| sum.try_into().ok())
            .ok_or(RowError::Column("generator_sum"))?,
    })
}

/// The code object in the fifth column.
pub(crate) fn code_of(row: &rusqlite::Row<'_>) -> Result<Vec<u8>, RowError> {
    blob(row, 4).map(<[u8]>::to_vec).ok_or(RowError::Column("code"))
}

fn blob<'a>(row: &'a rusqlite::Row<'_>, at: usize) -> Option<&'a [u8]> {
    match row.get_ref(at) {
        Ok(ValueRef::Blob(bytes)) => Some(bytes),
        _ => None,
    }
}
