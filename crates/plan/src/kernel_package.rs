//! The package of one kdb: its name, where the kdb is installed, and what it
//! says of itself.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::package::{ChangelogEntry, Content, PackageFile, PackageSpec, Relation, RelationKind};
use crate::processors;
use crate::target::Target;

/// The name of AMD's newer packages, `{gfx}` standing for the target.
pub const DEFAULT_NAME_TEMPLATE: &str = "miopen-hip-{gfx}kdb";

/// The Debian field with the gfx targets a package is for.
///
/// Source: Debian ROCm team, packaging policy for architecture-dependent data.
const GPU_FIELD: &str = "X-ROCm-GPU-Architecture";

/// Where MIOpen looks for installed kdbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// AMD's packages: `/opt/rocm-<version>`, or `/opt/rocm` without one.
    Rocm {
        /// `6.4.1`.
        version: Option<String>,
    },
    /// `/usr`, where libMIOpen lies in `/usr/lib` or `/usr/lib64`.
    Fhs,
    /// Debian's multiarch: MIOpen takes `../share` from its library's
    /// directory `/usr/lib/<triplet>`.
    Debian,
    /// Any other prefix, absolute.
    Prefix(String),
}

impl Layout {
    /// The absolute directory of kdbs.
    #[must_use]
    pub fn kdb_dir(&self) -> String {
        let prefix = match self {
            Self::Rocm { version: Some(version) } => format!("/opt/rocm-{version}"),
            Self::Rocm { version: None } => "/opt/rocm".to_owned(),
            Self::Fhs => "/usr".to_owned(),
            Self::Debian => "/usr/lib".to_owned(),
            Self::Prefix(prefix) => prefix.trim_end_matches('/').to_owned(),
        };
        format!("{prefix}/share/miopen/db")
    }
}

/// A licence with whose it is and what it covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLicense {
    /// SPDX expression.
    pub license: String,
    /// Copyright holders, one line.
    pub copyright: String,
}

/// What all packages of a build have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// What the kernels are called as a whole.
    pub library: String,
    /// A paragraph about them, or empty.
    pub description: String,
    /// Home page, or empty.
    pub homepage: String,
    /// Upstream version.
    pub version: String,
    /// Debian revision and rpm release.
    pub revision: String,
    /// `Name <mail>`.
    pub maintainer: String,
    /// Licences of the sources, by source file name; a source that several
    /// inputs name may have several, which all hold.
    pub licenses: BTreeSet<(String, SourceLicense)>,
    /// Where the kdb goes.
    pub layout: Layout,
    /// Package name, `{gfx}` standing for the target.
    pub name_template: String,
    /// Seconds since the epoch for every time stamp.
    pub source_date_epoch: u64,
}

/// One kdb to package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Which devices it serves.
    pub target: Target,
    /// The kdb on this machine.
    pub kdb: PathBuf,
    /// Kernels in it.
    pub kernels: u64,
    /// Kernels that should be in it and could not be compiled.
    pub missing: u64,
    /// What compiled them, in words; empty where it is not known.
    pub compiler: String,
}

/// The package's name for a target.
#[must_use]
pub fn name(template: &str, target: &Target) -> String {
    template.replace("{gfx}", &target.package_suffix())
}

/// The spec of a kdb's package.
#[must_use]
pub fn spec(release: &Release, contents: &Contents) -> PackageSpec {
    let target = &contents.target;
    let dir = release.layout.kdb_dir();
    let licenses: BTreeSet<&str> =
        release.licenses.iter().map(|(_, license)| license.license.as_str()).collect();
    PackageSpec {
        name: name(&release.name_template, target),
        version: release.version.clone(),
        revision: release.revision.clone(),
        summary: format!("precompiled MIOpen kernels for {}", in_words(target)),
        description: description(release, contents, &dir),
        license: conjunction(&licenses),
        homepage: release.homepage.clone(),
        maintainer: release.maintainer.clone(),
        section: "libs".to_owned(),
        relations: ["miopen-hip", "libmiopen1"]
            .into_iter()
            .map(|name| Relation {
                kind: RelationKind::Enhances,
                name: name.to_owned(),
                version: None,
            })
            .collect(),
        deb_fields: vec![(GPU_FIELD.to_owned(), target.id().processor().to_owned())],
        files: vec![PackageFile {
            path: format!("{dir}/{}", target.kdb_file_name()),
            content: Content::File(contents.kdb.clone()),
            mode: 0o644,
        }],
        copyright: copyright(release),
        changelog: vec![ChangelogEntry {
            version: format!("{}-{}", release.version, release.revision),
            date: release.source_date_epoch,
            changes: vec![format!("{} {}, built from source.", release.library, release.version)],
        }],
        source_date_epoch: release.source_date_epoch,
    }
}

