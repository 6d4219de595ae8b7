//! Memory that a process shares with its forks, so that a child's notes survive its death.

use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for the notes on one problem; only written pages take memory.
const BYTES: usize = 256 << 20;
/// The length of the notes is stored before them.
const HEADER: usize = 64;

/// Notes, appended by one process at a time.
#[derive(Debug)]
pub(crate) struct Arena {
    start: *mut u8,
}

// SAFETY: all writes are made by `append`, whose callers hold a lock.
unsafe impl Sync for Arena {}
// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Arena {}

impl Arena {
    /// # Errors
    /// The system's error, if it grants no memory.
    pub(crate) fn new() -> std::io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self { start: start.cast() })
    }

    fn length(&self) -> &AtomicUsize {
        // SAFETY: the header is aligned, zero at first, and used only for this.
        unsafe { &*self.start.cast::<AtomicUsize>() }
    }

    /// Removes all notes.
    pub(crate) fn clear(&self) {
        self.length().store(0, Ordering::Release);
    }

    /// The notes so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        let length = self.length().load(Ordering::Acquire).min(BYTES - HEADER);
        // SAFETY: this many bytes were written, and they are not written again before `clear`.
        unsafe { slice::from_raw_parts(self.start.add(HEADER), length) }
    }

    /// Appends notes; `false` if there is no room. Only one thread of one process may append at a
    /// time.
    pub(crate) fn append(&self, bytes: &[u8]) -> bool {
        let length = self.length().load(Ordering::Acquire);
        let end = length + bytes.len();
        if end > BYTES - HEADER {
            return false;
        }
        // SAFETY: the range lies in the mapping, and no reader goes beyond the length.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(HEADER + length), bytes.len());
        }
        self.length().store(end, Ordering::Release);
        true
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value.
        unsafe { libc::munmap(self.start.cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_in_order_up_to_the_end() {
        let arena = Arena::new().unwrap();
        assert!(arena.append(b"one\n") && arena.append(b"two\n"));
        assert_eq!(arena.bytes(), b"one\ntwo\n");
        assert!(!arena.append(&vec![0; BYTES]));
        assert_eq!(arena.bytes(), b"one\ntwo\n");
        arena.clear();
        assert_eq!(arena.bytes(), b"");
    }
}
