//! Precompiled headers: the headers that every HIP source begins with, parsed
//! once for all commands of a target.
//!
//! A command may use one only if its source surely begins with those headers,
//! and nothing in the headers depends on what the command alone defines.
//! Templates are instantiated when the header is made, which spares every
//! command that work.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Language};
use gfxpack_process::watch::{self, Answer, Answers, KeptAnswers, Looks, Settled, What};
use gfxpack_process::{touch, write_atomic};
use gfxpack_toolchain::Toolchain;
use serde::{Deserialize, Serialize};

use super::{library_headers, preamble};
use crate::arguments::{depfile_paths, searched};
use crate::error::LaunchError;
use crate::template::{CommandTemplate, Define, TemplateValues, Word};

/// The header that clang's HIP driver includes before the source.
pub(crate) const WRAPPER: &str = "__clang_hip_runtime_wrapper.h";
/// Macros whose value depends on the includer.
const FROZEN: [&str; 2] = ["__INCLUDE_LEVEL__", "__BASE_FILE__"];

/// A precompiled header that is there and holds.
#[derive(Debug)]
pub(crate) struct PrecompiledHeader {
    pub(crate) file: PathBuf,
    /// Every file that it was made of.
    pub(crate) files: Arc<BTreeSet<PathBuf>>,
    /// What its compiler was told of files that no digest covers.
    pub(crate) kept: Arc<KeptAnswers>,
    /// Every name in its headers that a macro could change.
    identifiers: HashSet<String>,
    /// Names that do not stand in its headers: whether these build them.
    built: BTreeMap<String, bool>,
    /// The headers that were looked for, found or not: as they are named in a
    /// directory of headers.
    names: BTreeSet<PathBuf>,
    /// Macros of the commands that it was made with.
    defines: Vec<Define>,
}

/// What is kept of a recipe.
#[derive(Debug)]
pub(crate) enum CacheEntry {
    Header(Box<PrecompiledHeader>),
    /// One that can't stand for its headers. It is not made again.
    Unfit,
}

/// What a command has that could make a precompiled header wrong for it.
pub(crate) struct CommandMacros<'a> {
    pub(crate) defines: &'a [Define],
    /// Macros that the source touches before the last header.
    pub(crate) macros: &'a BTreeSet<String>,
}

/// What is written beside a precompiled header.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HeaderRecord {
    sha256: Digest,
    files: BTreeSet<PathBuf>,
    answers: Answers,
    names: BTreeSet<PathBuf>,
    /// What was found out about names that do not stand in them.
    built: BTreeMap<String, bool>,
}

/// The name of a macro: `A` of `A=1`.
pub(crate) fn macro_name(define: &Define) -> &str {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    define[1].split(|c: char| !of_name(c)).next().unwrap_or_default()
}

/// Whether a command's macros are the same with a precompiled header, for which a
/// compiler goes by their names as spelled, and defines them in another order:
/// each has a plain name, one meaning and a line of its own.
///
/// Source: llvm-project, clang/lib/Serialization/ASTReader.cpp,
/// `collectMacroDefinitions` and `checkPreprocessorOptions`.
pub(crate) fn are_plain(defines: &[Define]) -> bool {
    let mut meanings: HashMap<&str, &Define> = HashMap::new();
    defines.iter().all(|define| {
        let [option, text] = define;
        let name = macro_name(define);
        let after = &text[name.len()..];
        let named = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        let ended = after.is_empty() || (option == "-D" && after.starts_with(['=', '(']));
        // Other macros may end up in what these begin.
        let lone = !text.contains(['\n', '\r', '\0'])
            && !["/*", "??", "R\""].iter().any(|part| text.contains(part))
            && !text.trim_end().ends_with('\\');
        named && ended && lone && *meanings.entry(name).or_insert(define) == define
    })
}

impl PrecompiledHeader {
    /// The command's macros that its headers know, and that it must have been
    /// made with, in order.
    pub(crate) fn conflicts(&self, defines: &[Define]) -> Vec<Define> {
        defines
            .iter()
            .filter(|define| self.knows(macro_name(define)) == Some(true))
            .cloned()
            .collect()
    }

