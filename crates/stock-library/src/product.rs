//! The properties of the supported libraries of ROCm, and the errors that name one.

use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::Error;

/// A library of ROCm that can be asked which kernels it would compile.
#[derive(Debug)]
pub struct Product {
    /// Its usual name: `libMIOpen`.
    pub name: &'static str,
    /// The beginning of its file names: `libMIOpen.so`.
    pub file: &'static str,
    /// The name by which programs load it: `libMIOpen.so.1`.
    pub soname: &'static str,
    /// A function that no other library defines.
    pub function: &'static str,
    /// The command-line option for its location.
    pub option: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// Debian's packages that belong to it, used in the same version.
    pub companions: &'static [&'static str],
    /// The package of these with databases.
    pub databases_package: Option<&'static str>,
    /// A program that belongs to it.
    pub driver: Option<&'static str>,
    /// The directories of its databases, below a root.
    pub databases: &'static [&'static str],
    /// Finds its version in its constants.
    pub version: fn(&[u8]) -> Option<String>,
    /// Finds its version in the trees that it may be in.
    pub version_of_tree: fn(&[PathBuf]) -> Option<String>,
    /// What to do if a temporary file can't be written.
    pub scratch_hint: &'static str,
    /// What to do if the probe can't be started.
    pub probe_hint: &'static str,
    /// What to do if it can't be loaded.
    pub load_hint: &'static str,
    /// What to do if it lacks a function that the probe calls.
    pub function_hint: &'static str,
}

/// The cause of an error of the library itself on one device: for another, it may be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DeviceFault(String);

impl DeviceFault {
    /// An error with this cause.
    pub fn error(message: impl ToString, hint: impl ToString) -> Error {
        let message = message.to_string();
        Error::internal(&message, hint).caused_by(Self(message))
    }
}

impl Product {
    /// The error for a file or directory that is something else.
    pub(crate) fn is_not(&self, message: String) -> Error {
        let hint =
            format!("give the {} itself, or the directory of a ROCm, as /opt/rocm", self.file);
        Error::usage(message, hint)
    }

    /// The error for a directory without it.
    pub(crate) fn is_not_in(&self, dir: &Path) -> Error {
        self.is_not(format!("found no {} in `{}`", self.name, dir.display()))
    }

    /// The error if the library, which was found, can't be read.
    pub fn unreadable(&self, error: Error) -> Error {
        let hint = format!("give a {}, or the directory of a ROCm, as /opt/rocm", self.file);
        Error::internal(&error, hint).caused_by(error)
    }

    /// The error for a temporary file or directory that can't be written.
    pub fn scratch(&self, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| {
            let message = format!("failed to write `{}`", path.display());
            Error::internal(message, self.scratch_hint).caused_by(source)
        }
    }

    /// The error if the probe can't be started or read from.
    pub fn not_started(&self, probe: &Path) -> impl Fn(io::Error) -> Error {
        move |source| {
            let message = format!("failed to start `{}`", probe.display());
            Error::internal(message, self.probe_hint).caused_by(source)
        }
    }

    /// The error if it can't be loaded; `reason` is the message of the dynamic loader or the
    /// library.
    pub fn not_loaded(&self, reason: &str) -> Error {
        DeviceFault::error(format!("failed to load {}: {reason}", self.name), self.load_hint)
    }
}
