//! `verify`: packages, repositories and directories of packages, down to
//! every kernel.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use gfxpack_package::read::{self, Kind};
use gfxpack_package::sums;
use gfxpack_tuning::{DatabaseName, Severity};
use serde_json::json;

use crate::args::{MaxObject, Verify};
use crate::commands::kdb::verify_options;
use crate::fail::{self, Outcome};
use crate::finding::{Finding, Remedy};
use crate::output::{Output, counted, harmless, shown};
use crate::signing::Keyring;
use crate::{packages, repository};

/// Findings of a tuning database that are told one by one.
const TUNING_FINDINGS: usize = 20;

/// Kernels have much in common, and packages of them unpack to a hundredfold
/// perhaps. A kdb that is larger than this many times its package was made to
/// fill a disk.
const EXPANSION_MAX: u64 = 2000;

/// What any kdb may have.
const UNPACKED_MIN: u64 = 64 << 20;

/// Linux has no longer names.
const NAME_MAX: usize = 255;

/// Checks each path, and tells all findings before it fails.
pub(crate) fn run(args: &Verify, output: &Output) -> anyhow::Result<()> {
    let keyring = args.keyring.as_deref().map(Keyring::open).transpose()?;
    let mut checker = Checker {
        keyring,
        max_object: args.max_object,
        output,
        unsound: Vec::new(),
        remedies: BTreeSet::new(),
        unread: None,
    };
    for path in &args.paths {
        let checked = checker.path(path);
        checker.note(checked);
    }
    checker.end()
}

struct Checker<'a> {
    keyring: Option<Keyring>,
    max_object: MaxObject,
    output: &'a Output,
    /// What has findings, for the last line.
    unsound: Vec<String>,
    /// What helps against all of them.
    remedies: BTreeSet<Remedy>,
    /// What could not be looked at last, and is still to be told.
    unread: Option<anyhow::Error>,
}

