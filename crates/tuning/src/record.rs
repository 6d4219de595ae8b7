//! One record of a text database: a line, parsed as MIOpen parses it, and the
//! faults that MIOpen would ignore.

use std::collections::BTreeMap;

use crate::name::DatabaseKind;

/// Longest line accepted, in bytes; MIOpen's own have a few hundred.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

/// Values by the solvers' names, without duplicates. Not a map: a map with one
/// entry takes as much memory as one with eleven, and most records have one or
/// two.
pub(crate) type Solvers = Vec<(String, String)>;

/// The values of one problem, by solver.
///
/// Source: ROCm/MIOpen 2d1fd997a, `DbRecord` in db_record.hpp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DbRecord {
    /// The problem: `64-56-56-1x1-64-56-56-16-0x0-1x1-1x1-0-NCHW-FP32-F`.
    pub(crate) key: String,
    /// Sorted by the solvers' names.
    pub(crate) solvers: Solvers,
}

/// A fault of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// It is not UTF-8, or has control characters.
    #[error("it is no text")]
    NotText,
    /// Longer than a megabyte.
    #[error("it has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// No `=`, or nothing before it.
    #[error("it has no key: `=` is missing, or nothing is before it")]
    NoKey,
    /// No solver with values after the `=`.
    #[error("its key has no values")]
    NoValues,
    /// The line ends in a carriage return, which MIOpen considers a part of the
    /// last value.
    #[error("it ends with a carriage return, which becomes part of a value")]
    CarriageReturn,
    /// An item without `:`, which MIOpen skips.
    #[error("`{0}` names no solver: `:` is missing")]
    NoSolver(String),
    /// A solver that the record already has; MIOpen uses the first.
    #[error("`{0}` is given twice; MIOpen takes the first")]
    SecondOf(String),
    /// An item in the first layout of find databases; it is read, and written
    /// in today's layout.
    #[error("`{0}` is in the first layout of find databases")]
    Legacy(String),
    /// An item in the first layout that can't be parsed.
    #[error("`{0}` is in neither layout of find databases")]
    BadLegacy(String),
    /// Values of a find database other than time, workspace, algorithm.
    #[error("`{values}` of `{solver}` is not time, workspace, algorithm")]
    BadValues {
        /// The solver.
        solver: String,
        /// The values.
        values: String,
    },
    /// A separator in a value, as names of kernels have it.
    #[error("`{0}` has the separator `:` in it")]
    Reserved(String),
    /// Two records in one line: whoever wrote the first was stopped, or two
    /// programs wrote at once.
    #[error("`{0}` is of two records that were torn: at least one is lost")]
    Torn(String),
    /// More values in a find database than the three that MIOpen reads.
    #[error("MIOpen reads no more than the first three of `{0}`")]
    Surplus(String),
}

impl RecordFault {
    /// Whether a part of the line is lost because of it.
    pub fn loses(&self) -> bool {
        !matches!(self, Self::Legacy(_) | Self::Reserved(_) | Self::Surplus(_))
    }
}

impl DbRecord {
    /// The line, without newline. Solvers are sorted by the bytes of their
    /// names, since MIOpen's own order is that of a hash table.
    pub fn line(&self) -> String {
        line(&self.key, &self.solvers)
    }

    /// Parses a line without its newline as MIOpen would, and returns the
    /// record and the line's faults. A carriage return at the end is left out.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `ReadonlyRamDb::ParseAndLoadDb` in
    /// readonlyramdb.cpp, `DbRecord::ParseContents` in db_record.cpp.
    pub fn parse(line: &[u8], kind: DatabaseKind) -> (Option<Self>, Vec<RecordFault>) {
        let mut faults = Vec::new();
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if text.len() != line.len() {
            faults.push(RecordFault::CarriageReturn);
        }
        let Some(text) = std::str::from_utf8(text).ok().filter(|t| !t.contains(char::is_control))
        else {
            return (None, vec![RecordFault::NotText]);
        };
        let Some((key, contents)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            faults.push(RecordFault::NoKey);
            return (None, faults);
        };
        if key.contains([':', ';']) {
            faults.push(RecordFault::Torn(key.to_owned()));
            return (None, faults);
        }
        let mut solvers = BTreeMap::new();
        for item in contents.split(';') {
            // After a `;` at the end there is no item, as in MIOpen.
            if !item.is_empty() {
                add(&mut solvers, item, kind, &mut faults);
            }
        }
        if solvers.is_empty() {
            faults.push(RecordFault::NoValues);
            return (None, faults);
        }
        let solvers = solvers.into_iter().collect();
        (Some(Self { key: key.to_owned(), solvers }), faults)
    }
}

