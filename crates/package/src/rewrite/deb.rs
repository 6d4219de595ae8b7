//! Rewrites .debs: their files, checksums, installed sizes, versions, and what they need of one
//! another.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::archive::{self, Changes};
use super::{Rewriter, cut_short, plain};
use crate::compress::Compression;
use crate::deb::{member_header, pad};
use crate::deb822::Paragraph;
use crate::error::{Error, Failure};
use crate::output::{Output, Written};
use crate::read::{deb_member, open};

/// Fields that a package can't be installed without.
const NEEDS: [&str; 2] = ["Depends", "Pre-Depends"];
/// Fields that name packages whose versions follow.
const RELATIONS: [&str; 5] = ["Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances"];
/// The GPUs that a package is for.
const GPUS: &str = "X-ROCm-GPU-Architecture";
/// Maximum size of uncompressed control data, which are normally small.
const CONTROL_MAX: u64 = 64 << 20;

/// A .deb that is to be written again.
#[derive(Debug)]
pub struct Deb {
    path: PathBuf,
    /// The control file.
    control: String,
    /// When it was packed.
    mtime: u64,
    /// The package's name.
    pub(super) name: String,
    /// Its version.
    pub(super) version: String,
    /// The version that it gets; at first the same.
    pub(super) new_version: String,
}

