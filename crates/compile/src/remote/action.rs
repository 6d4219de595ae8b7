//! A job as another machine can run it: the driver's commands, with every path below one directory
//! tree, and that tree.
//!
//! ```text
//! gfxpack/src/            the staged source; commands run here
//! gfxpack/src/.gfxpack/   what they write
//! gfxpack/gfxpack-sent/   what no source is
//!     bin/  lib/          programs, and the libraries that they are started with
//!     files/              bitcode and whatever else is named as a single file
//!     sys/                headers, under the paths they have here
//! ```
//!
//! Everything lies below one directory, since workers may lay the tree over a root with a `lib` of
//! its own, and a source may have one beside it: neither is taken for a sent file. Headers keep
//! their paths because these appear in objects (`__FILE__`, debug information); the prefix is
//! mapped away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gfxpack_launch::{CommandTemplate, Defines, TemplateArg, TemplateValues, searched};
use gfxpack_model::{Digest, Language, relative_path};
use gfxpack_plan::include::{self, Include};
use gfxpack_plan::plan::{Job, StagedFile};
use gfxpack_process::FileError;
use gfxpack_process::preload::{self, RECORD_VARIABLE};
use gfxpack_toolchain::Toolchain;

use super::headers::Headers;
use super::workers::{Action, Content, InputFile, InputRoot, ToolchainSource};
use crate::context::BuildContext;
use crate::error::CompileError;

/// The top directory of the tree.
const TOP: &str = "gfxpack";
/// Where commands run.
const SOURCE_DIR: &str = "gfxpack/src";
/// The directory that commands write to, below that of the sources.
pub(super) const SCRATCH: &str = ".gfxpack";
const OBJECT: &str = ".gfxpack/o";
const DEPS: &str = ".gfxpack/d";
/// The record of the compilers' file accesses.
const RECORD: &str = ".gfxpack/r";
/// The directory of everything sent besides sources, beside that of the sources: `..` in a source
/// leads to it only by this name, which no project has.
pub(super) const SENT: &str = "gfxpack-sent";
/// Before the path of a header.
pub(super) const HEADERS: &str = "gfxpack/gfxpack-sent/sys";
/// The same path as commands see it.
pub(super) const SYSTEM: &str = "../gfxpack-sent/sys";
/// The library that every compiler is started with.
const PRELOAD: &str = "gfxpack/gfxpack-sent/lib/gfxpack-preload.so";
const PRELOAD_FROM_SOURCE: &str = "../gfxpack-sent/lib/gfxpack-preload.so";
/// Headers that the compiler reads although no file includes them.
///
/// Source: llvm-project, clang/lib/Headers/opencl-c-base.h and
/// clang/lib/Frontend/InitPreprocessor.cpp, `InitializeStandardPredefinedMacros`.
const IMPLICIT: [&str; 2] = ["opencl-c-base.h", "opencl-c.h"];

/// The part of an action that all jobs of one command and source share.
#[derive(Debug)]
pub(super) struct ActionTemplate {
    commands: Vec<CommandTemplate>,
    pub(super) root: Arc<InputRoot>,
    /// The shell commands that run first.
    before: Option<String>,
}

impl ActionTemplate {
    /// How jobs with these commands and this source run elsewhere; `None` if they can't.
    pub(super) fn new(
        context: &BuildContext<'_>,
        job: &Job,
        commands: &[CommandTemplate],
        headers: &Headers,
        toolchain: ToolchainSource,
    ) -> Result<Option<Self>, CompileError> {
        // A file that is sent under two names becomes two files there.
        let is_other_name = |file: &StagedFile| file.same_as.is_some();
        if context.plan[job.source].files.iter().any(is_other_name) {
            return Ok(None);
        }
        let mut tree = InputTree::new(context, job);
        let (commands, before) = match toolchain {
            // The workers' own programs find their libraries by themselves, so only the environment
            // can have them load ours.
            ToolchainSource::Installed => {
                // If the worker's C library were older than ours needs, no program would start.
                let before = format!(
                    "if LD_PRELOAD={PRELOAD_FROM_SOURCE} /bin/sh -c : 2>/dev/null; \
                     then export LD_PRELOAD={PRELOAD_FROM_SOURCE}; fi"
                );
                tree.add_preload();
                (Some(commands.to_vec()), Some(before))
            }
            ToolchainSource::Sent => (tree.send(commands, headers)?, None),
        };
        let Some(commands) = commands else {
            tracing::debug!(key = %job.key, "it can't run elsewhere");
            return Ok(None);
        };
        Ok(Some(Self { commands, root: Arc::new(tree.finish()), before }))
    }

