//! The examples of recipes for packages of kernels, built like a maintainer does: by
//! dpkg-buildpackage and rpmbuild, without a network.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::miopen::{SMALL, copy_library, debian_library};
use crate::support::project::{binary, command, tool, workspace};

use super::lab::{files, ok, run_to_end};

/// The example of a Debian source package.
const DEBIAN: &str = "miopen-kernels";
/// The maintainer's machine: an example in `source`, and nothing of gfxpack's but the program.
struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    fn new(example: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let machine = Self { directory };
        fs::create_dir(machine.path("home")).unwrap();
        let examples = workspace().join("packaging/examples").join(example);
        tool("cp", &["-r", examples.to_str().unwrap(), "source"], machine.directory.path());
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program in a name space without a network, with gfxpack on its path.
    fn offline(&self, program: &str) -> Command {
        let gfxpack = binary().parent().unwrap();
        let mut command = command("unshare");
        let with_path = r#"PATH="$0:$PATH" exec "$@""#;
        command.args(["--map-root-user", "--net", "--", "sh", "-c", with_path]);
        command.arg(gfxpack).arg(program).env("HOME", self.path("home"));
        command.env("GFXPACK_CACHE_DIR", self.path("cache"));
        command
    }

    /// gfxpack's own package of a kdb that the recipe built.
    fn own_package(&self, kdb: &Path, args: &[&str]) -> PathBuf {
        let mut package = command(binary());
        package.arg("package").arg(kdb).args(["--license", "MIT"]);
        package.args(args).arg("--out").arg(self.path("own"));
        package.env("GFXPACK_CACHE_DIR", self.path("cache"));
        ok(&mut package);
        let ending = if args.contains(&"deb") { ".deb" } else { ".rpm" };
        files(&self.path("own"), ending).remove(0)
    }
}

