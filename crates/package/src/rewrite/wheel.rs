//! Rewrites wheels: their files, the list of them, versions, and what they need of one another.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gfxpack_model::Result;
use sha2::Sha256;
use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Contents, Follows, Kind, Package, Rewriter};
use crate::output::{Hashing, Output};
use crate::read::{open as open_file, wheel_record, wheel_text};
use crate::wheel::{LARGE, quoted};

type Archive = ZipArchive<BufReader<File>>;

/// A wheel that is to be written again.
#[derive(Debug)]
pub(super) struct Wheel {
    metadata: String,
    /// The directory with the metadata, without `.dist-info`: `name-1.0`.
    stem: String,
}

pub(super) fn open(path: &Path) -> io::Result<Package> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let parts: Vec<&str> = file_name.split('-').collect();
    if !(5..=6).contains(&parts.len()) {
        let message = "its file's name is not `NAME-VERSION-PYTHON-ABI-PLATFORM.whl`";
        return Err(io::Error::other(message));
    }
    let mut archive = archive(path)?;
    let stem = archive.file_names().filter_map(Result::ok).find_map(|name| {
        let stem = name.strip_suffix(".dist-info/METADATA")?;
        (!stem.contains('/')).then(|| stem.to_owned())
    });
    let stem = stem.ok_or_else(|| io::Error::other("it has no metadata"))?;
    let metadata = wheel_text(&mut archive, &format!("{stem}.dist-info/METADATA"))?;
    let line = |field: &str| {
        let mut fields = head(&metadata).lines().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| *name == field).map(|(_, value)| value.trim().to_owned())
    };
    let (Some(name), Some(version)) = (line("Name"), line("Version")) else {
        return Err(io::Error::other("it has no name or no version"));
    };
    Ok(Package {
        path: path.to_owned(),
        name: normalized(&name),
        version,
        suffix: String::new(),
        file: [parts[..2].join("-"), format!("-{}", parts[2..].join("-"))],
        provides: Vec::new(),
        kind: Kind::Wheel(Wheel { metadata, stem }),
    })
}

impl Wheel {
    /// Gives it a version, and has what it needs exactly follow.
    ///
    /// Source: PyPA, "Version specifiers", "Dependency specifiers".
    pub(super) fn rename(&mut self, version: &str, follows: &Follows<'_>) -> Result {
        let (head, description) = self.metadata.split_at(head(&self.metadata).len());
        let mut metadata = String::new();
        for line in head.split_inclusive('\n') {
            let exact = line.strip_prefix("Requires-Dist:").and_then(|it| it.split_once("=="));
            let (needed, bound) = exact.unwrap_or_default();
            let name = normalized(needed.split(['[', '(']).next().unwrap_or_default());
            let exactly = bound.trim_start_matches(['=', ' ']);
            let exactly = exactly.split(|c| !is_of_version(c)).next().unwrap_or_default();
            metadata += &match follows(&name, exactly, false)? {
                Some(new) => {
                    format!("Requires-Dist:{needed}=={}", bound.replacen(exactly, &new, 1))
                }
                None if line.starts_with("Version:") => format!("Version: {version}\n"),
                None => line.to_owned(),
            };
        }
        self.metadata = metadata + description;
        Ok(())
    }

    /// Source: PyPA, "Binary distribution format".
    pub(super) fn write(
        &self,
        path: &Path,
        output: Option<&mut Output>,
        suffix: &str,
        rewriter: &mut Rewriter<'_>,
    ) -> io::Result<()> {
        let mut archive = archive(path)?;
        let Some(output) = output else {
            let mut all = 0..archive.len();
            return all.try_for_each(|it| decide(&mut archive.by_index(it)?, rewriter).map(drop));
        };
        let [list, metadata] =
            ["RECORD", "METADATA"].map(|it| format!("{}.dist-info/{it}", self.stem));
        let record = wheel_record(&wheel_text(&mut archive, &list)?);
        let mut zip = ZipWriter::new(output);
        let (mut rows, mut last) = (String::new(), SimpleFileOptions::default());
        for index in 0..archive.len() {
            let member = archive.by_index_raw(index)?;
            let (name, options) =
                (String::from_utf8_lossy(member.name_raw()).into_owned(), member.options());
            drop(member);
            if name == list {
                last = options;
                continue;
            }
            // Signatures of the list: they no longer hold.
            if name.starts_with(&list) {
                continue;
            }
            let new = self.renamed(&name, suffix);
            if name == metadata {
                rows += &put(&mut zip, &new, options, &mut self.metadata.as_bytes())?;
                continue;
            }
            match decide(&mut archive.by_index(index)?, rewriter)? {
                None => continue,
                Some(mut contents) if contents.is_smaller => {
                    let options = options.large_file(contents.size > LARGE);
                    rows += &put(&mut zip, &new, options, &mut contents.bytes)?;
                    continue;
                }
                Some(_) => {}
            }
            zip.raw_copy_file_rename(archive.by_index_raw(index)?, &*new)?;
            if let Some((digest, size)) = record.get(&name) {
                rows += &format!("{},{digest},{size}\n", quoted(&new));
            }
        }
        let list = self.renamed(&list, suffix);
        rows += &format!("{},,\n", quoted(&list));
        put(&mut zip, &list, last, &mut rows.as_bytes())?;
        Ok(zip.finish().map(drop)?)
    }

