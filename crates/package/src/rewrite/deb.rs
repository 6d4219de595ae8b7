//! Rewrites .debs: their files, checksums, installed sizes, versions, and what they need of one
//! another.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use ::tar::Header;
use gfxpack_model::Result;

use super::archive::{self, Changes};
use super::{Follows, Kind, Package, Rewriter, compression, cut_short, plain};
use crate::compress::finish;
use crate::deb::write_members;
use crate::deb822::Paragraph;
use crate::output::{Output, Packed};
use crate::read::{deb_member, open as open_file};

/// Fields that name packages whose versions follow; the first two must be met.
const RELATIONS: [&str; 5] = ["Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances"];
/// The GPUs that a package is for.
const GPUS: &str = "X-ROCm-GPU-Architecture";
/// Maximum size of uncompressed control data, which are normally small.
const CONTROL_MAX: u64 = 64 << 20;

/// A .deb that is to be written again.
#[derive(Debug)]
pub(super) struct Deb {
    /// How the control data are compressed.
    codec: String,
    members: Vec<(Header, Vec<u8>)>,
    control: String,
    /// When it was packed.
    mtime: u64,
}

pub(super) fn open(path: &Path) -> io::Result<Package> {
    let (codec, archive) = member(path, "control")?;
    let mut archive = ::tar::Archive::new(archive.take(CONTROL_MAX));
    let mut members = Vec::new();
    for entry in archive.entries()? {
        let (mut entry, mut bytes) = (entry?, Vec::new());
        entry.read_to_end(&mut bytes)?;
        members.push((entry.header().clone(), bytes));
    }
    let control = members.iter().find(|(header, _)| is(header, "control"));
    let (header, text) = control.ok_or_else(|| io::Error::other("it has no control file"))?;
    let control = String::from_utf8(text.clone()).map_err(io::Error::other)?;
    let mtime = header.mtime()?;
    package(path, Deb { codec, members, control, mtime })
}

fn package(path: &Path, deb: Deb) -> io::Result<Package> {
    let paragraph = Paragraph(&deb.control);
    let line = |field| paragraph.line(field).unwrap_or_default().to_owned();
    let [name, version, architecture] = ["Package", "Version", "Architecture"].map(line);
    if version.is_empty() || architecture.is_empty() || !deb.control.ends_with('\n') {
        return Err(cut_short(Path::new("control")));
    }
    let without_epoch = version.split_once(':').map_or(&*version, |(_, it)| it);
    let provides = paragraph.lines("Provides").into_iter().flatten();
    let provides = provides.flat_map(|line| line.split(',')).filter_map(exactly);
    Ok(Package {
        path: path.to_owned(),
        file: [format!("{name}_{without_epoch}"), format!("_{architecture}.deb")],
        provides: provides.map(|(name, version)| (name.to_owned(), version.to_owned())).collect(),
        name,
        version,
        suffix: String::new(),
        kind: Kind::Deb(deb),
    })
}

