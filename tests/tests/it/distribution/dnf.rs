//! dnf in a root of its own, from repositories whose signatures it checks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::fat::bundle;
use crate::support::project::{as_root, binary};

use super::choice::{MI50, sysfs};
use super::lab::{Lab, files, ok, other, run_to_end};

struct Root {
    dir: PathBuf,
    settings: PathBuf,
    cache: PathBuf,
}

impl Root {
    fn new(lab: &Lab, repository: &str) -> Self {
        let root = Self {
            dir: lab.path("root"),
            settings: lab.path("repos.d"),
            cache: lab.path("dnf-cache"),
        };
        for dir in [&root.dir, &root.settings] {
            fs::create_dir_all(dir).expect("made");
        }
        root.sources(lab, repository);
        root
    }

    fn sources(&self, lab: &Lab, repository: &str) {
        let text = format!(
            "[kernels]\nname=kernels\nbaseurl=file://{}\ngpgcheck=1\nrepo_gpgcheck=1\n\
             gpgkey=file://{}\nmetadata_expire=0\n",
            lab.path(repository).display(),
            lab.key_file().display()
        );
        fs::write(self.settings.join("kernels.repo"), text).expect("written");
    }

    /// What dnf knows of the repository is forgotten, so that it either reads
    /// the index as it is now or says why it can't.
    fn command(&self, args: &[&str]) -> Command {
        fs::remove_dir_all(&self.cache).ok();
        let mut dnf = as_root("dnf");
        dnf.args(self.options()).args(args);
        dnf
    }

    fn options(&self) -> Vec<String> {
        vec![
            format!("--installroot={}", self.dir.display()),
            format!("--setopt=reposdir={}", self.settings.display()),
            format!("--setopt=cachedir={}", self.cache.display()),
            "--setopt=plugins=0".to_owned(),
            "--releasever=9".to_owned(),
            "--assumeyes".to_owned(),
        ]
    }

    #[track_caller]
    fn dnf(&self, args: &[&str]) -> String {
        ok(&mut self.command(args))
    }

    fn rpm(&self, args: &[&str]) -> String {
        let mut rpm = as_root("rpm");
        ok(rpm.arg("--root").arg(&self.dir).args(args))
    }

    fn installed(&self) -> Vec<String> {
        let listed = self.rpm(&["-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\n"]);
        let mut listed: Vec<String> = listed
            .lines()
            .filter(|line| !line.starts_with("gpg-pubkey"))
            .map(str::to_owned)
            .collect();
        listed.sort();
        listed
    }

    fn file(&self, path: &str) -> Vec<u8> {
        fs::read(self.dir.join(path)).unwrap_or_default()
    }
}

const KDB: &str = "opt/rocm/share/miopen/db/gfx906_60.kdb";

#[test]
fn upgrades_from_and_to_amds_names() {
    let lab = Lab::new();
    let theirs =
        |version: &str| other("miopenkernels-gfx906-60kdb", version, &format!("/{KDB}"), "AMD's");
    lab.stand_in("old", &theirs("0.9"));
    lab.repo("old");
    let root = Root::new(&lab, "old");
    root.dnf(&["install", "miopenkernels-gfx906-60kdb"]);
    assert_eq!(root.file(KDB), b"AMD's");

    lab.dist("new", &["--target", "gfx906_60"]);
    lab.repo("new");
    root.sources(&lab, "new");
    root.dnf(&["upgrade"]);
    assert_eq!(root.installed(), ["miopen-hip-gfx906-60kdb 1.2.3-1"], "ours succeeds theirs");
    let ours = fs::read(lab.path("new/kdb/gfx906_60.kdb")).expect("built");
    assert!(root.file(KDB) == ours, "the kdb is ours");
    assert_eq!(root.rpm(&["-V", "miopen-hip-gfx906-60kdb"]), "");

    lab.stand_in("new", &theirs("9.0"));
    lab.repo("new");
    root.dnf(&["install", "--allowerasing", "miopenkernels-gfx906-60kdb"]);
    assert_eq!(root.installed(), ["miopenkernels-gfx906-60kdb 9.0-1"]);
    assert_eq!(root.file(KDB), b"AMD's");
    root.dnf(&["swap", "miopenkernels-gfx906-60kdb", "miopen-hip-gfx906-60kdb"]);
    assert_eq!(root.installed(), ["miopen-hip-gfx906-60kdb 1.2.3-1"]);
}

