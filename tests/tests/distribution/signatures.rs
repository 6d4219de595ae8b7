//! What counts as signed: `gfxpack verify` takes what apt takes and no more,
//! and what signs is one key that others will accept.

use std::fs;

use gfxpack_tests::project::Run;

use crate::lab::{KEY, Lab, files, ok, other};

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
    let words = ["--batch", "--passphrase", "", "--faked-system-time", past, "--quick-gen-key"];
    ok(lab.gpg().args(words).args([name, algorithm, "sign", "never"]));
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
    let words = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out", "o"];
    let more = ["--format", "deb,rpm", "--sign-key", &key];
    lab.run(&[&words[..], &more].concat()).expect_code(0);
    lab.run(&["repo", "o", "--sign-key", &key]).expect_code(0);
    let valid = export(&lab, &[&key], "valid.gpg");
    verify(&lab, "o", &valid).expect_code(0);

    let expires = |day: &str, when: &str| {
        let words = ["--batch", "--faked-system-time", day, "--quick-set-expire", &key, when];
        ok(lab.gpg().args(words));
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
        let told = verify(&lab, "o", keyring).expect_code(101).stdout;
        for name in ["o/SHA256SUMS", "o/dists/stable/Release", "o/repodata/repomd.xml", ".rpm"] {
            let line = told.lines().find(|line| line.contains(&format!("{name}: ")));
            assert!(line.is_some_and(|line| line.contains(why)), "{name}: {told}");
        }
        let inline = told.lines().find(|line| line.contains("the signature of `InRelease`"));
        assert!(inline.is_some_and(|line| line.contains(why)), "{told}");
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
fn one_key_signs_and_only_that_is_published() {
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
    let told = verify(&lab, "r", &second_key).expect_code(101).stdout;
    assert!(told.contains("Release: sound") && told.contains("repomd.xml: sound"), "{told}");

    // rpm knows no such key, and says so of it: dpkg does not ask.
    let words = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--sign-key"];
    let words = [&words[..], &[&second, "--out", "o", "--format"]].concat();
    let run = lab.run(&[&words[..], &["deb,rpm"]].concat()).expect_code(0);
    assert!(run.stderr.contains("the key is an ECDSA key"), "{}", run.stderr);
    let run = lab.run(&[&words[..], &["deb"]].concat()).expect_code(0);
    assert!(!run.stderr.contains("ECDSA"), "{}", run.stderr);
}
