//! Rewrites .rpms: their payloads, what their headers say of them, releases, and what they need of
//! one another.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ::rpm::{Header, HeaderEntry, IndexData, IndexTag, PackageMetadata};
use gfxpack_model::Result;
use rustix::fs::FileType;
use sha2::Sha256;

use super::{Contents, Follows, Kind, Package, Rewriter, compression, plain};
use crate::compress::Compression;
use crate::output::{Output, Packed};
use crate::read::{PATH_MAX, check_rpm_headers, file_type, open as open_file, unpacked};
use crate::rpm::digested;

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
/// The size of all files, and those of each.
const SIZE: [u32; 2] = [1009, 5009];
const SIZES: [u32; 2] = [1028, 5008];
/// `FILEDIGESTS`.
const DIGESTS: u32 = 1035;
/// The bits of comparisons, and the one of equality.
const COMPARISON: u64 = 0b1110;
const EQUAL: u64 = 0b1000;
/// `FILEDIGESTALGO` of SHA-256.
const SHA256: u64 = 8;
/// All parts of the payload begin at multiples of this.
const ALIGN: u64 = 4;

/// An .rpm that is to be written again.
#[derive(Debug)]
pub(super) struct Rpm {
    metadata: PackageMetadata,
    entries: BTreeMap<u32, IndexData>,
    /// Where the payload begins.
    payload: u64,
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

pub(super) fn open(path: &Path) -> io::Result<Package> {
    let mut file = BufReader::new(open_file(path)?);
    check_rpm_headers(&mut file)?;
    file.rewind()?;
    let metadata = PackageMetadata::parse(&mut file).map_err(io::Error::other)?;
    let mut entries = metadata.header.get_all_entries().map_err(io::Error::other)?;
    entries.retain(|(tag, _)| *tag != IndexTag::RPMTAG_HEADERIMMUTABLE as u32);
    let payload = file.stream_position()?;
    let rpm = Rpm { metadata, entries: entries.into_iter().collect(), payload };
    if !rpm.entries.contains_key(&(IndexTag::RPMTAG_SOURCERPM as u32)) {
        return Err(io::Error::other("it is a package of sources"));
    }
    let digests = rpm.numbers(IndexTag::RPMTAG_FILEDIGESTALGO as u32);
    if rpm.entries.keys().any(|tag| UNKNOWN.contains(tag)) || digests != [SHA256] {
        return Err(io::Error::other("its header has what can't be written again faithfully"));
    }
    let [name, version, release, arch] = [1000, 1001, 1002, 1022].map(|tag| rpm.text(tag));
    let epoch = rpm.numbers(IndexTag::RPMTAG_EPOCH as u32).first().map(|epoch| format!("{epoch}:"));
    let provides = rpm.relations(PROVIDES).into_iter();
    Ok(Package {
        path: path.to_owned(),
        file: [format!("{name}-{version}-{release}"), format!(".{arch}.rpm")],
        // As other packages need it.
        version: format!("{}{version}-{release}", epoch.unwrap_or_default()),
        provides: provides.map(|(it, version, _)| (package_of(&it).to_owned(), version)).collect(),
        name,
        suffix: String::new(),
        kind: Kind::Rpm(Box::new(rpm)),
    })
}

impl Rpm {
    /// Gives it, by name and version, a release, and has what it needs exactly follow.
    ///
    /// Source: rpm 4.20, docs/manual/dependencies.md.
    pub(super) fn rename(
        &mut self,
        [own, own_version]: [&str; 2],
        suffix: &str,
        follows: &Follows<'_>,
    ) -> Result {
        for (tags, is_needed) in RELATIONS {
            for (index, (name, version, flags)) in self.relations(tags).into_iter().enumerate() {
                let is_exact = flags & COMPARISON == EQUAL && version.contains('-');
                if is_exact
                    && follows(package_of(&name), &version, is_needed)?
                        .is_some_and(|it| it != version)
                {
                    self.append(tags[1], index, suffix);
                }
            }
        }
        for (index, (name, version, _)) in self.relations(PROVIDES).into_iter().enumerate() {
            if package_of(&name) == own && version == own_version {
                self.append(PROVIDES[1], index, suffix);
            }
        }
        self.append(IndexTag::RPMTAG_RELEASE as u32, 0, suffix);
        Ok(())
    }

