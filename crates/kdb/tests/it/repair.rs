//! Repairing a damaged file saves every intact row.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use gfxpack_kdb::{
    Blob, CopyError, CopyOptions, Layout, Lost, ReadError, Reader, Repaired, VerifyOptions, repair,
    verify,
};
use gfxpack_model::KernelKey;
use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::support::{
    EMPTY, GFX906, code_object, kernels, key, md5, share_of_cases, write_kernels, write_laid_out,
};

/// Kernels of all sizes, some within a page, some over many; the same for keys.
fn many() -> Vec<(KernelKey, Vec<u8>)> {
    let mut all: Vec<_> = (0..60_u64)
        .map(|n| {
            let args = format!(" -DN={n}{} -mcpu=gfx906", " -DLONG=1".repeat(n as usize * 7 % 200));
            let size = [100, 900, 5000, 30_000][n as usize % 4] + 7 * n as usize;
            // Two keys in three have their own code object.
            let seed = 1 + n - u64::from(n % 3 == 2);
            (key(&format!("k{}.cl.o", n % 5), &args), code_object(GFX906, seed, size, n % 2 == 0))
        })
        .collect();
    all.sort();
    all
}

/// The pages of one tree, as SQLite lists them.
struct Tree {
    /// Number, leaf flag, and cell count of every page, by its path: `/` for
    /// the root, `/000/` for its first child.
    pages: BTreeMap<String, (u32, bool, u32)>,
    /// Overflow pages of every cell, by the path of its page and the cell's
    /// number.
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

/// The pages that each row of an undamaged file needs.
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
    unnamed: Vec<Lost>,
}

/// Repairs a file, checks that the result is sound, and reads it.
fn save(path: &Path, layout: Layout) -> Result<Saved, CopyError> {
    let out = path.with_file_name("repaired.kdb");
    let mut options = CopyOptions::default();
    options.layout = Some(layout);
    let (mut lost, mut unnamed) = (BTreeMap::new(), Vec::new());
    let repaired = repair(path, &out, &options, |row| match &row.key {
        Some(key) => {
            lost.insert(key.clone(), row.reason.clone());
        }
        None => unnamed.push(row.clone()),
    })?;
    assert_eq!(repaired.lost as usize, lost.len() + unnamed.len());
    let report = verify(&out, Some(&"gfx906".parse().unwrap()), &VerifyOptions::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let mut rows = BTreeMap::new();
    Reader::open(&out)
        .unwrap()
        .for_each_kernel(|record| {
            rows.insert(record.key, record.code_object);
            Ok::<_, ReadError>(())
        })
        .unwrap();
    Ok(Saved { repaired, rows, lost, unnamed })
}

/// What to write over a page.
#[derive(Debug, Clone)]
enum Damage {
    Noise(u8),
    Zeros,
    /// Another page of the same file.
    Copy(prop::sample::Index),
    /// Overwrites only the first 512 bytes: a sector.
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
    #![proptest_config(share_of_cases(16))]

    /// A row is saved if all its pages, as SQLite lists them, are intact. All
    /// others are saved with the right bytes, or not at all.
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
        write_laid_out(&path, &kernels, if raw { Blob::Raw } else { Blob::Smaller }, layout);
        let size = if dense { 1024 } else { 4096 };
        let needed = pages_of_rows(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = bytes.clone();
        let pages = bytes.len() / size;
        let mut hit: BTreeSet<u32> =
            hits.iter().map(|index| index.index(pages) as u32 + 1).collect();
        if tree_only {
            // The header, the roots and all pages that lead to rows without
            // holding any.
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
            // Nothing is left.
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
        // Part of another key's text within an index entry can't be detected.
        let copied = damages.iter().any(|damage| matches!(damage, Damage::Copy(_)));
        for key in saved.lost.keys() {
            prop_assert!(!saved.rows.contains_key(key), "{key} is saved");
            prop_assert!(originals.contains_key(key) || (copied && !dense), "{key} was there");
        }
        if hit.is_empty() {
            prop_assert_eq!(saved.repaired.lost, 0);
            let repaired = std::fs::read(path.with_file_name("repaired.kdb")).unwrap();
            prop_assert!(repaired == whole, "a sound file is unchanged");
        }
    }
}

#[test]
fn rows_that_are_lost_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    for layout in [Layout::Miopen, Layout::Dense] {
        let kernels = many();
        write_laid_out(&path, &kernels, Blob::Raw, layout);
        let size = if layout == Layout::Dense { 1024 } else { 4096 };
        let needed = pages_of_rows(&path);
        // A page of the largest row, away from those of its key.
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
        assert_eq!(saved.unnamed, []);
        assert_eq!(saved.rows.len() + saved.lost.len(), kernels.len());
        let reason = saved.lost.values().next().unwrap();
        let expected = if layout == Layout::Dense { "code object" } else { "hash" };
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(saved.repaired.page_size as usize, size);
        assert!(saved.repaired.header_holds);
    }
}

#[test]
fn a_file_without_its_header_is_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    for layout in [Layout::Miopen, Layout::Dense] {
        write_laid_out(&path, &many(), Blob::Smaller, layout);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        bytes[..100].fill(0x5a);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(Reader::open(&path), Err(ReadError::NotSqlite { .. })));
        let saved = save(&path, layout).unwrap();
        assert!(!saved.repaired.header_holds && saved.repaired.lost == 0);
        assert!(std::fs::read(path.with_file_name("repaired.kdb")).unwrap() == whole);
    }
}

