//! Finds out whether a compiler, HIP's headers and device libraries fit together, by compiling a
//! kernel that uses all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gfxpack_model::code_object::{self, UnfitError};
use gfxpack_model::compiler::{CompilerFacts, Program};
use gfxpack_model::digest::Hasher;
use gfxpack_model::processors::PROCESSORS;
use gfxpack_model::{Digest, Error, Language, TargetId};
use gfxpack_process::watch::{FileSystemCache, PathStates};
use gfxpack_process::{read_sealed, write_sealed};

use crate::error;
use crate::probe::ProgramRunner;
use crate::toolchain::Toolchain;

const HIP: &str = r#"#include <hip/hip_runtime.h>
extern "C" __global__ __launch_bounds__(64) void trial(float* x, int n)
{
    __shared__ float part[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? sinf(x[i]) + expf(x[i]) : 0.0f;
    __syncthreads();
    if(i < n)
        x[i] = part[63 - threadIdx.x] + __shfl_xor(part[threadIdx.x], 1);
}
"#;
const OPENCL_C: &str = "__kernel void trial(__global float* x, int n)
{
    const int i = get_global_id(0);
    if(i < n)
        x[i] = sin(x[i]) + exp(x[i]);
}
";

/// Returns the command of a kernel without options: the program, and its arguments without the
/// output, with placeholders for the toolchain's directories. The name is that of the source in the
/// working directory.
pub type TrialArguments = fn(Language, &TargetId, &CompilerFacts, &str) -> (Program, Vec<String>);

/// A trial to run.
pub(crate) struct Trial<'a> {
    toolchain: &'a Toolchain,
    source: &'static str,
    file: &'static str,
    target: TargetId,
    program: Program,
    args: Vec<String>,
}

impl<'a> Trial<'a> {
    /// A trial for the newest processor that the toolchain should be able to build for; `None` for
    /// assembly, which needs only clang.
    pub(crate) fn new(
        toolchain: &'a Toolchain,
        language: Language,
        arguments: TrialArguments,
    ) -> Option<Self> {
        let (source, file) = match language {
            Language::Hip => (HIP, "trial.cpp"),
            Language::OpenclC => (OPENCL_C, "trial.cl"),
            Language::Assembly => return None,
        };
        let mut newest_first = PROCESSORS.iter().rev();
        let only = BTreeSet::from([language]);
        let processor = newest_first.find(|processor| toolchain.builds(processor.name, &only))?;
        let target = TargetId::new(processor.name);
        let (program, args) = arguments(language, &target, &toolchain.facts(), file);
        Some(Self { toolchain, source, file, target, program, args })
    }

    /// A digest of everything that the verdict depends on.
    fn digest(&self) -> Digest {
        Hasher::new("gfxpack trial 4")
            .field(self.toolchain.digest.as_ref())
            .field(self.toolchain.rocm.as_os_str().as_encoded_bytes())
            .list(self.args.iter())
            .field(self.source.as_bytes())
            .finish()
    }

    /// Whether an earlier run found that the parts fit together, with file accesses that would have
    /// the same results now.
    pub(crate) fn is_passed(&self, cache: &Path, file_system: &FileSystemCache<'_>) -> bool {
        read_sealed(&self.file_in(cache))
            .is_some_and(|answers: PathStates| answers.hold(file_system))
    }

    /// Stores that the parts fit together, with the file accesses; if this fails, later runs try
    /// again. A failed trial is never stored: the reason may be a full disk.
    pub(crate) fn keep_passed(&self, cache: &Path, answers: &PathStates) {
        write_sealed(&self.file_in(cache), answers).ok();
    }

    fn file_in(&self, cache: &Path) -> std::path::PathBuf {
        cache.join("trials").join(self.digest().to_string())
    }

    /// Compiles the kernel. Returns the compiler's output if the parts do not fit together. The
    /// toolchain's device libraries must exist.
    pub(crate) fn run(&self, runner: &ProgramRunner<'_>) -> Result<Option<String>, Error> {
        let source = runner.scratch.join(self.file);
        fs::write(&source, self.source).map_err(error::io("write", &source))?;
        let made = runner.scratch.join("trial.o");
        let filled = self.args.iter().map(|arg| self.toolchain.fill(arg));
        let arguments: Vec<_> = filled.chain(["-o".into(), made.clone().into()]).collect();
        let (output, _) = runner.attempt(self.toolchain.program(self.program), &arguments)?;
        let bytes = fs::read(&made).unwrap_or_default();
        fs::remove_file(&made).ok();
        if !output.ok() {
            let line = output.stderr.lines().find(|line| line.contains("error:"));
            let line = line.or(output.stderr.lines().last()).unwrap_or("it says nothing");
            return Ok(Some(line.trim().to_owned()));
        }
        Ok(match code_object::check_for_kdb(&bytes, &self.target) {
            Ok(()) => None,
            Err(UnfitError::OtherTarget { .. }) => {
                Some("it makes objects for other targets than asked".to_owned())
            }
            Err(error) => Some(error.to_string()),
        })
    }
}
