//! Rewrites container images: the files in their layers, and all digests that follow.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Take, Write};
use std::path::{Path, PathBuf};

use ::tar::{Builder, EntryType, Header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Kind, Package, Rewriter, archive};
use crate::compress::Compression;
use crate::output::{Output, Packed, hex};
use crate::read::{open as open_file, unpacked};

/// Most bytes of an index, a manifest or a configuration.
const JSON_MAX: u64 = 64 << 20;
/// Kinds of manifests that say something of another one by its digest, which changes.
const ABOUT_OTHERS: &str = "vnd.docker.reference.digest";

/// An image in a tar archive, as skopeo's `oci-archive`, that is to be written again.
#[derive(Debug)]
pub(super) struct Image {
    path: PathBuf,
    /// Where files are: offset and size.
    files: BTreeMap<String, (u64, u64)>,
}

/// What is in the new image.
enum Blob {
    Kept,
    Json(Vec<u8>),
    Layer(Packed),
}

pub(super) fn open(path: &Path) -> io::Result<Package> {
    let mut archive = ::tar::Archive::new(BufReader::new(open_file(path)?));
    let mut files = BTreeMap::new();
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        if entry.header().entry_type() == EntryType::Regular {
            let name = super::plain(&entry.path_bytes()).display().to_string();
            files.insert(name, (entry.raw_file_position(), entry.size()));
        }
    }
    if !files.contains_key("index.json") || !files.contains_key("oci-layout") {
        return Err(io::Error::other("it is no image in the form of OCI"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.strip_suffix(".oci.tar").unwrap_or(&name).to_owned();
    Ok(Package {
        path: path.to_owned(),
        file: [name.clone(), ".oci.tar".to_owned()],
        name,
        version: String::new(),
        suffix: String::new(),
        provides: Vec::new(),
        kind: Kind::Image(Image { path: path.to_owned(), files }),
    })
}

impl Image {
    /// Source: OCI image specification 1.1.
    pub(super) fn write(
        &self,
        output: Option<&mut Output>,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> io::Result<()> {
        let mut index = self.json("index.json")?;
        let (blobs, known) = (BTreeMap::new(), BTreeMap::new());
        let beside = output.as_deref();
        let mut walk = Walk { image: self, output: beside, threads, rewriter, blobs, known };
        walk.index(&mut index, true)?;
        let mut blobs = walk.blobs;
        let Some(output) = output else { return Ok(()) };
        let mut tar = Builder::new(BufWriter::new(output));
        blobs.insert("index.json".to_owned(), Blob::Json(index.to_string().into_bytes()));
        blobs.insert("oci-layout".to_owned(), Blob::Kept);
        for (name, blob) in blobs.into_iter().rev() {
            match blob {
                Blob::Kept => {
                    let part = self.part(&name)?;
                    put(&mut tar, &name, part.limit(), part)
                }
                Blob::Json(text) => put(&mut tar, &name, text.len() as u64, text.as_slice()),
                Blob::Layer(Packed { file, size, .. }) => put(&mut tar, &name, size, file),
            }?;
        }
        tar.into_inner()?.flush()
    }

    fn part(&self, name: &str) -> io::Result<Take<File>> {
        let missing = || io::Error::other(format!("it has no `{name}`"));
        let (at, size) = *self.files.get(name).ok_or_else(missing)?;
        let mut file = open_file(&self.path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(file.take(size))
    }

    fn json(&self, name: &str) -> io::Result<Value> {
        Ok(serde_json::from_reader(BufReader::new(self.part(name)?.take(JSON_MAX)))?)
    }
}

/// A walk through an image.
struct Walk<'a, 'r> {
    image: &'a Image,
    /// Beside it, layers are written; without it, nowhere.
    output: Option<&'a Output>,
    threads: usize,
    rewriter: &'a mut Rewriter<'r>,
    /// By path.
    blobs: BTreeMap<String, Blob>,
    /// By path of a layer, the new one's.
    known: BTreeMap<String, String>,
}

impl Walk<'_, '_> {
    fn index(&mut self, index: &mut Value, is_first: bool) -> io::Result<()> {
        let Some(manifests) = index.get_mut("manifests").and_then(Value::as_array_mut) else {
            return Err(io::Error::other("its index lists no manifests"));
        };
        manifests.retain(|it| {
            it["annotations"].get(ABOUT_OTHERS).is_none() && it.get("subject").is_none()
        });
        for descriptor in manifests {
            let name = path_of(descriptor)?;
            // Images for other machines may be listed and not be there.
            if !self.image.files.contains_key(&name) {
                continue;
            }
            let mut value = self.image.json(&name)?;
            if is_first && value.get("manifests").is_some() {
                self.index(&mut value, false)?;
            } else {
                self.manifest(&mut value)?;
            }
            self.text(descriptor, &value);
        }
        Ok(())
    }

    /// Puts the changed text of a blob in the place of the present one.
    fn text(&mut self, descriptor: &mut Value, value: &Value) {
        let bytes = value.to_string().into_bytes();
        let digest = hex(&Sha256::digest(&bytes));
        descriptor["digest"] = format!("sha256:{digest}").into();
        descriptor["size"] = bytes.len().into();
        forget(descriptor, "data");
        self.blobs.insert(format!("blobs/sha256/{digest}"), Blob::Json(bytes));
    }

    fn manifest(&mut self, manifest: &mut Value) -> io::Result<()> {
        let config_name = path_of(&manifest["config"])?;
        let is_image = manifest["config"]["mediaType"]
            .as_str()
            .is_some_and(|it| it.contains("image.config") || it.contains("container.image"));
        let Some(layers) = manifest["layers"].as_array_mut().filter(|_| is_image) else {
            return Err(io::Error::other("something in it is no image"));
        };
        let (mut config, mut is_changed) = (self.image.json(&config_name)?, false);
        for (index, layer) in layers.iter_mut().enumerate() {
            let Some(packed) = self.layer(layer)? else { continue };
            layer["digest"] = format!("sha256:{}", packed.sha256).into();
            layer["size"] = packed.size.into();
            // Tables of contents of zstd:chunked and eStargz, and digests of what was there.
            forget(layer, "annotations");
            forget(layer, "data");
            let diffs = config.get_mut("rootfs").and_then(|it| it.get_mut("diff_ids"));
            let diff = diffs.and_then(|it| it.get_mut(index));
            let diff = diff.ok_or_else(|| io::Error::other("its configuration lacks layers"))?;
            *diff = format!("sha256:{}", packed.plain_sha256).into();
            is_changed = true;
        }
        if is_changed && let Some(history) = config.get_mut("history").and_then(Value::as_array_mut)
        {
            let created = history.last().map(|it| it["created"].clone()).unwrap_or_default();
            history.push(json!({
                "created": created, "created_by": "gfxpack slim", "empty_layer": true,
                "comment": "device code for other GPUs was taken out of the layers",
            }));
        }
        if is_changed {
            self.text(&mut manifest["config"], &config);
        } else {
            self.blobs.insert(config_name, Blob::Kept);
        }
        Ok(())
    }

    /// What a layer becomes; `None` if it stays.
    fn layer(&mut self, layer: &Value) -> io::Result<Option<&Packed>> {
        let name = path_of(layer)?;
        if !self.known.contains_key(&name) {
            let kind = layer["mediaType"].as_str().unwrap_or_default();
            let (codec, compression) = match kind.rsplit(['.', '+']).next() {
                Some("gzip") => ("gz", Some(Compression::Gz { level: 6 })),
                Some("zstd") => ("zst", Some(Compression::Zst { level: 3 })),
                Some("tar") => ("tar", None),
                _ => return Err(io::Error::other(format!("a layer is of the kind `{kind}`"))),
            };
            let from = BufReader::with_capacity(256 << 10, self.image.part(&name)?);
            let from = unpacked(codec, from, u64::MAX)?;
            let mut new = (name.clone(), Blob::Kept);
            if let Some(output) = self.output {
                let (packed, changes) = Packed::new(output, compression, self.threads, |out| {
                    archive::rewrite(from, out, self.rewriter)
                })?;
                if !changes.digests.is_empty() || !changes.removed.is_empty() {
                    new = (format!("blobs/sha256/{}", packed.sha256), Blob::Layer(packed));
                }
            } else {
                archive::rewrite(from, &mut io::sink(), self.rewriter)?;
            }
            self.known.insert(name.clone(), new.0.clone());
            self.blobs.insert(new.0, new.1);
        }
        Ok(match self.blobs.get(&self.known[&name]) {
            Some(Blob::Layer(packed)) => Some(packed),
            _ => None,
        })
    }
}

/// Takes out what a descriptor says of a blob that is no more.
fn forget(descriptor: &mut Value, field: &str) {
    descriptor.as_object_mut().and_then(|fields| fields.remove(field));
}

/// Where the blob of a descriptor is.
fn path_of(descriptor: &Value) -> io::Result<String> {
    let digest = descriptor["digest"].as_str().and_then(|it| it.strip_prefix("sha256:"));
    let digest = digest.filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let blob = digest.map(|digest| format!("blobs/sha256/{digest}"));
    blob.ok_or_else(|| io::Error::other("a digest is no SHA-256"))
}

fn put(tar: &mut Builder<impl Write>, name: &str, size: u64, bytes: impl Read) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes)
}