/// Replaces and deletes rows as caches do.
fn replace_rows(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let sql = "PRAGMA secure_delete = OFF; DELETE FROM kern_db WHERE id > 40";
    connection.execute_batch(sql).unwrap();
    for id in 1..20 {
        let sql = "SELECT kernel_name, kernel_args, kernel_blob FROM kern_db ORDER BY id LIMIT 1";
        let (name, args, mut blob): (String, String, Vec<u8>) = connection
            .query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap();
        blob.extend(b"newer");
        let sql = "INSERT OR REPLACE INTO kern_db VALUES (NULL, ?, ?, ?, ?, 0)";
        let hash = md5(&blob);
        connection.execute(sql, (name, args, blob, hash)).unwrap_or_else(|e| panic!("{id}: {e}"));
    }
    let free = "PRAGMA freelist_count";
    assert!(connection.query_row(free, (), |row| row.get::<_, i64>(0)).unwrap() > 5);
    connection.close().unwrap();
}

#[test]
fn deleted_or_replaced_rows_do_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let kernels = many();
    write_kernels(&path, &kernels, Blob::Raw);
    replace_rows(&path);
    let saved = save(&path, Layout::Miopen).unwrap();
    assert_eq!((saved.repaired.lost, saved.repaired.missing_pages), (0, 0), "{:?}", saved.lost);
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

/// Writes a file as another program might, without its first page.
fn write_as_another_program(path: &Path, page_size: u32) {
    let mut connection = Connection::open(path).unwrap();
    let sql = format!(
        "PRAGMA page_size = {page_size}; PRAGMA auto_vacuum = INCREMENTAL; {EMPTY}
         ALTER TABLE kern_db ADD COLUMN note TEXT"
    );
    connection.execute_batch(&sql).unwrap();
    let transaction = connection.transaction().unwrap();
    for n in 0..300_usize {
        let args = format!(" -DN={n} -mcpu=gfx906");
        let mut code = code_object(GFX906, 0, 64, true);
        code.extend(n.to_string().repeat(n * 37 % 2000).bytes());
        let hash = md5(&code);
        let sql = "INSERT INTO kern_db VALUES (?, 'k.s.o', ?, ?, ?, 0, 'mine')";
        transaction.execute(sql, ((n * n + 1) as i64, args, code, hash)).unwrap();
    }
    transaction.commit().unwrap();
    connection.close().unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; page_size as usize], 0).unwrap();
}

#[test]
fn files_of_other_programs_are_repaired_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    for page_size in [512, 2048, 16384, 65536] {
        std::fs::remove_file(&path).ok();
        write_as_another_program(&path, page_size);
        let saved = save(&path, Layout::Dense).unwrap();
        assert_eq!(saved.repaired.page_size, page_size, "guessed from the pages");
        assert_eq!((saved.rows.len(), saved.repaired.lost), (300, 0), "{page_size}");
    }
}

