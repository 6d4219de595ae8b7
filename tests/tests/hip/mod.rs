//! The list of keys, and the reference of each HIP source.

mod build;
mod convolution;
mod elementwise;
pub(crate) mod gcn;
mod gemm;
mod launch;
mod lines;
mod loss;
mod movement;
mod normalization;
mod numbers;
mod options;
mod rounding;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use gfxpack_model::Language;
use gfxpack_plan::expand;
use gfxpack_plan::manifest::{self, Manifest};

pub(crate) use build::Workshop;
use launch::Launch;
use options::Options;

/// For each source, the launches that test a variant of it. All kernels that
/// a variant holds are launched.
type Reference = fn(&Options) -> Result<Vec<Launch>>;

const REFERENCES: &[(&str, Reference)] = &[
    ("adam_hip.cpp", elementwise::adam),
    ("batchnorm_train_hip.cpp", normalization::batchnorm),
    ("conv_direct_hip.cpp", convolution::direct),
    ("cross_entropy_hip.cpp", loss::cross_entropy),
    ("embedding_hip.cpp", movement::embedding),
    ("gemm_tiled_hip.cpp", gemm::tiled),
    ("glu_hip.cpp", elementwise::glu),
    ("groupnorm_hip.cpp", normalization::groupnorm),
    ("im2col_hip.cpp", convolution::im2col),
    ("layernorm_hip.cpp", normalization::layernorm),
    ("reduce_hip.cpp", lines::reduce),
    ("rounding.cpp", rounding::stores),
    ("softmax_hip.cpp", lines::softmax),
    ("tensor_op_hip.cpp", elementwise::tensor_op),
    ("transpose_hip.cpp", movement::transpose),
];

/// A processor for which the manifest has all HIP kernels; what runs here
/// depends on no processor.
const PROCESSOR: &str = "gfx906";

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

/// A source of the tests' own, for what the library's kernels share.
fn rounding_key() -> Key {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip/rounding.cpp");
    Key { source, options: " -DDATA_TYPE=2".to_owned() }
}

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kernels")
}

/// The built-in manifest.
pub(crate) fn manifest() -> Result<Manifest> {
    let path = library().join("kernels.toml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    Ok(manifest::parse("kernels.toml", &text)?)
}

/// The HIP keys of the manifest.
pub(crate) fn keys(manifest: &Manifest) -> Result<Vec<Key>> {
    let mut keys: Vec<Key> = expand::expand(manifest, PROCESSOR)?
        .into_iter()
        .filter(|request| request.language == Language::Hip)
        .map(|request| Key {
            options: request.options().to_owned(),
            source: request.source.to_path_buf(),
        })
        .collect();
    keys.push(rounding_key());
    for (source, _) in REFERENCES {
        ensure!(
            keys.iter().any(|key| key.source_name() == *source),
            "failed to find `{source}`, which has a reference, in the manifest"
        );
    }
    Ok(keys)
}

/// Builds the key's source for the host, runs all its kernels and compares
/// what they leave with the reference.
pub(crate) fn check(workshop: &Workshop, key: &Key) -> Result<()> {
    let source_name = key.source_name();
    let Some((_, reference)) = REFERENCES.iter().find(|(source, _)| *source == source_name) else {
        bail!("failed to test `{source_name}`: it has no reference in tests/tests/hip");
    };
    let launches = reference(&Options::parse(&key.options)?)?;
    let mut names: Vec<&str> = launches.iter().map(|launch| launch.kernel).collect();
    names.sort_unstable();
    names.dedup();
    let program = workshop.build(&library(), &key.source, &key.options, &names)?;
    let forgotten: Vec<_> =
        program.kernels.iter().filter(|name| !names.contains(&name.as_str())).collect();
    ensure!(forgotten.is_empty(), "failed to test {forgotten:?}: no reference launches them");
    for manner in launch::MANNERS {
        launch::run(&program.path, &launches, manner)
            .with_context(|| format!("failed in {manner:?}"))?;
    }
    Ok(())
}
