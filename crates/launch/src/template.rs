//! The commands that a driver would run. They are the same for all commands that differ only in
//! macros and source, with slots for these.

use std::ffi::OsString;
use std::path::Path;

use gfxpack_model::compiler::Program;
use gfxpack_model::compiler::is_of_clock;
use gfxpack_model::{Language, ToolchainId};
use serde::{Deserialize, Serialize};

use crate::launcher::Command;
use crate::wrappers;

/// The prefix of the arguments that are replaced.
const SLOT: &str = "gfxpack_slot_";
pub(crate) const INPUT: &str = "gfxpack_slot_input";
pub(crate) const OUTPUT: &str = "gfxpack_slot_output";
pub(crate) const DEPS: &str = "gfxpack_slot_deps";
const DEFINES: &str = "GFXPACK_SLOT_DEFINES";
const SYMBOL: &str = "--defsym";

/// The part that commands share which differ only in macros and source; drivers answer it with the
/// same commands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandKey {
    pub(crate) toolchain: ToolchainId,
    pub(crate) program: Program,
    pub(crate) language: Language,
    pub(crate) extension: String,
    /// The arguments without the source, with each run of macros replaced by one argument.
    pub(crate) args: Vec<String>,
}

/// One macro in the compiler's form: the option, and `NAME` or `NAME=VALUE`.
pub type Define = [String; 2];

/// A command's macros, in runs: macros that follow each other form a run, since other options
/// between runs stay in their place.
pub type Defines = Vec<Vec<Define>>;

impl CommandKey {
    /// Splits a command's arguments into the part shared with others, and its macros. `None` if the
    /// source's name or an argument could be misread.
    pub(crate) fn from_command(command: &Command<'_>) -> Option<(Self, Defines)> {
        let mut arguments: Vec<&str> = command.arguments.iter().map(|arg| &**arg).collect();
        let main = arguments.pop()?;
        let by_hipcc = command.program == Program::Hipcc;
        // A source that looks like an option is not representative, and an argument that looks
        // like a slot can't be distinguished from one.
        let is_slot = |arg: &str| arg.to_ascii_lowercase().contains(SLOT);
        if main.starts_with('-')
            || is_slot(main)
            || arguments.iter().any(|arg| is_slot(arg))
            || by_hipcc && wrappers::reads_arg(main)
        {
            return None;
        }
        let mut with_slots = Vec::new();
        let mut defines: Defines = Vec::new();
        let mut running = false;
        for arg in arguments {
            // The time macros are the same for all commands, also in precompiled headers.
            let read_by_driver = by_hipcc && wrappers::reads_arg(arg);
            let define = define(arg, command.language);
            let define = define.filter(|_| !is_of_clock(arg) && !read_by_driver);
            let goes_on = running;
            running = define.is_some();
            match define {
                Some(define) if goes_on => defines.last_mut()?.push(define),
                Some(define) => {
                    let slot = format!("{DEFINES}_{}=1", defines.len());
                    with_slots.push(match command.language {
                        Language::Assembly => format!("-Wa,-defsym,{slot}"),
                        Language::Hip | Language::OpenclC => format!("-D{slot}"),
                    });
                    defines.push(vec![define]);
                }
                None => with_slots.push(arg.to_owned()),
            }
        }
        let extension = Path::new(main).extension()?.to_str()?.to_owned();
        let (toolchain, program, language) = (command.toolchain, command.program, command.language);
        Some((Self { toolchain, program, language, extension, args: with_slots }, defines))
    }

    /// The arguments, with a command's macros after those that stand for them.
    pub(crate) fn with(&self, defines: &[Vec<Define>]) -> Vec<String> {
        let mut runs = defines.iter();
        let mut args = Vec::new();
        for arg in &self.args {
            args.push(arg.clone());
            let run = if arg.contains(DEFINES) { runs.next() } else { None };
            args.extend(run.into_iter().flatten().map(|[option, text]| match self.language {
                Language::Assembly => format!("-Wa,{option},{text}"),
                Language::Hip | Language::OpenclC => format!("{option}{text}"),
            }));
        }
        args
    }
}