fn items(list: &str) -> BTreeSet<String> {
    list.split(", ").map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

#[test]
fn dpkg_buildpackage_makes_a_package_with_the_same_declarations_as_ours() {
    let Some(library) = debian_library() else { return };
    let machine = Machine::new(DEBIAN);
    let source = machine.path("source");
    // In place of the installed libmiopen1, and of all kernels of a network.
    copy_library(&library, &machine.path("rocm/lib"));
    fs::write(source.join("resnet18.txt"), SMALL).unwrap();
    let mut build = machine.offline("dpkg-buildpackage");
    build.env("ROCM_PATH", machine.path("rocm"));
    // gfxpack and libmiopen1 come from no packages here.
    ok(build.args(["--build=binary", "--no-check-builddeps", "--no-sign"]).current_dir(&source));
    let made = files(machine.directory.path(), ".deb");
    assert_eq!(made.len(), 2, "{made:?}");
    let mut lintian = command("lintian");
    lintian.args(["--allow-root", "--no-cfg", "--fail-on", "error,warning"]).args(&made);
    assert_eq!(ok(&mut lintian), "");

    let field = |deb: &Path, name: &str| ok(command("dpkg-deb").arg("--field").arg(deb).arg(name));
    for (name, kdb, fields) in
        [("gfx1030kdb", "gfx1030.kdb", 4), ("gfx90a-104kdb", "gfx90a68.kdb", 3)]
    {
        let built = source.join("build/kdb").join(kdb);
        let theirs = machine.path(&format!("miopen-hip-{name}_3.4.0-1_all.deb"));
        let version = ["--package-version", "3.4.0"];
        let args = [&["--layout", "debian", "--format", "deb"], &version[..]].concat();
        let ours = machine.own_package(&built, &args);
        let mut present = 0;
        for field_name in [
            "Enhances",
            "Provides",
            "Conflicts",
            "Replaces",
            "Modaliases",
            "X-ROCm-GPU-Architecture",
        ] {
            let ours = items(&field(&ours, field_name));
            assert_eq!(items(&field(&theirs, field_name)), ours, "{name}: {field_name}");
            present += usize::from(!ours.is_empty());
        }
        assert_eq!(present, fields, "{name}");
        let tree = machine.path(name);
        ok(command("dpkg-deb").arg("--extract").arg(&theirs).arg(&tree));
        let installed = tree.join("usr/lib/share/miopen/db").join(kdb);
        assert_eq!(fs::read(installed).unwrap(), fs::read(&built).unwrap(), "{name}");
        fs::remove_dir_all(machine.path("own")).unwrap();
    }
}

/// By every kind of dependency; `clashes` with other packages' files are known.
fn assert_same_dependencies(theirs: &Path, ours: &Path, clashes: usize) {
    let query = |package: &Path, kind: &str| -> BTreeSet<String> {
        let mut rpm = command("rpm");
        let listed = ok(rpm.args(["-qp", "--nosignature", kind]).arg(package));
        listed.lines().map(str::to_owned).collect()
    };
    for (kind, least) in [
        ("--provides", 2),
        ("--enhances", 3),
        ("--supplements", 20),
        ("--conflicts", clashes),
        ("--obsoletes", clashes),
    ] {
        let ours = query(ours, kind);
        assert_eq!(query(theirs, kind), ours, "{kind}");
        assert!(ours.len() >= least, "{kind}: {ours:?}");
    }
}

#[test]
fn rpmbuild_makes_a_package_with_the_same_declarations_as_ours() {
    let machine = Machine::new("");
    // rpm's own settings, and gfxpack's as its package installs them.
    let config = machine.path("config");
    fs::create_dir(&config).unwrap();
    let link = |from: &Path, to: &Path| {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            symlink(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    link(Path::new("/usr/lib/rpm"), &config);
    for (dir, file) in [("fileattrs", "gfxpack.attr"), ("macros.d", "macros.gfxpack")] {
        let own = config.join(dir);
        fs::remove_file(&own).unwrap();
        fs::create_dir(&own).unwrap();
        link(&Path::new("/usr/lib/rpm").join(dir), &own);
        fs::copy(workspace().join("packaging/rpm").join(file), own.join(file)).unwrap();
    }
    let sources = machine.path("rpm/SOURCES");
    fs::create_dir_all(&sources).unwrap();
    fs::rename(machine.path("source"), machine.path("example-kernels-1.0")).unwrap();
    let tarball = sources.join("example-kernels-1.0.tar.gz");
    let args = ["-czf", tarball.to_str().unwrap(), "example-kernels-1.0"];
    tool("tar", &args, machine.directory.path());
    let spec = machine.path("example-kernels-1.0/example-kernels.spec");
    let theirs = machine.path("rpm/RPMS/noarch/miopen-hip-gfx1030kdb-1.0-1.noarch.rpm");
    // AMD's own packages install the file in the first directory too.
    for (layout, directory, clashes) in
        [("rocm", "/opt/rocm/share/miopen/db", 1), ("fhs", "/usr/share/miopen/db", 0)]
    {
        let mut build = machine.offline("rpmbuild");
        build.args(["-bb", "--nodeps", "--noclean"]).env("RPM_CONFIGDIR", &config);
        for (name, value) in [
            ("_topdir", machine.path("rpm").to_str().unwrap()),
            ("__gfxpack", binary().to_str().unwrap()),
            ("_miopen_kdbdir", directory),
        ] {
            build.arg("--define").arg(format!("{name} {value}"));
        }
        ok(build.arg(&spec));
        let built = machine.path("rpm/BUILD/example-kernels-1.0/build/kdb/gfx1030.kdb");
        let ours = machine.own_package(
            &built,
            &["--layout", layout, "--format", "rpm", "--package-version", "1.0"],
        );
        assert_same_dependencies(&theirs, &ours, clashes);
        fs::remove_dir_all(machine.path("own")).unwrap();
    }
    let mut rpmlint = command("rpmlint");
    rpmlint.arg("--config").arg(workspace().join("packaging/rpmlint.toml"));
    let judged = run_to_end(rpmlint.arg(&theirs)).stdout;
    // Tags that rpm and distributions have given up.
    let dated = |line: &&str| line.contains("no-packager-tag") || line.contains("no-group-tag");
    let findings = judged.lines().filter(|line| line.contains(": E: ") || line.contains(": W: "));
    let findings: Vec<&str> = findings.filter(|line| !dated(line)).collect();
    assert!(judged.contains("1 packages") && findings.is_empty(), "{judged}");
}

/// In AMD's directory, a package takes the place of AMD's.
#[test]
fn in_amds_directory_packages_conflict_with_amds() {
    let machine = Machine::new(DEBIAN);
    let root = machine.path("root");
    let file = root.join("opt/rocm-6.4.1/share/miopen/db/gfx1030.kdb");
    let dependencies = |kind: &str, file: &Path| {
        fs::write(machine.path("files"), format!("{}\n", file.display())).unwrap();
        let mut recipe = command(binary());
        recipe.args(["recipe", "rpm", kind, "--package", "my-kernels"]);
        recipe.args(["--package-version", "1.0-1", "--root"]).arg(&root);
        recipe.stdin(fs::File::open(machine.path("files")).unwrap());
        run_to_end(&mut recipe)
    };
    let name = "miopenkernels-gfx1030kdb6.4.1";
    let conflicts = dependencies("conflicts", &file).stdout;
    assert!(conflicts.contains(&format!("{name}\n")), "{conflicts}");
    let obsoletes = dependencies("obsoletes", &file).stdout;
    assert!(obsoletes.contains(&format!("{name} < 1.0-1\n")), "{obsoletes}");
    let outside = dependencies("provides", Path::new("/elsewhere/gfx1030.kdb"));
    assert_eq!(outside.code, Some(2), "{}", outside.stderr);

    let tree = machine.path("source/debian/miopen-hip-gfx1030kdb/opt/rocm-6.4.1/share/miopen/db");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("gfx1030.kdb"), "").unwrap();
    let mut recipe = command(binary());
    ok(recipe.args(["recipe", "debhelper"]).current_dir(machine.path("source")));
    let variables = machine.path("source/debian/miopen-hip-gfx1030kdb.substvars");
    let text = fs::read_to_string(variables).unwrap();
    for field in ["Conflicts", "Replaces"] {
        assert!(text.contains(&format!("\ngfxpack:{field}={name}")), "{field}: {text}");
    }
}

/// Called too early, it does not leave packages that say nothing.
#[test]
fn without_kernels_the_recipe_fails_and_names_what_is_missing() {
    let machine = Machine::new(DEBIAN);
    let mut recipe = command(binary());
    recipe.args(["recipe", "debhelper"]).current_dir(machine.path("source"));
    let output = recipe.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("failed to find kernels") && stderr.contains("dh_install"), "{stderr}");

    let tree = machine.path("source/debian/miopen-hip-gfx1030kdb/usr/lib/share/miopen/db");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("gfx1030.kdb"), "").unwrap();
    let variables = machine.path("source/debian/miopen-hip-gfx1030kdb.substvars");
    fs::write(&variables, "misc:Depends=\ngfxpack:Provides=old\n").unwrap();
    for _ in 0..2 {
        let mut recipe = command(binary());
        ok(recipe.args(["recipe", "debhelper"]).current_dir(machine.path("source")));
        let text = fs::read_to_string(&variables).unwrap();
        assert!(text.starts_with("misc:Depends=\n"), "{text}");
        assert!(
            text.contains("\ngfxpack:Provides=miopenkernels-gfx1030kdb (= 3.4.0-1)\n"),
            "{text}"
        );
        assert_eq!(text.matches("gfxpack:Provides").count(), 1, "{text}");
    }
}
