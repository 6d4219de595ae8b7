//! Rewrites .rpms: their payloads, what their headers say of them, releases, and what they need of
//! one another.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ::rpm::{
    Header, HeaderEntry, IndexData, IndexTag, PackageMetadata, RpmFormat, SignatureHeaderBuilder,
};
use sha2::Sha256;

use super::{Rewriter, cut_short, plain};
use crate::compress::Compression;
use crate::error::Error;
use crate::output::{Hashing, Output, Written};
use crate::read::{check_rpm_headers, open, unpacked};

/// Tags with one value for each file.
///
/// Source: rpm 4.20, include/rpm/rpmtag.h.
const OF_FILES: [u32; 22] = [
    1028, 1029, 1030, 1033, 1034, 1035, 1036, 1037, 1039, 1040, 1045, 1095, 1096, 1097, 1116, 1117,
    1140, 1141, 1143, 1144, 5008, 5010,
];
/// Tags that can't follow: old lists of names, signatures of files, and those of rpm 6's format.
const UNKNOWN: [u32; 8] = [1027, 5090, 5091, 5112, 5113, 5114, 5115, 5116];
/// Names, versions and comparisons of what is needed, and whether it must be there.
const RELATIONS: [([u32; 3], bool); 3] =
    [([1049, 1050, 1048], true), ([5046, 5047, 5048], false), ([5049, 5050, 5051], false)];
/// The same of what is provided.
const PROVIDES: [u32; 3] = [1047, 1113, 1112];
/// The bits of comparisons, and the one of equality.
const COMPARISON: u64 = 0b1110;
const EQUAL: u64 = 0b1000;
/// `FILEDIGESTALGO` of SHA-256.
const SHA256: u64 = 8;
/// The bits of a mode with the file's type.
const TYPE: u64 = 0o170_000;
const REGULAR: u64 = 0o100_000;
const LINK: u64 = 0o120_000;
/// Linux has no longer paths.
const PATH_MAX: u64 = 4096;

/// An .rpm that is to be written again.
#[derive(Debug)]
pub struct Rpm {
    path: PathBuf,
    metadata: PackageMetadata,
    entries: BTreeMap<u32, IndexData>,
    /// Where the payload begins.
    payload: u64,
    pub(super) name: String,
    /// With epoch and release, as other packages need it.
    pub(super) version: String,
    suffix: String,
}

/// What changed in the payload, by index of the file.
#[derive(Default)]
struct Changes {
    /// Sizes and SHA-256 digests.
    smaller: BTreeMap<usize, (u64, String)>,
    removed: BTreeSet<usize>,
    /// Bytes that all files take less.
    less: u64,
}

