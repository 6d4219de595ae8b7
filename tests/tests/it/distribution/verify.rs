//! `gfxpack verify`: complete repositories pass, and any damage is reported.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::project::{binary, command, finish};
use gfxpack_model::package::Content;
use gfxpack_package::{Compression, Format};

use super::lab::{KEY, Lab, files, ok, other};

fn verify(lab: &Lab, path: &str) -> crate::support::project::Run {
    let key = lab.key_file().display().to_string();
    lab.run(&["verify", path, "--keyring", &key])
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("read");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_repository_is_checked_down_to_the_kernels() {
    let lab = Lab::new();
    let args = ["dist", "--manifest", "kernels.toml", "--target", "gfx906_60", "--out", "r"];
    let more = ["--sign-key", KEY, "--format", "deb,rpm,tar.gz,tar.xz,tar.zst"];
    lab.run(&[&args[..], &more].concat()).expect_code(0);
    lab.repo("r");
    let sound = verify(&lab, "r").expect_code(0);
    assert_eq!(sound.stdout.matches(": sound, ").count(), 3 + 5, "{}", sound.stdout);
    assert_eq!(sound.stdout.matches(", 5 kernels").count(), 5, "{}", sound.stdout);

    let key = lab.path("r/dists/stable/Release.gpg");
    let others = [
        (files(&lab.path("r"), ".deb")[0].clone(), "not what the index says"),
        (files(&lab.path("r"), ".rpm")[0].clone(), "not what the index says"),
        (files(&lab.path("r"), ".tar.gz")[0].clone(), "not what it says"),
        (lab.path("r/repodata/repomd.xml"), "its signature: "),
        (lab.path("r/dists/stable/main/binary-all/Packages.xz"), "not what it says"),
        (lab.path("r/SHA256SUMS"), "its signature: "),
        (key, "its signature: "),
        (lab.path("r/miopen-hip-gfx906-60kdb_1.2.3-1_all.deb.asc"), "its signature: "),
    ];
    for (path, expected) in others {
        let whole = fs::read(&path).expect("read");
        flip(&path, whole.len() * 2 / 3);
        let run = verify(&lab, "r").expect_code(101);
        assert!(run.stdout.contains(expected), "{}: {}", path.display(), run.stdout);
        fs::write(&path, whole).expect("written");
    }
    // Alone, a .deb is only as good as the signature beside it.
    let deb = files(&lab.path("r"), ".deb")[0].clone();
    let alone = deb.to_str().expect("UTF-8");
    verify(&lab, alone).expect_code(0);
    let (signature, away) = (format!("{alone}.asc"), format!("{alone}.away"));
    fs::rename(&signature, &away).expect("renamed");
    let unsigned = verify(&lab, alone).expect_code(101);
    assert!(unsigned.stdout.contains("it is not signed"), "{}", unsigned.stdout);
    fs::rename(&away, &signature).expect("renamed");

    // apt needs one of the two.
    fs::remove_file(lab.path("r/dists/stable/InRelease")).expect("removed");
    verify(&lab, "r").expect_code(0);
    fs::remove_file(lab.path("r/dists/stable/Release.gpg")).expect("removed");
    let unsigned = verify(&lab, "r").expect_code(101);
    assert!(
        unsigned.stdout.contains("neither `InRelease` nor `Release.gpg`"),
        "{}",
        unsigned.stdout
    );
    assert!(unsigned.stderr.contains("hint: sign with --sign-key"), "{}", unsigned.stderr);
    assert!(!unsigned.stderr.contains("build the file again"), "{}", unsigned.stderr);
    lab.run(&["verify", "r"]).expect_code(0);
}

#[test]
fn damage_within_a_package_is_reported() {
    let lab = Lab::new();
    lab.dist("o", &["--target", "gfx906_60"]);
    for (ending, at) in [(".deb", 0.9), (".deb", 0.2), (".rpm", 0.9), (".rpm", 0.5)] {
        let package = &files(&lab.path("o"), ending)[0];
        let whole = fs::read(package).expect("read");
        flip(package, (whole.len() as f64 * at) as usize);
        let run = lab.run(&["verify", package.to_str().expect("UTF-8")]).expect_code(101);
        assert!(!run.stdout.is_empty(), "{ending} at {at}: {}", run.stderr);
        fs::write(package, &whole[..whole.len() / 2]).expect("written");
        lab.run(&["verify", package.to_str().expect("UTF-8")]).expect_code(101);
        fs::write(package, whole).expect("written");
    }
    // A kdb that was wrong before it was packaged.
    let kdb = fs::read(lab.path("o/kdb/gfx906_60.kdb")).expect("built");
    let path = "/opt/rocm/share/miopen/db/gfx1030.kdb";
    let mut spec = other("wrong-kernels", "1.0", path, "");
    spec.files[0].content = Content::Bytes(kdb);
    lab.stand_in("wrong", &spec);
    for package in ["wrong/wrong-kernels_1.0-1_all.deb", "wrong/wrong-kernels-1.0-1.noarch.rpm"] {
        let run = verify(&lab, package).expect_code(101);
        assert!(run.stdout.contains(&format!("`{path}`: ")), "{}", run.stdout);
        assert!(run.stdout.contains("gfx906"), "{}", run.stdout);
    }
    fs::write(lab.path("gfx906_60.db.txt"), "").expect("written");
    for other in ["kernels.toml", "gfx906_60.db.txt"] {
        let neither = lab.run(&["verify", other]).expect_code(2);
        assert!(neither.stderr.contains("its name is no package's"), "{}", neither.stderr);
        assert!(neither.stderr.contains("`gfxpack perfdb lint`"), "{}", neither.stderr);
    }
}

#[test]
fn a_package_that_no_list_contains_must_be_signed() {
    let lab = Lab::new();
    lab.dist("s", &["--target", "gfx906_60"]);
    verify(&lab, "s").expect_code(0);
    lab.stand_in("foreign", &other("foreign", "1.0", "/opt/foreign", "theirs"));
    let deb = "foreign_1.0-1_all.deb";
    fs::copy(lab.path("foreign").join(deb), lab.path("s").join(deb)).expect("copied");
    let run = verify(&lab, "s").expect_code(101);
    assert!(run.stdout.contains(&format!("s/{deb}: it is not signed")), "{}", run.stdout);
    assert!(run.stdout.contains(&format!("s/{deb}` is not listed")), "{}", run.stdout);
    let run = lab.run(&["verify", "s"]).expect_code(101);
    assert!(run.stdout.contains(&format!("s/{deb}` is not listed")), "{}", run.stdout);
    assert!(run.stderr.contains("hint: index what was added"), "{}", run.stderr);
    // An index tells of it as well.
    lab.repo("s");
    verify(&lab, "s").expect_code(0);
}

#[test]
fn lists_may_only_name_files_in_their_directory() {
    let lab = Lab::new();
    lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
    lab.run(&["repo", "r"]).expect_code(0);
    lab.run(&["verify", "r"]).expect_code(0);
    let suite = lab.path("r/dists/stable");
    ok(command("mkfifo").arg(suite.join("fifo")).arg(lab.path("x.deb")));
    let release = suite.join("Release");
    let whole = fs::read_to_string(&release).expect("read");
    let sum = "0".repeat(64);
    for (size, name, expected) in [
        (1, "../../../../../../../../../../dev/zero", "leads out of the suite"),
        (1, "/dev/zero", "leads out of the suite"),
        (0, "fifo", "failed to read"),
        (1, "Release", "is not what it says"),
    ] {
        fs::write(&release, format!("{whole} {sum} {size} {name}\n")).expect("written");
        let run = lab.run(&["verify", "r"]).expect_code(101);
        let found = run.stdout.lines().find(|line| line.contains(&format!("`{name}`")));
        assert!(found.is_some_and(|line| line.contains(expected)), "{name}: {}", run.stdout);
    }
    fs::write(&release, whole).expect("written");
    fs::write(lab.path("outside"), "").expect("written");
    let sums = lab.path("r/SHA256SUMS");
    fs::write(&sums, format!("{sum}  ../outside\n")).expect("written");
    let run = lab.run(&["verify", "r"]).expect_code(101);
    assert!(run.stdout.contains("`../outside` leads out of the directory"), "{}", run.stdout);
    let run = lab.run(&["verify", "x.deb"]).expect_code(2);
    assert!(run.stderr.contains("neither file nor directory"), "{}", run.stderr);
}

#[test]
fn targets_of_links_are_checked() {
    let lab = Lab::new();
    lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
    fs::create_dir(lab.path("pool")).expect("made");
    let foreign = other("foreign", "1.0", "/opt/foreign", "theirs");
    Format::RPM.write(&foreign, &lab.path("pool"), 1, None).expect("written");
    // Whoever makes indexes follows both.
    let package = "foreign-1.0-1.noarch.rpm";
    symlink(format!("../pool/{package}"), lab.path("r/linked.rpm")).expect("linked");
    symlink("../pool", lab.path("r/deeper")).expect("linked");
    symlink("nowhere.deb", lab.path("r/dangling.deb")).expect("linked");
    lab.repo("r");
    lab.run(&["verify", "r"]).expect_code(0);
    let run = verify(&lab, "r").expect_code(101);
    for name in ["r/linked.rpm", &format!("r/deeper/{package}")] {
        assert!(
            run.stdout.contains(&format!("{name}: it is not signed")),
            "{name}: {}",
            run.stdout
        );
    }
}

/// Somebody else may have made the directory.
#[test]
fn indexes_are_not_written_through_links() {
    let lab = Lab::new();
    let away = lab.path("away");
    fs::create_dir(&away).expect("made");
    fs::write(away.join("Release"), "theirs\n").expect("written");
    for link in ["dists", "dists/stable", "dists/stable/main", "repodata"] {
        lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
        let path = lab.path("r").join(link);
        fs::create_dir_all(path.parent().expect("below r")).expect("made");
        symlink(&away, &path).expect("linked");
        let run = lab.run(&["repo", "r"]).expect_code(2);
        let expected = format!("failed to write to `{}`: it is a link", path.display());
        assert!(run.stderr.contains(&expected), "{link}: {}", run.stderr);
        fs::remove_dir_all(lab.path("r")).expect("removed");
    }
    lab.stand_in("r", &other("theirs", "1.0", "/opt/theirs", "theirs"));
    for name in ["dists/stable/Release", "gfxpack.sources", "archive-key.asc"] {
        let path = lab.path("r").join(name);
        fs::create_dir_all(path.parent().expect("below r")).expect("made");
        symlink(away.join("Release"), path).expect("linked");
    }
    lab.repo("r");
    verify(&lab, "r").expect_code(0);
    assert_eq!(fs::read_to_string(away.join("Release")).expect("read"), "theirs\n");
    assert_eq!(files(&away, "").len(), 1, "nothing is there that was not before");
}

#[test]
fn lists_in_directories_below_are_checked() {
    let lab = Lab::new();
    lab.dist("all/1.0", &["--target", "gfx906_60"]);
    lab.run(&["verify", "all"]).expect_code(0);
    let list = lab.path("all/1.0/SHA256SUMS");
    let text = fs::read_to_string(&list).expect("read");
    fs::write(&list, text.replacen(['0', '1'], "2", 1)).expect("written");
    let run = lab.run(&["verify", "all"]).expect_code(101);
    assert!(run.stdout.contains("all/1.0/SHA256SUMS: `"), "{}", run.stdout);
}

#[test]
fn all_given_files_and_directories_are_checked() {
    let lab = Lab::new();
    let format = Format::Tar { compression: Compression::Xz { level: 0 } };
    let spec = other("theirs", "1.0", "/opt/theirs", "theirs");
    fs::create_dir_all(lab.path("o/sub")).expect("made");
    let good = format.write(&spec, &lab.path("o"), 1, None).expect("written").path;
    lab.run(&["verify", "o"]).expect_code(0);
    let bad = lab.path("o/sub/bad.tar.xz");
    let whole = fs::read(&good).expect("read");
    fs::write(&bad, &whole[..whole.len() / 2]).expect("written");
    let run = lab.run(&["verify", "o"]).expect_code(101);
    assert!(run.stdout.contains("o/sub/bad.tar.xz: failed to read"), "{}", run.stdout);

    let args = ["verify", "o/sub/bad.tar.xz", "nothere.rpm", good.to_str().expect("UTF-8")];
    let run = lab.run(&args).expect_code(101);
    assert!(run.stdout.contains(&format!("{}: sound", good.display())), "{}", run.stdout);
    assert!(run.stderr.contains("warning: failed to find `nothere.rpm`"), "{}", run.stderr);
    let run = lab.run(&["verify", "nothere.rpm", good.to_str().expect("UTF-8")]).expect_code(2);
    assert!(run.stdout.contains(": sound"), "{}", run.stdout);

    fs::remove_file(&bad).expect("removed");
    ok(command("mkfifo").arg(lab.path("o/SHA256SUMS")));
    let run = lab.run(&["verify", "o"]).expect_code(101);
    assert!(run.stdout.contains("o/SHA256SUMS: it is no file"), "{}", run.stdout);
}

#[test]
fn names_cannot_send_control_sequences_to_the_terminal() {
    let lab = Lab::new();
    let tree = lab.path("tree");
    fs::create_dir(&tree).expect("made");
    fs::write(tree.join("gfx\u{1b}[2J\nx.kdb"), "none").expect("written");
    ok(command("tar").args(["-czf", "o.tar.gz", "-C", "tree", "."]).current_dir(lab.path(".")));
    let run = lab.run(&["verify", "o.tar.gz"]).expect_code(101);
    // The name in the package, and not that of a copy.
    let expected = "o.tar.gz: `/gfx\\u{1b}[2J\\nx.kdb`: failed to tell the target of \
                `/gfx\\u{1b}[2J\\nx.kdb` by its name";
    assert_eq!(run.stdout.lines().next(), Some(expected), "{}", run.stdout);
    let run = lab.run(&["verify", "\u{1b}[2J.deb"]).expect_code(2);
    assert!(run.stderr.contains("failed to find `\\u{1b}[2J.deb`"), "{}", run.stderr);
}

#[test]
fn files_too_large_to_unpack_are_reported() {
    let lab = Lab::new();
    lab.dist("o", &["--target", "gfx906_60"]);
    let deb = files(&lab.path("o"), ".deb")[0].clone();
    let mut limited = command("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" verify \"$1\""]);
    limited.arg(binary()).arg(&deb).current_dir(lab.path("."));
    let run = finish(limited).expect_code(1);
    assert!(run.stderr.contains("gfx906_60.kdb`"), "{}", run.stderr);
    assert!(run.stderr.contains("set TMPDIR"), "{}", run.stderr);

    // Nothing but zeros.
    let zeros = lab.path("zeros");
    fs::File::create(&zeros).expect("created").set_len(80 << 20).expect("sparse files work");
    let mut spec = other("bomb", "1.0", "/opt/gfx906.kdb", "");
    spec.files[0].content = Content::File(zeros);
    let format = Format::Tar { compression: Compression::Zst { level: 3 } };
    let bomb = format.write(&spec, &lab.path("."), 1, None).expect("written").path;
    let run = lab.run(&["verify", bomb.to_str().expect("UTF-8")]).expect_code(101);
    assert!(run.stdout.contains("has more than 67108864 bytes"), "{}", run.stdout);
}

#[test]
fn a_package_of_kernels_has_a_kdb() {
    let lab = Lab::new();
    lab.stand_in("o", &other("miopen-hip-gfx906kdb", "1.0", "/opt/none", "no kernels"));
    let run = lab.run(&["verify", "o"]).expect_code(101);
    let expected = "it is a package of kernels and has no file with kernels";
    assert_eq!(run.stdout.matches(expected).count(), 2, "{}", run.stdout);
    lab.dist("m", &["--target", "gfx906,gfx90a@104", "--meta", "gfx9", "--layout", "rocm-6.4.1"]);
    let sound = lab.run(&["verify", "m"]).expect_code(0);
    assert!(sound.stdout.contains("gfx9kdb6.4.1"), "{}", sound.stdout);
}
