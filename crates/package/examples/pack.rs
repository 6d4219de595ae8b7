//! Packs one file as `dist` packs a kdb, for `cargo xtask bench package`.
//!
//! `pack deb|deb-no-md5sums|rpm FILE DIR xz|zst LEVEL`

use std::error::Error;
use std::path::Path;

use gfxpack_model::package::{ChangelogEntry, Content, PackageFile, PackageSpec};
use gfxpack_package::Compression;
use gfxpack_package::deb::{self, DebOptions};
use gfxpack_package::rpm::{self, RpmOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [format, file, dir, codec, level] = words.as_slice() else {
        return Err("pack deb|deb-no-md5sums|rpm FILE DIR xz|zst LEVEL".into());
    };
    let level = level.parse()?;
    let compression = match codec.as_str() {
        "xz" => Compression::Xz { level },
        "zst" => Compression::Zst { level },
        other => return Err(format!("`{other}` is no codec here").into()),
    };
    let threads = std::thread::available_parallelism()?.get();
    let (spec, dir) = (spec(file), Path::new(dir));
    match format.as_str() {
        "deb" | "deb-no-md5sums" => {
            let md5sums = format == "deb";
            deb::write(&spec, dir, &DebOptions { compression, threads, md5sums })?
        }
        "rpm" => rpm::write(&spec, dir, &RpmOptions { compression, threads })?,
        other => return Err(format!("`{other}` is no format here").into()),
    };
    Ok(())
}

fn spec(file: &str) -> PackageSpec {
    PackageSpec {
        name: "bench".to_owned(),
        version: "1.0".to_owned(),
        revision: "1".to_owned(),
        summary: "one large file".to_owned(),
        description: "One large file.".to_owned(),
        license: "MIT".to_owned(),
        homepage: String::new(),
        maintainer: "Nobody <nobody@example.org>".to_owned(),
        section: "libs".to_owned(),
        relations: Vec::new(),
        deb_fields: Vec::new(),
        files: vec![PackageFile {
            path: "/usr/share/bench/payload".to_owned(),
            content: Content::File(file.into()),
            mode: 0o644,
        }],
        copyright: "Nobody's.\n".to_owned(),
        changelog: vec![ChangelogEntry {
            version: "1.0-1".to_owned(),
            date: 0,
            changes: vec!["First.".to_owned()],
        }],
        source_date_epoch: 0,
    }
}
