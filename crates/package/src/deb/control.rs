//! The contents of a .deb's control data and documentation: the control file,
//! checksums, Debian's changelog.

use std::fmt::Write as _;

use gfxpack_model::package::{PackageSpec, Relation, RelationKind};

use crate::contents::Contents;
use crate::text;

/// Relations in the order in which dpkg writes their fields.
const RELATIONS: [(RelationKind, &str); 6] = [
    (RelationKind::Depends, "Depends"),
    (RelationKind::Suggests, "Suggests"),
    (RelationKind::Enhances, "Enhances"),
    (RelationKind::Conflicts, "Conflicts"),
    (RelationKind::Replaces, "Replaces"),
    (RelationKind::Provides, "Provides"),
];

/// The text of the control file.
///
/// Source: Debian Policy 4.7.0, 5.3.
pub(crate) fn control(spec: &PackageSpec, contents: &Contents<'_>) -> String {
    let mut fields: Vec<(&str, String)> = vec![
        ("Package", spec.name.clone()),
        ("Version", version(spec)),
        ("Architecture", "all".to_owned()),
        ("Maintainer", spec.maintainer.clone()),
        ("Installed-Size", installed_size(contents).to_string()),
    ];
    for (kind, field) in RELATIONS {
        let related = spec.relations.iter().filter(|relation| relation.kind == kind);
        let related: Vec<String> = related.map(relation).collect();
        if !related.is_empty() {
            fields.push((field, related.join(", ")));
        }
    }
    fields.push(("Section", spec.section.clone()));
    fields.push(("Priority", "optional".to_owned()));
    if !spec.homepage.is_empty() {
        fields.push(("Homepage", spec.homepage.clone()));
    }
    for (name, value) in &spec.deb_fields {
        fields.push((name, value.clone()));
    }
    let mut control = String::new();
    for (name, value) in fields {
        let _ = writeln!(control, "{name}: {value}");
    }
    let _ = writeln!(control, "Description: {}", spec.summary);
    control.push_str(&text::debian_description(&spec.description));
    control
}

/// Version and revision, as dpkg compares them.
pub(crate) fn version(spec: &PackageSpec) -> String {
    format!("{}-{}", spec.version, spec.revision)
}

/// The installed size of the package in KiB: every file rounded up, and one for
/// each directory, including the root.
///
/// Source: Debian Policy 4.7.0, 5.6.20; dpkg 1.21 `dpkg-gencontrol`.
fn installed_size(contents: &Contents<'_>) -> u64 {
    let files: u64 = contents.iter().map(|(_, item)| item.size.div_ceil(1024)).sum();
    files + contents.directories().len() as u64 + 1
}

/// A relation in dpkg's syntax: `a (>= 1.0)`.
pub(crate) fn relation(relation: &Relation) -> String {
    match &relation.version {
        Some((operator, version)) => format!("{} ({operator} {version})", relation.name),
        None => relation.name.clone(),
    }
}

/// The changelog in Debian's format, newest entry first.
///
/// Source: Debian Policy 4.7.0, 4.4.
pub(crate) fn changelog(spec: &PackageSpec) -> String {
    let mut entries = Vec::new();
    for entry in &spec.changelog {
        let mut text = format!("{} ({}) unstable; urgency=medium\n\n", spec.name, entry.version);
        for change in &entry.changes {
            text.push_str(&text::list_item("  * ", change));
            text.push('\n');
        }
        let _ = writeln!(text, "\n -- {}  {}", spec.maintainer, text::rfc2822(entry.date));
        entries.push(text);
    }
    entries.join("\n")
}

/// Fields of a binary package that lintian knows.
///
/// Source: Debian Policy 4.7.0, 5.3; lintian 2.116 `fields/binary-fields`.
const KNOWN_FIELDS: [&str; 9] = [
    "Breaks",
    "Bugs",
    "Built-Using",
    "Essential",
    "Multi-Arch",
    "Origin",
    "Original-Maintainer",
    "Pre-Depends",
    "Source",
];

/// Overrides for intended warnings of lintian, each with the reason; `None` if
/// there are none.
///
/// Source: lintian 2.116, tags `dir-or-file-in-opt`,
/// `triplet-dir-and-architecture-mismatch`, `unknown-field` and
/// `initial-upload-closes-no-bugs`.
pub(crate) fn lintian_overrides(spec: &PackageSpec, contents: &Contents<'_>) -> Option<String> {
    let mut overrides = String::new();
    let mut allow = |reason: &str, tag: &str| {
        let _ = writeln!(overrides, "# {reason}\n{}: {tag}", spec.name);
    };
    let directories = contents.directories();
    if directories.contains("/opt") {
        allow("The files belong to a vendor's prefix.", "dir-or-file-in-opt");
    }
    if directories.contains("/usr/lib/x86_64-linux-gnu") {
        allow(
            "The library looks nowhere else, and the kernels are the same on every machine.",
            "triplet-dir-and-architecture-mismatch *",
        );
    }
    for (field, _) in &spec.deb_fields {
        if !KNOWN_FIELDS.iter().any(|known| known.eq_ignore_ascii_case(field)) {
            allow("Tools for GPUs read this field.", &format!("unknown-field *{field}*"));
        }
    }
    if let [only] = spec.changelog.as_slice() {
        let closes = only.changes.iter().any(|change| change.to_lowercase().contains("closes:"));
        if only.version.ends_with("-1") && !closes {
            allow("No bug asked for this package.", "initial-upload-closes-no-bugs");
        }
    }
    (!overrides.is_empty()).then_some(overrides)
}
