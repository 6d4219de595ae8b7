//! Packages from an archive like Debian's: verified, unpacked, and stored.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::archive::{self, Faults, Heard, Server};
use gfxpack_debian::{Archive, DebianError, Lock, Options, Pin};

/// A test's archive and cache.
struct Place {
    archive: archive::Archive,
    heard: Heard,
}

impl Place {
    fn new() -> Self {
        Self { archive: archive::Archive::new(), heard: Heard::default() }
    }

    /// With one package, `hello`, in sid.
    fn with_package() -> Self {
        let place = Self::new();
        place.archive.add(
            "hello",
            "1.0-1",
            "libhello1 (>= 1.0) | libhello2, other",
            &[("usr/bin/hello", b"#!/bin/sh\n", 0o4755), ("usr/share/hello", b"world\n", 0o644)],
        );
        place.archive.publish("sid", "");
        place
    }

    fn cache(&self) -> PathBuf {
        self.archive.path("cache")
    }

    fn open(&self, mirror: &str) -> Archive<'_> {
        self.open_with(mirror, &self.archive.key())
    }

    fn open_with(&self, mirror: &str, keys: &[u8]) -> Archive<'_> {
        let options = Options {
            mirror: (!mirror.is_empty()).then(|| mirror.to_owned()),
            apt: self.archive.path("apt"),
            keys: keys.to_vec(),
            architecture: Some("amd64".to_owned()),
        };
        Archive::new(&self.cache(), options, &self.heard)
    }

    fn root(&self) -> String {
        self.archive.root().display().to_string()
    }

    fn warnings(&self) -> Vec<String> {
        self.heard.0.take()
    }
}

fn fetch(archive: &Archive<'_>, name: &str) -> Result<PathBuf, DebianError> {
    let package = archive.suite("sid")?.package(name, None)?;
    archive.unpacked(&package.pin)
}

#[track_caller]
fn expect_hello(dir: &Path) {
    assert_eq!(fs::read(dir.join("usr/share/hello")).unwrap(), b"world\n");
    let mode = fs::metadata(dir.join("usr/bin/hello")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755, "it can be run, with nobody else's rights");
}

#[test]
fn a_package_is_unpacked_and_kept() {
    let place = Place::with_package();
    for mirror in [place.root(), format!("file://{}/", place.root())] {
        expect_hello(&fetch(&place.open(&mirror), "hello").unwrap());
        fs::remove_dir_all(place.cache()).unwrap();
    }
    let server = Server::start(&place.archive.root(), Faults::default());
    let dir = fetch(&place.open(&server.url()), "hello").unwrap();
    expect_hello(&dir);
    assert_eq!(place.warnings(), [""; 0]);
    assert!(fs::read_dir(place.cache().join("debian/partial")).unwrap().next().is_none());

    // Again: only whether the list is still the newest is asked.
    let before = server.requests().len();
    assert_eq!(fetch(&place.open(&server.url()), "hello").unwrap(), dir);
    assert_eq!(server.requests()[before..], ["dists/sid/InRelease"]);

    // Without a network what is there is used, and that is told.
    server.misbehave(Faults { busy: true, ..Faults::default() });
    assert_eq!(fetch(&place.open(&server.url()), "hello").unwrap(), dir);
    let [warning] = &place.warnings()[..] else { panic!("one warning") };
    assert!(warning.contains("taking sid as of Fri, 30 Oct 2026 08:08:01 UTC"), "{warning}");
    let error = fetch(&place.open(&server.url()), "absent").unwrap_err();
    assert_eq!(error.to_string(), "`absent` is not in sid");
}

#[test]
fn pinned_packages_need_no_list() {
    let place = Place::with_package();
    let package = place.open(&place.root()).suite("sid").unwrap().package("hello", None).unwrap();
    let names: Vec<Vec<&str>> = package
        .depends
        .iter()
        .map(|group| group.iter().map(|relation| relation.name.as_str()).collect())
        .collect();
    assert_eq!(names, [vec!["libhello1", "libhello2"], vec!["other"]]);
    let lock = Lock {
        suite: "sid".to_owned(),
        architecture: "amd64".to_owned(),
        packages: vec![package.pin.clone()],
    };
    let file = place.archive.path("test.lock");
    fs::write(&file, lock.text("A comment.").unwrap()).unwrap();
    let lock = Lock::read(&file).unwrap();
    fs::remove_dir_all(place.archive.root().join("dists")).unwrap();
    fs::remove_dir_all(place.cache()).unwrap();
    let archive = place.open(&place.root());
    expect_hello(&archive.unpacked(&lock.packages[0]).unwrap());

    // What is not the file of that digest is not unpacked.
    let changed = Pin { sha256: gfxpack_model::Digest::of(b""), ..package.pin };
    let error = archive.unpacked(&changed).unwrap_err();
    assert!(matches!(error, DebianError::Digest(_)), "{error}");
    let left = fs::read_dir(place.cache().join("debian")).unwrap();
    assert_eq!(left.filter(|e| e.as_ref().unwrap().file_name().len() == 64).count(), 1);
}

