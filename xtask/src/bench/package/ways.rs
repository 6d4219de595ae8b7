//! The programs that pack, and what each needs around the payload.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Setting, Way};
use crate::root::root;

/// Where `--setup` puts cargo-deb, below the checkout.
pub(super) const CARGO_DEB: &str = "target/tools/bin/cargo-deb";
/// Where `--setup` puts nfpm.
pub(super) const NFPM: &str = "target/tools/nfpm/bin/nfpm";

/// All that are there.
pub(super) fn all(setting: &Setting, dir: &Path, payload: &Path) -> anyhow::Result<Vec<Way>> {
    match setting.format {
        "rpm" => rpms(dir, payload),
        _ => debs(dir, payload, setting.codec, setting.level),
    }
}

/// An empty directory of that name, with `out` in it.
fn fresh(dir: &Path, name: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
    let dir = dir.join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    let out = dir.join("out");
    fs::create_dir_all(&out)?;
    Ok((dir, out))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the checkout's path is UTF-8")
}

/// gfxpack's own, held against a way that does the same.
fn ours(
    dir: &Path,
    payload: &Path,
    (name, format): (&'static str, &'static str),
    (codec, level): (&str, u32),
    rival: &'static str,
) -> anyhow::Result<Way> {
    let (dir, out) = fresh(dir, &format!("ours-{format}"))?;
    let pack = root().join("target/release/examples/pack");
    let level = level.to_string();
    let words = [text(&pack), format, text(payload), text(&out), codec, &level];
    let ending = if format == "rpm" { "rpm" } else { "deb" };
    Ok(Way { rival: Some(rival), ..Way::new(name, &dir, &out, ending, &words) })
}

/// In pairs: with md5sums, as debhelper has them made before dpkg-deb, and
/// without.
fn debs(dir: &Path, payload: &Path, codec: &str, level: u32) -> anyhow::Result<Vec<Way>> {
    let program = if codec == "xz" { "-Zxz" } else { "-Zzstd" };
    let number = format!("-z{level}");
    let words = ["dpkg-deb", program, &number, "--root-owner-group", "--build", "tree"];
    let (stage, out) = debian_tree(dir, payload, "dpkg-deb")?;
    let whole = [&words[..], &[text(&out)]].concat();
    let mut ways = vec![Way::new("dpkg-deb", &stage, &out, "deb", &whole)];
    let bare = ("gfxpack --no-md5sums", "deb-no-md5sums");
    ways.push(ours(dir, payload, bare, (codec, level), "dpkg-deb")?);
    let (stage, out) = debian_tree(dir, payload, "dpkg-deb-and-sums")?;
    let script = format!(
        "(cd tree && find usr -type f -print0 | xargs -0 md5sum > DEBIAN/md5sums) && \
         {} \"$0\"",
        words.join(" ")
    );
    let whole = ["sh", "-ec", &script, text(&out)];
    ways.push(Way::new("md5sum, dpkg-deb", &stage, &out, "deb", &whole));
    ways.push(ours(dir, payload, ("gfxpack", "deb"), (codec, level), "md5sum, dpkg-deb")?);

    // cargo-deb has one level of xz, and no zstd.
    let cargo_deb = root().join(CARGO_DEB);
    if codec == "xz" && cargo_deb.is_file() {
        let (krate, out) = fresh(dir, "cargo-deb")?;
        fs::create_dir(krate.join("src"))?;
        fs::write(krate.join("src/lib.rs"), "")?;
        fs::hard_link(payload, krate.join("payload"))?;
        let manifest = "[package]\nname = \"bench\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\
                        license = \"MIT\"\ndescription = \"one large file\"\n[workspace]\n\
                        [package.metadata.deb]\nmaintainer = \"Nobody <nobody@example.org>\"\n\
                        assets = [[\"payload\", \"usr/share/bench/\", \"644\"]]\n";
        fs::write(krate.join("Cargo.toml"), manifest)?;
        let words = [text(&cargo_deb), "deb", "--no-build", "--fast", "--output", text(&out)];
        ways.push(Way::new("cargo-deb --fast", &krate, &out, "deb", &words));
    }
    let packed = if codec == "xz" { "xz" } else { "zstd" };
    ways.extend(nfpm(dir, payload, "deb", packed)?);
    Ok(ways)
}

/// What dpkg-deb packs, in a directory of that name, and where to.
fn debian_tree(dir: &Path, payload: &Path, name: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
    let (stage, out) = fresh(dir, name)?;
    let place = stage.join("tree/usr/share/bench");
    fs::create_dir_all(&place)?;
    fs::create_dir_all(stage.join("tree/DEBIAN"))?;
    fs::hard_link(payload, place.join("payload"))?;
    let control = "Package: bench\nVersion: 1.0-1\nArchitecture: all\n\
                   Maintainer: Nobody <nobody@example.org>\nDescription: one large file\n";
    fs::write(stage.join("tree/DEBIAN/control"), control)?;
    Ok((stage, out))
}

fn rpms(dir: &Path, payload: &Path) -> anyhow::Result<Vec<Way>> {
    let mut ways = Vec::new();
    let (tree, out) = fresh(dir, "rpmbuild")?;
    let spec = format!(
        "Name: bench\nVersion: 1.0\nRelease: 1\nSummary: One large file\nLicense: MIT\n\
         BuildArch: noarch\n%description\nOne large file.\n%install\n\
         mkdir -p %{{buildroot}}/usr/share/bench\n\
         ln {} %{{buildroot}}/usr/share/bench/payload\n%files\n/usr/share/bench/payload\n",
        payload.display()
    );
    fs::write(tree.join("bench.spec"), spec)?;
    let top = format!("_topdir {}", tree.display());
    let into = format!("_rpmdir {}", out.display());
    let words = [
        "rpmbuild",
        "-bb",
        "--quiet",
        "--define",
        &top,
        "--define",
        &into,
        "--define",
        "_binary_payload w3T0.zstdio",
        "--define",
        "__os_install_post %{nil}",
        "bench.spec",
    ];
    ways.push(Way::new("rpmbuild", &tree, &out, "rpm", &words));
    ways.push(ours(dir, payload, ("gfxpack", "rpm"), ("zst", 3), "rpmbuild")?);
    ways.extend(nfpm(dir, payload, "rpm", "zstd:3")?);
    Ok(ways)
}

/// nfpm, where it was installed.
fn nfpm(
    dir: &Path,
    payload: &Path,
    format: &'static str,
    compression: &str,
) -> anyhow::Result<Option<Way>> {
    let program = root().join(NFPM);
    if !program.is_file() {
        return Ok(None);
    }
    let (tree, out) = fresh(dir, "nfpm")?;
    let settings = format!(
        "name: bench\narch: all\nversion: 1.0.0\nmaintainer: Nobody <nobody@example.org>\n\
         description: one large file\nlicense: MIT\ncontents:\n- src: {}\n  \
         dst: /usr/share/bench/payload\n{format}:\n  compression: {compression}\n",
        payload.display()
    );
    fs::write(tree.join("nfpm.yaml"), settings)?;
    let words = [
        text(&program),
        "package",
        "--config",
        "nfpm.yaml",
        "--packager",
        format,
        "--target",
        text(&out),
    ];
    Ok(Some(Way::new("nfpm", &tree, &out, format, &words)))
}
