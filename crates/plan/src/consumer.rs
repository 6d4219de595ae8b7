//! The libraries that look kernels up: MIOpen, rocFFT, and programs with the runtime crate. One
//! table has their properties for file names and packages.

use gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE;
use gfxpack_model::{InstallLayout, KernelFileFormat};
use serde::{Deserialize, Serialize};

/// A library that looks kernels up at run time.
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

/// The properties of a consumer. In texts, `{library}` stands for the name of the kernel library.
pub struct ConsumerProperties {
    /// The format of its kernel files.
    pub format: KernelFileFormat,
    /// Whether it does not open the device-wide file if there is one for exactly a GPU's compute
    /// units.
    pub exact_hides_device_wide: bool,
    /// Whether it looks into Python packages.
    pub supports_wheels: bool,
    /// The directory of the installed files.
    pub(crate) directory: fn(&InstallLayout, library: &str) -> String,
    /// The inverse: the layout whose files are in this directory.
    pub(crate) layout: fn(directory: &str) -> Option<InstallLayout>,
    /// The default template for names of packages.
    pub(crate) name_template: &'static str,
    /// The common name of all packages that install the one file for all GPUs.
    pub(crate) shared_package: Option<&'static str>,
    /// AMD's and distributions' packages of the consumer itself.
    pub(crate) packages: &'static [&'static str],
    /// Its package in AMD's directory; names for versions begin with this.
    pub(crate) amds_package: Option<&'static str>,
    /// Names of AMD's own packages of the same file, oldest first.
    pub(crate) amds_templates: &'static [&'static str],
    /// Whether everyone with such a GPU wants the kernels, not only users of a certain program.
    pub(crate) by_hardware: bool,
    /// Its name.
    pub name: &'static str,
    /// The term for the kernels in a summary.
    pub(crate) kernels: &'static str,
    /// A sentence of a package's description that says why to install it.
    pub(crate) purpose: &'static str,
    /// What happens with kernels that are not in the package.
    pub(crate) missing: &'static str,
}

/// Source of `amds_templates`: AMD's apt and rpm repositories: the first to ROCm 5.4, the second
/// since 5.5 (with compute units in the name) and 5.7 (without).
const MIOPEN: ConsumerProperties = ConsumerProperties {
    format: KernelFileFormat::Kdb,
    exact_hides_device_wide: true,
    supports_wheels: true,
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
    supports_wheels: false,
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
    supports_wheels: false,
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
    /// All consumers. Programs have kernels in directories of any name, MIOpen in its own, so
    /// MIOpen comes first.
    pub(crate) const ALL: [Self; 3] = [Self::Miopen, Self::Runtime, Self::Rocfft];

    /// The properties of the consumer.
    pub fn properties(self) -> &'static ConsumerProperties {
        match self {
            Self::Miopen => &MIOPEN,
            Self::Runtime => &RUNTIME,
            Self::Rocfft => &ROCFFT,
        }
    }

    /// The default template for names of packages: as AMD's for MIOpen, else with the library's
    /// name.
    pub fn default_name_template(self, library: &str) -> String {
        named(self.properties().name_template, library)
    }
}

/// Inserts the library's name into a text of the table.
pub(crate) fn named(text: &str, library: &str) -> String {
    text.replace("{library}", library)
}
