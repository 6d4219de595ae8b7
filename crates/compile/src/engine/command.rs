//! What a driver would run for a job: the same for all jobs that differ in
//! macros and source alone, with a slot where those go.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gfxpack_model::Language;
use gfxpack_model::compiler::Program;
use gfxpack_plan::clock::is_of_clock;
use gfxpack_plan::plan::Job;
use serde::{Deserialize, Serialize};

/// Stand for what differs; no real option looks like these.
pub(super) const INPUT: &str = "gfxpack_slot_input";
pub(super) const OUTPUT: &str = "gfxpack_slot_output";
pub(super) const DEPS: &str = "gfxpack_slot_deps";
const DEFINES: &str = "GFXPACK_SLOT_DEFINES";
const SYMBOL: &str = "--defsym";

/// What jobs of one command have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) toolchain: usize,
    pub(crate) program: Program,
    pub(crate) language: Language,
    pub(super) extension: String,
    /// The job's arguments, the macros as one, without the source.
    pub(super) words: Vec<String>,
}

/// One of a job's macros, as the compiler itself takes it: two words.
pub(crate) type Define = [String; 2];

/// A job's macros: those that follow each other, and each such run by its
/// number, since options between them stay between them.
pub(crate) type Defines = Vec<Vec<Define>>;

impl Shape {
    /// Parts a job's arguments into what it shares with others, its macros
    /// and its source.
    pub(crate) fn of(job: &Job) -> Option<(Self, Defines)> {
        let mut arguments: Vec<&str> = job.arguments.iter().collect();
        let main = arguments.pop()?;
        let mut words = Vec::new();
        let mut defines: Defines = Vec::new();
        let mut running = false;
        for word in arguments {
            // A clock is the same for all jobs, and in what is precompiled too.
            let define = define(word, job.language).filter(|_| !is_of_clock(word));
            let goes_on = running;
            running = define.is_some();
            match define {
                Some(define) if goes_on => defines.last_mut()?.push(define),
                Some(define) => {
                    let slot = format!("{DEFINES}_{}=1", defines.len());
                    words.push(match job.language {
                        Language::Assembly => format!("-Wa,-defsym,{slot}"),
                        Language::Hip | Language::OpenclC => format!("-D{slot}"),
                    });
                    defines.push(vec![define]);
                }
                None => words.push(word.to_owned()),
            }
        }
        let extension = Path::new(main).extension()?.to_str()?.to_owned();
        let (toolchain, program, language) = (job.toolchain, job.program, job.language);
        Some((Self { toolchain, program, language, extension, words }, defines))
    }
}

fn define(word: &str, language: Language) -> Option<Define> {
    if language == Language::Assembly {
        let symbol = word.strip_prefix("-Wa,-defsym,").filter(|symbol| !symbol.contains(','))?;
        let (_, value) = symbol.split_once('=').filter(|(name, _)| !name.is_empty())?;
        if !is_integer(value) {
            return None;
        }
        return Some(["-defsym".into(), symbol.into()]);
    }
    let (option, text) = word.split_at_checked(2)?;
    (["-D", "-U"].contains(&option) && !text.is_empty()).then(|| [option.into(), text.into()])
}

/// Whether a driver takes a symbol's value: the compiler that it starts takes
/// whatever it is given.
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

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Word {
    Text(String),
    /// A run of the job's macros, by its number.
    Defines(usize),
    /// A run of an assembly job's symbols for a compiler that spells their
    /// option with two dashes, as clang's from 19 on.
    Symbols(usize),
    /// The source's path.
    Input,
    /// The source's file name.
    InputName,
    Output,
    /// What the names of files beside the output begin with.
    OutputPrefix,
    DepsFile,
    /// A file between two commands, by number.
    Between(usize),
}

/// A program with its arguments; the first word is the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) words: Vec<Word>,
}

/// What a job fills into its commands.
pub(crate) struct Filling<'a> {
    pub(crate) input: &'a str,
    pub(crate) defines: &'a [Vec<Define>],
    pub(crate) output: &'a Path,
    pub(crate) deps_file: &'a Path,
    pub(crate) scratch: &'a Path,
}

