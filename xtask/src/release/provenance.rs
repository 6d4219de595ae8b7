//! Writes the provenance of a release's files, as an in-toto statement.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};
use xshell::{Shell, cmd};

use crate::files::files;
use crate::root::VERSION;

/// Writes `gfxpack-VERSION.intoto.json`, whose subjects are all files that exist, and returns its
/// path. The same files of the same commit, builder and Rust give the same bytes.
///
/// Source: in-toto Attestation Framework, Statement v1; SLSA 1.0, Provenance.
///
/// # Errors
/// If git, rustc or sha256sum fails.
pub(super) fn write(sh: &Shell, root: &Path, out: &Path, builder: &str) -> anyhow::Result<PathBuf> {
    let mut subjects = Vec::new();
    for path in files(out)? {
        let name = path.strip_prefix(out).context("a file elsewhere")?.display().to_string();
        subjects.push(json!({ "name": name, "digest": digest(sh, &path)? }));
    }
    let repository = env!("CARGO_PKG_REPOSITORY");
    let commit = cmd!(sh, "git rev-parse HEAD").read()?;
    let source = json!({ "uri": format!("git+{repository}"), "digest": { "gitCommit": commit } });
    let mut dependencies = vec![source.clone()];
    for name in ["Cargo.lock", "packaging/miopen.lock"] {
        dependencies.push(json!({ "name": name, "digest": digest(sh, &root.join(name))? }));
    }
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{repository}/CONTRIBUTING.md#release"),
                "externalParameters": { "source": source, "version": VERSION },
                "internalParameters": { "rustc": cmd!(sh, "rustc --version").read()? },
                "resolvedDependencies": dependencies,
            },
            "runDetails": { "builder": { "id": builder } },
        },
    });
    let path = out.join(format!("gfxpack-{VERSION}.intoto.json"));
    sh.write_file(&path, format!("{statement:#}\n"))?;
    Ok(path)
}

fn digest(sh: &Shell, path: &Path) -> anyhow::Result<Value> {
    let line = cmd!(sh, "sha256sum {path}").quiet().read()?;
    // If the name has a backslash, the line begins with one.
    let sha256 = line.trim_start_matches('\\').split(' ').next();
    Ok(json!({ "sha256": sha256.context("sha256sum prints no digest")? }))
}
