//! Files in which libraries look kernels up, whatever their format.

mod kdb;
mod operations;
mod rocfft;

use gfxpack_model::KernelFileFormat;

pub(crate) use self::operations::{KernelFiles, Rows};
use crate::library::{Library, RocfftFacts};

/// The files in which these kernels are looked up.
pub(crate) fn of_library(library: &Library) -> Box<dyn KernelFiles> {
    of(library.consumer.properties().format, library.rocfft.as_ref())
}

/// Files of a format that are there: whatever library they were made for.
pub(crate) fn of_format(format: KernelFileFormat) -> Box<dyn KernelFiles> {
    of(format, None)
}

fn of(format: KernelFileFormat, rocfft: Option<&RocfftFacts>) -> Box<dyn KernelFiles> {
    match format {
        KernelFileFormat::Kdb => Box::new(kdb::Kdb),
        KernelFileFormat::RocfftCache => {
            Box::new(rocfft.map(rocfft::RocfftCache::from_facts).unwrap_or_default())
        }
    }
}
