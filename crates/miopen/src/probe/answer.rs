//! The probe's answer for one problem.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

use gfxpack_model::{KernelKey, probe_line};

use crate::ask::Uses;
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// A search through all applicable solvers.
    Search,
    /// Each of its solutions in immediate mode.
    Immediate,
    /// The record of the find database.
    Hit,
    /// Like a program that searches in that find mode.
    Mode(u8),
    /// Like a program that does not search.
    Unprepared,
    Bias,
}

impl Step {
    /// The probe's name for it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Search => "search".to_owned(),
            Self::Immediate => "immediate".to_owned(),
            Self::Hit => "hit".to_owned(),
            Self::Mode(mode) => format!("mode-{mode}"),
            Self::Unprepared => "unprepared".to_owned(),
            Self::Bias => "bias".to_owned(),
        }
    }
}

/// The parts of an answer about one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyLookups {
    /// Uses that asked for it and got it from the stand-in.
    pub(crate) asked: Uses,
    /// Uses in which a database contained it.
    pub(crate) found: Uses,
    /// Uses in which no database contained it.
    pub(crate) missed: Uses,
    pub(crate) functions: BTreeSet<String>,
    /// Functions that its object lacks.
    pub(crate) lacks: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProbeAnswer {
    pub(crate) keys: BTreeMap<KernelKey, KeyLookups>,
    /// Calls that the library refused.
    pub(crate) refused: BTreeSet<Failure>,
    /// The inputs of compilers.
    pub(crate) compiles: BTreeSet<String>,
    pub(crate) unanswered: BTreeSet<String>,
    /// Directions that the find database lacks.
    pub(crate) unrecorded: BTreeSet<String>,
    /// How the work ended early, if it did.
    pub(crate) early_end: Option<Failure>,
}

impl ProbeAnswer {
    /// An answer without notes.
    pub(crate) fn ended(early_end: Failure) -> Self {
        Self { early_end: Some(early_end), ..Self::default() }
    }

    /// Reads an answer to its end. If the connection breaks, the notes so far are kept.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::InvalidData`] for a line that no probe writes.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut reading = Reading {
            answer: Self::default(),
            keys: Vec::new(),
            uses: Uses::NONE,
            direction: String::new(),
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            if from.read_until(b'\n', &mut line)? == 0 || !line.ends_with(b"\n") {
                return Ok(reading.finish(Some(Failure::Lost)));
            }
            let fields = probe_line::fields(&line);
            let invalid = || io::Error::from(io::ErrorKind::InvalidData);
            let texts: Vec<&str> = fields
                .iter()
                .map(|field| std::str::from_utf8(field))
                .collect::<Result<_, _>>()
                .map_err(|_| invalid())?;
            if let ["end", how @ ..] = texts.as_slice() {
                let failure =
                    if how == ["done"] { None } else { Some(failure(how).ok_or_else(invalid)?) };
                return Ok(reading.finish(failure));
            }
            reading.take(&texts).ok_or_else(invalid)?;
        }
    }
}

/// Why the work ended early. `None` for a line that no probe writes.
fn failure(how: &[&str]) -> Option<Failure> {
    Some(match how {
        ["exited", status] => Failure::Exited(status.parse().ok()?),
        ["killed", signal] => Failure::Killed(signal.parse().ok()?),
        ["overdue"] => Failure::Overdue,
        ["full"] => Failure::TooMuch,
        ["failed", reason] => Failure::Probe((*reason).to_owned()),
        _ => return None,
    })
}

/// An answer being read.
struct Reading {
    answer: ProbeAnswer,
    /// By the probe's numbers.
    keys: Vec<(KernelKey, KeyLookups)>,
    uses: Uses,
    direction: String,
}