    /// Whether a macro of that name could change its headers; `None` where
    /// that is not known.
    fn knows(&self, name: &str) -> Option<bool> {
        if self.identifiers.contains(name) { Some(true) } else { self.built.get(name).copied() }
    }

    /// Those of the names that it is not known whether its headers build.
    pub(crate) fn unknown<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<String> {
        let unknown: BTreeSet<&str> = names.filter(|name| self.knows(name).is_none()).collect();
        unknown.into_iter().map(str::to_owned).collect()
    }

    /// Whether the command's object is the same with it.
    pub(crate) fn serves(&self, command: CommandMacros<'_>) -> bool {
        let known = |define| self.knows(macro_name(define)).is_some();
        command.defines.iter().all(known)
            && self.conflicts(command.defines) == self.defines
            && command.macros.iter().all(|name| self.knows(name) == Some(false))
    }

    /// Paths that hide one of its headers if they are there, for a
    /// command that looks for headers in these directories of its sources first.
    pub(crate) fn hiding<'a>(&'a self, dirs: &'a [PathBuf]) -> impl Iterator<Item = PathBuf> + 'a {
        // What the driver includes before the source is looked for where the
        // compiler runs.
        let beside = [PathBuf::new()].into_iter().map(|dir| dir.join(WRAPPER));
        beside.chain(dirs.iter().flat_map(|dir| self.names.iter().map(|name| dir.join(name))))
    }

    /// What it was made of, which compilers want to see again where it was.
    pub(crate) fn source(&self) -> PathBuf {
        self.file.with_extension("hip")
    }

    /// The command with this instead of the header that the driver includes.
    pub(crate) fn apply(&self, command: &CommandTemplate) -> Option<CommandTemplate> {
        let at = command.position("-include", WRAPPER)?;
        let mut words = command.words.clone();
        let instead = [
            "-include-pch".into(),
            self.file.to_string_lossy().into_owned(),
            "-fno-validate-pch".into(),
        ];
        words.splice(at..at + 2, instead.map(Word::Text));
        Some(CommandTemplate { words })
    }
}

/// The command that makes a precompiled header for commands that differ in
/// macros and source: without what they have of their own, so that all of a target's share it. `None`
/// where the command is not of the kind.
///
/// Directories of the staged source are left out, since a header of the
/// system's that one of them might hide is looked for by name.
pub(crate) fn header_command(command: &CommandTemplate) -> Option<CommandTemplate> {
    command.position("-include", WRAPPER)?;
    let mut words = Vec::new();
    let mut rest = command.words.iter().peekable();
    while let Some(word) = rest.next() {
        let next = rest.peek();
        match word {
            Word::Text(text) if text == "-mlink-builtin-bitcode" => {
                rest.next();
            }
            Word::Text(text)
                if text == "-I"
                    && matches!(next, Some(Word::Text(dir)) if !dir.starts_with('/')) =>
            {
                rest.next();
            }
            Word::Text(text) if text == "-emit-obj" => {
                let instead = ["-emit-pch", "-fpch-instantiate-templates"];
                words.extend(instead.map(|word| Word::Text(word.into())));
                words.push(Word::Defines(0));
            }
            Word::Defines(_) => {}
            // What one command writes for the next is what is made here.
            Word::Between(_) => words.push(Word::Output),
            other => words.push(other.clone()),
        }
    }
    words.contains(&Word::Defines(0)).then_some(CommandTemplate { words })
}

/// A precompiled header to make: what of, and where it will be.
pub(crate) struct Recipe {
    command: CommandTemplate,
    pub(crate) text: String,
    pub(crate) defines: Vec<Define>,
    file: PathBuf,
}

impl Recipe {
    /// For a command, the headers its source begins with, and
    /// macros to make it with. `None` where the command is not of the kind.
    pub(crate) fn new(
        command: &CommandTemplate,
        headers: &[String],
        defines: Vec<Define>,
        toolchain: &Toolchain,
        dir: &Path,
    ) -> Option<Self> {
        let command = header_command(command)?;
        let words = &command.words;
        let text: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
        let named: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let key = Hasher::new("gfxpack precompiled header 3")
            .field(toolchain.digest.as_ref())
            .list(named.iter().map(String::as_bytes))
            .list(defines.iter().map(|define| define.concat()))
            .field(text.as_bytes())
            .finish();
        let file = dir.join(format!("{key}.pch"));
        Some(Self { command, text, defines, file })
    }

