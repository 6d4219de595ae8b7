//! Splits a kdb into parts, which merge back into the same bytes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use gfxpack_model::KernelKey;

use crate::codec;
use crate::copy::cursor::Cursor;
use crate::copy::error::CopyError;
use crate::copy::transfer::{CopyOptions, transfer};
use crate::encode::Encoded;
use crate::error::WriteError;
use crate::layout::Layout;
use crate::write::sink::{Sink, Written};

/// How rows are divided into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitBy {
    /// One part for each kernel name.
    Kernel,
    /// As many rows as fit into a file of that many bytes. A larger row gets a
    /// file of its own.
    Size(u64),
}

/// A part that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// `<dir>/<kernel name or number>/<the kdb's own file name>`.
    pub path: PathBuf,
    /// Counts of its content.
    pub written: Written,
}

/// Pages that a row may take in addition to those that its bytes fill: the last
/// page of its blob and of its key, and the growth of the trees, side tables
/// included.
const PAGES_OF_A_ROW: u64 = 16;

/// Writes the rows of a kdb into several, each in its own directory below
/// `dir`, under the kdb's own file name, since that names its target. `each` is
/// called for every finished part.
///
/// # Errors
/// [`CopyError`]; finished parts stay. [`CopyError::OldParts`] if an earlier
/// split left others in `dir`: all parts of this one are then written.
pub fn split(
    input: &Path,
    dir: &Path,
    by: SplitBy,
    options: &CopyOptions<'_>,
    mut each: impl FnMut(&Part),
) -> Result<(), CopyError> {
    let mut cursor = Cursor::open(input, options.max_object_bytes)?;
    let layout = options.layout.unwrap_or(cursor.reader().layout());
    let file_name = input.file_name().unwrap_or(OsStr::new("parts.kdb"));
    let mut old = parts_in(dir, file_name);
    let mut parts = Parts { dir, file_name, by, layout, open: None, count: 0 };
    let mut each = |part: &Part| {
        old.remove(&part.path);
        each(part);
    };
    transfer(
        options,
        cursor.count(options)?,
        || cursor.next_in_transit(),
        |key, encoded, note| {
            if !parts.fits(&key, &encoded)?
                && let Some(part) = parts.finish()?
            {
                each(&part);
            }
            Ok(parts.sink(&key)?.add(&key, &encoded, &note)?)
        },
    )?;
    if let Some(part) = parts.finish()? {
        each(&part);
    }
    if old.is_empty() {
        return Ok(());
    }
    Err(CopyError::OldParts { dir: dir.to_owned(), parts: old.into_iter().collect() })
}

/// Files at the places where a split of `file_name` would put its parts.
fn parts_in(dir: &Path, file_name: &OsStr) -> BTreeSet<PathBuf> {
    let below = std::fs::read_dir(dir).into_iter().flatten().flatten();
    below
        .map(|below| dir.join(below.file_name()).join(file_name))
        .filter(|it| it.exists())
        .collect()
}

struct Parts<'a> {
    dir: &'a Path,
    file_name: &'a OsStr,
    by: SplitBy,
    layout: Layout,
    open: Option<OpenPart>,
    count: u64,
}

struct OpenPart {
    path: PathBuf,
    name: String,
    sink: Sink,
}

impl Parts<'_> {
    /// Whether the row belongs to the open part.
    fn fits(&self, key: &KernelKey, encoded: &Encoded) -> Result<bool, WriteError> {
        let Some(open) = &self.open else { return Ok(true) };
        Ok(match self.by {
            SplitBy::Kernel => open.name == key.kernel_name,
            SplitBy::Size(limit) => {
                let (pages, page_size) = open.sink.pages()?;
                let text = key.kernel_name.len() + key.kernel_args.len();
                // The key is stored in the table and in its index.
                let bytes = (encoded.blob.len() + 2 * text) as u64;
                let more = bytes / u64::from(page_size - 4) + PAGES_OF_A_ROW;
                (pages + more) * u64::from(page_size) <= limit
            }
        })
    }

    /// The open part, or a new one.
    fn sink(&mut self, key: &KernelKey) -> Result<&mut Sink, WriteError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                self.count += 1;
                let label = match self.by {
                    SplitBy::Kernel => directory_name(&key.kernel_name),
                    SplitBy::Size(_) => self.count.to_string(),
                };
                let dir = self.dir.join(label);
                let io = |source: io::Error| WriteError::Io {
                    action: "create a directory for",
                    path: dir.join(self.file_name),
                    source,
                };
                std::fs::create_dir_all(&dir).map_err(io)?;
                let path = dir.join(self.file_name);
                let sink = Sink::create(&path, self.layout);
                let sink = sink.inspect_err(|_| remove_empty(&path))?;
                OpenPart { path, name: key.kernel_name.clone(), sink }
            }
        };
        Ok(&mut self.open.insert(open).sink)
    }

    fn finish(&mut self) -> Result<Option<Part>, WriteError> {
        let Some(OpenPart { path, sink, .. }) = self.open.take() else { return Ok(None) };
        match sink.finish() {
            Ok(written) => Ok(Some(Part { path, written })),
            Err(error) => {
                remove_empty(&path);
                Err(error)
            }
        }
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        // Removes the unfinished part and its directory.
        if let Some(OpenPart { path, sink, .. }) = self.open.take() {
            drop(sink);
            remove_empty(&path);
        }
    }
}

/// Removes the directory of an unfinished part, unless it holds an older part.
fn remove_empty(part: &Path) {
    if let Some(dir) = part.parent() {
        std::fs::remove_dir(dir).ok();
    }
}

/// Longest file name, in bytes, that file systems allow.
const MAX_NAME_BYTES: usize = 255;

/// A kernel's name as one component of a path, different for every name:
/// unusual bytes are spelled like `%2F`, and names that are too long end in a
/// digest.
fn directory_name(kernel_name: &str) -> String {
    use std::fmt::Write as _;
    let mut name = String::new();
    for (at, byte) in kernel_name.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"_-+".contains(&byte);
        if plain || (byte == b'.' && at > 0) {
            name.push(char::from(byte));
        } else {
            write!(name, "%{byte:02X}").expect("a String takes all");
        }
    }
    if name.len() > MAX_NAME_BYTES {
        // No other file name contains a `~`.
        let digest = format!("%~{}", codec::md5_hex(kernel_name.as_bytes()));
        name.truncate(MAX_NAME_BYTES - digest.len());
        name += &digest;
    }
    if name.is_empty() { "%".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::directory_name;

    #[test]
    fn directory_names_are_distinct_path_components() {
        let names = ["conv.s.o", "..", "", "a/b.cl.o", "a%2Fb.cl.o", "naïve.o"];
        let expected = ["conv.s.o", "%2E.", "%", "a%2Fb.cl.o", "a%252Fb.cl.o", "na%C3%AFve.o"];
        assert_eq!(names.map(directory_name), expected);
        let long = ["a", "b"].map(|end| directory_name(&format!("{}{end}", "k".repeat(300))));
        assert!(long.iter().all(|name| name.len() == 255) && long[0] != long[1], "{long:?}");
    }
}
