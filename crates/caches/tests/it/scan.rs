//! The entries that are found, with their size and age.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::time::Duration;

use gfxpack_caches::now;

use crate::support::User;

#[test]
fn databases_are_measured_with_their_companions() {
    let user = User::new();
    let dir = "home/.cache/pytools";
    let name = "pdict-v5-loopy-3.11.7.final.0.sqlite";
    user.write(&format!("{dir}/{name}"), "1234");
    user.write(&format!("{dir}/{name}-wal"), "123");
    user.write(&format!("{dir}/{name}-shm"), "12");
    user.write(&format!("{dir}/mine.sqlite"), "not of the cache");
    let [(directory, entry)] = &user.entries("pytools")[..] else { panic!("one database") };
    assert_eq!((entry.files, entry.bytes), (3, 9));
    assert_eq!(entry.companions.len(), 2);
    assert_eq!(directory.scan().expect("readable").others, 1);
}

#[test]
fn directories_are_measured_whole_and_without_following_links() {
    let user = User::new();
    user.write(
        "home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/program.bc",
        "12345",
    );
    user.write("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/f/f.so", "123");
    user.write("home/elsewhere", "a long text that is not counted");
    symlink(
        user.at("home/elsewhere"),
        user.at("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA/link"),
    )
    .expect("made");
    let old = now() - Duration::from_secs(1000);
    for path in ["program.bc", "f/f.so"] {
        let file = File::options().write(true).open(
            user.at("home/.cache/pocl/kcache/PP/DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA").join(path),
        );
        file.and_then(|file| file.set_modified(old)).expect("stamped");
    }
    let [(_, entry)] = &user.entries("pocl")[..] else { panic!("one directory") };
    let link = user.at("home/elsewhere").as_os_str().len() as u64;
    assert_eq!((entry.files, entry.bytes), (3, 8 + link));
    assert!(entry.changed.expect("a time") > old, "the link is new");
}

#[test]
fn each_tools_entries_are_found() {
    let mut user = User::new();
    let hash = "AB2".repeat(20)[..52].to_owned();
    for path in [
        "home/.cache/miopen/3.3.0./gfx906_60.ukdb".to_owned(),
        "home/.config/miopen/gfx906_60.HIP.3_3_0_.udb.txt".to_owned(),
        "tmp/gfx90a68.ukdb".to_owned(),
        "tmp/miopen-lockfiles/0123456789abcdef0123456789abcdef_x.udb.txt.lock".to_owned(),
        "home/.cache/comgr/llvmcache-0F".to_owned(),
        "home/.cache/pyopencl/pyopencl-compiler-cache-v2-py3.11/d/binary".to_owned(),
        "home/.nv/ComputeCache/index".to_owned(),
        format!("home/.triton/cache/{hash}/kernel.hsaco"),
        "tmp/torchinductor_ada/zk/czk.py".to_owned(),
        "home/.cache/mesa_shader_cache_db/part0/mesa_cache.db".to_owned(),
        "home/.cache/pip/x".to_owned(),
    ] {
        user.write(&path, "x");
    }
    let check = |name: &str, expected: &[&str]| assert_eq!(user.paths(name), expected, "{name}");
    check(
        "miopen",
        &[
            "home/.cache/miopen/3.3.0.",
            "tmp/gfx90a68.ukdb",
            "home/.config/miopen/gfx906_60.HIP.3_3_0_.udb.txt",
            "tmp/miopen-lockfiles/0123456789abcdef0123456789abcdef_x.udb.txt.lock",
        ],
    );
    check("comgr", &["home/.cache/comgr/llvmcache-0F"]);
    check("pyopencl", &["home/.cache/pyopencl/pyopencl-compiler-cache-v2-py3.11"]);
    check("cuda", &["home/.nv/ComputeCache/index"]);
    check("triton", &[&format!("home/.triton/cache/{hash}")]);
    check("inductor", &["tmp/torchinductor_ada/zk"]);
    check("mesa", &["home/.cache/mesa_shader_cache_db"]);
    check("rocfft", &[]);
    user.write("home/fft.db", "SQLite format 3\0and so on");
    user.set("ROCFFT_RTC_CACHE_PATH", "home/fft.db");
    assert_eq!(user.paths("rocfft"), ["home/fft.db"]);
    user.write("home/fft.db", "a file of somebody's own");
    assert!(user.paths("rocfft").is_empty(), "not SQLite");
}
