//! Checks which crate depends on which, and that ARCHITECTURE.md names every crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Foreign crates that members must not use, not by way of others either.
const NEVER: &[(&str, &str)] = &[
    // They have only values and decisions: whoever calls them asks the machine.
    ("gfxpack-model gfxpack-plan", "libc rayon rusqlite rustix tempfile walkdir"),
    // Their SQLite would replace the one for which they stand in.
    ("gfxpack-standin gfxpack-miopen-probe", "rusqlite"),
    ("gfxpack-compile gfxpack-remote gfxpack-package", "rusqlite"),
    // The terminal belongs to the command line.
    ("gfxpack-pipeline gfxpack-remote gfxpack-runtime-c", "indicatif tracing-subscriber"),
    ("gfxpack-remote gfxpack-runtime-c", "clap"),
];

/// All dependencies of a program that looks kernels up, with default features, on
/// Linux. A new one is a cost for every such program.
const RUNTIME: &str = "bitflags block-buffer bzip2 cfg-if cpufeatures crypto-common digest \
    fallible-iterator fallible-streaming-iterator foldhash generic-array gfxpack-kdb gfxpack-model \
    gfxpack-sqlite hashbrown hashlink libbz2-rs-sys libc libloading libsqlite3-sys \
    linux-raw-sys md-5 nix once_cell percent-encoding pin-project-lite proc-macro2 quote rusqlite \
    rustix sha2 smallvec syn thiserror thiserror-impl tracing tracing-core typenum unicode-ident";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "cargo is asked")]
fn cargo(arguments: &str) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.current_dir(root()).args(arguments.split_whitespace()).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes text")
}

/// The names of all run-time dependencies of a member, without itself.
fn closure(member: &str) -> BTreeSet<String> {
    let tree = cargo(&format!("tree --locked -e normal --prefix none --format {{p}} -p {member}"));
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != member).map(str::to_owned).collect()
}

#[test]
fn a_crate_uses_only_crates_from_earlier_rows_of_the_code_map() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `crates/")?.split('`').next());
    let rank: BTreeMap<&str, usize> = rows.zip(0..).collect();
    let metadata = cargo("metadata --locked --no-deps --format-version 1");
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let directory = |path: &str| path.split("/crates/").nth(1).map(str::to_owned);
    for package in metadata["packages"].as_array().unwrap() {
        let path = text(&package["manifest_path"]);
        let Some(own) = directory(path.trim_end_matches("/Cargo.toml")) else { continue };
        let place = rank.get(own.as_str()).unwrap_or_else(|| panic!("no row of {own}"));
        let dependencies = package["dependencies"].as_array().unwrap();
        for on in dependencies.iter().filter_map(|on| directory(&text(&on["path"]))) {
            assert!(on == own || rank[on.as_str()] < *place, "{own} depends on {on}");
        }
    }
}

#[test]
fn forbidden_crates_do_not_come_in_indirectly() {
    for (members, never) in NEVER {
        for member in members.split(' ') {
            let closure = closure(member);
            for on in never.split(' ') {
                assert!(!closure.contains(on), "{member} takes in {on}: see `cargo tree -i {on}`");
            }
        }
    }
}

#[test]
fn a_program_that_looks_kernels_up_has_only_listed_dependencies() {
    let listed: BTreeSet<String> = RUNTIME.split_whitespace().map(str::to_owned).collect();
    assert_eq!(closure("gfxpack-runtime"), listed);
}