fn define(arg: &str, language: Language) -> Option<Define> {
    if language == Language::Assembly {
        let symbol = arg.strip_prefix("-Wa,-defsym,").filter(|symbol| !symbol.contains(','))?;
        let (_, value) = symbol.split_once('=').filter(|(name, _)| !name.is_empty())?;
        if !is_integer(value) {
            return None;
        }
        return Some(["-defsym".into(), symbol.into()]);
    }
    let (option, text) = arg.split_at_checked(2)?;
    (["-D", "-U"].contains(&option) && !text.is_empty()).then(|| [option.into(), text.into()])
}

/// Whether a driver accepts a symbol's value. The compiler that the driver starts accepts any.
///
/// Source: llvm-project, clang/lib/Driver/ToolChains/Clang.cpp,
/// `CollectArgsForIntegratedAssembler`, and `StringRef::getAsInteger` with
/// radix 0.
fn is_integer(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x', ..] => (&digits[2..], 16),
        [b'0', b'o', ..] => (&digits[2..], 8),
        [b'0', b'b', ..] => (&digits[2..], 2),
        [b'0', b'0'..=b'9', ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    !digits.starts_with(['+', '-']) && i64::from_str_radix(digits, radix).is_ok()
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TemplateArg {
    /// A fixed text.
    Text(String),
    /// The macros of the run with this number.
    Defines(usize),
    /// The assembler symbols of the run with this number, for a compiler that spells their option
    /// with two dashes, as clang does since 19.
    Symbols(usize),
    /// The source's path.
    Input,
    /// The source's file name.
    InputName,
    /// The object's path.
    Output,
    /// The prefix of files beside the output.
    OutputPrefix,
    /// The path of the dependency file.
    DepsFile,
    /// A temporary file that one command writes for another, by number.
    Between(usize),
}

impl TemplateArg {
    /// The arguments for the macros that this one stands for.
    fn of_macros(&self, defines: &[Vec<Define>]) -> impl Iterator<Item = String> {
        let (run, symbol) = match self {
            Self::Defines(run) => (defines.get(*run), None),
            Self::Symbols(run) => (defines.get(*run), Some(SYMBOL)),
            _ => (None, None),
        };
        let macros = run.into_iter().flatten();
        macros.flat_map(move |[option, text]| [symbol.unwrap_or(option).to_owned(), text.clone()])
    }
}

/// A program with its arguments, and slots for those that differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandTemplate {
    /// The program's path, and its arguments.
    pub args: Vec<TemplateArg>,
}

/// The values for the slots.
#[derive(Debug, Clone, Copy)]
pub struct TemplateValues<'a> {
    /// The path of the staged source, relative to its stage.
    pub input: &'a str,
    /// The runs of macros, in order.
    pub defines: &'a [Vec<Define>],
    /// The path of the object.
    pub output: &'a Path,
    /// The path of the dependency file.
    pub deps_file: &'a Path,
    /// The directory of temporary files that one command writes for another.
    pub scratch: &'a Path,
}

