//! Errors of files that are packed, written, or written again.

use std::io;
use std::path::Path;

use gfxpack_model::Error;

/// The error of an input file.
pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| {
        let hint = match source.kind() {
            io::ErrorKind::NotFound => "the file is gone or never was; build again, then package",
            io::ErrorKind::PermissionDenied => "make the file readable",
            _ => "check the disk that holds the file",
        };
        Error::internal(format!("failed to read `{}`", path.display()), hint).caused_by(source)
    }
}

/// The error of an output. Where what was packed failed, not the output, the error carries that
/// one.
pub(crate) fn writing(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| match source.downcast::<Error>() {
        Ok(error) => error,
        Err(source) => {
            let hint = write_hint(path, &source);
            let message = format!("failed to write `{}`", path.display());
            Error::internal(message, hint).caused_by(source)
        }
    }
}

/// The error of a package that another made, which is damaged, or made in a way that is not
/// understood.
pub(crate) fn rewriting(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| {
        let hint = if source.raw_os_error().is_some() {
            "check the disk, and the space that is left there and in TMPDIR"
        } else {
            "unpack it, and give the directory"
        };
        let message = format!("failed to make `{}` smaller", path.display());
        Error::usage(message, hint).caused_by(source)
    }
}

fn write_hint(path: &Path, source: &io::Error) -> String {
    let dir = path.parent().unwrap_or(path).display();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(
            "free space in `{dir}`: a writer needs up to twice the package's size while it works"
        ),
        io::ErrorKind::FileTooLarge => {
            "raise the limit on file sizes (`ulimit -f`), or write to another file system"
                .to_owned()
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            format!("create the directory `{dir}`")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("make `{dir}` writable, or write elsewhere")
        }
        _ => format!("check the disk that holds `{dir}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_fits_the_cause() {
        let check = |kind: io::ErrorKind, expected: &str| {
            let error = writing(Path::new("/dist/x.deb"))(kind.into());
            assert!(error.hint().unwrap_or_default().starts_with(expected), "{kind:?}: {error:?}");
        };
        check(io::ErrorKind::StorageFull, "free space in `/dist`");
        check(io::ErrorKind::QuotaExceeded, "free space in `/dist`");
        check(io::ErrorKind::FileTooLarge, "raise the limit");
        check(io::ErrorKind::NotFound, "create the directory `/dist`");
        check(io::ErrorKind::ReadOnlyFilesystem, "make `/dist` writable");
    }
}
