//! Checks a release's files against their specifications with independent programs, one of which
//! also writes the bills of materials.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use xshell::{Shell, cmd};

use super::key::keyring;
use crate::cargo_tool::CargoTool;
use crate::print::print;
use crate::root::{VERSION, root};
use crate::setup::{self, Need, need};
use crate::test::{PythonTool, python_tool};

const PYTHON: PythonTool = PythonTool {
    what: "cyclonedx-python-lib and in-toto-attestation, which judge what a release says of itself",
    dir: "release",
    program: "bin/python",
    packages: &["cyclonedx-python-lib[json-validation]==11.12.0", "in-toto-attestation==0.9.3"],
};

const GPG: Need = need("gpg", "sign the files", "gpg gpg-agent", "gnupg2");

const CARGO_CYCLONEDX: CargoTool = CargoTool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
    does: "writes the bills of materials of Rust programs",
};

/// # Errors
/// Without `install`, if something is missing; with it, if installing fails.
pub(super) fn ensure_tools(sh: &Shell, install: bool) -> anyhow::Result<()> {
    setup::ensure(sh, &[GPG], install)?;
    python_tool(sh, &PYTHON, install)?;
    CARGO_CYCLONEDX.ensure(sh, install).map(drop)
}

fn python() -> PathBuf {
    root().join("target/tools").join(PYTHON.dir).join(PYTHON.program)
}

/// Writes `gfxpack-VERSION.cdx.json` and the same for the runtime library: every crate in the
/// programs, with its package URL, in CycloneDX 1.5.
///
/// # Errors
/// If that fails, or CycloneDX's own library finds an error.
pub(super) fn bills(sh: &Shell, root: &Path, out: &Path) -> anyhow::Result<()> {
    let _in_root = sh.push_dir(root);
    // The program writes beside every manifest, so it gets a copy.
    let copy = tempfile::tempdir().context("failed to make a directory")?;
    let (tree, packed) = (copy.path().join("gfxpack"), copy.path().join("tree.tar"));
    sh.create_dir(&tree)?;
    cmd!(sh, "git archive --format=tar --output {packed} HEAD").run()?;
    cmd!(sh, "tar --extract --file {packed} --directory {tree}").run()?;
    let program = CARGO_CYCLONEDX.program();
    let manifest = tree.join("crates/gfxpack/Cargo.toml");
    cmd!(sh, "{program} cyclonedx --manifest-path {manifest} --format json --spec-version 1.5")
        .args(["--override-filename", "bill", "--quiet"])
        .env("SOURCE_DATE_EPOCH", cmd!(sh, "git log -1 --format=%ct").read()?)
        .run()?;
    for (dir, name) in [("gfxpack", "gfxpack"), ("runtime-c", "gfxpack-runtime")] {
        let bill = sh.read_file(tree.join(format!("crates/{dir}/bill.json")))?;
        // The temporary path would be different each time.
        let bill = bill.replace(&*copy.path().to_string_lossy(), "");
        let path = out.join(format!("{name}-{VERSION}.cdx.json"));
        sh.write_file(&path, bill)?;
        let judge = "\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
with open(sys.argv[1]) as file:
    sys.exit(str(JsonStrictValidator(SchemaVersion.V1_5).validate_str(file.read()) or '') or 0)
";
        let python = python();
        cmd!(sh, "{python} -c {judge} {path}")
            .quiet()
            .run()
            .context("not as CycloneDX wants it")?;
    }
    Ok(())
}

/// Checks the statement and SLSA's predicate in it with in-toto's own library.
///
/// # Errors
/// If the library rejects them.
pub(super) fn provenance(sh: &Shell, statement: &Path) -> anyhow::Result<()> {
    let judge = "\
import json, sys
from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as Message
with open(sys.argv[1]) as file:
    content = json.load(file)
Statement.copy_from_pb(ParseDict(content, Message())).validate()
predicate = ParseDict(content['predicate'], Provenance())
assert predicate.run_details.builder.id and predicate.build_definition.resolved_dependencies
";
    let python = python();
    cmd!(sh, "{python} -c {judge} {statement}").quiet().run().context("not as in-toto wants it")
}

/// Verifies the checksums and signatures with nothing but the public key of the release.
///
/// # Errors
/// If a file or a signature is wrong.
pub(super) fn signatures(sh: &Shell, out: &Path, signed: &[PathBuf]) -> anyhow::Result<()> {
    let home = keyring()?;
    let _home = sh.push_env("GNUPGHOME", home.path());
    let key = out.join("release-key.asc");
    cmd!(sh, "gpg --batch --quiet --import {key}").run()?;
    for path in signed {
        let signature = format!("{}.asc", path.display());
        cmd!(sh, "gpg --batch --quiet --verify {signature} {path}")
            .quiet()
            .ignore_stderr()
            .run()?;
    }
    let _in = sh.push_dir(out);
    cmd!(sh, "sha256sum --check --quiet --strict SHA256SUMS").run()?;
    print(&format!("{} signatures and SHA256SUMS are good", signed.len()));
    Ok(())
}