impl Command {
    pub(crate) fn fill(&self, filling: &Filling<'_>) -> Vec<OsString> {
        let mut words = Vec::with_capacity(self.words.len());
        for word in &self.words {
            match word {
                Word::Text(text) => words.push(text.into()),
                Word::Defines(run) => {
                    let defines = filling.defines.get(*run).into_iter().flatten().flatten();
                    words.extend(defines.map(OsString::from));
                }
                Word::Symbols(run) => {
                    for [_, symbol] in filling.defines.get(*run).into_iter().flatten() {
                        words.extend([SYMBOL.into(), symbol.into()]);
                    }
                }
                Word::Input => words.push(filling.input.into()),
                Word::InputName => words.push(file_name(filling.input).into()),
                Word::Output => words.push(filling.output.into()),
                Word::OutputPrefix => {
                    let mut prefix = OsString::from(filling.output);
                    prefix.push("-");
                    words.push(prefix);
                }
                Word::DepsFile => words.push(filling.deps_file.into()),
                Word::Between(number) => {
                    words.push(filling.scratch.join(format!("{number}.o")).into());
                }
            }
        }
        words
    }

    /// Its words, without those that differ from job to job.
    pub(crate) fn texts(&self) -> Vec<Option<&str>> {
        fn text(word: &Word) -> Option<&str> {
            match word {
                Word::Text(text) => Some(text),
                _ => None,
            }
        }
        self.words.iter().map(text).collect()
    }

    /// Whether two words follow each other anywhere.
    pub(crate) fn position(&self, first: &str, second: &str) -> Option<usize> {
        let is = |word: &Word, text: &str| matches!(word, Word::Text(word) if word == text);
        self.words.windows(2).position(|pair| is(&pair[0], first) && is(&pair[1], second))
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Which run of macros a word stands for.
fn slot_number(word: &str) -> Option<usize> {
    word.strip_prefix(DEFINES)?.strip_prefix('_')?.strip_suffix("=1")?.parse().ok()
}

/// Whether a driver says with `-###` that it would refuse: it exits with 0
/// all the same, and may print commands that it would never run.
pub(super) fn refuses(text: &str) -> bool {
    text.lines().any(|line| !line.trim_start().starts_with('"') && line.contains("error:"))
}

/// Reads the commands that `-###` printed; `None` where they are not
/// understood.
pub(super) fn parse(text: &str, input: &str) -> Option<Vec<Command>> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with('"'));
    let commands: Vec<Vec<String>> = lines.map(shlex::split).collect::<Option<_>>()?;
    let (last, before) = commands.split_last()?;
    // Whatever one command writes for another has a name made up by the driver.
    let between: Vec<&String> = before
        .iter()
        .map(|words| words.windows(2).find(|pair| pair[0] == "-o").map(|pair| &pair[1]))
        .collect::<Option<_>>()?;
    last.iter().find(|word| *word == OUTPUT)?;
    commands.iter().map(|words| parse_one(words, input, &between)).collect()
}

fn parse_one(words: &[String], input: &str, between: &[&String]) -> Option<Command> {
    let mut parsed = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let previous = at.checked_sub(1).map(|at| words[at].as_str());
        let next = if let Some(number) = between.iter().position(|name| *name == word) {
            Word::Between(number)
        } else if let Some(run) = slot_number(word) {
            // The option before it goes with it.
            match parsed.pop() {
                Some(Word::Text(option)) if option == SYMBOL => Word::Symbols(run),
                _ => Word::Defines(run),
            }
        } else if previous == Some("-main-file-name") && word == file_name(input) {
            Word::InputName
        } else if word == input {
            Word::Input
        } else if word == OUTPUT {
            Word::Output
        } else if previous == Some("-dumpdir") && word.strip_suffix('-') == Some(OUTPUT) {
            Word::OutputPrefix
        } else if word == DEPS {
            Word::DepsFile
        } else if word.contains("gfxpack_slot") || word.contains("GFXPACK_SLOT") {
            return None;
        } else {
            Word::Text(word.clone())
        };
        parsed.push(next);
    }
    Some(Command { words: parsed })
}

