//! Images with skopeo and umoci, and damaged ones.

use std::fs;
use std::path::Path;

use ::tar::EntryType;
use gfxpack_package::Format;
use serde_json::Value;

use crate::archives::{TarEntry, check, file, tar};
use crate::installed::assert_installed;
use crate::support::{NAME, awkward_spec, file_names, plain_spec, run, temp, tool, tree};

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
    assert_eq!(report.about.expect("it says").name, NAME);
}

/// The members of an image's archive.
fn members(path: &Path) -> Vec<(String, Vec<u8>)> {
    let dir = temp();
    run(tool("tar").arg("-C").arg(dir.path()).arg("-xf").arg(path));
    let files = tree(dir.path()).into_iter();
    files.filter_map(|(name, content)| Some((name, content?.0))).collect()
}

#[test]
fn errors_in_an_image_are_reported() {
    let dir = temp();
    let spec = plain_spec(vec![7; 3000]);
    let path = Format::Oci.write(&spec, dir.path(), 1, None).expect("written").path;
    let whole = members(&path);
    let findings = |members: &[(String, Vec<u8>)]| {
        let entries: Vec<TarEntry<'_>> =
            members.iter().map(|(name, bytes)| file(name, bytes)).collect();
        fs::write(&path, tar(&entries)).expect("written");
        check(&path).findings.join("; ")
    };
    assert_eq!(findings(&whole), "", "any order will do");
    let mut more = whole.clone();
    more.push(("manifest.json".to_owned(), b"[]".to_vec()));
    assert!(findings(&more).contains("`/manifest.json` is no part of an image"));
    more.last_mut().expect("there").0 = format!("blobs/sha256/{:064}", 0);
    more.last_mut().expect("there").1 = b"{}".to_vec();
    assert!(findings(&more).contains("has another digest; the blob"));
    for (without, expected) in
        [("oci-layout", "no `oci-layout`"), ("index.json", "no `index.json`"), ("blobs", "no blob")]
    {
        let members: Vec<_> =
            whole.iter().filter(|(name, _)| !name.starts_with(without)).cloned().collect();
        let findings = findings(&members);
        assert!(findings.contains(expected), "{expected}: {findings}");
    }
    // One byte of each member: none can change unnoticed but in oci-layout's
    // last digits.
    for index in 0..whole.len() {
        for at in (0..whole[index].1.len()).step_by(7) {
            let mut members = whole.clone();
            members[index].1[at] ^= 1;
            let findings = findings(&members);
            let may = ["oci-layout", "index.json"].contains(&&*members[index].0);
            assert!(may || !findings.is_empty(), "byte {at} of {}", members[index].0);
        }
    }
    let link = TarEntry { kind: EntryType::Symlink, target: "/etc/x", ..file("oci-layout", b"") };
    fs::write(&path, tar(&[link])).expect("written");
    assert!(check(&path).findings.join("; ").contains("is a link that leads out"));
}
