//! Two builds with nothing in common but the sources, compared by diffoscope.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::project::{Project, binary, command};

use super::lab::{ok, run_to_end};

const WORDS: [&str; 8] = [
    "dist",
    "--manifest",
    "kernels.toml",
    "--target",
    "gfx906_60,gfx90a@104",
    "--format",
    "deb,rpm,tar.gz,tar.xz,tar.zst,wheel,oci,arch",
    "--meta=gfx9",
];

fn build(project: &Project, mut build: Command, date: &str) {
    build.current_dir(project.path()).env("SOURCE_DATE_EPOCH", date);
    build.env("GFXPACK_CACHE_DIR", project.path().join("cache"));
    ok(&mut build);
}

/// What diffoscope finds of the files and not of their owners and dates.
fn differences(one: &Path, other: &Path) -> crate::support::project::Run {
    let mut diffoscope = command("diffoscope");
    diffoscope.args(["--exclude-directory-metadata=recursive", "--no-progress", "--text=-"]);
    run_to_end(diffoscope.arg(one).arg(other))
}

#[test]
fn bytes_do_not_depend_on_day_user_umask_locale_time_zone_and_directory() {
    let here = Project::small();
    let mut plain = here.command(&WORDS);
    plain.args(["--jobs", "2", "--out", "out"]).env("TZ", "UTC").env("LC_ALL", "C");
    build(&here, plain, "1700000000");

    // The same sources deep below another directory, of another time.
    let there = Project::small();
    let deep = "another/place";
    for (name, bytes) in here.tree(".") {
        if name.starts_with("out/") || name.starts_with("cache/") {
            continue;
        }
        let copy = there.write(&format!("{deep}/{name}"), &String::from_utf8_lossy(&bytes));
        let file = fs::File::options().write(true).open(copy).expect("opens");
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).expect("stamped");
    }
    let mut strange = command("faketime");
    strange.args(["-f", "+400d", "unshare", "--user", "--map-user=4711", "--map-group=4712"]);
    strange.args(["sh", "-euc", "umask 077; cd \"$0\"; \"$@\"", deep]).arg(binary()).args(WORDS);
    strange.args(["--jobs", "1", "--out", "../out"]).env("DONT_FAKE_MONOTONIC", "1");
    strange.env("TZ", "Pacific/Kiritimati").env("LC_ALL", "tr_TR.UTF-8").env("LANG", "tr_TR.UTF-8");
    strange.env("HOME", there.path()).env("USER", "somebody").env("HOSTNAME", "elsewhere");
    for name in ["HIPCC", "DEBFULLNAME", "DEBEMAIL", "GFXPACK_LOG", "GFXPACK_CACHE_SIZE"] {
        strange.env_remove(name);
    }
    build(&there, strange, "1700000000");

    let (one, other) = (here.path().join("out"), there.path().join("another/out"));
    assert!(fs::read_dir(&one).expect("lists").count() > 12, "all formats and what is beside them");
    let found = differences(&one, &other);
    assert_eq!((found.code, &*found.stdout), (Some(0), ""), "{}", found.stderr);

    // It would have found what lies deep inside: the date of a package's files.
    let mut later = here.command(&WORDS);
    later.args(["--out", "later"]);
    build(&here, later, "1700000001");
    let name = "miopen-hip-gfx906-60kdb_1.2.3-1_all.deb";
    let found = differences(&one.join(name), &here.path().join("later").join(name));
    assert!(found.code == Some(1) && found.stdout.contains("data.tar"), "{}", found.stdout);
}
