//! Reads an OCI image layout in a tar archive: checks every blob against its
//! digest, every descriptor against its blob, and the files of all layers.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::archive::{self, ArchiveFile, Root};
use super::outcome::{Outcome, PackageDescription, Stop, damaged};
use super::readers::{Hashed, Limited};

/// Maximum size of JSON, in bytes.
///
/// Source: OCI distribution specification 1.1, "Pushing Manifests": registries
/// take 4 MiB at least.
const JSON_MAX: u64 = 16 << 20;
/// Maximum number of JSON blobs in an image.
const BLOBS_MAX: usize = 64;

/// The parts of a layout that were read.
#[derive(Default)]
struct Layout {
    version: Option<Value>,
    index: Option<Value>,
    blobs: BTreeMap<String, Blob>,
}

/// A blob that was read.
struct Blob {
    size: u64,
    content: Content,
}

enum Content {
    Json(Value),
    /// A layer, with the digest of its uncompressed data.
    Layer {
        diff_id: String,
    },
}

/// Source: OCI image specification 1.1, image-layout.md.
pub(super) fn check(
    file: impl BufRead,
    path: &Path,
    outcome: &mut Outcome<'_, '_>,
) -> Result<(), Stop> {
    let mut layout = Layout::default();
    archive::files("the archive", Root::Anywhere, file, outcome, |path, found, outcome| {
        let ArchiveFile::File(bytes) = found else {
            outcome.finding(format!("`/{path}` is a link"));
            return Ok(());
        };
        match path.strip_prefix("blobs/sha256/") {
            Some(digest) => {
                let blob = blob(digest, bytes, &layout, outcome)?;
                layout.blobs.insert(digest.to_owned(), blob);
            }
            None if path == "oci-layout" => layout.version = Some(json(path, bytes)?),
            None if path == "index.json" => layout.index = Some(json(path, bytes)?),
            None => outcome.finding(format!("`/{path}` is no part of an image")),
        }
        Ok(())
    })?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    outcome.report.about =
        name.map(|name| PackageDescription { name, ..PackageDescription::default() });
    layout.check(outcome);
    Ok(())
}

fn json(name: &str, bytes: &mut dyn Read) -> Result<Value, Stop> {
    let mut text = Vec::new();
    let read = Limited::new(bytes, JSON_MAX).read_to_end(&mut text);
    read.map_err(|error| damaged(name, &error))?;
    serde_json::from_slice(&text).map_err(|error| damaged(name, &error))
}

/// Reads a blob, which is JSON or a layer.
fn blob(
    digest: &str,
    bytes: &mut dyn Read,
    layout: &Layout,
    outcome: &mut Outcome<'_, '_>,
) -> Result<Blob, Stop> {
    let failed = |error: io::Error| damaged(digest, &error);
    let mut hashed = Hashed::new(bytes, Sha256::new());
    let mut buffered = BufReader::new(&mut hashed);
    let codec = match *buffered.fill_buf().map_err(failed)? {
        [b'{', ..] => None,
        [0x1f, 0x8b, ..] => Some("gz"),
        [0x28, 0xb5, ..] => Some("zst"),
        _ => Some("tar"),
    };
    let content = match codec {
        Some(codec) => Content::Layer { diff_id: layer(digest, codec, &mut buffered, outcome)? },
        None if layout.blobs.len() < BLOBS_MAX => Content::Json(json(digest, &mut buffered)?),
        None => return Err(Stop::Damaged(format!("it has more than {BLOBS_MAX} blobs"))),
    };
    io::copy(&mut buffered, &mut io::sink()).map_err(failed)?;
    let (sum, size) = hashed.finish();
    if sum != digest {
        outcome.finding(format!("the blob `{digest}` has another digest"));
    }
    Ok(Blob { size, content })
}

/// Passes the files of a layer to the visitor. Returns the digest of the
/// uncompressed layer.
fn layer(
    digest: &str,
    codec: &str,
    bytes: &mut dyn BufRead,
    outcome: &mut Outcome<'_, '_>,
) -> Result<String, Stop> {
    let stream: Box<dyn Read + '_> = match codec {
        "tar" => Box::new(bytes),
        codec => {
            archive::unpacked(codec, bytes, u64::MAX).map_err(|error| damaged(digest, &error))?
        }
    };
    let mut hashed = Hashed::new(stream, Sha256::new());
    archive::files("a layer", Root::System, &mut hashed, outcome, archive::show)?;
    Ok(hashed.finish().0)
}

impl Layout {
    /// Follows all descriptors, beginning at the index.
    fn check(mut self, outcome: &mut Outcome<'_, '_>) {
        let version =
            self.version.as_ref().and_then(|version| version["imageLayoutVersion"].as_str());
        if !version.is_some_and(|version| version.starts_with("1.")) {
            outcome.finding("there is no `oci-layout` of version 1 in it");
        }
        let index = self.index.take().unwrap_or_default();
        let manifests = array(&index["manifests"]);
        if manifests.is_empty() {
            outcome.finding("there is no `index.json` with an image in it");
        }
        for descriptor in manifests {
            let Some(manifest) = self.described(descriptor, outcome).and_then(Content::json) else {
                continue;
            };
            let title = &manifest["annotations"]["org.opencontainers.image.title"];
            let summary = &manifest["annotations"]["org.opencontainers.image.description"];
            if let (Some(title), Some(about)) = (title.as_str(), &mut outcome.report.about) {
                title.clone_into(&mut about.name);
                summary.as_str().unwrap_or_default().clone_into(&mut about.summary);
            }
            let config = self.described(&manifest["config"], outcome).and_then(Content::json);
            let config = config.unwrap_or_default();
            let layers: Vec<Option<String>> = array(&manifest["layers"])
                .iter()
                .map(|layer| self.described(layer, outcome).and_then(Content::layer))
                .collect();
            let listed = array(&config["rootfs"]["diff_ids"]);
            let listed: Vec<Option<String>> = listed.iter().map(digest_of).collect();
            if listed != layers {
                outcome.finding("its layers do not unpack to what its configuration says");
            }
        }
        for digest in self.blobs.keys() {
            outcome.finding(format!("the blob `{digest}` is part of no image"));
        }
    }

    /// The content that a descriptor refers to; each can be taken once.
    fn described(&mut self, descriptor: &Value, outcome: &mut Outcome<'_, '_>) -> Option<Content> {
        let found = digest_of(&descriptor["digest"]).and_then(|digest| self.blobs.remove(&digest));
        let Some(blob) = found else {
            outcome.finding(format!("there is no blob {}", descriptor["digest"]));
            return None;
        };
        if descriptor["size"].as_u64() != Some(blob.size) {
            outcome.finding(format!("the blob {} has another size", descriptor["digest"]));
        }
        Some(blob.content)
    }
}

impl Content {
    fn json(self) -> Option<Value> {
        match self {
            Self::Json(value) => Some(value),
            Self::Layer { .. } => None,
        }
    }

    fn layer(self) -> Option<String> {
        match self {
            Self::Layer { diff_id } => Some(diff_id),
            Self::Json(_) => None,
        }
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn digest_of(value: &Value) -> Option<String> {
    value.as_str()?.strip_prefix("sha256:").map(str::to_owned)
}
