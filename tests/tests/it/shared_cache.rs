//! Objects shared between machines: a second machine compiles nothing, damaged objects are dropped,
//! and a cache that is down stops no build.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::support::project::{Project, Run, command, finish, workspace};

const KERNELS: usize = 5;

/// Who we are to a service of S3's interface, and what proves it.
const S3_KEY: (&str, &str) = ("somebody", "a-secret-of-somebody");

/// Kernels that take the compiler a moment only.
fn project() -> Project {
    let project = Project::light();
    let manifest = project.text("kernels.toml");
    let two_more = "\"-DFACTOR=2\", \"-DFACTOR=4\", \"-DFACTOR=5\"";
    project.write("kernels.toml", &manifest.replace("\"-DFACTOR=2\"", two_more));
    project
}

/// Builds on a "machine": with a cache of its own.
fn build(project: &Project, machine: &str, more: &[&str]) -> Run {
    let arguments = ["--target", "gfx906_60", "--json", "-", "--out", machine];
    let mut command = project.command(&["build", "--manifest", "kernels.toml"]);
    command.args(arguments).args(more);
    command.env("GFXPACK_CACHE_DIR", project.path().join(format!("cache-{machine}")));
    // Whoever runs the tests may be somebody else there.
    command.env_remove("AWS_SESSION_TOKEN").env_remove("AWS_PROFILE");
    command.env("AWS_ACCESS_KEY_ID", S3_KEY.0).env("AWS_SECRET_ACCESS_KEY", S3_KEY.1);
    finish(command)
}

fn kdb(project: &Project, machine: &str) -> Vec<u8> {
    fs::read(project.path().join(machine).join("kdb/gfx906_60.kdb")).unwrap()
}

/// How many kernels were compiled, and how many came from the shared cache.
fn counts(run: &Run) -> (u64, u64) {
    let finished = &run.of_type("build-finished")[0];
    (finished["compiled"].as_u64().unwrap(), finished["shared"].as_u64().unwrap())
}

/// What a shared cache is for, whatever it is.
fn is_shared(project: &Project, url: &str) {
    let first = build(project, "first", &["--cache-remote", url]).expect_code(0);
    assert_eq!(counts(&first), (KERNELS as u64, 0), "{}", first.stdout);
    assert_eq!(first.of_type("warning"), Vec::<serde_json::Value>::new());
    let second = build(project, "second", &["--cache-remote", url]).expect_code(0);
    assert_eq!(counts(&second), (0, KERNELS as u64), "{}", second.stdout);
    assert!(kdb(project, "first") == kdb(project, "second"));
    // What came once is there from now on.
    let again = build(project, "second", &[]).expect_code(0);
    assert_eq!(counts(&again), (0, 0));
}

fn directory(project: &Project) -> String {
    format!("file://{}", project.path().join("shared").display())
}

#[test]
fn a_directory_is_shared_and_damaged_objects_are_dropped() {
    let project = project();
    let url = directory(&project);
    is_shared(&project, &url);
    let entries = project.tree("shared/v1/objects");
    assert_eq!(entries.len(), KERNELS);
    let path = |name: &str| project.path().join("shared/v1/objects").join(name);
    // Other bytes, too few, far too many, and a sound object that is for another job.
    let (first, second, third) = (&entries[0], &entries[1], &entries[2]);
    let mut damaged = first.1.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(path(&first.0), damaged).unwrap();
    fs::write(path(&second.0), &second.1[..100]).unwrap();
    fs::write(path(&third.0), &entries[3].1).unwrap();
    fs::File::create(path(&entries[4].0)).unwrap().set_len(1 << 40).unwrap();
    let run = build(&project, "third", &["--cache-remote", &url]).expect_code(0);
    assert_eq!(counts(&run), (4, KERNELS as u64 - 4), "{}", run.stdout);
    assert!(kdb(&project, "first") == kdb(&project, "third"));
    let warnings = run.of_type("warning");
    assert_eq!(warnings.len(), 1, "once: {warnings:?}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("ignored"), "{warnings:?}");
    // What was compiled in their place is shared.
    let run = build(&project, "fourth", &["--cache-remote", &url]).expect_code(0);
    assert_eq!(counts(&run), (0, KERNELS as u64));
}

#[test]
fn the_user_chooses_what_is_uploaded() {
    let project = project();
    let url = directory(&project);
    let shared = || {
        let dir = project.path().join("shared/v1/objects");
        if dir.exists() { project.tree("shared/v1/objects").len() } else { 0 }
    };
    build(&project, "m", &["--cache-remote", &url, "--cache-upload", "never"]).expect_code(0);
    assert_eq!(shared(), 0);
    // Nothing is compiled any more, so there is nothing to give.
    build(&project, "m", &["--cache-remote", &url]).expect_code(0);
    assert_eq!(shared(), 0);
    build(&project, "m", &["--cache-remote", &url, "--cache-upload", "always"]).expect_code(0);
    assert_eq!(shared(), KERNELS);
}

#[test]
fn a_cache_that_is_down_stops_no_build() {
    let project = project();
    let nobody = format!("webdav://{}/", own_address());
    let file = project.write("plain.txt", "no directory");
    let below_a_file = format!("file://{}/shared", file.display());
    for (machine, url) in [("nobody", nobody.as_str()), ("file", &below_a_file)] {
        let run = build(&project, machine, &["--cache-remote", url]).expect_code(0);
        assert_eq!(counts(&run), (KERNELS as u64, 0));
        let warnings = run.of_type("warning");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0]["message"].as_str().unwrap().contains(url), "{warnings:?}");
    }
    let run = build(&project, "wrong", &["--cache-remote", "ftp://host/"]).expect_code(2);
    assert!(run.of_type("error")[0]["hint"].as_str().unwrap().contains("webdav://"));
}

