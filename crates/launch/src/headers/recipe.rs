//! How a precompiled header is made, stored with its dependencies, and found again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Error};
use gfxpack_process::watch::FileSystemCache;
use gfxpack_process::{read_sealed, touch, write_atomic, write_sealed};
use gfxpack_toolchain::Toolchain;
use serde::{Deserialize, Serialize};

use super::precompiled::{PrecompiledHeader, WRAPPER};
use crate::launcher::HeaderInputs;
use crate::template::{CommandTemplate, TemplateArg, TemplateValues};

/// Directives that clang does not count as a use of the macros that they test.
const UNCOUNTED: [&str; 2] = ["elifdef", "elifndef"];

/// A stored result of a recipe.
#[derive(Debug)]
pub(crate) enum CacheEntry {
    Header(Box<PrecompiledHeader>),
    /// The header can't be precompiled. It is not tried again.
    Unfit,
}

/// The file beside a precompiled header.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeaderRecord {
    sha256: Digest,
    /// By name of a macro: whether the headers use it.
    used: BTreeMap<String, bool>,
}

/// The command that makes a precompiled header for commands that differ in macros and source,
/// without macros and source of its own, so that all commands of a target share it. `None` if the
/// command can't use one.
///
/// Directories of the staged source are left out. Whether one of them would hide a system header is
/// checked by name.
pub(crate) fn header_command(command: &CommandTemplate) -> Option<CommandTemplate> {
    command.position("-include", WRAPPER)?;
    // Headers included by a configuration file may lie beside a source.
    let included = |arg: &&&str| ["-include", "-imacros"].contains(*arg);
    if command.texts().iter().filter(included).count() > 1 {
        return None;
    }
    let command = command.clone().with_deps_file();
    let mut args = Vec::new();
    let mut rest = command.args.iter().peekable();
    while let Some(arg) = rest.next() {
        let next = rest.peek();
        match arg {
            TemplateArg::Text(text) if text == "-mlink-builtin-bitcode" => {
                rest.next();
            }
            TemplateArg::Text(text)
                if text == "-I"
                    && matches!(next, Some(TemplateArg::Text(dir)) if !dir.starts_with('/')) =>
            {
                rest.next();
            }
            TemplateArg::Text(text) if text == "-emit-obj" => {
                // Without this, clang compares the modification times of its headers, too.
                let timeless = "-fno-pch-timestamp";
                let instead = ["-emit-pch", timeless];
                args.extend(instead.map(|arg| TemplateArg::Text(arg.into())));
                args.push(TemplateArg::Defines(0));
            }
            TemplateArg::Defines(_) => {}
            // The file that one command writes for the next is the precompiled header.
            TemplateArg::Between(_) => args.push(TemplateArg::Output),
            other => args.push(other.clone()),
        }
    }
    args.contains(&TemplateArg::Defines(0)).then_some(CommandTemplate { args })
}

/// A precompiled header to make: its command and its path.
pub(crate) struct HeaderRecipe {
    pub(super) command: CommandTemplate,
    /// The text of its source.
    pub(super) text: String,
    /// What it needs.
    pub(super) inputs: HeaderInputs,
    /// The path of its files, without extension.
    path: PathBuf,
}

impl HeaderRecipe {
    /// For a command that makes a header of what a text includes besides the driver's header, which
    /// needs these inputs.
    pub(crate) fn new(
        command: CommandTemplate,
        text: String,
        inputs: HeaderInputs,
        toolchain: &Toolchain,
        dir: &Path,
    ) -> Self {
        let named: Vec<String> = command.args.iter().map(|arg| format!("{arg:?}")).collect();
        let key = Hasher::new("gfxpack precompiled header 9")
            .field(toolchain.digest.as_ref())
            .field(inputs.digest.as_ref())
            .field(text.as_bytes())
            .list(named.iter().map(String::as_bytes))
            .finish();
        Self { command, text, inputs, path: dir.join(key.to_string()) }
    }

    /// The stored result, if there is one.
    pub(crate) fn found(&self, file_system: &FileSystemCache<'_>) -> Option<CacheEntry> {
        let record = self.read_record()?;
        let file = self.file(record.sha256);
        let is_whole = file_system.digests().digest(&file).is_ok_and(|it| it == record.sha256);
        if !is_whole {
            return None;
        }
        [self.record(), self.source(), file].iter().for_each(|file| {
            touch(file);
        });
        if record.sha256 == Digest::of(&[]) {
            return Some(CacheEntry::Unfit);
        }
        Some(CacheEntry::Header(Box::new(self.header(record))))
    }

    /// The path of the header with this SHA-256.
    fn file(&self, sha256: Digest) -> PathBuf {
        self.path.with_extension(format!("{sha256}.pch"))
    }

