//! Writes a package spec as an image for containers: an OCI image layout with
//! one layer, in a tar archive.

use std::io;

use gfxpack_model::package::PackageSpec;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::compress::Compression;
use crate::contents::Contents;
use crate::output::{Output, Packed, hex};
use crate::tarball::{self, Tarball};
use crate::text::rfc3339;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Maximum length of a tag.
///
/// Source: OCI distribution specification 1.1, "Pulling manifests".
const TAG_MAX: usize = 128;

/// Writes `spec` as an image, in the form that skopeo calls `oci-archive`.
/// Version and revision are the image's tag. Its layer has no entries for
/// directories: one would replace a link such as `/opt/rocm` in the image below.
///
/// Source: OCI image specification 1.1.
pub(crate) fn write(
    spec: &PackageSpec,
    contents: &Contents<'_>,
    output: &mut Output,
    compression: Compression,
    threads: usize,
) -> io::Result<()> {
    let (mut layer, ()) = Packed::new(output, Some(compression), threads, |out| {
        tarball::files(out, spec, contents).map(drop)
    })?;
    let config = Blob::json(CONFIG, &config(spec, &layer.plain_sha256));
    let descriptor = descriptor(LAYER, &layer.sha256, layer.size);
    let manifest = Blob::json(MANIFEST, &manifest(spec, &config, &descriptor));
    let layout = json!({ "imageLayoutVersion": "1.0.0" }).to_string();

    let mut archive = Tarball::new(output, spec.source_date_epoch);
    archive.bytes("oci-layout", layout.as_bytes())?;
    archive.bytes("index.json", index(spec, &manifest).to_string().as_bytes())?;
    archive.bytes(&manifest.path(), &manifest.bytes)?;
    archive.bytes(&config.path(), &config.bytes)?;
    archive.scratch(&blob_path(&layer.sha256), &mut layer.file, layer.size)?;
    archive.finish()?;
    Ok(())
}

/// A blob in memory.
struct Blob {
    bytes: Vec<u8>,
    sha256: String,
    descriptor: Value,
}

impl Blob {
    fn json(media_type: &str, value: &Value) -> Self {
        let bytes = value.to_string().into_bytes();
        let sha256 = hex(&Sha256::digest(&bytes));
        let descriptor = descriptor(media_type, &sha256, bytes.len() as u64);
        Self { bytes, sha256, descriptor }
    }

    fn path(&self) -> String {
        blob_path(&self.sha256)
    }
}

fn blob_path(sha256: &str) -> String {
    format!("blobs/sha256/{sha256}")
}

fn descriptor(media_type: &str, sha256: &str, size: u64) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{sha256}"), "size": size })
}

/// The only platform that ROCm supports.
const ARCHITECTURE: &str = "amd64";
const OS: &str = "linux";

/// Source: OCI image specification 1.1, config.md.
fn config(spec: &PackageSpec, diff_id: &str) -> Value {
    let created = rfc3339(spec.source_date_epoch);
    json!({
        "created": created,
        "author": spec.maintainer,
        "architecture": ARCHITECTURE,
        "os": OS,
        "config": { "Labels": annotations(spec) },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{diff_id}")] },
        "history": [{ "created": created, "created_by": "gfxpack", "comment": spec.summary }],
    })
}

fn manifest(spec: &PackageSpec, config: &Blob, layer: &Value) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.descriptor,
        "layers": [layer],
        "annotations": annotations(spec),
    })
}

fn index(spec: &PackageSpec, manifest: &Blob) -> Value {
    let mut descriptor = manifest.descriptor.clone();
    descriptor["platform"] = json!({ "architecture": ARCHITECTURE, "os": OS });
    descriptor["annotations"] = json!({ "org.opencontainers.image.ref.name": tag(spec) });
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor] })
}

/// Version and revision with only the characters that tags may have.
fn tag(spec: &PackageSpec) -> String {
    let full = format!("{}-{}", spec.version, spec.revision);
    let takes = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    full.chars().map(|c| if takes(c) { c } else { '_' }).take(TAG_MAX).collect()
}

/// Source: OCI image specification 1.1, annotations.md.
fn annotations(spec: &PackageSpec) -> Value {
    let version = format!("{}-{}", spec.version, spec.revision);
    let known = [
        ("created", rfc3339(spec.source_date_epoch)),
        ("authors", spec.maintainer.clone()),
        ("url", spec.homepage.clone()),
        ("version", version),
        ("licenses", spec.license.clone()),
        ("title", spec.name.clone()),
        ("description", spec.summary.clone()),
    ];
    let known = known.into_iter().filter(|(_, value)| !value.is_empty());
    let named =
        known.map(|(name, value)| (format!("org.opencontainers.image.{name}"), value.into()));
    Value::Object(named.collect::<Map<_, _>>())
}
