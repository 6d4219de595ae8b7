//! The cost of a lookup, compared with opening both files for each lookup as
//! MIOpen does, and with decoding and hashing alone.
//!
//! `cargo bench -p gfxpack-runtime` prints criterion's times, then ratios. The
//! ratios are from short alternating runs, so they are about the same on a busy
//! machine. `-- --table` prints only the ratios, as the rows of a table (`cargo
//! xtask bench read` puts them into docs/benchmarks.md): CPU time of one
//! thread, and wall-clock time of two.

use std::convert::Infallible;
use std::hint::black_box;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use bzip2::bufread::BzDecoder;
use criterion::{BenchmarkId, Criterion, Throughput};
use gfxpack_kdb::{Blob, Layout, Row, WriteOptions, write};
use gfxpack_runtime::{
    Config, KdbDirectories, KernelCache, KernelKey, Layer, Target, UserDirectory, WarningSink,
};
use md5::{Digest as _, Md5};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use rustix::time::{ClockId, clock_gettime};

const RECORDS: usize = 10_000;
const OBJECT_BYTES: usize = 40_000;
const THREADS: [usize; 2] = [1, 2];
/// After this time the rows of a file are remembered; twice the time needed.
const REST: Duration = Duration::from_secs(6);
/// Number of rows in a user's kdb.
const USER_RECORDS: usize = 100;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS `kern_db` (`id` INTEGER PRIMARY KEY ASC, \
    `kernel_name` TEXT NOT NULL, `kernel_args` TEXT NOT NULL, `kernel_blob` BLOB NOT NULL, \
    `kernel_hash` TEXT NOT NULL, `uncompressed_size` INT NOT NULL); \
    CREATE UNIQUE INDEX IF NOT EXISTS `idx_kern_db` ON kern_db (kernel_name, kernel_args);";
const SELECT: &str =
    "SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE (kernel_name = ";

fn target() -> Target {
    "gfx906@60".parse().expect("a target")
}

fn key(number: usize) -> KernelKey {
    let options = format!(" -DMIO_BN_C={number} -DMIO_BN_HW=196 -DMIOPEN_USE_FP16=0");
    KernelKey::for_source("MIOpenBatchNormFwdTrainSpatial.cl", &options, "gfx906")
}

/// A code object for gfx906, half of which compresses.
fn object(number: usize) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    bytes.resize(64, 0);
    bytes[18..20].copy_from_slice(&[0xe0, 0]);
    bytes[48] = 0x2f;
    let mut noise = Noise(number as u64 + 1);
    while bytes.len() < OBJECT_BYTES {
        bytes.extend(noise.next().to_le_bytes());
        bytes.extend([number as u8; 8]);
    }
    bytes
}

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound
    }
}

/// A system directory with a kdb, and a user's directory with another one.
struct Files {
    directory: PathBuf,
}

impl Files {
    /// Created once and kept in cargo's own temporary directory.
    fn new(form: Blob, layout: Layout) -> Self {
        let name = format!("{RECORDS}-of-{OBJECT_BYTES}-{form:?}-{layout:?}");
        let files = Self { directory: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name) };
        let mut is_new = false;
        let user = |directory: PathBuf| (directory, USER_RECORDS, 10 * RECORDS);
        for (directory, records, first) in
            [(files.system(), RECORDS, 0), user(files.user()), user(files.miopen_user())]
        {
            let user = first > 0;
            let name = if user { target().ukdb_file_name() } else { target().kdb_file_name() };
            std::fs::create_dir_all(&directory).expect("a directory for the kdb");
            if directory.join(&name).exists() {
                continue;
            }
            let mut kernels: Vec<_> =
                (first..first + records).map(|number| (key(number), number)).collect();
            kernels.sort();
            let size = OBJECT_BYTES as u64;
            let rows: Vec<_> = kernels.iter().map(|(key, _)| Row { key, size }).collect();
            let mut options = WriteOptions::default();
            options.blob = form;
            // MIOpen creates an index in the user's file, which is not possible
            // on a view.
            options.layout = if user { Layout::Miopen } else { layout };
            let object = |index: usize| Ok::<_, Infallible>(object(kernels[index].1));
            write(&directory.join(name), &rows, &options, object).expect("a kdb");
            is_new = true;
        }
        if is_new {
            thread::sleep(REST);
        }
        files
    }

    fn system(&self) -> PathBuf {
        self.directory.join("system")
    }

    fn user(&self) -> PathBuf {
        self.directory.join("user")
    }

    /// Separate, since MIOpen puts the file into WAL mode.
    fn miopen_user(&self) -> PathBuf {
        self.directory.join("miopen-user")
    }

    fn cache(&self, keep_hits: bool) -> KernelCache {
        let directories = KdbDirectories::new([self.system()], UserDirectory::Dir(self.user()));
        let mut config = Config::new(target(), directories);
        config.warnings = WarningSink::Silent;
        config.keep_hits = keep_hits;
        KernelCache::open(config)
    }

    fn blob(&self, number: usize) -> (Vec<u8>, i64) {
        let kdb = self.system().join(target().kdb_file_name());
        let connection = Connection::open(kdb).expect("a kdb");
        let sql = "SELECT kernel_blob, uncompressed_size FROM kern_db WHERE kernel_args = ?1";
        connection
            .query_row(sql, [&key(number).kernel_args], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("a row")
    }
}

