//! Reads the keys of one input: a log, a harvest, or a kdb.

use std::ffi::OsStr;
use std::path::Path;

use gfxpack_kdb::{KdbErrorKind, Reader};
use gfxpack_model::key_record::{Counts, KeyRecord};
use gfxpack_model::{Error, KernelKey, Result, Target};
use memchr::{memchr, memmem, memrchr};
use serde_json::Deserializer;

use crate::gather::Table;
use crate::input::Input;
use crate::log::{Event, LineError, Lines, Message, Text};
use crate::open::{Opened, Options, PIECE_BYTES, open, peek, pieces};
use crate::report::{ContentKind, FileReport};

const NAME: &[u8] = b"\"kernel_name\"";
const RECORD: LineError = LineError::new(
    "failed to read the line: it is no JSON object with kernel_name and kernel_args",
    "docs/harvest.md describes the lines",
);
const NUL: LineError = LineError::new(
    "failed to accept the key: it holds a NUL byte",
    "see whether the file is what its program wrote",
);
/// Rows of a kdb between two checks for cancellation.
const ROWS_AT_ONCE: u64 = 1024;

/// Adds an input's keys to the table.
pub(crate) fn keys(input: &Input, table: &mut Table, options: &Options<'_>) -> FileReport {
    let report = FileReport { name: input.name(), ..FileReport::default() };
    let mut reader = Keys { table, options, report };
    reader.report.error = reader.read(input).err();
    reader.report
}

struct Keys<'a> {
    table: &'a mut Table,
    options: &'a Options<'a>,
    report: FileReport,
}

impl Keys<'_> {
    fn read(&mut self, input: &Input) -> Result {
        let options = self.options;
        let Opened::Text { stream, failed } = open(input, options)? else {
            return self.kdb(input);
        };
        if let Input::File { path, .. } = input
            && (has_extension(path, "kdb") || has_extension(path, "ukdb"))
        {
            // The kdb reader gives the best error message.
            return self.kdb(input);
        }
        let (begin, stream) = peek(stream, PIECE_BYTES).map_err(&failed)?;
        let begin = Text::default().clean(&begin);
        let names = [NAME, b"\"kernel_name\\\""].map(memmem::Finder::new);
        let has_keys = names.iter().any(|name| name.find(&begin).is_some());
        let mut lines = if has_keys { Lines::all() } else { Lines::with(Message::MARK) };
        let mut each = |number, line: &[u8], cut| {
            if has_keys {
                self.line(number, line, cut);
            } else {
                self.messages(number, line, cut);
            }
        };
        pieces(stream, failed, |piece| {
            lines.push(piece, &mut each);
            options.check()
        })?;
        let seen = lines.seen();
        let count = lines.finish(&mut each);
        self.report.lines = count;
        if has_keys {
            self.report.kind = ContentKind::Keys;
        } else {
            self.report.seen = seen;
        }
        Ok(())
    }

    fn messages(&mut self, number: u64, line: &[u8], cut: bool) {
        for (text, message) in Message::in_line(line, cut) {
            let message = match message {
                Ok(message) => message,
                Err(error) => {
                    self.report.skipped.add(number, text, error);
                    continue;
                }
            };
            let mut counts = Counts::default();
            match message.event {
                Event::Asked => counts.seen = 1,
                Event::Found => counts.hits = 1,
                Event::Missed => counts.misses = 1,
                Event::Saved => counts.saved = 1,
            }
            self.add((number, text), &message.key(), &counts, &[]);
        }
    }

    /// Adds a key of this line, or of a row.
    fn add(
        &mut self,
        (number, line): (u64, &[u8]),
        key: &KernelKey,
        counts: &Counts,
        targets: &[String],
    ) {
        if key.kernel_name.contains('\0') || key.kernel_args.contains('\0') {
            return self.report.skipped.add(number, line, NUL);
        }
        self.report.used += 1;
        self.table.add(key, counts, targets);
    }

    /// Reads a line of a harvest, or of a log that has such lines. Log tools may have written
    /// before a key, and a list in JSON may have several in a line.
    fn line(&mut self, number: u64, line: &[u8], cut: bool) {
        let mut rest = line;
        while let Some(name) = memmem::find(rest, NAME) {
            let record = |at: usize| {
                let mut records = Deserializer::from_slice(&rest[at..]).into_iter();
                let record = records.next()?.ok()?;
                let end = at + records.byte_offset();
                // Of lists, quotes and comments.
                let next = rest[end..].trim_ascii_start().first();
                next.is_none_or(|next| b",]{'`#".contains(next)).then_some((record, end))
            };
            let found = key_begins(rest).and_then(record);
            let found = found.or_else(|| record(memrchr(b'{', &rest[..name])?));
            match found {
                Some((KeyRecord { key, counts, targets, .. }, end)) => {
                    self.add((number, line), &key, &counts, &targets);
                    rest = &rest[end..];
                }
                None => {
                    self.report.skipped.add(number, line, RECORD);
                    rest = &rest[name + NAME.len()..];
                }
            }
        }
        if rest.len() == line.len() && memmem::find(line, Message::MARK).is_some() {
            self.messages(number, line, cut);
        } else if rest.len() == line.len() && !line.iter().all(|b| b"[], \t".contains(b)) {
            self.report.skipped.add(number, line, RECORD);
        }
    }

    fn kdb(&mut self, input: &Input) -> Result {
        let Input::File { path, bytes, named } = input else { return Ok(()) };
        let is_users = has_extension(path, "ukdb");
        self.report.kind = if is_users { ContentKind::Ukdb } else { ContentKind::Kdb };
        let reader = match Reader::open_at_rest(path) {
            Err(error) if error.kind() == KdbErrorKind::OtherTable && !named => {
                self.report.kind = ContentKind::Other;
                return Ok(());
            }
            other => other?,
        };
        let mut counts = Counts::default();
        *(if is_users { &mut counts.ukdbs } else { &mut counts.kdbs }) = 1;
        let target = path.file_stem().and_then(OsStr::to_str);
        let target = target.and_then(|stem| stem.parse::<Target>().ok());
        let targets: Vec<String> = target.iter().map(Target::to_string).collect();
        let read = reader.for_each_key(|key| {
            self.report.lines += 1;
            let row = (self.report.lines, key.kernel_name.as_bytes());
            self.add(row, &key, &counts, &targets);
            if self.report.lines.is_multiple_of(ROWS_AT_ONCE) {
                self.options.check()?;
            }
            Ok::<(), Error>(())
        });
        self.options.count(*bytes);
        read
    }
}

/// Where a key begins in a line of a harvest; at its beginning, where no program wrote more.
pub fn key_begins(line: &[u8]) -> Option<usize> {
    let name = memmem::find(line, NAME)?;
    memchr(b'{', &line[..name])
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