    /// The action of a job.
    pub(super) fn action(
        &self,
        context: &BuildContext<'_>,
        job: &Job,
        defines: &Defines,
        toolchain: ToolchainSource,
    ) -> Option<Action> {
        let values = TemplateValues {
            input: &context.plan[job.source].main,
            defines,
            output: Path::new(OBJECT),
            deps_file: Path::new(DEPS),
            scratch: Path::new(SCRATCH),
        };
        // A service runs one program; only a shell can run several and knows its directory.
        let record = format!("export {RECORD_VARIABLE}=\"$PWD/{RECORD}\"");
        let mut lines: Vec<String> = self.before.iter().cloned().chain([record]).collect();
        for command in &self.commands {
            let args = command.fill(&values);
            let args: Option<Vec<&str>> = args.iter().map(|arg| arg.to_str()).collect();
            lines.push(shlex::try_join(args?).ok()?);
        }
        let arguments = ["/bin/sh".to_owned(), "-c".to_owned(), lines.join(" && ")].into();
        let digest = context.toolchains[job.toolchain.0].digest;
        Some(Action {
            arguments,
            directory: SOURCE_DIR,
            outputs: [OBJECT, RECORD],
            root: Arc::clone(&self.root),
            time_limit: context.time_limit,
            salt: (toolchain == ToolchainSource::Installed).then_some(digest),
            name: job.key.kernel_name.clone(),
            target: job.target_id.to_string(),
        })
    }
}

/// An input root being built.
struct InputTree<'a> {
    context: &'a BuildContext<'a>,
    job: &'a Job,
    toolchain: &'a Toolchain,
    files: BTreeMap<String, InputFile>,
    directories: BTreeSet<String>,
}

impl<'a> InputTree<'a> {
    fn new(context: &'a BuildContext<'a>, job: &'a Job) -> Self {
        let mut tree = Self {
            context,
            job,
            toolchain: &context.toolchains[job.toolchain.0],
            files: BTreeMap::new(),
            directories: BTreeSet::from([format!("{SOURCE_DIR}/{SCRATCH}")]),
        };
        let source = &context.plan[job.source];
        for (path, bytes) in context.sources.files(job.source) {
            tree.add_bytes(format!("{SOURCE_DIR}/{path}"), bytes, false);
        }
        let dirs = source.include_dirs.iter().map(|dir| format!("{SOURCE_DIR}/{dir}"));
        tree.directories.extend(dirs.filter_map(|dir| relative_path::join("", &dir)));
        tree
    }

    fn finish(self) -> InputRoot {
        let directories = self.directories.into_iter().collect();
        InputRoot::new(self.files.into_values().collect(), directories)
    }

    /// The commands with paths of the tree, to which their files are added; `None` if an argument
    /// is not understood.
    fn send(
        &mut self,
        commands: &[CommandTemplate],
        headers: &Headers,
    ) -> Result<Option<Vec<CommandTemplate>>, CompileError> {
        let Some(loader) = self.libraries()? else { return Ok(None) };
        let mut dirs = BTreeSet::new();
        let mut names = Vec::new();
        let mut sent = Vec::with_capacity(commands.len());
        for command in commands {
            let Some(args) = self.send_args(command, &loader, &mut dirs, &mut names)? else {
                return Ok(None);
            };
            sent.push(CommandTemplate { args });
        }
        names.extend(self.named_by_source());
        let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
        for header in headers.reachable(&names, &dirs) {
            if !self.add_header(&header)? {
                return Ok(None);
            }
        }
        for dir in dirs {
            let Some((place, passed)) = normal(dir) else { return Ok(None) };
            self.directories.extend(passed);
            // Compilers ignore missing directories.
            self.directories.extend(dir.is_dir().then_some(place));
        }
        Ok(Some(sent))
    }

