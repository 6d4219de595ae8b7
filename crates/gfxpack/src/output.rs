//! The only module that writes to stdout and stderr: data goes to stdout, all
//! else to stderr; with JSON, everything goes to stdout, one object per line.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clap::builder::styling::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;
use serde_json::json;

use gfxpack_pipeline::destination::replace_lines;
use gfxpack_pipeline::error::{self, Error};
pub(crate) use gfxpack_pipeline::text::{counted, display, if_any, joined, size};

use crate::args::Common;

const MESSAGE_FORMAT: u32 = 1;

/// A message for machines.
#[derive(Serialize)]
struct Message<'a, T> {
    format: u32,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

/// A file of messages, besides the text. Any thread may write.
#[derive(Debug)]
struct MessageFile {
    path: PathBuf,
    file: Mutex<File>,
    /// The first error, after which nothing more is written.
    broken: OnceLock<io::Error>,
}

/// Writes text for people and messages for machines.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// Whether stdout has only messages for machines.
    pub(crate) json: bool,
    /// Whether messages for machines are written at all.
    pub(crate) messages: bool,
    /// The file for messages in addition to the text.
    file: Option<Arc<MessageFile>>,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) bars: bool,
    /// Whether stderr has colours.
    pub(crate) colors: bool,
    /// Whether stdout has colours.
    data_colors: bool,
    /// One of the bars on the terminal.
    drawn: Arc<Mutex<Option<ProgressBar>>>,
    broken: Arc<OnceLock<io::Error>>,
    building: Arc<AtomicBool>,
}

impl Output {
    pub(crate) fn new(common: &Common, colors: bool, data_colors: bool) -> Self {
        console::set_colors_enabled_stderr(colors);
        let json = common.json.as_deref() == Some(Path::new("-"));
        // If bars would be hidden, as with TERM=dumb, progress is printed as lines.
        let wanted = !ProgressDrawTarget::stderr().is_hidden();
        Self {
            json,
            messages: json,
            file: None,
            quiet: common.quiet,
            verbose: common.verbose > 0,
            bars: wanted && !json && !common.quiet,
            colors,
            data_colors,
            drawn: Arc::default(),
            broken: Arc::default(),
            building: Arc::default(),
        }
    }

    /// The output with messages for machines in a file, if one is given and it is not stdout.
    pub(crate) fn with_file(self, path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path.filter(|_| !self.json) else { return Ok(self) };
        let file = File::create(path).map_err(|error| {
            error::usage(
                format!("failed to write `{}`: {error}", path.display()),
                "name a file in a directory that is there",
            )
        })?;
        let (path, file) = (path.to_owned(), Mutex::new(file));
        let file = Some(Arc::new(MessageFile { path, file, broken: OnceLock::new() }));
        Ok(Self { messages: true, file, ..self })
    }

    /// Prints a line for another program, in every mode. If that fails, [`Output::finish`] returns
    /// the error at the end of the run: a build continues even if nobody reads its output.
    pub(crate) fn raw(&self, line: &str) {
        if self.is_broken() {
            return;
        }
        if let Err(error) = writeln!(std::io::stdout().lock(), "{line}") {
            self.broken.set(error).ok();
        }
    }

    /// Prints data for people. With JSON, a message has the same content.
    pub(crate) fn text(&self, text: &str) {
        if !self.json {
            self.raw(&harmless_lines(text));
        }
    }

    /// Like [`Output::text`], with the words that it begins with in these colours on a terminal.
    pub(crate) fn painted(&self, words: &[(&str, AnsiColor)], text: &str) {
        if self.json {
            return;
        }
        let painted = |line: &str| {
            let rest = line.trim_start();
            let blanks = &line[..line.len() - rest.len()];
            let with = |(word, color): &(&str, AnsiColor)| {
                let after = rest.strip_prefix(word)?;
                self.data_colors.then(|| format!("{blanks}{}{after}", paint(word, *color)))
            };
            words.iter().find_map(with).unwrap_or_else(|| line.to_owned())
        };
        let lines: Vec<String> = harmless_lines(text).split('\n').map(painted).collect();
        self.raw(&lines.join("\n"));
    }

