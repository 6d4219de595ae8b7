//! Keys and code objects for tests.

use std::path::Path;

use gfxpack_rocfft::{CacheKey, write};

/// The key of a kernel of length `len` for gfx90a.
pub(crate) fn key(len: u32) -> CacheKey {
    CacheKey {
        kernel_name: format!("fft_rtc_fwd_len{len}_wgs_64_sp_ip_CI_unitstride_sbrr"),
        arch: "gfx90a".into(),
        hip_version: 60_443_484,
        generator_sum: [7; 32],
    }
}

/// Bytes that the driver would accept for the kernel of a key: an ELF file for its processor with
/// one symbol, and `padding` more bytes.
pub(crate) fn code(key: &CacheKey, padding: usize) -> Vec<u8> {
    let mach: u32 = match &*key.arch {
        "gfx906" => 0x52f,
        "gfx90a" => 0x53f,
        "gfx1201" => 0x4e,
        other => panic!("{other} has no number here"),
    };
    elf(mach, &key.symbol(), padding)
}

/// An ELF file of AMDGPU with these flags that defines one symbol.
pub(crate) fn elf(flags: u32, symbol: &str, padding: usize) -> Vec<u8> {
    let names = [b"\0", symbol.as_bytes(), b"\0"].concat();
    let symbols_at = 64;
    let names_at = symbols_at + 48;
    let padding = (names_at + names.len() + padding).next_multiple_of(8) - names_at - names.len();
    let sections_at = names_at + names.len() + padding;
    let mut bytes = Vec::new();
    let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| bytes.extend_from_slice(part));
    let (word, half) = (|n: usize| (n as u64).to_le_bytes(), |n: u16| n.to_le_bytes());
    put(&[
        b"\x7fELF\x02\x01\x01\x40\x02\0\0\0\0\0\0\0",
        &half(3),
        &half(0xe0),
        &1_u32.to_le_bytes(),
    ]);
    put(&[&word(0), &word(0), &word(sections_at), &flags.to_le_bytes()]);
    put(&[&half(64), &half(0), &half(0), &half(64), &half(3), &half(2)]);
    // The null symbol; then a global object in section 1.
    put(&[&[0; 24], &1_u32.to_le_bytes(), &[0x11, 0], &half(1), &word(0), &word(64)]);
    put(&[&names, &vec![0x5a; padding]]);
    // Kind, flags, address, offset, size, link, info, alignment, size of an entry.
    put(&[&[0; 64]]);
    for (kind, at, size, link, entry) in
        [(11_u32, symbols_at, 48, 2_u32, 24), (3, names_at, names.len(), 0, 0)]
    {
        put(&[
            &0_u32.to_le_bytes(),
            &kind.to_le_bytes(),
            &word(0),
            &word(0),
            &word(at),
            &word(size),
        ]);
        put(&[&link.to_le_bytes(), &1_u32.to_le_bytes(), &word(1), &word(entry)]);
    }
    bytes
}

/// Writes keys in order with their code objects.
pub(crate) fn write_all(path: &Path, rows: &[(CacheKey, Vec<u8>)]) {
    let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
    write(path, &keys, |at| Ok(rows[at].1.clone())).unwrap()
}

/// Forty rows with code objects of 300 bytes to 20 KB, in order.
pub(crate) fn rows() -> Vec<(CacheKey, Vec<u8>)> {
    let mut keys: Vec<_> = (1..=40).map(|n| key(n * 8)).collect();
    keys.sort();
    keys.iter().enumerate().map(|(at, key)| (key.clone(), code(key, at * 500))).collect()
}