impl Deb {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (control, mtime) = control(path)?;
        let line = |field| Paragraph(&control).line(field).unwrap_or_default().to_owned();
        let (name, version, architecture) =
            (line("Package"), line("Version"), line("Architecture"));
        if [&name, &version, &architecture].iter().any(|it| it.is_empty() || it.contains('/')) {
            return Err(io::Error::other("it has no name, version or architecture"));
        }
        let new_version = version.clone();
        Ok(Self { path: path.to_owned(), control, mtime, name, version, new_version })
    }

    pub(super) fn file_name(&self) -> String {
        let version = self.new_version.split_once(':').map_or(&*self.new_version, |(_, it)| it);
        let architecture = Paragraph(&self.control).line("Architecture").unwrap_or("all");
        format!("{}_{version}_{architecture}.deb", self.name)
    }

    pub(super) fn try_out(&self, rewriter: &mut Rewriter<'_>) -> io::Result<()> {
        archive::rewrite(self.files()?.1, &mut io::sink(), rewriter).map(drop)
    }

    /// Source: deb(5), deb-control(5), deb-md5sums(5).
    pub(super) fn write(
        &self,
        dir: &Path,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> Result<Written, Error> {
        let mut output = Output::create(dir, &self.file_name())?;
        self.write_to(&mut output, threads, rewriter).map_err(|failure| match failure {
            Failure::Output(error) => Error::rewrite(&self.path, error),
            Failure::Other(error) => error,
        })?;
        output.commit()
    }

    fn write_to(
        &self,
        output: &mut Output,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> Result<(), Failure> {
        let (data_codec, files) = self.files()?;
        let compression = compression(&data_codec);
        let mut encoder = compression.encoder(output.scratch()?, threads)?;
        let changes = archive::rewrite(files, &mut encoder, rewriter)?;
        let mut data = encoder.finish()?;
        let data_size = data.stream_position()?;
        data.seek(SeekFrom::Start(0))?;
        let (codec, members) = self.control_data(&changes)?;
        let path = output.path();
        output.write_all(b"!<arch>\n")?;
        for (name, size, bytes) in [
            ("debian-binary".to_owned(), 4, &mut b"2.0\n".as_slice() as &mut dyn Read),
            (format!("control.tar.{codec}"), members.len() as u64, &mut members.as_slice()),
            (format!("data.tar.{}", compression.extension()), data_size, &mut data),
        ] {
            let header = member_header(&name, size, self.mtime, &path)?;
            output.write_all(header.as_bytes())?;
            io::copy(bytes, output)?;
            pad(output, size)?;
        }
        Ok(())
    }

    /// The compression and the uncompressed archive of the files.
    fn files(&self) -> io::Result<(String, Box<dyn Read>)> {
        deb_member(BufReader::with_capacity(256 << 10, open(&self.path)?), "data")
    }

    /// The control data with what changed: codec and bytes.
    fn control_data(&self, changes: &Changes) -> io::Result<(&'static str, Vec<u8>)> {
        let (codec, members) = deb_member(BufReader::new(open(&self.path)?), "control")?;
        let compression = compression(&codec);
        let mut encoder = compression.encoder(Vec::new(), 1)?;
        let mut archive = ::tar::Archive::new(members.take(CONTROL_MAX));
        for entry in archive.entries()? {
            let mut entry = entry?;
            let mut header = entry.header().clone();
            let name = entry.path()?.into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            let is = |it: &str| name.file_name().is_some_and(|name| name == it);
            if is("control") {
                bytes = self.changed_control(changes).into_bytes();
            } else if is("md5sums") {
                let sums = String::from_utf8(bytes).map_err(io::Error::other)?;
                bytes = changed_sums(&sums, changes).into_bytes();
            }
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            bytes.resize(bytes.len().next_multiple_of(512), 0);
            encoder.write_all(header.as_bytes())?;
            encoder.write_all(&bytes)?;
        }
        encoder.write_all(&[0; 1024])?;
        Ok((compression.extension(), encoder.finish()?))
    }

    fn changed_control(&self, changes: &Changes) -> String {
        let paragraph = Paragraph(&self.control);
        let mut text = String::new();
        for (name, value) in paragraph.fields() {
            let value = match name {
                "Version" => format!(" {}\n", self.new_version),
                "Installed-Size" => {
                    let before = value.trim().parse::<u64>().unwrap_or_default();
                    format!(" {}\n", before.saturating_sub(changes.kib))
                }
                // As in packages that Debian builds again: the source keeps its version.
                "Source" if !value.contains('(') => {
                    format!(" {} ({})\n", value.trim(), self.version)
                }
                _ => value.to_owned(),
            };
            text += &format!("{name}:{value}");
            if name == "Package" && paragraph.line("Source").is_none() {
                text += &format!("Source: {} ({})\n", self.name, self.version);
            }
        }
        text
    }

    /// Gives it a version, and has what it needs exactly of `others`, names and versions, follow.
    ///
    /// Source: Debian Policy 4.7.0, 7.1.
    pub(super) fn rename(
        &mut self,
        suffix: &str,
        others: &[(String, String)],
        stays: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let mut control = String::new();
        for (field, value) in Paragraph(&self.control).fields() {
            control += &format!("{field}:");
            if field.eq_ignore_ascii_case(GPUS) {
                let gpus: Vec<&str> = value.split_whitespace().filter(|gpu| stays(gpu)).collect();
                control += &format!(" {}\n", gpus.join(" "));
                continue;
            }
            if !RELATIONS.contains(&field) {
                control += value;
                continue;
            }
            for relation in value.split_inclusive([',', '|']) {
                let Some((name, version)) = exactly(relation) else {
                    control += relation;
                    continue;
                };
                let given = || others.iter().filter(|(it, _)| it == name);
                let follows = given().any(|(_, it)| it == version);
                let is_sibling = given().next().is_some() || version == self.version;
                if !follows && is_sibling && NEEDS.contains(&field) {
                    let (package, needed) = (self.name.clone(), name.to_owned());
                    return Err(Error::NeedsExactly {
                        package,
                        needed,
                        version: version.to_owned(),
                    });
                }
                let (before, after) = relation.rsplit_once(version).expect("it is in it");
                let suffix = if follows { suffix } else { "" };
                control += &format!("{before}{version}{suffix}{after}");
            }
        }
        self.control = control;
        self.new_version = format!("{}{suffix}", self.version);
        Ok(())
    }
}

/// Name and version of a relation `name (= version)`.
fn exactly(relation: &str) -> Option<(&str, &str)> {
    let (name, bound) = relation.split_once('(')?;
    let version = bound.split_once(')')?.0.trim().strip_prefix('=')?;
    Some((name.trim().split(':').next()?, version.trim()))
}

/// The control file, and when it was packed.
fn control(path: &Path) -> io::Result<(String, u64)> {
    let (_, members) = deb_member(BufReader::new(open(path)?), "control")?;
    let mut archive = ::tar::Archive::new(members.take(CONTROL_MAX));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.path()?.file_name().is_some_and(|name| name == "control") {
            let (mtime, mut text) = (entry.header().mtime()?, String::new());
            entry.read_to_string(&mut text)?;
            if !text.ends_with('\n') {
                return Err(cut_short(Path::new("control")));
            }
            return Ok((text, mtime));
        }
    }
    Err(io::Error::other("it has no control file"))
}

