//! Shared code: built kernels, a key, repositories, stand-ins for other packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::project::{Project, Run, command, finish};
use gfxpack_model::package::{ChangelogEntry, Content, PackageFile, PackageSpec};
use gfxpack_package::{Format, Sign};

/// The name of the only key.
pub(crate) const KEY: &str = "packagers@example.org";

/// A small library of kernels and a key to sign with.
pub(crate) struct Lab {
    pub(crate) project: Project,
}

impl Lab {
    /// # Panics
    /// Where gpg can't make a key.
    pub(crate) fn new() -> Self {
        let lab = Self { project: Project::small() };
        let home = lab.home();
        fs::create_dir(&home).expect("made");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&home, private).expect("changed");
        let name = format!("Packagers <{KEY}>");
        let args = ["--batch", "--passphrase", "", "--quick-gen-key", &name];
        ok(lab.gpg().args(args).args(["rsa2048", "sign", "never"]));
        let key = lab.gpg().args(["--armor", "--export", KEY]).output().expect("gpg starts");
        fs::write(lab.key_file(), key.stdout).expect("written");
        lab
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.project.path().join("gnupg")
    }

    /// The public key.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.project.path().join("key.asc")
    }

    /// gpg with the keys at hand.
    pub(crate) fn gpg(&self) -> Command {
        let mut gpg = command("gpg");
        gpg.env("GNUPGHOME", self.home());
        gpg
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project.path().join(name)
    }

    /// gfxpack with the key at hand.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let mut command = self.project.command(arguments);
        // Objects are the same for all of these tests, and for their next run.
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/distribution-cache");
        command.env("GNUPGHOME", self.home()).env("GFXPACK_CACHE_DIR", cache);
        // Nobody is asked for anything.
        command.env_remove("GPG_TTY").env_remove("DISPLAY");
        finish(command)
    }

    /// Signed .deb and .rpm packages of the small library in `out`.
    pub(crate) fn dist(&self, out: &str, more: &[&str]) {
        let args = ["dist", "--manifest", "kernels.toml", "--format", "deb,rpm", "--out", out];
        let args = [&args[..], &["--sign-key", KEY], more].concat();
        self.run(&args).expect_code(0);
    }

    /// Makes `dir` a signed repository.
    pub(crate) fn repo(&self, dir: &str) {
        self.run(&["repo", dir, "--sign-key", KEY]).expect_code(0);
    }

    /// A package of somebody else's in `dir`, as .deb and signed .rpm.
    pub(crate) fn stand_in(&self, dir: &str, spec: &PackageSpec) {
        let dir = self.path(dir);
        fs::create_dir_all(&dir).expect("made");
        Format::DEB.write(spec, &dir, 1, None).expect("written");
        Format::RPM.write(spec, &dir, 1, Some(self)).expect("written");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for args in [&["--kill", "all"][..], &["--remove-socketdir"]] {
            command("gpgconf").args(args).env("GNUPGHOME", self.home()).output().ok();
        }
    }
}

impl Sign for Lab {
    fn detached(&self, bytes: &[u8]) -> gfxpack_model::Result<Vec<u8>> {
        let input = self.path("to-sign");
        fs::write(&input, bytes).expect("written");
        let args = ["--batch", "--local-user", KEY, "--output", "-", "--detach-sign"];
        Ok(self.gpg().args(args).arg(input).output().expect("gpg starts").stdout)
    }
}

/// The spec of a package of that name with one file.
pub(crate) fn other(name: &str, version: &str, path: &str, text: &str) -> PackageSpec {
    PackageSpec {
        name: name.to_owned(),
        version: version.to_owned(),
        revision: "1".to_owned(),
        summary: "stands in for somebody else's package".to_owned(),
        description: "It has one file.".to_owned(),
        license: "MIT".to_owned(),
        homepage: String::new(),
        maintainer: "Somebody Else <else@example.org>".to_owned(),
        section: "libs".to_owned(),
        relations: Vec::new(),
        deb_fields: Vec::new(),
        files: vec![PackageFile::readable(path, Content::Bytes(text.into()))],
        copyright: "Nobody's.\n".to_owned(),
        changelog: vec![ChangelogEntry {
            version: format!("{version}-1"),
            date: 0,
            changes: vec!["First.".to_owned()],
        }],
        source_date_epoch: 0,
    }
}

/// Runs a program that must end well, and gives all it printed.
#[track_caller]
pub(crate) fn ok(command: &mut Command) -> String {
    let run = run_to_end(command);
    assert_eq!(run.code, Some(0), "{command:?}\n{}\n{}", run.stdout, run.stderr);
    format!("{}{}", run.stdout, run.stderr)
}

/// Runs a program, however it ends.
#[track_caller]
pub(crate) fn run_to_end(command: &mut Command) -> Run {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?} does not start ({error}): `cargo xtask test --setup` installs it")
    });
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Files of that ending in a directory, sorted.
pub(crate) fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the directory lists");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the entry reads").path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        .collect();
    found.sort();
    found
}
