//! The two layouts of a file, in SQL.

/// The layout of a file's rows. rocFFT reads both: it selects `code` from `cache_v1` by the four
/// columns of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// One table with everything, as rocFFT itself creates it.
    #[default]
    Plain,
    /// Each code object is stored once, however many keys share it, and each key's text once, while
    /// the plain table's index repeats it; pages are small. `cache_v1` is a view.
    Dense,
}

/// rocFFT's table. SQLite stores the statement's text, so its blanks are part of the format.
///
/// Source: rocFFT 1.0.32, `rtc_cache.cpp`, `RTCCache::connect_db`.
const CREATE_TABLE: &str = "CREATE TABLE cache_v1 (  \
    kernel_name TEXT NOT NULL,  \
    arch TEXT NOT NULL,  \
    hip_version INTEGER NOT NULL,  \
    generator_sum BLOB NOT NULL,  \
    code BLOB NOT NULL,  \
    timestamp INTEGER NOT NULL,  \
    PRIMARY KEY (      kernel_name, arch, hip_version, generator_sum      ))";

const CREATE_OBJECTS: &str =
    "CREATE TABLE rocfft_objects (id INTEGER PRIMARY KEY, code BLOB NOT NULL)";

const CREATE_KEYS: &str = "CREATE TABLE rocfft_keys (\
    kernel_name TEXT NOT NULL, \
    arch TEXT NOT NULL, \
    hip_version INTEGER NOT NULL, \
    generator_sum BLOB NOT NULL, \
    object INTEGER NOT NULL, \
    PRIMARY KEY (kernel_name, arch, hip_version, generator_sum)) WITHOUT ROWID";

/// The view that rocFFT reads.
const CREATE_VIEW: &str = "CREATE VIEW cache_v1 AS SELECT \
    kernel_name, arch, hip_version, generator_sum, code, 0 AS timestamp \
    FROM rocfft_keys JOIN rocfft_objects ON id = object";

impl Layout {
    /// The layout's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Dense => "dense",
        }
    }

    /// The statements that create an empty file of this layout; its whole schema.
    pub(crate) fn statements(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[CREATE_TABLE],
            Self::Dense => &[CREATE_OBJECTS, CREATE_KEYS, CREATE_VIEW],
        }
    }

    /// The page size in bytes. Plain files have SQLite's default, like rocFFT's own; in the dense
    /// layout, small pages waste less space.
    pub(crate) fn page_size(self) -> u32 {
        match self {
            Self::Plain => 4096,
            Self::Dense => 1024,
        }
    }

    /// Selects all keys in order, from the index only.
    pub(crate) fn select_keys(self) -> &'static str {
        match self {
            Self::Plain => {
                "SELECT kernel_name, arch, hip_version, generator_sum \
                 FROM cache_v1 INDEXED BY sqlite_autoindex_cache_v1_1 \
                 ORDER BY kernel_name, arch, hip_version, generator_sum"
            }
            Self::Dense => {
                "SELECT kernel_name, arch, hip_version, generator_sum FROM rocfft_keys \
                 ORDER BY kernel_name, arch, hip_version, generator_sum"
            }
        }
    }

    /// Selects one row by its key. The key is read from the row itself, not from the index, which
    /// may lead to another row if a bit is flipped.
    pub(crate) fn select_one(self) -> &'static str {
        match self {
            Self::Plain => {
                "SELECT kernel_name, arch, hip_version, generator_sum, code FROM cache_v1 \
                 WHERE rowid = (SELECT rowid FROM cache_v1 WHERE kernel_name = ?1 AND arch = ?2 \
                 AND hip_version = ?3 AND generator_sum = ?4)"
            }
            Self::Dense => {
                "SELECT kernel_name, arch, hip_version, generator_sum, code \
                 FROM rocfft_keys JOIN rocfft_objects ON id = object \
                 WHERE kernel_name = ?1 AND arch = ?2 AND hip_version = ?3 AND generator_sum = ?4"
            }
        }
    }
}
