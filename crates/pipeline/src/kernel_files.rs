//! The files in which libraries look kernels up, in any format.

mod format_operations;
mod kdb;
mod rocfft;

use std::path::Path;

use gfxpack_model::{KernelFileFormat, Target};

pub(crate) use self::format_operations::{FormatOperations, Rows};
use crate::error::{self, Error, Result};
use crate::kernel_library::{KernelLibrary, RocfftFacts};

/// The operations for files in which these kernels are looked up.
pub(crate) fn of_library(library: &KernelLibrary) -> Box<dyn FormatOperations> {
    operations(library.consumer.properties().format, library.rocfft.as_ref())
}

/// The operations for existing files, whichever library they were made for. They
/// may merge, verify and list files, but not write them: the keys of a rocFFT
/// cache need the facts of a library, which are not known here.
pub(crate) fn of_format(format: KernelFileFormat) -> Box<dyn FormatOperations> {
    operations(format, None)
}

fn operations(format: KernelFileFormat, rocfft: Option<&RocfftFacts>) -> Box<dyn FormatOperations> {
    match format {
        KernelFileFormat::Kdb => Box::new(kdb::Kdb),
        KernelFileFormat::RocfftCache => Box::new(rocfft::RocfftCache(rocfft.cloned())),
    }
}

/// The format of a file with kernels, and the target, both from its name.
///
/// # Errors
/// If the name has no target.
pub(crate) fn format_and_target(path: &Path) -> Result<(KernelFileFormat, Target)> {
    let refused = |formats: &[KernelFileFormat]| match std::fs::metadata(path) {
        Err(source) => error::io("read", path)(source),
        Ok(metadata) if metadata.is_dir() => error::usage(
            format!("failed to read `{}`: it is a directory", path.display()),
            "name the files in it",
        ),
        Ok(_) => unnamed(path, formats),
    };
    let all = || refused(&KernelFileFormat::ALL);
    let format = KernelFileFormat::of_file_name(path).ok_or_else(all)?;
    let target = format.target_of(path).map_err(|_| refused(&[format]))?;
    Ok((format, target.ok_or_else(all)?))
}

/// The error for a file without a target in its name, in any of these formats.
pub(crate) fn unnamed(path: &Path, formats: &[KernelFileFormat]) -> Error {
    let (library, examples) = formats[0].expected();
    let other = |format: &KernelFileFormat| {
        let (library, examples) = format.expected();
        format!(", or {library}, as {examples}")
    };
    let others: String = formats[1..].iter().map(other).collect();
    error::usage(
        format!("failed to tell the target of `{}` by its name", path.display()),
        format!("name it as {library} looks for it, as {examples}{others}"),
    )
}
