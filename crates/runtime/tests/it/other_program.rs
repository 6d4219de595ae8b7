//! A child process that holds a kdb open and follows commands on stdin.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout};

use crate::support::{child, child_arguments, print_line, spawn};

/// A child process that runs the SQL statements it receives.
pub(crate) struct OtherProgram {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl OtherProgram {
    pub(crate) fn start(path: &Path) -> Self {
        let test = "other_program::child_process_that_runs_sql";
        let mut child = spawn(&mut child(test, &[path.to_str().unwrap()]));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Self { child, lines };
        program.expect("open");
        program
    }

    /// Skips the output of the test harness.
    #[track_caller]
    fn expect(&mut self, line: &str) {
        assert!(self.lines.by_ref().map(Result::unwrap).any(|printed| printed == line), "`{line}`");
    }

    /// Makes the process run a statement, given on one line.
    #[track_caller]
    pub(crate) fn execute(&mut self, sql: &str) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{sql}").unwrap();
        self.expect("done");
    }

    /// Makes the process close the file and exit.
    pub(crate) fn close(mut self) {
        drop(self.child.stdin.take());
        self.expect("closed");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for OtherProgram {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // If nobody read its last lines, it would panic.
        self.lines.by_ref().for_each(drop);
        self.child.wait().ok();
    }
}

#[test]
#[ignore = "the child of other tests, started in a process of its own"]
fn child_process_that_runs_sql() {
    let connection = rusqlite::Connection::open(&child_arguments()[0]).unwrap();
    print_line("open");
    for line in std::io::stdin().lines() {
        let mut statement = connection.prepare(&line.unwrap()).unwrap();
        let mut rows = statement.query(()).unwrap();
        while rows.next().unwrap().is_some() {}
        print_line("done");
    }
    connection.close().unwrap();
    print_line("closed");
}
