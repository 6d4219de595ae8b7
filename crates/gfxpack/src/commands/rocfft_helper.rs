//! `rocfft-helper`: compiles kernels for rocFFT, with the cache.

use std::io::Read as _;
use std::path::Path;

use gfxpack_model::code_object;
use gfxpack_pipeline::rocfft_helper;

use crate::args::RocfftHelperArgs;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::options::compiler_options;
use crate::progress::Reporter;

/// Reads a source from stdin and writes its code object to stdout. If it fails,
/// rocFFT compiles the kernel itself.
pub(crate) fn run(args: &RocfftHelperArgs, context: &Context) -> Result {
    let Context { environment, output, .. } = context;
    let mut text = String::new();
    let stdin = std::io::stdin().lock();
    let read = stdin.take(code_object::MAX_BYTES).read_to_string(&mut text);
    read.map_err(fail::io("read", Path::new("stdin")))?;
    let (search, cache) = compiler_options(&args.compilers, environment)?;
    let object = rocfft_helper::compile(
        args.processor.id(),
        &text,
        &cache,
        &search,
        &Reporter::new(context),
    )?;
    output.bytes(&object);
    Ok(())
}
