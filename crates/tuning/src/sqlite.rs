//! A performance database in SQLite: problems in one table, the parameters of
//! solvers in another.
//!
//! Source: ROCm/MIOpen 2d1fd997a, `SQLitePerfDb` in sqlite_db.cpp and
//! `SQLiteSerializable` in sqlite_db.hpp.

use std::collections::BTreeMap;
use std::path::Path;

use gfxpack_sqlite::{NewFile, filled_log, unplayed_journal};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use crate::database::Overlaid;
use crate::error::{ReadError, WriteError};
use crate::file;
use crate::name::Storage;

/// Largest size of a value in bytes, and largest number of columns of a
/// problem.
const MAX_VALUE_BYTES: u64 = 1 << 20;
const MAX_COLUMNS: i32 = 200;

/// Page size of written files, in bytes.
const PAGE_SIZE: u32 = 4096;

/// A column of the table of problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Whether it is `TEXT`; otherwise a number.
    text: bool,
}

/// A performance database, read from SQLite. Takes a few times the memory of
/// its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteDatabase {
    /// All but `id`, in the order of the table.
    columns: Vec<Column>,
    /// Parameters by solver, by the values of the columns. Problems without
    /// parameters are left out.
    pub(crate) problems: Problems,
    /// Number of rows of parameters without a problem, which MIOpen never
    /// finds. They are left out.
    pub(crate) orphans: u64,
}

type Problems = BTreeMap<Vec<String>, BTreeMap<String, String>>;

impl SqliteDatabase {
    /// Reads a file, including its write-ahead log.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(crate) fn read(path: &Path) -> Result<Self, ReadError> {
        let connection = connect(path)?;
        let sqlite = |source| ReadError::Sqlite { path: path.to_owned(), source };
        let schema =
            |what: &str| ReadError::Schema { path: path.to_owned(), what: what.to_owned() };
        let columns = problem_columns(&connection, path)?;
        let parameters = self::columns(&connection, "perf_db").map_err(sqlite)?;
        for needed in ["solver", "config", "params"] {
            if !parameters.iter().any(|column| column.name == needed) {
                return Err(schema(&format!("the table `perf_db` has no column `{needed}`")));
            }
        }
        let (problems, orphans) = rows(&connection, &columns).map_err(sqlite)?;
        Ok(Self { columns, problems, orphans })
    }

    /// Merges another database into this one: its solvers take precedence, the
    /// others stay. If its problems have other columns, nothing is changed and
    /// the result is `None`.
    pub(crate) fn lay_all_over(&mut self, over: Self) -> Option<Overlaid> {
        let order: Vec<usize> = self
            .columns
            .iter()
            .map(|column| over.columns.iter().position(|other| other == column))
            .collect::<Option<_>>()?;
        if order.len() != over.columns.len() {
            return None;
        }
        let mut done = Overlaid::default();
        for (values, solvers) in over.problems {
            let key: Vec<String> = order.iter().map(|at| values[*at].clone()).collect();
            let Some(below) = self.problems.get_mut(&key) else {
                self.problems.insert(key, solvers);
                done.added += 1;
                continue;
            };
            let before = below.clone();
            below.extend(solvers);
            if *below == before {
                done.same += 1;
            } else {
                done.changed += 1;
            }
        }
        self.orphans += over.orphans;
        Some(done)
    }

    /// Writes the file, completely or not at all: tables and indexes as MIOpen
    /// creates them, rows in the order of their values. Equal contents give
    /// equal bytes.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) fn save(&self, path: &Path) -> Result<(), WriteError> {
        let absolute = std::path::absolute(path)
            .map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
        if let Some(beside) = filled_log(&absolute).or_else(|| unplayed_journal(&absolute)) {
            return Err(WriteError::Pending { path: path.to_owned(), beside });
        }
        let file = NewFile::beside(path)?;
        file.connect(PAGE_SIZE)
            .and_then(|connection| self.fill(connection))
            .map_err(|source| WriteError::Sqlite { path: path.to_owned(), source })?;
        file.persist()?;
        Ok(())
    }

    fn fill(&self, connection: Connection) -> Result<(), rusqlite::Error> {
        // Old bytes of rows that moved to other pages stay in the file, as in
        // MIOpen's own files.
        connection.pragma_update(None, "secure_delete", false)?;
        let defined = |column: &Column| {
            format!(
                ",{} {} NOT NULL",
                quoted(&column.name),
                if column.text { "TEXT" } else { "INT" }
            )
        };
        let names: Vec<String> = self.columns.iter().map(|column| quoted(&column.name)).collect();
        let names = names.join(",");
        connection.execute_batch(&format!(
            "CREATE TABLE `config` (`id` INTEGER PRIMARY KEY ASC{});
             CREATE UNIQUE INDEX `idx_config` ON config( {names} );
             CREATE TABLE `perf_db` (`id` INTEGER PRIMARY KEY ASC,`solver` TEXT NOT NULL,\
             `config` INTEGER NOT NULL,`params` TEXT NOT NULL);
             CREATE UNIQUE INDEX `idx_perf_db` ON perf_db(solver, config);",
            self.columns.iter().map(defined).collect::<String>()
        ))?;
        let places = vec!["?"; self.columns.len()].join(",");
        let mut problem =
            connection.prepare(&format!("INSERT INTO config ( {names} ) VALUES ( {places} )"))?;
        let mut parameters = connection
            .prepare("INSERT INTO perf_db (solver, config, params) VALUES (?1, ?2, ?3)")?;
        for (values, solvers) in &self.problems {
            let id = problem.insert(rusqlite::params_from_iter(values))?;
            for (solver, params) in solvers {
                parameters.insert((solver, id, params))?;
            }
        }
        drop((problem, parameters));
        connection.execute_batch("COMMIT")?;
        connection.close().map_err(|(_, error)| error)
    }
}