#[test]
fn only_keys_of_the_keyring_are_accepted() {
    let place = Place::with_package();
    let (signer, other, past) = ("archive@example.org", "other@example.org", "past@example.org");
    place.archive.make_key(other, "never", None);
    place.archive.make_key(past, "2d", Some("20200101T000000"));
    let keys = |names: &[&str]| place.archive.keys(names);
    let check = |ring: &[u8]| match place.open_with(&place.root(), ring).suite("sid") {
        Ok(_) => String::new(),
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with("failed to verify `"), "{error}");
            error.rsplit("`: ").next().unwrap_or_default().to_owned()
        }
    };
    assert_eq!(check(&keys(&[signer])), "");
    assert_eq!(check(&keys(&[other, signer, past])), "");
    assert_eq!(check(&keys(&[other])), "Can't check signature: No public key");

    // One known key among several is enough.
    place.archive.sign("sid", &["--local-user", other, "--local-user", signer], None);
    assert_eq!(check(&keys(&[signer])), "");
    assert_eq!(check(&keys(&[other])), "");

    // A key that has expired, even if it signed before.
    place.archive.sign("sid", &["--local-user", past], Some("20200101T120000"));
    assert!(check(&keys(&[past])).contains("has expired"));

    // SHA-1 counts for nothing.
    let weak = ["--local-user", signer, "--digest-algo", "SHA1", "--allow-weak-digest-algos"];
    place.archive.sign("sid", &weak, None);
    assert_ne!(check(&keys(&[signer])), "");
}

#[test]
fn a_changed_signed_list_is_refused() {
    let place = Place::with_package();
    let list = place.archive.root().join("dists/sid/InRelease");
    let good = fs::read_to_string(&list).unwrap();
    let refused = |text: String, why: &str| {
        fs::write(&list, text).unwrap();
        let error = place.open(&place.root()).suite("sid").expect_err(why);
        assert!(error.to_string().starts_with("failed to verify `"), "{why}: {error}");
    };
    refused(good.replace("Suite: sid", "Suite: sad"), "another text");
    refused(format!("Origin: Debian\n\n{good}"), "a text before it");
    refused(format!("{good}\nOrigin: Debian\n"), "a text after it");
    refused(
        good.replace(
            "-----BEGIN PGP SIGNATURE-----",
            "Origin: Evil\n-----BEGIN PGP SIGNATURE-----",
        ),
        "one line more",
    );
    refused(good.replace("\nHash: ", "\nCharset: "), "another header");
    refused(good.split("-----BEGIN PGP SIGNATURE").next().unwrap().to_owned(), "no signature");
    refused(fs::read_to_string(list.with_file_name("Release")).unwrap(), "no frame");
    refused(String::new(), "nothing");
    // Line ends and blanks before them are not signed, by the standard.
    fs::write(&list, good.replace('\n', "\r\n")).unwrap();
    assert!(place.open(&place.root()).suite("sid").is_ok());

    // A list of another suite is signed as well as any.
    place.archive.publish("trixie", "");
    fs::copy(place.archive.root().join("dists/trixie/InRelease"), &list).unwrap();
    let error = place.open(&place.root()).suite("sid").unwrap_err();
    assert!(error.to_string().contains("it is not of sid"), "{error}");
}