/// A lookup as MIOpen does it: in the user's file, then in the system's.
///
/// Source: ROCm/MIOpen 2d1fd997a, `MultiFileDb::FindRecord`, `SQLiteBase`'s
/// constructor and `KernDb::FindRecordUnsafe`.
fn as_miopen(files: &Files, key: &KernelKey) -> Option<Vec<u8>> {
    as_miopen_in(&files.miopen_user().join(target().ukdb_file_name()), false, key)
        .or_else(|| as_miopen_in(&files.system().join(target().kdb_file_name()), true, key))
}

fn as_miopen_in(path: &Path, system: bool, key: &KernelKey) -> Option<Vec<u8>> {
    let flags = if system {
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_FULL_MUTEX
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_FULL_MUTEX
    };
    let connection = Connection::open_with_flags(path, flags).expect("a kdb");
    connection.busy_timeout(Duration::from_secs(60)).expect("a timeout");
    if !system {
        let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        connection.query_row("PRAGMA journal_mode=WAL;", (), mode).expect("a mode");
        connection.execute_batch(CREATE).expect("a table");
    }
    let mut columns = connection.prepare("PRAGMA table_info(kern_db)").expect("a table");
    let names = columns.query_map((), |row| row.get::<_, String>(1)).expect("columns");
    assert!(names.flatten().filter(|name| name.starts_with("kernel_")).count() >= 3);
    let (name, args) = (&key.kernel_name, &key.kernel_args);
    let sql = format!("{SELECT}'{name}') AND (kernel_args = '{args}');");
    let row = connection
        .query_row(&sql, (), |row| {
            let row: (Vec<u8>, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(row)
        })
        .optional();
    let (blob, hash, size) = row.expect("a kdb that is whole")?;
    let bytes = if size == 0 { blob } else { decode(&blob, size) };
    assert_eq!(hash, md5(&bytes));
    Some(bytes)
}

fn decode(blob: &[u8], size: i64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size as usize + 1);
    BzDecoder::new(blob).read_to_end(&mut bytes).expect("bzip2");
    bytes
}

fn md5(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One side of a comparison: looks up the kernel with a number.
type Side<'a> = (&'static str, Box<dyn Fn(usize) + Sync + 'a>);

/// A measurement: its name, its sides (ours first), and the required ratio of
/// the second side to the first.
struct Case<'a> {
    name: &'static str,
    sides: Vec<Side<'a>>,
    at_least: f64,
    /// Whether the last side is a part of the first two, and is also subtracted
    /// from both.
    apart: bool,
}

fn ours<'a>(files: &Files, first: usize, hit: bool) -> Side<'a> {
    let cache = files.cache(false);
    let lookup = move |number: usize| {
        let found = black_box(cache.get(&key(first + number))).found;
        assert_eq!(found.map(|found| found.layer), hit.then_some(Layer::System));
    };
    ("gfxpack", Box::new(lookup))
}

