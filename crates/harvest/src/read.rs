//! Reads the keys of one input: a log, a harvest, or a kdb.

use std::ffi::OsStr;
use std::path::Path;

use gfxpack_kdb::{KdbErrorKind, Reader};
use gfxpack_model::key_record::{Counts, KeyRecord};
use gfxpack_model::{Error, Result, Target};
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
    let mut reader = Keys { table, options, report, buffer: String::new() };
    if let Err(error) = reader.read(input) {
        reader.report.error = Some(error);
    }
    reader.report
}

struct Keys<'a> {
    table: &'a mut Table,
    options: &'a Options<'a>,
    report: FileReport,
    buffer: String,
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
            match message {
                Ok(message) if !message.args.contains('\0') => self.message(&message),
                Ok(_) => self.skip(number, text, NUL),
                Err(error) => self.skip(number, text, error),
            }
        }
    }

    fn message(&mut self, message: &Message<'_>) {
        self.report.used += 1;
        let mut counts = Counts::default();
        match message.event {
            Event::Asked => counts.seen = 1,
            Event::Found => counts.hits = 1,
            Event::Missed => counts.misses = 1,
            Event::Saved => counts.saved = 1,
        }
        let [name, suffix] = message.name_parts();
        self.add([name, suffix, "\0", message.args], &counts, &[]);
    }

    fn skip(&mut self, number: u64, line: &[u8], error: LineError) {
        self.report.skipped.add(number, line, error);
    }

    /// Adds a key, whose text is in parts: the name, a NUL, the arguments.
    fn add<const N: usize>(&mut self, key: [&str; N], counts: &Counts, targets: &[String]) {
        self.buffer.clear();
        key.iter().for_each(|part| self.buffer.push_str(part));
        self.table.add(&self.buffer, counts, targets);
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
                Some((key, end)) => {
                    self.record((number, line), key);
                    rest = &rest[end..];
                }
                None => {
                    self.skip(number, line, RECORD);
                    rest = &rest[name + NAME.len()..];
                }
            }
        }
        if rest.len() == line.len() && memmem::find(line, Message::MARK).is_some() {
            self.messages(number, line, cut);
        } else if rest.len() == line.len() && !line.iter().all(|b| b"[], \t".contains(b)) {
            self.skip(number, line, RECORD);
        }
    }

    fn record(&mut self, (number, line): (u64, &[u8]), record: KeyRecord) {
        let KeyRecord { key, counts, targets, .. } = record;
        if key.kernel_name.contains('\0') || key.kernel_args.contains('\0') {
            return self.skip(number, line, NUL);
        }
        self.report.used += 1;
        self.add([&key.kernel_name, "\0", &key.kernel_args], &counts, &targets);
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
            if key.kernel_name.contains('\0') || key.kernel_args.contains('\0') {
                let name = key.kernel_name.as_bytes();
                self.report.skipped.add(self.report.lines, name, NUL);
                return Ok(());
            }
            self.report.used += 1;
            self.add([&key.kernel_name, "\0", &key.kernel_args], &counts, &targets);
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
