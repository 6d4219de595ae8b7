//! Finding a libMIOpen, the files around it, and the sources in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::archive::{self, Heard};
use crate::support::miopen::is_not_here;
use crate::support::project::{Project, command, finish};
use gfxpack_debian::{Archive, KEYS, Lock, Options};
use gfxpack_miopen::{Library, LibrarySource, MIOPEN, Sources};
use gfxpack_model::Error;
use tempfile::TempDir;

/// Builds shared libraries that need one another, and no C library.
struct Libraries(TempDir);

impl Libraries {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A library, or with an empty soname a program, from C.
    fn build(&self, soname: &str, text: &str, needs: &[&str]) -> PathBuf {
        let dir = self.0.path();
        let name = if soname.is_empty() { "MIOpenDriver" } else { soname };
        let (source, out) = (dir.join("source.c"), dir.join(name));
        fs::write(&source, text).unwrap();
        let mut cc = command("cc");
        cc.args(["-shared", "-fPIC", "-nostdlib", "-fno-stack-protector", "-o"]).arg(&out);
        if !soname.is_empty() {
            cc.arg(format!("-Wl,-soname,{soname}"));
        }
        cc.arg(&source).arg("-Wl,--no-as-needed").args(needs.iter().map(|need| dir.join(need)));
        let output = cc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    }

    /// The bytes of one.
    fn bytes(&self, soname: &str, text: &str, needs: &[&str]) -> Vec<u8> {
        fs::read(self.build(soname, text, needs)).unwrap()
    }

    /// A libMIOpen that needs a GPU's library, and libfoo, which needs libbar.
    fn miopen(&self, version: &str) -> Vec<u8> {
        self.bytes("libamdhip64.so.6", "int hipInit(void) { return 0; }", &[]);
        self.bytes("libbar.so.2", "int bar(void) { return 0; }", &[]);
        self.bytes(
            "libfoo.so.1",
            "int bar(void); int foo(void) { return bar(); }",
            &["libbar.so.2"],
        );
        let text = format!(
            r##"
            int hipInit(void); int foo(void);
            int miopenCreate(void) {{ return hipInit() + foo(); }}
            const char logged[] = "x, MIOpen version {version}.";
            const char MIOPEN_KERNEL_NAIVE_CONV[] = "#include \"config.hpp\"\n";
            const unsigned long MIOPEN_KERNEL_NAIVE_CONV_SIZE = sizeof MIOPEN_KERNEL_NAIVE_CONV - 1;
            const char MIOPEN_KERNEL_CONFIG_INCLUDE[] = "config";
            const unsigned long MIOPEN_KERNEL_CONFIG_INCLUDE_SIZE = 6;
            const char MIOPEN_KERNEL_NAMELESS[] = "x";
            const unsigned long MIOPEN_KERNEL_NAMELESS_SIZE = 1;
            const char *const names[] = {{ "fp8_naive_conv.cpp", "config.hpp", "config.h" }};
            "##
        );
        self.bytes("libMIOpen.so.1", &text, &["libamdhip64.so.6", "libfoo.so.1"])
    }
}

/// A directory with files in it.
fn tree(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

/// An archive for what asks none.
fn no_archive(heard: &Heard) -> Archive<'_> {
    archive_at(Path::new("/nonexistent"), None, KEYS, heard)
}

fn archive_at<'a>(
    cache: &Path,
    mirror: Option<String>,
    keys: &[u8],
    heard: &'a Heard,
) -> Archive<'a> {
    let apt = PathBuf::from("/etc/apt");
    let keys = keys.to_vec();
    Archive::new(cache, Options { mirror, apt, keys, architecture: None }, heard)
}

fn locate(path: &Path) -> Result<Library, Error> {
    let heard = Heard::default();
    Library::locate(&MIOPEN, &LibrarySource::Path(path.to_owned()), None, &no_archive(&heard))
}

