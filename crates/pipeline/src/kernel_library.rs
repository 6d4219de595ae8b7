//! What the inputs say about the kernels as a whole: names, licences, and which
//! stock library asked for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

use gfxpack_kdb::MiopenVersion;
use gfxpack_miopen::is_left_out_by_debian;
use gfxpack_model::{Digest, KernelKey};
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::kernel_package::SourceLicense;
use serde::{Deserialize, Serialize};

use crate::rocfft::RocfftFacts;
use crate::text::{file_name, if_any, joined};

/// The kernels as a whole, as the inputs describe them and packages repeat it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLibrary {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) maintainer: Option<String>,
    /// What packages say about the kernels.
    pub(crate) description: Option<String>,
    pub(crate) homepage: Option<String>,
    /// The library that looks the kernels up.
    #[serde(default, rename = "reader", skip_serializing_if = "gfxpack_plan::is_default")]
    pub consumer: Consumer,
    /// The prefix below which that library looks for them, as far as it was asked:
    /// `/opt/rocm-6.4.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Licences by source.
    #[serde(default, skip_serializing_if = "Licenses::is_empty")]
    pub licenses: Licenses,
    /// Whether only what other kdbs lack was built.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_missing: bool,
    /// The librocfft that asked for the kernels, and what it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocfft: Option<RocfftFacts>,
    /// The libMIOpen that asked for the kernels, and what it was asked for.
    #[serde(default, rename = "asked", skip_serializing_if = "Option::is_none")]
    pub miopen: Option<MiopenFacts>,
}

impl KernelLibrary {
    /// The version of the MIOpen that looks for the kernels; unknown for those of a manifest, which
    /// has a version of its own.
    pub(crate) fn miopen_version(&self) -> MiopenVersion {
        let asked = self.miopen.as_ref().map(|facts| &facts.version);
        let of_sources = self.version.as_ref().filter(|_| self.name.is_none());
        let version = asked.or(of_sources).filter(|_| self.consumer == Consumer::Miopen);
        version.map(|text| MiopenVersion::of_text(text)).unwrap_or_default()
    }

    /// The library that was asked, if any.
    pub(crate) fn asked(&self) -> Option<&dyn LibraryFacts> {
        let miopen = self.miopen.as_ref().map(|facts| facts as &dyn LibraryFacts);
        miopen.or(self.rocfft.as_ref().map(|facts| facts as &dyn LibraryFacts))
    }

    /// The lists of problems or plans that it was asked for.
    pub(crate) fn lists(&self) -> &[ProblemsFact] {
        self.asked().map_or(&[], LibraryFacts::lists)
    }
}

/// What manifests and packages say of a library that was asked.
pub trait LibraryFacts {
    /// Its name and version.
    fn name(&self) -> (&'static str, &str);

    /// Text for display.
    fn in_words(&self) -> String;

    /// The lists of problems or plans that it was asked for.
    fn lists(&self) -> &[ProblemsFact];

    /// Which kernels these are, and for how many more `without` a source it asked.
    fn kernels_in_words(&self, without: u64) -> String;

    /// Whether it reads one file for all processors.
    fn shares_file(&self) -> bool {
        false
    }

    /// Its package, if no other library finds the kernels: name and version.
    fn exact_package(&self) -> Option<(String, String)> {
        None
    }
}

/// Licences by source file name; no entry if no manifest says one.
pub type Licenses = BTreeMap<String, BTreeSet<SourceLicense>>;

/// The parameters of a query to libMIOpen, as manifests and packages record them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MiopenFacts {
    /// MIOpen's version; empty if the library does not contain it.
    pub version: String,
    pub(crate) origin: String,
    pub(crate) sha256: Digest,
    /// Which uses of MIOpen the kernels are for: `search,hit,immediate`.
    pub uses: String,
    /// Databases that it was asked with. It was also asked without any.
    pub databases: Vec<FileFact>,
    pub(crate) problems: Vec<ProblemsFact>,
    /// Whether it finds no assembler itself: without the user's help, programs then use no kernels
    /// in assembly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finds_no_assembler: bool,
}

