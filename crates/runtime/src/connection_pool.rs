//! Keeps idle connections to a file for reuse: at most as many as threads have
//! used it at the same time.

use std::mem;
use std::sync::Mutex;

use crate::file_system::FileIdentity;
use crate::mutex::lock;
use crate::sqlite_gate::SqliteGate;

/// Idle connections to one file. Callers of `take` and `give` must have entered
/// the gate.
pub(crate) struct Pool<T> {
    gate: &'static SqliteGate,
    idle: Mutex<Idle<T>>,
}

struct Idle<T> {
    /// The file of the connections.
    file: Option<FileIdentity>,
    connections: Vec<T>,
}

impl<T> Pool<T> {
    pub(crate) fn new(gate: &'static SqliteGate) -> Self {
        Self { gate, idle: Mutex::new(Idle { file: None, connections: Vec::new() }) }
    }

    /// An idle connection to exactly this file. Connections to an earlier file
    /// of the same name are closed.
    pub(crate) fn take(&self, file: FileIdentity) -> Option<T> {
        let mut idle = lock(&self.idle);
        let mut stale = Vec::new();
        if idle.file != Some(file) {
            idle.file = Some(file);
            stale = mem::take(&mut idle.connections);
        }
        let connection = idle.connections.pop();
        drop(idle);
        drop(stale);
        connection
    }

    /// Keeps a connection for reuse, unless the name now leads to another file.
    pub(crate) fn give(&self, file: FileIdentity, connection: T) {
        let mut idle = lock(&self.idle);
        if idle.file == Some(file) {
            idle.connections.push(connection);
        }
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        let connections = mem::take(&mut lock(&self.idle).connections);
        let inside = self.gate.enter_shared();
        drop(connections);
        drop(inside);
    }
}
