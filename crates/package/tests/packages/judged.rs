//! Packages that rpm and dpkg reject, one for each of their rules, with the
//! findings.

use std::fs;
use std::path::Path;

use gfxpack_model::Digest;
use gfxpack_package::Format;

use crate::archives::{TarEntry, control, deb, file, tar};
use crate::support::plain_spec;

/// A tag, its type, its number of values, and the values.
type Value = (u32, u32, u32, Vec<u8>);

/// A file's extension, its bytes, and what the finding contains; empty for a
/// sound package.
pub(crate) type Case = (&'static str, Vec<u8>, &'static str);

const MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// A header with these values in a region.
fn header(region: u32, values: &[Value]) -> Vec<u8> {
    let (mut index, mut data) = (Vec::new(), Vec::new());
    for (tag, kind, count, bytes) in values {
        let align = [1, 1, 1, 2, 4, 8].get(*kind as usize).copied().unwrap_or(1);
        data.resize(usize::next_multiple_of(data.len(), align), 0);
        index.extend([*tag, *kind, data.len() as u32, *count]);
        data.extend(bytes);
    }
    let entries = values.len() as u32 + 1;
    let first = [region, 7, data.len() as u32, 16];
    let trailer = [region, 7, (entries * 16).wrapping_neg(), 16];
    data.extend(trailer.into_iter().flat_map(u32::to_be_bytes));
    let intro = [entries, data.len() as u32];
    let numbers = intro.into_iter().chain(first).chain(index).flat_map(u32::to_be_bytes);
    MAGIC.into_iter().chain(numbers).chain(data).collect()
}

/// The values of the header at `start`, without its region; and its end.
fn values(bytes: &[u8], start: usize) -> (Vec<Value>, usize) {
    let (entries, size) = (number(bytes, start + 8) as usize, number(bytes, start + 12) as usize);
    let data = &bytes[start + 16 + entries * 16..][..size];
    let values = (1..entries).map(|entry| {
        let at = start + 16 + entry * 16;
        let (kind, count) = (number(bytes, at + 4), number(bytes, at + 12));
        let rest = &data[number(bytes, at + 8) as usize..];
        let size = match kind {
            3 => count as usize * 2,
            4 => count as usize * 4,
            6 | 8 | 9 => {
                let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte == 0);
                ends.nth(count as usize - 1).expect("texts end").0 + 1
            }
            _ => count as usize,
        };
        (number(bytes, at), kind, count, rest[..size].to_vec())
    });
    (values.collect(), start + 16 + entries * 16 + size)
}

fn packed(lead: &[u8], signatures: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut made = [lead, signatures].concat();
    made.resize(made.len().next_multiple_of(8), 0);
    made.extend(rest);
    made
}

