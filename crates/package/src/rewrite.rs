//! Writes packages that others built again, with some files smaller and others taken out.

mod archive;
mod deb;
mod image;
mod rpm;
mod wheel;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use gfxpack_model::{Error, Result};
use sha2::Digest;

use crate::compress::Compression;
use crate::error::rewriting;
use crate::output::{Hashing, Output, Written};
use crate::read::PackageKind;

/// A package that is to be written again.
#[derive(Debug)]
pub struct Package {
    path: PathBuf,
    /// Its name.
    pub name: String,
    /// Its version, in full; an image has none.
    pub version: String,
    /// The end that its version gets.
    suffix: String,
    /// What is before that in the name of its file, and after it.
    file: [String; 2],
    /// Names and versions that it provides beside its own.
    provides: Vec<(String, String)>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Deb(deb::Deb),
    Image(image::Image),
    Rpm(Box<rpm::Rpm>),
    Wheel(wheel::Wheel),
}

/// The new version of another package whose version is needed exactly; `None` if it keeps it. If
/// it must follow and can't, an error.
type Follows<'a> = dyn Fn(&str, &str, bool) -> Result<Option<String>> + 'a;

impl Package {
    /// Reads what a package is; `None` if this kind can't be written again.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let opened = match PackageKind::from_name(path) {
            Some(PackageKind::Deb) => deb::open(path),
            Some(PackageKind::Oci) => image::open(path),
            Some(PackageKind::Rpm) => rpm::open(path),
            Some(PackageKind::Wheel) => wheel::open(path),
            _ => return Ok(None),
        };
        let opened = opened.and_then(|package| {
            let is_named = !package.name.is_empty() && !package.file_name().contains('/');
            is_named.then_some(package).ok_or_else(|| io::Error::other("it has no name or version"))
        });
        opened.map(Some).map_err(rewriting(path))
    }

    /// The version that it gets.
    pub fn new_version(&self) -> String {
        format!("{}{}", self.version, self.suffix)
    }

    /// The name of its file with the version that it gets.
    pub fn file_name(&self) -> String {
        self.file.join(&self.suffix)
    }

    /// Writes it into the directory `dir`, as `rewriter` wants its files, compressed as it was,
    /// on up to `threads` threads. All that does not follow from that stays as it is; signatures
    /// inside are lost. Without `dir`, it only asks `rewriter`.
    pub fn write(
        &self,
        dir: Option<&Path>,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> Result<Option<Written>> {
        let mut output = dir.map(|dir| Output::create(dir, &self.file_name())).transpose()?;
        let (path, out) = (self.path.as_path(), output.as_mut());
        let written = match &self.kind {
            Kind::Deb(deb) => deb.write(path, out, threads, rewriter),
            Kind::Image(image) => image.write(out, threads, rewriter),
            Kind::Rpm(rpm) => rpm.write(path, out, threads, rewriter),
            Kind::Wheel(wheel) => wheel.write(path, out, &self.suffix, rewriter),
        };
        written.map_err(rewriting(path))?;
        output.map(Output::commit).transpose()
    }
}

/// Gives packages a version of their own, with `suffix` after the present one, and has those that
/// need one another exactly follow. Of the GPUs that they say they are for, those stay that `stays`.
///
/// # Errors
/// If one needs exactly a package that is not among them and has its
/// version, or another version of one that is.
pub fn rename(packages: &mut [Package], suffix: &str, stays: &dyn Fn(&str) -> bool) -> Result {
    // Names, versions and new versions. What a package provides beside its name stays.
    let mut given = Vec::new();
    for package in &mut *packages {
        // The version of a wheel has one local part.
        let has_local = matches!(package.kind, Kind::Wheel(_)) && package.version.contains('+');
        package.suffix = if has_local { suffix.replacen('+', ".", 1) } else { suffix.to_owned() };
        given.push((package.name.clone(), package.version.clone(), package.new_version()));
        let stays =
            |(name, version): &(String, String)| (name.clone(), version.clone(), version.clone());
        given.extend(package.provides.iter().map(stays));
    }
    for package in packages {
        let new_version = package.new_version();
        let Package { name, version, kind, .. } = package;
        let follows = |needed: &str, exactly: &str, must: bool| {
            let mut same = given.iter().filter(|(it, ..)| it == needed);
            let found = same.clone().find(|(_, it, _)| it == exactly);
            let is_sibling = exactly == version || same.any(|(_, it, new)| it != new);
            if found.is_none() && is_sibling && must {
                return Err(Error::usage(
                    format!("failed to rename `{name}`: it needs exactly {exactly} of `{needed}`"),
                    format!("give the package `{needed}` of that version in the same command"),
                ));
            }
            Ok(found.map(|(.., new)| new.clone()))
        };
        match kind {
            Kind::Deb(deb) => deb.rename([name, version, &new_version], stays, &follows)?,
            Kind::Image(_) => {}
            Kind::Rpm(rpm) => rpm.rename([name, version], suffix, &follows)?,
            Kind::Wheel(wheel) => wheel.rename(&new_version, &follows)?,
        }
    }
    Ok(())
}

