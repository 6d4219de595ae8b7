//! Parses the index of an .rpm's header, and checks it against rpm's own rules.

use super::rpm_tags::{self, Class};
use super::rpm_types::{self as types, alignment, length};

/// Size of an entry, and of a region's trailer.
pub(super) const ENTRY: usize = 16;

/// `RPMTAG_HEADERIMAGE`, which old packages have in the signature header's trailer.
const IMAGE: u32 = 61;
/// `HEADER_I18NTABLE`. Tags below it are regions; there is at most one.
const FIRST_TAG: u32 = 100;
/// `HEADER_ARRAY_MAX`
const VALUES_MAX: usize = 0xf_ffff;

/// Which header of an .rpm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The signature header.
    Signatures,
    /// The main header.
    Main,
}

impl Role {
    /// `RPMTAG_HEADERSIGNATURES` or `RPMTAG_HEADERIMMUTABLE`: the entry that
    /// tells how many entries and bytes the header had when it was made.
    fn region(self) -> u32 {
        match self {
            Self::Signatures => 62,
            Self::Main => 63,
        }
    }
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) tag: u32,
    pub(super) kind: u32,
    pub(super) offset: usize,
    pub(super) count: usize,
}

impl IndexEntry {
    fn read(bytes: &[u8]) -> Self {
        let number = |at: usize| {
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("a number has four bytes"))
        };
        let (tag, kind) = (number(0), number(4));
        Self { tag, kind, offset: number(8) as usize, count: number(12) as usize }
    }

    fn is_region(self, tag: u32) -> bool {
        self.tag == tag && self.kind == types::BIN && self.count == ENTRY
    }
}

/// The index of a header, which follows the rules.
#[derive(Debug)]
pub(super) struct Index<'a> {
    pub(super) entries: Vec<IndexEntry>,
    data: &'a [u8],
}

impl<'a> Index<'a> {
    /// Parses an index and its data. Afterwards all values together are no larger
    /// than the data.
    ///
    /// # Errors
    /// The first rule that is broken, as text.
    ///
    /// Source: rpm 4.18, lib/header.c, `hdrblobInit`.
    pub(super) fn read(role: Role, index: &[u8], data: &'a [u8]) -> Result<Self, String> {
        let entries: Vec<IndexEntry> = index.chunks_exact(ENTRY).map(IndexEntry::read).collect();
        let index = Self { entries, data };
        let region = index.region(role)?;
        index.check_entries(role, region)?;
        index.check_gaps(region)?;
        Ok(index)
    }

    /// The values of each entry with this tag.
    pub(super) fn values(&self, tag: u32) -> impl Iterator<Item = (IndexEntry, &'a [u8])> {
        let found = self.entries.iter().filter(move |entry| entry.tag == tag);
        found.map(|entry| {
            let data = &self.data[entry.offset.min(self.data.len())..];
            let size = length(entry.kind, entry.count, data).unwrap_or(0);
            (*entry, &data[..size])
        })
    }

    pub(super) fn has(&self, tag: u32) -> bool {
        self.entries.iter().any(|entry| entry.tag == tag)
    }

    /// The end of the region's data; `None` if there is no region, as in very old
    /// packages.
    ///
    /// Source: rpm 4.18, lib/header.c, `hdrblobVerifyRegion`.
    fn region(&self, role: Role) -> Result<Option<usize>, String> {
        let tag = role.region();
        let Some(first) = self.entries.first().filter(|first| first.tag == tag) else {
            return Ok(None);
        };
        if !first.is_region(tag) {
            return Err("its region has the wrong type or size".to_owned());
        }
        let end = first.offset.saturating_add(ENTRY);
        let Some(trailer) = self.data.get(first.offset..end).map(IndexEntry::read) else {
            return Err("its region ends beyond its data".to_owned());
        };
        let image = role == Role::Signatures && trailer.is_region(IMAGE);
        if !trailer.is_region(tag) && !image {
            return Err("its region has no trailer".to_owned());
        }
        // The offset to the index's first entry, which is negative.
        let distance = (trailer.offset as u32).wrapping_neg() as usize;
        let counted = distance / ENTRY;
        if !distance.is_multiple_of(ENTRY) || counted == 0 || counted > self.entries.len() {
            return Err("its region's trailer tells a wrong number of entries".to_owned());
        }
        // Only signatures are added to a finished package.
        if role == Role::Main && (counted != self.entries.len() || end != self.data.len()) {
            return Err("it has entries or data outside of its region".to_owned());
        }
        Ok(Some(end))
    }

