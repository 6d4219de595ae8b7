//! Rewrites container images: the files in their layers, and all digests that follow.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Take, Write};
use std::path::{Path, PathBuf};

use ::tar::{Builder, EntryType, Header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Rewriter, archive};
use crate::compress::Compression;
use crate::error::Error;
use crate::output::{Hashing, Output, Written, hex};
use crate::read::{open, unpacked};

/// Most bytes of an index, a manifest or a configuration.
const JSON_MAX: u64 = 64 << 20;
/// Kinds of manifests that say something of another one by its digest, which changes.
const ABOUT_OTHERS: &str = "vnd.docker.reference.digest";

/// An image in a tar archive, as skopeo's `oci-archive`, that is to be written again.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    /// Where files are: offset and size.
    files: BTreeMap<String, (u64, u64)>,
    pub(super) name: String,
    suffix: String,
}

/// What is in the new image, by path.
#[derive(Default)]
struct Blobs {
    /// Those that changed: JSON.
    texts: BTreeMap<String, Vec<u8>>,
    /// Layers that changed, and their sizes.
    layers: BTreeMap<String, (File, u64)>,
    /// Those that stay.
    kept: BTreeMap<String, (u64, u64)>,
    /// By path of a layer: its new digest and size, and that of its archive; `None` if it stays.
    known: BTreeMap<String, Option<(String, u64, String)>>,
}

