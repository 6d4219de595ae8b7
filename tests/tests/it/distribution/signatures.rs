//! Signatures: `gfxpack verify` accepts what apt accepts and no more, and packages are signed with
//! one key that others will accept.

use std::fs;

use crate::support::project::{Run, command, words};

use super::lab::{KEY, Lab, files, ok, other, run_to_end};

/// A repository of one package, signed by the key.
fn signed(lab: &Lab, dir: &str, key: &str) {
    lab.stand_in(dir, &other("theirs", "1.0", "/opt/theirs", "theirs"));
    lab.run(&["repo", dir, "--sign-key", key]).expect_code(0);
}

fn verify(lab: &Lab, dir: &str, keyring: &str) -> Run {
    lab.run(&["verify", dir, "--keyring", keyring])
}

/// Makes a key, and gives its fingerprint.
fn key(lab: &Lab, name: &str, algorithm: &str) -> String {
    let past = "20200101T000000!";
    let args = ["--batch", "--passphrase", "", "--faked-system-time", past, "--quick-gen-key"];
    ok(lab.gpg().args(args).args([name, algorithm, "sign", "never"]));
    let listed = ok(lab.gpg().args(["--with-colons", "--list-keys", "--", name]));
    let last = listed.lines().rfind(|line| line.starts_with("fpr:"));
    last.and_then(|line| line.split(':').nth(9)).expect("a fingerprint").to_owned()
}

fn export(lab: &Lab, keys: &[&str], to: &str) -> String {
    let to = lab.path(to);
    ok(lab.gpg().args(["--batch", "--yes", "--output"]).arg(&to).arg("--export").args(keys));
    to.display().to_string()
}

