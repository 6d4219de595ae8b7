//! A store of objects shared over the network, named by a URL.
//!
//! | URL | what |
//! | --- | --- |
//! | `file:///DIR` | a directory, on a network's file system |
//! | `s3://BUCKET/PREFIX` | Amazon's S3 and its kin, with `?endpoint=…&region=…` |
//! | `gs://BUCKET/PREFIX` | Google Cloud Storage |
//! | `webdav://HOST/PATH`, `webdavs://` | WebDAV over HTTP or HTTPS |
//! | `redis://HOST:PORT/DB`, `rediss://` | Redis |
//!
//! The part after `?` has the settings of OpenDAL's service; a value that begins with `@` is read
//! from the file that it names.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use gfxpack_compile::{STORE_VERSION, SharedStore};
use gfxpack_model::with_causes;
use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::{ErrorKind, Operator, services};
use tokio::runtime::Runtime;
use tokio_stream::StreamExt as _;

use crate::background_runtime::background_runtime;

/// How long an answer may take, and how long a transfer may stall.
const CALL_LIMIT: Duration = Duration::from_secs(20);
const IO_LIMIT: Duration = Duration::from_secs(20);
/// Attempts per operation; waiting long for a cache does not pay.
const RETRIES: usize = 2;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The content type of everything that is stored.
const CONTENT_TYPE: &str = "application/octet-stream";

/// A shared store with a URL.
pub struct RemoteCache {
    runtime: &'static Runtime,
    name: String,
    /// The error if there is none. It is found out at once only for directories: a directory that
    /// is not mounted is a cache that is down.
    operator: Result<Operator, String>,
}

impl fmt::Debug for RemoteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteCache").field("name", &self.name).finish()
    }
}

/// The parts of a URL: scheme, host, path, settings.
type Parts<'a> = (&'a str, &'a str, &'a str, HashMap<String, String>);

fn no_url(reason: &str) -> String {
    format!("it is no URL of a cache: {reason}")
}

fn parts(url: &str) -> Result<Parts<'_>, String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| no_url("SCHEME:// is missing"))?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    if host.contains('@') {
        // Credentials in a URL would appear in the list of processes, and in every message.
        return Err(no_url("who we are is said in settings: ?username=…&password=@FILE"));
    }
    let mut settings = HashMap::new();
    for setting in query.split('&').filter(|setting| !setting.is_empty()) {
        let (key, value) =
            setting.split_once('=').ok_or_else(|| no_url("a setting is no NAME=VALUE"))?;
        let value = match value.strip_prefix('@') {
            None => value.to_owned(),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|_| format!("`{path}` can't be read"))?
                .trim()
                .to_owned(),
        };
        settings.insert(key.to_owned(), value);
    }
    Ok((scheme, host, path.trim_end_matches('/'), settings))
}

/// The store of a URL; an error inside if its settings are invalid.
fn operator(url: &str) -> Result<opendal::Result<Operator>, String> {
    let (scheme, host, path, mut settings) = parts(url)?;
    let needs_host = scheme != "file";
    if needs_host && host.is_empty() {
        return Err(no_url("the host or bucket is missing"));
    }
    let mut set = |key: &str, value: String| {
        settings.entry(key.to_owned()).or_insert(value);
    };
    macro_rules! service {
        ($service:ty) => {
            Operator::from_iter::<$service>(settings).map(|it| it.finish())
        };
    }
    let operator = match scheme {
        "file" if host.is_empty() && !path.is_empty() => {
            set("root", format!("/{path}"));
            // Readers see all of a file or none.
            set("atomic_write_dir", format!("/{path}/tmp"));
            service!(services::Fs)
        }
        "file" => return Err(no_url("write file:///DIR, with three slashes")),
        "s3" => {
            set("bucket", host.to_owned());
            set("root", format!("/{path}"));
            service!(services::S3)
        }
        "gs" | "gcs" => {
            set("bucket", host.to_owned());
            set("root", format!("/{path}"));
            service!(services::Gcs)
        }
        "webdav" | "webdavs" => {
            let http = if scheme == "webdav" { "http" } else { "https" };
            set("endpoint", format!("{http}://{host}"));
            set("root", format!("/{path}"));
            service!(services::Webdav)
        }
        "redis" | "rediss" => {
            set("endpoint", format!("{scheme}://{host}"));
            if !path.is_empty() {
                set("db", path.to_owned());
            }
            set("root", "/gfxpack".to_owned());
            service!(services::Redis)
        }
        _ => return Err(no_url("known are file, s3, gs, webdav(s) and redis(s)")),
    };
    let timeout = TimeoutLayer::new().with_timeout(CALL_LIMIT).with_io_timeout(IO_LIMIT);
    let retry =
        RetryLayer::new().with_max_times(RETRIES).with_max_delay(LONGEST_PAUSE).with_jitter();
    Ok(operator.map(|it| it.layer(timeout).layer(retry)))
}

