//! The only place that writes to stdout and stderr: data on stdout, all else
//! on stderr; with JSON, everything as one object a line on stdout.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clap::builder::styling::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;
use serde_json::json;

use gfxpack_pipeline::destination::replace;
use gfxpack_pipeline::error::{Error, io};
use gfxpack_pipeline::message_file::{MessageFile, write_line};
pub(crate) use gfxpack_pipeline::text::{counted, display as shown, if_any, joined, size};

use crate::args::{Common, MessageFormat, When};

/// Version of the JSON messages.
const MESSAGE_FORMAT: u32 = 1;

/// One line for machines.
#[derive(Serialize)]
struct Message<'a, T> {
    format: u32,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

/// How to talk.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// Whether stdout has messages for machines, and nothing else.
    pub(crate) json: bool,
    /// Whether messages for machines are wanted at all.
    pub(crate) messages: bool,
    /// Where they go beside the text.
    file: Option<Arc<MessageFile>>,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) bars: bool,
    /// Whether stderr has colours.
    pub(crate) colors: bool,
    /// One of the bars that are drawn.
    drawn: Arc<Mutex<Option<ProgressBar>>>,
    broken: Arc<OnceLock<std::io::Error>>,
    building: Arc<AtomicBool>,
}

impl Output {
    pub(crate) fn new(common: &Common, colors: bool) -> Self {
        console::set_colors_enabled_stderr(colors);
        let json = common.message_format == MessageFormat::Json;
        // Where they would be hidden, as on TERM=dumb, lines are told instead.
        let wanted = common.progress != When::Never && !ProgressDrawTarget::stderr().is_hidden();
        Self {
            json,
            messages: json,
            file: None,
            quiet: common.quiet,
            verbose: common.verbose > 0,
            bars: wanted && !json && !common.quiet,
            colors,
            drawn: Arc::default(),
            broken: Arc::default(),
            building: Arc::default(),
        }
    }

    /// The same with messages for machines in a file, if one is named.
    ///
    /// # Errors
    /// Where it can't be written.
    pub(crate) fn with_file(self, path: Option<&Path>) -> Result<Self, Error> {
        let file = path.map(MessageFile::create).transpose()?.map(Arc::new);
        Ok(Self { messages: self.messages || file.is_some(), file, ..self })
    }

    /// A line for another program, whatever the mode. If it can't be written, [`Output::finish`] says so at
    /// the end of the run: a build is not given up because its reader is.
    pub(crate) fn raw(&self, line: &str) {
        if self.is_broken() {
            return;
        }
        if let Err(error) = writeln!(std::io::stdout().lock(), "{line}") {
            self.broken.set(error).ok();
        }
    }

    /// A line of data for people: with JSON, a message says the same.
    pub(crate) fn text(&self, line: &str) {
        if !self.json {
            self.raw(line);
        }
    }

    /// The same out of somebody's file: as it is, but for what a terminal would
    /// take for commands.
    pub(crate) fn foreign(&self, line: &str) {
        if std::io::stdout().is_terminal() {
            self.text(&harmless(line));
        } else {
            self.text(line);
        }
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.get().is_some()
    }

