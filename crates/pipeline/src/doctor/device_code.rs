//! Whether ROCm's libraries that are installed have code for the GPUs of this machine.

use std::path::{Path, PathBuf};

use gfxpack_fatbin::Checker;
use gfxpack_model::{Target, TargetId};

use super::finding::Findings;
use crate::device_code::add_tree;
use crate::error::in_full;
use crate::text::counted;

const ABOUT: &str = "device code";
/// Where ROCm and distributions have libraries, below the root or a prefix.
const PLACES: [&str; 3] = ["/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"];
/// Beginnings of the names of libraries, and of directories beside them, that have device code.
const NAMES: [&str; 9] = [
    "hipblaslt",
    "hipsparselt",
    "libggml-hip",
    "libhip",
    "libmagma",
    "librccl",
    "libroc",
    "librpp",
    "rocblas",
];

/// Checks the libraries of ROCm at `rocm`, or else in the usual places, in one line for each
/// directory. None at all is not a fault.
pub fn check_device_code(rocm: Option<&Path>, targets: &[Target], findings: &mut Findings<'_>) {
    let devices: Vec<TargetId> = targets.iter().map(|target| target.id().clone()).collect();
    let places = match rocm {
        Some(rocm) => vec![rocm.join("lib")],
        None => PLACES.iter().map(PathBuf::from).collect(),
    };
    for place in places.iter().filter(|_| !devices.is_empty()) {
        let Ok(entries) = place.read_dir() else { continue };
        let mut checker = Checker::new(&devices);
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link || !NAMES.iter().any(|begin| name.starts_with(begin)) {
                continue;
            }
            if let Err(error) = add_tree(&entry.path(), &mut checker) {
                findings.warning(ABOUT, in_full(&error), "make it readable");
            }
        }
        let (files, gaps) = (checker.with_code, checker.finish());
        let place = place.display();
        let hint =
            format!("`gfxpack verify {place}` lists all, with the packages that they are in");
        match gaps.first() {
            None if files == 0 => {}
            None => findings.ok(ABOUT, format!("`{place}`: {} with code", counted(files, "file"))),
            Some(gap) => {
                let target = gap.target.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
                let path = gap.path.display();
                let first = format!("`{path}`: {target}{}", gap.detail);
                let more = match gaps.len() - 1 {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                findings.warning(ABOUT, format!("{first}{more}"), hint);
            }
        }
    }
}
