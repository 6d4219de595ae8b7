//! Compiles one kernel for rocFFT, which can start another program for that.
//! Objects are kept in the cache.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gfxpack_compile::{Event, SourceDirs, SourceSet};
use gfxpack_model::{Digest, KernelKey, Language, SourceId, TargetId, ToolchainId};
use gfxpack_plan::Location;
use gfxpack_plan::clock::Clock;
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_plan::plan::TargetRequest;
use gfxpack_process::temporary_dir;
use gfxpack_toolchain::Search;

use crate::ask::LibraryAnswer;
use crate::build::executor_options;
use crate::cache::Cache;
use crate::error::{self, Error, Result};
use crate::inputs::{Inputs, ReadInputs};
use crate::options::{BuildOptions, CacheOptions, Purpose};
use crate::prepare::{PlanInputs, Prepared};
use crate::progress::Progress;
use crate::rocfft;

/// Longer than any kernel needs.
const TIME_LIMIT: Duration = Duration::from_secs(900);
/// The options that rocFFT gives to hipRTC.
///
/// Source: rocFFT 1.0.32, `rtc_compile.cpp`, `compile_inprocess`.
const OPTIONS: &str = " -O3 -std=c++14 -mcumode -w";

/// Returns the code object for a text that rocFFT generated: from the cache, or
/// compiled now. A cache that can't be written is only read. If it can't be used
/// at all, a temporary one is.
///
/// # Errors
/// If no toolchain builds for the processor, or the compiler refuses the text.
pub fn compile(
    processor: &TargetId,
    text: &str,
    cache: &CacheOptions,
    search: &Search,
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    let temporary = temporary_dir()?;
    let cache = Cache::open_for(cache, Purpose::Build).or_else(|_| {
        let dir = Some(temporary.path().join("cache"));
        Cache::open_for(&CacheOptions { dir, ..cache.clone() }, Purpose::Build)
    })?;
    let toolchain = cache
        .toolchains(search, progress.cancel())?
        .choose(processor, &[Language::Hip].into_iter().collect())?;
    let text = rocfft::source_text(text);
    // Equal texts must be equal jobs.
    let name = format!("rocfft_{}.cpp", &Digest::of(text.as_bytes()).to_string()[..16]);
    let (sources, source) = source(temporary.path(), &name, &text)?;
    let request = request(processor, &name, source);
    let read =
        ReadInputs { requests: vec![request], inputs: Inputs { sources, ..Inputs::default() } };
    let (toolchains, clock) = (vec![toolchain], Clock::at(0));
    let plan_inputs = PlanInputs { read, answer: LibraryAnswer::Nothing, toolchains, cache, clock };
    let prepared = plan_inputs.plan()?;
    let Prepared { plan, cache, .. } = &prepared;
    let build = BuildOptions { jobs: Some(1), timeout: TIME_LIMIT, ..BuildOptions::default() };
    let options = executor_options(&prepared, &build)?;
    let mut output = String::new();
    let executor = prepared.executor(&cache.store, None, &options, progress.cancel());
    let summary = executor.run(&mut |event| {
        if let Event::Failed { failure, .. } = event {
            output = failure.output;
        }
    })?;
    cache.digests.save();
    if let Some((_, kind)) = summary.failures.first() {
        progress.warning(&format!("a kernel of rocFFT for {processor}: {kind}\n{output}"));
        let reasons = "see the compiler's output above; rocFFT compiles the kernel itself";
        return Err(error::incomplete(1, 1, reasons, false));
    }
    // Another process may have replaced the object by one made with other headers.
    let made = summary.objects[0].as_ref().expect("nothing failed").0.sha256;
    let object = cache.store.read_known(plan.jobs[0].digest, made).map_err(Error::from)?;
    cache.shrink(progress);
    Ok(object)
}

/// The request for a source of rocFFT's.
fn request(processor: &TargetId, name: &str, source: SourceId) -> TargetRequest {
    let key = KernelKey::for_source(name, OPTIONS, processor.processor());
    let request = KeyRequest {
        key: Arc::new(key),
        language: Language::Hip,
        source: Path::new(name).into(),
        location: Location { file: "stdin".into(), line: 1 },
    };
    TargetRequest {
        target: gfxpack_model::Target::new(processor.clone(), None),
        format: Consumer::Rocfft.properties().format,
        toolchain: ToolchainId(0),
        keys: vec![(Arc::new(request), source)],
    }
}

/// Writes the text to a file, and loads it as a source.
fn source(dir: &Path, name: &str, text: &str) -> Result<(SourceSet, SourceId)> {
    let dir = dir.join("source");
    fs::create_dir(&dir).map_err(error::io("create", &dir))?;
    let path = dir.join(name);
    fs::write(&path, text).map_err(error::io("write", &path))?;
    let (mut sources, dirs) = (SourceSet::default(), SourceDirs::list(&[dir])?);
    let location = Location { file: "stdin".into(), line: 1 };
    let source = sources.load(&path, name, Language::Hip, &[], Some(&dirs));
    Ok((sources, source.map_err(|fault| location.error(fault))?))
}