    /// One that was made before and still holds.
    pub(crate) fn found(&self, toolchain: &Toolchain, looks: &Looks<'_>) -> Option<CacheEntry> {
        let record = self.read_record()?;
        let is_whole = looks.digests().digest(&self.file).is_ok_and(|it| it == record.sha256);
        if !is_whole || !record.answers.hold(looks) {
            return None;
        }
        [self.record(), self.source(), self.file.clone()].iter().for_each(|file| {
            touch(file);
        });
        self.header(record, toolchain)
    }

    fn record(&self) -> PathBuf {
        self.file.with_extension("json")
    }

    fn read_record(&self) -> Option<HeaderRecord> {
        serde_json::from_slice(&fs::read(self.record()).ok()?).ok()
    }

    fn write_record(&self, record: &HeaderRecord) -> Result<(), LaunchError> {
        // With a path that is no text, it is made anew by the next build.
        let (path, Ok(bytes)) = (self.record(), serde_json::to_vec(record)) else { return Ok(()) };
        write_atomic(&path, &[&bytes]).map_err(LaunchError::io("write", &path))
    }

    fn header(&self, record: HeaderRecord, toolchain: &Toolchain) -> Option<CacheEntry> {
        let mut identifiers = HashSet::new();
        for path in &record.files {
            let text = fs::read(path).ok()?;
            preamble::exposed_names(&text, &mut |name| {
                if !identifiers.contains(name) {
                    identifiers.insert(name.to_owned());
                }
            });
        }
        let dirs = library_headers::system_dirs(&self.command);
        let foreign = |(path, answer): &(&Path, &Answer)| {
            matches!(answer, Answer::File { .. })
                && !toolchain.covers(path, Language::Hip)
                && !library_headers::is_one(path, &dirs)
        };
        if let Some((path, _)) = record.answers.iter().find(foreign) {
            tracing::debug!(path = %path.display(), "no precompiled header with others' files");
            return Some(CacheEntry::Unfit);
        }
        if FROZEN.iter().any(|&name| identifiers.contains(name)) {
            return Some(CacheEntry::Unfit);
        }
        let (file, defines) = (self.file.clone(), self.defines.clone());
        let HeaderRecord { files, answers, names, built, .. } = record;
        let (kept, files) = (Arc::new(answers.to_kept()), Arc::new(files));
        let header = PrecompiledHeader { file, files, kept, identifiers, built, names, defines };
        Some(CacheEntry::Header(Box::new(header)))
    }

    /// Adds what was found out about names to the header, and to what is kept
    /// of it.
    pub(crate) fn learn(
        &self,
        header: &mut PrecompiledHeader,
        told: BTreeMap<String, bool>,
    ) -> Result<(), LaunchError> {
        header.built.extend(told);
        let Some(mut record) = self.read_record() else { return Ok(()) };
        record.built.clone_from(&header.built);
        self.write_record(&record)
    }

    /// The words that preprocess its headers in a scratch directory with more
    /// macros, into `file`.
    pub(crate) fn preprocess(
        &self,
        scratch: &Path,
        more: &[Define],
        file: &Path,
    ) -> Result<Option<Vec<OsString>>, LaunchError> {
        let source = scratch.join("k.hip");
        fs::write(&source, &self.text).map_err(LaunchError::io("write", &source))?;
        let words = self.command.fill(&TemplateValues {
            input: &source.to_string_lossy(),
            defines: &[[self.defines.as_slice(), more].concat()],
            output: file,
            deps_file: &scratch.join("d"),
            scratch,
        });
        Ok(preprocessing(words, file))
    }

    /// What it is made of, which compilers want to see again where it was.
    pub(crate) fn source(&self) -> PathBuf {
        self.file.with_extension("hip")
    }

