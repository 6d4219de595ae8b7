//! Makes the header of an .rpm: first with the library, then with the entries
//! that depend on the payload.

use std::collections::BTreeSet;
use std::path::Path;

use ::rpm::{
    BuildConfig, Dependency, FileOptions, Header, HeaderEntry, IndexData, IndexSignatureTag,
    IndexTag, PackageBuilder, PackageMetadata, RpmFormat, SignatureHeaderBuilder, Timestamp,
};
use gfxpack_model::package::{PackageSpec, Relation, RelationKind};
use gfxpack_model::{Error, Result};

use super::payload::{is_named, mode, total_size};
use crate::compress::Compression;
use crate::contents::Entries;
use crate::error::writing;
use crate::output::Packed;
use crate::signing::{Sign, packets};
use crate::text;

/// The build host in the header; the real one would make bytes differ.
const BUILD_HOST: &str = "localhost";

/// Old tools sort packages by it, and rpmlint complains if it is missing.
const GROUP: &str = "System/Libraries";

/// The inputs of the header, except for the payload.
pub(super) struct Layout<'a> {
    pub(super) spec: &'a PackageSpec,
    pub(super) entries: &'a Entries<'a>,
    pub(super) license: &'a str,
    pub(super) compression: Compression,
    pub(super) path: &'a Path,
}