impl RemoteCache {
    /// Opens the cache of a URL, without contacting it yet.
    ///
    /// # Errors
    /// What is wrong with the URL or a setting.
    pub fn open(url: &str) -> Result<Self, String> {
        // If several crates enable different cryptography providers, one has to be chosen. An error
        // means that it was chosen already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let runtime = background_runtime("shared-cache").map_err(|error| error.to_string())?;
        let operator = {
            let _inside = runtime.enter();
            operator(url)?.map_err(|error| error.to_string())
        };
        if let (Err(reason), false) = (&operator, url.starts_with("file:")) {
            return Err(reason.clone());
        }
        // Settings may contain secrets.
        let name = format!("`{}`", url.split('?').next().unwrap_or(url));
        Ok(Self { runtime, name, operator })
    }

    fn operator(&self) -> Result<&Operator, String> {
        self.operator.as_ref().map_err(Clone::clone)
    }

    fn block_on<T>(
        &self,
        call: impl Future<Output = Result<T, opendal::Error>>,
    ) -> Result<Option<T>, String> {
        match self.runtime.block_on(call) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(one_line(&error)),
        }
    }
}

/// An error as one line.
fn one_line(error: &opendal::Error) -> String {
    let message = error.to_string();
    let message = message.split(", context:").next().unwrap_or_default().trim();
    with_causes(message.to_owned(), error)
}

impl SharedStore for RemoteCache {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let operator = self.operator()?;
        self.block_on(async {
            let mut stream = operator.reader(&path(name)).await?.into_stream(..).await?;
            let mut bytes = Vec::new();
            // Services report the length before the first byte, except for directories; Redis
            // reports it after sending everything.
            let known = match stream.metadata().await {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    operator.stat(&path(name)).await?
                }
                other => other?,
            };
            if known.content_length() > most {
                return Ok(bytes);
            }
            while bytes.len() as u64 <= most
                && let Some(part) = stream.try_next().await?
            {
                part.into_iter().for_each(|chunk| bytes.extend_from_slice(&chunk));
            }
            Ok(bytes)
        })
    }

    fn has(&self, name: &str) -> Result<bool, String> {
        Ok(self.block_on(self.operator()?.exists(&path(name)))?.unwrap_or(false))
    }

    fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), String> {
        let path = path(name);
        // Servers should not guess the type; some handle a missing one badly.
        let write = self.operator()?.write_with(&path, bytes).content_type(CONTENT_TYPE);
        let written = self.block_on(write.into_future())?;
        written.map(|_| ()).ok_or_else(|| format!("there is no place for `{path}`"))
    }
}

/// Names are the store's own; the layout version is part of the path.
fn path(name: &str) -> String {
    format!("{STORE_VERSION}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_secrets_stay_out_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "hush\n").unwrap();
        let url = format!("webdav://host:80/a/b/?username=me&password=@{}", secret.display());
        let (scheme, host, path, settings) = parts(&url).unwrap();
        assert_eq!((scheme, host, path), ("webdav", "host:80", "a/b"));
        assert_eq!(settings["password"], "hush");
        for good in [
            "file:///tmp/cache",
            "s3://bucket/prefix?region=eu-central-1&endpoint=http://127.0.0.1:9000",
            "gs://bucket",
            "webdavs://host/dav",
            "redis://host:6379/2",
        ] {
            assert_eq!(
                RemoteCache::open(good).map(|_| ()).map_err(|e| e.to_string()),
                Ok(()),
                "{good}"
            );
        }
        for bad in [
            "/tmp/cache",
            "file://host/dir",
            "s3://",
            "ftp://host",
            "webdav://me:hush@host/",
            "s3://b?x",
        ] {
            assert!(RemoteCache::open(bad).is_err(), "{bad}");
        }
        assert_eq!(RemoteCache::open(&url).unwrap().name(), "`webdav://host:80/a/b/`");
    }
}
