//! Images with skopeo and umoci, and damaged ones.

use std::fs;

use gfxpack_package::Format;
use serde_json::Value;

use super::archives::{check, file, tar};
use super::installed::assert_installed;
use super::support::{NAME, awkward_spec, file_names, plain_spec, run, temp, tool, tree};

#[test]
fn skopeo_and_umoci_read_every_byte() {
    let dir = temp();
    let spec = awkward_spec(dir.path());
    let written = Format::Oci.write(&spec, dir.path(), 2, None).expect("written");
    assert_eq!(written.file_name, format!("{NAME}-1.0.0-1.oci.tar"));
    let archive = format!("oci-archive:{}", written.path.display());
    let inspected = run(tool("skopeo").args(["inspect", &archive]));
    let inspected: Value = serde_json::from_str(&inspected).expect("JSON");
    assert_eq!(inspected["Created"], "2023-11-14T22:13:20Z");
    assert_eq!(inspected["Os"], "linux");
    assert_eq!(inspected["Layers"].as_array().map(Vec::len), Some(1));
    let raw = run(tool("skopeo").args(["inspect", "--raw", &archive]));
    let raw: Value = serde_json::from_str(&raw).expect("JSON");
    for (name, expected) in [
        ("title", NAME),
        ("version", "1.0.0-1"),
        ("licenses", "MIT"),
        ("url", "https://example.org/gfxpack"),
        ("authors", "Kernel Packagers <kernels@example.org>"),
    ] {
        let name = format!("org.opencontainers.image.{name}");
        assert_eq!(raw["annotations"][&name], expected);
        assert_eq!(inspected["Labels"][&name], expected);
    }

    let copy = dir.path().join("copy");
    let layout = format!("oci:{}:1.0.0-1", copy.display());
    run(tool("skopeo").args(["--insecure-policy", "copy", "--quiet", &archive, &layout]));
    // The same blobs: nothing had to be changed.
    let names = file_names(&copy.join("blobs"));
    let listed = run(tool("tar").arg("-tf").arg(&written.path));
    assert_eq!(names.len(), 3);
    assert!(names.iter().all(|name| listed.contains(&format!("blobs/{name}\n"))), "{listed}");
    // Docker's form, which has to be unpacked and checked for that.
    let docker = format!("docker-archive:{}:kernels:1", dir.path().join("docker.tar").display());
    run(tool("skopeo").args(["--insecure-policy", "copy", "--quiet", &archive, &docker]));

    let bundle = dir.path().join("bundle");
    let image = format!("{}:1.0.0-1", copy.display());
    run(tool("umoci").args(["unpack", "--rootless", "--image", &image]).arg(&bundle));
    assert_installed(&spec, &bundle.join("rootfs"));
    assert_eq!(file_names(&bundle.join("rootfs")).len(), spec.files.len() + 1, "and the copyright");
    let report = check(&written.path);
    assert_eq!(report.findings, Vec::<String>::new());
    assert_eq!(report.files, spec.files.len() as u64 + 1);
    assert_eq!(report.about.expect("it says").name, written.file_name);
}

/// What the blobs do not have, skopeo judges.
#[test]
fn changed_blobs_are_reported() {
    let dir = temp();
    let path = Format::Oci.write(&plain_spec(vec![7; 3000]), dir.path(), 1, None);
    let path = path.expect("written").path;
    let root = dir.path().join("image");
    fs::create_dir(&root).expect("made");
    run(tool("tar").arg("-C").arg(&root).arg("-xf").arg(&path));
    for (name, content) in tree(&root) {
        let Some((whole, _)) = content.filter(|_| name.starts_with("blobs/")) else { continue };
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, tar(&[file(&name, &bytes)])).expect("written");
            assert!(!check(&path).findings.is_empty(), "byte {at} of {name}");
        }
    }
}
