//! Which of HIP's headers a source includes before it does anything else, so that these may be
//! precompiled for it.
//!
//! The preprocessor is asked. It preprocesses the source with the macros that it would have, but
//! without the toolchain's headers; stand-ins for HIP's headers mark where the source includes them.
//! Before that, only macros may be defined. What must not count before it is poisoned, so that the
//! preprocessor refuses to read it: the command's macros, those that the driver's header or HIP's
//! define or undefine, other pragmas than `#pragma once`, and what asks for other files or for what
//! was compiled before.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::mem;
use std::path::{Component, Path};

use gfxpack_model::Error;
use gfxpack_process::watch::tidy_path;

use super::precompiled::is_of_name;
use super::recipe::preprocessing;
use crate::arguments::is_searching;
use crate::template::{CommandTemplate, TemplateValues};

/// HIP's header for kernels, which nearly all sources in HIP include.
pub(super) const RUNTIME: &str = "hip/hip_runtime.h";
/// HIP's header for numbers of 16 bits, which many sources include just before it or just after.
pub(super) const HALF: &str = "hip/hip_fp16.h";
/// The headers that have stand-ins.
const HEADERS: [&str; 2] = [RUNTIME, HALF];
/// What a stand-in contains, and what it reports.
const MARK: &str = "gfxpack_first_include";

/// What a question's scratch directory holds.
const STAND_INS: &str = "stand-ins";
const MACROS: &str = "macros";
const OUTPUT: &str = "preprocessed";

/// The text of a source that includes headers.
pub(super) fn including(headers: &[&str]) -> String {
    headers.iter().map(|header| format!("#include <{header}>\n")).collect()
}

/// What a source must not use before it includes HIP's headers: pragmas, of which the preprocessor
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

/// The macros at the beginning of a source, and the names that the source must not use there.
#[derive(Debug, Clone)]
pub(super) struct MacroState {
    /// The definitions, as the preprocessor lists them.
    definitions: Vec<String>,
    poisoned: BTreeSet<String>,
}

impl MacroState {
    /// The predefined macros, with the names poisoned that the headers define or undefine, in what
    /// the preprocessor prints for the text of [`including_all`] with all macros shown; `None` if
    /// it is not understood.
    pub(super) fn new(printed: &str) -> Option<Self> {
        printed.lines().find(|line| is_main(line))?;
        let before = printed.lines().take_while(|line| !is_main(line));
        let definitions = before.filter(|line| listed_name(line).is_some()).map(str::to_owned);
        let mut state = Self { definitions: definitions.collect(), poisoned: BTreeSet::new() };
        state.poison(POISONED.map(str::to_owned).into_iter().chain(changed_names(printed)));
        Some(state)
    }

    /// Poisons names, and the macros that could expand to one of these, since the preprocessor does
    /// not refuse what was defined before.
    pub(super) fn poison(&mut self, names: impl IntoIterator<Item = String>) {
        let mut names: HashSet<String> = names.into_iter().collect();
        while !names.is_empty() {
            let definitions = mem::take(&mut self.definitions).into_iter();
            let expands = |line: &String| words(line).any(|word| names.contains(word));
            let (unclear, clear): (Vec<String>, Vec<String>) = definitions.partition(expands);
            self.definitions = clear;
            self.poisoned.extend(names);
            let unclear = unclear.iter().filter_map(|line| listed_name(line));
            names =
                unclear.filter(|name| !self.poisoned.contains(*name)).map(str::to_owned).collect();
        }
    }

    /// The text that defines the macros and poisons the names.
    fn text(&self) -> String {
        // The preprocessor warns of a macro that is poisoned.
        let undefined: String = POISONED.iter().map(|name| format!("#undef {name}\n")).collect();
        let poisoned: Vec<&str> = self.poisoned.iter().map(String::as_str).collect();
        let definitions = self.definitions.join("\n");
        format!("{definitions}\n{undefined}#pragma GCC poison {}\n", poisoned.join(" "))
    }
}

/// The text of a source that includes those of HIP's headers with stand-ins that exist: one of them
/// twice, then the other, then both again, with marks between.
pub(super) fn including_all(first: &str) -> String {
    let include =
        |header: &str| format!("#if __has_include(<{header}>)\n#include <{header}>\n#endif\n");
    let others: String =
        HEADERS.into_iter().filter(|header| *header != first).map(include).collect();
    let first = include(first);
    let all = format!("{first}{others}");
    [first.as_str(), &first, &others, &all].join(&format!("{MARK}\n"))
}