#[test]
fn a_file_that_is_not_a_kdb_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("x.kdb"), directory.path().join("out.kdb"));
    let attempt = |path: &Path| {
        let error = repair(path, &out, &CopyOptions::default(), |_| {}).unwrap_err();
        assert!(!out.exists());
        error
    };
    let text = "no pages at all ".repeat(1000);
    std::fs::write(&path, text).unwrap();
    assert!(matches!(attempt(&path), CopyError::Read(ReadError::NotSqlite { .. })));
    std::fs::write(&path, "version https://git-lfs").unwrap();
    assert!(matches!(attempt(&path), CopyError::Read(ReadError::TooSmall { .. })));
    assert!(matches!(attempt(directory.path()), CopyError::Read(ReadError::NotAFile { .. })));
    // An SQLite file with nothing of a kdb in it.
    write_kernels(&path, &kernels(), Blob::Smaller);
    rusqlite::Connection::open(&path).unwrap().execute_batch("DROP TABLE kern_db; VACUUM").unwrap();
    let nothing = || {
        let repaired = repair(&path, &out, &CopyOptions::default(), |_| {}).unwrap();
        assert_eq!((repaired.written.rows, repaired.lost), (0, 0));
        repaired.blank
    };
    assert!(nothing(), "an empty file loses nothing");
    // Rows of another table, and of one without a column.
    for table in
        ["t (id INTEGER PRIMARY KEY, a TEXT)", "kern_db (id INTEGER PRIMARY KEY, kernel_name TEXT)"]
    {
        std::fs::remove_file(&path).unwrap();
        let name = table.split(' ').next().unwrap();
        let sql = format!("CREATE TABLE {table}; INSERT INTO {name} VALUES (1, 'x')");
        rusqlite::Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        assert!(!nothing(), "{table}");
    }
    std::fs::remove_file(&path).unwrap();
    let sql = "PRAGMA auto_vacuum = FULL; CREATE TABLE kern_db (id INTEGER PRIMARY KEY)";
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    assert!(nothing(), "with a pointer map");
}

/// If any one page is damaged, every row is saved or reported as lost.
#[test]
fn no_row_is_lost_without_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    let mut kernels = kernels();
    for (n, (key, _)) in kernels.iter_mut().enumerate() {
        key.kernel_args.insert_str(0, &" -DLONG=1".repeat(n * 60));
    }
    kernels.sort();
    for layout in [Layout::Miopen, Layout::Dense] {
        write_laid_out(&path, &kernels, Blob::Smaller, layout);
        let size = if layout == Layout::Dense { 1024 } else { 4096 };
        let whole = std::fs::read(&path).unwrap();
        let (mut losses, mut unnamed) = (0, 0);
        for at in (0..whole.len()).step_by(size) {
            let mut noise = crate::support::Noise::new(at as u64 + 1);
            for zeros in [true, false] {
                let mut bytes = whole.clone();
                let page = &mut bytes[at..at + size];
                page.iter_mut().for_each(|byte| *byte = if zeros { 0 } else { noise.word() as u8 });
                std::fs::write(&path, &bytes).unwrap();
                let saved = save(&path, layout).unwrap();
                let lost = saved.repaired.lost as usize;
                assert_eq!(saved.rows.len() + lost, kernels.len(), "{layout:?}, page at {at}");
                losses += usize::from(lost > 0);
                unnamed += saved.unnamed.len();
                for row in &saved.unnamed {
                    assert!(row.page.is_some() && row.to_string().contains("page"), "{row}");
                }
            }
        }
        assert!(losses > 20, "{losses} damages lost something");
        assert_eq!(unnamed > 0, layout == Layout::Dense, "MIOpen's index repeats the keys");
    }
}

#[test]
fn pages_cut_off_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    write_kernels(&path, &many(), Blob::Raw);
    let whole = std::fs::read(&path).unwrap();
    let pages = (whole.len() / 4096) as u32;
    for keep in [whole.len() / 2, 20_000, 4096] {
        std::fs::write(&path, &whole[..keep]).unwrap();
        let saved = save(&path, Layout::Miopen).unwrap();
        let kept = (keep / 4096) as u32;
        assert_eq!((saved.repaired.pages, saved.repaired.missing_pages), (kept, pages - kept));
        assert!(saved.rows.len() < 60);
    }
    // Bytes behind the last page are ignored.
    std::fs::write(&path, [&whole[..], &[0; 5000]].concat()).unwrap();
    let saved = save(&path, Layout::Miopen).unwrap();
    assert_eq!((saved.rows.len(), saved.repaired.lost, saved.repaired.missing_pages), (60, 0, 0));
}

