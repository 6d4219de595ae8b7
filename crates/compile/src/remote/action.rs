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
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use gfxpack_launch::{CommandTemplate, Defines, TemplateArg, TemplateValues, searched};
use gfxpack_model::{Digest, Error, relative_path};
use gfxpack_plan::plan::{Job, StagedFile};

use gfxpack_process::preload;
use gfxpack_toolchain::Toolchain;

use super::{Action, Content, InputFile, InputRoot};
use crate::context::BuildContext;
use crate::declare::Inputs;
use crate::nearby_files::is_include_root;

/// The top directory of the tree.
const TOP: &str = "gfxpack";
/// Where commands run.
const SOURCE_DIR: &str = "gfxpack/src";
/// The directory that commands write to, below that of the sources.
const SCRATCH: &str = ".gfxpack";
const OBJECT: &str = ".gfxpack/o";
const DEPS: &str = ".gfxpack/d";
/// The directory of everything sent besides sources, beside that of the sources: `..` in a source
/// leads to it only by this name, which no project has.
const SENT: &str = "gfxpack-sent";
/// Before the path of a header.
const HEADERS: &str = "gfxpack/gfxpack-sent/sys";
/// The same path as commands see it.
const SYSTEM: &str = "../gfxpack-sent/sys";
/// The library that every compiler is started with.
const PRELOAD: &str = "gfxpack/gfxpack-sent/lib/gfxpack-preload.so";
const PRELOAD_FROM_SOURCE: &str = "../gfxpack-sent/lib/gfxpack-preload.so";
/// The part of an action that all jobs of one command and source share.
#[derive(Debug)]
pub(super) struct ActionTemplate {
    commands: Vec<CommandTemplate>,
    root: Arc<InputRoot>,
}

impl ActionTemplate {
    /// How jobs with these commands and this source run elsewhere; `None` if they can't.
    pub(super) fn new(
        context: &BuildContext<'_>,
        job: &Job,
        commands: &[CommandTemplate],
        inputs: &Inputs,
    ) -> Result<Option<Self>, Error> {
        // A file that is sent under two names becomes two files there, and links are not sent.
        let source = &context.plan[job.source];
        let others = inputs.others.files.values().map(|(staged, _)| staged);
        let is_other_name = |file: &StagedFile| file.same_as.is_some();
        if source.files.iter().chain(others).any(is_other_name)
            || links_matter(context, job, inputs)
            || !inputs.is_closed
            || !inputs.undeclared.is_empty()
            || !inputs.twice.is_empty()
        {
            return Ok(None);
        }
        let mut tree = InputTree::new(context, job, inputs);
        match tree.send(commands) {
            Ok(commands) => Ok(Some(Self { commands, root: Arc::new(tree.finish()) })),
            Err(None) => {
                tracing::debug!(key = %job.key, "it can't run elsewhere");
                Ok(None)
            }
            Err(Some(error)) => Err(error),
        }
    }

    /// The action of a job.
    pub(super) fn action(
        &self,
        context: &BuildContext<'_>,
        job: &Job,
        defines: &Defines,
    ) -> Option<Action> {
        let values = TemplateValues {
            input: &context.plan[job.source].main,
            defines,
            output: Path::new(OBJECT),
            deps_file: Path::new(DEPS),
            scratch: Path::new(SCRATCH),
        };
        // A service runs one program; only a shell can run several.
        let mut lines = Vec::new();
        for command in &self.commands {
            let args = command.fill(&values);
            let args: Option<Vec<&str>> = args.iter().map(|arg| arg.to_str()).collect();
            lines.push(shlex::try_join(args?).ok()?);
        }
        let arguments = ["/bin/sh".to_owned(), "-c".to_owned(), lines.join(" && ")].into();
        Some(Action {
            arguments,
            directory: SOURCE_DIR,
            output: OBJECT,
            root: Arc::clone(&self.root),
            time_limit: context.time_limit,
            name: job.key.kernel_name.clone(),
            target: job.target_id.to_string(),
        })
    }
}

