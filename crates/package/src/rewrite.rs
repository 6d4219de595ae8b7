//! Writes packages that others built again, with some files smaller and others taken out.

mod archive;
mod deb;
mod image;
mod rpm;
mod wheel;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::output::Written;
use crate::read::PackageKind;

/// A package that is to be written again.
#[derive(Debug)]
pub enum Package {
    /// A .deb.
    Deb(deb::Deb),
    /// An image for containers.
    Image(image::Image),
    /// An .rpm.
    Rpm(Box<rpm::Rpm>),
    /// A wheel.
    Wheel(wheel::Wheel),
}

impl Package {
    /// Reads what a package is; `None` if this kind can't be written again.
    ///
    /// # Errors
    /// [`Error::Rewrite`] if it is damaged or can't be read.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let opened = match PackageKind::from_name(path) {
            Some(PackageKind::Deb) => deb::Deb::open(path).map(Self::Deb),
            Some(PackageKind::Oci) => image::Image::open(path).map(Self::Image),
            Some(PackageKind::Rpm) => rpm::Rpm::open(path).map(|it| Self::Rpm(Box::new(it))),
            Some(PackageKind::Wheel) => wheel::Wheel::open(path).map(Self::Wheel),
            _ => return Ok(None),
        };
        opened.map(Some).map_err(|error| Error::rewrite(path, error))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Deb(deb) => &deb.name,
            Self::Image(image) => &image.name,
            Self::Rpm(rpm) => &rpm.name,
            Self::Wheel(wheel) => &wheel.name,
        }
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        match self {
            Self::Deb(deb) => &deb.version,
            Self::Image(_) => "",
            Self::Rpm(rpm) => &rpm.version,
            Self::Wheel(wheel) => &wheel.version,
        }
    }

    /// The version that it gets.
    #[must_use]
    pub fn new_version(&self) -> String {
        match self {
            Self::Deb(deb) => deb.new_version.clone(),
            Self::Image(image) => image.new_version(),
            Self::Rpm(rpm) => rpm.new_version(),
            Self::Wheel(wheel) => wheel.new_version(),
        }
    }

    /// The name of its file with the version that it gets.
    #[must_use]
    pub fn file_name(&self) -> String {
        match self {
            Self::Deb(deb) => deb.file_name(),
            Self::Image(image) => image.file_name(),
            Self::Rpm(rpm) => rpm.file_name(),
            Self::Wheel(wheel) => wheel.file_name(),
        }
    }

    /// Finds out what `rewriter` makes of its files.
    ///
    /// # Errors
    /// [`Error::Rewrite`].
    pub fn try_out(&self, path: &Path, rewriter: &mut Rewriter<'_>) -> Result<(), Error> {
        let tried = match self {
            Self::Deb(deb) => deb.try_out(rewriter),
            Self::Image(image) => image.try_out(rewriter),
            Self::Rpm(rpm) => rpm.try_out(rewriter),
            Self::Wheel(wheel) => wheel.try_out(rewriter),
        };
        tried.map_err(|error| Error::rewrite(path, error))
    }

    /// Writes it into the directory `dir`, as `rewriter` wants its files, compressed as it was,
    /// on up to `threads` threads. All that does not follow from that stays as it is; signatures
    /// inside are lost.
    ///
    /// # Errors
    /// [`Error::Rewrite`], or [`Error::Write`].
    pub fn write(
        &self,
        dir: &Path,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> Result<Written, Error> {
        match self {
            Self::Deb(deb) => deb.write(dir, threads, rewriter),
            Self::Image(image) => image.write(dir, threads, rewriter),
            Self::Rpm(rpm) => rpm.write(dir, threads, rewriter),
            Self::Wheel(wheel) => wheel.write(dir, rewriter),
        }
    }
}

/// Gives packages a version of their own, with `suffix` after the present one, and has those that
/// need one another exactly follow. Of the GPUs that they say they are for, those stay that `stays`.
///
/// # Errors
/// [`Error::NeedsExactly`] if one needs exactly a package that is not among them and has its
/// version, or another version of one that is.
pub fn rename(
    packages: &mut [Package],
    suffix: &str,
    stays: &dyn Fn(&str) -> bool,
) -> Result<(), Error> {
    let known = packages.iter().map(|it| (it.name().to_owned(), it.version().to_owned()));
    let known: Vec<(String, String)> = known.collect();
    for package in packages {
        match package {
            Package::Deb(deb) => deb.rename(suffix, &known, stays)?,
            Package::Image(image) => image.rename(suffix),
            Package::Rpm(rpm) => rpm.rename(suffix, &known)?,
            Package::Wheel(wheel) => wheel.rename(suffix, &known),
        }
    }
    Ok(())
}

/// Decides about the files of a package.
#[expect(missing_debug_implementations, reason = "it holds functions")]
pub struct Rewriter<'a> {
    /// Whether a file is taken out, by its name; so are links to it.
    pub takes_out: &'a dyn Fn(&Path) -> bool,
    /// What becomes of a file of this many bytes, of which it reads what it needs.
    pub file: &'a mut dyn FnMut(&Path, u64, &mut dyn Read) -> io::Result<Fate>,
}

/// What becomes of a file.
#[derive(Debug)]
pub enum Fate {
    /// It is taken out.
    TakenOut,
    /// It stays. These bytes of it were read.
    Kept(Vec<u8>),
    /// It stays. It was read, and is in this file.
    Copied(File),
    /// Its contents are now those of this file.
    Smaller(File),
}

/// The contents of a file that stays.
struct Contents<'a> {
    size: u64,
    is_smaller: bool,
    bytes: Box<dyn Read + 'a>,
}

impl Rewriter<'_> {
    /// The contents of a file from now on; `None` if it is taken out.
    fn decide<'b>(
        &mut self,
        path: &Path,
        size: u64,
        bytes: &'b mut dyn Read,
    ) -> io::Result<Option<Contents<'b>>> {
        let (mut file, is_smaller) = match (self.file)(path, size, bytes)? {
            Fate::TakenOut => return Ok(None),
            Fate::Kept(read) => {
                let bytes = Box::new(io::Cursor::new(read).chain(bytes));
                return Ok(Some(Contents { size, is_smaller: false, bytes }));
            }
            Fate::Copied(file) => (file, false),
            Fate::Smaller(file) => (file, true),
        };
        let now = file.seek(SeekFrom::End(0))?;
        if !is_smaller && now != size {
            return Err(cut_short(path));
        }
        file.rewind()?;
        Ok(Some(Contents { size: now, is_smaller, bytes: Box::new(file) }))
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
    use std::io::Write as _;
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

    fn rewritten(path: &Path, dir: &Path) -> Result<(), Error> {
        let mut package = [Package::open(path)?.expect("a kind that is rewritten")];
        rename(&mut package, "+gfx1030", &|_| true)?;
        let takes_out = |path: &Path| path.ends_with("taken");
        let mut file = |path: &Path, _: u64, bytes: &mut dyn Read| {
            if takes_out(path) {
                return Ok(Fate::TakenOut);
            }
            let mut smaller = tempfile::tempfile()?;
            io::copy(&mut bytes.take(1), &mut smaller)?;
            smaller.flush()?;
            Ok(Fate::Smaller(smaller))
        };
        let out = dir.join("out");
        std::fs::create_dir_all(&out).expect("made");
        let [package] = &package;
        package.write(&out, 1, &mut Rewriter { takes_out: &takes_out, file: &mut file }).map(drop)
    }
}