impl Reading {
    fn take(&mut self, fields: &[&str]) -> Option<()> {
        match *fields {
            ["step", name, direction] => {
                self.uses = match name {
                    "search" => Uses { search: true, ..Uses::NONE },
                    "immediate" => Uses { immediate: true, ..Uses::NONE },
                    "hit" => Uses { hit: true, ..Uses::NONE },
                    // Kernels that are needed whatever a program does.
                    _ => Uses::ALL,
                };
                direction.clone_into(&mut self.direction);
            }
            ["key", number, name, arguments] => {
                if number.parse() != Ok(self.keys.len()) {
                    return None;
                }
                let key =
                    KernelKey { kernel_name: name.to_owned(), kernel_args: arguments.to_owned() };
                self.keys.push((key, KeyLookups::default()));
            }
            [how @ ("asked" | "found" | "missed"), number] => {
                let own = self.uses;
                let lookups = self.key(number)?;
                let uses = match how {
                    "asked" => &mut lookups.asked,
                    "found" => &mut lookups.found,
                    _ => &mut lookups.missed,
                };
                *uses = uses.or(own);
            }
            // Of an object that was not looked up.
            ["function" | "lacks", "-", _] => {}
            ["function", number, name] => {
                self.key(number)?.functions.insert(name.to_owned());
            }
            ["lacks", number, name] => {
                self.key(number)?.lacks.insert(name.to_owned());
            }
            ["compile", what] => {
                self.answer.compiles.insert(what.to_owned());
            }
            ["unanswered", what] => {
                self.answer.unanswered.insert(what.to_owned());
            }
            ["refused", call, status] => {
                self.answer.refused.insert(Failure::Refused {
                    direction: self.direction.clone(),
                    call: call.to_owned(),
                    status: status.to_owned(),
                });
            }
            ["unrecorded", direction] => {
                self.answer.unrecorded.insert(direction.to_owned());
            }
            _ => return None,
        }
        Some(())
    }

    fn key(&mut self, number: &str) -> Option<&mut KeyLookups> {
        let number: usize = number.parse().ok()?;
        self.keys.get_mut(number).map(|(_, lookups)| lookups)
    }

    fn finish(mut self, early_end: Option<Failure>) -> ProbeAnswer {
        self.answer.keys = self.keys.into_iter().collect();
        self.answer.early_end = early_end;
        self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<ProbeAnswer> {
        ProbeAnswer::read(&mut text.as_bytes())
    }

    #[test]
    fn keys_are_read_with_the_steps_that_asked() {
        let answer = read(
            "step\tsearch\tF\nkey\t0\ta.cl.o\t -DA=\\\\1 \nasked\t0\nfunction\t0\tf\n\
             step\timmediate\tF\nasked\t0\nkey\t1\tb.s.o\t x\nasked\t1\nlacks\t1\tg\n\
             refused\tmiopenFind\t7\nend\tdone\n",
        )
        .unwrap();
        let keys: Vec<_> = answer.keys.iter().collect();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0].0.kernel_args, " -DA=\\1 ");
        assert_eq!(keys[0].1.asked, Uses { hit: false, ..Uses::ALL });
        assert_eq!(keys[0].1.functions, ["f".to_owned()].into());
        assert_eq!(keys[1].1.lacks, ["g".to_owned()].into());
        let [call, status, direction] = ["miopenFind", "7", "F"].map(str::to_owned);
        assert_eq!(answer.refused, [Failure::Refused { direction, call, status }].into());
        assert_eq!(answer.early_end, None);
    }

    #[test]
    fn each_early_end_of_a_probe_is_recognised() {
        for (text, end) in [
            ("end\tkilled\t11\n", Failure::Killed(11)),
            ("end\texited\t3\n", Failure::Exited(3)),
            ("end\toverdue\n", Failure::Overdue),
            ("end\tfull\n", Failure::TooMuch),
            ("end\tfailed\tno room\n", Failure::Probe("no room".into())),
            ("", Failure::Lost),
            ("end\tdo", Failure::Lost),
        ] {
            assert_eq!(read(text).unwrap().early_end, Some(end), "{text:?}");
        }
    }

    #[test]
    fn unknown_lines_of_a_probe_are_errors() {
        for text in
            ["hello\n", "asked\t0\n", "key\t1\ta\tb\n", "end\tsomehow\n", "end\tkilled\tx\n"]
        {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