/// Rows with keys that no kdb accepts, and one valid row.
fn write_bad_keys(path: &Path) {
    let long = [b" -DX=", &[b'x'; 1 << 20][..], b" -mcpu=gfx906"].concat();
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(EMPTY).unwrap();
    let code = code_object(GFX906, 0, 64, true);
    for args in [
        &b" -mcpu=gfx906"[..],
        b" -DX='a' -mcpu=gfx906",
        b" -DX=\0 -mcpu=gfx906",
        b" -DX=\xff -mcpu=gfx906",
        &long,
    ] {
        let sql = "INSERT INTO kern_db VALUES (NULL, 'k.s.o', CAST(? AS TEXT), ?, ?, 0)";
        connection.execute(sql, (args, &code, md5(&code))).unwrap();
    }
    connection.close().unwrap();
}

#[test]
fn keys_that_no_kdb_accepts_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906_60.kdb");
    write_bad_keys(&path);
    let saved = save(&path, Layout::Miopen).unwrap();
    assert_eq!(saved.rows.keys().collect::<Vec<_>>(), [&key("k.s.o", " -mcpu=gfx906")]);
    let named: Vec<_> = saved.lost.keys().collect();
    assert_eq!(named, [&key("k.s.o", " -DX='a' -mcpu=gfx906")]);
    let reasons: Vec<_> = saved.unnamed.iter().map(|row| (row.row, row.reason.as_str())).collect();
    let long = format!("its key has {} bytes", (1 << 20) + 23);
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    for expected in
        [(Some(3), "its key holds a NUL byte"), (Some(4), "its key is not UTF-8"), (Some(5), &long)]
    {
        assert!(reasons.contains(&expected), "{expected:?} in {reasons:?}");
    }
}

/// A copy with another text encoding.
fn recode(plain: &Path, path: &Path, encoding: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA encoding = \"{encoding}\"")).unwrap();
    let old = Connection::open(plain).unwrap();
    let mut schema = old.prepare("SELECT sql FROM sqlite_schema ORDER BY type DESC").unwrap();
    for sql in schema.query_map((), |row| row.get::<_, String>(0)).unwrap() {
        connection.execute_batch(&sql.unwrap()).unwrap();
    }
    connection.execute_batch("BEGIN").unwrap();
    let mut rows = old.prepare("SELECT * FROM kern_db").unwrap();
    let mut rows = rows.query(()).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let values: Vec<Value> = (0..6).map(|column| row.get(column).unwrap()).collect();
        let sql = "INSERT INTO kern_db VALUES (?, ?, ?, ?, ?, ?)";
        connection.execute(sql, rusqlite::params_from_iter(values)).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    connection.close().unwrap();
}

#[test]
fn repair_reads_utf16_and_other_commands_report_it() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("gfx906_60.kdb");
    let kernels = many();
    write_kernels(&plain, &kernels, Blob::Smaller);
    for encoding in ["UTF-16le", "UTF-16be"] {
        let path = directory.path().join(format!("{encoding}.kdb"));
        recode(&plain, &path, encoding);
        let report =
            verify(&path, Some(&"gfx906".parse().unwrap()), &VerifyOptions::default()).unwrap();
        let findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings, [format!("encoding: the text is {encoding}, not UTF-8")]);
        let out = directory.path().join("out.kdb");
        let error = gfxpack_kdb::convert(&path, &out, &CopyOptions::default()).unwrap_err();
        assert!(matches!(&error, CopyError::Read(ReadError::Encoding { .. })), "{error}");
        assert!(error.hint().contains("repair"), "{}", error.hint());
        // MIOpen still finds its rows.
        assert!(Reader::open(&path).unwrap().get(&kernels[7].0).unwrap().is_some());
        for header_gone in [false, true] {
            if header_gone {
                let mut bytes = std::fs::read(&path).unwrap();
                bytes[..100].fill(0x5a);
                std::fs::write(&path, &bytes).unwrap();
            }
            let saved = save(&path, Layout::Miopen).unwrap();
            assert_eq!((saved.rows.len(), saved.repaired.lost), (kernels.len(), 0));
            let repaired = path.with_file_name("repaired.kdb");
            assert!(std::fs::read(repaired).unwrap() == std::fs::read(&plain).unwrap());
        }
    }
}
