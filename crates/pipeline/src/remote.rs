//! The remote execution service, and the cache shared with other machines.

use std::sync::Arc;

use gfxpack_compile::{Remote, SharedCache};

use crate::error::{self, Result};
use crate::options::BuildOptions;

/// The execution service, if one was given.
///
/// # Errors
/// If one was given, because this gfxpack was built without remote execution.
#[cfg(not(feature = "remote"))]
pub(crate) fn workers(options: &BuildOptions) -> Result<Option<Remote>> {
    match &options.remote {
        None => Ok(None),
        Some(_) => Err(error::usage(
            "failed to use --remote: this gfxpack was built without remote execution",
            "build it with `cargo build --release --features remote`",
        )),
    }
}

/// The execution service, if one was given. It is not connected yet.
///
/// # Errors
/// If its address or a setting is invalid.
#[cfg(feature = "remote")]
pub(crate) fn workers(options: &BuildOptions) -> Result<Option<Remote>> {
    use gfxpack_remote::{Address, RemoteExecution, RemoteOptions};

    let Some(remote) = &options.remote else { return Ok(None) };
    let address = &remote.address;
    let address = address.parse::<Address>().map_err(|error| {
        error::usage(
            format!("failed to read `--remote {address}`: {error}"),
            "write grpc://HOST:PORT/INSTANCE, or grpcs:// with encryption; the instance may be left out",
        )
    })?;
    let header = |(name, value): &(String, String)| -> Result<(String, String)> {
        let value = match value.strip_prefix('@') {
            None => value.clone(),
            Some(file) => std::fs::read_to_string(file)
                .map_err(error::io("read", std::path::Path::new(file)))?
                .trim()
                .to_owned(),
        };
        Ok((name.clone(), value))
    };
    let remote_options = RemoteOptions {
        address,
        jobs: remote.jobs.into(),
        headers: remote.headers.iter().map(header).collect::<Result<_>>()?,
        ca: remote.ca.clone(),
        identity: remote.identity.clone(),
        platform: remote.platform.clone(),
        cache_only: remote.cache_only,
        wait_limit: remote.deadline,
    };
    let workers = RemoteExecution::new(remote_options)?;
    // If the service is only a cache, this machine compiles only what the service
    // lacks.
    let alone = options.jobs.is_none() || remote.cache_only;
    Ok(Some(Remote { workers: Arc::new(workers), alone }))
}

/// The shared cache, if one was given.
///
/// # Errors
/// If one was given, because this gfxpack was built without shared caches.
#[cfg(not(feature = "remote-cache"))]
pub(crate) fn cache(options: &BuildOptions) -> Result<Option<Arc<SharedCache>>> {
    match &options.shared_cache {
        None => Ok(None),
        Some(_) => Err(error::usage(
            "failed to use --cache-remote: this gfxpack was built without shared caches",
            "build it with `cargo build --release --features remote-cache`",
        )),
    }
}

/// The shared cache, if one was given. It is not accessed yet.
///
/// # Errors
/// If its address is invalid.
#[cfg(feature = "remote-cache")]
pub(crate) fn cache(options: &BuildOptions) -> Result<Option<Arc<SharedCache>>> {
    use gfxpack_remote::RemoteCache;

    let Some(shared) = &options.shared_cache else { return Ok(None) };
    let store = RemoteCache::open(&shared.url).map_err(|error| {
        error::usage(
            format!("failed to use --cache-remote: {error}"),
            "write file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, webdav://HOST/PATH or \
             redis://HOST, settings behind a question mark",
        )
    })?;
    Ok(Some(Arc::new(SharedCache::new(Box::new(store), shared.upload))))
}
