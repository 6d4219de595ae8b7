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
    match &options.remote.remote {
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
    use std::time::Duration;

    use gfxpack_remote::{Address, RemoteExecution, RemoteOptions};

    let remote = &options.remote;
    let Some(address) = &remote.remote else { return Ok(None) };
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
    let identity = remote.remote_client_cert.clone().zip(remote.remote_client_key.clone());
    let remote_options = RemoteOptions {
        address,
        jobs: remote.remote_jobs.into(),
        headers: remote.remote_header.iter().map(header).collect::<Result<_>>()?,
        ca: remote.remote_ca.clone(),
        identity,
        platform: remote.remote_platform.clone(),
        cache_only: remote.remote_cache_only,
        wait_limit: Duration::from_secs(remote.remote_patience),
    };
    let workers = RemoteExecution::new(remote_options)?;
    // If the service is only a cache, this machine compiles only what the service
    // lacks.
    let alone = options.jobs.is_none() || remote.remote_cache_only;
    Ok(Some(Remote { workers: Arc::new(workers), alone }))
}

/// The shared cache, if one was given.
///
/// # Errors
/// If one was given, because this gfxpack was built without shared caches.
#[cfg(not(feature = "remote-cache"))]
pub(crate) fn cache(options: &BuildOptions) -> Result<Option<Arc<SharedCache>>> {
    match &options.shared.cache_remote {
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

    let shared = &options.shared;
    let Some(url) = &shared.cache_remote else { return Ok(None) };
    let store = RemoteCache::open(url).map_err(|error| {
        error::usage(
            format!("failed to use --cache-remote: {error}"),
            "write file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, webdav://HOST/PATH or \
             redis://HOST, settings behind a question mark",
        )
    })?;
    Ok(Some(Arc::new(SharedCache::new(Box::new(store), shared.cache_upload))))
}