/// The line of [`DbRecord::line`].
pub(crate) fn line(key: &str, solvers: &Solvers) -> String {
    let solvers: Vec<String> =
        solvers.iter().map(|(solver, values)| format!("{solver}:{values}")).collect();
    format!("{key}={}", solvers.join(";"))
}

/// Adds an item of a line to the solvers before it, if MIOpen would.
fn add(
    solvers: &mut BTreeMap<String, String>,
    item: &str,
    kind: DatabaseKind,
    faults: &mut Vec<RecordFault>,
) {
    if item.contains('=') {
        return faults.push(RecordFault::Torn(item.to_owned()));
    }
    let Some((id, values)) = item.split_once(':').filter(|(id, _)| !id.is_empty()) else {
        return faults.push(RecordFault::NoSolver(item.to_owned()));
    };
    let legacy = is_algorithm(id).then(|| from_legacy(id, values));
    let (solver, values) = match legacy {
        None => (id.to_owned(), values.to_owned()),
        Some(None) => return faults.push(RecordFault::BadLegacy(item.to_owned())),
        Some(Some(now)) => {
            faults.push(RecordFault::Legacy(id.to_owned()));
            now
        }
    };
    if solvers.contains_key(&solver) {
        return faults.push(RecordFault::SecondOf(solver));
    }
    if kind == DatabaseKind::Find && algorithm_found(&values).is_none() {
        return faults.push(RecordFault::BadValues { solver, values });
    }
    if kind == DatabaseKind::Find && values.split(',').nth(3).is_some() {
        faults.push(RecordFault::Surplus(values.clone()));
    }
    if values.contains(':') {
        faults.push(RecordFault::Reserved(values.clone()));
    }
    solvers.insert(solver, values);
}

/// The algorithm in the values of a find database, `miopenConvolutionFwdAlgoGEMM`,
/// after milliseconds and bytes of scratch memory; `None` if they are not these.
/// Fields after the third are ignored.
///
/// Source: ROCm/MIOpen 2d1fd997a, `FindDbData` in perf_field.hpp and
/// `SerDes::Deserialize` in serializable.hpp.
pub(crate) fn algorithm_found(values: &str) -> Option<&str> {
    let mut fields = values.split(',');
    let (time, workspace, algorithm) = (fields.next()?, fields.next()?, fields.next()?);
    let time: f32 = time.parse().ok()?;
    workspace.parse::<u64>().ok()?;
    (time.is_finite() && time >= 0.0 && !algorithm.is_empty()).then_some(algorithm)
}

/// Whether this is an algorithm: in the first layout of find databases, it is
/// in the place of the solver.
pub(crate) fn is_algorithm(id: &str) -> bool {
    ['F', 'B', 'W'].iter().any(|direction| is_algorithm_of(*direction, id))
}

/// Whether this is an algorithm of convolutions in a direction, `F`, `B` or `W`
/// as keys have it. MIOpen throws where a record has another.
///
/// Source: ROCm/MIOpen 2d1fd997a, `StringToConvolutionFwdAlgo` and its like in
/// conv_algo_name.cpp.
pub(crate) fn is_algorithm_of(direction: char, id: &str) -> bool {
    let (prefix, own) = match direction {
        'F' => ("miopenConvolutionFwdAlgo", "FFT"),
        'B' => ("miopenConvolutionBwdDataAlgo", "FFT"),
        _ => ("miopenConvolutionBwdWeightsAlgo", "GEMM"),
    };
    let plain = id.strip_prefix(prefix);
    plain.is_some_and(|name| [own, "GEMM", "Direct", "Winograd", "ImplicitGEMM"].contains(&name))
        || (direction == 'B' && id == "miopenTransposeBwdDataAlgoGEMM")
}