/// The same, if every kernel was found before.
fn ours_again<'a>(files: &Files) -> Side<'a> {
    let side = ours(files, 0, true);
    (0..RECORDS).for_each(|number| (side.1)(number));
    side
}

/// Looks up another row each time, and opens another cache after the last row.
fn ours_first(files: &Files) -> Side<'_> {
    let fresh = Mutex::new((files.cache(false), 0));
    let lookup = move |_| {
        let (cache, number) = {
            let mut fresh = fresh.lock().expect("no lookup panics with it");
            if fresh.1 == RECORDS {
                *fresh = (files.cache(false), 0);
            }
            fresh.1 += 1;
            // Coprime to the number of rows: every row once, in no order.
            (fresh.0.clone(), fresh.1 * 7919 % RECORDS)
        };
        assert!(black_box(cache.get(&key(number))).found.is_some());
    };
    ("gfxpack", Box::new(lookup))
}

/// So few kernels that the first run has looked up most of them.
fn ours_in_memory<'a>(files: &Files) -> Side<'a> {
    let cache = files.cache(true);
    let lookup = move |number: usize| {
        assert!(black_box(cache.get(&key(number % 64))).found.is_some());
    };
    ("gfxpack, hits kept in memory", Box::new(lookup))
}

fn theirs(files: &Files, first: usize, hit: bool) -> Side<'_> {
    let lookup = move |number: usize| {
        assert_eq!(black_box(as_miopen(files, &key(first + number))).is_some(), hit);
    };
    ("as MIOpen does it", Box::new(lookup))
}

fn cases<'a>(raw: &'a Files, dense: &'a Files, bz2: &'a Files) -> Vec<Case<'a>> {
    let blobs: Vec<_> = (0..64).map(|number| bz2.blob(number)).collect();
    let decoding: Side<'a> = (
        "decoding and MD5 alone",
        Box::new(move |number| {
            let (blob, size) = &blobs[number % blobs.len()];
            black_box(md5(&decode(blob, *size)));
        }),
    );
    let objects: Vec<_> = (0..64).map(object).collect();
    let hash: Side<'a> = (
        "MD5 alone",
        Box::new(move |number| drop(black_box(md5(&objects[number % objects.len()])))),
    );
    let absent = 20 * RECORDS;
    let case = |name, sides| Case { name, sides, at_least: 10.0, apart: false };
    vec![
        case("missed", vec![ours(raw, absent, false), theirs(raw, absent, false)]),
        Case {
            apart: true,
            ..case(
                "raw, found for the first time",
                vec![ours_first(raw), theirs(raw, 0, true), hash],
            )
        },
        case("raw, found again", vec![ours_again(raw), theirs(raw, 0, true), ours_in_memory(raw)]),
        case(
            "missed, dense layout",
            vec![ours(dense, absent, false), theirs(dense, absent, false)],
        ),
        case("raw, dense layout, found again", vec![ours_again(dense), theirs(dense, 0, true)]),
        Case {
            at_least: 1.0 / 1.05,
            ..case("bzip2, found", vec![ours(bz2, 0, true), decoding, theirs(bz2, 0, true)])
        },
    ]
}

/// Time of lookups in all threads together, one after another in each thread.
fn together(threads: usize, lookups: u64, lookup: &(dyn Fn(usize) + Sync)) -> Duration {
    let share = lookups.div_ceil(threads as u64);
    let start = Instant::now();
    thread::scope(|scope| {
        for seed in 0..threads as u64 {
            scope.spawn(move || {
                let mut noise = Noise(seed + 1);
                (0..share).for_each(|_| lookup(noise.below(RECORDS)));
            });
        }
    });
    start.elapsed().mul_f64(lookups as f64 / (share * threads as u64) as f64)
}