/// Decides about the files of a package.
pub struct Rewriter<'a> {
    /// Whether a file is taken out, by its name; so are links to it.
    pub takes_out: &'a dyn Fn(&Path) -> bool,
    /// What is in a file of this many bytes from now on; `None` if it is taken out.
    pub file: &'a mut Decide<'a>,
}

/// Decides about a file.
type Decide<'a> =
    dyn for<'b> FnMut(&Path, u64, &'b mut dyn Read) -> io::Result<Option<Contents<'b>>> + 'a;

/// The contents of a file that stays.
pub struct Contents<'a> {
    size: u64,
    is_smaller: bool,
    bytes: Box<dyn Read + 'a>,
}

impl Rewriter<'_> {
    /// Whether a symbolic link at `path` leads to a file that is taken out.
    fn takes_out_link(&self, path: &Path, target: &Path) -> bool {
        let leads = path.with_file_name("").join(target);
        (self.takes_out)(&plain(leads.as_os_str().as_encoded_bytes()))
    }
}

impl<'a> Contents<'a> {
    /// Those that it had.
    pub fn same(size: u64, bytes: impl Read + 'a) -> Self {
        Self { size, is_smaller: false, bytes: Box::new(bytes) }
    }

    /// Those of a temporary file, which are fewer.
    pub fn smaller(mut file: File) -> io::Result<Self> {
        let size = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        Ok(Self { size, is_smaller: true, bytes: Box::new(file) })
    }

    /// Writes them, with zeros up to a multiple of `align`, and returns their digest.
    fn write<D: Digest>(
        mut self,
        out: &mut dyn Write,
        align: u64,
        path: &Path,
    ) -> io::Result<String> {
        let mut hashing = Hashing::with(&mut *out, D::new());
        io::copy(&mut self.bytes, &mut hashing)?;
        let (_, digest, written) = hashing.finish();
        if written != self.size {
            return Err(cut_short(path));
        }
        io::copy(&mut io::repeat(0).take(written.next_multiple_of(align) - written), out)?;
        Ok(digest)
    }
}

/// The compressor for what was compressed so, at its level or the one that Debian and Ubuntu use.
fn compression(codec: &str, level: Option<u32>) -> Compression {
    let level = |usual: u32, most: u32| level.unwrap_or(usual).clamp(1, most);
    match codec {
        "xz" => Compression::Xz { level: level(6, 9) },
        "zst" | "zstd" => Compression::Zst { level: level(19, 19) },
        _ => Compression::Gz { level: level(9, 9) },
    }
}

fn cut_short(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` is cut short", path.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// A path in an archive, without `./`, `..` and slashes before it.
fn plain(name: &[u8]) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in Path::new(&text(name)).components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir => plain.clear(),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use gfxpack_model::package::{Content, PackageFile};

    use super::*;
    use crate::format::Format;
    use crate::test_support::empty_spec;

    /// How many damaged packages of each kind are tried; more by hand.
    const ROUNDS: u64 = 40;

    #[test]
    fn damaged_packages_are_refused_or_rewritten() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut spec = empty_spec();
        "thing".clone_into(&mut spec.name);
        for name in ["a", "b", "taken"] {
            let bytes = Content::Bytes(name.repeat(700).into_bytes());
            spec.files.push(PackageFile::readable(format!("/usr/lib/{name}"), bytes));
        }
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for format in [Format::DEB, Format::RPM, Format::Wheel, Format::Oci] {
            let written = format.write(&spec, dir.path(), 1, None).expect("written");
            let whole = std::fs::read(&written.path).expect("read");
            assert!(rewritten(&written.path, dir.path()).is_ok(), "{format:?}");
            let file = File::options().write(true).open(&written.path).expect("opened");
            let mut refused = 0;
            for _ in 0..ROUNDS {
                let at = next(whole.len() as u64);
                let old = whole[at as usize];
                let new = [0, 0xff, old ^ 1 << next(8), next(256) as u8][next(4) as usize];
                file.write_all_at(&[new], at).expect("written");
                refused += u64::from(rewritten(&written.path, dir.path()).is_err());
                file.write_all_at(&[old], at).expect("written");
            }
            assert!(refused > ROUNDS / 20, "{format:?}: {refused}");
        }
    }

    fn rewritten(path: &Path, dir: &Path) -> Result {
        let mut package = [Package::open(path)?.expect("a kind that is rewritten")];
        rename(&mut package, "+gfx1030", &|_| true)?;
        let takes_out = |path: &Path| path.ends_with("taken");
        let out = dir.join("out");
        std::fs::create_dir_all(&out).expect("made");
        let [package] = &package;
        let mut rewriter = Rewriter {
            takes_out: &takes_out,
            file: &mut |path, _, bytes| {
                if takes_out(path) {
                    return Ok(None);
                }
                let mut smaller = tempfile::tempfile()?;
                io::copy(&mut bytes.take(1), &mut smaller)?;
                Contents::smaller(smaller).map(Some)
            },
        };
        package.write(Some(&out), 1, &mut rewriter).map(drop)
    }
}
