//! MIOpenDriver's commands, as MIOpen logs them with
//! MIOPEN_ENABLE_LOGGING_CMD=1, and as people keep them in lists and scripts.

use std::fmt;

use memchr::memmem;

use super::line_fault::{BEGIN, LogError};

const DRIVER: &[u8] = DriverCommand::PROGRAM.as_bytes();

/// One command: an operation, and its options.
///
/// Every word consists of letters, digits and `_ . , : = + -`, so that shells
/// do not interpret it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverCommand(String);

impl DriverCommand {
    /// The words after the program's name, separated by blanks:
    /// `conv -n 128 -c 64 …`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The operation, with the type of its numbers: `conv`, `convfp16`,
    /// `CBAInfer`, `pool`.
    #[must_use]
    pub fn operation(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// Whether MIOpen has solvers for it with parameters to search:
    /// convolutions, operations fused with them, and batch normalization.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, who is a `TunableSolver` in
    /// include/miopen/*/solvers.hpp.
    #[must_use]
    pub fn is_tunable(&self) -> bool {
        ["conv", "CBAInfer", "bnorm"].iter().any(|name| self.operation().starts_with(name))
    }

    /// The command that makes MIOpen search. It lacks the program's own choice
    /// of a solver (`-S`), which would prevent the search, and the comparison
    /// with a result from the CPU, even if the program requested it (`-V 1`).
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `ConvArgsForMIOpenDriver` in
    /// driver_arguments.cpp; driver/conv_driver.hpp.
    #[must_use]
    pub fn for_tuning(&self) -> Self {
        let mut words: Vec<&str> = Vec::new();
        let mut all = self.0.split(' ');
        while let Some(word) = all.next() {
            match word {
                "-S" | "--solution" if self.operation().starts_with("conv") => {
                    all.next();
                }
                "-V" | "--verify" => {
                    all.next();
                }
                word => words.push(word),
            }
        }
        words.extend(["-V", "0"]);
        Self(words.join(" "))
    }
}

impl fmt::Display for DriverCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DriverCommand {
    /// The program's name, which identifies lines with commands.
    pub const PROGRAM: &'static str = "MIOpenDriver";