    /// Whether the reader of stdout has gone.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.get().is_some()
    }

    /// Whether all was written, including the file for messages. That a reader
    /// has gone (`| head`) is no error if only data was requested.
    ///
    /// # Errors
    /// The first write error.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        // The reader may have gone before the last buffer is flushed.
        if let Err(error) = std::io::stdout().lock().flush() {
            self.broken.set(error).ok();
        }
        if let Some(error) = self.broken.get()
            && (self.building.load(Ordering::Relaxed) || error.kind() != ErrorKind::BrokenPipe)
        {
            return Err(error::io("write", Path::new("stdout"))(copied(error)));
        }
        let broken = self.file.as_ref().and_then(|file| Some((file, file.broken.get()?)));
        broken.map_or(Ok(()), |(file, error)| Err(error::io("write", &file.path)(copied(error))))
    }

    /// From now on files are written, so a reader that has gone is an error.
    pub(crate) fn building(&self) {
        self.building.store(true, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) {
        if let Err(error) = std::io::stdout().lock().write_all(bytes) {
            self.broken.set(error).ok();
        }
    }

    /// Writes lines of JSON to a file, or, if none is given, to stdout, where each is also a message.
    pub(crate) fn put_lines(
        &self,
        out: Option<&PathBuf>,
        kind: &str,
        lines: &[impl Serialize],
    ) -> Result<(), Error> {
        if let Some(out) = to_file(out) {
            return replace_lines(out, lines);
        }
        for line in lines {
            self.message(kind, line);
            self.text(&serde_json::to_string(line).map_err(error::json)?);
        }
        Ok(())
    }

    /// Writes a message for machines, if they are wanted. The body must be a
    /// struct or a map.
    pub(crate) fn message(&self, kind: &str, body: &impl Serialize) {
        let message = Message { format: MESSAGE_FORMAT, kind, body };
        if let Some(MessageFile { file, broken, .. }) = self.file.as_deref() {
            let file = &*file.lock().unwrap_or_else(PoisonError::into_inner);
            if broken.get().is_none()
                && let Err(error) = write_line(file, &message)
            {
                broken.set(error).ok();
            }
        }
        if !self.json || self.is_broken() {
            return;
        }
        if let Err(error) = write_line(std::io::stdout().lock(), &message) {
            self.broken.set(error).ok();
        }
    }

    /// Passes on what a program that gfxpack runs wrote to stderr. Write errors
    /// are ignored, so that the program continues.
    pub(crate) fn pass_on(&self, text: &[u8]) {
        std::io::stderr().write_all(text).ok();
    }

    /// Prints a line for people on stderr.
    pub(crate) fn info(&self, line: &str) {
        if !self.json && !self.quiet {
            self.stderr(line);
        }
    }

    /// Sets one of the bars that are drawn now, or none.
    pub(crate) fn draws(&self, bar: Option<&ProgressBar>) {
        *self.drawn.lock().unwrap_or_else(PoisonError::into_inner) = bar.cloned();
    }

    /// Prints above the bars if there are any.
    pub(crate) fn above(&self, print: impl FnOnce()) {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match drawn {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(crate) fn note(&self, note: &str) {
        self.message("note", &json!({ "message": note }));
        self.info(&format!("note: {note}"));
    }

    /// Prints a warning, also with --quiet.
    pub(crate) fn warn(&self, line: &str) {
        self.message("warning", &json!({ "message": line }));
        self.show_warning(line);
    }

    /// Prints a warning for people only; machines get another message.
    pub(crate) fn show_warning(&self, line: &str) {
        if !self.json {
            self.headed(&self.head("warning:", AnsiColor::Yellow), line);
        }
    }

    /// Reports the error that ended the program.
    pub(crate) fn error(&self, messages: &[String], hint: Option<&str>, code: u8) {
        let body = json!({ "messages": messages, "hint": hint, "exit_code": code });
        self.message("error", &body);
        if self.json {
            return;
        }
        for message in messages {
            self.headed(&self.head("error:", AnsiColor::Red), message);
        }
        if let Some(hint) = hint {
            self.hint(hint);
        }
    }

    /// Prints what to do about the line before.
    pub(crate) fn hint(&self, hint: &str) {
        self.headed(&self.head("hint:", AnsiColor::Cyan), hint);
    }

    /// The beginning of a line, such as `warning:`.
    fn head(&self, word: &str, color: AnsiColor) -> String {
        if self.colors { paint(word, color) } else { word.to_owned() }
    }

    fn headed(&self, head: &str, text: &str) {
        self.command(&format!("{head} {}", harmless_lines(text)));
    }

    /// Prints text on stderr in every mode.
    pub(crate) fn stderr(&self, text: &str) {
        self.command(&harmless_lines(text));
    }

    /// Prints a line on stderr as it is, in every mode: a command to whoever reads the log.
    pub(crate) fn command(&self, line: &str) {
        // An error of stderr can't be reported anywhere.
        writeln!(std::io::stderr().lock(), "{line}").ok();
    }
}

fn copied(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// Serializes a message directly to `out`, and at once, so that it is there even if the build is
/// killed. The one for a plan with many jobs takes hundreds of megabytes.
fn write_line(out: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    serde_json::to_writer(&mut out, message)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn paint(word: &str, color: AnsiColor) -> String {
    let style = color.on_default().bold();
    format!("{style}{word}{style:#}")
}

/// Writes a message for machines of this type with these fields, which are only
/// computed if messages are wanted.
macro_rules! message {
    ($to:expr, $kind:literal, $body:tt) => {
        if $to.messages {
            $to.message($kind, &serde_json::json!($body));
        }
    };
}
pub(crate) use message;

/// The file to write; `None` for stdout, also given as `-`.
pub(crate) fn to_file(out: Option<&PathBuf>) -> Option<&Path> {
    out.map(PathBuf::as_path).filter(|out| *out != Path::new("-"))
}

/// Text of unknown origin as one line: control characters are escaped.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

/// Like [`harmless`], for text that may have several lines, such as a quoted file. No line is a
/// command to a CI service that reads it in a log.
///
/// Source: actions/runner, `ActionCommand.cs`: `::` after blanks, `##[` anywhere; Azure Pipelines,
/// "Logging commands"; TeamCity, "Service Messages".
fn harmless_lines(text: &str) -> Cow<'_, str> {
    const ANYWHERE: [&str; 3] = ["##[", "##vso[", "##teamcity["];
    let text = escaped(text, |c| c.is_control() && c != '\n' && c != '\t');
    if !text.contains("::") && !text.contains("##") {
        return text;
    }
    let line = |line: &str| {
        let rest = line.trim_start();
        let blanks = &line[..line.len() - rest.len()];
        let line =
            if rest.starts_with("::") { format!("{blanks}\\{rest}") } else { line.to_owned() };
        ANYWHERE
            .iter()
            .fold(line, |line, begin| line.replace(begin, &format!("#\\{}", &begin[1..])))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n").into()
}

fn escaped(text: &str, is_harm: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_harm) {
        return text.into();
    }
    let escape = |c: char| if is_harm(c) { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(escape).collect::<String>().into()
}