/// How many of the headers do nothing when they are included again: none, the first one, or both,
/// in what the preprocessor prints for the text of [`including_all`] with all macros shown. A header
/// that does not exist does nothing.
pub(super) fn harmless_again(printed: &str) -> usize {
    let lines: Vec<&str> = printed.lines().collect();
    let parts: Vec<&[&str]> = lines.split(|line| *line == MARK).collect();
    let [_, first, _, all] = parts[..] else { return 0 };
    let is_nothing = |line: &&str| line.trim().is_empty() || is_marker(line);
    [first, all].iter().take_while(|part| part.iter().all(is_nothing)).count()
}

/// The names that the headers define or undefine in what the preprocessor prints for the text of
/// [`including_all`] with all macros shown.
pub(super) fn changed_names(printed: &str) -> impl Iterator<Item = String> {
    let changing = printed.lines().skip_while(|line| !is_main(line));
    changing.filter_map(listed_name).map(str::to_owned)
}

/// The command line that preprocesses the source `main`, a path relative to the stage; `None` if the
/// command is not understood. The names of all commands that the answer is for are poisoned in
/// `macros`. The scratch directory is for the stand-ins, the macros and the output.
pub(super) fn question(
    command: &CommandTemplate,
    main: &str,
    macros: &MacroState,
    scratch: &Path,
) -> Result<Option<Vec<OsString>>, Error> {
    let write = |path: &Path, text: &str| {
        let parent = path.parent().unwrap_or(path);
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        fs::write(path, text).map_err(Error::io("write", path))
    };
    for header in HEADERS {
        let stand_in = scratch.join(STAND_INS).join(header);
        write(&stand_in, &format!("{MARK}\n#error {MARK}\n"))?;
    }
    write(&scratch.join(MACROS), &macros.text())?;
    // Written under a name that the compiler removes after an error, kept under another.
    let (output, kept) = (scratch.join("removed"), scratch.join(OUTPUT));
    write(&output, "")?;
    fs::remove_file(&kept).ok();
    if fs::hard_link(&output, kept).is_err() {
        return Ok(None);
    }
    let args = command.fill(&TemplateValues {
        input: main,
        defines: &[],
        output: &output,
        deps_file: &scratch.join("d"),
        scratch,
    });
    Ok(without_toolchain(args, scratch, &output))
}

/// The command line changed to preprocess only, without the toolchain's headers.
fn without_toolchain(args: Vec<OsString>, scratch: &Path, output: &Path) -> Option<Vec<OsString>> {
    let macros = ["-imacros".into(), scratch.join(MACROS).into()];
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
    changed.extend(["-isystem".into(), scratch.join(STAND_INS).into()]);
    Some(changed)
}

/// Which of HIP's headers the source of a question includes while it does no more than to define
/// macros, in order.
pub(super) fn answer(errors: &str, scratch: &Path) -> Vec<FirstInclude> {
    let text = fs::read(scratch.join(OUTPUT)).unwrap_or_default();
    let stand_ins = scratch.join(STAND_INS);
    let reached = reached(errors, &stand_ins);
    let includes = first_includes(&String::from_utf8_lossy(&text), &stand_ins);
    let agreed = includes.into_iter().zip(reached);
    agreed
        .take_while(|(include, header)| include.header == *header)
        .map(|(include, _)| include)
        .collect()
}

/// Options for preprocessing: the output shows all macros, none is predefined, no directory is
/// searched by default, and preprocessing goes on after errors.
const PREPROCESSING: [&str; 9] = [
    "-dD",
    "-undef",
    "-nostdsysteminc",
    "-nobuiltininc",
    "-fno-temp-file",
    "-Wno-builtin-macro-redefined",
    "-Wno-fatal-errors",
    "-ferror-limit",
    "100",
];