#[test]
fn a_library_is_found_with_the_files_around_it() {
    let build = Libraries::new();
    let miopen = build.miopen("3.4.0");
    let bar = fs::read(build.build("libbar.so.2", "int bar(void) { return 0; }", &[])).unwrap();
    let needed = fs::read(build.0.path().join("libfoo.so.1")).unwrap();
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    for (libraries, prefix) in [("lib", ""), (&*format!("usr/lib/{triplet}"), "usr/")] {
        let at = |name: &str| format!("{libraries}/{name}");
        let tree = tree(&[
            (&at("libMIOpen.so.1.0"), &miopen),
            (&at("libfoo.so.1"), &needed),
            (&at("libbar.so.2"), &bar),
            (&format!("{prefix}share/miopen/db/gfx906_60.db.txt"), b""),
            (&format!("{prefix}bin/MIOpenDriver"), b""),
        ]);
        let root = tree.path().canonicalize().unwrap();
        let by_dir = locate(&root).unwrap();
        let by_file = locate(&root.join(at("libMIOpen.so.1.0"))).unwrap();
        assert_eq!(by_dir, by_file, "{libraries}");
        assert_eq!(by_dir.file, root.join(at("libMIOpen.so.1.0")));
        assert_eq!(by_dir.version.as_deref(), Some("3.4.0"));
        assert_eq!(by_dir.sha256, gfxpack_model::Digest::of(&miopen));
        assert_eq!(by_dir.search_path, [root.join(libraries)]);
        assert_eq!(by_dir.loader, None, "there is no C library with it");
        assert_eq!(by_dir.driver, Some(root.join(format!("{prefix}bin/MIOpenDriver"))));
        assert_eq!(by_dir.databases, [root.join(format!("{prefix}share/miopen/db"))]);
        let needs = by_dir.needs().unwrap();
        assert_eq!(Vec::from_iter(needs.stood_in), ["libamdhip64.so.6"]);
        assert_eq!(Vec::from_iter(needs.symbols), ["hipInit"]);
        assert!(needs.missing.is_empty());

        fs::remove_file(root.join(at("libbar.so.2"))).unwrap();
        let needs = locate(&root).unwrap().needs().unwrap();
        assert_eq!(Vec::from_iter(needs.missing), ["libbar.so.2"]);
        fs::write(root.join(at("libc.so.6")), b"").unwrap();
        fs::write(root.join(at("ld-linux-x86-64.so.2")), b"").unwrap();
        let loader = locate(&root).unwrap().loader;
        assert_eq!(loader, Some(root.join(at("ld-linux-x86-64.so.2"))));
    }
}

