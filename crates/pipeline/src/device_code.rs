//! Device code in files that others built: whether it is there for each GPU, and the same files
//! without what other GPUs need.

mod check;
mod owner;
mod packages;
mod slim;

pub(crate) use check::add_tree;
pub use check::{Checked, check};
pub use owner::owner;
pub use packages::slim_packages;
pub use slim::{Slimmed, slim};

use std::fs::File;
use std::path::{Path, PathBuf};

use gfxpack_fatbin::Error as CodeError;

use crate::error::{Error, Result, io};

/// The files, links and directories below `root`, or `root` itself, in order.
fn entries(root: &Path) -> impl Iterator<Item = Result<walkdir::DirEntry>> {
    walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(move |entry| {
        entry.map_err(|error| {
            let path = error.path().unwrap_or(Path::new("")).to_owned();
            let cause = error.into_io_error().unwrap_or_else(|| std::io::ErrorKind::Other.into());
            io("read", &path)(cause)
        })
    })
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(io("read", path))
}

fn failed(path: &Path) -> impl FnOnce(CodeError) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| match error {
        CodeError::Io(error) => io("read", &path)(error),
        other => crate::error::usage(
            format!("failed to make `{}` smaller: {other}", path.display()),
            "`gfxpack verify FILE --target GPU` says what it has code for",
        ),
    }
}
