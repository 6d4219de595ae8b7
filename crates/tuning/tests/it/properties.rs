//! Properties of any text and any databases.

use gfxpack_tuning::{Database, DatabaseKind, DbRecord, RecordReader};
use proptest::prelude::*;

/// Records with few different keys and solvers, so that they collide.
fn records() -> impl Strategy<Value = Vec<(String, Vec<(String, String)>)>> {
    let values = prop::collection::vec(("[A-C]", "[0-9],[0-9],a"), 1..3);
    prop::collection::vec(("[k-n]", values), 0..6)
}

fn database(kind: DatabaseKind, records: &[(String, Vec<(String, String)>)]) -> Database {
    let mut database = Database::new(kind);
    for (key, values) in records {
        let values: Vec<String> =
            values.iter().map(|(solver, values)| format!("{solver}:{values}")).collect();
        let line = format!("{key}={}", values.join(";"));
        database.lay_over(DbRecord::parse(line.as_bytes(), kind).0.expect("a record"));
    }
    database
}

fn over(mut below: Database, above: Database) -> Database {
    below.lay_all_over(above);
    below
}

fn text(database: &Database) -> Vec<u8> {
    let mut text = Vec::new();
    database.write_to(&mut text).expect("memory can be written to");
    text
}

/// Any bytes, or a line of the characters that matter.
fn text_like() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![any::<Vec<u8>>(), "[ab=:;,1\r]{0,24}".prop_map(String::into_bytes)]
}

proptest! {
    #[test]
    fn any_bytes_can_be_read_and_records_read_back(bytes in text_like(), find: bool) {
        let kind = if find { DatabaseKind::Find } else { DatabaseKind::Perf };
        let (record, faults) = DbRecord::parse(&bytes, kind);
        if let Some(record) = record {
            let line = record.line();
            prop_assert!(!line.contains('\n'));
            let (again, new) = DbRecord::parse(line.as_bytes(), kind);
            prop_assert_eq!(again.as_ref(), Some(&record));
            prop_assert!(new.iter().all(|fault| faults.contains(fault) && !fault.loses()));
        } else {
            prop_assert!(!faults.is_empty());
        }
    }

    #[test]
    fn merging_is_associative(a in records(), b in records(), c in records(), find: bool) {
        let kind = if find { DatabaseKind::Find } else { DatabaseKind::Perf };
        let [a, b, c] = [&a, &b, &c].map(|records| database(kind, records));
        let left = over(over(a.clone(), b.clone()), c.clone());
        let right = over(a.clone(), over(b, c));
        prop_assert_eq!(text(&left), text(&right));
        prop_assert_eq!(text(&over(a.clone(), a.clone())), text(&a), "once more changes nothing");
    }

    #[test]
    fn written_databases_read_back(records in records()) {
        let database = database(DatabaseKind::Perf, &records);
        let text = text(&database);
        let mut reader = RecordReader::new(text.as_slice(), DatabaseKind::Perf);
        let mut again = Database::new(DatabaseKind::Perf);
        while let Some(line) = reader.next_line().expect("memory can be read") {
            prop_assert!(line.faults.is_empty() && line.ended);
            again.lay_over(line.record.expect("a record"));
        }
        prop_assert_eq!(again, database);
    }
}
