//! Rules for Cargo.toml and Cargo.lock: versions and lints are only in the root.

use super::finding::Finding;
use super::tree::{TextFile, Tree};

/// Fields that every member inherits from the root.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "authors"];
/// Fields that published crates inherit too.
const OF_PUBLISHED: &[&str] = &["repository", "readme", "keywords", "categories"];
const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// Files besides the manifest that name the workspace's version.
const NAMING_THE_VERSION: &[&str] = &[
    "CHANGELOG.md",
    "packaging/debian/changelog",
    "packaging/rpm/gfxpack.spec",
    "packaging/rpm/gfxpack-runtime.spec",
];

/// Findings in a Cargo.toml or Cargo.lock.
pub(super) fn check_file(file: &TextFile) -> Vec<Finding> {
    match file.path.file_name().and_then(|name| name.to_str()) {
        Some("Cargo.toml") if file.path.components().count() > 1 => check_member(file),
        Some("Cargo.lock") => check_lock(file),
        _ => Vec::new(),
    }
}

/// Checks a member's manifest line by line, since each rule is about a line.
fn check_member(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line, what: String| findings.push(Finding::new(&file.path, line, what));
    let mut section = "";
    let mut inherited = Vec::new();
    let mut lints = false;
    let mut is_published = true;
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            if section.contains("dependencies.") {
                found(number, "writes a dependency as a section: keep it to one line".into());
            }
        } else if section.ends_with("dependencies") {
            if !line.contains("workspace = true") {
                found(
                    number,
                    "gives a dependency's version, which belongs in the root's Cargo.toml".into(),
                );
            }
        } else if section == "package" {
            inherited.extend(line.strip_suffix(".workspace = true"));
            is_published &= line != "publish = false";
        } else if section == "lints" {
            lints |= line == "workspace = true";
        }
    }
    let of_published = if is_published { OF_PUBLISHED } else { &[] };
    for field in INHERITED.iter().chain(of_published) {
        if !inherited.contains(field) {
            found(0, format!("does not take `{field}` from the workspace"));
        }
    }
    if !lints {
        found(0, "does not take the workspace's lints".into());
    }
    findings
}

/// Everything must be from crates.io, so that all machines build the same.
fn check_lock(file: &TextFile) -> Vec<Finding> {
    (1..)
        .zip(file.text.lines())
        .filter(|(_, line)| line.starts_with("source = ") && *line != REGISTRY)
        .map(|(number, _)| Finding::new(&file.path, number, "names another source than crates.io"))
        .collect()
}