/// A file, identified by its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    pub(crate) file: String,
    pub(crate) sha256: Digest,
}

/// A list of problems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemsFact {
    pub(crate) file: String,
    pub(crate) problems: usize,
    /// SHA-256 of their canonical lines, sorted.
    pub sha256: Digest,
}

impl ProblemsFact {
    /// The record of a list of these problems or plans, which are sorted.
    pub(crate) fn of_list(path: &Path, problems: &BTreeSet<impl Display>) -> Self {
        let text: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        Self {
            file: file_name(path),
            problems: problems.len(),
            sha256: Digest::of(text.as_bytes()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.file.trim_end_matches(".txt")
    }
}

impl LibraryFacts for MiopenFacts {
    fn name(&self) -> (&'static str, &str) {
        ("MIOpen", &self.version)
    }

    /// `MIOpen 3.4.0 (Debian sid, libmiopen1 6.4.3+dfsg-1; sha256 0123456789ab)`.
    fn in_words(&self) -> String {
        let sha256 = self.sha256.to_string();
        let version = if self.version.is_empty() { "of unknown version" } else { &self.version };
        format!("MIOpen {version} ({}; sha256 {})", self.origin, &sha256[..12])
    }

    fn lists(&self) -> &[ProblemsFact] {
        &self.problems
    }

    fn kernels_in_words(&self, without: u64) -> String {
        let databases = match self.databases.len() {
            0 => "without performance databases".to_owned(),
            _ => format!("with and without {}", joined(self.databases.iter().map(|it| &it.file))),
        };
        let without = if_any(without, |count| {
            format!(" {count} more that it asks for have no source there.")
        });
        format!(
            "The kernels are those that {} asks for when it computes {}, {databases}.{without}",
            self.in_words(),
            joined(self.problems.iter().map(|list| list.name()))
        )
    }
}

impl MiopenFacts {
    /// Why these kernels have no source, and what adds them; `None` if there are none.
    pub fn why_without_source(&self, keys: &BTreeSet<&KernelKey>) -> Option<String> {
        let is_assembly = |key: &&KernelKey| key.source_name().is_some_and(is_left_out_by_debian);
        let why = match keys {
            keys if keys.is_empty() => return None,
            keys if self.finds_no_assembler && keys.iter().all(is_assembly) => {
                let why = "this MIOpen carries no assembly and finds no assembler: programs do \
                           without these kernels";
                return Some(why.to_owned());
            }
            keys if keys.iter().all(is_assembly) => "comes without its assembly",
            _ => "does not carry the sources of these kernels",
        };
        let version = &self.version;
        Some(format!(
            "this MIOpen {why}: --source-dir with src/kernels of MIOpen {version} adds them"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_source_is_said_with_what_adds_it() {
        for (names, finds_no_assembler, expected) in [
            (&[][..], true, None),
            (&["a.s.o"], false, Some("comes without its assembly: --source-dir with src/kernels")),
            (&["a.s.o"], true, Some("programs do without these kernels")),
            (&["a.s.o", "x.cl.o"], true, Some("does not carry the sources of these kernels")),
        ] {
            let key = |name: &&str| KernelKey {
                kernel_name: (*name).to_owned(),
                kernel_args: " -mcpu=gfx906".to_owned(),
            };
            let facts = MiopenFacts {
                version: "3.4.0".to_owned(),
                origin: String::new(),
                sha256: Digest::of(b"library"),
                uses: String::new(),
                databases: Vec::new(),
                problems: Vec::new(),
                finds_no_assembler,
            };
            let keys: Vec<KernelKey> = names.iter().map(key).collect();
            let why = facts.why_without_source(&keys.iter().collect());
            assert_eq!(why.is_some(), expected.is_some());
            assert!(why.unwrap_or_default().contains(expected.unwrap_or_default()), "{names:?}");
        }
    }
}