    /// Source: rpm 4.20, docs/manual/format_v4.md, docs/manual/signatures_digests.md.
    pub(super) fn write(
        &self,
        path: &Path,
        output: Option<&mut Output>,
        threads: usize,
        rewriter: &mut Rewriter<'_>,
    ) -> io::Result<()> {
        let Some(output) = output else {
            return self.copy(path, &mut io::sink(), rewriter).map(drop);
        };
        let (mut payload, changes) =
            Packed::new(output, Some(self.compression()), threads, |out| {
                self.copy(path, out, rewriter)
            })?;
        let mut entries = self.entries.clone();
        for (tag, sum) in [
            (IndexTag::RPMTAG_PAYLOADSHA256, &payload.sha256),
            (IndexTag::RPMTAG_PAYLOADSHA256ALT, &payload.plain_sha256),
        ] {
            let sum = IndexData::StringArray(vec![sum.clone()]);
            entries.entry(tag as u32).and_modify(|data| *data = sum);
        }
        for (tag, data) in &mut entries {
            changes.apply(*tag, data);
        }
        let entries = entries.into_iter().map(|(tag, data)| HeaderEntry::new(tag, data));
        let header = Header::from_entries(entries, IndexTag::RPMTAG_HEADERIMMUTABLE);
        let metadata = PackageMetadata { header, ..self.metadata.clone() };
        let (metadata, _) = digested(metadata, payload.size).map_err(io::Error::other)?;
        metadata.write(output).map_err(io::Error::other)?;
        io::copy(&mut payload.file, output).map(drop)
    }

