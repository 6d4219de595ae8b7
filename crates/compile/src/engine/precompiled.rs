//! Precompiled headers: the headers that every HIP source begins with, parsed
//! once for all jobs of a target.
//!
//! A job may use one only if its source surely begins with those headers, and
//! nothing in the headers depends on what the job alone defines. Templates are
//! instantiated when the header is made, which spares every job that work.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_plan::preamble;
use gfxpack_process::write_atomic;
use gfxpack_process::{FileDigests, Identity};
use serde::{Deserialize, Serialize};
use gfxpack_model::{Digest, Language};
use gfxpack_model::digest::Hasher;

use super::command::{Command, Define, Filling, Word};
use super::{library_headers, preprocessing};
use crate::answers::Moment;
use crate::error::CompileError;
use crate::header_text::HeaderTexts;
use crate::job::depfile_paths;
use crate::shadow::{self, Shadows, searched};
use crate::store::touch;
use crate::toolchain::Toolchain;

/// The header that clang's HIP driver includes before the source.
pub(crate) const WRAPPER: &str = "__clang_hip_runtime_wrapper.h";
/// Macros whose value depends on the includer.
const FROZEN: [&str; 2] = ["__INCLUDE_LEVEL__", "__BASE_FILE__"];

/// A precompiled header that is there and holds.
#[derive(Debug)]
pub(crate) struct PrecompiledHeader {
    pub(crate) file: PathBuf,
    /// Files outside of the toolchain's digest that went into it.
    pub(crate) deps: Vec<(PathBuf, Digest)>,
    /// Every name in its headers that a macro could change.
    identifiers: HashSet<String>,
    /// Names that do not stand in its headers: whether these build them.
    built: BTreeMap<String, bool>,
    /// The file names of its headers, and of those that they ask for.
    names: HashSet<String>,
    /// Macros of the jobs that it was made with.
    defines: Vec<Define>,
}

/// What is kept of a recipe.
#[derive(Debug)]
pub(crate) enum Kept {
    Header(PrecompiledHeader),
    /// One that can't stand for its headers. It is not made again.
    Unfit,
}

/// What a job has that could make a precompiled header wrong for it.
pub(crate) struct Claims<'a> {
    pub(crate) defines: &'a [Define],
    /// Macros that the source touches before the last header.
    pub(crate) macros: &'a BTreeSet<String>,
    /// The staged files' paths.
    pub(crate) files: Vec<&'a str>,
}

/// What is written beside a precompiled header.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    sha256: Digest,
    /// Every file that was read, with its digest.
    files: Vec<(PathBuf, Digest)>,
    /// What was found out about names that do not stand in them.
    built: BTreeMap<String, bool>,
}

/// The name of a macro: `A` of `A=1`.
pub(crate) fn macro_name(define: &Define) -> &str {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    define[1].split(|c: char| !of_name(c)).next().unwrap_or_default()
}

/// Whether a job's macros are the same with a precompiled header, for which a
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
    /// The job's macros that its headers know, and that it must have been
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

    /// Whether the job's object is the same with it.
    pub(crate) fn serves(&self, claims: Claims<'_>) -> bool {
        let shadowed = |path: &str| self.names.contains(path.rsplit('/').next().unwrap_or(path));
        let known = |define| self.knows(macro_name(define)).is_some();
        claims.defines.iter().all(known)
            && self.conflicts(claims.defines) == self.defines
            && claims.macros.iter().all(|name| self.knows(name) == Some(false))
            && !claims.files.into_iter().any(shadowed)
    }

    /// The command with this instead of the header that the driver includes.
    pub(crate) fn apply(&self, command: &Command) -> Option<Command> {
        let at = command.position("-include", WRAPPER)?;
        let mut words = command.words.clone();
        let instead = [
            "-include-pch".into(),
            self.file.to_string_lossy().into_owned(),
            "-fno-validate-pch".into(),
        ];
        words.splice(at..at + 2, instead.map(Word::Text));
        Some(Command { words })
    }
}

/// The command that makes a precompiled header for jobs of a command: without
/// what they have of their own, so that all of a target's share it. `None`
/// where the command is not of the kind.
///
/// Directories of the staged source are left out, since a header of the
/// system's that one of them might hide is looked for by name.
pub(crate) fn header_command(command: &Command) -> Option<Command> {
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
    words.contains(&Word::Defines(0)).then_some(Command { words })
}