/// Opens a connection that can only read and trusts nothing in the file. If
/// there is no write-ahead log, it creates nothing beside the file.
pub(crate) fn connect(path: &Path) -> Result<Connection, ReadError> {
    file::open(path, Storage::Sqlite)?;
    // Logs and journals are named after the file, not after a link to it.
    let absolute = std::fs::canonicalize(path)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    if let Some(journal) = unplayed_journal(&absolute) {
        return Err(ReadError::Unfinished { path: path.to_owned(), journal });
    }
    let open = || {
        let connection = gfxpack_sqlite::open(&absolute, filled_log(&absolute).is_none())?;
        gfxpack_sqlite::harden(&connection, MAX_VALUE_BYTES)?;
        connection.set_limit(Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS)?;
        // A view could take any time to evaluate; MIOpen creates none.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        Ok(connection)
    };
    open().map_err(|source| ReadError::Sqlite { path: path.to_owned(), source })
}

/// The columns of the table of problems, but for `id`. That it is the primary key, as in MIOpen's
/// files, bounds joins with `perf_db`: each row of parameters belongs to one problem at most.
pub(crate) fn problem_columns(
    connection: &Connection,
    path: &Path,
) -> Result<Vec<Column>, ReadError> {
    let sqlite = |source| ReadError::Sqlite { path: path.to_owned(), source };
    let keys = "SELECT min(name = 'id' AND upper(type) = 'INTEGER') \
                FROM pragma_table_info('config') WHERE pk";
    let is_key: Option<bool> = connection.query_row(keys, (), |row| row.get(0)).map_err(sqlite)?;
    if is_key != Some(true) {
        let what = "the table `config` is missing, or has no `id INTEGER PRIMARY KEY`".to_owned();
        return Err(ReadError::Schema { path: path.to_owned(), what });
    }
    let columns = columns(connection, "config").map_err(sqlite)?;
    Ok(columns.into_iter().filter(|column| column.name != "id").collect())
}

/// The columns of a table; empty if there is no such table.
fn columns(connection: &Connection, table: &str) -> Result<Vec<Column>, rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA table_info({table})"))?;
    let column = |row: &rusqlite::Row<'_>| {
        let (name, kind): (String, String) = (row.get("name")?, row.get("type")?);
        Ok(Column { name, text: kind.eq_ignore_ascii_case("TEXT") })
    };
    statement.query_map((), column)?.collect()
}