/// `gfx90a with 104 compute units`.
fn in_words(target: &Target) -> String {
    let xnack = if target.id().xnack() == Some(true) { " (XNACK on)" } else { "" };
    let count = target.compute_units();
    let count = count.map(|count| format!(" with {count} compute units")).unwrap_or_default();
    format!("{}{xnack}{count}", target.id().processor())
}

fn description(release: &Release, contents: &Contents, dir: &str) -> String {
    let target = &contents.target;
    let products = processors::by_name(target.id().processor())
        .filter(|processor| !processor.products.is_empty())
        .map(|processor| format!(" These are, among others: {}.", processor.products.join(", ")))
        .unwrap_or_default();
    let mut paragraphs = vec![format!(
        "MIOpen compiles its GPU kernels when a program first needs them, which takes seconds to \
             minutes, unless it finds them in a kernel database. This package installs {} kernels for \
             GPUs of type {} in {dir}.{products}",
        contents.kernels,
        in_words(target)
    )];
    if !contents.compiler.is_empty() {
        paragraphs
            .push(format!("The kernels were compiled from source with {}.", contents.compiler));
    }
    if contents.missing > 0 {
        paragraphs.push(format!(
            "Incomplete: {} kernels could not be compiled and are compiled at run time.",
            contents.missing
        ));
    }
    if !release.description.is_empty() {
        paragraphs.push(release.description.clone());
    }
    paragraphs.join("\n\n")
}

/// All licences hold, each for its own sources.
fn conjunction(licenses: &BTreeSet<&str>) -> String {
    match licenses.len() {
        1 => licenses.iter().copied().collect(),
        _ => {
            let parenthesised = licenses.iter().map(|license| {
                if license.contains(" OR ") {
                    format!("({license})")
                } else {
                    (*license).to_owned()
                }
            });
            parenthesised.collect::<Vec<_>>().join(" AND ")
        }
    }
}

/// The machine-readable copyright file.
///
/// Source: Debian, "Machine-readable debian/copyright file", format 1.0.
fn copyright(release: &Release) -> String {
    let mut text = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n",
    );
    text.push_str(&format!("Upstream-Name: {}\n", release.library));
    if !release.homepage.is_empty() {
        text.push_str(&format!("Source: {}\n", release.homepage));
    }
    let groups: BTreeSet<&SourceLicense> =
        release.licenses.iter().map(|(_, license)| license).collect();
    // The kdb is one file; what was compiled into it is told in the comment.
    let dep5 =
        |spdx: &str| spdx.replace(" OR ", " or ").replace(" AND ", " and ").replace("MIT", "Expat");
    let all: BTreeSet<String> = groups.iter().map(|group| dep5(&group.license)).collect();
    let holders: BTreeSet<&str> = groups.iter().map(|group| group.copyright.as_str()).collect();
    text.push_str("\nFiles: *\nCopyright:");
    for holder in holders {
        text.push_str(&format!(" {holder}\n"));
    }
    text.push_str(&format!("License: {}\n", all.iter().cloned().collect::<Vec<_>>().join(" and ")));
    if groups.len() > 1 {
        text.push_str("Comment: the kernels were compiled from these sources:\n");
        for (source, license) in &release.licenses {
            text.push_str(&format!(
                "  {source}: {} ({})\n",
                dep5(&license.license),
                license.copyright
            ));
        }
    }
    let words = |text: &str| -> BTreeSet<String> {
        text.split([' ', '(', ')'])
            .filter(|word| !matches!(*word, "" | "or" | "and" | "with"))
            .map(str::to_owned)
            .collect()
    };
    for license in all.iter().flat_map(|text| words(text)).collect::<BTreeSet<_>>() {
        text.push_str(&format!("\nLicense: {license}\n{}", license_text(&license)));
    }
    text
}