impl Layout<'_> {
    /// The lead, the signature header and the main header for a finished payload.
    pub(super) fn metadata(
        &self,
        payload: &Packed,
        digests: &[Option<String>],
        signer: Option<&dyn Sign>,
    ) -> Result<PackageMetadata> {
        let laid_out = self.without_payload()?;
        let listed = laid_out.get_file_paths().map_err(|e| self.failed(e))?;
        let ours = self.entries.keys().map(Path::new);
        assert!(listed.iter().map(|path| &**path).eq(ours), "header and payload list files alike");

        let replaced = self.payload_entries(payload, digests);
        let tags: BTreeSet<u32> = replaced.iter().map(|entry| entry.tag).collect();
        let stale: [u32; 2] = [IndexTag::RPMTAG_SIZE as u32, IndexTag::RPMTAG_FILESIZES as u32];
        let region = IndexTag::RPMTAG_HEADERIMMUTABLE;
        let kept = laid_out.header.get_all_entries().map_err(|e| self.failed(e))?;
        let kept = kept
            .into_iter()
            .filter(|(tag, _)| !tags.contains(tag) && !stale.contains(tag) && *tag != region as u32)
            .map(|(tag, data)| HeaderEntry::new(tag, data));
        let header = Header::from_entries(kept.chain(replaced), region);
        let metadata = PackageMetadata { header, ..laid_out };

        let (metadata, bytes) = digested(metadata, payload.size).map_err(|e| self.failed(e))?;
        let Some(signer) = signer else { return Ok(metadata) };
        let signature = self.signed(&metadata.signature, &signer.detached(&bytes)?)?;
        Ok(PackageMetadata { signature, ..metadata })
    }

    /// The signature header with a signature of the main header added.
    ///
    /// The library could do this only with one of its OpenPGP implementations,
    /// which would add a hundred crates.
    ///
    /// Source: rpm 4.18, docs/manual/signatures_digests.md.
    fn signed(
        &self,
        unsigned: &Header<IndexSignatureTag>,
        signature: &[u8],
    ) -> Result<Header<IndexSignatureTag>> {
        let tag = signature_tag(signature).ok_or_else(|| {
            let path = self.path.display();
            Error::usage(
                format!("failed to put a signature into `{path}`: rpm can't read it"),
                "sign with an RSA, DSA or Ed25519 key of OpenPGP version 4",
            )
        })?;
        let region = IndexSignatureTag::HEADER_SIGNATURES;
        let entries = unsigned.get_all_entries().map_err(|e| self.failed(e))?;
        let entries = entries
            .into_iter()
            .filter(|(tag, _)| *tag != region as u32)
            .map(|(tag, data)| HeaderEntry::new(tag, data));
        let added = HeaderEntry::new(tag as u32, IndexData::Bin(signature.to_vec()));
        Ok(Header::from_entries(entries.chain([added]), region))
    }

    /// The library's header for the same files, but empty ones.
    fn without_payload(&self) -> Result<PackageMetadata> {
        let spec = self.spec;
        let stamp = self.stamp();
        let PackageSpec { name, version, license, summary, .. } = spec;
        // Debian's summaries begin with a small letter, rpm's with a capital.
        let mut letters = summary.chars();
        let summary: String =
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        let mut builder = PackageBuilder::new(name, version, license, "noarch", &summary);
        let config = BuildConfig::v4().source_date(stamp);
        builder.using_config(config.compression(::rpm::CompressionWithLevel::None));
        builder.release(spec.revision.as_str()).build_host(BUILD_HOST);
        builder.packager(spec.maintainer.as_str()).group(GROUP);
        if !spec.homepage.is_empty() {
            builder.url(spec.homepage.as_str());
        }
        let description = text::rpm_description(&spec.description);
        if !description.is_empty() {
            builder.description(description);
        }
        for entry in &spec.changelog {
            let changes: Vec<String> =
                entry.changes.iter().map(|change| text::list_item("- ", change)).collect();
            let name = format!("{} - {}", spec.maintainer, entry.version);
            builder.add_changelog_entry(name, changes.join("\n"), seconds(entry.date));
        }
        for relation in &spec.relations {
            relate(&mut builder, relation);
        }
        for (feature, version) in self.features() {
            builder.requires(Dependency::rpmlib(feature, version));
        }
        for (path, item) in self.entries {
            // The header has 16 bits for the mode; permission bits were checked.
            let permissions = (mode(*item) & 0o7777) as u16;
            let added = if item.is_none() {
                let options = FileOptions::dir(*path).permissions(permissions);
                builder.with_dir_entry(options.modified_at(stamp))
            } else {
                let options = FileOptions::new(*path).permissions(permissions);
                let options = options.modified_at(stamp);
                let is_license = *path == self.license;
                let options = if is_license { options.license() } else { options };
                builder.with_file_contents(Vec::new(), options)
            };
            added.map_err(|e| self.failed(e))?;
        }
        Ok(builder.build().map_err(|e| self.failed(e))?.metadata)
    }

    /// The features that rpm needs to unpack the payload, with the versions that
    /// introduced them.
    ///
    /// Source: rpm 4.18 `lib/rpmds.c`, `rpmlibProvides`.
    fn features(&self) -> Vec<(&'static str, &'static str)> {
        let mut features = match self.compression {
            Compression::Zst { .. } => vec![("PayloadIsZstd", "5.4.18-1")],
            Compression::Xz { .. } => vec![("PayloadIsXz", "5.2-1")],
            Compression::Gz { .. } => Vec::new(),
        };
        if !is_named(total_size(self.entries)) {
            features.push(("LargeFiles", "4.12.0-1"));
        }
        features
    }

    /// The header entries that depend on the payload, and the build time: the
    /// library would not allow one that is later than the clock.
    fn payload_entries(&self, payload: &Packed, digests: &[Option<String>]) -> Vec<HeaderEntry> {
        let total_size = total_size(self.entries);
        let entry = |tag: IndexTag, data| HeaderEntry::new(tag as u32, data);
        let one = |text: &str| IndexData::StringArray(vec![text.to_owned()]);
        let sizes = self.entries.values().map(|item| item.map_or(0, |item| item.size));
        let hashes = digests.iter().map(|digest| digest.clone().unwrap_or_default());
        let compression = self.compression;
        let mut made = vec![
            entry(IndexTag::RPMTAG_BUILDTIME, IndexData::Int32(vec![self.stamp().into()])),
            entry(IndexTag::RPMTAG_FILEDIGESTS, IndexData::StringArray(hashes.collect())),
            entry(
                IndexTag::RPMTAG_PAYLOADCOMPRESSOR,
                IndexData::StringTag(compression.program().to_owned()),
            ),
            entry(
                IndexTag::RPMTAG_PAYLOADFLAGS,
                IndexData::StringTag(compression.level().to_string()),
            ),
            entry(IndexTag::RPMTAG_PAYLOADSHA256, one(&payload.sha256)),
            entry(IndexTag::RPMTAG_PAYLOADSHA256ALT, one(&payload.plain_sha256)),
        ];
        if is_named(total_size) {
            // The sum fits, so each size does.
            let narrow = |size: u64| size as u32;
            made.push(entry(IndexTag::RPMTAG_SIZE, IndexData::Int32(vec![narrow(total_size)])));
            let sizes = IndexData::Int32(sizes.map(narrow).collect());
            made.push(entry(IndexTag::RPMTAG_FILESIZES, sizes));
        } else {
            made.push(entry(IndexTag::RPMTAG_LONGSIZE, IndexData::Int64(vec![total_size])));
            let sizes = IndexData::Int64(sizes.collect());
            made.push(entry(IndexTag::RPMTAG_LONGFILESIZES, sizes));
        }
        made
    }

    fn stamp(&self) -> Timestamp {
        seconds(self.spec.source_date_epoch)
    }

    pub(super) fn failed(&self, source: ::rpm::Error) -> Error {
        match source {
            ::rpm::Error::Io(source) => writing(self.path)(source),
            source => {
                let message = format!("failed to write the header of `{}`", self.path.display());
                let hint = "see the cause; the spec holds what rpm can't express";
                Error::usage(message, hint).caused_by(source)
            }
        }
    }
}