#[test]
fn versions_of_rocm_stand_side_by_side_and_go_without_a_trace() {
    let lab = Lab::new();
    for version in ["6.3.4", "6.4.1"] {
        let out = format!("repository/{version}");
        lab.dist(&out, &["--target", "gfx906", "--layout", &format!("rocm-{version}")]);
    }
    lab.repo("repository");
    let root = Root::new(&lab, "repository");
    // The one file that the repository offers for dnf.
    fs::remove_file(root.settings.join("kernels.repo")).expect("removed");
    let own = root.settings.join("gfxpack.repo");
    fs::copy(lab.path("repository/gfxpack.repo"), own).expect("copied");
    root.dnf(&["install", "miopen-hip-gfx906kdb6.3.4", "miopen-hip-gfx906kdb"]);
    assert_eq!(
        root.installed(),
        [
            "miopen-hip-gfx906kdb 6.4.1+1.2.3-1",
            "miopen-hip-gfx906kdb6.3.4 1.2.3-1",
            "miopen-hip-gfx906kdb6.4.1 1.2.3-1"
        ]
    );
    root.dnf(&["remove", "miopen-hip-gfx906kdb6.3.4"]);
    assert_eq!(root.file("opt/rocm-6.3.4/share/miopen/db/gfx906.kdb"), b"");
    let built = fs::read(lab.path("repository/6.4.1/kdb/gfx906.kdb")).expect("built");
    assert!(root.file("opt/rocm-6.4.1/share/miopen/db/gfx906.kdb") == built);
    root.dnf(&["remove", "miopen-hip-gfx906kdb"]);
    assert_eq!(root.installed(), Vec::<String>::new(), "what it brought goes with it");
    assert!(!root.dir.join("opt/rocm-6.4.1/share/miopen").exists());
}

#[test]
fn packages_and_indexes_without_a_good_signature_are_refused() {
    let lab = Lab::new();
    lab.dist("repository", &["--target", "gfx906"]);
    lab.repo("repository");
    let root = Root::new(&lab, "repository");
    // What this machine would need if it had an MI50; arguments after -- are dnf's.
    let sysfs = sysfs(&lab, MI50);
    let mut install = as_root(binary().to_str().expect("UTF-8"));
    install.args(["install", "--no-hip", "--sysfs", &sysfs, "--with", "dnf", "--"]);
    ok(install.args(root.options()));
    assert_eq!(root.installed(), ["miopen-hip-gfx906kdb 1.2.3-1"]);
    root.dnf(&["remove", "miopen-hip-gfx906kdb"]);
    // A package that somebody signed with no key of ours: with none.
    for rpm in files(&lab.path("repository"), ".rpm") {
        fs::remove_file(rpm).expect("removed");
    }
    let args = ["package", "repository/kdb/gfx906.kdb", "--out", "repository", "--format", "rpm"];
    lab.run(&[&args[..], &["--license", "MIT"]].concat()).expect_code(0);
    lab.repo("repository");
    let refused = run_to_end(&mut root.command(&["install", "miopen-hip-gfx906kdb"]));
    let text = format!("{}{}", refused.stdout, refused.stderr);
    assert!(refused.code != Some(0) && text.contains("not signed"), "{text}");

    let index = lab.path("repository/repodata/repomd.xml");
    let text = fs::read_to_string(&index).expect("read");
    fs::write(&index, text.replace("</repomd>", "\n</repomd>")).expect("written");
    fs::remove_dir_all(&root.cache).expect("removed");
    let refused = run_to_end(&mut root.command(&["install", "miopen-hip-gfx906kdb"]));
    let text = format!("{}{}", refused.stdout, refused.stderr);
    assert!(refused.code != Some(0) && text.contains("Bad GPG signature"), "{text}");
}