/// The changelog and the recipes must name the workspace's version.
pub(super) fn check_tree(tree: &Tree) -> Vec<Finding> {
    let Some(version) = tree.text("Cargo.toml").and_then(workspace_version) else {
        return vec![Finding::new("Cargo.toml".as_ref(), 0, "names no workspace version")];
    };
    let mut findings = Vec::new();
    for path in NAMING_THE_VERSION {
        let what = match tree.text(path) {
            None => "is missing".to_owned(),
            Some(text) if !names_version(path, text, version) => {
                format!("does not name version {version}")
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(path.as_ref(), 0, what));
    }
    findings
}

/// Whether the file names the version in the place that its format requires.
fn names_version(path: &str, text: &str, version: &str) -> bool {
    match path {
        "CHANGELOG.md" => has_entry(text, version),
        "packaging/debian/changelog" => text.starts_with(&format!("gfxpack ({version}-")),
        // A spec file also has it in the newest entry of its changelog.
        _ => {
            let entry = text.split_once("%changelog\n").and_then(|(_, log)| log.lines().next());
            text.contains(&format!("Version:        {version}\n"))
                && entry.is_some_and(|entry| entry.contains(&format!(" - {version}-")))
        }
    }
}

fn workspace_version(manifest: &str) -> Option<&str> {
    let (_, package) = manifest.split_once("[workspace.package]")?;
    let line = package.lines().find(|line| line.starts_with("version = "))?;
    line.split('"').nth(1)
}

/// Whether a second-level heading names the version.
fn has_entry(changelog: &str, version: &str) -> bool {
    changelog.lines().filter_map(|line| line.strip_prefix("## ")).any(|heading| {
        heading.split([' ', '[', ']', '(', ')', ',', ':']).any(|word| word == version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
                        rust-version.workspace = true\nlicense.workspace = true\n\
                        authors.workspace = true\nrepository.workspace = true\n\
                        readme.workspace = true\nkeywords.workspace = true\n\
                        categories.workspace = true\n\n\
                        [lints]\nworkspace = true\n\n[dependencies]\nserde.workspace = true\n\
                        rusqlite = { workspace = true, features = [\"backup\"] }\n";

    #[track_caller]
    fn expect(path: &str, text: &str, expected: &[&str]) {
        let file = TextFile { path: path.into(), text: text.to_owned() };
        let findings: Vec<_> = check_file(&file).into_iter().map(|finding| finding.what).collect();
        assert_eq!(findings, expected);
    }

    #[test]
    fn members_inherit_from_the_root() {
        expect("crates/a/Cargo.toml", GOOD, &[]);
        let lints = GOOD.replace("[lints]\nworkspace = true\n", "");
        expect("crates/a/Cargo.toml", &lints, &["does not take the workspace's lints"]);
        let readme = GOOD.replace("readme.workspace = true\n", "");
        expect("crates/a/Cargo.toml", &readme, &["does not take `readme` from the workspace"]);
        let unpublished = readme.replace("edition.workspace", "publish = false\nedition.workspace");
        expect("crates/a/Cargo.toml", &unpublished, &[]);
        let license = GOOD.replace("license.workspace = true", "license = \"MIT\"");
        expect("crates/a/Cargo.toml", &license, &["does not take `license` from the workspace"]);
        expect("Cargo.toml", "[workspace.dependencies]\nserde = \"1\"\n", &[]);
    }

    #[test]
    fn versions_are_only_in_the_root() {
        for section in ["[dev-dependencies]", "[target.'cfg(unix)'.dependencies]"] {
            let text = format!("{GOOD}\n{section}\ntar = \"0.4\"\n");
            let what = "gives a dependency's version, which belongs in the root's Cargo.toml";
            expect("crates/a/Cargo.toml", &text, &[what]);
        }
        let text = format!("{GOOD}\n[dependencies.tar]\nworkspace = true\n");
        let what = "writes a dependency as a section: keep it to one line";
        expect("crates/a/Cargo.toml", &text, &[what]);
    }

    #[test]
    fn the_lock_file_names_crates_io_only() {
        expect("Cargo.lock", &format!("name = \"tar\"\n{REGISTRY}\n"), &[]);
        let other = "source = \"git+https://example.org/tar\"\n";
        expect("Cargo.lock", other, &["names another source than crates.io"]);
    }

    #[test]
    fn recipes_name_the_version_in_both_places() {
        let spec = "Version:        0.1.0\n%changelog\n* Thu Jan 01 2026 A <a@b> - 0.1.0-1\n";
        for path in NAMING_THE_VERSION.iter().filter(|path| path.ends_with(".spec")) {
            assert!(names_version(path, spec, "0.1.0"));
            assert!(!names_version(path, spec, "0.2.0"));
            assert!(!names_version(path, &spec.replace(" - 0.1.0", " - 0.0.9"), "0.1.0"));
            assert!(!names_version(path, &spec.replace(": ", ":\t"), "0.1.0"));
        }
        let changelog = "gfxpack (0.1.0-1) UNRELEASED; urgency=medium\n";
        assert!(names_version("packaging/debian/changelog", changelog, "0.1.0"));
        assert!(!names_version("packaging/debian/changelog", changelog, "0.1.1"));
    }

    #[test]
    fn the_changelog_knows_the_version() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        assert_eq!(workspace_version(manifest), Some("0.1.0"));
        assert!(has_entry("# Changes\n\n## [0.1.0] - 2025-01-01\n", "0.1.0"));
        assert!(has_entry("## 0.1.0 (unreleased)\n", "0.1.0"));
        assert!(!has_entry("## 10.1.0\n\nSince 0.1.0\n", "0.1.0"));
    }
}