/// The direction in a convolution's key, `F`, `B` or `W`; `None` if it is not the
/// whole key of one convolution.
///
/// Source: ROCm/MIOpen 2d1fd997a, `Visit` in conv/problem_description.hpp for
/// `2x64x56x…xNCHWxFP32xF`, `ProblemDescription::Serialize` in
/// conv/problem_description.cpp for `64-56-56-1x1-…-NCHW-FP32-F`.
pub(crate) fn direction(key: &str) -> Option<char> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let separator = if key.contains('-') { '-' } else { 'x' };
    let fields: Vec<&str> = key.split(separator).collect();
    let count = fields.iter().take_while(|field| field.split('x').all(is_number)).count();
    let (numbers, words) = fields.split_at(count);
    let whole = if separator == 'x' {
        (count, words.len()) == (21, 3)
    } else {
        // Channels, sizes, filter; channels, sizes, batch; padding, stride, dilation; bias.
        let dims = count.saturating_sub(8) / 2;
        let axes = |at: usize| at == dims + 1 || (2 * dims + 4..2 * dims + 7).contains(&at);
        matches!((count, words.len()), (12 | 14, 3 | 5))
            && numbers
                .iter()
                .enumerate()
                .all(|(at, field)| field.split('x').count() == if axes(at) { dims } else { 1 })
    };
    let (end, _) = words.last()?.split_once('_').unwrap_or((words.last()?, ""));
    let named = words.iter().all(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    let known = ["F", "B", "W"].contains(&end);
    end.chars().next().filter(|_| whole && named && known)
}

