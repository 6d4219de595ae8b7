//! The files that a build and its compilers opened and wrote, by strace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The calls that open or change files.
pub(crate) const CALLS: &str = "open,openat,openat2,creat,truncate,rename,renameat,renameat2,unlink,unlinkat,\
                     mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,mknod,mknodat,chmod,fchmodat";
/// What anybody may write to, and what of gfxpack's lies in the directory for
/// temporary files.
const NOWHERE: [&str; 3] = ["/dev/null", "/dev/tty", "/memfd:"];

#[derive(Default)]
pub(crate) struct Trace {
    /// The kernels of whose files outside of the library one was opened.
    pub(crate) read: BTreeSet<String>,
    /// Calls that changed what is none of gfxpack's own.
    pub(crate) written: Vec<String>,
}

impl Trace {
    /// Reads a log of strace. `outside` holds a directory for each kernel, `own` is what gfxpack may
    /// write.
    pub(crate) fn add_log(&mut self, log: &Path, outside: &Path, own: &[PathBuf]) {
        let text = fs::read(log).unwrap();
        let text = String::from_utf8_lossy(&text);
        // Calls that others came between.
        let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
        for line in text.lines() {
            let (process, call) = line.split_once(' ').unwrap();
            let call = call.trim_start();
            if let Some((start, _)) = call.split_once(" <unfinished") {
                begun.insert(process, start);
            } else if let Some((_, end)) = call.split_once(" resumed>") {
                let start = begun.remove(process).unwrap();
                self.add(&format!("{start}{end}"), outside, own);
            } else {
                self.add(call, outside, own);
            }
        }
    }

    fn add(&mut self, call: &str, outside: &Path, own: &[PathBuf]) {
        let (arguments, result) = call.rsplit_once(" = ").unwrap_or((call, "?"));
        if result.starts_with(['-', '?']) || arguments.contains("O_PATH") {
            return;
        }
        let opened = result.split_once('<').map(|(_, path)| path.trim_end_matches('>'));
        let changes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"];
        match opened {
            // What is in a directory is not read by opening it.
            Some(path) if Path::new(path).is_dir() => {}
            Some(path) if !changes.iter().any(|flag| arguments.contains(flag)) => {
                let below = Path::new(path).strip_prefix(outside).ok();
                let kernel = below.and_then(|path| path.iter().next());
                self.read.extend(kernel.map(|name| name.to_string_lossy().into_owned()));
            }
            Some(path) if is_own(path, own) => {}
            // What a symbolic link holds may be anything.
            None if places(arguments).iter().all(|path| is_own(path, own)) => {}
            _ => self.written.push(call.to_owned()),
        }
    }
}

fn is_own(path: &str, own: &[PathBuf]) -> bool {
    let temporary = std::env::temp_dir().join("gfxpack-");
    NOWHERE.iter().any(|nowhere| path.starts_with(nowhere))
        || path.starts_with(temporary.to_str().unwrap())
        || own.iter().any(|dir| Path::new(path).starts_with(dir))
}

/// The paths that a call names: `call(AT_FDCWD</dir>, "path", …`.
fn places(arguments: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut parts = arguments.split('"');
    let mut dir = "";
    while let Some(before) = parts.next() {
        dir = before.split_once('<').map_or(dir, |(_, dir)| dir.split('>').next().unwrap());
        let Some(path) = parts.next() else { break };
        paths.push(Path::new(dir).join(path).display().to_string());
    }
    // What a link leads to stays as it is.
    if arguments.starts_with("symlink") || arguments.starts_with("link") {
        paths.remove(0);
    }
    paths
}