impl CommandTemplate {
    /// The program and its arguments, with these values in the slots.
    pub fn fill(&self, values: &TemplateValues<'_>) -> Vec<OsString> {
        let mut args = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            match arg {
                TemplateArg::Text(text) => args.push(text.into()),
                TemplateArg::Defines(_) | TemplateArg::Symbols(_) => {
                    args.extend(arg.of_macros(values.defines).map(OsString::from));
                }
                TemplateArg::Input => args.push(values.input.into()),
                TemplateArg::InputName => args.push(file_name(values.input).into()),
                TemplateArg::Output => args.push(values.output.into()),
                TemplateArg::OutputPrefix => {
                    let mut prefix = OsString::from(values.output);
                    prefix.push("-");
                    args.push(prefix);
                }
                TemplateArg::DepsFile => args.push(values.deps_file.into()),
                TemplateArg::Between(number) => {
                    args.push(values.scratch.join(format!("{number}.o")).into());
                }
            }
        }
        args
    }

    /// The command without macros, each of which must be where its run's slot is.
    pub(crate) fn without(&self, defines: &[Vec<Define>]) -> Option<Self> {
        let mut args = Vec::with_capacity(self.args.len());
        let mut rest = self.args.as_slice();
        while let [arg, after @ ..] = rest {
            let given: Vec<TemplateArg> = arg.of_macros(defines).map(TemplateArg::Text).collect();
            rest = after.strip_prefix(given.as_slice())?;
            args.push(arg.clone());
        }
        Some(Self { args })
    }

    /// The command with the list of the files that it reads, if it was asked for and the driver left
    /// it out: that of clang 21 does so for a GPU's code.
    pub(crate) fn with_deps_file(mut self) -> Self {
        let texts = self.texts();
        let asked = texts.iter().position(|text| *text == "-sys-header-deps");
        if let Some(at) = asked.filter(|_| !texts.contains(&"-dependency-file")) {
            let option = TemplateArg::Text("-dependency-file".into());
            self.args.splice(at..at, [option, TemplateArg::DepsFile]);
        }
        self
    }

    /// The text of each argument; nothing for slots.
    pub fn texts(&self) -> Vec<&str> {
        fn text(arg: &TemplateArg) -> &str {
            match arg {
                TemplateArg::Text(text) => text,
                _ => "",
            }
        }
        self.args.iter().map(text).collect()
    }

    /// The index of two consecutive arguments.
    pub(crate) fn position(&self, first: &str, second: &str) -> Option<usize> {
        self.texts().windows(2).position(|pair| pair == [first, second])
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The number of the run of macros that an argument stands for.
fn slot_number(arg: &str) -> Option<usize> {
    arg.strip_prefix(DEFINES)?.strip_prefix('_')?.strip_suffix("=1")?.parse().ok()
}

/// Whether the output of `-###` contains an error. The driver exits with 0 all the same, and may
/// print commands that it would never run.
pub(crate) fn refuses(text: &str) -> bool {
    text.lines().any(|line| !line.trim_start().starts_with('"') && line.contains("error:"))
}

/// Parses the output of `-###`; `None` if it is not understood.
pub(crate) fn parse(text: &str, input: &str) -> Option<Vec<CommandTemplate>> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with('"'));
    let commands: Vec<Vec<String>> = lines.map(shlex::split).collect::<Option<_>>()?;
    let (last, before) = commands.split_last()?;
    // The driver makes up a name for each file that one command writes for another.
    let between: Vec<&String> = before
        .iter()
        .map(|args| args.windows(2).find(|pair| pair[0] == "-o").map(|pair| &pair[1]))
        .collect::<Option<_>>()?;
    last.iter().find(|arg| *arg == OUTPUT)?;
    commands.iter().map(|args| parse_one(args, input, &between)).collect()
}

