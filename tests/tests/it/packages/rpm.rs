//! .rpm packages with rpm.

use std::fs;
use std::path::Path;
use std::process::Output;

use gfxpack_package::{Compression, Format};

use super::installed::assert_installed;
use super::support::{EPOCH, NAME, awkward_spec, output, plain_spec, run, temp, tool, tree};
use crate::support::project::as_root;

const COMPRESSIONS: [Compression; 3] =
    [Compression::Zst { level: 3 }, Compression::Xz { level: 1 }, Compression::Gz { level: 6 }];

fn rpm_in(root: &Path, arguments: &[&str]) -> Output {
    let mut command = as_root("rpm");
    command.arg("--root").arg(root).args(["--dbpath", "/var/lib/rpm"]);
    output(command.args(arguments))
}

fn rpm_ok(root: &Path, arguments: &[&str]) -> String {
    let output = rpm_in(root, arguments);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "rpm {arguments:?}: {stdout}{stderr}");
    assert!(
        !stderr.contains("error") && !stderr.contains("warning"),
        "rpm {arguments:?}: {stderr}"
    );
    stdout
}

fn query(package: &Path, format: &str) -> String {
    run(tool("rpm").args(["-qp", "--nosignature", "--qf", format]).arg(package))
}

#[test]
fn rpm_installs_verifies_and_removes() {
    for compression in COMPRESSIONS {
        let dir = temp();
        let spec = awkward_spec(dir.path());
        let written =
            Format::Rpm { compression }.write(&spec, dir.path(), 2, None).expect("written");
        let package = written.path.to_str().expect("UTF-8");
        let root = dir.path().join("root");
        fs::create_dir(&root).expect("created");

        rpm_ok(&root, &["--initdb"]);
        rpm_ok(&root, &["-i", "--force-debian", package]);
        assert_installed(&spec, &root);
        assert!(root.join(format!("usr/share/licenses/{NAME}/copyright")).is_file());
        assert_eq!(rpm_ok(&root, &["-V", NAME]), "", "verifies right after installing");

        fs::write(root.join("usr/share/miopen/db/gfx1030_36.kdb"), "damaged").expect("written");
        let verified = rpm_in(&root, &["-V", NAME]);
        let stdout = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert!(!verified.status.success() && stdout.starts_with("S.5"), "{stdout}");
        assert!(stdout.contains("gfx1030_36.kdb") && stdout.lines().count() == 1, "{stdout}");

        rpm_ok(&root, &["-e", NAME]);
        let left = tree(&root.join("usr"));
        let left: Vec<&String> = left.keys().collect();
        assert_eq!(left, ["share", "share/licenses"], "what the package owns is gone");
    }
}

#[test]
fn rpm_checks_the_digests() {
    for compression in COMPRESSIONS {
        let dir = temp();
        let spec = awkward_spec(dir.path());
        let written =
            Format::Rpm { compression }.write(&spec, dir.path(), 2, None).expect("written");
        assert_eq!(written.file_name, format!("{NAME}-1.0.0-1.noarch.rpm"));
        let checked = run(tool("rpm").arg("-Kv").arg(&written.path));
        for digest in ["Header SHA256 digest: OK", "Payload SHA256 digest: OK"] {
            assert!(checked.contains(digest), "{checked}");
        }

        let mut damaged = fs::read(&written.path).expect("read");
        let middle = damaged.len() - 1000;
        damaged[middle] ^= 1;
        let copy = dir.path().join("damaged.rpm");
        fs::write(&copy, damaged).expect("written");
        assert!(!output(tool("rpm").arg("-K").arg(&copy)).status.success());
    }
}

