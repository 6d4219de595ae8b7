//! A HIP runtime library for devices that do not exist, compiled for a test.

use std::fs;
use std::path::{Path, PathBuf};

use super::project::{command, workspace};

/// Properties of the stand-in.
#[derive(Debug, Clone)]
pub(crate) struct HipStandIn {
    release: u32,
    defines: Vec<String>,
}

impl HipStandIn {
    /// HIP of this major release, 5 to 7, with such devices.
    pub(crate) fn new(release: u32, arch: &str, compute_units: u32) -> Self {
        let defines = vec![
            format!("RELEASE={release}"),
            format!("ARCH=\"{arch}\""),
            format!("COMPUTE_UNITS={compute_units}"),
        ];
        Self { release, defines }
    }

    /// A gfx906 with 60 compute units, under HIP 6.
    pub(crate) fn gfx906() -> Self {
        Self::new(6, "gfx906:sramecc+:xnack-", 60)
    }

    /// A gfx90a with 104 compute units, under HIP 6.
    pub(crate) fn gfx90a() -> Self {
        Self::new(6, "gfx90a:sramecc+:xnack-", 104)
    }

    /// HIP 6 on a machine without a GPU.
    pub(crate) fn without_device() -> Self {
        Self::gfx906().with("DEVICES=0")
    }

    /// The same with an additional definition for the C source, which lists them.
    pub(crate) fn with(mut self, define: &str) -> Self {
        self.defines.push(define.to_owned());
        self
    }

    /// Compiles it into `directory`, for LD_LIBRARY_PATH, under the name that the loader looks for.
    /// The names of other releases get files that are no libraries, so that no installed one is
    /// found.
    pub(crate) fn build(&self, directory: &Path) -> PathBuf {
        fs::create_dir_all(directory).expect("a directory for the library");
        for release in [5, 6, 7] {
            let path = directory.join(format!("libamdhip64.so.{release}"));
            fs::write(path, "no library\n").expect("a file in the way");
        }
        let library = directory.join(format!("libamdhip64.so.{}", self.release));
        fs::remove_file(&library).expect("the file in the way goes");
        let mut arguments = vec!["-shared".to_owned(), "-fPIC".to_owned(), "-o".to_owned()];
        arguments.push(library.to_str().expect("a plain path").to_owned());
        arguments.extend(self.defines.iter().map(|define| format!("-D{define}")));
        compile(&arguments);
        library
    }
}

/// Compares the stand-in's structs and numbers with the installed HIP headers.
pub(crate) fn check_layout() {
    compile(&["-fsyntax-only", "-D__HIP_PLATFORM_AMD__", "-DCHECK_LAYOUT"].map(str::to_owned));
}

fn compile(arguments: &[String]) {
    let source = workspace().join("tests/tests/it/support/hip.c");
    let output = command("cc").args(["-std=gnu11", "-w"]).args(arguments).arg(source).output();
    let output = output.expect("cc starts (`cargo xtask test --setup` installs it)");
    let diagnostics = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "cc {arguments:?}: {}\n{diagnostics}\n`cargo xtask test --setup` installs the HIP headers",
        output.status
    );
}