/// Whether a job's result may depend on which of its directories are links, which are sent as
/// directories: a path leads back from one, or two of them are one.
fn links_matter(context: &BuildContext<'_>, job: &Job, inputs: &Inputs) -> bool {
    let source = &context.plan[job.source];
    let links = source.links.iter().map(|(from, to)| (from, to)).chain(&inputs.others.links);
    let links: BTreeMap<&String, &String> = links.collect();
    let dirs: BTreeSet<&String> = source.include_dirs.iter().chain(&inputs.others.dirs).collect();
    let real: BTreeSet<&String> =
        dirs.iter().map(|dir| links.get(dir).copied().unwrap_or(dir)).collect();
    let all_apart = real.len() == dirs.len();
    let is_outside = |dir: &&String| is_include_root(dir) && !links.contains_key(dir);
    let has_outside = source.include_dirs.iter().any(|dir| is_outside(&dir));
    !links.is_empty() && !all_apart
        || (has_outside || !links.is_empty()) && context.sources.any_leads_back(job.source)
}

/// An error, or `None` if a command can't run elsewhere.
type Sent<T> = Result<T, Option<Error>>;

/// The error of a file that is to be sent.
fn unreadable(file: &Path) -> impl FnOnce(io::Error) -> Option<Error> {
    move |error| Some(Error::io("read", file)(error))
}

/// An input root being built.
struct InputTree<'a> {
    context: &'a BuildContext<'a>,
    inputs: &'a Inputs,
    toolchain: &'a Toolchain,
    files: BTreeMap<String, InputFile>,
    directories: BTreeSet<String>,
}

impl<'a> InputTree<'a> {
    fn new(context: &'a BuildContext<'a>, job: &'a Job, inputs: &'a Inputs) -> Self {
        let mut tree = Self {
            context,
            inputs,
            toolchain: context.declarer.toolchain(job.toolchain),
            files: BTreeMap::new(),
            directories: BTreeSet::from([format!("{SOURCE_DIR}/{SCRATCH}")]),
        };
        let source = &context.plan[job.source];
        for (path, bytes) in context.sources.files(job.source) {
            tree.add_bytes(format!("{SOURCE_DIR}/{path}"), bytes, false);
        }
        for (staged, file) in inputs.others.files.values() {
            tree.add_bytes(format!("{SOURCE_DIR}/{}", staged.path), &file.bytes, false);
        }
        let dirs = source.include_dirs.iter().chain(&source.dirs).chain(&inputs.others.dirs);
        let dirs = dirs.map(|dir| format!("{SOURCE_DIR}/{dir}"));
        tree.directories.extend(dirs.filter_map(|dir| relative_path::join("", &dir)));
        tree
    }

    fn finish(self) -> InputRoot {
        let directories = self.directories.into_iter().collect();
        InputRoot::new(self.files.into_values().collect(), directories)
    }

    /// The commands with paths of the tree, to which their files are added.
    fn send(&mut self, commands: &[CommandTemplate]) -> Sent<Vec<CommandTemplate>> {
        let loader = self.libraries()?;
        let mut dirs = BTreeSet::new();
        let mut sent = Vec::with_capacity(commands.len());
        for command in commands {
            sent.push(CommandTemplate { args: self.send_args(command, &loader, &mut dirs)? });
        }
        for header in &self.inputs.outside {
            self.add_header(&header.path)?;
        }
        for dir in dirs {
            let (place, passed) = normal(&dir).ok_or(None)?;
            self.directories.extend(passed);
            // Compilers ignore missing directories.
            self.directories.extend(dir.is_dir().then_some(place));
        }
        Ok(sent)
    }