/// A server that ends with this value.
struct Server {
    child: Child,
    address: SocketAddr,
}

/// An address of this machine where nothing else is, whoever else looks for
/// one: no two have the same host.
fn own_address() -> SocketAddr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, 1 | high, low, COUNT.fetch_add(1, Ordering::Relaxed));
    let listener = TcpListener::bind((host, 0)).expect("a free port");
    listener.local_addr().expect("a bound one")
}

impl Server {
    /// Starts the program that `command` makes for an address.
    fn start(command: impl FnOnce(SocketAddr) -> std::process::Command) -> Self {
        let address = own_address();
        let mut command = command(address);
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut server = Self { child: command.spawn().expect("it starts"), address };
        while TcpStream::connect(address).is_err() {
            assert!(matches!(server.child.try_wait(), Ok(None)), "the server ended");
            std::thread::yield_now();
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn webdav_is_shared() {
    let project = project();
    fs::create_dir(project.path().join("dav")).unwrap();
    let server = Server::start(|address| {
        let mut server = command(workspace().join("target/tools/webdav/bin/wsgidav"));
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        server.args(["--host", &host, "--port", &port, "--auth", "anonymous"]);
        server.arg("--root").arg(project.path().join("dav")).args(["--no-config", "--quiet"]);
        server
    });
    is_shared(&project, &format!("webdav://{}/team", server.address));
    assert_eq!(project.tree("dav/team/v1/objects").len(), KERNELS);
}

#[test]
fn redis_is_shared() {
    let project = project();
    let server = Server::start(|address| {
        let mut server = command("redis-server");
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        server.args(["--port", &port, "--bind", &host, "--save", ""]);
        server.args(["--protected-mode", "no"]).arg("--dir").arg(project.path());
        server
    });
    is_shared(&project, &format!("redis://{}/1", server.address));
}

#[test]
fn s3_is_shared_with_everyone_who_has_the_key() {
    let project = project();
    fs::create_dir_all(project.path().join("s3/bucket")).unwrap();
    let server = Server::start(|address| {
        let mut server = command(workspace().join("target/tools/rclone/rclone"));
        server.args(["serve", "s3", "--config", "", "--vfs-cache-mode", "off"]);
        server.args(["--auth-key", &format!("{},{}", S3_KEY.0, S3_KEY.1)]);
        server.args(["--addr", &address.to_string()]).arg(project.path().join("s3"));
        server
    });
    let place = format!("endpoint=http://{}&region=us-east-1", server.address);
    is_shared(&project, &format!("s3://bucket/team?{place}"));
    assert_eq!(project.tree("s3/bucket/team/v1/objects").len(), KERNELS);
    let stranger = format!("s3://bucket/team?{place}&access_key_id=x&secret_access_key=y");
    let run = build(&project, "stranger", &["--cache-remote", &stranger]).expect_code(0);
    assert_eq!(counts(&run), (KERNELS as u64, 0));
    let warnings = run.of_type("warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(!run.stdout.contains("secret_access_key"), "{warnings:?}");
}

#[test]
fn google_cloud_storage_is_shared() {
    let project = project();
    let server = Server::start(|address| {
        let mut server = command(workspace().join("target/tools/gcs/bin/gcp-storage-emulator"));
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        server.arg("--data-dir").arg(project.path().join("gcs"));
        server.args(["start", "--host", &host, "--port", &port]);
        server.args(["--default-bucket", "bucket", "--quiet"]);
        server
    });
    let place = format!("endpoint=http://{}&skip_signature=true", server.address);
    is_shared(&project, &format!("gs://bucket/team?{place}"));
    let kept = project.tree("gcs/.cloudstorage/bucket/team/v1/objects");
    assert_eq!(kept.len(), KERNELS);
}