    /// The includes of the source and its files that are not among them.
    fn named_by_source(&self) -> Vec<Include> {
        let files = self.context.sources.files(self.job.source);
        let mut names: BTreeSet<Include> = BTreeSet::new();
        for (_, text) in files {
            names.extend(include::scan(text, self.job.language));
        }
        if self.job.language == Language::OpenclC {
            names.extend(IMPLICIT.map(|name| Include { path: name.to_owned(), quoted: false }));
        }
        names.into_iter().collect()
    }

    /// Adds the libraries of the toolchain's programs, all in one directory. Returns the arguments
    /// that start a program with them and with none of the worker's own; `None` if two have the
    /// same name.
    fn libraries(&mut self) -> Result<Option<Vec<TemplateArg>>, CompileError> {
        let mut loader = None;
        for file in self.toolchain.files() {
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
            if !name.contains(".so") {
                continue;
            }
            let path = format!("{SENT}/lib/{name}");
            if name.starts_with("ld-") || name.starts_with("ld64") {
                loader = Some(format!("../{path}"));
            }
            if !self.add(format!("{TOP}/{path}"), file)? {
                return Ok(None);
            }
        }
        let Some(loader) = loader else { return Ok(Some(Vec::new())) };
        let libraries = format!("../{SENT}/lib");
        let args = [&*loader, "--inhibit-cache", "--library-path", &libraries];
        let args = [&args[..], &["--preload", PRELOAD_FROM_SOURCE]].concat();
        self.add_preload();
        Ok(Some(args.into_iter().map(|arg| TemplateArg::Text(arg.to_owned())).collect()))
    }

    /// Adds the preload library, which makes a compiler's output reproducible, as here.
    fn add_preload(&mut self) {
        self.add_bytes(PRELOAD.to_owned(), preload::bytes(), true);
    }

    fn add_bytes(&mut self, path: String, bytes: &[u8], executable: bool) {
        let (digest, size) = (Digest::of(bytes), bytes.len() as u64);
        let content = Content::Bytes(bytes.into());
        let file = InputFile { path: path.clone(), digest, size, executable, content };
        self.files.insert(path, file);
    }

    fn send_args(
        &mut self,
        command: &CommandTemplate,
        loader: &[TemplateArg],
        dirs: &mut BTreeSet<PathBuf>,
        names: &mut Vec<Include>,
    ) -> Result<Option<Vec<TemplateArg>>, CompileError> {
        let mut args = loader.to_vec();
        let mut previous = "";
        for (at, arg) in command.args.iter().enumerate() {
            let TemplateArg::Text(text) = arg else {
                args.push(arg.clone());
                previous = "";
                continue;
            };
            let sent = if at == 0 {
                self.add_named("bin", Path::new(text))?
            } else if previous == "-D" || previous == "-U" {
                Some(text.clone())
            } else if previous == "-include" && !text.starts_with('/') {
                names.push(Include { path: text.clone(), quoted: true });
                Some(text.clone())
            } else {
                self.send_arg(text, previous, dirs)?
            };
            let Some(sent) = sent else { return Ok(None) };
            args.push(TemplateArg::Text(sent));
            if at > 0 && text == "-cc1" {
                let maps = ["-fmacro-prefix-map", "-fdebug-prefix-map"];
                args.extend(maps.map(|map| TemplateArg::Text(format!("{map}={SYSTEM}/=/"))));
            }
            previous = text;
        }
        Ok(Some(args))
    }