    /// The name of a file with the new version in its directory's.
    fn renamed(&self, name: &str, suffix: &str) -> String {
        match name.strip_prefix(&*self.stem) {
            Some(rest) if rest.starts_with(".dist-info/") || rest.starts_with(".data/") => {
                format!("{}{suffix}{rest}", self.stem)
            }
            _ => name.to_owned(),
        }
    }
}

fn archive(path: &Path) -> io::Result<Archive> {
    let mut archive = ZipArchive::new(BufReader::with_capacity(256 << 10, open_file(path)?))?;
    // Without overlaps, the size of the file limits how much can be unpacked.
    if archive.has_overlapping_files()? {
        return Err(io::Error::other("files in the archive overlap"));
    }
    Ok(archive)
}

/// What is in a member from now on.
fn decide<'a>(
    member: &'a mut ZipFile<'_, BufReader<File>>,
    rewriter: &mut Rewriter<'_>,
) -> io::Result<Option<Contents<'a>>> {
    if member.is_dir() {
        return Ok(Some(Contents::same(0, io::empty())));
    }
    let (path, size) = (PathBuf::from(&*String::from_utf8_lossy(member.name_raw())), member.size());
    (rewriter.file)(&path, size, member)
}

/// Adds a file, and returns its row in `RECORD`.
fn put(
    zip: &mut ZipWriter<&mut Output>,
    name: &str,
    options: SimpleFileOptions,
    bytes: &mut dyn Read,
) -> io::Result<String> {
    zip.start_file(name, options)?;
    let mut hashing = Hashing::with(zip, <Sha256 as sha2::Digest>::new());
    io::copy(bytes, &mut hashing)?;
    let (_, digest, size) = hashing.finish_raw();
    Ok(format!("{},sha256={},{size}\n", quoted(name), BASE64_URL_SAFE_NO_PAD.encode(digest)))
}

/// The fields of metadata, without the description.
fn head(metadata: &str) -> &str {
    let lines = metadata.split_inclusive('\n').take_while(|line| !line.trim().is_empty());
    &metadata[..lines.map(str::len).sum()]
}

fn is_of_version(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+.*-_!".contains(c)
}

/// Source: PyPA, "Names and normalization".
fn normalized(name: &str) -> String {
    let words = name.trim().split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_what_needs_them_get_a_local_part() {
        let metadata = "Name: Torch\nVersion: 2.5.1+rocm6.4\nRequires-Dist: pytorch-triton_rocm (==3.2); \
                        x == 'a'\nRequires-Dist: pytorch-triton-rocm==3.2.1\nRequires-Dist: numpy==3.2\n\
                        \nVersion: of the text\n";
        let mut wheel =
            Wheel { metadata: metadata.to_owned(), stem: "torch-2.5.1+rocm6.4".to_owned() };
        let follows = |needed: &str, exactly: &str, _| {
            let is_given = needed == "pytorch-triton-rocm" && exactly == "3.2";
            Ok(is_given.then(|| "3.2+gfx1100".to_owned()))
        };
        wheel.rename("2.5.1+rocm6.4.gfx1100", &follows).expect("nothing must follow");
        let expected = metadata
            .replace("Version: 2.5.1+rocm6.4", "Version: 2.5.1+rocm6.4.gfx1100")
            .replace("(==3.2)", "(==3.2+gfx1100)");
        assert_eq!(wheel.metadata, expected);
        let renamed = wheel.renamed("torch-2.5.1+rocm6.4.dist-info/WHEEL", ".gfx1100");
        assert_eq!(renamed, "torch-2.5.1+rocm6.4.gfx1100.dist-info/WHEEL");
    }
}