    /// Copies the payload's archive, as `rewriter` wants it.
    ///
    /// Source: cpio(5), "New ASCII Format".
    fn copy(
        &self,
        path: &Path,
        out: &mut dyn Write,
        rewriter: &mut Rewriter<'_>,
    ) -> io::Result<Changes> {
        let mut file = open_file(path)?;
        file.seek(SeekFrom::Start(self.payload))?;
        let codec = self.text(IndexTag::RPMTAG_PAYLOADCOMPRESSOR as u32);
        let mut from = unpacked(&codec, BufReader::with_capacity(256 << 10, file), u64::MAX)?;
        let paths = self.metadata.get_file_paths().map_err(io::Error::other)?;
        let paths = paths.iter().map(|path| plain(path.as_os_str().as_encoded_bytes()));
        let paths: BTreeMap<PathBuf, usize> = paths.zip(0..).collect();
        let links = self.texts(IndexTag::RPMTAG_FILELINKTOS as u32);
        let mut changes = Changes::default();
        // By inode, the files whose contents come with a later one.
        let mut same = BTreeMap::<u64, Vec<usize>>::new();
        loop {
            let mut header = [0; 110];
            from.read_exact(&mut header)?;
            let number = |at: usize| {
                let digits = std::str::from_utf8(&header[at..at + 8]).map_err(io::Error::other)?;
                u64::from_str_radix(digits, 16).map_err(io::Error::other)
            };
            let (inode, mode, size, length) = (number(6)?, number(14)?, number(54)?, number(94)?);
            let kind = file_type(mode);
            let is_linked = kind == FileType::RegularFile && number(38)? > 1;
            if !header.starts_with(b"07070") || header[5] == b'X' || length > PATH_MAX {
                return Err(io::Error::other("its payload is laid out in an unusual way"));
            }
            let mut name = vec![0; padded(110 + length) as usize - 110];
            from.read_exact(&mut name)?;
            if name.starts_with(b"TRAILER!!!\0") {
                out.write_all(&header)?;
                out.write_all(&name)?;
                io::copy(&mut from, &mut io::sink())?;
                return Ok(changes);
            }
            let path = plain(&name);
            let index =
                *paths.get(&path).ok_or_else(|| io::Error::other("a file is not in its header"))?;
            let target = Path::new(links.get(index).map_or("", String::as_str));
            let mut body = Read::take(&mut from, size);
            if let Some(contents) = match kind {
                FileType::Symlink if rewriter.takes_out_link(&path, target) => None,
                // One name of several is not taken out.
                FileType::RegularFile if !is_linked || size > 0 && !(rewriter.takes_out)(&path) => {
                    (rewriter.file)(&path, size, &mut body)?
                }
                _ => Some(Contents::same(size, &mut body)),
            } {
                let (now, is_smaller) = (contents.size, contents.is_smaller);
                header[54..62].copy_from_slice(format!("{now:08x}").as_bytes());
                out.write_all(&header)?;
                out.write_all(&name)?;
                let digest = contents.write::<Sha256>(out, ALIGN, &path)?;
                if is_linked {
                    same.entry(inode).or_default().push(index);
                }
                if is_smaller {
                    changes.less += size.saturating_sub(now);
                    for index in same.remove(&inode).unwrap_or_default().into_iter().chain([index])
                    {
                        changes.smaller.insert(index, (now, digest.clone()));
                    }
                }
            } else {
                changes.less += size;
                changes.removed.insert(index);
            }
            io::copy(&mut body, &mut io::sink())?;
            from.read_exact(&mut [0; 4][..(padded(size) - size) as usize])?;
        }
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

    fn text(&self, tag: u32) -> String {
        self.texts(tag).into_iter().next().unwrap_or_default()
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
        let flags = self.text(IndexTag::RPMTAG_PAYLOADFLAGS as u32);
        let digits: String = flags.chars().take_while(char::is_ascii_digit).collect();
        compression(&self.text(IndexTag::RPMTAG_PAYLOADCOMPRESSOR as u32), digits.parse().ok())
    }
}

impl Changes {
    /// Has a tag's values say what there is now.
    fn apply(&self, tag: u32, data: &mut IndexData) {
        match data {
            IndexData::Int8(values) | IndexData::Char(values) => self.keep(tag, values),
            IndexData::Int16(values) => self.keep(tag, values),
            IndexData::Int32(values) => {
                self.sizes(tag, values);
                self.keep(tag, values);
            }
            IndexData::Int64(values) => {
                self.sizes(tag, values);
                self.keep(tag, values);
            }
            IndexData::StringArray(values) => {
                for (index, (_, digest)) in self.smaller.iter().filter(|_| tag == DIGESTS) {
                    values.get_mut(*index).into_iter().for_each(|it| it.clone_from(digest));
                }
                self.keep(tag, values);
            }
            _ => {}
        }
    }

    fn sizes<T: Copy + Into<u64> + TryFrom<u64>>(&self, tag: u32, sizes: &mut [T]) {
        for (index, size) in sizes.iter_mut().enumerate() {
            let smaller = self.smaller.get(&index).filter(|_| SIZES.contains(&tag));
            let new = smaller.map_or((*size).into(), |(size, _)| *size);
            let new = if SIZE.contains(&tag) { new.saturating_sub(self.less) } else { new };
            *size = new.try_into().unwrap_or(*size);
        }
    }

    fn keep<T>(&self, tag: u32, values: &mut Vec<T>) {
        let mut index = 0..values.len() * usize::from(OF_FILES.contains(&tag));
        values.retain(|_| !index.next().is_some_and(|index| self.removed.contains(&index)));
    }
}

/// The package that `name`, `name(x86-64)` or `config(name)` comes from.
fn package_of(name: &str) -> &str {
    let config = name.strip_prefix("config(").and_then(|name| name.strip_suffix(')'));
    config.or_else(|| name.split('(').next()).unwrap_or(name)
}

fn padded(size: u64) -> u64 {
    size.next_multiple_of(ALIGN)
}