fn license_text(license: &str) -> String {
    let text = match license {
        "Expat" => EXPAT,
        "Apache-2.0" => {
            "On Debian systems, the full text of the Apache License 2.0 is in\n\
             /usr/share/common-licenses/Apache-2.0.\n"
        }
        _ => "The full text of this licence is with the sources of the kernels.\n",
    };
    text.lines()
        .map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect()
}

const EXPAT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the \"Software\"), to
deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or
sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING
FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE.
";

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn release(licenses: &[(&str, &str)]) -> Release {
        Release {
            library: "kernels".to_owned(),
            description: "More.".to_owned(),
            homepage: String::new(),
            version: "1.0.0".to_owned(),
            revision: "1".to_owned(),
            maintainer: "A <a@example.org>".to_owned(),
            licenses: licenses
                .iter()
                .map(|(source, license)| {
                    let copyright = format!("{source}'s author");
                    (
                        (*source).to_owned(),
                        SourceLicense { license: (*license).to_owned(), copyright },
                    )
                })
                .collect(),
            layout: Layout::Rocm { version: Some("6.4.1".to_owned()) },
            name_template: DEFAULT_NAME_TEMPLATE.to_owned(),
            source_date_epoch: 0,
        }
    }

    fn contents(target: &str) -> Contents {
        Contents {
            target: target.parse().unwrap(),
            kdb: "x".into(),
            kernels: 3,
            missing: 0,
            compiler: "clang 15".to_owned(),
        }
    }

    #[test]
    fn each_layout_is_where_miopen_looks() {
        let dir = |layout: Layout| layout.kdb_dir();
        assert_eq!(dir(release(&[]).layout), "/opt/rocm-6.4.1/share/miopen/db");
        assert_eq!(dir(Layout::Rocm { version: None }), "/opt/rocm/share/miopen/db");
        assert_eq!(dir(Layout::Fhs), "/usr/share/miopen/db");
        assert_eq!(dir(Layout::Debian), "/usr/lib/share/miopen/db");
        assert_eq!(dir(Layout::Prefix("/srv/r/".to_owned())), "/srv/r/share/miopen/db");
    }

    #[test]
    fn the_package_is_named_and_holds_the_kdb() {
        let spec = spec(&release(&[("a.cl", "MIT")]), &contents("gfx90a:xnack+@104"));
        assert_eq!(spec.name, "miopen-hip-gfx90a-xnack-104kdb");
        assert_eq!(spec.files[0].path, "/opt/rocm-6.4.1/share/miopen/db/gfx90a_xnack68.kdb");
        assert_eq!(
            spec.summary,
            "precompiled MIOpen kernels for gfx90a (XNACK on) with 104 compute units"
        );
        assert_eq!(spec.license, "MIT");
    }

    #[test]
    fn licences_of_all_sources_are_told() {
        let release = release(&[("a.cl", "MIT OR Apache-2.0"), ("b.s", "BSD-3-Clause")]);
        let spec = spec(&release, &contents("gfx1030"));
        assert_eq!(spec.license, "BSD-3-Clause AND (MIT OR Apache-2.0)");
        let head: Vec<&str> = spec.copyright.lines().take(11).collect();
        expect![[r#"
            Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
            Upstream-Name: kernels

            Files: *
            Copyright: a.cl's author
             b.s's author
            License: BSD-3-Clause and Expat or Apache-2.0
            Comment: the kernels were compiled from these sources:
              a.cl: Expat or Apache-2.0 (a.cl's author)
              b.s: BSD-3-Clause (b.s's author)
        "#]]
        .assert_eq(&head.join("\n"));
        for license in
            ["\nLicense: Expat\n", "\nLicense: Apache-2.0\n", "\nLicense: BSD-3-Clause\n"]
        {
            assert!(spec.copyright.contains(license), "{license}");
        }
    }
}
