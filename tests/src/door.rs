//! A pipe that a stand-in for a compiler reads from. It may write nowhere but
//! where any compiler may, so that it can tell nothing otherwise.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvError, Sender};
use std::thread::JoinHandle;

use crate::project::tool;

/// Source: Linux, include/uapi/asm-generic/fcntl.h, `O_NONBLOCK`.
const O_NONBLOCK: i32 = 0o4000;

/// A pipe whose first reader waits until something is done, and finds nothing
/// in it. Then it is gone.
#[derive(Debug)]
pub struct Door {
    path: PathBuf,
    called: Arc<AtomicBool>,
    keeper: JoinHandle<()>,
}

impl Door {
    /// Makes the pipe. `action` is done while its first reader waits.
    ///
    /// # Panics
    /// Where it can't be made.
    #[must_use]
    pub fn new(path: &Path, action: impl FnOnce() + Send + 'static) -> Self {
        let text = path.to_str().expect("a plain path");
        tool("mkfifo", &[text], Path::new("/"));
        let called = Arc::new(AtomicBool::new(false));
        let (there, pipe) = (Arc::clone(&called), path.to_owned());
        let keeper = std::thread::spawn(move || {
            // Waits for a reader.
            let open = OpenOptions::new().write(true).open(&pipe).expect("one's own pipe");
            there.store(true, Ordering::SeqCst);
            action();
            fs::remove_file(&pipe).expect("one's own pipe");
            drop(open);
        });
        Self { path: path.to_owned(), called, keeper }
    }

    /// One that is kept closed until the value is dropped that comes with it.
    ///
    /// # Panics
    /// As above.
    #[must_use]
    pub fn closed(path: &Path) -> (Self, Sender<()>) {
        let (key, lock) = mpsc::channel();
        let door = Self::new(path, move || match lock.recv() {
            // The other end is gone.
            Ok(()) | Err(RecvError) => {}
        });
        (door, key)
    }

    /// Whether somebody read from it.
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.called.load(Ordering::SeqCst)
    }

    /// Whether somebody who came while it is closed is still there.
    #[must_use]
    pub fn has_caller(&self) -> bool {
        OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(&self.path).is_ok()
    }

    /// Waits until it is gone.
    ///
    /// # Panics
    /// Where its action did.
    pub fn leave(self) {
        self.keeper.join().expect("its action is done");
    }
}