/// What rpmbuild packs, with much that stays as it is.
const SPEC: &str = "\
Name: libx
Epoch: 2
Version: 1.0
Release: 1
Summary: x
License: MIT
Provides: libx-abi = 2:%{version}-%{release}
%global debug_package %{nil}
%description
x
%package devel
Summary: x
Requires: libx%{?_isa} = 2:%{version}-%{release}
Requires: libx-abi = 2:%{version}-%{release}
%description devel
x
%install
mkdir -p %{buildroot}/etc %{buildroot}/usr/lib/x %{buildroot}/usr/include
cp %{_topdir}/code.hsaco %{buildroot}/usr/lib/x
cp %{_topdir}/code.hsaco %{buildroot}/usr/lib/x/linked.hsaco
ln %{buildroot}/usr/lib/x/linked.hsaco %{buildroot}/usr/lib/x/same.hsaco
echo gfx90a > %{buildroot}/usr/lib/x/a_gfx90a.co
ln -s a_gfx90a.co %{buildroot}/usr/lib/x/b.co
echo gfx1030 > %{buildroot}/usr/lib/x/a_gfx1030.co
echo setting > %{buildroot}/etc/x.conf
ln %{buildroot}/etc/x.conf %{buildroot}/etc/y.conf
echo > %{buildroot}/usr/include/x.h
%post -p <lua>
print(1)
%files
%config(noreplace) /etc/*.conf
%attr(0640,root,root) /usr/lib/x/code.hsaco
/usr/lib/x
%files devel
/usr/include/x.h
%changelog
* Mon Jun 01 2026 A <a@example.org> - 1.0-1
- First.
";

#[test]
fn slim_packages_take_the_originals_place_and_go_back() {
    let lab = Lab::new();
    let top = lab.path("top");
    fs::create_dir(&top).expect("made");
    fs::write(top.join("code.hsaco"), bundle(&["gfx90a", "gfx1030"])).expect("written");
    fs::write(top.join("x.spec"), SPEC).expect("written");
    let define = format!("_topdir {}", top.display());
    let build = ["-bb", "--quiet", "--define", "_rpmdir %{_topdir}/RPMS", "--define", &define];
    ok(as_root("rpmbuild").args(build).arg(top.join("x.spec")));
    let built = files(&top.join("RPMS/x86_64"), ".rpm");
    let [library, devel] = [0, 1].map(|index| built[index].to_str().expect("UTF-8"));
    let slim = |rpms: &[&str], out: &str| {
        let more = ["--target", "gfx1030", "--out", out, "--no-hip"];
        lab.run(&[&["slim"], rpms, &more].concat())
    };
    let alone = slim(&[devel], "alone").expect_code(2).stderr;
    assert!(alone.contains("it needs exactly 2:1.0-1 of `libx`"), "{alone}");
    for out in ["slim", "again"] {
        slim(&[devel, library], out).expect_code(0);
    }
    for name in ["libx-devel", "libx"] {
        let file = |dir: &str| lab.path(&format!("{dir}/{name}-1.0-1+gfx1030.x86_64.rpm"));
        assert_eq!(fs::read(file("slim")).expect("made"), fs::read(file("again")).expect("made"));
    }
    let made = lab.path("slim/libx-1.0-1+gfx1030.x86_64.rpm");
    ok(as_root("rpm").args(["-K", "--nosignature"]).arg(&made));
    // All that rpm says of it but files, sizes and the release is as before.
    let asked = |package: &str| {
        let format = "[%{FILENAMES} %{FILEMODES:perms} %{FILEFLAGS:fflags} %{FILEUSERNAME} \
                      %{FILEMTIMES} %{FILEVERIFYFLAGS}\n]%{BUILDTIME} %{LICENSE} %{ARCH} %{OS}\n";
        let all = ["--requires", "--provides", "--scripts", "--changelog", "--qf", format];
        ok(as_root("rpm").args(["-qp", "--nosignature"]).args(all).arg(package))
    };
    let expected = asked(library).replace("2:1.0-1\n", "2:1.0-1+gfx1030\n");
    let expected = expected.replace("libx-abi = 2:1.0-1+gfx1030", "libx-abi = 2:1.0-1");
    let gone = |line: &&str| !line.contains("a_gfx90a.co") && !line.contains("b.co");
    let expected: Vec<&str> = expected.lines().filter(gone).collect();
    assert_eq!(asked(made.to_str().expect("UTF-8")).lines().collect::<Vec<_>>(), expected);

    fs::create_dir(lab.path("whole")).expect("made");
    for path in &built {
        fs::copy(path, lab.path("whole").join(path.file_name().expect("a name"))).expect("copied");
    }
    lab.repo("whole");
    lab.repo("slim");
    let root = Root::new(&lab, "whole");
    root.dnf(&["--nogpgcheck", "install", "libx-devel"]);
    let original = ["libx 1.0-1", "libx-devel 1.0-1"];
    assert_eq!(root.installed(), original);
    root.sources(&lab, "slim");
    root.dnf(&["--nogpgcheck", "upgrade"]);
    assert_eq!(root.installed(), original.map(|it| format!("{it}+gfx1030")));
    assert_eq!(root.rpm(&["-V", "libx", "libx-devel"]), "");
    for name in ["code", "linked", "same"] {
        assert!(root.file(&format!("usr/lib/x/{name}.hsaco")) == bundle(&["gfx1030"]), "{name}");
    }
    assert!(!root.dir.join("usr/lib/x/a_gfx90a.co").exists());
    root.sources(&lab, "whole");
    root.dnf(&["--nogpgcheck", "downgrade", "libx", "libx-devel"]);
    assert_eq!(root.installed(), original);
    assert_eq!(root.file("usr/lib/x/b.co"), b"gfx90a\n");

    // The distribution has a next version. As the page says, `priority=1` stays with ours.
    fs::write(top.join("x.spec"), SPEC.replace("Release: 1", "Release: 2")).expect("written");
    ok(as_root("rpmbuild").args(build).arg(top.join("x.spec")));
    for path in files(&top.join("RPMS/x86_64"), ".rpm") {
        fs::copy(&path, lab.path("whole").join(path.file_name().expect("a name"))).expect("copied");
    }
    lab.repo("whole");
    let ours = fs::read_to_string(lab.path("slim/gfxpack.repo")).expect("made");
    let settings = root.settings.join("gfxpack.repo");
    fs::write(&settings, ours + "priority=1\n").expect("written");
    root.dnf(&["--nogpgcheck", "upgrade"]);
    assert_eq!(root.installed(), original.map(|it| format!("{it}+gfx1030")));
    fs::remove_file(settings).expect("removed");
    root.dnf(&["--nogpgcheck", "upgrade"]);
    assert_eq!(root.installed(), original.map(|it| it.replace("-1", "-2")));
}
