//! A pipe at which a stand-in for a compiler waits until a test opens it. The stand-in may write only
//! where any compiler may, so it can't create a file to report its progress.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvError, Sender};
use std::thread::JoinHandle;

use super::project::tool;

/// Source: Linux, include/uapi/asm-generic/fcntl.h, `O_NONBLOCK`.
const O_NONBLOCK: i32 = 0o4000;

/// A pipe whose first reader waits until an action has run, and then reads the end of the file.
/// After that, the pipe is removed.
#[derive(Debug)]
pub(crate) struct Gate {
    path: PathBuf,
    reached: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Gate {
    /// Makes the pipe. `action` runs while its first reader waits.
    pub(crate) fn new(path: &Path, action: impl FnOnce() + Send + 'static) -> Self {
        let text = path.to_str().expect("a plain path");
        tool("mkfifo", &[text], Path::new("/"));
        let reached = Arc::new(AtomicBool::new(false));
        let (is_reached, pipe) = (Arc::clone(&reached), path.to_owned());
        let thread = std::thread::spawn(move || {
            // Waits for a reader.
            let open = OpenOptions::new().write(true).open(&pipe).expect("one's own pipe");
            is_reached.store(true, Ordering::SeqCst);
            action();
            fs::remove_file(&pipe).expect("one's own pipe");
            drop(open);
        });
        Self { path: path.to_owned(), reached, thread }
    }

    /// Makes a pipe whose reader waits until the sender is dropped.
    pub(crate) fn closed(path: &Path) -> (Self, Sender<()>) {
        let (key, lock) = mpsc::channel();
        let gate = Self::new(path, move || match lock.recv() {
            // The sender was dropped.
            Ok(()) | Err(RecvError) => {}
        });
        (gate, key)
    }

    /// Whether a reader has come.
    pub(crate) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::SeqCst)
    }

    /// Whether a reader waits now.
    pub(crate) fn is_waited_at(&self) -> bool {
        OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(&self.path).is_ok()
    }

    /// Waits until a reader has come and the pipe is removed.
    pub(crate) fn wait_until_gone(self) {
        self.thread.join().expect("its action is done");
    }
}
