//! Whether a source includes HIP's header before it does anything else, so that this header may be
//! precompiled for it.
//!
//! The preprocessor is asked. It preprocesses the source with the macros that it would have, but
//! without the toolchain's headers; a stand-in for HIP's header marks where the source includes it.
//! Before that, only macros may be defined. What must not count before it is poisoned, so that the
//! preprocessor refuses to read it: the command's macros, other pragmas than `#pragma once`, and
//! what asks for other files or for what was compiled before. The same must come out if HIP's header
//! was included already, as then the header's own macros change nothing either.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use gfxpack_process::FileError;
use gfxpack_process::watch::tidy_path;

use super::precompiled::is_of_name;
use super::recipe::preprocessing;
use crate::arguments::is_searching;
use crate::template::{CommandTemplate, TemplateValues};

/// HIP's header, which nearly all sources in HIP include first.
pub(super) const RUNTIME: &str = "hip/hip_runtime.h";
/// What the stand-in for it, and the source that includes it twice, contain.
const MARK: &str = "gfxpack_first_include";
/// A header that the stand-in includes and that does not exist: the error ends preprocessing.
const MISSING: &str = "gfxpack/no-such-header";

/// The text of a source that includes HIP's header.
pub(super) fn including_runtime() -> String {
    format!("#include <{RUNTIME}>\n")
}

/// The text of a source that includes HIP's header twice.
pub(super) fn including_twice() -> String {
    format!("{0}{MARK}\n{0}", including_runtime())
}

/// Whether the preprocessed text of [`including_twice`], with all macros, shows that including the
/// header again does nothing.
pub(super) fn is_harmless_again(text: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| *line != MARK);
    lines.next().is_some() && lines.all(|line| line.trim().is_empty() || is_marker(line))
}

/// The definitions of the macros at some point, as the preprocessor lists them.
#[derive(Debug)]
pub(super) struct MacroState(pub(super) String);

/// What a source must not use before it includes HIP's header: pragmas, of which the preprocessor
/// prints some only; `#line`, since errors would name other lines; and what depends on other files,
/// or on what was compiled before.
const POISONED: [&str; 9] = [
    "pragma",
    "_Pragma",
    "__pragma",
    "line",
    "__has_include",
    "__has_include_next",
    "__has_embed",
    "__COUNTER__",
    "__is_identifier",
];

impl MacroState {
    /// A text that defines the macros and then poisons some names, and the macros that could expand
    /// to one of these, since the preprocessor does not refuse what was defined before.
    fn poisoning(&self, names: &BTreeSet<&str>) -> String {
        let mut poisoned: BTreeSet<&str> = names.iter().copied().chain(POISONED).collect();
        let mut clear: Vec<&str> = self.0.lines().collect();
        loop {
            let expands = |line: &&str| words(line).any(|word| poisoned.contains(word));
            let (unclear, others): (Vec<&str>, Vec<&str>) = clear.into_iter().partition(expands);
            clear = others;
            if unclear.is_empty() {
                break;
            }
            poisoned.extend(unclear.into_iter().filter_map(listed_name));
        }
        // The preprocessor warns of a macro that is poisoned.
        let undefined: String = POISONED.iter().map(|name| format!("#undef {name}\n")).collect();
        let poisoned: Vec<&str> = poisoned.into_iter().collect();
        format!("{}\n{undefined}#pragma GCC poison {}\n", clear.join("\n"), poisoned.join(" "))
    }
}

/// The question for a command's source.
pub(super) struct Question<'a> {
    pub(super) command: &'a CommandTemplate,
    /// The source's path, relative to the stage.
    pub(super) main: &'a str,
    /// The names of the macros of all commands that the answer is for.
    pub(super) names: &'a BTreeSet<&'a str>,
    /// A directory for the stand-in, the macros and the output.
    pub(super) scratch: &'a Path,
}

