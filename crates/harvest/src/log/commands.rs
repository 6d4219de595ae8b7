//! MIOpenDriver's commands, as MIOpen logs them with
//! MIOPEN_ENABLE_LOGGING_CMD=1, and as people keep them in lists and scripts.

use std::fmt;

use memchr::memmem;

use super::{BEGIN, LineError, MAX_LINE_BYTES};

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
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The operation, with the type of its numbers: `conv`, `convfp16`,
    /// `CBAInfer`, `pool`.
    pub fn operation(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// Whether MIOpen has solvers for it with parameters to search:
    /// convolutions, operations fused with them, and batch normalization.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, who is a `TunableSolver` in
    /// include/miopen/*/solvers.hpp.
    pub fn is_tunable(&self) -> bool {
        ["conv", "CBAInfer", "bnorm"].iter().any(|name| self.operation().starts_with(name))
    }

    /// The command that makes MIOpen search. It lacks the program's own choice
    /// of a solver (`-S`), which would prevent the search, and the comparison
    /// with a result from the CPU, even if the program requested it (`-V 1`).
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `ConvArgsForMIOpenDriver` in
    /// driver_arguments.cpp; driver/conv_driver.hpp.
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

    /// The commands in a line, as MIOpen logs them, as shells take them, or as a
    /// list of Python; `cut` means that the line was longer. What a command in
    /// a shell has beside its options is left out: redirections, pipes, quotes.
    ///
    /// Instead of a command that can't be parsed, there is a [`LineError`].
    pub fn in_line(line: &[u8], cut: bool) -> Vec<Result<Self, LineError>> {
        let mut found = Vec::new();
        let line = line.trim_ascii();
        // A command in a comment is not meant.
        let mut rest = if line.starts_with(b"#") { &[][..] } else { line };
        let mut before = None;
        while let Some(at) = memmem::find(rest, DRIVER) {
            before = rest[..at].last().copied().or(before);
            rest = &rest[at + DRIVER.len()..];
            let next = memmem::find(rest, DRIVER);
            let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
            if !before.is_some_and(is_name) {
                let mut own = &rest[..next.unwrap_or(rest.len())];
                if next.is_some() {
                    // The directory of the next.
                    let ends = |b: &u8| b.is_ascii_whitespace() || b";|&".contains(b);
                    own = &own[..own.iter().rposition(ends).map_or(0, |at| at + 1)];
                }
                found.extend(Self::parse(own, cut && next.is_none()).transpose());
                if memmem::find(own, b" #").is_some() {
                    break;
                }
            }
            before = DRIVER.last().copied();
        }
        found
    }

    /// The command whose text after the program's name this is.
    fn parse(text: &[u8], cut: bool) -> Result<Option<Self>, LineError> {
        let text = text.strip_prefix(b".exe").unwrap_or(text);
        let (quote, unquoted) = match text {
            [quote @ (b'"' | b'\''), rest @ ..] => (Some(*quote as char), rest),
            _ => (None, text),
        };
        let is_list = quote.is_some() && unquoted.starts_with(b",");
        if !is_list && !unquoted.starts_with(b" ") && !unquoted.starts_with(b"\t") {
            return Ok(None);
        }
        // A newline, as programs write it in quotes.
        let unquoted = memmem::find(unquoted, b"\\n").map_or(unquoted, |end| &unquoted[..end]);
        if memmem::find(unquoted, BEGIN).is_some() {
            return Err(LineError::INTERLEAVED);
        }
        if cut {
            return Err(LineError::too_long());
        }
        let text = str::from_utf8(unquoted).map_err(|_| LineError::NOT_UTF8)?;
        let words = match quote.filter(|_| is_list) {
            // `['MIOpenDriver', 'conv', '-n', '1']`
            Some(quote) => {
                let end = text.find(']').unwrap_or(text.len());
                text[..end].split(quote).skip(1).step_by(2).collect()
            }
            None => shell_words(text)?,
        };
        let [operation, first, ..] = words[..] else { return Ok(None) };
        // `MIOpenDriver failed`, in prose.
        if !first.starts_with('-') {
            return Ok(None);
        }
        let is_name = operation.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_name || !words.iter().all(|word| word.chars().all(is_plain)) {
            return Err(LineError::COMMAND);
        }
        Ok(Some(Self(words.join(" "))))
    }
}

/// Whether words of commands have the character, which no shell interprets.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.,:=+-".contains(c)
}

/// The words of a command, up to what ends it: `;`, `|`, `&`, a comment, or the end of a quotation.
fn shell_words(text: &str) -> Result<Vec<&str>, LineError> {
    let mut words = Vec::new();
    let mut all = text.split_ascii_whitespace();
    while let Some(word) = all.next() {
        let quoted = |quote| word.strip_prefix(quote)?.strip_suffix(quote);
        let word = quoted('"').or_else(|| quoted('\'')).unwrap_or(word);
        // `2>&1`, `> FILE`, `</dev/null`
        let redirected = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if redirected.starts_with('>') || word.starts_with('<') {
            match redirected.trim_start_matches(['<', '>', '&']) {
                "" => drop(all.next()),
                file if file.ends_with([';', '|', '&', ')', '"', '\'', '`']) => break,
                _ => {}
            }
            continue;
        }
        let end = word.find(|c| !is_plain(c)).unwrap_or(word.len());
        let (plain, after) = word.split_at(end);
        let ends = match after.chars().next() {
            None => false,
            Some(';' | '|' | '&' | ')' | ']' | '}' | '*' | '#' | '\\' | '<' | '>') => true,
            Some('"' | '\'' | '`') if !plain.is_empty() || word.len() == 1 => true,
            Some(_) => return Err(LineError::COMMAND),
        };
        if !plain.is_empty() {
            words.push(plain);
        }
        if ends {
            break;
        }
    }
    Ok(words)
}

