//! Reads files that MIOpen writes, and MIOpen finds ours. Python's sqlite3 stands in for MIOpen, with
//! exactly its statements.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gfxpack_runtime::{MissReason, Origin, in_full};

use super::support::*;
use crate::support::project::python;

/// What MIOpen does to store: both tables' statements, `INSERT OR REPLACE`,
/// the user's file in WAL mode.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernelConfig::CreateQuery` in kern_db.hpp,
/// `KernDb::StoreRecordUnsafe`, `SQLite::impl` in sqlite_db.cpp.
const STORE: &str = r"
import bz2, hashlib, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == 'wal':
    db.execute('PRAGMA journal_mode=WAL;')
db.execute('CREATE TABLE IF NOT EXISTS `kern_db` (`id` INTEGER PRIMARY KEY ASC,`kernel_name` TEXT NOT NULL,`kernel_args` TEXT NOT NULL,`kernel_blob` BLOB NOT NULL,`kernel_hash` TEXT NOT NULL,`uncompressed_size` INT NOT NULL);')
db.execute('CREATE UNIQUE INDEX IF NOT EXISTS `idx_kern_db` ON kern_db (kernel_name, kernel_args);')
for name, args, path in zip(sys.argv[3::3], sys.argv[4::3], sys.argv[5::3]):
    body = open(path, 'rb').read()
    blob, size = bz2.compress(body, 9), len(body)
    if len(blob) >= len(body):
        blob, size = body, 0
    db.execute('INSERT OR REPLACE INTO kern_db(kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) VALUES(?, ?, ?, ?, ?);',
        (name, args, blob, hashlib.md5(body).hexdigest(), size))
if len(sys.argv) > 3 and sys.argv[2] == 'wal':
    # As a process that is still running leaves it.
    import os
    os._exit(0)
db.close()
";

/// What MIOpen does to look up, the key spliced into the statement.
///
/// Source: ROCm/MIOpen 2d1fd997a, `SQLiteBase::CheckTableColumns`,
/// `KernDb::FindRecordUnsafe`.
const FIND: &str = r#"
import bz2, hashlib, sqlite3, sys
db = sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True)
columns = [row[1] for row in db.execute('PRAGMA table_info(kern_db);')]
assert {'kernel_name', 'kernel_args', 'kernel_blob'} <= set(columns), columns
where = "(kernel_name = '%s') AND (kernel_args = '%s')" % (sys.argv[2], sys.argv[3])
row = db.execute('SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE ' + where + ';').fetchone()
body = row[0] if row[2] == 0 else bz2.decompress(row[0])
assert hashlib.md5(body).hexdigest() == row[1]
assert row[2] in (0, len(body))
open(sys.argv[4], 'wb').write(body)
"#;

fn miopen_stores(machine: &Machine, file: &Path, mode: &str, numbers: &[usize]) {
    let mut arguments = vec![file.to_owned(), mode.into()];
    for number in numbers {
        let path = machine.root.join(format!("{number}.o"));
        std::fs::write(&path, object(*number)).unwrap();
        let key = numbered(*number);
        arguments.extend([key.kernel_name.into(), key.kernel_args.into(), path]);
    }
    let arguments: Vec<&Path> = arguments.iter().map(|argument| argument.as_path()).collect();
    python(STORE, &arguments);
}

#[track_caller]
fn miopen_finds(machine: &Machine, number: usize) {
    let key = numbered(number);
    let out = machine.root.join("found.o");
    let (name, args) = (Path::new(&key.kernel_name), Path::new(&key.kernel_args));
    python(FIND, &[&machine.ukdb(), name, args, &out]);
    assert!(std::fs::read(&out).unwrap() == object(number));
}

#[test]
fn a_users_kdb_is_shared_with_miopen() {
    for mode in ["delete", "wal"] {
        let machine = Machine::new(1);
        std::fs::create_dir(&machine.user).unwrap();
        miopen_stores(&machine, &machine.ukdb(), mode, &[10, 11]);
        assert_eq!(machine.user.join(format!("{USER_NAME}-wal")).exists(), mode == "wal");
        let cache = machine.open();
        for number in [10, 11] {
            assert_eq!(cache.kernel(number).origin, Origin::User(machine.ukdb()), "{mode}");
        }
        assert_eq!(cache.kernel(12).origin, Origin::Compiled);
        miopen_finds(&machine, 12);
        miopen_finds(&machine, 10);
        // MIOpen stores while the cache is open, and replaces what it has.
        miopen_stores(&machine, &machine.ukdb(), mode, &[12, 13]);
        assert_eq!(cache.kernel(13).origin, Origin::User(machine.ukdb()));
        assert_eq!(cache.kernel(12).origin, Origin::User(machine.ukdb()));
        assert!(cache.warnings.texts().is_empty(), "{:?}", cache.warnings.texts());
        assert_whole(&machine.ukdb());
    }
}

