//! What the probe answers of one problem.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

use gfxpack_model::KernelKey;
use gfxpack_stock_library::read_line;

/// What is done with a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// A search through all applicable solvers.
    Search,
    /// Each of its solutions in immediate mode.
    Immediate,
    /// What the find database records.
    Hit,
    /// What a program does that searches in that find mode.
    Mode(u8),
    /// What a program does that searches nothing.
    Unprepared,
    /// Adding the bias.
    Bias,
}

impl Step {
    /// As the probe calls it.
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

/// How the work on a problem ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Done,
    Exited(i32),
    Killed(i32),
    Overdue,
    Full,
    Failed(String),
    /// The process that answers is gone.
    Gone,
    /// There is no MIOpenDriver.
    NoDriver,
}

/// What is known of a key in an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Steps that asked for it, by their names; the stand-in answered.
    pub(crate) asked: BTreeSet<String>,
    /// Steps in which a database held it.
    pub(crate) found: BTreeSet<String>,
    /// Steps in which no database held it.
    pub(crate) missed: BTreeSet<String>,
    pub(crate) functions: BTreeSet<String>,
    /// Functions that its object does not have.
    pub(crate) lacks: BTreeSet<String>,
}

/// A call that the library refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refused {
    pub(crate) step: String,
    /// `F`, `B`, `W`, or `-`.
    pub(crate) direction: String,
    pub(crate) call: String,
    pub(crate) status: String,
}

/// All of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) keys: BTreeMap<KernelKey, Noted>,
    pub(crate) refused: BTreeSet<Refused>,
    /// What compilers were asked for.
    pub(crate) compiles: BTreeSet<String>,
    pub(crate) unanswered: BTreeSet<String>,
    /// Directions that the find database does not have.
    pub(crate) unrecorded: BTreeSet<String>,
    pub(crate) end: End,
}

impl Answer {
    /// An answer without notes.
    pub(crate) fn ended(end: End) -> Self {
        Self {
            keys: BTreeMap::new(),
            refused: BTreeSet::new(),
            compiles: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            unrecorded: BTreeSet::new(),
            end,
        }
    }

    /// Reads an answer to its end. What was noted before the other side is
    /// gone is kept.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::InvalidData`] for what no probe says.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut reading = Reading {
            answer: Self::ended(End::Gone),
            keys: Vec::new(),
            step: String::new(),
            direction: String::new(),
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            if from.read_until(b'\n', &mut line)? == 0 || !line.ends_with(b"\n") {
                return Ok(reading.finish(End::Gone));
            }
            let fields = read_line(&line);
            let invalid = || io::Error::from(io::ErrorKind::InvalidData);
            let texts: Vec<&str> = fields
                .iter()
                .map(|field| std::str::from_utf8(field))
                .collect::<Result<_, _>>()
                .map_err(|_| invalid())?;
            if let ["end", how @ ..] = texts.as_slice() {
                let end = end(how).ok_or_else(invalid)?;
                return Ok(reading.finish(end));
            }
            reading.take(&texts).ok_or_else(invalid)?;
        }
    }
}

fn end(how: &[&str]) -> Option<End> {
    Some(match how {
        ["done"] => End::Done,
        ["exited", status] => End::Exited(status.parse().ok()?),
        ["killed", signal] => End::Killed(signal.parse().ok()?),
        ["overdue"] => End::Overdue,
        ["full"] => End::Full,
        ["failed", reason] => End::Failed((*reason).to_owned()),
        _ => return None,
    })
}

/// An answer that is being read.
struct Reading {
    answer: Answer,
    /// By the numbers that the probe gives them.
    keys: Vec<(KernelKey, Noted)>,
    step: String,
    direction: String,
}

impl Reading {
    fn take(&mut self, fields: &[&str]) -> Option<()> {
        match *fields {
            ["step", name, direction] => {
                name.clone_into(&mut self.step);
                direction.clone_into(&mut self.direction);
            }
            ["key", number, name, arguments] => {
                if number.parse() != Ok(self.keys.len()) {
                    return None;
                }
                let key =
                    KernelKey { kernel_name: name.to_owned(), kernel_args: arguments.to_owned() };
                self.keys.push((key, Noted::default()));
            }
            [how @ ("asked" | "found" | "missed"), number] => {
                let step = self.step.clone();
                let noted = self.key(number)?;
                let steps = match how {
                    "asked" => &mut noted.asked,
                    "found" => &mut noted.found,
                    _ => &mut noted.missed,
                };
                steps.insert(step);
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
                self.answer.refused.insert(Refused {
                    step: self.step.clone(),
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

    fn key(&mut self, number: &str) -> Option<&mut Noted> {
        let number: usize = number.parse().ok()?;
        self.keys.get_mut(number).map(|(_, noted)| noted)
    }

    fn finish(mut self, end: End) -> Answer {
        self.answer.keys = self.keys.into_iter().collect();
        self.answer.end = end;
        self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<Answer> {
        Answer::read(&mut text.as_bytes())
    }

    #[test]
    fn keys_are_told_with_the_steps_that_asked() {
        let answer = read(
            "step\tsearch\tF\nkey\t0\ta.cl.o\t -DA=\\\\1 \nasked\t0\nfunction\t0\tf\n\
             step\timmediate\tF\nasked\t0\nkey\t1\tb.s.o\t x\nasked\t1\nlacks\t1\tg\n\
             refused\tmiopenFind\t7\nend\tdone\n",
        )
        .unwrap();
        let keys: Vec<_> = answer.keys.iter().collect();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0].0.kernel_args, " -DA=\\1 ");
        assert_eq!(keys[0].1.asked, ["immediate", "search"].map(str::to_owned).into());
        assert_eq!(keys[0].1.functions, ["f".to_owned()].into());
        assert_eq!(keys[1].1.lacks, ["g".to_owned()].into());
        assert_eq!(answer.refused.first().unwrap().direction, "F");
        assert_eq!(answer.end, End::Done);
    }

    #[test]
    fn ends_are_told_apart() {
        for (text, end) in [
            ("end\tkilled\t11\n", End::Killed(11)),
            ("end\texited\t3\n", End::Exited(3)),
            ("end\toverdue\n", End::Overdue),
            ("end\tfull\n", End::Full),
            ("end\tfailed\tno room\n", End::Failed("no room".into())),
            ("", End::Gone),
            ("end\tdo", End::Gone),
        ] {
            assert_eq!(read(text).unwrap().end, end, "{text:?}");
        }
    }

    #[test]
    fn what_no_probe_says_is_an_error() {
        for text in
            ["hello\n", "asked\t0\n", "key\t1\ta\tb\n", "end\tsomehow\n", "end\tkilled\tx\n"]
        {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
