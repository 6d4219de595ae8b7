//! Checks one stored row, without SQLite.

use gfxpack_model::code_object::{self, CodeObjectError, UnfitError};
use gfxpack_model::{KernelKey, KeyError, Target, TargetId, in_full};

use crate::codec::{self, ClaimedSize};
use crate::error::RowError;
use crate::open::WorkBudget;
use crate::row::{self, MAX_SHOWN_BYTES};
use crate::schema::MAX_KEY_BYTES;
use crate::verify::report::{Finding, FindingClass};

/// A row copied out of SQLite, so that another thread can check it.
pub(crate) struct UncheckedRow {
    number: u64,
    name: Result<String, RowError>,
    args: Result<String, RowError>,
    shown: KernelKey,
    raw: bool,
    stored_bytes: u64,
    /// The blob and its checked size, or all errors of both.
    object: Result<(Vec<u8>, ClaimedSize), Vec<RowError>>,
    hash: Result<String, RowError>,
}

/// The result of checking a row.
pub(crate) struct RowResult {
    pub(crate) raw: bool,
    pub(crate) stored_bytes: u64,
    pub(crate) object_bytes: u64,
    pub(crate) findings: Vec<Finding>,
}

impl UncheckedRow {
    /// Copies a row of `SELECT_ALL`, and counts its declared size.
    pub(crate) fn take(row: &rusqlite::Row<'_>, number: u64, work: &WorkBudget) -> Self {
        let size = row::integer(row, 4, "uncompressed_size");
        let raw = matches!(size, Ok(0));
        let object = match (size, row::kernel_blob(row)) {
            (Ok(size), Ok(blob)) => match codec::claimed_size(blob, size, work) {
                Ok(claimed_size) => Ok((blob.to_vec(), claimed_size)),
                Err(fault) => Err(vec![fault]),
            },
            (size, blob) => Err(size.err().into_iter().chain(blob.err()).collect()),
        };
        Self {
            number,
            name: row::text(row, 0, "kernel_name").map(str::to_owned),
            args: row::text(row, 1, "kernel_args").map(str::to_owned),
            shown: row::shown_key(row),
            raw,
            stored_bytes: row::integer(row, 5, "kernel_blob").unwrap_or(0).unsigned_abs(),
            object,
            hash: row::text(row, 3, "kernel_hash").map(str::to_owned),
        }
    }

    /// Memory that checking this row may take, in bytes.
    pub(crate) fn cost(&self) -> u64 {
        let Self { name, args, object, hash, .. } = self;
        let text = |value: &Result<String, RowError>| value.as_ref().map_or(0, String::len) as u64;
        let object = object.as_ref();
        let object =
            object.map_or(0, |(blob, claimed_size)| blob.len() as u64 + claimed_size.bytes());
        object + text(name) + text(args) + text(hash)
    }
}

/// Checks a row, and lists everything that is wrong with it.
pub(crate) fn check(row: UncheckedRow, target: Option<&Target>) -> RowResult {
    let UncheckedRow { number, name, args, shown, raw, stored_bytes, object, hash } = row;
    let mut checked = RowResult { raw, stored_bytes, object_bytes: 0, findings: Vec::new() };
    let mut found = |class, detail| {
        let key = Some(shown.clone());
        checked.findings.push(Finding { class, row: Some(number), key, detail });
    };
    let mut usable = |fault: RowError| found(class_of(&fault), in_full(&fault));

    let key = match (name, args) {
        (Ok(kernel_name), Ok(kernel_args)) => Some(KernelKey { kernel_name, kernel_args }),
        (name, args) => {
            name.err().into_iter().chain(args.err()).for_each(&mut usable);
            None
        }
    };
    let hash = hash.map_err(&mut usable).ok();
    let object = object.map_err(|faults| faults.into_iter().for_each(&mut usable)).ok();
    let object = object.as_ref().and_then(|(blob, claimed_size)| {
        codec::unpack(blob, *claimed_size).map_err(&mut usable).ok()
    });
    if let (Some(object), Some(hash)) = (&object, &hash) {
        codec::check_hash(object, hash).unwrap_or_else(&mut usable);
    }

    let device = key.as_ref().and_then(|key| check_key(key, target, &mut found));
    if let Some(object) = object {
        check_target(&object, target, device, &mut found);
        checked.object_bytes = object.len() as u64;
    }
    checked
}

/// Checks the key's text, and returns the device it names.
fn check_key<'a>(
    key: &'a KernelKey,
    target: Option<&Target>,
    found: &mut impl FnMut(FindingClass, String),
) -> Option<&'a str> {
    match key.check_text() {
        Ok(()) => {}
        Err(KeyError::Nul(_)) => found(FindingClass::Key, "the key holds a NUL byte".to_owned()),
        Err(_) => {
            let detail = "the key holds a `'`, so MIOpen can never find it";
            found(FindingClass::Key, detail.to_owned());
        }
    }
    let bytes = key.kernel_name.len() + key.kernel_args.len();
    if bytes > MAX_KEY_BYTES {
        let detail = format!("the key has {bytes} bytes, the limit is {MAX_KEY_BYTES}");
        found(FindingClass::Key, detail);
    }
    // MIOpen appends the device for all other sources.
    //
    // Source: ROCm/MIOpen 2d1fd997a, `HIPOCProgramImpl` and `Handle::LoadProgram`.
    if key.source_name().is_some_and(|name| name.ends_with(".mlir")) {
        return None;
    }
    let device = key.split_device().map(|(_, device)| device);
    match (device, target) {
        (None, _) => {
            let detail = "the arguments do not end in ` -mcpu=<device>`";
            found(FindingClass::Device, detail.to_owned());
        }
        (Some(device), Some(target)) if device != target.id().processor() => {
            let shown: String = device.chars().take(MAX_SHOWN_BYTES).collect();
            let detail = format!("the arguments name {shown}, not {}", target.id().processor());
            found(FindingClass::Device, detail);
        }
        _ => {}
    }
    device
}

/// Checks that the bytes are a code object that devices of the kdb's target, or
/// the key's device, can load.
fn check_target(
    object: &[u8],
    target: Option<&Target>,
    device: Option<&str>,
    found: &mut impl FnMut(FindingClass, String),
) {
    let needed = target
        .map(|target| code_object::loaded_by(target.id()))
        .or_else(|| device.map(TargetId::new));
    let fits = match needed {
        Some(needed) => code_object::check(object, &needed),
        None => code_object::targets(object).map(drop).map_err(UnfitError::from),
    };
    if let Err(unfit) = fits {
        let class = match unfit {
            UnfitError::OtherTarget { .. }
            | UnfitError::CodeObject(CodeObjectError::Machine(_) | CodeObjectError::Processor(_)) => {
                FindingClass::Target
            }
            _ => FindingClass::CodeObject,
        };
        found(class, unfit.to_string());
    }
}

fn class_of(fault: &RowError) -> FindingClass {
    match fault {
        RowError::ColumnType { .. } | RowError::NotUtf8 { .. } => FindingClass::Column,
        RowError::OtherKey(_) | RowError::Unreachable => FindingClass::Integrity,
        RowError::HashForm(_) => FindingClass::HashForm,
        RowError::HashMismatch { .. } => FindingClass::Hash,
        RowError::Size(_)
        | RowError::Filler { .. }
        | RowError::Work { .. }
        | RowError::Empty
        | RowError::Bzip2(_)
        | RowError::Length { .. }
        | RowError::Trailing(_) => FindingClass::Blob,
    }
}
