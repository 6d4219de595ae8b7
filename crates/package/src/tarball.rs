//! Writes tar archives in GNU format: headers, long names, padding, the end.

use std::fs::File;
use std::io::{self, Write};

use gfxpack_model::package::PackageSpec;
use md5::{Digest, Md5};

use crate::contents::{Contents, Item};
use crate::output::Hashing;

const BLOCK: u64 = 512;
/// Maximum length of a name in the header itself.
const NAME: usize = 100;

/// Writes all files of a package. There are no entries for directories: unpacking one would
/// replace a link such as `/opt/rocm`.
pub(crate) fn files<W: Write>(
    out: W,
    spec: &PackageSpec,
    contents: &Contents<'_>,
) -> io::Result<W> {
    let mut tarball = Tarball::new(out, spec.source_date_epoch);
    for (install_path, item) in contents.iter() {
        tarball.file(&install_path[1..], item)?;
    }
    tarball.finish()
}

/// A tar stream in which all entries belong to root and have the same time.
pub(crate) struct Tarball<W> {
    out: W,
    mtime: u64,
}

impl<W: Write> Tarball<W> {
    /// Begins an archive in `out`.
    pub(crate) fn new(out: W, mtime: u64) -> Self {
        Self { out, mtime }
    }

    /// Appends a directory with mode 0755. The name ends with a slash.
    pub(crate) fn directory(&mut self, name: &str) -> io::Result<()> {
        self.header(name, ::tar::EntryType::Directory, 0o755, 0)
    }

    /// Appends a file.
    pub(crate) fn file(&mut self, name: &str, item: &Item<'_>) -> io::Result<()> {
        self.entry(name, item.mode, item.size, |out| item.copy_to(out))
    }

    /// Appends a file, and returns its MD5 digest in hexadecimal.
    pub(crate) fn digested_file(&mut self, name: &str, item: &Item<'_>) -> io::Result<String> {
        self.entry(name, item.mode, item.size, |out| {
            let mut hashing = Hashing::with(out, Md5::new());
            item.copy_to(&mut hashing)?;
            Ok(hashing.finish().1)
        })
    }

    /// Appends a file from memory with mode 0644.
    pub(crate) fn bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.entry(name, 0o644, bytes.len() as u64, |out| out.write_all(bytes))
    }

    /// Appends a scratch file with this size and mode 0644.
    pub(crate) fn scratch(&mut self, name: &str, file: &mut File, size: u64) -> io::Result<()> {
        let copied = self.entry(name, 0o644, size, |out| io::copy(file, out))?;
        assert_eq!(copied, size, "nobody else has the file");
        Ok(())
    }

    fn entry<T>(
        &mut self,
        name: &str,
        mode: u32,
        size: u64,
        fill: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        self.header(name, ::tar::EntryType::Regular, mode, size)?;
        let filled = fill(&mut self.out)?;
        self.pad(size)?;
        Ok(filled)
    }

    /// Ends the archive, and returns the underlying writer.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK as usize])?;
        Ok(self.out)
    }

    fn header(
        &mut self,
        name: &str,
        kind: ::tar::EntryType,
        mode: u32,
        size: u64,
    ) -> io::Result<()> {
        // A name that fills the field has no NUL at its end, which some readers
        // require, so it counts as long.
        if name.len() >= NAME {
            let long = [name.as_bytes(), b"\0"].concat();
            let kind = ::tar::EntryType::GNULongName;
            self.out.write_all(&block("././@LongLink", kind, 0o644, long.len() as u64, 0)?)?;
            self.out.write_all(&long)?;
            self.pad(long.len() as u64)?;
        }
        self.out.write_all(&block(name, kind, mode, size, self.mtime)?)
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        let padding = size.next_multiple_of(BLOCK) - size;
        self.out.write_all(&[0; BLOCK as usize][..padding as usize])
    }
}

/// A header block. It holds the beginning of a long name.
fn block(
    name: &str,
    kind: ::tar::EntryType,
    mode: u32,
    size: u64,
    mtime: u64,
) -> io::Result<[u8; BLOCK as usize]> {
    let mut header = ::tar::Header::new_gnu();
    let field = name.len().min(NAME - 1);
    // The library's setter would drop the leading `./` of names in a .deb.
    header.as_old_mut().name[..field].copy_from_slice(&name.as_bytes()[..field]);
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_size(size);
    header.set_mtime(mtime);
    header.set_cksum();
    Ok(*header.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_over_eight_gigabytes_are_kept() {
        for size in [0, 8_589_934_591, 8_589_934_592, 1 << 40] {
            let bytes = block("./file", ::tar::EntryType::Regular, 0o644, size, 1_700_000_000)
                .expect("the header takes it");
            let header = ::tar::Header::from_byte_slice(&bytes);
            assert_eq!(header.entry_size().expect("the size parses"), size);
            assert_eq!(header.mtime().expect("the time parses"), 1_700_000_000);
            assert_eq!(&*header.path_bytes(), b"./file");
        }
    }

    #[test]
    fn names_of_every_length_come_back() {
        let mut tarball = Tarball::new(Vec::new(), 0);
        let names: Vec<String> =
            (1..400).map(|length| format!("./{}", "n".repeat(length))).collect();
        for name in &names {
            tarball.bytes(name, name.as_bytes()).expect("memory takes it");
        }
        let bytes = tarball.finish().expect("memory takes it");
        assert_eq!(bytes.len() % 512, 0);
        let mut archive = ::tar::Archive::new(bytes.as_slice());
        let mut read = Vec::new();
        for entry in archive.entries().expect("the archive reads") {
            let mut entry = entry.expect("the entry reads");
            let mut content = String::new();
            io::Read::read_to_string(&mut entry, &mut content).expect("the content reads");
            assert_eq!(&*entry.path_bytes(), content.as_bytes());
            read.push(content);
        }
        assert_eq!(read, names);
    }
}