#[test]
fn other_libraries_are_refused() {
    let build = Libraries::new();
    let other = build.bytes("libMIOpen.so.1", "int other(void) { return 0; }", &[]);
    let mut machine = build.miopen("3.4.0");
    // e_machine of what nobody has.
    machine[18..20].copy_from_slice(&0x1234_u16.to_le_bytes());
    for (bytes, why) in [
        (&other[..], "does not define `miopenCreate`"),
        (&machine[..], "another processor"),
        (b"text", "no 64-bit shared library"),
    ] {
        let tree = tree(&[("lib/libMIOpen.so.1", bytes)]);
        let error = locate(tree.path()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let empty = tree(&[("lib/libMIOpen.so.1.txt", b"")]);
    let error = locate(empty.path()).unwrap_err().to_string();
    assert!(error.starts_with("found no libMIOpen in `"), "{error}");
    let error = locate(&empty.path().join("x")).unwrap_err().to_string();
    assert!(error.starts_with("failed to read `"), "{error}");
}

#[test]
fn sources_have_the_names_that_keys_use() {
    let build = Libraries::new();
    let tree = tree(&[("lib/libMIOpen.so.1", &build.miopen("3.4.0"))]);
    let sources = Sources::in_library(&locate(tree.path()).unwrap()).unwrap();
    let text = "#include \"config.hpp\"\n";
    assert_eq!(Vec::from_iter(&sources.kernels), [(&"naive_conv.cpp".to_owned(), &text.into())]);
    // Of two names that it could have, the one that is included.
    assert_eq!(
        Vec::from_iter(&sources.includes),
        [(&"config.hpp".to_owned(), &b"config".to_vec())]
    );
    assert_eq!(sources.unnamed, ["MIOPEN_KERNEL_NAMELESS"]);
    let out = tree.path().join("sources");
    sources.write(&out).unwrap();
    assert_eq!(fs::read_to_string(out.join("naive_conv.cpp")).unwrap(), text);
    assert_eq!(fs::read_dir(out).unwrap().count(), 2);
}

/// An archive with a libMIOpen in both of its suites.
fn published(build: &Libraries) -> archive::Archive {
    let archive = archive::Archive::new();
    let dir = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let at = |name: &str| format!("{dir}/{name}");
    let depends = "libamdhip64-6 (>= 6.1), libfoo1 (>= 1.0), libunused1, libgone-dev | nothing";
    for (suite, miopen, package) in
        [("sid", "3.4.0", "6.4.3-1+b1"), ("experimental", "3.5.1", "7.2.4-1")]
    {
        let miopen = build.miopen(miopen);
        let file = at("libMIOpen.so.1");
        archive.add_to(suite, "libmiopen1", package, depends, &[(&file, &miopen, 0o644)]);
        let driver =
            build.bytes("", "int foo(void); int x(void) { return foo(); }", &["libfoo.so.1"]);
        let tests = [("usr/libexec/rocm/tests/MIOpenDriver", &driver[..], 0o755)];
        archive.add_to(suite, "libmiopen1-tests", package, "libmiopen1, libfoo1", &tests);
    }
    let data = [("usr/share/miopen/db/gfx906_60.db.txt", &b"x"[..], 0o644)];
    archive.add_to("sid", "libmiopen-tests-data", "6.4.2-1", "", &data);
    archive.add_to("experimental", "libmiopen-tests-data", "7.2.4-1", "", &data);
    let read = |name: &str| fs::read(build.0.path().join(name)).unwrap();
    let library = read("libfoo.so.1");
    let file = at("libfoo.so.1");
    archive.add("libfoo1", "1.0-1", "libbar2t64", &[(&file, &library, 0o644)]);
    // Nobody asked for what is only there to be tried.
    archive.add_to("experimental", "libfoo1", "2.0-1", "libbar2t64", &[(&file, &library, 0o644)]);
    let bar = read("libbar.so.2");
    archive.add("libbar2t64", "2.0-1", "", &[(&at("libbar.so.2"), &bar, 0o644)]);
    archive.add("libunused1", "1.0-1", "", &[(&at("libunused.so.1"), &bar, 0o644)]);
    archive.publish("sid", "");
    archive.publish("experimental", "");
    archive
}

fn packages(lock: &Lock) -> Vec<String> {
    lock.packages.iter().map(|pin| format!("{} {}", pin.name, pin.version)).collect()
}

#[test]
fn only_packages_with_needed_libraries_are_chosen() {
    let build = Libraries::new();
    let (archive, heard) = (published(&build), Heard::default());
    let mirror = Some(archive.root().display().to_string());
    let opened = archive_at(&archive.path("cache"), mirror, &archive.key(), &heard);
    let expected = [
        "libmiopen1 6.4.3-1+b1",
        "libbar2t64 2.0-1",
        "libfoo1 1.0-1",
        "libmiopen1-tests 6.4.3-1+b1",
    ];
    assert_eq!(packages(&Library::choose(&MIOPEN, &opened, "sid", None).unwrap()), expected);
    let library = Library::locate(&MIOPEN, &"debian:sid".parse().unwrap(), None, &opened).unwrap();
    assert_eq!(library.version.as_deref(), Some("3.4.0"));
    assert_eq!(library.origin, "Debian sid, libmiopen1 6.4.3-1+b1");
    assert_eq!(library.search_path.len(), 2, "{library:?}");
    assert!(library.driver.is_some() && library.databases.is_empty());
    assert!(library.needs().unwrap().missing.is_empty());

    let lock = Library::choose(&MIOPEN, &opened, "experimental", Some("7.2.4-1")).unwrap();
    let expected = [
        "libmiopen1 7.2.4-1",
        "libbar2t64 2.0-1",
        "libfoo1 1.0-1",
        "libmiopen-tests-data 7.2.4-1",
        "libmiopen1-tests 7.2.4-1",
    ];
    assert_eq!(packages(&lock), expected);
    let library = Library::pinned(&MIOPEN, &lock, &opened).unwrap();
    assert_eq!((library.version.as_deref(), library.databases.len()), (Some("3.5.1"), 1));

    let error = Library::choose(&MIOPEN, &opened, "sid", Some("7")).unwrap_err().to_string();
    assert_eq!(error, "`libmiopen1 7` is not in sid, which has 6.4.3-1+b1");
    assert_eq!(heard.0.take(), [""; 0]);
}

#[test]
fn if_pinned_packages_are_gone_the_newest_are_used_with_a_warning() {
    let build = Libraries::new();
    let (archive, heard) = (published(&build), Heard::default());
    let open = |cache: &str| {
        let mirror = Some(archive.root().display().to_string());
        archive_at(&archive.path(cache), mirror, &archive.key(), &heard)
    };
    let lock = Library::choose(&MIOPEN, &open("cache"), "sid", None).unwrap();
    let pool = archive.root().join("pool/sid");
    fs::rename(pool.join("libfoo1_1.0-1_amd64.deb"), archive.path("old.deb")).unwrap();
    let dir = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let needed = fs::read(build.0.path().join("libfoo.so.1")).unwrap();
    archive.add(
        "libfoo1",
        "1.1-1",
        "libbar2t64",
        &[(&format!("{dir}/libfoo.so.1"), &needed, 0o644)],
    );
    archive.publish("sid", "");
    // What is there already is not gone.
    Library::pinned(&MIOPEN, &lock, &open("cache")).unwrap();
    assert_eq!(heard.0.take(), [""; 0]);

    let library = Library::pinned(&MIOPEN, &lock, &open("other")).unwrap();
    assert!(library.needs().unwrap().missing.is_empty());
    let [warning] = &heard.0.take()[..] else { panic!("one warning") };
    assert!(warning.contains("libfoo1_1.0-1_amd64.deb` does not exist"), "{warning}");
    assert!(warning.ends_with("taking what sid has now, libmiopen1 6.4.3-1+b1"), "{warning}");

    let elsewhere = Lock { architecture: "s390x".to_owned(), ..lock };
    Library::pinned(&MIOPEN, &elsewhere, &open("cache")).unwrap();
    let [warning] = &heard.0.take()[..] else { panic!("one warning") };
    assert!(warning.starts_with("packages are pinned for s390x"), "{warning}");
}

#[test]
fn a_library_without_package_is_named() {
    let build = Libraries::new();
    let (archive, heard) = (published(&build), Heard::default());
    fs::remove_file(archive.root().join("pool/sid/libbar2t64_2.0-1_amd64.deb")).unwrap();
    archive.publish("sid", "");
    let mirror = Some(archive.root().display().to_string());
    let opened = archive_at(&archive.path("cache"), mirror, &archive.key(), &heard);
    let error = Library::choose(&MIOPEN, &opened, "sid", None).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("found `libbar.so.2`, which `"), "{error}");
    assert!(error.ends_with("in no package that `libfoo1` depends on"), "{error}");
}

/// Debian's own: that it can be fetched, and that 3.4.0 and later are as
/// they are taken to be.
#[test]
#[expect(clippy::print_stderr, reason = "a test that was not run says so")]
fn debians_own_library_can_be_fetched() {
    let heard = Heard::default();
    let cache = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/debian-cache"));
    let mirror = std::env::vars().find(|(name, _)| name == "GFXPACK_DEBIAN_MIRROR");
    let archive = archive_at(&cache, mirror.map(|(_, mirror)| mirror), KEYS, &heard);
    let library = match Library::locate(&MIOPEN, &"debian:sid".parse().unwrap(), None, &archive) {
        Err(error) if is_not_here(&error) => {
            eprintln!("skipped: {error}");
            return;
        }
        library => library.unwrap(),
    };
    assert!(library.version.is_some() && library.loader.is_some() && library.driver.is_some());
    let needs = library.needs().unwrap();
    assert!(needs.missing.is_empty(), "{needs:?}");
    assert!(needs.symbols.contains("hipModuleLoadData"), "{needs:?}");
    let foreign = |name: &&String| {
        !["hip", "rocblas_", "roctx", "amd_comgr_"].iter().any(|known| name.starts_with(known))
    };
    assert_eq!(needs.symbols.iter().find(foreign), None);
    let sources = Sources::in_library(&library).unwrap();
    assert!(sources.kernels.len() > 100 && sources.includes.len() > 100);
    assert_eq!(sources.unnamed, [""; 0]);
    assert!(sources.kernels.contains_key("naive_conv.cpp"));
    assert!(sources.kernels.keys().all(|name| !gfxpack_miopen::is_left_out_by_debian(name)));
}

#[test]
fn the_command_describes_a_library_and_extracts_its_sources() {
    let build = Libraries::new();
    let tree = tree(&[("lib/libMIOpen.so.1", &build.miopen("3.4.0"))]);
    let dir = tree.path().to_str().unwrap();
    let project = Project::new();
    let run = project.run(&["miopen", "--miopen", dir, "--sources", "texts"]).expect_code(0);
    for expected in ["libMIOpen 3.4.0", "libamdhip64.so.6", "1 kernel, 1 include", "libfoo.so.1"] {
        assert!(run.stdout.contains(expected), "`{expected}` is not in:\n{}", run.stdout);
    }
    assert!(run.stderr.contains("`MIOPEN_KERNEL_NAMELESS` is left out"), "{}", run.stderr);
    assert!(project.path().join("texts/naive_conv.cpp").is_file());
    let json = project.run(&["miopen", "--miopen", dir, "--json", "-"]);
    let [miopen] = &json.expect_code(0).of_type("miopen")[..] else { panic!("one message") };
    assert_eq!(
        (&miopen["version"], &miopen["missing"][0]),
        (&"3.4.0".into(), &"libfoo.so.1".into())
    );
}

#[test]
fn an_unavailable_library_is_reported_with_a_hint() {
    let archive = published(&Libraries::new());
    let project = Project::new();
    let check = |arguments: &[&str], code: i32, expected: &[&str]| {
        let run = project.run(&[&["miopen"], arguments].concat()).expect_code(code);
        for text in expected {
            assert!(run.stderr.contains(text), "`{text}` is not in:\n{}", run.stderr);
        }
    };
    let mirror = |mirror: &str, code: i32, expected: &[&str]| {
        let command = ["miopen", "--miopen", "debian:sid", "--debian-mirror", mirror];
        let command = project.command(&command);
        let run = finish(command).expect_code(code);
        for text in expected {
            assert!(run.stderr.contains(text), "`{text}` is not in:\n{}", run.stderr);
        }
    };
    // Somebody else's archive, however well it is signed.
    let root = archive.root().display().to_string();
    mirror(&root, 101, &["failed to verify", "No public key"]);
    // The port that nobody listens on.
    let nobody = "http://127.0.0.1:9/debian";
    mirror(nobody, 1, &["failed to fetch", "--miopen PATH", "--manifest FILE"]);
    mirror("mirror.example", 2, &["is no mirror", "hint: "]);
    check(&["--miopen", "no/such/dir"], 2, &["failed to read", "no/such/dir", "check the path"]);
    check(&["--miopen", &root], 2, &["found no libMIOpen in", "/opt/rocm"]);
    check(&["--miopen", "debian:"], 2, &["as the place of a library"]);
    check(
        &["--miopen", &root, "--lock", "x.lock"],
        2,
        &["only packages of Debian's", "debian:sid"],
    );
    check(&["--miopen", "lock:none.lock"], 2, &["failed to read `none.lock`", "--lock"]);
    assert!(!project.path().join("x.lock").exists());
}