impl Image {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut archive = ::tar::Archive::new(BufReader::new(open(path)?));
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
        Ok(Self { path: path.to_owned(), files, name, suffix: String::new() })
    }

    pub(super) fn rename(&mut self, suffix: &str) {
        suffix.clone_into(&mut self.suffix);
    }

    pub(super) fn new_version(&self) -> String {
        self.suffix.clone()
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}{}.oci.tar", self.name, self.suffix)
    }

    pub(super) fn try_out(&self, rewriter: &mut Rewriter<'_>) -> io::Result<()> {
        self.rewrite(None, 1, rewriter).map(drop)
    }

    /// Source: OCI image specification 1.1.
    pub(super) fn write(
        &self,
        dir: &Path,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> Result<Written, Error> {
        let mut output = Output::create(dir, &self.file_name())?;
        let mut write = || -> io::Result<()> {
            let (index, mut blobs) = self.rewrite(Some(&output), threads, rewriter)?;
            let mut tar = Builder::new(BufWriter::new(&mut output));
            put(
                &mut tar,
                "oci-layout",
                self.bytes("oci-layout")?.len() as u64,
                self.part("oci-layout")?,
            )?;
            put(&mut tar, "index.json", index.len() as u64, &*index)?;
            for (name, text) in &blobs.texts {
                put(&mut tar, name, text.len() as u64, text.as_slice())?;
            }
            for (name, (layer, size)) in &mut blobs.layers {
                layer.seek(SeekFrom::Start(0))?;
                put(&mut tar, name, *size, layer)?;
            }
            for (name, (_, size)) in &blobs.kept {
                put(&mut tar, name, *size, self.part(name)?)?;
            }
            tar.into_inner()?.flush()
        };
        write().map_err(|error| Error::rewrite(&self.path, error))?;
        output.commit()
    }

    /// The new index, and all that it leads to.
    fn rewrite(
        &self,
        output: Option<&Output>,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> io::Result<(Vec<u8>, Blobs)> {
        let mut blobs = Blobs::default();
        let mut index = self.json("index.json")?;
        let mut layers = Layers { image: self, output, threads, rewriter, blobs: &mut blobs };
        layers.index(&mut index, true)?;
        Ok((index.to_string().into_bytes(), blobs))
    }

    fn part(&self, name: &str) -> io::Result<Take<File>> {
        let missing = || io::Error::other(format!("it has no `{name}`"));
        let (at, size) = *self.files.get(name).ok_or_else(missing)?;
        let mut file = open(&self.path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(file.take(size))
    }

    fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.part(name)?.take(JSON_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn json(&self, name: &str) -> io::Result<Value> {
        Ok(serde_json::from_slice(&self.bytes(name)?)?)
    }
}

/// A walk through an image.
struct Layers<'a, 'r, 's> {
    image: &'a Image,
    /// Beside it, layers are written; without it, nowhere.
    output: Option<&'a Output>,
    threads: usize,
    rewriter: &'a mut Rewriter<'r>,
    blobs: &'s mut Blobs,
}

impl Layers<'_, '_, '_> {
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
        self.blobs.texts.insert(format!("blobs/sha256/{digest}"), bytes);
    }

    fn manifest(&mut self, manifest: &mut Value) -> io::Result<()> {
        let config_name = path_of(&manifest["config"])?;
        let is_image = manifest["config"]["mediaType"]
            .as_str()
            .is_some_and(|it| it.contains("image.config") || it.contains("container.image"));
        let Some(layers) = manifest["layers"].as_array_mut().filter(|_| is_image) else {
            return Err(io::Error::other("something in it is no image"));
        };
        let mut config = self.image.json(&config_name)?;
        let mut is_changed = false;
        for (index, layer) in layers.iter_mut().enumerate() {
            let Some((digest, size, archive)) = self.layer(layer)? else { continue };
            layer["digest"] = format!("sha256:{digest}").into();
            layer["size"] = size.into();
            // Tables of contents of zstd:chunked and eStargz, and digests of what was there.
            forget(layer, "annotations");
            forget(layer, "data");
            let diffs = config.get_mut("rootfs").and_then(|it| it.get_mut("diff_ids"));
            let diff = diffs.and_then(|it| it.get_mut(index));
            let diff = diff.ok_or_else(|| io::Error::other("its configuration lacks layers"))?;
            *diff = format!("sha256:{archive}").into();
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
            let at = self.image.files[&config_name];
            self.blobs.kept.insert(config_name, at);
        }
        Ok(())
    }

    /// A layer's new digest and size, and its archive's digest; `None` if it stays.
    fn layer(&mut self, layer: &Value) -> io::Result<Option<(String, u64, String)>> {
        let name = path_of(layer)?;
        if let Some(known) = self.blobs.known.get(&name) {
            return Ok(known.clone());
        }
        let kind = layer["mediaType"].as_str().unwrap_or_default();
        let (codec, compression) = match kind.rsplit(['.', '+']).next() {
            Some("gzip") => ("gz", Some(Compression::Gz { level: 6 })),
            Some("zstd") => ("zst", Some(Compression::Zst { level: 3 })),
            Some("tar") => ("tar", None),
            _ => return Err(io::Error::other(format!("a layer is of the kind `{kind}`"))),
        };
        let from = BufReader::with_capacity(256 << 10, self.image.part(&name)?);
        let from = unpacked(codec, from, u64::MAX)?;
        let Some(output) = self.output else {
            archive::rewrite(from, &mut io::sink(), self.rewriter)?;
            self.blobs.known.insert(name, None);
            return Ok(None);
        };
        let packed = Hashing::new(BufWriter::new(output.scratch()?));
        let (changes, archive, (buffered, digest, size)) = match compression {
            Some(compression) => {
                let mut out = Hashing::new(compression.encoder(packed, self.threads)?);
                let changes = archive::rewrite(from, &mut out, self.rewriter)?;
                let (encoder, archive, _) = out.finish();
                (changes, archive, encoder.finish()?.finish())
            }
            None => {
                let mut packed = packed;
                let changes = archive::rewrite(from, &mut packed, self.rewriter)?;
                let finished = packed.finish();
                (changes, finished.1.clone(), finished)
            }
        };
        if changes.digests.is_empty() && changes.removed.is_empty() {
            self.blobs.kept.insert(name.clone(), self.image.files[&name]);
            self.blobs.known.insert(name, None);
            return Ok(None);
        }
        let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.blobs.layers.insert(format!("blobs/sha256/{digest}"), (file, size));
        let new = Some((digest, size, archive));
        self.blobs.known.insert(name, new.clone());
        Ok(new)
    }
}

/// Takes out what a descriptor says of a blob that is no more.
fn forget(descriptor: &mut Value, field: &str) {
    if let Some(fields) = descriptor.as_object_mut() {
        fields.remove(field);
    }
}

/// Where the blob of a descriptor is.
fn path_of(descriptor: &Value) -> io::Result<String> {
    let digest = descriptor["digest"].as_str().and_then(|it| it.strip_prefix("sha256:"));
    let is_plain = |it: &&str| it.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digest =
        digest.filter(is_plain).ok_or_else(|| io::Error::other("a digest is no SHA-256"))?;
    Ok(format!("blobs/sha256/{digest}"))
}

fn put(tar: &mut Builder<impl Write>, name: &str, size: u64, bytes: impl Read) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes)
}
