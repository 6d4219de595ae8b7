//! Parsing of records that are written byte by byte.

use super::*;

/// A record being written, as the library does it.
struct Making {
    bytes: Vec<u8>,
}

const LIMIT: u64 = 1 << 20;

impl Making {
    fn new() -> Self {
        Self { bytes: empty(LIMIT, (false, false), None, None) }
    }

    fn entry(mut self, kind: u8, pid: u32, argument: u32, first: &str, second: &str) -> Self {
        let length = (ENTRY + first.len() + second.len()).next_multiple_of(8);
        let mut entry = vec![0; length];
        entry[..4].copy_from_slice(&(length as u32).to_ne_bytes());
        entry[4] = kind;
        entry[8..12].copy_from_slice(&pid.to_ne_bytes());
        entry[12..16].copy_from_slice(&argument.to_ne_bytes());
        entry[20..24].copy_from_slice(&(first.len() as u32).to_ne_bytes());
        entry[24..28].copy_from_slice(&(second.len() as u32).to_ne_bytes());
        entry[ENTRY..ENTRY + first.len()].copy_from_slice(first.as_bytes());
        entry[ENTRY + first.len()..ENTRY + first.len() + second.len()]
            .copy_from_slice(second.as_bytes());
        self.bytes.extend(entry);
        self
    }

    /// The record with bytes of its last entry changed.
    fn with(mut self, at: usize, bytes: &[u8]) -> Self {
        let last = self.last();
        self.bytes[last + at..last + at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn last(&self) -> usize {
        let (mut at, mut last) = (HEAD, HEAD);
        while at < self.bytes.len() {
            last = at;
            at += number(&self.bytes, at) as usize;
        }
        last
    }

    fn opened(self, inode: u64) -> Self {
        self.with(5, &[1]).with(40, &inode.to_ne_bytes())
    }

    fn program(self, pid: u32, class: u32, args: &str) -> Self {
        self.entry(1, pid, class, "/bin/p", args).entry(3, pid, 0, "/stage", "")
    }

    fn end(self, pid: u32) -> Self {
        self.entry(5, pid, 0, "", "")
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let used = bytes.len() as u64;
        bytes[USED..USED + 8].copy_from_slice(&used.to_ne_bytes());
        bytes
    }

    fn read(&self) -> Result<Record, WatchError> {
        Record::parse(&self.bytes(), LIMIT)
    }
}

#[test]
fn an_incomplete_record_is_refused() {
    let silent = |path: &str| WatchError::NotWatched(path.into());
    let sh = || Making::new().program(1, 0, "sh\0");
    let cases: Vec<(&str, Making, WatchError)> = vec![
        ("nothing", Making::new(), WatchError::Nothing),
        ("no end", sh(), WatchError::NotEnded("/bin/p".into())),
        ("static, spawned", sh().entry(8, 1, 4, "/bin/s", "").end(1), silent("/bin/s")),
        ("static, executed", sh().entry(6, 1, 0, "/bin/s", ""), silent("/bin/s")),
        ("static, by vfork", sh().entry(6, 9, 1, "/bin/s", "").end(1), silent("/bin/s")),
        (
            "static, by fork",
            sh().entry(2, 2, 1, "/", "").entry(6, 2, 0, "/bin/s", "").end(1),
            silent("/bin/s"),
        ),
        ("a shell", sh().entry(10, 1, 0, "/bin/sh", "true").end(1), silent("/bin/sh")),
        (
            "one shell of two",
            sh().program(2, 0, "sh\0-c\0true\0")
                .end(2)
                .entry(10, 1, 0, "/bin/sh", "true")
                .entry(10, 1, 0, "/bin/sh", "true")
                .end(1),
            silent("/bin/sh"),
        ),
        ("untold", sh().entry(9, 1, 0, "popen", ""), WatchError::NotRecordable("popen".into())),
    ];
    for (name, making, expected) in cases {
        assert_eq!(making.read(), Err(expected), "{name}");
    }
}

#[test]
fn damage_is_found() {
    let whole = || Making::new().program(7, 1, "clang\0-cc1\0").end(7);
    assert!(whole().read().is_ok());
    let odd: Vec<(&str, Making)> = vec![
        ("a kind that is none", whole().entry(99, 7, 0, "x", "")),
        ("no entry in its place", whole().entry(33, 7, 0, "x", "").with(0, &[0; 4])),
        ("text beyond the entry", whole().entry(33, 7, 0, "x", "").with(20, &[200])),
        ("text beyond all", whole().entry(33, 7, 0, "x", "").with(20, &[255; 8])),
        ("a zero in a path", whole().entry(33, 7, 0, "a\0b", "")),
        ("no path", whole().entry(33, 7, 0, "", "")),
        ("a process that nobody knows", whole().entry(33, 8, 0, "x", "")),
        ("a child of nobody", whole().entry(2, 8, 9, "/", "")),
        ("an opened file without its state", whole().entry(32, 7, 0, "x", "/stage/x")),
        ("an opened file that lies nowhere", whole().entry(32, 7, 0, "x", "").opened(1)),
        ("arguments that are cut", whole().program(8, 1, "x")),
        ("a turn that was not told", Making::new().program(7, 1, "x\0").program(7, 1, "y\0")),
        ("a flag that is none", whole().entry(33, 7, 0, "x", "").with(5, &[2])),
    ];
    for (name, making) in odd {
        let read = making.read();
        assert!(matches!(read, Err(WatchError::Damaged { .. })), "{name}: {read:?}");
    }
    let bytes = whole().bytes();
    for length in 0..bytes.len() {
        assert!(Record::parse(&bytes[..length], LIMIT).is_err(), "cut at {length}");
    }
    let head = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        Record::parse(&bytes, LIMIT)
    };
    assert_eq!(head(LACKS, 1), Err(WatchError::Full));
    assert_eq!(head(LACKS, 4), Err(WatchError::UnrecordedPath));
    assert!(matches!(head(0, 0), Err(WatchError::Damaged { .. })));
    assert!(matches!(head(8, 1), Err(WatchError::Damaged { .. })));
}