    fn record(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    fn read_record(&self) -> Option<HeaderRecord> {
        read_sealed(&self.record())
    }

    /// Writes the record of a tested header, so that other builds find it.
    pub(crate) fn write_record(&self, record: &HeaderRecord) -> Result<(), Error> {
        let path = self.record();
        write_sealed(&path, record).map_err(Error::io("write", &path))
    }

    fn header(&self, record: HeaderRecord) -> PrecompiledHeader {
        let (file, source) = (self.file(record.sha256), self.source());
        let (used, names) = (record.used, self.inputs.names.clone());
        PrecompiledHeader { file, source, used, names }
    }

    /// Adds the results for names to the header and to its stored record.
    pub(crate) fn learn(
        &self,
        header: &mut PrecompiledHeader,
        used: BTreeMap<String, bool>,
    ) -> Result<(), Error> {
        header.used.extend(used);
        // Another build may have replaced the record by that of its own header.
        let own = self.read_record().filter(|record| self.file(record.sha256) == header.file);
        let Some(mut record) = own else { return Ok(()) };
        record.used.clone_from(&header.used);
        self.write_record(&record)
    }

    /// The command line that preprocesses, into `file` and with more options, a source with one text
    /// before the driver's header and one after it, which it writes into a scratch directory. `None`
    /// if the command is not understood.
    pub(crate) fn preprocess(
        &self,
        scratch: &Path,
        (before, after): (&str, &str),
        options: &[&str],
        file: &Path,
    ) -> Result<Option<Vec<OsString>>, Error> {
        let source = scratch.join("k.hip");
        let text = format!("{before}#include \"{WRAPPER}\"\n{after}");
        fs::write(&source, text).map_err(Error::io("write", &source))?;
        let args = self.command.fill(&TemplateValues {
            input: &source.to_string_lossy(),
            defines: &[],
            output: file,
            deps_file: &scratch.join("d"),
            scratch,
        });
        let args = preprocessing(args, file, &[]);
        Ok(args.map(|args| args.into_iter().chain(options.iter().map(OsString::from)).collect()))
    }

    /// The source of the precompiled header, which compilers expect at its old path.
    pub(crate) fn source(&self) -> PathBuf {
        self.path.with_extension("hip")
    }

    /// The command line that makes the header in a scratch directory.
    pub(crate) fn prepare(&self, scratch: &Path) -> Result<Vec<OsString>, Error> {
        let source = self.source();
        write_atomic(&source, &[self.text.as_bytes()]).map_err(Error::io("write", &source))?;
        Ok(self.command.fill(&TemplateValues {
            input: &source.to_string_lossy(),
            defines: &[],
            output: &scratch.join("pch"),
            deps_file: &scratch.join("d"),
            scratch,
        }))
    }

    /// Moves the header from the scratch directory to its final path, where other builds find it
    /// only after its record is written. `None` if the header can't be precompiled.
    pub(crate) fn keep(
        &self,
        scratch: &Path,
    ) -> Result<Option<(PrecompiledHeader, HeaderRecord)>, Error> {
        let Ok(bytes) = fs::read(scratch.join("pch")) else { return Ok(None) };
        let is_unclear = |path: &&PathBuf| {
            let text = fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            UNCOUNTED.iter().any(|name| text.contains(name))
        };
        if let Some(path) = self.inputs.files.iter().find(is_unclear) {
            tracing::debug!(path = %path.display(), "its #elifdef may use any macro");
            return self.keep_unfit().map(|()| None);
        }
        let record = HeaderRecord { sha256: Digest::of(&bytes), used: BTreeMap::new() };
        let header = self.header(record.clone());
        write_atomic(&header.file, &[&bytes]).map_err(Error::io("write", &header.file))?;
        Ok(Some((header, record)))
    }

    /// Records that the header can't be precompiled.
    pub(crate) fn keep_unfit(&self) -> Result<(), Error> {
        let record = HeaderRecord { sha256: Digest::of(&[]), used: BTreeMap::new() };
        let file = self.file(record.sha256);
        write_atomic(&file, &[]).map_err(Error::io("write", &file))?;
        self.write_record(&record)
    }
}

/// The command line of a compiler changed to preprocess only, into `file`, with other arguments
/// instead of the header that the driver includes; `None` if it is not understood.
pub(super) fn preprocessing(
    args: Vec<OsString>,
    file: &Path,
    instead: &[OsString],
) -> Option<Vec<OsString>> {
    let mut changed = Vec::with_capacity(args.len());
    let mut emits = false;
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("-mlink-builtin-bitcode" | "-dependency-file") => {
                args.next()?;
            }
            Some("-include") => {
                args.next()?;
                changed.extend_from_slice(instead);
            }
            Some("-emit-obj" | "-emit-pch") => {
                emits = true;
                changed.push("-E".into());
            }
            Some("-o") => {
                args.next()?;
                changed.extend([arg, file.into()]);
            }
            _ => changed.push(arg),
        }
    }
    emits.then_some(changed)
}
