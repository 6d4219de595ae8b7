//! Debian's archive: verified lists and packages, in a cache directory.
//!
//! ```text
//! <cache>/debian/
//!   lock                      held while something is downloaded or unpacked
//!   lists/sid.InRelease       as downloaded; verified again at each use
//!   lists/sid_amd64_<digest>  the list of packages that it names
//!   choices/<digest>          packages that were chosen from lists, as a lock
//!   partial/<digest>          the part of a file that was already downloaded
//!   <digest>/                 a complete unpacked package, by its file's SHA-256
//! ```

use std::cell::OnceCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gfxpack_model::{Digest, Error, ErrorKind, in_full};
use gfxpack_package::read;
use gfxpack_package::signing::Keyring;
use gfxpack_process::{Timestamp, write_atomic};

use crate::download::{self, ExpectedFile, sha256};
use crate::error::{CHANGING, DebianError};
use crate::lock::{Lock, Pin};
use crate::mirror::Mirror;
use crate::release::Release;
use crate::sources;
use crate::suite::Suite;
use crate::unpack::{system_error, unpack};

/// Maximum size of a suite's signed list, in bytes; sid's has 0.2 MB.
const RELEASE_MAX: u64 = 16 << 20;
/// Maximum size of the compressed list of packages, in bytes; sid's has 10 MB.
const LIST_MAX: u64 = 1 << 30;

/// How to reach the archive.
#[derive(Debug, Clone)]
pub struct Options {
    /// URL or directory of a mirror; if `None`, the mirrors in apt's sources.
    pub mirror: Option<String>,
    /// The directory of apt's configuration: `/etc/apt`.
    pub apt: PathBuf,
    /// The keys that may sign the archive, not armoured: [`KEYS`](crate::KEYS).
    pub keys: Vec<u8>,
    /// Debian's name for the processor, if not this machine's.
    pub architecture: Option<String>,
}

/// Hears of what is being done, and may cancel it.
pub trait Progress {
    /// So many bytes of a file have arrived, of so many in all.
    fn fetched(&self, _done: u64, _total: u64) {}

    /// A sentence about what is being done.
    fn note(&self, _text: &str) {}

    /// Something is wrong, but the work continues.
    fn warning(&self, _text: &str) {}

    /// Whether the user wants to cancel.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Debian's archive, accessed through a mirror and a cache.
pub struct Archive<'a> {
    dir: PathBuf,
    options: Options,
    progress: &'a dyn Progress,
    /// The mirror that worked.
    mirror: OnceCell<Mirror>,
}

impl<'a> Archive<'a> {
    /// An archive that keeps its files in `debian` below `cache`. Nothing is
    /// downloaded yet.
    pub fn new(cache: &Path, options: Options, progress: &'a dyn Progress) -> Self {
        Self { dir: cache.join("debian"), options, progress, mirror: OnceCell::new() }
    }

    /// Debian's name for the processor that packages are for.
    ///
    /// Source: dpkg, cputable.
    ///
    /// # Errors
    /// If Debian has no packages for this machine's processor.
    pub fn architecture(&self) -> Result<&str, DebianError> {
        if let Some(architecture) = &self.options.architecture {
            return Ok(architecture);
        }
        match std::env::consts::ARCH {
            "x86_64" => Ok("amd64"),
            "aarch64" => Ok("arm64"),
            "riscv64" => Ok("riscv64"),
            "powerpc64" if cfg!(target_endian = "little") => Ok("ppc64el"),
            other => Err(DebianError::Other(Error::internal(
                format!("Debian has no packages for `{other}`"),
                "give a library that is here, as --miopen PATH",
            ))),
        }
    }

    /// The lock that [`Self::keep`] stored under this name.
    pub fn kept(&self, name: &Digest) -> Option<Lock> {
        Lock::read(&self.choice(name)).ok()
    }

    /// Stores a choice of packages, so that the lists need not be read again.
    /// Errors are ignored.
    pub fn keep(&self, name: &Digest, lock: &Lock) {
        if let Ok(text) = lock.text("") {
            let _ = write(&self.choice(name), text.as_bytes());
        }
    }

    fn choice(&self, name: &Digest) -> PathBuf {
        self.dir.join("choices").join(name.to_string())
    }

    /// Reports a problem that does not stop the work.
    pub fn warn(&self, text: String) {
        self.progress.warning(&text);
    }