impl Question<'_> {
    /// The command line that preprocesses the source as if these macros were defined; `None` if the
    /// command is not understood.
    pub(super) fn arguments(
        &self,
        macros: &MacroState,
    ) -> Result<Option<Vec<OsString>>, FileError> {
        let write = |path: &Path, text: &str| {
            let parent = path.parent().unwrap_or(path);
            fs::create_dir_all(parent).map_err(FileError::io("create", parent))?;
            fs::write(path, text).map_err(FileError::io("write", path))
        };
        write(&self.stand_in(), &format!("{MARK}\n#include <{MISSING}>\n"))?;
        write(&self.macros(), &macros.poisoning(self.names))?;
        // Written under a name that the compiler removes after an error, kept under another.
        let output = self.scratch.join("removed");
        write(&output, "")?;
        fs::remove_file(self.output()).ok();
        if fs::hard_link(&output, self.output()).is_err() {
            return Ok(None);
        }
        let args = self.command.fill(&TemplateValues {
            input: self.main,
            defines: &[],
            output: &output,
            deps_file: &self.scratch.join("d"),
            scratch: self.scratch,
        });
        Ok(self.without_toolchain(args, &output))
    }

    /// The command line changed to preprocess only, without the toolchain's headers.
    fn without_toolchain(&self, args: Vec<OsString>, output: &Path) -> Option<Vec<OsString>> {
        let macros = ["-imacros".into(), self.macros().into()];
        let mut args = preprocessing(args, output, &macros)?.into_iter();
        let mut changed: Vec<OsString> = Vec::new();
        let mut searches_others = false;
        while let Some(arg) = args.next() {
            let Some(option) = arg.to_str().filter(|option| is_searching(option)) else {
                changed.push(arg);
                continue;
            };
            let dir = args.next()?;
            if Path::new(&dir).is_absolute() && option != "-iquote" {
                searches_others |= option == "-I";
            } else if option == "-I" && !searches_others {
                changed.extend([arg, dir]);
            } else {
                // A header of the toolchain could come before one of the source, or another one
                // could be meant in quotes.
                return None;
            }
        }
        // Of options that contradict each other, the last one counts.
        changed.extend(PREPROCESSING.map(OsString::from));
        changed.extend(["-isystem".into(), self.stand_ins().into()]);
        Some(changed)
    }

    /// What the source does before it includes HIP's header; `None` if that is more than to define
    /// macros, or if it includes another header of the toolchain before.
    pub(super) fn answer(&self, errors: &str) -> Option<Beginning> {
        let text = fs::read(self.output()).ok()?;
        let stand_in = self.stand_in();
        let stand_in = stand_in.to_str()?;
        is_clean(errors, stand_in).then_some(())?;
        beginning(&String::from_utf8_lossy(&text), stand_in)
    }

    fn stand_ins(&self) -> PathBuf {
        self.scratch.join("stand-ins")
    }

    fn stand_in(&self) -> PathBuf {
        self.stand_ins().join(RUNTIME)
    }

    fn macros(&self) -> PathBuf {
        self.scratch.join("macros")
    }

    fn output(&self) -> PathBuf {
        self.scratch.join("preprocessed")
    }
}

/// Options for preprocessing: the output shows all macros, none is predefined, no directory is
/// searched by default, and all errors are reported until a header is missing.
const PREPROCESSING: [&str; 9] = [
    "-dD",
    "-undef",
    "-nostdsysteminc",
    "-nobuiltininc",
    "-fno-temp-file",
    "-Wno-builtin-macro-redefined",
    "-Wno-fatal-errors",
    "-ferror-limit",
    "0",
];

/// Whether `#pragma once` is all that was refused before the stand-in ended preprocessing.
fn is_clean(errors: &str, stand_in: &str) -> bool {
    let end = format!("{stand_in}:2:10: fatal error: '{MISSING}' file not found");
    let mut lines = errors.lines();
    while let Some(line) = lines.next() {
        if line == end {
            return true;
        }
        if line.contains("error: ") {
            // The line of the source; newer compilers write its number before it.
            let shown = lines.next().unwrap_or_default().trim_start();
            let text = shown.trim_start_matches(|c: char| c.is_ascii_digit());
            let text = text.strip_prefix(" | ").unwrap_or(shown);
            if text.trim() != "#pragma once" {
                return false;
            }
        }
    }
    false
}

