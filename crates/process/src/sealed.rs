//! Cache files with a checksum: a digest, and the JSON that it covers.

use std::fs;
use std::io;
use std::path::Path;

use gfxpack_model::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::atomic::write_atomic;

/// The length of a digest in hexadecimal.
const SEAL: usize = 64;

/// Writes a file completely or not at all.
///
/// # Errors
/// The error of the file system, or a path in the content that is no UTF-8.
pub fn write_sealed(file: &Path, content: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(content)?;
    write_atomic(file, &[Digest::of(&text).to_string().as_bytes(), &text])
}

/// The content of a file; `None` if it is missing, damaged, or has another form.
#[must_use]
pub fn read_sealed<T: DeserializeOwned>(file: &Path) -> Option<T> {
    let bytes = fs::read(file).ok()?;
    let (seal, text) = bytes.split_at_checked(SEAL)?;
    let whole = seal == Digest::of(text).to_string().as_bytes();
    if whole { serde_json::from_slice(text).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_or_cut_file_reads_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b");
        let content = vec!["one".to_owned(), "two".to_owned()];
        let read = || read_sealed::<Vec<String>>(&file);
        assert_eq!(read(), None);
        write_sealed(&file, &content).unwrap();
        assert_eq!(read(), Some(content));
        assert_eq!(read_sealed::<u32>(&file), None);
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&file, &damaged).unwrap();
            assert_eq!(read(), None, "byte {at}");
            fs::write(&file, &whole[..at]).unwrap();
            assert_eq!(read(), None, "cut at {at}");
        }
    }
}
