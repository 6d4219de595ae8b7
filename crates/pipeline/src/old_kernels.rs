//! Kernels of a user's cache that another compiler made than the installed one.

use std::collections::BTreeMap;
use std::path::Path;

use gfxpack_kdb::{ReadError, ReadOptions, Reader};
use gfxpack_toolchain::{clang_version, made_by};

/// How many kernels each compiler made, by its own words about itself.
pub type Compilers = BTreeMap<String, u64>;

/// Why a kdb is not read to its end.
enum Stop {
    Enough,
    Read(ReadError),
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Counts the compilers of a kdb's first `rows` kernels; kernels whose compiler
/// did not name itself are not counted. No code object may claim more than
/// `max_object_bytes`. A kdb that a program has open is counted as it was when
/// it was last closed.
///
/// # Errors
/// Where it can't be read.
pub fn compilers(kdb: &Path, max_object_bytes: u64, rows: u64) -> Result<Compilers, ReadError> {
    let mut options = ReadOptions::default();
    options.max_object_bytes = max_object_bytes;
    options.wal = true;
    let reader = Reader::open_with(kdb, options)?;
    let mut compilers = Compilers::new();
    let mut seen = 0;
    let read = reader.for_each_kernel(|row| {
        if seen == rows {
            return Err(Stop::Enough);
        }
        seen += 1;
        if let Some(compiler) = made_by(&row.code_object) {
            *compilers.entry(compiler).or_default() += 1;
        }
        Ok(())
    });
    match read {
        Ok(()) | Err(Stop::Enough) => Ok(compilers),
        Err(Stop::Read(error)) => Err(error),
    }
}

/// Those compilers that are none of the installed ones, whose versions are
/// these: `15.0.6`.
#[must_use]
pub fn not_installed(compilers: &Compilers, installed: &[String]) -> Compilers {
    let is_installed = |name: &str| {
        clang_version(name).is_some_and(|version| installed.iter().any(|one| one == version))
    };
    compilers
        .iter()
        .filter(|(name, _)| !is_installed(name))
        .map(|(name, count)| (name.clone(), *count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_told_by_their_versions() {
        let compilers = Compilers::from([
            ("AMD clang version 17.0.0 (https://github.com/x roc-6.0.0 1)".to_owned(), 3),
            ("Debian clang version 15.0.6".to_owned(), 2),
        ]);
        let others = |installed: &[&str]| {
            let installed: Vec<String> = installed.iter().map(|one| (*one).to_owned()).collect();
            not_installed(&compilers, &installed).into_values().collect::<Vec<u64>>()
        };
        assert_eq!(others(&["15.0.6"]), [3]);
        assert_eq!(others(&["15.0.6", "17.0.0"]), [0; 0]);
        assert_eq!(others(&["17.0.0-1"]), [3, 2]);
        assert_eq!(others(&[]), [3, 2]);
    }
}