#[test]
fn the_header_has_the_values_of_the_spec() {
    let dir = temp();
    let spec = awkward_spec(dir.path());
    let written = Format::RPM.write(&spec, dir.path(), 1, None).expect("written");
    let query = |format| query(&written.path, format);
    let nvra = query("%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{OS} %{LICENSE}");
    assert_eq!(nvra, format!("{NAME} 1.0.0 1 noarch linux MIT"));
    assert_eq!(query("%{BUILDTIME} %{BUILDHOST}"), format!("{EPOCH} localhost"));
    assert_eq!(query("%{PAYLOADCOMPRESSOR} %{PAYLOADFLAGS}"), "zstd 3");
    assert_eq!(query("%{URL} %{PACKAGER}"), format!("{} {}", spec.homepage, spec.maintainer));
    // As rpm's packagers write it, whatever Debian's do.
    let (first, rest) = spec.summary.split_at(1);
    assert_eq!(query("%{SUMMARY}"), format!("{}{rest}", first.to_uppercase()));
    let description = query("%{DESCRIPTION}");
    assert!(description.lines().all(|line| line.chars().count() <= 79), "{description}");
    assert!(description.contains("\n\nThe kernels were compiled from source."));
    assert_eq!(query("[%{ENHANCES} ]"), "miopen-hip ");
    assert_eq!(query("[%{SUGGESTNEVRS} ]"), "miopen-hip >= 3.2.0 ");
    assert_eq!(query("[%{OBSOLETENEVRS} ]"), "miopenkernels-gfx1030-36kdb < 2 ");
    assert_eq!(query("[%{SUPPLEMENTS} ]"), "modalias(miopen-hip:pci:v00001002d000073A0sv*) ");
    assert_eq!(query("[%{CONFLICTNEVRS} ]"), "miopenkernels-gfx1030-36kdb < 2 ");
    let provides = query("[%{PROVIDENEVRS},]");
    assert_eq!(provides, format!("{NAME} = 1.0.0-1,miopen-kdb-gfx1030 = 1.0.0,"));
    let requires = query("[%{REQUIRES} ]");
    assert!(requires.contains("rpmlib(PayloadIsZstd)"), "{requires}");
    assert!(requires.split_whitespace().all(|r| r.starts_with("rpmlib(")), "{requires}");
    for line in query("[%{FILEUSERNAME}:%{FILEGROUPNAME}:%{FILEMTIMES}\n]").lines() {
        assert_eq!(line, format!("root:root:{EPOCH}"));
    }
    let changelog = run(tool("rpm").args(["-qp", "--changelog"]).arg(&written.path));
    assert!(
        changelog.starts_with(
            "* Tue Nov 14 2023 Kernel Packagers <kernels@example.org> - 1.0.0-1\n- First release"
        ),
        "{changelog}"
    );
    let licenses = run(tool("rpm").args(["-qp", "--licensefiles"]).arg(&written.path));
    assert_eq!(licenses, format!("/usr/share/licenses/{NAME}/copyright\n"));
}

#[test]
fn only_directories_of_its_own_belong_to_the_package() {
    let owned = |path: &str| {
        let dir = temp();
        let mut spec = plain_spec(vec![1]);
        spec.files[0].path = path.to_owned();
        let written = Format::RPM.write(&spec, dir.path(), 1, None).expect("written");
        let listed = query(&written.path, "[%{FILEMODES:perms} %{FILENAMES}\n]");
        let directories = listed.lines().filter_map(|line| line.strip_prefix("drwxr-xr-x "));
        let licenses = format!("/usr/share/licenses/{NAME}");
        directories.filter(|path| *path != licenses).map(str::to_owned).collect::<Vec<_>>()
    };
    let check = |path, expected: &[&str]| assert_eq!(owned(path), expected, "{path}");
    check("/usr/share/miopen/db/x.kdb", &["/usr/share/miopen", "/usr/share/miopen/db"]);
    check(
        "/opt/rocm-6.3.4/share/miopen/db/x.kdb",
        &["/opt/rocm-6.3.4/share/miopen", "/opt/rocm-6.3.4/share/miopen/db"],
    );
    check("/usr/share/x.kdb", &[]);
    check("/x.kdb", &[]);
    check("/srv/x.kdb", &[]);
    check("/srv/kernels/x.kdb", &["/srv/kernels"]);
}
