//! A small archive like Debian's, signed with a key of its own, and a web server for it that can
//! interrupt connections.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use gfxpack_debian::Progress;
use tempfile::TempDir;

use super::project::command;

/// Warnings that were heard.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) RefCell<Vec<String>>);

impl Progress for Heard {
    fn warning(&self, text: &str) {
        self.0.borrow_mut().push(text.to_owned());
    }
}

/// The signer of the archive.
const SIGNER: &str = "archive@example.org";

/// The archive, with its keys.
#[derive(Debug)]
pub(crate) struct Archive {
    dir: TempDir,
}

/// A file of a package: path below the root, text, mode.
pub(crate) type File<'a> = (&'a str, &'a [u8], u32);

impl Archive {
    /// An archive without packages, with a new key.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("gfxpack").tempdir().expect("made");
        let archive = Self { dir };
        fs::create_dir_all(archive.root().join("pool/sid")).expect("made");
        fs::create_dir(archive.path("gnupg")).expect("made");
        fs::set_permissions(archive.path("gnupg"), PermissionsExt::from_mode(0o700))
            .expect("changed");
        archive.make_key(SIGNER, "never", None);
        archive
    }

    /// A path below the temporary directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The directory that a mirror serves.
    pub(crate) fn root(&self) -> PathBuf {
        self.path("archive")
    }

    /// Makes a signing key, at the given time if there is one.
    pub(crate) fn make_key(&self, name: &str, expires: &str, at: Option<&str>) {
        let mut gpg = self.gpg(at);
        gpg.args(["--passphrase", "", "--quick-gen-key", name, "rsa2048", "sign", expires]);
        ok(gpg);
    }

    /// The public keys with these names, as `gpg --export` writes them.
    pub(crate) fn keys(&self, names: &[&str]) -> Vec<u8> {
        let mut gpg = self.gpg(None);
        gpg.arg("--export").args(names);
        ok(gpg)
    }

    /// The archive's own key.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.keys(&[SIGNER])
    }

    /// gpg with these keys, at the given time if there is one.
    pub(crate) fn gpg(&self, at: Option<&str>) -> Command {
        let mut gpg = command("gpg");
        gpg.env("GNUPGHOME", self.path("gnupg")).args(["--batch", "--quiet", "--yes"]);
        if let Some(at) = at {
            gpg.args(["--faked-system-time", at]);
        }
        gpg
    }

    /// Adds a package for amd64 to sid.
    pub(crate) fn add(
        &self,
        name: &str,
        version: &str,
        depends: &str,
        files: &[File<'_>],
    ) -> PathBuf {
        self.add_to("sid", name, version, depends, files)
    }

    /// Adds a package for amd64 to a suite.
    pub(crate) fn add_to(
        &self,
        suite: &str,
        name: &str,
        version: &str,
        depends: &str,
        files: &[File<'_>],
    ) -> PathBuf {
        let tree = tempfile::tempdir_in(self.dir.path()).expect("made");
        fs::set_permissions(tree.path(), PermissionsExt::from_mode(0o755)).expect("changed");
        for (path, text, mode) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("made");
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, PermissionsExt::from_mode(*mode)).expect("changed");
        }
        let depends =
            if depends.is_empty() { String::new() } else { format!("Depends: {depends}\n") };
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: A <{SIGNER}>\n\
             {depends}Description: a package of a test\n"
        );
        fs::create_dir(tree.path().join("DEBIAN")).expect("made");
        fs::write(tree.path().join("DEBIAN/control"), control).expect("written");
        let pool = self.root().join("pool").join(suite);
        fs::create_dir_all(&pool).expect("made");
        let file = pool.join(format!("{name}_{version}_amd64.deb"));
        let mut build = command("dpkg-deb");
        build.args(["--root-owner-group", "--build"]).arg(tree.path()).arg(&file);
        ok(build);
        file
    }

    /// Lists all packages of a suite and signs the list. `more` are additional lines of the list,
    /// such as `Valid-Until: …`.
    pub(crate) fn publish(&self, suite: &str, more: &str) {
        self.list(suite, more);
        self.sign(suite, &["--local-user", SIGNER], None);
    }

    /// Lists all packages of a suite.
    pub(crate) fn list(&self, suite: &str, more: &str) {
        let dists = self.root().join("dists").join(suite);
        let dir = dists.join("main/binary-amd64");
        let _ = fs::remove_dir_all(&dists);
        fs::create_dir_all(&dir).expect("made");
        let mut packages = command("apt-ftparchive");
        let pool = format!("pool/{suite}");
        fs::create_dir_all(self.root().join(&pool)).expect("made");
        packages.args(["packages", &pool]).current_dir(self.root());
        fs::write(dir.join("Packages"), ok(packages)).expect("written");
        let mut xz = command("xz");
        xz.arg(dir.join("Packages"));
        ok(xz);
        let mut release = command("apt-ftparchive");
        release.args(["release", "."]).current_dir(&dists);
        let listed = String::from_utf8(ok(release)).expect("text");
        let listed: String =
            listed.split_inclusive('\n').filter(|l| !l.starts_with("Date:")).collect();
        let head = format!(
            "Origin: Debian\nSuite: {suite}\nCodename: {suite}\nDate: Fri, 30 Oct 2026 08:08:01 UTC\n"
        );
        fs::write(dists.join("Release"), format!("{head}{more}{listed}")).expect("written");
    }

    /// Signs the list of a suite with the given keys.
    pub(crate) fn sign(&self, suite: &str, keys: &[&str], at: Option<&str>) {
        let dists = self.root().join("dists").join(suite);
        let mut gpg = self.gpg(at);
        gpg.args(keys).arg("--output").arg(dists.join("InRelease"));
        gpg.arg("--clearsign").arg(dists.join("Release"));
        ok(gpg);
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let mut agent = command("gpgconf");
        agent.args(["--kill", "all"]).env("GNUPGHOME", self.path("gnupg"));
        let _ = agent.output();
    }
}

