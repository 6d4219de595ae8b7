//! Device libraries cut down to what a build's sources can name: every job
//! links them, and nearly all of a library is functions that none calls.
//!
//! A function that is missing all the same shows as an undefined symbol, and
//! the job is run again with the whole library.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_plan::digest::Hasher;
use gfxpack_plan::{Digest, Language};

use super::command::{Command, Word};
use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::process::{self, Cancel};
use crate::store::touch;
use crate::toolchain::Toolchain;
use crate::work::write_atomic;

/// The library of OpenCL C's built-in functions: the largest by far, with
/// every function for every type and vector.
const LIBRARY: &str = "opencl.bc";
/// Most bytes of a library's list of symbols: today's take 600 KB.
const MAX_LIST: usize = 16 << 20;
/// Far longer than it takes, for machines under load.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A library cut down, beside the whole one.
#[derive(Debug)]
pub(crate) struct ReducedLibrary {
    whole: String,
    pub(crate) file: PathBuf,
}

impl ReducedLibrary {
    /// The command with it instead of the whole library; `None` where the
    /// command links none.
    pub(crate) fn apply(&self, command: &Command) -> Option<Command> {
        let at = command.position("-mlink-builtin-bitcode", &self.whole)?;
        let mut words = command.words.clone();
        words[at + 1] = Word::Text(self.file.to_string_lossy().into_owned());
        Some(Command { words })
    }

    /// The one for these identifiers: found in `dir`, or made there, and
    /// whether it is new.
    pub(crate) fn make(
        toolchain: &Toolchain,
        identifiers: &HashSet<String>,
        dir: &Path,
        scratch: &Path,
        digests: &FileDigests,
        cancel: &Cancel,
    ) -> Result<Option<(Self, bool)>, CompileError> {
        let whole = toolchain.device_libs.join(LIBRARY);
        let Some(tools) = Tools::of(toolchain) else { return Ok(None) };
        if !whole.is_file() {
            return Ok(None);
        }
        let run = |program: &Path, arguments: &[&Path]| {
            let program = process::Program {
                path: program,
                arguments: arguments.iter().map(|word| word.as_os_str().to_owned()).collect(),
                directory: scratch,
                environment: &toolchain.environment,
                temp_dir: scratch,
                time_limit: TIME_LIMIT,
            };
            process::run_keeping(MAX_LIST, &program, cancel)
        };
        let listed = run(&tools.nm, &[Path::new("--defined-only"), &whole])?;
        let symbols = listed.stdout.lines().filter_map(|line| line.split_whitespace().last());
        let wanted: BTreeSet<&str> =
            symbols.filter(|symbol| identifiers.contains(source_name(symbol))).collect();
        if !listed.ok() || wanted.is_empty() {
            return Ok(None);
        }
        let key = Hasher::new("gfxpack reduced library 1")
            .field(toolchain.digest.as_ref())
            .field(LIBRARY.as_bytes())
            .list(wanted.iter().map(|symbol| symbol.as_bytes()))
            .finish();
        let file = dir.join(format!("{key}.bc"));
        let made = Self { whole: whole.to_string_lossy().into_owned(), file };
        if made.holds(digests) {
            return Ok(Some((made, false)));
        }
        let roots = scratch.join("roots.ll");
        fs::write(&roots, roots_module(&wanted)).map_err(CompileError::io("write", &roots))?;
        let out = scratch.join("reduced.bc");
        let linked =
            run(&tools.link, &[Path::new("--only-needed"), &roots, &whole, Path::new("-o"), &out])?;
        let Ok(bytes) = fs::read(&out) else { return Ok(None) };
        if !linked.ok() {
            return Ok(None);
        }
        toolchain.check_identity(Language::OpenclC)?;
        let write = |path: &Path, bytes: &[u8]| {
            write_atomic(path, &[bytes]).map_err(CompileError::io("write", path))
        };
        write(&made.file, &bytes)?;
        write(&made.record(), Digest::of(&bytes).to_string().as_bytes())?;
        Ok(Some((made, true)))
    }

    fn record(&self) -> PathBuf {
        self.file.with_extension("sha256")
    }

    fn holds(&self, digests: &FileDigests) -> bool {
        let recorded = fs::read_to_string(self.record()).ok();
        let digest = digests.digest(&self.file).ok().map(|digest| digest.to_string());
        let holds = digest.is_some() && recorded == digest;
        if holds {
            touch(&self.file);
            touch(&self.record());
        }
        holds
    }

    /// Forgets it: it does not give the same bytes.
    pub(crate) fn forget(&self) {
        fs::remove_file(self.record()).ok();
        fs::remove_file(&self.file).ok();
    }
}

/// LLVM's tools of the compiler's own release.
struct Tools {
    nm: PathBuf,
    link: PathBuf,
}

impl Tools {
    fn of(toolchain: &Toolchain) -> Option<Self> {
        let clang = fs::canonicalize(&toolchain.clang).ok()?;
        let beside = |name: &str| Some(clang.parent()?.join(name)).filter(|file| file.is_file());
        Some(Self { nm: beside("llvm-nm")?, link: beside("llvm-link")? })
    }
}

/// The name that a source calls a function by: `exp` of `_Z3expf`.
///
/// Source: Itanium C++ ABI, "Mangling Structure", unqualified names.
fn source_name(symbol: &str) -> &str {
    let Some(rest) = symbol.strip_prefix("_Z") else { return symbol };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (length, name) = rest.split_at(digits);
    length.parse().ok().and_then(|length: usize| name.get(..length)).unwrap_or(symbol)
}

/// A module that refers to the functions and does nothing else.
fn roots_module(symbols: &BTreeSet<&str>) -> String {
    let mut text = String::new();
    for symbol in symbols {
        writeln!(text, "declare void @\"{symbol}\"()").expect("writing to a string");
    }
    let list: Vec<String> = symbols.iter().map(|symbol| format!("ptr @\"{symbol}\"")).collect();
    writeln!(text, "@gfxpack_roots = constant [{} x ptr] [{}]", list.len(), list.join(", "))
        .expect("writing to a string");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_the_names_that_sources_use() {
        for (symbol, name) in [
            ("_Z3expf", "exp"),
            ("_Z10atomic_addPU3AS1Vii", "atomic_add"),
            ("__ocml_exp_f32", "__ocml_exp_f32"),
            ("_Z99short", "_Z99short"),
            ("_ZN1aE", "_ZN1aE"),
        ] {
            assert_eq!(source_name(symbol), name);
        }
    }

    #[test]
    fn roots_are_named_as_they_are() {
        let text = roots_module(&BTreeSet::from(["a", "b.c"]));
        assert!(text.ends_with("@gfxpack_roots = constant [2 x ptr] [ptr @\"a\", ptr @\"b.c\"]\n"));
    }
}
