//! The command line of `kdb`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use gfxpack_kdb::{Conflict, CopyOptions, SplitBy};
use gfxpack_model::Target;

use super::{
    Asking, BlobArg, CacheArgs, CacheDir, KdbLayout, MaxObject, ToolchainArgs, parse_target,
    whole_file,
};
use crate::quantity::parse_size;

#[derive(Debug, ClapArgs)]
pub(crate) struct KdbCommand {
    #[command(flatten)]
    pub(crate) max_object: MaxObject,
    #[command(subcommand)]
    pub(crate) command: Kdb,
}

/// `kdb check`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckKdb {
    /// The kdbs, called as MIOpen looks for them
    #[arg(required = true, value_name = "KDB")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The GPU that MIOpen is told it runs on; repeatable, or with commas
    /// [default: as the kdbs' names say, with every known compute-unit count]
    #[arg(long, short, value_name = "TARGET", value_delimiter = ',', value_parser = parse_target)]
    pub(crate) target: Vec<Target>,
    /// Processes at once [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) cache: CacheDir,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Kdb {
    /// Check everything: database, keys, code objects, hashes, gfx targets
    Verify {
        /// The kdbs
        #[arg(required = true, value_name = "KDB")]
        files: Vec<PathBuf>,
        /// The target the kdbs must serve [default: as their names say]
        #[arg(long, short, value_parser = parse_target)]
        target: Option<Target>,
    },
    /// Run the real libMIOpen on kdbs, with compilers disabled, and report
    /// kernels that problems want and it does not find
    Check(Box<CheckKdb>),
    /// Summarise what is in a kdb
    Info {
        /// The kdbs
        #[arg(required = true, value_name = "KDB")]
        files: Vec<PathBuf>,
    },
    /// List the kernels of a kdb
    List {
        /// The kdb
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// Only kernels whose name or arguments contain this
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
        /// Print JSON Lines that --keys of `dist` reads
        #[arg(long)]
        keys: bool,
    },
    /// Write the code object of one kernel
    Get {
        /// The kdb
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// The kernel's name: MIOpenConvDirUni.cl.o
        name: String,
        /// Its arguments exactly as in a log or kdb: with the leading blank if there
        /// is one, and the ` -mcpu=gfx…` at the end
        #[arg(allow_hyphen_values = true)]
        args: String,
        /// Where to write it [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write the union of several kdbs
    Merge {
        /// The kdbs, and users' kdbs (.ukdb) that nobody has open
        #[arg(required = true, value_name = "KDB")]
        files: Vec<PathBuf>,
        /// Where to write it
        #[arg(long, short, value_name = "FILE", value_parser = whole_file())]
        out: PathBuf,
        /// What to do where files have different code objects for one key
        #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
        on_conflict: ConflictArg,
        #[command(flatten)]
        copy: Copy,
    },
    /// List what two kdbs differ in: keys, and code objects by their hashes
    Diff {
        /// The older kdb
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// The newer kdb
        #[arg(value_name = "NEW")]
        new: PathBuf,
        /// Exit with 101 where MIOpen would get different answers
        #[arg(long)]
        exit_code: bool,
    },
    /// Write a kdb in parts, each DIR/PART/NAME.kdb
    Split {
        /// The kdb
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// Where to put the parts
        #[arg(long, short, value_name = "DIR", value_parser = whole_file())]
        out: PathBuf,
        /// A part for each kernel name, or files up to a size: 100MB, 64MiB
        #[arg(long, value_name = "kernel|SIZE", value_parser = parse_split)]
        by: SplitBy,
        #[command(flatten)]
        copy: Copy,
    },
    /// Rewrite a kdb with another storage of code objects or layout of rows
    Convert {
        /// The kdb
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// Where to write it; may be the kdb itself
        #[arg(long, short, value_name = "FILE", value_parser = whole_file())]
        out: PathBuf,
        #[command(flatten)]
        copy: Copy,
    },
    /// Show what takes the space in a kdb
    Stats {
        /// The kdb
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// Write a page with plots to this file, which needs no other; `-` is
        /// stdout
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// How many kernels are listed, those with the most bytes first
        #[arg(long, value_name = "N", default_value_t = 20)]
        top: usize,
    },
    /// Copy all undamaged rows of a damaged kdb, and list the lost ones
    Repair {
        /// The damaged kdb, which is left as it is
        #[arg(value_name = "KDB")]
        file: PathBuf,
        /// Where to write what is saved
        #[arg(long, short, value_name = "FILE", value_parser = whole_file())]
        out: PathBuf,
        #[command(flatten)]
        copy: Copy,
    },
    /// Disassemble one kernel with llvm-objdump
    Disasm {
        #[command(flatten)]
        object: SelectObject,
        #[command(flatten)]
        toolchain: ToolchainArgs,
        #[command(flatten)]
        cache: CacheArgs,
    },
    /// List the symbols of one kernel, with registers and memory it needs
    Symbols {
        #[command(flatten)]
        object: SelectObject,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConflictArg {
    /// Write nothing.
    #[default]
    Error,
    /// Take the file named first.
    First,
    /// Take the file changed last.
    Newest,
}

impl From<ConflictArg> for Conflict {
    fn from(conflict: ConflictArg) -> Self {
        match conflict {
            ConflictArg::Error => Self::Error,
            ConflictArg::First => Self::First,
            ConflictArg::Newest => Self::Newest,
        }
    }
}

/// How rows are carried over from file to file.
#[derive(Debug, ClapArgs)]
pub(crate) struct Copy {
    /// How rows are laid out [default: as they were; MIOpen's by merge and repair]
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub(crate) layout: Option<KdbLayout>,
    /// How code objects are stored [default: as they were]
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) blob: Option<BlobArg>,
}

impl Copy {
    pub(crate) fn options(&self, max_object: MaxObject) -> CopyOptions<'static> {
        let mut options = CopyOptions::default();
        options.max_object_bytes = max_object.bytes;
        options.layout = self.layout.map(Into::into);
        options.blob = self.blob.map(Into::into);
        options
    }
}

/// One kernel of a kdb.
#[derive(Debug, ClapArgs)]
pub(crate) struct SelectObject {
    /// The kdb
    #[arg(value_name = "KDB")]
    pub(crate) file: PathBuf,
    /// The kernel's name: MIOpenConvDirUni.cl.o
    pub(crate) name: String,
    /// Its arguments exactly as in a log or kdb: with the leading blank if there
    /// is one, and the ` -mcpu=gfx…` at the end
    #[arg(allow_hyphen_values = true)]
    pub(crate) args: String,
}

fn parse_split(text: &str) -> Result<SplitBy, String> {
    if text == "kernel" {
        return Ok(SplitBy::Kernel);
    }
    let bytes = parse_size(text).ok().filter(|bytes| *bytes > 0);
    bytes.map(SplitBy::Size).ok_or_else(|| {
        "it is neither `kernel` nor a size\nhint: write a number with its unit, as 100MB or 64MiB"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let size = |text: &str| match parse_split(text) {
            Ok(SplitBy::Size(bytes)) => Some(bytes),
            _ => None,
        };
        assert_eq!(parse_split("kernel"), Ok(SplitBy::Kernel));
        assert_eq!(size("100MB"), Some(100_000_000));
        assert_eq!(size("64MiB"), Some(64 << 20));
        assert_eq!(size("4096B"), Some(4096));
        for wrong in ["", "0", "4096", "MB", "-1MB", "99999999999999GB", "kernels"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
