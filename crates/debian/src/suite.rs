//! A suite of the archive and the packages that it lists.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::sync::Arc;

use gfxpack_model::{Digest, Error};
use gfxpack_package::deb822::{self, Paragraph};
use gfxpack_package::read::unpacked;

use crate::error::DebianError;
use crate::lock::Pin;
use crate::version::{self, Relation};

/// Maximum size of the uncompressed list, in bytes; sid's has 60 MB.
const LIST_MAX: u64 = 4 << 30;

/// A package in a suite's list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Package {
    /// Its name, version, file and digest.
    pub pin: Pin,
    /// Its dependencies: one package of each group suffices.
    pub depends: Vec<Vec<Relation>>,
}

/// A suite with its verified list.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The name by which it was requested.
    pub name: String,
    /// When the archive made it, as written in the file.
    pub date: String,
    /// SHA-256 of its list of packages.
    pub sha256: Digest,
    pub(crate) list: Arc<File>,
    pub(crate) url: String,
}

impl Suite {
    /// The packages whose names satisfy `wanted`, in the list's order. The list,
    /// which has some 70,000, is read again each time.
    ///
    /// # Errors
    /// [`DebianError`] if the list can't be read.
    pub fn packages(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Package>, DebianError> {
        let format = |reason: String| DebianError::format(&self.url, reason);
        let mut file = &*self.list;
        file.rewind().map_err(|error| format(error.to_string()))?;
        let file = BufReader::with_capacity(256 << 10, file);
        let text = unpacked("xz", file, LIST_MAX).map_err(|error| format(error.to_string()))?;
        let mut found = Vec::new();
        let mut damaged = None;
        let read = deb822::paragraphs(BufReader::with_capacity(256 << 10, text), |paragraph| {
            let Some(name) = paragraph.line("Package").filter(|name| wanted(name)) else {
                return true;
            };
            match package(paragraph) {
                Some(package) => found.push(package),
                None => damaged = Some(format(format!("`{name}` is not listed as it should be"))),
            }
            damaged.is_none()
        });
        read.map_err(|error| format(error.to_string()))?;
        match damaged {
            Some(damaged) => Err(damaged),
            None => Ok(found),
        }
    }

    /// The newest version of a package, or the given version.
    ///
    /// # Errors
    /// If there is none, with the versions that exist; and like [`Self::packages`].
    pub fn package(&self, name: &str, version: Option<&str>) -> Result<Package, DebianError> {
        let all = self.packages(&|listed| listed == name)?;
        let versions: Vec<String> = all.iter().map(|it| it.pin.version.clone()).collect();
        let wanted = all
            .into_iter()
            .filter(|package| version.is_none_or(|version| package.pin.version == version));
        let newest = wanted.max_by(|a, b| version::compare(&a.pin.version, &b.pin.version));
        newest.ok_or_else(|| {
            let package = version.map_or(name.to_owned(), |version| format!("{name} {version}"));
            let none = format!("`{package}` is not in {}", self.name);
            DebianError::Other(if versions.is_empty() {
                Error::usage(none, "take another suite, debian:sid or debian:experimental")
            } else {
                let all = versions.join(", ");
                let hint = "take one of these versions, or another suite";
                Error::usage(format!("{none}, which has {all}"), hint)
            })
        })
    }
}

fn package(paragraph: Paragraph<'_>) -> Option<Package> {
    let line = |field| paragraph.line(field).filter(|value| !value.is_empty());
    let file = line("Filename")?;
    let depends = ["Pre-Depends", "Depends"].into_iter().filter_map(line);
    Some(Package {
        pin: Pin {
            name: line("Package")?.to_owned(),
            version: line("Version")?.to_owned(),
            file: file.to_owned(),
            size: line("Size")?.parse().ok()?,
            sha256: line("SHA256")?.parse().ok()?,
        },
        depends: depends.flat_map(Relation::groups).collect(),
    })
}
