//! What differs between packages by who looks their kernels up: everything that they say about it
//! stands in one table.

use gfxpack_model::InstallLayout;
use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;

use crate::consumer::Consumer;

/// What packages say of the library that looks their kernels up. In texts, `{library}` stands for
/// the name of the kernels' own library.
pub(super) struct Reader {
    /// What the kernels are called in a summary.
    pub(super) kernels: &'static str,
    /// Why someone wants the package: a sentence of its description.
    pub(super) purpose: &'static str,
    /// What becomes of kernels that are not in the package.
    pub(super) missing: &'static str,
    /// Where the file is installed.
    pub(super) directory: fn(&InstallLayout, library: &str) -> String,
    /// What packages are called whose maker names no template.
    pub(super) name_template: &'static str,
    /// The packages of the library: AMD's and distributions'.
    pub(super) packages: &'static [&'static str],
    /// The library's package in AMD's directory, if names of its versions begin with this.
    pub(super) amds_package: Option<&'static str>,
    /// Names that AMD's own packages of the same file had, oldest first.
    pub(super) amds_templates: &'static [&'static str],
    /// Whether everyone with such a GPU wants the kernels, not only who has a certain program.
    pub(super) by_hardware: bool,
}

/// Source of `amds_templates`: AMD's apt and rpm repositories: the first to ROCm 5.4, the second
/// since 5.5 (with compute units in the name) and 5.7 (without).
const MIOPEN: Reader = Reader {
    kernels: "MIOpen kernels",
    purpose: "MIOpen compiles its GPU kernels when a program first needs them, which takes seconds \
              to minutes, unless it finds them in a kernel database.",
    missing: "which MIOpen does at run time",
    directory: |layout, _| layout.kdb_dir(),
    name_template: DEFAULT_NAME_TEMPLATE,
    packages: &["miopen-hip", "libmiopen1", "miopen"],
    amds_package: Some("miopen-hip"),
    amds_templates: &["miopenkernels-{gfx}kdb", "miopen-hip-{gfx}kdb"],
    by_hardware: true,
};

const ROCFFT: Reader = Reader {
    kernels: "rocFFT kernels",
    purpose: "rocFFT compiles its GPU kernels when a program first makes a plan that needs them, \
              which takes seconds each, unless it finds them in a kernel cache.",
    missing: "which rocFFT does at run time",
    directory: |layout, _| format!("{}/rocfft", layout.library_dir()),
    name_template: "rocfft-kernels-{gfx}",
    packages: &["librocfft0", "rocfft"],
    amds_package: None,
    amds_templates: &[],
    by_hardware: true,
};

const RUNTIME: Reader = Reader {
    kernels: "kernels of {library}",
    purpose: "Programs that use gfxpack's runtime library find the GPU kernels of {library} in a \
              kernel database, and need not compile them.",
    missing: "which programs do at run time",
    directory: |layout, library| layout.dir_of(library),
    name_template: "{library}-{gfx}",
    packages: &[],
    amds_package: None,
    amds_templates: &[],
    by_hardware: false,
};

/// What packages of kernels for this consumer say of it.
pub(super) fn reader(consumer: Consumer) -> &'static Reader {
    match consumer {
        Consumer::Miopen => &MIOPEN,
        Consumer::Rocfft => &ROCFFT,
        Consumer::Runtime => &RUNTIME,
    }
}

/// A text of the table with the name of the kernels' library.
pub(super) fn named(text: &str, library: &str) -> String {
    text.replace("{library}", library)
}

/// What packages are called whose maker names no template: as AMD's where
/// MIOpen reads them, else after the library.
#[must_use]
pub fn default_name_template(consumer: Consumer, library: &str) -> String {
    named(reader(consumer).name_template, library)
}
