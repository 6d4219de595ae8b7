//! Tarballs with GNU tar.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gfxpack_package::{Compression, Format};

use super::installed::assert_installed;
use super::support::{NAME, awkward_spec, file_names, plain_spec, run, temp, tool};

/// The archive as a fresh system's tar takes it, which may lack zstd.
fn readable(archive: &Path) -> PathBuf {
    if archive.extension().is_none_or(|extension| extension != "zst") {
        return archive.to_owned();
    }
    let plain = archive.with_extension("");
    let packed = fs::File::open(archive).expect("opens");
    let mut unpacked = fs::File::create(&plain).expect("created");
    zstd::stream::copy_decode(packed, &mut unpacked).expect("zstd takes it");
    plain
}

#[test]
fn tar_unpacks_every_byte() {
    for (compression, name) in [
        (Compression::Gz { level: 6 }, "tar.gz"),
        (Compression::Zst { level: 3 }, "tar.zst"),
        (Compression::Xz { level: 1 }, "tar.xz"),
    ] {
        let dir = temp();
        let spec = awkward_spec(dir.path());
        let format = Format::Tar { compression };
        let written = format.write(&spec, dir.path(), 2, None).expect("written");
        assert_eq!(written.file_name, format!("{NAME}-1.0.0-1.{name}"));
        let root = dir.path().join("root");
        fs::create_dir(&root).expect("created");
        let archive = readable(&written.path);
        run(tool("tar").arg("-C").arg(&root).args(["-p", "-xf"]).arg(&archive));
        assert_installed(&spec, &root);
        assert_eq!(file_names(&root).len(), spec.files.len() + 1, "the files and the copyright");

        let listing = run(tool("tar").args(["--utc", "--full-time", "-tvf"]).arg(&archive));
        for line in listing.lines() {
            assert!(line.contains(" root/root "), "{line}");
            assert!(line.contains(" 2023-11-14 22:13:20 "), "{line}");
            assert!(!line.starts_with('d'), "directories have no entries: {line}");
        }
        let names = run(tool("tar").arg("-tf").arg(&archive));
        let names: Vec<&str> = names.lines().collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(names.iter().all(|name| !name.starts_with(['/', '.'])), "{names:?}");
        // Owners are numbers for whoever asks.
        let numeric = run(tool("tar").args(["--numeric-owner", "-tvf"]).arg(&archive));
        assert!(numeric.lines().all(|line| line.contains(" 0/0 ")), "{numeric}");
    }
}

#[test]
fn unpacking_follows_a_link_to_the_rocm_directory() {
    let dir = temp();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("opt/rocm-6.3.4")).expect("created");
    symlink("rocm-6.3.4", root.join("opt/rocm")).expect("linked");
    let mut spec = plain_spec(vec![7; 100]);
    spec.files[0].path = "/opt/rocm/share/miopen/db/gfx1030.kdb".to_owned();
    let written = Format::TAR.write(&spec, dir.path(), 1, None).expect("written");
    run(tool("tar").arg("-C").arg(&root).arg("-xf").arg(&written.path));
    let unpacked = root.join("opt/rocm-6.3.4/share/miopen/db/gfx1030.kdb");
    assert_eq!(fs::read(unpacked).expect("the link was kept"), [7; 100]);
    assert!(root.join("opt/rocm").is_symlink());
}
