//! Downloads files from a mirror, and checks them.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use gfxpack_model::Digest;
use gfxpack_process::FileDigests;

use crate::archive::Progress;
use crate::error::DebianError;
use crate::mirror::{FetchFailure, Incoming, Mirror};

/// Number of tries in a row that may bring no progress.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);
/// What a download may take in all, whatever its size, in addition to the time that its bytes take
/// at [`LEAST_RATE`].
const PATIENCE: Duration = Duration::from_secs(300);
/// Bytes a second.
const LEAST_RATE: u64 = 16 << 10;

/// When to give up on a file with this many bytes, even if some still arrive.
pub(crate) fn deadline(size: u64) -> Instant {
    Instant::now() + PATIENCE + Duration::from_secs(size / LEAST_RATE)
}

/// The expected size and digest of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedFile {
    pub(crate) size: u64,
    pub(crate) sha256: Digest,
}

/// Downloads a file to `to`, continuing an earlier download.
pub(crate) fn download(
    mirror: &Mirror,
    path: &str,
    promise: ExpectedFile,
    to: &Path,
    progress: &dyn Progress,
) -> Result<(), DebianError> {
    let url = mirror.url(path);
    let (mut file, mut before) = open(to, promise.size).map_err(DebianError::io("write", to))?;
    // An earlier part may be from another file. If so, the download starts again,
    // once.
    let mut fresh = before == 0;
    // Only what was never reached before is progress.
    let mut furthest = before;
    let mut tries = 0;
    let deadline = deadline(promise.size);
    loop {
        let open = |from| mirror.open(path, from, deadline);
        let ended = transfer(&open, &url, &mut file, to, before, promise.size, &|done| {
            progress.fetched(done, promise.size);
            progress.is_cancelled()
        });
        let mut now = position(&mut file, promise.size).map_err(DebianError::io("write", to))?;
        match ended {
            Ok(()) if now == promise.size => {
                if sha256(to).map_err(DebianError::io("read", to))? == promise.sha256 {
                    return Ok(());
                }
                empty(&mut file).map_err(DebianError::io("write", to))?;
                (before, furthest) = (0, 0);
                if std::mem::replace(&mut fresh, true) {
                    let _ = fs::remove_file(to);
                    return Err(DebianError::digest(&url));
                }
                continue;
            }
            Ok(()) => {}
            Err(FetchFailure::Final(error)) => return Err(error),
            // The user's interrupt ends curl, too.
            Err(_) if progress.is_cancelled() => return Err(DebianError::interrupted()),
            Err(FetchFailure::NoPart) => {
                now = empty(&mut file).map_err(DebianError::io("write", to))?;
            }
            Err(FetchFailure::Failed(source)) if tries + 1 >= TRIES && now <= furthest => {
                return Err(DebianError::unreachable(&url, source));
            }
            Err(FetchFailure::Failed(_)) => {}
        }
        tries = if now > furthest { 0 } else { tries + 1 };
        furthest = furthest.max(now);
        if tries >= TRIES {
            let source = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(DebianError::unreachable(&url, source));
        }
        before = now;
        pause(tries, progress)?;
    }
}

/// Downloads a small file whose size is not known.
pub(crate) fn small(
    mirror: &Mirror,
    path: &str,
    max: u64,
    deadline: Instant,
    progress: &dyn Progress,
) -> Result<Vec<u8>, DebianError> {
    let url = mirror.url(path);
    let mut tries = 0;
    loop {
        let read = mirror.open(path, 0, deadline).and_then(|incoming| read_to(incoming, max + 1));
        match read {
            Ok(bytes) if bytes.len() as u64 > max => {
                return Err(DebianError::format(&url, format!("it has more than {max} bytes")));
            }
            Ok(bytes) => return Ok(bytes),
            Err(FetchFailure::Final(error)) => return Err(error),
            Err(_) if progress.is_cancelled() => return Err(DebianError::interrupted()),
            Err(FetchFailure::Failed(source)) if tries + 1 >= TRIES => {
                return Err(DebianError::unreachable(&url, source));
            }
            Err(FetchFailure::Failed(_) | FetchFailure::NoPart) => {}
        }
        tries += 1;
        pause(tries, progress)?;
    }
}

/// Reads until the end, or a little more than `most` bytes.
fn read_to(mut incoming: Incoming, most: u64) -> Result<Vec<u8>, FetchFailure> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while (bytes.len() as u64) < most {
        match incoming.read(&mut buffer)? {
            0 => break,
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(bytes)
}

/// The SHA-256 of a file.
///
/// # Errors
/// The error of the file system.
pub fn sha256(path: &Path) -> io::Result<Digest> {
    FileDigests::default().digest(path)
}

/// The part of a file that was already downloaded, and its length.
fn open(path: &Path, max: u64) -> io::Result<(File, u64)> {
    let mut options = File::options();
    let mut file = options.create(true).truncate(false).read(true).write(true).open(path)?;
    let there = position(&mut file, max)?;
    Ok((file, there))
}

/// Seeks to the file's end, and returns the position. If the file is longer than
/// allowed, it is emptied.
fn position(file: &mut File, max: u64) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    if end <= max { Ok(end) } else { empty(file) }
}

fn empty(file: &mut File) -> io::Result<u64> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))
}

/// Appends what comes from `url`, which is opened at a position, to the file `to`, until the end or
/// an error. A file that becomes too long is removed.
fn transfer(
    open: &dyn Fn(u64) -> Result<Incoming, FetchFailure>,
    url: &str,
    file: &mut File,
    to: &Path,
    from: u64,
    size: u64,
    cancelled: &dyn Fn(u64) -> bool,
) -> Result<(), FetchFailure> {
    if from == size && size > 0 {
        return Ok(());
    }
    let write = |error| FetchFailure::Final(DebianError::io("write", to)(error));
    let mut incoming = open(from)?;
    let mut done = from;
    let mut buffer = vec![0; 64 << 10];
    loop {
        if cancelled(done) {
            return Err(FetchFailure::Final(DebianError::interrupted()));
        }
        let read = incoming.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        done += read as u64;
        if done > size {
            let _ = fs::remove_file(to);
            return Err(FetchFailure::Final(DebianError::digest(url)));
        }
        file.write_all(&buffer[..read]).map_err(write)?;
    }
}

/// Waits before the next try, longer each time.
fn pause(tries: u32, progress: &dyn Progress) -> Result<(), DebianError> {
    for _ in 0..tries {
        if progress.is_cancelled() {
            return Err(DebianError::interrupted());
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    struct Silent;

    impl Progress for Silent {}

    #[test]
    fn a_mirror_that_stalls_is_given_up_on_after_a_time_in_all() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let head = b"HTTP/1.1 200 All\r\nContent-Length: 9\r\nConnection: close\r\n\r\nx";
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let _ = stream.write_all(head);
                    // Until the client goes away.
                    let _ = io::copy(&mut stream, &mut io::sink());
                });
            }
        });
        let mirror = Mirror::parse(&url).unwrap();
        let began = Instant::now();
        let error = small(&mirror, "x", 99, began + Duration::from_secs(1), &Silent).unwrap_err();
        let DebianError::Unreachable(error) = error else { panic!("{error:?}") };
        assert_eq!(error.io_kind(), Some(io::ErrorKind::TimedOut));
        // A single read may take longer than this.
        assert!(began.elapsed() < Duration::from_secs(25));
    }
}
