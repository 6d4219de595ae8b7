//! Holes in files: ranges that were never written, which read as zeros and take
//! no disk space. Even a small disk can hold a file of many terabytes.

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The next range of bytes that is not a hole, at `from` or after it; `None` if
/// only a hole is left up to `end`. If the file system can't tell, nothing
/// counts as a hole.
///
/// Source: Linux, `lseek(2)`, "Seeking file data and holes".
pub(crate) fn next_data(file: &File, from: u64, end: u64) -> io::Result<Option<Range<u64>>> {
    let start = match seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok((from < end).then_some(from..end)),
        Err(error) => return Err(error.into()),
    };
    let hole = seek(file, SeekFrom::Hole(start))?;
    Ok((start < end).then_some(start..hole.min(end)))
}

/// Bytes of a file that are not in holes; `end` is its size.
pub(crate) fn data_bytes(file: &File, end: u64) -> io::Result<u64> {
    let (mut bytes, mut from) = (0, 0);
    while let Some(data) = next_data(file, from, end)? {
        bytes += data.end - data.start;
        from = data.end;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn holes_do_not_count_as_data() {
        const MIB: u64 = 1 << 20;
        let file = tempfile::tempfile().unwrap();
        assert_eq!(next_data(&file, 0, 0).unwrap(), None);
        file.set_len(1 << 40).unwrap();
        assert_eq!(data_bytes(&file, 1 << 40).unwrap(), 0);
        for at in [0, 700 * MIB] {
            file.write_all_at(&[1; MIB as usize], at).unwrap();
        }
        assert_eq!(data_bytes(&file, 1 << 40).unwrap(), 2 * MIB);
        assert_eq!(next_data(&file, MIB, 1 << 40).unwrap(), Some(700 * MIB..701 * MIB));
        assert_eq!(next_data(&file, 701 * MIB, 1 << 40).unwrap(), None);
        assert_eq!(next_data(&file, 0, 4096).unwrap(), Some(0..4096), "no further than asked");
    }
}
