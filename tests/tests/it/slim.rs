//! `slim`, and `verify` with a GPU: what others built has code for it, and is smaller without that
//! for other GPUs. The library, HIP and comgr are Debian's, the loader too.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::fat::bundle;
use crate::support::project::{Project, command, finish, tool, workspace};

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// What `cargo xtask test --setup` fetches: rocRAND of sid and all that it depends on.
fn rocrand() -> PathBuf {
    let dir = workspace().join("target/tools/rocrand");
    assert!(dir.join("usr").is_dir(), "`cargo xtask test --setup` fetches it");
    dir
}

/// Compiles the program that asks comgr, which exports what it has of HIP.
fn compiled(project: &Project) -> PathBuf {
    let program = project.path().join("ask_comgr");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/ask_comgr.c");
    let to = ["-O1", "-rdynamic", "-o", program.to_str().unwrap(), source, "-ldl"];
    tool("cc", &to, project.path());
    program
}

/// What HIP would load from a library, a line for each wrapper and target.
fn asked(program: &Path, library: &Path) -> Vec<String> {
    let libraries = rocrand().join(LIBRARIES);
    let mut loader = command(libraries.join("ld-linux-x86-64.so.2"));
    loader.arg("--library-path").arg(&libraries);
    loader.arg("--preload").arg(libraries.join("libamdhip64.so.6")).arg(program).arg(library);
    loader.args(["gfx906", "gfx1030", "gfx1100"]);
    finish(loader).expect_code(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn hip_finds_the_same_code_in_debians_rocrand() {
    let project = Project::small();
    let ask = compiled(&project);
    let whole = rocrand().join(LIBRARIES).join("librocrand.so.1");
    let before = asked(&ask, &whole);
    assert!(before.len() >= 30 && before.iter().all(|line| !line.contains("none")), "{before:?}");

    for (targets, out) in [("gfx1030", "one.so"), ("gfx1030,gfx1100", "two.so")] {
        let slim = ["slim", whole.to_str().unwrap(), "--target", targets, "--out", out, "--no-hip"];
        project.run(&slim).expect_code(0);
        project.run(&["verify", out, "--target", targets]).expect_code(0);
        let is_kept =
            |line: &&String| targets.split(',').any(|it| line.contains(&format!(" {it} ")));
        let kept: Vec<&String> = before.iter().filter(is_kept).collect();
        let library = project.path().join(out);
        let check = |library: &Path| {
            let after = asked(&ask, library);
            let (found, none): (Vec<&String>, Vec<_>) = after.iter().partition(is_kept);
            assert_eq!(found, kept, "{library:?}");
            assert!(none.iter().all(|line| line.ends_with(" none")), "{none:?}");
        };
        check(&library);
        let stripped = project.path().join("stripped.so");
        let words = ["--strip-unneeded", "--remove-section=.comment", "--remove-section=.note"];
        let paths = ["-o", stripped.to_str().unwrap(), library.to_str().unwrap()];
        tool("strip", &[words.as_slice(), &paths].concat(), project.path());
        check(&stripped);
    }
    let one = fs::metadata(project.path().join("one.so")).unwrap().len();
    assert!(one < fs::metadata(&whole).unwrap().len() / 2, "{one}");
    project.run(&["verify", "one.so", "--target", "gfx1100"]).expect_code(101);
}

#[test]
fn files_of_other_gpus_are_taken_out_and_gaps_named() {
    let project = Project::small();
    let library = "tree/rocblas/library";
    fs::create_dir_all(project.path().join(library)).unwrap();
    let list = |gpu: &str| {
        let text = format!("TensileLibrary_Type_HH_{gpu}");
        let list = [&[0x91, 0xd9, text.len() as u8], text.as_bytes()].concat();
        let at = |name: &str| project.path().join(library).join(name);
        fs::write(at(&format!("TensileLibrary_lazy_{gpu}.dat")), list).unwrap();
        fs::write(at(&format!("{text}.dat")), b"\x81\xacsourceKernel\xc2").unwrap();
        fs::write(at(&format!("{text}.co")), "code").unwrap();
    };
    for gpu in ["gfx90a", "gfx1030"] {
        list(gpu);
    }
    project.write(&format!("{library}/TensileLibrary_Type_HH_fallback.dat"), "for all");
    let slim = ["slim", "tree", "--target", "gfx1030", "--out", "out", "--json", "-", "--no-hip"];
    let run = project.run(&slim).expect_code(0);
    assert_eq!(run.of_type("slimmed")[0]["changes"].as_array().unwrap().len(), 3);
    let names: Vec<String> = project.tree("out").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().all(|name| !name.contains("gfx90a")), "{names:?}");
    project.run(&["verify", "out", "--target", "gfx1030"]).expect_code(0);
    // It is never changed in place, and what others need is not there any more.
    project.run(&slim).expect_code(2);
    project.run(&["verify", "out", "--target", "gfx90a"]).expect_code(101);
    // A link to a directory, as /opt/rocm may be, stands for it.
    std::os::unix::fs::symlink("tree", project.path().join("link")).unwrap();
    let of_link = ["slim", "link", "--target", "gfx1030", "--out", "of-link", "--no-hip"];
    project.run(&of_link).expect_code(0);
    assert_eq!(project.tree("of-link"), project.tree("out"));

    fs::remove_file(project.path().join("out/rocblas/library/TensileLibrary_Type_HH_gfx1030.co"))
        .unwrap();
    let verify = ["verify", "out", "--target", "gfx1030", "--json", "-"];
    let gaps = project.run(&verify).expect_code(101).of_type("gap");
    let detail = "it names `TensileLibrary_Type_HH_gfx1030.co`, which is not there";
    assert_eq!(gaps.iter().map(|gap| &gap["detail"]).collect::<Vec<_>>(), [detail]);

    // If they are installed, doctor says so in a line.
    fs::create_dir(project.path().join("rocm")).unwrap();
    fs::rename(project.path().join("out"), project.path().join("rocm/lib")).unwrap();
    for gpu in ["gfx1030", "gfx90a"] {
        let mut doctor = project.command(&["doctor", "--target", gpu, "--json", "-"]);
        doctor.env("ROCM_PATH", project.path().join("rocm"));
        let checks = finish(doctor).of_type("check");
        let of_code: Vec<_> = checks.iter().filter(|it| it["about"] == "device code").collect();
        assert!(of_code.len() == 1 && of_code[0]["level"] == "warning", "{gpu}: {checks:?}");
    }
}

#[test]
fn debs_keep_what_does_not_follow_from_their_files() {
    let project = Project::small();
    let at = |name: &str| project.path().join(name);
    let write = |name: &str, bytes: &[u8]| {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::write(at(name), bytes).unwrap();
    };
    let control = "Package: libx1\nVersion: 1:2.0-1\nArchitecture: amd64\nMaintainer: A <a@b.org>\n\
                   Installed-Size: 40\nX-ROCm-GPU-Architecture: gfx90a gfx1030\n\
                   Description: x\n It has code.\n";
    write("whole/DEBIAN/control", control.as_bytes());
    write("whole/DEBIAN/postinst", b"#!/bin/sh\n");
    fs::set_permissions(at("whole/DEBIAN/postinst"), fs::Permissions::from_mode(0o755)).unwrap();
    write("whole/DEBIAN/triggers", b"activate-noawait ldconfig\n");
    write("whole/DEBIAN/conffiles", b"/etc/x.conf\n");
    write("whole/etc/x.conf", b"setting\n");
    // The name is longer than a header's.
    let long = format!("usr/lib/{}/x.hsaco", "directory".repeat(14));
    let code = bundle(&["gfx90a", "gfx1030"]);
    write(&format!("whole/{long}"), &code);
    write("whole/usr/lib/x_gfx90a.co", b"gfx90a's");
    std::os::unix::fs::symlink("x_gfx90a.co", at("whole/usr/lib/link.co")).unwrap();
    let sums = "cd whole && md5sum usr/lib/*/* usr/lib/x_* etc/* > DEBIAN/md5sums";
    tool("sh", &["-c", sums], project.path());
    for codec in ["xz", "zstd"] {
        let build = ["--root-owner-group", &format!("-Z{codec}"), "--build", "whole", "x.deb"];
        tool("dpkg-deb", &build, project.path());
        let slim = |out: &str| {
            let run = ["slim", "x.deb", "--target", "gfx1030", "--out", out, "--no-hip"];
            project.run(&run).expect_code(0);
            format!("{out}/libx1_2.0-1+gfx1030_amd64.deb")
        };
        let (made, again) = (slim(codec), slim("again"));
        assert_eq!(fs::read(at(&made)).unwrap(), fs::read(at(&again)).unwrap());
        let members = |deb: &str| tool("ar", &["t", deb], project.path());
        assert_eq!(members(&made), members("x.deb"));
        project.run(&["verify", &made, "--target", "gfx90a"]).expect_code(101);
        let unpacked = format!("{codec}/unpacked");
        tool("dpkg-deb", &["-R", &made, &unpacked], project.path());
        let whole: BTreeMap<_, _> = project.tree("whole").into_iter().collect();
        let mut slim: BTreeMap<_, _> = project.tree(&unpacked).into_iter().collect();
        let control = slim.remove("DEBIAN/control").unwrap();
        let expected = "Package: libx1\nSource: libx1 (1:2.0-1)\nVersion: 1:2.0-1+gfx1030\n\
                        Architecture: amd64\nMaintainer: A <a@b.org>\nInstalled-Size: 34\n\
                        X-ROCm-GPU-Architecture: gfx1030\nDescription: x\n It has code.\n";
        assert_eq!(String::from_utf8(control).unwrap(), expected);
        slim.remove("DEBIAN/md5sums").unwrap();
        assert_eq!(slim.remove(&long).unwrap(), bundle(&["gfx1030"]));
        assert!(slim.iter().all(|(name, bytes)| whole[name] == *bytes), "{:?}", slim.keys());
        assert_eq!(slim.len() + 5, whole.len(), "{:?}", slim.keys());
        tool("md5sum", &["-c", "DEBIAN/md5sums"], &at(&unpacked));
        let manifest = project.text(&made.replace(".deb", ".slim.json"));
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["from"]["version"], "1:2.0-1");
        assert_eq!(manifest["changes"].as_array().unwrap().len(), 2);
    }
    fs::remove_dir_all(at("again")).unwrap();
    // A package of kernels is not left without any.
    let db = "kernels/usr/share/miopen/db";
    write(
        "kernels/DEBIAN/control",
        control.replace("gfx90a gfx1030", "gfx90a, gfx1030").as_bytes(),
    );
    for (kdb, gpu, code) in [("gfx90a68", "gfx1030", 2), ("gfx1030", "gfx1030", 0)] {
        write(&format!("{db}/{kdb}.kdb"), b"kernels");
        tool("dpkg-deb", &["--root-owner-group", "--build", "kernels", "k.deb"], project.path());
        let slim = ["slim", "k.deb", "--target", gpu, "--out", "again", "--no-hip"];
        let run = project.run(&slim).expect_code(code);
        assert_eq!(run.stderr.contains("no kernels would be left"), code == 2, "{}", run.stderr);
        assert_eq!(project.tree("again").is_empty(), code == 2);
    }
    let made = at("again/libx1_2.0-1+gfx1030_amd64.deb");
    let gpus = tool(
        "dpkg-deb",
        &["-f", made.to_str().unwrap(), "X-ROCm-GPU-Architecture"],
        project.path(),
    );
    assert_eq!(gpus.trim(), "gfx1030");
    // Of a package that is cut short, nothing is written.
    fs::remove_dir_all(at("again")).unwrap();
    fs::write(at("x.deb"), &fs::read(at("x.deb")).unwrap()[..700]).unwrap();
    let slim = ["slim", "x.deb", "--target", "gfx1030", "--out", "again", "--no-hip"];
    project.run(&slim).expect_code(2);
    assert!(project.tree("again").is_empty());
}