/// Packages made below `dir` that rpm rejects, after a sound one.
pub(crate) fn rpms(dir: &Path) -> Vec<Case> {
    let written = Format::RPM.write(&plain_spec(vec![7; 100]), dir, 1, None);
    let whole = fs::read(written.expect("written").path).expect("read");
    let (signed, end) = values(&whole, 96);
    let start = end.next_multiple_of(8);
    let (main, payload) = values(&whole, start);
    let (lead, rest) = (&whole[..96], &whole[start..]);
    let with_signed = |more: Value| {
        let mut all = signed.clone();
        all.retain(|(tag, ..)| *tag != more.0);
        all.push(more);
        packed(lead, &header(62, &all), rest)
    };
    // A changed header with correct digests.
    let with_header = |changed: Vec<u8>| {
        let sum = format!("{}\0", Digest::of(&changed));
        let signatures = header(62, &[(273, 6, 1, sum.into_bytes())]);
        packed(lead, &signatures, &[&changed[..], &whole[payload..]].concat())
    };
    let with_main = |more: Value| {
        let mut all = main.clone();
        all.retain(|(tag, ..)| *tag != more.0);
        all.push(more);
        with_header(header(63, &all))
    };
    let changed = |at: usize, to: u32| {
        let mut bytes = whole[start..payload].to_vec();
        bytes[at..at + 4].copy_from_slice(&to.to_be_bytes());
        bytes
    };
    let end = payload - start;
    let many = (0..32).map(|tag| (2000 + tag, 7, 1, vec![0])).collect::<Vec<Value>>();
    let zeros = |size| vec![b'0'; size];
    let mut cases = vec![
        ("rpm", whole.clone(), ""),
        ("rpm", with_main((7000, 4, 1, vec![0; 4])), ""),
        ("rpm", with_header(changed(end - 16, 61)), "no trailer"),
        ("rpm", with_header(changed(end - 12, 8)), "no trailer"),
        ("rpm", with_header(changed(end - 8, 16)), "wrong number of entries"),
        ("rpm", with_header(changed(16, 62)), "out of range"),
        ("rpm", with_main((64, 7, 1, vec![0])), "out of range"),
        ("rpm", with_main((1000, 4, 1, vec![0; 4])), "values of a wrong type"),
        ("rpm", with_main((7000, 0, 1, Vec::new())), "no known type"),
        ("rpm", with_main((257, 4, 1, vec![0; 4])), "has the signature tag 257"),
        (
            "rpm",
            with_main((5092, 8, 2, [zeros(64), vec![0], zeros(64), vec![0]].concat())),
            "one digest",
        ),
        ("rpm", packed(lead, &header(62, &[&signed[..], &many].concat()), rest), "too large"),
        ("rpm", with_signed((1004, 7, 16, vec![0; 16])), "MD5 digest"),
        ("rpm", with_signed((1004, 7, 15, vec![0; 15])), "signature tag 1004 has a wrong"),
        ("rpm", with_signed((273, 7, 64, zeros(64))), "signature tag 273 has a wrong"),
        ("rpm", with_signed((1000, 5, 1, vec![0; 8])), "signature tag 1000 has a wrong"),
        ("rpm", with_signed((268, 7, 16, vec![0; 16])), "tag 268 is no OpenPGP signature"),
    ];
    let mut outside = [&header(63, &main)[..], &[0; 8]].concat();
    let size = number(&outside, 12) + 8;
    outside[12..16].copy_from_slice(&size.to_be_bytes());
    cases.push(("rpm", with_header(outside), "outside of its region"));
    cases
}

/// Packages that dpkg-deb rejects, after a sound one.
pub(crate) fn debs() -> Vec<Case> {
    let data = tar(&[file("./usr/x", b"x")]);
    let whole = deb(&control(), &data);
    let renamed = |from: &str, to: &str| {
        let text = format!("{from:<16}");
        let at = whole.windows(16).position(|name| name == text.as_bytes()).expect("a member");
        let mut bytes = whole.clone();
        bytes[at..at + 16].copy_from_slice(format!("{to:<16}").as_bytes());
        bytes
    };
    let sized = |size: &str| {
        let mut bytes = whole.clone();
        bytes[8 + 48..8 + 58].copy_from_slice(format!("{size:<10}").as_bytes());
        bytes
    };
    let numbered = |at: usize, field: &[u8]| {
        let mut data = data.clone();
        data[at..at + field.len()].copy_from_slice(field);
        let sum: u32 = data[..148].iter().chain(&data[156..512]).map(|byte| u32::from(*byte)).sum();
        data[148..156].copy_from_slice(format!("{:06o}\0 ", sum + 8 * 32).as_bytes());
        deb(&control(), &data)
    };
    let fields = |text: &str| {
        let entry: [TarEntry<'_>; 1] = [file("./control", text.as_bytes())];
        deb(&tar(&entry), &data)
    };
    vec![
        ("deb", whole.clone(), ""),
        ("deb", renamed("control.tar.gz", "control.tar.gz/"), ""),
        ("deb", renamed("control.tar.gz", "control.tar.gz\t"), "is not known"),
        ("deb", renamed("control.tar.gz", " control.tar.gz"), "is not known"),
        ("deb", renamed("control.tar.gz", "control.tar.gz//"), "is not known"),
        ("deb", renamed("data.tar.gz", "data.tar.gzip"), "is not known"),
        ("deb", renamed("debian-binary", "debian-binary\t"), "is not known"),
        ("deb", sized("+4"), "header is damaged"),
        ("deb", sized("\t4"), "header is damaged"),
        ("deb", numbered(100, b"0000648\0"), "a mode or a time"),
        ("deb", numbered(100, b"        "), "a mode or a time"),
        ("deb", numbered(136, b"0000000000x\0"), "a mode or a time"),
        ("deb", fields("Package: x\nVersion: 1\nVersion: 1\nArchitecture: all\n"), "twice"),
        ("deb", fields("Package: x\nArchitecture: all\n"), "no valid `Version`"),
        ("deb", fields("Package: x\nVersion: 1\nx\nArchitecture: all\n"), "no field"),
    ]
}
