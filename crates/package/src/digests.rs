//! Computes digests of files on a thread of its own, while another thread packs
//! them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::output::hex;

/// Number of pieces in the queue: enough for short delays on either side.
const WAITING: usize = 6;

/// Maximum number of pieces in use: those in the queue, the one being digested,
/// and the one being filled.
pub(crate) const PIECES: usize = WAITING + 2;

/// The first bytes of a buffer that both threads share.
pub(crate) struct Piece {
    pub(crate) buffer: Arc<Vec<u8>>,
    pub(crate) filled: usize,
}

enum Message {
    Piece(Piece),
    EndOfFile,
}

/// Computes digests of one file after another.
pub(crate) struct Digests {
    messages: SyncSender<Message>,
    thread: JoinHandle<Vec<String>>,
}

impl Digests {
    /// # Errors
    /// If the system can't start another thread.
    pub(crate) fn start<D: sha2::Digest>() -> io::Result<Self> {
        let (messages, received) = sync_channel(WAITING);
        let thread = thread::Builder::new().spawn(move || digest::<D>(&received))?;
        Ok(Self { messages, thread })
    }

    /// Adds a piece of the current file.
    pub(crate) fn piece(&self, piece: Piece) {
        self.send(Message::Piece(piece));
    }

    pub(crate) fn end_of_file(&self) {
        self.send(Message::EndOfFile);
    }

    /// Sending fails only after a panic, which [`Digests::finish`] passes on.
    fn send(&self, message: Message) {
        self.messages.send(message).ok();
    }

    /// The digests of all files in hexadecimal, in the files' order.
    pub(crate) fn finish(self) -> Vec<String> {
        drop(self.messages);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn digest<D: sha2::Digest>(messages: &Receiver<Message>) -> Vec<String> {
    let mut digests = Vec::new();
    let mut current = D::new();
    for message in messages {
        match message {
            Message::Piece(piece) => current.update(&piece.buffer[..piece.filled]),
            Message::EndOfFile => {
                digests.push(hex(&std::mem::replace(&mut current, D::new()).finalize()))
            }
        }
    }
    digests
}
