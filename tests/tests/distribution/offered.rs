//! `gfxpack verify`: keys that a repository offers, and packages of kernels without any.

use std::fs;

use crate::lab::{Lab, other};

#[test]
fn a_repository_offers_the_key_that_signed_it() {
    let lab = Lab::new();
    lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
    lab.repo("r");
    lab.run(&["verify", "r"]).expect_code(0);
    let stranger = Lab::new();
    for name in ["archive-key.asc", "repodata/repomd.xml.key"] {
        let key = lab.path("r").join(name);
        let own = fs::read(&key).expect("read");
        fs::copy(stranger.key_file(), &key).expect("copied");
        let run = lab.run(&["verify", "r"]).expect_code(101);
        let expected = format!("r/{name}: it did not make the signature `");
        assert!(run.stdout.contains(&expected), "{}", run.stdout);
        assert!(run.stderr.contains("hint: sign with --sign-key"), "{}", run.stderr);
        fs::write(&key, "no key\n").expect("written");
        let run = lab.run(&["verify", "r"]).expect_code(101);
        assert!(
            run.stdout.contains(&format!("r/{name}: it holds no public key")),
            "{}",
            run.stdout
        );
        fs::write(&key, own).expect("written");
    }
    lab.run(&["verify", "r"]).expect_code(0);
    // Nothing there is signed, by whatever key.
    lab.run(&["repo", "r"]).expect_code(0);
    lab.run(&["verify", "r"]).expect_code(0);
}

#[test]
fn a_package_of_kernels_has_a_kdb() {
    let lab = Lab::new();
    lab.stand_in("o", &other("miopen-hip-gfx906kdb", "1.0", "/opt/none", "no kernels"));
    let run = lab.run(&["verify", "o"]).expect_code(101);
    let expected = "it is a package of kernels and has no file with kernels";
    assert_eq!(run.stdout.matches(expected).count(), 2, "{}", run.stdout);
    lab.dist("m", &["--target", "gfx906,gfx90a@104", "--meta", "gfx9", "--rocm-version", "6.4.1"]);
    let sound = lab.run(&["verify", "m"]).expect_code(0);
    assert!(sound.stdout.contains("gfx9kdb6.4.1"), "{}", sound.stdout);
}
