//! Helpers of the tests: specs, external tools, directory listings.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gfxpack_model::package::{
    ChangelogEntry, Content, PackageFile, PackageSpec, Relation, RelationKind,
};
use tempfile::TempDir;

/// The spec's name.
pub(crate) const NAME: &str = "miopen-hip-gfx1030kdb";
/// 2023-11-14 22:13:20 UTC.
pub(crate) const EPOCH: u64 = 1_700_000_000;

/// A temporary directory.
pub(crate) fn temp() -> TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

/// Bytes that don't compress, the same for the same seed.
pub(crate) fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// A spec with one file below `/usr/share`, as a packager would write it.
pub(crate) fn plain_spec(kdb: Vec<u8>) -> PackageSpec {
    let content = Content::Bytes(kdb);
    spec_with(vec![PackageFile::readable("/usr/share/miopen/db/gfx1030.kdb", content)])
}

/// A spec with these files.
pub(crate) fn spec_with(files: Vec<PackageFile>) -> PackageSpec {
    PackageSpec {
        name: NAME.to_owned(),
        version: "1.0.0".to_owned(),
        revision: "1".to_owned(),
        summary: "precompiled MIOpen kernels for gfx1030 GPUs".to_owned(),
        description: "MIOpen compiles kernels when a program first needs them. This package \
            holds them ready for gfx1030 devices, so that the first run is as fast as the \
            next one.\n\nThe kernels were compiled from source.\n"
            .to_owned(),
        license: "MIT".to_owned(),
        homepage: "https://example.org/gfxpack".to_owned(),
        maintainer: "Kernel Packagers <kernels@example.org>".to_owned(),
        section: "libs".to_owned(),
        relations: Vec::new(),
        deb_fields: vec![("X-ROCm-GPU-Architecture".to_owned(), "gfx1030".to_owned())],
        files,
        copyright: COPYRIGHT.to_owned(),
        changelog: vec![ChangelogEntry {
            version: "1.0.0-1".to_owned(),
            date: EPOCH,
            changes: vec!["First release, with kernels for one GPU.".to_owned()],
        }],
        source_date_epoch: EPOCH,
    }
}

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kernels
Source: https://example.org/gfxpack

Files: *
Copyright: 2024 The kernel authors
License: MIT
 Permission is hereby granted, free of charge, to use the kernels.
";

/// A spec with inputs of every awkward kind, made below `dir`: files on disk and
/// in memory, odd sizes, an empty file, long names, a program, a space.
pub(crate) fn awkward_spec(dir: &Path) -> PackageSpec {
    let long = format!("/usr/share/miopen/db/{}/{}.kdb", "d".repeat(90), "f".repeat(120));
    let on_disk = [
        ("/usr/share/miopen/db/gfx1030.kdb", 1_234_567, 0o644),
        ("/usr/share/miopen/db/gfx1030_36.kdb", 512, 0o600),
        ("/usr/share/miopen/db-extra/empty", 0, 0o644),
        ("/usr/share/miopen/tools/tool with space", 1023, 0o755),
        (&long, 70_001, 0o444),
    ];
    let mut files = Vec::new();
    for (index, (path, size, mode)) in on_disk.into_iter().enumerate() {
        let input = dir.join(format!("input-{index}"));
        fs::write(&input, noise(index as u64, size)).expect("an input can be written");
        let content = Content::File(input);
        files.push(PackageFile { path: path.to_owned(), content, mode });
    }
    let content = Content::Bytes(b"Kernels.\n".to_vec());
    files.push(PackageFile::readable("/usr/share/miopen/db/README", content));
    let mut spec = spec_with(files);
    spec.relations = [
        (RelationKind::Enhances, "miopen-hip", None),
        (RelationKind::Suggests, "miopen-hip", Some((">=", "3.2.0"))),
        (RelationKind::Provides, "miopen-kdb-gfx1030", Some(("=", "1.0.0"))),
        (RelationKind::Replaces, "miopenkernels-gfx1030-36kdb", Some(("<<", "2"))),
        (RelationKind::Conflicts, "miopenkernels-gfx1030-36kdb", Some(("<<", "2"))),
        (RelationKind::Obsoletes, "miopenkernels-gfx1030-36kdb", Some(("<<", "2"))),
        (RelationKind::Supplements, "modalias(miopen-hip:pci:v00001002d000073A0sv*)", None),
    ]
    .map(|(kind, name, version)| Relation {
        kind,
        name: name.to_owned(),
        version: version.map(|(operator, version)| (operator.to_owned(), version.to_owned())),
    })
    .to_vec();
    spec
}

/// An external program, which must be installed.
#[expect(clippy::disallowed_methods, reason = "the tests start the programs that judge packages")]
pub(crate) fn tool(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C.UTF-8").env_remove("SOURCE_DATE_EPOCH");
    command
}

/// Runs a command to its end; it may fail.
pub(crate) fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| {
        panic!(
            "{command:?} does not start ({e}): `cargo xtask test --setup` installs what is missing"
        )
    })
}

/// Runs a command, which must succeed, and returns its stdout.
pub(crate) fn run(command: &mut Command) -> String {
    let output = output(command);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?} gave {}\n{stdout}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}

/// Everything below `dir` by relative path: contents and permission bits of
/// files, nothing for directories.
pub(crate) fn tree(dir: &Path) -> BTreeMap<String, Option<(Vec<u8>, u32)>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        for entry in fs::read_dir(dir.join(&relative)).expect("the directory lists") {
            let entry = entry.expect("the entry reads");
            let below = relative.join(entry.file_name());
            let name = below.to_str().expect("names are UTF-8").to_owned();
            let metadata = entry.metadata().expect("the entry has metadata");
            if metadata.is_dir() {
                found.insert(name, None);
                pending.push(below);
            } else {
                let bytes = fs::read(entry.path()).expect("the file reads");
                found.insert(name, Some((bytes, metadata.permissions().mode() & 0o7777)));
            }
        }
    }
    found
}

/// Names of the files in `tree`, without directories.
pub(crate) fn file_names(dir: &Path) -> Vec<String> {
    let files = tree(dir).into_iter().filter(|(_, content)| content.is_some());
    files.map(|(name, _)| name).collect()
}