    /// Source: rpm 4.18, lib/header.c, `hdrblobVerifyInfo`, `hdrchkTagType`.
    fn check_entries(&self, role: Role, region: Option<usize>) -> Result<(), String> {
        let mut end = 0;
        for entry in self.entries.iter().skip(usize::from(region.is_some())) {
            let IndexEntry { tag, kind, offset, count } = *entry;
            if tag < FIRST_TAG || i32::try_from(tag).is_err() {
                return Err(format!("the tag {tag} is out of range"));
            }
            let data = self.data.get(offset..).unwrap_or_default();
            let Some(size) = length(kind, count, data) else {
                return Err(format!("the tag {tag} has no known type, or leads beyond the data"));
            };
            if offset < end {
                return Err(format!("the data of the tag {tag} overlap others"));
            }
            end = offset + size;
            if !offset.is_multiple_of(alignment(kind)) {
                return Err(format!("the data of the tag {tag} are not aligned"));
            }
            if kind != types::BIN && count > VALUES_MAX {
                return Err(format!("the tag {tag} has too many values"));
            }
            if region.is_some_and(|region| end > region - ENTRY && offset < region) {
                return Err(format!("the data of the tag {tag} overlap its region's trailer"));
            }
            // Signature tags have numbers that also stand for other tags.
            if role == Role::Main && region.is_some() && !is_of_class(tag, kind) {
                return Err(format!("the tag {tag} has values of a wrong type"));
            }
        }
        Ok(())
    }

    /// Checks that the entries' data are all the data, in order.
    ///
    /// Source: rpm 4.18, lib/header.c, `hdrblobImport`, `regionSwab`.
    fn check_gaps(&self, region: Option<usize>) -> Result<(), String> {
        let mut end: usize = 0;
        for entry in self.entries.iter().skip(usize::from(region.is_some())) {
            let data = &self.data[entry.offset..];
            let size = length(entry.kind, entry.count, data).unwrap_or(0);
            end = end.next_multiple_of(alignment(entry.kind)) + size;
        }
        end += region.map_or(0, |_| ENTRY);
        if end == self.data.len() {
            Ok(())
        } else {
            Err("it has data that no entry of its index leads to".to_owned())
        }
    }
}