impl Checker<'_> {
    fn path(&mut self, path: &Path) -> anyhow::Result<()> {
        let metadata = std::fs::metadata(path).map_err(fail::io("find", path))?;
        if metadata.is_dir() {
            self.directory(path)
        } else if metadata.is_file() {
            self.package(path, false)
        } else {
            Err(fail::usage(
                format!("failed to verify `{}`: it is neither file nor directory", path.display()),
                "write what comes through a pipe or from a device to a file first",
            ))
        }
    }

    /// Keeps what could not be looked at: the others are checked all the same.
    fn note(&mut self, checked: anyhow::Result<()>) {
        if let Err(error) = checked
            && let Some(before) = self.unread.replace(error)
        {
            self.output.warn(&format!("{before:#}"));
        }
    }

    fn end(self) -> anyhow::Result<()> {
        match self.unread {
            Some(error) if self.unsound.is_empty() => Err(error),
            None if self.unsound.is_empty() => Ok(()),
            error => {
                error.iter().for_each(|error| self.output.warn(&format!("{error:#}")));
                let hints: Vec<&str> = self.remedies.iter().map(|remedy| remedy.hint()).collect();
                let (what, hint) = (self.unsound.join(", "), hints.join("; "));
                Err(Outcome::Unverified { what, hint }.into())
            }
        }
    }

    /// Tells what is wrong with one file; nothing where it is sound. Names in
    /// it are somebody's, and a line is a file's.
    fn tell(&mut self, path: &Path, findings: &[Finding], sound: &str) {
        let line = |text: &str| {
            if !self.output.json {
                self.output.data(&harmless(&format!("{}: {text}", path.display())));
            }
        };
        for Finding { detail, remedy } in findings {
            self.output.message("finding", &json!({ "file": shown(path), "detail": detail }));
            line(detail);
            self.remedies.insert(*remedy);
        }
        if findings.is_empty() {
            line(sound);
        } else {
            self.unsound.push(format!("`{}`", path.display()));
        }
        let body = json!({ "file": shown(path), "sound": findings.is_empty(), "findings": findings.len() });
        self.output.message("verified", &body);
    }

    /// Checks a package, of which an index or a list beside it may tell, too.
    fn package(&mut self, path: &Path, listed: bool) -> anyhow::Result<()> {
        let kind = Kind::of(path).ok_or_else(|| {
            fail::usage(
                format!("failed to verify `{}`: its name is no package's", path.display()),
                "give a .deb, .rpm, .tar.gz, .tar.xz or .tar.zst, or a directory; kdbs are \
                 verified by `gfxpack kdb verify`, performance and find databases by \
                 `gfxpack perfdb lint`",
            )
        })?;
        let scratch = fail::temporary_dir()?;
        let size = path.metadata().map_err(fail::io("find", path))?.len();
        let most = size.saturating_mul(EXPANSION_MAX).max(UNPACKED_MIN);
        let mut in_databases = Vec::new();
        let mut kernels = 0;
        let report = read::check(path, kind, &mut |inside, bytes| {
            if !is_database(inside) {
                return Ok(());
            }
            let name = inside.rsplit('/').next().unwrap_or_default();
            if name.len() > NAME_MAX {
                in_databases.push(format!("`{inside}`: its name is too long"));
                return Ok(());
            }
            let copy = scratch.path().join(name);
            let unpacked = unpack(bytes, &copy, most)?;
            let found = if !unpacked {
                Ok(vec![format!("it has more than {most} bytes, in a package of {size}")])
            } else if inside.ends_with(".kdb") {
                kdb(&copy, self.max_object).map(|(found, rows)| {
                    kernels += rows;
                    found
                })
            } else {
                tuning(&copy).map_err(Into::into)
            };
            let found = found.unwrap_or_else(|error| vec![format!("{error:#}")]);
            // Nobody knows the copy.
            let named = |text: String| text.replace(&shown(&copy), inside);
            in_databases.extend(found.into_iter().map(|f| format!("`{inside}`: {}", named(f))));
            std::fs::remove_file(&copy).map_err(fail::scratch(&copy))?;
            Ok(())
        })?;
        let mut findings: Vec<Finding> =
            report.findings.into_iter().chain(in_databases).map(Finding::from).collect();
        for (link, _) in report.links.iter().filter(|(link, _)| is_database(link)) {
            let what = format!("`{link}` is a link, and its kernels are not looked at");
            findings.push(what.into());
        }
        if let Some(keyring) = &self.keyring {
            match &report.signed {
                Some(signed) if signed.signatures.is_empty() => {
                    findings.push(Finding::unsigned("it is not signed"));
                }
                Some(signed) => {
                    let mut refused = Vec::new();
                    for signature in &signed.signatures {
                        refused.extend(keyring.refuses_bytes(signature, &signed.header)?);
                    }
                    // One that is good is enough: all are of the same bytes.
                    if refused.len() == signed.signatures.len() {
                        findings.extend(refused.into_iter().map(|why| why.of("its signature")));
                    }
                }
                // A .deb without a signature may be in a signed index.
                None if kind == Kind::Deb && listed && !signature_of(path).exists() => {}
                None => findings.extend(detached(keyring, path)?),
            }
        }
        let sound =
            format!("sound, {}, {}", counted(report.files, "file"), counted(kernels, "kernel"));
        self.tell(path, &findings, &sound);
        Ok(())
    }

    fn directory(&mut self, dir: &Path) -> anyhow::Result<()> {
        let there = repository::files(dir, |path| Kind::of(path).is_some())?;
        let list = dir.join(sums::FILE_NAME);
        let repository::Checked { indexes, mut listed } =
            repository::check(dir, self.keyring.as_ref())?;
        // A link that leads nowhere is one that somebody meant to lead there.
        if list.symlink_metadata().is_ok() {
            let mut findings = self.sums(dir, &list, &mut listed)?;
            // What an index beside it tells of is told of.
            let beside = there.iter().filter(|path| path.parent() == Some(dir));
            let unlisted = beside.filter(|path| !listed.contains(*path));
            let finding = |path: &PathBuf| format!("`{}` is not listed", path.display());
            findings.extend(unlisted.map(|path| Finding::unlisted(finding(path))));
            self.tell(&list, &findings, "sound, all files are what it says");
        } else if indexes.is_empty() && there.is_empty() {
            return Err(fail::usage(
                format!("failed to find a package below `{}`", dir.display()),
                "give a repository, or a directory that `gfxpack dist` wrote packages into",
            ));
        }
        for (index, findings) in indexes {
            self.tell(&index, &findings, "sound, and so is every package it lists");
        }
        // What is listed may lie behind links to directories.
        let reached = listed.iter().filter(|path| Kind::of(path).is_some() && path.is_file());
        let packages: BTreeSet<PathBuf> = there.into_iter().chain(reached.cloned()).collect();
        for package in &packages {
            let checked = self.package(package, listed.contains(package));
            self.note(checked);
        }
        Ok(())
    }

    /// Checks a list of digests, and adds what it lists.
    fn sums(
        &self,
        dir: &Path,
        path: &Path,
        listed: &mut BTreeSet<PathBuf>,
    ) -> anyhow::Result<Vec<Finding>> {
        let bytes = match repository::read(path) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(vec![error.to_string().into()]),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut findings: Vec<Finding> = Vec::new();
        if let Some(keyring) = &self.keyring {
            findings.extend(detached(keyring, path)?);
        }
        for line in text.lines() {
            let Some((sum, name)) = line.split_once("  ") else {
                findings.push(format!("`{line}` is no line of checksums").into());
                continue;
            };
            let Some(path) = repository::within(dir, name) else {
                findings.push(format!("`{name}` leads out of the directory").into());
                continue;
            };
            match sums::digest_file(&path) {
                Ok(file) if file.sha256 == sum => {}
                Ok(_) => findings.push(format!("`{name}` is not what it says").into()),
                Err(error) => {
                    findings.push(format!("`{name}`: {}", fail::in_full(&error)).into());
                }
            }
            listed.insert(path);
        }
        Ok(findings)
    }
}