fn ok(mut command: Command) -> Vec<u8> {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    output.stdout
}

/// The faults of a server.
#[derive(Debug, Default, Clone)]
pub(crate) struct Faults {
    /// Bytes of a body after which a connection is cut, and how often this happens.
    pub(crate) cut: Option<(usize, u32)>,
    /// Whether it ignores ranges and sends everything.
    pub(crate) no_ranges: bool,
    /// Whether it answers that it is too busy.
    pub(crate) busy: bool,
}

/// A web server for a directory.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    faults: Mutex<Faults>,
    requests: Mutex<Vec<String>>,
}

impl Server {
    /// Serves a directory until the test ends.
    pub(crate) fn start(root: &Path, faults: Faults) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (faults, requests) = (Mutex::new(faults), Mutex::default());
        let shared = Arc::new(Shared { root: root.to_owned(), faults, requests });
        let serving = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                // A client that disconnects is no error of the server.
                thread::spawn(move || drop(serving.answer(stream)));
            }
        });
        Self { address, shared }
    }

    /// The mirror's address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the faults.
    pub(crate) fn misbehave(&self, faults: Faults) {
        *self.shared.faults.lock().expect("not poisoned") = faults;
    }

    /// The requested paths, each with its range, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().expect("not poisoned").clone()
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
        let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let mut range = None;
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("range")
            {
                range = value.strip_prefix("bytes=").map(str::to_owned);
            }
        }
        let shown = range.as_ref().map_or(String::new(), |range| format!(" {range}"));
        self.requests.lock().expect("not poisoned").push(format!("{path}{shown}"));
        let mut faults = self.faults.lock().expect("not poisoned").clone();
        if faults.busy {
            return stream
                .write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        let Ok(body) = fs::read(self.root.join(&path)) else {
            return stream
                .write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        let from = range.and_then(|range| range.trim_end_matches('-').parse::<usize>().ok());
        let from = from.filter(|from| !faults.no_ranges && *from < body.len());
        let (status, part) = match from {
            Some(from) => {
                let part =
                    format!("Content-Range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len());
                (format!("206 Part\r\n{part}"), &body[from..])
            }
            None => ("200 All\r\n".to_owned(), &body[..]),
        };
        write!(
            stream,
            "HTTP/1.1 {status}Content-Length: {}\r\nConnection: close\r\n\r\n",
            part.len()
        )?;
        let mut end = part.len();
        if let Some((after, times)) = &mut faults.cut
            && *times > 0
            && *after < end
        {
            end = *after;
            *times -= 1;
            self.faults.lock().expect("not poisoned").cut = faults.cut;
        }
        stream.write_all(&part[..end])?;
        stream.shutdown(std::net::Shutdown::Write)?;
        // Ends only when the client has read everything.
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
}