/// Parameters by problem, and the number of rows without a problem.
fn rows(connection: &Connection, columns: &[Column]) -> Result<(Problems, u64), rusqlite::Error> {
    let mut names: Vec<String> = columns
        .iter()
        .map(|column| format!("CAST(config.{} AS TEXT)", quoted(&column.name)))
        .collect();
    names.extend(
        ["CAST(perf_db.solver AS TEXT)", "CAST(perf_db.params AS TEXT)"].map(str::to_owned),
    );
    let mut statement = connection.prepare(&format!(
        "SELECT {} FROM perf_db INNER JOIN config ON perf_db.config = config.id ORDER BY perf_db.id",
        names.join(",")
    ))?;
    let mut problems = Problems::new();
    let mut rows = statement.query(())?;
    let text = |row: &rusqlite::Row<'_>, at: usize| {
        row.get::<_, Option<String>>(at).map(Option::unwrap_or_default)
    };
    let mut joined: u64 = 0;
    while let Some(row) = rows.next()? {
        joined += 1;
        let values = (0..columns.len()).map(|at| text(row, at)).collect::<Result<_, _>>()?;
        let (solver, params) = (text(row, columns.len())?, text(row, columns.len() + 1)?);
        // A later row of the same solver wins, as in `SetValues`.
        problems.entry(values).or_default().insert(solver, params);
    }
    let all: i64 = connection.query_row("SELECT count(*) FROM perf_db", (), |row| row.get(0))?;
    Ok((problems, u64::try_from(all).unwrap_or_default().saturating_sub(joined)))
}

