//! From the command line to a service that runs jobs.

use gfxpack_compile::Remote;

use crate::args::Build;
use crate::fail;

/// The service that was asked for, if one was.
#[cfg(not(feature = "remote"))]
pub(crate) fn of(args: &Build) -> anyhow::Result<Option<Remote>> {
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
pub(crate) fn of(args: &Build) -> anyhow::Result<Option<Remote>> {
    use std::sync::Arc;
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