fn measure(criterion: &mut Criterion, cases: &[Case<'_>]) {
    for case in cases {
        let mut group = criterion.benchmark_group(case.name);
        group.throughput(Throughput::Elements(1)).sample_size(20);
        group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
        for (name, lookup) in &case.sides {
            for threads in THREADS {
                let id = BenchmarkId::new(*name, format!("{threads} threads"));
                group.bench_function(id, |bencher| {
                    bencher.iter_custom(|lookups| together(threads, lookups, lookup));
                });
            }
        }
        group.finish();
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

const TURNS: u32 = 30;
/// Per run.
const LOOKUPS: u32 = 100;

/// CPU seconds of one lookup on each side of a case, in a single thread.
fn alone(case: &Case<'_>) -> Vec<f64> {
    let mut noise = Noise(7);
    in_turns(case, |lookup| {
        let before = cpu_seconds();
        (0..LOOKUPS).for_each(|_| lookup(noise.below(RECORDS)));
        (cpu_seconds() - before) / f64::from(LOOKUPS)
    })
}

/// Wall-clock seconds of one lookup on each side, with two threads.
fn in_two_threads(case: &Case<'_>) -> Vec<f64> {
    // More lookups, so that the time for starting the threads is negligible.
    let lookups = 10 * LOOKUPS;
    in_turns(case, |lookup| {
        together(2, u64::from(lookups), lookup).as_secs_f64() / f64::from(lookups)
    })
}

/// The result of `measure` for each side, for one lookup. The first run fills
/// caches and does not count.
fn in_turns(case: &Case<'_>, mut measure: impl FnMut(&(dyn Fn(usize) + Sync)) -> f64) -> Vec<f64> {
    let mut spent = vec![0.0; case.sides.len()];
    for turn in 0..=TURNS {
        for ((_, lookup), spent) in case.sides.iter().zip(&mut spent) {
            let seconds = measure(lookup);
            if turn > 0 {
                *spent += seconds / f64::from(TURNS);
            }
        }
    }
    spent
}

#[expect(clippy::print_stdout, reason = "a benchmark's output")]
fn compare(cases: &[Case<'_>]) {
    println!("\nCPU time of one lookup, {TURNS} turns of {LOOKUPS} each:");
    for case in cases {
        let spent = alone(case);
        for ((name, _), seconds) in case.sides.iter().zip(&spent) {
            let each = seconds * 1e6;
            println!("  {:30} {name:28} {each:9.1} us, {:6.2}", case.name, seconds / spent[0]);
        }
        let met = |ratio: f64| if ratio >= case.at_least { "met" } else { "NOT met" };
        let print_ratio = |ratio: f64, what: &str| {
            let (name, target) = (case.name, case.at_least);
            println!("  {name:30} {ratio:.2}{what}, at least {target:.2} wanted: {}", met(ratio));
        };
        print_ratio(spent[1] / spent[0], "");
        if let Some(part) = spent.last().filter(|_| case.apart) {
            let (name, _) = case.sides.last().expect("a side");
            print_ratio((spent[1] - part) / (spent[0] - part), &format!(" apart from {name}"));
        }
    }
}

/// One row for each thing that gfxpack is compared with: what is looked up,
/// what it is compared with, microseconds of both, and their ratio; the last
/// three again with two threads.
#[expect(clippy::print_stdout, reason = "a benchmark's output")]
fn print_table(cases: &[Case<'_>]) {
    for case in cases {
        let (one, two) = (alone(case), in_two_threads(case));
        let microseconds = |spent: &[f64], side: usize| {
            let (ours, theirs) = (spent[0] * 1e6, spent[side] * 1e6);
            format!("{ours:.1} | {theirs:.1} | {:.2}", theirs / ours)
        };
        for (side, (name, _)) in case.sides.iter().enumerate().skip(1) {
            let (one, two) = (microseconds(&one, side), microseconds(&two, side));
            println!("| {} | {name} | {one} | {two} |", case.name);
        }
    }
}

fn main() {
    let raw = Files::new(Blob::Raw, Layout::Miopen);
    let dense = Files::new(Blob::Raw, Layout::Dense);
    let bz2 = Files::new(Blob::Bz2, Layout::Miopen);
    let cases = cases(&raw, &dense, &bz2);
    if std::env::args().any(|argument| argument == "--table") {
        return print_table(&cases);
    }
    let mut criterion = Criterion::default().configure_from_args();
    measure(&mut criterion, &cases);
    criterion.final_summary();
    compare(&cases);
}