    /// The words that make it in a scratch directory.
    pub(crate) fn prepare(&self, scratch: &Path) -> Result<Vec<OsString>, LaunchError> {
        let source = self.source();
        write_atomic(&source, &[self.text.as_bytes()])
            .map_err(LaunchError::io("write", &source))?;
        Ok(self.command.fill(&TemplateValues {
            input: &source.to_string_lossy(),
            defines: std::slice::from_ref(&self.defines),
            output: &scratch.join("pch"),
            deps_file: &scratch.join("d"),
            scratch,
        }))
    }

    /// Takes what was made in the scratch directory to its place; `None` where
    /// it is not known what that rests on.
    pub(crate) fn keep(
        &self,
        scratch: &Path,
        toolchain: &Toolchain,
        asked: &watch::Record,
        settled: Settled,
        looks: &Looks<'_>,
    ) -> Result<Option<CacheEntry>, LaunchError> {
        let fresh = settled.fresh.into_iter().next().map(|(path, _)| path);
        let unknown = settled.reads.or(settled.writes).or(settled.changed).or(fresh);
        if let Some(path) = unknown {
            tracing::debug!(path = %path.display(), "no precompiled header that rests on this");
            return Ok(None);
        }
        let Ok(bytes) = fs::read(scratch.join("pch")) else { return Ok(None) };
        let opened = asked.asks.iter().filter(|ask| {
            matches!(ask.what, What::Open { real: Some(_), .. })
                && !ask.what.writes()
                && ask.file.is_some_and(|file| !file.is_dir())
        });
        let read: BTreeSet<PathBuf> = opened.map(|ask| ask.path.clone()).collect();
        let listed = fs::read_to_string(scratch.join("d")).map_err(|_| ());
        let Ok(listed) = listed.map(|text| depfile_paths(&text)) else { return Ok(None) };
        let files: BTreeSet<PathBuf> = listed.iter().map(|path| scratch.join(path)).collect();
        if let Some(path) = files.difference(&read).next() {
            tracing::debug!(path = %path.display(), "it was read and not seen to be");
            return Ok(None);
        }
        let dirs: Vec<&Path> = searched(&asked.processes[0].arguments).collect();
        let name = |ask: &watch::Ask| {
            let name = dirs.iter().find_map(|dir| ask.path.strip_prefix(dir).ok())?;
            (!name.as_os_str().is_empty()).then(|| name.to_owned())
        };
        let names = asked.asks.iter().filter_map(name).collect();
        let answers = Answers::new(settled.answers, looks);
        let record = HeaderRecord {
            sha256: Digest::of(&bytes),
            files,
            answers,
            names,
            built: BTreeMap::new(),
        };
        let keep = |bytes: &[u8], record: &HeaderRecord| {
            write_atomic(&self.file, &[bytes]).map_err(LaunchError::io("write", &self.file))?;
            self.write_record(record)
        };
        let kept = self.header(record.clone(), toolchain);
        match &kept {
            Some(CacheEntry::Header(_)) => keep(&bytes, &record)?,
            Some(CacheEntry::Unfit) => {
                keep(&[], &HeaderRecord { sha256: Digest::of(&[]), ..record })?
            }
            None => {}
        }
        Ok(kept)
    }

    /// Forgets it: it does not give the same bytes.
    pub(crate) fn forget(&self) {
        for file in [self.record(), self.source(), self.file.clone()] {
            fs::remove_file(file).ok();
        }
    }
}