/// A precompiled header to make: what of, and where it will be.
pub(crate) struct Recipe {
    command: Command,
    pub(crate) text: String,
    pub(crate) defines: Vec<Define>,
    file: PathBuf,
}

impl Recipe {
    /// For the command of a job, the headers its source begins with, and
    /// macros to make it with. `None` where the command is not of the kind.
    pub(crate) fn new(
        command: &Command,
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
    pub(crate) fn found(&self, toolchain: &Toolchain, digests: &FileDigests) -> Option<Kept> {
        let record = self.read_record()?;
        let current = |(path, digest): &(PathBuf, Digest)| shadow::holds(path, *digest, digests);
        let holds = digests.digest(&self.file).is_ok_and(|digest| digest == record.sha256);
        if !holds || !record.files.iter().all(current) {
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

    fn read_record(&self) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.record()).ok()?).ok()
    }

    fn write_record(&self, record: &Record) -> Result<(), CompileError> {
        let (path, bytes) = (self.record(), serde_json::to_vec(record).expect("plain data"));
        write_atomic(&path, &[&bytes]).map_err(CompileError::io("write", &path))
    }

    fn header(&self, record: Record, toolchain: &Toolchain) -> Option<Kept> {
        let mut identifiers = HashSet::new();
        let mut names = HashSet::new();
        let read = |(_, digest): &&(PathBuf, Digest)| *digest != shadow::absent();
        for (path, _) in record.files.iter().filter(read) {
            let text = fs::read(path).ok()?;
            preamble::exposed_names(&text, &mut |name| {
                if !identifiers.contains(name) {
                    identifiers.insert(name.to_owned());
                }
            });
            preamble::asked_files(&text, &mut |path| {
                let name = path.rsplit('/').next().unwrap_or_default();
                names.insert(name.to_owned());
            });
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        let source = self.source();
        let covered = |path: &Path| path == source || toolchain.covers(path, Language::Hip);
        let deps: Vec<_> = record.files.into_iter().filter(|(path, _)| !covered(path)).collect();
        let dirs = library_headers::system_dirs(&self.command);
        let foreign = |(path, digest): &&(PathBuf, Digest)| {
            *digest != shadow::absent() && !library_headers::is_one(path, &dirs)
        };
        if let Some((path, _)) = deps.iter().find(foreign) {
            tracing::debug!(path = %path.display(), "no precompiled header with others' files");
            return Some(Kept::Unfit);
        }
        if FROZEN.iter().any(|&name| identifiers.contains(name)) {
            return Some(Kept::Unfit);
        }
        let (file, defines, built) = (self.file.clone(), self.defines.clone(), record.built);
        Some(Kept::Header(PrecompiledHeader { file, deps, identifiers, built, names, defines }))
    }

    /// Adds what was found out about names to the header, and to what is kept
    /// of it.
    pub(crate) fn learn(
        &self,
        header: &mut PrecompiledHeader,
        told: BTreeMap<String, bool>,
    ) -> Result<(), CompileError> {
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
    ) -> Result<Option<Vec<OsString>>, CompileError> {
        let source = scratch.join("k.hip");
        fs::write(&source, &self.text).map_err(CompileError::io("write", &source))?;
        let words = self.command.fill(&Filling {
            input: &source.to_string_lossy(),
            defines: &[[self.defines.as_slice(), more].concat()],
            output: file,
            deps_file: &scratch.join("d"),
            scratch,
        });
        Ok(preprocessing(words, file))
    }

    /// What it is made of, which compilers want to see again where it was.
    fn source(&self) -> PathBuf {
        self.file.with_extension("hip")
    }

    /// The words that make it in a scratch directory.
    pub(crate) fn prepare(&self, scratch: &Path) -> Result<Vec<OsString>, CompileError> {
        let source = self.source();
        write_atomic(&source, &[self.text.as_bytes()])
            .map_err(CompileError::io("write", &source))?;
        Ok(self.command.fill(&Filling {
            input: &source.to_string_lossy(),
            defines: std::slice::from_ref(&self.defines),
            output: &scratch.join("pch"),
            deps_file: &scratch.join("d"),
            scratch,
        }))
    }

    /// Takes what was made in the scratch directory to its place; `None` also
    /// where a header changed since the compiler was started.
    pub(crate) fn keep(
        &self,
        scratch: &Path,
        toolchain: &Toolchain,
        digests: &FileDigests,
        started: Moment,
    ) -> Result<Option<Kept>, CompileError> {
        let made = scratch.join("pch");
        let (Ok(bytes), Ok(deps)) = (fs::read(&made), fs::read_to_string(scratch.join("d"))) else {
            return Ok(None);
        };
        let mut files = Vec::new();
        let read: Vec<PathBuf> =
            depfile_paths(&deps).into_iter().map(|path| scratch.join(path)).collect();
        let source = self.source();
        for path in &read {
            let meta = fs::metadata(path).map_err(CompileError::io("read", path))?;
            // Its own text has just been written, and is named by its digest.
            if *path != source && !started.is_after(&Identity::of(&meta)) {
                return Ok(None);
            }
            files.push((path.clone(), digests.digest(path)?));
        }
        let (dirs, texts) = (searched(&self.command), HeaderTexts::default());
        let shadows = Shadows::of(&dirs, &read, &[], &texts, started);
        if !shadows.late.is_empty() {
            return Ok(None);
        }
        files.extend(shadows.absent.into_iter().map(|path| (path, shadow::absent())));
        let keep = |bytes: &[u8], record: &Record| {
            write_atomic(&self.file, &[bytes]).map_err(CompileError::io("write", &self.file))?;
            self.write_record(record)
        };
        let record = |bytes: &[u8]| Record {
            sha256: Digest::of(bytes),
            files: files.clone(),
            built: BTreeMap::new(),
        };
        let kept = self.header(record(&bytes), toolchain);
        match &kept {
            Some(Kept::Header(_)) => keep(&bytes, &record(&bytes))?,
            Some(Kept::Unfit) => keep(&[], &record(&[]))?,
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
            deps: Vec::new(),
            identifiers,
            built: [("WG", false), ("GUARD", false), ("fmul", true)]
                .map(|(name, built)| (name.to_owned(), built))
                .into(),
            names: HashSet::from(["math.h".to_owned()]),
            defines: defines.to_vec(),
        }
    }

    fn define(text: &str) -> Define {
        ["-D".to_owned(), text.to_owned()]
    }

    #[test]
    fn only_a_job_that_its_headers_know_nothing_of_may_use_it() {
        let serves = |made_with: &[Define], defines: &[Define], macros: &[&str], file: &str| {
            let macros = macros.iter().map(|&name| name.to_owned()).collect();
            header("#if NDEBUG\nfloat N;", made_with).serves(Claims {
                defines,
                macros: &macros,
                files: vec![file],
            })
        };
        let (wg, n, debug) = (define("WG=1"), define("N(x)=1"), define("NDEBUG"));
        assert!(serves(&[], std::slice::from_ref(&wg), &["GUARD"], "dir/k.cpp"));
        assert!(!serves(&[], &[wg.clone(), n], &[], "k.cpp"));
        assert!(!serves(&[], &[], &["NDEBUG"], "k.cpp"));
        assert!(!serves(&[], &[], &[], "dir/math.h"));
        let with = std::slice::from_ref(&debug);
        assert!(serves(with, &[wg, debug.clone()], &[], "k.cpp"));
        assert!(!serves(with, &[], &[], "k.cpp"));
        assert!(!serves(with, &[define("NDEBUG=0")], &[], "k.cpp"));
        // Its headers build one of these names; of the other nobody knows.
        for name in ["fmul", "other"] {
            assert!(!serves(&[], &[define(name)], &[], "k.cpp"));
            assert!(!serves(&[], &[], &[name], "k.cpp"));
        }
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
        let applied = header("", &[]).apply(&Command { words: words.into() }).unwrap();
        let expected = ["clang", "-include-pch", "/c/x.pch", "-fno-validate-pch", "-O3"];
        assert_eq!(applied.words, expected.map(|word| Word::Text(word.into())));
    }
}