/// The headers whose stand-ins report that they are included, before anything but `#pragma once`
/// is refused, each once.
fn reached(errors: &str, stand_ins: &Path) -> Vec<&'static str> {
    let report = |header: &str| {
        let stand_in = stand_ins.join(header);
        format!("{}:2:2: error: {MARK}", stand_in.display())
    };
    let reports = HEADERS.map(|header| (report(header), header));
    let mut reached = Vec::new();
    let mut lines = errors.lines();
    while let Some(line) = lines.next() {
        if let Some((_, header)) = reports.iter().find(|(report, _)| line == report) {
            if !reached.contains(header) {
                reached.push(*header);
            }
        } else if line.contains("error: ") {
            // The line of the source; newer compilers write its number before it.
            let shown = lines.next().unwrap_or_default().trim_start();
            let text = shown.trim_start_matches(|c: char| c.is_ascii_digit());
            let text = text.strip_prefix(" | ").unwrap_or(shown);
            if text.trim() != "#pragma once" {
                break;
            }
        }
    }
    reached
}

/// A header that a source includes for the first time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FirstInclude {
    pub(super) header: &'static str,
    /// The names of the macros that the source defines or undefines between the last such header
    /// and this one.
    pub(super) macros: BTreeSet<String>,
}

/// The headers with stand-ins that are included in a preprocessor's output, after the predefined
/// macros, until something else than to define macros is done.
fn first_includes(text: &str, stand_ins: &Path) -> Vec<FirstInclude> {
    let entering = |header: &str| format!("# 1 \"{}\" 1", stand_ins.join(header).display());
    let entering = HEADERS.map(|header| (entering(header), header));
    let mut found: Vec<FirstInclude> = Vec::new();
    let (mut macros, mut entered) = (BTreeSet::new(), None);
    for line in text.lines().skip_while(|line| !is_main(line)) {
        let within = entered.take();
        if line == MARK {
            let Some(header) = within else { break };
            if found.iter().any(|include| include.header == header) {
                continue;
            }
            found.push(FirstInclude { header, macros: mem::take(&mut macros) });
        } else if let Some((_, header)) = entering.iter().find(|(start, _)| line.starts_with(start))
        {
            entered = Some(*header);
        } else if let Some(name) = listed_name(line).filter(|name| name.chars().all(is_of_name)) {
            macros.insert(name.to_owned());
        } else if !line.trim().is_empty() && !is_marker_of_sources(line) {
            break;
        }
    }
    found
}

/// Whether the lines of the source itself begin after a line of a preprocessor's output. The lines
/// before are about predefined macros.
fn is_main(line: &str) -> bool {
    let path = line.strip_prefix("# 1 \"").and_then(|rest| rest.strip_suffix("\" 2"));
    path.is_some_and(|path| !["<built-in>", "<command line>"].contains(&path))
}

/// Whether a line of a preprocessor's output says that the next lines are from the source's own
/// files.
fn is_marker_of_sources(line: &str) -> bool {
    let quoted = line.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
    // Any other flag makes what it includes a header of the system, or one in C.
    quoted.is_some_and(|(path, flags)| {
        is_marker(line) && is_below(path) && ["", " 1", " 2"].contains(&flags)
    })
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

    #[test]
    fn nothing_but_pragma_once_may_be_refused() {
        let report = "/s/hip/hip_runtime.h:2:2: error: gfxpack_first_include\n#error g\n ^\n";
        let half = report.replace("hip_runtime", "hip_fp16");
        let error = "own.h:1:2: error: attempt to use a poisoned identifier\n";
        let after = |before: &str| {
            reached(&format!("{half}{before}{report}x: error: y\n"), Path::new("/s"))
        };
        assert_eq!(after(""), [HALF, RUNTIME]);
        assert_eq!(after(&half), [HALF, RUNTIME]);
        assert_eq!(after(&format!("{error}#pragma once\n ^\n")), [HALF, RUNTIME]);
        assert_eq!(after(&format!("{error}   12 | #pragma once\n      |  ^\n")), [HALF, RUNTIME]);
        for refused in [
            &format!("{error}#pragma GCC poison hipMemcpy\n ^\n"),
            &format!("{error}#if N == 3\n    ^\n"),
            "own.h:1:2: fatal error: 'limits.h' file not found\n#include <limits.h>\n",
        ] {
            assert_eq!(after(refused), [HALF], "{refused}");
        }
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
            let printed = concat!(
                "# 1 \"<built-in>\" 1\n#define ABOVE USES(1)\n#define N(x) 2\n#define NEXT 3\n",
                "#define USES(x) M\n# 1 \"k.cpp\" 2\nint x;\n#undef M\n",
            );
            let mut macros = MacroState::new(printed).unwrap();
            macros.poison(["N".to_owned()]);
            let args = question(command, "k.cpp", &macros, scratch.path()).unwrap()?;
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
