//! Open connections that wait for their next use: at most one for each thread
//! that uses a file at the same time.

use std::mem;
use std::sync::Mutex;

use crate::file_system::Identity;
use crate::lock;

/// Idle connections to one file.
pub(crate) struct Pool<T> {
    idle: Mutex<Idle<T>>,
}

struct Idle<T> {
    /// The file that they lead to.
    file: Option<Identity>,
    /// The process that opened them.
    process: u32,
    connections: Vec<T>,
}

impl<T> Pool<T> {
    pub(crate) fn new() -> Self {
        Self { idle: Mutex::new(Idle { file: None, process: 0, connections: Vec::new() }) }
    }

    /// An idle connection to that very file. Those to one that had its name
    /// before are closed.
    pub(crate) fn take(&self, file: Identity) -> Option<T> {
        let mut idle = lock(&self.idle);
        let stale = idle.turn_to(file);
        let connection = idle.connections.pop();
        drop(idle);
        drop(stale);
        connection
    }

    /// Keeps a connection for the next use, unless the name has come to lead
    /// elsewhere.
    pub(crate) fn give(&self, file: Identity, connection: T) {
        let mut idle = lock(&self.idle);
        if idle.file == Some(file) && idle.process == std::process::id() {
            idle.connections.push(connection);
        }
    }
}

impl<T> Drop for Idle<T> {
    fn drop(&mut self) {
        self.leave_to_parent();
    }
}

impl<T> Idle<T> {
    /// After a fork the connections are the parent's: SQLite forbids even to
    /// close them here.
    ///
    /// Source: SQLite, "How To Corrupt An SQLite Database File", section 2.6.
    fn leave_to_parent(&mut self) {
        if self.process != std::process::id() {
            mem::forget(mem::take(&mut self.connections));
        }
    }

    fn turn_to(&mut self, file: Identity) -> Vec<T> {
        self.leave_to_parent();
        let process = std::process::id();
        let stale =
            if self.file == Some(file) { Vec::new() } else { mem::take(&mut self.connections) };
        self.file = Some(file);
        self.process = process;
        stale
    }
}