#[test]
fn a_kdb_created_by_gfxpack_is_written_by_miopen() {
    let machine = Machine::new(1);
    let cache = machine.open();
    cache.kernel(5);
    miopen_finds(&machine, 5);
    miopen_stores(&machine, &machine.ukdb(), "wal", &[5, 6]);
    assert_eq!(cache.kernel(6).origin, Origin::User(machine.ukdb()));
    assert_eq!(cache.kernel(7).origin, Origin::Compiled);
    miopen_finds(&machine, 7);
    let schema = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute('SELECT name, type, \"notnull\", pk FROM pragma_table_info(\"kern_db\")').fetchall())
print(db.execute('PRAGMA index_info(idx_kern_db)').fetchall())
print(db.execute('PRAGMA index_list(kern_db)').fetchall()[0][2])";
    assert_eq!(
        python(schema, &[&machine.ukdb()]),
        "[('id', 'INTEGER', 0, 1), ('kernel_name', 'TEXT', 1, 0), ('kernel_args', 'TEXT', 1, 0), \
         ('kernel_blob', 'BLOB', 1, 0), ('kernel_hash', 'TEXT', 1, 0), \
         ('uncompressed_size', 'INT', 1, 0)]\n[(0, 1, 'kernel_name'), (1, 2, 'kernel_args')]\n1\n"
    );
}

/// Names, contents, modes, owners and times of the user's directory.
fn state(machine: &Machine) -> impl PartialEq + use<> {
    let stat = |path: &Path| {
        let metadata = std::fs::symlink_metadata(path).unwrap();
        // Not when the status changed: where root opens a log, SQLite gives it
        // to the owner of its kdb, who has it already.
        (metadata.mode(), metadata.uid(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    };
    let files: BTreeMap<_, _> = listing(&machine.user)
        .into_iter()
        .map(|name| {
            let path = machine.user.join(&name);
            (name, (stat(&path), std::fs::read(&path).unwrap()))
        })
        .collect();
    (stat(&machine.user), files)
}

fn look_only(machine: &Machine) -> Cache {
    let (mut config, warnings) = machine.config();
    config.look_only = true;
    Cache::open((config, warnings))
}

/// Nothing is checkpointed, rolled back, made, removed or given another mode.
#[test]
fn a_read_only_lookup_changes_nothing_in_any_state_of_the_file() {
    let begun = |mode: &str| {
        let machine = Machine::new(1);
        std::fs::create_dir(&machine.user).unwrap();
        miopen_stores(&machine, &machine.ukdb(), mode, &[10, 11]);
        chmod(&machine.user, 0o775);
        chmod(&machine.ukdb(), 0o664);
        machine
    };
    let is_seen = |machine: &Machine| {
        let before = state(machine);
        let cache = look_only(machine);
        for _ in 0..2 {
            let layers = [10, 11, 12].map(|number| cache.layer(number));
            assert_eq!(layers, [Some("user"), Some("user"), None], "{:?}", cache.warnings.texts());
        }
        assert!(cache.warnings.texts().is_empty(), "{:?}", cache.warnings.texts());
        drop(cache);
        assert!(state(machine) == before, "{:?}", listing(&machine.user));
    };
    is_seen(&begun("delete"));
    // Killed while it had the log, with or without the log's index; and ended.
    let machine = begun("wal");
    let log = machine.user.join(format!("{USER_NAME}-wal"));
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    is_seen(&machine);
    std::fs::remove_file(machine.user.join(format!("{USER_NAME}-shm"))).unwrap();
    is_seen(&machine);
    sql(&machine.ukdb(), "SELECT * FROM kern_db");
    assert_eq!(listing(&machine.user), [USER_NAME], "the log is written back");
    is_seen(&machine);
}

#[test]
fn a_read_only_lookup_rolls_nothing_back() {
    let machine = Machine::new(1);
    machine.open().kernel(10);
    let killed = "import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('PRAGMA cache_size=1')
db.execute('BEGIN')
db.execute('INSERT INTO kern_db SELECT 99, kernel_name, 1, zeroblob(1000000), 1, 1 FROM kern_db')
db.execute('DELETE FROM kern_db WHERE id < 99')
os._exit(0)";
    python(killed, &[&machine.ukdb()]);
    assert!(listing(&machine.user).contains(&format!("{USER_NAME}-journal")));
    std::fs::remove_dir(machine.user.join(".gfxpack-locks")).unwrap();
    let before = state(&machine);
    let lookup = look_only(&machine).cache.get(&numbered(10));
    let reason = &lookup.misses[2].reason;
    assert!(matches!(reason, MissReason::Unreadable(_)), "{reason:?}");
    assert!(in_full(reason).contains("cut short"), "{}", in_full(reason));
    assert!(state(&machine) == before);
    let kernel = machine.open().kernel(10);
    assert_eq!(kernel.origin, Origin::User(machine.ukdb()), "who may change it finds it");
}
