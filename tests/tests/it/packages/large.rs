//! Packages of hundreds of megabytes and of more than four gibibytes.

use std::fs;
use std::os::unix::fs::FileExt;

use gfxpack_package::read::{self, PackageKind};

use super::child::{Job, command, printed_value};
use super::support::{noise, run, temp, tool};

/// What a writer may take, in KiB.
const PEAK: u64 = 140 << 10;

fn peak(kind: &str, inputs: &std::path::Path) -> u64 {
    let out = temp();
    let stdout = run(&mut command("", Job::OneFile, kind, inputs, out.path()));
    assert!(printed_value(&stdout, "wrote").is_some(), "{kind}: {stdout}");
    printed_value(&stdout, "peak-kib").expect("the child says").parse().expect("a number")
}

#[test]
fn memory_does_not_grow_with_the_payload() {
    let dir = temp();
    fs::write(dir.path().join("input"), noise(1, 150 << 20)).expect("written");
    for kind in ["deb-zst", "rpm-zst", "tar.zst"] {
        let peak = peak(kind, dir.path());
        assert!(peak < PEAK, "{kind} took {peak} KiB for 150 MiB");
    }
    fs::write(dir.path().join("input"), noise(2, 24 << 20)).expect("written");
    let peak = peak("deb-xz", dir.path());
    assert!(peak < PEAK, "xz took {peak} KiB");
    // Noise takes zip longer, and no more memory.
    let empty = fs::File::create(dir.path().join("input")).expect("created");
    empty.set_len(150 << 20).expect("sparse files work");
    let peak = self::peak("wheel", dir.path());
    assert!(peak < PEAK, "zip took {peak} KiB for 150 MiB");
}

/// Just past what 32 bits count. Nothing here digests the file that need not.
#[test]
fn more_than_four_gibibytes_are_read_back_without_more_memory() {
    let dir = temp();
    let path = dir.path().join("input");
    let size: u64 = (4 << 30) + 12_288;
    let input = fs::File::create(&path).expect("created");
    input.set_len(size).expect("sparse files work");
    // Something that is lost if an offset is cut to 32 bits.
    for (seed, offset) in [0, 4 << 30, size - 4096].into_iter().enumerate() {
        input.write_all_at(&noise(seed as u64, 4096), offset).expect("written");
    }
    // .deb counts in decimal digits; .rpm has other fields for that.
    let out = temp();
    let stdout = run(&mut command("", Job::OneFile, "rpm-zst", dir.path(), out.path()));
    let peak: u64 = printed_value(&stdout, "peak-kib").expect("said").parse().expect("a number");
    assert!(peak < PEAK, "it took {peak} KiB");
    let package = fs::read_dir(out.path()).expect("lists").next().expect("written");
    let package = package.expect("reads").path();
    let unpack = "rpm2archive --nocompression - < \"$0\" | \
                  tar --extract --to-stdout --wildcards '*.kdb' | cmp - \"$1\"";
    run(tool("bash").args(["-o", "pipefail", "-ec", unpack]).arg(&package).arg(&path));
    run(tool("rpm").arg("-K").arg(&package));
    let format = "[%{LONGFILESIZES} %{FILENAMES}\n][%{REQUIRES} ]";
    let listed = run(tool("rpm").args(["-qp", "--qf", format]).arg(&package));
    assert!(listed.contains(&format!("{size} /opt/")), "{listed}");
    assert!(listed.contains("rpmlib(LargeFiles)"), "{listed}");
    let format = PackageKind::from_name(&package).expect("a package's name");
    let report = read::check(&package, format, &mut |_, _| Ok(())).expect("reads");
    assert_eq!(report.findings, Vec::<String>::new());
}
