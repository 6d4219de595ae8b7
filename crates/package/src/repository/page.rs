//! The HTML page of a repository.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_process::SystemToolError;

use super::address::{Address, SetupFiles};
use super::apt::Suite;
use super::package_info::PackageInfo;
use crate::text::{escaped, size};
use crate::url::encoded;

const STYLE: &str = include_str!("page.css");

/// A package as the page lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageEntry {
    about: PackageInfo,
    /// The path in the repository.
    file: PathBuf,
    bytes: u64,
    /// Notes from the package's build.
    notes: Vec<String>,
}

impl PageEntry {
    /// Reads a package of the repository in `dir`.
    ///
    /// # Errors
    /// If dpkg-deb or rpm does not start.
    pub(super) fn read(
        dir: &Path,
        file: &Path,
        notes: &dyn Fn(&Path) -> Vec<String>,
    ) -> Result<Option<Self>, SystemToolError> {
        let path = dir.join(file);
        let bytes = path.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        let about = PackageInfo::read(&path)?;
        let notes = notes(&path);
        Ok(about.map(|about| Self { about, file: file.to_owned(), bytes, notes }))
    }

    pub(super) fn has(&self, ending: &str) -> bool {
        self.file.to_string_lossy().ends_with(ending)
    }
}

/// The HTML page.
pub(super) fn page(
    address: &Address,
    suite: &Suite,
    files: &SetupFiles,
    is_signed: bool,
    packages: &[PageEntry],
) -> String {
    let title = escaped(&suite.origin);
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    if !is_signed {
        text.push_str("<p><strong>This repository is not signed.</strong></p>\n");
    }
    text.push_str("<h2>Use it</h2>\n");
    let example = packages.first().map_or("PACKAGE", |package| package.about.name.as_str());
    for (system, commands) in commands(address, files, example) {
        let _ = writeln!(text, "<p>{system}:</p>\n<pre>{}</pre>", escaped(&commands));
    }
    let kdbs = DEFAULT_NAME_TEMPLATE.split('{').next().unwrap_or_default();
    if packages.iter().any(|package| package.about.name.starts_with(kdbs)) {
        text.push_str(
            "<p>With gfxpack, this installs the kernels of MIOpen for the GPUs of the machine:</p>\n\
             <pre>sudo gfxpack install</pre>\n",
        );
    }
    text.push_str(
        "<h2>Packages</h2>\n<table>\n<tr><th>Package</th><th>Version</th><th>Files</th></tr>\n",
    );
    let mut by_name: BTreeMap<&str, Vec<&PageEntry>> = BTreeMap::new();
    for package in packages {
        by_name.entry(&package.about.name).or_default().push(package);
    }
    for (name, all) in by_name {
        add_row(&mut text, name, all);
    }
    text.push_str("</table>\n</body>\n</html>\n");
    text
}

/// Adds a row for the packages with one name to the table.
fn add_row(text: &mut String, name: &str, mut all: Vec<&PageEntry>) {
    all.sort_by(|a, b| a.file.cmp(&b.file));
    let described = &all[0].about;
    let (name, summary) = (escaped(name), escaped(&described.summary));
    let _ = write!(text, "<tr><td><details><summary><b>{name}</b><br>{summary}");
    for note in &all[0].notes {
        let _ = write!(text, "<br><small>{}</small>", escaped(note));
    }
    text.push_str("</summary>");
    for paragraph in described.description.split("\n\n").filter(|one| !one.trim().is_empty()) {
        let _ = write!(text, "<p>{}</p>", escaped(paragraph.trim()));
    }
    let mut versions: Vec<&str> = all.iter().map(|one| one.about.version.as_str()).collect();
    versions.dedup();
    let _ = write!(text, "</details></td><td>{}</td><td>", escaped(&versions.join(", ")));
    for one in all {
        let shown = one.file.to_string_lossy();
        let (url, size) = (encoded(&shown), size(one.bytes));
        let kind = shown.rsplit('.').next().unwrap_or_default();
        let _ = write!(text, "<a href=\"./{url}\">.{kind}</a>, {size}<br>");
    }
    text.push_str("</td></tr>\n");
}

/// The commands for each system.
fn commands(address: &Address, files: &SetupFiles, example: &str) -> Vec<(&'static str, String)> {
    let url = address.url();
    let get = |file: &str, to: &str| match url.strip_prefix("file://") {
        Some(dir) => format!("sudo cp {dir}/{file} {to}/"),
        None => format!("sudo curl --fail --output {to}/{file} {url}/{file}"),
    };
    let mut all = Vec::new();
    if let Some(file) = &files.sources {
        let get = get(file, "/etc/apt/sources.list.d");
        all.push((
            "Debian, Ubuntu",
            format!("{get}\nsudo apt update && sudo apt install {example}"),
        ));
    }
    if let Some(file) = &files.repo {
        let dnf = get(file, "/etc/yum.repos.d");
        all.push(("Fedora, RHEL", format!("{dnf}\nsudo dnf install {example}")));
        let zypper = get(file, "/etc/zypp/repos.d");
        all.push(("openSUSE", format!("{zypper}\nsudo zypper install {example}")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_packages_is_shown_as_text() {
        let suite =
            Suite { origin: "a <b> & c".into(), suite: "stable".into(), component: "main".into() };
        let files = SetupFiles { sources: Some("a.sources".into()), repo: None, page: "x".into() };
        let about = PackageInfo {
            path: PathBuf::new(),
            name: "kernels-gfx906".into(),
            version: "1<2".into(),
            depends: Vec::new(),
            summary: "\"</summary><script>".into(),
            description: "one\ntwo\n\n<img src=x>\n".into(),
        };
        let package = PageEntry {
            about,
            file: "pool/a b+\"#?.deb".into(),
            bytes: 1_234,
            notes: vec!["for <gfx906>".to_owned()],
        };
        let address = Address::new("https://example.org/k/");
        let text = page(&address, &suite, &files, true, &[package]);
        for expected in [
            "<title>a &lt;b&gt; &amp; c</title>",
            "&quot;&lt;/summary&gt;&lt;script&gt;",
            "<p>one\ntwo</p><p>&lt;img src=x&gt;</p>",
            "<small>for &lt;gfx906&gt;</small>",
            "href=\"./pool/a%20b%2B%22%23%3F.deb\">.deb</a>, 1.2 kB",
            "curl --fail --output /etc/apt/sources.list.d/a.sources https://example.org/k/a.sources",
            "sudo apt install kernels-gfx906",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!text.contains("<script"), "{text}");
        assert!(!text.contains("not signed"));
    }
}
