//! Parses statements that look kernels up.

use crate::record::Key;

/// A lookup of one kernel.
///
/// Source: ROCm/MIOpen 2d1fd997a, `KernelConfig::Where` and
/// `KernDb::FindRecordUnsafe`; later releases bind the two values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lookup {
    /// The selected columns, in order.
    pub(super) columns: Vec<Column>,
    /// The key; with parameters, the values bound so far.
    pub(super) key: Key,
    /// The numbers of the parameters for name and arguments, if they are bound.
    pub(super) parameters: Option<(i32, i32)>,
}

/// A column of a lookup's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Blob,
    Hash,
    UncompressedSize,
    Other,
}

impl Lookup {
    /// Parses a statement; `None` if it is no lookup.
    pub(super) fn parse(sql: &[u8]) -> Option<Self> {
        let after = sql.strip_prefix(b"SELECT ")?;
        let (columns, after) = split(after, b" FROM kern_db WHERE ")?;
        let columns = columns.split(|&byte| byte == b',').map(Column::named).collect();
        if let Some((name, arguments)) = spliced(after) {
            let key = Key { name: name.to_vec(), arguments: arguments.to_vec() };
            return Some(Self { columns, key, parameters: None });
        }
        let place = |column: &[u8]| split(after, column).map(|(before, _)| before.len());
        let (name, arguments) = (place(b"kernel_name")?, place(b"kernel_args")?);
        let bound = after.iter().filter(|&&byte| byte == b'?').count() == 2;
        let parameters = if name < arguments { (1, 2) } else { (2, 1) };
        let key = Key { name: Vec::new(), arguments: Vec::new() };
        bound.then_some(Self { columns, key, parameters: Some(parameters) })
    }

    /// Sets the value of a parameter.
    pub(super) fn bind(&mut self, parameter: i32, value: &[u8]) {
        match self.parameters {
            Some((name, _)) if name == parameter => self.key.name = value.to_vec(),
            Some((_, arguments)) if arguments == parameter => self.key.arguments = value.to_vec(),
            _ => {}
        }
    }
}

impl Column {
    fn named(name: &[u8]) -> Self {
        match name.trim_ascii() {
            b"kernel_blob" => Self::Blob,
            b"kernel_hash" => Self::Hash,
            b"uncompressed_size" => Self::UncompressedSize,
            _ => Self::Other,
        }
    }
}

/// Name and arguments in a condition that contains them as unescaped text: the last quote ends the
/// arguments.
fn spliced(condition: &[u8]) -> Option<(&[u8], &[u8])> {
    let values = condition.strip_prefix(b"(kernel_name = '")?;
    let (name, rest) = split(values, b"') AND (kernel_args = '")?;
    let end = rest.iter().rposition(|&byte| byte == b'\'')?;
    Some((name, &rest[..end]))
}

fn split<'a>(bytes: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(by.len()).position(|window| window == by)?;
    Some((&bytes[..at], &bytes[at + by.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sql: &str, name: &str, arguments: &str) {
        let lookup = Lookup::parse(sql.as_bytes()).unwrap();
        assert_eq!(lookup.columns, [Column::Blob, Column::Hash, Column::UncompressedSize]);
        assert_eq!(lookup.key.name, name.as_bytes());
        assert_eq!(lookup.key.arguments, arguments.as_bytes());
    }

    #[test]
    fn the_key_of_a_lookup_is_read_byte_for_byte() {
        let select = "SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE";
        check(
            &format!(
                "{select} (kernel_name = 'a.cl.o') AND (kernel_args = '  -DA=1  -mcpu=gfx906');"
            ),
            "a.cl.o",
            "  -DA=1  -mcpu=gfx906",
        );
        check(
            &format!("{select} (kernel_name = 'a.cpp.o') AND (kernel_args = ' -DC='x'');"),
            "a.cpp.o",
            " -DC='x'",
        );
        check(&format!("{select} (kernel_name = '') AND (kernel_args = '');"), "", "");
    }

    #[test]
    fn values_may_be_bound() {
        let sql = b"SELECT kernel_hash, kernel_blob FROM kern_db WHERE (kernel_name = ?) AND (kernel_args = ?);";
        let mut lookup = Lookup::parse(sql).unwrap();
        lookup.bind(1, b"n");
        lookup.bind(2, b"a");
        lookup.bind(3, b"x");
        assert_eq!(lookup.key, Key { name: b"n".to_vec(), arguments: b"a".to_vec() });
        assert_eq!(lookup.columns, [Column::Hash, Column::Blob]);
    }

    #[test]
    fn other_statements_are_not_lookups() {
        for sql in [
            "PRAGMA table_info(kern_db);",
            "SELECT params FROM perf_db WHERE (config = 1);",
            "INSERT OR REPLACE INTO kern_db(kernel_name) VALUES(?);",
            "SELECT count(*) FROM kern_db WHERE kernel_name = 'x'",
        ] {
            assert_eq!(Lookup::parse(sql.as_bytes()), None, "{sql}");
        }
    }
}
