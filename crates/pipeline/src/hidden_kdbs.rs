//! Kernels that a kdb for exact compute units hides: MIOpen does not open the
//! device-wide kdb beside it.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{ReadError, Reader};
use gfxpack_model::Target;
use gfxpack_plan::kernel_package::Release;

use crate::build::MadeKdb;
use crate::progress::Progress;

/// How many kernels of the device-wide kdb the exact one lacks, and how many it has. If the exact one
/// can't be read, all are hidden.
///
/// # Errors
/// If the device-wide kdb can't be read.
pub fn hidden(exact: &Path, wide: &Path) -> Result<(u64, u64), ReadError> {
    let of = Reader::open(wide)?.count()?;
    let differences = gfxpack_kdb::diff(exact, wide, |_| Ok::<(), ReadError>(()));
    Ok((differences.map_or(of, |differences| differences.added), of))
}

/// Warns if one of the new kdbs, once installed, keeps MIOpen from finding
/// kernels of another: one of `known`, whose kernels were left out, or one
/// installed on this machine.
pub(crate) fn warn(kdbs: &[(&MadeKdb, &Release)], known: &[PathBuf], progress: &dyn Progress) {
    let may_hide = |release: &Release| release.consumer.properties().exact_hides_device_wide;
    for (kdb, release) in kdbs.iter().filter(|(_, release)| may_hide(release)) {
        let own = kdb.target.kdb_file_name();
        let wide = Target::new(kdb.target.id().clone(), None).kdb_file_name();
        let installed = Path::new(&release.layout.kdb_dir()).join(&wide);
        let is_called = |file: &Path, name: &str| file.file_name().is_some_and(|own| own == name);
        let mut reported: Vec<PathBuf> = Vec::new();
        for file in known.iter().chain([&installed]).filter(|file| file.is_file()) {
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            let replaced = is_called(file, &own) && *file != installed;
            let hides = own != wide && is_called(file, &wide);
            if !(replaced || hides) || reported.contains(&real) {
                continue;
            }
            // A kdb that can't be read was reported before, or does not concern this
            // run.
            let Ok((lacking @ 1.., of)) = hidden(&kdb.path, file) else { continue };
            let file = file.display();
            progress.warning(&if replaced {
                format!(
                    "`{own}` takes the place of `{file}` if it is installed there, and lacks \
                     {lacking} of its {of} kernels: package what `gfxpack kdb merge` makes of both"
                )
            } else {
                format!(
                    "`{own}` hides `{file}` if it is installed beside it, and lacks {lacking} of \
                     its {of} kernels, since MIOpen opens one kdb: build for {} instead, or package \
                     what `gfxpack kdb merge` makes of both",
                    kdb.target.id()
                )
            });
            reported.push(real);
        }
    }
}