    /// An argument with its paths replaced by those in the tree.
    fn send_arg(
        &mut self,
        text: &str,
        previous: &str,
        dirs: &mut BTreeSet<PathBuf>,
    ) -> Result<Option<String>, CompileError> {
        let path = Path::new(text);
        if text.contains("-prefix-map=") {
            return Ok(None);
        }
        if searched(&[previous, text]).any(Path::is_absolute) {
            dirs.insert(path.to_owned());
            return Ok(Some(format!("{SYSTEM}{text}")));
        }
        if previous == "-resource-dir" {
            // Searched by default.
            dirs.insert(path.join("include"));
            return Ok(Some(format!("{SYSTEM}{text}")));
        }
        let (before, path) = match text.split_once("=/") {
            _ if path.is_absolute() => ("", text),
            Some((option, _)) if option.starts_with('-') => text.split_at(option.len() + 1),
            _ => return Ok(Some(text.to_owned())),
        };
        if path == "/dev/null" {
            return Ok(Some(text.to_owned()));
        }
        let sent = self.add_named("files", Path::new(path))?;
        Ok(sent.map(|sent| format!("{before}{sent}")))
    }

    /// Adds a file below `dir` under its own name. Returns its path as commands see it, or `None`
    /// if it is no file.
    fn add_named(&mut self, dir: &str, file: &Path) -> Result<Option<String>, CompileError> {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
        if !file.is_file() {
            return Ok(None);
        }
        let mut path = format!("{SENT}/{dir}/{name}");
        if !self.add(format!("{TOP}/{path}"), file)? {
            path = format!("{SENT}/{dir}/{}/{name}", self.digest(file)?);
            self.add(format!("{TOP}/{path}"), file)?;
        }
        Ok(Some(format!("../{path}")))
    }

    fn digest(&self, file: &Path) -> Result<Digest, FileError> {
        self.context.file_system.digests().digest(file).map_err(FileError::io("read", file))
    }

    /// Adds a header where its includers find it. Returns whether that is possible.
    fn add_header(&mut self, header: &Path) -> Result<bool, CompileError> {
        let Some((place, passed)) = normal(header) else { return Ok(false) };
        let here = place.strip_prefix(HEADERS).unwrap_or(&place);
        // If a link was passed, `..` leads elsewhere.
        if fs::canonicalize(here).ok() != fs::canonicalize(header).ok() {
            return Ok(false);
        }
        self.directories.extend(passed);
        self.add(place, header)
    }

    /// Adds a file to the tree, unless another one has the path. Returns whether the tree has it.
    fn add(&mut self, path: String, file: &Path) -> Result<bool, CompileError> {
        let digest = self.digest(file)?;
        if let Some(there) = self.files.get(&path) {
            return Ok(there.digest == digest);
        }
        let meta = fs::metadata(file).map_err(FileError::io("read", file))?;
        let input = InputFile {
            path: path.clone(),
            digest,
            size: meta.len(),
            executable: meta.permissions().mode() & 0o111 != 0,
            content: Content::File(file.to_owned()),
        };
        self.files.insert(path, input);
        Ok(true)
    }
}

/// The path in the tree for an absolute path, with `..` resolved by text, and the directories that
/// must exist for `..` to work.
fn normal(path: &Path) -> Option<(String, Vec<String>)> {
    let mut parts = vec![HEADERS];
    let mut passed = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => {
                passed.push(parts.join("/"));
                if parts.len() > 1 {
                    parts.pop();
                }
            }
            Component::Prefix(_) => return None,
        }
    }
    Some((parts.join("/"), passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_before_parent_components_are_listed() {
        let (place, passed) = normal(Path::new("/usr/bin/../lib/gcc/12/../../include/c")).unwrap();
        assert_eq!(place, format!("{HEADERS}/usr/lib/include/c"));
        assert_eq!(
            passed,
            ["usr/bin", "usr/lib/gcc/12", "usr/lib/gcc"].map(|dir| format!("{HEADERS}/{dir}"))
        );
    }
}
