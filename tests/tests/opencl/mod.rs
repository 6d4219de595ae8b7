//! The list of keys, and the reference of each source.

mod activation;
mod batch_norm;
mod case;
mod convolution;
mod gemm;
mod layer_norm;
mod lrn;
mod movement;
mod number_check;
mod numbers;
mod optimizer;
mod pooling;
mod reduce;
mod softmax;
mod tensor;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use case::Case;
use gfxpack_model::Language;
use gfxpack_plan::{expand, manifest};
use gfxpack_tests::opencl::Gpu;

/// Launches all kernels of a source and compares.
type Reference = fn(&Case<'_>) -> Result<()>;

/// The references, by source. A source may not stand here twice: all its
/// kernels are launched by one of them.
const REFERENCES: &[(&str, Reference)] = &[
    ("activation.cl", activation::check),
    ("batch_norm_backward.cl", batch_norm::check_backward),
    ("batch_norm_inference.cl", batch_norm::check_inference),
    ("batch_norm_training.cl", batch_norm::check_training),
    ("conv_direct.cl", convolution::check_direct),
    ("conv_naive.cl", convolution::check_naive),
    ("gemm_tiled.cl", gemm::check),
    ("im2col.cl", convolution::check_im2col),
    ("layer_norm.cl", layer_norm::check),
    ("layout.cl", movement::check_layout),
    ("lrn.cl", lrn::check),
    ("number_check.cl", number_check::check),
    ("optimizer_adam.cl", optimizer::check_adam),
    ("optimizer_sgd.cl", optimizer::check_sgd),
    ("pooling.cl", pooling::check),
    ("reduce.cl", reduce::check),
    ("softmax.cl", softmax::check),
    ("tensor_cast.cl", tensor::check_cast),
    ("tensor_elementwise.cl", tensor::check_elementwise),
    ("tensor_set_scale.cl", tensor::check_set_scale),
    ("transpose.cl", movement::check_transpose),
];

/// What the compiler is told besides the key's own options. Not `-cl-std=CL2.0`, with which the
/// kernels are compiled for AMD's devices: PoCL 3 has no `vload_half` there, and they keep to what
/// OpenCL C 1.2 knows.
const OPTIONS: &str = "-cl-kernel-arg-info -cl-denorms-are-zero";

/// One kernel key to test.
pub(crate) struct Key {
    source: PathBuf,
    options: String,
}

impl Key {
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.source_name(), self.options)
    }

    fn source_name(&self) -> &str {
        self.source.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kernels")
}

/// The OpenCL C keys of the built-in manifest.
pub(crate) fn keys() -> Result<Vec<Key>> {
    let path = library().join("kernels.toml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    let manifest = manifest::parse("kernels.toml", &text)?;
    let requests = expand::expand(&manifest, "gfx906")?;
    let keys: Vec<Key> = requests
        .into_iter()
        .filter(|request| request.language == Language::OpenclC)
        .map(|request| Key {
            options: request.options().to_owned(),
            source: request.source.to_path_buf(),
        })
        .collect();
    ensure!(!keys.is_empty(), "failed to find any OpenCL C kernel in `{}`", path.display());
    for (source, _) in REFERENCES {
        ensure!(
            keys.iter().any(|key| key.source_name() == *source),
            "failed to find `{source}`, which has a reference, in the manifest"
        );
    }
    Ok(keys)
}

/// Builds the key's program and compares all its kernels with the reference.
pub(crate) fn check(key: &Key) -> Result<()> {
    let source_name = key.source_name();
    let Some((_, reference)) = REFERENCES.iter().find(|(source, _)| *source == source_name) else {
        bail!("failed to test `{source_name}`: it has no reference in tests/tests/opencl");
    };
    let path = library().join(&key.source);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    let gpu = Gpu::open()?;
    let include = library().join("include");
    let options = format!("{OPTIONS} -I{}{}", include.display(), key.options);
    let built = gpu.build(&text, &options)?;
    let case = Case::new(&gpu, &built, &key.options)?;
    reference(&case)?;
    let forgotten = built.never_launched();
    ensure!(forgotten.is_empty(), "failed to test {forgotten:?}: no reference launches them");
    Ok(())
}
