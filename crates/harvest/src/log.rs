//! Parses MIOpen's log: extracts the messages about kernels that were looked
//! up, found, missed or saved from gigabytes of other text.
//!
//! ```
//! use gfxpack_harvest::log::{Event, Message};
//!
//! let line = b"MIOpen(HIP): Info2 [LoadBinary] Unable to load binary for: \"a.cl.o\"; \
//!     args:  -DX=1 -mcpu=gfx906";
//! let (_, message) = Message::in_line(line, false).remove(0);
//! let message = message?;
//! assert_eq!(message.event, Event::Missed);
//! assert_eq!(message.key().kernel_args, " -DX=1 -mcpu=gfx906");
//! # Ok::<(), gfxpack_harvest::LineError>(())
//! ```

mod commands;
mod lines;
mod text;

use std::borrow::Cow;

use gfxpack_model::KernelKey;
use memchr::{memchr, memmem};

pub use commands::DriverCommand;
pub(crate) use commands::Joined;
pub use lines::{Lines, Seen};
pub(crate) use text::Text;

/// Longest line that is parsed, in bytes: the largest key that a kdb accepts,
/// and the text before it.
pub const MAX_LINE_BYTES: usize = (1 << 20) + 4096;

/// The beginning of MIOpen's messages, after an optional prefix.
pub(crate) const BEGIN: &[u8] = b"MIOpen(";

const AS_WRITTEN: &str = "see whether the file is MIOpen's log, as it wrote it";

/// Why a line can't be used, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct LineError {
    /// The reason.
    pub why: Cow<'static, str>,
    /// What the user can do about it.
    pub hint: &'static str,
}

impl LineError {
    /// Another message begins before this one's end.
    pub const INTERLEAVED: Self = Self::new(
        "failed to find the message's end: another thread or process wrote into its line",
        "have each process write its own log; most keys are in it several times",
    );
    /// The line is not UTF-8.
    pub const NOT_UTF8: Self = Self::new("failed to read the key: it is not UTF-8", AS_WRITTEN);
    /// The name is missing, or can't be that of a source file.
    pub const NAME: Self = Self::new("failed to find the kernel's name", AS_WRITTEN);
    /// There are no arguments.
    pub const ARGS: Self = Self::new("failed to find the kernel's arguments", AS_WRITTEN);
    /// The text after `MIOpenDriver` is not one of its commands.
    pub const COMMAND: Self = Self::new(
        "failed to read the driver's command: it has shell syntax, as quotes, pipes or redirections",
        AS_WRITTEN,
    );
    /// The arguments do not end in a device: the line was cut.
    pub const DEVICE: Self = Self::new(
        "failed to find ` -mcpu=<device>` at the end of the arguments: the line is cut short",
        "see what cuts the log's lines: a terminal, or a limit of a log service",
    );

    /// An error whose reason is always the same.
    pub const fn new(why: &'static str, hint: &'static str) -> Self {
        Self { why: Cow::Borrowed(why), hint }
    }

    /// The line has more than [`MAX_LINE_BYTES`].
    pub fn too_long() -> Self {
        let why = format!("failed to read the line: it has more than {MAX_LINE_BYTES} bytes");
        Self { why: why.into(), hint: AS_WRITTEN }
    }
}

/// What is before the device in a key's arguments.
const DEVICE: &[u8] = b" -mcpu=";

/// What happened to a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// MIOpen is about to look it up.
    Asked,
    /// A database had it.
    Found,
    /// No database had it: it is compiled next.
    Missed,
    /// It was compiled, and is stored in the user's database.
    Saved,
}

/// One message about a kernel. Each has the whole key, so the order of the
/// threads' messages does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What happened.
    pub event: Event,
    /// The kernel's name in the line, without quotes.
    name: &'a str,
    /// The key's arguments, byte for byte.
    pub args: &'a str,
    /// Whether the name lacks the `.o` that it has in the database.
    without_suffix: bool,
}

impl<'a> Message<'a> {
    /// The end of `[LoadBinary] ` and `[SaveBinary] `, which every line with a message has.
    pub const MARK: &'static [u8] = b"Binary] ";

    /// The messages in a line: usually one, or several if threads wrote at the same time; `cut`
    /// means that the line was longer. Each comes with its text; instead of one that can't be
    /// trusted, there is a [`LineError`].
    pub fn in_line(line: &'a [u8], cut: bool) -> Vec<(&'a [u8], Result<Self, LineError>)> {
        let mut found = Vec::new();
        let mut rest = memmem::find(line, BEGIN).map_or(&[][..], |begin| &line[begin..]);
        while !rest.is_empty() {
            let next = memmem::find(&rest[BEGIN.len()..], BEGIN).map(|at| at + BEGIN.len());
            let (text, after) = rest.split_at(next.unwrap_or(rest.len()));
            if let Some((event, rest)) = event(text) {
                let message = match (closed(rest), next, cut) {
                    (Some(whole), ..) => message(event, whole),
                    (None, Some(_), _) => Err(LineError::INTERLEAVED),
                    (None, None, true) => Err(LineError::too_long()),
                    (None, None, false) => message(event, rest),
                };
                found.push((text, message));
            }
            rest = after;
        }
        found
    }