    /// Whether all was written, to the file for messages too. A reader that had
    /// enough (`| head`) is no error where data was all that was asked for.
    ///
    /// # Errors
    /// The first error.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        // What was still in the buffer may be what nobody reads any more.
        if let Err(error) = std::io::stdout().lock().flush() {
            self.broken.set(error).ok();
        }
        if let Some(error) = self.broken.get()
            && (self.building.load(Ordering::Relaxed) || error.kind() != ErrorKind::BrokenPipe)
        {
            let error = std::io::Error::new(error.kind(), error.to_string());
            return Err(io("write", Path::new("stdout"))(error));
        }
        self.file.as_ref().map_or(Ok(()), |file| file.finish())
    }

    /// From now on something is made, so a reader that leaves is an error.
    pub(crate) fn building(&self) {
        self.building.store(true, Ordering::Relaxed);
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        if let Err(error) = std::io::stdout().lock().write_all(bytes) {
            self.broken.set(error).ok();
        }
    }

    /// Bytes for a file, or for stdout if none is named.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub(crate) fn put(&self, out: Option<&PathBuf>, bytes: &[u8]) -> Result<(), Error> {
        match to_file(out) {
            Some(path) => replace(path, bytes),
            None => {
                self.bytes(bytes);
                Ok(())
            }
        }
    }

    /// A message for machines, if they are wanted. The body is a struct or a
    /// map.
    pub(crate) fn message(&self, kind: &str, body: &impl Serialize) {
        let message = Message { format: MESSAGE_FORMAT, kind, body };
        if let Some(file) = &self.file {
            file.line(&message);
        }
        if !self.json || self.is_broken() {
            return;
        }
        if let Err(error) = write_line(std::io::stdout().lock(), &message) {
            self.broken.set(error).ok();
        }
    }

    /// What a program that gfxpack runs wrote to stderr. Where nobody reads it,
    /// the program goes on.
    pub(crate) fn pass_on(&self, text: &[u8]) {
        std::io::stderr().write_all(text).ok();
    }

    /// A line for people, on stderr.
    pub(crate) fn say(&self, line: &str) {
        if !self.json && !self.quiet {
            self.stderr(line);
        }
    }

    /// Bars are drawn, of which this is one, or none any more.
    pub(crate) fn draws(&self, bar: Option<&ProgressBar>) {
        *self.drawn.lock().unwrap_or_else(PoisonError::into_inner) = bar.cloned();
    }

    /// A line for people, above the bars if there are any.
    pub(crate) fn say_above(&self, line: &str) {
        self.above(|| self.say(line));
    }

    fn above(&self, say: impl FnOnce()) {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match drawn {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// Something to be known.
    pub(crate) fn note(&self, note: &str) {
        self.message("note", &json!({ "message": note }));
        self.say(&format!("note: {note}"));
    }

    /// A line that quiet people want too.
    pub(crate) fn warn(&self, line: &str) {
        self.message("warning", &json!({ "message": line }));
        self.show_warning(line);
    }

    /// The same for people only: programs get it in another message.
    pub(crate) fn show_warning(&self, line: &str) {
        if !self.json {
            self.stderr(&format!(
                "{} {}",
                self.head("warning:", AnsiColor::Yellow),
                harmless_lines(line)
            ));
        }
    }

    /// The same, above the bars if there are any.
    pub(crate) fn warn_above(&self, line: &str) {
        self.above(|| self.warn(line));
    }

    /// What ended the program.
    pub(crate) fn error(&self, messages: &[String], hint: Option<&str>, code: u8) {
        let body = json!({ "messages": messages, "hint": hint, "exit_code": code });
        self.message("error", &body);
        if self.json {
            return;
        }
        for message in messages {
            self.stderr(&format!(
                "{} {}",
                self.head("error:", AnsiColor::Red),
                harmless_lines(message)
            ));
        }
        if let Some(hint) = hint {
            self.hint(hint);
        }
    }

    /// What to do about what was said.
    pub(crate) fn hint(&self, hint: &str) {
        self.stderr(&format!("{} {}", self.head("hint:", AnsiColor::Cyan), harmless_lines(hint)));
    }

    /// The word that a line begins with.
    fn head(&self, word: &str, color: AnsiColor) -> String {
        if !self.colors {
            return word.to_owned();
        }
        let style = color.on_default().bold();
        format!("{style}{word}{style:#}")
    }

    /// A line on stderr whatever the mode.
    pub(crate) fn stderr(&self, line: &str) {
        // Nobody can be told that stderr is gone.
        writeln!(std::io::stderr().lock(), "{line}").ok();
    }
}

/// A message for machines, of this type and with these fields, which are only
/// made if it is wanted.
macro_rules! message {
    ($to:expr, $kind:literal, $body:tt) => {
        if $to.messages {
            $to.message($kind, &serde_json::json!($body));
        }
    };
}
pub(crate) use message;

/// The file that is written; none for stdout, which `-` stands for too.
pub(crate) fn to_file(out: Option<&PathBuf>) -> Option<&Path> {
    out.map(PathBuf::as_path).filter(|out| *out != Path::new("-"))
}

/// Text from a file, for a terminal: control characters are escaped.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

/// The same of text that may have several lines, as where it quotes a file.
fn harmless_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() && c != '\n' && c != '\t')
}

fn escaped(text: &str, is_harm: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_harm) {
        return text.into();
    }
    let escape = |c: char| if is_harm(c) { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(escape).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn terminals_are_not_told_what_to_do() {
        assert_eq!(super::harmless("naïve -DX"), "naïve -DX");
        assert_eq!(super::harmless("a\u{1b}]0;x\u{7}\t"), "a\\u{1b}]0;x\\u{7}\\t");
        assert_eq!(super::harmless_lines("1 |\ta\n\r\u{9b}1m"), "1 |\ta\n\\r\\u{9b}1m");
    }
}
