//! From the command line to a service that runs jobs, and to a cache shared
//! with other machines.

use std::sync::Arc;

use gfxpack_compile::{Remote, SharedCache};

use crate::args::Build;
use crate::fail;

/// What of a build lies beyond this machine.
pub(crate) struct Beyond {
    pub(crate) workers: Option<Remote>,
    pub(crate) cache: Option<Arc<SharedCache>>,
}

impl Beyond {
    /// What was asked for.
    ///
    /// # Errors
    /// Where an address or a setting is none, or this gfxpack can't do it.
    pub(crate) fn of(args: &Build) -> anyhow::Result<Self> {
        Ok(Self { workers: workers(args)?, cache: cache(args)? })
    }
}

/// The service that was asked for, if one was.
#[cfg(not(feature = "remote"))]
fn workers(args: &Build) -> anyhow::Result<Option<Remote>> {
    match &args.remote.remote {
        None => Ok(None),
        Some(_) => Err(fail::usage(
            "failed to use --remote: this gfxpack was built without remote execution",
            "build it with `cargo build --release --features remote`",
        )),
    }
}

/// The service that was asked for, if one was; it is not connected to yet.
#[cfg(feature = "remote")]
fn workers(args: &Build) -> anyhow::Result<Option<Remote>> {
    use std::time::Duration;

    use gfxpack_compile::ToolchainSource;
    use gfxpack_remote::{Address, RemoteExecution, RemoteOptions, Tls};

    use crate::args::RemoteToolchain;

    let remote = &args.remote;
    let Some(address) = &remote.remote else { return Ok(None) };
    let address = address.parse::<Address>().map_err(|error| {
        fail::usage(
            format!("failed to read `--remote {address}`: {error}"),
            "write grpc://HOST:PORT/INSTANCE, or grpcs:// with encryption; the instance may be left out",
        )
    })?;
    let header = |(name, value): &(String, String)| -> anyhow::Result<(String, String)> {
        let value = match value.strip_prefix('@') {
            None => value.clone(),
            Some(file) => std::fs::read_to_string(file)
                .map_err(fail::io("read", std::path::Path::new(file)))?
                .trim()
                .to_owned(),
        };
        Ok((name.clone(), value))
    };
    let identity = remote.remote_client_cert.clone().zip(remote.remote_client_key.clone());
    let options = RemoteOptions {
        address,
        jobs: remote.remote_jobs.into(),
        headers: remote.remote_header.iter().map(header).collect::<anyhow::Result<_>>()?,
        tls: Tls { ca: remote.remote_ca.clone(), identity },
        platform: remote.remote_platform.clone(),
        toolchain: match remote.remote_toolchain {
            RemoteToolchain::Cas => ToolchainSource::Sent,
            RemoteToolchain::Image => ToolchainSource::Installed,
        },
        cache_only: remote.remote_cache_only,
        patience: Duration::from_secs(remote.remote_patience),
    };
    let workers = RemoteExecution::new(options).map_err(gfxpack_compile::CompileError::Remote)?;
    // Of what the service has, this machine should compile nothing.
    let alone = args.jobs.is_none() || remote.remote_cache_only;
    Ok(Some(Remote { workers: Arc::new(workers), alone }))
}

/// The shared cache that was asked for, if one was.
#[cfg(not(feature = "remote-cache"))]
fn cache(args: &Build) -> anyhow::Result<Option<Arc<SharedCache>>> {
    match &args.shared.cache_remote {
        None => Ok(None),
        Some(_) => Err(fail::usage(
            "failed to use --cache-remote: this gfxpack was built without shared caches",
            "build it with `cargo build --release --features remote-cache`",
        )),
    }
}

/// The shared cache that was asked for, if one was; nothing is asked of it yet.
#[cfg(feature = "remote-cache")]
fn cache(args: &Build) -> anyhow::Result<Option<Arc<SharedCache>>> {
    use gfxpack_compile::Upload;
    use gfxpack_remote::RemoteCache;

    use crate::args::CacheUpload;

    let Some(url) = &args.shared.cache_remote else { return Ok(None) };
    let store = RemoteCache::open(url).map_err(|error| {
        fail::usage(
            format!("failed to use --cache-remote: {error}"),
            "write file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, webdav://HOST/PATH or \
             redis://HOST, settings behind a question mark",
        )
    })?;
    let upload = match args.shared.cache_upload {
        CacheUpload::Never => Upload::Never,
        CacheUpload::Made => Upload::Made,
        CacheUpload::Always => Upload::All,
    };
    Ok(Some(Arc::new(SharedCache::new(Box::new(store), upload))))
}