fn is_of_class(tag: u32, kind: u32) -> bool {
    match rpm_tags::class(tag) {
        None => true,
        Some(Class::Exact(expected)) => kind == expected,
        Some(Class::Text) => {
            [types::STRING, types::STRING_ARRAY, types::I18N_STRING].contains(&kind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[[u32; 4]]) -> Vec<u8> {
        entries.iter().flatten().flat_map(|number| number.to_be_bytes()).collect()
    }

    #[track_caller]
    fn check(role: Role, entries: &[[u32; 4]], data: &[u8], expected: &str) {
        let error = Index::read(role, &index(entries), data).err().unwrap_or_default();
        let alike = error.contains(expected) && error.is_empty() == expected.is_empty();
        assert!(alike, "{entries:?}: {error}, not {expected}");
    }

    #[test]
    fn entries_stay_within_the_data_and_fill_it() {
        let data = b"ab\0c\0\0\0\0\0\0\0\x01\0\0\0\x02";
        let texts = [7000, 8, 0, 2];
        for (entries, expected) in [
            (&[texts, [7002, 4, 8, 2]][..], ""),
            (&[texts, [7002, 2, 5, 11]], ""),
            (&[texts, [7002, 4, 4, 2]], "overlap others"),
            (&[[7000, 7, 0, 8], [7001, 7, 7, 9]], "overlap others"),
            (&[[7000, 7, 4, 1], [7001, 7, 0, 1]], "overlap others"),
            (&[[7000, 4, 8, 3]], "leads beyond"),
            (&[[7000, 5, 0, u32::MAX]], "leads beyond"),
            (&[[7000, 4, 17, 1]], "leads beyond"),
            (&[[7000, 4, 0x8000_0000, 1]], "leads beyond"),
            (&[[7000, 4, 4, 0]], "leads beyond"),
            (&[[7000, 8, 0, 13]], "leads beyond"),
            (&[[7000, 6, 16, 1]], "leads beyond"),
            (&[[7000, 0, 0, 1]], "no known type"),
            (&[[7000, 10, 0, 1]], "no known type"),
            (&[[7000, 6, 0, 2]], "no known type"),
            (&[texts, [7002, 4, 6, 2]], "not aligned"),
            (&[[99, 7, 0, 16]], "out of range"),
            (&[[0x8000_0000, 7, 0, 16]], "out of range"),
            (&[[7000, 7, 0, 15]], "no entry"),
            (&[[7000, 7, 1, 14]], "no entry"),
        ] {
            check(Role::Main, entries, data, expected);
        }
        let many = vec![0; VALUES_MAX + 1];
        check(Role::Main, &[[7000, 2, 0, many.len() as u32]], &many, "too many values");
    }

    #[test]
    fn a_region_counts_its_entries() {
        let trailer = |tag: u32, kind: u32, distance: i32, count: u32| {
            [b"abc\0".to_vec(), index(&[[tag, kind, distance as u32, count]])].concat()
        };
        let [region, bytes] = [[63, 7, 4, 16], [7000, 7, 0, 4]];
        let sound = trailer(63, 7, -32, 16);
        check(Role::Main, &[region, bytes], &sound, "");
        for (data, expected) in [
            (trailer(62, 7, -32, 16), "no trailer"),
            (trailer(61, 7, -32, 16), "no trailer"),
            (trailer(63, 8, -32, 16), "no trailer"),
            (trailer(63, 7, -32, 17), "no trailer"),
            (trailer(63, 7, -48, 16), "wrong number of entries"),
            (trailer(63, 7, -31, 16), "wrong number of entries"),
            (trailer(63, 7, 32, 16), "wrong number of entries"),
            (trailer(63, 7, 0, 16), "wrong number of entries"),
            (trailer(63, 7, -16, 16), "outside of its region"),
            ([sound.clone(), vec![0]].concat(), "outside of its region"),
        ] {
            check(Role::Main, &[region, bytes], &data, expected);
        }
        for (entries, expected) in [
            ([[63, 7, 5, 16], bytes], "beyond its data"),
            ([[63, 6, 4, 16], bytes], "wrong type or size"),
            ([[63, 7, 4, 32], bytes], "wrong type or size"),
            ([region, [7000, 7, 0, 5]], "region's trailer"),
            ([region, [1000, 7, 0, 4]], "values of a wrong type"),
            ([region, [1009, 6, 0, 1]], "values of a wrong type"),
            ([region, [1000, 8, 0, 1]], ""),
            ([region, [7000, 7, 0, 3]], "no entry"),
        ] {
            check(Role::Main, &entries, &sound, expected);
        }
        // Signatures are added later, and have their own numbers.
        let added = [[62, 7, 4, 16], [1000, 7, 0, 4], [1001, 7, 20, 1]];
        for tag in [61, 62] {
            let data = [trailer(tag, 7, -32, 16), vec![0]].concat();
            check(Role::Signatures, &added, &data, "");
        }
    }
}