/// What a source does before it includes HIP's header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    /// The lines of the preprocessor's output.
    lines: Vec<String>,
    /// The names of the macros that it defines or undefines.
    pub(super) macros: BTreeSet<String>,
}

/// The part of a preprocessor's output between the predefined macros and the stand-in.
fn beginning(text: &str, stand_in: &str) -> Option<Beginning> {
    // The lines before are about macros only, and return to nothing but these two.
    let is_main = |line: &str| {
        let path = line.strip_prefix("# 1 \"").and_then(|rest| rest.strip_suffix("\" 2"));
        path.is_some_and(|path| !["<built-in>", "<command line>"].contains(&path))
    };
    let lines: Vec<&str> = text.lines().skip_while(|line| !is_main(line)).collect();
    let end = lines.iter().position(|line| *line == MARK)?;
    let (entered, lines) = lines[..end].split_last()?;
    if !entered.starts_with(&format!("# 1 \"{stand_in}\" 1")) {
        return None;
    }
    let mut macros = BTreeSet::new();
    for line in lines {
        if is_marker(line) {
            let (path, flags) = line.split_once('"')?.1.rsplit_once('"')?;
            // Any other flag makes what it includes a header of the system, or one in C.
            (is_below(path) && ["", " 1", " 2"].contains(&flags)).then_some(())?;
        } else if let Some(name) = listed_name(line) {
            name.chars().all(is_of_name).then(|| macros.insert(name.to_owned()))?;
        } else if !line.trim().is_empty() {
            return None;
        }
    }
    Some(Beginning { lines: lines.iter().map(|&line| line.to_owned()).collect(), macros })
}

/// The name of the macro that a line of a preprocessor's output defines or undefines.
pub(super) fn listed_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("#define ").or_else(|| line.strip_prefix("#undef "))?;
    rest.split(['(', ' ', '\n']).next()
}

/// The words of a line that may be names of macros.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c| !is_of_name(c))
}