/// Makes a wheel with Python's own zipfile.
const WHEEL: &str = r#"
import base64, hashlib, sys, zipfile
info = "x_y-1.0+rocm6.4.dist-info"
files = {
    "x_y/__init__.py": b"",
    "x_y/code.hsaco": open("code.hsaco", "rb").read(),
    "x_y/lib_gfx90a.co": b"gfx90a's",
    info + "/METADATA": b"Metadata-Version: 2.1\nName: x-y\nVersion: 1.0+rocm6.4\n",
    info + "/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = ""
with zipfile.ZipFile("x_y-1.0+rocm6.4-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, data in files.items():
        wheel.writestr(name, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    wheel.writestr(info + "/RECORD", record + info + "/RECORD,,\n")
"#;

#[test]
fn pip_takes_slim_wheels() {
    let project = Project::small();
    let code = bundle(&["gfx90a", "gfx1030"]);
    fs::write(project.path().join("code.hsaco"), code).unwrap();
    tool("python3", &["-c", WHEEL], project.path());
    let whole = "x_y-1.0+rocm6.4-py3-none-any.whl";
    for out in ["out", "again"] {
        let slim = ["slim", whole, "--target", "gfx1030", "--out", out, "--no-hip"];
        project.run(&slim).expect_code(0);
    }
    let made = "out/x_y-1.0+rocm6.4.gfx1030-py3-none-any.whl";
    let bytes = |name: &str| fs::read(project.path().join(name)).unwrap();
    assert_eq!(bytes(made), bytes(&made.replace("out", "again")));
    project.run(&["verify", made, "--target", "gfx90a"]).expect_code(101);
    // Without a version in its name, it would be written over itself.
    fs::copy(project.path().join(whole), project.path().join("x.whl")).unwrap();
    let slim = ["slim", "x.whl", "--target", "gfx1030", "--out", ".", "--no-hip"];
    project.run(&slim).expect_code(2);
    assert_eq!(bytes("x.whl"), bytes(whole));
    let python = workspace().join("target/tools/wheels/bin/python");
    assert!(python.is_file(), "`cargo xtask test --setup` installs pip");
    let pip = ["-m", "pip", "install", "--no-index", "--no-deps", "--target", "site", made];
    tool(python.to_str().unwrap(), &pip, project.path());
    assert_eq!(bytes("site/x_y/code.hsaco"), bundle(&["gfx1030"]));
    assert!(!project.path().join("site/x_y/lib_gfx90a.co").exists());
    let info = project.text("site/x_y-1.0+rocm6.4.gfx1030.dist-info/METADATA");
    assert!(info.contains("Version: 1.0+rocm6.4.gfx1030\n"), "{info}");
}

#[test]
fn umoci_and_skopeo_take_slim_images() {
    let project = Project::small();
    let at = |name: &str| project.path().join(name);
    let umoci = |args: &[&str]| tool("umoci", args, project.path());
    let skopeo = |from: &str, to: &str| {
        let args = ["--insecure-policy", "copy", "--quiet", from, to];
        tool("skopeo", &args, project.path())
    };
    umoci(&["init", "--layout", "whole"]);
    umoci(&["new", "--image", "whole:1"]);
    let code = bundle(&["gfx90a", "gfx1030"]);
    // The second layer takes a file of the first one out; the third one has nothing for GPUs.
    let first = [("opt/x.hsaco", &*code), ("opt/a_gfx90a.co", b"a"), ("opt/gone.txt", b"gone")];
    let second = [("opt/y.hsaco", &*code), ("opt/kept.txt", b"kept")];
    for (index, files) in [&first[..], &second, &[("opt/last.txt", b"last")]].iter().enumerate() {
        let work = format!("work{index}");
        umoci(&["unpack", "--rootless", "--image", "whole:1", &work]);
        fs::create_dir_all(at(&work).join("rootfs/opt")).unwrap();
        for (name, bytes) in *files {
            fs::write(at(&work).join("rootfs").join(name), bytes).unwrap();
        }
        if index == 0 {
            let link = at(&work).join("rootfs/opt/link.co");
            std::os::unix::fs::symlink("a_gfx90a.co", link).unwrap();
        } else {
            fs::remove_file(at(&work).join("rootfs/opt/gone.txt")).ok();
        }
        umoci(&["repack", "--image", "whole:1", &work]);
    }
    skopeo("oci:whole:1", "oci-archive:x.oci.tar:1");
    for out in ["out", "again"] {
        let slim = ["slim", "x.oci.tar", "--target", "gfx1030", "--out", out, "--no-hip"];
        project.run(&slim).expect_code(0);
    }
    let made = "out/x+gfx1030.oci.tar";
    assert_eq!(fs::read(at(made)).unwrap(), fs::read(at(&made.replace("out", "again"))).unwrap());
    project.run(&["verify", made, "--target", "gfx1030"]).expect_code(0);
    project.run(&["verify", made, "--target", "gfx90a"]).expect_code(101);
    // Not one over the other, nor once more.
    fs::create_dir(at("other")).unwrap();
    fs::copy(at("x.oci.tar"), at("other/x.oci.tar")).unwrap();
    for images in [&["x.oci.tar", "other/x.oci.tar"][..], &[made]] {
        let slim = ["slim", "--target", "gfx1030", "--out", "refused", "--no-hip"];
        project.run(&[&slim[..], images].concat()).expect_code(2);
    }
    assert!(!at("refused").exists());
    skopeo(&format!("oci-archive:{made}:1"), "oci:slim:1");
    umoci(&["unpack", "--rootless", "--image", "slim:1", "bundle"]);
    let kept = project.tree("bundle/rootfs");
    let slim = bundle(&["gfx1030"]);
    let expected: [(&str, &[u8]); 4] = [
        ("opt/kept.txt", b"kept"),
        ("opt/last.txt", b"last"),
        ("opt/x.hsaco", &slim),
        ("opt/y.hsaco", &slim),
    ];
    assert_eq!(kept, expected.map(|(name, bytes)| (name.to_owned(), bytes.to_owned())));
    // All that changed in the configuration: two layers, and a line of history.
    let config = |image: &str| {
        let text = tool("skopeo", &["inspect", "--config", image], project.path());
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let (whole, slim) = (config("oci:whole:1"), config("oci:slim:1"));
    assert_eq!(whole["config"], slim["config"]);
    assert_eq!(whole["rootfs"]["diff_ids"][2], slim["rootfs"]["diff_ids"][2]);
    assert_ne!(whole["rootfs"]["diff_ids"][0], slim["rootfs"]["diff_ids"][0]);
    let history = |config: &serde_json::Value| config["history"].as_array().unwrap().len();
    assert_eq!(history(&slim), history(&whole) + 1);
}