/// Joins lines that a shell joins: a command, and what follows it after a `\` at the end of its
/// line. Of the joined line, [`MAX_LINE_BYTES`] are kept.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    line: Vec<u8>,
    /// The number of its first line.
    first: u64,
}

impl Joined {
    /// Calls `each` for the line, or for what it ends; `begins` says whether the line may be the
    /// beginning of a command.
    pub(crate) fn push(
        &mut self,
        (number, line, cut): (u64, &[u8], bool),
        begins: impl FnOnce(&[u8]) -> bool,
        each: &mut impl FnMut(u64, &[u8], bool),
    ) {
        let line = line.trim_ascii_end();
        let open = line.strip_suffix(b"\\").or_else(|| line.strip_suffix(b" ^"));
        let open = open.filter(|open| open.len() + self.line.len() < MAX_LINE_BYTES && !cut);
        if self.line.is_empty() && open.is_none_or(|open| !begins(open)) {
            return each(number, line, cut);
        }
        if self.line.is_empty() {
            self.first = number;
        }
        // The shell's own prompt.
        let line = open.unwrap_or(line);
        let own =
            if self.line.is_empty() { line } else { line.strip_prefix(b"> ").unwrap_or(line) };
        let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&own[..own.len().min(room)]);
        self.line.push(b' ');
        if open.is_none() {
            each(self.first, &self.line, cut || own.len() > room);
            self.line.clear();
        }
    }

    /// Calls `each` for a line whose continuation is missing.
    pub(crate) fn finish(self, each: &mut impl FnMut(u64, &[u8], bool)) {
        if !self.line.is_empty() {
            each(self.first, &self.line, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(u64, Result<String, LineError>)> {
        let mut parsed = Vec::new();
        let mut each = |number, line: &[u8], cut| {
            for command in DriverCommand::in_line(line, cut) {
                parsed.push((number, command.map(|command| command.to_string())));
            }
        };
        let mut joined = Joined::default();
        let begins = |line: &[u8]| memmem::find(line, DRIVER).is_some();
        for (number, line) in (1..).zip(text.split('\n')) {
            joined.push((number, line.as_bytes(), false), begins, &mut each);
        }
        joined.finish(&mut each);
        parsed
    }

    #[track_caller]
    fn check(line: &str, expected: &[Result<&str, LineError>]) {
        let expected: Vec<_> =
            expected.iter().map(|parsed| (1, parsed.clone().map(str::to_owned))).collect();
        assert_eq!(parsed(line), expected, "{line}");
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
        for evil in ["conv -n $(reboot)", "conv -n `x`", "conv -n \"$n\"", "conv -n 'a b'"] {
            check(&format!("./bin/MIOpenDriver {evil}"), &[Err(LineError::COMMAND)]);
        }
        check("./bin/MIOpenDriver -n -c", &[Err(LineError::COMMAND)]);
        check("./bin/MIOpenDriver conv -n 12MIOpen(HIP): x", &[Err(LineError::INTERLEAVED)]);
    }

    #[test]
    fn commands_are_taken_out_of_what_shells_and_people_write() {
        let one = [Ok("conv -n 1 -F 1")];
        for line in [
            "MIOPEN_FIND_MODE=1 ./bin/MIOpenDriver conv -n 1 -F 1 2>&1 | tee log",
            "> ./bin/MIOpenDriver conv -n 1 > log -F 1 2>/dev/null; echo",
            "\"./bin/MIOpenDriver conv -n 1 -F 1\"",
            "subprocess.run('MIOpenDriver conv -n 1 -F 1', shell=True)",
            "bash -c \"MIOpenDriver conv \"-n\" '1' -F 1\" &",
            "$ **./bin/MIOpenDriver conv -n 1 -F 1**",
            "| `MIOpenDriver conv -n 1 -F 1` | 0.5 ms |",
            "<pre>MIOpenDriver conv -n 1 -F 1</pre>",
            "MIOpenDriver conv -n 1 -F 1 # MIOpenDriver conv -n 2",
            "{\"cmd\":\"MIOpenDriver conv -n 1 -F 1\\n\"}",
            "b'MIOpenDriver conv -n 1 -F 1\\nMIOpen(HIP): Info'",
            "['/opt/rocm/bin/MIOpenDriver', 'conv', '-n', '1', '-F', '1']",
            "Popen(args=[\"MIOpenDriver\",\"conv\",\"-n\",\"1\",\"-F\",\"1\"], shell=\"x\")",
            "MIOpenDriver conv -n 1 \\\n  -F 1 \\\n",
            "$ MIOpenDriver conv \\\r\n> -n 1 \\\r\n> -F 1\r\n",
        ] {
            check(line, &one);
        }
        check(
            "MIOpenDriver conv -n 1 && ./bin/MIOpenDriver pool -n 2;/x/MIOpenDriver lrn -n $N",
            &[Ok("conv -n 1"), Ok("pool -n 2"), Err(LineError::COMMAND)],
        );
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