#[test]
fn packages_that_differ_from_their_list_are_refused() {
    let place = Place::with_package();
    let root = place.archive.root();
    let deb = root.join("pool/sid/hello_1.0-1_amd64.deb");
    let good = fs::read(&deb).unwrap();
    let mut changed = good.clone();
    changed[500] ^= 1;
    fs::write(&deb, &changed).unwrap();
    let error = fetch(&place.open(&place.root()), "hello").unwrap_err();
    assert!(matches!(error, DebianError::Digest(_)), "{error}");
    fs::write(&deb, [&good[..], b"more"].concat()).unwrap();
    let error = fetch(&place.open(&place.root()), "hello").unwrap_err();
    assert!(matches!(error, DebianError::Digest(_)), "{error}");
    fs::write(&deb, &good[..good.len() - 10]).unwrap();
    let error = fetch(&place.open(&place.root()), "hello").unwrap_err();
    assert!(matches!(error, DebianError::Unreachable(_)), "{error}");
    fs::remove_file(&deb).unwrap();
    let error = fetch(&place.open(&place.root()), "hello").unwrap_err();
    assert!(error.is_gone(), "{error}");
    // Once it is whole it is taken, whatever was left of it before.
    fs::write(&deb, &good).unwrap();
    expect_hello(&fetch(&place.open(&place.root()), "hello").unwrap());

    let packages = root.join("dists/sid/main/binary-amd64/Packages.xz");
    fs::remove_dir_all(place.cache()).unwrap();
    fs::write(&packages, b"other").unwrap();
    let error = place.open(&place.root()).suite("sid").unwrap_err();
    assert!(!error.is_gone(), "{error}");
    let error = place.open(&place.root()).suite("trixie").unwrap_err();
    assert!(matches!(error, DebianError::NotFound(_)), "{error}");
    let error = place.open(&place.root()).suite("../sid").unwrap_err();
    assert!(error.to_string().ends_with("it is no name of a suite"), "{error}");
}

#[test]
fn lists_are_fetched_by_digest_if_possible() {
    let place = Place::with_package();
    let dir = place.archive.root().join("dists/sid/main/binary-amd64");
    place.archive.publish("sid", "Acquire-By-Hash: yes\n");
    let server = Server::start(&place.archive.root(), Faults::default());
    // A copy of an archive may lack them.
    assert!(place.open(&server.url()).suite("sid").is_ok());
    fs::remove_dir_all(place.cache()).unwrap();
    let digest = gfxpack_model::Digest::of(&fs::read(dir.join("Packages.xz")).unwrap());
    fs::create_dir_all(dir.join("by-hash/SHA256")).unwrap();
    fs::rename(dir.join("Packages.xz"), dir.join(format!("by-hash/SHA256/{digest}"))).unwrap();
    assert!(place.open(&server.url()).suite("sid").is_ok());
}

#[test]
fn an_expired_list_is_used_with_a_warning() {
    let place = Place::with_package();
    place.archive.publish("sid", "Valid-Until: Fri, 06 Nov 2020 08:08:01 UTC\n");
    expect_hello(&fetch(&place.open(&place.root()), "hello").unwrap());
    let [warning] = &place.warnings()[..] else { panic!("one warning") };
    assert!(warning.contains("is out of date"), "{warning}");
    place.archive.publish("sid", "Valid-Until: Sat, 06 Nov 2100 08:08:01 UTC\n");
    fetch(&place.open(&place.root()), "hello").unwrap();
    assert_eq!(place.warnings(), [""; 0]);
}

#[test]
fn an_older_list_than_before_is_not_taken() {
    let place = Place::with_package();
    let suite = || place.open(&place.root()).suite("sid").unwrap();
    assert_eq!(suite().date, "Fri, 30 Oct 2026 08:08:01 UTC");
    // Signed long ago, and so offered again by somebody who can't sign.
    let release = place.archive.root().join("dists/sid/Release");
    let text = fs::read_to_string(&release).unwrap().replace("30 Oct", "23 Oct");
    fs::write(&release, text).unwrap();
    place.archive.sign("sid", &["--local-user", "archive@example.org"], None);
    assert_eq!(suite().date, "Fri, 30 Oct 2026 08:08:01 UTC");
    let [warning] = &place.warnings()[..] else { panic!("one warning") };
    assert!(warning.contains("23 Oct 2026 08:08:01 UTC, older than"), "{warning}");
    let kept = place.cache().join("debian/lists/sid.InRelease");
    assert!(warning.contains(&format!("remove `{}`", kept.display())), "{warning}");
    fs::remove_file(kept).unwrap();
    assert_eq!(suite().date, "Fri, 23 Oct 2026 08:08:01 UTC");
    assert_eq!(place.warnings(), [""; 0]);
}

