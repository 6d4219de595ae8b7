//! A mirror of the archive: a web server or a directory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use gfxpack_model::Error;
use gfxpack_package::read;
use gfxpack_process::{RunningTool, SystemTool, ToolOutput};

use crate::error::DebianError;

/// It knows proxies, certificates and redirections like all programs of the machine.
const CURL: SystemTool = SystemTool { program: "curl", provided_by: "curl" };

/// What it does for every file. Files are verified by their digests, so plain http is fine. A
/// connection without data for half a minute is closed.
const OPTIONS: &[&str] = &[
    // First, so that no configuration of the user's changes what is written.
    "--disable",
    "--silent",
    "--show-error",
    "--fail",
    "--globoff",
    "--location",
    "--proto",
    "=http,https",
    "--connect-timeout",
    "20",
    "--speed-limit",
    "1",
    "--speed-time",
    "30",
    // The URL comes by standard input: it may have a password, and others see arguments.
    "--config",
    "-",
    "--user-agent",
    concat!("gfxpack/", env!("CARGO_PKG_VERSION")),
    "--write-out",
    "%{stderr}\nstatus %{http_code}\n",
];

/// The source of files.
#[derive(Debug, Clone)]
pub(crate) enum Mirror {
    Web(String),
    Directory(PathBuf),
}

/// Why a file was not received.
#[derive(Debug)]
pub(crate) enum FetchFailure {
    /// Another try may succeed.
    Failed(io::Error),
    /// The server has no parts of files, or none from that position on.
    NoPart,
    /// Another try is useless.
    Final(DebianError),
}

/// A file that is being received.
pub(crate) enum Incoming {
    File(File),
    Web { url: String, from: u64, curl: Option<RunningTool> },
}

impl Mirror {
    /// A mirror given by its URL or directory.
    pub(crate) fn parse(text: &str) -> Result<Self, DebianError> {
        let bad = || {
            DebianError::Other(Error::usage(
                format!(
                    "`{text}` is no mirror: it is neither a URL of http, https or file nor a \
                     directory"
                ),
                "give the address that apt would have, up to `dists`, or a copy's directory",
            ))
        };
        let trimmed = text.trim_end_matches('/');
        if let Some(path) = trimmed.strip_prefix("file:") {
            let path = path.strip_prefix("//localhost").unwrap_or(path);
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') {
                Ok(Self::Directory(path.into()))
            } else {
                Err(bad())
            };
        }
        match trimmed.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase()) {
            Some(scheme) if matches!(&*scheme, "http" | "https") => Ok(Self::Web(trimmed.into())),
            None if Path::new(text).is_dir() => Ok(Self::Directory(text.into())),
            _ => Err(bad()),
        }
    }

    /// The URL of a file, for display.
    pub(crate) fn url(&self, path: &str) -> String {
        match self {
            Self::Web(base) => format!("{base}/{path}"),
            Self::Directory(dir) => dir.join(path).display().to_string(),
        }
    }

    /// Opens a file from `from` on. Reading from a server fails after the deadline.
    pub(crate) fn open(
        &self,
        path: &str,
        from: u64,
        deadline: Instant,
    ) -> Result<Incoming, FetchFailure> {
        let url = self.url(path);
        match self {
            Self::Directory(dir) => {
                let failed = |error: io::Error| match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_found(&url),
                    _ => refused(&url, error),
                };
                let mut file = read::open(&dir.join(path)).map_err(failed)?;
                file.seek(SeekFrom::Start(from)).map_err(|error| refused(&url, error))?;
                Ok(Incoming::File(file))
            }
            Self::Web(_) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let late = "it comes too slowly, or not at all";
                    return Err(refused(&url, io::Error::new(io::ErrorKind::TimedOut, late)));
                }
                // Of a second at least, since 0 stands for no limit.
                let (left, from_text) = ((left.as_secs() + 1).to_string(), from.to_string());
                let mut arguments = [OPTIONS, &["--max-time", &left]].concat();
                if from > 0 {
                    arguments.extend(["--continue-at", &from_text]);
                }
                let started = CURL.start(&arguments, configuration(&url).as_bytes());
                let curl =
                    started.map_err(|error| FetchFailure::Final(DebianError::NoCurl(error)))?;
                Ok(Incoming::Web { url, from, curl: Some(curl) })
            }
        }
    }
}