impl Rpm {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::new(open(path)?);
        check_rpm_headers(&mut file)?;
        file.rewind()?;
        let metadata = PackageMetadata::parse(&mut file).map_err(io::Error::other)?;
        let payload = file.stream_position()?;
        let entries = metadata.header.get_all_entries().map_err(io::Error::other)?;
        let entries =
            entries.into_iter().filter(|(tag, _)| *tag != IndexTag::RPMTAG_HEADERIMMUTABLE as u32);
        let entries: BTreeMap<u32, IndexData> = entries.collect();
        let (path, suffix) = (path.to_owned(), String::new());
        let mut rpm = Self {
            path,
            metadata,
            entries,
            payload,
            name: String::new(),
            version: String::new(),
            suffix,
        };
        rpm.name = rpm.text(IndexTag::RPMTAG_NAME);
        rpm.version = rpm.evr();
        if rpm.name.is_empty() || [&rpm.name, &rpm.version].iter().any(|it| it.contains('/')) {
            return Err(io::Error::other("it has no name or no version"));
        }
        if !rpm.entries.contains_key(&(IndexTag::RPMTAG_SOURCERPM as u32)) {
            return Err(io::Error::other("it is a package of sources"));
        }
        let digests = rpm.numbers(IndexTag::RPMTAG_FILEDIGESTALGO as u32);
        if rpm.entries.keys().any(|tag| UNKNOWN.contains(tag)) || digests != [SHA256] {
            return Err(io::Error::other("its header has what can't be written again faithfully"));
        }
        Ok(rpm)
    }

    /// Gives it a release, and has what it needs exactly of `others`, names and versions, follow.
    ///
    /// Source: rpm 4.20, docs/manual/dependencies.md.
    pub(super) fn rename(
        &mut self,
        suffix: &str,
        others: &[(String, String)],
    ) -> Result<(), Error> {
        let is_exact =
            |flags: u64, version: &str| flags & COMPARISON == EQUAL && version.contains('-');
        for (tags, is_needed) in RELATIONS {
            for (index, (name, version, flags)) in self.relations(tags).into_iter().enumerate() {
                if !is_exact(flags, &version) {
                    continue;
                }
                let plain = package_of(&name);
                let given = || others.iter().filter(|(it, _)| it == plain);
                if given().any(|(_, it)| *it == version) {
                    self.append(tags[1], index, suffix);
                } else if is_needed && (given().next().is_some() || version == self.version) {
                    let (package, needed) = (self.name.clone(), plain.to_owned());
                    return Err(Error::NeedsExactly { package, needed, version });
                }
            }
        }
        for (index, (name, version, _)) in self.relations(PROVIDES).into_iter().enumerate() {
            let is_own = package_of(&name) == self.name;
            if is_own && version == self.version {
                self.append(PROVIDES[1], index, suffix);
            }
        }
        self.append(IndexTag::RPMTAG_RELEASE as u32, 0, suffix);
        suffix.clone_into(&mut self.suffix);
        Ok(())
    }

    pub(super) fn new_version(&self) -> String {
        format!("{}{}", self.version, self.suffix)
    }

    pub(super) fn file_name(&self) -> String {
        let [version, release, arch] =
            [IndexTag::RPMTAG_VERSION, IndexTag::RPMTAG_RELEASE, IndexTag::RPMTAG_ARCH]
                .map(|tag| self.text(tag));
        format!("{}-{version}-{release}.{arch}.rpm", self.name)
    }

    pub(super) fn try_out(&self, rewriter: &mut Rewriter<'_>) -> io::Result<()> {
        self.copy(&mut io::sink(), rewriter).map(drop)
    }

    pub(super) fn write(
        &self,
        dir: &Path,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> Result<Written, Error> {
        let mut output = Output::create(dir, &self.file_name())?;
        self.write_to(&mut output, threads, rewriter)
            .map_err(|error| Error::rewrite(&self.path, error))?;
        output.commit()
    }

    /// Source: rpm 4.20, docs/manual/format_v4.md, docs/manual/signatures_digests.md.
    fn write_to(
        &self,
        output: &mut Output,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> io::Result<()> {
        let packed = Hashing::new(io::BufWriter::new(output.scratch()?));
        let mut archive = Hashing::new(self.compression().encoder(packed, threads)?);
        let changes = self.copy(&mut archive, rewriter)?;
        let (encoder, plain_digest, _) = archive.finish();
        let (buffered, digest, size) = encoder.finish()?.finish();
        let mut payload = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;

        let mut entries = self.entries.clone();
        for (tag, sum) in [
            (IndexTag::RPMTAG_PAYLOADSHA256, digest),
            (IndexTag::RPMTAG_PAYLOADSHA256ALT, plain_digest),
        ] {
            entries.entry(tag as u32).and_modify(|data| *data = IndexData::StringArray(vec![sum]));
        }
        for (tag, data) in &mut entries {
            changes.apply(*tag, data);
        }
        let entries = entries.into_iter().map(|(tag, data)| HeaderEntry::new(tag, data));
        let header = Header::from_entries(entries, IndexTag::RPMTAG_HEADERIMMUTABLE);
        let metadata = PackageMetadata { header, ..self.metadata.clone() };
        let bytes = metadata.header_bytes().map_err(io::Error::other)?;
        let signature = SignatureHeaderBuilder::new()
            .format(RpmFormat::V4)
            .set_content_length(bytes.len() as u64 + size)
            .calculate_digests(&bytes)
            .build()
            .map_err(io::Error::other)?;
        let metadata = PackageMetadata { signature, ..metadata };
        metadata.write(output).map_err(io::Error::other)?;
        payload.seek(SeekFrom::Start(0))?;
        io::copy(&mut payload, output).map(drop)
    }

    /// Copies the payload's archive, as `rewriter` wants it.
    ///
    /// Source: cpio(5), "New ASCII Format".
    fn copy(&self, out: &mut impl Write, rewriter: &mut Rewriter<'_>) -> io::Result<Changes> {
        let mut file = open(&self.path)?;
        file.seek(SeekFrom::Start(self.payload))?;
        let codec = self.text(IndexTag::RPMTAG_PAYLOADCOMPRESSOR);
        let mut from = unpacked(&codec, BufReader::with_capacity(256 << 10, file), u64::MAX)?;
        let paths = self.paths()?;
        let links = self.texts(IndexTag::RPMTAG_FILELINKTOS as u32);
        let mut changes = Changes::default();
        loop {
            let mut header = [0; 110];
            from.read_exact(&mut header)?;
            let number = |at: usize| {
                let digits = std::str::from_utf8(&header[at..at + 8]).map_err(io::Error::other)?;
                u64::from_str_radix(digits, 16).map_err(io::Error::other)
            };
            let (mode, names, size, length) = (number(14)?, number(38)?, number(54)?, number(94)?);
            if !header.starts_with(b"07070") || header[5] == b'X' || length > PATH_MAX {
                return Err(io::Error::other("its payload is laid out in an unusual way"));
            }
            let mut name = vec![0; padded(110 + length) as usize - 110];
            from.read_exact(&mut name)?;
            let text = String::from_utf8_lossy(&name[..length.saturating_sub(1) as usize]);
            if text == "TRAILER!!!" {
                out.write_all(&header)?;
                out.write_all(&name)?;
                io::copy(&mut from, &mut io::sink())?;
                return Ok(changes);
            }
            let path = plain(text.as_bytes());
            let index =
                *paths.get(&path).ok_or_else(|| io::Error::other("a file is not in its header"))?;
            let padding = padded(size) - size;
            let mut body = Read::take(&mut from, size);
            if mode & TYPE == LINK {
                let target =
                    path.with_file_name("").join(links.get(index).map_or("", String::as_str));
                if (rewriter.takes_out)(&plain(target.as_os_str().as_encoded_bytes())) {
                    io::copy(&mut body, &mut io::sink())?;
                    changes.less += size;
                    changes.removed.insert(index);
                    from.read_exact(&mut [0; 4][..padding as usize])?;
                    continue;
                }
            }
            {
                let contents = if mode & TYPE == REGULAR && names < 2 {
                    rewriter.decide(&path, size, &mut body)?
                } else {
                    Some(super::Contents { size, is_smaller: false, bytes: Box::new(&mut body) })
                };
                match contents {
                    None => {
                        changes.less += size;
                        changes.removed.insert(index);
                    }
                    Some(mut contents) => {
                        let (now, is_smaller) = (contents.size, contents.is_smaller);
                        header[54..62].copy_from_slice(format!("{now:08x}").as_bytes());
                        out.write_all(&header)?;
                        out.write_all(&name)?;
                        let mut hashing = Hashing::<_, Sha256>::new(&mut *out);
                        io::copy(&mut contents.bytes, &mut hashing)?;
                        let (_, digest, written) = hashing.finish();
                        if written != now {
                            return Err(cut_short(&path));
                        }
                        out.write_all(&[0; 4][..(padded(now) - now) as usize])?;
                        if is_smaller {
                            changes.less += size.saturating_sub(now);
                            changes.smaller.insert(index, (now, digest));
                        }
                    }
                }
            }
            io::copy(&mut body, &mut io::sink())?;
            from.read_exact(&mut [0; 4][..padding as usize])?;
        }
    }

    /// The files in the header, by path.
    fn paths(&self) -> io::Result<BTreeMap<PathBuf, usize>> {
        let dirs = self.texts(IndexTag::RPMTAG_DIRNAMES as u32);
        let indexes = self.numbers(IndexTag::RPMTAG_DIRINDEXES as u32);
        let names = self.texts(IndexTag::RPMTAG_BASENAMES as u32);
        let paths = names.iter().zip(indexes).enumerate().map(|(index, (name, dir))| {
            let dir = usize::try_from(dir).ok().and_then(|dir| dirs.get(dir));
            let dir = dir.ok_or_else(|| io::Error::other("its header is damaged"))?;
            Ok((plain(format!("{dir}{name}").as_bytes()), index))
        });
        paths.collect()
    }

    /// Version and release, with the epoch if there is one.
    fn evr(&self) -> String {
        let epoch =
            self.numbers(IndexTag::RPMTAG_EPOCH as u32).first().map(|epoch| format!("{epoch}:"));
        let [version, release] =
            [IndexTag::RPMTAG_VERSION, IndexTag::RPMTAG_RELEASE].map(|tag| self.text(tag));
        format!("{}{version}-{release}", epoch.unwrap_or_default())
    }

    /// Names, versions and comparisons.
    fn relations(&self, [names, versions, flags]: [u32; 3]) -> Vec<(String, String, u64)> {
        let relations =
            self.texts(names).into_iter().zip(self.texts(versions)).zip(self.numbers(flags));
        relations.map(|((name, version), flags)| (name, version, flags)).collect()
    }

    fn append(&mut self, tag: u32, index: usize, suffix: &str) {
        match self.entries.get_mut(&tag) {
            Some(IndexData::StringTag(text)) => *text += suffix,
            Some(IndexData::StringArray(texts)) => {
                texts.iter_mut().skip(index).take(1).for_each(|text| *text += suffix);
            }
            _ => {}
        }
    }

    fn texts(&self, tag: u32) -> Vec<String> {
        match self.entries.get(&tag) {
            Some(IndexData::StringTag(text)) => vec![text.clone()],
            Some(IndexData::StringArray(texts) | IndexData::I18NString(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    fn text(&self, tag: IndexTag) -> String {
        self.texts(tag as u32).into_iter().next().unwrap_or_default()
    }

    fn numbers(&self, tag: u32) -> Vec<u64> {
        match self.entries.get(&tag) {
            Some(IndexData::Int32(values)) => values.iter().copied().map(u64::from).collect(),
            Some(IndexData::Int64(values)) => values.clone(),
            _ => Vec::new(),
        }
    }

    /// The compressor that made the payload, at its level.
    fn compression(&self) -> Compression {
        let flags = self.text(IndexTag::RPMTAG_PAYLOADFLAGS);
        let digits: String = flags.chars().take_while(char::is_ascii_digit).collect();
        let level = |usual: u32, most: u32| digits.parse().unwrap_or(usual).min(most);
        match &*self.text(IndexTag::RPMTAG_PAYLOADCOMPRESSOR) {
            "xz" => Compression::Xz { level: level(6, 9) },
            "zstd" => Compression::Zst { level: level(19, 19).max(1) },
            _ => Compression::Gz { level: level(9, 9).max(1) },
        }
    }
}

impl Changes {
    /// Has a tag's values say what there is now.
    fn apply(&self, tag: u32, data: &mut IndexData) {
        let less = |size: u64| size.saturating_sub(self.less);
        match data {
            IndexData::Int32(sizes) if tag == IndexTag::RPMTAG_SIZE as u32 => {
                for size in sizes {
                    *size = u32::try_from(less(u64::from(*size))).unwrap_or(0);
                }
            }
            IndexData::Int64(sizes) if tag == IndexTag::RPMTAG_LONGSIZE as u32 => {
                sizes.iter_mut().for_each(|size| *size = less(*size));
            }
            IndexData::Int32(sizes) if tag == IndexTag::RPMTAG_FILESIZES as u32 => {
                self.put(sizes, |(size, _)| u32::try_from(*size).unwrap_or(u32::MAX));
            }
            IndexData::Int64(sizes) if tag == IndexTag::RPMTAG_LONGFILESIZES as u32 => {
                self.put(sizes, |(size, _)| *size);
            }
            IndexData::StringArray(digests) if tag == IndexTag::RPMTAG_FILEDIGESTS as u32 => {
                self.put(digests, |(_, digest)| digest.clone());
            }
            _ => {}
        }
        if OF_FILES.contains(&tag) {
            match data {
                IndexData::Int8(values) | IndexData::Char(values) => self.keep(values),
                IndexData::Int16(values) => self.keep(values),
                IndexData::Int32(values) => self.keep(values),
                IndexData::Int64(values) => self.keep(values),
                IndexData::StringArray(values) => self.keep(values),
                _ => {}
            }
        }
    }

    fn put<T>(&self, values: &mut [T], new: impl Fn(&(u64, String)) -> T) {
        for (index, value) in values.iter_mut().enumerate() {
            if let Some(smaller) = self.smaller.get(&index) {
                *value = new(smaller);
            }
        }
    }

    fn keep<T>(&self, values: &mut Vec<T>) {
        let mut index = 0..;
        values.retain(|_| !index.next().is_some_and(|index| self.removed.contains(&index)));
    }
}

/// The package that `name`, `name(x86-64)` or `config(name)` comes from.
fn package_of(name: &str) -> &str {
    let config = name.strip_prefix("config(").and_then(|name| name.strip_suffix(')'));
    config.or_else(|| name.split('(').next()).unwrap_or(name)
}

fn padded(size: u64) -> u64 {
    size.next_multiple_of(4)
}
