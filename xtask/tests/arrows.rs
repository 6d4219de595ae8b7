//! Checks which crate depends on which, with `cargo metadata`, and with
//! `cargo tree` for indirect dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// For each member: the members that it may depend on, and foreign crates that
/// neither it nor its dependencies may use.
const ARROWS: &[(&str, &[&str], &[&str])] = &[
    (
        "gfxpack-model",
        &[],
        // It has only values: code that reads or stores them is elsewhere.
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
        "gfxpack-sqlite",
        &[],
        // Each of its users knows one file format, but this crate knows none.
        &["clap", "rayon", "rustix", "serde_json", "tempfile", "tokio"],
    ),
    (
        "gfxpack-kdb",
        &["gfxpack-model", "gfxpack-sqlite"],
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
        &["clap", "indicatif", "rusqlite", "tar", "toml", "tokio"],
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
        &["clap", "indicatif", "rpm", "tar", "toml"],
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
        &["gfxpack-model", "gfxpack-sqlite"],
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
        &["clap", "indicatif", "liblzma", "rayon", "rpm", "tar", "toml", "zstd", "tokio"],
    ),
    ("gfxpack-remote", &["gfxpack-model", "gfxpack-compile"], &["clap", "indicatif", "rusqlite"]),
    ("gfxpack-standin", &[], &["clap", "rusqlite", "rayon", "tokio"]),
    (
        "gfxpack-miopen-probe",
        &["gfxpack-model", "gfxpack-standin"],
        // Its SQLite would replace the one for which the probe stands in.
        &["clap", "rusqlite", "rayon", "tokio"],
    ),
    ("gfxpack-debian", &["gfxpack-model"], &["clap", "indicatif", "rayon", "rusqlite", "tokio"]),
    (
        "gfxpack-stock-library",
        &["gfxpack-model", "gfxpack-debian"],
        &["clap", "indicatif", "rayon", "rusqlite", "tokio"],
    ),
    (
        "gfxpack-miopen",
        &[
            "gfxpack-harvest",
            "gfxpack-model",
            "gfxpack-tuning",
            "gfxpack-debian",
            "gfxpack-stock-library",
        ],
        &["clap", "indicatif", "tokio"],
    ),
    (
        "gfxpack-rocfft",
        &["gfxpack-model", "gfxpack-sqlite", "gfxpack-stock-library"],
        &["clap", "indicatif", "rayon", "rpm", "walkdir", "tokio"],
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
            "gfxpack-rocfft",
            "gfxpack-stock-library",
            // doctor checks what the runtime would do.
            "gfxpack-runtime",
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
        &["tokio", "tonic"],
    ),
    (
        "gfxpack-tests",
        &[
            "gfxpack-model",
            "gfxpack-plan",
            "gfxpack-process",
            "gfxpack-debian",
            "gfxpack-kdb",
            "gfxpack-compile",
            "gfxpack-miopen",
            "gfxpack-package",
            "gfxpack-rocfft",
            "gfxpack-runtime",
            "gfxpack-stock-library",
        ],
        &[],
    ),
    ("xtask", &[], &["rayon", "rusqlite", "tokio"]),
];

/// Foreign crates that a member must not use directly.
const NOT_ITSELF: &[(&str, &[&str])] = &[
    ("gfxpack-launch", &["rayon", "walkdir"]),
    ("gfxpack-harvest", &["bzip2", "rusqlite", "rustix"]),
    ("gfxpack-runtime-c", &["rusqlite"]),
    ("gfxpack-remote", &["rayon", "walkdir"]),
    ("gfxpack", &["rusqlite"]),
];

/// All dependencies of a program that looks kernels up, with default features, on
/// Linux. A new one is a cost for every such program.
const RUNTIME: &[&str] = &[
    "bitflags",
    "block-buffer",
    "bzip2",
    "cfg-if",
    "cpufeatures",
    "crypto-common",
    "digest",
    "fallible-iterator",
    "fallible-streaming-iterator",
    "foldhash",
    "gfxpack-kdb",
    "gfxpack-model",
    "gfxpack-sqlite",
    "hashbrown",
    "hashlink",
    "hybrid-array",
    "libbz2-rs-sys",
    "libc",
    "libloading",
    "libsqlite3-sys",
    "linux-raw-sys",
    "md-5",
    "nix",
    "once_cell",
    "percent-encoding",
    "pin-project-lite",
    "proc-macro2",
    "quote",
    "rusqlite",
    "rustix",
    "sha2",
    "smallvec",
    "syn",
    "thiserror",
    "thiserror-impl",
    "tracing",
    "tracing-core",
    "typenum",
    "unicode-ident",
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

/// The names of all run-time dependencies of a member, without itself.
#[expect(clippy::disallowed_methods, reason = "cargo is asked")]
fn closure(member: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--package", member, "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let lines = String::from_utf8(tree.stdout).expect("names are text");
    let names = lines.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != member).map(str::to_owned).collect()
}

#[test]
fn every_crate_has_its_place() {
    let members: BTreeSet<String> =
        members().iter().map(|package| package.name.to_string()).collect();
    let placed: BTreeSet<String> = ARROWS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(members, placed, "a new crate needs its arrows decided");
}

#[test]
fn members_depend_only_on_what_they_may() {
    let arrows: BTreeMap<_, _> = ARROWS.iter().map(|(name, may, _)| (*name, *may)).collect();
    let mut wrong = Vec::new();
    for package in members() {
        let name = package.name.as_str();
        let Some(may) = arrows.get(name) else { continue };
        for dependency in &package.dependencies {
            let on = dependency.name.as_str();
            let member = arrows.contains_key(on);
            // Dependencies of tests do not count, unless they are members.
            let known = dependency.kind != DependencyKind::Development;
            let not_itself = NOT_ITSELF.iter().filter(|(of, _)| *of == name);
            let mut not_itself = not_itself.flat_map(|(_, never)| *never);
            if (member && !may.contains(&on)) || (known && not_itself.any(|it| *it == on)) {
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

#[test]
fn forbidden_crates_do_not_come_in_indirectly() {
    let mut wrong = Vec::new();
    for (name, _, never) in ARROWS {
        let closure = closure(name);
        let found = never.iter().filter(|never| closure.contains(**never));
        wrong.extend(found.map(|on| format!("{name} takes in {on}")));
    }
    assert!(wrong.is_empty(), "`cargo tree -e normal -i` says how: {}", wrong.join(", "));
}

#[test]
fn a_program_that_looks_kernels_up_has_only_listed_dependencies() {
    let closure = closure("gfxpack-runtime");
    assert_eq!(closure.iter().map(String::as_str).collect::<Vec<_>>(), RUNTIME);
}