impl Incoming {
    /// Reads more bytes; at the file's end none.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, FetchFailure> {
        let (url, from, running) = match self {
            Self::File(file) => return file.read(buffer).map_err(FetchFailure::Failed),
            Self::Web { url, from, curl } => (url, *from, curl),
        };
        let Some(curl) = running else { return Ok(0) };
        let read = curl.read(buffer).map_err(FetchFailure::Failed)?;
        if let Some(curl) = running.take_if(|_| read == 0) {
            judge(url, from, &curl.end().map_err(FetchFailure::Failed)?)?;
        }
        Ok(read)
    }
}

/// The line of curl's configuration that names the URL, and nothing else: a lock file may hold any
/// text.
fn configuration(url: &str) -> String {
    let escaped = url.replace('\\', "\\\\").replace('"', "\\\"");
    format!("url = \"{}\"\n", escaped.replace('\n', "\\n").replace('\r', "\\r"))
}

/// Whether everything was received that lies behind the position `from`.
///
/// Source: curl(1), "EXIT CODES".
fn judge(url: &str, from: u64, curl: &ToolOutput) -> Result<(), FetchFailure> {
    let status = curl.stderr.lines().find_map(|line| line.strip_prefix("status "));
    let status: u16 = status.and_then(|status| status.parse().ok()).unwrap_or(0);
    let answer = || io::Error::other(format!("the server answers {status}"));
    match (curl.status.code(), status) {
        (Some(0), 200 | 206) => Ok(()),
        (Some(22), 404 | 410) => Err(not_found(url)),
        // The part that is here may be longer than the file on the server.
        (Some(33), _) | (Some(0 | 22), 416) if from > 0 => Err(FetchFailure::NoPart),
        (Some(22), 408 | 425 | 429 | 500..600) => Err(FetchFailure::Failed(answer())),
        (Some(0 | 22), _) => Err(refused(url, answer())),
        (code, _) => {
            let said = curl.stderr.lines().find(|line| line.starts_with("curl: "));
            let said = said.and_then(|line| line.split_once(") "));
            let said = said.map_or_else(|| curl.status.to_string(), |(_, text)| text.to_owned());
            let error = io::Error::other(said);
            // 1 and 3: no such protocol, and no URL.
            let is_final = matches!(code, Some(1 | 3));
            Err(if is_final { refused(url, error) } else { FetchFailure::Failed(error) })
        }
    }
}

fn not_found(url: &str) -> FetchFailure {
    FetchFailure::Final(DebianError::not_found(url))
}

fn refused(url: &str, source: io::Error) -> FetchFailure {
    FetchFailure::Final(DebianError::unreachable(url, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_one_line_of_curls_configuration() {
        let line = configuration("http://a/x\"\noutput = /etc/passwd\r\\");
        assert_eq!(line, "url = \"http://a/x\\\"\\noutput = /etc/passwd\\r\\\\\"\n");
    }

    #[test]
    fn a_mirror_is_a_url_or_a_directory() {
        let check = |text: &str, expected: Option<&str>| {
            let mirror = Mirror::parse(text).ok();
            assert_eq!(mirror.map(|mirror| mirror.url("dists")).as_deref(), expected, "{text}");
        };
        check("http://mirror.example/debian/", Some("http://mirror.example/debian/dists"));
        check("https://mirror.example/debian", Some("https://mirror.example/debian/dists"));
        check("file:///srv/debian", Some("/srv/debian/dists"));
        check("file:/srv/debian/", Some("/srv/debian/dists"));
        check("/", Some("/dists"));
        for none in
            ["", "ftp://mirror.example/debian", "file:debian", "mirror.example", "cdrom:[x]/"]
        {
            check(none, None);
        }
    }
}
