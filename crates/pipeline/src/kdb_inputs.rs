//! The inputs of a kdb, for `manifest.json` and bills of material.

use std::collections::{BTreeMap, BTreeSet};

use gfxpack_model::{Digest, KdbId, SourceId};
use gfxpack_package::sbom::{self, BuildProvenance, Checksums, Tool};
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::plan::{Plan, Row};
use serde::{Deserialize, Serialize};

use crate::inputs::Inputs;
use crate::kernel_library::{KernelLibrary, Licenses};
use crate::license_head::{license_of, plain_name};

/// What a kdb was made from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct KdbInputs {
    /// Digest of this kdb's part of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Digest>,
    /// What packages say about the kernels, without their licences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    library: Option<KernelLibrary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compiler: Option<Compiler>,
    #[serde(default)]
    sources: Vec<Source>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Compiler {
    identity: String,
    digest: Digest,
    /// Constants that the device libraries lack and gfxpack supplied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    supplied: Vec<Supplied>,
}

/// A file that gfxpack made because older device libraries lack it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Supplied {
    file: String,
    symbol: String,
    value: u32,
    made_by: String,
    reason: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Source {
    name: String,
    digest: Digest,
    licenses: Vec<SourceLicense>,
    /// The source and all files that it includes.
    #[serde(default)]
    files: Vec<SourceFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SourceFile {
    path: String,
    sha1: String,
    sha256: String,
    /// What the head of an included file states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    license: Option<SourceLicense>,
}

impl KdbInputs {
    /// The inputs of one of the plan's kdbs, before it is built.
    pub(crate) fn of_kdb(plan: &Plan, inputs: &Inputs, kdb: KdbId) -> Self {
        let licenses = &inputs.library.licenses;
        let rows = plan[kdb].rows.iter();
        let used: BTreeSet<SourceId> = rows.map(|row| plan[row.job].source).collect();
        let source_files = |index: SourceId| {
            let files = inputs.sources.files(index).into_iter();
            files.map(|file| SourceFile::new(file, &plan[index].main)).collect()
        };
        let mut sources: Vec<Source> = used
            .into_iter()
            .map(|index| Source {
                name: plan[index].name.clone(),
                digest: plan[index].digest(),
                licenses: licenses.get(&plan[index].name).cloned().into_iter().flatten().collect(),
                files: source_files(index),
            })
            .collect();
        sources.sort_by(|a, b| (&a.name, a.digest).cmp(&(&b.name, b.digest)));
        let toolchain = &plan[plan[kdb].toolchain];
        Self {
            plan: Some(plan.kdb_digest(kdb)),
            library: Some(KernelLibrary { licenses: Licenses::new(), ..inputs.library.clone() })
                .filter(|library| *library != KernelLibrary::default()),
            compiler: Some(Compiler {
                identity: toolchain.identity.clone(),
                digest: toolchain.digest,
                supplied: supplied(plan, kdb),
            }),
            sources,
        }
    }

    /// What packages say about the kernels.
    pub(crate) fn library(&self) -> KernelLibrary {
        KernelLibrary { licenses: self.licenses(), ..self.library.clone().unwrap_or_default() }
    }

    /// The compiler's name and version, if known.
    pub(crate) fn compiler(&self) -> Option<&str> {
        self.compiler.as_ref().map(|compiler| compiler.identity.as_str())
    }

    /// The contents of a bill of material: every file once, and the tools.
    pub(crate) fn making(&self) -> BuildProvenance {
        let mut files: BTreeMap<(&str, &str), sbom::Source> = BTreeMap::new();
        for source in &self.sources {
            for file in &source.files {
                let entry = files.entry((&file.path, &file.sha256)).or_insert(sbom::Source {
                    path: file.path.clone(),
                    sha1: file.sha1.clone(),
                    sha256: file.sha256.clone(),
                    license: file.license.as_ref().map(|stated| stated.license.clone()),
                    copyright: file.license.as_ref().map(|stated| stated.copyright.clone()),
                });
                if file.path.rsplit('/').next() == Some(&source.name) && !source.licenses.is_empty()
                {
                    let texts = |part: fn(&SourceLicense) -> &str| {
                        let texts: BTreeSet<&str> = source.licenses.iter().map(part).collect();
                        texts.into_iter().collect::<Vec<_>>()
                    };
                    entry.license = Some(texts(|license| &license.license).join(" AND "));
                    let holders = texts(|license| &license.copyright).join(", ");
                    entry.copyright = Some(holders).filter(|holders| !holders.is_empty());
                }
            }
        }
        let packager = Tool {
            name: "gfxpack".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: String::new(),
            comment: String::new(),
        };
        let compiler = self.compiler.iter().map(|compiler| Tool {
            name: compiler.identity.clone(),
            version: String::new(),
            sha256: compiler.digest.to_string(),
            comment: "The digest covers compiler, linker, their libraries, the headers and the \
                      device libraries."
                .to_owned(),
        });
        let tools = compiler.chain([packager]).collect();
        BuildProvenance { sources: files.into_values().collect(), tools }
    }

    /// The licences of the sources, and those that files state which they include.
    pub(crate) fn licenses(&self) -> Licenses {
        let mut licenses = Licenses::new();
        for Source { name, licenses: own, .. } in &self.sources {
            licenses.entry(name.clone()).or_default().extend(own.iter().cloned());
        }
        for (file, license) in self.included_licenses() {
            licenses.entry(file).or_default().insert(license);
        }
        licenses
    }

    /// The licences that included files state, by the files' paths.
    pub(crate) fn included_licenses(&self) -> impl Iterator<Item = (String, SourceLicense)> {
        let files = self.sources.iter().flat_map(|source| &source.files);
        files.filter_map(|file| Some((plain_name(&file.path).to_owned(), file.license.clone()?)))
    }
}

impl SourceFile {
    /// A file of the source whose path is `main`.
    fn new((path, bytes): (&str, &[u8]), main: &str) -> Self {
        let Checksums { sha1, sha256 } = Checksums::of_bytes(bytes);
        let license = if path == main { None } else { license_of(bytes) };
        Self { path: path.to_owned(), sha1, sha256, license }
    }
}

/// The supplied constants that a kdb's objects were made with: those for its
/// processor, and that for the code object version if a key asks for it.
fn supplied(plan: &Plan, kdb: KdbId) -> Vec<Supplied> {
    let kdb = &plan[kdb];
    let toolchain = &plan[kdb.toolchain];
    let gfx = kdb.target.id().processor();
    let asks = |row: &Row| {
        let arguments = &plan[row.job].arguments;
        arguments.iter().any(|word| **word == *"-mcode-object-version=6")
    };
    let of_target = toolchain.supplied.iter().filter(|constant| match &constant.gfx {
        Some(only) => only == gfx,
        None => kdb.rows.iter().any(asks),
    });
    of_target
        .map(|constant| Supplied {
            file: constant.file.clone(),
            symbol: constant.symbol.clone(),
            value: constant.value,
            made_by: toolchain.identity.clone(),
            reason: format!(
                "the installed device libraries have none for {}",
                constant.gfx.as_deref().unwrap_or("code object version 6")
            ),
        })
        .collect()
}