/// Where a signature of version 4 belongs: those of DSA and of all elliptic curves have one place.
///
/// Source: RFC 9580, 5.2.3, 9.1.
fn signature_tag(signature: &[u8]) -> Option<IndexSignatureTag> {
    match packets(signature).first()? {
        (2, [4, _, 1 | 3, ..]) => Some(IndexSignatureTag::RPMSIGTAG_RSA),
        (2, [4, _, 17 | 19 | 22 | 27, ..]) => Some(IndexSignatureTag::RPMSIGTAG_DSA),
        _ => None,
    }
}

/// The headers with the digests of the main one, whose bytes are returned too, for a payload of
/// this size.
pub(crate) fn digested(
    metadata: PackageMetadata,
    payload: u64,
) -> Result<(PackageMetadata, Vec<u8>), ::rpm::Error> {
    let bytes = metadata.header_bytes()?;
    let signature = SignatureHeaderBuilder::new()
        .format(RpmFormat::V4)
        .set_content_length(bytes.len() as u64 + payload)
        .calculate_digests(&bytes)
        .build()?;
    Ok((PackageMetadata { signature, ..metadata }, bytes))
}

/// A time that is known to fit.
fn seconds(seconds: u64) -> Timestamp {
    Timestamp(u32::try_from(seconds).expect("times are checked before anything is written"))
}

fn relate(builder: &mut PackageBuilder, relation: &Relation) {
    let name = relation.name.as_str();
    let dependency = match &relation.version {
        None => Dependency::any(name),
        Some((operator, version)) => match operator.as_str() {
            "<<" => Dependency::less(name, version),
            "<=" => Dependency::less_eq(name, version),
            ">=" => Dependency::greater_eq(name, version),
            ">>" => Dependency::greater(name, version),
            _ => Dependency::eq(name, version),
        },
    };
    match relation.kind {
        RelationKind::Depends => builder.requires(dependency),
        RelationKind::Suggests => builder.suggests(dependency),
        RelationKind::Enhances => builder.enhances(dependency),
        RelationKind::Provides => builder.provides(dependency),
        RelationKind::Conflicts => builder.conflicts(dependency),
        RelationKind::Obsoletes => builder.obsoletes(dependency),
        RelationKind::Supplements => builder.supplements(dependency),
        RelationKind::Replaces => builder,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_both_packet_formats_are_recognised() {
        let check = |bytes: &[u8], expected: Option<IndexSignatureTag>| {
            let found = signature_tag(bytes).map(|tag| tag as u32);
            assert_eq!(found, expected.map(|tag| tag as u32), "{bytes:x?}");
        };
        let (rsa, dsa) = (IndexSignatureTag::RPMSIGTAG_RSA, IndexSignatureTag::RPMSIGTAG_DSA);
        check(&[0x89, 0, 4, 4, 0, 1, 8], Some(rsa));
        check(&[0x88, 4, 4, 0, 22, 8], Some(dsa));
        check(&[0xc2, 4, 4, 0, 22, 8], Some(dsa));
        check(&[&[0xc2, 0xc0, 0, 4, 0, 1][..], &[8; 189]].concat(), Some(rsa));
        check(&[0x89, 0, 4, 3, 0, 1, 8], None);
        check(&[0x99, 0, 4, 4, 0, 1, 8], None);
        check(b"-----BEGIN PGP SIGNATURE-----", None);
        check(&[0x89, 0], None);
        check(&[], None);
    }
}
