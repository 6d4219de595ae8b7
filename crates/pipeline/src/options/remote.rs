//! Options for remote execution and the shared cache.

use std::path::PathBuf;

use clap::Args;
use gfxpack_compile::Upload;

use super::parsers::{Choice, one_of};

/// Whether this gfxpack supports remote execution. If not, its options are
/// hidden, and fail with a message.
const EXECUTION: bool = cfg!(feature = "remote");
const CACHE: bool = cfg!(feature = "remote-cache");

/// A service of the Remote Execution API.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Remote execution")]
pub struct RemoteOptions {
    /// Run jobs on a remote-execution service: grpc://HOST:PORT/INSTANCE, or
    /// grpcs:// with encryption; the bytes are the same
    #[arg(long, value_name = "ADDRESS", hide = !EXECUTION)]
    pub remote: Option<String>,
    /// Jobs to run there at once; this machine runs those that can't run there,
    /// and with --jobs a share of the others
    #[arg(long, value_name = "N", default_value_t = 32, requires = "remote", hide = !EXECUTION,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub remote_jobs: u16,
    /// Sent with every call, as NAME=VALUE, or NAME=@FILE where others should
    /// not read it; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "remote", hide = !EXECUTION,
          value_parser = parse_pair)]
    pub remote_header: Vec<(String, String)>,
    /// What workers must have, as NAME=VALUE; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "remote", hide = !EXECUTION,
          value_parser = parse_pair)]
    pub remote_platform: Vec<(String, String)>,
    /// Use the service's results of earlier builds, and run nothing there
    #[arg(long, requires = "remote", hide = !EXECUTION)]
    pub remote_cache_only: bool,
    /// CA certificates (PEM) to trust [default: the system's]
    #[arg(long, value_name = "FILE", requires = "remote", hide = !EXECUTION)]
    pub remote_ca: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "remote_client_key", hide = !EXECUTION)]
    pub remote_client_cert: Option<PathBuf>,
    /// The client certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "remote_client_cert", hide = !EXECUTION)]
    pub remote_client_key: Option<PathBuf>,
    /// Seconds to wait for a service that stopped answering
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "remote",
          hide = !EXECUTION)]
    pub remote_patience: u64,
}

/// A cache that is shared with other machines.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cache")]
pub struct SharedCacheOptions {
    /// A cache shared with other machines, asked for what is not in this one's:
    /// file:///DIR, s3://BUCKET/PREFIX, gs://, webdav(s)://, redis(s)://; if it
    /// fails, it is not used again in this build
    #[arg(long, value_name = "URL", hide = !CACHE)]
    pub cache_remote: Option<String>,
    /// What to upload to it
    #[arg(long, value_parser = one_of(&UPLOADS), default_value = "made", requires = "cache_remote",
          hide = !CACHE)]
    pub cache_upload: Upload,
}

const UPLOADS: [Choice<Upload>; 3] = [
    ("never", "Nothing", Upload::Never),
    ("made", "What this build compiles", Upload::Made),
    ("always", "That, and what this machine's cache has of it", Upload::All),
];

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it has no name or no value\nhint: write NAME=VALUE".to_owned()),
    }
}
