//! The assembly kernels: assembled by clang with the arguments of a build, their code objects
//! inspected, and their instructions executed by an interpreter, since build machines have no GPU.

mod execute;
mod instruction;
mod launch;
mod machine;
mod object;
mod references;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use gfxpack_model::{Language, TargetId};
use gfxpack_plan::expand;
use gfxpack_plan::manifest::Manifest;
use launch::Launch;

use super::options::Options;
pub(crate) use object::Tools;

/// For each source, the launches that test a variant of it, on a processor
/// with that many lanes per wave.
type Reference = fn(&Options, usize) -> Result<Vec<Launch>>;

const REFERENCES: &[(&str, Reference)] = &[
    ("axpby_asm.s", references::axpby),
    ("cast_asm.s", references::cast),
    ("copy_asm.s", references::copy),
    ("fill_asm.s", references::fill),
    ("relu_asm.s", references::relu),
    ("row_reduce_asm.s", references::row_reduce),
];

/// At least one processor of every kind that the kernels distinguish.
const PROCESSORS: &[&str] =
    &["gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1030", "gfx1100"];

/// One kernel key to test, and the processors for which the manifest has it.
pub(crate) struct Key {
    source: PathBuf,
    options: String,
    processors: Vec<&'static str>,
}

impl Key {
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.source_name(), self.options)
    }

    fn source_name(&self) -> &str {
        self.source.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// The assembly keys of the built-in manifest.
pub(crate) fn keys(manifest: &Manifest) -> Result<Vec<Key>> {
    let mut found: BTreeMap<(PathBuf, String), Vec<&'static str>> = BTreeMap::new();
    for &processor in PROCESSORS {
        for request in expand::expand(manifest, processor)? {
            if request.language == Language::Assembly {
                let options = request.options().to_owned();
                found.entry((request.source.to_path_buf(), options)).or_default().push(processor);
            }
        }
    }
    let keys: Vec<Key> = found
        .into_iter()
        .map(|((source, options), processors)| Key { source, options, processors })
        .collect();
    for (source, _) in REFERENCES {
        ensure!(
            keys.iter().any(|key| key.source_name() == *source),
            "failed to find `{source}`, which has a reference, in the manifest"
        );
    }
    Ok(keys)
}

/// Whether an assembly without a parameter, or with one out of its range,
/// fails and says which.
pub(crate) fn check_parameters(tools: &Tools) -> Result<()> {
    let id: TargetId = PROCESSORS[0].parse()?;
    for (source, options, message) in [
        ("asm/fill_asm.s", "-Wa,-defsym,VEC=1", "WG must be defined"),
        ("asm/fill_asm.s", "-Wa,-defsym,WG=64", "VEC must be defined"),
        ("asm/fill_asm.s", "-Wa,-defsym,WG=96 -Wa,-defsym,VEC=1", "WG must be a multiple of 64"),
        ("asm/fill_asm.s", "-Wa,-defsym,WG=64 -Wa,-defsym,VEC=3", "VEC must be 1, 2 or 4"),
        ("asm/row_reduce_asm.s", "-Wa,-defsym,WG=64 -Wa,-defsym,OP=4", "OP must be at least 0"),
    ] {
        let Err(error) = tools.assemble(Path::new(source), options, &id) else {
            bail!("{source} is assembled with {options}");
        };
        let text = format!("{error:#}");
        ensure!(text.contains(message), "{source} with {options}: {text}");
    }
    Ok(())
}

/// Assembles the key for each of its processors, inspects the code object,
/// runs its kernel and compares what it leaves with the reference.
pub(crate) fn check(tools: &Tools, key: &Key) -> Result<()> {
    let source_name = key.source_name();
    let Some((_, reference)) = REFERENCES.iter().find(|(source, _)| *source == source_name) else {
        bail!("failed to test `{source_name}`: it has no reference in tests/tests/hip/gcn");
    };
    let options = Options::parse(&key.options)?;
    let group = options.group()?;
    for &processor in &key.processors {
        let id: TargetId = processor.parse()?;
        let check = || -> Result<()> {
            let object = tools.assemble(&key.source, &key.options, &id)?;
            object.inspect(group)?;
            for launch in reference(&options, object.lanes())? {
                launch.check(&object, group)?;
            }
            Ok(())
        };
        check().with_context(|| format!("failed for {processor}"))?;
    }
    Ok(())
}
