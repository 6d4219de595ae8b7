//! What is written through the window against what is written without it: by
//! random calls, and by SQLite.

use std::ops::Range;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR, SQLITE_IOERR_SHORT_READ};

use super::*;

/// A file in memory, with as much room as a disk leaves it.
#[derive(Default)]
struct Memory {
    bytes: Vec<u8>,
    room: usize,
    writes: Vec<Range<u64>>,
}

impl Memory {
    fn with_room(room: usize) -> Self {
        Self { room, ..Self::default() }
    }
}

impl File for Memory {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Status {
        let from = self.bytes.len().min(at as usize);
        let there = bytes.len().min(self.bytes.len() - from);
        bytes[..there].copy_from_slice(&self.bytes[from..from + there]);
        bytes[there..].fill(0);
        if there == bytes.len() { Ok(()) } else { Err(SQLITE_IOERR_SHORT_READ) }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Status {
        let end = at as usize + bytes.len();
        if end > self.room {
            return Err(SQLITE_FULL);
        }
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[at as usize..end].copy_from_slice(bytes);
        self.writes.push(at..end as u64);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Status {
        self.bytes.truncate(size as usize);
        Ok(())
    }

    fn size(&mut self) -> Status<u64> {
        Ok(self.bytes.len() as u64)
    }
}

#[derive(Debug, Clone)]
enum Call {
    /// Bytes that begin this far from where the last write ended.
    Near(i64, Vec<u8>),
    Write(u64, Vec<u8>),
    Read(u64, usize),
    Truncate(u64),
    Size,
    Whole,
}

const TEST_PIECE: u32 = 16;

fn call() -> impl Strategy<Value = Call> {
    let (at, bytes) = (0..300_u64, || vec(1..=u8::MAX, 1..50));
    prop_oneof![
        12 => (-30..30_i64, bytes()).prop_map(|(by, bytes)| Call::Near(by, bytes)),
        2 => (at.clone(), bytes()).prop_map(|(at, bytes)| Call::Write(at, bytes)),
        6 => (at.clone(), 1..50_usize).prop_map(|(at, len)| Call::Read(at, len)),
        1 => at.prop_map(Call::Truncate),
        2 => Just(Call::Size),
        1 => Just(Call::Whole),
    ]
}

/// What a call says, and the bytes that it reads.
fn carry_out(file: &mut impl File, call: &Call, last: &mut u64) -> (Status<u64>, Vec<u8>) {
    let mut read = Vec::new();
    let status = match call {
        Call::Near(..) | Call::Write(..) => {
            let (at, bytes) = match call {
                Call::Near(by, bytes) => (last.saturating_add_signed(*by), bytes),
                Call::Write(at, bytes) => (*at, bytes),
                _ => unreachable!("two kinds of writes"),
            };
            *last = at + bytes.len() as u64;
            file.write(at, bytes)
        }
        Call::Read(at, len) => {
            read.resize(*len, 0xaa);
            file.read(*at, &mut read)
        }
        Call::Truncate(size) => file.truncate(*size),
        Call::Size => return (file.size(), read),
        Call::Whole => Ok(()),
    };
    (status.map(|()| 0), read)
}

/// So that the same calls go to both.
impl File for Joined<Memory> {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Status {
        Joined::read(self, at, bytes)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Status {
        Joined::write(self, at, bytes)
    }

    fn truncate(&mut self, size: u64) -> Status {
        Joined::truncate(self, size)
    }