    /// Adds the libraries of the toolchain's programs, all in one directory, so that no two may have
    /// the same name. Returns the arguments that start a program with them and with none of the
    /// worker's own.
    fn libraries(&mut self) -> Sent<Vec<TemplateArg>> {
        let mut loader = None;
        for file in &self.toolchain.files {
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
            if !name.contains(".so") {
                continue;
            }
            let path = format!("{SENT}/lib/{name}");
            if name.starts_with("ld-") || name.starts_with("ld64") {
                loader = Some(format!("../{path}"));
            }
            if !self.add(format!("{TOP}/{path}"), file)? {
                return Err(None);
            }
        }
        let Some(loader) = loader else { return Ok(Vec::new()) };
        let libraries = format!("../{SENT}/lib");
        let args = [&*loader, "--inhibit-cache", "--library-path", &libraries];
        let args = [&args[..], &["--preload", PRELOAD_FROM_SOURCE]].concat();
        // It makes a compiler's output reproducible, as here.
        self.add_bytes(PRELOAD.to_owned(), preload::bytes(), true);
        Ok(args.into_iter().map(|arg| TemplateArg::Text(arg.to_owned())).collect())
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
    ) -> Sent<Vec<TemplateArg>> {
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
            } else if ["-D", "-U"].contains(&previous)
                || previous == "-include" && !text.starts_with('/')
            {
                text.clone()
            } else {
                self.send_arg(text, previous, dirs)?
            };
            args.push(TemplateArg::Text(sent));
            if at > 0 && text == "-cc1" {
                let maps = ["-fmacro-prefix-map", "-fdebug-prefix-map"];
                args.extend(maps.map(|map| TemplateArg::Text(format!("{map}={SYSTEM}/=/"))));
            }
            previous = text;
        }
        Ok(args)
    }

    /// An argument with its paths replaced by those in the tree.
    fn send_arg(
        &mut self,
        text: &str,
        previous: &str,
        dirs: &mut BTreeSet<PathBuf>,
    ) -> Sent<String> {
        let path = Path::new(text);
        if text.contains("-prefix-map=") || text.starts_with("-I/") {
            return Err(None);
        }
        if searched(&[previous, text]).any(Path::is_absolute) {
            dirs.insert(path.to_owned());
            return Ok(format!("{SYSTEM}{text}"));
        }
        if previous == "-resource-dir" {
            // Searched by default.
            dirs.insert(path.join("include"));
            return Ok(format!("{SYSTEM}{text}"));
        }
        let (before, path) = match text.split_once("=/") {
            _ if path.is_absolute() => ("", text),
            Some((option, _)) if option.starts_with('-') => text.split_at(option.len() + 1),
            _ => return Ok(text.to_owned()),
        };
        if path == "/dev/null" {
            return Ok(text.to_owned());
        }
        Ok(format!("{before}{}", self.add_named("files", Path::new(path))?))
    }

    /// Adds a file below `dir` under its own name. Returns its path as commands see it.
    fn add_named(&mut self, dir: &str, file: &Path) -> Sent<String> {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.filter(|_| file.is_file()).ok_or(None)?;
        let mut path = format!("{SENT}/{dir}/{name}");
        if !self.add(format!("{TOP}/{path}"), file)? {
            path = format!("{SENT}/{dir}/{}/{name}", self.digest(file)?);
            self.add(format!("{TOP}/{path}"), file)?;
        }
        Ok(format!("../{path}"))
    }

    fn digest(&self, file: &Path) -> Sent<Digest> {
        self.context.declarer.file_system.digests().digest(file).map_err(unreadable(file))
    }

    /// Adds a header where its includers find it.
    fn add_header(&mut self, header: &Path) -> Sent<()> {
        let (place, passed) = normal(header).ok_or(None)?;
        let here = place.strip_prefix(HEADERS).unwrap_or(&place);
        // If a link was passed, `..` leads elsewhere.
        if fs::canonicalize(here).ok() != fs::canonicalize(header).ok() {
            return Err(None);
        }
        self.directories.extend(passed);
        if self.add(place, header)? { Ok(()) } else { Err(None) }
    }

    /// Adds a file to the tree, unless another one has the path. Returns whether the tree has it.
    fn add(&mut self, path: String, file: &Path) -> Sent<bool> {
        let digest = self.digest(file)?;
        if let Some(there) = self.files.get(&path) {
            return Ok(there.digest == digest);
        }
        let meta = fs::metadata(file).map_err(unreadable(file))?;
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