/// The compressor for what was compressed by `codec`, at the level that Debian and Ubuntu use.
fn compression(codec: &str) -> Compression {
    match codec {
        "gz" => Compression::Gz { level: 9 },
        "zst" => Compression::Zst { level: 19 },
        _ => Compression::Xz { level: 6 },
    }
}

fn changed_sums(sums: &str, changes: &Changes) -> String {
    let line = |line: &str| {
        // Some write `./` before names, or `*`, as md5sum does for binary files.
        let Some((_, name)) = line.split_once([' ', '\t']) else {
            return Some(format!("{line}\n"));
        };
        let path = plain(name.trim_start_matches([' ', '\t', '*']).as_bytes());
        if changes.removed.contains(&path) {
            return None;
        }
        let new = changes.digests.get(&path);
        let rest = &line[line.len() - name.len() - 1..];
        Some(new.map_or(format!("{line}\n"), |digest| format!("{digest}{rest}\n")))
    };
    sums.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rename(debs: &mut [Deb]) -> Result<(), Error> {
        let known: Vec<_> = debs.iter().map(|it| (it.name.clone(), it.version.clone())).collect();
        debs.iter_mut().try_for_each(|it| it.rename("+gfx1030", &known, &|gpu| gpu == "gfx1030"))
    }

    fn deb(name: &str, version: &str, relations: &str) -> Deb {
        let control = format!(
            "Package: {name}\nVersion: {version}\nInstalled-Size: 100\n{relations}Description: a\n b\n"
        );
        let (name, version) = (name.to_owned(), version.to_owned());
        let new_version = version.clone();
        Deb { path: PathBuf::new(), control, mtime: 0, name, version, new_version }
    }

    #[test]
    fn what_needs_a_version_exactly_follows_it() {
        let needs = "Depends: lib1 (= 1:2-1), libc6 (>= 2),\n lib1:any (=1:2-1) | lib2\n";
        let mut debs = [deb("lib-dev", "1:2-1", needs), deb("lib1", "1:2-1", "")];
        rename(&mut debs).expect("both are there");
        assert_eq!(
            debs[0].changed_control(&Changes { kib: 40, ..Changes::default() }),
            "Package: lib-dev\nSource: lib-dev (1:2-1)\nVersion: 1:2-1+gfx1030\n\
             Installed-Size: 60\nDepends: lib1 (= 1:2-1+gfx1030), libc6 (>= 2),\n \
             lib1:any (=1:2-1+gfx1030) | lib2\nDescription: a\n b\n"
        );
        let refused = |debs: &mut [Deb]| match rename(debs) {
            Err(Error::NeedsExactly { package, needed, .. }) => format!("{package} {needed}"),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&mut [deb("lib-dev", "1:2-1", needs)]), "lib-dev lib1");
        let other = deb("lib1", "1:2-2", "");
        assert_eq!(refused(&mut [deb("lib-dev", "1:2-1", needs), other]), "lib-dev lib1");
        // Of several versions, it follows its own.
        let older = deb("lib1", "1:1-1", "");
        rename(&mut [deb("lib-dev", "1:2-1", needs), older, deb("lib1", "1:2-1", "")])
            .expect("it is there");
        // What has a version of its own is no part of it.
        let mut alone = [deb(
            "lib1",
            "2",
            "Depends: data (= 7)\nSuggests: lib-doc (= 2)\nX-Rocm-GPU-Architecture: gfx906 gfx1030\n",
        )];
        rename(&mut alone).expect("nothing follows");
        assert!(
            alone[0].control.contains(
                "data (= 7)\nSuggests: lib-doc (= 2)\nX-Rocm-GPU-Architecture: gfx1030\n"
            )
        );
    }

    #[test]
    fn checksums_follow_however_names_are_written() {
        let digests = ["a", "b c"].map(|name| (PathBuf::from(name), "new".to_owned()));
        let changes = Changes {
            digests: digests.into(),
            removed: [PathBuf::from("gone")].into(),
            ..Changes::default()
        };
        let sums = "old  ./a\nold  b c\nold *a\nold *kept\nold  ./gone\nold *gone\nodd\n";
        let expected = "new  ./a\nnew  b c\nnew *a\nold *kept\nodd\n";
        assert_eq!(changed_sums(sums, &changes), expected);
    }
}
