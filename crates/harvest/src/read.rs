//! Reads the keys of one input: a log, a harvest, or a kdb.

use std::ffi::OsStr;
use std::io::{self, BufRead, Read as _};
use std::path::Path;

use gfxpack_kdb::{ReadError, Reader};
use gfxpack_model::Target;
use gfxpack_model::key_record::{Counts, KeyRecord};

use crate::error::HarvestError;
use crate::gather::Table;
use crate::input::Input;
use crate::log::{Event, Log, LogRecord};
use crate::open::{Opened, first_line, open, pieces};
use crate::options::Options;
use crate::report::{ContentKind, FileReport, Skip};

/// Longest line of a harvest that is read, in bytes: the largest key that a kdb
/// accepts, with every byte escaped, and the rest.
const MAX_RECORD_BYTES: u64 = 8 << 20;
/// Rows of a kdb between two checks for cancellation.
const ROWS_AT_ONCE: u64 = 1024;

/// Adds an input's keys to the table.
pub(crate) fn keys(input: &Input, table: &mut Table, options: &Options<'_>) -> FileReport {
    let report = FileReport::new(input.name());
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
    fn read(&mut self, input: &Input) -> Result<(), HarvestError> {
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
        let (first, stream) = first_line(stream).map_err(&failed)?;
        if first.starts_with(b"{") && String::from_utf8_lossy(&first).contains("\"kernel_name\"") {
            self.report.kind = ContentKind::Keys;
            return self.records(stream, failed);
        }
        let mut log = Log::default();
        pieces(stream, failed, |piece| {
            log.push(piece, &mut |record| self.log_record(&record));
            options.check()
        })?;
        self.report.lines = log.finish(&mut |record| self.log_record(&record));
        Ok(())
    }

    fn log_record(&mut self, record: &LogRecord<'_>) {
        let message = match &record.message {
            Ok(message) => message,
            Err(error) => return self.report.skip(record.line, Skip::Log(*error)),
        };
        if message.args.contains('\0') {
            return self.report.skip(record.line, Skip::Nul);
        }
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

    /// Adds a key, whose text is in parts: the name, a NUL, the arguments.
    fn add<const N: usize>(&mut self, key: [&str; N], counts: &Counts, targets: &[String]) {
        self.buffer.clear();
        key.iter().for_each(|part| self.buffer.push_str(part));
        self.table.add(&self.buffer, counts, targets);
    }

    fn records(
        &mut self,
        mut stream: impl BufRead,
        failed: impl Fn(io::Error) -> HarvestError,
    ) -> Result<(), HarvestError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = stream.by_ref().take(MAX_RECORD_BYTES);
            if limited.read_until(b'\n', &mut line).map_err(&failed)? == 0 {
                return Ok(());
            }
            self.report.lines += 1;
            if line.len() as u64 == MAX_RECORD_BYTES && !line.ends_with(b"\n") {
                self.report.skip(self.report.lines, Skip::Record);
                stream.skip_until(b'\n').map_err(&failed)?;
                continue;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<KeyRecord>(&line) {
                Ok(record) => self.record(&record),
                Err(_) => self.report.skip(self.report.lines, Skip::Record),
            }
            self.options.check()?;
        }
    }

    fn record(&mut self, KeyRecord { key, counts, targets }: &KeyRecord) {
        if key.kernel_name.contains('\0') || key.kernel_args.contains('\0') {
            return self.report.skip(self.report.lines, Skip::Nul);
        }
        self.report.used += 1;
        self.add([&key.kernel_name, "\0", &key.kernel_args], counts, targets);
    }

    fn kdb(&mut self, input: &Input) -> Result<(), HarvestError> {
        let Input::File { path, bytes, named } = input else { return Ok(()) };
        let is_users = has_extension(path, "ukdb");
        self.report.kind = if is_users { ContentKind::Ukdb } else { ContentKind::Kdb };
        let reader = match Reader::open_at_rest(path) {
            Err(ReadError::Schema { .. }) if !named => {
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
                self.report.skip(self.report.lines, Skip::Nul);
                return Ok(());
            }
            self.report.used += 1;
            self.add([&key.kernel_name, "\0", &key.kernel_args], &counts, &targets);
            if self.report.lines.is_multiple_of(ROWS_AT_ONCE) {
                self.options.check()?;
            }
            Ok::<(), HarvestError>(())
        });
        self.options.count(*bytes);
        read
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
