//! Who looks kernels up: MIOpen, rocFFT, and programs with the runtime crate. What file names and packages need
//! to know about each is a row of one table.

use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_model::{InstallLayout, KernelFileFormat};
use serde::{Deserialize, Serialize};

/// Who looks kernels up at run time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consumer {
    /// MIOpen.
    #[default]
    Miopen,
    /// Programs that use gfxpack's runtime crate.
    Runtime,
    /// rocFFT.
    Rocfft,
}

/// What differs by who looks kernels up. In texts, `{library}` stands for the name of the kernels'
/// own library.
pub struct ConsumerProperties {
    /// The format of the files with the kernels.
    pub format: KernelFileFormat,
    /// Whether the file for exactly a GPU's compute units keeps it from the one for any number.
    pub exact_hides_device_wide: bool,
    /// Whether it looks into Python packages, and in ROCm's directory on Windows.
    pub supports_wheels_and_windows: bool,
    /// Where the files are installed.
    pub(crate) directory: fn(&InstallLayout, library: &str) -> String,
    /// The other way round: the layout that has its files in this directory.
    pub(crate) layout: fn(directory: &str) -> Option<InstallLayout>,
    /// What packages are called whose maker names no template.
    pub(crate) name_template: &'static str,
    /// What all packages are called that install the one file which serves all GPUs.
    pub(crate) shared_package: Option<&'static str>,
    /// The packages of the consumer itself: AMD's and distributions'.
    pub(crate) packages: &'static [&'static str],
    /// Its package in AMD's directory, if names of its versions begin with this.
    pub(crate) amds_package: Option<&'static str>,
    /// Names that AMD's own packages of the same file had, oldest first.
    pub(crate) amds_templates: &'static [&'static str],
    /// Whether everyone with such a GPU wants the kernels, not only who has a certain program.
    pub(crate) by_hardware: bool,
    /// What it is called.
    pub(crate) name: &'static str,
    /// What the kernels are called in a summary.
    pub(crate) kernels: &'static str,
    /// Why someone wants the package: a sentence of its description.
    pub(crate) purpose: &'static str,
    /// What becomes of kernels that are not in the package.
    pub(crate) missing: &'static str,
}

/// Source of `amds_templates`: AMD's apt and rpm repositories: the first to ROCm 5.4, the second
/// since 5.5 (with compute units in the name) and 5.7 (without).
const MIOPEN: ConsumerProperties = ConsumerProperties {
    format: KernelFileFormat::Kdb,
    exact_hides_device_wide: true,
    supports_wheels_and_windows: true,
    directory: |layout, _| layout.kdb_dir(),
    layout: |directory| {
        let (layout, library) = InstallLayout::of_dir(directory)?;
        (library == "miopen").then_some(layout)
    },
    name_template: DEFAULT_NAME_TEMPLATE,
    shared_package: None,
    packages: &["miopen-hip", "libmiopen1", "miopen"],
    amds_package: Some("miopen-hip"),
    amds_templates: &["miopenkernels-{gfx}kdb", "miopen-hip-{gfx}kdb"],
    by_hardware: true,
    name: "MIOpen",
    kernels: "MIOpen kernels",
    purpose: "MIOpen compiles its GPU kernels when a program first needs them, which takes seconds \
              to minutes, unless it finds them in a kernel database.",
    missing: "which MIOpen does at run time",
};

const RUNTIME: ConsumerProperties = ConsumerProperties {
    format: KernelFileFormat::Kdb,
    exact_hides_device_wide: false,
    supports_wheels_and_windows: false,
    directory: |layout, library| layout.dir_of(library),
    layout: |directory| Some(InstallLayout::of_dir(directory)?.0),
    name_template: "{library}-{gfx}",
    shared_package: None,
    packages: &[],
    amds_package: None,
    amds_templates: &[],
    by_hardware: false,
    name: "gfxpack's runtime library",
    kernels: "kernels of {library}",
    purpose: "Programs that use gfxpack's runtime library find the GPU kernels of {library} in a \
              kernel database, and need not compile them.",
    missing: "which programs do at run time",
};

const ROCFFT: ConsumerProperties = ConsumerProperties {
    format: KernelFileFormat::RocfftCache,
    exact_hides_device_wide: false,
    supports_wheels_and_windows: false,
    directory: |layout, _| format!("{}/rocfft", layout.library_dir()),
    layout: |directory| Some(InstallLayout::of_library_dir(directory.strip_suffix("/rocfft")?)),
    name_template: "rocfft-kernels-{gfx}",
    shared_package: Some("rocfft-kernel-cache"),
    packages: &["librocfft0", "rocfft"],
    amds_package: None,
    amds_templates: &[],
    by_hardware: true,
    name: "rocFFT",
    kernels: "rocFFT kernels",
    purpose: "rocFFT compiles its GPU kernels when a program first makes a plan that needs them, \
              which takes seconds each, unless it finds them in a kernel cache.",
    missing: "which rocFFT does at run time",
};

impl Consumer {
    /// All of them. Programs have kernels in directories of any name, MIOpen in its own, so it
    /// comes first.
    pub(crate) const ALL: [Self; 3] = [Self::Miopen, Self::Runtime, Self::Rocfft];

    /// What differs by who looks kernels up.
    #[must_use]
    pub fn properties(self) -> &'static ConsumerProperties {
        match self {
            Self::Miopen => &MIOPEN,
            Self::Runtime => &RUNTIME,
            Self::Rocfft => &ROCFFT,
        }
    }

    /// What packages are called whose maker names no template: as AMD's where
    /// MIOpen reads them, else after the library.
    #[must_use]
    pub fn default_name_template(self, library: &str) -> String {
        named(self.properties().name_template, library)
    }
}

/// A text of the table with the name of the kernels' library.
pub(crate) fn named(text: &str, library: &str) -> String {
    text.replace("{library}", library)
}
