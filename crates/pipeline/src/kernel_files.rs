//! The files in which libraries look kernels up, in any format.

mod format_operations;
mod kdb;
mod rocfft;

use gfxpack_model::KernelFileFormat;

pub(crate) use self::format_operations::{FormatOperations, Rows};
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