/// Whether a line of a preprocessor's output says where the next lines are from.
fn is_marker(line: &str) -> bool {
    line.strip_prefix("# ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a path leads to one of the source's own files.
fn is_below(path: &str) -> bool {
    let path = tidy_path(Path::new(path));
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::template::TemplateArg;

    const BEFORE: &str = concat!(
        "# 1 \"k.cpp\"\n# 1 \"<built-in>\" 1\n# 1 \"/s/macros\" 1\n#define WIDTH 4\n",
        "# 1 \"<built-in>\" 2\n# 1 \"k.cpp\" 2\n",
    );
    const AFTER: &str = "# 1 \"/s/hip/hip_runtime.h\" 1 3\ngfxpack_first_include\nint x;\n";

    fn macros(between: &str) -> Option<Vec<String>> {
        let text = format!("{BEFORE}{between}{AFTER}");
        let beginning = beginning(&text, "/s/hip/hip_runtime.h")?;
        Some(beginning.macros.into_iter().collect())
    }

    #[test]
    fn only_macros_may_come_before_hips_header() {
        assert_eq!(macros(""), Some(vec![]));
        let own = "# 1 \"./own.h\" 1\n#define OWN(x) x\n\n#undef OTHER\n# 3 \"k.cpp\" 2\n";
        assert_eq!(macros(own), Some(vec!["OTHER".to_owned(), "OWN".to_owned()]));
        for more in [
            "int before;\n",
            "#pragma pack(1)\n",
            " #define SPELLED\n",
            "#define A$B\n",
            "# 1 \"/usr/include/other.h\" 1\n",
            "# 1 \"a/../../other.h\" 1\n",
            "# 5 \"k.cpp\" 3 4\n",
        ] {
            assert_eq!(macros(more), None, "{more}");
        }
    }

    #[test]
    fn hips_header_must_be_reached_from_the_source() {
        let text = format!("{BEFORE}{AFTER}");
        assert!(beginning(&text, "/s/hip/hip_runtime.h").is_some());
        assert_eq!(beginning(&text, "/other/hip_runtime.h"), None);
        assert_eq!(beginning(BEFORE, "/s/hip/hip_runtime.h"), None);
        assert_eq!(beginning(AFTER, "/s/hip/hip_runtime.h"), None);
    }

    #[test]
    fn nothing_but_pragma_once_may_be_refused() {
        let end = "/s/h:2:10: fatal error: 'gfxpack/no-such-header' file not found\n";
        let error = "own.h:1:2: error: attempt to use a poisoned identifier\n";
        let clean =
            |before: &str| is_clean(&format!("{before}{end}#include\nx: error: y\n"), "/s/h");
        assert!(clean(""));
        assert!(clean(&format!("{error}#pragma once\n ^\n")));
        assert!(clean(&format!("{error}   12 | #pragma once\n      |  ^\n")));
        assert!(!clean(&format!("{error}#pragma GCC poison hipMemcpy\n ^\n")));
        assert!(!clean(&format!("{error}#if N == 3\n    ^\n")));
        assert!(!clean("own.h:1:2: fatal error: 'limits.h' file not found\n#include <limits.h>\n"));
        assert!(!is_clean(error, "/s/h"));
    }

    #[test]
    fn a_header_that_does_nothing_again_prints_nothing_again() {
        let once = "#define A\nint x;\ngfxpack_first_include\n";
        assert!(is_harmless_again(&format!("{once}# 3 \"k.hip\"\n\n")));
        assert!(!is_harmless_again(&format!("{once}int y;\n")));
        assert!(!is_harmless_again(&format!("{once}#undef A\n")));
        assert!(!is_harmless_again("int x;\n"));
    }

    #[test]
    fn the_toolchains_headers_are_out_of_reach() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name).into_os_string().into_string().unwrap();
        let asked = |args: &[&str]| {
            let mut template = vec![TemplateArg::Text("clang".into()), TemplateArg::Defines(0)];
            template.extend(args.iter().map(|arg| TemplateArg::Text((*arg).into())));
            template.extend([TemplateArg::Text("-o".into()), TemplateArg::Output]);
            let command = &CommandTemplate { args: template };
            let names = &BTreeSet::from(["N", "M"]);
            let question = Question { command, main: "k.cpp", names, scratch: scratch.path() };
            let macros =
                "#define ABOVE USES(1)\n#define N(x) 2\n#define NEXT 3\n#define USES(x) M\n";
            let args = question.arguments(&MacroState(macros.to_owned())).unwrap()?;
            Some(args.join(OsStr::new(" ")).into_string().unwrap())
        };
        let line = asked(&[
            "-I",
            ".",
            "-I",
            "/opt/include",
            "-isystem",
            "/usr/include",
            "-emit-obj",
            "-include",
            "wrapper.h",
        ]);
        let expected = format!(
            "clang -I . -E -imacros {} -o {} {} -isystem {}",
            path("macros"),
            path("removed"),
            PREPROCESSING.join(" "),
            path("stand-ins"),
        );
        assert_eq!(line, Some(expected));
        let macros = fs::read_to_string(path("macros")).unwrap();
        assert!(macros.starts_with("#define NEXT 3\n#undef pragma\n"), "{macros}");
        let poisoned = "#pragma GCC poison ABOVE M N USES _Pragma __COUNTER__ __has_embed";
        assert!(macros.contains(poisoned), "{macros}");
        for unclear in [
            &["-emit-obj", "-isystem", "own"][..],
            &["-emit-obj", "-iquote", "/usr/include"],
            &["-emit-obj", "-I", "/usr/include", "-I", "own"],
            &["-S"],
        ] {
            assert_eq!(asked(unclear), None, "{unclear:?}");
        }
    }
}
