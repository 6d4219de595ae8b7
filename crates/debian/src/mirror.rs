//! A mirror of the archive: a web server or a directory.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gfxpack_model::Error;
use gfxpack_package::read;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Proxy};

use crate::error::DebianError;

/// A connection without data for this long is closed.
const IDLE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(20);

/// Proxies, as in the usual environment variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// `http_proxy`.
    pub http: Option<String>,
    /// `https_proxy`.
    pub https: Option<String>,
    /// `no_proxy`.
    pub none: Option<String>,
}

/// The source of files.
#[derive(Debug, Clone)]
pub(crate) enum Mirror {
    Web { base: String, agent: Agent },
    Directory(PathBuf),
}

/// Why a file was not received.
#[derive(Debug)]
pub(crate) enum FetchFailure {
    /// Another try may succeed.
    Failed(io::Error),
    /// Another try is useless.
    Final(DebianError),
}

/// A file that is being received.
pub(crate) struct Incoming {
    /// The position in the file at which the data begin.
    pub(crate) from: u64,
    pub(crate) bytes: Box<dyn Read>,
}

impl Mirror {
    /// A mirror given by its URL or directory.
    pub(crate) fn parse(text: &str, proxies: &Proxies) -> Result<Self, DebianError> {
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
        let proxy = match trimmed.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase()) {
            Some(scheme) if scheme == "http" => &proxies.http,
            Some(scheme) if scheme == "https" => &proxies.https,
            None if Path::new(text).is_dir() => return Ok(Self::Directory(text.into())),
            _ => return Err(bad()),
        };
        let agent = agent(proxy.as_deref(), proxies.none.as_deref()).map_err(|_| bad())?;
        Ok(Self::Web { base: trimmed.to_owned(), agent })
    }

    /// The URL of a file, for display.
    pub(crate) fn url(&self, path: &str) -> String {
        match self {
            Self::Web { base, .. } => format!("{base}/{path}"),
            Self::Directory(dir) => dir.join(path).display().to_string(),
        }
    }

    /// Opens a file from `from` on. If the server does not support that, the data
    /// begin at the start of the file. Reading from a server fails after the deadline.
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
                Ok(Incoming { from, bytes: Box::new(file) })
            }
            Self::Web { agent, .. } => open(agent, &url, from, deadline),
        }
    }
}

fn not_found(url: &str) -> FetchFailure {
    FetchFailure::Final(DebianError::not_found(url))
}

fn refused(url: &str, source: io::Error) -> FetchFailure {
    FetchFailure::Final(DebianError::unreachable(url, source))
}

fn open(agent: &Agent, url: &str, from: u64, deadline: Instant) -> Result<Incoming, FetchFailure> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        let late = io::Error::new(io::ErrorKind::TimedOut, "it comes too slowly, or not at all");
        return Err(refused(url, late));
    }
    let mut request = agent.get(url).config().timeout_global(Some(left)).build();
    if from > 0 {
        request = request.header("Range", format!("bytes={from}-"));
    }
    let response = request.call().map_err(|error| match error {
        ureq::Error::Io(error) => FetchFailure::Failed(error),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => refused(url, io::Error::other(error)),
        error => FetchFailure::Failed(io::Error::other(error)),
    })?;
    let status = response.status().as_u16();
    let answer = || io::Error::other(format!("the server answers {}", response.status()));
    let from = match status {
        200 => 0,
        206 if starts_at(response.headers().get("Content-Range"), from) => from,
        404 | 410 => return Err(not_found(url)),
        // The part that is here is longer than the file on the server.
        416 if from > 0 => return open(agent, url, 0, deadline),
        408 | 425 | 429 | 500..600 => return Err(FetchFailure::Failed(answer())),
        _ => return Err(refused(url, answer())),
    };
    Ok(Incoming { from, bytes: Box::new(response.into_body().into_reader()) })
}

/// Source: RFC 9110, section 14.4.
fn starts_at(range: Option<&ureq::http::HeaderValue>, from: u64) -> bool {
    let range = range.and_then(|range| range.to_str().ok()).unwrap_or_default();
    let start = range.strip_prefix("bytes ").and_then(|range| range.split('-').next());
    start.and_then(|start| start.trim().parse().ok()) == Some(from)
}

fn agent(proxy: Option<&str>, no_proxy: Option<&str>) -> Result<Agent, ureq::Error> {
    let proxy = proxy.filter(|proxy| !proxy.is_empty());
    let proxy = proxy.map(|proxy| with_exceptions(proxy, no_proxy)).transpose()?;
    // Downloads are verified by digest. TLS uses the machine's own certificates,
    // like all other programs on it.
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("gfxpack/", env!("CARGO_PKG_VERSION")))
        .proxy(proxy)
        .tls_config(tls)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(IDLE))
        .timeout_per_read(Some(IDLE))
        .build();
    Ok(config.into())
}

fn with_exceptions(proxy: &str, exceptions: Option<&str>) -> Result<Proxy, ureq::Error> {
    let proxy = Proxy::new(proxy)?;
    let Some(exceptions) = exceptions else { return Ok(proxy) };
    let mut builder = Proxy::builder(proxy.protocol()).host(proxy.host()).port(proxy.port());
    if let Some(user) = proxy.username() {
        builder = builder.username(user);
    }
    if let Some(password) = proxy.password() {
        builder = builder.password(password);
    }
    for exception in exceptions.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        builder = builder.no_proxy(exception);
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_a_url_or_a_directory() {
        let check = |text: &str, expected: Option<&str>| {
            let mirror = Mirror::parse(text, &Proxies::default()).ok();
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

    #[test]
    fn a_proxy_may_have_exceptions() {
        let proxies = Proxies {
            http: Some("http://user:word@proxy.example:3128".to_owned()),
            https: None,
            none: Some("localhost, .example.org".to_owned()),
        };
        assert!(Mirror::parse("http://mirror.example/debian", &proxies).is_ok());
        let proxy = with_exceptions(proxies.http.as_deref().unwrap(), proxies.none.as_deref());
        let proxy = proxy.unwrap();
        assert!(proxy.is_no_proxy(&"http://localhost/".parse().unwrap()));
        assert!(!proxy.is_no_proxy(&"http://mirror.example/".parse().unwrap()));
        let broken = Proxies { http: Some("::".to_owned()), ..Proxies::default() };
        assert!(Mirror::parse("http://mirror.example/debian", &broken).is_err());
    }
}