/// Quotes an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database as MIOpen makes it, without most columns.
    fn make(path: &Path, wal: bool, rows: &[(&str, i64, &str, &str)]) -> Connection {
        let connection = Connection::open(path).expect("opened");
        if wal {
            connection.pragma_update(None, "journal_mode", "WAL").expect("WAL");
        }
        connection
            .execute_batch(
                "CREATE TABLE IF NOT EXISTS `config` (`id` INTEGER PRIMARY KEY ASC,\
                 `direction` TEXT NOT NULL,`in_h` INT NOT NULL);
                 CREATE UNIQUE INDEX `idx_config` ON config( direction, in_h );
                 CREATE TABLE `perf_db` (`id` INTEGER PRIMARY KEY ASC,`solver` TEXT NOT NULL,\
                 `config` INTEGER NOT NULL,`params` TEXT NOT NULL);
                 CREATE UNIQUE INDEX `idx_perf_db` ON perf_db(solver, config);",
            )
            .expect("tables");
        for (direction, height, solver, params) in rows {
            connection
                .execute(
                    "INSERT OR IGNORE INTO config (direction, in_h) VALUES (?1, ?2)",
                    (direction, height),
                )
                .expect("a problem");
            connection
                .execute(
                    "INSERT OR REPLACE INTO perf_db (config, solver, params) VALUES \
                     ((SELECT id FROM config WHERE direction = ?1 AND in_h = ?2), ?3, ?4)",
                    (direction, height, solver, params),
                )
                .expect("parameters");
        }
        connection
    }

    #[test]
    fn users_solvers_take_precedence_and_equal_contents_are_equal_bytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        drop(make(
            &at("s.db"),
            false,
            &[("F", 7, "A", "1"), ("F", 7, "B", "2"), ("B", 9, "A", "3")],
        ));
        // Its rows are only in the write-ahead log while it is open.
        let user = make(&at("u.udb"), true, &[("F", 7, "A", "9"), ("W", 1, "C", "4")]);
        let mut merged = SqliteDatabase::read(&at("s.db")).expect("the system's");
        let over = SqliteDatabase::read(&at("u.udb")).expect("the user's");
        let done = merged.lay_all_over(over).expect("the same columns");
        assert_eq!(done, Overlaid { added: 1, changed: 1, same: 0 });
        drop(user);
        let values = merged.problems.values().flatten();
        let values: Vec<_> = values.map(|(solver, params)| format!("{solver}:{params}")).collect();
        assert_eq!(values, ["A:3", "A:9", "B:2", "C:4"]);
        merged.save(&at("1.db")).expect("written");
        let again = SqliteDatabase::read(&at("1.db")).expect("read again");
        assert_eq!(again, merged);
        again.save(&at("2.db")).expect("written");
        let bytes = |name: &str| std::fs::read(at(name)).expect(name);
        assert!(bytes("1.db") == bytes("2.db"));
        assert!(!at("1.db-wal").exists() && !at("s.db-shm").exists());
        // The query of MIOpen.
        let connection = Connection::open(at("1.db")).expect("opened");
        let params: String = connection
            .query_row(
                "SELECT params FROM perf_db INNER JOIN config ON perf_db.config = config.id \
                 WHERE ( (direction = ? ) AND (in_h = ? ) ) AND solver = 'A';",
                ("F", "7"),
                |row| row.get(0),
            )
            .expect("a row");
        assert_eq!(params, "9");
    }

    #[test]
    fn other_tables_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.db");
        let connection = Connection::open(&path).expect("opened");
        connection.execute_batch("CREATE TABLE config (id INTEGER PRIMARY KEY)").expect("a table");
        let error = SqliteDatabase::read(&path).expect_err("no perf_db");
        assert!(matches!(error, ReadError::Schema { .. }), "{error}");
        let other = dir.path().join("y.db");
        drop(make(&other, false, &[("F", 7, "A", "1")]));
        Connection::open(&other)
            .and_then(|connection| {
                connection.execute_batch(
                    "INSERT INTO perf_db (solver, config, params) VALUES ('A', 99, '1');
                     ALTER TABLE config ADD COLUMN more TEXT",
                )
            })
            .expect("changed");
        let mut more = SqliteDatabase::read(&other).expect("read");
        assert_eq!((more.problems.len(), more.orphans), (1, 1));
        let third = dir.path().join("z.db");
        drop(make(&third, false, &[]));
        let fewer = SqliteDatabase::read(&third).expect("read");
        assert_eq!(more.lay_all_over(fewer), None);
    }

    #[test]
    fn a_database_in_which_parameters_could_belong_to_many_problems_is_rejected() {
        for columns in [
            "id INTEGER, in_h INT",
            "id TEXT PRIMARY KEY, in_h INT",
            "id INTEGER, in_h INT, PRIMARY KEY (id, in_h)",
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("x.db");
            Connection::open(&path)
                .and_then(|connection| {
                    connection.execute_batch(&format!(
                        "CREATE TABLE config ({columns});
                         CREATE TABLE perf_db (id INTEGER PRIMARY KEY, solver, config, params)"
                    ))
                })
                .expect("tables");
            let error = SqliteDatabase::read(&path).expect_err(columns);
            assert!(matches!(error, ReadError::Schema { .. }), "{error}");
        }
    }

    #[test]
    fn logs_and_journals_of_others_are_respected() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.udb");
        let user = make(&path, true, &[("F", 7, "A", "1")]);
        let database = SqliteDatabase::read(&path).expect("read with its log");
        let error = database.save(&path).expect_err("in use");
        assert!(matches!(error, WriteError::Pending { .. }), "{error}");
        assert!(error.hint().contains("wal_checkpoint"), "{}", error.hint());
        drop(user);
        database.save(&path).expect("the log is gone with its last user");
        let journal = dir.path().join("x.udb-journal");
        // What `journal_mode=PERSIST` leaves after a transaction.
        std::fs::write(&journal, [0; 512]).expect("written");
        assert_eq!(SqliteDatabase::read(&path).expect("whole"), database);
        database.save(&path).expect("nobody's journal");
        std::fs::write(&journal, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7").expect("written");
        let error = SqliteDatabase::read(&path).expect_err("not whole");
        assert!(matches!(error, ReadError::Unfinished { .. }), "{error}");
        let error = database.save(&path).expect_err("another's journal");
        assert!(matches!(error, WriteError::Pending { .. }), "{error}");
    }

    #[test]
    fn text_is_not_sqlite() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.db");
        std::fs::write(&path, "a=A:1\n").expect("written");
        let error = SqliteDatabase::read(&path).expect_err("text");
        assert!(matches!(error, ReadError::OtherStorage { sqlite: false, .. }), "{error}");
    }
}
