//! Which crate may depend on which, held over `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// A member, the members that it may depend on, and foreign crates that would
/// bring in what it must not know.
const ARROWS: &[(&str, &[&str], &[&str])] = &[
    (
        "gfxpack-model",
        &[],
        // It is values: whoever reads or keeps them elsewhere brings what that takes.
        &[
            "clap",
            "indicatif",
            "libc",
            "memchr",
            "rayon",
            "rusqlite",
            "rustix",
            "serde_json",
            "tempfile",
            "toml",
            "tokio",
            "walkdir",
        ],
    ),
    (
        "gfxpack-plan",
        &["gfxpack-model"],
        &[
            "clap",
            "indicatif",
            "libc",
            "rayon",
            "rusqlite",
            "rustix",
            "tempfile",
            "walkdir",
            "tokio",
        ],
    ),
    (
        "gfxpack-kdb",
        &["gfxpack-model"],
        &["clap", "indicatif", "liblzma", "rpm", "tar", "toml", "walkdir", "zstd", "tokio"],
    ),
    (
        "gfxpack-process",
        &["gfxpack-model"],
        &["clap", "indicatif", "rayon", "rusqlite", "tar", "toml", "walkdir", "tokio"],
    ),
    (
        "gfxpack-toolchain",
        &["gfxpack-model", "gfxpack-process"],
        &["clap", "indicatif", "rusqlite", "tar", "toml", "tokio"],
    ),
    (
        "gfxpack-launch",
        &["gfxpack-model", "gfxpack-process", "gfxpack-toolchain"],
        &["clap", "indicatif", "rayon", "rusqlite", "tar", "toml", "walkdir", "tokio"],
    ),
    (
        "gfxpack-compile",
        &[
            "gfxpack-launch",
            "gfxpack-model",
            "gfxpack-plan",
            "gfxpack-process",
            "gfxpack-toolchain",
        ],
        &["bzip2", "clap", "indicatif", "liblzma", "rpm", "rusqlite", "tar", "zstd", "tokio"],
    ),
    (
        "gfxpack-package",
        &["gfxpack-model", "gfxpack-process"],
        &["bzip2", "clap", "indicatif", "rusqlite", "tokio"],
    ),
    (
        "gfxpack-harvest",
        &["gfxpack-model", "gfxpack-kdb"],
        &["bzip2", "clap", "indicatif", "rpm", "rusqlite", "rustix", "tar", "toml"],
    ),
    (
        "gfxpack-caches",
        &[],
        &[
            "bzip2",
            "clap",
            "indicatif",
            "liblzma",
            "rayon",
            "rpm",
            "rusqlite",
            "tar",
            "toml",
            "zstd",
        ],
    ),
    (
        "gfxpack-tuning",
        &["gfxpack-model"],
        &[
            "bzip2",
            "clap",
            "indicatif",
            "liblzma",
            "rayon",
            "rpm",
            "tar",
            "toml",
            "walkdir",
            "zstd",
        ],
    ),
    (
        "gfxpack-runtime",
        &["gfxpack-model", "gfxpack-kdb"],
        &[
            "clap",
            "indicatif",
            "liblzma",
            "rayon",
            "rpm",
            "tar",
            "toml",
            "walkdir",
            "zstd",
            "tokio",
        ],
    ),
    (
        "gfxpack-runtime-c",
        &["gfxpack-model", "gfxpack-kdb", "gfxpack-runtime"],
        &[
            "clap",
            "indicatif",
            "liblzma",
            "rayon",
            "rpm",
            "rusqlite",
            "tar",
            "toml",
            "zstd",
            "tokio",
        ],
    ),
    (
        "gfxpack-remote",
        &["gfxpack-model", "gfxpack-compile"],
        &["clap", "indicatif", "rayon", "rusqlite", "walkdir"],
    ),
    ("gfxpack-standin", &[], &["clap", "rusqlite", "rayon", "tokio"]),
    (
        "gfxpack-miopen-probe",
        &["gfxpack-standin"],
        // Its SQLite would take the place of the one that it pretends to be.
        &["clap", "rusqlite", "rayon", "tokio"],
    ),
    ("gfxpack-debian", &["gfxpack-model"], &["clap", "indicatif", "rayon", "rusqlite", "tokio"]),
    (
        "gfxpack-miopen",
        &["gfxpack-harvest", "gfxpack-model", "gfxpack-tuning", "gfxpack-debian"],
        &["clap", "indicatif", "tokio"],
    ),
    (
        "gfxpack-pipeline",
        &[
            "gfxpack-compile",
            "gfxpack-debian",
            "gfxpack-harvest",
            "gfxpack-kdb",
            "gfxpack-miopen",
            "gfxpack-model",
            "gfxpack-package",
            "gfxpack-plan",
            "gfxpack-process",
            "gfxpack-remote",
            "gfxpack-toolchain",
            "gfxpack-tuning",
        ],
        &["anyhow", "clap", "ctrlc", "indicatif", "tracing-subscriber"],
    ),
    (
        "gfxpack",
        &[
            "gfxpack-debian",
            "gfxpack-miopen",
            "gfxpack-model",
            "gfxpack-pipeline",
            "gfxpack-plan",
            "gfxpack-kdb",
            "gfxpack-compile",
            "gfxpack-toolchain",
            "gfxpack-harvest",
            "gfxpack-package",
            "gfxpack-process",
            "gfxpack-caches",
            "gfxpack-tuning",
            "gfxpack-runtime",
        ],
        &["rusqlite", "tokio", "tonic"],
    ),
    (
        "gfxpack-tests",
        &[
            "gfxpack-model",
            "gfxpack-plan",
            "gfxpack-debian",
            "gfxpack-kdb",
            "gfxpack-compile",
            "gfxpack-miopen",
            "gfxpack-package",
            "gfxpack-runtime",
        ],
        &[],
    ),
    ("xtask", &[], &["rayon", "rusqlite", "tokio"]),
];

fn members() -> Vec<Package> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .expect("cargo reads the workspace");
    metadata.packages
}

#[test]
fn every_crate_has_its_place() {
    let members: BTreeSet<String> =
        members().iter().map(|package| package.name.to_string()).collect();
    let placed: BTreeSet<String> = ARROWS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(members, placed, "a new crate needs its arrows decided");
}

#[test]
fn arrows_point_one_way() {
    let arrows: BTreeMap<_, _> =
        ARROWS.iter().map(|(name, may, never)| (*name, (*may, *never))).collect();
    let mut wrong = Vec::new();
    for package in members() {
        let name = package.name.as_str();
        let Some((may, never)) = arrows.get(name) else { continue };
        for dependency in &package.dependencies {
            let on = dependency.name.as_str();
            let member = arrows.contains_key(on);
            // What only tests use is no part of what a crate knows, other members excepted.
            let known = dependency.kind != DependencyKind::Development;
            if (member && !may.contains(&on)) || (known && never.contains(&on)) {
                wrong.push(format!("{name} depends on {on}"));
            }
        }
    }
    assert!(wrong.is_empty(), "against the arrows: {}", wrong.join(", "));
}

#[test]
fn the_arrows_have_no_circle() {
    let rank: BTreeMap<_, _> = (0..).zip(ARROWS).map(|(rank, (name, ..))| (*name, rank)).collect();
    for (name, may, _) in ARROWS {
        for on in *may {
            assert!(rank[on] < rank[name], "{name} may depend on {on}, which comes later");
        }
    }
}