    fn size(&mut self) -> Status<u64> {
        Joined::size(self)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn calls_give_what_they_give_without_a_window(calls in vec(call(), 1..60)) {
        let mut direct = Memory::with_room(usize::MAX);
        let mut joined = Joined::new(Memory::with_room(usize::MAX), TEST_PIECE);
        let (mut last, mut same_last) = (0, 0);
        for call in &calls {
            let expected = carry_out(&mut direct, call, &mut last);
            prop_assert_eq!(carry_out(&mut joined, call, &mut same_last), expected, "{:?}", call);
            if let Call::Whole = call {
                prop_assert_eq!(&joined.whole().unwrap().bytes, &direct.bytes);
            }
        }
        let below = joined.whole().unwrap();
        prop_assert_eq!(&below.bytes, &direct.bytes);
        prop_assert!(below.writes.iter().all(|run| run.end - run.start <= TEST_PIECE.into()));
    }

    /// A file is reported whole only if it is, and a failure by all that follow.
    #[test]
    fn no_room_is_never_kept_quiet(calls in vec(call(), 1..60), room in 0..400_usize) {
        let mut direct = Memory::with_room(usize::MAX);
        let mut joined = Joined::new(Memory::with_room(room), TEST_PIECE);
        let (mut last, mut same_last, mut largest) = (0, 0, 0);
        let mut failed = false;
        for call in calls.iter().chain([&Call::Whole]) {
            let expected = carry_out(&mut direct, call, &mut last);
            largest = largest.max(direct.bytes.len());
            let (mut status, read) = carry_out(&mut joined, call, &mut same_last);
            if let (Call::Whole, Ok(_)) = (call, status) {
                status = joined.whole().map(|below| {
                    assert_eq!(below.bytes, direct.bytes);
                    0
                });
            }
            if status == Err(SQLITE_FULL) {
                failed = true;
                prop_assert!(largest > room, "{} bytes fit", largest);
            } else {
                prop_assert_eq!((status, read), expected);
                prop_assert!(!failed, "{:?} after a failure", call);
            }
        }
        prop_assert_eq!(failed, largest > room);
    }
}

#[test]
fn pages_in_nearly_the_files_order_are_written_in_whole_pieces() {
    let mut joined = Joined::new(Memory::with_room(usize::MAX), PIECE);
    let page = [7; 4096];
    // Some come late, by up to fifteen pages; one of long ago is written again.
    for group in 0..64_u64 {
        for late in [5, 2, 0, 1, 3, 4, 7, 6] {
            joined.write((group * 8 + late) * 4096, &page).unwrap();
        }
    }
    joined.write(0, &page).unwrap();
    let writes = &joined.whole().unwrap().writes;
    let again = writes.iter().filter(|run| **run == (0..4096)).count();
    assert_eq!(again, 1);
    let pieces: Vec<_> = writes.iter().filter(|run| run.end != 4096).cloned().collect();
    let expected = (0..32).map(|piece| piece * 65_536..(piece + 1) * 65_536);
    assert!(pieces.iter().cloned().eq(expected), "{pieces:?}");
}

#[test]
fn a_panic_is_an_error_and_the_file_is_not_used_again() {
    let mut joined = Joined::new(Memory::with_room(usize::MAX), TEST_PIECE);
    joined.write(0, &[1]).unwrap();
    assert_eq!(guarded(&mut joined, |_| panic!("as a mistake in the window would")), SQLITE_IOERR);
    assert_eq!(guarded(&mut joined, |joined| joined.whole().map(drop)), SQLITE_IOERR);
}

/// Runs statements that let a file grow, be rewritten and shrink, with a cache
/// of few pages; gives the file's bytes after each commit and at the end.
fn work(connection: Connection, path: &Path, settings: &str) -> Vec<Vec<u8>> {
    connection.execute_batch(settings).unwrap();
    let steps = [
        "CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT, body BLOB);
         CREATE INDEX names ON rows (name);",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
         INSERT INTO rows SELECT i, hex(i * 7919 % 1009), zeroblob(i * 31 % 5000) FROM n;",
        "UPDATE rows SET body = CAST(printf('%.*c', id % 700, 'x') AS BLOB) WHERE id % 3 = 0;",
        "DELETE FROM rows WHERE id % 5 = 0; CREATE INDEX bodies ON rows (body, name);",
        "DELETE FROM rows WHERE id > 400; DROP INDEX names;",
    ];
    let mut states = Vec::new();
    for step in steps {
        connection.execute_batch(&format!("BEGIN; {step} COMMIT;")).unwrap();
        states.push(std::fs::read(path).unwrap());
    }
    connection.execute_batch("VACUUM").unwrap();
    states.push(std::fs::read(path).unwrap());
    let sound: String =
        connection.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    connection.close().unwrap();
    states.push(std::fs::read(path).unwrap());
    states
}

#[test]
fn sqlite_writes_the_same_bytes_and_has_them_in_the_file_at_every_commit() {
    let directory = tempfile::tempdir().unwrap();
    for (case, settings) in [
        "PRAGMA page_size = 4096; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = 10; PRAGMA secure_delete = ON;",
        "PRAGMA page_size = 1024; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA cache_size = 10;",
        "PRAGMA page_size = 65536; PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2;",
        "PRAGMA page_size = 512; PRAGMA journal_mode = MEMORY; PRAGMA cache_size = 20;
         PRAGMA auto_vacuum = FULL;",
    ]
    .into_iter()
    .enumerate()
    {
        let path = |kind| directory.path().join(format!("{case}.{kind}"));
        let (direct, joined) = (path("direct"), path("joined"));
        let direct = work(Connection::open(&direct).unwrap(), &direct, settings);
        let flags = rusqlite::OpenFlags::default();
        let connection =
            Connection::open_with_flags_and_vfs(&joined, flags, name().unwrap()).unwrap();
        let joined = work(connection, &joined, settings);
        assert!(direct.iter().any(|state| state.len() > 20 * PIECE as usize));
        for (step, (direct, joined)) in direct.iter().zip(&joined).enumerate() {
            assert!(direct == joined, "case {case}, step {step}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_and_the_default_stays() {
    let directory = tempfile::tempdir().unwrap();
    let absent = directory.path().join("absent");
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let error = Connection::open_with_flags_and_vfs(&absent, flags, name().unwrap()).unwrap_err();
    let code = error.sqlite_error_code();
    assert_eq!(code, Some(rusqlite::ErrorCode::CannotOpen));
    // SAFETY: null asks for the default, whose name ends with a NUL byte.
    let default = unsafe { CStr::from_ptr((*ffi::sqlite3_vfs_find(ptr::null())).zName) };
    assert_ne!(default, NAME);
}
