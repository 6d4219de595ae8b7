//! Rewrites tar archives. Whatever does not change stays byte for byte: names, owners, times,
//! attributes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ::tar::{EntryType, Header};
use md5::Md5;

use super::{Rewriter, plain, text};

/// Size of a header, and what all parts are padded to.
const BLOCK: u64 = 512;
/// Most bytes of a long name, or of attributes, before a file.
const EXTENSION_MAX: u64 = 1 << 20;

/// What changed in an archive. Paths have no leading slash.
#[derive(Default)]
pub(super) struct Changes {
    /// MD5 digests of files that are smaller.
    pub(super) digests: BTreeMap<PathBuf, String>,
    pub(super) removed: BTreeSet<PathBuf>,
    /// The KiB that the files take less, each rounded up.
    pub(super) kib: u64,
}

/// What comes before the header of a file and belongs to it.
#[derive(Default)]
struct Extensions {
    bytes: Vec<u8>,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

/// Copies an archive, as `rewriter` wants it.
///
/// Source: pax(1), "ustar Interchange Format" and "pax Header Block"; GNU tar's manual, "Basic Tar
/// Format".
pub(super) fn rewrite(
    from: impl Read,
    out: &mut dyn Write,
    rewriter: &mut Rewriter<'_>,
) -> io::Result<Changes> {
    let mut archive = ::tar::Archive::new(from);
    let (mut changes, mut before) = (Changes::default(), Extensions::default());
    let takes_out = rewriter.takes_out;
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let header = entry.header().clone();
        let size = header.entry_size()?;
        if before.add(&header, size, &mut entry)? {
            continue;
        }
        let before = std::mem::take(&mut before);
        let path = plain(&before.name.unwrap_or_else(|| header.path_bytes().into_owned()));
        let link = before.link.or_else(|| header.link_name_bytes().map(|it| it.into_owned()));
        let link = PathBuf::from(text(&link.unwrap_or_default()));
        let target = plain(link.as_os_str().as_encoded_bytes());
        let mut begin = |header: &Header| {
            out.write_all(&before.bytes)?;
            out.write_all(header.as_bytes())
        };
        match header.entry_type() {
            EntryType::Regular if size == 0 && is_whiteout(&path) => begin(&header)?,
            EntryType::Regular | EntryType::Continuous => {
                let Some(contents) = (rewriter.file)(&path, size, &mut entry)? else {
                    changes.kib += size.div_ceil(1024);
                    changes.removed.insert(path);
                    continue;
                };
                let (now, is_smaller, mut changed) = (contents.size, contents.is_smaller, header);
                if is_smaller {
                    changed.set_size(now);
                    changed.set_cksum();
                    changes.kib += size.div_ceil(1024).saturating_sub(now.div_ceil(1024));
                }
                begin(&changed)?;
                let digest = contents.write::<Md5>(out, BLOCK, &path)?;
                if is_smaller {
                    changes.digests.insert(path, digest);
                }
            }
            EntryType::Symlink if rewriter.takes_out_link(&path, &link) => {
                changes.kib += 1;
                changes.removed.insert(path);
            }
            // The file may also be in a layer below.
            EntryType::Link if changes.removed.contains(&target) || takes_out(&target) => {
                changes.removed.insert(path);
            }
            EntryType::Link => {
                begin(&header)?;
                if let Some(digest) = changes.digests.get(&target).cloned() {
                    changes.digests.insert(path, digest);
                }
            }
            EntryType::Symlink
            | EntryType::Directory
            | EntryType::Char
            | EntryType::Block
            | EntryType::Fifo => begin(&header)?,
            _ => {
                let message = format!("`{}` is stored in an unusual way", path.display());
                return Err(io::Error::other(message));
            }
        }
    }
    // What follows, so that the checksum of the compression is read.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    out.write_all(&[0; 2 * BLOCK as usize])?;
    Ok(changes)
}

/// Whether a file of a layer says that another one, of a layer below, is no more.
///
/// Source: OCI image specification 1.1, "Whiteouts".
fn is_whiteout(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".wh."))
}

impl Extensions {
    /// Takes an entry that says more about the next one; `false` if it is another.
    fn add(&mut self, header: &Header, size: u64, entry: &mut impl Read) -> io::Result<bool> {
        let kind = header.entry_type();
        let is_extension =
            matches!(kind, EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader);
        if !is_extension && kind != EntryType::XGlobalHeader {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        entry.take(EXTENSION_MAX).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            return Err(io::Error::other("a name in it is cut short or too long"));
        }
        self.bytes.extend(header.as_bytes());
        self.bytes.extend(&bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK as usize), 0);
        match kind {
            EntryType::GNULongName => self.name = Some(bytes),
            EntryType::GNULongLink => self.link = Some(bytes),
            EntryType::XHeader => self.attributes(&bytes)?,
            _ => {}
        }
        Ok(true)
    }

    fn attributes(&mut self, bytes: &[u8]) -> io::Result<()> {
        for record in ::tar::PaxExtensions::new(bytes) {
            let record = record?;
            match record.key_bytes() {
                b"path" => self.name = Some(record.value_bytes().to_owned()),
                b"linkpath" => self.link = Some(record.value_bytes().to_owned()),
                key if key == b"size" || key.starts_with(b"GNU.sparse") => {
                    return Err(io::Error::other("a file in it is sparse, or larger than 8 GB"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Contents;
    use super::*;

    #[test]
    fn layers_keep_whiteouts_and_lose_links_to_what_is_taken_out_below() {
        let mut layer = ::tar::Builder::new(Vec::new());
        for (name, kind, link) in [
            (".wh.link_gfx90a.co", EntryType::Regular, "none"),
            ("x_gfx90a.co", EntryType::Regular, "none"),
            ("other.co", EntryType::Link, "below_gfx90a.co"),
            ("kept.co", EntryType::Link, "below.co"),
        ] {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_link_name(link).expect("short");
            header.set_size(0);
            layer.append_data(&mut header, name, &[][..]).expect("written");
        }
        let layer = layer.into_inner().expect("whole");
        let takes_out = |path: &Path| path.to_str().expect("text").ends_with("_gfx90a.co");
        let mut out = Vec::new();
        let mut rewriter = Rewriter {
            takes_out: &takes_out,
            file: &mut |path, size, _| {
                Ok((!takes_out(path)).then(|| Contents::same(size, io::empty())))
            },
        };
        rewrite(&*layer, &mut out, &mut rewriter).expect("rewritten");
        let mut archive = ::tar::Archive::new(&*out);
        let names = archive
            .entries()
            .expect("an archive")
            .map(|entry| entry.expect("whole").path().expect("text").display().to_string());
        assert_eq!(names.collect::<Vec<_>>(), [".wh.link_gfx90a.co", "kept.co"]);
    }
}