#[test]
fn an_interrupted_download_is_resumed() {
    let place = Place::new();
    // Random bytes, or else there would be nothing to break off.
    let mut state = 1_u64;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(300_000)
    .collect();
    let deb = place.archive.add("big", "1", "", &[("usr/share/big", &bytes, 0o644)]);
    let name = deb.file_name().unwrap().to_str().unwrap();
    place.archive.publish("sid", "");
    let server = Server::start(&place.archive.root(), Faults::default());
    let package = place.open(&server.url()).suite("sid").unwrap().package("big", None).unwrap();
    let check = |faults: Faults, expected: Result<&[&str], &str>| {
        let before = server.requests().len();
        server.misbehave(faults);
        let fetched = place.open(&server.url()).unpacked(&package.pin);
        let requests = server.requests()[before..].to_vec();
        match (fetched, expected) {
            (Ok(dir), Ok(ranges)) => {
                assert_eq!(fs::read(dir.join("usr/share/big")).unwrap(), bytes);
                fs::remove_dir_all(dir).unwrap();
                let expected: Vec<String> =
                    ranges.iter().map(|range| format!("pool/sid/{name}{range}")).collect();
                assert_eq!(requests, expected);
            }
            (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{error}"),
            (fetched, expected) => panic!("{fetched:?}, not {expected:?}"),
        }
    };
    check(Faults::default(), Ok(&[""]));
    let cut = |after, times| Faults { cut: Some((after, times)), ..Faults::default() };
    check(cut(100_000, 2), Ok(&["", " 100000-", " 200000-"]));
    // A server that knows no parts sends it all again.
    check(Faults { no_ranges: true, ..cut(100_000, 1) }, Ok(&["", " 100000-", ""]));
    // One that never brings anything is given up, and the next run goes on.
    check(cut(0, 100), Err("failed to fetch"));
    check(Faults { no_ranges: true, ..cut(100_000, 100) }, Err("failed to fetch"));
    // What was there is thrown away by such a server.
    let partial = place.cache().join("debian/partial").join(package.pin.sha256.to_string());
    fs::remove_file(&partial).unwrap();
    check(Faults { busy: true, ..Faults::default() }, Err("failed to fetch"));
    check(cut(200_000, 1), Ok(&["", " 200000-"]));
    // What is left of something else does no harm.
    fs::write(&partial, vec![0; 1000]).unwrap();
    check(Faults::default(), Ok(&[" 1000-", ""]));
    fs::write(&partial, vec![0; bytes.len() * 2]).unwrap();
    check(Faults::default(), Ok(&[""]));
}

#[test]
fn the_default_mirror_is_the_one_of_apt() {
    let place = Place::with_package();
    let error = place.open("").suite("sid").unwrap_err();
    assert_eq!(error.to_string(), "found no mirror of Debian's archive");
    // Neither an archive without the suite nor somebody else's is Debian's.
    let others = archive::Archive::new();
    others.publish("sid", "");
    let empty = place.archive.path("empty");
    fs::create_dir(&empty).unwrap();
    let apt = place.archive.path("apt");
    fs::create_dir(&apt).unwrap();
    let line = |dir: &Path| format!("deb file:{} stable main\n", dir.display());
    let list = [line(&empty), line(&others.root())].concat();
    fs::write(apt.join("sources.list"), &list).unwrap();
    let error = place.open("").suite("sid").unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    let shown = error.to_string();
    assert!(shown.contains("does not exist") && shown.contains("No public key"), "{shown}");
    fs::write(apt.join("sources.list"), list + &line(&place.archive.root())).unwrap();
    expect_hello(&fetch(&place.open(""), "hello").unwrap());
    // A package alone finds it too.
    let pin = place.open("").suite("sid").unwrap().package("hello", None).unwrap().pin;
    fs::remove_dir_all(place.cache()).unwrap();
    expect_hello(&place.open("").unpacked(&pin).unwrap());
}

#[test]
fn the_newest_or_the_given_version_is_used() {
    let place = Place::with_package();
    place.archive.add("hello", "1.10-1", "", &[("usr/share/hello", b"new\n", 0o644)]);
    place.archive.add("hello", "1.9-1", "", &[("usr/share/hello", b"newer\n", 0o644)]);
    place.archive.publish("sid", "");
    let suite = place.open(&place.root()).suite("sid").unwrap();
    assert_eq!(suite.package("hello", None).unwrap().pin.version, "1.10-1");
    assert_eq!(suite.package("hello", Some("1.0-1")).unwrap().pin.version, "1.0-1");
    let error = suite.package("hello", Some("2")).unwrap_err().to_string();
    assert_eq!(error, "`hello 2` is not in sid, which has 1.0-1, 1.10-1, 1.9-1");
}
