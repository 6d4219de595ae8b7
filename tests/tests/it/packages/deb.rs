//! .deb packages with dpkg and lintian.

use std::fs;
use std::path::Path;

use gfxpack_model::package::ChangelogEntry;
use gfxpack_package::{Compression, Format};

use super::installed::assert_installed;
use super::support::{NAME, awkward_spec, file_names, output, plain_spec, run, temp, tool};
use crate::support::project::as_root;

const COMPRESSIONS: [Compression; 3] =
    [Compression::Xz { level: 1 }, Compression::Gz { level: 6 }, Compression::Zst { level: 3 }];

fn format(compression: Compression) -> Format {
    Format::Deb { compression }
}

/// An empty system for dpkg.
fn make_root(root: &Path) {
    for dir in ["info", "updates", "triggers"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(dir)).expect("created");
    }
    for file in ["status", "available"] {
        fs::write(root.join("var/lib/dpkg").join(file), "").expect("written");
    }
}

fn dpkg(root: &Path, arguments: &[&str]) -> std::process::Output {
    let log = format!("--log={}", root.join("dpkg.log").display());
    let root = format!("--root={}", root.display());
    output(as_root("dpkg").args([&root, &log, "--force-not-root"]).args(arguments))
}

/// Runs dpkg and must succeed without a word of warning.
fn dpkg_ok(root: &Path, arguments: &[&str]) -> String {
    let output = dpkg(root, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !stderr.contains("warning"), "dpkg {arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Files below a root that are not dpkg's own.
fn installed(root: &Path) -> Vec<String> {
    let own = |name: &String| name.starts_with("var/lib/dpkg/") || name == "dpkg.log";
    file_names(root).into_iter().filter(|name| !own(name)).collect()
}

#[test]
fn dpkg_installs_verifies_and_removes() {
    for compression in COMPRESSIONS {
        let dir = temp();
        let spec = awkward_spec(dir.path());
        let written = format(compression).write(&spec, dir.path(), 2, None).expect("written");
        let deb = written.path.to_str().expect("UTF-8");
        let root = dir.path().join("root");
        make_root(&root);

        dpkg_ok(&root, &["-i", deb]);
        assert_installed(&spec, &root);
        assert!(installed(&root).contains(&format!("usr/share/doc/{NAME}/copyright")));
        assert_eq!(dpkg_ok(&root, &["-V", NAME]), "", "verifies right after installing");
        let status = dpkg_ok(&root, &["-s", NAME]);
        assert!(status.contains("Status: install ok installed"), "{status}");

        fs::write(root.join("usr/share/miopen/db/gfx1030_36.kdb"), "damaged").expect("written");
        let verified = dpkg(&root, &["-V", NAME]);
        let stdout = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert!(stdout.contains("gfx1030_36.kdb") && stdout.lines().count() == 1, "{stdout}");

        dpkg_ok(&root, &["-r", NAME]);
        assert_eq!(installed(&root), Vec::<String>::new(), "all files are gone");
        assert!(!root.join("usr").exists(), "and so are their directories");
    }
}

#[test]
fn dpkg_deb_reads_control_data_and_contents() {
    for compression in COMPRESSIONS {
        let dir = temp();
        let spec = awkward_spec(dir.path());
        let written = format(compression).write(&spec, dir.path(), 2, None).expect("written");
        assert_eq!(written.file_name, format!("{NAME}_1.0.0-1_all.deb"));
        assert_eq!(written.size, fs::metadata(&written.path).expect("there").len());

        let field = |name| run(tool("dpkg-deb").arg("-f").arg(&written.path).arg(name));
        assert_eq!(field("Version"), "1.0.0-1\n");
        assert_eq!(field("Architecture"), "all\n");
        assert_eq!(field("Suggests"), "miopen-hip (>= 3.2.0)\n");
        assert_eq!(field("Replaces"), "miopenkernels-gfx1030-36kdb (<< 2)\n");
        assert_eq!(field("X-ROCm-GPU-Architecture"), "gfx1030\n");
        assert!(field("Description").starts_with("precompiled MIOpen kernels for gfx1030 GPUs\n"));

        let listing = run(tool("dpkg-deb").arg("-c").arg(&written.path));
        let line = |end: &str| listing.lines().find(|line| line.ends_with(end)).expect("listed");
        let fields = |end: &str| line(end).split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        assert_eq!(fields(" ./"), "drwxr-xr-x root/root 0");
        assert_eq!(fields(" ./usr/share/miopen/db/"), "drwxr-xr-x root/root 0");
        assert_eq!(fields("/gfx1030.kdb"), "-rw-r--r-- root/root 1234567");
        assert_eq!(fields("/tool with space"), "-rwxr-xr-x root/root 1023");
        assert!(line(" ./").contains(" 2023-11-14 22:13 "), "{}", line(" ./"));

        // The size is the one that Debian's own tool counts.
        let unpacked = dir.path().join("unpacked");
        run(tool("dpkg-deb").arg("-x").arg(&written.path).arg(&unpacked));
        let counted = installed_size(&unpacked);
        assert_eq!(field("Installed-Size"), format!("{counted}\n"));
    }
}

/// What dpkg-gencontrol's scan of a build tree comes to.
fn installed_size(tree: &Path) -> u64 {
    let entries = super::support::tree(tree);
    let sizes = entries.values().map(|entry| match entry {
        Some((bytes, _)) => (bytes.len() as u64).div_ceil(1024),
        None => 1,
    });
    1 + sizes.sum::<u64>()
}

/// MIOpen's directories are judged where whole distributions are made; rocFFT's has another override.
#[test]
fn lintian_takes_the_directory_of_rocfft() {
    let dir = temp();
    let mut spec = plain_spec(b"SQLite format 3\0".repeat(512));
    spec.files[0].path = "/usr/lib/x86_64-linux-gnu/rocfft/gfx1030.kdb".to_owned();
    spec.deb_fields = vec![("Multi-Arch".to_owned(), "foreign".to_owned())];
    spec.revision = "2".to_owned();
    spec.changelog[0].version = "1.0.0-2".to_owned();
    let written = Format::DEB.write(&spec, dir.path(), 2, None).expect("written");
    let mut lintian = tool("lintian");
    lintian.args(["--allow-root", "--no-cfg", "--display-info", "--show-overrides"]);
    // That a tag is overridden is an exit code of its own.
    let tags = output(lintian.arg(&written.path)).stdout;
    let tags = String::from_utf8(tags).expect("UTF-8");
    let tags: Vec<&str> = tags.lines().filter(|line| !line.starts_with("N:")).collect();
    let expected = format!("O: {NAME}: triplet-dir-and-architecture-mismatch");
    assert!(matches!(tags[..], [tag] if tag.starts_with(&expected)), "{tags:#?}");
}

#[test]
fn the_changelog_is_one_for_dpkg() {
    let dir = temp();
    let mut spec = plain_spec(Vec::new());
    spec.changelog.insert(
        0,
        ChangelogEntry {
            version: "1.0.0-2".to_owned(),
            date: 1_709_210_096,
            changes: vec!["word ".repeat(40).trim().to_owned(), "Last change.".to_owned()],
        },
    );
    spec.revision = "2".to_owned();
    let written = Format::DEB.write(&spec, dir.path(), 1, None).expect("written");
    let unpacked = dir.path().join("unpacked");
    run(tool("dpkg-deb").arg("-x").arg(&written.path).arg(&unpacked));
    let packed = unpacked.join(format!("usr/share/doc/{NAME}/changelog.Debian.gz"));
    let changelog = run(tool("gzip").arg("-dc").arg(&packed));
    fs::write(dir.path().join("changelog"), changelog).expect("written");
    let parse = |field: &str| {
        let mut command = tool("dpkg-parsechangelog");
        run(command.arg("-l").arg(dir.path().join("changelog")).args(["-S", field]))
    };
    assert_eq!(parse("Source"), format!("{NAME}\n"));
    assert_eq!(parse("Version"), "1.0.0-2\n");
    assert_eq!(parse("Timestamp"), "1709210096\n");
    assert!(parse("Changes").contains("Last change."));
}
