//! The remote execution service, and the cache shared with other machines.

use std::sync::Arc;

use gfxpack_compile::{Remote, SharedCache};

use crate::error::{self, Result};
use crate::options::BuildOptions;

/// The execution service, if one was given. It is not connected yet.
///
/// # Errors
/// If its address or a setting is invalid, or this gfxpack was built without remote execution.
pub(crate) fn workers(options: &BuildOptions) -> Result<Option<Remote>> {
    let remote = &options.remote;
    #[cfg(not(feature = "remote"))]
    if remote.remote.is_some() {
        return Err(error::usage(
            "failed to use --remote: this gfxpack was built without remote execution",
            "build it with `cargo build --release --features remote`",
        ));
    }
    #[cfg(feature = "remote")]
    if let Some(address) = &remote.remote {
        use gfxpack_remote::{Address, RemoteExecution, RemoteOptions};

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
        let workers = RemoteExecution::new(RemoteOptions {
            address,
            jobs: remote.remote_jobs.into(),
            headers: remote.remote_header.iter().map(header).collect::<Result<_>>()?,
            ca: remote.remote_ca.clone(),
            identity: remote.remote_client_cert.clone().zip(remote.remote_client_key.clone()),
            platform: remote.remote_platform.clone(),
            cache_only: remote.remote_cache_only,
            wait_limit: std::time::Duration::from_secs(remote.remote_patience),
        })?;
        // If the service is only a cache, this machine compiles only what the service
        // lacks.
        let alone = options.jobs.is_none() || remote.remote_cache_only;
        return Ok(Some(Remote { workers: Arc::new(workers), alone }));
    }
    Ok(None)
}

/// The shared cache, if one was given. It is not accessed yet.
///
/// # Errors
/// If its address is invalid, or this gfxpack was built without shared caches.
pub(crate) fn cache(options: &BuildOptions) -> Result<Option<Arc<SharedCache>>> {
    let shared = &options.shared;
    #[cfg(not(feature = "remote-cache"))]
    if shared.cache_remote.is_some() {
        return Err(error::usage(
            "failed to use --cache-remote: this gfxpack was built without shared caches",
            "build it with `cargo build --release --features remote-cache`",
        ));
    }
    #[cfg(feature = "remote-cache")]
    if let Some(url) = &shared.cache_remote {
        let store = gfxpack_remote::RemoteCache::open(url).map_err(|error| {
            error::usage(
                format!("failed to use --cache-remote: {error}"),
                "write file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, webdav://HOST/PATH or \
                 redis://HOST, settings behind a question mark",
            )
        })?;
        return Ok(Some(Arc::new(SharedCache::new(Box::new(store), shared.cache_upload))));
    }
    Ok(None)
}