    /// The suite as the mirror has it, or, if the mirror can't be reached, as it
    /// was last downloaded. If the list is no longer valid by its own date, it is
    /// used with a warning: a mirror may be a frozen copy on purpose, and
    /// packages from it are identified by version and digest.
    pub fn suite(&self, name: &str) -> Result<Suite, DebianError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return Err(DebianError::format(name, "it is no name of a suite"));
        }
        let _lock = self.lock()?;
        let kept = self.lists().join(format!("{name}.InRelease"));
        let kept_url = kept.display().to_string();
        // What is here counts only if it is still what it was.
        let before = read::bytes(&kept, RELEASE_MAX).ok();
        let before = before.map(|bytes| Ok((self.verified(name, &bytes, &kept_url)?, bytes)));
        let newest = before.as_ref().and_then(|before| before.as_ref().ok());
        let newest = newest.map(|(release, _)| (release, &*kept));
        let (bytes, release, url) = match self.fetch_release(name, newest) {
            Ok((bytes, release, url)) => {
                if release.valid_until.is_some_and(|until| until < Timestamp::now().0) {
                    let date = &release.date;
                    self.warn(format!("`{url}` is out of date: taking {name} as of {date}"));
                }
                (bytes, release, url)
            }
            Err(error) if error.is_unreachable() || matches!(error, DebianError::NoCurl(_)) => {
                let Some(before) = before else { return Err(error) };
                let (release, bytes): (Release, Vec<u8>) = before?;
                let date = &release.date;
                self.warn(format!("{}: taking {name} as of {date}", in_full(&error)));
                (bytes, release, kept_url)
            }
            Err(error) => return Err(error),
        };
        let list = self.list(name, &release)?;
        // The file is opened, since the next list of this suite will replace it.
        let list = File::open(&list).map_err(DebianError::io("read", &list))?;
        write(&kept, &bytes)?;
        let sha256 = release.packages.1.sha256;
        Ok(Suite { name: name.to_owned(), date: release.date, sha256, list: list.into(), url })
    }

    /// The directory with a package's files. Downloads and unpacks it if
    /// necessary. What has its digest is the package, wherever it is from.
    pub fn unpacked(&self, pin: &Pin) -> Result<PathBuf, DebianError> {
        let dir = self.dir.join(pin.sha256.to_string());
        if dir.is_dir() {
            return Ok(dir);
        }
        let _lock = self.lock()?;
        if dir.is_dir() {
            return Ok(dir);
        }
        let partial = self.partial(&pin.sha256.to_string())?;
        let mirror = self.fetch_package(pin, &partial)?;
        let new = tempfile::Builder::new()
            .prefix("new-")
            .tempdir_in(&self.dir)
            .map_err(DebianError::io("write", &self.dir))?;
        unpack(&partial, new.path()).map_err(|error| match system_error(&error) {
            Some(error) => DebianError::io("unpack", &dir)(error),
            None => DebianError::Other(Error::internal(
                format!("failed to unpack `{}`: {}", mirror.url(&pin.file), in_full(&error)),
                "please report it: Debian's package is not as it is known to be",
            )),
        })?;
        // The directory's name promises complete contents, also after a power
        // failure.
        File::open(new.path())
            .and_then(|file| Ok(rustix::fs::syncfs(file)?))
            .map_err(DebianError::io("write", &dir))?;
        fs::rename(new.path(), &dir).map_err(DebianError::io("write", &dir))?;
        // The directory was renamed, so there is nothing to remove.
        let _ = new.keep();
        let _ = fs::remove_file(&partial);
        Ok(dir)
    }

    /// Downloads a package to `partial` from the mirror that worked or was given,
    /// or from the first mirror of apt's sources that has it.
    fn fetch_package(&self, pin: &Pin, partial: &Path) -> Result<&Mirror, DebianError> {
        let promise = ExpectedFile { size: pin.size, sha256: pin.sha256 };
        let fetch = |mirror: &Mirror| {
            download::download(mirror, &pin.file, promise, partial, self.progress)
        };
        if self.mirror.get().is_some() || self.options.mirror.is_some() {
            let mirror = self.mirror()?;
            return fetch(mirror).map(|()| mirror);
        }
        let (mut tried, mut gone) = (Vec::new(), None);
        for text in sources::mirrors(&self.options.apt) {
            let fetched = Mirror::parse(&text).and_then(|mirror| fetch(&mirror).map(|()| mirror));
            match fetched {
                Ok(mirror) => return Ok(self.mirror.get_or_init(|| mirror)),
                Err(error @ (DebianError::Here(_) | DebianError::NoCurl(_))) => return Err(error),
                Err(error) if error.is_gone() => gone = gone.or(Some(error)),
                Err(error) => tried.push((text, in_full(&error))),
            }
        }
        Err(gone.unwrap_or_else(|| DebianError::no_mirror(&tried)))
    }

    /// Downloads the signed list of a suite from the given mirror, or from the
    /// first mirror of apt's sources that has Debian's archive. It is not older
    /// than the `newest`, which was read from a file.
    fn fetch_release(
        &self,
        name: &str,
        newest: Option<(&Release, &Path)>,
    ) -> Result<(Vec<u8>, Release, String), DebianError> {
        let path = format!("dists/{name}/InRelease");
        let fetch = |mirror: &Mirror| {
            let deadline = download::deadline(RELEASE_MAX);
            let bytes = download::small(mirror, &path, RELEASE_MAX, deadline, self.progress)?;
            let url = mirror.url(&path);
            let release = self.verified(name, &bytes, &url)?;
            match newest {
                Some((newest, kept)) if release.is_older_than(newest) => {
                    let (date, kept) = (&release.date, kept.display());
                    Err(DebianError::Unreachable(Error::internal(
                        format!(
                            "`{url}` is of {date}, older than what was taken before (to go back, \
                             remove `{kept}`)"
                        ),
                        CHANGING,
                    )))
                }
                _ => Ok((bytes, release, url)),
            }
        };
        if self.mirror.get().is_some() || self.options.mirror.is_some() {
            return fetch(self.mirror()?);
        }
        let mut tried = Vec::new();
        for text in sources::mirrors(&self.options.apt) {
            let fetched = Mirror::parse(&text).and_then(|mirror| Ok((fetch(&mirror)?, mirror)));
            match fetched {
                Ok((fetched, mirror)) if fetched.1.origin == "Debian" => {
                    let _ = self.mirror.set(mirror);
                    return Ok(fetched);
                }
                Ok((fetched, _)) => {
                    tried.push((text, format!("its origin is `{}`", fetched.1.origin)));
                }
                Err(error @ (DebianError::Here(_) | DebianError::NoCurl(_))) => return Err(error),
                Err(error) => tried.push((text, in_full(&error))),
            }
        }
        Err(DebianError::no_mirror(&tried))
    }

    fn verified(&self, name: &str, bytes: &[u8], url: &str) -> Result<Release, DebianError> {
        let keyring = Keyring::of(&self.options.keys).map_err(DebianError::Here)?;
        let text = keyring.check_clear_signed(bytes).map_err(DebianError::Here)?;
        let text = text.map_err(|finding| {
            DebianError::Other(Error::new(
                ErrorKind::Unsound,
                format!("failed to verify `{url}`: {}", finding.detail),
                "name another mirror by GFXPACK_DEBIAN_MIRROR; a newer gfxpack knows newer keys",
            ))
        })?;
        let format = |reason| DebianError::format(url, reason);
        let release = Release::parse(&text, self.architecture()?).map_err(format)?;
        if release.is_of(name) { Ok(release) } else { Err(format(format!("it is not of {name}"))) }
    }

    /// Downloads the list of packages that a release names.
    fn list(&self, name: &str, release: &Release) -> Result<PathBuf, DebianError> {
        let (path, promise) = &release.packages;
        let prefix = format!("{name}_{}_", self.architecture()?);
        let lists = self.lists();
        let kept = lists.join(format!("{prefix}{}", promise.sha256));
        if sha256(&kept).is_ok_and(|found| found == promise.sha256) {
            return Ok(kept);
        }
        let mirror = self.mirror()?;
        if promise.size > LIST_MAX {
            let reason = format!("it has more than {LIST_MAX} bytes");
            return Err(DebianError::format(&mirror.url(path), reason));
        }
        let partial = self.partial(&promise.sha256.to_string())?;
        let plain = format!("dists/{name}/{path}");
        let fetch =
            |path: &str| download::download(mirror, path, *promise, &partial, self.progress);
        let dir = plain.rsplit_once('/').map_or("", |(dir, _)| dir);
        let hashed = format!("{dir}/by-hash/SHA256/{}", promise.sha256);
        match if release.by_hash { fetch(&hashed) } else { fetch(&plain) } {
            // Mirrors may lack the directory `by-hash`.
            Err(DebianError::NotFound(_)) if release.by_hash => fetch(&plain)?,
            fetched => fetched?,
        }
        fs::create_dir_all(&lists).map_err(DebianError::io("write", &lists))?;
        for old in fs::read_dir(&lists).into_iter().flatten().flatten() {
            if old.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = fs::remove_file(old.path());
            }
        }
        fs::rename(&partial, &kept).map_err(DebianError::io("write", &kept))?;
        Ok(kept)
    }

    fn mirror(&self) -> Result<&Mirror, DebianError> {
        if let Some(mirror) = self.mirror.get() {
            return Ok(mirror);
        }
        let Some(text) = &self.options.mirror else {
            return Err(DebianError::no_mirror(&[]));
        };
        let mirror = Mirror::parse(text)?;
        Ok(self.mirror.get_or_init(|| mirror))
    }

    fn lists(&self) -> PathBuf {
        self.dir.join("lists")
    }

    fn partial(&self, name: &str) -> Result<PathBuf, DebianError> {
        let dir = self.dir.join("partial");
        fs::create_dir_all(&dir).map_err(DebianError::io("write", &dir))?;
        Ok(dir.join(name))
    }

    /// Locks the cache, so that other processes do not download the same files, and removes
    /// leftovers of killed runs. The lock ends with the returned file.
    fn lock(&self) -> Result<File, DebianError> {
        fs::create_dir_all(&self.dir).map_err(DebianError::io("write", &self.dir))?;
        let path = self.dir.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(DebianError::io("write", &path))?;
        if file.try_lock().is_err() {
            self.progress.note("waiting for another gfxpack that fetches packages");
            file.lock().map_err(DebianError::io("lock", &path))?;
        }
        for left in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if left.file_name().to_string_lossy().starts_with("new-") {
                let _ = fs::remove_dir_all(left.path());
            }
        }
        Ok(file)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), DebianError> {
    write_atomic(path, &[bytes]).map_err(DebianError::io("write", path))
}
