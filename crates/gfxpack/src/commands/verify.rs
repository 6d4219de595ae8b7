//! `verify`: packages, repositories and directories of packages, down to
//! every kernel.

use std::path::{Path, PathBuf};

use gfxpack_kdb::VerifyOptions;
use gfxpack_package::read::{self, Kind};
use gfxpack_package::sums;
use gfxpack_tuning::{DatabaseName, Severity};
use serde_json::json;

use crate::args::Verify;
use crate::fail::{self, Outcome};
use crate::output::{Output, shown};
use crate::signing::Keyring;
use crate::{packages, repository};

/// Findings of a tuning database that are told one by one.
const TUNING_FINDINGS: usize = 20;

/// Checks each path, and tells all findings before it fails.
pub(crate) fn run(args: &Verify, output: &Output) -> anyhow::Result<()> {
    let keyring = args.keyring.as_deref().map(Keyring::open).transpose()?;
    let mut checker = Checker { keyring, output, unsound: Vec::new() };
    for path in &args.paths {
        let metadata = std::fs::metadata(path).map_err(fail::io("find", path))?;
        if metadata.is_dir() {
            checker.directory(path)?;
        } else {
            checker.package(path, false)?;
        }
    }
    match checker.unsound.as_slice() {
        [] => Ok(()),
        unsound => Err(Outcome::Unsound(unsound.join(", ")).into()),
    }
}

struct Checker<'a> {
    keyring: Option<Keyring>,
    output: &'a Output,
    /// What has findings, for the last line.
    unsound: Vec<String>,
}

impl Checker<'_> {
    /// Tells what is wrong with one file; nothing where it is sound.
    fn tell(&mut self, path: &Path, findings: &[String], sound: &str) {
        for finding in findings {
            self.output.message("finding", &json!({ "file": shown(path), "detail": finding }));
            if !self.output.json {
                self.output.data(&format!("{}: {finding}", path.display()));
            }
        }
        if !findings.is_empty() {
            self.unsound.push(format!("`{}`", path.display()));
        } else if !self.output.json {
            self.output.data(&format!("{}: {sound}", path.display()));
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
                 verified by `gfxpack kdb verify`",
            )
        })?;
        let scratch = fail::temporary_dir()?;
        let mut in_kdbs = Vec::new();
        let mut kernels = 0;
        let mut report = read::check(path, kind, &mut |inside, bytes| {
            if inside.ends_with(".kdb") {
                let name = inside.rsplit('/').next().unwrap_or_default();
                let copy = scratch.path().join(name);
                let mut file = std::fs::File::create(&copy)?;
                std::io::copy(bytes, &mut file)?;
                match kdb(&copy) {
                    Ok((found, rows)) => {
                        kernels += rows;
                        in_kdbs.extend(found.into_iter().map(|f| format!("`{inside}`: {f}")));
                    }
                    Err(error) => in_kdbs.push(format!("`{inside}`: {error:#}")),
                }
                std::fs::remove_file(&copy)?;
            } else if DatabaseName::of(Path::new(inside)).is_some() {
                let copy = scratch.path().join(inside.rsplit('/').next().unwrap_or_default());
                std::io::copy(bytes, &mut std::fs::File::create(&copy)?)?;
                in_kdbs.extend(tuning(&copy)?.into_iter().map(|f| format!("`{inside}`: {f}")));
                std::fs::remove_file(&copy)?;
            }
            Ok(())
        })?;
        report.findings.append(&mut in_kdbs);
        if let Some(keyring) = &self.keyring {
            match &report.signed {
                Some(signed) if signed.signatures.is_empty() => {
                    report.findings.push("it is not signed".to_owned());
                }
                Some(signed) => {
                    for signature in &signed.signatures {
                        let refused = keyring.refuses_bytes(signature, &signed.header)?;
                        report.findings.extend(refused.map(|why| format!("its signature: {why}")));
                    }
                }
                // A .deb without a signature may be in a signed index.
                None if kind == Kind::Deb && listed && !signature_of(path).exists() => {}
                None => report.findings.extend(detached(keyring, path)?),
            }
        }
        let sound = format!("sound, {} files, {kernels} kernels", report.files);
        self.tell(path, &report.findings, &sound);
        Ok(())
    }

    fn directory(&mut self, dir: &Path) -> anyhow::Result<()> {
        let packages = packages_in(dir)?;
        let sums = dir.join(sums::FILE_NAME);
        let mut listed = false;
        if sums.is_file() {
            listed = true;
            let findings = self.sums(dir, &sums)?;
            self.tell(&sums, &findings, "sound, all files are what it says");
        }
        for (index, findings) in repository::check(dir, self.keyring.as_ref())? {
            listed = true;
            self.tell(&index, &findings, "sound, and so is every package it lists");
        }
        if !listed && packages.is_empty() {
            return Err(fail::usage(
                format!("failed to find a package below `{}`", dir.display()),
                "give a repository, or a directory that `gfxpack dist` wrote packages into",
            ));
        }
        packages.iter().try_for_each(|package| self.package(package, listed))
    }

    fn sums(&self, dir: &Path, path: &Path) -> anyhow::Result<Vec<String>> {
        let text = std::fs::read_to_string(path).map_err(fail::io("read", path))?;
        let mut findings = Vec::new();
        if let Some(keyring) = &self.keyring {
            findings.extend(detached(keyring, path)?);
        }
        for line in text.lines() {
            let Some((sum, name)) = line.split_once("  ") else {
                findings.push(format!("`{line}` is no line of checksums"));
                continue;
            };
            match sums::digest_file(&dir.join(name)) {
                Ok(file) if file.sha256 == sum => {}
                Ok(_) => findings.push(format!("`{name}` is not what it says")),
                Err(error) => findings.push(format!("`{name}`: {}", fail::in_full(&error))),
            }
        }
        Ok(findings)
    }
}

/// Where the signature of a file lies that has no place for one.
fn signature_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".asc");
    name.into()
}

/// What is wrong with that signature.
fn detached(keyring: &Keyring, path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read(signature_of(path)) {
        Ok(signature) => {
            let refused = keyring.refuses(&signature, path)?;
            Ok(refused.map(|why| format!("its signature: {why}")))
        }
        Err(_) => Ok(Some("it is not signed".to_owned())),
    }
}

/// All packages of a directory, tarballs among them.
fn packages_in(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut packages = repository::packages(dir)?;
    for entry in std::fs::read_dir(dir).map_err(fail::io("read", dir))? {
        let path = entry.map_err(fail::io("read", dir))?.path();
        if Kind::of(&path) == Some(Kind::Tar) && path.is_file() {
            packages.push(path);
        }
    }
    packages.sort();
    Ok(packages)
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
fn kdb(path: &Path) -> anyhow::Result<(Vec<String>, u64)> {
    let target = packages::target_of(path)?;
    let report = gfxpack_kdb::verify(path, Some(&target), &VerifyOptions::default())?;
    let mut findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let more = report.total_findings() - findings.len() as u64;
    if more > 0 {
        findings.push(format!("{more} more findings"));
    }
    Ok((findings, report.rows))
}
