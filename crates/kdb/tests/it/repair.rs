//! Damaged files give back every row that is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gfxpack_kdb::{
    Blob, CopyError, CopyOptions, Layout, ReadError, Reader, Repaired, VerifyOptions, repair,
    verify,
};
use gfxpack_plan::KernelKey;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{GFX906, code_object, kernels, key, python, write_kernels, write_laid_out};

/// Kernels of all sizes: some within a page, some over many; some keys too.
fn many() -> Vec<(KernelKey, Vec<u8>)> {
    let mut all: Vec<_> = (0..60_u64)
        .map(|n| {
            let args = format!(" -DN={n}{} -mcpu=gfx906", " -DLONG=1".repeat(n as usize * 7 % 200));
            let size = [100, 900, 5000, 30_000][n as usize % 4] + 7 * n as usize;
            // Two keys in three have a code object of their own.
            let seed = 1 + n - u64::from(n % 3 == 2);
            (key(&format!("k{}.cl.o", n % 5), &args), code_object(GFX906, seed, size, n % 2 == 0))
        })
        .collect();
    all.sort();
    all
}

/// The pages of one tree, by SQLite's own account.
struct Tree {
    /// Number, whether a leaf, and cells of every page, by its path: `/` for
    /// the root, `/000/` for its first child.
    pages: BTreeMap<String, (u32, bool, u32)>,
    /// Overflow pages of every cell, by the path of its page and its number.
    overflow: BTreeMap<(String, u32), BTreeSet<u32>>,
}

impl Tree {
    fn read(connection: &rusqlite::Connection, name: &str) -> Self {
        let mut tree = Self { pages: BTreeMap::new(), overflow: BTreeMap::new() };
        let sql = "SELECT path, pageno, pagetype, ncell FROM dbstat WHERE name = ?1";
        let mut statement = connection.prepare(sql).unwrap();
        let mut rows = statement.query([name]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (path, number): (String, u32) = (row.get(0).unwrap(), row.get(1).unwrap());
            let kind: String = row.get(2).unwrap();
            if kind == "overflow" {
                // `/000/001+000000`: the first such page of the leaf's second cell.
                let (cell, _) = path.split_once('+').unwrap();
                let (page, cell) = cell.split_at(cell.len() - 3);
                let cell = u32::from_str_radix(cell, 16).unwrap();
                tree.overflow.entry((page.to_owned(), cell)).or_default().insert(number);
            } else {
                tree.pages.insert(path, (number, kind == "leaf", row.get(3).unwrap()));
            }
        }
        tree
    }

    /// The pages of each row, in the tree's order. In an index, cells of
    /// interior pages are rows too.
    fn rows(&self, path: &str, index: bool, rows: &mut Vec<BTreeSet<u32>>) {
        let (number, leaf, cells) = self.pages[path];
        let own = |cell| {
            let mut pages =
                self.overflow.get(&(path.to_owned(), cell)).cloned().unwrap_or_default();
            pages.insert(number);
            pages
        };
        if leaf {
            rows.extend((0..cells).map(own));
            return;
        }
        for child in 0..=cells {
            self.rows(&format!("{path}{child:03x}/"), index, rows);
            if index && child < cells {
                rows.push(own(child));
            }
        }
    }
}

