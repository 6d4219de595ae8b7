//! Small kdbs, whose objects tell by their bytes which ones they are.

use std::fs;
use std::path::Path;

use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_model::KernelKey;

/// The number of a processor in its code objects.
pub(crate) const GFX906: u8 = 0x2f;

/// As much of a code object as anybody looks at.
pub(crate) fn code_object(machine: u8, mark: u8) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\x40\x02".to_vec();
    bytes.resize(200, mark);
    bytes[18..20].copy_from_slice(&[0xe0, 0]);
    bytes[48..52].copy_from_slice(&[machine, 5, 0, 0]);
    bytes
}

/// Writes a kdb with this object for each of the keys, and creates its directory.
pub(crate) fn write_kdb(path: &Path, mut keys: Vec<KernelKey>, object: &[u8]) {
    keys.sort();
    let rows: Vec<Row<'_>> =
        keys.iter().map(|key| Row { key, size: object.len() as u64 }).collect();
    fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("made");
    let object = |_| std::io::Result::Ok(object.to_vec());
    write(path, &rows, &WriteOptions::default(), object).expect("written");
}