/// The options that have a compiler list what it read; the assembler can't.
pub(crate) fn deps_arguments(language: Language, file: &Path) -> Vec<OsString> {
    match language {
        Language::Assembly => Vec::new(),
        Language::Hip | Language::OpenclC => {
            ["-MD".into(), "-MF".into(), PathBuf::from(file).into()].into()
        }
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_model::words::Words;
    use gfxpack_model::{Digest, KernelKey};

    use super::*;

    const PRINTED: &str = concat!(
        "clang version 15\n",
        " \"/bin/clang-15\" \"-cc1\" \"-main-file-name\" \"gfxpack_slot_input.cpp\" ",
        "\"-D\" \"A=1\" \"-D\" \"GFXPACK_SLOT_DEFINES_0=1\" \"-MT\" \"gfxpack_slot_output\" ",
        "\"-o\" \"/tmp/x-1.o\" \"-x\" \"hip\" \"gfxpack_slot_input.cpp\"\n",
        " \"/bin/lld\" \"-o\" \"gfxpack_slot_output\" \"/tmp/x-1.o\"\n",
    );

    #[test]
    fn commands_are_filled_where_the_slots_are() {
        let commands = parse(PRINTED, "gfxpack_slot_input.cpp").unwrap();
        let defines = [vec![["-D".into(), "B=2".into()], ["-U".into(), "C".into()]]];
        let filling = Filling {
            input: "dir/k.cpp",
            defines: &defines,
            output: Path::new("/s/out"),
            deps_file: Path::new("/s/deps"),
            scratch: Path::new("/s"),
        };
        let filled: Vec<String> = commands
            .iter()
            .map(|command| command.fill(&filling).join(OsString::from(" ").as_os_str()))
            .map(|line| line.into_string().unwrap())
            .collect();
        assert_eq!(
            filled,
            [
                "/bin/clang-15 -cc1 -main-file-name k.cpp -D A=1 -D B=2 -U C -MT /s/out -o /s/0.o -x hip dir/k.cpp",
                "/bin/lld -o /s/out /s/0.o"
            ]
        );
    }

    #[test]
    fn newer_compilers_spell_some_options_differently() {
        let printed = concat!(
            " \"/bin/clang-19\" \"-cc1as\" \"-dumpdir\" \"gfxpack_slot_output-\" ",
            "\"--defsym\" \"GFXPACK_SLOT_DEFINES_0=1\" \"-o\" \"gfxpack_slot_output\"\n",
        );
        let commands = parse(printed, "gfxpack_slot_input.s").unwrap();
        let symbol = |text: &str| ["-defsym".into(), text.into()];
        let filling = Filling {
            input: "k.s",
            defines: &[vec![symbol("a=1"), symbol("b=2")]],
            output: Path::new("/s/out"),
            deps_file: Path::new("/s/deps"),
            scratch: Path::new("/s"),
        };
        let words = ["/bin/clang-19", "-cc1as", "-dumpdir", "/s/out-", "--defsym", "a=1"];
        let words = words.into_iter().chain(["--defsym", "b=2", "-o", "/s/out"]);
        assert_eq!(commands[0].fill(&filling), words.map(OsString::from).collect::<Vec<_>>());
    }

    #[test]
    fn jobs_share_a_shape_whatever_their_macros_and_sources() {
        let job = |arguments: &[&str]| Job {
            digest: Digest::of(b""),
            key: KernelKey { kernel_name: String::new(), kernel_args: String::new() }.into(),
            language: Language::Hip,
            toolchain: 0,
            target_id: "gfx906".parse().unwrap(),
            source: 0,
            program: Program::Clang,
            arguments: {
                let mut words = Words::default();
                arguments.iter().for_each(|word| words.push(word));
                words
            },
        };
        let (shape, defines) =
            Shape::of(&job(&["-O3", "-DA", "-UB", "-I.", "-DC=1", "d/a.cpp"])).unwrap();
        let lengths: Vec<usize> = defines.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
        let (other, _) = Shape::of(&job(&["-O3", "-DX=2", "-I.", "-DY", "b.cpp"])).unwrap();
        assert_eq!(shape, other);
        for different in
            [["-O2", "-DA", "-I.", "-DC", "a.cpp"], ["-O3", "-DA", "-I.", "-DC", "a.c"]]
        {
            assert_ne!(Shape::of(&job(&different)).unwrap().0, shape);
        }
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
    fn commands_that_a_driver_would_not_run_are_no_answer() {
        assert!(!refuses(PRINTED));
        assert!(!refuses(" \"/bin/clang\" \"-DA=error: x\"\n"));
        assert!(refuses(&format!("clang-15: error: unsupported argument '-g'\n{PRINTED}")));
    }

    #[test]
    fn what_is_not_understood_is_none() {
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