    /// The command in a line, if there is one; `cut` means that the line was
    /// longer.
    ///
    /// # Errors
    /// [`LogError`] if the line has a command that can't be parsed.
    pub fn in_line(line: &[u8], cut: bool) -> Result<Option<Self>, LogError> {
        let Some(arguments) = arguments(line.trim_ascii()) else { return Ok(None) };
        if memmem::find(arguments, BEGIN).is_some() {
            return Err(LogError::Interleaved);
        }
        if cut {
            return Err(LogError::TooLong);
        }
        let text = str::from_utf8(arguments).map_err(|_| LogError::NotUtf8)?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let [operation, first, ..] = words[..] else { return Ok(None) };
        // `MIOpenDriver failed`, in prose.
        if !first.starts_with('-') {
            return Ok(None);
        }
        let plain = |word: &&str| {
            word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.,:=+-".contains(&b))
        };
        let is_name = operation.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_name || !words.iter().all(plain) {
            return Err(LogError::Command);
        }
        Ok(Some(Self(words.join(" "))))
    }
}

/// The text after the program's name in a line that runs it.
fn arguments(line: &[u8]) -> Option<&[u8]> {
    let at = memmem::find(line, DRIVER)?;
    let before = line[..at].last();
    let rest = &line[at + DRIVER.len()..];
    let rest = rest.strip_prefix(b".exe").unwrap_or(rest);
    // The name alone or at the end of a path; not in a comment.
    let is_program = before.is_none_or(|byte| b"/\\ \t".contains(byte));
    (!line.starts_with(b"#") && is_program && rest.starts_with(b" ")).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::super::lines::Lines;
    use super::*;

    fn parsed(text: &str, piece: usize) -> Vec<(u64, Result<String, LogError>)> {
        let mut parsed = Vec::new();
        let mut each = |number, line: &[u8], cut| {
            if let Some(command) = DriverCommand::in_line(line, cut).transpose() {
                parsed.push((number, command.map(|command| command.to_string())));
            }
        };
        let mut lines = Lines::with(DRIVER);
        for piece in text.as_bytes().chunks(piece) {
            lines.push(piece, &mut each);
        }
        assert_eq!(lines.finish(&mut each), text.lines().count() as u64);
        parsed
    }

    #[track_caller]
    fn check(line: &str, expected: &[Result<&str, LogError>]) {
        let expected: Vec<_> =
            expected.iter().map(|parsed| (1, parsed.map(str::to_owned))).collect();
        assert_eq!(parsed(line, usize::MAX), expected, "{line}");
    }

    #[test]
    fn commands_are_found_in_logs_and_scripts() {
        let conv = "conv -n 128 -c 3 -H 32 -W 32 -k 64 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 \
                    -m conv -g 1 -F 1 -t 1";
        for before in [
            "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver ",
            "4242 MIOpen(HIP)   0.125: Command [LogCmdFindConvolution] ./bin/MIOpenDriver ",
            "./bin/MIOpenDriver ",
            "MIOpenDriver  ",
            "C:\\rocm\\MIOpenDriver.exe ",
            "/opt/rocm/bin/MIOpenDriver ",
        ] {
            for after in ["", "\n", "\r\n", "  "] {
                check(&format!("{before}{conv}{after}"), &[Ok(conv)]);
            }
        }
        check("./bin/MIOpenDriver lrn --forw 1", &[Ok("lrn --forw 1")]);
        check("./bin/MIOpenDriver pool -n 1  -M 0,1", &[Ok("pool -n 1 -M 0,1")]);
    }

    #[test]
    fn other_text_is_skipped_and_shell_syntax_is_an_error() {
        for line in [
            "# MIOpenDriver conv -n 1",
            "MIOpenDriver() {",
            "driver=${MIOPEN_DRIVER:-/opt/rocm/bin/MIOpenDriver}",
            "MIOpenDriver failed with code 1",
            "NotMIOpenDriver conv -n 1",
            "MIOpenDriver",
            "./bin/MIOpenDriver conv",
        ] {
            check(line, &[]);
        }
        for evil in ["conv -n $(reboot)", "conv -n 1; reboot", "conv -n `x`", "conv -n 1 > /x"] {
            check(&format!("./bin/MIOpenDriver {evil}"), &[Err(LogError::Command)]);
        }
        check("./bin/MIOpenDriver -n -c", &[Err(LogError::Command)]);
        check("./bin/MIOpenDriver conv -n 12MIOpen(HIP): x", &[Err(LogError::Interleaved)]);
    }

    #[test]
    fn the_size_of_the_pieces_does_not_matter() {
        let text = "a\n./bin/MIOpenDriver conv -n 1\n\n./bin/MIOpenDriver conv -n 2\nb\n\
                    ./bin/MIOpenDriver conv -n 3 |\n./bin/MIOpenDriver pool -n 4";
        let whole = parsed(text, usize::MAX);
        assert_eq!(whole.len(), 4);
        for size in 1..text.len() {
            assert_eq!(parsed(text, size), whole, "{size}");
        }
    }

    #[test]
    fn for_tuning_requests_a_search_without_verification() {
        let command = |text: &str| DriverCommand(text.to_owned());
        let check = |text: &str, expected: &str| {
            assert_eq!(command(text).for_tuning().as_str(), expected);
        };
        check("conv -n 1 -t 1 -S 0", "conv -n 1 -t 1 -V 0");
        check("conv -n 1 -S 85 -V 1 -t 1", "conv -n 1 -t 1 -V 0");
        check("CBAInfer -F 6 -n 1", "CBAInfer -F 6 -n 1 -V 0");
        let tunable = ["conv", "convfp16", "convbfp16", "CBAInfer", "CBAInferfp16", "bnormfp16"];
        assert!(tunable.iter().all(|name| command(&format!("{name} -n 1")).is_tunable()));
        assert!(!command("pool -n 1").is_tunable());
    }
}