/// The pages that each row of a sound file needs.
fn pages_of_rows(path: &Path) -> BTreeMap<KernelKey, BTreeSet<u32>> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let dense = connection.prepare("SELECT 1 FROM kern_keys").is_ok();
    let rows_of = |tree: &str, index| {
        let mut rows = Vec::new();
        Tree::read(&connection, tree).rows("/", index, &mut rows);
        rows
    };
    let sql = if dense {
        "SELECT name, args, object FROM kern_keys ORDER BY name, args"
    } else {
        "SELECT kernel_name, kernel_args, id FROM kern_db ORDER BY id"
    };
    let objects = rows_of(if dense { "kern_objects" } else { "kern_db" }, false);
    let mut statement = connection.prepare(sql).unwrap();
    let keys: Vec<(KernelKey, usize)> = statement
        .query_map((), |row| {
            let key = KernelKey { kernel_name: row.get(0)?, kernel_args: row.get(1)? };
            Ok((key, row.get::<_, u32>(2)? as usize - 1))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let of_keys =
        if dense { rows_of("kern_keys", true) } else { vec![BTreeSet::new(); keys.len()] };
    assert_eq!(of_keys.len(), keys.len(), "the account is complete");
    keys.into_iter()
        .zip(of_keys)
        .map(|((key, object), pages)| (key, &pages | &objects[object]))
        .collect()
}

struct Saved {
    repaired: Repaired,
    rows: BTreeMap<KernelKey, Vec<u8>>,
    lost: BTreeMap<KernelKey, String>,
}

/// Repairs a file, makes sure that the result is sound, and reads it.
fn save(path: &Path, layout: Layout) -> Result<Saved, CopyError> {
    let out = path.with_file_name("repaired.kdb");
    let mut options = CopyOptions::default();
    options.layout = Some(layout);
    let mut lost = BTreeMap::new();
    let repaired = repair(path, &out, &options, |key, reason| {
        lost.insert(key.clone(), reason.to_owned());
    })?;
    assert_eq!(repaired.lost, lost.len() as u64);
    let report = verify(&out, Some(&"gfx906".parse().unwrap()), &VerifyOptions::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let mut rows = BTreeMap::new();
    Reader::open(&out)
        .unwrap()
        .for_each_record(|record| {
            rows.insert(record.key, record.code_object);
            Ok::<_, ReadError>(())
        })
        .unwrap();
    Ok(Saved { repaired, rows, lost })
}

/// What is written over a page.
#[derive(Debug, Clone)]
enum Damage {
    Noise(u8),
    Zeros,
    /// Another page of the same file.
    Copy(prop::sample::Index),
    /// The first 512 bytes alone: a sector.
    Sector,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        3 => any::<u8>().prop_map(Damage::Noise),
        1 => Just(Damage::Zeros),
        1 => any::<prop::sample::Index>().prop_map(Damage::Copy),
        1 => Just(Damage::Sector),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Pages that SQLite's own account gives to a row are intact: the row is
    /// saved. All others are saved with the right bytes, or not at all.
    #[test]
    fn every_row_whose_pages_are_intact_is_saved(
        dense in any::<bool>(),
        raw in any::<bool>(),
        hits in vec(any::<prop::sample::Index>(), 0..40),
        tree_only in any::<bool>(),
        damages in vec(damage(), 40),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gfx906_60.kdb");
        let layout = if dense { Layout::Dense } else { Layout::Miopen };
        let kernels = many();
        write_laid_out(&path, &kernels, if raw { Blob::Raw } else { Blob::Auto }, layout);
        let size = if dense { 1024 } else { 4096 };
        let needed = pages_of_rows(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = bytes.clone();
        let pages = bytes.len() / size;
        let mut hit: BTreeSet<u32> =
            hits.iter().map(|index| index.index(pages) as u32 + 1).collect();
        if tree_only {
            // The header, the roots and whatever leads to rows without being one.
            let rows: BTreeSet<u32> = needed.values().flatten().copied().collect();
            hit = (1..=pages as u32).filter(|page| !rows.contains(page)).collect();
            prop_assert!(hit.contains(&1));
        }
        for (page, damage) in hit.iter().zip(damages.iter().cycle()) {
            let at = (*page as usize - 1) * size;
            let target = &mut bytes[at..at + size];
            match damage {
                Damage::Noise(seed) => {
                    let mut noise = crate::support::Noise::new(u64::from(*seed) + 1);
                    target.iter_mut().for_each(|byte| *byte = noise.word() as u8);
                }
                Damage::Zeros => target.fill(0),
                Damage::Copy(index) => {
                    let from = index.index(pages) * size;
                    target.copy_from_slice(&whole[from..from + size]);
                }
                Damage::Sector => target[..512].fill(0),
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let originals: BTreeMap<_, _> = kernels.into_iter().collect();
        let saved = match save(&path, layout) {
            Ok(saved) => saved,
            // Nothing at all is left.
            Err(CopyError::Read(ReadError::NotSqlite { .. })) => {
                prop_assert!(needed.values().all(|pages| !pages.is_disjoint(&hit)));
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        for (key, object) in &saved.rows {
            prop_assert!(originals.get(key) == Some(object), "{key} has its own bytes");
        }
        for (key, pages) in &needed {
            let intact = pages.is_disjoint(&hit);
            prop_assert!(!intact || saved.rows.contains_key(key), "{key} on {pages:?} of {hit:?}");
        }
        // Part of another key's text within an index entry can't be told.
        let copied = damages.iter().any(|damage| matches!(damage, Damage::Copy(_)));
        for key in saved.lost.keys() {
            prop_assert!(!saved.rows.contains_key(key), "{key} is saved");
            prop_assert!(originals.contains_key(key) || (copied && !dense), "{key} was there");
        }
        if hit.is_empty() {
            prop_assert!(saved.lost.is_empty());
            let repaired = std::fs::read(path.with_file_name("repaired.kdb")).unwrap();
            prop_assert!(repaired == whole, "a sound file comes out as it was");
        }
    }
}

#[test]
fn the_lost_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    for layout in [Layout::Miopen, Layout::Dense] {
        let kernels = many();
        write_laid_out(&path, &kernels, Blob::Raw, layout);
        let size = if layout == Layout::Dense { 1024 } else { 4096 };
        let needed = pages_of_rows(&path);
        // A page of the largest row, far from those of its key.
        let largest = needed.iter().max_by_key(|(_, pages)| pages.len()).unwrap();
        let page = *largest.1.iter().nth(largest.1.len() / 2).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = (page as usize - 1) * size;
        bytes[at + 4..at + size].fill(0xaa);
        std::fs::write(&path, &bytes).unwrap();
        let saved = save(&path, Layout::Miopen).unwrap();
        let hit: Vec<_> =
            needed.iter().filter(|(_, pages)| pages.contains(&page)).map(|(key, _)| key).collect();
        assert_eq!(saved.lost.keys().collect::<Vec<_>>(), hit);
        assert_eq!(saved.rows.len() + saved.lost.len(), kernels.len());
        let reason = saved.lost.values().next().unwrap();
        let expected = if layout == Layout::Dense { "code object" } else { "hash" };
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(saved.repaired.page_size as usize, size);
        assert!(saved.repaired.header_holds);
    }
}

#[test]
fn only_the_header_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    for layout in [Layout::Miopen, Layout::Dense] {
        write_laid_out(&path, &many(), Blob::Auto, layout);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        bytes[..100].fill(0x5a);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(Reader::open(&path), Err(ReadError::NotSqlite { .. })));
        let saved = save(&path, layout).unwrap();
        assert!(!saved.repaired.header_holds && saved.lost.is_empty());
        assert!(std::fs::read(path.with_file_name("repaired.kdb")).unwrap() == whole);
    }
}

/// Rows that are replaced and deleted the way caches do it.
const REPLACE: &str = "
import hashlib, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('PRAGMA secure_delete = OFF')
db.execute('DELETE FROM kern_db WHERE id > 40')
old = db.execute('SELECT kernel_name, kernel_args, kernel_blob FROM kern_db WHERE id < 20').fetchall()
for name, args, blob in old:
    blob += b'newer'
    db.execute('INSERT OR REPLACE INTO kern_db(kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) '
               'VALUES(?, ?, ?, ?, 0)', (name, args, blob, hashlib.md5(blob).hexdigest()))
assert db.execute('PRAGMA freelist_count').fetchone()[0] > 5
";

#[test]
fn what_was_deleted_or_replaced_does_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let kernels = many();
    write_kernels(&path, &kernels, Blob::Raw);
    python(REPLACE, &[&path]);
    let saved = save(&path, Layout::Miopen).unwrap();
    assert!(saved.lost.is_empty(), "{:?}", saved.lost);
    let expected: BTreeMap<_, _> = kernels
        .into_iter()
        .take(40)
        .enumerate()
        .map(|(index, (key, mut object))| {
            object.extend(if index < 19 { &b"newer"[..] } else { b"" });
            (key, object)
        })
        .collect();
    assert!(saved.rows == expected);
}

/// A file as another program could have made it, without its first page.
const MAKE: &str = "
import hashlib, sqlite3, sys
size = int(sys.argv[2])
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.executescript(f'''PRAGMA page_size = {size}; PRAGMA auto_vacuum = INCREMENTAL; BEGIN;
CREATE TABLE `kern_db` (`id` INTEGER PRIMARY KEY ASC,`kernel_name` TEXT NOT NULL,
`kernel_args` TEXT NOT NULL,`kernel_blob` BLOB NOT NULL,`kernel_hash` TEXT NOT NULL,
`uncompressed_size` INT NOT NULL, `note` TEXT);
CREATE UNIQUE INDEX `idx_kern_db` ON kern_db(kernel_name, kernel_args);''')
elf = bytearray(64); elf[:9] = b'\\x7fELF\\x02\\x01\\x01\\x40\\x03'; elf[18] = 0xe0; elf[48:50] = b'\\x2f\\x05'
for n in range(300):
    code = bytes(elf) + str(n).encode() * (n * 37 % 2000)
    db.execute('INSERT INTO kern_db VALUES(?, ?, ?, ?, ?, 0, ?)', (n * n + 1, 'k.s.o',
               f' -DN={n} -mcpu=gfx906', code, hashlib.md5(code).hexdigest(), 'mine'))
db.execute('COMMIT')
db.close()
with open(sys.argv[1], 'r+b') as file:
    file.write(bytes(size))
";

#[test]
fn files_that_others_made_are_saved_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    for page_size in [512, 2048, 16384, 65536] {
        std::fs::remove_file(&path).ok();
        python(MAKE, &[&path, Path::new(&page_size.to_string())]);
        let saved = save(&path, Layout::Dense).unwrap();
        assert_eq!(saved.repaired.page_size, page_size, "told by the pages themselves");
        assert_eq!((saved.rows.len(), saved.lost.len()), (300, 0), "{page_size}");
    }
}

#[test]
fn what_is_no_kdb_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("x.kdb"), directory.path().join("out.kdb"));
    let attempt = |path: &Path| {
        let error = repair(path, &out, &CopyOptions::default(), |_, _| {}).unwrap_err();
        assert!(!out.exists());
        error
    };
    let text = "no pages at all ".repeat(1000);
    std::fs::write(&path, text).unwrap();
    assert!(matches!(attempt(&path), CopyError::Read(ReadError::NotSqlite { .. })));
    std::fs::write(&path, "version https://git-lfs").unwrap();
    assert!(matches!(attempt(&path), CopyError::Read(ReadError::TooSmall { .. })));
    assert!(matches!(attempt(directory.path()), CopyError::Read(ReadError::NotAFile { .. })));
    // SQLite's, with nothing in it that a kdb has.
    write_kernels(&path, &kernels(), Blob::Auto);
    rusqlite::Connection::open(&path).unwrap().execute_batch("DROP TABLE kern_db; VACUUM").unwrap();
    let repaired = repair(&path, &out, &CopyOptions::default(), |_, _| {}).unwrap();
    assert_eq!((repaired.written.rows, repaired.lost), (0, 0));
}