/// Converts `algorithm:solver,time,workspace,…` to the present layout.
///
/// Source: ROCm/MIOpen 2d1fd997a, `TransformFindDbItem10to20` in
/// db_record.cpp.
fn from_legacy(algorithm: &str, values: &str) -> Option<(String, String)> {
    let mut fields = values.splitn(4, ',');
    let (solver, time, workspace) = (fields.next()?, fields.next()?, fields.next()?);
    // The fourth field was a key of a kernel cache that no longer exists.
    fields.next()?;
    let sound = !solver.is_empty() && !solver.contains(':') && !is_algorithm(solver);
    sound.then(|| (solver.to_owned(), format!("{time},{workspace},{algorithm}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str, kind: DatabaseKind) -> (Option<String>, Vec<RecordFault>) {
        let (record, faults) = DbRecord::parse(line.as_bytes(), kind);
        (record.map(|record| record.line()), faults)
    }

    #[test]
    fn a_perf_record_is_read_and_written() {
        let check = |line: &str, written: Option<&str>, faults: &[RecordFault]| {
            let expected = (written.map(str::to_owned), faults.to_vec());
            assert_eq!(parsed(line, DatabaseKind::Perf), expected, "{line}");
        };
        check("k=B:1,2;A:3", Some("k=A:3;B:1,2"), &[]);
        check("k=A:", Some("k=A:"), &[]);
        check("k=A:1;", Some("k=A:1"), &[]);
        check("k=A:1\r", Some("k=A:1"), &[RecordFault::CarriageReturn]);
        check("k=A:1;A:2", Some("k=A:1"), &[RecordFault::SecondOf("A".to_owned())]);
        check("k=A:1;x;B:2", Some("k=A:1;B:2"), &[RecordFault::NoSolver("x".to_owned())]);
        check("k=:1;B:2", Some("k=B:2"), &[RecordFault::NoSolver(":1".to_owned())]);
        let kernel = "Xdl<64, Scheduler: Intrawave>+1";
        let named = format!("k=A:{kernel}");
        check(&named, Some(&named), &[RecordFault::Reserved(kernel.to_owned())]);
        // The end of one record is missing, or the beginning of the next.
        let torn = |text: &str| RecordFault::Torn(text.to_owned());
        check("k=A:1;B:2k=A:1", Some("k=A:1"), &[torn("B:2k=A:1")]);
        check("k=A:1;Bk=A:2;C:3", Some("k=A:1;C:3"), &[torn("Bk=A:2")]);
        check("A:1,2l=A:2", None, &[torn("A:1,2l")]);
        check("k=", None, &[RecordFault::NoValues]);
        check("k=x", None, &[RecordFault::NoSolver("x".to_owned()), RecordFault::NoValues]);
        check("=A:1", None, &[RecordFault::NoKey]);
        check("A:1", None, &[RecordFault::NoKey]);
        check("k=A:\u{7}", None, &[RecordFault::NotText]);
    }

    #[test]
    fn find_values_are_time_workspace_and_algorithm() {
        let good = "k=S:0.5,1024,miopenConvolutionFwdAlgoGEMM";
        assert_eq!(parsed(good, DatabaseKind::Find), (Some(good.to_owned()), Vec::new()));
        for values in ["0.5", "x,0,a", "0.5,-1,a", "-1,0,a", "nan,0,a", "0.5,0,", ""] {
            let (record, faults) = parsed(&format!("k=S:{values};T:1,0,a"), DatabaseKind::Find);
            let fault =
                RecordFault::BadValues { solver: "S".to_owned(), values: values.to_owned() };
            assert_eq!((record.as_deref(), faults), (Some("k=T:1,0,a"), vec![fault]), "{values}");
        }
        let more = parsed("k=S:1,2,a,b", DatabaseKind::Find);
        let surplus = RecordFault::Surplus("1,2,a,b".to_owned());
        assert!(!surplus.loses());
        assert_eq!(more, (Some("k=S:1,2,a,b".to_owned()), vec![surplus]), "kept as it is");
    }

    #[test]
    fn keys_of_convolutions_are_told_from_two_in_one() {
        let find = "128-16-16-3x3-64-16-16-2-1x1-1x1-1x1-0-NCHW-FP32-F";
        let deep = "8-4-12-12-3x3x3-16-4-12-12-2-1x1x1-1x1x1-1x1x1-0-NDHWC-BF16-B";
        let grouped = "8-12-12-3x3-16-12-12-2-1x1-1x1-1x1-0-NHWC-NHWC-NCHW-FP8FP8FP32-W_g2_2d";
        let perf = "2x64x56x56x1x1x1x1x256x32x0x0x0x1x1x0x1x1x0x0x1xNCHWxFP32xF";
        for (key, letter) in [(find, 'F'), (deep, 'B'), (grouped, 'W'), (perf, 'F')] {
            assert_eq!(direction(key), Some(letter), "{key}");
            // In its first number, a tear can't be seen.
            for end in key.find(['-', 'x']).expect("a separator") + 1..=key.len() {
                let torn = format!("{}{key}", &key[..end]);
                assert_eq!(direction(&torn), None, "{torn}");
            }
        }
        assert_eq!(direction(""), None);
        assert_eq!(direction("k"), None);
    }

    #[test]
    fn the_first_layout_is_converted_to_todays() {
        let (record, faults) = parsed(
            "k=miopenConvolutionFwdAlgoDirect:ConvOclDirectFwd,6.5,12,cache,<unused>;\
             miopenConvolutionFwdAlgoGEMM:broken",
            DatabaseKind::Find,
        );
        let now = "k=ConvOclDirectFwd:6.5,12,miopenConvolutionFwdAlgoDirect";
        assert_eq!(record.as_deref(), Some(now));
        let broken = RecordFault::BadLegacy("miopenConvolutionFwdAlgoGEMM:broken".to_owned());
        let legacy = RecordFault::Legacy("miopenConvolutionFwdAlgoDirect".to_owned());
        assert_eq!(faults, [legacy, broken]);
    }
}