fn parse_one(args: &[String], input: &str, between: &[&String]) -> Option<CommandTemplate> {
    let mut parsed = Vec::with_capacity(args.len());
    for (at, arg) in args.iter().enumerate() {
        let previous = at.checked_sub(1).map(|at| args[at].as_str());
        let next = if let Some(number) = between.iter().position(|name| *name == arg) {
            TemplateArg::Between(number)
        } else if let Some(run) = slot_number(arg) {
            // The option before it is part of the slot.
            match parsed.pop() {
                Some(TemplateArg::Text(option)) if option == SYMBOL => TemplateArg::Symbols(run),
                _ => TemplateArg::Defines(run),
            }
        } else if previous == Some("-main-file-name") && arg == file_name(input) {
            TemplateArg::InputName
        } else if arg == input {
            TemplateArg::Input
        } else if arg == OUTPUT {
            TemplateArg::Output
        } else if previous == Some("-dumpdir") && arg.strip_suffix('-') == Some(OUTPUT) {
            TemplateArg::OutputPrefix
        } else if arg == DEPS {
            TemplateArg::DepsFile
        } else if arg.contains("gfxpack_slot") || arg.contains("GFXPACK_SLOT") {
            return None;
        } else {
            TemplateArg::Text(arg.clone())
        };
        parsed.push(next);
    }
    Some(CommandTemplate { args: parsed })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gfxpack_model::{Digest, SourceId};

    use super::*;

    const PRINTED: &str = concat!(
        "clang version 15\n",
        " \"/bin/clang-15\" \"-cc1\" \"-main-file-name\" \"gfxpack_slot_input.cpp\" ",
        "\"-D\" \"A=1\" \"-D\" \"GFXPACK_SLOT_DEFINES_0=1\" \"-MT\" \"gfxpack_slot_output\" ",
        "\"-o\" \"/tmp/x-1.o\" \"-x\" \"hip\" \"gfxpack_slot_input.cpp\"\n",
        " \"/bin/lld\" \"-o\" \"gfxpack_slot_output\" \"/tmp/x-1.o\"\n",
    );

    #[test]
    fn the_list_of_files_is_asked_for_where_a_driver_left_it_out() {
        let printed = |args: &str| format!(" \"/bin/clang\" \"-cc1\" {args} \"-o\" \"{OUTPUT}\"\n");
        let template = |args: &str| parse(&printed(args), "k.cpp").unwrap().remove(0);
        let complete = template("\"-dependency-file\" \"gfxpack_slot_deps\" \"-sys-header-deps\"");
        assert_eq!(template("\"-sys-header-deps\"").with_deps_file(), complete);
        assert_eq!(complete.clone().with_deps_file(), complete);
        let assembly = template("\"-filetype\" \"obj\"");
        assert_eq!(assembly.clone().with_deps_file(), assembly);
    }

    #[test]
    fn newer_compilers_spell_some_options_differently() {
        let printed = concat!(
            " \"/bin/clang-19\" \"-cc1as\" \"-dumpdir\" \"gfxpack_slot_output-\" ",
            "\"--defsym\" \"GFXPACK_SLOT_DEFINES_0=1\" \"-o\" \"gfxpack_slot_output\"\n",
        );
        let commands = parse(printed, "gfxpack_slot_input.s").unwrap();
        let symbol = |text: &str| ["-defsym".into(), text.into()];
        let values = TemplateValues {
            input: "k.s",
            defines: &[vec![symbol("a=1"), symbol("b=2")]],
            output: Path::new("/s/out"),
            deps_file: Path::new("/s/deps"),
            scratch: Path::new("/s"),
        };
        let args = ["/bin/clang-19", "-cc1as", "-dumpdir", "/s/out-", "--defsym", "a=1"];
        let args = args.into_iter().chain(["--defsym", "b=2", "-o", "/s/out"]);
        assert_eq!(commands[0].fill(&values), args.map(OsString::from).collect::<Vec<_>>());
    }

    #[test]
    fn commands_share_a_key_whatever_their_macros_and_sources() {
        let target = "gfx906".parse().unwrap();
        let key = |args: &[&str]| {
            let arguments: Vec<Arc<str>> = args.iter().map(|&arg| arg.into()).collect();
            let (program, language) = (Program::Clang, Language::Hip);
            let (job, toolchain, source) = (Digest::of(b"job"), ToolchainId(0), SourceId(0));
            CommandKey::from_command(&Command {
                job,
                toolchain,
                program,
                language,
                target: &target,
                source,
                arguments: &arguments,
            })
            .unwrap()
        };
        let (one, defines) = key(&["-O3", "-DA", "-UB", "-I.", "-DC=1", "d/a.cpp"]);
        let lengths: Vec<usize> = defines.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
        let (other, _) = key(&["-O3", "-DX=2", "-I.", "-DY", "b.cpp"]);
        assert_eq!(one, other);
        for different in
            [["-O2", "-DA", "-I.", "-DC", "a.cpp"], ["-O3", "-DA", "-I.", "-DC", "a.c"]]
        {
            assert_ne!(key(&different).0, one);
        }
    }

    #[test]
    fn macros_that_a_driver_leaves_out_or_changes_are_noticed() {
        let key = |language, args: &[&str]| CommandKey {
            toolchain: ToolchainId(0),
            program: Program::Clang,
            language,
            extension: "cpp".into(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
        };
        let slot = |number: usize| format!("{DEFINES}_{number}=1");
        let runs: Defines = vec![
            vec![["-D".into(), "B=2".into()], ["-U".into(), "C".into()]],
            vec![["-D".into(), "E".into()]],
        ];
        let asked = key(
            Language::Hip,
            &["-O3", &format!("-D{}", slot(0)), "-I.", &format!("-D{}", slot(1))],
        );
        let with = asked.with(&runs);
        let expected =
            ["-O3", &format!("-D{}", slot(0)), "-DB=2", "-UC", "-I.", &format!("-D{}", slot(1))];
        assert_eq!(with, [&expected[..], &["-DE"]].concat());
        let symbol: Defines = vec![vec![["-defsym".into(), "N=4".into()]]];
        let asked = key(Language::Assembly, &[&format!("-Wa,-defsym,{}", slot(0))]);
        assert_eq!(asked.with(&symbol)[1], "-Wa,-defsym,N=4");

        let answer = |args: &[&str]| CommandTemplate {
            args: args
                .iter()
                .map(|&arg| match arg {
                    "0" => TemplateArg::Defines(0),
                    "1" => TemplateArg::Defines(1),
                    text => TemplateArg::Text(text.to_owned()),
                })
                .collect(),
        };
        let complete = answer(&["clang", "0", "-D", "B=2", "-U", "C", "-O3", "1", "-D", "E"]);
        assert_eq!(complete.without(&runs), Some(answer(&["clang", "0", "-O3", "1"])));
        assert_eq!(answer(&["lld", "-o"]).without(&runs), Some(answer(&["lld", "-o"])));
        for other in [
            &["clang", "0", "-D", "B=2", "-O3", "1", "-D", "E"][..],
            &["clang", "0", "-U", "C", "-D", "B=2", "-O3", "1", "-D", "E"],
            &["clang", "0", "-D", "B=3", "-U", "C", "-O3", "1", "-D", "E"],
            &["clang", "0", "-D", "B=2", "-U", "C", "-O3", "1"],
        ] {
            assert_eq!(answer(other).without(&runs), None, "{other:?}");
        }
        let symbols = CommandTemplate {
            args: ["as", "--defsym", "N=4"].map(|arg| TemplateArg::Text(arg.into())).into(),
        };
        let mut with_slot = symbols.clone();
        with_slot.args.insert(1, TemplateArg::Symbols(0));
        assert_eq!(with_slot.without(&symbol).unwrap().args.len(), 2);
        assert_eq!(symbols.without(&symbol), Some(symbols));
    }

    #[test]
    fn symbols_that_a_driver_refuses_are_left_to_it() {
        let taken =
            |value: &str| define(&format!("-Wa,-defsym,N={value}"), Language::Assembly).is_some();
        for value in ["0", "1", "-5", "0x1F", "-0x5", "0b11", "017", "0o17", "00", "9999999999"] {
            assert!(taken(value), "{value}");
        }
        for value in [
            "1e3",
            "",
            "+5",
            "0xg",
            "0x+1",
            "1=2",
            " 1",
            "08",
            "0x",
            "-",
            "--1",
            "99999999999999999999",
        ] {
            assert!(!taken(value), "{value}");
        }
        assert!(define("-Wa,-defsym,N", Language::Assembly).is_none());
        assert!(define("-Wa,-defsym,=1", Language::Assembly).is_none());
    }

    #[test]
    fn commands_of_a_driver_that_reports_an_error_are_ignored() {
        assert!(!refuses(PRINTED));
        assert!(!refuses(" \"/bin/clang\" \"-DA=error: x\"\n"));
        assert!(refuses(&format!("clang-15: error: unsupported argument '-g'\n{PRINTED}")));
    }

    #[test]
    fn output_that_is_not_understood_gives_no_commands() {
        let input = "gfxpack_slot_input.cpp";
        for (from, to) in [
            ("\"-D\" \"GFXPACK_SLOT_DEFINES_0=1\"", "\"-DGFXPACK_SLOT_DEFINES_0=1\""),
            ("\"/bin/lld\" \"-o\" \"gfxpack_slot_output\"", "\"/bin/lld\" \"-o\" \"elsewhere\""),
            ("\"-x\" \"hip\"", "\"-coverage=gfxpack_slot_input.gcno\""),
            ("\"-o\" \"/tmp/x-1.o\"", ""),
        ] {
            assert!(PRINTED.contains(from));
            assert_eq!(parse(&PRINTED.replace(from, to), input), None, "{to}");
        }
        assert_eq!(parse("clang: error: no\n", input), None);
    }
}