/// Whether a file of that name is looked into.
fn is_database(path: &str) -> bool {
    path.ends_with(".kdb") || DatabaseName::of(Path::new(path)).is_some()
}

/// Writes a file of a package where SQLite can open it, unless it has more
/// than `most` bytes. What can't be read is the package's damage, which its
/// reader tells.
fn unpack(bytes: &mut dyn Read, copy: &Path, most: u64) -> Result<bool, fail::Outcome> {
    let made = std::fs::File::create(copy);
    let copied = made.and_then(|mut file| std::io::copy(&mut bytes.take(most), &mut file));
    let more = copied.and_then(|copied| Ok(copied == most && bytes.read(&mut [0])? > 0));
    more.map(|more| !more).map_err(fail::scratch(copy))
}

/// Where the signature of a file lies that has no place for one.
fn signature_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".asc");
    name.into()
}

/// What is wrong with that signature.
fn detached(keyring: &Keyring, path: &Path) -> anyhow::Result<Option<Finding>> {
    match repository::read(&signature_of(path)) {
        Ok(signature) => {
            let refused = keyring.refuses(&signature, path)?;
            Ok(refused.map(|why| why.of("its signature")))
        }
        Err(_) => Ok(Some(Finding::unsigned("it is not signed"))),
    }
}

/// What is wrong with a performance or find database.
fn tuning(path: &Path) -> Result<Vec<String>, gfxpack_tuning::ReadError> {
    let mut findings = Vec::new();
    let linted = gfxpack_tuning::lint(path, None, |finding| {
        if finding.severity == Severity::Error && findings.len() < TUNING_FINDINGS {
            let line = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            findings.push(format!("{line}{}", finding.message));
        }
    })?;
    let more = linted.errors - findings.len() as u64;
    if more > 0 {
        findings.push(format!("{more} more findings"));
    }
    Ok(findings)
}

/// What is wrong with a kdb, and how many kernels it has.
fn kdb(path: &Path, max_object: MaxObject) -> anyhow::Result<(Vec<String>, u64)> {
    let target = packages::target_of(path)?;
    let report = gfxpack_kdb::verify(path, Some(&target), &verify_options(max_object))?;
    let mut findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let more = report.total_findings() - findings.len() as u64;
    if more > 0 {
        findings.push(format!("{more} more findings"));
    }
    Ok((findings, report.rows))
}