/// The words of a compiler that preprocesses only, into `file`; `None` where
/// they are not understood.
fn preprocessing(words: Vec<OsString>, file: &Path) -> Option<Vec<OsString>> {
    let mut changed = Vec::with_capacity(words.len());
    let mut emits = false;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-mlink-builtin-bitcode" | "-dependency-file") => {
                words.next()?;
            }
            Some("-emit-obj" | "-emit-pch") => {
                emits = true;
                changed.push("-E".into());
            }
            Some("-o") => {
                words.next()?;
                changed.extend([word, file.into()]);
            }
            _ => changed.push(word),
        }
    }
    emits.then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str, defines: &[Define]) -> PrecompiledHeader {
        let mut identifiers = HashSet::new();
        preamble::exposed_names(text.as_bytes(), &mut |name| {
            identifiers.insert(name.to_owned());
        });
        PrecompiledHeader {
            file: "/c/x.pch".into(),
            files: Arc::default(),
            kept: Arc::new(Answers::default().to_kept()),
            identifiers,
            built: [("WG", false), ("GUARD", false), ("fmul", true)]
                .map(|(name, built)| (name.to_owned(), built))
                .into(),
            names: [PathBuf::from("math.h"), "bits/x.h".into()].into(),
            defines: defines.to_vec(),
        }
    }

    fn define(text: &str) -> Define {
        ["-D".to_owned(), text.to_owned()]
    }

    #[test]
    fn only_a_command_that_its_headers_know_nothing_of_may_use_it() {
        let serves = |made_with: &[Define], defines: &[Define], macros: &[&str]| {
            let macros = macros.iter().map(|&name| name.to_owned()).collect();
            let command = CommandMacros { defines, macros: &macros };
            header("#if NDEBUG\nfloat N;", made_with).serves(command)
        };
        let (wg, n, debug) = (define("WG=1"), define("N(x)=1"), define("NDEBUG"));
        assert!(serves(&[], std::slice::from_ref(&wg), &["GUARD"]));
        assert!(!serves(&[], &[wg.clone(), n], &[]));
        assert!(!serves(&[], &[], &["NDEBUG"]));
        let with = std::slice::from_ref(&debug);
        assert!(serves(with, &[wg, debug.clone()], &[]));
        assert!(!serves(with, &[], &[]));
        assert!(!serves(with, &[define("NDEBUG=0")], &[]));
        // Its headers build one of these names; of the other nobody knows.
        for name in ["fmul", "other"] {
            assert!(!serves(&[], &[define(name)], &[]));
            assert!(!serves(&[], &[], &[name]));
        }
        let dirs = [PathBuf::from("."), "i0".into()];
        let hiding: Vec<PathBuf> = header("", &[]).hiding(&dirs).collect();
        let expected = [WRAPPER, "./bits/x.h", "./math.h", "i0/bits/x.h", "i0/math.h"];
        assert_eq!(hiding, expected.map(PathBuf::from));
        let names = ["fmul", "other", "N", "WG", "other"];
        assert_eq!(header("float N;", &[]).unknown(names.into_iter()), ["other"]);
    }

    #[test]
    fn macros_that_compilers_order_are_left_to_them() {
        let plain = |defines: &[&str]| {
            let define = |text: &&str| {
                let (option, text) = text.split_at(2);
                [option.to_owned(), text.to_owned()]
            };
            are_plain(&defines.iter().map(define).collect::<Vec<_>>())
        };
        assert!(plain(&["-DA", "-DB=1", "-UC", "-DF(x)=x / 2", "-DS=\"a\"", "-DB=1", "-D_1=\\n"]));
        for odd in [
            &["-D__ocml_exp_f32 =__ocml_exp2_f32"][..],
            &["-DF(x)=1", "-UF", "-DF(x)=2"],
            &["-DA=1", "-DA=2"],
            &["-DA", "-DA=1"],
            &["-DA", "-UA"],
            &["-DF(x)=1", "-DF(y)=1"],
            &["-Da$=1"],
            &["-Da\u{e4}=1"],
            &["-D1=1"],
            &["-D=1"],
            &["-UF(x)"],
            &["-DA=1\n#define B"],
            &["-DA=1\\ "],
            &["-DA=1??/"],
            &["-DA=/*"],
            &["-DA=R\"("],
        ] {
            assert!(!plain(odd), "{odd:?}");
        }
    }

    #[test]
    fn it_stands_where_the_drivers_header_stood() {
        let words = ["clang", "-include", WRAPPER, "-O3"].map(|word| Word::Text(word.into()));
        let applied = header("", &[]).apply(&CommandTemplate { words: words.into() }).unwrap();
        let expected = ["clang", "-include-pch", "/c/x.pch", "-fno-validate-pch", "-O3"];
        assert_eq!(applied.words, expected.map(|word| Word::Text(word.into())));
    }
}
