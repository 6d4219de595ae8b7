//! Turns the package of a kdb into a Python package, for the MIOpen of torch.

use gfxpack_model::package::{Content, PackageFile, PackageSpec};

/// The modules of the package.
const MODULES: [(&str, &str); 4] = [
    ("/__init__.py", include_str!("python/__init__.py")),
    ("/__main__.py", include_str!("python/__main__.py")),
    ("/_databases.py", include_str!("python/_databases.py")),
    ("/_start.py", include_str!("python/_start.py")),
];

/// Makes a Python package from a spec whose paths are below one.
pub(super) fn as_package(spec: &mut PackageSpec) {
    // These name packages of the system.
    spec.relations.clear();
    spec.deb_fields.clear();
    spec.description.push_str(
        "\n\nWhen a program imports a ROCm build of torch, MIOPEN_SYSTEM_DB_PATH is set to a \
         directory in the user's cache with links to these kernels and to torch's own databases, \
         unless it is set already. No file of torch is changed.",
    );
    spec.files.extend(
        MODULES.map(|(path, text)| PackageFile::readable(path, Content::Bytes(text.into()))),
    );
}
