//! Arguments of `kdb`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use gfxpack_kdb::{Blob, Conflict, CopyOptions, Layout, SplitBy};
use gfxpack_model::Target;

use super::{
    CacheDir, Choice, CompilerArgs, LibraryArgs, MaxObject, one_of, parse_target, whole_file,
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
    /// The kdbs, with the names that MIOpen looks for
    #[arg(required = true, value_name = "KDB")]
    pub(crate) files: Vec<PathBuf>,
    /// Problems: a list or log with MIOpenDriver commands, or a performance or
    /// find database. - reads stdin; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) problems: Vec<PathBuf>,
    /// The GPU that MIOpen is to find; repeatable, or with commas [default: as
    /// the kdbs' names say, with every known compute-unit count]
    #[arg(long, short, value_name = "TARGET", value_delimiter = ',', value_parser = parse_target)]
    pub(crate) target: Vec<Target>,
    /// Processes at once [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
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
        #[command(flatten)]
        object: SelectObject,
        /// Where to write it [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write the union of several kdbs
    Merge {
        /// The kdbs; also users' kdbs (.ukdb) that no program is using
        #[arg(required = true, value_name = "KDB")]
        files: Vec<PathBuf>,
        /// Where to write it
        #[arg(long, short, value_name = "FILE", value_parser = whole_file())]
        out: PathBuf,
        /// What to do where files have different code objects for one key
        #[arg(long, value_parser = one_of(&CONFLICTS), default_value = "error", value_name = "POLICY")]
        on_conflict: Conflict,
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
        /// Write a self-contained HTML page with plots to this file; `-` is stdout
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
        compilers: CompilerArgs,
    },
    /// List the symbols of one kernel, with registers and memory it needs
    Symbols {
        #[command(flatten)]
        object: SelectObject,
    },
}

/// What to do if files have different code objects for the same key.
const CONFLICTS: [Choice<Conflict>; 3] = [
    ("error", "Write nothing", Conflict::Error),
    ("first", "Take the file named first", Conflict::First),
    ("newest", "Take the file changed last", Conflict::Newest),
];

/// The form of a kdb.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct KdbForm {
    /// How code objects are stored in a kdb
    #[arg(long, value_parser = one_of(&BLOBS), default_value = "auto", help_heading = "Build")]
    pub(crate) blob: Blob,
    /// How a kdb lays out its rows
    #[arg(long, value_parser = one_of(&LAYOUTS), default_value = "miopen", value_name = "LAYOUT",
          help_heading = "Build")]
    pub(crate) kdb_layout: Layout,
    /// Record in the kdb what each code object was made of: compiler, source,
    /// gfxpack version
    #[arg(long, help_heading = "Build")]
    pub(crate) provenance: bool,
    /// Name kernels as MIOpen does on Windows: conv.cpp.obj. `dist --layout
    /// windows` does so by itself
    #[arg(long, help_heading = "Build")]
    pub(crate) windows_names: bool,
}

/// How code objects are stored. Raw gives the smallest packages:
/// docs/packages.md, "Size", has the measurements.
const BLOBS: [Choice<Blob>; 3] = [
    ("auto", "Raw: packages compress many kernels at once better than bzip2 each", Blob::Raw),
    ("bz2", "bzip2 where that is smaller, as MIOpen does it", Blob::Smaller),
    ("raw", "Uncompressed: larger files that MIOpen reads faster", Blob::Raw),
];

/// How rows are laid out.
const LAYOUTS: [Choice<Layout>; 2] = [
    ("miopen", "One table, as MIOpen itself makes it", Layout::Miopen),
    ("dense", "Equal code objects and the text of keys once; MIOpen reads it too", Layout::Dense),
];

/// How rows are carried over from file to file.
#[derive(Debug, ClapArgs)]
pub(crate) struct Copy {
    /// How rows are laid out [default: as they were; MIOpen's by merge and repair]
    #[arg(long, value_parser = one_of(&LAYOUTS), value_name = "LAYOUT")]
    pub(crate) layout: Option<Layout>,
    /// How code objects are stored [default: as they were]
    #[arg(long, value_parser = one_of(&BLOBS), value_name = "FORM")]
    pub(crate) blob: Option<Blob>,
}

impl Copy {
    pub(crate) fn options(&self, max_object: MaxObject) -> CopyOptions<'static> {
        let mut options = CopyOptions::default();
        options.max_object_bytes = max_object.bytes;
        options.layout = self.layout;
        options.blob = self.blob;
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
