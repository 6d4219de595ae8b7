//! `cache stats|gc|verify`: shows, cleans and checks the cache.

use std::path::{Path, PathBuf};

use gfxpack_compile::{Limits, ObjectStore};

use crate::args::{CacheCommand, CacheDir};
use crate::context::Context;
use crate::fail::{self, Error, ErrorKind, Result};
use crate::output::{Output, counted, display, message, size};

pub(crate) fn run(command: &CacheCommand, context: &Context) -> Result {
    let Context { output, .. } = context;
    match command {
        CacheCommand::Stats { dir } => {
            stats(&dir.directory()?, dir.limit()?, output);
            Ok(())
        }
        CacheCommand::Gc { dir, max_size, max_age, dry_run } => {
            let cache = existing(dir)?;
            let size = max_size.map_or_else(|| dir.limit(), |size| Ok(Some(size)))?;
            if size.is_none() && max_age.is_none() {
                return Err(fail::usage(
                    "failed to start: no limit is given",
                    "say how large the cache may be with --max-size, or for how long files may \
                     lie unused with --max-age",
                ));
            }
            gc(&cache, &Limits { size, age: *max_age, dry_run: *dry_run }, output)
        }
        CacheCommand::Verify { dir } => verify(&existing(dir)?, context),
    }
}

/// The cache's directory, which must exist.
fn existing(args: &CacheDir) -> Result<PathBuf> {
    let dir = args.directory()?;
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(fail::usage(
        format!("failed to find the cache `{}`", dir.display()),
        "the first build makes it; --cache-dir names another one",
    ))
}

fn stats(dir: &Path, limit: Option<u64>, output: &Output) {
    let stats = ObjectStore::open_to_look(dir).stats();
    message!(output, "cache-stats", {
        "dir": display(dir), "objects": stats.objects, "object_bytes": stats.object_bytes,
        "refused": stats.refusals,
        "other_files": stats.others, "other_bytes": stats.other_bytes,
        "bytes": stats.bytes(), "limit": limit,
        "unused_seconds": stats.oldest.map(|age| age.as_secs()),
    });
    output.text(&dir.display().to_string());
    let line = |label: &str, value: String| output.text(&format!("  {label:<8} {value}"));
    line("objects", format!("{}, {}", stats.objects, size(stats.object_bytes)));
    if stats.refusals > 0 {
        line("refused", counted(stats.refusals, "kernel"));
    }
    line("others", format!("{}, {}", stats.others, size(stats.other_bytes)));
    line("limit", limit.map_or_else(|| "none".to_owned(), size));
    if let Some(age) = stats.oldest {
        line("oldest", format!("used {} h ago", age.as_secs() / 3600));
    }
}

fn gc(dir: &Path, limits: &Limits, output: &Output) -> Result {
    let evicted = ObjectStore::open_to_look(dir).evict(limits)?.ok_or_else(|| {
        Error::internal(
            "failed to evict from the cache: a build is using it",
            "run it again when the build is done, or let builds do it: GFXPACK_CACHE_SIZE",
        )
    })?;
    message!(output, "cache-gc", {
        "dir": display(dir), "dry_run": limits.dry_run, "removed_files": evicted.files,
        "removed_bytes": evicted.bytes, "files": evicted.files_left,
        "bytes": evicted.bytes_left,
    });
    let verb = if limits.dry_run { "would remove" } else { "removed" };
    output.text(&format!(
        "{verb} {}, {}; {}, {} stay",
        counted(evicted.files, "file"),
        size(evicted.bytes),
        counted(evicted.files_left, "file"),
        size(evicted.bytes_left)
    ));
    Ok(())
}

fn verify(dir: &Path, context: &Context) -> Result {
    let Context { cancel, output, .. } = context;
    let store = ObjectStore::open_to_look(dir);
    let (objects, damaged) = store.verify(&|| !cancel.is_cancelled())?;
    for one in &damaged {
        message!(output, "damaged", { "file": display(&one.path), "key": one.key });
        let key = one.key.as_ref().map(|key| format!(" (`{key}`)")).unwrap_or_default();
        output.text(&format!("{}: damaged, removed{key}", one.path.display()));
    }
    message!(output, "cache-verified", {
        "dir": display(dir), "objects": objects, "damaged": damaged.len(),
    });
    if damaged.is_empty() {
        output.text(&format!("{}: sound, {}", dir.display(), counted(objects, "object")));
        return Ok(());
    }
    let count = counted(damaged.len(), "damaged object");
    Err(Error::new(
        ErrorKind::Unsound,
        format!("failed to verify the cache: found and removed {count}"),
        "the next build compiles them anew; if it happens again, check the disk",
    ))
}