#[test]
fn signatures_of_expired_and_revoked_keys_do_not_count() {
    let lab = Lab::new();
    let key = key(&lab, "Past <past@example.org>", "rsa2048");
    let args = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out", "o"];
    let more = ["--format", "deb,rpm", "--sign-key", &key];
    lab.run(&[&args[..], &more].concat()).expect_code(0);
    lab.run(&["repo", "o", "--sign-key", &key]).expect_code(0);
    let valid = export(&lab, &[&key], "valid.gpg");
    verify(&lab, "o", &valid).expect_code(0);

    let expires = |day: &str, when: &str| {
        let args = ["--batch", "--faked-system-time", day, "--quick-set-expire", &key, when];
        ok(lab.gpg().args(args));
    };
    expires("20200201T000000!", "2020-06-01");
    let expired = export(&lab, &[&key], "expired.gpg");
    let refused = lab.run(&["repo", "o", "--sign-key", &key]).expect_code(2);
    assert!(refused.stderr.contains("it has expired"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--quick-set-expire"), "{}", refused.stderr);

    // A key that is both counts as expired.
    expires("20200301T000000!", "never");
    // The certificate that gpg made with the key, and made harmless.
    let certificate = lab.home().join(format!("openpgp-revocs.d/{key}.rev"));
    let text = fs::read_to_string(&certificate).expect("read").replace(":-----", "-----");
    fs::write(&certificate, text).expect("written");
    ok(lab.gpg().args(["--batch", "--import"]).arg(&certificate));
    let revoked = export(&lab, &[&key], "revoked.gpg");
    let refused = lab.run(&["repo", "o", "--sign-key", &key]).expect_code(2);
    assert!(refused.stderr.contains("it is revoked"), "{}", refused.stderr);

    for (keyring, why) in [(&expired, "has expired"), (&revoked, "is revoked")] {
        let stdout = verify(&lab, "o", keyring).expect_code(101).stdout;
        for name in ["o/SHA256SUMS", "o/dists/stable/Release", "o/repodata/repomd.xml", ".rpm"] {
            let line = stdout.lines().find(|line| line.contains(&format!("{name}: ")));
            assert!(line.is_some_and(|line| line.contains(why)), "{name}: {stdout}");
        }
        let inline = stdout.lines().find(|line| line.contains("the signature of `InRelease`"));
        assert!(inline.is_some_and(|line| line.contains(why)), "{stdout}");
        let deb = files(&lab.path("o"), ".deb")[0].clone();
        let alone = verify(&lab, deb.to_str().expect("UTF-8"), keyring).expect_code(101);
        assert!(alone.stdout.contains(why), "{}", alone.stdout);
    }
}

#[test]
fn one_good_signature_of_several_is_enough() {
    let lab = Lab::new();
    signed(&lab, "r", KEY);
    let second = key(&lab, "Second <second@example.org>", "ed25519");
    let both = ["--batch", "--yes", "--armor", "--local-user", &second, "--local-user", KEY];
    for (how, name, signature) in [
        ("--detach-sign", "dists/stable/Release", "dists/stable/Release.gpg"),
        ("--clearsign", "dists/stable/Release", "dists/stable/InRelease"),
        ("--detach-sign", "repodata/repomd.xml", "repodata/repomd.xml.asc"),
    ] {
        let dir = lab.path("r");
        let output = dir.join(signature);
        ok(lab.gpg().args(both).arg("--output").arg(output).arg(how).arg(dir.join(name)));
    }
    let first = lab.key_file().display().to_string();
    verify(&lab, "r", &first).expect_code(0);
    let neither = key(&lab, "Third <third@example.org>", "ed25519");
    let neither = export(&lab, &[&neither], "third.gpg");
    let run = verify(&lab, "r", &neither).expect_code(101);
    assert!(run.stdout.contains("No public key"), "{}", run.stdout);
}

#[test]
fn everything_that_apt_reads_must_be_signed() {
    let lab = Lab::new();
    signed(&lab, "r", KEY);
    let keyring = lab.key_file().display().to_string();
    let suite = lab.path("r/dists/stable");
    let (release, inline) = (suite.join("Release"), suite.join("InRelease"));
    let whole = fs::read_to_string(&inline).expect("read");
    let text = fs::read(&release).expect("read");
    let refused = |why: &str, with_key_only: bool| {
        let run = verify(&lab, "r", &keyring).expect_code(101);
        assert!(run.stdout.contains(why), "{why}: {}", run.stdout);
        lab.run(&["verify", "r"]).expect_code(if with_key_only { 0 } else { 101 });
    };
    // The text in OpenPGP's clothes: stored, compressed, signed with itself.
    for how in [&["--store"][..], &["--sign"], &["--armor", "--sign"], &["--armor", "--store"]] {
        let args = ["--batch", "--yes", "--local-user", KEY, "--output"];
        ok(lab.gpg().args(args).arg(&inline).args(how).arg(&release));
        refused("no signed text", false);
    }
    let more = whole.replace("Origin: gfxpack", "Origin: gfxpock");
    for (made, why) in [
        (format!("Origin: gfxpock\n{whole}"), "more in it"),
        (format!("{whole}\nOrigin: gfxpock\n"), "more in it"),
        (more, "is bad"),
    ] {
        fs::write(&inline, made).expect("written");
        refused(why, false);
    }
    fs::write(&inline, &whole).expect("written");
    verify(&lab, "r", &keyring).expect_code(0);

    // InRelease alone is what apt reads first.
    fs::remove_file(&release).expect("removed");
    verify(&lab, "r", &keyring).expect_code(0);
    let packages = suite.join("main/binary-amd64/Packages");
    let index = fs::read_to_string(&packages).expect("read");
    fs::write(&packages, index.replace("Package: theirs", "Package: thairs")).expect("written");
    refused("`main/binary-amd64/Packages` is not what it says", false);
    fs::write(&inline, "garbage\n").expect("written");
    refused("no signed text", false);
    fs::remove_file(&inline).expect("removed");
    refused("neither `Release` nor `InRelease`", false);
    fs::write(&inline, &whole).expect("written");
    fs::write(&release, &text).expect("written");
    fs::write(&packages, index).expect("written");
    verify(&lab, "r", &keyring).expect_code(0);

    // What apt fetches is named by its digest.
    let by_hash = suite.join("main/binary-amd64/by-hash/SHA256");
    for path in files(&by_hash, "") {
        let whole = fs::read(&path).expect("read");
        fs::write(&path, &whole[1..]).expect("written");
        refused("by-hash/SHA256/", false);
        fs::write(&path, whole).expect("written");
    }
    let index = lab.path("r/repodata/repomd.xml");
    let away = lab.path("r/repodata/away");
    fs::rename(&index, &away).expect("renamed");
    refused("repomd.xml: it is missing", false);
    fs::rename(&away, &index).expect("renamed");
    // Where both are there, both must be good.
    let detached = suite.join("Release.gpg");
    let whole = fs::read(&detached).expect("read");
    fs::write(&detached, "garbage\n").expect("written");
    refused("Release: its signature: ", true);
    fs::remove_file(&detached).expect("removed");
    verify(&lab, "r", &keyring).expect_code(0);
    fs::write(&detached, whole).expect("written");
    fs::remove_file(&inline).expect("removed");
    verify(&lab, "r", &keyring).expect_code(0);
    fs::remove_file(&detached).expect("removed");
    refused("there is neither `InRelease` nor `Release.gpg`", true);
}

#[test]
fn unusable_keys_are_reported_on_one_line() {
    let lab = Lab::new();
    lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
    ok(command("mkfifo").arg(lab.path("fifo")));
    for (keyring, why) in [
        ("kernels.toml", "`: it holds no OpenPGP keys"),
        ("fifo", "`: it is no file"),
        ("/dev/zero", "`: it is no file"),
        ("r", "`: it is no file"),
    ] {
        let run = verify(&lab, "r", keyring).expect_code(2);
        assert!(run.stderr.contains(why), "{keyring}: {}", run.stderr);
        assert!(run.stderr.contains("gpg --armor --export"), "{keyring}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 2, "{keyring}: {}", run.stderr);
    }
    let run = lab.run(&["repo", "r", "--sign-key", "nobody@example.org"]).expect_code(2);
    assert!(run.stderr.contains("`: error reading key: No secret key"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
}

#[test]
fn a_missing_passphrase_is_reported() {
    let lab = Lab::new();
    lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
    let args = ["--batch", "--pinentry-mode", "loopback", "--passphrase", "secret"];
    let key = ["--quick-gen-key", "locked@example.org", "ed25519", "sign", "never"];
    ok(lab.gpg().args(args).args(key));
    // The agent knows it still.
    ok(command("gpgconf").args(["--kill", "all"]).env("GNUPGHOME", lab.home()));
    for args in [
        &["repo", "r"][..],
        &words("dist --manifest kernels.toml --target gfx906_60 --format rpm --out o"),
    ] {
        let args = [args, &["--sign-key", "locked@example.org"]].concat();
        let run = lab.run(&args).expect_code(2);
        assert!(run.stderr.contains("failed to ask for the passphrase"), "{}", run.stderr);
        assert!(
            run.stderr.contains("hint: on a terminal, `export GPG_TTY=$(tty)`"),
            "{}",
            run.stderr
        );
    }
    assert!(!lab.path("o").exists(), "nothing is compiled for packages that can't be signed");
}

#[test]
fn only_the_signing_key_is_published() {
    let lab = Lab::new();
    // Somebody's public key, by chance or not of the same address.
    let stranger = Lab::new();
    ok(lab.gpg().args(["--batch", "--import"]).arg(stranger.key_file()));
    signed(&lab, "r", KEY);
    for name in ["archive-key.asc", "repodata/repomd.xml.key"] {
        let shown =
            ok(lab.gpg().args(["--with-colons", "--show-keys"]).arg(lab.path("r").join(name)));
        assert_eq!(shown.matches("pub:").count(), 1, "{name}: {shown}");
    }
    let own = lab.key_file().display().to_string();
    verify(&lab, "r", &own).expect_code(0);
    let archive_key = lab.path("r/archive-key.asc").display().to_string();
    verify(&lab, "r", &archive_key).expect_code(0);

    // A second secret key: which is meant?
    let second = key(&lab, &format!("Packagers of old <{KEY}>"), "nistp256");
    let run = lab.run(&["repo", "r", "--sign-key", KEY]).expect_code(2);
    assert!(run.stderr.contains("2 secret keys match"), "{}", run.stderr);
    assert!(run.stderr.contains(&second), "{}", run.stderr);
    lab.run(&["repo", "r", "--sign-key", &second]).expect_code(0);
    let second_key = export(&lab, &[&second], "second.gpg");
    let stdout = verify(&lab, "r", &second_key).expect_code(101).stdout;
    assert!(stdout.contains("Release: sound") && stdout.contains("repomd.xml: sound"), "{stdout}");

    // rpm knows no such key, and says so of it: dpkg does not ask.
    let args = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--sign-key"];
    let args = [&args[..], &[&second, "--out", "o", "--format"]].concat();
    let run = lab.run(&[&args[..], &["deb,rpm"]].concat()).expect_code(0);
    assert!(run.stderr.contains("the key is an ECDSA key"), "{}", run.stderr);
    let run = lab.run(&[&args[..], &["deb"]].concat()).expect_code(0);
    assert!(!run.stderr.contains("ECDSA"), "{}", run.stderr);
}

/// sqv is what apt 3 asks. gpg makes such keys and their signatures without a word.
#[test]
fn keys_that_newer_systems_refuse_are_reported() {
    let lab = Lab::new();
    lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
    let make = |name: &str, algorithm: &str, options: &[&str]| {
        let args = ["--batch", "--passphrase", "", "--quick-gen-key", name, algorithm, "sign"];
        ok(lab.gpg().args(options).args(args).arg("never"));
    };
    make("rsa@example.org", "rsa1024", &[]);
    make("dsa@example.org", "dsa1024", &[]);
    make("sha@example.org", "rsa2048", &["--cert-digest-algo", "SHA1"]);
    make("subkey@example.org", "ed25519", &[]);
    let listed = ok(lab.gpg().args(["--with-colons", "--list-keys", "subkey@example.org"]));
    let fingerprint = listed.lines().find_map(|line| line.strip_prefix("fpr:")?.split(':').nth(8));
    let args = ["--batch", "--passphrase", "", "--allow-weak-key-signatures", "--cert-digest-algo"];
    let args = [&args[..], &["SHA1", "--quick-add-key", fingerprint.expect("one")]].concat();
    ok(lab.gpg().args(args).args(["rsa2048", "sign", "never"]));
    make("good@example.org", "ed25519", &[]);
    for (key, flaw) in [
        ("rsa@example.org", "is an RSA key of 1024 bits"),
        ("dsa@example.org", "is a DSA key"),
        ("sha@example.org", "is bound to its name with SHA-1"),
        ("subkey@example.org", "is bound to its key with SHA-1"),
        ("good@example.org", ""),
    ] {
        let is_weak = !flaw.is_empty();
        let run = lab.run(&["repo", "r", "--sign-key", key]).expect_code(0);
        assert_eq!(run.stderr.contains("apt 3 and RHEL 9 refuse"), is_weak, "{}", run.stderr);
        assert!(run.stderr.contains(flaw), "{key}: {}", run.stderr);
        let keyring = export(&lab, &[key], "keyring.gpg");
        let suite = lab.path("r/dists/stable");
        let mut sqv = command("sqv");
        sqv.arg("--keyring").arg(&keyring).args([suite.join("Release.gpg"), suite.join("Release")]);
        let judged = run_to_end(&mut sqv);
        assert_eq!(judged.code != Some(0), is_weak, "{key}: {}", judged.stderr);
        // The package in it is signed by another.
        let run = verify(&lab, "r", &keyring).expect_code(101);
        for index in ["r/dists/stable/Release: ", "r/repodata/repomd.xml: "] {
            let line = run.stdout.lines().find(|line| line.contains(index)).expect("the index");
            assert!(line.contains(if is_weak { flaw } else { ": sound" }), "{key}: {line}");
        }
    }
    // An .rpm has its signature inside.
    let args = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--format", "rpm"];
    let signed = |more: &[&str]| lab.run(&[&args[..], more].concat()).expect_code(0).stderr;
    let weak = signed(&["--out", "weak", "--sign-key", "sha@example.org"]);
    assert!(weak.contains("is bound to its name with SHA-1"), "{weak}");
    let run = verify(&lab, "weak", &export(&lab, &["sha@example.org"], "sha.gpg"));
    let run = run.expect_code(101);
    assert!(run.stdout.contains(".rpm: its signature: the key "), "{}", run.stdout);
    let unsigned = signed(&["--out", "unsigned"]);
    assert_eq!(unsigned.matches("Fedora 45 refuses").count(), 1, "{unsigned}");
}
