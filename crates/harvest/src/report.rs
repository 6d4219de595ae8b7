//! Reports on the files that were read.

use gfxpack_model::Error;

use crate::log::{LineError, Seen};

/// The kind of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// Text: MIOpen's log, among other output.
    #[default]
    Log,
    /// An earlier harvest, or a list of keys.
    Keys,
    /// An installed kdb.
    Kdb,
    /// A user's kdb.
    Ukdb,
    /// A database of another kind, found in a directory.
    Other,
}

impl ContentKind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Keys => "keys",
            Self::Kdb => "kdb",
            Self::Ukdb => "ukdb",
            Self::Other => "other",
        }
    }
}

/// Most kinds of reasons that are distinguished; a program that writes more of them has no log.
const MAX_KINDS: usize = 32;
/// How much of a line is shown, in characters.
const SHOWN: (usize, usize) = (90, 30);

/// Lines that can't be read, for one kind of reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Why the first of them can't be.
    pub why: String,
    /// What the user can do about it.
    pub hint: &'static str,
    /// How many lines.
    pub lines: u64,
    /// Number of the first of these lines, from 1.
    pub first: u64,
    /// The first of them, shortened, without control characters.
    pub text: String,
}

/// The lines of a file that can't be read, by kind of reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips(Vec<Skipped>);

impl Skips {
    /// Counts a line. Reasons are of one kind if they differ in numbers and in what they quote.
    pub fn add(&mut self, number: u64, line: &[u8], error: LineError) {
        let (why, hint) = (error.why.into_owned(), error.hint);
        let same = |known: &Skipped| kind(&known.why).eq(kind(&why));
        match self.0.iter().position(same) {
            Some(place) => self.0[place].lines += 1,
            None if self.0.len() == MAX_KINDS => self.0[MAX_KINDS - 1].lines += 1,
            None => {
                let text = shown(&String::from_utf8_lossy(line));
                self.0.push(Skipped { why, hint, lines: 1, first: number, text });
            }
        }
    }

    /// Adds the lines of another part of the file.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
        self.0.sort_by_key(|skipped| skipped.first);
    }

    /// Each kind, in the order of the first lines.
    pub fn iter(&self) -> std::slice::Iter<'_, Skipped> {
        self.0.iter()
    }

    /// Number of all lines.
    pub fn lines(&self) -> u64 {
        self.0.iter().map(|skipped| skipped.lines).sum()
    }
}

/// A reason without its numbers and quotations.
fn kind(why: &str) -> impl Iterator<Item = char> {
    let unquoted = why.split('`').step_by(2).flat_map(str::chars);
    unquoted.filter(|c| !c.is_ascii_digit())
}

fn shown(line: &str) -> String {
    let (head, tail) = SHOWN;
    let text = line.trim();
    let count = text.chars().count();
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    if count <= head + tail + 1 {
        return text.chars().map(escaped).collect();
    }
    let begin: String = text.chars().take(head).map(escaped).collect();
    let end: String = text.chars().skip(count - tail).map(escaped).collect();
    format!("{begin}…{end}")
}

/// Report on one file.
#[derive(Debug, Default)]
pub struct FileReport {
    /// The file as given by the user; `-` for the standard input.
    pub name: String,
    /// The kind of file.
    pub kind: ContentKind,
    /// Number of lines of a text, or of rows of a kdb.
    pub lines: u64,
    /// Number of those with a key or command that was read.
    pub used: u64,
    /// Lines with a key or command that can't be read.
    pub skipped: Skips,
    /// What a log has.
    pub seen: Seen,
    /// The error that ended reading.
    pub error: Option<Error>,
}