    /// The key that MIOpen looks up in its databases.
    pub fn key(&self) -> KernelKey {
        let suffix = if self.without_suffix { ".o" } else { "" };
        KernelKey { kernel_name: [self.name, suffix].concat(), kernel_args: self.args.to_owned() }
    }
}

/// A message up to its device, if a quote or bracket ends it, or a newline as programs write it in
/// quotes. Other characters may be written differently there, so it may have no backslash.
fn closed(text: &[u8]) -> Option<&[u8]> {
    const ENDS: [&[u8]; 7] = [b"'", b"\"", b"`", b")", b"]", b"\\n", b"\\r"];
    let device = memmem::rfind(text, DEVICE)? + DEVICE.len();
    let is_of_device = |b: &u8| b.is_ascii_alphanumeric() || b":+-".contains(b);
    let end = device + text[device..].iter().position(|b| !is_of_device(b))?;
    let is_closed = ENDS.iter().any(|one| text[end..].starts_with(one));
    (is_closed && !text[..end].contains(&b'\\')).then_some(&text[..end])
}

/// The event in a text that begins with `MIOpen(`, and the text after it.
///
/// Source: ROCm/MIOpen 2d1fd997a, `LoadBinary` and `SaveBinary` in
/// binary_cache.cpp and `LoggingPrefix` in logger.cpp; the misspelled word in
/// older releases.
fn event(text: &[u8]) -> Option<(Event, &[u8])> {
    let mark = memmem::find(text, Message::MARK)?;
    let (head, rest) = (&text[..mark], &text[mark + Message::MARK.len()..]);
    let bracket = memchr(b'[', head)?;
    let (head, function) = (&head[..bracket], &head[bracket + 1..]);
    // `MIOpen(HIP): Info2 `; times and dates may be in any of its gaps.
    if !head.contains(&b')') || !head.contains(&b':') {
        return None;
    }
    let verbs: &[(&str, Event)] = match function {
        b"Load" => &[
            ("Loading binary for: ", Event::Asked),
            ("Successfully loaded binary for: ", Event::Found),
            ("Sucessfully loaded binary for: ", Event::Found),
            ("Unable to load binary for: ", Event::Missed),
        ],
        b"Save" => &[("Saving binary for: ", Event::Saved)],
        _ => return None,
    };
    verbs.iter().find_map(|(verb, event)| Some((*event, rest.strip_prefix(verb.as_bytes())?)))
}

/// Parses `"X.cl.o"; args:  -DA=1 -mcpu=gfx906`; before MIOpen 3.3 without
/// quotes, and in old releases as `X.cl ;args:  …` (ROCm/MIOpen#427).
fn message(event: Event, text: &[u8]) -> Result<Message<'_>, LineError> {
    let text = str::from_utf8(text).map_err(|_| LineError::NOT_UTF8)?;
    const NOW: &str = "; args: ";
    const BEFORE: &str = " ;args: ";
    let at = text.find(NOW);
    let now = at.map(|at| (&text[..at], &text[at + NOW.len()..]));
    // The older separator could occur in the arguments, which are long, so only
    // the text before them is searched.
    let head = at.map_or(text, |at| &text[..at + NOW.len()]);
    let before = head.find(BEFORE).map(|at| (&text[..at], &text[at + BEFORE.len()..]));
    let without_suffix = before.is_some();
    let (name, args) = before.or(now).ok_or(LineError::ARGS)?;
    let unquoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    // MIOpen names a source that it has only in memory by its MD5 and size.
    let name = match unquoted.unwrap_or(name).split_once(" size=") {
        Some((name, size)) if size.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => unquoted.unwrap_or(name),
    };
    // `&quot;`, in a page of HTML.
    let plain = |c: char| !c.is_control() && !matches!(c, '"' | '\'' | '/' | '\\' | '&');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(LineError::NAME);
    }
    // A key ends in its device; terminals leave blanks.
    let args = if args.contains(" -mcpu=") { args.trim_ascii_end() } else { args };
    let mlir = name.ends_with(".mlir.o") || name.ends_with(".mlir");
    if split_device(args).is_none() && !mlir {
        return Err(LineError::DEVICE);
    }
    Ok(Message { event, name, args, without_suffix })
}

/// The device at the end of a key's arguments. MIOpen before 3.0 wrote features
/// after it, `gfx90a:sramecc+:xnack-`; `gfx11-generic` stands for several.
fn split_device(args: &str) -> Option<&str> {
    let (_, device) = args.rsplit_once(" -mcpu=")?;
    // A name that was cut in the middle is not a device.
    let (name, features) = device.split_once(':').unwrap_or((device, "xnack-"));
    let generic = name.strip_suffix("-generic");
    let digits = generic.unwrap_or(name).strip_prefix("gfx")?;
    let known = ["sramecc+", "sramecc-", "xnack+", "xnack-"];
    // `gfx103` is the beginning of `gfx1030`.
    let least = if generic.is_some() { 1 } else { 3 + usize::from(digits.starts_with('1')) };
    let plain = digits.len() >= least
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || (generic.is_some() && b == b'-'))
        && features.split(':').all(|feature| known.contains(&feature));
    plain.then_some(device)
}

#[cfg(test)]
mod tests;
