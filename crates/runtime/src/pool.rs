//! Open connections that wait for their next use: at most one for each thread
//! that uses a file at the same time.

use std::mem;
use std::sync::Mutex;

use crate::file_system::Identity;
use crate::gate::Gate;
use crate::lock;

/// Idle connections to one file. They are taken and given inside the gate.
pub(crate) struct Pool<T> {
    gate: &'static Gate,
    idle: Mutex<Idle<T>>,
}

struct Idle<T> {
    /// The file that they lead to.
    file: Option<Identity>,
    connections: Vec<T>,
}

impl<T> Pool<T> {
    pub(crate) fn new(gate: &'static Gate) -> Self {
        Self { gate, idle: Mutex::new(Idle { file: None, connections: Vec::new() }) }
    }

    /// An idle connection to that very file. Those to one that had its name
    /// before are closed.
    pub(crate) fn take(&self, file: Identity) -> Option<T> {
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

    /// Keeps a connection for the next use, unless the name has come to lead
    /// elsewhere.
    pub(crate) fn give(&self, file: Identity, connection: T) {
        let mut idle = lock(&self.idle);
        if idle.file == Some(file) {
            idle.connections.push(connection);
        }
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        let connections = mem::take(&mut lock(&self.idle).connections);
        let inside = self.gate.enter();
        drop(connections);
        drop(inside);
    }
}
