//! Any bytes as a tuning database: the same records whatever the pieces they
//! come in, the same again from what is written of them, and a sound file.
#![no_main]

use std::io::BufReader;

use gfxpack_tuning::{Database, DatabaseKind, Line, RecordFault, RecordReader};
use libfuzzer_sys::fuzz_target;

fn lines(text: &[u8], piece: usize, kind: DatabaseKind) -> Vec<Line> {
    let mut reader = RecordReader::new(BufReader::with_capacity(piece, text), kind);
    std::iter::from_fn(|| reader.next_line().expect("memory can be read")).collect()
}

fn database(lines: &[Line], kind: DatabaseKind) -> Database {
    let mut database = Database::new(kind);
    for record in lines.iter().filter_map(|line| line.record.clone()) {
        database.lay_over(record);
    }
    database
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, text)) = bytes.split_first() else { return };
    let kind = if first & 1 == 0 { DatabaseKind::Perf } else { DatabaseKind::Find };
    let all = lines(text, 1 << 16, kind);
    assert!(lines(text, usize::from(*first) + 1, kind) == all, "pieces of {first} differ");
    for line in &all {
        assert!(line.record.is_some() || !line.faults.is_empty());
        assert!(line.faults.iter().all(|fault| !fault.to_string().is_empty()));
    }
    let database = database(&all, kind);
    let mut written = Vec::new();
    database.write_to(&mut written).expect("memory can be written to");
    let again = lines(&written, 1 << 16, kind);
    // Separators within values stay, as MIOpen reads them.
    let quiet = |fault: &RecordFault| matches!(fault, RecordFault::Reserved(_));
    assert!(again.iter().all(|line| line.ended && line.faults.iter().all(quiet)));
    assert!(self::database(&again, kind) == database, "read otherwise than it was written");
});