impl Deb {
    /// Source: deb(5), deb-control(5), deb-md5sums(5).
    pub(super) fn write(
        &self,
        path: &Path,
        output: Option<&mut Output>,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> io::Result<()> {
        let (codec, files) = member(path, "data")?;
        let Some(output) = output else {
            return archive::rewrite(files, &mut io::sink(), rewriter).map(drop);
        };
        let compression = compression(&codec, None);
        let (mut data, changes) = Packed::new(output, Some(compression), threads, |out| {
            archive::rewrite(files, out, rewriter)
        })?;
        let (codec, members) = self.control_data(&changes)?;
        let control = (&*format!("control.tar.{codec}"), &*members);
        let data_name = format!("data.tar.{}", compression.extension());
        write_members(output, self.mtime, control, &data_name, &mut data)
    }

    /// The control data with what changed: codec and bytes.
    fn control_data(&self, changes: &Changes) -> io::Result<(&'static str, Vec<u8>)> {
        let compression = compression(&self.codec, None);
        let mut encoder = compression.encoder(Vec::new(), 1)?;
        for (header, bytes) in &self.members {
            let (mut header, mut bytes) = (header.clone(), bytes.clone());
            if is(&header, "control") {
                bytes = self.changed_control(changes).into_bytes();
            } else if is(&header, "md5sums") {
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
        Ok((compression.extension(), finish(encoder)?))
    }

    fn changed_control(&self, changes: &Changes) -> String {
        let fields =
            Paragraph(&self.control).fields().map(|(name, value)| match value.trim().parse() {
                Ok(before) if name == "Installed-Size" => {
                    format!("{name}: {}\n", u64::saturating_sub(before, changes.kib))
                }
                _ => format!("{name}:{value}"),
            });
        fields.collect()
    }

    /// Gives it, by name and version, a new version, and has what it needs exactly follow.
    ///
    /// Source: Debian Policy 4.7.0, 7.1.
    pub(super) fn rename(
        &mut self,
        [name, version, new_version]: [&str; 3],
        stays: &dyn Fn(&str) -> bool,
        follows: &Follows<'_>,
    ) -> Result {
        let paragraph = Paragraph(&self.control);
        let mut control = String::new();
        for (field, value) in paragraph.fields() {
            control += &format!("{field}:");
            if field == "Version" {
                control += &format!(" {new_version}\n");
            } else if field == "Source" && !value.contains('(') {
                // As in packages that Debian builds again: the source keeps its version.
                control += &format!(" {} ({version})\n", value.trim());
            } else if field.eq_ignore_ascii_case(GPUS) {
                let between = if value.contains(',') { ", " } else { " " };
                let gpus =
                    value.split([',', ' ', '\n']).filter(|gpu| !gpu.is_empty() && stays(gpu));
                control += &format!(" {}\n", gpus.collect::<Vec<_>>().join(between));
            } else if RELATIONS.contains(&field) {
                for relation in value.split_inclusive([',', '|']) {
                    let Some((needed, exactly)) = exactly(relation) else {
                        control += relation;
                        continue;
                    };
                    let new = follows(needed, exactly, RELATIONS[..2].contains(&field))?;
                    let new = new.as_deref().unwrap_or(exactly);
                    let (before, after) = relation.rsplit_once(exactly).expect("it is in it");
                    control += &format!("{before}{new}{after}");
                }
            } else {
                control += value;
            }
            if field == "Package" && paragraph.line("Source").is_none() {
                control += &format!("Source: {name} ({version})\n");
            }
        }
        self.control = control;
        Ok(())
    }
}

/// The compression of a part, and its archive.
fn member(path: &Path, part: &str) -> io::Result<(String, Box<dyn Read>)> {
    deb_member(BufReader::with_capacity(256 << 10, open_file(path)?), part)
}

/// Whether it is the header of the control data's file of this name.
fn is(header: &Header, name: &str) -> bool {
    header.path().is_ok_and(|path| path.file_name().is_some_and(|it| it == name))
}

/// Name and version of a relation `name (= version)`.
fn exactly(relation: &str) -> Option<(&str, &str)> {
    let (name, bound) = relation.split_once('(')?;
    let version = bound.split_once(')')?.0.trim().strip_prefix('=')?;
    Some((name.trim().split(':').next()?, version.trim()))
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
    use std::path::PathBuf;

    use super::super::rename as rename_all;
    use super::*;

    fn rename(debs: &mut [Package]) -> Result {
        rename_all(debs, "+gfx1030", &|gpu| gpu == "gfx1030")
    }

    fn deb(name: &str, version: &str, relations: &str) -> Package {
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: all\nInstalled-Size: 100\n{relations}Description: a\n b\n"
        );
        let (codec, members) = (String::new(), Vec::new());
        package(Path::new("x.deb"), Deb { codec, members, control, mtime: 0 }).expect("whole")
    }

    fn control(package: &Package, kib: u64) -> String {
        let Kind::Deb(deb) = &package.kind else { panic!("{package:?}") };
        deb.changed_control(&Changes { kib, ..Changes::default() })
    }

    #[test]
    fn what_needs_a_version_exactly_follows_it() {
        let needs = "Depends: lib1 (= 1:2-1), libc6 (>= 2),\n lib1:any (=1:2-1) | lib2\n";
        let mut debs = [deb("lib-dev", "1:2-1", needs), deb("lib1", "1:2-1", "")];
        rename(&mut debs).expect("both are there");
        assert_eq!(
            control(&debs[0], 40),
            "Package: lib-dev\nSource: lib-dev (1:2-1)\nVersion: 1:2-1+gfx1030\nArchitecture: all\n\
             Installed-Size: 60\nDepends: lib1 (= 1:2-1+gfx1030), libc6 (>= 2),\n \
             lib1:any (=1:2-1+gfx1030) | lib2\nDescription: a\n b\n"
        );
        let refused = |debs: &mut [Package]| match rename(debs) {
            Err(error) => error.to_string(),
            Ok(()) => panic!("{debs:?}"),
        };
        assert_eq!(
            refused(&mut [deb("lib-dev", "1:2-1", needs)]),
            "failed to rename `lib-dev`: it needs exactly 1:2-1 of `lib1`"
        );
        let other = deb("lib1", "1:2-2", "");
        assert_eq!(
            refused(&mut [deb("lib-dev", "1:2-1", needs), other]),
            "failed to rename `lib-dev`: it needs exactly 1:2-1 of `lib1`"
        );
        // Of several versions, it follows its own.
        let older = deb("lib1", "1:1-1", "");
        rename(&mut [deb("lib-dev", "1:2-1", needs), older, deb("lib1", "1:2-1", "")])
            .expect("it is there");
        // Names that another one of them provides keep their versions.
        let on_abi = "Depends: abi (= 1:2-1)\n";
        assert_eq!(
            refused(&mut [deb("lib-dev", "1:2-1", on_abi)]),
            "failed to rename `lib-dev`: it needs exactly 1:2-1 of `abi`"
        );
        let provides = "Provides: other,\n abi (= 1:2-1)\n";
        let mut both = [deb("lib-dev", "1:2-1", on_abi), deb("lib1", "1:2-1", provides)];
        rename(&mut both).expect("it is provided");
        assert!(control(&both[0], 0).contains(on_abi) && control(&both[1], 0).contains(provides));
        // What has a version of its own is no part of it.
        let mut alone = [deb(
            "lib1",
            "2",
            "Depends: data (= 7)\nSuggests: lib-doc (= 2)\nX-Rocm-GPU-Architecture: gfx906 gfx1030\n",
        )];
        rename(&mut alone).expect("nothing follows");
        assert!(
            control(&alone[0], 0).contains(
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
